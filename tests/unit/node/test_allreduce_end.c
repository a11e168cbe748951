/*
 * The end of an all-reduce group in a loop that serves others: the compute thread returns the pages
 * of its network, its memory counts until then, and a following MEET may use that memory.
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

/* Runs turns of the loop; nothing arrives from the compute thread. */
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
    sherd__allreduce_plan p = allreduce_plan();
    p.recipe = LARGE;
    p.state = LARGE + 1;
    return allreduce_meet_with(&p, who);
}

static void put_network(void)
{
    char text[64];
    double *state = calloc(numbers, sizeof *state);
    assert_non_null(state);
    int len = snprintf(text, sizeof text, "input = 3\nlayer = dense %zu\nloss = squared\n",
                       numbers / 4);
    allreduce_put(LARGE, SHERD_U8, text, (size_t)len);
    allreduce_put(LARGE + 1, SHERD_F64, state, numbers);
    joined_exchange(&one.j);
    free(state);
}

static void start(uint64_t memory)
{
    one.turns = true;
    one.memory = memory;
    allreduce_start(NULL);
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
    allreduce_stop_worker();
    one.turns = false;
    one.memory = 0;
}

/* Returns the memory that a group reserves; *all is all memory in use then. */
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

static void the_compute_thread_frees_the_data_of_an_ended_group(void **unused)
{
    (void)unused;
    for (int by_cut = 0; by_cut <= 1; by_cut++) {
        start(MUCH);
        assert_int_equal(meet(), 0);
        if (by_cut) cut();
        else drop_job();
        uint64_t before = used();
        assert_int_equal(sherd__executor_drain(one.executor), 1);
        assert_true(used() + 4 * 8 * NUMBERS < before); /* parameters, gradient, and those of a
                                                         * grader */
        if (!by_cut) cut();
        end();
    }
}

static void a_meet_may_use_the_memory_of_the_previous_group(void **unused)
{
    (void)unused;
    uint64_t all, bytes = reserved(&all);
    print_message("%llu of %llu bytes\n", (unsigned long long)bytes, (unsigned long long)all);
    for (int dropped = 0; dropped <= 1; dropped++) {
        start(all + bytes / 2); /* not enough for two groups */
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

/* Its pages are freed in slices (core/alloc.h), since the loop may wait for each of them. */
static void a_large_network_is_freed_in_slices(void **unused)
{
    enum { MANY = 24 * NUMBERS, SLICE = 16 << 20 };
    (void)unused;
    numbers = MANY;
    start((uint64_t)32 * MUCH);
    assert_int_equal(meet(), 0);
    given_back = 0; /* the executor of this test computes at once */
    assert_int_equal(sherd__session_drop(one.j.co, JOB, 0), 0);
    joined_exchange(&one.j);
    assert_true(given_back >= 8 * (size_t)MANY - 2 * SLICE); /* at least its parameters */
    turns();
    cut();
    end();
    numbers = NUMBERS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_compute_thread_frees_the_data_of_an_ended_group),
        cmocka_unit_test(a_meet_may_use_the_memory_of_the_previous_group),
        cmocka_unit_test(a_large_network_is_freed_in_slices),
    };
    return cmocka_run_group_tests_name("node/allreduce_end", tests, NULL,
                                       allreduce_free_identities);
}
