/*
 * Tests of uniformity: p-values are uniform if the numbers are, far tails agree with counting, and
 * each test detects what it was made for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/stats_internal.h"
#include "audit/tail.h"
#include "audit/uniform.h"
#include "core/alloc.h"
#include "tests/support/under_valgrind.h"

enum { P = 5931641, Q = 5931637, MANY = 1 << 15 };

static uint64_t x[MANY];

static sherd__seeded state;

static void draw(uint64_t seed, size_t n, uint32_t p)
{
    static uint32_t words[MANY];
    sherd__entropy e = sherd__entropy_seeded(&state, seed);
    sherd__audit_draw(&e, p, n, words);
    for (size_t i = 0; i < n; i++) x[i] = words[i];
}

static sherd__looked repeats(size_t n, uint64_t m)
{
    sherd__looked r;
    assert_int_equal(sherd__uniform_repeats(x, n, m, &r), 0);
    return r;
}

static int ascending(const void *a, const void *b)
{
    double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

/* Returns Kolmogorov's distance times the root of n, which exceeds 1.95 with probability 1e-3. */
static double distance(double *p, size_t n)
{
    double worst = 0;
    qsort(p, n, sizeof *p, ascending);
    for (size_t i = 0; i < n; i++) {
        double up = (double)(i + 1) / (double)n - p[i], down = p[i] - (double)i / (double)n;
        worst = fmax(worst, fmax(up, down));
    }
    return worst * sqrt((double)n);
}

static void p_values_are_uniform_if_residues_are(void **s)
{
    enum { SEEDS = 600 };
    static const size_t sizes[] = { 1, 20, 500, 9000 };
    double high[SEEDS], low[SEEDS], pairs[SEEDS], small[SEEDS];
    (void)s;
    for (size_t k = 0; k < 4; k++) {
        size_t n = sizes[k], seen = 0;
        for (uint64_t i = 0; i < SEEDS; i++) {
            draw(1000 * k + i, n, P);
            high[i] = exp(sherd__uniform_high(x, n, P).ln_p);
            low[i] = exp(sherd__uniform_low(x, n, P).ln_p);
            pairs[i] = exp(sherd__uniform_pairs(x, n, P).ln_p);
            small[i] = exp(sherd__uniform_small(x, n, P).ln_p);
            seen += repeats(n, P).ln_p < log(0.01);
        }
        assert_true(distance(small, SEEDS) < 1.95);
        assert_true(seen <= 18); /* an upper bound: 1 in 100 plus three standard deviations */
        if (n < 500) continue;   /* too few for chi2: no test, p = 1 */
        assert_true(distance(high, SEEDS) < 1.95);
        assert_true(distance(low, SEEDS) < 1.95);
        assert_true(distance(pairs, SEEDS) < 1.95);
    }
}

static void uneven_cells_of_small_moduli_are_not_accused(void **s)
{
    static const uint32_t primes[] = { 11, 23, 257, 509, 4099 };
    double high[300], low[300];
    (void)s;
    for (size_t k = 0; k < 5; k++) {
        for (uint64_t i = 0; i < 300; i++) {
            draw(i, 9000, primes[k]);
            high[i] = exp(sherd__uniform_high(x, 9000, primes[k]).ln_p);
            low[i] = exp(sherd__uniform_low(x, 9000, primes[k]).ln_p);
        }
        assert_true(distance(high, 300) < 1.95 && distance(low, 300) < 1.95);
    }
}

static void the_far_tail_agrees_with_counting(void **s)
{
    (void)s;
    /* All in one of 256 cells: 256 * 256^-8192, twice */
    for (size_t i = 0; i < 8192; i++) x[i] = 0;
    double want = log(2) + log(256) * (1 - 8192.0);
    double high = sherd__uniform_high(x, 8192, P).ln_p, low = sherd__uniform_low(x, 8192, P).ln_p;
    assert_true(high > want && high < 0.97 * want && low > want && low < 0.97 * want);
    /* A bound by Poisson for 1/p^8191: larger, but still beyond doubt. */
    assert_true(repeats(8192, P).ln_p < -8000 && repeats(8192, P).ln_p > -8191 * log(P));
    double small = sherd__uniform_small(x, 8192, P).ln_p;
    assert_true(small < -8192 * (log(P) - log(log(P)) - 1.1) && small > -8192 * log(P));
    /* Numbers that are too even are as suspicious as uneven ones. */
    for (size_t i = 0; i < 8192; i++) x[i] = i * (P / 8192);
    assert_true(sherd__uniform_high(x, 8192, P).ln_p < -300);
}

/*
 * Estimates probabilities at p = 1e-12 by importance sampling: counts are drawn from a
 * Dirichlet-multinomial, spread so that its mean chi2 is there, and weighted by the likelihood
 * ratio.
 */
static double uniform_01(const sherd__entropy *e)
{
    return ((double)(sherd__entropy_u64(e) >> 11) + 0.5) * 0x1p-53;
}

/* Draws counts by a Polya urn, which has that distribution. Returns ln of the likelihood ratio. */
static double urn(const sherd__entropy *e, unsigned cells, size_t n, double ball, size_t *count)
{
    double ratio = 0;
    memset(count, 0, cells * sizeof *count);
    for (size_t i = 0; i < n; i++) {
        /* With probability cells*ball/(cells*ball + i) a new cell, otherwise that of an earlier
         * number. */
        double u = uniform_01(e) * (cells * ball + (double)i);
        size_t earlier = (size_t)(u - cells * ball);
        unsigned c = u < cells * ball ? (unsigned)(u / ball) : (unsigned)x[earlier];
        ratio += log(cells * ball + (double)i) - log(ball + (double)count[c]) - log(cells);
        x[i] = c;
        count[c]++;
    }
    return ratio;
}

static void chi2_is_correct_at_p_of_1e_12(void **s)
{
    static const struct {
        unsigned cells;
        double ball; /* of the urn; smaller values give more uneven counts */
    } urns[] = { { 4, 2.4 }, { 8, 4 }, { 64, 20 }, { 256, 44 } };
    const int draws = under_valgrind() ? 100 : 500;
    (void)s;
    for (size_t k = 0; k < 4; k++) {
        size_t n = 32 * urns[k].cells, count[256];
        sherd__entropy e = sherd__entropy_seeded(&state, k);
        double sum = 0;
        for (int i = 0; i < draws; i++) {
            double ratio = urn(&e, urns[k].cells, n, urns[k].ball, count);
            for (size_t j = 0; j < n; j++) x[j] = x[j] * ((P + urns[k].cells - 1) / urns[k].cells);
            sherd__looked r = sherd__uniform_high(x, n, P);
            assert_int_equal(r.cells, urns[k].cells);
            if (r.ln_p <= log(1e-12) && r.value > r.expected) sum += exp(ratio);
        }
        /* p covers both tails; this one has half of it. */
        double times = sum / draws / 0.5e-12;
        if (times < 0.5 || times > 2) fail_msg("%u cells: %.3g", urns[k].cells, times);
    }
}

static void too_few_numbers_give_no_chi2(void **s)
{
    (void)s;
    memset(x, 0, sizeof x);
    assert_int_equal(sherd__uniform_high(x, 127, P).cells, 0);
    assert_int_equal(sherd__uniform_high(x, 128, P).cells, 4);
    assert_int_equal(sherd__uniform_pairs(x, 255, P).cells, 0);
    assert_int_equal(sherd__uniform_pairs(x, 256, P).cells, 4);
    assert_int_equal(sherd__uniform_high(x, 8192, P).cells, 256);
    assert_true(sherd__uniform_small(x, 0, P).ln_p == 0 && repeats(0, P).ln_p == 0);
    assert_true(repeats(1, P).ln_p == 0);
    /* Three zeros: (1/p)^3 by counting, and the test gives nearly that. */
    assert_true(sherd__uniform_small(x, 3, P).ln_p < -36);
}

static void small_numbers_are_detected_if_bins_are_too_coarse(void **s)
{
    (void)s;
    draw(3, 200, 1u << 17 | 29); /* 17 bits of 22.5, on both sides of 0 */
    for (size_t i = 0; i < 200; i++) x[i] = (x[i] + P - (1 << 16)) % P;
    assert_true(sherd__uniform_small(x, 200, P).ln_p < -200);
    assert_true(sherd__uniform_small(x, 20, (uint64_t)P * Q).ln_p < -30 ||
                sherd__uniform_small(x, 20, P).ln_p < -20);
}

static void evenly_spread_structure_is_detected_by_repeats(void **s)
{
    (void)s;
    draw(4, 256, P); /* 256 values from the whole range, each eight times */
    for (size_t i = 256; i < 2048; i++) x[i] = x[i % 256];
    assert_true(sherd__uniform_small(x, 2048, P).ln_p > -60);
    assert_true(repeats(2048, P).ln_p < -8000);
}

static void correlated_neighbours_are_detected_as_pairs(void **s)
{
    (void)s;
    draw(5, MANY, P);
    for (size_t i = 0; i < MANY; i += 2) x[i + 1] = (x[i] + x[i + 1] / 8) % P;
    assert_true(sherd__uniform_high(x, MANY, P).ln_p > log(1e-6));
    assert_true(sherd__uniform_pairs(x, MANY, P).ln_p < -1000);
}

/* The rule: residues are drawn by rejection. Words of 24 bits reduced by % have a bias that some
 * 11000 residues show at 1e-12. Of 32 bits, 1.4e9 do; of 64 bits, no audit sees it. */
static void the_bias_of_reduced_words_is_detected(void **s)
{
    static uint32_t words[MANY];
    sherd__entropy e = sherd__entropy_seeded(&state, 6);
    (void)s;
    e.fill(e.ctx, words, sizeof words);
    for (size_t i = 0; i < MANY; i++) x[i] = (words[i] >> 8) % P;
    assert_true(sherd__uniform_high(x, 22000, P).ln_p < log(1e-12));
    assert_true(sherd__uniform_high(x, 1100, P).ln_p > log(1e-6));
}

static void a_guess_is_confirmed_by_equal_entries(void **s)
{
    static uint64_t guess[MANY];
    sherd__findings l = { 0 };
    sherd_audit_finding about = sherd__finding_of("t", "", false);
    (void)s;
    draw(7, 1000, P);
    memcpy(guess, x, sizeof guess);
    assert_int_equal(sherd__uniform_guess(&l, &about, x, guess, 3, P), 0);
    assert_true(fabs(l.list[0].ln_p + 3 * log(P)) < 1e-9 && l.list[0].value == 3);
    draw(8, 1000, P);
    assert_int_equal(sherd__uniform_guess(&l, &about, x, guess, 1000, P), 0);
    assert_true(l.list[1].ln_p > log(1e-6));
    sherd__findings_fini(&l);
}

static void the_requested_tests_are_recorded(void **s)
{
    sherd__findings l = { 0 };
    sherd_audit_finding about = sherd__finding_of("t", "", false);
    (void)s;
    draw(9, 9000, P);
    assert_int_equal(sherd__uniform_look(&l, &about, x, 9000, P, SHERD__LOOK_ALL), 0);
    assert_int_equal(l.len, 5);
    assert_int_equal(sherd__uniform_look(&l, &about, x, 9000, P, SHERD__LOOK_SMALL), 0);
    assert_string_equal(l.list[5].statistic, "smallness");
    assert_int_equal(sherd__uniform_look(&l, &about, x, 10, P, SHERD__LOOK_HIGH), 0);
    assert_int_equal(l.len, 6); /* too few: no test is recorded */
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__uniform_look(&l, &about, x, 10, P, SHERD__LOOK_REPEATS), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
    sherd__findings_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p_values_are_uniform_if_residues_are),
        cmocka_unit_test(uneven_cells_of_small_moduli_are_not_accused),
        cmocka_unit_test(the_far_tail_agrees_with_counting),
        cmocka_unit_test(chi2_is_correct_at_p_of_1e_12),
        cmocka_unit_test(too_few_numbers_give_no_chi2),
        cmocka_unit_test(small_numbers_are_detected_if_bins_are_too_coarse),
        cmocka_unit_test(evenly_spread_structure_is_detected_by_repeats),
        cmocka_unit_test(correlated_neighbours_are_detected_as_pairs),
        cmocka_unit_test(the_bias_of_reduced_words_is_detected),
        cmocka_unit_test(a_guess_is_confirmed_by_equal_entries),
        cmocka_unit_test(the_requested_tests_are_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
