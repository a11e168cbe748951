/*
 * The end of a session of secure sums in a loop that serves others: the compute thread wipes it,
 * its memory counts until then, and a following JOIN may use that memory.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/node/secure_member.h"

enum { MUCH = 16 << 20 };

static uint64_t used(void)
{
    return sherd__worker_memory(m.worker)->used;
}

/* Runs turns of the loop; nothing arrives from the compute thread. */
static void turns(void)
{
    for (joined_exchange(&m.j); m.wakes; joined_exchange(&m.j)) {
        m.wakes = 0;
        sherd__worker_poll(m.worker);
    }
}

static void start(uint64_t memory)
{
    m.turns = true;
    member_start_with(memory, &m.own, NULL);
}

/* Breaks the connection; nothing arrives from the compute thread. */
static void cut(void)
{
    joined_cut(&m.j);
    for (m.wakes = 1; m.wakes;) {
        m.wakes = 0;
        sherd__worker_poll(m.worker);
    }
}

static void end(void)
{
    assert_int_equal(used(), 0);
    member_end();
    m.turns = false;
}

static void stop(void)
{
    cut();
    while (sherd__executor_drain(m.executor)) {}
    end();
}

static void drop_job(void)
{
    assert_int_equal(sherd__session_drop(m.j.co, JOB, 0), 0);
    turns();
}

/* Returns the memory that a session reserves at JOIN; *all is all memory in use then. */
static uint64_t reserved(uint64_t *all)
{
    start(MUCH);
    assert_int_equal(member_join(), 0);
    turns();
    *all = used();
    drop_job();
    uint64_t before = used();
    assert_int_equal(sherd__executor_drain(m.executor), 1);
    uint64_t bytes = before - used();
    print_message("%llu of %llu bytes\n", (unsigned long long)bytes, (unsigned long long)*all);
    stop();
    return bytes;
}

static void the_compute_thread_wipes_the_data_of_an_ended_session(void **s)
{
    (void)s;
    for (int by_cut = 0; by_cut <= 1; by_cut++) {
        start(MUCH);
        member_meet();
        turns();
        if (by_cut) cut();
        else drop_job();
        uint64_t before = used();
        assert_int_equal(sherd__executor_drain(m.executor), 1);
        assert_true(used() + LEN * sizeof(int64_t) < before);
        if (by_cut) end();
        else stop();
    }
}

static void a_join_may_use_the_memory_of_the_previous_session(void **s)
{
    (void)s;
    uint64_t all, bytes = reserved(&all);
    for (int dropped = 0; dropped <= 1; dropped++) {
        start(all + bytes / 2); /* not enough for two sessions */
        assert_int_equal(member_join(), 0);
        if (dropped) drop_job();
        uint64_t before = used();
        assert_int_equal(member_join(), 0);
        assert_true(used() < before + bytes / 2);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_compute_thread_wipes_the_data_of_an_ended_session),
        cmocka_unit_test(a_join_may_use_the_memory_of_the_previous_session),
    };
    return cmocka_run_group_tests_name("node/secure_end", tests, member_fill, member_empty);
}
