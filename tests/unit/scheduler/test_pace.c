/* Which node sets the pace, by rates that nodes declare: of the arithmetic of the product, and of
 * copies to their devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "scheduler/plan/pace.h"

enum { NODES = 4 };

static sherd__node_speed each[NODES];
static uint32_t domain[NODES];
static double paces[NODES];

/* Four nodes elsewhere in domains of their own, on processors of 10, 20, 30 and 40 GF/s. */
static sherd__nodes four(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        each[i] = (sherd__node_speed){ .name = "n", .declared = { .devices = 1 } };
        each[i].declared.gflops = 10 * (i + 1);
        domain[i] = i;
        paces[i] = 0;
    }
    return (sherd__nodes){ .count = NODES,
                           .domain = domain,
                           .domains = NODES,
                           .each = each,
                           .paces = paces,
                           .remote = true };
}

static const sherd__pace_work work = { .flops = 1e12, .copied = 8e9, .copied_all = 1e9 };

static sherd__pace find(const sherd__nodes *n, const sherd__pace_work *w)
{
    sherd__pace p;
    assert_int_equal(sherd__pace_find(&p, n, w), SHERD_OK);
    return p;
}

static sherd__pace coded(const sherd__nodes *n, uint32_t spare)
{
    sherd__pace_work w = work;
    w.coded = true;
    w.spare = spare;
    return find(n, &w);
}

/* A node on a device of 20 GF/s with copies and 1000 GF/s without. */
static void give_device(uint32_t i, double copy_rate)
{
    each[i].device = true;
    each[i].declared.gflops = 20;
    each[i].declared.resident_gflops = 1000;
    each[i].declared.copy_rate = copy_rate;
}

static void the_rate_is_that_of_the_arithmetic(void **state)
{
    (void)state;
    sherd__nodes n = four();
    sherd__pace_work w = work;
    assert_true(find(&n, &w).node == 0 && find(&n, &w).gflops == 10);
    for (uint32_t i = 0; i < NODES; i++) {
        each[i].declared.residue_gflops = i == 2 ? 1 : 100;
        each[i].declared.byte_gops = i == 3 ? 2 : 100;
    }
    w.in = SHERD__IN_RESIDUES;
    assert_true(find(&n, &w).node == 2 && find(&n, &w).gflops == 1);
    w.in = SHERD__IN_BYTES;
    assert_true(find(&n, &w).node == 3 && find(&n, &w).gflops == 2);
}

static void copies_and_products_of_a_device_are_apart(void **state)
{
    (void)state;
    sherd__nodes n = four();
    n.count = n.domains = 1;
    sherd__pace p = find(&n, &work);
    assert_true(p.gflops == 10 && p.copied == 0 && p.copy_rate == 0);
    give_device(0, 1e9);
    p = find(&n, &work);
    assert_true(p.gflops == 1000 && p.copied == 8e9 && p.copy_rate == 1e9);
    each[0].declared.devices = 3; /* each of them has the blocks that stay */
    p = find(&n, &work);
    assert_true(p.copied == 10e9);
    each[0].sharing = 2; /* another node has the same devices */
    p = find(&n, &work);
    assert_true(p.gflops == 500 && p.copy_rate == 5e8);
    each[0].declared.copy_rate = 0; /* an older node */
    p = find(&n, &work);
    assert_true(p.gflops == 10 && p.copied == 0 && p.copy_rate == 0);
}

/* 10^12 operations take 25 s at 40 GF/s, and 8 GB at 0.1 GB/s 80 s. */
static void a_fast_device_behind_a_slow_link_sets_the_pace(void **state)
{
    (void)state;
    sherd__nodes n = four();
    n.count = n.domains = 2;
    each[0].declared.gflops = 40;
    give_device(1, 1e8);
    assert_int_equal(find(&n, &work).node, 1);
    give_device(1, 1e9); /* 8 s */
    assert_int_equal(find(&n, &work).node, 0);
}

static void nodes_on_processors_of_this_machine_have_the_measured_rate(void **state)
{
    (void)state;
    sherd__nodes n = four();
    sherd__pace_work w = work;
    w.here_gflops = 3;
    assert_true(find(&n, &w).gflops == 10);
    n.remote = false;
    assert_true(find(&n, &w).gflops == 3);
    give_device(2, 1e6);
    sherd__pace p = find(&n, &w);
    assert_true(p.node == 2 && p.gflops == 1000);
    assert_int_equal(sherd__pace_devices(&n), 1);
    n.each = NULL;
    assert_int_equal(sherd__pace_devices(&n), 0);
}

static void the_slowest_domains_are_spare(void **state)
{
    (void)state;
    sherd__nodes n = four();
    for (uint32_t spare = 0; spare < NODES; spare++) {
        sherd__pace p = coded(&n, spare);
        assert_true(p.node == spare && p.gflops == 10 * (spare + 1) && p.uneven);
    }
    each[1].declared.gflops = 0; /* of which nothing is known */
    assert_int_equal(coded(&n, 0).node, 0);
    assert_int_equal(coded(&n, 1).node, 0);
    assert_int_equal(coded(&n, 2).node, 2);
    each[3].name = NULL; /* it is not there */
    assert_int_equal(coded(&n, 2).node, 0);
    n = four();
    domain[1] = 0; /* two nodes do the work of one domain in 33 s, slower than 40 GF/s only */
    domain[2] = 1;
    domain[3] = 2;
    n.domains = 3;
    assert_int_equal(coded(&n, 0).node, 0);
    each[2].declared.gflops = 25;
    assert_int_equal(coded(&n, 0).node, 2);
    for (uint32_t i = 0; i < NODES; i++) each[i].name = NULL;
    assert_int_equal(coded(&n, 1).node, UINT32_MAX);
}

static void answers_of_earlier_jobs_say_more_than_declared_rates(void **state)
{
    (void)state;
    sherd__nodes n = four();
    static const double seen[] = { 1, 1.2, 1, 0.3 };
    for (uint32_t i = 0; i < NODES; i++) paces[i] = i == 3 ? 0 : seen[i];
    assert_int_equal(coded(&n, 0).node, 0); /* one has not answered yet */
    memcpy(paces, seen, sizeof paces);
    assert_int_equal(coded(&n, 0).node, 3);
    assert_true(coded(&n, 0).gflops == 40);
    n.paces = NULL;
    assert_int_equal(coded(&n, 0).node, 0);
}

static void equal_nodes_are_not_uneven(void **state)
{
    (void)state;
    sherd__nodes n = four();
    for (uint32_t i = 0; i < NODES; i++) each[i].declared.gflops = 30 + 0.1 * i;
    assert_false(coded(&n, 0).uneven);
    each[2].declared.gflops = 20;
    assert_true(coded(&n, 0).uneven && coded(&n, 1).uneven);
    assert_true(coded(&n, 1).gflops == 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_is_that_of_the_arithmetic),
        cmocka_unit_test(copies_and_products_of_a_device_are_apart),
        cmocka_unit_test(a_fast_device_behind_a_slow_link_sets_the_pace),
        cmocka_unit_test(nodes_on_processors_of_this_machine_have_the_measured_rate),
        cmocka_unit_test(the_slowest_domains_are_spare),
        cmocka_unit_test(answers_of_earlier_jobs_say_more_than_declared_rates),
        cmocka_unit_test(equal_nodes_are_not_uneven),
    };
    return cmocka_run_group_tests_name("scheduler/pace", tests, NULL, NULL);
}
