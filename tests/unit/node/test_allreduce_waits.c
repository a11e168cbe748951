/*
 * Tasks of an all-reduce group that wait for another task, which ends without running: it is
 * cancelled; it is dropped and freed with some others in a turn; or its job is dropped. The waiting
 * task continues in the next turn at the latest, whatever else the node has to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/node/allreduce_member.h"

enum { OTHER = 8, SIDE = 200, QUEUED = 700, WAITS = 701, DROPPED = 700 };

/* Runs turns of the loop until it asks for none; the compute thread does nothing meanwhile. */
static void turn(void)
{
    joined_exchange(&one.j);
    while (one.wakes) {
        one.wakes = 0;
        sherd__worker_poll(one.worker);
        joined_exchange(&one.j);
    }
}

/* Starts a member of a group of its own; two long products keep the compute thread busy. */
static void start_busy(void)
{
    static const double x[SIDE * SIDE];
    sherd__allreduce_plan alone = allreduce_plan();
    alone.members = 1;
    alone.self = 0;
    one.turns = true;
    one.memory = 1 << 26;
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet_alone(&alone), 0);
    joined_put(&one.j, OTHER, 1, SHERD_F64, SIDE, SIDE, x);
    for (uint32_t i = 1; i <= 2; i++)
        joined_ask(&one.j, OTHER, i, SHERD__OP_MULTIPLY, 1, 1, SHERD_F64, SIDE, SIDE);
    turn();
}

static void stop(void)
{
    joined_cut(&one.j);
    while (sherd__executor_drain(one.executor)) {}
    for (one.wakes = 1; one.wakes;) {
        one.wakes = 0;
        sherd__worker_poll(one.worker);
    }
    allreduce_stop_worker();
    one.turns = false;
    one.memory = 0;
}

/* Asks for a state. The task is queued, since no other task of the group is in progress. */
static void ask_state(uint32_t task)
{
    uint8_t bytes[8 * SHERD__ALLREDUCE_STATE];
    const sherd__allreduce_question q = { 0, 0.5, COUNT, false };
    sherd__allreduce_state_write(bytes, &q);
    allreduce_put(one.next_block++, SHERD_I64, bytes, SHERD__ALLREDUCE_STATE);
    joined_ask(&one.j, JOB, task, SHERD__OP_STATE, one.next_block - 1, 0, SHERD_F64, 1, COUNT);
}

/* Asks for an invalid task, which is refused as soon as it does not have to wait. */
static void ask_nonsense(uint32_t op)
{
    bool meet = op == SHERD__OP_MEET;
    joined_ask(&one.j, JOB, WAITS, op, TEXT, meet ? TEXT : 0, SHERD_I64, 1, 1);
}

static void assert_goes_on(uint32_t before, int code)
{
    turn();
    assert_int_equal(one.answered, before + 1);
    assert_int_equal(one.refused, code);
}

static void a_waiting_task_continues_when_the_task_before_it_is_cancelled(void **unused)
{
    (void)unused;
    start_busy();
    uint32_t before = one.answered;
    ask_state(QUEUED);
    ask_nonsense(SHERD__OP_STATE);
    turn();
    assert_int_equal(one.answered, before);
    assert_int_equal(sherd__session_cancel(one.j.co, JOB, QUEUED, 1), 0);
    assert_goes_on(before, SHERD_EFORMAT);
    stop();
}

/* As many blocks as a turn frees; the task that is dropped behind them is freed in the next
 * turn. */
static void a_waiting_task_continues_when_the_task_before_it_is_freed_in_a_turn(void **unused)
{
    (void)unused;
    start_busy();
    for (uint32_t i = 1; i <= DROPPED; i++) joined_put(&one.j, JOB + 2, i, SHERD_U8, 1, 1, "");
    turn();
    uint32_t before = one.answered;
    ask_state(QUEUED);
    turn();
    assert_int_equal(one.answered, before);
    assert_int_equal(sherd__session_drop(one.j.co, JOB + 2, 0), 0);
    joined_exchange(&one.j);
    assert_int_equal(sherd__session_cancel(one.j.co, JOB, 0, 0), 0);
    joined_exchange(&one.j);
    ask_nonsense(SHERD__OP_MEET);
    joined_exchange(&one.j);
    assert_goes_on(before, SHERD_EFORMAT);
    stop();
}

static void a_task_that_waits_for_links_is_refused_when_its_job_is_dropped(void **unused)
{
    (void)unused;
    one.turns = true;
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet(), 0);
    assert_int_equal(allreduce_ask(SHERD__OP_CONNECT, TEXT, 0, SHERD_I64, N), 1);
    uint32_t before = one.answered;
    assert_int_equal(sherd__session_drop(one.j.co, JOB, 0), 0);
    assert_goes_on(before, SHERD_EINVAL);
    stop();
}

static void ignore(void *ctx, sherd__event *e)
{
    (void)ctx, (void)e;
}

/* Starts a sum that waits for the block of member 0, with the link to member 2. */
static void start_sum(joined *link)
{
    sherd__session_options o = { .role = SHERD__COORDINATOR, .now_ms = 1 };
    *link = (joined){ .hear = ignore };
    assert_int_equal(sherd__session_new(&link->co, &o), 0);
    o.role = SHERD__NODE;
    assert_int_equal(sherd__session_new(&link->no, &o), 0);
    joined_exchange(link);
    one.turns = true;
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet(), 0);
    assert_int_equal(allreduce_ask(SHERD__OP_CONNECT, TEXT, 0, SHERD_I64, N), 1);
    sherd__worker_link_up(one.worker, one.allreduce, 2, link->co);
    allreduce_settle();
    assert_int_equal(allreduce_step(1, 0), 0);
    assert_int_equal(allreduce_reduce(), 1);
}

static void stop_sum(joined *link)
{
    sherd__worker_link_down(one.worker, one.allreduce, 2, SHERD_ECLOSED, "");
    sherd__session_free(link->co);
    sherd__session_free(link->no);
    stop();
}

static void a_sum_is_refused_if_a_block_arrives_that_has_no_room(void **unused)
{
    (void)unused;
    joined link;
    start_sum(&link);
    uint32_t before = one.answered;
    sherd__pool_limit(sherd__worker_accounts(one.worker)->pool, allreduce_used());
    assert_int_equal(allreduce_bring(0, GROUP, sherd__allreduce_block(1, 0), allreduce_len_of(0),
                                     SHERD_I64),
                     1);
    assert_goes_on(before, SHERD_ENOMEM);
    stop_sum(&link);
}

/* A connection may outlive its group, and another coordinator's group may have the same id by
 * then. */
static void the_end_of_a_connection_does_not_affect_sums_of_other_accounts(void **unused)
{
    (void)unused;
    joined link;
    start_sum(&link);
    sherd__account *own = sherd__worker_accounts(one.worker);
    allreduce_swap();
    allreduce_swap();
    sherd__account *other = sherd__worker_accounts(one.worker);
    assert_ptr_not_equal(other, own);
    uint32_t before = one.answered;
    sherd__worker_member_gone(one.worker, other, allreduce_key(0), GROUP);
    turn();
    assert_int_equal(one.answered, before);
    sherd__worker_member_gone(one.worker, own, allreduce_key(0), GROUP);
    assert_goes_on(before, SHERD_ECLOSED);
    allreduce_swap();
    joined_cut(&one.j);
    allreduce_swap();
    stop_sum(&link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiting_task_continues_when_the_task_before_it_is_cancelled),
        cmocka_unit_test(a_waiting_task_continues_when_the_task_before_it_is_freed_in_a_turn),
        cmocka_unit_test(a_task_that_waits_for_links_is_refused_when_its_job_is_dropped),
        cmocka_unit_test(a_sum_is_refused_if_a_block_arrives_that_has_no_room),
        cmocka_unit_test(the_end_of_a_connection_does_not_affect_sums_of_other_accounts),
    };
    return cmocka_run_group_tests(tests, NULL, allreduce_free_identities);
}
