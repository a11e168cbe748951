/*
 * Members of circles at fault: who holds up a sum and says that it does not, who tells of broken
 * links that are well, who comes and goes, and who is not believed. It costs whoever did it its
 * place, and no bit; one liar does not take the others' places.
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

/* What is at fault is said in x->w before the circle opens. */
static void begin(trial *x, uint64_t seed)
{
    training t = usual;
    t.nodes = 3 + (uint32_t)(seed / 2) % 4;
    t.kind = (sherd__reduce)(1 + seed % 2);
    circle_trial_open(x, seed, &t);
}

static void one_is_gone(const trial *x, uint32_t who, const char *why)
{
    char line[100];
    snprintf(line, sizeof line, "n%u %s", who, why);
    if (x->s.members != x->t.nodes - 1 || !strstr(x->w.log, line))
        fail_msg("n%u of %u: %s", who, x->t.nodes, x->w.log);
}

static void who_has_a_sum_and_does_not_tell_it_is_found(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed);
        x.w.keeps = (uint32_t)(draw() % x.t.nodes);
        circle_trial_start(&x);
        circle_trial_train(&x);
        one_is_gone(&x, x.w.keeps, "does not tell the sum that it has");
        circle_trial_close(&x);
    }
}

/* It sends no parts, and says that bytes move for it. */
static void who_says_that_bytes_move_is_believed_for_a_while(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trial x;
        begin(&x, seed);
        x.w.mute = x.w.hurries = (uint32_t)(draw() % x.t.nodes);
        circle_trial_start(&x);
        circle_trial_train(&x);
        one_is_gone(&x, x.w.mute, "gives no parts to others");
        circle_trial_close(&x);
    }
}

/* Its sums are told, and one waits for what it owes besides. */
static void who_does_not_say_where_it_is_goes(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed);
        x.w.dumb = (uint32_t)(draw() % x.t.nodes);
        circle_trial_start(&x);
        x.w.pace = 500; /* and a link gives up after CONNECT_MS at the latest */
        circle_trial_train(&x);
        assert_true(x.w.node[x.w.dumb].expelled);
        if (x.s.members != x.t.nodes - 1) fail_msg("n%u: %s", x.w.dumb, x.w.log);
        circle_trial_close(&x);
    }
}

/* At each meeting it says that another cannot be reached. */
static void who_lies_about_links_has_one_other_left_out_at_most(void **unused)
{
    (void)unused;
    uint64_t struck = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed);
        x.w.liar_links = 0;
        x.w.sever = 1;
        x.w.at = 1 + draw() % 60;
        circle_trial_start(&x);
        circle_trial_train(&x);
        if (strstr(x.w.log, " has links that do not come up")) {
            if (!strstr(x.w.log, "n0 has links that do not come up")) fail_msg("%s", x.w.log);
            assert_in_range(x.s.members, x.t.nodes - 2, x.t.nodes - 1);
            struck++;
        }
        circle_trial_close(&x);
    }
    assert_true(struck > 6);
}

/* Two or three of them, fewer than half, who say of one node after the other that it holds them
 * up. */
static void liars_who_agree_take_no_more_than_one_honest_node_each(void **unused)
{
    (void)unused;
    uint32_t most = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        trial x;
        uint32_t lost = 0, liars = 2 + (uint32_t)(seed / 2) % 2;
        training t = usual;
        t.nodes = 2 * liars + 1 + (uint32_t)(seed / 4) % (NODES - 2 * liars);
        t.kind = (sherd__reduce)(1 + seed % 2);
        circle_trial_open(&x, seed, &t);
        while ((uint32_t)__builtin_popcount(x.w.agree) < liars) x.w.agree |= 1u << draw() % t.nodes;
        circle_trial_start(&x);
        circle_trial_train(&x);
        for (uint32_t i = 0; i < t.nodes; i++)
            if (!(x.w.agree >> i & 1)) lost += x.w.job->nodes[i].out;
            else assert_true(x.w.job->nodes[i].out);
        if (lost > liars) fail_msg("seed %d: %u liars: %s", (int)seed, liars, x.w.log);
        if (lost > most) most = lost;
        circle_trial_close(&x);
    }
    assert_true(most >= 2); /* what they can do, they do */
}

static void who_is_lost_in_each_round_and_back_holds_up_nothing_for_good(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed);
        x.w.flaps = (uint32_t)(draw() % x.t.nodes);
        circle_trial_start(&x);
        circle_trial_train(&x);
        assert_non_null(strstr(x.w.log, " is back, and in the training from the next round on"));
        assert_true(x.s.repeated > 1 && x.s.repeated <= STEPS);
        circle_trial_close(&x);
    }
}

static void one_that_a_member_does_not_believe_goes_alone(void **unused)
{
    (void)unused;
    uint64_t struck = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        trial x;
        begin(&x, seed);
        x.w.absent = (uint32_t)(draw() % x.t.nodes);
        x.w.doubts = seed % 3 ? (x.w.absent + 1) % x.t.nodes : ALL;
        circle_trial_start(&x);
        x.w.back = x.w.absent;
        circle_trial_train(&x);
        if (strstr(x.w.log, " has come")) {
            one_is_gone(&x, x.w.absent, "is not believed by all");
            struck++;
        }
        circle_trial_close(&x);
    }
    assert_true(struck > 6);
}

/* Another is lost while members meet: it is given the state again, and does not keep the first. */
static void who_has_met_in_vain_keeps_one_state(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        trial x;
        begin(&x, seed);
        x.w.absent = (uint32_t)(draw() % x.t.nodes);
        x.w.kill = (x.w.absent + 1) % x.t.nodes;
        circle_trial_start(&x);
        x.w.back = x.w.absent;
        x.w.at = 1 + draw() % 60;
        circle_trial_train(&x);
        for (uint32_t i = 0; i < x.t.nodes; i++)
            if (x.w.node[i].up) assert_int_equal(x.w.node[i].states_len, 0);
        circle_trial_close(&x);
    }
}

/* After 2^29 packs or 2^31 other blocks in one session: the others would wait for its part. */
static void numbers_of_blocks_that_run_out_end_the_training(void **unused)
{
    (void)unused;
    for (unsigned packs = 0; packs < 2; packs++) {
        trial x;
        sherd_diag d = { 0 };
        circle_trial_open(&x, 4, &usual);
        circle_trial_start(&x);
        assert_int_equal(circle_run_steps(&x.there, &usual, 1, &d), 0);
        if (packs) x.w.job->nodes[1].packs = SHERD__ALLREDUCE_PACKS_MOST;
        else x.w.job->nodes[1].next_block = sherd__allreduce_pack(0) - 4;
        assert_int_equal(circle_run_steps(&x.there, &usual, 1, &d), SHERD_EUNSUPPORTED);
        assert_non_null(strstr(d.message, "the end of the numbers of its blocks"));
        circle_trial_close(&x);
    }
}

/* Members agree on it, where there is one, or all are of one mind. */
static void a_state_after_a_number_of_steps_that_is_none_is_refused(void **unused)
{
    (void)unused;
    const double steps[] = { NAN, -1, INFINITY, 0x1p60 };
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        trial x;
        sherd_diag d = { 0 };
        training t = usual;
        t.nodes = 1;
        t.method = SHERD__ADAM;
        circle_trial_open(&x, 3, &t);
        circle_trial_start(&x);
        x.w.steps = steps[i];
        assert_int_equal(circle_run_steps(&x.there, &t, STEPS, &d), SHERD_EWRONG);
        assert_int_equal(circle_run_steps(&x.there, &t, STEPS, &d), SHERD_EWRONG);
        assert_non_null(strstr(d.message, "the nodes hold a state after"));
        circle_trial_close(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_a_sum_and_does_not_tell_it_is_found),
        cmocka_unit_test(who_says_that_bytes_move_is_believed_for_a_while),
        cmocka_unit_test(who_does_not_say_where_it_is_goes),
        cmocka_unit_test(who_lies_about_links_has_one_other_left_out_at_most),
        cmocka_unit_test(liars_who_agree_take_no_more_than_one_honest_node_each),
        cmocka_unit_test(who_is_lost_in_each_round_and_back_holds_up_nothing_for_good),
        cmocka_unit_test(one_that_a_member_does_not_believe_goes_alone),
        cmocka_unit_test(who_has_met_in_vain_keeps_one_state),
        cmocka_unit_test(numbers_of_blocks_that_run_out_end_the_training),
        cmocka_unit_test(a_state_after_a_number_of_steps_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, circle_keys_free);
}
