#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "core/wipe.h"
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
    assert_null(sherd__pool_get(p, MB)); /* its bookkeeping counts, too */
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

static void a_returned_buffer_is_reused_wiped(void **s)
{
    (void)s;
    sherd__pool *p = new_pool(8 * MB);
    uint8_t *a = sherd__pool_get(p, MB), *b;
    memset(a, 0xAB, MB);
    sherd__pool_give(p, a, MB);
    assert_int_equal(sherd__pool_stats_of(p)->kept, MB + SHERD__POOL_OVERHEAD);
    b = sherd__pool_get(p, MB - 1000); /* the same size class */
    assert_ptr_equal(a, b);
    for (size_t i = 0; i < MB - 1000; i++) assert_int_equal(b[i], 0);
    assert_int_equal(sherd__pool_stats_of(p)->kept, 0);
    sherd__pool_give(p, b, MB - 1000);
    sherd__pool_free(p);
}

static void buffers_of_a_sole_client_are_wiped_before_the_next_client(void **s)
{
    (void)s;
    sherd__pool *p = new_pool(8 * MB);
    sherd__pool_sole(p, true);
    uint8_t *a = sherd__pool_get(p, MB), *b;
    memset(a, 0xAB, MB);
    sherd__pool_give(p, a, MB);
    b = sherd__pool_get(p, MB);
    assert_ptr_equal(a, b);
    assert_int_equal(b[MB - 1], 0xAB); /* its own bytes: they need no wiping */
    sherd__pool_give(p, b, MB);
    sherd__pool_sole(p, false);
    assert_int_equal(sherd__pool_stats_of(p)->kept, 0); /* wiped and freed */
    a = sherd__pool_get(p, MB);
    memset(a, 0xCD, MB);
    sherd__pool_give(p, a, MB);
    b = sherd__pool_get(p, MB);
    for (size_t i = 0; i < MB; i++) assert_int_equal(b[i], 0);
    sherd__pool_give(p, b, MB);
    sherd__pool_free(p);
}

static void note(void *ctx)
{
    ++*(unsigned *)ctx;
}

/* Wipes slices of 4 MB until nothing is stale; returns their number. */
static unsigned clean(sherd__pool *p)
{
    const sherd__pool_stats *st = sherd__pool_stats_of(p);
    for (unsigned n = 1;; n++) {
        bool more = sherd__pool_clean(p, 4 * MB);
        assert_int_equal(more, st->stale > 0);
        if (!more) return n;
    }
}

/* A second client connects while many buffers of the first one are not wiped. */
static void a_buffer_is_not_given_out_before_it_is_wiped(void **s)
{
    enum { MANY = 64 };
    (void)s;
    uint8_t *at[MANY], *b;
    unsigned asked = 0, reused = 0;
    sherd__pool *p = new_pool(2 * MANY * MB);
    const sherd__pool_stats *st = sherd__pool_stats_of(p);
    sherd__pool_slices(p, note, &asked);
    sherd__pool_sole(p, true);
    for (size_t i = 0; i < MANY; i++) memset(at[i] = sherd__pool_get(p, MB), 0xAB, MB);
    for (size_t i = 0; i < MANY; i++) sherd__pool_give(p, at[i], MB);
    assert_int_equal(asked, 0);
    sherd__pool_sole(p, false);
    assert_true(asked > 0 && st->stale == st->kept && st->kept > MANY * MB);
    for (unsigned i = 0; i < 2 * MANY; i++) {
        if (i == MANY / 4) sherd__pool_sole(p, true); /* a client is alone again */
        if (i == MANY / 2) sherd__pool_sole(p, false);
        uint64_t kept = st->kept;
        b = sherd__pool_get(p, MB);
        bool again = st->kept < kept;               /* otherwise it is new memory of the system */
        bool alone = i >= MANY / 4 && i < MANY / 2; /* a sole client gets its own buffers unwiped */
        for (size_t k = 0; again && k < MB; k += 8) assert_true(b[k] == 0 || (alone && b[k] == 1));
        reused += again;
        memset(b, alone ? 1 : 0xAB, MB);
        sherd__pool_give(p, b, MB);
        if (i % 4 == 3) (void)sherd__pool_clean(p, 3 * MB);
    }
    (void)clean(p);
    assert_in_range(reused, MANY, 2 * MANY);
    b = sherd__pool_get(p, MB);
    memset(b, 0xCD, MB);
    sherd__pool_give(p, b, MB);
    assert_int_equal(st->stale, MB + SHERD__POOL_OVERHEAD);
    assert_int_equal(clean(p), 1);
    for (uint64_t len = 8192; len >= 4096; len /= 2) { /* a turn may free thousands */
        sherd__pool_give(p, sherd__pool_get(p, len), len);
        assert_int_equal(st->stale, sherd__pool_cost(8192));
    }
    sherd__pool_free(p);
}

static void a_large_buffer_is_wiped_in_slices_or_on_demand(void **s)
{
    (void)s;
    unsigned asked = 0;
    sherd__pool *p = new_pool(60 * MB);
    const sherd__pool_stats *st = sherd__pool_stats_of(p);
    sherd__pool_slices(p, note, &asked);
    uint8_t *a = sherd__pool_get(p, 40 * MB);
    memset(a, 0xAB, 40 * MB);
    sherd__pool_give(p, a, 40 * MB);
    assert_int_equal(asked, 1);
    for (unsigned i = 0; i < 9; i++) assert_true(sherd__pool_clean(p, 4 * MB));
    assert_int_equal(st->stale, 40 * MB + SHERD__POOL_OVERHEAD);
    assert_in_range(clean(p), 1, 2); /* the first slice ends at a page */
    uint8_t *b = sherd__pool_get(p, 40 * MB);
    assert_ptr_equal(a, b);
    for (size_t k = 0; k < 40 * MB; k += 8) assert_int_equal(b[k], 0);
    sherd__pool_give(p, b, 40 * MB);
    assert_true(sherd__pool_clean(p, MB));
    assert_non_null(b = sherd__pool_get(p, 48 * MB));
    assert_int_equal(st->kept, 0);
    sherd__pool_give(p, b, 48 * MB);
    sherd__pool_trim(p);
    assert_true(st->kept > 0);
    assert_in_range(clean(p), 12, 13);
    assert_int_equal(st->kept, 0); /* returned to the system */
    sherd__pool_free(p);
}

/* Returns the resident megabytes of the first `len` bytes of whole pages from p on. */
static uint64_t resident_mb(const uint8_t *p, uint64_t len)
{
    static unsigned char in[1u << 16];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n = 0;
    uintptr_t at = ((uintptr_t)p + page - 1) & ~(uintptr_t)(page - 1);
    assert_true(len / page <= sizeof in);
    assert_int_equal(mincore((void *)at, len, in), 0);
    for (uint64_t k = 0; k < len / page; k++) n += in[k] & 1u;
    return n * page / MB;
}

/* A header announces a large body and the connection ends: there is nothing to wipe. */
static void wiping_untouched_memory_does_not_make_it_resident(void **s)
{
    enum { MUCH = 200 };
    (void)s;
    unsigned asked = 0, slices = 0;
    sherd__pool *p = new_pool(2 * MUCH * MB);
    const sherd__pool_stats *st = sherd__pool_stats_of(p);
    sherd__pool_slices(p, note, &asked);
    uint8_t *a = sherd__pool_get(p, MUCH * MB);
    memset(a, 0xAB, MB);
    sherd__pool_give(p, a, MUCH * MB);
    assert_true(asked && st->kept >= MUCH * MB);
    for (; sherd__pool_clean(p, 4 * MB); slices++) {
        assert_true(st->kept >= MUCH * MB); /* counts until all of it is wiped */
        if (slices == 20) assert_true(resident_mb(a, 100 * MB) < 30);
    }
    assert_true(slices >= MUCH / 4 - 1);
    assert_int_equal(st->kept, 0);
    sherd__pool_free(p);
}

/* For many sizes, at any place in a page. */
static void wiped_pages_are_zero_and_their_neighbours_are_not(void **s)
{
    enum { ALL = 1 << 20 };
    static const size_t from[] = { 0, 1, 64, 4095, 4096, 4097, 70000 };
    static const size_t len[] = { 0, 1, 4095, 4096, 8191, 65536, 65537, 131072, 300001, 900000 };
    (void)s;
    uint8_t *all = sherd__alloc(ALL);
    assert_non_null(all);
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        for (size_t k = 0; k < sizeof len / sizeof *len; k++) {
            size_t wrong = 0, to = from[i] + len[k];
            memset(all, 0xAB, ALL);
            sherd__wipe_pages(all + from[i], len[k]);
            for (size_t b = 0; b < ALL; b++) wrong += all[b] != (b >= from[i] && b < to ? 0 : 0xAB);
            assert_int_equal(wrong, 0);
        }
    sherd__free(all);
}

static void kept_buffers_are_freed_for_other_sizes(void **s)
{
    (void)s;
    sherd__pool *p = new_pool(4 * MB);
    for (int i = 0; i < 3; i++) {
        uint8_t *a = sherd__pool_get(p, MB), *b = sherd__pool_get(p, 2 * MB);
        assert_non_null(a);
        assert_non_null(b);
        sherd__pool_give(p, a, MB);
        sherd__pool_give(p, b, 2 * MB);
        uint8_t *c = sherd__pool_get(p, 3 * MB); /* fits only when both are freed */
        assert_non_null(c);
        sherd__pool_give(p, c, 3 * MB);
    }
    sherd__pool_trim(p);
    assert_int_equal(sherd__pool_stats_of(p)->kept, 0);
    sherd__pool_free(p);
}

static void random_use(bool slices)
{
    enum { SLOTS = 64 };
    unsigned asked = 0;
    uint8_t *at[SLOTS] = { NULL };
    uint64_t len[SLOTS] = { 0 }, unit = slices ? 200000 : 20000;
    uint64_t budget = 15 * unit;
    sherd__seeded state;
    sherd__entropy rnd = sherd__entropy_seeded(&state, 7);
    sherd__pool *p = new_pool(budget);
    if (slices) sherd__pool_slices(p, note, &asked);
    for (int step = 0; step < 20000; step++) {
        if (slices && step % 16 == 0) (void)sherd__pool_clean(p, unit);
        if (slices && step % 128 == 0) sherd__pool_sole(p, step % 256 == 0);
        if (slices && step % 1024 == 0) sherd__pool_trim(p);
        size_t i = sherd__entropy_below(&rnd, SLOTS);
        if (at[i]) {
            uint64_t wrong = 0;
            for (uint64_t k = 0; k < len[i]; k++) wrong += at[i][k] != (uint8_t)i;
            assert_int_equal(wrong, 0);
            sherd__pool_give(p, at[i], len[i]);
            at[i] = NULL;
        } else {
            len[i] = sherd__entropy_below(&rnd, unit);
            at[i] = sherd__pool_get(p, len[i]);
            if (at[i]) memset(at[i], (int)i, len[i]);
            assert_int_equal((uintptr_t)at[i] % 64, 0);
        }
        const sherd__pool_stats *st = sherd__pool_stats_of(p);
        assert_true(st->used + st->kept <= budget && st->used <= st->peak);
        assert_true(st->stale <= st->kept);
    }
    assert_int_equal(asked > 0, slices);
    assert_true(sherd__pool_stats_of(p)->refused > 0);
    for (size_t i = 0; i < SLOTS; i++) sherd__pool_give(p, at[i], len[i]);
    assert_int_equal(sherd__pool_stats_of(p)->used, 0);
    sherd__pool_free(p);
}

static void random_use_never_exceeds_the_budget_and_buffers_never_overlap(void **s)
{
    (void)s;
    random_use(false);
    random_use(true);
}

/* Room is made in one call, which must not have millions of buffers to free. */
static void the_number_of_small_buffers_that_are_kept_is_limited(void **s)
{
    enum { MANY = 40000, MOST = 16384 };
    (void)s;
    static uint8_t *at[MANY];
    sherd__pool *p = new_pool(64 * MB);
    const sherd__pool_stats *st = sherd__pool_stats_of(p);
    for (int sole = 0; sole < 2; sole++) {
        sherd__pool_sole(p, sole);
        for (size_t i = 0; i < MANY; i++) assert_non_null(at[i] = sherd__pool_get(p, 64));
        for (size_t i = 0; i < MANY; i++) sherd__pool_give(p, at[i], 64);
        assert_int_equal(st->used, 0);
        assert_int_equal(st->kept, MOST * sherd__pool_cost(64));
    }
    sherd__pool_trim(p);
    assert_int_equal(st->kept, 0);
    sherd__pool_free(p);
}

/* Returns a pool with untouched buffers that several clients have returned. */
static sherd__pool *with_stale(uint64_t budget, unsigned buffers, unsigned *asked)
{
    uint8_t *at[16];
    sherd__pool *p = new_pool(budget);
    sherd__pool_slices(p, note, asked);
    for (unsigned i = 0; i < buffers; i++) assert_non_null(at[i] = sherd__pool_get(p, 40 * MB));
    for (unsigned i = 0; i < buffers; i++) sherd__pool_give(p, at[i], 40 * MB);
    assert_int_equal(sherd__pool_stats_of(p)->stale, buffers * sherd__pool_cost(40 * MB));
    return p;
}

static void the_wiped_memory_that_is_kept_is_limited(void **s)
{
    (void)s;
    unsigned asked = 0;
    sherd__pool *p = with_stale(1024 * MB, 12, &asked);
    (void)clean(p);
    assert_in_range(sherd__pool_stats_of(p)->kept, 256 * MB, 300 * MB);
    sherd__pool_free(p);
}

static void room_is_made_from_a_limited_amount_of_memory_in_a_turn(void **s)
{
    (void)s;
    for (int sole = 0; sole < 2; sole++) {
        unsigned asked = 0;
        sherd__pool *p = with_stale(700 * MB, 15, &asked);
        const sherd__pool_stats *st = sherd__pool_stats_of(p);
        if (sole) sherd__pool_sole(p, true);
        asked = 0;
        assert_true(sherd__pool_reserve(p, 600 * MB) == sole);
        if (!sole) {
            assert_in_range(st->kept, 300 * MB, 600 * MB - 256 * MB);
            assert_int_equal(st->refused, 1);
            assert_int_equal(asked, 1);
            assert_false(sherd__pool_reserve(p, 600 * MB)); /* in this turn */
            assert_true(sherd__pool_clean(p, 0));
            assert_true(sherd__pool_reserve(p, 600 * MB));
        }
        assert_in_range(st->kept, 0, 100 * MB);
        sherd__pool_unreserve(p, 600 * MB);
        sherd__pool_free(p);
    }
}

/* Buffers of 1 MB that a pool has lent, the last of which is taken back first. */
typedef struct loans {
    sherd__pool *p;
    uint8_t *at[16];
    unsigned len, asked;
} loans;

static bool take_back(void *ctx)
{
    loans *l = ctx;
    l->asked++;
    if (l->len == 0) return false;
    sherd__pool_take_back(l->p, l->at[--l->len], MB);
    return true;
}

static void lent_buffers_leave_room_and_are_taken_back_for_requests(void **s)
{
    (void)s;
    loans l = { .p = new_pool(16 * MB) };
    const sherd__pool_stats *st = sherd__pool_stats_of(l.p);
    sherd__pool *share;
    sherd__pool_lender(l.p, take_back, &l);
    assert_int_equal(sherd__pool_share(&share, l.p, 4 * MB + 512), SHERD_OK);
    while ((l.at[l.len] = sherd__pool_lend(l.p, MB))) memset(l.at[l.len++], 0xAB, MB);
    assert_int_equal(l.len, 13); /* an eighth is left */
    assert_int_equal(st->lent, 13 * (MB + SHERD__POOL_OVERHEAD));
    assert_int_equal(st->used, st->lent);
    assert_null(sherd__pool_lend(l.p, UINT64_MAX));
    uint8_t *a = sherd__pool_get(share, 4 * MB);
    assert_non_null(a);
    assert_int_equal(l.len, 11);
    assert_true(sherd__pool_reserve(l.p, 8 * MB));
    assert_int_equal(l.len, 3);
    assert_int_equal(st->refused, 0);
    assert_false(sherd__pool_reserve(l.p, 5 * MB)); /* too much even without loans */
    assert_null(sherd__pool_get(share, MB));        /* the share is full */
    assert_int_equal(l.len, 3);
    assert_int_equal(l.asked, 10);
    assert_true(sherd__pool_reserve(l.p, 3 * MB));
    assert_int_equal(l.len, 0);
    assert_int_equal(st->lent, 0);
    sherd__pool_unreserve(l.p, 11 * MB);
    uint8_t *b = sherd__pool_lend(l.p, MB);
    assert_non_null(b);
    memset(b, 0xAB, MB);
    sherd__pool_take_back(l.p, b, MB);
    assert_ptr_equal(sherd__pool_get(l.p, MB), b); /* taken back wiped */
    for (size_t i = 0; i < MB; i++) assert_int_equal(b[i], 0);
    sherd__pool_give(l.p, b, MB);
    sherd__pool_give(share, a, 4 * MB);
    sherd__pool_free(share);
    sherd__pool_free(l.p);
}

static void buffers_lent_from_a_share_count_in_it_and_in_its_pool(void **s)
{
    (void)s;
    loans l = { .p = NULL };
    sherd__pool *p = new_pool(16 * MB), *share;
    assert_int_equal(sherd__pool_share(&share, p, 8 * MB), SHERD_OK);
    const sherd__pool_stats *its = sherd__pool_stats_of(share), *all = sherd__pool_stats_of(p);
    sherd__pool_lender(share, take_back, &l);
    l.p = share;
    while ((l.at[l.len] = sherd__pool_lend(share, MB))) l.len++;
    assert_int_equal(l.len, 6); /* an eighth of the share is left */
    assert_int_equal(its->lent, 6 * (MB + SHERD__POOL_OVERHEAD));
    assert_int_equal(its->used, its->lent);
    assert_int_equal(all->lent, its->lent);
    assert_int_equal(all->used, its->lent);
    uint8_t *a = sherd__pool_get(share, 2 * MB);
    assert_non_null(a);
    assert_int_equal(l.len, 5);
    assert_true(sherd__pool_reserve(share, 3 * MB));
    assert_int_equal(l.len, 2);
    assert_false(sherd__pool_reserve(share, 7 * MB)); /* too much even without loans */
    assert_int_equal(l.len, 2);
    sherd__pool_unreserve(share, 3 * MB);
    assert_true(sherd__pool_reserve(p, 10 * MB));
    assert_null(sherd__pool_lend(share, MB)); /* less than an eighth of the pool would be left */
    assert_int_equal(its->refused, 1);
    assert_int_equal(l.len, 2);
    while (take_back(&l)) {}
    assert_int_equal(its->lent, 0);
    assert_int_equal(all->lent, 0);
    sherd__pool_unreserve(p, 10 * MB);
    sherd__pool_give(share, a, 2 * MB);
    sherd__pool_free(share);
    sherd__pool_free(p);
}

static void an_empty_buffer_has_an_address_of_its_own(void **s)
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

static void a_failed_allocation_uses_no_budget(void **s)
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
        cmocka_unit_test(a_returned_buffer_is_reused_wiped),
        cmocka_unit_test(buffers_of_a_sole_client_are_wiped_before_the_next_client),
        cmocka_unit_test(a_buffer_is_not_given_out_before_it_is_wiped),
        cmocka_unit_test(a_large_buffer_is_wiped_in_slices_or_on_demand),
        cmocka_unit_test(wiping_untouched_memory_does_not_make_it_resident),
        cmocka_unit_test(wiped_pages_are_zero_and_their_neighbours_are_not),
        cmocka_unit_test(kept_buffers_are_freed_for_other_sizes),
        cmocka_unit_test(random_use_never_exceeds_the_budget_and_buffers_never_overlap),
        cmocka_unit_test(the_number_of_small_buffers_that_are_kept_is_limited),
        cmocka_unit_test(the_wiped_memory_that_is_kept_is_limited),
        cmocka_unit_test(room_is_made_from_a_limited_amount_of_memory_in_a_turn),
        cmocka_unit_test(lent_buffers_leave_room_and_are_taken_back_for_requests),
        cmocka_unit_test(buffers_lent_from_a_share_count_in_it_and_in_its_pool),
        cmocka_unit_test(an_empty_buffer_has_an_address_of_its_own),
        cmocka_unit_test(a_failed_allocation_uses_no_budget),
    };
    return cmocka_run_group_tests_name("node/pool", tests, NULL, NULL);
}
