/*
 * Sums among real node processes: the bits of threads of this process, for 2, 3, 5, 7 and 8 nodes
 * and both schedules; the bytes that pass the coordinator, and those between nodes; nodes that die
 * or stop during a round.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "scheduler/allreduce/allreduce.h"
#include "scheduler/cluster/internal.h"
#include "tests/support/send_signal.h"
#include "tests/system/scheduler/local_nodes.h"

static const char text[] = "input = 200\nlayer = dense 300\nlayer = tanh\nlayer = dense 10\n"
                           "loss = cross-entropy\nl2 = 0.0001\n";
enum {
    COUNT = 200 * 300 + 300 + 300 * 10 + 10,
    ROWS = 160,
    BATCH = 80,
    WARM = 2,
    STEPS = 6,
    LONG = 24
};
static const uint8_t seed[32] = "sums among nodes";

typedef struct world {
    sherd__recipe recipe;
    sherd__dataset data;
    sherd_cluster *cluster;
    sherd__order order;
} world;

typedef struct run {
    sherd__network *network;
    sherd__optimiser optimiser;
    sherd__stepper stepper;
} run;

static void world_open(world *w, uint32_t nodes)
{
    sherd_diag d = { 0 };
    *w = (world){ .order = SHERD__ORDER_SHUFFLED };
    if (sherd__recipe_parse(&w->recipe, text, strlen(text), "test", SHERD__RECIPE_NETWORK, &d))
        fail_msg("%s", d.message);
    assert_int_equal(sherd__generate_random(&w->data, ROWS, 200, 10, seed, &d), 0);
    w->cluster = local_open(nodes, NULL, 0);
}

static void world_close(world *w)
{
    sherd_cluster_close(w->cluster);
    sherd__dataset_fini(&w->data);
}

static sherd__gradients_options begin(run *r, world *w)
{
    sherd_diag d = { 0 };
    *r = (run){ 0 };
    assert_int_equal(sherd__recipe_network(&w->recipe, 1, &r->network, &d), 0);
    double *p = sherd__network_params(r->network);
    for (size_t i = 0; i < COUNT; i++) p[i] = ((double)((i * 37) % 1009) / 1009 - 0.5) / 8;
    assert_int_equal(sherd__optimiser_init(&r->optimiser,
                                           &(sherd__optimiser_spec){ .method = SHERD__MOMENTUM },
                                           COUNT, &d),
                     0);
    return (sherd__gradients_options){ .recipe = &w->recipe,
                                       .data = &w->data,
                                       .shards = 8,
                                       .network = r->network,
                                       .optimiser = &r->optimiser,
                                       .bits = 17 };
}

static void end(run *r)
{
    sherd__stepper_free(r->stepper);
    sherd__network_free(r->network);
    sherd__optimiser_fini(&r->optimiser);
}

static void here(run *r, world *w)
{
    sherd_diag d = { 0 };
    sherd__gradients_options g = begin(r, w);
    assert_int_equal(sherd__gradients_here(&g.engine, &w->recipe, &w->data,
                                           &(sherd__here_options){ sherd__shard_most(ROWS, 8), 17,
                                                                   1 },
                                           &d),
                     0);
    assert_int_equal(sherd__stepper_gradients(&r->stepper, &g, &d), 0);
}

static sherd__allreduce_lead among(run *r, world *w, sherd__reduce kind)
{
    sherd_diag d = { 0 };
    sherd__allreduce_lead lead;
    sherd__gradients_options g = begin(r, w);
    sherd__allreduce_options o = { .recipe = &w->recipe,
                                   .data = &w->data,
                                   .network = r->network,
                                   .optimiser = &r->optimiser,
                                   .kind = kind,
                                   .shards = 8,
                                   .batch = ROWS,
                                   .bits = 17 };
    if (sherd__allreduce_open(&lead, w->cluster, &o, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd__stepper_allreduce(&r->stepper, &g, lead, true, &d), 0);
    return lead;
}

static void steps(run *r, world *w, uint64_t from, uint64_t to)
{
    uint32_t rows[ROWS];
    sherd__train_order o;
    assert_int_equal(sherd__train_order_init(&o, w->order, ROWS, BATCH, seed, NULL), 0);
    for (uint64_t k = from; k < to; k++) {
        sherd__step_result out;
        sherd_diag d = { 0 };
        sherd__step s = { .number = k, .rate = 0.05, .rows = rows };
        s.len = sherd__train_order_rows(&o, k, rows);
        sherd__rows list = sherd__train_order_list(&o, k, &s.first);
        s.list = &list;
        if (r->stepper.ops->step(r->stepper.ctx, &s, &out, &d))
            fail_msg("%s\n%s", d.message, local_warned);
    }
    sherd__train_order_fini(&o);
}

static void assert_same(run *a, run *b)
{
    sherd_diag d = { 0 };
    assert_int_equal(a->stepper.ops->settle(a->stepper.ctx, &d), 0);
    if (b->stepper.ops->settle(b->stepper.ctx, &d)) fail_msg("%s", d.message);
    assert_memory_equal(sherd__network_params(a->network), sherd__network_params(b->network),
                        COUNT * sizeof(double));
    assert_memory_equal(a->optimiser.state, b->optimiser.state, COUNT * sizeof(double));
}

/* Returns the bytes that have passed the coordinator. */
static uint64_t passed(world *w)
{
    uint64_t sum = 0;
    sherd__cluster_refresh(w->cluster);
    for (uint32_t i = 0; i < sherd_cluster_size(w->cluster); i++) {
        sherd_node_info info = { .size = sizeof info };
        assert_int_equal(sherd_cluster_node_at(w->cluster, i, &info, NULL), 0);
        sum += info.bytes_out + info.bytes_in;
    }
    return sum;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Counts steps after every node has all examples that it computes with; the last rows of a shuffled
 * or drawn training are sent late, and are counted separately. */
static void measure(uint32_t n, sherd__reduce kind, sherd__order order)
{
    world w;
    run a, b;
    sherd__allreduce_stats s0, s1;
    bool fixed = order == SHERD__ORDER_GIVEN || order == SHERD__ORDER_BATCHES;
    uint64_t warm = fixed ? WARM : LONG, all = warm + STEPS - WARM;
    world_open(&w, n);
    w.order = order;
    here(&a, &w);
    sherd__allreduce_lead lead = among(&b, &w, kind);
    steps(&b, &w, 0, warm);
    sherd__allreduce_count(&lead, &s0);
    uint64_t before = passed(&w);
    steps(&b, &w, warm, all);
    sherd__allreduce_count(&lead, &s1);
    uint64_t examples = s1.examples_out - s0.examples_out;
    double through = (double)(passed(&w) - before - examples);
    double links = (double)(s1.link_out + s1.link_in - s0.link_out - s0.link_in);
    double least = 2.0 * (n - 1) * 8.0 * COUNT * (STEPS - WARM); /* of all nodes together */
    print_message(
        "# n %u, %s, order %d: %.0f through the coordinator, %.0f examples, %.0f on links\n", n,
        sherd__reduce_name(kind), order, through, (double)examples, links);
    assert_in_range(s1.members, n, n);
    assert_true(links >= 0.999 * least && links <= 1.01 * least);
    assert_true(through < 0.005 * links);
    if (fixed) assert_int_equal(examples, 0);
    assert_true(s1.examples_out <= (uint64_t)n * ROWS * (200 * 8 + 4 + 4));
    assert_true((double)examples + through < 0.01 * (links + through));
    steps(&a, &w, 0, all);
    assert_same(&a, &b);
    end(&b);
    end(&a);
    world_close(&w);
}

static void nodes_send_two_vectors_less_a_share_and_the_coordinator_almost_nothing(void **unused)
{
    (void)unused;
    measure(2, SHERD__REDUCE_RING, SHERD__ORDER_SHUFFLED);
    measure(3, SHERD__REDUCE_HALVING, SHERD__ORDER_BATCHES);
    measure(5, SHERD__REDUCE_RING, SHERD__ORDER_SHUFFLED);
    measure(7, SHERD__REDUCE_HALVING, SHERD__ORDER_DRAWN);
    measure(8, SHERD__REDUCE_RING, SHERD__ORDER_SHUFFLED);
}

typedef enum moment { BEFORE_MEETING, FIRST_STEP, LATER } moment;

static void mishap(int signal_number, uint32_t nodes, sherd__reduce kind, moment at)
{
    uint64_t warm = at == LATER ? WARM : 0;
    world w;
    run a, b;
    sherd__allreduce_stats s;
    world_open(&w, nodes);
    here(&a, &w);
    if (at == BEFORE_MEETING)
        assert_int_equal(send_signal(local_pid(w.cluster, 1), signal_number), 0);
    double began = sherd__clock_s();
    sherd__allreduce_lead lead = among(&b, &w, kind);
    steps(&b, &w, 0, warm);
    if (at != BEFORE_MEETING)
        assert_int_equal(send_signal(local_pid(w.cluster, 1), signal_number), 0);
    steps(&b, &w, warm, STEPS);
    double took = sherd__clock_s() - began;
    print_message("# %.1f s\n", took);
    assert_true(took < 30);
    sherd__allreduce_count(&lead, &s);
    assert_int_equal(s.members, nodes - 1);
    assert_int_equal(s.rounds, STEPS);
    assert_non_null(strstr(local_warned, "lost"));
    steps(&a, &w, 0, STEPS);
    assert_same(&a, &b);
    if (signal_number == SIGSTOP) send_signal(local_pid(w.cluster, 1), SIGCONT);
    end(&b);
    end(&a);
    world_close(&w);
}

static void a_killed_node_is_left_out(void **unused)
{
    (void)unused;
    mishap(SIGKILL, 3, SHERD__REDUCE_RING, LATER);
    mishap(SIGKILL, 4, SHERD__REDUCE_HALVING, FIRST_STEP);
    mishap(SIGKILL, 2, SHERD__REDUCE_RING, LATER);
}

static void a_node_that_stops_ends_the_round_but_not_the_training(void **unused)
{
    (void)unused;
    mishap(SIGSTOP, 3, SHERD__REDUCE_RING, LATER);
}

/* Before it is known how long a step takes. */
static void a_node_that_stops_before_its_first_step_is_left_out(void **unused)
{
    (void)unused;
    mishap(SIGSTOP, 3, SHERD__REDUCE_HALVING, FIRST_STEP);
    mishap(SIGSTOP, 3, SHERD__REDUCE_RING, BEFORE_MEETING);
}

static void a_single_node_forms_a_group(void **unused)
{
    (void)unused;
    world w;
    run a, b;
    world_open(&w, 1);
    here(&a, &w);
    (void)among(&b, &w, SHERD__REDUCE_HALVING);
    steps(&a, &w, 0, STEPS);
    steps(&b, &w, 0, STEPS);
    assert_same(&a, &b);
    end(&b);
    end(&a);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_send_two_vectors_less_a_share_and_the_coordinator_almost_nothing),
        cmocka_unit_test(a_killed_node_is_left_out),
        cmocka_unit_test(a_node_that_stops_ends_the_round_but_not_the_training),
        cmocka_unit_test(a_node_that_stops_before_its_first_step_is_left_out),
        cmocka_unit_test(a_single_node_forms_a_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
