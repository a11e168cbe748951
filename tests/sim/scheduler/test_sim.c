/*
 * Schedules of a whole cluster. With faults at as many nodes as the exposure bound leaves room for,
 * the product is correct; with more, the job ends with a reason. It never ends with a wrong
 * product, and never exceeds its deadlines. SIM_SEED=n runs one schedule, SIM_VERBOSE=1 prints it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/plan/prepare.h"
#include "core/rand.h"
#include "sim.h"

static sim_options drawn(uint64_t seed)
{
    static const uint32_t groups[] = { 0, 1, 2, 3 };
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, seed ^ UINT64_C(0x5eed));
    sim_options o = { .seed = seed,
                      .nodes = 3 + (uint32_t)sherd__entropy_below(&e, 6),
                      .n = 1 + sherd__entropy_below(&e, 90),
                      .k = 1 + sherd__entropy_below(&e, 40),
                      .m = 1 + sherd__entropy_below(&e, 40),
                      .node_memory = 1 << 22 };
    sherd__product_options_init(&o.product);
    o.product.scheme = sherd__entropy_below(&e, 3) ? SHERD_PERMUTE : SHERD_PLAIN;
    o.product.exact = sherd__entropy_below(&e, 2);
    o.product.group = groups[sherd__entropy_below(&e, 4)];
    o.product.encoding = seed % 2 ? SHERD_ENCODING_CSR
                                  : SHERD_ENCODING_DENSE; /* does not depend on a measured time */
    o.product.balanced = true; /* equal parts: the default bound then leaves room for one more
                                * slot */
    /* Small cells, and many of them */
    o.product.memory = UINT64_C(1) << (16 + sherd__entropy_below(&e, 4));
    o.delay_ms = (uint32_t)(1 << sherd__entropy_below(&e, 6));
    return o;
}

static void describe_failure(const sim_options *o, const sim_outcome *r, const char *what)
{
    fail_msg("seed %llu: %s (error %d \"%s\", after %llu ms, fault %s on %u of %u nodes)",
             (unsigned long long)o->seed, what, r->err, r->message,
             (unsigned long long)r->virtual_ms, sim_fault_name(o->fault), o->faulty, o->nodes);
}

static void must_be_right(const sim_options *o, sim_outcome *r)
{
    sim_run(o, r);
    if (r->hung) describe_failure(o, r, "it hangs");
    if (r->err) describe_failure(o, r, "it failed");
    if (!r->equal) describe_failure(o, r, "the product is wrong");
    if (r->exposure > r->bound + 1e-9) describe_failure(o, r, "a domain was given too much");
}

static void without_faults_every_product_is_correct(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        must_be_right(&o, &r);
        assert_int_equal(r.lost, 0);
        assert_int_equal(r.banned, 0);
    }
}

static void one_fault_of_any_kind(sim_fault fault, uint64_t first, unsigned runs)
{
    unsigned struck = 0;
    for (uint64_t seed = first; seed < first + runs; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.faulty = 1;
        o.fault = fault;
        o.fault_early = seed % 4 == 0;
        must_be_right(&o, &r);
        if (r.virtual_ms > 15000) describe_failure(&o, &r, "it took more than 15 s");
        struck += r.struck;
    }
    assert_true(struck > runs / 2); /* the faults did occur while the job ran */
}

static void a_killed_node_does_not_change_the_result(void **s)
{
    (void)s;
    one_fault_of_any_kind(SIM_KILL, 1000, 60);
}

static void a_connection_cut_anywhere_does_not_change_the_result(void **s)
{
    (void)s;
    one_fault_of_any_kind(SIM_CUT, 2000, 60);
}

static void a_node_that_stops_does_not_change_the_result(void **s)
{
    (void)s;
    one_fault_of_any_kind(SIM_STOP, 3000, 60);
}

static void a_node_that_pauses_does_not_change_the_result(void **s)
{
    (void)s;
    one_fault_of_any_kind(SIM_PAUSE, 4000, 60);
}

/* Its session is alive: it is expelled because it delivers nothing. */
static void deadlines(sim_fault fault, uint64_t first, unsigned runs, uint64_t most_ms)
{
    unsigned struck = 0, lost = 0;
    for (uint64_t seed = first; seed < first + runs; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.faulty = 1;
        o.fault = fault;
        o.fault_early = true;
        must_be_right(&o, &r);
        if (r.virtual_ms > most_ms) describe_failure(&o, &r, "it took too long");
        assert_int_equal(r.banned, 0);
        struck += r.struck;
        lost += r.lost;
    }
    assert_true(struck > runs / 2 && lost > runs / 4);
}

static void a_live_node_that_computes_nothing_is_lost(void **s)
{
    (void)s;
    deadlines(SIM_FREEZE, 50000, 60, 15000);
}

static void heartbeats_and_unknown_records_do_not_extend_deadlines(void **s)
{
    (void)s;
    deadlines(SIM_CHATTER, 51000, 60, 15000);
}

static void answers_that_arrive_a_few_bytes_at_a_time_are_late(void **s)
{
    (void)s;
    deadlines(SIM_DRIP, 52000, 60, 90000);
}

static void a_node_that_sends_garbage_does_not_change_the_result(void **s)
{
    (void)s;
    one_fault_of_any_kind(SIM_GARBAGE, 5000, 60);
}

static void an_answer_that_arrives_twice_does_not_change_the_result(void **s)
{
    (void)s;
    one_fault_of_any_kind(SIM_TWICE, 6000, 60);
}

static void a_liar_is_named_and_does_not_change_the_result(void **s)
{
    (void)s;
    unsigned named = 0;
    for (uint64_t seed = 7000; seed < 7080; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.faulty = 1;
        o.fault = SIM_LIE;
        o.fault_early = true;
        must_be_right(&o, &r);
        assert_true(r.banned <= 1); /* however many of its answers were being judged */
        named += r.banned;
    }
    assert_true(named > 20);
}

static void strict_ends_after_a_lie(void **s)
{
    (void)s;
    unsigned refused = 0;
    for (uint64_t seed = 7000; seed < 7040; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.faulty = 1;
        o.fault = SIM_LIE;
        o.fault_early = true;
        o.product.strict = true;
        sim_run(&o, &r);
        assert_false(r.hung);
        if (r.err) assert_int_equal(r.err, SHERD_EWRONG);
        else assert_true(r.equal);
        refused += r.err != 0;
    }
    assert_true(refused > 10);
}

/* Any number of nodes is lost: the product is correct, or the job is refused within the
 * deadlines. */
static void with_many_faults_the_result_is_correct_or_an_error(void **s)
{
    (void)s;
    unsigned right = 0, refused = 0;
    for (uint64_t seed = 10000; seed < 10300; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.fault = SIM_FAULTS;
        o.faulty = 1 + (uint32_t)(seed % o.nodes);
        o.fault_early = seed % 2;
        sim_run(&o, &r);
        if (r.hung) describe_failure(&o, &r, "it hangs");
        if (r.exposure > r.bound + 1e-9) describe_failure(&o, &r, "a domain was given too much");
        if (r.err == 0) {
            if (!r.equal) describe_failure(&o, &r, "the product is wrong");
            right++;
        } else {
            if (r.err != SHERD_EFEWNODES && r.err != SHERD_EEXPOSURE)
                describe_failure(&o, &r, "it failed for another reason");
            if (!r.message[0]) describe_failure(&o, &r, "it does not say why");
            refused++;
        }
    }
    assert_true(right > 100);
    assert_true(refused > 10);
}

static void a_bound_that_leaves_no_room_is_respected(void **s)
{
    (void)s;
    unsigned refused = 0;
    for (uint64_t seed = 20000; seed < 20040; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.product.scheme = SHERD_PERMUTE;
        o.nodes = 4;
        o.k = 40;
        o.n = 40;
        o.product.exposure_max = 0.26; /* a quarter for each, and nothing of a neighbour's */
        o.faulty = 1;
        o.fault = SIM_KILL;
        o.fault_early = true;
        sim_run(&o, &r);
        assert_false(r.hung);
        if (r.err) assert_int_equal(r.err, SHERD_EEXPOSURE);
        else assert_true(r.equal);
        assert_true(r.exposure <= 0.2601);
        refused += r.err != 0;
    }
    assert_true(refused > 20);
}

static void one_seed_gives_one_sequence_of_events(void **s)
{
    (void)s;
    for (uint64_t seed = 30000; seed < 30010; seed++) {
        sim_options o = drawn(seed);
        sim_outcome one, two;
        o.fault = SIM_FAULTS;
        o.faulty = 2;
        sim_run(&o, &one);
        sim_run(&o, &two);
        assert_true(one.log_hash == two.log_hash);
        assert_true(one.events == two.events && one.events > 5);
    }
}

static void a_hundred_nodes_work_and_some_are_lost(void **s)
{
    (void)s;
    for (uint64_t seed = 40000; seed < 40004; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.nodes = 100;
        o.n = o.k = o.m = 200;
        o.product.scheme = SHERD_PERMUTE;
        o.product.memory = 1 << 22;
        o.faulty = 9;
        o.fault = SIM_FAULTS;
        must_be_right(&o, &r);
        assert_true(r.struck >= 5);
    }
}

/* B takes more of a node's memory than stays there: it passes in tiles. */
static void panels_that_stay_survive_every_fault(void **s)
{
    (void)s;
    unsigned struck = 0;
    for (uint64_t seed = 50000; seed < 50060; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.n = 150;
        o.k = o.m = 210;
        o.node_memory = 1 << 20;
        o.product.scheme = SHERD_PLAIN;
        o.product.exact = false;
        o.product.memory = 1 << 18;
        o.faulty = 1;
        o.fault = SIM_FAULTS;
        must_be_right(&o, &r);
        struck += r.struck;
    }
    assert_true(struck > 20);
}

static void one_schedule(uint64_t seed)
{
    sim_options o = drawn(seed);
    sim_outcome r;
    o.fault = SIM_FAULTS;
    o.faulty = 1;
    sim_run(&o, &r);
    printf("seed %llu: error %d %s, equal %d, %llu ms\n", (unsigned long long)seed, r.err,
           r.message, r.equal, (unsigned long long)r.virtual_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_faults_every_product_is_correct),
        cmocka_unit_test(a_killed_node_does_not_change_the_result),
        cmocka_unit_test(a_connection_cut_anywhere_does_not_change_the_result),
        cmocka_unit_test(a_node_that_stops_does_not_change_the_result),
        cmocka_unit_test(a_node_that_pauses_does_not_change_the_result),
        cmocka_unit_test(a_live_node_that_computes_nothing_is_lost),
        cmocka_unit_test(heartbeats_and_unknown_records_do_not_extend_deadlines),
        cmocka_unit_test(answers_that_arrive_a_few_bytes_at_a_time_are_late),
        cmocka_unit_test(a_node_that_sends_garbage_does_not_change_the_result),
        cmocka_unit_test(an_answer_that_arrives_twice_does_not_change_the_result),
        cmocka_unit_test(a_liar_is_named_and_does_not_change_the_result),
        cmocka_unit_test(strict_ends_after_a_lie),
        cmocka_unit_test(with_many_faults_the_result_is_correct_or_an_error),
        cmocka_unit_test(a_bound_that_leaves_no_room_is_respected),
        cmocka_unit_test(one_seed_gives_one_sequence_of_events),
        cmocka_unit_test(a_hundred_nodes_work_and_some_are_lost),
        cmocka_unit_test(panels_that_stay_survive_every_fault),
    };
    if (getenv("SIM_SEED")) {
        one_schedule(strtoull(getenv("SIM_SEED"), NULL, 10));
        return 0;
    }
    return cmocka_run_group_tests_name("scheduler/sim", tests, NULL, NULL);
}
