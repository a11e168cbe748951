/*
 * When a forecast counts panels one by one: only if zeros may be left out of some of them.
 *
 * link: -Wl,--wrap=sherd__traffic_count
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/plan/forecast.h"
#include "sherd/forecast.h"

enum { N = 40, K = 30, M = 20 };

static double a_data[N * K], b_data[K * M];
static bool alike;

int __real_sherd__traffic_count(sherd__traffic *out, const sherd__prepared *p, bool same,
                                const sherd_hooks *hooks);
int __wrap_sherd__traffic_count(sherd__traffic *out, const sherd__prepared *p, bool same,
                                const sherd_hooks *hooks);
int __wrap_sherd__traffic_count(sherd__traffic *out, const sherd__prepared *p, bool same,
                                const sherd_hooks *hooks)
{
    alike = same;
    return __real_sherd__traffic_count(out, p, same, hooks);
}

/* Returns whether the panels were taken to be alike. */
static bool counted_alike(sherd_scheme scheme, bool exact, bool profiled)
{
    sherd_view a = sherd_view_c(a_data, SHERD_F64, N, K), b = sherd_view_c(b_data, SHERD_F64, K, M);
    sherd_product_options o = { .size = sizeof o, .scheme = scheme, .exact = exact };
    const sherd_forecast_options f = { .size = sizeof f, .nodes = 3, .no_time = true };
    sherd_forecast out = { .size = sizeof out };
    if (profiled) assert_int_equal(sherd_profile_new(&o.profile_a, a, NULL), SHERD_OK);
    assert_int_equal(sherd_forecast_multiply(a, b, &o, &f, &out, NULL), SHERD_OK);
    assert_true(out.bytes_out > 0);
    sherd_profile_free(o.profile_a);
    return alike;
}

static void operands_without_zeros_are_not_read_panel_by_panel(void **state)
{
    (void)state;
    for (int i = 0; i < N * K; i++) a_data[i] = 1 + i % 7;
    for (int i = 0; i < K * M; i++) b_data[i] = 1 + i % 5;
    assert_true(counted_alike(SHERD_PERMUTE, false, true));
    assert_true(counted_alike(SHERD_PERMUTE, true, true));
    assert_true(counted_alike(SHERD_PLAIN, true, true));
    assert_false(counted_alike(SHERD_PERMUTE, false, false)); /* not known to have none */
    a_data[77] = 1e-9;
    assert_true(counted_alike(SHERD_PERMUTE, false, true));
    assert_false(counted_alike(SHERD_PERMUTE, true, true)); /* rounded to zero */
    a_data[77] = 0;
    assert_false(counted_alike(SHERD_PERMUTE, false, true));
    assert_false(counted_alike(SHERD_PLAIN, false, true));
}

static void under_private_schemes_sizes_do_not_depend_on_zeros(void **state)
{
    (void)state;
    for (int i = 0; i < N * K; i++) a_data[i] = i % 3;
    assert_true(counted_alike(SHERD_SHARE, true, true));
    assert_true(counted_alike(SHERD_SHARE, true, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_without_zeros_are_not_read_panel_by_panel),
        cmocka_unit_test(under_private_schemes_sizes_do_not_depend_on_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
