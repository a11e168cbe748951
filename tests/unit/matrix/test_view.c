/* Views: every dtype and stride compared with plain indexing, scans compared with a slow count. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrix/view.h"

static uint64_t state = 7;

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

static const sherd_dtype dtypes[] = { SHERD_F64, SHERD_F32, SHERD_U8,  SHERD_U16, SHERD_U32,
                                      SHERD_I8,  SHERD_I16, SHERD_I32, SHERD_I64 };
#define DTYPES (sizeof dtypes / sizeof *dtypes)

/* Stores v in element i of a dtype's array; returns the value that the element then has. */
static double store(void *data, sherd_dtype t, size_t i, int32_t v)
{
    switch (t) {
    case SHERD_F64: ((double *)data)[i] = v * 0.37; return ((double *)data)[i];
    case SHERD_F32: ((float *)data)[i] = (float)v * 0.37f; return (double)((float *)data)[i];
    case SHERD_U8: return ((uint8_t *)data)[i] = (uint8_t)v;
    case SHERD_U16: return ((uint16_t *)data)[i] = (uint16_t)v;
    case SHERD_U32: return ((uint32_t *)data)[i] = (uint32_t)v;
    case SHERD_I8: return ((int8_t *)data)[i] = (int8_t)v;
    case SHERD_I16: return ((int16_t *)data)[i] = (int16_t)v;
    case SHERD_I32: return ((int32_t *)data)[i] = v;
    case SHERD_I64:
        ((int64_t *)data)[i] = (int64_t)v * 1048576;
        return (double)((int64_t)v * 1048576);
    }
    return 0;
}

/* Checks that all readers return the values at (r, c) = base[r*rs + c*cs]. */
static void readers_agree(sherd_view v, const double *want, ptrdiff_t rs, ptrdiff_t cs)
{
    size_t n = v.rows, m = v.cols, ld = m + 3;
    double *row = malloc((m + 1) * sizeof *row), *dense = malloc((n * ld + 1) * sizeof *dense);
    uint32_t *cols = malloc((m + 1) * sizeof *cols);
    for (size_t j = 0; j < m; j++) cols[j] = draw((uint32_t)m);
    sherd_view_read(v, dense, ld); /* sherd__view_dense_f64 */
    for (size_t r = 0; r < n; r++) {
        for (size_t c0 = 0; c0 < m; c0 += 1 + m / 3) {
            sherd__view_row_f64(v, r, c0, m - c0, row);
            for (size_t c = c0; c < m; c++)
                assert_true(row[c - c0] == want[(ptrdiff_t)r * rs + (ptrdiff_t)c * cs]);
        }
        sherd__view_gather_f64(v, r, cols, m, row);
        for (size_t c = 0; c < m; c++) {
            assert_true(row[c] == want[(ptrdiff_t)r * rs + (ptrdiff_t)cols[c] * cs]);
            assert_true(dense[r * ld + c] == want[(ptrdiff_t)r * rs + (ptrdiff_t)c * cs]);
            assert_true(sherd__view_at(v, r, c) == dense[r * ld + c]);
        }
    }
    free(row);
    free(dense);
    free(cols);
}

static void every_dtype_and_order_reads_like_plain_indexing(void **s)
{
    (void)s;
    static const size_t sizes[][2] = { { 0, 0 }, { 0, 5 }, { 5, 0 },    { 1, 1 },
                                       { 1, 9 }, { 9, 1 }, { 67, 130 }, { 130, 67 } };
    for (size_t t = 0; t < DTYPES; t++)
        for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
            size_t n = sizes[z][0], m = sizes[z][1], len = n * m;
            void *data = malloc(len * 8 + 8);
            double *want = malloc((len + 1) * sizeof *want);
            for (size_t i = 0; i < len; i++)
                want[i] = store(data, dtypes[t], i, (int32_t)draw(2000000) - 1000000);
            sherd_view v = sherd_view_c(data, dtypes[t], n, m);
            assert_int_equal(sherd__view_check(v, "A", NULL), SHERD_OK);
            readers_agree(v, want, (ptrdiff_t)m, 1);
            readers_agree(sherd_view_t(v), want, 1, (ptrdiff_t)m);
            if (n > 2 && m > 4) {
                readers_agree(sherd_view_sub(v, 2, n - 2, 3, m - 4), want + 2 * m + 3, (ptrdiff_t)m,
                              1);
                sherd_view skip = v; /* every second column, rows from the last to the first */
                skip.cols = m / 2;
                skip.col_stride = 2;
                skip.row_stride = -(ptrdiff_t)m;
                skip.data = (const char *)data + (n - 1) * m * sherd_dtype_size(dtypes[t]);
                readers_agree(skip, want + (n - 1) * m, -(ptrdiff_t)m, 2);
            }
            free(data);
            free(want);
        }
}

static void data_at_odd_addresses_can_be_read(void **s)
{
    (void)s;
    unsigned char bytes[8 * 12 + 1];
    double x[12];
    for (int i = 0; i < 12; i++) x[i] = i * 1.25;
    memcpy(bytes + 1, x, sizeof x);
    sherd_view v = sherd_view_c(bytes + 1, SHERD_F64, 3, 4);
    size_t ld;
    assert_null(sherd__view_borrow_f64(v, &ld));
    readers_agree(v, x, 4, 1);
    readers_agree(sherd_view_t(v), x, 1, 4);
}

static void only_row_major_doubles_are_borrowed(void **s)
{
    (void)s;
    double x[12] = { 0 };
    size_t ld = 0;
    sherd_view v = sherd_view_c(x, SHERD_F64, 3, 4);
    assert_ptr_equal(sherd__view_borrow_f64(v, &ld), x);
    assert_int_equal(ld, 4);
    assert_ptr_equal(sherd__view_borrow_f64(sherd_view_sub(v, 1, 2, 1, 2), &ld), x + 5);
    assert_int_equal(ld, 4);
    assert_null(sherd__view_borrow_f64(sherd_view_t(v), &ld));
    v.row_stride = 3; /* the stride of rows that overlap is not a leading dimension */
    assert_null(sherd__view_borrow_f64(v, &ld));
    assert_null(sherd__view_borrow_f64(sherd_view_c(x, SHERD_I64, 3, 4), &ld));
}

static void an_inconsistent_view_is_refused(void **s)
{
    (void)s;
    double x[4] = { 0 };
    sherd_diag d = { 0 };
    sherd_view v = sherd_view_c(x, SHERD_F64, 2, 2);
    v.dtype = (sherd_dtype)0;
    assert_int_equal(sherd__view_check(v, "A", &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "A: dtype 0 "));
    v = sherd_view_c(NULL, SHERD_F64, 2, 2);
    assert_int_equal(sherd__view_check(v, "B", NULL), SHERD_EINVAL);
    v = sherd_view_c(NULL, SHERD_F64, 0, 2);
    assert_int_equal(sherd__view_check(v, "B", NULL), SHERD_OK);
    v = sherd_view_c(x, SHERD_F64, 2, SIZE_MAX / 4);
    assert_int_equal(sherd__view_check(v, "B", NULL), SHERD_EINVAL);
    v = sherd_view_c(x, SHERD_U8, (size_t)1 << 40, (size_t)1 << 40);
    assert_int_equal(sherd__view_check(v, "B", NULL), SHERD_EINVAL);
    v.row_stride = PTRDIFF_MIN;
    assert_int_equal(sherd__view_check(v, "B", NULL), SHERD_EINVAL);
    assert_int_equal(sherd_dtype_size((sherd_dtype)99), 0);
    assert_null(sherd_dtype_name((sherd_dtype)-1));
    assert_string_equal(sherd_dtype_name(SHERD_U16), "<u2");
    for (int t = SHERD_F64; t <= SHERD_I64; t++)
        assert_int_equal(sherd_dtype_find(sherd_dtype_name((sherd_dtype)t)), t);
    static const char *const none[] = { "", "f8", "<f80", ">f8", "float64", "<f16" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(sherd_dtype_find(none[i]), 0);
    v = sherd_view_c(x, sherd_dtype_find("<c16"), 1, 1);
    assert_int_equal(sherd__view_check(v, "B", NULL), SHERD_EINVAL);
}

static void a_dimension_that_no_matrix_can_have_is_refused(void **s)
{
    (void)s;
    static const size_t over[][2] = { { (size_t)UINT32_MAX + 1, 1 },
                                      { 1, (size_t)UINT32_MAX + 1 },
                                      { ((size_t)1 << 24) + 1, 0 },
                                      { 0, ((size_t)1 << 24) + 1 },
                                      { 0, SIZE_MAX } },
                        at[][2] = { { UINT32_MAX, 1 },
                                    { 1, UINT32_MAX },
                                    { (size_t)1 << 24, 0 },
                                    { 0, (size_t)1 << 24 } };
    double x = 0;
    for (size_t i = 0; i < sizeof over / sizeof *over; i++) {
        sherd_view v = { .data = &x, .dtype = SHERD_F64, .rows = over[i][0], .cols = over[i][1] };
        sherd_diag d = { 0 };
        assert_int_equal(sherd__view_check(v, "A", &d), SHERD_ESHAPE);
        assert_non_null(strstr(d.message, "at most 2^32 - 1"));
    }
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        sherd_view v = { .data = &x, .dtype = SHERD_F64, .rows = at[i][0], .cols = at[i][1] };
        assert_int_equal(sherd__view_check(v, "A", NULL), SHERD_OK);
    }
}

static void scans_count_what_a_loop_counts(void **s)
{
    (void)s;
    enum { N = 37, M = 1100 };
    double *x = malloc(N * M * sizeof *x);
    for (int round = 0; round < 12; round++) {
        double min = HUGE_VAL, max = 0;
        uint64_t nonzeros = 0;
        bool whole = true;
        for (size_t i = 0; i < N * M; i++) {
            uint32_t kind = draw(4);
            double v = kind == 0 ? 0.0 : kind == 1 ? -0.0 : (double)draw(1000) - 500;
            if (round == 3 && i == 7777) v = 0.5;
            if (round == 4 && i == 17) v = -0x1.8p52;
            if (round == 5) v = 0x1p-1060 * draw(3);
            if (round == 6 && i == N * M - 1) v = 0x1p53 - 1;
            if (round == 7 && i == 1) v = 0x1p51 + 0.5;
            if (round == 8 && i == 5) v = 1e300;
            x[i] = v;
            whole = whole && v == rint(v);
            nonzeros += v != 0;
            min = fmin(min, fabs(v));
            max = fmax(max, fabs(v));
        }
        sherd_view v = sherd_view_c(x, SHERD_F64, N, M);
        for (int t = 0; t < 2; t++, v = sherd_view_t(v)) {
            sherd__scan scan;
            double peak;
            assert_true(sherd__view_peak(v, &peak) && peak == max);
            sherd__view_scan(v, &scan);
            assert_true(scan.min_abs == min && scan.max_abs == max);
            assert_int_equal(scan.nonzeros, nonzeros);
            assert_int_equal(sherd__view_nonzeros(v), nonzeros);
            assert_int_equal(scan.nonfinite, 0);
            assert_int_equal(scan.integers, whole);
        }
    }
    free(x);
}

/* Every integer type, the least and the largest values included, in all strides. */
static void a_scan_of_integers_equals_that_of_their_doubles(void **s)
{
    (void)s;
    enum { N = 13, M = 70 };
    static const sherd_dtype types[] = { SHERD_U8,  SHERD_U16, SHERD_U32, SHERD_I8,
                                         SHERD_I16, SHERD_I32, SHERD_I64 };
    static uint64_t memory[N * M];
    static double doubles[N * M];
    for (int round = 0; round < 40; round++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            uint8_t *bytes = (uint8_t *)memory;
            uint32_t kind = draw(4);
            for (size_t i = 0; i < sizeof memory; i++)
                bytes[i] = (uint8_t)(kind == 0 ? 0 : kind == 1 ? draw(256) : draw(8) ? 0 : 128);
            sherd_view v = sherd_view_c(memory, types[t], N, M);
            if (round % 2) v = sherd_view_sub(v, 2, 9, 3, 1 + draw(60));
            if (round % 3 == 0) v = sherd_view_t(v);
            if (round % 5 == 0) {
                v.data = (const uint8_t *)v.data + (ptrdiff_t)sherd_dtype_size(types[t]) *
                                                       (ptrdiff_t)(v.rows - 1) * v.row_stride;
                v.row_stride = -v.row_stride;
            }
            sherd__scan scan, wanted;
            sherd__view_dense_f64(v, doubles, v.cols);
            sherd__view_scan(sherd_view_c(doubles, SHERD_F64, v.rows, v.cols), &wanted);
            sherd__view_scan(v, &scan);
            assert_true(scan.min_abs == wanted.min_abs && scan.max_abs == wanted.max_abs);
            assert_int_equal(scan.nonzeros, wanted.nonzeros);
            assert_int_equal(scan.nonfinite, 0);
            assert_true(scan.integers);
        }
}

static void the_peak_equals_that_of_a_scan(void **s)
{
    (void)s;
    for (int round = 0; round < 400; round++) {
        sherd_dtype dtype = dtypes[draw(DTYPES)];
        size_t n = draw(40), m = draw(40), gap = draw(3), len = n * (m + gap);
        char *data = malloc(8 * len + 8);
        for (size_t i = 0; i < len; i++) store(data, dtype, i, (int32_t)draw(200) - 100);
        bool bad = dtype == SHERD_F64 && len > 0 && draw(2);
        if (bad) ((double *)(void *)data)[draw((uint32_t)len)] = draw(2) ? -HUGE_VAL : (double)NAN;
        sherd_view v = sherd_view_sub(sherd_view_c(data, dtype, n, m + gap), 0, n, 0, m);
        if (draw(2)) v = sherd_view_t(v);
        sherd__scan scan;
        double peak;
        sherd__view_scan(v, &scan);
        assert_int_equal(sherd__view_peak(v, &peak), scan.nonfinite == 0);
        if (scan.nonfinite == 0) assert_true(peak == scan.max_abs);
        free(data);
    }
}

static void the_first_bad_value_is_named_in_row_order(void **s)
{
    (void)s;
    double x[6 * 700];
    for (size_t i = 0; i < 6 * 700; i++) x[i] = -3.0;
    x[2 * 700 + 650] = HUGE_VAL;
    x[4 * 700 + 1] = NAN;
    sherd__scan scan;
    sherd__view_scan(sherd_view_c(x, SHERD_F64, 6, 700), &scan);
    assert_int_equal(scan.nonfinite, 2);
    assert_int_equal(scan.bad_row, 2);
    assert_int_equal(scan.bad_col, 650);
    assert_true(scan.bad_value == HUGE_VAL && scan.max_abs == 3.0 && !scan.integers);
    sherd__view_scan(sherd_view_t(sherd_view_c(x, SHERD_F64, 6, 700)), &scan);
    assert_int_equal(scan.bad_row, 1);
    assert_int_equal(scan.bad_col, 4);
    for (size_t i = 0; i < 6 * 700; i++) x[i] = NAN;
    sherd__view_scan(sherd_view_c(x, SHERD_F64, 6, 700), &scan);
    assert_int_equal(scan.nonfinite, 4200);
    assert_true(scan.max_abs == 0.0 && scan.min_abs == 0.0);
    sherd__view_scan(sherd_view_c(x, SHERD_F64, 0, 700), &scan);
    assert_true(scan.integers && scan.nonzeros == 0);
}

static void integers_that_no_double_represents_are_reported(void **s)
{
    (void)s;
    int64_t x[4] = { 1, INT64_C(1) << 53, -3, 0 };
    sherd__scan scan;
    sherd__view_scan(sherd_view_c(x, SHERD_I64, 2, 2), &scan);
    assert_false(scan.inexact);
    assert_int_equal(sherd__view_nonzeros(sherd_view_c(x, SHERD_I64, 2, 2)), 3);
    x[3] = (INT64_C(1) << 53) + 1;
    sherd__view_scan(sherd_view_c(x, SHERD_I64, 2, 2), &scan);
    assert_true(scan.max_abs == 0x1p53 && scan.inexact); /* rounded to even */
    x[3] = (INT64_C(1) << 54) + 1;
    sherd__view_scan(sherd_view_c(x, SHERD_I64, 2, 2), &scan);
    assert_true(scan.inexact);
    x[3] = INT64_MAX;
    sherd__view_scan(sherd_view_t(sherd_view_c(x, SHERD_I64, 2, 2)), &scan);
    assert_true(scan.inexact);
    uint8_t small[600];
    memset(small, 0, sizeof small);
    small[599] = small[3] = 9;
    assert_int_equal(sherd__view_nonzeros(sherd_view_c(small, SHERD_U8, 2, 300)), 2);
    assert_int_equal(sherd__view_nonzeros(
                         sherd_view_sub(sherd_view_c(small, SHERD_U8, 2, 300), 0, 2, 3, 2)),
                     1);
}

static unsigned asked, ends_at;

static bool ends(void *ctx)
{
    (void)ctx;
    return ++asked == ends_at;
}

/* Large enough for several questions: rows that are shorter and longer than what is read between
 * two of them. */
static void a_scan_can_be_interrupted_at_each_question(void **s)
{
    (void)s;
    enum { LONG = 3000000 };
    static const size_t rows[] = { 1, 3, 1000 };
    const sherd_hooks hooks = { .interrupted = ends };
    uint8_t *bytes = calloc(LONG, 1);
    double *x = calloc(LONG, sizeof *x);
    assert_true(bytes && x);
    bytes[0] = 7;
    bytes[LONG - 1] = 9;
    x[LONG / 2] = -0.25;
    x[LONG - 1] = HUGE_VAL;
    for (unsigned i = 0; i < 6; i++) {
        const size_t n = rows[i / 2], m = LONG / n;
        const sherd_view v = i % 2 ? sherd_view_c(x, SHERD_F64, n, m)
                                   : sherd_view_c(bytes, SHERD_U8, n, m);
        sherd__scan scan;
        int err = SHERD_EINTERRUPTED;
        for (ends_at = 1; err && ends_at < 20; ends_at++) {
            asked = 0;
            err = sherd__view_scan_asking(v, &scan, &hooks);
            assert_int_equal(err, asked < ends_at ? SHERD_OK : SHERD_EINTERRUPTED);
        }
        assert_true(!err && asked >= 3);
        assert_true(scan.nonzeros == 2 && scan.min_abs == 0 && scan.max_abs == (i % 2 ? 0.25 : 9));
        assert_int_equal(scan.integers, i % 2 == 0);
        if (i % 2) assert_true(scan.bad_row == n - 1 && scan.bad_col == m - 1);
    }
    free(bytes);
    free(x);
}

/* Draws a view of n x m elements of `size` bytes within buf, in any order of strides. */
static sherd_view draw_view(double *buf, size_t bytes, size_t pitch, sherd_dtype t)
{
    size_t size = sherd_dtype_size(t), n = 1 + draw(4), m = 1 + draw(4);
    ptrdiff_t rs = (ptrdiff_t)(draw(2) ? pitch / size : draw(9)), cs = (ptrdiff_t)draw(4);
    if (draw(2)) rs = -rs;
    if (draw(2)) cs = -cs;
    sherd_view v = { buf, t, n, m, rs, cs };
    if (draw(2)) v = sherd_view_t(v);
    v.data = (const uint8_t *)buf + bytes / 2 + size * draw((uint32_t)(bytes / size / 8));
    return v;
}

static void a_result_that_shares_elements_with_an_operand_is_refused(void **s)
{
    (void)s;
    enum { LEN = 512 };
    static double buf[LEN];
    static uint8_t taken[sizeof buf];
    unsigned refused = 0, between = 0;
    for (int round = 0; round < 200000; round++) {
        sherd_dtype t = dtypes[draw(DTYPES)];
        size_t cols = 1 + draw(4), ldc = cols + draw(6), rows = 1 + draw(4);
        sherd_view v = draw_view(buf, sizeof buf, ldc * sizeof *buf, t);
        const sherd__result c = { buf + LEN / 2 - 8 + draw(60), rows, cols, ldc };
        size_t size = sherd_dtype_size(t), first = sizeof buf, last = 0;
        memset(taken, 0, sizeof taken);
        for (size_t i = 0; i < v.rows; i++)
            for (size_t j = 0; j < v.cols; j++) {
                ptrdiff_t at = (const uint8_t *)v.data - (const uint8_t *)buf +
                               (ptrdiff_t)size *
                                   ((ptrdiff_t)i * v.row_stride + (ptrdiff_t)j * v.col_stride);
                assert_true(at >= 0 && (size_t)at + size <= sizeof buf);
                for (size_t k = 0; k < size; k++) taken[(size_t)at + k] = 1;
                if ((size_t)at < first) first = (size_t)at;
                if ((size_t)at + size > last) last = (size_t)at + size;
            }
        bool shares = false;
        for (size_t i = 0; i < rows; i++)
            for (size_t k = 0; k < cols * sizeof *buf; k++)
                shares |= taken[(size_t)(c.at - buf + (ptrdiff_t)(i * ldc)) * sizeof *buf + k];
        size_t from = (size_t)(c.at - buf) * sizeof *buf;
        bool apart = last <= from || from + ((rows - 1) * ldc + cols) * sizeof *buf <= first;
        sherd_diag d = { 0 };
        int err = sherd__view_apart(v, "A", &c, &d);
        if (shares && !err) fail_msg("round %d: an overlap was not found", round);
        if (apart && err) fail_msg("round %d: %s", round, d.message);
        refused += err != 0;
        between += !apart && !err;
    }
    assert_true(refused > 1000 && between > 1000);
    const sherd_view repeated = { buf, SHERD_F64, 3, 2, 0, 1 };
    const sherd__result none = { buf, 3, 2,
                                 0 }; /* rows of no length: refused where ldc is checked */
    assert_int_equal(sherd__view_apart(repeated, "A", &none, NULL), SHERD_OK);
    static double wide[6 * 10]; /* the columns of one array: A, C and B side by side */
    sherd_view a = { wide, SHERD_F64, 6, 3, 10, 1 }, b = { wide + 7, SHERD_F64, 3, 6, 1, 10 };
    const sherd__result c = { wide + 3, 6, 4, 10 };
    assert_int_equal(sherd__view_apart(a, "A", &c, NULL), SHERD_OK);
    assert_int_equal(sherd__view_apart(b, "B", &c, NULL), SHERD_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_and_order_reads_like_plain_indexing),
        cmocka_unit_test(data_at_odd_addresses_can_be_read),
        cmocka_unit_test(only_row_major_doubles_are_borrowed),
        cmocka_unit_test(an_inconsistent_view_is_refused),
        cmocka_unit_test(a_dimension_that_no_matrix_can_have_is_refused),
        cmocka_unit_test(scans_count_what_a_loop_counts),
        cmocka_unit_test(a_scan_of_integers_equals_that_of_their_doubles),
        cmocka_unit_test(the_peak_equals_that_of_a_scan),
        cmocka_unit_test(the_first_bad_value_is_named_in_row_order),
        cmocka_unit_test(integers_that_no_double_represents_are_reported),
        cmocka_unit_test(a_scan_can_be_interrupted_at_each_question),
        cmocka_unit_test(a_result_that_shares_elements_with_an_operand_is_refused),
    };
    return cmocka_run_group_tests_name("matrix/view", tests, NULL, NULL);
}
