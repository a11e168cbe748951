/*
 * The noise of differential privacy has its stated distribution, for small and large variances, and
 * is fresh in every draw. The accountant agrees with published figures and with the exact privacy
 * of a single Gaussian. The number of digits that a draw reads does not depend on its samples.
 *
 * link: -Wl,--wrap=sherd__keystream_read
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/gaussian.h"
#include "crypto/keystream.h"
#include "crypto/privacy.h"
#include "sherd/err.h"

/* ---- the sampler ----------------------------------------------------------------------------- */

enum { DRAWS = 400000 };

static int64_t *samples(uint64_t variance, uint64_t seed)
{
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, seed);
    int64_t *x = malloc(DRAWS * sizeof *x);
    assert_non_null(x);
    assert_int_equal(sherd__gaussian_draw(x, DRAWS, variance, &e), 0);
    return x;
}

/* Chi-squared statistic of the counts of -most..most compared with the normalised exp(-x^2 / (2
 * variance)). */
static void small_variances_have_the_exact_probabilities(void **s)
{
    static const struct {
        uint64_t variance;
        int most;
    } of[] = { { 1, 4 }, { 2, 5 }, { 3, 6 }, { 10, 12 }, { 400, 70 } };
    (void)s;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        int most = of[k].most;
        double count[2 * 70 + 1] = { 0 }, total = 0, beyond = 0, chi = 0;
        for (int x = -2000; x <= 2000; x++) total += exp(-x * x / (2.0 * (double)of[k].variance));
        int64_t *x = samples(of[k].variance, 100 + k);
        for (size_t i = 0; i < DRAWS; i++) {
            if (llabs(x[i]) <= most) count[x[i] + most]++;
            else beyond++;
        }
        double rest = DRAWS;
        for (int v = -most; v <= most; v++) {
            double want = DRAWS * exp(-v * v / (2.0 * (double)of[k].variance)) / total;
            chi += (count[v + most] - want) * (count[v + most] - want) / want;
            rest -= want;
        }
        chi += (beyond - rest) * (beyond - rest) / rest;
        double freedom = 2 * most + 1;
        assert_true(chi < freedom + 6 * sqrt(2 * freedom)); /* probability below 1e-7 for these */
        free(x);
    }
}

/* For a large variance: mean, variance, kurtosis and the last digits. */
static void large_variances_are_gaussian_to_the_last_digit(void **s)
{
    static const uint64_t of[] = { 1000003, UINT64_C(1) << 40, SHERD__GAUSSIAN_VARIANCE };
    (void)s;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        int64_t *x = samples(of[k], 200 + k);
        double sd = sqrt((double)of[k]), sum = 0, squares = 0, fourth = 0, odd = 0, lag = 0;
        for (size_t i = 0; i < DRAWS; i++) {
            double z = (double)x[i] / sd;
            sum += z;
            squares += z * z;
            fourth += z * z * z * z;
            odd += (double)(x[i] & 1);
            if (i > 0) lag += z * (double)x[i - 1] / sd;
        }
        double root = sqrt(DRAWS);
        assert_true(fabs(sum) < 5 * root);
        assert_true(fabs(squares - DRAWS) < 5 * sqrt(2) * root);
        assert_true(fabs(fourth - 3.0 * DRAWS) < 5 * sqrt(96) * root);
        assert_true(fabs(odd - DRAWS / 2.0) < 2.5 * root);
        assert_true(fabs(lag) < 5 * root);
        free(x);
    }
}

static unsigned reads;

int __real_sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                                 size_t len);
int __wrap_sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                                 size_t len);

int __wrap_sherd__keystream_read(sherd__keystream *ks, uint64_t nonce, uint64_t block, void *out,
                                 size_t len)
{
    reads++;
    return __real_sherd__keystream_read(ks, nonce, block, out, len);
}

/* Counted in buffers of digits: of 100 draws, the one with the largest samples would read more than
 * the one with the smallest. */
static void the_digits_that_a_draw_reads_do_not_depend_on_its_samples(void **s)
{
    static const uint64_t variances[] = { 1, 2, 100, UINT64_C(1) << 40 };
    static int64_t x[800];
    (void)s;
    for (size_t v = 0; v < sizeof variances / sizeof *variances; v++)
        for (size_t n = 1; n <= sizeof x / sizeof *x; n *= 3) {
            unsigned first = 0;
            for (unsigned seed = 0; seed < 100; seed++) {
                sherd__seeded state;
                sherd__entropy e = sherd__entropy_seeded(&state, seed);
                reads = 0;
                assert_int_equal(sherd__gaussian_draw(x, n, variances[v], &e), 0);
                if (seed == 0) first = reads;
                assert_int_equal(reads, first);
            }
        }
}

static void a_draw_never_repeats(void **s)
{
    enum { N = 1000 };
    int64_t a[N], b[N];
    sherd__entropy e = sherd__entropy_os();
    (void)s;
    assert_int_equal(sherd__gaussian_draw(a, N, UINT64_C(1) << 40, &e), 0);
    assert_int_equal(sherd__gaussian_draw(b, N, UINT64_C(1) << 40, &e), 0);
    size_t alike = 0;
    for (size_t i = 0; i < N; i++) alike += a[i] == b[i];
    assert_true(alike < 3);
}

static void variances_out_of_range_are_refused(void **s)
{
    int64_t x;
    sherd__entropy e = sherd__entropy_os();
    (void)s;
    assert_int_equal(sherd__gaussian_draw(&x, 1, 0, &e), SHERD_EINVAL);
    assert_int_equal(sherd__gaussian_draw(&x, 1, SHERD__GAUSSIAN_VARIANCE + 1, &e), SHERD_EINVAL);
    const sherd__privacy_round largest = { .threshold = 3,
                                           .colluding = 2,
                                           .gradient = UINT64_C(1) << 32,
                                           .noise = SHERD__PRIVACY_NOISE_MAX };
    assert_true(sherd__privacy_variance(&largest) <= SHERD__GAUSSIAN_VARIANCE);
}

/* ---- the accountant -------------------------------------------------------------------------- */

/* The exact delta of one Gaussian with this noise multiplier (Balle and Wang, ICML 2018, theorem
 * 8). */
static double exact_delta(double epsilon, double noise)
{
    double a = 1 / (2 * noise) - epsilon * noise, b = -1 / (2 * noise) - epsilon * noise;
    return 0.5 * erfc(-a / sqrt(2)) - exp(epsilon) * 0.5 * erfc(-b / sqrt(2));
}

static double exact_epsilon(double delta, double noise)
{
    double least = 0, most = 200;
    for (int i = 0; i < 200; i++) {
        double middle = (least + most) / 2;
        if (exact_delta(middle, noise) > delta) least = middle;
        else most = middle;
    }
    return least;
}

static void epsilon_is_slightly_above_the_exact_value(void **s)
{
    static const double noises[] = { 0.5, 0.8, 1, 2, 5, 10, 40 }, deltas[] = { 1e-5, 1e-6, 1e-10 };
    (void)s;
    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++)
        for (size_t k = 0; k < sizeof deltas / sizeof *deltas; k++) {
            double rho = 1 / (2 * noises[i] * noises[i]);
            double got = sherd__privacy_epsilon(rho, deltas[k]);
            double exact = exact_epsilon(deltas[k], noises[i]);
            assert_true(got >= exact);
            assert_true(got <= 1.15 * exact);
            assert_true(got <= rho + 2 * sqrt(rho * log(1 / deltas[k]))); /* Bun and Steinke */
        }
}

/* For the redistricting data of the 2020 Census, the United States published epsilon at delta
 * 1e-10, and rho to two digits: 2.56 and 17.14 for persons, 0.07 and 2.47 for housing units (Abowd
 * et al., Harvard Data Science Review, 2022). */
static void published_figures_are_within_their_rounding(void **s)
{
    static const struct {
        double rho, epsilon;
    } of[] = { { 2.56, 17.14 }, { 0.07, 2.47 } };
    (void)s;
    for (size_t i = 0; i < 2; i++) {
        assert_true(sherd__privacy_epsilon(of[i].rho - 0.005, 1e-10) <= of[i].epsilon + 0.005);
        assert_true(sherd__privacy_epsilon(of[i].rho + 0.005, 1e-10) >= of[i].epsilon - 0.005);
    }
    /* Computed by an independent program, over a grid of two million orders. */
    assert_true(fabs(sherd__privacy_epsilon(1, 1e-10) - 10.034343) < 1e-4);
    assert_true(fabs(sherd__privacy_epsilon(0.1, 1e-10) - 2.881828) < 1e-4);
}

static void budget_and_cost_are_inverse_functions(void **s)
{
    (void)s;
    for (double epsilon = 0.01; epsilon < 100; epsilon *= 1.7) {
        double rho = sherd__privacy_rho(epsilon, 1e-6);
        assert_true(sherd__privacy_epsilon(rho, 1e-6) <= epsilon);
        assert_true(sherd__privacy_epsilon(rho * 1.001, 1e-6) > epsilon);
    }
    assert_true(isinf(sherd__privacy_rho(INFINITY, 1e-6)));
    assert_true(isinf(sherd__privacy_epsilon(INFINITY, 1e-6)));
    assert_true(sherd__privacy_epsilon(0, 1e-6) == 0);
}

static void the_cost_of_a_round_follows_from_its_noise(void **s)
{
    (void)s;
    sherd__privacy_round r = { .threshold = 4, .colluding = 1, .gradient = 100000, .noise = 1 };
    for (r.noise = 0.3; r.noise < 400; r.noise *= 1.9) {
        double plain = 1 / (2 * r.noise * r.noise), got = sherd__privacy_cost(&r);
        assert_true(got >= plain * (1 - 1e-6));
        assert_true(got <= plain * 1.000001);
        double honest = 3.0 * (double)sherd__privacy_variance(&r);
        double norm = 0x1p18 + sqrt(100000) / 2;
        assert_true(honest >= r.noise * r.noise * norm * norm);
    }
    r.noise = 0;
    assert_true(isinf(sherd__privacy_cost(&r)));
    /* So little noise that a sum of discrete Gaussians differs from a discrete Gaussian: the
     * correction counts. */
    r.noise = 1e-12;
    r.gradient = UINT64_C(1) << 40;
    double variance = (double)sherd__privacy_variance(&r), b = 0x1p18 + 0x1p19;
    b = sqrt(b * b + 3 * 0x1p32);
    assert_true(variance == 1);
    double tau = 10 * (exp(-M_PI * M_PI * variance) + exp(-4 * M_PI * M_PI * variance / 3));
    double want = b / sqrt(3 * variance) + sqrt(0x1p40 + 3) * tau;
    assert_true(fabs(sherd__privacy_cost(&r) / (want * want / 2) - 1) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_variances_have_the_exact_probabilities),
        cmocka_unit_test(large_variances_are_gaussian_to_the_last_digit),
        cmocka_unit_test(the_digits_that_a_draw_reads_do_not_depend_on_its_samples),
        cmocka_unit_test(a_draw_never_repeats),
        cmocka_unit_test(variances_out_of_range_are_refused),
        cmocka_unit_test(epsilon_is_slightly_above_the_exact_value),
        cmocka_unit_test(published_figures_are_within_their_rounding),
        cmocka_unit_test(budget_and_cost_are_inverse_functions),
        cmocka_unit_test(the_cost_of_a_round_follows_from_its_noise),
    };
    return cmocka_run_group_tests_name("crypto/gaussian", tests, NULL, NULL);
}
