/* The runner's turns, and figures: medians, ratios of series, and that a target judges the median
 * and from the right side. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "core/alloc.h"

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
        for (int i = n - 1; i > 0; i--) { /* some order, the same every time */
            int j = (i * 7919 + n * 104729) % (i + 1);
            double was = v[i];
            v[i] = v[j];
            v[j] = was;
        }
        assert_true(sherd__median(v, n) == (n - 1) / 2.0);
    }
}

/* ---- figures --------------------------------------------------------------------------------- */

static sherd__bench bench;

static sherd__bench *begin(void)
{
    json_decref(bench.figures);
    bench = (sherd__bench){ .figures = json_array() };
    return &bench;
}

static int end(void **state)
{
    (void)state;
    json_decref(bench.figures);
    return 0;
}

static void put(sherd__bench *b, const char *name, double x, double y, double z)
{
    sherd__bench_put(b, name, x);
    sherd__bench_put(b, name, y);
    sherd__bench_put(b, name, z);
}

static const json_t *told(sherd__bench *b, const sherd__figure *f)
{
    sherd__bench_report(b, f);
    return json_array_get(b->figures, json_array_size(b->figures) - 1);
}

static double number(const json_t *o, const char *key)
{
    assert_true(json_is_real(json_object_get(o, key)));
    return json_real_value(json_object_get(o, key));
}

static void a_target_is_compared_in_its_own_direction(void **state)
{
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
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sherd__figure f = { .name = "x",
                                  .what = "x",
                                  .unit = "x",
                                  .better = cases[i].better,
                                  .target = 10,
                                  .of = { .num = "s" } };
        put(begin(), "s", cases[i].a, cases[i].b, cases[i].c);
        const json_t *o = told(&bench, &f);
        assert_true(json_is_boolean(json_object_get(o, "reached")));
        assert_int_equal(json_boolean_value(json_object_get(o, "reached")), cases[i].reached);
        assert_true(number(o, "median") == cases[i].c);
        assert_true(number(o, "min") == 1 && number(o, "max") == 99);
        assert_true(json_real_value(json_array_get(json_object_get(o, "runs"), 1)) == 99);
    }
}

static const double *runs_of(const json_t *o)
{
    static double runs[3];
    const json_t *list = json_object_get(o, "runs");
    assert_int_equal(json_array_size(list), 3);
    for (size_t i = 0; i < 3; i++) runs[i] = json_real_value(json_array_get(list, i));
    return runs;
}

static void a_figure_is_a_ratio_of_series_run_by_run_or_of_a_median(void **state)
{
    sherd__figure f = { .name = "x",
                        .what = "x",
                        .unit = "x",
                        .target = 2.6,
                        .of = { .num = "ours", "theirs", 10 },
                        .beside = { { "a", "a", "s", { .num = "ours", "theirs", .worst = true } },
                                    { "b", "b", "s", { .num = "theirs", NULL, 1e3 } },
                                    { "c", "c", "s", { .num = "absent" } } } };
    (void)state;
    put(begin(), "ours", 2, 12, 9);
    put(&bench, "theirs", 1, 3, 2);
    const json_t *o = told(&bench, &f), *beside = json_object_get(o, "beside");
    assert_true(runs_of(o)[0] == 20 && runs_of(o)[1] == 40 && runs_of(o)[2] == 45);
    assert_true(number(o, "median") == 40);
    assert_true(number(beside, "a") == 6 && number(beside, "b") == 2000); /* 12 / 2, 1e3 * 2 */
    assert_null(json_object_get(beside, "c"));
    f.medians = true; /* 9 / 2 */
    assert_true(number(told(&bench, &f), "median") == 45);
    f.of.of_median = true;
    o = told(&bench, &f);
    assert_true(runs_of(o)[0] == 10 && runs_of(o)[1] == 60 && runs_of(o)[2] == 45);
}

static void of_a_series_and_its_alternative_the_faster_counts(void **state)
{
    const sherd__figure f = {
        .name = "x", .what = "x", .unit = "x", .of = { .num = "ours", "numpy" }, .medians = true
    };
    (void)state;
    put(begin(), "ours", 1, 1, 1);
    put(&bench, "numpy", 4, 5, 9);
    put(&bench, "numpy.one", 2, 4, 8);
    const json_t *o = told(&bench, &f);
    assert_true(number(o, "median") == 0.25 && runs_of(o)[0] == 0.5);
    put(&bench, "numpy", 1, 1, 1);
    assert_true(number(told(&bench, &f), "median") > 0.25);
}

static void without_values_or_with_quick_no_target_is_judged(void **state)
{
    const sherd__figure f = { .name = "x",
                              .what = "x",
                              .what_quick = "q",
                              .unit = "x",
                              .target = 10,
                              .of = { .num = "s", "numpy" },
                              .remark = "r" };
    (void)state;
    put(begin(), "s", 1, 2, 3);
    bench.without_numpy = true;
    const json_t *o = told(&bench, &f);
    assert_true(json_is_null(json_object_get(o, "reached")));
    assert_null(json_object_get(o, "median"));
    assert_int_equal(json_array_size(json_object_get(o, "runs")), 0);
    assert_non_null(strstr(json_string_value(json_object_get(o, "remark")), "no numpy"));
    put(&bench, "numpy", 1, 1, 1);
    assert_string_equal(json_string_value(json_object_get(told(&bench, &f), "remark")), "r");
    bench.quick = true;
    o = told(&bench, &f);
    assert_true(json_is_null(json_object_get(o, "reached")));
    assert_string_equal(json_string_value(json_object_get(o, "what")), "q");
}

static void a_figure_without_a_target_is_not_judged(void **state)
{
    const sherd__figure f = { .name = "x", .what = "x", .unit = "x", .of = { .num = "s" } };
    (void)state;
    put(begin(), "s", 1, 2, 3);
    const json_t *o = told(&bench, &f);
    assert_true(json_is_null(json_object_get(o, "target")));
    assert_true(json_is_null(json_object_get(o, "reached")));
    assert_true(number(o, "median") == 2);
}

static void numbers_beyond_the_maximum_of_a_series_are_dropped(void **state)
{
    const sherd__figure f = { .name = "x", .what = "x", .unit = "x", .of = { .num = "s" } };
    (void)state;
    begin();
    for (int i = 0; i < 3 * SHERD__BENCH_RUNS_MAX; i++) sherd__bench_put(&bench, "s", i);
    assert_true(number(told(&bench, &f), "max") == SHERD__BENCH_RUNS_MAX - 1);
    sherd__bench_set(&bench, "s", 7);
    assert_true(number(told(&bench, &f), "max") == 7);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static int opened, turns, ended, closed, fail_at;

static int open_fake(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    (void)b;
    (void)d;
    assert_true(*(int *)state == 0 && spec == &opened);
    *(int *)state = 1;
    opened++;
    return 0;
}

static int turn_fake(sherd__bench *b, void *state, sherd_diag *d)
{
    (void)d;
    assert_int_equal(*(int *)state, 1);
    sherd__bench_put(b, "turn", ++turns);
    return turns == fail_at ? SHERD_EDIFFERS : 0;
}

static int end_fake(sherd__bench *b, void *state, sherd_diag *d)
{
    (void)state;
    (void)d;
    sherd__bench_put(b, "end", 1);
    ended++;
    return 0;
}

static void close_fake(void *state)
{
    assert_int_equal(*(int *)state, 1);
    closed++;
}

static const sherd__kind warm = { sizeof(int), open_fake, turn_fake, end_fake,
                                  close_fake,  false,     false },
                         cold = { sizeof(int), open_fake, turn_fake, end_fake,
                                  close_fake,  true,      false },
                         whole = {
                             sizeof(int), open_fake, turn_fake, NULL, close_fake, true, true
                         };

static size_t measured(const sherd__kind *kind, int err)
{
    const sherd__measurement m = {
        "x",
        "x",
        kind,
        &opened,
        5,
        1,
        { { "x", "x", NULL, "x", SHERD__LOWER, 1, { .num = "turn" }, .medians = false } },
        false
    };
    opened = turns = ended = closed = 0;
    assert_int_equal(sherd__bench_measure(&bench, &m, NULL), err);
    assert_true(opened == 1 && closed == 1);
    size_t figures = json_array_size(bench.figures);
    const json_t *o = json_array_get(bench.figures, figures - 1);
    return err ? figures : json_array_size(json_object_get(o, "runs"));
}

static void the_first_turn_warms_up_and_is_not_counted(void **state)
{
    (void)state;
    fail_at = 0;
    begin();
    assert_true(measured(&warm, 0) == 5 && turns == 6 && ended == 1);
    assert_true(number(json_array_get(bench.figures, 0), "min") == 2);
    assert_true(measured(&cold, 0) == 5 && turns == 5);
    assert_true(measured(&whole, 0) == 1 && turns == 1 && bench.turns == 5);
    bench.quick = true;
    assert_true(measured(&warm, 0) == 1 && turns == 2);
    bench.runs = 7;
    assert_true(measured(&warm, 0) == 7 && turns == 8);
}

static void a_measurement_that_fails_has_no_figure_and_is_closed(void **state)
{
    (void)state;
    begin();
    fail_at = 3;
    assert_true(measured(&warm, SHERD_EDIFFERS) == 0 && turns == 3 && ended == 0);
    fail_at = 0;
    sherd__alloc_fail_nth(1);
    const sherd__measurement m = { .name = "x", .kind = &warm, .spec = &opened, .runs = 1 };
    opened = 0;
    assert_int_equal(sherd__bench_measure(&bench, &m, NULL), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
    assert_int_equal(opened, 0);
}

static void the_list_of_names_is_that_of_the_table(void **state)
{
    char names[2000] = "";
    (void)state;
    for (size_t i = 0; i < sherd__measurements_len; i++) {
        const char *name = sherd__measurements[i].name;
        if (i > 0 && strcmp(name, sherd__measurements[i - 1].name) == 0) continue;
        if (i > 0) snprintf(names + strlen(names), sizeof names - strlen(names), ", ");
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s", name);
        assert_true(sherd__measurements[i].figures[0].name && sherd__measurements[i].title);
    }
    assert_string_equal(names, SHERD__MEASUREMENTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_median_is_the_middle_value),
        cmocka_unit_test(the_median_does_not_depend_on_the_order_of_values),
        cmocka_unit_test(a_target_is_compared_in_its_own_direction),
        cmocka_unit_test(a_figure_is_a_ratio_of_series_run_by_run_or_of_a_median),
        cmocka_unit_test(of_a_series_and_its_alternative_the_faster_counts),
        cmocka_unit_test(without_values_or_with_quick_no_target_is_judged),
        cmocka_unit_test(a_figure_without_a_target_is_not_judged),
        cmocka_unit_test(numbers_beyond_the_maximum_of_a_series_are_dropped),
        cmocka_unit_test(the_first_turn_warms_up_and_is_not_counted),
        cmocka_unit_test(a_measurement_that_fails_has_no_figure_and_is_closed),
        cmocka_unit_test(the_list_of_names_is_that_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
