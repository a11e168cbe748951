/*
 * Progress of the forecasts of large operands, which take minutes. A clock that advances by a
 * second with each call makes every report due.
 *
 * link: -Wl,--wrap=clock_gettime
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "sherd/forecast.h"

enum { N = 3000, K = 700, M = 2 }; /* A is scanned in three parts */

static double *a, b[K * M];
static const sherd_forecast_options three = {
    .size = sizeof three, .nodes = 3, .node_memory = 1u << 20, .no_measurements = true
};

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    static time_t now;
    (void)clock;
    *t = (struct timespec){ .tv_sec = ++now };
    return 0;
}

static int set_up(void **s)
{
    (void)s;
    a = calloc((size_t)N * K, sizeof *a); /* nearly all zeros: their places have to be counted */
    if (!a) return -1;
    a[0] = a[N * K - 1] = 1;
    for (int i = 0; i < K * M; i++) b[i] = 1;
    return 0;
}

static int tear_down(void **s)
{
    (void)s;
    free(a);
    return 0;
}

typedef struct watch {
    uint64_t done, total, reports, stop_at;
    bool falls;
} watch;

static bool stop(void *ctx)
{
    const watch *w = ctx;
    return w->stop_at && w->done >= w->stop_at;
}

static void on_progress(void *ctx, const sherd_progress *p)
{
    watch *w = ctx;
    w->falls = w->falls || p->done < w->done || (w->total && p->total != w->total);
    w->done = p->done;
    w->total = p->total;
    w->reports++;
}

static int choices_of(sherd_choices **out, watch *w)
{
    const sherd_product_options o = { .size = sizeof o, .hooks = { stop, NULL, on_progress, w } };
    return sherd_choices_new(out, sherd_view_c(a, SHERD_F64, N, K),
                             sherd_view_c(b, SHERD_F64, K, M), &o, NULL);
}

static void reading_the_operands_counts_bytes_and_can_be_interrupted(void **s)
{
    (void)s;
    watch w = { .done = 0 };
    sherd_choices *c;
    assert_int_equal(choices_of(&c, &w), 0);
    assert_false(w.falls);
    assert_true(w.reports > 2 && w.done == w.total && w.total == 8 * (N * K + K * M));
    sherd_choices_free(c);
    w = (watch){ .stop_at = 1 };
    assert_int_equal(choices_of(&c, &w), SHERD_EINTERRUPTED);
    assert_true(w.done > 0 && w.done < w.total);
    assert_null(c);
}

static void a_forecast_reports_within_a_choice_and_can_be_interrupted_there(void **s)
{
    (void)s;
    watch w = { .done = 0 };
    sherd_choices *c;
    sherd_forecast_options with = three;
    assert_int_equal(choices_of(&c, &w), 0);
    w = (watch){ .done = 0 };
    with.hooks = (sherd_hooks){ stop, NULL, on_progress, &w };
    assert_int_equal(sherd_choices_forecast(c, &with, NULL), 0);
    assert_false(w.falls);
    assert_true(w.done == 600 && w.total == 600 && w.reports > 3 * sherd_choices_count(c));
    w = (watch){ .stop_at = 30 };
    assert_int_equal(sherd_choices_forecast(c, &with, NULL), SHERD_EINTERRUPTED);
    assert_in_range(w.done, 30, 99);
    sherd_choices_free(c);
}

static void a_forecast_of_one_product_reports_its_end(void **s)
{
    (void)s;
    watch w = { .done = 0 };
    sherd_forecast f = { .size = sizeof f };
    sherd_forecast_options with = three;
    const sherd_product_options o = { .size = sizeof o };
    with.hooks = (sherd_hooks){ stop, NULL, on_progress, &w };
    assert_int_equal(sherd_forecast_multiply(sherd_view_c(a, SHERD_F64, N, K),
                                             sherd_view_c(b, SHERD_F64, K, M), &o, &with, &f, NULL),
                     0);
    assert_true(w.reports > 1 && w.done == w.total && w.total > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_the_operands_counts_bytes_and_can_be_interrupted),
        cmocka_unit_test(a_forecast_reports_within_a_choice_and_can_be_interrupted_there),
        cmocka_unit_test(a_forecast_of_one_product_reports_its_end),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
