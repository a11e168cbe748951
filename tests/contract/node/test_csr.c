/*
 * Products of left blocks in CSR, on every backend, compared with a triple loop over the same
 * numbers in dense form: from no entry to all of them, across panels, for every type of element and
 * modulo primes. Values are small integers, so that any order of summation gives the same bits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/rand.h"
#include "crypto/fragment_make.h"
#include "matrix/sparse.h"
#include "node/check.h"
#include "node/csr.h"
#include "sherd/mat.h"
#include "tests/contract/node/backend_world.h"

static sherd__seeded seed_state;
static sherd__entropy rnd;

enum { GROUPS_MAX = 12 };

static uint64_t below(uint64_t n)
{
    return sherd__entropy_below(&rnd, n);
}

/* A much faster generator, for millions of numbers. */
static uint32_t quick_below(uint32_t n)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (uint32_t)((x >> 32) * n >> 32);
}

/* Groups of one operand in dense form as doubles, one after the other. */
typedef struct operand {
    uint32_t groups, rows[GROUPS_MAX], cols[GROUPS_MAX];
    uint8_t dtype;
    double *v;
    sherd__fragment *f;
} operand;

static size_t values(const operand *o)
{
    size_t n = 0;
    for (uint32_t q = 0; q < o->groups; q++) n += (size_t)o->rows[q] * o->cols[q];
    return n;
}

static void put_value(uint8_t **at, uint8_t dtype, double v)
{
    uint8_t b[8];
    float f = (float)v;
    size_t n = sherd_dtype_size((sherd_dtype)dtype);
    if (dtype == SHERD_F64) memcpy(b, &v, 8);
    else if (dtype == SHERD_F32) memcpy(b, &f, 4);
    else sherd__put_u64(b, (uint64_t)(int64_t)v);
    memcpy(*at, b, n);
    *at += n;
}

static void put_number(uint8_t **at, unsigned width, uint64_t v)
{
    for (unsigned k = 0; k < width; k++) *(*at)++ = (uint8_t)(v >> 8 * k);
}

static void shapes(operand *o, sherd__fragment_info *i)
{
    *i = (sherd__fragment_info){ .origin = SHERD__HIDDEN, .dtype = o->dtype, .groups = o->groups };
    for (uint32_t q = 0; q < o->groups; q++) {
        i->rows += o->rows[q];
        if (o->cols[q] > i->cols) i->cols = o->cols[q];
    }
}

static void finish(operand *o, const sherd__fragment_info *i, uint8_t *body)
{
    sherd_diag d = { .code = 0 };
    if (sherd__fragment_table_check(i, body, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd__fragment_take(&o->f, i, body, NULL, NULL), SHERD_OK);
}

static void make_dense(operand *o)
{
    sherd__fragment_info i;
    size_t n = values(o);
    shapes(o, &i);
    i.len = 8 * o->groups + n * sherd_dtype_size((sherd_dtype)o->dtype);
    uint8_t *body = malloc(i.len + 8), *at = body;
    for (uint32_t q = 0; q < o->groups; q++)
        put_number(&at, 4, o->rows[q]), put_number(&at, 4, o->cols[q]);
    for (size_t k = 0; k < n; k++) put_value(&at, o->dtype, o->v[k]);
    finish(o, &i, body);
}

/* Zeros are left out, except for one in `keep` of them (0: all are left out). */
static void make_csr(operand *o, uint32_t keep)
{
    sherd__fragment_info i;
    size_t n = values(o), entries = 0, k = 0;
    bool *here = calloc(n + 1, 1);
    shapes(o, &i);
    for (size_t e = 0; e < n; e++)
        entries += here[e] = o->v[e] != 0 || (keep && quick_below(keep) == 0);
    i.encoding = SHERD__CSR;
    i.len = sherd__csr_len(o->groups, i.rows, i.cols, entries,
                           sherd_dtype_size((sherd_dtype)o->dtype));
    unsigned width = sherd__csr_width(i.cols);
    uint8_t *body = malloc(i.len + 8), *at = body;
    for (uint32_t q = 0; q < o->groups; q++)
        put_number(&at, 4, o->rows[q]), put_number(&at, 4, o->cols[q]);
    uint8_t *count = at, *column = count + width * i.rows, *value = column + width * entries;
    for (uint32_t q = 0; q < o->groups; q++) {
        for (uint32_t r = 0; r < o->rows[q]; r++) {
            uint64_t m = 0;
            for (uint32_t c = 0; c < o->cols[q]; c++, k++) {
                if (!here[k]) continue;
                put_number(&column, width, c);
                put_value(&value, o->dtype, o->v[k]);
                m++;
            }
            put_number(&count, width, m);
        }
    }
    free(here);
    finish(o, &i, body);
}

static double small_value(uint8_t dtype)
{
    double v = 1 + (double)quick_below(90);
    bool has_sign = dtype != SHERD_U8 && dtype != SHERD_U16 && dtype != SHERD_U32;
    return has_sign && quick_below(2) ? -v : v;
}

/* Draws entries of which `per_mille` in a thousand are nonzero; some rows are always empty. */
static void draw(operand *o, unsigned per_mille)
{
    size_t k = 0;
    o->v = calloc(values(o) + 1, sizeof *o->v);
    for (uint32_t q = 0; q < o->groups; q++) {
        for (uint32_t r = 0; r < o->rows[q]; r++) {
            bool empty = per_mille < 1000 && below(8) == 0;
            for (uint32_t c = 0; c < o->cols[q]; c++, k++)
                if (!empty && quick_below(1000) < per_mille) o->v[k] = small_value(o->dtype);
        }
    }
}

static void free_operand(operand *o)
{
    sherd__fragment_free(o->f);
    free(o->v);
}

static double *reference(const operand *a, const operand *b, size_t n, size_t m)
{
    double *c = calloc(n * m + 1, sizeof *c), *row = c;
    const double *u = a->v, *v = b->v;
    for (uint32_t q = 0; q < a->groups; q++) {
        for (uint32_t i = 0; i < a->rows[q]; i++, row += m)
            for (uint32_t k = 0; k < a->cols[q]; k++)
                for (size_t j = 0; j < m; j++)
                    row[j] += u[(size_t)i * a->cols[q] + k] * v[k * m + j];
        u += (size_t)a->rows[q] * a->cols[q];
        v += a->cols[q] * m;
    }
    return c;
}

static uint32_t get24(const uint8_t *p)
{
    return sherd__get_u16(p) | (uint32_t)p[2] << 16;
}

static const uint32_t primes[2] = { 5931641, 8388593 };

/* Computes a*b into noise, and compares the result with the loop, bit for bit. */
static void compare(const operand *a, const operand *b, uint8_t dtype)
{
    const sherd__fragment_info *ai = sherd__fragment_info_of(a->f);
    size_t n = ai->rows, m = sherd__fragment_info_of(b->f)->cols;
    unsigned r = dtype == SHERD__RESIDUES ? 2 : 0;
    sherd__task t = { .job = 1,
                      .task = 1,
                      .attempt = 1,
                      .op = SHERD__OP_MULTIPLY,
                      .left = 1,
                      .right = 2,
                      .primes_len = r,
                      .primes = { primes[0], primes[1] } };
    t.result = (sherd__fragment_info){ .origin = SHERD__RESULT,
                                       .dtype = dtype,
                                       .rows = n,
                                       .cols = m,
                                       .primes = (uint8_t)r,
                                       .len = n * m * sherd__wire_size(dtype) * (r ? r : 1) };
    uint8_t *out = aligned_alloc(64, (t.result.len + GUARD + 63) / 64 * 64);
    double *want = reference(a, b, n, m);
    memset(out, 0xff, t.result.len + GUARD);
    if (backend_run(&t, a->f, b->f, out)) fail_msg("%s", backend_why);
    for (size_t i = 0; i < n * m; i++) {
        float narrow;
        double got;
        for (unsigned q = 0; q < r; q++) {
            int64_t w = (int64_t)want[i] % primes[q];
            assert_int_equal(get24(out + 3 * (q * n * m + i)), w < 0 ? w + primes[q] : w);
        }
        if (r) continue;
        if (dtype == SHERD_F64) memcpy(&got, out + 8 * i, 8);
        else memcpy(&narrow, out + 4 * i, 4), got = (double)narrow;
        if (got != want[i]) fail_msg("element %zu is %g, expected %g", i, got, want[i]);
    }
    for (size_t i = 0; i < GUARD; i++) assert_int_equal(out[t.result.len + i], 0xff);
    free(want);
    free(out);
}

static const uint8_t kinds[] = { SHERD_F64, SHERD_U8, SHERD_I16, SHERD_F32, SHERD_I32,
                                 SHERD_U16, SHERD_I8, SHERD_U32, SHERD_I64 };

static void one_group(uint32_t n, uint32_t k, uint32_t m, unsigned per_mille, unsigned kind,
                      uint8_t dtype)
{
    operand a = { .groups = 1, .rows = { n }, .cols = { k }, .dtype = kinds[kind % 9] };
    operand b = { .groups = 1, .rows = { k }, .cols = { m }, .dtype = kinds[kind / 9 % 9] };
    bool floats = a.dtype == SHERD_F64 || a.dtype == SHERD_F32 || b.dtype == SHERD_F64 ||
                  b.dtype == SHERD_F32;
    draw(&a, per_mille);
    draw(&b, 1000);
    make_csr(&a, per_mille % 2 ? 20 : 0);
    make_dense(&b);
    compare(&a, &b, floats && dtype == SHERD__RESIDUES ? SHERD_F64 : dtype);
    free_operand(&a);
    free_operand(&b);
}

static void products_at_every_density_equal_the_loop(void **s)
{
    (void)s;
    static const unsigned densities[] = { 0, 1, 10, 50, 100, 200, 299, 301, 500, 900, 1000 };
    static const uint32_t sizes[][3] = { { 1, 1, 1 },     { 0, 3, 2 },     { 3, 0, 2 },
                                         { 3, 2, 0 },     { 9, 40, 7 },    { 33, 17, 41 },
                                         { 50, 300, 35 }, { 20, 256, 72 }, { 64, 112, 128 } };
    for (unsigned i = 0; i < sizeof densities / sizeof *densities; i++)
        for (unsigned j = 0; j < sizeof sizes / sizeof *sizes; j++)
            for (unsigned k = 0; k < 9; k++)
                one_group(sizes[j][0], sizes[j][1], sizes[j][2], densities[i], 10 * k + i + j,
                          k % 3 == 0   ? SHERD_F32
                          : k % 3 == 1 ? SHERD_F64
                                       : SHERD__RESIDUES);
}

static void products_beyond_one_panel_equal_the_loop(void **s)
{
    (void)s;
    static const uint32_t sizes[][3] = { { 1030, 9, 5 },    { 5, 2055, 9 },  { 3, 7, 1030 },
                                         { 1025, 3, 1025 }, { 2, 70000, 3 }, { 4, 3100, 1060 },
                                         { 40, 1500, 20 } };
    static const unsigned densities[] = { 0, 1, 30, 250, 600 };
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned j = 0; j < sizeof densities / sizeof *densities; j++)
            for (unsigned k = 0; k < 2; k++)
                one_group(sizes[i][0], sizes[i][1], sizes[i][2], densities[j], 7 * i + j + 31 * k,
                          k ? SHERD__RESIDUES : SHERD_F64);
}

static void groups_of_any_shape_equal_the_loop(void **s)
{
    (void)s;
    for (unsigned round = 0; round < 200; round++) {
        operand a = { .groups = 1 + (uint32_t)below(GROUPS_MAX), .dtype = kinds[below(9)] };
        operand b = { .groups = a.groups, .dtype = kinds[round % 9] };
        uint32_t m = (uint32_t)below(40);
        bool floats = a.dtype == SHERD_F64 || a.dtype == SHERD_F32 || b.dtype == SHERD_F64 ||
                      b.dtype == SHERD_F32;
        for (uint32_t q = 0; q < a.groups; q++) {
            a.rows[q] = below(4) ? (uint32_t)below(9) : 0;
            a.cols[q] = b.rows[q] = (uint32_t)below(round % 3 == 0 ? 2 : round % 3 == 1 ? 9 : 270);
            b.cols[q] = m;
        }
        draw(&a, (unsigned)below(1001));
        draw(&b, 1000);
        make_csr(&a, 10 * (uint32_t)below(3));
        make_dense(&b);
        compare(&a, &b, floats || below(2) ? SHERD_F64 : SHERD__RESIDUES);
        free_operand(&a);
        free_operand(&b);
    }
}

static void integers_beyond_2_to_53_are_rejected_modulo_primes(void **s)
{
    (void)s;
    static const int64_t beyond[] = { (INT64_C(1) << 53) + 1, -(INT64_C(1) << 53) - 1, INT64_MIN };
    double big[] = { 0, 0x1p53 }, ones[] = { 1, 1 };
    operand a = { .groups = 1, .rows = { 1 }, .cols = { 2 }, .dtype = SHERD_I64, .v = big };
    operand b = { .groups = 1, .rows = { 2 }, .cols = { 1 }, .dtype = SHERD_I8, .v = ones };
    make_csr(&a, 0);
    make_dense(&b);
    sherd__task t = { .op = SHERD__OP_MULTIPLY, .primes_len = 1, .primes = { primes[0] } };
    t.result = (sherd__fragment_info){ .origin = SHERD__RESULT,
                                       .dtype = SHERD__RESIDUES,
                                       .rows = 1,
                                       .cols = 1,
                                       .primes = 1,
                                       .len = 3 };
    uint8_t out[64];
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_OK);
    for (unsigned i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        const sherd__fragment_info *info = sherd__fragment_info_of(a.f);
        memcpy((uint8_t *)(uintptr_t)sherd__fragment_bytes(a.f) + info->len - 8, &beyond[i], 8);
        assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_ERANGE);
    }
    sherd__fragment_free(a.f);
    sherd__fragment_free(b.f);
}

static void csr_is_accepted_only_on_the_left_of_a_product(void **s)
{
    (void)s;
    operand a = { .groups = 1, .rows = { 3 }, .cols = { 3 }, .dtype = SHERD_F64 }, b = a;
    uint8_t out[9 * 8];
    draw(&a, 300);
    draw(&b, 1000);
    make_csr(&a, 0);
    make_dense(&b);
    sherd__task t = { .op = SHERD__OP_MULTIPLY };
    t.result = (sherd__fragment_info){
        .origin = SHERD__RESULT, .dtype = SHERD_F64, .rows = 3, .cols = 3, .len = sizeof out
    };
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_OK);
    assert_int_equal(backend_run(&t, b.f, a.f, out), SHERD_EUNSUPPORTED);
    assert_string_equal(backend_why, "operation 1 with right in CSR");
    t.op = SHERD__OP_MULTIPLY_T;
    assert_int_equal(backend_run(&t, b.f, b.f, out), SHERD_OK);
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    t.op = SHERD__OP_MINUS;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    assert_int_equal(backend_run(&t, b.f, a.f, out), SHERD_EUNSUPPORTED);
    t.op = SHERD__OP_EXP;
    assert_int_equal(backend_run(&t, a.f, NULL, out), SHERD_EUNSUPPORTED);
    free_operand(&a);
    free_operand(&b);
}

/* 4 bytes of a row would represent 2^32 zeros: memory of that size must not be read or written. */
static void a_small_block_with_a_huge_shape_takes_little_time(void **s)
{
    (void)s;
    enum { ROWS = 2000, COLS = 20000000 };
    uint8_t *wide = calloc(1, 8 + COLS), *narrow = calloc(1, 8 + 4 * ROWS + 5);
    sherd__fragment_info bi = { .origin = SHERD__HIDDEN,
                                .dtype = SHERD_U8,
                                .groups = 1,
                                .rows = COLS,
                                .cols = 1,
                                .len = 8 + COLS };
    sherd__fragment_info ai = { .origin = SHERD__HIDDEN,
                                .dtype = SHERD_U8,
                                .groups = 1,
                                .encoding = SHERD__CSR,
                                .rows = ROWS,
                                .cols = COLS,
                                .len = 8 + 4 * ROWS + 5 };
    sherd__put_u32(wide, COLS);
    sherd__put_u32(wide + 4, 1);
    wide[8 + COLS - 1] = 7;
    sherd__put_u32(narrow, ROWS);
    sherd__put_u32(narrow + 4, COLS);
    sherd__put_u32(narrow + 8 + 4 * 1500, 1); /* one entry: row 1500, last column, value 3 */
    sherd__put_u32(narrow + 8 + 4 * ROWS, COLS - 1);
    narrow[8 + 4 * ROWS + 4] = 3;
    operand a = { 0 }, b = { 0 };
    finish(&a, &ai, narrow);
    finish(&b, &bi, wide);
    sherd__task t = { .op = SHERD__OP_MULTIPLY };
    t.result = (sherd__fragment_info){
        .origin = SHERD__RESULT, .dtype = SHERD_F64, .rows = ROWS, .cols = 1, .len = 8 * ROWS
    };
    double *out = malloc(8 * ROWS);
    assert_int_equal(backend_run(&t, a.f, b.f, (uint8_t *)out), SHERD_OK);
    for (size_t i = 0; i < ROWS; i++) assert_true(out[i] == (i == 1500 ? 21 : 0));
    free(out);
    sherd__fragment_free(a.f);
    sherd__fragment_free(b.f);
}

static void the_work_of_a_task_is_counted_by_its_entries(void **s)
{
    (void)s;
    operand a = { .groups = 1, .rows = { 100 }, .cols = { 200 }, .dtype = SHERD_U8 };
    sherd__task t = { .op = SHERD__OP_MULTIPLY, .result = { .cols = 10 } };
    a.v = calloc(values(&a), sizeof *a.v);
    for (unsigned i = 0; i < 600; i++) a.v[33 * i] = 1;
    make_csr(&a, 0);
    double flops = sherd__task_flops(&t, a.f);
    assert_true(flops > 2 * 600 * 10 && flops < 2 * 20000 * 10 / 4);
    free_operand(&a);
    a.v = calloc(values(&a), sizeof *a.v);
    for (size_t i = 0; i < 20000; i++) a.v[i] = 1;
    make_csr(&a, 0);
    assert_true(sherd__task_flops(&t, a.f) == 2.0 * 20000 * 10);
    free_operand(&a);
}

static int open_all(void **s)
{
    rnd = sherd__entropy_seeded(&seed_state, 20261122);
    return backend_open_all(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTED(products_at_every_density_equal_the_loop),
        HOSTED(products_beyond_one_panel_equal_the_loop),
        HOSTED(groups_of_any_shape_equal_the_loop),
        HOSTED(integers_beyond_2_to_53_are_rejected_modulo_primes),
        HOSTED(csr_is_accepted_only_on_the_left_of_a_product),
        HOSTED(a_small_block_with_a_huge_shape_takes_little_time),
        cmocka_unit_test(the_work_of_a_task_is_counted_by_its_entries),
    };
    return cmocka_run_group_tests_name("node/csr", tests, open_all, backend_close_all);
}
