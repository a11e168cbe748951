/* How parts of nodes follow their speeds: those measured in products, and those declared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "scheduler/cluster/state.h"

#define NODES 3u

typedef struct pool {
    sherd_cluster c;
    pool_node nodes[NODES];
    double scratch[6 * NODES];
    sherd__speed compared[NODES];
    uint32_t weights[NODES], speeds[SHERD__WORK_KINDS * NODES];
} pool;

/* A cluster of processors, all on this machine or on machines of their own. */
static void make(pool *p, bool here)
{
    memset(p, 0, sizeof *p);
    p->c.count = NODES;
    p->c.simulated = here;
    p->c.nodes = p->nodes;
    p->c.scratch = p->scratch;
    p->c.compared = p->compared;
    p->c.weights = p->weights;
    p->c.speeds = p->speeds;
    assert_int_equal(pthread_mutex_init(&p->c.lock, NULL), 0);
    for (uint32_t i = 0; i < NODES; i++) {
        p->nodes[i].peer.weight = 1;
        p->nodes[i].info.state = SHERD_NODE_UP;
        snprintf(p->nodes[i].info.backend, sizeof p->nodes[i].info.backend, "cpu");
    }
}

/* A product of this kind, in which the nodes did so much work in so many seconds each. */
static void did(pool *p, sherd__work_kind kind, bool verified, const double work[NODES],
                const double seconds[NODES])
{
    sherd__job_pace paces[NODES];
    for (uint32_t i = 0; i < NODES; i++)
        paces[i] = (sherd__job_pace){ .seconds = seconds[i],
                                      .bytes = work[i] > 0 ? 1000000 : 0,
                                      .work = work[i] };
    sherd__cluster_note_paces(&p->c, paces, kind, verified);
}

/* Expects parts in these proportions for products of the kind. */
static void expect(pool *p, sherd__work_kind kind, uint32_t first, uint32_t second, uint32_t third)
{
    sherd__nodes n;
    const uint32_t equal[] = { 1, 1, 1 };
    sherd__cluster_weights(&p->c, &n);
    const uint32_t *w = n.speeds[kind] ? n.speeds[kind] : equal;
    if (w[0] * second != w[1] * first || w[1] * third != w[2] * second)
        fail_msg("%u : %u : %u", w[0], w[1], w[2]);
}

static const double same[] = { 1, 1, 1 }, fast[] = { 1, 0.25, 1 }, at_once[] = { 1, 0, 1 };

static void a_node_four_times_as_fast_gets_four_times_the_work(void **state)
{
    (void)state;
    pool p;
    make(&p, true);
    expect(&p, SHERD__WORK_F64, 1, 1, 1);
    did(&p, SHERD__WORK_F64, true, same, fast);
    expect(&p, SHERD__WORK_F64, 1, 4, 1);
    did(&p, SHERD__WORK_F64, true, (double[]){ 1, 4, 1 }, same); /* all take as long then */
    expect(&p, SHERD__WORK_F64, 1, 4, 1);
    did(&p, SHERD__WORK_F64, true, same, at_once);
    expect(&p, SHERD__WORK_F64, 1, 4, 1);
    did(&p, SHERD__WORK_F64, true, same, (double[]){ 1, 10, 1 });
    expect(&p, SHERD__WORK_F64, 10, 1, 10);
}

static void each_kind_of_work_has_speeds_of_its_own(void **state)
{
    (void)state;
    pool p;
    make(&p, true);
    did(&p, SHERD__WORK_RESIDUES, true, same, fast);
    expect(&p, SHERD__WORK_RESIDUES, 1, 4, 1);
    expect(&p, SHERD__WORK_F64, 1, 1, 1);
    expect(&p, SHERD__WORK_MAPS, 1, 1, 1);
    did(&p, SHERD__WORK_F64, true, same, (double[]){ 1, 2, 1 });
    expect(&p, SHERD__WORK_F64, 2, 1, 2);
    expect(&p, SHERD__WORK_RESIDUES, 1, 4, 1);
}

static void answers_that_were_not_verified_raise_no_part(void **state)
{
    (void)state;
    pool p;
    make(&p, true);
    did(&p, SHERD__WORK_F64, false, same, at_once);
    expect(&p, SHERD__WORK_F64, 1, 1, 1);
    did(&p, SHERD__WORK_F64, false, same, (double[]){ 4, 1, 1 });
    expect(&p, SHERD__WORK_F64, 1, 4, 4);
    p.c.probing = true; /* a node need not compute products of ones to answer them rightly */
    did(&p, SHERD__WORK_F64, true, same, at_once);
    p.c.probing = false;
    expect(&p, SHERD__WORK_F64, 1, 4, 4);
    expect(&p, SHERD__WORK_RESIDUES, 1, 1, 1);
}

static void a_product_of_ones_lowers_a_part_until_there_is_one_of_its_kind(void **state)
{
    (void)state;
    pool p;
    make(&p, false);
    p.c.probing = true;
    did(&p, SHERD__WORK_F64, false, same, (double[]){ 1, 4, 1 });
    p.c.probing = false;
    expect(&p, SHERD__WORK_F64, 4, 1, 4);
    expect(&p, SHERD__WORK_RESIDUES, 4, 1, 4);
    did(&p, SHERD__WORK_RESIDUES, true, same, fast);
    expect(&p, SHERD__WORK_RESIDUES, 1, 4, 1);
}

static void time_without_an_answer_that_passed_counts(void **state)
{
    (void)state;
    pool p;
    make(&p, true);
    sherd__job_pace paces[NODES];
    for (uint32_t i = 0; i < NODES; i++)
        paces[i] = (sherd__job_pace){ .seconds = 0.5, .bytes = 1000000, .work = 1 };
    paces[0].missed = 1.5;
    paces[2].missed = 1.5;
    sherd__cluster_note_paces(&p.c, paces, SHERD__WORK_F64, true);
    expect(&p, SHERD__WORK_F64, 1, 4, 1);
}

static void a_declared_rate_lowers_a_part_only(void **state)
{
    (void)state;
    pool p;
    make(&p, false);
    for (uint32_t i = 0; i < NODES; i++) p.nodes[i].info.gflops = i == 1 ? 1000 : 10;
    expect(&p, SHERD__WORK_F64, 1, 1, 1);
    p.nodes[1].info.gflops = 2.5;
    expect(&p, SHERD__WORK_F64, 4, 1, 4);
    expect(&p, SHERD__WORK_RESIDUES, 4, 1, 4); /* 0: the same as in float64 */
    for (uint32_t i = 0; i < NODES; i++) p.nodes[i].info.residue_gflops = i == 2 ? 5 : 10;
    expect(&p, SHERD__WORK_RESIDUES, 2, 2, 1);
    expect(&p, SHERD__WORK_F64, 4, 1, 4);
    did(&p, SHERD__WORK_F64, true, same, fast); /* what it does counts more than what it declares */
    expect(&p, SHERD__WORK_F64, 1, 4, 1);
}

static void processors_of_this_machine_are_shared_and_devices_are_not(void **state)
{
    (void)state;
    pool p;
    make(&p, true);
    for (uint32_t i = 0; i < NODES; i++) p.nodes[i].info.gflops = i == 1 ? 2.5 : 10;
    expect(&p, SHERD__WORK_F64, 1, 1, 1);
    for (uint32_t i = 0; i < NODES; i++)
        snprintf(p.nodes[i].info.backend, sizeof p.nodes[i].info.backend, "cuda");
    expect(&p, SHERD__WORK_F64, 4, 1, 4);
}

static void weights_of_the_list_are_those_of_the_list(void **state)
{
    (void)state;
    pool p;
    sherd__nodes n;
    make(&p, true);
    did(&p, SHERD__WORK_F64, true, same, fast);
    p.nodes[1].peer.weight = 0.5;
    sherd__cluster_weights(&p.c, &n);
    assert_true(n.weights && n.weights[0] == 2 && n.weights[1] == 1 && n.weights[2] == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_four_times_as_fast_gets_four_times_the_work),
        cmocka_unit_test(each_kind_of_work_has_speeds_of_its_own),
        cmocka_unit_test(answers_that_were_not_verified_raise_no_part),
        cmocka_unit_test(a_product_of_ones_lowers_a_part_until_there_is_one_of_its_kind),
        cmocka_unit_test(time_without_an_answer_that_passed_counts),
        cmocka_unit_test(a_declared_rate_lowers_a_part_only),
        cmocka_unit_test(processors_of_this_machine_are_shared_and_devices_are_not),
        cmocka_unit_test(weights_of_the_list_are_those_of_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
