#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "node/pool.h"

#define MB ((uint64_t)1 << 20)

static sherd__pool *new_pool(uint64_t budget)
{
    sherd__pool *p;
    assert_int_equal(sherd__pool_new(&p, budget), SHERD_OK);
    return p;
}

static void a_request_beyond_the_budget_is_refused_and_counted(void **s)
{
    (void)s;
    sherd__pool *p = new_pool(2 * MB);
    uint8_t *a = sherd__pool_get(p, MB);
    assert_non_null(a);
    assert_null(sherd__pool_get(p, MB)); /* its bookkeeping counts too */
    assert_non_null(a);
    assert_int_equal(sherd__pool_stats_of(p)->refused, 1);
    assert_null(sherd__pool_get(p, UINT64_MAX));
    assert_null(sherd__pool_get(p, UINT64_MAX / 2));
    assert_false(sherd__pool_reserve(p, 2 * MB));
    assert_true(sherd__pool_reserve(p, MB / 2));
    sherd__pool_unreserve(p, MB / 2);
    sherd__pool_give(p, a, MB);
    assert_int_equal(sherd__pool_stats_of(p)->used, 0);
    assert_int_equal(sherd__pool_stats_of(p)->peak, MB + MB / 2 + 512);
    sherd__pool_free(p);
}

static void a_buffer_given_back_comes_again_wiped(void **s)
{
    (void)s;
    sherd__pool *p = new_pool(8 * MB);
    uint8_t *a = sherd__pool_get(p, MB), *b;
    memset(a, 0xAB, MB);
    sherd__pool_give(p, a, MB);
    assert_int_equal(sherd__pool_stats_of(p)->kept, MB + SHERD__POOL_OVERHEAD);
    b = sherd__pool_get(p, MB - 1000); /* the same class of size */
    assert_ptr_equal(a, b);
    for (size_t i = 0; i < MB - 1000; i++) assert_int_equal(b[i], 0);
    assert_int_equal(sherd__pool_stats_of(p)->kept, 0);
    sherd__pool_give(p, b, MB - 1000);
    sherd__pool_free(p);
}

static void a_sole_clients_buffers_are_not_kept_for_the_next_one(void **s)
{
    (void)s;
    sherd__pool *p = new_pool(8 * MB);
    sherd__pool_sole(p, true);
    uint8_t *a = sherd__pool_get(p, MB), *b;
    memset(a, 0xAB, MB);
    sherd__pool_give(p, a, MB);
    b = sherd__pool_get(p, MB);
    assert_ptr_equal(a, b);
    assert_int_equal(b[MB - 1], 0xAB); /* its own bytes: wiping them would be for nothing */
    sherd__pool_give(p, b, MB);
    sherd__pool_sole(p, false);
    assert_int_equal(sherd__pool_stats_of(p)->kept, 0); /* wiped and gone */
    a = sherd__pool_get(p, MB);
    memset(a, 0xCD, MB);
    sherd__pool_give(p, a, MB);
    b = sherd__pool_get(p, MB);
    for (size_t i = 0; i < MB; i++) assert_int_equal(b[i], 0);
    sherd__pool_give(p, b, MB);
    sherd__pool_free(p);
}

static void kept_buffers_make_room_for_other_sizes(void **s)
{
    (void)s;
    sherd__pool *p = new_pool(4 * MB);
    for (int i = 0; i < 3; i++) {
        uint8_t *a = sherd__pool_get(p, MB), *b = sherd__pool_get(p, 2 * MB);
        assert_non_null(a);
        assert_non_null(b);
        sherd__pool_give(p, a, MB);
        sherd__pool_give(p, b, 2 * MB);
        uint8_t *c = sherd__pool_get(p, 3 * MB); /* fits only once both are gone */
        assert_non_null(c);
        sherd__pool_give(p, c, 3 * MB);
    }
    sherd__pool_trim(p);
    assert_int_equal(sherd__pool_stats_of(p)->kept, 0);
    sherd__pool_free(p);
}

static void random_use_never_exceeds_the_budget_nor_overlaps(void **s)
{
    (void)s;
    enum { SLOTS = 64 };
    uint8_t *at[SLOTS] = { NULL };
    uint64_t len[SLOTS] = { 0 }, budget = 300000;
    sherd_entropy_seeded state;
    sherd_entropy rnd = sherd__entropy_seeded(&state, 7);
    sherd__pool *p = new_pool(budget);
    for (int step = 0; step < 20000; step++) {
        size_t i = sherd__entropy_below(&rnd, SLOTS);
        if (at[i]) {
            for (uint64_t k = 0; k < len[i]; k++) assert_int_equal(at[i][k], (uint8_t)i);
            sherd__pool_give(p, at[i], len[i]);
            at[i] = NULL;
        } else {
            len[i] = sherd__entropy_below(&rnd, 20000);
            at[i] = sherd__pool_get(p, len[i]);
            if (at[i]) memset(at[i], (int)i, len[i]);
            assert_int_equal((uintptr_t)at[i] % 64, 0);
        }
        const sherd__pool_stats *st = sherd__pool_stats_of(p);
        assert_true(st->used + st->kept <= budget && st->used <= st->peak);
    }
    assert_true(sherd__pool_stats_of(p)->refused > 0);
    for (size_t i = 0; i < SLOTS; i++) sherd__pool_give(p, at[i], len[i]);
    assert_int_equal(sherd__pool_stats_of(p)->used, 0);
    sherd__pool_free(p);
}

static void an_empty_buffer_is_a_buffer(void **s)
{
    (void)s;
    sherd__pool *p = new_pool(MB);
    uint8_t *a = sherd__pool_get(p, 0), *b = sherd__pool_get(p, 0);
    assert_non_null(a);
    assert_ptr_not_equal(a, b);
    sherd__pool_give(p, a, 0);
    sherd__pool_give(p, b, 0);
    sherd__pool_free(p);
}

static void a_failed_allocation_costs_no_budget(void **s)
{
    (void)s;
    sherd__pool *p = new_pool(MB);
    sherd__alloc_fail_nth(1);
    assert_null(sherd__pool_get(p, 1000));
    sherd__alloc_fail_nth(0);
    assert_int_equal(sherd__pool_stats_of(p)->used, 0);
    sherd__pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_beyond_the_budget_is_refused_and_counted),
        cmocka_unit_test(a_buffer_given_back_comes_again_wiped),
        cmocka_unit_test(a_sole_clients_buffers_are_not_kept_for_the_next_one),
        cmocka_unit_test(kept_buffers_make_room_for_other_sizes),
        cmocka_unit_test(random_use_never_exceeds_the_budget_nor_overlaps),
        cmocka_unit_test(an_empty_buffer_is_a_buffer),
        cmocka_unit_test(a_failed_allocation_costs_no_budget),
    };
    return cmocka_run_group_tests_name("node/pool", tests, NULL, NULL);
}
