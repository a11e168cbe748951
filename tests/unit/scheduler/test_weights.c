/* How work is divided by weights of nodes and by their speeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/alloc.h"
#include "crypto/perm.h"
#include "scheduler/plan/prepare.h"
#include "scheduler/plan/weights.h"
#include "schemes/slots.h"

static const uint8_t key[32] = { 7 };

static void weights_become_small_integers_in_the_same_proportion(void **state)
{
    (void)state;
    static const struct {
        double in[4];
        uint32_t out[4];
    } cases[] = {
        { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } },          { { 3, 3, 3, 3 }, { 1, 1, 1, 1 } },
        { { 1, 0.5, 1, 1 }, { 2, 1, 2, 2 } },        { { 0.1, 0.3, 0.2, 0.4 }, { 1, 3, 2, 4 } },
        { { 600, 1, 600, 300 }, { 60, 1, 60, 30 } },
    };
    for (size_t i = 0; i < 5; i++) {
        uint32_t out[4];
        sherd__weights_round(cases[i].in, 4, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

/* Checks the weights of four nodes with these rates; those of the nodes in the bit set are
 * verified. */
static void expect_weights(const double *rates, unsigned verified, uint32_t len, const double *want)
{
    sherd__speed speeds[6];
    double room[6], out[6];
    for (uint32_t i = 0; i < len; i++) speeds[i] = (sherd__speed){ rates[i], verified >> i & 1 };
    sherd__weights_of_speeds(speeds, len, out, room);
    for (uint32_t i = 0; i < len; i++) assert_float_equal(out[i], want[i], 1e-12);
}

static const double even[] = { 1, 1, 1, 1, 1, 1 };

static void a_slow_node_gets_less_and_one_that_claims_to_be_fast_no_more(void **state)
{
    (void)state;
    static const double same[] = { 10, 8, 9, 7 }, slow[] = { 10, 2, 9, 0 }, two[] = { 1, 4 },
                        half[] = { 1, 1e9, 1, 1e9 }, few[] = { 1, 0, 0, 9 },
                        three[] = { 1, 9, 9, 0, 0, 0 }, liar[] = { 1, 1, 1, 1e9 };
    expect_weights(same, 0, 4, even);
    expect_weights(slow, 0, 4, (double[]){ 1, 2.0 / 9, 1, 1 }); /* 0: unknown */
    expect_weights(two, 0, 2, even);                            /* either may report falsely */
    expect_weights(half, 0, 4, even);
    expect_weights(few, 0, 4, even);
    expect_weights(three, 0, 6, even);
    expect_weights(liar, 0, 4, even);
    expect_weights(liar, 7, 4, even); /* whatever is verified of the others */
}

static void a_node_of_which_it_was_verified_gets_up_to_four_times_as_much(void **state)
{
    (void)state;
    static const double two[] = { 1, 3 }, one[] = { 1, 1, 9, 0.25 }, near[] = { 1, 1.4, 1, 1 },
                        half[] = { 4, 1, 4, 1 }, few[] = { 1, 0, 0, 9 }, slow[] = { 10, 1 };
    expect_weights(two, 3, 2, two);
    expect_weights(two, 1, 2, even); /* of the other one */
    expect_weights(one, 15, 4, (double[]){ 1, 1, 4, 0.25 });
    expect_weights(near, 15, 4, even);
    expect_weights(half, 15, 4, half);
    expect_weights(few, 15, 4, even);
    expect_weights(slow, 3, 2, (double[]){ 4, 1 });
    assert_true(sherd__weights_differ(half, 4) && !sherd__weights_differ(even, 4));
}

static void a_rate_that_was_not_verified_lowers_a_verified_one_only(void **state)
{
    (void)state;
    sherd__speed s = { 0 };
    sherd__speed_learn(&s, 7, false);
    assert_true(s.rate == 7 && !s.verified);
    sherd__speed_learn(&s, 3, true);
    assert_true(s.rate == 3 && s.verified);
    sherd__speed_learn(&s, 100, false);
    assert_true(s.rate == 3 && s.verified);
    sherd__speed_learn(&s, 0.25, false);
    assert_true(s.rate == 0.25 && s.verified);
    sherd__speed_learn(&s, 100, false); /* it is no longer known to be slow, and not to be fast */
    assert_true(s.rate == 100 && !s.verified);
    sherd__speed_learn(&s, 0, true); /* it had no part */
    assert_true(s.rate == 10 && !s.verified);
}

static void a_node_that_delays_a_series_of_jobs_is_found(void **state)
{
    (void)state;
    double room[4], median;
    static const double one[] = { 1, 9, 2, 3 }, few[] = { 0.1, 0.9, 0.2, 0.3 },
                        all[] = { 5, 9, 5, 6 };
    assert_int_equal(sherd__weights_slowest(one, 4, 5, room, &median), 1);
    assert_float_equal(median, 2, 0);
    assert_int_equal(sherd__weights_slowest(one, 4, 4, room, &median), UINT32_MAX);
    assert_int_equal(sherd__weights_slowest(few, 4, 5, room, &median), UINT32_MAX); /* 0.7 s */
    assert_int_equal(sherd__weights_slowest(all, 4, 5, room, &median), UINT32_MAX); /* 9 / 5 */
    assert_int_equal(sherd__weights_slowest(one, 1, 5, room, &median), UINT32_MAX);
}

static void equal_weights_give_the_exposures_of_expo_v1(void **state)
{
    (void)state;
    static const uint32_t ones[] = { 1, 1, 1 };
    uint32_t want[100], out[100];
    for (int balanced = 0; balanced < 2; balanced++) {
        assert_int_equal(sherd__exposures(key, 100, 3, balanced, want), SHERD_OK);
        assert_int_equal(sherd__weights_exposures(key, 100, 3, NULL, balanced, out), SHERD_OK);
        assert_memory_equal(out, want, sizeof out);
        assert_int_equal(sherd__weights_exposures(key, 100, 3, ones, balanced, out), SHERD_OK);
        assert_memory_equal(out, want, sizeof out);
    }
}

static void exposures_are_in_proportion_to_weights(void **state)
{
    (void)state;
    static const uint32_t weights[] = { 3, 1, 2 };
    uint32_t out[6000], six[6000], count[3] = { 0 };
    static const uint32_t node_of[] = { 0, 0, 0, 1, 2, 2 };
    assert_int_equal(sherd__weights_exposures(key, 6000, 3, weights, 1, out), SHERD_OK);
    for (int c = 0; c < 6000; c++) count[out[c]]++;
    assert_true(count[0] == 3000 && count[1] == 1000 && count[2] == 2000);
    assert_int_equal(sherd__weights_exposures(key, 6000, 3, weights, 0, out), SHERD_OK);
    assert_int_equal(sherd__exposures(key, 6000, 6, 0, six), SHERD_OK);
    for (int c = 0; c < 6000; c++) assert_int_equal(out[c], node_of[six[c]]);
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__weights_exposures(key, 6000, 3, weights, 0, out), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
}

static void rows_are_divided_by_weights_without_gaps(void **state)
{
    (void)state;
    static const uint32_t weights[] = { 2, 1, 60, 7 };
    for (size_t n = 0; n < 200; n++) {
        size_t bounds[5], longest = 0;
        sherd__slots_bounds(n, 4, weights, bounds);
        assert_true(bounds[0] == 0 && bounds[4] == n);
        for (int i = 0; i < 4; i++) {
            assert_true(bounds[i] <= bounds[i + 1]);
            double part = (double)n * weights[i] / 70;
            size_t rows = bounds[i + 1] - bounds[i];
            assert_true((double)rows > part - 1 && (double)rows <= part + 1);
            if (rows > longest) longest = rows;
        }
        assert_true(sherd__slots_longest(n, 4, weights) == longest);
        sherd__slots_bounds(n, 4, NULL, bounds); /* the first slots have one row more */
        for (size_t i = 0; i < 4; i++)
            assert_true(bounds[i + 1] - bounds[i] == n / 4 + (i < n % 4));
    }
}

/* ---- products -------------------------------------------------------------------------------- */

static const uint32_t domain[] = { 0, 1, 2 }, by_list[] = { 4, 1, 1 }, by_speed[] = { 1, 4, 4 };
static double a_data[90 * 60], b_data[60 * 4], c_data[90 * 4];

static void plan(const sherd_product_options *opt, const uint32_t *weights, uint32_t out[3])
{
    const sherd__nodes nodes = { .count = 3,
                                 .domain = domain,
                                 .domains = 3,
                                 .memory = 1 << 24,
                                 .weights = weights,
                                 .speeds = { [SHERD__WORK_F64] = by_speed } };
    sherd__prepared p;
    const sherd__matrices m = { sherd_view_c(a_data, SHERD_F64, 90, 60),
                                sherd_view_c(b_data, SHERD_F64, 60, 4), c_data, 4 };
    assert_int_equal(sherd__prepare_multiply(&p, &m, &nodes, opt, NULL), SHERD_OK);
    memcpy(out, p.planned, 3 * sizeof *out);
    sherd__prepared_fini(&p);
}

static sherd_product_options options(sherd_scheme scheme)
{
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.scheme = scheme;
    o.exact = true;
    return o;
}

static void weights_of_the_list_divide_rows_and_columns(void **state)
{
    (void)state;
    uint32_t planned[3];
    sherd_product_options o = options(SHERD_PLAIN);
    plan(&o, by_list, planned);
    assert_true(planned[0] == 60 && planned[1] == 15 && planned[2] == 15);
    o.exact = false; /* with floats as well: the user asked for it */
    plan(&o, by_list, planned);
    assert_true(planned[0] == 60 && planned[1] == 15);
    o = options(SHERD_PERMUTE);
    o.balanced = true;
    plan(&o, by_list, planned);
    assert_true(planned[0] == 40 && planned[1] == 10 && planned[2] == 10);
    o.balanced = false;
    o.seed = key;
    plan(&o, by_list, planned);
    uint32_t expo[60], want[3] = { 0 };
    uint8_t of_expo[32];
    sherd__perm_key(of_expo, key, SHERD__EXPO_LABEL, 0, 0);
    assert_int_equal(sherd__weights_exposures(of_expo, 60, 3, by_list, 0, expo), SHERD_OK);
    for (int c = 0; c < 60; c++) want[expo[c]]++;
    assert_memory_equal(planned, want, sizeof want);
}

static void rows_follow_speeds_in_exact_mode_only(void **state)
{
    (void)state;
    uint32_t planned[3];
    sherd_product_options o = options(SHERD_PLAIN);
    plan(&o, NULL, planned);
    assert_true(planned[0] == 10 && planned[1] == 40 && planned[2] == 40);
    o.exact = false;
    plan(&o, NULL, planned);
    assert_true(planned[0] == 30 && planned[1] == 30 && planned[2] == 30);
}

static int no_rows(void *ctx, size_t row, uint32_t *perm)
{
    (void)ctx;
    (void)row;
    for (uint32_t i = 0; i < 4; i++) perm[i] = i;
    return SHERD_OK;
}

/* A seed, stored tables, `balanced` and a bound determine what each node is given. */
static void exposures_follow_speeds_unless_the_user_has_determined_them(void **state)
{
    (void)state;
    uint32_t planned[3], stored[60], drawn[60], want[3] = { 0 }, sum = 0;
    uint8_t of_expo[32];
    sherd_product_options o = options(SHERD_PERMUTE);
    for (int i = 0; i < 50; i++) { /* 60 columns, 1/9 of them: 333 are expected, 1000 if equal */
        plan(&o, NULL, planned);
        sum += planned[0];
    }
    assert_in_range(sum, 200, 500);
    assert_true(sherd__prepare_follows_speeds(&o));
    o.exposure_max = 0.9;
    assert_false(sherd__prepare_follows_speeds(&o));
    o.exposure_max = 0;
    o.balanced = true;
    plan(&o, NULL, planned);
    assert_true(planned[0] == 20 && planned[1] == 20 && planned[2] == 20);
    o.balanced = false;
    o.seed = key;
    plan(&o, NULL, planned);
    sherd__perm_key(of_expo, key, SHERD__EXPO_LABEL, 0, 0);
    assert_int_equal(sherd__exposures(of_expo, 60, 3, 0, drawn), SHERD_OK);
    for (int c = 0; c < 60; c++) want[drawn[c]]++;
    assert_memory_equal(planned, want, sizeof want);
    assert_false(sherd__prepare_follows_speeds(&o));
    o.seed_drawn = true; /* by the caller, not chosen */
    assert_true(sherd__prepare_follows_speeds(&o));
    plan(&o, NULL, planned);
    memset(want, 0, sizeof want);
    assert_int_equal(sherd__weights_exposures(of_expo, 60, 3, by_speed, 0, drawn), SHERD_OK);
    for (int c = 0; c < 60; c++) want[drawn[c]]++;
    assert_memory_equal(planned, want, sizeof want);
    o.exposure_max = 0.9;
    assert_false(sherd__prepare_follows_speeds(&o));
    o.exposure_max = 0;
    for (uint32_t c = 0; c < 60; c++) stored[c] = c < 7 ? 0 : 1;
    const sherd_shuffles tables = { .size = sizeof tables, .exposures = stored, .perm = no_rows };
    o.seed = NULL;
    o.shuffles = &tables;
    for (int i = 0; i < 2; i++) { /* nor do weights change stored tables */
        plan(&o, i ? by_list : NULL, planned);
        assert_true(planned[0] == 7 && planned[1] == 53 && planned[2] == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_become_small_integers_in_the_same_proportion),
        cmocka_unit_test(a_slow_node_gets_less_and_one_that_claims_to_be_fast_no_more),
        cmocka_unit_test(a_node_of_which_it_was_verified_gets_up_to_four_times_as_much),
        cmocka_unit_test(a_rate_that_was_not_verified_lowers_a_verified_one_only),
        cmocka_unit_test(a_node_that_delays_a_series_of_jobs_is_found),
        cmocka_unit_test(equal_weights_give_the_exposures_of_expo_v1),
        cmocka_unit_test(exposures_are_in_proportion_to_weights),
        cmocka_unit_test(rows_are_divided_by_weights_without_gaps),
        cmocka_unit_test(weights_of_the_list_divide_rows_and_columns),
        cmocka_unit_test(rows_follow_speeds_in_exact_mode_only),
        cmocka_unit_test(exposures_follow_speeds_unless_the_user_has_determined_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
