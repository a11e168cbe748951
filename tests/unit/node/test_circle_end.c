/*
 * How a circle ends where a loop serves others: the compute thread gives its network's pages back,
 * its memory counts until then, and a MEET that follows may have that memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tests/unit/node/circle_member.h"

enum { NUMBERS = 4 * 65536, LARGE = 5, MUCH = 64 << 20 };

static uint64_t used(void)
{
    return sherd__worker_memory(one.worker)->used;
}

/* Turns of the loop, in which nothing is heard of the compute thread. */
static void turns(void)
{
    while (one.wakes) {
        one.wakes = 0;
        sherd__worker_poll(one.worker);
    }
}

static int meet(void)
{
    static const uint32_t who[N] = { 0, 1, 2 };
    sherd__circle_plan p = circle_plan();
    p.recipe = LARGE;
    p.state = LARGE + 1;
    return circle_meet_with(&p, who);
}

static void put_network(void)
{
    static const char text[] = "input = 3\nlayer = dense 65536\nloss = squared\n";
    double *state = calloc(NUMBERS, sizeof *state);
    assert_non_null(state);
    circle_put(LARGE, SHERD_U8, text, sizeof text - 1);
    circle_put(LARGE + 1, SHERD_F64, state, NUMBERS);
    joined_exchange(&one.j);
    free(state);
}

static void start(uint64_t memory)
{
    one.turns = true;
    one.memory = memory;
    circle_start(NULL);
    put_network();
}

static void drop_job(void)
{
    assert_int_equal(sherd__session_drop(one.j.co, JOB, 0), 0);
    joined_exchange(&one.j);
    turns();
}

static void cut(void)
{
    joined_cut(&one.j);
    one.wakes = 1;
    turns();
}

static void end(void)
{
    while (sherd__executor_drain(one.executor)) {}
    one.wakes = 1;
    turns();
    circle_stop_worker();
    one.turns = false;
    one.memory = 0;
}

/* What a circle reserves, and all that is in use then. */
static uint64_t reserved(uint64_t *all)
{
    start(MUCH);
    uint64_t before = used();
    assert_int_equal(meet(), 0);
    *all = used();
    cut();
    end();
    return *all - before;
}

static void the_compute_thread_ends_what_a_circle_leaves(void **unused)
{
    (void)unused;
    for (int by_cut = 0; by_cut <= 1; by_cut++) {
        start(MUCH);
        assert_int_equal(meet(), 0);
        if (by_cut) cut();
        else drop_job();
        uint64_t before = used();
        assert_int_equal(sherd__executor_drain(one.executor), 1);
        assert_true(used() + 4 * 8 * NUMBERS < before); /* parameters, gradient, and a grader's */
        if (!by_cut) cut();
        end();
    }
}

static void a_meet_has_the_memory_of_the_circle_before(void **unused)
{
    (void)unused;
    uint64_t all, bytes = reserved(&all);
    print_message("%llu of %llu bytes\n", (unsigned long long)bytes, (unsigned long long)all);
    for (int dropped = 0; dropped <= 1; dropped++) {
        start(all + bytes / 2); /* not for two */
        assert_int_equal(meet(), 0);
        if (dropped) {
            drop_job();
            put_network();
        }
        assert_int_equal(meet(), 0);
        assert_true(used() < all + bytes / 2);
        cut();
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_compute_thread_ends_what_a_circle_leaves),
        cmocka_unit_test(a_meet_has_the_memory_of_the_circle_before),
    };
    return cmocka_run_group_tests_name("node/circle_end", tests, NULL, circle_free_identities);
}
