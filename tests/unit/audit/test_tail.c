/* Tails of distributions, compared with values of 60 digits computed separately with mpmath, down
 * to e^-64499. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "audit/tail.h"

static void same(double got, double want)
{
    double scale = fabs(want) > 1e-290 ? fabs(want) : 1e-290;
    if (!(fabs(got - want) <= 1e-9 * scale)) fail_msg("%.17g instead of %.17g", got, want);
}

static void gamma_tails_are_correct_from_the_middle_to_the_far_end(void **state)
{
    static const double known[][4] = {
        { 0.5, 0.5, -1.1478744644493182, -0.38171514630212607 },
        { 1, 1e-300, -1e-300, -690.77552789821371 },
        { 127.5, 127.5, -0.71698398982513682, -0.66986536124698474 },
        { 127.5, 400, -130.83161427874878, -1.5154857610291847e-57 },
        { 127.5, 20, -5.4533574422233791e-58, -131.85370393021232 },
        { 15.5, 15, -0.65913897256345305, -0.72835278762546756 },
        { 65536, 65536, -0.69418663287998753, -0.69210880757920407 },
        { 65536, 62000, -2.9979746161297699e-45, -102.51839225202219 },
    };
    static const double above[][3] = {
        { 0.5, 700, -703.84861812512232 },     { 1, 690.77552789821368151, -690.77552789821368 },
        { 127.5, 1200, -792.12436302336083 },  { 16, 300, -242.29142427624326 },
        { 65536, 70000, -149.24490257482944 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        same(sherd__tail_gamma_above(known[i][0], known[i][1]), known[i][2]);
        same(sherd__tail_gamma_below(known[i][0], known[i][1]), known[i][3]);
    }
    for (size_t i = 0; i < sizeof above / sizeof *above; i++)
        same(sherd__tail_gamma_above(above[i][0], above[i][1]), above[i][2]);
    same(sherd__tail_gamma_below(3, 1e-100), -692.56728736744176);
    same(sherd__tail_gamma_below(131072, 40000), -64499.522118273317);
    same(sherd__tail_chi2_above(255, 800), -130.83161427874878);
    same(sherd__tail_chi2_below(255, 40), -131.85370393021232);
    assert_true(sherd__tail_gamma_above(2, 0) == 0 && sherd__tail_gamma_below(2, 0) == -INFINITY);
    assert_true(sherd__tail_gamma_above(2, INFINITY) == -INFINITY);
}

static void the_two_methods_of_the_gamma_function_agree_where_they_meet(void **state)
{
    (void)state;
    for (double a = 0.5; a < 1e5; a *= 3) {
        double below = sherd__tail_gamma_above(a, (a + 1) * (1 - 1e-13));
        same(sherd__tail_gamma_above(a, (a + 1) * (1 + 1e-13)) + 1, below + 1);
        double sum = exp(below) + exp(sherd__tail_gamma_below(a, (a + 1) * (1 - 1e-13)));
        assert_true(fabs(sum - 1) < 1e-12);
    }
}

static void counts_have_exact_tails(void **state)
{
    static const struct {
        uint64_t k, n;
        double p, want;
    } hits[] = {
        { 500, 1000, 0.5, -0.66823506213263477 },       { 250, 500, 0.5, -0.65810379032852836 },
        { 300, 500, 0.5, -12.318114706161434 },         { 500, 500, 0.5, -346.57359027997265 },
        { 480, 500, 0.5, -264.9597114626628 },          { 3, 1000000, 1e-9, -22.515778285176337 },
        { 200000, 1000000, 0.15, -9042.4037132876398 }, { 1000, 1000, 0.4, -916.29073187415507 },
        { 10, 20, 0.9, -7.0886088441403736e-7 },        { 0, 20, 0.9, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof hits / sizeof *hits; i++)
        same(sherd__tail_binomial(hits[i].k, hits[i].n, hits[i].p), hits[i].want);
    assert_true(sherd__tail_binomial(21, 20, 0.5) == -INFINITY);
    same(sherd__tail_poisson(1, 1e-3), -6.9082552373154707);
    same(sherd__tail_poisson(5, 1.4), -4.250767076925517);
    same(sherd__tail_poisson(200, 1.4), -797.33055056749486);
    same(sherd__tail_poisson(500, 362), -26.23906100033218);
    same(sherd__tail_poisson(3, 1e-110), -761.64484015726313);
    same(sherd__tail_poisson(0, 3), 0);
}

static void an_interval_excludes_probabilities_that_are_too_unlikely(void **state)
{
    double low, high;
    (void)state;
    sherd__tail_interval(260, 500, 0.99, &low, &high);
    assert_true(low > 0.45 && low < 0.52 && high > 0.52 && high < 0.59);
    same(sherd__tail_binomial(260, 500, low), log(0.005));
    same(sherd__tail_binomial(240, 500, 1 - high), log(0.005));
    sherd__tail_interval(0, 10, 0.99, &low, &high);
    assert_true(low == 0 && fabs(pow(1 - high, 10) - 0.005) < 1e-9);
    sherd__tail_interval(10, 10, 0.99, &low, &high);
    assert_true(high == 1 && fabs(pow(low, 10) - 0.005) < 1e-9);
}

static void probabilities_are_added_and_complemented_as_logarithms(void **state)
{
    (void)state;
    same(sherd__tail_not(-1e-20), log(1e-20));
    same(sherd__tail_not(-50), -exp(-50));
    assert_true(sherd__tail_not(0) == -INFINITY);
    same(sherd__tail_both(-10, -20), log(2) - 20);
    assert_true(sherd__tail_both(-0.1, -0.2) == 0 && sherd__tail_subgaussian(0.5) == 0);
    same(sherd__tail_subgaussian(40), log(2) - 800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gamma_tails_are_correct_from_the_middle_to_the_far_end),
        cmocka_unit_test(the_two_methods_of_the_gamma_function_agree_where_they_meet),
        cmocka_unit_test(counts_have_exact_tails),
        cmocka_unit_test(an_interval_excludes_probabilities_that_are_too_unlikely),
        cmocka_unit_test(probabilities_are_added_and_complemented_as_logarithms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
