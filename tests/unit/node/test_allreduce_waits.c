/*
 * Tasks of a circle that wait for another task, which ends without being run: cancelled, given up
 * and freed some at a turn, or dropped with its job. What waits goes on in the next turn at the
 * latest, whatever else the node has to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/node/allreduce_member.h"

enum { OTHER = 8, SIDE = 200, QUEUED = 700, WAITS = 701, DROPPED = 700 };

/* Turns of the loop until it asks for none; the compute thread does nothing meanwhile. */
static void turn(void)
{
    joined_exchange(&one.j);
    while (one.wakes) {
        one.wakes = 0;
        sherd__worker_poll(one.worker);
        joined_exchange(&one.j);
    }
}

/* A member of a circle of its own; two long products keep the compute thread busy. */
static void start_busy(void)
{
    static const double x[SIDE * SIDE];
    sherd__allreduce_plan alone = circle_plan();
    alone.members = 1;
    alone.self = 0;
    one.turns = true;
    one.memory = 1 << 26;
    circle_start(NULL);
    assert_int_equal(circle_meet_alone(&alone), 0);
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
    circle_stop_worker();
    one.turns = false;
    one.memory = 0;
}

/* Of a state: queued, since nothing else of the circle is under way. */
static void ask_state(uint32_t task)
{
    uint8_t bytes[8 * SHERD__ALLREDUCE_STATE];
    const sherd__allreduce_question q = { 0, 0.5, COUNT, false };
    sherd__allreduce_state_write(bytes, &q);
    circle_put(one.next_block++, SHERD_I64, bytes, SHERD__ALLREDUCE_STATE);
    joined_ask(&one.j, JOB, task, SHERD__OP_STATE, one.next_block - 1, 0, SHERD_F64, 1, COUNT);
}

/* What makes no sense is refused as soon as it need not wait. */
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

static void what_waits_goes_on_when_the_task_before_it_is_cancelled(void **unused)
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

/* As many as a turn frees at once; what is given up behind them is freed in the next one. */
static void what_waits_goes_on_when_the_task_before_it_is_freed_in_a_turn(void **unused)
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

static void what_waits_for_links_is_refused_when_the_job_is_dropped(void **unused)
{
    (void)unused;
    one.turns = true;
    circle_start(NULL);
    assert_int_equal(circle_meet(), 0);
    assert_int_equal(circle_ask(SHERD__OP_CONNECT, TEXT, 0, SHERD_I64, N), 1);
    uint32_t before = one.answered;
    assert_int_equal(sherd__session_drop(one.j.co, JOB, 0), 0);
    assert_goes_on(before, SHERD_EINVAL);
    stop();
}

static void ignore(void *ctx, sherd__event *e)
{
    (void)ctx, (void)e;
}

/* A sum that waits for the block of member 0, and the link to member 2. */
static void start_sum(joined *link)
{
    sherd__session_options o = { .role = SHERD__COORDINATOR, .now_ms = 1 };
    *link = (joined){ .hear = ignore };
    assert_int_equal(sherd__session_new(&link->co, &o), 0);
    o.role = SHERD__NODE;
    assert_int_equal(sherd__session_new(&link->no, &o), 0);
    joined_exchange(link);
    one.turns = true;
    circle_start(NULL);
    assert_int_equal(circle_meet(), 0);
    assert_int_equal(circle_ask(SHERD__OP_CONNECT, TEXT, 0, SHERD_I64, N), 1);
    sherd__worker_link_up(one.worker, one.circle, 2, link->co);
    circle_settle();
    assert_int_equal(circle_step(1, 0), 0);
    assert_int_equal(circle_reduce(), 1);
}

static void stop_sum(joined *link)
{
    sherd__worker_link_down(one.worker, one.circle, 2, SHERD_ECLOSED, "");
    sherd__session_free(link->co);
    sherd__session_free(link->no);
    stop();
}

static void a_sum_is_refused_when_there_is_no_room_for_what_comes(void **unused)
{
    (void)unused;
    joined link;
    start_sum(&link);
    uint32_t before = one.answered;
    sherd__pool_limit(sherd__worker_accounts(one.worker)->pool, circle_used());
    assert_int_equal(circle_bring(0, CIRCLE, sherd__allreduce_block(1, 0), circle_len_of(0),
                                  SHERD_I64),
                     1);
    assert_goes_on(before, SHERD_ENOMEM);
    stop_sum(&link);
}

/* It outlives the circle that it was for, and another coordinator's may have that name by then. */
static void the_end_of_a_connection_breaks_no_sum_of_another_account(void **unused)
{
    (void)unused;
    joined link;
    start_sum(&link);
    sherd__account *own = sherd__worker_accounts(one.worker);
    circle_swap();
    circle_swap();
    sherd__account *other = sherd__worker_accounts(one.worker);
    assert_ptr_not_equal(other, own);
    uint32_t before = one.answered;
    sherd__worker_member_gone(one.worker, other, circle_key(0), CIRCLE);
    turn();
    assert_int_equal(one.answered, before);
    sherd__worker_member_gone(one.worker, own, circle_key(0), CIRCLE);
    assert_goes_on(before, SHERD_ECLOSED);
    circle_swap();
    joined_cut(&one.j);
    circle_swap();
    stop_sum(&link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_goes_on_when_the_task_before_it_is_cancelled),
        cmocka_unit_test(what_waits_goes_on_when_the_task_before_it_is_freed_in_a_turn),
        cmocka_unit_test(what_waits_for_links_is_refused_when_the_job_is_dropped),
        cmocka_unit_test(a_sum_is_refused_when_there_is_no_room_for_what_comes),
        cmocka_unit_test(the_end_of_a_connection_breaks_no_sum_of_another_account),
    };
    return cmocka_run_group_tests(tests, NULL, circle_free_identities);
}
