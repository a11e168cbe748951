/* The account compared with a plain table of entries, for random ranges; failures leave it
 * unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "scheduler/plan/exposure.h"

#define DOMAINS 3u
#define PARTS 2u
#define LONG 60u

static void random_ranges_agree_with_a_plain_table_of_entries(void **state)
{
    (void)state;
    sherd__seeded rng_state;
    sherd__entropy rng = sherd__entropy_seeded(&rng_state, 3);
    for (unsigned round = 0; round < 200; round++) {
        static uint8_t table[SHERD__SIDES][DOMAINS][PARTS][LONG];
        sherd__exposure_account *a;
        memset(table, 0, sizeof table);
        assert_int_equal(sherd__exposure_account_new(&a, DOMAINS, PARTS), SHERD_OK);
        for (unsigned i = 0; i < 60; i++) {
            unsigned side = (unsigned)sherd__entropy_below(&rng, SHERD__SIDES);
            uint32_t d = (uint32_t)sherd__entropy_below(&rng, DOMAINS);
            uint32_t part = (uint32_t)sherd__entropy_below(&rng, PARTS);
            uint64_t from = sherd__entropy_below(&rng, LONG);
            uint64_t to = from + sherd__entropy_below(&rng, 12);
            uint64_t fresh = 0, seen = 0;
            if (to > LONG) to = LONG;
            for (uint64_t e = from; e < to; e++) fresh += !table[side][d][part][e];
            assert_int_equal(sherd__exposure_account_unseen(a, side, d, part, from, to), fresh);
            assert_int_equal(sherd__exposure_account_show(a, side, d, part, from, to), SHERD_OK);
            assert_int_equal(sherd__exposure_account_unseen(a, side, d, part, from, to), 0);
            for (uint64_t e = from; e < to; e++) table[side][d][part][e] = 1;
            for (unsigned s = 0; s < SHERD__SIDES; s++)
                for (unsigned p = 0; p < PARTS; p++)
                    for (unsigned e = 0; e < LONG; e++) seen += table[s][d][p][e];
            assert_int_equal(sherd__exposure_account_seen(a, d), seen);
        }
        sherd__exposure_account_free(a);
    }
    sherd__exposure_account_free(NULL);
}

static void plans_of_both_sides_add_up_and_the_last_plan_of_a_side_counts(void **state)
{
    (void)state;
    sherd__exposure_account *a;
    assert_int_equal(sherd__exposure_account_new(&a, DOMAINS, PARTS), SHERD_OK);
    sherd__exposure_account_plan(a, 0, 1, 0.5);
    sherd__exposure_account_plan(a, 0, 1, 0.25);
    assert_true(sherd__exposure_account_planned(a, 1) == 0.25 &&
                sherd__exposure_account_planned(a, 0) == 0);
    sherd__exposure_account_plan(a, 1, 1, 0.5);
    assert_true(sherd__exposure_account_planned(a, 1) == 0.75);
    sherd__exposure_account_plan(a, 0, 1, 1);
    assert_true(sherd__exposure_account_planned(a, 1) == 1); /* at most all of it */
    sherd__exposure_account_unplan(a, 0);
    assert_true(sherd__exposure_account_planned(a, 1) == 0.5);
    sherd__exposure_account_free(a);
}

static void an_exposure_that_cannot_be_recorded_is_refused(void **state)
{
    (void)state;
    sherd__exposure_account *a;
    int err = SHERD_ENOMEM;
    for (size_t n = 1; err; n++) {
        (void)sherd__alloc_fail_nth(n);
        err = sherd__exposure_account_new(&a, DOMAINS, PARTS);
        (void)sherd__alloc_fail_nth(0);
        assert_true(err ? !a : a != NULL);
        assert_true(n < 20);
    }
    for (uint64_t e = 0; e < 8; e++) { /* every second entry, so that the list grows */
        (void)sherd__alloc_fail_nth(1);
        err = sherd__exposure_account_show(a, 1, 2, 1, 2 * e, 2 * e + 1);
        (void)sherd__alloc_fail_nth(0);
        if (err) {
            assert_int_equal(sherd__exposure_account_seen(a, 2), e);
            assert_int_equal(sherd__exposure_account_unseen(a, 1, 2, 1, 0, 16), 16 - e);
            assert_int_equal(sherd__exposure_account_show(a, 1, 2, 1, 2 * e, 2 * e + 1), SHERD_OK);
        }
        assert_int_equal(sherd__exposure_account_seen(a, 2), e + 1);
    }
    sherd__exposure_account_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_ranges_agree_with_a_plain_table_of_entries),
        cmocka_unit_test(plans_of_both_sides_add_up_and_the_last_plan_of_a_side_counts),
        cmocka_unit_test(an_exposure_that_cannot_be_recorded_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
