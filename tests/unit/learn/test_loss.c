/* Losses: values computed by hand, gradients by differences, large outputs, refusals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "learn/loss.h"

static double cost_of(sherd__loss loss, const double *y, size_t m, size_t width, sherd__targets t,
                      double *dy)
{
    double cost;
    assert_int_equal(sherd__loss_gradient(loss, y, m, width, t, &cost, dy, NULL), SHERD_OK);
    return cost;
}

static void costs_equal_values_computed_by_hand(void **s)
{
    (void)s;
    const double y[4] = { 1, 2, 3, 4 }, t[4] = { 1, 1, 1, 1 };
    const uint32_t labels[2] = { 1, 0 };
    double dy[4];
    assert_true(cost_of(SHERD__LOSS_SQUARED, y, 2, 2, (sherd__targets){ .values = t }, dy) ==
                (1 + 4 + 9) / 4.0);
    assert_true(dy[0] == 0 && dy[1] == 0.5 && dy[2] == 1 && dy[3] == 1.5);
    assert_true(cost_of(SHERD__LOSS_SQUARED, y, 2, 2, (sherd__targets){ .labels = labels }, dy) ==
                (1 + 1 + 4 + 16) / 4.0);
    double p = 1 / (1 + exp(-1.0)); /* softmax of the larger of two outputs that differ by 1 */
    double cost = cost_of(SHERD__LOSS_CROSS_ENTROPY, y, 2, 2, (sherd__targets){ .labels = labels },
                          dy);
    assert_true(fabs(cost - (-log(p) - log(1 - p)) / 2) < 1e-15);
    assert_true(fabs(dy[0] - (1 - p) / 2) < 1e-15 && fabs(dy[1] + (1 - p) / 2) < 1e-15);
    assert_true(fabs(dy[2] + p / 2) < 1e-15 && fabs(dy[3] - p / 2) < 1e-15);
}

static void gradients_equal_differences_of_the_cost(void **s)
{
    (void)s;
    enum { M = 3, W = 5 };
    double y[M * W], values[M * W], dy[M * W], ignored[M * W];
    const uint32_t labels[M] = { 4, 0, 2 };
    for (size_t k = 0; k < M * W; k++) {
        y[k] = 3 * sin((double)k);
        values[k] = cos((double)k);
    }
    const struct {
        sherd__loss loss;
        sherd__targets t;
    } cases[] = { { SHERD__LOSS_SQUARED, { .values = values } },
                  { SHERD__LOSS_SQUARED, { .labels = labels } },
                  { SHERD__LOSS_CROSS_ENTROPY, { .labels = labels } } };
    for (size_t i = 0; i < 3; i++) {
        cost_of(cases[i].loss, y, M, W, cases[i].t, dy);
        for (size_t k = 0; k < M * W; k++) {
            double was = y[k], h = 1e-5;
            y[k] = was + h;
            double up = cost_of(cases[i].loss, y, M, W, cases[i].t, ignored);
            y[k] = was - h;
            double down = cost_of(cases[i].loss, y, M, W, cases[i].t, ignored);
            y[k] = was;
            assert_true(fabs((up - down) / (2 * h) - dy[k]) < 1e-8);
        }
        memcpy(ignored, y, sizeof y); /* in place */
        cost_of(cases[i].loss, ignored, M, W, cases[i].t, ignored);
        assert_memory_equal(ignored, dy, sizeof dy);
    }
}

/* Many rows at once give the same bits as each row alone. */
static void rows_are_independent_of_each_other(void **s)
{
    (void)s;
    enum { M = 200, W = 3 };
    double y[M * W], dy[M * W], one[W], sum = 0;
    uint32_t labels[M];
    for (size_t k = 0; k < M * W; k++) y[k] = 9 * sin((double)k * 1.7);
    for (size_t r = 0; r < M; r++) labels[r] = (uint32_t)(r * r % W);
    double cost = cost_of(SHERD__LOSS_CROSS_ENTROPY, y, M, W, (sherd__targets){ .labels = labels },
                          dy);
    for (size_t r = 0; r < M; r++) {
        sum += cost_of(SHERD__LOSS_CROSS_ENTROPY, y + r * W, 1, W,
                       (sherd__targets){ .labels = labels + r }, one);
        for (size_t j = 0; j < W; j++) assert_true(dy[r * W + j] == one[j] / M);
    }
    assert_true(cost == sum / M);
}

static void large_outputs_have_a_finite_cost(void **s)
{
    (void)s;
    const double y[3] = { 1e6, 0, -1e6 };
    const uint32_t best[1] = { 0 }, worst[1] = { 2 };
    double dy[3];
    double cost = cost_of(SHERD__LOSS_CROSS_ENTROPY, y, 1, 3, (sherd__targets){ .labels = best },
                          dy);
    assert_true(cost == 0);
    assert_true(dy[0] == 0 && dy[1] == 0 && dy[2] == 0);
    cost = cost_of(SHERD__LOSS_CROSS_ENTROPY, y, 1, 3, (sherd__targets){ .labels = worst }, dy);
    assert_true(cost == 2e6);
    assert_true(dy[0] == 1 && dy[1] == 0 && dy[2] == -1);
}

static void impossible_targets_are_refused(void **s)
{
    (void)s;
    const double y[4] = { 1, 2, 3, 4 };
    const uint32_t far[2] = { 1, 2 }, fine[2] = { 0, 1 };
    const struct {
        sherd__loss loss;
        sherd__targets t;
    } cases[] = { { SHERD__LOSS_SQUARED, { .values = NULL } },
                  { SHERD__LOSS_SQUARED, { .values = y, .labels = fine } },
                  { SHERD__LOSS_SQUARED, { .labels = far } },
                  { SHERD__LOSS_CROSS_ENTROPY, { .values = y } },
                  { SHERD__LOSS_CROSS_ENTROPY, { .labels = far } },
                  { (sherd__loss)3, { .labels = fine } } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double cost = 42, dy[4] = { 42, 42, 42, 42 };
        sherd_diag d = { 0 };
        assert_int_equal(sherd__loss_gradient(cases[i].loss, y, 2, 2, cases[i].t, &cost, dy, &d),
                         SHERD_EINVAL);
        assert_true(cost == 42 && dy[0] == 42 && d.code == SHERD_EINVAL);
        if (cases[i].t.labels == far) assert_non_null(strstr(d.message, "example 1"));
    }
}

static void a_hit_is_the_first_of_the_largest_outputs(void **s)
{
    (void)s;
    const double y[15] = { 1, 2, 0, 3, 3, 1, 0, NAN, 1, NAN, 0, 0, -3, -2, -1 };
    const uint32_t a[5] = { 1, 0, 2, 0, 2 }, b[5] = { 0, 1, 1, 1, 0 };
    assert_int_equal(sherd__labels_hit(y, 5, 3, a), 3);
    assert_int_equal(sherd__labels_hit(y, 5, 3, b), 0);
    assert_int_equal(sherd__labels_hit(y, 0, 3, b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_equal_values_computed_by_hand),
        cmocka_unit_test(gradients_equal_differences_of_the_cost),
        cmocka_unit_test(rows_are_independent_of_each_other),
        cmocka_unit_test(large_outputs_have_a_finite_cost),
        cmocka_unit_test(impossible_targets_are_refused),
        cmocka_unit_test(a_hit_is_the_first_of_the_largest_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
