/* Loops shared by threads: every index runs once, loops run one after the other, threads may be
 * late. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/subnormal.h"
#include "core/team.h"

#define MANY 5000u

static struct {
    atomic_uint times[MANY];
    atomic_uint highest, inside; /* largest thread number; threads that are inside at the moment */
    atomic_uint_fast64_t sum;
    atomic_size_t ascending;
} seen;

static void note(void *ctx, size_t i, unsigned thread)
{
    assert_ptr_equal(ctx, &seen);
    atomic_fetch_add(&seen.times[i % MANY], 1);
    atomic_fetch_add(&seen.sum, i);
    unsigned most = atomic_load(&seen.highest);
    while (thread > most && !atomic_compare_exchange_weak(&seen.highest, &most, thread)) {}
}

static void every_index_runs_once_in_loops_of_all_lengths(void **s)
{
    (void)s;
    for (unsigned threads = 0; threads <= 5; threads++) {
        sherd__team *t;
        assert_int_equal(sherd__team_new(&t, threads), SHERD_OK);
        assert_int_equal(sherd__team_threads(t), threads == 0 ? 1 : threads);
        memset(&seen, 0, sizeof seen);
        for (size_t n = 0; n < 300; n++) sherd__team_run(t, n, note, &seen);
        for (size_t i = 0; i < 299; i++) assert_int_equal(seen.times[i], 299 - i);
        assert_int_equal(seen.times[299], 0);
        assert_true(seen.highest < (threads == 0 ? 1 : threads));
        sherd__team_free(t);
    }
    sherd__team_free(NULL);
}

static void loops_with_more_indices_than_one_word_holds_run_completely(void **s)
{
    (void)s;
    const uint64_t n = (1 << 20) + 12345; /* two parts */
    sherd__team *t;
    assert_int_equal(sherd__team_new(&t, 3), SHERD_OK);
    memset(&seen, 0, sizeof seen);
    sherd__team_run(t, n, note, &seen);
    assert_int_equal(seen.sum, n * (n - 1) / 2);
    sherd__team_free(t);
}

static void in_order(void *ctx, size_t i, unsigned thread)
{
    assert_ptr_equal(ctx, &seen);
    assert_int_equal(thread, 0);
    assert_int_equal(i, seen.ascending++);
}

static void without_a_team_the_caller_runs_all_indices_in_order(void **s)
{
    (void)s;
    seen.ascending = 0;
    sherd__team_run(NULL, 100, in_order, &seen);
    assert_int_equal(seen.ascending, 100);
    assert_int_equal(sherd__team_threads(NULL), 1);
}

static void rest(long ns)
{
    nanosleep(&(struct timespec){ 0, ns }, NULL);
}

static void slow(void *ctx, size_t i, unsigned thread)
{
    note(ctx, i, thread);
    unsigned now = atomic_fetch_add(&seen.inside, 1) + 1;
    rest(2000000);
    if (now > 1) atomic_store(&seen.ascending, 1);
    atomic_fetch_sub(&seen.inside, 1);
}

/* Indices that take long: the other threads sleep meanwhile, and the caller waits for the last
 * one. */
static void sleeping_threads_are_woken_and_the_caller_waits_for_them(void **s)
{
    (void)s;
    sherd__team *t;
    assert_int_equal(sherd__team_new(&t, 4), SHERD_OK);
    memset(&seen, 0, sizeof seen);
    for (size_t i = 0; i < 10; i++) {
        if (i == 1) atomic_store(&seen.ascending, 0); /* the first loop started them */
        rest(2000000);                                /* longer than threads spin while they look
                                                       * for work */
        sherd__team_run(t, 4, slow, &seen);
        assert_int_equal(seen.inside, 0);
        for (size_t k = 0; k < 4; k++) assert_int_equal(seen.times[k], i + 1);
    }
    assert_true(seen.ascending); /* several ran at the same time after a rest */
    sherd__team_free(t);
}

static void note_flush(void *ctx, size_t i, unsigned thread)
{
    slow(ctx, i, thread);
    if (sherd__subnormal_flushed()) atomic_fetch_add(&seen.sum, UINT64_C(1) << 32);
}

static void all_threads_flush_subnormal_numbers_if_the_caller_does(void **s)
{
    (void)s;
    sherd__team *t;
    (void)sherd__subnormal_flush(true);
    if (!sherd__subnormal_flushed()) skip(); /* this processor does not support it */
    assert_int_equal(sherd__team_new(&t, 4), SHERD_OK);
    for (unsigned k = 0; k < 6; k++) {
        memset(&seen, 0, sizeof seen);
        (void)sherd__subnormal_flush(k % 2);
        sherd__team_run(t, 16, note_flush, &seen);
        assert_int_equal(seen.sum >> 32, k % 2 ? 16 : 0);
        assert_true(seen.highest > 0 || k == 0);
        assert_int_equal(sherd__subnormal_flushed(), k % 2);
    }
    (void)sherd__subnormal_flush(false);
    sherd__team_free(t);
}

static void a_team_is_not_created_without_memory(void **s)
{
    (void)s;
    sherd__team *t;
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__team_new(&t, 2), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
    assert_null(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_runs_once_in_loops_of_all_lengths),
        cmocka_unit_test(loops_with_more_indices_than_one_word_holds_run_completely),
        cmocka_unit_test(without_a_team_the_caller_runs_all_indices_in_order),
        cmocka_unit_test(sleeping_threads_are_woken_and_the_caller_waits_for_them),
        cmocka_unit_test(all_threads_flush_subnormal_numbers_if_the_caller_does),
        cmocka_unit_test(a_team_is_not_created_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
