/* Stochastic rounding in front of a multiplier. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "matrix/fixed.h"
#include "matrix/rounding.h"
#include "tests/support/keep.h"

enum { N = 12, K = 9, M = 7, BITS = 9 };

static const uint8_t seed[32] = { 1, 2, 3 };

static sherd_multiplier made(unsigned bits, const uint8_t with[32])
{
    sherd_multiplier inner, m;
    assert_int_equal(sherd_multiplier_local(&inner, bits, NULL), SHERD_OK);
    assert_int_equal(sherd__rounding_new(&m, inner, BITS, with, NULL), SHERD_OK);
    return m;
}

static void fill(double *x, size_t n, double by)
{
    for (size_t i = 0; i < n; i++) x[i] = sin((double)i + 1) * by;
}

/* Reads the rounded operands: the product with an identity, whose ones fit into 9 bits, returns
 * them. */
static void rounded(sherd_multiplier m, sherd_view a, double *out)
{
    double one[K * K] = { 0 };
    for (size_t i = 0; i < a.cols; i++) one[i * a.cols + i] = 1;
    sherd_view v = sherd_view_c(one, SHERD_F64, a.cols, a.cols);
    assert_int_equal(sherd_multiplier_multiply(m, a, v, out, a.cols, NULL), SHERD_OK);
}

static void operands_are_rounded_to_either_neighbour_and_the_mean_is_unbiased(void **s)
{
    (void)s;
    enum { TRIES = 2000 };
    double a[N * K], out[N * K], sum[N * K] = { 0 };
    sherd__fixed f;
    fill(a, N * K, 3);
    a[5] = 0;
    sherd_view va = sherd_view_c(a, SHERD_F64, N, K);
    assert_int_equal(sherd__fixed_choose(va, BITS, "A", &f, NULL), SHERD_OK);
    double unit = ldexp(1, -f.scale);
    sherd_multiplier m = made(0, seed);
    for (uint64_t step = 0; step < TRIES; step++) {
        sherd__rounding_step(m, step);
        rounded(m, va, out);
        for (size_t i = 0; i < N * K; i++) {
            double y = out[i] / unit;
            assert_true(y == rint(y) && fabs(y) <= 255 && fabs(out[i] - a[i]) < unit);
            sum[i] += out[i];
        }
    }
    for (size_t i = 0; i < N * K; i++) /* 6 standard deviations of at most a half each */
        assert_true(fabs(sum[i] / TRIES - a[i]) < 6 * 0.5 * unit / sqrt(TRIES));
    sherd_multiplier_free(m);
}

/* A multiplier of as many bits, or more, does not round the values again. */
static void a_fixed_point_multiplier_does_not_change_rounded_values(void **s)
{
    (void)s;
    double a[N * K], b[K * M], plain[N * M], fixed[N * M];
    for (unsigned round = 0; round < 300; round++) {
        double by = ldexp(1, (int)(round % 61) - 30);
        fill(a, N * K, by);
        fill(b, K * M, 1 / by);
        if (round % 3 == 0) a[0] = 2 * by; /* only this entry is at a power of two */
        if (round % 7 == 0) memset(b, 0, sizeof b);
        sherd_multiplier floats = made(0, seed), exact = made(BITS + round % 4, seed);
        sherd__rounding_step(floats, round);
        sherd__rounding_step(exact, round);
        sherd_view va = sherd_view_c(a, SHERD_F64, N, K), vb = sherd_view_c(b, SHERD_F64, K, M);
        assert_int_equal(sherd_multiplier_multiply(floats, va, vb, plain, M, NULL), SHERD_OK);
        assert_int_equal(sherd_multiplier_multiply(exact, va, vb, fixed, M, NULL), SHERD_OK);
        for (size_t i = 0; i < N * M; i++) assert_true(plain[i] == fixed[i]);
        sherd_multiplier_free(floats);
        sherd_multiplier_free(exact);
    }
}

/* One operand used three times in a step counts as three tensors. The same step gives the same bits
 * again. */
static void rounding_depends_on_seed_step_and_tensor_only(void **s)
{
    (void)s;
    static const uint8_t other[32] = { 1, 2, 4 };
    double a[N * K], out[5][N * K];
    fill(a, N * K, 1);
    sherd_view va = sherd_view_c(a, SHERD_F64, N, K);
    sherd_multiplier m = made(BITS, seed), n = made(BITS, other);
    sherd__rounding_step(m, 7);
    rounded(m, va, out[0]);
    rounded(m, va, out[1]);
    sherd__rounding_step(m, 8);
    rounded(m, va, out[2]);
    sherd__rounding_step(n, 7);
    rounded(n, va, out[3]);
    sherd__rounding_step(m, 7);
    rounded(m, va, out[4]);
    for (unsigned i = 0; i < 5; i++)
        for (unsigned j = 0; j < i; j++)
            assert_true((memcmp(out[i], out[j], sizeof a) == 0) == (i == 4 && j == 0));
    sherd_multiplier_free(m);
    sherd_multiplier_free(n);
}

/* Strides and dtypes of equal values do not matter; integers are not rounded, even when kept. */
static void floats_are_rounded_and_integers_are_not(void **s)
{
    (void)s;
    double a[N * K], turned[N * K], out[N * K], want[N * K];
    uint8_t whole[N * K];
    sherd_kept *kept;
    fill(a, N * K, 1);
    for (size_t i = 0; i < N * K; i++) turned[i % K * N + i / K] = a[i];
    for (size_t i = 0; i < N * K; i++) whole[i] = (uint8_t)(i * 53);
    sherd_multiplier m = made(0, seed);
    sherd__rounding_step(m, 1);
    rounded(m, sherd_view_c(a, SHERD_F64, N, K), want);
    sherd__rounding_step(m, 1);
    rounded(m, sherd_view_t(sherd_view_c(turned, SHERD_F64, K, N)), out);
    assert_memory_equal(out, want, sizeof out);
    sherd_view w = sherd_view_c(whole, SHERD_U8, N, K);
    rounded(m, w, out);
    for (size_t i = 0; i < N * K; i++) assert_true(out[i] == whole[i]);
    assert_int_equal(sherd_multiplier_keep(&kept, m, w, keep_parts(5), NULL), SHERD_OK);
    double one[K] = { 1 }, column[N];
    sherd_view e = sherd_view_c(one, SHERD_F64, K, 1);
    assert_int_equal(sherd_multiplier_multiply_rows(m, kept, (sherd_rows){ 5, 7 }, false, e, column,
                                                    1, NULL),
                     SHERD_OK);
    for (size_t i = 0; i < 7; i++) assert_true(column[i] == whole[(i + 5) * K]);
    assert_int_equal(sherd_multiplier_multiply_rows(m, kept, (sherd_rows){ 5, 6 }, false, e, column,
                                                    1, NULL),
                     SHERD_EINVAL);
    sherd_multiplier_release(m, kept);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_SQUARE, e, e, column, 1, NULL), SHERD_OK);
    sherd_multiplier_free(m);
}

static void invalid_bits_values_and_failed_allocations_leave_nothing_behind(void **s)
{
    (void)s;
    double a[4] = { 1, 2, 3, NAN }, c[4];
    sherd_multiplier inner, m;
    sherd_view v = sherd_view_c(a, SHERD_F64, 2, 2);
    assert_int_equal(sherd_multiplier_local(&inner, 17, NULL), SHERD_OK);
    assert_int_equal(sherd__rounding_new(&m, inner, 1, seed, NULL), SHERD_EINVAL);
    assert_null(m.ops);
    assert_int_equal(sherd__rounding_new(&m, inner, 54, seed, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__rounding_new(&m, inner, 17, seed, NULL), SHERD_OK);
    assert_int_equal(sherd_multiplier_multiply(m, v, v, c, 2, NULL), SHERD_ERANGE);
    sherd_multiplier_free(m);
    a[3] = 4;
    for (size_t nth = 1;; nth++) {
        sherd_kept *kept = NULL;
        assert_int_equal(sherd_multiplier_local(&inner, 17, NULL), SHERD_OK);
        sherd__alloc_fail_nth(nth);
        int err = sherd__rounding_new(&m, inner, 17, seed, NULL);
        if (err == 0) err = sherd_multiplier_keep(&kept, m, v, NULL, NULL);
        if (err == 0) err = sherd_multiplier_multiply_kept(m, kept, true, v, c, 2, NULL);
        if (err == 0) err = sherd_multiplier_multiply(m, v, v, c, 2, NULL);
        size_t seen = sherd__alloc_fail_nth(0);
        if (m.ops) sherd_multiplier_release(m, kept);
        sherd_multiplier_free(m.ops ? m : inner);
        if (seen < nth) break;
        assert_int_equal(err, SHERD_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_are_rounded_to_either_neighbour_and_the_mean_is_unbiased),
        cmocka_unit_test(a_fixed_point_multiplier_does_not_change_rounded_values),
        cmocka_unit_test(rounding_depends_on_seed_step_and_tensor_only),
        cmocka_unit_test(floats_are_rounded_and_integers_are_not),
        cmocka_unit_test(invalid_bits_values_and_failed_allocations_leave_nothing_behind),
    };
    return cmocka_run_group_tests_name("matrix/rounding", tests, NULL, NULL);
}
