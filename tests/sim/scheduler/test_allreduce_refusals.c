/*
 * Members that refuse, or do nothing: one that is busy is asked again later; one that alone reports
 * that something does not fit is identified; one that computes nothing is distinguished from a slow
 * one. Each is named, and the others give the bits of one process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/sim/scheduler/allreduce_world.h"
#include "tests/support/draw.h"
#include "wire/session.h"

enum { ALWAYS = 1000000 };

static void begin(trial *x, uint64_t seed, uint32_t least)
{
    training t = usual;
    t.nodes = least + (uint32_t)(seed / 2) % (NODES + 1 - least);
    t.kind = (sherd__reduce)(1 + seed % 2);
    t.shards = t.nodes + (uint32_t)(seed % 3);
    allreduce_trial_open(x, seed, &t);
}

static void refuses(trial *x, uint32_t op, int code, uint64_t times)
{
    x->w.refuses = (uint32_t)(draw() % x->t.nodes);
    x->w.refused = op;
    x->w.refuse_code = code;
    x->w.refuse_times = times;
}

static void one_is_gone(const trial *x, uint32_t who, const char *why)
{
    char line[100];
    snprintf(line, sizeof line, "n%u %s", who, why);
    if (x->s.members != x->t.nodes - 1 || !strstr(x->w.log, line))
        fail_msg("n%u of %u: %s", who, x->t.nodes, x->w.log);
}

/* Another job has its memory when members first meet; later there is room. */
static void a_node_that_is_busy_during_the_meeting_joins_later(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        char line[120];
        begin(&x, seed, 2);
        refuses(&x, SHERD__OP_MEET, seed % 3 ? SHERD_EBUSY : SHERD_ENOMEM, 1 + seed % 2);
        allreduce_trial_start(&x);
        x.w.pace = 50;
        allreduce_trial_train(&x);
        snprintf(line, sizeof line,
                 "n%u refuses (another job is under way): the training continues "
                 "without it, and asks it again in 1 s",
                 x.w.refuses);
        if (!strstr(x.w.log, line)) fail_msg("seed %d: %s", (int)seed, x.w.log);
        if (x.s.members != x.t.nodes) fail_msg("seed %d: %u: %s", (int)seed, x.s.members, x.w.log);
        allreduce_trial_close(&x);
    }
}

/* Like a node at which another coordinator's group has that id. */
static void others_meet_with_another_id_if_one_node_is_busy(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        begin(&x, seed, 3);
        refuses(&x, SHERD__OP_MEET, SHERD_EBUSY, 1);
        allreduce_trial_start(&x);
        uint64_t name = allreduce_world_name(&x.w);
        if (!name || name == x.w.refused_under) fail_msg("seed %d: %s", (int)seed, x.w.log);
        sherd__allreduce_job_count(x.w.job, &x.s);
        assert_int_equal(x.s.members, x.t.nodes - 1);
        x.w.pace = 50;
        allreduce_trial_train(&x);
        assert_int_equal(x.s.members, x.t.nodes); /* it is asked again */
        allreduce_trial_close(&x);
    }
}

/* Otherwise another coordinator could occupy it. */
static void the_id_of_a_meeting_is_unpredictable(void **unused)
{
    (void)unused;
    uint64_t names[2][4];
    for (uint8_t secret = 0; secret < 4; secret++) {
        trial x;
        begin(&x, 3, 3);
        x.w.secret = secret;
        refuses(&x, SHERD__OP_MEET, SHERD_EBUSY, 1);
        allreduce_trial_start(&x);
        names[0][secret] = x.w.refused_under;
        names[1][secret] = allreduce_world_name(&x.w);
        allreduce_trial_train(&x);
        allreduce_trial_close(&x);
    }
    for (unsigned i = 0; i < 8; i++)
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(names[i / 4][i % 4], names[k / 4][k % 4]);
}

static void a_node_that_stays_busy_is_asked_less_and_less_often(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed, 2);
        refuses(&x, SHERD__OP_MEET, SHERD_EBUSY, ALWAYS);
        allreduce_trial_start(&x);
        x.w.pace = 20;
        allreduce_trial_train(&x);
        one_is_gone(&x, x.w.refuses, "refuses (another job is under way)");
        uint64_t asked = ALWAYS - x.w.refuse_times, seconds = x.w.now / 1000;
        assert_true((UINT64_C(1) << (asked - 1)) <= seconds + 1);
        allreduce_trial_close(&x);
    }
}

/* There is no other node: its own text ends the training. */
static void a_single_busy_node_ends_the_training_with_its_own_text(void **unused)
{
    (void)unused;
    trial x;
    training t = usual;
    sherd_diag d = { 0 };
    t.nodes = 1;
    allreduce_trial_open(&x, 7, &t);
    refuses(&x, SHERD__OP_MEET, SHERD_ENOMEM, ALWAYS);
    allreduce_trial_start(&x);
    assert_int_equal(allreduce_run_steps(&x.there, &t, STEPS, &d), SHERD_ENOMEM);
    assert_non_null(strstr(d.message, "n0: another job is under way"));
    allreduce_trial_close(&x);
}

/* It reports so of every part, and no other member does. */
static void a_member_that_alone_finds_that_a_step_does_not_fit_is_left_out(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        trial x;
        begin(&x, seed, 2);
        refuses(&x, SHERD__OP_STEP, seed % 4 ? SHERD_EBUSY : SHERD_ERANGE, seed % 3 ? ALWAYS : 1);
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        one_is_gone(&x, x.w.refuses,
                    "reports that a step does not fit, and others report that it does (n");
        allreduce_trial_close(&x);
    }
}

/* In the same step, each of another part. */
static void two_members_that_report_falsely_are_left_out_and_the_training_completes(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        trial x;
        begin(&x, seed, 4);
        refuses(&x, SHERD__OP_STEP, seed % 4 ? SHERD_EBUSY : SHERD_ERANGE, ALWAYS);
        x.w.refuses_too = (x.w.refuses + 1 + (uint32_t)draw() % (x.t.nodes - 1)) % x.t.nodes;
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        if (x.s.members != x.t.nodes - 2) fail_msg("seed %d: %s", (int)seed, x.w.log);
        assert_int_equal(sherd__gradients_stats_of(&x.there.stepper)->rescaled, 0);
        allreduce_trial_close(&x);
    }
}

/* A single member cannot be compared with others. */
static void a_single_member_is_believed(void **unused)
{
    (void)unused;
    trial x;
    training t = usual;
    sherd_diag d = { 0 };
    t.nodes = 1;
    allreduce_trial_open(&x, 9, &t);
    refuses(&x, SHERD__OP_STEP, SHERD_EBUSY, ALWAYS);
    allreduce_trial_start(&x);
    assert_int_equal(allreduce_run_steps(&x.there, &t, STEPS, &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "exceeds all scales: n0: another job is under way"));
    allreduce_trial_close(&x);
}

/* Gradients far beyond the first scales: all members that compute them report so. */
static void begin_beyond_the_scales(trial *x, uint64_t seed, uint32_t least)
{
    begin(x, seed, least);
    x->t.before = 1e-9;
    allreduce_run_end(&x->here);
    allreduce_run_end(&x->there);
    allreduce_run_here(&x->here, &x->w, &x->t);
    allreduce_run_begin(&x->there, &x->w, &x->t);
}

static void a_false_report_that_no_scale_fits_does_not_end_the_training(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        begin_beyond_the_scales(&x, seed, 3);
        refuses(&x, SHERD__OP_STEP, SHERD_ERANGE, ALWAYS);
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        one_is_gone(&x, x.w.refuses,
                    "reports that a step does not fit, and others report that it does (n");
        allreduce_trial_close(&x);
    }
}

static void steps_that_really_do_not_fit_cost_no_member_its_place(void **unused)
{
    (void)unused;
    uint64_t rescaled = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        begin_beyond_the_scales(&x, seed, 2);
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        assert_int_equal(x.s.members, x.t.nodes);
        rescaled += sherd__gradients_stats_of(&x.there.stepper)->rescaled;
        allreduce_trial_close(&x);
    }
    assert_true(rescaled > 0);
}

/* Of a sum: the error does not concern a link. */
static void a_member_that_cannot_finish_a_sum_is_postponed(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        begin(&x, seed, 2);
        refuses(&x, SHERD__OP_REDUCE, SHERD_EBUSY, ALWAYS);
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        one_is_gone(&x, x.w.refuses, "cannot end a sum (n");
        allreduce_trial_close(&x);
    }
}

/* In the first step, or when members first meet: its session is alive, and it answers what needs no
 * computation. */
static void a_member_that_computes_nothing_is_identified_within_seconds(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        trial x;
        begin(&x, seed, 2);
        x.w.stuck = (uint32_t)(draw() % x.t.nodes);
        x.w.later = seed % 2;
        x.w.idle = 100;
        uint64_t began = x.w.now;
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        one_is_gone(&x, x.w.stuck, "does not work on its tasks");
        if (x.w.now - began > 20000) fail_msg("%d ms: %s", (int)(x.w.now - began), x.w.log);
        allreduce_trial_close(&x);
    }
}

/* Most of a minute for its first step, while others take no time. */
static void a_member_that_is_slow_in_the_first_step_stays(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed, 2);
        x.w.slow = (uint32_t)(draw() % x.t.nodes);
        x.w.slow_until = x.w.now + 54000;
        x.w.idle = 100;
        x.w.later = true;
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        if (x.s.members != x.t.nodes || x.s.repeated) fail_msg("%s", x.w.log);
        assert_true(x.w.now >= 54000);
        allreduce_trial_close(&x);
    }
}

/* Its reports of processor time cannot be checked. */
static void a_member_that_only_reports_that_it_computes_is_left_out_after_two_minutes(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed, 2);
        x.w.slow = (uint32_t)(draw() % x.t.nodes);
        x.w.slow_until = UINT64_MAX;
        x.w.idle = 100;
        x.w.later = true;
        uint64_t began = x.w.now;
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        if (x.s.members != x.t.nodes - 1) fail_msg("%s", x.w.log);
        if (x.w.now - began > 125000) fail_msg("%d ms: %s", (int)(x.w.now - began), x.w.log);
        allreduce_trial_close(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_is_busy_during_the_meeting_joins_later),
        cmocka_unit_test(others_meet_with_another_id_if_one_node_is_busy),
        cmocka_unit_test(the_id_of_a_meeting_is_unpredictable),
        cmocka_unit_test(a_node_that_stays_busy_is_asked_less_and_less_often),
        cmocka_unit_test(a_single_busy_node_ends_the_training_with_its_own_text),
        cmocka_unit_test(a_member_that_alone_finds_that_a_step_does_not_fit_is_left_out),
        cmocka_unit_test(two_members_that_report_falsely_are_left_out_and_the_training_completes),
        cmocka_unit_test(a_single_member_is_believed),
        cmocka_unit_test(a_false_report_that_no_scale_fits_does_not_end_the_training),
        cmocka_unit_test(steps_that_really_do_not_fit_cost_no_member_its_place),
        cmocka_unit_test(a_member_that_cannot_finish_a_sum_is_postponed),
        cmocka_unit_test(a_member_that_computes_nothing_is_identified_within_seconds),
        cmocka_unit_test(a_member_that_is_slow_in_the_first_step_stays),
        cmocka_unit_test(a_member_that_only_reports_that_it_computes_is_left_out_after_two_minutes),
    };
    return cmocka_run_group_tests(tests, NULL, allreduce_keys_free);
}
