/* The table of grouped entries compared with a plain table, its memory, and names that collide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sodium.h>
#include <string.h>

#include "core/alloc.h"
#include "core/grouped.h"

enum { JOBS = 4, NUMBERS = 300 };

typedef struct thing {
    sherd__grouped_item item;
    uint64_t job, number;
    bool in, given_up;
} thing;

static uint64_t counted;
static uint64_t room = UINT64_MAX;

static bool take(void *ctx, uint64_t len)
{
    (void)ctx;
    if (len > room - counted) return false;
    counted += len;
    return true;
}

static void give(void *ctx, uint64_t len)
{
    (void)ctx;
    assert_true(len <= counted);
    counted -= len;
}

static void random_changes_agree_with_a_plain_table(void **state)
{
    (void)state;
    static thing all[JOBS][NUMBERS];
    sherd__seeded seeded;
    sherd__entropy e = sherd__entropy_seeded(&seeded, 5);
    sherd__grouped g = { .budget = { take, give, NULL } };
    size_t len = 0, waiting = 0;
    sherd__table_key_draw(&g.key, &e);
    for (int step = 0; step < 60000; step++) {
        uint64_t j = sherd__entropy_below(&e, JOBS), n = sherd__entropy_below(&e, NUMBERS);
        thing *t = &all[j][n];
        uint64_t what = sherd__entropy_below(&e, 1000);
        if (what == 0) {
            size_t mine = 0;
            for (size_t i = 0; i < NUMBERS; i++) {
                mine += all[j][i].in;
                all[j][i].given_up |= all[j][i].in;
                all[j][i].in = false;
            }
            assert_int_equal(sherd__grouped_give_up(&g, j), mine);
            assert_null(sherd__grouped_first(&g, j));
            len -= mine;
            waiting += mine;
        } else if (what < 300) {
            thing *old = (thing *)(void *)sherd__grouped_given_up(&g);
            assert_int_equal(old != NULL, waiting > 0);
            if (!old) continue;
            assert_true(old->given_up && sherd__grouped_is_given_up(&g, &old->item));
            old->given_up = false;
            sherd__grouped_remove(&g, &old->item);
            waiting--;
        } else if (!t->given_up) {
            assert_ptr_equal(sherd__grouped_find(&g, j, n), t->in ? &t->item : NULL);
            if (t->in) sherd__grouped_remove(&g, &t->item);
            else assert_int_equal(sherd__grouped_add(&g, &t->item, j, n), SHERD_OK);
            len += t->in ? (size_t)-1 : 1;
            t->in = !t->in;
        }
        assert_int_equal(g.len, len);
        assert_int_equal(g.all, len + waiting);
    }
    for (uint64_t j = 0; j < JOBS; j++) {
        size_t mine = 0, found = 0;
        for (size_t i = 0; i < NUMBERS; i++) mine += all[j][i].in;
        for (sherd__grouped_item *it = sherd__grouped_first(&g, j); it; it = it->next) found++;
        assert_int_equal(found, mine);
    }
    sherd__grouped_give_up_all(&g);
    assert_int_equal(g.len, 0);
    for (sherd__grouped_item *it; (it = sherd__grouped_given_up(&g));)
        sherd__grouped_remove(&g, it);
    sherd__grouped_fini(&g);
    assert_int_equal(counted, 0);
    memset(all, 0, sizeof all);
}

static void the_table_shrinks_when_entries_are_removed(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    static thing things[MANY];
    sherd__grouped g = { .budget = { take, give, NULL } };
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(sherd__grouped_add(&g, &things[i].item, i, 1), SHERD_OK);
    assert_true(counted > MANY * sizeof(void *));
    for (size_t i = 10; i < MANY; i++) sherd__grouped_remove(&g, &things[i].item);
    assert_true(counted < 4096);
    for (size_t i = 0; i < 10; i++)
        assert_ptr_equal(sherd__grouped_find(&g, i, 1), &things[i].item);
    sherd__grouped_give_up_all(&g);
    while (sherd__grouped_given_up(&g)) sherd__grouped_remove(&g, sherd__grouped_given_up(&g));
    sherd__grouped_fini(&g);
    assert_int_equal(counted, 0);
}

static void a_refused_or_failed_allocation_leaves_the_table_unchanged(void **state)
{
    (void)state;
    for (size_t nth = 1, failed = 1; failed; nth++) {
        static thing things[40];
        sherd__grouped g = { .budget = { take, give, NULL } };
        room = nth % 2 ? 64 * nth : UINT64_MAX;
        if (nth % 2 == 0) sherd__alloc_fail_nth(nth / 2);
        size_t n = 0;
        failed = 0;
        for (size_t i = 0; i < 40; i++) {
            int err = sherd__grouped_add(&g, &things[i].item, i, 7);
            failed += err != 0;
            n += !err;
            if (err) assert_int_equal(err, SHERD_ENOMEM);
            assert_ptr_equal(sherd__grouped_find(&g, i, 7), err ? NULL : &things[i].item);
        }
        sherd__alloc_fail_nth(0);
        room = UINT64_MAX;
        assert_int_equal(g.len, n);
        if (nth < 40) failed = 1;
        sherd__grouped_give_up_all(&g);
        while (sherd__grouped_given_up(&g)) sherd__grouped_remove(&g, sherd__grouped_given_up(&g));
        sherd__grouped_fini(&g);
        assert_int_equal(counted, 0);
    }
}

/* The longest chain that these entries form. */
static size_t longest(const sherd__grouped *g)
{
    size_t most = 0;
    for (size_t i = 0; i < g->items.cap; i++) {
        size_t n = 0;
        for (const sherd__chained *it = g->items.at[i]; it; it = it->chain) n++;
        if (n > most) most = n;
    }
    return most;
}

/* Names in one of 1024 buckets without a key, as a peer could compute them. */
static void names_that_collide_under_one_key_do_not_under_another(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static thing things[MANY];
    static const unsigned char none[crypto_shorthash_KEYBYTES];
    sherd__entropy os = sherd__entropy_os();
    for (unsigned keyed = 0; keyed < 2; keyed++) {
        sherd__grouped g = { .len = 0 };
        uint64_t number = 0;
        if (keyed) sherd__table_key_draw(&g.key, &os);
        for (size_t i = 0; i < MANY; number++) {
            const uint64_t name[2] = { 9, number };
            uint64_t hash;
            crypto_shorthash((unsigned char *)&hash, (const unsigned char *)name, sizeof name,
                             none);
            if (hash & 1023) continue;
            assert_int_equal(sherd__grouped_add(&g, &things[i++].item, 9, number), SHERD_OK);
        }
        assert_true(keyed ? longest(&g) < 20 : longest(&g) == MANY);
        sherd__grouped_give_up_all(&g);
        while (sherd__grouped_given_up(&g)) sherd__grouped_remove(&g, sherd__grouped_given_up(&g));
        sherd__grouped_fini(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes_agree_with_a_plain_table),
        cmocka_unit_test(the_table_shrinks_when_entries_are_removed),
        cmocka_unit_test(a_refused_or_failed_allocation_leaves_the_table_unchanged),
        cmocka_unit_test(names_that_collide_under_one_key_do_not_under_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
