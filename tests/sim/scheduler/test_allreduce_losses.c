/*
 * All-reduce groups that lose nodes and links. Whatever is lost, and when, the parameters have the
 * bits of one process, or the training ends with a reason; it never hangs.
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

typedef enum mishap { KILL, FREEZE, SEVER, RETURN } mishap;

/* One fault at a time, at any time, in trainings of all kinds. */
static void try_mishap(mishap what, uint64_t trials, uint64_t least)
{
    uint64_t struck = 0;
    for (uint64_t seed = 1; seed <= trials; seed++) {
        trial x;
        training t = usual;
        t.nodes = 2 + (uint32_t)seed % 6;
        t.kind = (sherd__reduce)(1 + seed / 6 % 2);
        t.method = SHERD__SGD + seed % 3;
        t.order = SHERD__ORDER_GIVEN + seed % 4;
        allreduce_trial_open(&x, seed, &t);
        if (seed % 5 == 0) x.w.memory = 4 * 8 * ROW; /* not enough memory for all rows */
        x.w.at = 1 + draw() % (what == RETURN ? 60 : 150);
        uint32_t who = (uint32_t)(draw() % t.nodes);
        if (what == KILL || what == RETURN) x.w.kill = who;
        if (what == RETURN) x.w.back = who;
        if (what == FREEZE) x.w.freeze = who;
        if (what == SEVER) x.w.sever = who;
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        struck += what == RETURN ? x.s.members == t.nodes && strstr(x.w.log, "is back")
                                 : x.w.moves >= x.w.at;
        allreduce_trial_close(&x);
    }
    assert_true(struck > least);
}

static void a_node_that_dies_at_any_time_does_not_change_bits(void **unused)
{
    (void)unused;
    try_mishap(KILL, 200, 100);
}

/* It has no data any more, and receives those of the others. */
static void a_returning_node_continues_with_the_others(void **unused)
{
    (void)unused;
    try_mishap(RETURN, 200, 50);
}

/* A member that sends no part of a sum, or accepts none, and answers the coordinator: reports under
 * other orders of members distinguish it from its neighbours. */
static void a_member_that_delays_a_sum_is_named(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        trial x;
        training t = usual;
        char line[80];
        t.nodes = 2 + (uint32_t)(seed / 2) % 7;
        t.kind = (sherd__reduce)(1 + seed % 2);
        allreduce_trial_open(&x, seed, &t);
        uint32_t who = (uint32_t)(draw() % t.nodes);
        if (seed % 3) x.w.mute = who;
        else x.w.deaf = who;
        allreduce_trial_start(&x);
        uint64_t began = x.w.now;
        allreduce_trial_train(&x);
        if (x.s.members != t.nodes - 1)
            fail_msg("seed %d, n%u of %u: %s", (int)seed, who, t.nodes, x.w.log);
        snprintf(line, sizeof line, "n%u %s parts ", who,
                 x.w.mute == who ? "sends no" : "receives no");
        if (t.nodes > 2 && !strstr(x.w.log, line)) fail_msg("seed %d: %s", (int)seed, x.w.log);
        assert_true(x.w.now - began <= 100000);
        allreduce_trial_close(&x);
    }
}

/* Links that take minutes for a sum: bytes move at all members, and none is blamed. */
static void a_slow_sum_is_waited_for(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        trial x;
        training t = usual;
        t.nodes = 3 + (uint32_t)seed % 5;
        t.kind = (sherd__reduce)(1 + seed % 2);
        allreduce_trial_open(&x, seed, &t);
        allreduce_trial_start(&x);
        x.w.pace = 900;
        uint64_t began = x.w.now;
        allreduce_trial_train(&x);
        assert_int_equal(x.s.members, t.nodes);
        assert_int_equal(x.s.repeated, 0);
        assert_true(x.w.now - began > STEPS * 20000);
        allreduce_trial_close(&x);
    }
}

/* One member sends the weights, and all others confirm that theirs are the same. */
static void a_member_with_other_weights_is_named(void **unused)
{
    (void)unused;
    for (uint32_t nodes = 2; nodes <= 5; nodes++)
        for (unsigned tells = 0; tells < 3; tells++) {
            trial x;
            training t = usual;
            t.nodes = nodes;
            allreduce_trial_open(&x, nodes, &t);
            allreduce_trial_start(&x);
            if (tells == 0) x.w.liar = 0;
            else x.w.other = tells == 1 ? 0 : nodes - 1;
            if (nodes == 2 && tells > 0) { /* it is undecidable which one is right */
                sherd_diag d = { 0 };
                assert_int_equal(allreduce_run_steps(&x.there, &t, STEPS, &d), SHERD_EWRONG);
                assert_non_null(strstr(d.message, "hold different weights"));
            } else {
                allreduce_trial_train(&x);
                assert_int_equal(x.s.members, nodes - 1);
                assert_non_null(strstr(x.w.log, tells == 0   ? "n0 sent other weights"
                                                : tells == 1 ? "n0 has other weights"
                                                             : " has other weights"));
            }
            allreduce_trial_close(&x);
        }
}

static void a_node_that_stops_in_a_round_is_left_out(void **unused)
{
    (void)unused;
    try_mishap(FREEZE, 100, 50);
}

static void a_broken_link_costs_a_round_and_does_not_change_bits(void **unused)
{
    (void)unused;
    try_mishap(SEVER, 200, 100);
}

/* More breaks than a training can handle: it ends with an error or with the right bits. */
static void links_that_break_all_the_time_end_with_an_error_or_the_right_bits(void **unused)
{
    (void)unused;
    unsigned ended = 0, well = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        trial x;
        sherd_diag d = { 0 };
        training t = usual;
        t.nodes = 4;
        allreduce_trial_open(&x, seed, &t);
        allreduce_trial_start(&x);
        x.w.often = 10 + seed * 5;
        int err = allreduce_run_steps(&x.there, &t, STEPS, &d);
        if (err) {
            assert_true(err == SHERD_ENET || err == SHERD_EFEWNODES || err == SHERD_ECLOSED);
            assert_true(d.message[0]);
            ended++;
        } else {
            allreduce_assert_same(&x.here, &x.there);
            well++;
        }
        allreduce_trial_close(&x);
    }
    assert_true(ended > 3 && well > 3);
}

static void parts_of_a_lost_node_are_dropped_if_that_is_allowed(void **unused)
{
    (void)unused;
    world w;
    run there;
    sherd_diag d = { 0 };
    training t = usual;
    t.allow_drop = true;
    draw_state = 5;
    allreduce_world_open(&w, &t);
    allreduce_run_begin(&there, &w, &t);
    allreduce_job_open(&w, &t, &there);
    w.kill = 1;
    w.at = 1;
    if (allreduce_run_steps(&there, &t, STEPS, &d)) fail_msg("%s\n%s", d.message, w.log);
    const sherd__gradients_stats *s = sherd__gradients_stats_of(&there.stepper);
    assert_int_equal(s->updates, STEPS);
    assert_in_range(s->dropped, 1, 2); /* of five shards, dealt to three nodes */
    allreduce_world_close(&w);
    allreduce_run_end(&there);
}

/* A step with one shard; the node that has it is lost in one of the cases. */
static void a_step_whose_parts_were_all_dropped_is_computed_by_the_remaining_nodes(void **unused)
{
    (void)unused;
    for (uint32_t dies = 0; dies < 3; dies++) {
        world w;
        run there;
        sherd_diag d = { 0 };
        training t = usual;
        t.allow_drop = true;
        t.shards = 1;
        draw_state = 5;
        allreduce_world_open(&w, &t);
        allreduce_run_begin(&there, &w, &t);
        allreduce_job_open(&w, &t, &there);
        w.kill = dies;
        w.at = 1;
        if (allreduce_run_steps(&there, &t, STEPS, &d)) fail_msg("%s\n%s", d.message, w.log);
        assert_int_equal(sherd__gradients_stats_of(&there.stepper)->updates, STEPS);
        allreduce_world_close(&w);
        allreduce_run_end(&there);
    }
}

static void the_loss_of_the_last_node_ends_the_training(void **unused)
{
    (void)unused;
    world w;
    run there;
    sherd_diag d = { 0 };
    training t = usual;
    t.nodes = 1;
    allreduce_world_open(&w, &t);
    allreduce_run_begin(&there, &w, &t);
    allreduce_job_open(&w, &t, &there);
    w.kill = 0;
    w.at = 1;
    assert_int_equal(allreduce_run_steps(&there, &t, STEPS, &d), SHERD_EFEWNODES);
    assert_int_equal(there.stepper.ops->settle(there.stepper.ctx, &d), 0); /* no step was done */
    allreduce_world_close(&w);
    allreduce_run_end(&there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_dies_at_any_time_does_not_change_bits),
        cmocka_unit_test(a_returning_node_continues_with_the_others),
        cmocka_unit_test(a_member_that_delays_a_sum_is_named),
        cmocka_unit_test(a_slow_sum_is_waited_for),
        cmocka_unit_test(a_member_with_other_weights_is_named),
        cmocka_unit_test(a_node_that_stops_in_a_round_is_left_out),
        cmocka_unit_test(a_broken_link_costs_a_round_and_does_not_change_bits),
        cmocka_unit_test(links_that_break_all_the_time_end_with_an_error_or_the_right_bits),
        cmocka_unit_test(parts_of_a_lost_node_are_dropped_if_that_is_allowed),
        cmocka_unit_test(a_step_whose_parts_were_all_dropped_is_computed_by_the_remaining_nodes),
        cmocka_unit_test(the_loss_of_the_last_node_ends_the_training),
    };
    return cmocka_run_group_tests(tests, NULL, allreduce_keys_free);
}
