/* How the shards of a step are divided among nodes by the times that they took. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/train/divide.h"

enum { NODES = 3 };

typedef struct nodes {
    sherd__divide_node list[NODES];
    sherd__divide_node *at[NODES];
} nodes;

static void make(nodes *n)
{
    *n = (nodes){ 0 };
    for (int i = 0; i < NODES; i++) n->at[i] = &n->list[i];
}

/* Makes steps: each node with shards takes shard_s[i] for each of them. Returns the longest time of
 * the last one. */
static double steps(nodes *n, unsigned times, uint32_t shards, const double *shard_s)
{
    double longest = 0;
    for (unsigned k = 0; k < times; k++) {
        (void)sherd__divide(n->at, NODES, shards, k > 0 || n->list[0].samples > 0);
        longest = 0;
        for (int i = 0; i < NODES; i++) {
            double s = n->list[i].shards * shard_s[i];
            if (n->list[i].shards) sherd__divide_took(&n->list[i], s, n->list[i].shards);
            if (s > longest) longest = s;
        }
    }
    return longest;
}

static void the_division_is_equal_until_all_nodes_were_measured(void **state)
{
    (void)state;
    static const double s[] = { 0.1, 0.4, 0.1 };
    nodes n;
    make(&n);
    assert_true(sherd__divide(n.at, NODES, 8, false));
    assert_true(n.list[0].shards == 2 && n.list[1].shards == 3 && n.list[2].shards == 3);
    assert_false(sherd__divide(n.at, NODES, 8, true));
    (void)steps(&n, 4, 8, s);
    assert_int_equal(n.list[1].shards, 3);
    assert_true(sherd__divide(n.at, NODES, 2, true)); /* fewer shards than nodes */
    assert_true(n.list[0].shards == 1 && n.list[1].shards == 1 && n.list[2].shards == 0);
}

static void a_slow_node_gets_fewer_shards(void **state)
{
    (void)state;
    static const double s[] = { 0.1, 0.4, 0.1 };
    nodes n;
    make(&n);
    assert_float_equal(steps(&n, 10, 8, s), 0.4, 1e-9); /* 3 shards took 1.2 s */
    assert_int_equal(n.list[1].shards, 1);
    assert_int_equal(n.list[0].shards + n.list[2].shards, 7);
}

static void a_node_that_is_too_slow_for_one_shard_is_tried_again_later(void **state)
{
    (void)state;
    static const double slow[] = { 0.1, 2, 0.1 }, mended[] = { 0.1, 0.1, 0.1 };
    nodes n;
    make(&n);
    assert_float_equal(steps(&n, 10, 8, slow), 0.4, 1e-9);
    assert_int_equal(n.list[1].shards, 0);
    (void)steps(&n, 300, 8, mended);
    assert_in_range(n.list[1].shards, 2, 3);
}

/* The nodes keep the examples of their shards. */
static void a_division_stays_unless_another_one_is_much_better(void **state)
{
    (void)state;
    static const double s[] = { 0.1, 0.11, 0.105 }, tiny[] = { 0.0001, 0.002, 0.0001 };
    nodes n;
    make(&n);
    (void)steps(&n, 50, 9, s);
    for (int i = 0; i < NODES; i++) assert_int_equal(n.list[i].shards, 3);
    make(&n);
    (void)steps(&n, 50, 9, tiny); /* too short to be measured */
    for (int i = 0; i < NODES; i++) assert_int_equal(n.list[i].shards, 3);
}

/* The last batch of an epoch has fewer examples than there are shards. */
static void a_division_outlasts_a_step_of_fewer_shards(void **state)
{
    (void)state;
    static const double s[] = { 0.1, 0.4, 0.1 };
    uint32_t full[NODES];
    nodes n;
    make(&n);
    (void)steps(&n, 20, 16, s);
    (void)steps(&n, 1, 4, s);
    (void)steps(&n, 1, 16, s);
    for (int i = 0; i < NODES; i++) full[i] = n.list[i].shards;
    for (int epoch = 0; epoch < 20; epoch++) {
        double noisy[] = { 0.1, epoch % 2 ? 0.35 : 0.45, 0.1 };
        (void)steps(&n, 5, 16, noisy);
        for (int i = 0; i < NODES; i++) assert_int_equal(n.list[i].shards, full[i]);
        (void)steps(&n, 1, 4, noisy);
        assert_true(sherd__divide(n.at, NODES, 16, true)); /* other than that of the step before */
        for (int i = 0; i < NODES; i++) assert_int_equal(n.list[i].shards, full[i]);
    }
}

static void one_late_part_does_not_change_the_division(void **state)
{
    (void)state;
    static const double s[] = { 0.1, 0.1, 0.1 }, late[] = { 0.1, 5, 0.1 };
    nodes n;
    make(&n);
    (void)steps(&n, 20, 9, s);
    (void)steps(&n, 1, 9, late);
    (void)steps(&n, 1, 9, s);
    for (int i = 0; i < NODES; i++) assert_int_equal(n.list[i].shards, 3);
}

static void a_node_four_times_as_fast_gets_four_times_the_shards(void **state)
{
    (void)state;
    static const double one[] = { 0.4, 0.1, 0.4 }, two[] = { 0.1, 0.4, 0.1 };
    nodes n;
    make(&n);
    assert_float_equal(steps(&n, 20, 12, one), 0.8, 1e-9);
    assert_true(n.list[0].shards == 2 && n.list[1].shards == 8 && n.list[2].shards == 2);
    make(&n);
    assert_float_equal(steps(&n, 20, 18, two), 0.8, 1e-9);
    assert_true(n.list[0].shards == 8 && n.list[1].shards == 2 && n.list[2].shards == 8);
}

/* For example a node that answers without computing. If it becomes slow, it gets less. */
static void a_node_that_answers_at_once_counts_as_four_times_as_fast(void **state)
{
    (void)state;
    static const double instant[] = { 0.1, 0.1, 0 }, loaded[] = { 0.1, 0.1, 0.5 };
    nodes n;
    make(&n);
    (void)steps(&n, 100, 12, instant);
    assert_int_equal(n.list[2].shards, 8);
    (void)steps(&n, 40, 12, loaded);
    assert_in_range(n.list[2].shards, 0, 2);
}

static void weights_decide_whatever_was_measured(void **state)
{
    (void)state;
    static const double s[] = { 0.1, 0.1, 0.9 };
    nodes n;
    make(&n);
    n.list[0].weight = n.list[2].weight = 3;
    n.list[1].weight = 1;
    (void)steps(&n, 20, 7, s);
    assert_true(n.list[0].shards == 3 && n.list[1].shards == 1 && n.list[2].shards == 3);
}

static void a_node_is_compared_with_the_median_of_the_others(void **state)
{
    (void)state;
    static const double s[] = { 0.1, 0.4, 0.1 };
    double room[NODES];
    nodes n;
    make(&n);
    (void)steps(&n, 3, 8, s);
    assert_float_equal(sherd__divide_slower(n.at, NODES, 1, room), 0, 0); /* not known yet */
    (void)steps(&n, 10, 8, s);
    assert_float_equal(sherd__divide_slower(n.at, NODES, 1, room), 4, 1e-6);
    assert_true(sherd__divide_slower(n.at, NODES, 0, room) <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_division_is_equal_until_all_nodes_were_measured),
        cmocka_unit_test(a_slow_node_gets_fewer_shards),
        cmocka_unit_test(a_node_that_is_too_slow_for_one_shard_is_tried_again_later),
        cmocka_unit_test(a_division_stays_unless_another_one_is_much_better),
        cmocka_unit_test(a_division_outlasts_a_step_of_fewer_shards),
        cmocka_unit_test(one_late_part_does_not_change_the_division),
        cmocka_unit_test(a_node_four_times_as_fast_gets_four_times_the_shards),
        cmocka_unit_test(a_node_that_answers_at_once_counts_as_four_times_as_fast),
        cmocka_unit_test(weights_decide_whatever_was_measured),
        cmocka_unit_test(a_node_is_compared_with_the_median_of_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
