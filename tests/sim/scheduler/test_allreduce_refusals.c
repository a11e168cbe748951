/*
 * Members that refuse, or do nothing: who cannot now is asked again later, who says alone that
 * something does not fit is found out, who computes nothing is told from who is slow. Each is
 * named, and the others come to the bits of one process.
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
    circle_trial_open(x, seed, &t);
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

/* Another's job has its memory when members first meet; then there is room. */
static void who_is_busy_when_members_meet_comes_in_later(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        char line[100];
        begin(&x, seed, 2);
        refuses(&x, SHERD__OP_MEET, seed % 3 ? SHERD_EBUSY : SHERD_ENOMEM, 1 + seed % 2);
        circle_trial_start(&x);
        x.w.pace = 50;
        circle_trial_train(&x);
        snprintf(line, sizeof line,
                 "n%u refuses (another job is under way): the training goes on "
                 "without it, and asks again in 1 s",
                 x.w.refuses);
        if (!strstr(x.w.log, line)) fail_msg("seed %d: %s", (int)seed, x.w.log);
        if (x.s.members != x.t.nodes) fail_msg("seed %d: %u: %s", (int)seed, x.s.members, x.w.log);
        circle_trial_close(&x);
    }
}

/* As a node is where another coordinator's circle has that name. */
static void others_meet_under_another_name_where_one_is_busy(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        begin(&x, seed, 3);
        refuses(&x, SHERD__OP_MEET, SHERD_EBUSY, 1);
        circle_trial_start(&x);
        uint64_t name = circle_world_name(&x.w);
        if (!name || name == x.w.refused_under) fail_msg("seed %d: %s", (int)seed, x.w.log);
        sherd__allreduce_job_count(x.w.job, &x.s);
        assert_int_equal(x.s.members, x.t.nodes - 1);
        x.w.pace = 50;
        circle_trial_train(&x);
        assert_int_equal(x.s.members, x.t.nodes); /* it is asked again */
        circle_trial_close(&x);
    }
}

/* Or another coordinator could have its circles met under it. */
static void nobody_foretells_what_a_meeting_is_called(void **unused)
{
    (void)unused;
    uint64_t names[2][4];
    for (uint8_t secret = 0; secret < 4; secret++) {
        trial x;
        begin(&x, 3, 3);
        x.w.secret = secret;
        refuses(&x, SHERD__OP_MEET, SHERD_EBUSY, 1);
        circle_trial_start(&x);
        names[0][secret] = x.w.refused_under;
        names[1][secret] = circle_world_name(&x.w);
        circle_trial_train(&x);
        circle_trial_close(&x);
    }
    for (unsigned i = 0; i < 8; i++)
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(names[i / 4][i % 4], names[k / 4][k % 4]);
}

static void who_stays_busy_is_asked_less_and_less_often(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed, 2);
        refuses(&x, SHERD__OP_MEET, SHERD_EBUSY, ALWAYS);
        circle_trial_start(&x);
        x.w.pace = 20;
        circle_trial_train(&x);
        one_is_gone(&x, x.w.refuses, "refuses (another job is under way)");
        uint64_t asked = ALWAYS - x.w.refuse_times, seconds = x.w.now / 1000;
        assert_true((UINT64_C(1) << (asked - 1)) <= seconds + 1);
        circle_trial_close(&x);
    }
}

/* Nobody else is there: its own words end the training. */
static void a_node_that_is_busy_alone_ends_the_training_in_its_words(void **unused)
{
    (void)unused;
    trial x;
    training t = usual;
    sherd_diag d = { 0 };
    t.nodes = 1;
    circle_trial_open(&x, 7, &t);
    refuses(&x, SHERD__OP_MEET, SHERD_ENOMEM, ALWAYS);
    circle_trial_start(&x);
    assert_int_equal(circle_run_steps(&x.there, &t, STEPS, &d), SHERD_ENOMEM);
    assert_non_null(strstr(d.message, "n0: another job is under way"));
    circle_trial_close(&x);
}

/* It says so of whatever it is dealt, and nobody else finds it. */
static void who_finds_alone_that_a_step_does_not_fit_goes(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        trial x;
        begin(&x, seed, 2);
        refuses(&x, SHERD__OP_STEP, seed % 4 ? SHERD_EBUSY : SHERD_ERANGE, seed % 3 ? ALWAYS : 1);
        circle_trial_start(&x);
        circle_trial_train(&x);
        one_is_gone(&x, x.w.refuses,
                    "finds a step that does not fit where others find that it "
                    "does (n");
        circle_trial_close(&x);
    }
}

/* Alone there is nobody to ask. */
static void one_member_is_believed(void **unused)
{
    (void)unused;
    trial x;
    training t = usual;
    sherd_diag d = { 0 };
    t.nodes = 1;
    circle_trial_open(&x, 9, &t);
    refuses(&x, SHERD__OP_STEP, SHERD_EBUSY, ALWAYS);
    circle_trial_start(&x);
    assert_int_equal(circle_run_steps(&x.there, &t, STEPS, &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "beyond all scales: n0: another job is under way"));
    circle_trial_close(&x);
}

/* Gradients far beyond what the first scales are made for: all who see one say so. */
static void what_really_does_not_fit_takes_nobody_out(void **unused)
{
    (void)unused;
    uint64_t rescaled = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        begin(&x, seed, 2);
        x.t.before = 1e-9;
        circle_run_end(&x.here);
        circle_run_end(&x.there);
        circle_run_here(&x.here, &x.w, &x.t);
        circle_run_begin(&x.there, &x.w, &x.t);
        circle_trial_start(&x);
        circle_trial_train(&x);
        assert_int_equal(x.s.members, x.t.nodes);
        rescaled += sherd__gradients_stats_of(&x.there.stepper)->rescaled;
        circle_trial_close(&x);
    }
    assert_true(rescaled > 0);
}

/* Of a sum: it says that this is about nobody's link. */
static void who_cannot_end_a_sum_is_put_off(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        begin(&x, seed, 2);
        refuses(&x, SHERD__OP_REDUCE, SHERD_EBUSY, ALWAYS);
        circle_trial_start(&x);
        circle_trial_train(&x);
        one_is_gone(&x, x.w.refuses, "cannot end a sum (n");
        circle_trial_close(&x);
    }
}

/* In the first step, or when members first meet: its session lives, and it answers at once what is
 * answered at once. */
static void who_computes_nothing_is_found_in_seconds(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        trial x;
        begin(&x, seed, 2);
        x.w.stuck = (uint32_t)(draw() % x.t.nodes);
        x.w.later = seed % 2;
        x.w.idle = 100;
        uint64_t began = x.w.now;
        circle_trial_start(&x);
        circle_trial_train(&x);
        one_is_gone(&x, x.w.stuck, "does nothing of what it was asked");
        if (x.w.now - began > 20000) fail_msg("%d ms: %s", (int)(x.w.now - began), x.w.log);
        circle_trial_close(&x);
    }
}

/* Nine minutes for its first step, where others take no time. */
static void who_is_slow_in_the_first_step_stays(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed, 2);
        x.w.slow = (uint32_t)(draw() % x.t.nodes);
        x.w.slow_until = x.w.now + 540000;
        x.w.idle = 100;
        x.w.later = true;
        circle_trial_start(&x);
        circle_trial_train(&x);
        if (x.s.members != x.t.nodes || x.s.repeated) fail_msg("%s", x.w.log);
        assert_true(x.w.now >= 540000);
        circle_trial_close(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_busy_when_members_meet_comes_in_later),
        cmocka_unit_test(others_meet_under_another_name_where_one_is_busy),
        cmocka_unit_test(nobody_foretells_what_a_meeting_is_called),
        cmocka_unit_test(who_stays_busy_is_asked_less_and_less_often),
        cmocka_unit_test(a_node_that_is_busy_alone_ends_the_training_in_its_words),
        cmocka_unit_test(who_finds_alone_that_a_step_does_not_fit_goes),
        cmocka_unit_test(one_member_is_believed),
        cmocka_unit_test(what_really_does_not_fit_takes_nobody_out),
        cmocka_unit_test(who_cannot_end_a_sum_is_put_off),
        cmocka_unit_test(who_computes_nothing_is_found_in_seconds),
        cmocka_unit_test(who_is_slow_in_the_first_step_stays),
    };
    return cmocka_run_group_tests(tests, NULL, circle_keys_free);
}
