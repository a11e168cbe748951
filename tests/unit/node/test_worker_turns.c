/*
 * The order of tasks: sessions take turns, and keys share the compute thread's time, for any number
 * of sessions and any length of tasks.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/node/worker_peer.h"

static void sessions_take_turns(void **s)
{
    (void)s;
    peer p, q;
    worker_start(&worker_fake, NULL, SLOW, 64 * MB);
    peer_join(&p);
    peer_join(&q);
    peer_small_blocks(&p, 9);
    peer_small_blocks(&q, 9);
    for (uint32_t k = 1; k <= 10; k++) peer_ask(&p, 9, k, 200, 200);
    joined_exchange(&p.j); /* all ten wait before the other's first */
    for (uint32_t k = 101; k <= 104; k++) peer_ask(&q, 9, k, 200, 200);
    joined_exchange(&q.j);
    while (sherd__executor_drain(loop.executor)) {}
    joined_exchange(&p.j);
    joined_exchange(&q.j);
    assert_int_equal(p.results_len, 10);
    assert_int_equal(q.results_len, 4);
    assert_int_equal(loop.ran_len, 14);
    for (uint32_t k = 0; k < 14; k++) {
        /* either session may be first; each keeps its order and they alternate */
        if (k >= 2 && k < 9) assert_true((loop.ran[k] > 100) != (loop.ran[k + 1] > 100));
    }
    for (uint32_t k = 0; k < 10; k++) assert_int_equal(p.results[k], k + 1);
    for (uint32_t k = 0; k < 4; k++) assert_int_equal(q.results[k], 101 + k);
    peer_cut(&p);
    peer_cut(&q);
    worker_stop();
}

static void sessions_of_one_key_share_its_turns(void **s)
{
    enum { SESSIONS = 5 };
    (void)s;
    peer many[SESSIONS], one;
    worker_start(&worker_fake, NULL, SLOW, 64 * MB);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        peer_join_as(&many[i], 1, 0);
        peer_small_blocks(&many[i], 9);
        for (uint32_t k = 1; k <= 4; k++) peer_ask(&many[i], 9, k, 200, 200);
        joined_exchange(&many[i].j);
    }
    peer_join_as(&one, 2, 0);
    peer_small_blocks(&one, 9);
    for (uint32_t k = 101; k <= 104; k++) peer_ask(&one, 9, k, 200, 200);
    joined_exchange(&one.j);
    while (sherd__executor_drain(loop.executor)) {}
    assert_int_equal(loop.ran_len, 4 * SESSIONS + 4);
    for (uint32_t k = 2; k < 8; k++) assert_true((loop.ran[k] > 100) != (loop.ran[k + 1] > 100));
    peer_settle(&one);
    assert_int_equal(one.results_len, 4);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        peer_settle(&many[i]);
        assert_int_equal(many[i].results_len, 4);
        peer_cut(&many[i]);
    }
    peer_cut(&one);
    worker_stop();
}

/* One key asks for tasks 1 and following. When its tasks have been answered two at a time,
 * `drained` times, another key asks for tasks 101 and following. */
static void ask_as_two(uint64_t job, uint32_t first_len, uint64_t other_job, uint32_t drained)
{
    peer p, q;
    worker_start_by(worker_clock, NULL, &worker_fake, NULL, SLOW, 64 * MB);
    peer_join_as(&p, 1, 0);
    peer_join_as(&q, 2, 0);
    peer_put(&p, job, 1, 200, 32, 1);
    peer_put(&p, job, 2, 32, 200, 1);
    peer_small_blocks(&q, other_job);
    for (uint32_t k = 1; k <= first_len; k++) peer_ask(&p, job, k, 200, 200);
    joined_exchange(&p.j);
    for (uint32_t k = 0; k < drained; k++) (void)sherd__executor_drain(loop.executor);
    for (uint32_t k = 101; k <= 160; k++) peer_ask(&q, other_job, k, 200, 200);
    joined_exchange(&q.j);
    while (sherd__executor_drain(loop.executor)) {}
    assert_int_equal(loop.ran_len, first_len + 60);
    peer_settle(&p);
    peer_settle(&q);
    peer_cut(&p);
    peer_cut(&q);
    worker_stop();
}

static uint32_t others_before(uint32_t number)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < loop.ran_len && loop.ran[k] != number; k++) n += loop.ran[k] > 100;
    return n;
}

/* The tasks of one key take sixteen times as long as those of the other. */
static void keys_share_the_time_of_tasks_rather_than_their_number(void **s)
{
    (void)s;
    ask_as_two(9, 7, 9, 0);
    for (uint32_t k = 3; k <= 4; k++)
        assert_in_range(others_before(k + 1) - others_before(k), 14, 18);
}

static void an_absent_key_accumulates_no_time(void **s)
{
    (void)s;
    ask_as_two(9, 40, 9, 12);
    uint32_t first = 0;
    while (loop.ran[first] < 100) first++;
    assert_in_range(first, 24, 30);
    assert_in_range(others_before(first + 1), 1, 36);
    assert_in_range(others_before(first + 2) - others_before(first + 1), 14, 18);
}

static void one_long_task_delays_its_key_by_at_most_a_second(void **s)
{
    (void)s;
    ask_as_two(LONG, 4, EIGHTH, 0);
    assert_in_range(others_before(3), 8, 10);
}

static void no_wake(void *ctx)
{
    (void)ctx;
}

/* They were estimated at some microseconds each. */
static void a_task_on_the_loop_ends_its_turn_after_the_time_that_it_took(void **s)
{
    enum { QUICK = 9, TASKS = 4 };
    (void)s;
    peer p;
    worker_start_by(worker_clock, no_wake, &worker_fake, NULL, 1, 64 * MB);
    peer_join(&p);
    for (uint64_t job = EIGHTH; job <= QUICK; job++) {
        peer_put(&p, job, 1, 4, 2, 1);
        peer_put(&p, job, 2, 2, 4, 1);
        sherd__worker_poll(loop.worker);
        for (uint32_t k = 1; k <= TASKS; k++) peer_ask(&p, job, k, 4, 4);
        joined_exchange(&p.j);
        for (uint32_t turn = 1; turn <= TASKS; turn++) {
            assert_int_equal(loop.ran_len, job == QUICK ? 2 * TASKS : turn);
            sherd__worker_poll(loop.worker);
        }
    }
    assert_int_equal(sherd__worker_stats_of(loop.worker)->inline_tasks, 2 * TASKS);
    peer_settle(&p);
    peer_cut(&p);
    worker_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_take_turns),
        cmocka_unit_test(sessions_of_one_key_share_its_turns),
        cmocka_unit_test(keys_share_the_time_of_tasks_rather_than_their_number),
        cmocka_unit_test(an_absent_key_accumulates_no_time),
        cmocka_unit_test(one_long_task_delays_its_key_by_at_most_a_second),
        cmocka_unit_test(a_task_on_the_loop_ends_its_turn_after_the_time_that_it_took),
    };
    return cmocka_run_group_tests_name("node/worker_turns", tests, NULL, NULL);
}
