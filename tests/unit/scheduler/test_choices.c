/* The choices for a product, and their forecasts, through the public header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "sherd/forecast.h"
#include "tests/support/under_valgrind.h"

enum { N = 60, K = 50, M = 40 };

static double a[N * K], b[K * M];
static const sherd_forecast_options three = {
    .size = sizeof three, .nodes = 3, .node_memory = 1u << 26, .no_measurements = true
};

static sherd_view va(void)
{
    return sherd_view_c(a, SHERD_F64, N, K);
}

static sherd_view vb(void)
{
    return sherd_view_c(b, SHERD_F64, K, M);
}

static int set_up(void **s)
{
    (void)s;
    for (int i = 0; i < N * K; i++) a[i] = i % 7;
    for (int i = 0; i < K * M; i++) b[i] = i % 5 - 2;
    return 0;
}

static sherd_choices *choices_of(const sherd_product_options *o)
{
    sherd_choices *c;
    sherd_diag d = { 0 };
    if (sherd_choices_new(&c, va(), vb(), o, &d)) fail_msg("%s", d.message);
    return c;
}

static void every_scheme_is_listed_with_its_groups(void **s)
{
    (void)s;
    static const char *const names[] = {
        "permute, all", "permute, 16",        "permute, 1",
        "plain",        "share, 2 colluding", "share1, 2 colluding"
    };
    const sherd_product_options o = { .size = sizeof o, .colluding = 2 };
    sherd_choices *c = choices_of(&o);
    assert_int_equal(sherd_choices_count(c), 6);
    for (size_t i = 0; i < 6; i++) {
        const sherd_product_options *one = sherd_choices_options(c, i);
        assert_string_equal(sherd_choices_name(c, i), names[i]);
        assert_int_equal(one->exact, i > 3);
        assert_true(one->seed == sherd_choices_options(c, 0)->seed && one->seed);
    }
    assert_int_equal(sherd_choices_options(c, 1)->group, 16);
    assert_null(sherd_choices_name(c, 6));
    assert_null(sherd_choices_options(c, 6));
    sherd_choices_free(c);
    sherd_choices_free(NULL);
}

static void the_preferred_choice_comes_first_and_once(void **s)
{
    (void)s;
    sherd_product_options o = { .size = sizeof o, .scheme = SHERD_PERMUTE, .group = 16 };
    sherd_choices *c = choices_of(&o);
    assert_int_equal(sherd_choices_count(c), 6);
    assert_string_equal(sherd_choices_name(c, 0), "permute, 16");
    assert_string_equal(sherd_choices_name(c, 1), "permute, all");
    sherd_choices_free(c);
    o.group = 7;
    c = choices_of(&o);
    assert_int_equal(sherd_choices_count(c), 7);
    assert_string_equal(sherd_choices_name(c, 0), "permute, 7");
    sherd_choices_free(c);
}

static void forecasts_are_those_of_one_product_each(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o };
    sherd_choices *c = choices_of(&o);
    sherd_forecast f = { .size = sizeof f }, alone = { .size = sizeof alone };
    sherd_diag d = { 0 };
    assert_int_equal(sherd_choices_at(c, 0, &f, &d), SHERD_EINVAL); /* no forecast yet */
    if (sherd_choices_forecast(c, &three, &d)) fail_msg("%s", d.message);
    for (size_t i = 0; i < sherd_choices_count(c); i++) {
        assert_int_equal(sherd_choices_at(c, i, &f, NULL), 0);
        assert_int_equal(sherd_forecast_multiply(va(), vb(), sherd_choices_options(c, i), &three,
                                                 &alone, NULL),
                         0);
        assert_true(f.scheme == alone.scheme && f.bytes_out == alone.bytes_out &&
                    f.bytes_in == alone.bytes_in && f.exposure_a == alone.exposure_a);
        assert_true(f.seconds > 0 && *f.bound);
    }
    assert_int_equal(sherd_choices_at(c, 6, &f, NULL), SHERD_EINVAL);
    sherd_choices_free(c);
}

/* Two nodes are too few for share; one operand is too wide for it. */
static void an_impossible_choice_has_its_reason_and_others_stay(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o, .name_a = "a.npy" };
    sherd_forecast_options two = three;
    sherd_forecast f = { .size = sizeof f };
    sherd_diag d = { 0 };
    two.nodes = 2;
    sherd_choices *c = choices_of(&o);
    assert_int_equal(sherd_choices_forecast(c, &two, NULL), 0);
    assert_int_equal(sherd_choices_at(c, 3, &f, NULL), 0);
    assert_int_equal(sherd_choices_at(c, 4, &f, &d), SHERD_EFEWNODES);
    assert_non_null(strstr(d.message, "--scheme share with --colluding 1 and --spare 0 needs 3"));
    assert_int_equal(sherd_choices_at(c, 5, &f, NULL), 0);
    assert_int_equal(sherd_choices_forecast(c, &three, NULL), 0); /* again, with more */
    assert_int_equal(sherd_choices_at(c, 4, &f, NULL), 0);
    sherd_choices_free(c);

    a[3] = NAN; /* floats have it, fixed point has not */
    c = choices_of(&o);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_choices_forecast(c, &three, NULL), 0);
    assert_int_equal(sherd_choices_at(c, 4, &f, &d), SHERD_ERANGE);
    assert_string_equal(d.message, "a.npy: row 0, column 3 is NaN: fixed point has no such value");
    sherd_choices_free(c);
    a[3] = 3;
}

static void a_request_that_no_choice_supports_fails(void **s)
{
    (void)s;
    sherd_product_options o = { .size = sizeof o, .exact = true };
    sherd_choices *c = (sherd_choices *)&c;
    sherd_diag d = { 0 };
    a[3] = NAN;
    assert_int_equal(sherd_choices_new(&c, va(), vb(), &o, &d), SHERD_ERANGE);
    assert_null(c);
    assert_string_equal(d.message, "A: row 0, column 3 is NaN: fixed point has no such value");
    o.exact = false;
    o.scheme = SHERD_SHARE; /* preferred: others do not count */
    assert_int_equal(sherd_choices_new(&c, va(), vb(), &o, NULL), SHERD_ERANGE);
    a[3] = 3;
    c = choices_of(&o);
    sherd_forecast_options with = three;
    with.nodes = 2;
    assert_int_equal(sherd_choices_forecast(c, &with, NULL), SHERD_EFEWNODES);
    with.nodes = 0;
    assert_int_equal(sherd_choices_forecast(c, &with, NULL), SHERD_EFEWNODES);
    sherd_choices_free(c);
}

/* A result of 40000 x 40000 is not allocated for measurements. A part of it is measured. */
static void a_large_result_has_times_that_are_scaled_from_a_part(void **s)
{
    (void)s;
    const sherd_view tall = { .rows = 40000, .cols = 4, .dtype = SHERD_F64 },
                     wide = { .rows = 4, .cols = 40000, .dtype = SHERD_F64 };
    const sherd_product_options o = { .size = sizeof o };
    sherd_forecast f = { .size = sizeof f };
    sherd_choices *c;
    assert_int_equal(sherd_choices_new(&c, tall, wide, &o, NULL), 0);
    sherd_forecast_options with = three;
    with.no_measurements = under_valgrind(); /* test_forecast measures */
    assert_int_equal(sherd_choices_forecast(c, &with, NULL), 0);
    assert_int_equal(sherd_choices_at(c, 3, &f, NULL), 0);
    assert_true(f.bytes_in > UINT64_C(40000) * 40000 * 8 && f.seconds > 0 && *f.bound);
    assert_true(with.no_measurements || (f.own_seconds > 0 && f.seconds_here > 0));
    assert_int_equal(sherd_choices_forecast(c, &three, NULL), 0);
    assert_int_equal(sherd_choices_at(c, 3, &f, NULL), 0);
    assert_true(f.bytes_in > UINT64_C(40000) * 40000 * 8 && f.seconds > 0);
    sherd_choices_free(c);
}

typedef struct watch {
    unsigned calls, stop_after;
    uint64_t done, total;
} watch;

static bool stop(void *ctx)
{
    watch *w = ctx;
    return ++w->calls > w->stop_after;
}

static void on_progress(void *ctx, const sherd_progress *p)
{
    watch *w = ctx;
    w->done = p->done;
    w->total = p->total;
}

static void forecasting_reports_progress_and_can_be_interrupted(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o };
    watch w = { .stop_after = 100 };
    sherd_forecast_options with = three;
    with.hooks = (sherd_hooks){ stop, NULL, on_progress, &w };
    sherd_choices *c = choices_of(&o);
    assert_int_equal(sherd_choices_forecast(c, &with, NULL), 0);
    assert_true(w.calls > 6 && w.done == 600 && w.total == 600);
    w = (watch){ .stop_after = 2 };
    assert_int_equal(sherd_choices_forecast(c, &with, NULL), SHERD_EINTERRUPTED);
    assert_int_equal(w.calls, 3);
    sherd_choices_free(c);
}

static void every_failed_allocation_of_a_list_is_reported(void **s)
{
    (void)s;
    const sherd_product_options o = { .size = sizeof o };
    int err = SHERD_ENOMEM;
    for (size_t nth = 1; err; nth++) {
        sherd_choices *c;
        sherd__alloc_fail_nth(nth);
        err = sherd_choices_new(&c, va(), vb(), &o, NULL);
        sherd__alloc_fail_nth(0);
        if (err) assert_true(err == SHERD_ENOMEM && !c);
        else sherd_choices_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scheme_is_listed_with_its_groups),
        cmocka_unit_test(the_preferred_choice_comes_first_and_once),
        cmocka_unit_test(forecasts_are_those_of_one_product_each),
        cmocka_unit_test(an_impossible_choice_has_its_reason_and_others_stay),
        cmocka_unit_test(a_request_that_no_choice_supports_fails),
        cmocka_unit_test(a_large_result_has_times_that_are_scaled_from_a_part),
        cmocka_unit_test(forecasting_reports_progress_and_can_be_interrupted),
        cmocka_unit_test(every_failed_allocation_of_a_list_is_reported),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
