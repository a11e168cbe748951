/*
 * Faulty members of all-reduce groups: members that delay a sum and deny it, report broken links
 * that work, repeatedly disconnect, or are not accepted by others. A faulty member loses its place,
 * and no bit changes; one liar does not cost other members their places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/allreduce/internal.h"
#include "tests/sim/scheduler/allreduce_world.h"
#include "tests/support/draw.h"

/* The fault is set in x->w before the group opens. */
static void begin(trial *x, uint64_t seed)
{
    training t = usual;
    t.nodes = 3 + (uint32_t)(seed / 2) % 4;
    t.kind = (sherd__reduce)(1 + seed % 2);
    allreduce_trial_open(x, seed, &t);
}

static void one_is_gone(const trial *x, uint32_t who, const char *why)
{
    char line[100];
    snprintf(line, sizeof line, "n%u %s", who, why);
    if (x->s.members != x->t.nodes - 1 || !strstr(x->w.log, line))
        fail_msg("n%u of %u: %s", who, x->t.nodes, x->w.log);
}

static void a_member_that_does_not_report_its_sum_is_identified(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed);
        x.w.keeps = (uint32_t)(draw() % x.t.nodes);
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        one_is_gone(&x, x.w.keeps, "does not report its sum");
        allreduce_trial_close(&x);
    }
}

/* It sends no parts, and reports that bytes move for it. */
static void reports_that_bytes_move_are_accepted_for_a_limited_time(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        begin(&x, seed);
        x.w.mute = x.w.hurries = (uint32_t)(draw() % x.t.nodes);
        allreduce_trial_start(&x);
        uint64_t began = x.w.now;
        allreduce_trial_train(&x);
        one_is_gone(&x, x.w.mute, "sends no parts to others");
        if (x.w.now - began > 480000) fail_msg("%d ms: %s", (int)(x.w.now - began), x.w.log);
        allreduce_trial_close(&x);
    }
}

/* Its sums are reported; one timeout passes for its other reports. */
static void a_member_that_does_not_report_its_progress_is_left_out(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed);
        x.w.dumb = (uint32_t)(draw() % x.t.nodes);
        allreduce_trial_start(&x);
        x.w.pace = 500; /* and a link gives up after CONNECT_MS at the latest */
        allreduce_trial_train(&x);
        assert_true(x.w.node[x.w.dumb].expelled);
        if (x.s.members != x.t.nodes - 1) fail_msg("n%u: %s", x.w.dumb, x.w.log);
        allreduce_trial_close(&x);
    }
}

/* At each meeting it reports that another member cannot be reached. */
static void a_member_that_lies_about_links_costs_at_most_one_other_its_place(void **unused)
{
    (void)unused;
    uint64_t struck = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed);
        x.w.liar_links = 0;
        x.w.sever = 1;
        x.w.at = 1 + draw() % 60;
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        if (strstr(x.w.log, " has links that cannot be opened")) {
            if (!strstr(x.w.log, "n0 has links that cannot be opened")) fail_msg("%s", x.w.log);
            assert_in_range(x.s.members, x.t.nodes - 2, x.t.nodes - 1);
            struck++;
        }
        allreduce_trial_close(&x);
    }
    assert_true(struck > 6);
}

/* Two or three liars, fewer than half of the members, which report of one node after the other that
 * it delays them. */
static void liars_that_agree_cost_at_most_one_honest_node_each(void **unused)
{
    (void)unused;
    uint32_t most = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        trial x;
        uint32_t lost = 0, liars = 2 + (uint32_t)(seed / 2) % 2;
        training t = usual;
        t.nodes = 2 * liars + 1 + (uint32_t)(seed / 4) % (NODES - 2 * liars);
        t.kind = (sherd__reduce)(1 + seed % 2);
        allreduce_trial_open(&x, seed, &t);
        while ((uint32_t)__builtin_popcount(x.w.agree) < liars) x.w.agree |= 1u << draw() % t.nodes;
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        for (uint32_t i = 0; i < t.nodes; i++)
            if (!(x.w.agree >> i & 1)) lost += x.w.job->nodes[i].out;
            else assert_true(x.w.job->nodes[i].out);
        if (lost > liars) fail_msg("seed %d: %u liars: %s", (int)seed, liars, x.w.log);
        if (lost > most) most = lost;
        allreduce_trial_close(&x);
    }
    assert_true(most >= 2); /* the bound is reached */
}

static void a_member_lost_in_each_round_and_back_does_not_stop_the_training(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed);
        x.w.flaps = (uint32_t)(draw() % x.t.nodes);
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        assert_non_null(strstr(x.w.log, " is back, and in the training from the next round on"));
        assert_true(x.s.repeated > 1 && x.s.repeated <= STEPS);
        allreduce_trial_close(&x);
    }
}

static void a_node_that_a_member_does_not_accept_is_left_out_alone(void **unused)
{
    (void)unused;
    uint64_t struck = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed);
        x.w.absent = (uint32_t)(draw() % x.t.nodes);
        x.w.doubts = seed % 3 ? (x.w.absent + 1) % x.t.nodes : ALL;
        allreduce_trial_start(&x);
        x.w.back = x.w.absent;
        allreduce_trial_train(&x);
        if (strstr(x.w.log, " has come")) {
            one_is_gone(&x, x.w.absent, "is not accepted by all members");
            struck++;
        }
        allreduce_trial_close(&x);
    }
    assert_true(struck > 6);
}

/* Another member is lost while members meet: the returning one receives the state again, and does
 * not keep the first. */
static void after_a_cancelled_meeting_a_member_keeps_one_state(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        trial x;
        begin(&x, seed);
        x.w.absent = (uint32_t)(draw() % x.t.nodes);
        x.w.kill = (x.w.absent + 1) % x.t.nodes;
        allreduce_trial_start(&x);
        x.w.back = x.w.absent;
        x.w.at = 1 + draw() % 60;
        allreduce_trial_train(&x);
        for (uint32_t i = 0; i < x.t.nodes; i++)
            if (x.w.node[i].up) assert_int_equal(x.w.node[i].states_len, 0);
        allreduce_trial_close(&x);
    }
}

/* After 2^29 packs or 2^31 other blocks in one session; otherwise the others would wait for its
 * part. */
static void exhausted_block_numbers_end_the_training(void **unused)
{
    (void)unused;
    for (unsigned packs = 0; packs < 2; packs++) {
        trial x;
        sherd_diag d = { 0 };
        allreduce_trial_open(&x, 4, &usual);
        allreduce_trial_start(&x);
        assert_int_equal(allreduce_run_steps(&x.there, &usual, 1, &d), 0);
        if (packs) x.w.job->nodes[1].packs = SHERD__ALLREDUCE_PACKS_MOST;
        else x.w.job->nodes[1].next_block = sherd__allreduce_pack(0) - 4;
        assert_int_equal(allreduce_run_steps(&x.there, &usual, 1, &d), SHERD_EUNSUPPORTED);
        assert_non_null(strstr(d.message, "has used all numbers of blocks"));
        allreduce_trial_close(&x);
    }
}

/* All members agree on it, or there is only one. */
static void a_state_after_an_invalid_number_of_steps_is_refused(void **unused)
{
    (void)unused;
    const double steps[] = { NAN, -1, INFINITY, 0x1p60 };
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        trial x;
        sherd_diag d = { 0 };
        training t = usual;
        t.nodes = 1;
        t.method = SHERD__ADAM;
        allreduce_trial_open(&x, 3, &t);
        allreduce_trial_start(&x);
        x.w.steps = steps[i];
        assert_int_equal(allreduce_run_steps(&x.there, &t, STEPS, &d), SHERD_EWRONG);
        assert_int_equal(allreduce_run_steps(&x.there, &t, STEPS, &d), SHERD_EWRONG);
        assert_non_null(strstr(d.message, "the nodes hold a state after"));
        allreduce_trial_close(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_that_does_not_report_its_sum_is_identified),
        cmocka_unit_test(reports_that_bytes_move_are_accepted_for_a_limited_time),
        cmocka_unit_test(a_member_that_does_not_report_its_progress_is_left_out),
        cmocka_unit_test(a_member_that_lies_about_links_costs_at_most_one_other_its_place),
        cmocka_unit_test(liars_that_agree_cost_at_most_one_honest_node_each),
        cmocka_unit_test(a_member_lost_in_each_round_and_back_does_not_stop_the_training),
        cmocka_unit_test(a_node_that_a_member_does_not_accept_is_left_out_alone),
        cmocka_unit_test(after_a_cancelled_meeting_a_member_keeps_one_state),
        cmocka_unit_test(exhausted_block_numbers_end_the_training),
        cmocka_unit_test(a_state_after_an_invalid_number_of_steps_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, allreduce_keys_free);
}
