/*
 * How a circle ends where a loop serves others: the compute thread gives its network's pages back,
 * its memory counts until then, and a MEET that follows may have that memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/node/allreduce_member.h"

enum { NUMBERS = 4 * 65536, LARGE = 5, MUCH = 64 << 20 };
static size_t numbers = NUMBERS;

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
    sherd__allreduce_plan p = circle_plan();
    p.recipe = LARGE;
    p.state = LARGE + 1;
    return circle_meet_with(&p, who);
}

static void put_network(void)
{
    char text[64];
    double *state = calloc(numbers, sizeof *state);
    assert_non_null(state);
    int len = snprintf(text, sizeof text, "input = 3\nlayer = dense %zu\nloss = squared\n",
                       numbers / 4);
    circle_put(LARGE, SHERD_U8, text, (size_t)len);
    circle_put(LARGE + 1, SHERD_F64, state, numbers);
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

static size_t given_back;

int madvise(void *p, size_t n, int advice)
{
    if (advice == MADV_DONTNEED) given_back += n;
    return (int)syscall(SYS_madvise, p, n, advice);
}

/* Its pages, slice by slice (core/alloc.h): the loop may wait for each of them. */
static void a_large_network_is_not_given_back_in_one_go(void **unused)
{
    enum { MANY = 24 * NUMBERS, SLICE = 16 << 20 };
    (void)unused;
    numbers = MANY;
    start((uint64_t)32 * MUCH);
    assert_int_equal(meet(), 0);
    given_back = 0; /* the executor of this test computes at once */
    assert_int_equal(sherd__session_drop(one.j.co, JOB, 0), 0);
    joined_exchange(&one.j);
    assert_true(given_back >= 8 * (size_t)MANY - 2 * SLICE); /* its parameters at least */
    turns();
    cut();
    end();
    numbers = NUMBERS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_compute_thread_ends_what_a_circle_leaves),
        cmocka_unit_test(a_meet_has_the_memory_of_the_circle_before),
        cmocka_unit_test(a_large_network_is_not_given_back_in_one_go),
    };
    return cmocka_run_group_tests_name("node/circle_end", tests, NULL, circle_free_identities);
}
