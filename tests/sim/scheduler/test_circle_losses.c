/*
 * Circles that lose nodes and links. Whatever is lost, and when: the parameters are those of one
 * process to the bit, or the training ends and says why; it never hangs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/sim/scheduler/circle_world.h"
#include "tests/support/draw.h"

typedef enum mishap { KILL, FREEZE, SEVER, RETURN } mishap;

static void try_mishap(mishap what, uint64_t seed, const training *t, uint64_t *struck)
{
    world w;
    run here, there;
    sherd_diag d = { 0 };
    draw_state = seed;
    circle_world_open(&w, t);
    circle_run_here(&here, &w, t);
    circle_run_begin(&there, &w, t);
    if (seed % 5 == 0) w.memory = 4 * 8 * ROW; /* no room to keep all */
    w.at = 1 + draw() % (what == RETURN ? 60 : 150);
    uint32_t who = (uint32_t)(draw() % t->nodes);
    if (what == KILL || what == RETURN) w.kill = who;
    if (what == RETURN) w.back = who;
    if (what == FREEZE) w.freeze = who;
    if (what == SEVER) w.sever = who;
    circle_job_open(&w, t, &there);
    if (circle_run_steps(&there, t, STEPS, &d))
        fail_msg("seed %d: %s\n%s", (int)seed, d.message, w.log);
    sherd__circle_stats s;
    sherd__circle_job_count(w.job, &s);
    *struck += what == RETURN ? s.members == t->nodes && strstr(w.log, "is back") != NULL
                              : w.moves >= w.at;
    circle_assert_same(&here, &there);
    circle_world_close(&w);
    circle_run_end(&here);
    circle_run_end(&there);
}

static void a_node_that_dies_at_any_time_changes_no_bit(void **unused)
{
    (void)unused;
    uint64_t struck = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        training t = usual;
        t.nodes = 2 + (uint32_t)seed % 5;
        t.kind = (sherd__reduce)(1 + seed % 2);
        t.method = seed % 3 ? SHERD__ADAM : SHERD__SGD;
        t.order = SHERD__ORDER_GIVEN + seed % 4;
        try_mishap(KILL, seed, &t, &struck);
    }
    assert_true(struck > 100);
}

/* It has nothing any more, and is given what the others hold. */
static void a_node_that_comes_back_goes_on_with_the_others(void **unused)
{
    (void)unused;
    uint64_t struck = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        training t = usual;
        t.nodes = 2 + (uint32_t)seed % 5;
        t.kind = (sherd__reduce)(1 + seed % 2);
        t.method = SHERD__SGD + seed % 3;
        t.order = SHERD__ORDER_GIVEN + seed % 4;
        try_mishap(RETURN, seed, &t, &struck);
    }
    assert_true(struck > 50);
}

/* One that sends no part of a sum, or takes none, and answers the leader: it is told from its
 * neighbour by the company that it keeps. */
static void whoever_holds_up_a_sum_is_named(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        world w;
        run here, there;
        sherd_diag d = { 0 };
        sherd__circle_stats s;
        training t = usual;
        char line[80];
        t.nodes = 2 + (uint32_t)(seed / 2) % 7;
        t.kind = (sherd__reduce)(1 + seed % 2);
        draw_state = seed;
        circle_world_open(&w, &t);
        circle_run_here(&here, &w, &t);
        circle_run_begin(&there, &w, &t);
        uint32_t who = (uint32_t)(draw() % t.nodes);
        if (seed % 3) w.mute = who;
        else w.deaf = who;
        circle_job_open(&w, &t, &there);
        uint64_t began = w.now;
        if (circle_run_steps(&there, &t, STEPS, &d))
            fail_msg("seed %d: %s\n%s", (int)seed, d.message, w.log);
        circle_assert_same(&here, &there);
        sherd__circle_job_count(w.job, &s);
        if (s.members != t.nodes - 1)
            fail_msg("seed %d, n%u of %u: %s", (int)seed, who, t.nodes, w.log);
        snprintf(line, sizeof line, "n%u %s parts ", who, w.mute == who ? "gives no" : "takes no");
        if (t.nodes > 2 && !strstr(w.log, line)) fail_msg("seed %d: %s", (int)seed, w.log);
        assert_true(w.now - began <= 100000);
        circle_world_close(&w);
        circle_run_end(&here);
        circle_run_end(&there);
    }
}

/* Links that take minutes for a sum: everything moves, and nobody is blamed. */
static void a_sum_that_is_slow_is_waited_for(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world w;
        run here, there;
        sherd_diag d = { 0 };
        sherd__circle_stats s;
        training t = usual;
        t.nodes = 3 + (uint32_t)seed % 5;
        t.kind = (sherd__reduce)(1 + seed % 2);
        draw_state = seed;
        circle_world_open(&w, &t);
        circle_run_here(&here, &w, &t);
        circle_run_begin(&there, &w, &t);
        circle_job_open(&w, &t, &there);
        w.pace = 900;
        uint64_t began = w.now;
        if (circle_run_steps(&there, &t, STEPS, &d)) fail_msg("%s\n%s", d.message, w.log);
        circle_assert_same(&here, &there);
        sherd__circle_job_count(w.job, &s);
        assert_int_equal(s.members, t.nodes);
        assert_int_equal(s.repeated, 0);
        assert_true(w.now - began > STEPS * 20000);
        circle_world_close(&w);
        circle_run_end(&here);
        circle_run_end(&there);
    }
}

/* Weights are one member's word, and all others' that these are theirs too. */
static void a_member_with_other_weights_is_named(void **unused)
{
    (void)unused;
    for (uint32_t nodes = 2; nodes <= 5; nodes++)
        for (unsigned tells = 0; tells < 3; tells++) {
            world w;
            run here, there;
            sherd_diag d = { 0 };
            sherd__circle_stats s;
            training t = usual;
            t.nodes = nodes;
            circle_world_open(&w, &t);
            circle_run_here(&here, &w, &t);
            circle_run_begin(&there, &w, &t);
            circle_job_open(&w, &t, &there);
            if (tells == 0) w.liar = 0;
            else w.other = tells == 1 ? 0 : nodes - 1;
            int err = circle_run_steps(&there, &t, STEPS, &d);
            if (nodes == 2 && tells > 0) { /* who is right? */
                assert_int_equal(err, SHERD_EWRONG);
                assert_non_null(strstr(d.message, "hold different weights"));
            } else {
                if (err) fail_msg("%s\n%s", d.message, w.log);
                circle_assert_same(&here, &there);
                sherd__circle_job_count(w.job, &s);
                assert_int_equal(s.members, nodes - 1);
                assert_non_null(strstr(w.log, tells == 0   ? "n0 gave other weights"
                                              : tells == 1 ? "n0 holds other weights"
                                                           : " holds other weights"));
            }
            circle_world_close(&w);
            circle_run_end(&here);
            circle_run_end(&there);
        }
}

static void a_node_that_stops_in_a_round_is_left_behind(void **unused)
{
    (void)unused;
    uint64_t struck = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        training t = usual;
        t.nodes = 2 + (uint32_t)seed % 5;
        t.kind = (sherd__reduce)(1 + seed % 2);
        try_mishap(FREEZE, seed, &t, &struck);
    }
    assert_true(struck > 50);
}

static void a_link_that_breaks_costs_a_round_and_no_bit(void **unused)
{
    (void)unused;
    uint64_t struck = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        training t = usual;
        t.nodes = 2 + (uint32_t)seed % 6;
        t.kind = (sherd__reduce)(1 + seed % 2);
        t.method = SHERD__MOMENTUM;
        try_mishap(SEVER, seed, &t, &struck);
    }
    assert_true(struck > 100);
}

/* More breaks than a training can bear: it ends in words, or in the right bits. */
static void links_that_break_all_the_time_end_in_words(void **unused)
{
    (void)unused;
    unsigned ended = 0, well = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        world w;
        run here, there;
        sherd_diag d = { 0 };
        training t = usual;
        t.nodes = 4;
        draw_state = seed;
        circle_world_open(&w, &t);
        circle_run_here(&here, &w, &t);
        circle_run_begin(&there, &w, &t);
        circle_job_open(&w, &t, &there);
        w.often = 40 + seed * 20;
        int err = circle_run_steps(&there, &t, STEPS, &d);
        if (err) {
            assert_true(err == SHERD_ENET || err == SHERD_EFEWNODES || err == SHERD_ECLOSED);
            assert_true(d.message[0]);
            ended++;
        } else {
            circle_assert_same(&here, &there);
            well++;
        }
        circle_world_close(&w);
        circle_run_end(&here);
        circle_run_end(&there);
    }
    assert_true(ended > 3 && well > 3);
}

static void what_a_lost_node_had_is_dropped_where_that_is_allowed(void **unused)
{
    (void)unused;
    world w;
    run there;
    sherd_diag d = { 0 };
    training t = usual;
    t.allow_drop = true;
    draw_state = 5;
    circle_world_open(&w, &t);
    circle_run_begin(&there, &w, &t);
    circle_job_open(&w, &t, &there);
    w.kill = 1;
    w.at = 1;
    if (circle_run_steps(&there, &t, STEPS, &d)) fail_msg("%s\n%s", d.message, w.log);
    const sherd__gradients_stats *s = sherd__gradients_stats_of(&there.stepper);
    assert_int_equal(s->updates, STEPS);
    assert_in_range(s->dropped, 1, 2); /* of five shards, dealt to three */
    circle_world_close(&w);
    circle_run_end(&there);
}

static void the_last_node_gone_is_an_end(void **unused)
{
    (void)unused;
    world w;
    run there;
    sherd_diag d = { 0 };
    training t = usual;
    t.nodes = 1;
    circle_world_open(&w, &t);
    circle_run_begin(&there, &w, &t);
    circle_job_open(&w, &t, &there);
    w.kill = 0;
    w.at = 1;
    assert_int_equal(circle_run_steps(&there, &t, STEPS, &d), SHERD_EFEWNODES);
    assert_int_equal(there.stepper.ops->settle(there.stepper.ctx, &d), 0); /* no step was made */
    circle_world_close(&w);
    circle_run_end(&there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_dies_at_any_time_changes_no_bit),
        cmocka_unit_test(a_node_that_comes_back_goes_on_with_the_others),
        cmocka_unit_test(whoever_holds_up_a_sum_is_named),
        cmocka_unit_test(a_sum_that_is_slow_is_waited_for),
        cmocka_unit_test(a_member_with_other_weights_is_named),
        cmocka_unit_test(a_node_that_stops_in_a_round_is_left_behind),
        cmocka_unit_test(a_link_that_breaks_costs_a_round_and_no_bit),
        cmocka_unit_test(links_that_break_all_the_time_end_in_words),
        cmocka_unit_test(what_a_lost_node_had_is_dropped_where_that_is_allowed),
        cmocka_unit_test(the_last_node_gone_is_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, circle_keys_free);
}
