/* Range proofs and recombination compared with __int128 arithmetic. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "matrix/exact.h"

static uint64_t state = 5;

static uint64_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 11;
}

static sherd__i128 product_of(const uint32_t *p, size_t n)
{
    sherd__i128 m = 1;
    for (size_t i = 0; i < n; i++) m *= p[i];
    return m;
}

static void the_number_of_primes_follows_from_the_bits(void **s)
{
    (void)s;
    const uint64_t b17 = (1 << 16) - 1, b9 = (1 << 8) - 1;
    size_t r;
    /* 17 bits fit k = 4096 with two primes; 60000 needs three, or 9 and 17 bits. */
    assert_int_equal(sherd__exact_primes_needed(4096, b17, b17, &sherd__primes_default, &r), 0);
    assert_int_equal(r, 2);
    assert_int_equal(sherd__exact_primes_needed(60000, b17, b17, &sherd__primes_default, &r), 0);
    assert_int_equal(r, 3);
    assert_int_equal(sherd__exact_primes_needed(60000, b9, b17, &sherd__primes_default, &r), 0);
    assert_int_equal(r, 2);
    assert_int_equal(sherd__exact_primes_needed(0, b17, b17, &sherd__primes_default, &r), 0);
    assert_int_equal(r, 1);
    assert_int_equal(sherd__exact_primes_needed(1, 0, b17, &sherd__primes_default, &r), 0);
    assert_int_equal(r, 1);
    r = 77;
    assert_int_equal(sherd__exact_primes_needed(SIZE_MAX, UINT64_MAX, UINT64_MAX,
                                                &sherd__primes_default, &r),
                     SHERD_ERANGE);
    assert_int_equal(sherd__exact_primes_needed(60000, UINT64_C(1) << 52, UINT64_C(1) << 52,
                                                &sherd__primes_default, &r),
                     SHERD_ERANGE);
    assert_int_equal(r, 77);
}

static void a_bound_of_exactly_half_the_range_fits_and_one_more_does_not(void **s)
{
    (void)s;
    size_t r;
    for (size_t n = 1; n <= 2; n++) {
        uint64_t half = (uint64_t)((product_of(sherd__primes_default.p, n) - 1) / 2);
        assert_int_equal(sherd__exact_primes_needed(1, half, 1, &sherd__primes_default, &r), 0);
        assert_int_equal(r, n);
        assert_int_equal(sherd__exact_primes_needed(1, 1, half + 1, &sherd__primes_default, &r), 0);
        assert_int_equal(r, n + 1);
    }
    assert_true(sherd__exact_in_f64(1, (UINT64_C(1) << 53) - 1, 1));
    assert_false(sherd__exact_in_f64(1, UINT64_C(1) << 53, 1));
    assert_false(sherd__exact_in_f64(SIZE_MAX, UINT64_MAX, UINT64_MAX));
    assert_true(sherd__exact_in_f64(SIZE_MAX, 0, UINT64_MAX));
}

/* Returns the canonical residue of x. */
static double residue_of(sherd__i128 x, uint32_t p)
{
    int64_t r = (int64_t)(x % (sherd__i128)p), h = (p - 1) / 2;
    return (double)(r > h ? r - (int64_t)p : r < -h ? r + (int64_t)p : r);
}

/* Returns the nearest double, ties to even, by integer arithmetic alone. */
static double nearest(sherd__i128 x)
{
    sherd__u128 u = x < 0 ? -(sherd__u128)x : (sherd__u128)x;
    int shift = 0;
    while (u >> shift >> 53 != 0) shift++;
    uint64_t top = (uint64_t)(u >> shift);
    sherd__u128 rest = u - ((sherd__u128)top << shift),
                half = shift ? (sherd__u128)1 << (shift - 1) : 1;
    if (shift && (rest > half || (rest == half && (top & 1)))) top++;
    return ldexp(x < 0 ? -(double)top : (double)top, shift);
}

static void recombination_returns_every_integer_in_range(void **s)
{
    (void)s;
    enum { N = 3000 };
    static double residues[4][N], back[N];
    static sherd__i128 x[N], y[N];
    const sherd__primes *tables[] = { &sherd__primes_default, &sherd__primes_wide };
    for (int t = 0; t < 2; t++)
        for (size_t n = 1; n <= 4; n++) {
            sherd__crt crt;
            const double *parts[4] = { residues[0], residues[1], residues[2], residues[3] };
            sherd__i128 m = product_of(tables[t]->p, n), half = (m - 1) / 2;
            assert_int_equal(sherd__crt_init(&crt, tables[t]->p, n), SHERD_OK);
            for (size_t i = 0; i < N; i++) {
                sherd__u128 u = ((sherd__u128)draw() << 64) ^ ((sherd__u128)draw() << 32) ^ draw();
                x[i] = (sherd__i128)(u % (sherd__u128)m) - half;
                if (i < 8) x[i] = i == 0 ? 0 : i == 1 ? half : i == 2 ? -half : (sherd__i128)i - 5;
                if (i >= 8 && i < 200 && n > 2) /* ties: odd multiples of half an ulp */
                    x[i] = ((((sherd__i128)1 << 53) + (sherd__i128)(draw() >> 1)) * 2 + 1) *
                           (i % 2 ? -1 : 1);
                if (x[i] > half || x[i] < -half) x[i] /= 4096;
                for (size_t q = 0; q < n; q++) residues[q][i] = residue_of(x[i], tables[t]->p[q]);
            }
            sherd__crt_i128(&crt, parts, N, y);
            assert_memory_equal(x, y, sizeof x);
            sherd__crt_f64(&crt, parts, N, 33, back);
            for (size_t i = 0; i < N; i++) {
                assert_true(back[i] == ldexp(nearest(x[i]), -33));
                assert_true(sherd__i128_f64(x[i]) == nearest(x[i]));
            }
            assert_false(signbit(back[0]));
        }
}

static void primes_that_cannot_recombine_are_refused(void **s)
{
    (void)s;
    sherd__crt crt;
    assert_int_equal(sherd__crt_init(&crt, (const uint32_t[]){ 7, 7 }, 2), SHERD_EINVAL);
    assert_int_equal(sherd__crt_init(&crt, (const uint32_t[]){ 9, 7 }, 2), SHERD_EINVAL);
    assert_int_equal(sherd__crt_init(&crt, sherd__primes_wide.p, 0), SHERD_EINVAL);
    assert_int_equal(sherd__crt_init(&crt, sherd__primes_wide.p, 5), SHERD_EINVAL);
}

static void scaling_back_never_turns_a_number_into_nan(void **s)
{
    (void)s;
    double x[4] = { 0.0, -0.0, 3.0, -1.0 };
    sherd__exact_unscale(x, 4, -2048);
    assert_true(x[0] == 0.0 && x[1] == 0.0 && !signbit(x[1]) && x[2] == HUGE_VAL &&
                x[3] == -HUGE_VAL);
    double y[2] = { 3.0, -5.0 };
    sherd__exact_unscale(y, 2, -1021);
    assert_true(y[0] == 0x1.8p1022 && y[1] == -0x1.4p1023);
    sherd__exact_unscale(y, 2, 1021 + 104);
    assert_true(y[0] == 0x1.8p-103 && y[1] == -0x1.4p-102);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_of_primes_follows_from_the_bits),
        cmocka_unit_test(a_bound_of_exactly_half_the_range_fits_and_one_more_does_not),
        cmocka_unit_test(recombination_returns_every_integer_in_range),
        cmocka_unit_test(primes_that_cannot_recombine_are_refused),
        cmocka_unit_test(scaling_back_never_turns_a_number_into_nan),
    };
    return cmocka_run_group_tests_name("matrix/exact", tests, NULL, NULL);
}
