/* Optimisers compared with values computed by hand; steps in pieces; resumption; schedules. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "learn/optimiser.h"

#define COUNT 5u
static const sherd__method methods[] = { SHERD__SGD, SHERD__MOMENTUM, SHERD__ADAM };

static void gradient_of(size_t step, double *g)
{
    for (size_t k = 0; k < COUNT; k++) g[k] = sin((double)(step * COUNT + k)) * (double)(k + 1);
}

static sherd__optimiser made(sherd__method method)
{
    sherd__optimiser o;
    sherd__optimiser_spec spec = { .method = method };
    assert_int_equal(sherd__optimiser_init(&o, &spec, COUNT, NULL), SHERD_OK);
    return o;
}

static void steps(sherd__optimiser *o, size_t first, size_t n, double *w)
{
    double g[COUNT];
    for (size_t i = first; i < first + n; i++) {
        gradient_of(i, g);
        sherd__optimiser_begin(o);
        sherd__optimiser_apply(o, 0.1, 0, COUNT, w, g);
    }
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12)) fail_msg("%.17g, expected %.17g", got, want);
}

static void the_first_two_steps_are_those_of_the_papers(void **s)
{
    (void)s;
    const double g1[COUNT] = { 2, -1, 0, 0, 0 }, g2[COUNT] = { 1, 3, 0, 0, 0 };
    for (size_t i = 0; i < 3; i++) {
        sherd__optimiser o = made(methods[i]);
        double w[COUNT] = { 0 };
        sherd__optimiser_begin(&o);
        sherd__optimiser_apply(&o, 0.1, 0, COUNT, w, g1);
        if (methods[i] == SHERD__ADAM) { /* the first step equals the rate, for any gradient */
            near(w[0], -0.1 * 2 / (2 + 1e-8));
            near(w[1], 0.1 * 1 / (1 + 1e-8));
        } else {
            near(w[0], -0.2);
            near(w[1], 0.1);
        }
        double was = w[0];
        sherd__optimiser_begin(&o);
        sherd__optimiser_apply(&o, 0.1, 0, COUNT, w, g2);
        if (methods[i] == SHERD__SGD) near(w[0] - was, -0.1);
        if (methods[i] == SHERD__MOMENTUM) near(w[0] - was, -0.1 * (0.9 * 2 + 1));
        if (methods[i] == SHERD__ADAM) {
            double m = (0.9 * 0.1 * 2 + 0.1 * 1) / (1 - 0.81);
            double v = (0.999 * 0.001 * 4 + 0.001 * 1) / (1 - 0.999 * 0.999);
            near(w[0] - was, -0.1 * m / (sqrt(v) + 1e-8));
        }
        assert_true(w[2] == 0);
        sherd__optimiser_fini(&o);
        sherd__optimiser_fini(&o);
    }
}

static void a_step_in_pieces_has_the_same_bits(void **s)
{
    (void)s;
    for (size_t i = 0; i < 3; i++) {
        sherd__optimiser a = made(methods[i]), b = made(methods[i]);
        double w[COUNT] = { 0 }, u[COUNT] = { 0 }, g[COUNT];
        steps(&a, 0, 7, w);
        for (size_t k = 0; k < 7; k++) {
            gradient_of(k, g);
            sherd__optimiser_begin(&b);
            sherd__optimiser_apply(&b, 0.1, 3, 2, u, g);
            sherd__optimiser_apply(&b, 0.1, 1, 0, u, g);
            sherd__optimiser_apply(&b, 0.1, 0, 3, u, g);
        }
        assert_memory_equal(u, w, sizeof w);
        sherd__optimiser_fini(&a);
        sherd__optimiser_fini(&b);
    }
}

static void resumed_steps_have_the_bits_of_uninterrupted_ones(void **s)
{
    (void)s;
    for (size_t i = 0; i < 3; i++) {
        sherd__optimiser a = made(methods[i]), b = made(methods[i]), c = made(methods[i]);
        double w[COUNT] = { 0 }, u[COUNT] = { 0 };
        steps(&a, 0, 20, w);
        steps(&b, 0, 12, u);
        memcpy(c.state, b.state, b.state_len * sizeof *b.state);
        sherd__optimiser_resume(&c, 12);
        steps(&c, 12, 8, u);
        assert_memory_equal(u, w, sizeof w);
        assert_int_equal(c.steps, 20);
        sherd__optimiser_resume(&c, UINT64_MAX / 2); /* in negligible time */
        assert_int_equal(c.steps, UINT64_MAX / 2);
        sherd__optimiser_fini(&a);
        sherd__optimiser_fini(&b);
        sherd__optimiser_fini(&c);
    }
}

static void every_method_finds_the_minimum_of_a_quadratic(void **s)
{
    (void)s;
    for (size_t i = 0; i < 3; i++) {
        sherd__optimiser o = made(methods[i]);
        double w[COUNT] = { 3, -2, 1, 0.5, -4 }, g[COUNT];
        for (size_t k = 0; k < 3000; k++) {
            for (size_t j = 0; j < COUNT; j++) g[j] = (double)(j + 1) * (w[j] - 1);
            sherd__optimiser_begin(&o);
            sherd__optimiser_apply(&o, 0.02, 0, COUNT, w, g);
        }
        for (size_t j = 0; j < COUNT; j++) assert_true(fabs(w[j] - 1) < 1e-3);
        sherd__optimiser_fini(&o);
    }
}

static void invalid_optimisers_are_refused(void **s)
{
    (void)s;
    static const sherd__optimiser_spec bad[] = {
        { (sherd__method)0, 0, 0, 0, 0 },  { (sherd__method)4, 0, 0, 0, 0 },
        { SHERD__ADAM, 1, 0, 0, 0 },       { SHERD__ADAM, 0, 1.5, 0, 0 },
        { SHERD__ADAM, 0, 0, -1, 0 },      { SHERD__MOMENTUM, NAN, 0, 0, 0 },
        { SHERD__SGD, 0, 0, 0, SHERD_U8 },
    };
    sherd__optimiser o;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sherd_diag d = { 0 };
        assert_int_equal(sherd__optimiser_init(&o, &bad[i], COUNT, &d), SHERD_EINVAL);
        assert_null(o.state);
        assert_int_equal(d.code, SHERD_EINVAL);
    }
    sherd__optimiser_spec spec = { .method = SHERD__ADAM };
    assert_int_equal(sherd__optimiser_init(&o, &spec, SIZE_MAX, NULL), SHERD_ENOMEM);
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__optimiser_init(&o, &spec, COUNT, NULL), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
}

static void rates_follow_their_schedule(void **s)
{
    (void)s;
    static const struct {
        sherd__schedule schedule;
        uint64_t step;
        double rate;
    } cases[] = {
        { { SHERD__CONSTANT, 0.5, 0, 0, 0 }, 1000000, 0.5 },
        { { SHERD__CONSTANT, 0.5, 0, 0, 4 }, 0, 0.125 },
        { { SHERD__CONSTANT, 0.5, 0, 0, 4 }, 2, 0.375 },
        { { SHERD__CONSTANT, 0.5, 0, 0, 4 }, 3, 0.5 },
        { { SHERD__CONSTANT, 0.5, 0, 0, 4 }, 4, 0.5 },
        { { SHERD__STEPWISE, 1, 0.5, 10, 0 }, 9, 1 },
        { { SHERD__STEPWISE, 1, 0.5, 10, 0 }, 10, 0.5 },
        { { SHERD__STEPWISE, 1, 0.5, 10, 0 }, 59, 0.03125 },
        { { SHERD__STEPWISE, 1, 0.5, 1, 0 }, UINT64_MAX, 0 },
        { { SHERD__INVERSE, 1, 3, 10, 0 }, 0, 1 },
        { { SHERD__INVERSE, 1, 3, 10, 0 }, 10, 0.25 },
        { { SHERD__LINEAR, 2, 0.5, 10, 0 }, 0, 2 },
        { { SHERD__LINEAR, 2, 0.5, 10, 0 }, 5, 1.5 },
        { { SHERD__LINEAR, 2, 0.5, 10, 0 }, 10, 1 },
        { { SHERD__LINEAR, 2, 0.5, 10, 0 }, UINT64_MAX, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(sherd__schedule_check(&cases[i].schedule, NULL), SHERD_OK);
        near(sherd__schedule_rate(&cases[i].schedule, cases[i].step), cases[i].rate);
    }
}

static void invalid_schedules_are_refused(void **s)
{
    (void)s;
    static const sherd__schedule bad[] = {
        { SHERD__CONSTANT, 0, 0, 0, 0 },        { SHERD__CONSTANT, NAN, 0, 0, 0 },
        { SHERD__CONSTANT, INFINITY, 0, 0, 0 }, { SHERD__STEPWISE, 1, 0.5, 0, 0 },
        { SHERD__STEPWISE, 1, 0, 1, 0 },        { SHERD__LINEAR, 1, -1, 1, 0 },
        { SHERD__INVERSE, 1, NAN, 1, 0 },       { (sherd__schedule_kind)4, 1, 1, 1, 0 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sherd__schedule_check(&bad[i], NULL), SHERD_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_two_steps_are_those_of_the_papers),
        cmocka_unit_test(a_step_in_pieces_has_the_same_bits),
        cmocka_unit_test(resumed_steps_have_the_bits_of_uninterrupted_ones),
        cmocka_unit_test(every_method_finds_the_minimum_of_a_quadratic),
        cmocka_unit_test(invalid_optimisers_are_refused),
        cmocka_unit_test(rates_follow_their_schedule),
        cmocka_unit_test(invalid_schedules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
