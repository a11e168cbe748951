/* Deadlines in works of training: the nodes from which a node's deadline is computed
 * (scheduler/cluster/work_state.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/cluster/work_state.h"

#define NODES 5u
#define SLOW 3u /* this many nodes, the first ones, answer every 30 s, and are then lost */

typedef struct world {
    sherd__work_state w;
    sherd__work_node nodes[NODES];
    uint64_t now;
    int expelled[NODES];
} world;

static void expel(void *ctx, uint32_t node, int code, const char *why)
{
    world *t = ctx;
    (void)why;
    t->expelled[node] = code;
}

static bool busy(const sherd__work_node *n)
{
    return n->session != NULL;
}

static void begin(world *t)
{
    *t = (world){ .now = 1000 };
    t->w = (sherd__work_state){ .len = NODES,
                                .nodes = t->nodes,
                                .stride = sizeof *t->nodes,
                                .owner = { .expel = expel, .ctx = t },
                                .busy = busy,
                                .apart = true,
                                .silent = "computes nothing",
                                .usual_ms = 10000 };
    for (uint32_t i = 0; i < NODES; i++) {
        const sherd__session_options o = { .role = SHERD__COORDINATOR, .now_ms = t->now };
        assert_int_equal(sherd__session_new(&t->nodes[i].session, &o), SHERD_OK);
        sherd__work_asked(&t->w, i, t->now);
    }
}

static void lose(world *t, uint32_t node)
{
    sherd__session_free(t->nodes[node].session);
    t->nodes[node].session = NULL;
}

/* Nodes from..to-1 answer every `took` ms, and are asked again. */
static void pass(world *t, uint64_t ms, uint32_t from, uint32_t to, uint64_t took)
{
    for (uint64_t end = t->now + ms; t->now < end;) {
        t->now += 100;
        sherd__work_tick(&t->w, t->now);
        for (uint32_t i = from; i < to; i++) {
            if (t->now - t->nodes[i].since_ms < took) continue;
            sherd__work_heard(&t->w, i, t->now);
            sherd__work_asked(&t->w, i, t->now);
        }
    }
}

/* If lost nodes counted, a silent one would have 300 s. */
static void a_lost_node_does_not_extend_deadlines(void **s)
{
    (void)s;
    world t;
    begin(&t);
    pass(&t, 90000, 0, NODES, 30000);
    for (uint32_t i = 0; i < SLOW; i++) lose(&t, i);
    for (uint32_t i = SLOW; i < NODES; i++) sherd__work_asked(&t.w, i, t.now);
    pass(&t, 60000, SLOW, NODES, 100);
    for (uint32_t i = 0; i < NODES; i++) assert_int_equal(t.expelled[i], 0);
    pass(&t, 30000, SLOW, NODES - 1, 100); /* the last one is silent */
    assert_int_equal(t.expelled[NODES - 1], SHERD_ESILENT);
    assert_int_equal(t.expelled[SLOW], 0);
    for (uint32_t i = SLOW; i < NODES; i++) lose(&t, i);
}

static void an_expelled_node_keeps_half_of_its_excess(void **s)
{
    (void)s;
    world t;
    begin(&t);
    t.nodes[0].delivery.excess_ms = SHERD__DELIVERY_EXCESS_MS * 20;
    pass(&t, 5000, 1, NODES, 100);
    assert_int_equal(t.expelled[0], SHERD_ESILENT);
    assert_true(t.nodes[0].delivery.excess_ms <= SHERD__DELIVERY_EXCESS_MS / 2);
    for (uint32_t i = 0; i < NODES; i++) lose(&t, i);
}

/* 3e9 operations take the slowest node half a minute. */
static void a_first_answer_is_waited_for_as_long_as_its_operations_may_take(void **s)
{
    (void)s;
    world t;
    begin(&t);
    t.w.usual_ms = 0;
    sherd__work_expect(&t.w, 3e9);
    pass(&t, 80000, 0, 0, 0);
    for (uint32_t i = 0; i < NODES; i++) assert_int_equal(t.expelled[i], 0);
    pass(&t, 20000, 0, 0, 0);
    for (uint32_t i = 0; i < NODES; i++) assert_int_equal(t.expelled[i], SHERD_ESILENT);
    for (uint32_t i = 0; i < NODES; i++) lose(&t, i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_node_does_not_extend_deadlines),
        cmocka_unit_test(an_expelled_node_keeps_half_of_its_excess),
        cmocka_unit_test(a_first_answer_is_waited_for_as_long_as_its_operations_may_take),
    };
    return cmocka_run_group_tests_name("scheduler/work_state", tests, NULL, NULL);
}
