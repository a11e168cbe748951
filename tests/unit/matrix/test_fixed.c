/* Fixed point compared with its definition, computed in long double, value by value. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrix/fixed.h"
#include "matrix/view.h"

static uint64_t state = 9;

static uint64_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 11;
}

static double real(void)
{
    return ldexp((double)draw(), -53) * (draw() & 1 ? 1 : -1);
}

/* The specification, implemented literally, by search. */
static int slow_scale(double max, unsigned b)
{
    long double limit = ldexpl(1.0L, (int)b - 1) - 1;
    if (max == 0.0) return 0;
    for (int s = (int)b - 1;; s--)
        if (rintl(ldexpl(max, s)) <= limit) return s;
}

static void the_exponent_is_the_largest_that_fits(void **s)
{
    (void)s;
    static const double edges[] = { 0.0,
                                    1.0,
                                    0.5,
                                    65535.0,
                                    65535.4999,
                                    65535.5,
                                    65536.0,
                                    32767.75,
                                    0x1p-1074,
                                    0x1p-1022,
                                    0x1.fffffffffffffp1023,
                                    0x1p1023,
                                    3.0,
                                    0x1.fffep0,
                                    0x1.ffffp0,
                                    0x1.fffffp-20,
                                    1e-5 };
    for (unsigned b = 2; b <= 53; b++)
        for (size_t i = 0; i < 60; i++) {
            double x[3] = { 0.0, 0.0, 0.0 };
            x[i % 3] = i < 17 ? edges[i] : ldexp(real(), (int)(draw() % 80) - 40);
            sherd__fixed f;
            assert_int_equal(sherd__fixed_choose(sherd_view_c(x, SHERD_F64, 1, 3), b, "A", &f,
                                                 NULL),
                             SHERD_OK);
            assert_int_equal(f.scale, slow_scale(fabs(x[i % 3]), b));
            assert_int_equal(f.bits, b);
            assert_int_equal(f.bound, (UINT64_C(1) << (b - 1)) - 1);
            assert_true(f.largest <= f.bound && !f.integers);
            double q[3];
            sherd__fixed_row(&f, sherd_view_c(x, SHERD_F64, 1, 3), 0, 0, 3, q);
            assert_true(fabs(q[i % 3]) == (double)f.largest);
            assert_true((long double)q[i % 3] == rintl(ldexpl(x[i % 3], f.scale)));
        }
}

static void values_are_rounded_to_nearest_ties_to_even(void **s)
{
    (void)s;
    double x[6] = { 1.5, 2.5, -0.5, -3.5, 100.0, -0.25 }, q[6];
    sherd__fixed f;
    assert_int_equal(sherd__fixed_choose(sherd_view_c(x, SHERD_F64, 2, 3), 8, "A", &f, NULL), 0);
    assert_int_equal(f.scale, 0);
    sherd__fixed_dense(&f, sherd_view_c(x, SHERD_F64, 2, 3), q, 3);
    static const double want[] = { 2, 2, 0, -4, 100, 0 };
    assert_memory_equal(q, want, sizeof want); /* no negative zero */
}

static void all_readers_quantise_equally(void **s)
{
    (void)s;
    enum { N = 21, M = 33 };
    double x[N * M], dense[N * M], row[M], one[M];
    uint32_t cols[M];
    for (size_t i = 0; i < N * M; i++) x[i] = real() * 3;
    sherd_view v = sherd_view_t(sherd_view_c(x, SHERD_F64, M, N));
    sherd__fixed f;
    assert_int_equal(sherd__fixed_choose(v, 17, "A", &f, NULL), 0);
    sherd__fixed_dense(&f, v, dense, M);
    for (size_t j = 0; j < M; j++) cols[j] = (uint32_t)(M - 1 - j);
    for (size_t i = 0; i < N; i++) {
        sherd__fixed_row(&f, v, i, 0, M, row);
        sherd__fixed_gather(&f, v, i, cols, M, one);
        assert_memory_equal(row, dense + i * M, sizeof row);
        for (size_t j = 0; j < M; j++) {
            assert_true(one[j] == row[M - 1 - j]);
            assert_true((long double)row[j] == rintl(ldexpl(x[j * N + i], f.scale)));
        }
    }
}

/* Values that rounding to `bits` with scale 1 has to handle: halves, values that vanish, both
 * zeros, and the largest. */
static double odd_value(size_t i, unsigned bits)
{
    static const double odd[] = { 0.5, -0.5, -0.0, 0.0, 0x1p-1060, -0x1p-600, 0.49999999999999994 };
    double top = ldexp(1.0, (int)bits - 1) - 1;
    switch (i % 5) {
    case 0: return i % 2 ? -top : top;
    case 1: return odd[i / 5 % (sizeof odd / sizeof *odd)];
    case 2: return trunc(real() * (top - 1)) + (i % 2 ? 0.5 : -0.5);
    default: return real() * top;
    }
}

/* For rows in any order and of any length, values of any number of bits, and rows that are or are
 * not contiguous in memory. x ends where v ends. */
static void rows_read_in_any_order_are_the_rows(void **s)
{
    (void)s;
    enum { N = 5, M = 270 };
    static const size_t lengths[] = { 0, 1, 7, 8, 9, 127, 128, 129, 136, 256, 265, M };
    static const unsigned widths[] = { 2, 17, 26, 50, 51, 52, 53 };
    double *x = malloc(N * M * sizeof *x), row[M], *out[N];
    for (int turned = 0; turned < 2; turned++)
        for (size_t b = 0; b < sizeof widths / sizeof *widths; b++)
            for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                sherd_view v = turned ? sherd_view_t(sherd_view_c(x, SHERD_F64, M, N))
                                      : sherd_view_c(x, SHERD_F64, N, M);
                size_t rows[N], count = (b + l) % (N + 1), n = lengths[l], c0 = (M - n) / 2;
                sherd__fixed f;
                for (size_t i = 0; i < N * M; i++) x[i] = odd_value(i, widths[b]);
                assert_int_equal(sherd__fixed_choose(v, widths[b], "A", &f, NULL), 0);
                assert_int_equal(f.scale, 0);
                for (size_t j = 0; j < count; j++) {
                    rows[j] = (3 * j + l) % N;
                    out[j] = malloc((n ? n : 1) * sizeof *row); /* exact, so that sanitizers see an
                                                                 * overrun */
                }
                sherd__fixed_turns(&f, v, rows, count, c0, n, out);
                for (size_t j = 0; j < count; j++) {
                    sherd__fixed_row(&f, v, rows[j], c0, n, row);
                    assert_memory_equal(out[j], row, n * sizeof *row);
                    free(out[j]);
                }
            }
    free(x);
}

static void integers_are_not_changed(void **s)
{
    (void)s;
    uint8_t u8[2] = { 0, 9 };
    int8_t i8[2] = { -128, 0 };
    int32_t i32[2] = { INT32_MIN, 5 };
    int64_t i64[2] = { -(INT64_C(1) << 53), 1 };
    double f64[2] = { -1000001.0, 3.0 }, q[2];
    sherd__fixed f;
    assert_int_equal(sherd__fixed_choose(sherd_view_c(u8, SHERD_U8, 1, 2), 17, "A", &f, NULL), 0);
    assert_true(f.scale == 0 && f.integers && f.bound == 15 && f.largest == 9 && f.bits == 5);
    assert_int_equal(sherd__fixed_choose(sherd_view_c(i8, SHERD_I8, 1, 2), 17, "A", &f, NULL), 0);
    assert_true(f.bound == 255 && f.largest == 128);
    assert_int_equal(sherd__fixed_choose(sherd_view_c(i32, SHERD_I32, 1, 2), 17, "A", &f, NULL), 0);
    assert_true(f.bound == (UINT64_C(1) << 32) - 1 && f.largest == UINT64_C(1) << 31);
    i32[0] = -9;
    assert_int_equal(sherd__fixed_choose(sherd_view_c(i32, SHERD_I32, 1, 2), 17, "A", &f, NULL), 0);
    assert_true(f.bound == 15 && f.bits == 5);
    i32[0] = i32[1] = 0;
    assert_int_equal(sherd__fixed_choose(sherd_view_c(i32, SHERD_I32, 1, 2), 17, "A", &f, NULL), 0);
    assert_true(f.bound == 0 && f.bits == 1);
    assert_int_equal(sherd__fixed_choose(sherd_view_c(i64, SHERD_I64, 1, 2), 17, "A", &f, NULL), 0);
    assert_true(f.bound == (UINT64_C(1) << 54) - 1 && f.largest == UINT64_C(1) << 53);
    assert_int_equal(sherd__fixed_choose(sherd_view_c(f64, SHERD_F64, 1, 2), 0, "A", &f, NULL), 0);
    assert_true(f.integers && f.largest == 1000001 && f.bound == (1 << 20) - 1);
    sherd__fixed_row(&f, sherd_view_c(f64, SHERD_F64, 1, 2), 0, 0, 2, q);
    assert_memory_equal(q, f64, sizeof q);
}

static void integers_that_exceed_the_requested_bits_are_named(void **s)
{
    (void)s;
    int16_t x[6] = { 0, -127, 127, 3, -128, 500 };
    double rounded[2] = { 1000.5, 3 };
    sherd_view v = sherd_view_c(x, SHERD_I16, 2, 3);
    sherd__fixed f;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__fixed_choose(v, 8, "A", &f, NULL), SHERD_OK);
    assert_int_equal(sherd__fixed_hold(&f, v, 10, "A", &d), SHERD_OK);
    assert_int_equal(sherd__fixed_hold(&f, v, 8, "A", &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "A: row 1, column 1: -128 is beyond 127"));
    v = sherd_view_sub(v, 0, 1, 0, 3);
    assert_int_equal(sherd__fixed_choose(v, 8, "A", &f, NULL), SHERD_OK);
    assert_int_equal(sherd__fixed_hold(&f, v, 8, "A", NULL), SHERD_OK);
    assert_int_equal(sherd__fixed_hold(&f, v, 7, "A", NULL), SHERD_ERANGE);
    v = sherd_view_c(rounded, SHERD_F64, 1, 2);
    assert_int_equal(sherd__fixed_choose(v, 8, "A", &f, NULL), SHERD_OK);
    assert_int_equal(sherd__fixed_hold(&f, v, 8, "A", NULL), SHERD_OK);
}

static void values_without_an_exact_value_are_named_and_refused(void **s)
{
    (void)s;
    double x[6] = { 1, 2, 3, 4, NAN, 6 };
    sherd_view v = sherd_view_c(x, SHERD_F64, 2, 3);
    sherd__fixed f = { .bits = 99 };
    sherd_diag d = { 0 };
    assert_int_equal(sherd__fixed_choose(v, 17, "B", &f, &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "B: row 1, column 1 is NaN"));
    x[4] = -HUGE_VAL;
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__fixed_choose(v, 17, "B", &f, &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "-infinity"));
    x[4] = 0.5;
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__fixed_choose(v, 0, "B", &f, &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "row 1, column 1: 0.5"));
    x[4] = 0x1p54;
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__fixed_choose(v, 0, "B", &f, &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "beyond 2^53"));
    int64_t i[2] = { 0, (INT64_C(1) << 53) + 1 };
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__fixed_choose(sherd_view_c(i, SHERD_I64, 1, 2), 17, "B", &f, &d),
                     SHERD_ERANGE);
    assert_non_null(strstr(d.message, "row 0, column 1: 9007199254740993 is beyond 2^53"));
    i[1] = INT64_MIN;
    assert_int_equal(sherd__fixed_choose(sherd_view_c(i, SHERD_I64, 1, 2), 17, "B", &f, NULL),
                     SHERD_ERANGE);
    assert_int_equal(sherd__fixed_choose(v, 1, "B", &f, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__fixed_choose(v, 54, "B", &f, NULL), SHERD_EINVAL);
    assert_int_equal(f.bits, 99);
    assert_int_equal(sherd__fixed_choose(sherd_view_c(NULL, SHERD_F32, 0, 3), 17, "B", &f, NULL),
                     SHERD_OK);
    assert_true(f.scale == 0 && f.largest == 0);
}

static void stochastic_rounding_is_unbiased_repeatable_and_bounded(void **s)
{
    (void)s;
    enum { N = 40000 };
    static double x[N], y[N];
    sherd__fixed f = { .scale = 2, .bits = 17, .bound = 65535 };
    for (size_t i = 0; i < N; i++)
        x[i] = y[i] = 0.0625 + (double)(i % 100); /* times 2^2: fraction .25 */
    sherd__fixed_apply_stochastic(&f, 42, 0, x, N);
    sherd__fixed_apply_stochastic(&f, 42, 1000, y + 1000, N - 1000);
    assert_memory_equal(x + 1000, y + 1000, (N - 1000) * sizeof *x);
    double up = 0;
    for (size_t i = 0; i < N; i++) {
        double low = 4.0 * (double)(i % 100);
        assert_true(x[i] == low || x[i] == low + 1);
        up += x[i] - low;
    }
    assert_true(fabs(up / N - 0.25) < 0.012); /* 5.5 sigma */
    double edge[3] = { 16383.9, -16383.9, 2.0 };
    sherd__fixed_apply_stochastic(&f, 1, 0, edge, 3);
    assert_true(edge[0] == 65535 && edge[1] == -65535 && edge[2] == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exponent_is_the_largest_that_fits),
        cmocka_unit_test(values_are_rounded_to_nearest_ties_to_even),
        cmocka_unit_test(all_readers_quantise_equally),
        cmocka_unit_test(rows_read_in_any_order_are_the_rows),
        cmocka_unit_test(integers_are_not_changed),
        cmocka_unit_test(integers_that_exceed_the_requested_bits_are_named),
        cmocka_unit_test(values_without_an_exact_value_are_named_and_refused),
        cmocka_unit_test(stochastic_rounding_is_unbiased_repeatable_and_bounded),
    };
    return cmocka_run_group_tests_name("matrix/fixed", tests, NULL, NULL);
}
