/* Figures: medians, and the comparison of a median with a target. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/bench.h"

static void the_median_is_the_middle_value(void **state)
{
    double one[] = { 3 }, odd[] = { 9, -1, 4 }, even[] = { 8, 1, 2, 4 },
           equal[] = { 2, 2, 2, 2, 7 };
    (void)state;
    assert_true(sherd__median(one, 1) == 3);
    assert_true(sherd__median(odd, 3) == 4);
    assert_true(sherd__median(even, 4) == 3);
    assert_true(sherd__median(equal, 5) == 2);
    assert_true(sherd__median(NULL, 0) == 0);
}

static void the_median_does_not_depend_on_the_order_of_values(void **state)
{
    (void)state;
    for (int n = 1; n <= SHERD__BENCH_RUNS_MAX; n++) {
        double v[SHERD__BENCH_RUNS_MAX];
        for (int i = 0; i < n; i++) v[i] = i;
        for (int i = n - 1; i > 0; i--) { /* a fixed permutation */
            int j = (i * 7919 + n * 104729) % (i + 1);
            double was = v[i];
            v[i] = v[j];
            v[j] = was;
        }
        assert_true(sherd__median(v, n) == (n - 1) / 2.0);
    }
}

static const json_t *told(sherd__bench *b, const sherd__figure *f)
{
    sherd__bench_tell(b, f);
    return json_array_get(b->figures, json_array_size(b->figures) - 1);
}

static sherd__figure figure(sherd__better better, double target, double a, double c, double e)
{
    sherd__figure f = { .name = "x", .what = "x", .unit = "x", .better = better, .target = target };
    sherd__figure_add(&f, a);
    sherd__figure_add(&f, c);
    sherd__figure_add(&f, e);
    return f;
}

static void a_target_is_compared_in_its_own_direction(void **state)
{
    sherd__bench b = { .figures = json_array() };
    (void)state;
    static const struct {
        sherd__better better;
        double a, b, c;
        bool reached;
    } cases[] = {
        { SHERD__LOWER, 1, 99, 10, true },
        { SHERD__LOWER, 1, 99, 10.1, false },
        { SHERD__HIGHER, 1, 99, 10, true },
        { SHERD__HIGHER, 1, 99, 9.9, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd__figure f = figure(cases[i].better, 10, cases[i].a, cases[i].b, cases[i].c);
        const json_t *o = told(&b, &f);
        assert_true(json_is_boolean(json_object_get(o, "reached")));
        assert_int_equal(json_boolean_value(json_object_get(o, "reached")), cases[i].reached);
        assert_true(json_real_value(json_object_get(o, "median")) == cases[i].c);
        assert_true(json_real_value(json_object_get(o, "min")) == 1);
        assert_true(json_real_value(json_object_get(o, "max")) == 99);
        assert_true(json_real_value(json_array_get(json_object_get(o, "runs"), 1)) == 99);
    }
    json_decref(b.figures);
}

static void a_given_ratio_of_medians_replaces_the_median_of_ratios(void **state)
{
    sherd__bench b = { .figures = json_array() };
    sherd__figure f = figure(SHERD__LOWER, 2.6, 1, 2, 3);
    (void)state;
    f.median = 2.7;
    const json_t *o = told(&b, &f);
    assert_true(json_real_value(json_object_get(o, "median")) == 2.7);
    assert_false(json_boolean_value(json_object_get(o, "reached")));
    json_decref(b.figures);
}

static void without_values_or_with_quick_no_target_is_judged(void **state)
{
    sherd__bench b = { .figures = json_array() };
    sherd__figure none = {
        .name = "x", .what = "x", .unit = "x", .target = 1, .remark = "no numpy"
    };
    sherd__figure some = figure(SHERD__LOWER, 10, 1, 2, 3);
    (void)state;
    const json_t *o = told(&b, &none);
    assert_true(json_is_null(json_object_get(o, "reached")));
    assert_null(json_object_get(o, "median"));
    assert_string_equal(json_string_value(json_object_get(o, "remark")), "no numpy");
    b.quick = true;
    assert_true(json_is_null(json_object_get(told(&b, &some), "reached")));
    json_decref(b.figures);
}

static void values_and_numbers_beyond_the_maximum_are_dropped(void **state)
{
    static sherd__figure f;
    (void)state;
    for (int i = 0; i < 3 * SHERD__BENCH_RUNS_MAX; i++) sherd__figure_add(&f, i);
    for (int i = 0; i < 3 * SHERD__BESIDE_MAX; i++) sherd__figure_beside(&f, "x", "x", i, "x");
    assert_int_equal(f.len, SHERD__BENCH_RUNS_MAX);
    assert_int_equal(f.beside_len, SHERD__BESIDE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_median_is_the_middle_value),
        cmocka_unit_test(the_median_does_not_depend_on_the_order_of_values),
        cmocka_unit_test(a_target_is_compared_in_its_own_direction),
        cmocka_unit_test(a_given_ratio_of_medians_replaces_the_median_of_ratios),
        cmocka_unit_test(without_values_or_with_quick_no_target_is_judged),
        cmocka_unit_test(values_and_numbers_beyond_the_maximum_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
