/*
 * The world of secure aggregation: it moves bytes between the coordinator and nodes, applies
 * faults, and computes the expected sum.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "tests/sim/scheduler/secure_world.h"
#include "tests/support/draw.h"
#include "tests/support/node_devices.h"

const char secure_text[] = "input = 6\nlayer = dense 5\nlayer = tanh\nlayer = dense 3\n"
                           "loss = cross-entropy\ndata = file\nepochs = 1\nrate = 0.5\n";
const int32_t secure_scales[3] = { 30, 31, 25 };
const uint32_t secure_phases[] = { SHERD__OP_JOIN, SHERD__OP_ROSTER,  SHERD__OP_SEAL,
                                   SHERD__OP_HIDE, SHERD__OP_CONFIRM, SHERD__OP_OPEN };

/* ---- the coordinator's callbacks ------------------------------------------------------------- */

static void touch(void *ctx, uint32_t node)
{
    (void)ctx, (void)node;
}

static void expel(void *ctx, uint32_t node, int code, const char *why)
{
    world *w = ctx;
    (void)code, (void)why;
    w->node[node].expelled = true;
}

static void note(void *ctx, sherd_log_level level, const char *line)
{
    world *w = ctx;
    size_t len = strlen(w->log);
    (void)level;
    snprintf(w->log + len, sizeof w->log - len, "%s\n", line);
}

static const char *name(void *ctx, uint32_t node)
{
    static const char *const names[NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6" };
    (void)ctx;
    return names[node];
}

static const sherd__fingerprint *key(void *ctx, uint32_t node)
{
    return sherd__identity_fingerprint(((world *)ctx)->node[node].identity);
}

static void changed(void *ctx)
{
    (void)ctx;
}

static void hear(void *ctx, bool out, const uint8_t *bytes, size_t len)
{
    sim_node *n = ctx;
    if (out) return;
    if (n->heard_len + len > n->heard_room) {
        n->heard_room = 2 * (n->heard_len + len);
        n->heard = realloc(n->heard, n->heard_room);
        assert_non_null(n->heard);
    }
    memcpy(n->heard + n->heard_len, bytes, len);
    n->heard_len += len;
}

/* ---- nodes --------------------------------------------------------------------------------- */

void secure_connect(sim_node *n)
{
    sherd__session_free(n->co);
    sherd__session_free(n->no);
    sherd__session_options s = {
        .role = SHERD__COORDINATOR, .now_ms = 1, .tap = hear, .tap_ctx = n
    };
    assert_int_equal(sherd__session_new(&n->co, &s), 0);
    s = (sherd__session_options){ .role = SHERD__NODE, .now_ms = 1 };
    s.hello.features = SHERD__FEATURE_SECURE | SHERD__FEATURE_DATA |
                       (n->older ? 0 : SHERD__FEATURE_CONFIRM) |
                       (n->unchecking ? 0 : SHERD__FEATURE_CHECK);
    assert_int_equal(sherd__worker_join(n->worker, &n->client, n, NULL, 0), 0);
    sherd__worker_session(n->client, &s);
    assert_int_equal(sherd__session_new(&n->no, &s), 0);
    n->sessions++;
    n->up = true;
}

static void start_node(world *w, uint32_t i)
{
    sim_node *n = &w->node[i];
    assert_int_equal(sherd_identity_new(&n->identity, NULL), 0);
    n->rows = 5 + draw() % (ROWS - 5);
    for (size_t r = 0; r < n->rows; r++) {
        for (size_t k = 0; k < INPUTS; k++)
            n->examples[r * (INPUTS + 1) + k] = (double)draw() / 0x1p30 - 1;
        n->examples[r * (INPUTS + 1) + INPUTS] = (double)(draw() % CLASSES);
    }
    n->own.x = sherd_view_c(n->examples, SHERD_F64, n->rows, INPUTS + 1);
    assert_int_equal(sherd__executor_new_inline(&n->executor), 0);
    sherd__worker_options o = { .backend = node_devices_open(i, &n->devices),
                                .backend_ctx = n->devices,
                                .memory = (uint64_t)16 << 20,
                                .executor = n->executor,
                                .self = { .identity = n->identity,
                                          .data = &n->own,
                                          .peers = n->peers,
                                          .policy = &policy_of_tests,
                                          .ledger = memory_ledger_ref(&n->ledger) } };
    assert_int_equal(sherd__worker_new(&n->worker, &o), 0);
    if (!n->absent) secure_connect(n);
}

void secure_unchecking(sim_node *n)
{
    sherd__event e;
    n->unchecking = true;
    sherd__session_eof(n->no, SHERD_ECLOSED, "cut", &e);
    sherd__worker_event(n->client, n->no, &e);
    secure_connect(n);
}

void secure_cut(world *w, uint32_t i)
{
    sim_node *n = &w->node[i];
    sherd__event e;
    if (!n->up) return;
    n->up = false;
    sherd__session_eof(n->no, SHERD_ECLOSED, "cut", &e);
    sherd__worker_event(n->client, n->no, &e);
    const sherd__work_ops *job = sherd__secure_job_work(w->job).ops;
    if (w->banned) job->node_banned(w->job, i, "cut");
    job->node_down(w->job, i, w->back && !w->banned, "cut", w->now);
}

void secure_give_up(world *w, uint32_t i)
{
    const sherd__work_ops *job = sherd__secure_job_work(w->job).ops;
    job->node_down(w->job, i, false, "cut", w->now);
    secure_pass(w);
}

void secure_pass(world *w)
{
    const sherd__work_ops *job = sherd__secure_job_work(w->job).ops;
    w->now += w->now + 100;
    job->tick(w->job, w->now);
    job->pump(w->job, w->now);
}

static void stop_node(sim_node *n)
{
    sherd__event e;
    if (n->up) {
        sherd__session_eof(n->no, SHERD_ECLOSED, "end", &e);
        sherd__worker_event(n->client, n->no, &e);
    }
    assert_int_equal(sherd__worker_memory(n->worker)->used, 0);
    assert_int_equal(sherd__worker_stats_of(n->worker)->queued, 0);
    sherd__session_free(n->co);
    sherd__session_free(n->no);
    sherd__worker_free(n->worker);
    node_devices_close(n->devices);
    sherd__executor_free(n->executor);
    sherd_identity_free(n->identity);
    free(n->heard);
}

/* ---- moving bytes -------------------------------------------------------------------------- */

static void note_mask(world *w, sim_node *n, const uint8_t *upload);

/* Records a node's answer before the job receives it: the masks and keys that it has made, and
 * whether its gradient is in the sum. */
static void witness(world *w, uint32_t i, const sherd__event *e)
{
    sim_node *n = &w->node[i];
    if (e->kind != SHERD__EV_RESULT) return;
    const uint8_t *bytes = sherd__fragment_bytes(e->fragment);
    if (e->task.op == SHERD__OP_JOIN) {
        assert_true(w->keys_len < 4000);
        w->keys[w->keys_len++] = sherd__get_u64(bytes + 32);
        for (uint32_t k = 0; k < w->count; k++)
            w->node[k].hidden = false; /* a sum over other members */
    }
    if (e->task.op == SHERD__OP_OPEN) {
        uint32_t set = 0;
        for (uint32_t k = 0; k < w->count; k++) set |= (uint32_t)w->node[k].hidden << k;
        if (w->opened_number == w->sum_number) assert_int_equal(w->opened, set);
        if (w->stepped && w->opened_of[w->step]) assert_int_equal(w->opened_of[w->step], set);
        w->opened_of[w->step] = set;
        w->opened_number = w->sum_number;
        w->opened = set;
    }
    if (e->task.op != SHERD__OP_HIDE) return;
    n->hidden = true;
    note_mask(w, n, bytes);
}

static void spoil(sherd__fragment *answer, size_t at)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)sherd__fragment_bytes(answer);
    bytes[at] ^= 1;
}

/* Changes the answer of node 0, if it is to lie. */
static void lie(const world *w, const sherd__event *e)
{
    if (e->kind != SHERD__EV_RESULT) return;
    for (uint32_t i = 0; i < w->count; i++) {
        const uint64_t cols = sherd__fragment_info_of(e->fragment)->cols;
        if (w->spoil >> i & 1 && e->task.op == SHERD__OP_SEAL) spoil(e->fragment, i * cols + 60);
        if (w->accuse >> i & 1 && e->task.op == SHERD__OP_CHECK && i < cols) spoil(e->fragment, i);
    }
    if (w->forge && e->task.op == SHERD__OP_CONFIRM) spoil(e->fragment, 40);
}

static void befall(world *w, uint32_t node, const sherd__event *e)
{
    if (e->kind != SHERD__EV_RESULT) return;
    if (e->task.op == w->flap_op && w->flaps >> node & 1 && w->node[node].up) {
        secure_cut(w, node);
        if (!w->node[node].expelled) secure_connect(&w->node[node]);
    }
    w->killed = w->life && --w->life == 0;
    if (w->often && draw() % w->often == 0) {
        uint32_t i = (uint32_t)(draw() % w->count);
        bool up = w->node[i].up;
        if (up) secure_cut(w, i);
        else if (!w->node[i].expelled) secure_connect(&w->node[i]);
    }
    if (e->task.op != w->op || ++w->seen != w->at) return;
    for (uint32_t i = 0; i < w->lost_len; i++) {
        secure_cut(w, w->lost[i]);
        if (w->returns) secure_connect(&w->node[w->lost[i]]);
    }
    if (!w->then[0].lost_len) return;
    w->op = w->then[0].op;
    w->at = w->then[0].at;
    w->seen = 0;
    w->lost_len = w->then[0].lost_len;
    memcpy(w->lost, w->then[0].lost, sizeof w->lost);
    w->then[0] = w->then[1];
    w->then[1] = (struct befallen){ 0 };
}

static size_t to_node(sim_node *n)
{
    const uint8_t *out;
    size_t len = n->up ? sherd__session_pending(n->co, 1, &out) : 0;
    for (size_t at = 0, used; at < len; at += used) {
        sherd__event e;
        assert_int_equal(sherd__session_feed(n->no, out + at, len - at, 1, &used, &e), 0);
        sherd__worker_event(n->client, n->no, &e);
    }
    if (len) sherd__session_sent(n->co, len);
    sherd__executor_drain(n->executor);
    return len;
}

static size_t from_node(world *w, uint32_t i)
{
    sim_node *n = &w->node[i];
    const sherd__work_ops *job = sherd__secure_job_work(w->job).ops;
    const uint8_t *out;
    size_t len = n->up ? sherd__session_pending(n->no, 1, &out) : 0, at = 0;
    uint64_t session = n->sessions;
    for (size_t used; at < len && n->up && n->sessions == session && !w->killed; at += used) {
        sherd__event e;
        assert_int_equal(sherd__session_feed(n->co, out + at, len - at, 1, &used, &e), 0);
        if (e.kind == SHERD__EV_READY) job->node_up(w->job, i, n->co, n->sessions, w->now);
        if (e.kind == SHERD__EV_RESULT || e.kind == SHERD__EV_REFUSED) {
            witness(w, i, &e);
            if (i == 0) lie(w, &e);
            job->event(w->job, i, &e, w->now);
            befall(w, i, &e);
        }
        sherd__fragment_free(e.fragment);
        if (n->expelled) secure_cut(w, i);
        job->pump(w->job, w->now);
    }
    if (n->up && len && n->sessions == session) sherd__session_sent(n->no, len);
    return len;
}

void secure_settle(world *w)
{
    const sherd__work_ops *job = sherd__secure_job_work(w->job).ops;
    size_t moved;
    unsigned still = 0, turns = 0;
    do {
        moved = 0;
        if (++turns > 5000) fail_msg("it does not end\n%s", w->log);
        if (still) w->now += 100;
        if (still) job->tick(w->job, w->now);
        job->pump(w->job, w->now);
        for (uint32_t i = 0; i < w->count; i++) moved += to_node(&w->node[i]);
        for (uint32_t i = 0; i < w->count; i++) moved += from_node(w, i);
        still = moved ? 0 : still + 1;
    } while (still < 4 && !w->killed);
}

static void begin_job(world *w)
{
    sherd__secure_job_options o = {
        .train = { .recipe = &w->recipe,
                   .rows = ROWS,
                   .places = ROWS,
                   .survivors = w->survivors,
                   .colluding = w->colluding,
                   .sums = w->sums },
        .text = secure_text,
        .text_len = sizeof secure_text - 1,
        .tiers = 2,
        .count = COUNT,
        .id = 77 + w->job_id++,
        .nodes = w->count,
        .owner = { .touch = touch, .expel = expel, .log = note, .name = name, .ctx = w },
        .key = key,
        .key_ctx = w,
        .changed = changed,
    };
    assert_int_equal(sherd__secure_job_new(&w->job, &o), 0);
}

void secure_end_job(world *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        sim_node *n = &w->node[i];
        sherd__event e;
        n->hidden = false;
        if (!n->up) continue;
        n->up = false;
        sherd__session_eof(n->no, SHERD_ECLOSED, "killed", &e);
        sherd__worker_event(n->client, n->no, &e);
    }
    sherd__secure_job_work(w->job).ops->rest(w->job);
    sherd__secure_job_free(w->job);
    w->job = NULL;
}

void secure_begin_again(world *w, sherd__sumlist *sums, uint32_t up)
{
    w->sums = sums;
    w->killed = false;
    w->log[0] = '\0';
    w->sum = (sherd__secure_sum){ 0 };
    begin_job(w);
    for (uint32_t i = 0; i < w->count; i++) {
        w->node[i].expelled = false;
        if (up >> i & 1) secure_connect(&w->node[i]);
        else sherd__secure_job_work(w->job).ops->node_down(w->job, i, false, "no listener", w->now);
    }
}

void secure_begin_some(world *w, uint32_t nodes, uint32_t survivors, uint32_t colluding,
                       uint32_t absent, const sherd__peers *peers)
{
    memset(w, 0, sizeof *w);
    w->count = nodes;
    if (absent < NODES) w->node[absent].absent = true;
    w->node[0].peers = peers;
    w->lost[0] = NOBODY;
    assert_int_equal(sherd__recipe_parse(&w->recipe, secure_text, sizeof secure_text - 1, "t",
                                         SHERD__RECIPE_ALL, NULL),
                     0);
    for (uint32_t i = 0; i < nodes; i++) start_node(w, i);
    w->survivors = survivors;
    w->colluding = colluding;
    begin_job(w);
    w->params = sherd__version_new(COUNT, 0);
    for (size_t i = 0; i < COUNT; i++) w->params->values[i] = (double)draw() / 0x1p31 - 0.5;
    if (absent < NODES)
        sherd__secure_job_work(w->job).ops->node_down(w->job, absent, true, "no listener", 0);
}

void secure_begin(world *w, uint32_t nodes, uint32_t survivors, uint32_t colluding)
{
    secure_begin_some(w, nodes, survivors, colluding, NOBODY, NULL);
}

/* Checks that no key and no mask occurs twice. */
static void all_differ(uint64_t *v, size_t len)
{
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < i; k++) assert_true(v[i] != v[k]);
}

void secure_end(world *w)
{
    sherd__secure_job_work(w->job).ops->rest(w->job);
    all_differ(w->keys, w->keys_len);
    all_differ(w->masks, w->masks_len);
    for (uint32_t i = 0; i < w->count; i++) stop_node(&w->node[i]);
    sherd__version_release(w->params);
    sherd__secure_job_free(w->job);
}

void secure_begin_ask(world *w)
{
    for (uint32_t i = 0; i < w->count; i++) w->node[i].hidden = false;
    w->sum_number++;
    w->sum.step = w->stepped ? w->step : w->sum_number;
    w->params->values[1] = (double)w->sum.step / 64;
    w->sum.params = w->params;
    w->sum.scales = secure_scales;
    sherd__secure_job_ask(w->job, &w->sum);
}

int secure_ask(world *w)
{
    secure_begin_ask(w);
    secure_settle(w);
    return secure_take(w);
}

int secure_take(world *w)
{
    const uint64_t *answers[NODES];
    int err = 0;
    if (sherd__secure_job_work(w->job).ops->done(w->job, &err, NULL)) return err;
    assert_true(sherd__secure_job_answered(w->job));
    const sherd__aggregate *a = &w->sum.a;
    for (uint32_t i = 0; i < a->threshold; i++)
        answers[i] = w->sum.answers + i * sherd__aggregate_piece_len(a);
    return sherd__aggregate_reveal(a, w->sum.uploads, w->sum.who, answers, w->out, NULL);
}

/* ---- expected results ------------------------------------------------------------------------ */

void secure_local_sum(const world *w, const sim_node *n, int64_t *out)
{
    sherd__grader *g;
    double x[ROWS * INPUTS], sums[COUNT], cost;
    uint32_t labels[ROWS];
    uint64_t hits;
    void *to[2] = { sums, sums + 35 };
    assert_int_equal(sherd__grader_new(&g, &w->recipe, ROWS, 0, NULL, NULL), 0);
    memcpy(sherd__grader_params(g, 0), w->params->values, 35 * sizeof(double));
    memcpy(sherd__grader_params(g, 1), w->params->values + 35, 18 * sizeof(double));
    for (size_t r = 0; r < n->rows; r++) {
        memcpy(x + r * INPUTS, n->examples + r * (INPUTS + 1), INPUTS * sizeof *x);
        labels[r] = (uint32_t)n->examples[r * (INPUTS + 1) + INPUTS];
    }
    sherd__shard s = { sherd_view_c(x, SHERD_F64, n->rows, INPUTS), { .labels = labels } };
    sherd__grading how = { .scales = secure_scales, .fresh = true, .sums = to };
    assert_int_equal(sherd__grader_run(g, &s, &how, &cost, &hits, NULL), 0);
    for (size_t k = 0; k < COUNT; k++)
        out[k] = (int64_t)rint(ldexp(sums[k], secure_scales[k >= 35]));
    out[COUNT] = (int64_t)n->rows;
    out[COUNT + 1] = (int64_t)rint(ldexp(cost, secure_scales[2]));
    out[COUNT + 2] = (int64_t)hits;
    sherd__grader_free(g);
}

/* Records upload minus gradient, of two numbers. */
static void note_mask(world *w, sim_node *n, const uint8_t *upload)
{
    int64_t x[LEN];
    secure_local_sum(w, n, x);
    for (size_t k = 7; k < LEN; k += 40) {
        uint64_t v = (uint64_t)(x[k] < 0 ? x[k] + (int64_t)SHERD__AGGREGATE_Q : x[k]);
        uint64_t z = sherd__get_u64(upload + 8 * k) + SHERD__AGGREGATE_Q - v;
        assert_true(w->masks_len < 4000);
        w->masks[w->masks_len++] = z % SHERD__AGGREGATE_Q;
    }
}

void secure_is_sum_without(const world *w, const uint32_t *without, uint32_t len)
{
    int64_t want[LEN] = { 0 }, one[LEN];
    uint32_t in = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        bool left = true;
        for (uint32_t k = 0; k < len; k++) left = left && without[k] != i;
        if (!left) continue;
        in++;
        secure_local_sum(w, &w->node[i], one);
        for (size_t k = 0; k < LEN; k++) want[k] += one[k];
    }
    assert_int_equal(w->sum.in, in);
    for (size_t k = 0; k < LEN; k++) assert_true(llabs(w->out[k] - want[k]) <= SLACK);
}

void secure_is_sum_of_uploads(const world *w)
{
    uint32_t without[NODES], len = 0;
    for (uint32_t i = 0; i < w->count; i++)
        if (!w->node[i].hidden) without[len++] = i;
    secure_is_sum_without(w, without, len);
}

void secure_meet(world *w)
{
    secure_settle(w);
    if (!sherd__secure_job_ready(w->job, &w->a)) {
        sherd_diag d = { 0 };
        int err;
        (void)sherd__secure_job_work(w->job).ops->done(w->job, &err, &d);
        fail_msg("not ready: %s\n%s", d.message, w->log);
    }
}
