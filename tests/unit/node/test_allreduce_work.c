/*
 * What a member of an all-reduce group computes and reports: local steps end with the task that
 * asked for them, sums and states are reported correctly, and the member reports its progress at
 * any time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "tests/unit/node/allreduce_member.h"

/* Powers of the betas are computed step by step: for betas close to 1, such a number of steps would
 * take months. */
static void a_state_after_an_impossible_number_of_steps_is_refused(void **unused)
{
    enum { LEN = 4 * COUNT + 1 };
    double state[LEN] = { 0.5 };
    sherd__allreduce_plan p = allreduce_plan();
    (void)unused;
    allreduce_start(NULL);
    p.members = 1;
    p.self = 0;
    p.optimiser = (sherd__optimiser_spec){ .method = SHERD__ADAM,
                                           .beta1 = 1 - 0x1p-53,
                                           .beta2 = 1 - 0x1p-53 };
    state[LEN - 1] = 0x1p53;
    allreduce_put(p.state = one.next_block++, SHERD_F64, state, LEN);
    assert_int_equal(allreduce_meet_alone(&p), SHERD_EINVAL);
    state[LEN - 1] = 1000;
    allreduce_put(p.state = one.next_block++, SHERD_F64, state, LEN);
    assert_int_equal(allreduce_meet_alone(&p), 0);
    allreduce_stop();
}

/* Waits until the compute thread has nothing to do, a minute at most. */
static bool rests(void)
{
    for (unsigned i = 0; i < 60000 && sherd__executor_pending(one.executor); i++) {
        usleep(1000);
        allreduce_settle();
    }
    return sherd__executor_pending(one.executor) == 0;
}

static void local_steps_until(int (*ended)(sherd__session *co))
{
    enum { ROWS = 6 };
    uint8_t bytes[8 * (SHERD__ALLREDUCE_STEP + SHERD__PLAN_HEAD + 1 + SHERD__PLAN_SHARD)];
    const uint32_t rows[ROWS] = { 0, 1, 2, 3, 4, 5 };
    const double x[ROWS * 3] = { 0.5 }, y[ROWS * 2] = { 0.25 };
    const int32_t scale = 20;
    sherd__allreduce_plan plan = allreduce_plan();
    sherd__allreduce_round r = { .round = 1,
                                 .rate = 0.5,
                                 .by = 3,
                                 .local = true,
                                 .packs = 1,
                                 .list = { SHERD__ROWS_GIVEN, ROWS, ROWS, { 0 } } };
    sherd__step_plan p = {
        .recipe = TEXT, .bits = 20, .room = 40, .tiers = 1, .params = 1, .shards = 1, .batch = 4
    };
    sherd__step_plan_shard shard = { .rows = 4,
                                     .local = { .steps = UINT32_MAX, .rate = 1e-9, .weight = 1 } };
    allreduce_start_on(true, NULL);
    plan.members = 1;
    plan.self = 0;
    (void)allreduce_meet_alone(&plan);
    assert_true(rests() && one.answered == 1 && one.refused == 0);
    allreduce_put(sherd__allreduce_pack(0), SHERD_U32, rows, ROWS);
    joined_put(&one.j, JOB, sherd__allreduce_pack(0) + 1, SHERD_F64, ROWS, 3, x);
    joined_put(&one.j, JOB, sherd__allreduce_pack(0) + 2, SHERD_F64, ROWS, 2, y);
    sherd__allreduce_round_write(bytes, &r);
    sherd__step_plan_write(bytes + 8 * SHERD__ALLREDUCE_STEP, &p, &scale);
    sherd__step_plan_write_shard(bytes + 8 * SHERD__ALLREDUCE_STEP, &p, 0, &shard);
    allreduce_put(one.next_block, SHERD_I64, bytes, sizeof bytes / 8);
    joined_ask(&one.j, JOB, 500, SHERD__OP_STEP, one.next_block, 0, SHERD_I64, 1, 3);
    allreduce_settle();
    usleep(20000);
    assert_int_equal(sherd__executor_pending(one.executor), 1);
    assert_int_equal(ended(one.j.co), 0);
    allreduce_settle();
    assert_true(rests());
    allreduce_stop();
}

static int drop_job(sherd__session *co)
{
    return sherd__session_drop(co, JOB, 0);
}

static int cancel_job(sherd__session *co)
{
    return sherd__session_cancel(co, JOB, 0, false);
}

static void local_steps_end_with_the_job_that_asked_for_them(void **unused)
{
    (void)unused;
    local_steps_until(drop_job);
}

static void local_steps_end_when_their_round_is_cancelled(void **unused)
{
    (void)unused;
    local_steps_until(cancel_job);
}

static int where(sherd__allreduce_where *w)
{
    int code = allreduce_ask(SHERD__OP_WHERE, TEXT, 0, SHERD_I64, SHERD__ALLREDUCE_WHERE);
    if (!code) assert_true(sherd__allreduce_where_parse(w, one.last_result));
    return code;
}

/* A lost link ends the round; the next round is a new one. */
static void tasks_that_wait_for_a_lost_link_are_refused(void **unused)
{
    (void)unused;
    sherd__allreduce_where w;
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet(), 0);
    assert_int_equal(allreduce_step(1, 0), 0);
    int answer = allreduce_reduce(); /* no member has connected: nothing can be sent */
    assert_true(answer < 0);
    assert_int_equal(where(&w), 0);
    assert_int_equal(w.phase, SHERD__ALLREDUCE_BROKEN);
    assert_int_equal(w.step, 2); /* the step in which it would send */
    assert_int_equal(allreduce_step(2, 0), 0);
    allreduce_stop();
}

/* REDUCE names another block than its STEP, with more tiers than exist; a longer answer would
 * contain uninitialised memory. */
static void a_sum_is_reported_for_the_existing_tiers_only(void **unused)
{
    (void)unused;
    enum { TIERS = 5 };
    const sherd__allreduce_plan alone = { .kind = SHERD__REDUCE_RING,
                                          .members = 1,
                                          .id = GROUP,
                                          .recipe = TEXT,
                                          .state = STATE,
                                          .bits = 20,
                                          .batch = 4,
                                          .examples = 6,
                                          .optimiser = { .method = SHERD__SGD } };
    const int32_t scales[TIERS] = { 20, 20, 20, 20, 20 };
    uint8_t bytes[8 * (SHERD__ALLREDUCE_STEP + SHERD__PLAN_HEAD + TIERS)];
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet_alone(&alone), 0);
    assert_int_equal(allreduce_step(1, 0), 0);
    uint32_t own = one.next_block - 1;
    sherd__allreduce_round r = {
        .round = 1, .rate = 0.5, .by = 3, .list = { SHERD__ROWS_GIVEN, 6, 6, { 0 } }
    };
    sherd__step_plan p = {
        .recipe = TEXT, .bits = 20, .room = 40, .tiers = TIERS, .params = 1, .batch = 4
    };
    sherd__allreduce_round_write(bytes, &r);
    sherd__step_plan_write(bytes + 8 * SHERD__ALLREDUCE_STEP, &p, scales);
    allreduce_put(one.next_block, SHERD_I64, bytes, sizeof bytes / 8);
    assert_int_equal(allreduce_ask(SHERD__OP_REDUCE, one.next_block, 0, SHERD_F64,
                                   TIERS + SHERD__ALLREDUCE_FIGURES),
                     SHERD_ESHAPE);
    assert_int_equal(allreduce_ask(SHERD__OP_REDUCE, own, 0, SHERD_F64,
                                   1 + SHERD__ALLREDUCE_FIGURES),
                     0);
    allreduce_stop();
}

/* Even while a sum waits for other members, which is when the report is needed. */
static void a_member_reports_its_progress_at_any_time(void **unused)
{
    (void)unused;
    sherd__allreduce_where w;
    allreduce_start(NULL);
    assert_true(allreduce_ask(SHERD__OP_WHERE, TEXT, 0, SHERD_I64, 3) < 0);
    assert_int_equal(where(&w), 0);
    assert_true(w.phase == SHERD__ALLREDUCE_NOWHERE && w.round == 0);
    sherd__allreduce_plan alone = allreduce_plan();
    alone.members = 1;
    alone.self = 0;
    assert_int_equal(allreduce_meet_alone(&alone), 0);
    assert_int_equal(where(&w), 0);
    assert_true(w.phase == SHERD__ALLREDUCE_NOWHERE && w.round == 0);
    assert_int_equal(allreduce_step(1, 0), 0);
    assert_int_equal(where(&w), 0);
    assert_true(w.phase == SHERD__ALLREDUCE_SUMMED && w.round == 1);
    assert_int_equal(allreduce_reduce(), 0);
    assert_int_equal(where(&w), 0);
    assert_true(w.phase == SHERD__ALLREDUCE_NOWHERE && w.round == 1);
    one.last_result[8] = 5; /* phases */
    assert_false(sherd__allreduce_where_parse(&w, one.last_result));
    allreduce_stop();
}

static int state_of(uint64_t commit, uint64_t len, bool bare, bool hash, uint64_t cols)
{
    uint8_t bytes[8 * SHERD__ALLREDUCE_STATE];
    const sherd__allreduce_question q = { commit, 0.5, len, bare };
    sherd__allreduce_state_write(bytes, &q);
    allreduce_put(one.next_block++, SHERD_I64, bytes, SHERD__ALLREDUCE_STATE);
    return allreduce_ask(SHERD__OP_STATE, one.next_block - 1, 0, hash ? SHERD_I64 : SHERD_F64,
                         cols);
}

/* The hash covers the reported numbers, whichever part of them is requested; with `bare` set, the
 * gradient is not included. */
static void a_state_and_its_hash_agree(void **unused)
{
    (void)unused;
    enum { ALL = 2 * COUNT + 1 };
    sherd__allreduce_plan p = allreduce_plan();
    p.members = 1;
    p.self = 0;
    p.round = 5;
    allreduce_start(NULL);
    assert_int_equal(allreduce_meet_alone(&p), 0);
    assert_true(state_of(4, COUNT, false, false, COUNT) < 0); /* of a round in which it did not take
                                                               * part */
    for (uint64_t commit = 5; commit <= 6; commit++) {
        if (commit == 6) assert_int_equal(allreduce_step(6, 5), 0);
        if (commit == 6) assert_int_equal(allreduce_reduce(), 0);
        for (int bare = 0; bare < 2; bare++)
            for (size_t len = COUNT; len <= ALL; len += COUNT + 1) {
                double numbers[ALL];
                uint8_t want[SHERD__HASH];
                assert_int_equal(state_of(commit, len, bare, false, len), 0);
                memcpy(numbers, one.last_result, len * sizeof *numbers);
                assert_int_equal(state_of(commit, len, bare, true, SHERD__HASH / 8), 0);
                sherd__state_hash(commit, numbers, len, COUNT, bare, want);
                assert_memory_equal(one.last_result, want, sizeof want);
                sherd__state_hash(commit + 1, numbers, len, COUNT, bare, want);
                assert_memory_not_equal(one.last_result, want, sizeof want);
                numbers[COUNT - 1] += 1;
                sherd__state_hash(commit, numbers, len, COUNT, bare, want);
                assert_memory_not_equal(one.last_result, want, sizeof want);
            }
    }
    assert_int_equal(state_of(6, ALL + 1, false, false, ALL + 1), SHERD_ESHAPE);
    assert_int_equal(state_of(6, COUNT, false, false, COUNT + 1), SHERD_ESHAPE);
    assert_int_equal(state_of(6, COUNT, false, true, COUNT), SHERD_ESHAPE);
    allreduce_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_after_an_impossible_number_of_steps_is_refused),
        cmocka_unit_test(local_steps_end_with_the_job_that_asked_for_them),
        cmocka_unit_test(local_steps_end_when_their_round_is_cancelled),
        cmocka_unit_test(tasks_that_wait_for_a_lost_link_are_refused),
        cmocka_unit_test(a_sum_is_reported_for_the_existing_tiers_only),
        cmocka_unit_test(a_member_reports_its_progress_at_any_time),
        cmocka_unit_test(a_state_and_its_hash_agree),
    };
    return cmocka_run_group_tests(tests, NULL, allreduce_free_identities);
}
