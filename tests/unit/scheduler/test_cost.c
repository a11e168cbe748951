/* The model of time, in cases that were computed by hand: the limiting stage, and the effect of
 * nodes on this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "scheduler/plan/cost.h"

static void near(double have, double want)
{
    if (fabs(have - want) > 1e-9 * (1 + fabs(want))) fail_msg("%.12g, expected %.12g", have, want);
}

/* Remote nodes: sessions at 1 GB/s, links at 100 MB/s, 4 nodes of 10 GF/s. */
static sherd__cost_input remote(void)
{
    return (sherd__cost_input){ .bytes_out = 300000000,
                                .bytes_in = 200000000,
                                .bytes_first = 100000000,
                                .flops = 80e9,
                                .busiest = 0.25,
                                .node_gflops = 10,
                                .cores = 2,
                                .session_rate = 1e9,
                                .link_rate = 1e8 };
}

static void over_a_slow_network_the_link_is_the_limit(void **state)
{
    (void)state;
    sherd__cost c;
    sherd__cost_input in = remote();
    sherd__cost_predict(&c, &in);
    near(c.first_s, 1); /* 100 MB at 100 MB/s */
    near(c.links_s, 3); /* and then 200 MB out, together with 200 MB in */
    near(c.nodes_s, 2); /* a quarter of 80 GF at 10 GF/s */
    near(c.cores_s, 0);
    near(c.seconds, 3);      /* 1 + 2: links and nodes together */
    in.bytes_in = 700000000; /* only one direction is saturated */
    sherd__cost_predict(&c, &in);
    near(c.seconds, 8);
    assert_int_equal(c.bound, SHERD__BOUND_LINKS);
}

static void with_uneven_work_the_busiest_node_is_the_limit(void **state)
{
    (void)state;
    sherd__cost c;
    sherd__cost_input in = remote();
    in.busiest = 0.5;
    in.convert_s = 2; /* the busiest has half of it */
    sherd__cost_predict(&c, &in);
    near(c.nodes_s, 4 + 1);
    near(c.seconds, 1 + 5);
    assert_int_equal(c.bound, SHERD__BOUND_NODES);
}

static void with_a_fast_network_sessions_are_the_limit(void **state)
{
    (void)state;
    sherd__cost c;
    sherd__cost_input in = remote();
    in.link_rate = 1e12;
    in.flops = 0;
    in.tasks = 1000; /* 15 us each */
    sherd__cost_predict(&c, &in);
    near(c.first_s, 0.1);
    near(c.seconds, 0.1 + 0.4 + 0.015); /* one thread handles both directions */
    assert_int_equal(c.bound, SHERD__BOUND_LINKS);
}

/* 40 tasks at each of four nodes, four in progress: nine times the nodes wait for the next four. */
static void links_with_a_latency_delay_the_ends_and_each_window(void **state)
{
    (void)state;
    sherd__cost c;
    sherd__cost_input in = remote();
    in.latency_s = 0.25;
    in.tasks = 160;
    sherd__cost_predict(&c, &in);
    near(c.seconds, 3 + 0.25); /* all tasks are in progress at once */
    in.depth = 4;
    sherd__cost_predict(&c, &in);
    near(c.seconds, 1 + 9 * 0.25 + 0.25);
    assert_int_equal(c.bound, SHERD__BOUND_LINKS);
    in.latency_s = 1e-3;
    sherd__cost_predict(&c, &in);
    near(c.seconds, 3 + 1e-3);
    in.tasks = 3;
    in.latency_s = 9;
    sherd__cost_predict(&c, &in);
    near(c.seconds, 3 + 9);
    in.local = true;
    sherd__cost_predict(&c, &in);
    assert_true(c.seconds < 9);
}

static void hiding_and_folding_can_be_the_limit(void **state)
{
    (void)state;
    sherd__cost c;
    sherd__cost_input in = remote();
    in.hide_s = 7;
    in.fold_s = 2;
    in.fill_s = 3;
    sherd__cost_predict(&c, &in);
    near(c.here_s, 9);
    near(c.first_s, 3.1); /* the blocks are made while they are sent: 3 s, plus 0.1 s of sessions */
    near(c.seconds, 12.1);
    assert_int_equal(c.bound, SHERD__BOUND_HERE);
}

static void nodes_on_this_machine_share_its_cores(void **state)
{
    (void)state;
    sherd__cost c;
    sherd__cost_input in = remote();
    in.local = true;
    in.link_rate = 1; /* has no effect */
    in.hide_s = 1;
    in.fold_s = 0.5;
    in.fill_s = 0.1;
    in.tasks = 2000;
    in.convert_s = 0.7;
    in.node_gflops = 20;
    sherd__cost_predict(&c, &in);
    /* 80 GF at 20 GF/s a core; 500 MB twice through sessions; 30 ms of tasks at both ends */
    near(c.cores_s, (4 + 0.7 + 2 * (0.5 + 0.03) + 1.5 + 0.1) / 2);
    near(c.nodes_s, (4 + 0.7) / 4);
    near(c.links_s, 0.1 + 0.1 + 0.4 + 0.03);
    near(c.seconds, c.cores_s);
    assert_int_equal(c.bound, SHERD__BOUND_CORES);
    in.node_threads = 2; /* so a core does 10 GF/s */
    sherd__cost_predict(&c, &in);
    near(c.cores_s, (8 + 0.7 + 2 * (0.5 + 0.03) + 1.5 + 0.1) / 2);
    in.node_threads = 1;
    in.cores = 64;
    sherd__cost_predict(&c, &in);
    near(c.seconds, 0.2 + 1.5); /* if there are enough cores, the compute thread here is the
                                 * limit */
    assert_int_equal(c.bound, SHERD__BOUND_HERE);
}

static void some_cores_are_idle_until_the_first_blocks_arrive(void **state)
{
    (void)state;
    sherd__cost c;
    sherd__cost_input in = remote();
    in.local = true;
    in.cores = 4;
    in.fill_s = 2;
    in.hide_s = 1;
    sherd__cost_predict(&c, &in);
    /* 2.1 s to make and send them, during which 2 + 2 * 0.1 and all of the hiding are done; then
     * the rest, 8 s of products and 2 * 0.4 of sessions, on four cores */
    near(c.first_s, 2.1);
    near(c.cores_s, 2.1 + (8 + 0.8) / 4);
    in.hide_s = 10; /* 2.1 s of it are done meanwhile */
    sherd__cost_predict(&c, &in);
    near(c.cores_s, 2.1 + (8 + 0.8 + 7.9) / 4);
}

static void the_first_position_is_hidden_first_and_the_last_one_folded_last(void **state)
{
    (void)state;
    sherd__cost c;
    sherd__cost_input in = remote();
    in.hide_s = 8;
    in.fold_s = 4;
    in.positions = 4;
    in.flops = 8 * 80e9;
    sherd__cost_predict(&c, &in);
    near(c.first_s, 1);
    near(c.seconds, 2 + 16 + 1); /* hidden meanwhile: 2 s are longer than 1 s for the blocks */
    assert_int_equal(c.bound, SHERD__BOUND_NODES);
    in.flops = 0;
    in.bytes_in = 2000000000;
    sherd__cost_predict(&c, &in);
    near(c.seconds, 2 + 20 + 1);
    assert_int_equal(c.bound, SHERD__BOUND_LINKS);
    in = remote();
    in.local = true;
    in.cores = 4;
    in.hide_s = 8;
    in.fold_s = 4;
    in.positions = 4;
    sherd__cost_predict(&c, &in);
    /* 0.1 s of sending and 0.1 of receiving, together with 2 of hiding; then on four cores 8 s of
     * products, 0.8 of sessions, 6 of hiding and 3 of folding; then one more second of folding on
     * one core */
    near(c.cores_s, 2 + (8 + 0.8 + 6 + 3) / 4 + 1);
    in.positions = 0;
    sherd__cost_predict(&c, &in);
    near(c.cores_s, 0.1 + (8 + 0.8 + 12 - 0.1) / 4);
}

/* Four nodes whose devices compute 1000 GF/s and copy 250 MB/s. */
static void behind_a_slow_device_link_copies_are_the_limit(void **state)
{
    (void)state;
    sherd__cost c;
    sherd__cost_input in = remote();
    in.link_rate = 1e9;
    in.node_gflops = 1000;
    in.copied = 5e9;
    in.copy_rate = 2.5e8;
    in.tasks = 40;
    sherd__cost_predict(&c, &in);
    near(c.copies_s, 5);
    near(c.nodes_s, 0.02);
    /* 0.1 s until the first block is there; 10 tasks: one is computed while nothing is copied */
    near(c.seconds, 0.1 + 5 + 0.002);
    assert_int_equal(c.bound, SHERD__BOUND_DEVICES);
    in.tasks = 2; /* of one task, copies and the product follow each other */
    sherd__cost_predict(&c, &in);
    near(c.seconds, 0.1 + 5 + 0.02);
    in.copy_rate = 1e12;
    in.tasks = 40;
    sherd__cost_predict(&c, &in);
    near(c.copies_s, 5e9 / 1e12 / 4);
    assert_int_equal(c.bound, SHERD__BOUND_LINKS);
    in.node_gflops = 10;
    sherd__cost_predict(&c, &in);
    near(c.seconds, 0.1 + 2 + 0.000125);
    assert_int_equal(c.bound, SHERD__BOUND_NODES);
}

static void nodes_on_devices_do_not_share_the_cores(void **state)
{
    (void)state;
    sherd__cost c;
    sherd__cost_input in = remote();
    in.local = true;
    in.apart = 1;
    sherd__cost_predict(&c, &in);
    near(c.cores_s, 2 * 0.5 / 2); /* sessions only */
    near(c.seconds, 0.1 + 2);
    assert_int_equal(c.bound, SHERD__BOUND_NODES);
    in.apart = 0.25; /* three of four nodes are on the cores, of 40 GF/s each */
    in.core_gflops = 40;
    sherd__cost_predict(&c, &in);
    near(c.cores_s, (2 * 0.75 + 2 * 0.5) / 2);
    near(c.seconds, 0.1 + 2);
}

static void empty_work_takes_no_time(void **state)
{
    (void)state;
    sherd__cost c;
    sherd__cost_input in = {
        .node_gflops = 1, .cores = 1, .session_rate = 1, .link_rate = 1, .local = true
    };
    sherd__cost_predict(&c, &in);
    near(c.seconds, 0);
}

static void slow_nodes_delay_the_others_unless_these_take_over_their_work(void **state)
{
    (void)state;
    static const double equal[] = { 0.25, 0.25, 0.25, 0.25 }, some[] = { 0.1, 0.3, 0.3, 0.3 };
    static const double speeds[] = { 1, 10, 5, 4 }, partly[] = { 2, 0, 20, 0 };
    near(sherd__cost_uneven(equal, NULL, 4, false), 0.25);
    near(sherd__cost_uneven(some, NULL, 4, false), 0.3);
    near(sherd__cost_uneven(equal, speeds, 4, false), 0.25); /* the first one's */
    near(sherd__cost_uneven(some, speeds, 4, false), 0.1);   /* against 0.3 / 4 */
    near(sherd__cost_uneven(equal, speeds, 4, true), 0.05);  /* 20 times the slowest together */
    near(sherd__cost_uneven(equal, partly, 4, true), 1.0 / 13);
    near(sherd__cost_uneven(some, NULL, 4, true), 0.25);
    sherd__cost c;
    sherd__cost_input in = remote();
    in.tail_s = 0.5;
    sherd__cost_predict(&c, &in);
    near(c.seconds, 3.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_a_slow_network_the_link_is_the_limit),
        cmocka_unit_test(with_uneven_work_the_busiest_node_is_the_limit),
        cmocka_unit_test(with_a_fast_network_sessions_are_the_limit),
        cmocka_unit_test(links_with_a_latency_delay_the_ends_and_each_window),
        cmocka_unit_test(hiding_and_folding_can_be_the_limit),
        cmocka_unit_test(nodes_on_this_machine_share_its_cores),
        cmocka_unit_test(some_cores_are_idle_until_the_first_blocks_arrive),
        cmocka_unit_test(the_first_position_is_hidden_first_and_the_last_one_folded_last),
        cmocka_unit_test(behind_a_slow_device_link_copies_are_the_limit),
        cmocka_unit_test(nodes_on_devices_do_not_share_the_cores),
        cmocka_unit_test(empty_work_takes_no_time),
        cmocka_unit_test(slow_nodes_delay_the_others_unless_these_take_over_their_work),
    };
    return cmocka_run_group_tests_name("scheduler/cost", tests, NULL, NULL);
}
