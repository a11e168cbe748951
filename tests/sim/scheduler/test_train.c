/*
 * Training in one process under a virtual clock: the real stepper, job and task loops, joined by
 * connections that deliver in pieces, break within records, fall silent or carry garbage,
 * determined by seeds. In all cases parameters have the bits that one thread computes here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "node/worker.h"
#include "scheduler/train/job.h"
#include "sherd/mat.h"
#include "tests/support/node_devices.h"

enum { ROWS = 40, INPUTS = 5, CLASSES = 3, NODES_MAX = 6, STEPS = 6, ROUNDS_MAX = 200000 };

typedef enum fault { NO_FAULT, KILL, CUT, STOP, GARBAGE, SLOW, FAULTS } fault;

static const char usual[] = "input = 5\nlayer = dense 6\nlayer = relu\nlayer = dense 4\n"
                            "layer = tanh\nlayer = dense 3\nloss = cross-entropy\nl2 = 0.01\n";
static const char without_bounds[] = "input = 5\nlayer = dense 6\nlayer = relu\n"
                                     "layer = dense 3\nloss = cross-entropy\n";
static const char *text = usual;

static sherd__recipe recipe;
static double inputs[ROWS * INPUTS];
static uint32_t labels[ROWS];
static sherd__dataset data;

typedef struct sim_node {
    struct sim *all;
    uint32_t index;
    sherd__session *co, *no;
    sherd__client *client;
    sherd__worker *worker;
    sherd__executor *executor;
    void *devices;
    uint64_t sessions, back_ms;
    bool up, dead, stopped, slow;
} sim_node;

typedef struct sim {
    sherd__seeded state;
    sherd__entropy rng;
    sim_node node[NODES_MAX];
    uint32_t nodes;
    uint64_t now;
    sherd__executor *executor;
    sherd__train_job *job;
    sherd__work work;
    fault fault;
    uint32_t victims, struck, under_way;
    uint32_t each;            /* parts that a node gets at a time */
    uint32_t shards_per_task; /* shards of a part, if asynchronous */
    uint64_t most;            /* maximum number of unanswered tasks of a node */
    bool ended;
} sim;

static uint64_t below(sim *s, uint64_t n)
{
    return sherd__entropy_below(&s->rng, n);
}

/* ---- the owner of the job -------------------------------------------------------------------- */

static void touch(void *ctx, uint32_t node)
{
    (void)ctx, (void)node;
}

static void expel(void *ctx, uint32_t node, int code, const char *why)
{
    sim *s = ctx;
    if (s->node[node].co) sherd__session_bye(s->node[node].co, code, why);
}

static void quiet(void *ctx, sherd_log_level level, const char *line)
{
    (void)ctx, (void)level;
    assert_true(line[0]);
}

static const char *name(void *ctx, uint32_t node)
{
    static char out[16];
    (void)ctx;
    snprintf(out, sizeof out, "node-%u", node);
    return out;
}

static void changed(void *ctx)
{
    (void)ctx;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void connect(sim *s, sim_node *n)
{
    sherd__session_options o = { .role = SHERD__COORDINATOR,
                                 .now_ms = s->now,
                                 .hello = { .minor_max = SHERD__MINOR } };
    assert_int_equal(sherd__session_new(&n->co, &o), 0);
    o = (sherd__session_options){ .role = SHERD__NODE,
                                  .now_ms = s->now,
                                  .hello = { .minor_max = SHERD__MINOR,
                                             .memory = 64 << 20,
                                             .features = SHERD__FEATURE_GRADIENTS } };
    assert_int_equal(sherd__worker_join(n->worker, &n->client, n, NULL, 0), 0);
    sherd__worker_session(n->client, &o);
    assert_int_equal(sherd__session_new(&n->no, &o), 0);
}

static void disconnect(sim *s, sim_node *n, bool back)
{
    sherd__event e;
    if (!n->co) return;
    sherd__session_eof(n->no, SHERD_ECLOSED, "cut", &e);
    if (n->client) {
        e.kind = SHERD__EV_CLOSED;
        sherd__worker_event(n->client, n->no, &e);
    }
    n->client = NULL;
    back = back && !n->dead && !n->stopped;
    n->back_ms = back ? s->now + 300 : 0;
    s->work.ops->node_down(s->work.ctx, n->index, back, "cut", s->now);
    n->up = false;
    sherd__session_free(n->co);
    sherd__session_free(n->no);
    n->co = n->no = NULL;
}

static void on_event(sim *s, sim_node *n, sherd__event *e)
{
    if (e->kind == SHERD__EV_READY) {
        n->up = true;
        s->work.ops->node_up(s->work.ctx, n->index, n->co, ++n->sessions, s->now);
    } else if (e->kind == SHERD__EV_RESULT || e->kind == SHERD__EV_REFUSED) {
        s->work.ops->event(s->work.ctx, n->index, e, s->now);
    }
    sherd__fragment_free(e->fragment);
    e->fragment = NULL;
}

/* Moves some of the offered bytes; returns false if that ends the connection. */
static bool move(sim *s, sim_node *n, bool out)
{
    sherd__session *from = out ? n->co : n->no, *to = out ? n->no : n->co;
    const uint8_t *bytes;
    uint8_t copy[4096];
    size_t len = sherd__session_pending(from, s->now, &bytes);
    if (len > sizeof copy) len = sizeof copy;
    if (len > 1 && below(s, 3) == 0) len = 1 + (size_t)below(s, len);
    if (!len) return true;
    memcpy(copy, bytes, len);
    sherd__session_sent(from, len);
    for (size_t at = 0, used; at < len; at += used) {
        sherd__event e;
        int err = sherd__session_feed(to, copy + at, len - at, s->now, &used, &e);
        if (out && n->client) sherd__worker_event(n->client, n->no, &e);
        if (out && e.kind == SHERD__EV_CLOSED) n->client = NULL;
        if (!out) on_event(s, n, &e);
        if (err) return false;
    }
    return true;
}

/* ---- faults of nodes ------------------------------------------------------------------------- */

static void strike(sim *s)
{
    sim_node *n = &s->node[below(s, s->nodes)];
    fault f = s->fault == FAULTS ? (fault)(1 + below(s, FAULTS - 1)) : s->fault;
    sherd__event e;
    size_t used;
    if (!n->up || n->stopped) return;
    s->struck++;
    switch (f) {
    case KILL:
        n->dead = true;
        disconnect(s, n, false);
        break;
    case CUT: disconnect(s, n, true); break;
    case STOP: n->stopped = true; break;
    case SLOW: n->slow = true; break;
    case GARBAGE:
        (void)sherd__session_feed(n->co, (const uint8_t *)"\0\0\0\0 no record, but long enough...",
                                  32, s->now, &used, &e);
        sherd__fragment_free(e.fragment); /* it may have completed a body */
        n->dead = true;
        disconnect(s, n, false);
        break;
    default: break;
    }
}

static void turn(sim *s)
{
    s->now += 1 + below(s, 20);
    if (s->fault && s->struck < s->victims && s->under_way && below(s, 12) == 0) strike(s);
    for (uint32_t i = 0; i < s->nodes; i++) {
        sim_node *n = &s->node[i];
        sherd__event e;
        if (!n->co && n->back_ms && s->now >= n->back_ms) connect(s, n);
        if (!n->co) continue;
        bool alive = true;
        for (unsigned k = 0; k < 6 && alive; k++) {
            bool out = below(s, 2);
            if (n->stopped && !out) continue;
            if (n->slow && !out && below(s, 20)) continue;
            if (n->stopped && out) continue;
            alive = move(s, n, out);
        }
        while (n->client && sherd__executor_drain(n->executor)) {}
        if (alive) {
            sherd__session_tick(n->co, s->now, &e);
            alive = e.kind != SHERD__EV_CLOSED;
        }
        if (alive && !n->stopped) {
            sherd__session_tick(n->no, s->now, &e);
            alive = e.kind != SHERD__EV_CLOSED;
        }
        if (!alive) disconnect(s, n, true);
    }
    s->work.ops->tick(s->work.ctx, s->now);
    s->work.ops->pump(s->work.ctx, s->now);
    for (uint32_t i = 0; i < s->nodes; i++) {
        const sim_node *n = &s->node[i];
        if (!n->co) continue;
        const sherd__session_stats *no = sherd__session_stats_of(n->no);
        uint64_t open = sherd__session_stats_of(n->co)->tasks - no->results - no->refusals;
        s->most = open > s->most ? open : s->most;
    }
}

/* ---- the engine ------------------------------------------------------------------------------ */

static uint32_t workers(void *ctx)
{
    uint32_t up, open;
    sim *s = ctx;
    sherd__train_job_count(s->job, &up, &open);
    return up ? s->each * up : 1;
}

static uint32_t shards_per_task(void *ctx, uint32_t most)
{
    const sim *s = ctx;
    return s->shards_per_task < most ? s->shards_per_task : most;
}

static int post(void *ctx, sherd__part *p, sherd_diag *d)
{
    sim *s = ctx;
    (void)d;
    s->under_way++;
    sherd__train_job_post(s->job, p);
    return SHERD_OK;
}

static int next(void *ctx, sherd__part **out, sherd_diag *d)
{
    sim *s = ctx;
    int err;
    for (unsigned i = 0; i < ROUNDS_MAX; i++) {
        if ((*out = sherd__train_job_take(s->job))) {
            s->under_way--;
            return SHERD_OK;
        }
        if (s->work.ops->done(s->work.ctx, &err, d)) return err;
        turn(s);
    }
    fail_msg("hung at %llu ms", (unsigned long long)s->now);
    return SHERD_ETIMEOUT;
}

static void no_free(void *ctx)
{
    (void)ctx;
}

static uint32_t divide(void *ctx, uint32_t shards, sherd__division *out)
{
    const sim *s = ctx;
    bool changed;
    return sherd__train_job_divide(s->job, shards, out, &changed);
}

static const sherd__gradient_engine_ops sim_ops = { .name = "sim",
                                                    .workers = workers,
                                                    .shards_per_task = shards_per_task,
                                                    .divide = divide,
                                                    .post = post,
                                                    .next = next,
                                                    .free = no_free };

/* ---- a training ------------------------------------------------------------------------------ */

typedef struct outcome {
    int err;
    double params[128];
    size_t count;
    uint64_t dropped, updates, stalest, rescaled, examples;
    double cost;
} outcome;

static void train(sherd__gradient_engine e, sherd__gradients_options g, outcome *out)
{
    sherd__network *n;
    sherd__optimiser o;
    sherd__optimiser_spec spec = { .method = SHERD__MOMENTUM };
    sherd__stepper st;
    sherd__seeded state;
    sherd_diag d = { 0 };
    uint32_t rows[ROWS];
    memset(out, 0, sizeof *out);
    assert_int_equal(sherd__recipe_network(&recipe, 1, &n, &d), 0);
    sherd__entropy from = sherd__entropy_seeded(&state, 3);
    sherd__network_draw(n, &from, 0);
    out->count = sherd__network_count(n);
    assert_int_equal(sherd__optimiser_init(&o, &spec, out->count, &d), 0);
    g.recipe = &recipe;
    g.data = &data;
    g.network = n;
    g.optimiser = &o;
    g.engine = e;
    g.bits = 17;
    assert_int_equal(sherd__stepper_gradients(&st, &g, &d), 0);
    for (uint32_t i = 0; i < STEPS && !out->err; i++) {
        sherd__step_result r;
        for (uint32_t k = 0; k < ROWS; k++) rows[k] = (k * 7 + (i % 2) * 3) % ROWS;
        sherd__step s = { .number = i, .rate = 0.2, .rows = rows, .len = i == 4 ? 9 : ROWS };
        out->err = st.ops->step(st.ctx, &s, &r, &d);
        if (!out->err) out->cost = r.cost;
    }
    if (!out->err) out->err = st.ops->settle(st.ctx, &d);
    assert_true(!out->err || d.message[0]);
    const sherd__gradients_stats *stats = sherd__gradients_stats_of(&st);
    out->dropped = stats->dropped;
    out->updates = stats->updates;
    out->rescaled = stats->rescaled;
    out->examples = stats->examples;
    out->stalest = stats->staleness_most;
    assert_true(out->count <= 128);
    memcpy(out->params, sherd__network_params(n), out->count * sizeof(double));
    sherd__stepper_free(st);
    sherd__optimiser_fini(&o);
    sherd__network_free(n);
}

/* Asynchronous: with even seeds nodes get one part at a time, with odd seeds two, of one to three
 * shards. */
static void sim_run(sim *s, uint64_t seed, uint32_t nodes, fault f, uint32_t victims,
                    sherd__gradients_options g, bool allow_drop, outcome *out)
{
    size_t counts[SHERD__RECIPE_LAYERS_MAX], tiers;
    memset(s, 0, sizeof *s);
    s->rng = sherd__entropy_seeded(&s->state, seed);
    s->nodes = nodes;
    s->now = 1;
    s->fault = f;
    s->victims = victims;
    s->each = g.async ? 1 + (uint32_t)(seed % 2) : 1;
    s->shards_per_task = 1 + (uint32_t)(seed / 2 % 3);
    assert_int_equal(sherd__executor_new_inline(&s->executor), 0);
    assert_int_equal(sherd__recipe_tiers(&recipe, &tiers, counts, NULL), 0);
    sherd__train_job_options o = {
        .train = { .recipe = &recipe,
                   .data = &data,
                   .shards = g.shards,
                   .batch = ROWS,
                   .bits = 17,
                   .recurring = seed % 2,
                   .allow_drop = allow_drop },
        .text = text,
        .text_len = strlen(text),
        .tiers = tiers,
        .counts = counts,
        .executor = s->executor,
        .id = 99,
        .nodes = nodes,
        .owner = { .touch = touch, .expel = expel, .log = quiet, .name = name, .ctx = s },
        .changed = changed
    };
    assert_int_equal(sherd__train_job_new(&s->job, &o), 0);
    s->work = sherd__train_job_work(s->job);
    for (uint32_t i = 0; i < nodes; i++) {
        sim_node *n = &s->node[i];
        n->all = s;
        n->index = i;
        assert_int_equal(sherd__executor_new_inline(&n->executor), 0);
        sherd__worker_options w = { .backend = node_devices_open(i, &n->devices),
                                    .backend_ctx = n->devices,
                                    .executor = n->executor,
                                    .memory = 64 << 20 };
        assert_int_equal(sherd__worker_new(&n->worker, &w), 0);
        connect(s, n);
    }
    uint32_t up, open = 1;
    for (unsigned i = 0; open && i < 1000; i++) {
        turn(s);
        sherd__train_job_count(s->job, &up, &open);
    }
    assert_int_equal(open, 0);
    train((sherd__gradient_engine){ &sim_ops, s }, g, out);
    s->fault = NO_FAULT;
    s->work.ops->end(s->work.ctx);
    for (uint32_t i = 0; i < nodes; i++) {
        sim_node *n = &s->node[i];
        disconnect(s, n, false);
        while (sherd__executor_drain(n->executor)) {}
        assert_int_equal(sherd__worker_memory(n->worker)->used, 0);
        assert_int_equal(sherd__worker_stats_of(n->worker)->queued, 0);
        sherd__executor_free(n->executor);
        sherd__worker_free(n->worker);
        node_devices_close(n->devices);
    }
    while (sherd__executor_drain(s->executor)) {}
    assert_true(s->work.ops->idle(s->work.ctx));
    sherd__train_job_free(s->job);
    sherd__executor_free(s->executor);
}

static void choose(const char *which)
{
    text = which;
    assert_int_equal(sherd__recipe_parse(&recipe, text, strlen(text), "t", SHERD__RECIPE_NETWORK,
                                         NULL),
                     0);
}

static int set_up(void **state)
{
    (void)state;
    sherd__seeded seeded;
    sherd__entropy e = sherd__entropy_seeded(&seeded, 1);
    choose(usual);
    for (size_t i = 0; i < ROWS * INPUTS; i++)
        inputs[i] = (double)sherd__entropy_below(&e, 2000) / 1000 - 1;
    for (size_t i = 0; i < ROWS; i++) labels[i] = (uint32_t)sherd__entropy_below(&e, CLASSES);
    data = (sherd__dataset){ .x = sherd_view_c(inputs, SHERD_F64, ROWS, INPUTS),
                             .targets = { .labels = labels },
                             .classes = CLASSES,
                             .width = CLASSES };
    return 0;
}

static void expected(sherd__gradients_options g, outcome *want)
{
    sherd__gradient_engine e;
    assert_int_equal(sherd__gradients_here(&e, &recipe, &data,
                                           &(sherd__here_options){ ROWS, 17, 1 }, NULL),
                     0);
    train(e, g, want);
    assert_int_equal(want->err, 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void whatever_nodes_do_the_bits_are_those_of_one_thread(void **state)
{
    (void)state;
    sherd__gradients_options g = { .shards = 7 };
    outcome want, got;
    unsigned ended = 0, struck = 0;
    expected(g, &want);
    for (uint64_t seed = 1; seed <= 400; seed++) {
        static sim s;
        uint32_t nodes = 1 + (uint32_t)(seed % 5);
        fault f = (fault)(seed % (FAULTS + 1));
        sim_run(&s, seed, nodes, f, nodes, g, false, &got);
        struck += s.struck;
        if (got.err == SHERD_EFEWNODES && f != CUT && f != SLOW) { /* every node had a fault */
            ended++;
            continue;
        }
        if (got.err) fail_msg("seed %llu: error %d", (unsigned long long)seed, got.err);
        if (memcmp(got.params, want.params, want.count * sizeof(double)))
            fail_msg("seed %llu, fault %d: different bits", (unsigned long long)seed, (int)f);
        assert_int_equal(got.dropped, 0);
    }
    assert_true(struck > 300);
    assert_in_range(ended, 1, 200);
}

static void equal_seeds_give_equal_schedules(void **state)
{
    (void)state;
    static sim a, b;
    outcome first, second;
    sherd__gradients_options g = { .shards = 4, .async = true, .staleness_max = 3 };
    sim_run(&a, 17, 4, FAULTS, 2, g, false, &first);
    sim_run(&b, 17, 4, FAULTS, 2, g, false, &second);
    assert_int_equal(a.now, b.now);
    assert_memory_equal(&first, &second, sizeof first);
}

static void dropped_parts_are_counted_and_training_continues(void **state)
{
    (void)state;
    uint64_t dropped = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        static sim s;
        outcome got;
        sim_run(&s, seed, 4, CUT, 3, (sherd__gradients_options){ .shards = 4 }, true, &got);
        if (got.err == SHERD_EFEWNODES) continue;
        assert_int_equal(got.err, 0);
        assert_int_equal(got.updates, STEPS);
        dropped += got.dropped;
    }
    assert_true(dropped > 20);
}

static void asynchronous_updates_keep_their_bound_under_all_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        static sim s;
        outcome got;
        sherd__gradients_options g = { .shards = 5, .async = true, .staleness_max = seed % 4 };
        sim_run(&s, seed, 2 + (uint32_t)(seed % 4), (fault)(seed % (FAULTS + 1)), 2, g, false,
                &got);
        if (got.err == SHERD_EFEWNODES) continue;
        assert_int_equal(got.err, 0);
        assert_true(got.stalest <= seed % 4);
    }
}

static void a_node_gets_its_next_part_while_it_computes_one(void **state)
{
    (void)state;
    static sim s;
    outcome got;
    sherd__gradients_options g = { .shards = 8, .async = true, .staleness_max = UINT64_MAX };
    sim_run(&s, 21, 1, NO_FAULT, 0, g, false, &got);
    assert_int_equal(got.err, 0);
    assert_int_equal(s.most, 2 * 3);  /* tiers */
    assert_int_equal(got.stalest, 1); /* it was sent before the previous one was applied */
    sim_run(&s, 21, 3, NO_FAULT, 0, g, false, &got);
    assert_int_equal(s.most, 2 * 3);
    assert_int_equal(got.examples, (STEPS - 1) * ROWS + 9);
}

/* A gradient beyond its scale is refused and requested again, without an effect on the node's other
 * part. */
static void a_refusal_does_not_affect_the_other_part(void **state)
{
    (void)state;
    double *outlier = &inputs[6 * INPUTS + 1], was = *outlier;
    choose(without_bounds);
    uint64_t rescaled = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        static sim s;
        outcome got;
        sherd__gradients_options g = { .shards = 8, .async = true, .staleness_max = UINT64_MAX };
        *outlier = 1e9;
        sim_run(&s, seed, 1 + (uint32_t)(seed % 3), NO_FAULT, 0, g, false, &got);
        *outlier = was;
        assert_int_equal(got.err, 0);
        assert_int_equal(got.examples, (STEPS - 1) * ROWS + 9);
        assert_true(s.now < 30000); /* no timeout passed */
        rescaled += got.rescaled;
    }
    choose(usual);
    assert_true(rescaled >= 40);
}

/* The devices of all nodes but the last may be lost. */
static void sim_run_on(const remote_options *devices, sim *s, uint64_t seed, uint32_t nodes,
                       fault f, sherd__gradients_options g, outcome *out)
{
    remote_options o = *devices;
    o.seed = seed;
    node_devices.options = &o;
    node_devices.dying = nodes - 1;
    sim_run(s, seed, nodes, f, 1, g, false, out);
    node_devices.options = NULL;
}

/* A node without a device refuses, and its part goes to another node. */
static void whatever_devices_do_the_bits_are_those_of_one_thread(void **state)
{
    (void)state;
    static sim s;
    sherd__gradients_options g = { .shards = 7 };
    outcome want, got;
    expected(g, &want);
    node_devices.stats = (remote_stats){ 0 };
    for (uint64_t seed = 1; seed <= 120; seed++) {
        remote_options o = { .devices = 1 + (uint32_t)(seed % 2),
                             .memory = 1 << 16,
                             .late = 1 + (uint32_t)(seed % 7),
                             .full_in = seed % 3 ? 0 : 8,
                             .fail_in = seed % 4 ? 0 : 6,
                             .dies_at = seed % 5 ? 0 : 1 + (uint32_t)(seed * 7 % 300),
                             .all_die = seed % 10 == 0 };
        sim_run_on(&o, &s, seed, 2 + (uint32_t)(seed % 4), seed % 6 ? NO_FAULT : CUT, g, &got);
        if (got.err) fail_msg("seed %llu: error %d", (unsigned long long)seed, got.err);
        if (memcmp(got.params, want.params, want.count * sizeof(double)))
            fail_msg("seed %llu: different bits", (unsigned long long)seed);
    }
    const remote_stats *all = &node_devices.stats;
    assert_true(all->dones > 10000 && all->full > 100 && all->failed > 100 && all->lost > 10);
}

/* Of one node that gets a part at a time, compared with the host, whose short passes end earlier;
 * of three nodes, compared with the same schedule over devices that do not fail. */
static void asynchronous_training_on_devices_makes_the_same_updates(void **state)
{
    (void)state;
    static sim s;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        sherd__gradients_options g = { .shards = 5, .async = true, .staleness_max = seed / 2 % 4 };
        const remote_options well = { .devices = 2, .memory = 1 << 20, .late = 5 };
        const remote_options ill = {
            .devices = 2, .memory = 1 << 16, .late = 5, .full_in = 9, .fail_in = 7
        };
        const uint32_t nodes = seed % 2 ? 3 : 1;
        outcome want, got;
        if (nodes == 1) sim_run(&s, seed, 1, NO_FAULT, 0, g, false, &want);
        else sim_run_on(&well, &s, seed, nodes, NO_FAULT, g, &want);
        sim_run_on(&ill, &s, seed, nodes, NO_FAULT, g, &got);
        assert_int_equal(want.err, 0);
        assert_memory_equal(&got, &want, sizeof want);
    }
}

/* Without devices no node remains. */
static void training_ends_if_all_devices_are_lost(void **state)
{
    (void)state;
    static sim s;
    outcome got;
    remote_options o = { .seed = 3, .memory = 1 << 16, .dies_at = 40 };
    node_devices.options = &o;
    node_devices.dying = 3;
    sim_run(&s, 3, 3, NO_FAULT, 0, (sherd__gradients_options){ .shards = 7 }, false, &got);
    node_devices.options = NULL;
    assert_int_equal(got.err, SHERD_EFEWNODES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_nodes_do_the_bits_are_those_of_one_thread),
        cmocka_unit_test(equal_seeds_give_equal_schedules),
        cmocka_unit_test(dropped_parts_are_counted_and_training_continues),
        cmocka_unit_test(asynchronous_updates_keep_their_bound_under_all_faults),
        cmocka_unit_test(a_node_gets_its_next_part_while_it_computes_one),
        cmocka_unit_test(a_refusal_does_not_affect_the_other_part),
        cmocka_unit_test(whatever_devices_do_the_bits_are_those_of_one_thread),
        cmocka_unit_test(asynchronous_training_on_devices_makes_the_same_updates),
        cmocka_unit_test(training_ends_if_all_devices_are_lost),
    };
    return cmocka_run_group_tests(tests, set_up, node_devices_end);
}
