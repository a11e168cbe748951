/*
 * Secure aggregation, both state machines joined by sessions in memory: the sum is that of all
 * local gradients to the bit, whoever is lost and when; what the coordinator hears holds none of
 * them.
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

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "learn/plan.h"
#include "learn/secure.h"
#include "node/worker.h"
#include "scheduler/secure_job.h"
#include "tests/support/no_backend.h"

static const char text[] = "input = 6\nlayer = dense 5\nlayer = tanh\nlayer = dense 3\n"
                           "loss = cross-entropy\ndata = file\nepochs = 1\nrate = 0.5\n";
enum { INPUTS = 6, CLASSES = 3, COUNT = 6 * 5 + 5 + 5 * 3 + 3, LEN = COUNT + SHERD__SECURE_EXTRA,
       NODES = 7, ROWS = 40, NOBODY = 100 };
static const int32_t scales[3] = { 30, 31, 25 };

typedef struct sim_node {
    sherd_identity *identity;
    double examples[ROWS * (INPUTS + 1)]; /* the last column is the label */
    size_t rows;
    sherd__own own;
    sherd_executor *executor;
    sherd__worker *worker;
    sherd__client *client;
    sherd_session *co, *no;
    bool up, expelled, absent; /* absent: not there at first */
    uint64_t sessions;
    const sherd__peers *peers;
    bool hidden;    /* its upload of this sum has come */
    uint8_t *heard; /* by the coordinator */
    size_t heard_len, heard_room;
} sim_node;

typedef struct world {
    uint32_t count;
    sim_node node[NODES];
    sherd__recipe recipe;
    sherd__secure_job *job;
    sherd__aggregate a;
    sherd__secure_sum sum;
    sherd__version *params;
    int64_t out[LEN];
    char log[4000];
    /* what is to happen: after the at-th answer to `op`, from whomever, these are lost */
    uint32_t op, at, seen;
    uint32_t lost[NODES], lost_len;
    bool back;                     /* whoever is lost may be back at once */
    bool returns;                  /* and is */
    uint32_t often;                /* one in so many results loses somebody; 0: none */
    uint64_t now;
    /* every mask and every key that any node has made */
    uint64_t masks[4000], keys[4000];
    size_t masks_len, keys_len;
} world;

static uint64_t state;

static uint64_t next_random(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 33;
}

/* ---- the coordinator's surroundings -------------------------------------------------------- */

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

static void connect(sim_node *n)
{
    sherd__session_free(n->co);
    sherd__session_free(n->no);
    sherd__session_options s = { .role = SHERD__COORDINATOR, .now_ms = 1, .tap = hear,
                                 .tap_ctx = n };
    assert_int_equal(sherd__session_new(&n->co, &s), 0);
    s = (sherd__session_options){ .role = SHERD__NODE, .now_ms = 1 };
    s.hello.features = SHERD__FEATURE_SECURE | SHERD__FEATURE_DATA;
    sherd__worker_session(n->worker, &s);
    assert_int_equal(sherd__worker_join(n->worker, &n->client, n), 0);
    assert_int_equal(sherd__session_new(&n->no, &s), 0);
    n->sessions++;
    n->up = true;
}

static void start_node(world *w, uint32_t i)
{
    sim_node *n = &w->node[i];
    assert_int_equal(sherd__identity_new(&n->identity), 0);
    n->rows = 5 + next_random() % (ROWS - 5);
    for (size_t r = 0; r < n->rows; r++) {
        for (size_t k = 0; k < INPUTS; k++)
            n->examples[r * (INPUTS + 1) + k] = (double)next_random() / 0x1p30 - 1;
        n->examples[r * (INPUTS + 1) + INPUTS] = (double)(next_random() % CLASSES);
    }
    n->own.x = sherd_view_c(n->examples, SHERD_F64, n->rows, INPUTS + 1);
    assert_int_equal(sherd__executor_new_inline(&n->executor), 0);
    sherd__worker_options o = { .backend = &none, .memory = (uint64_t)16 << 20,
                                .executor = n->executor, .self = { n->identity, &n->own,
                                                                   n->peers } };
    assert_int_equal(sherd__worker_new(&n->worker, &o), 0);
    if (!n->absent) connect(n);
}

static void cut(world *w, uint32_t i)
{
    sim_node *n = &w->node[i];
    sherd__event e;
    if (!n->up) return;
    n->up = false;
    sherd__session_eof(n->no, SHERD_ECLOSED, "cut", &e);
    sherd__worker_event(n->client, n->no, &e);
    sherd__secure_job_work(w->job).ops->node_down(w->job, i, w->back, "cut", w->now);
}

/* It will not be back after all. */
static void give_up(world *w, uint32_t i)
{
    sherd__secure_job_work(w->job).ops->node_down(w->job, i, false, "cut", w->now);
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
    sherd__executor_free(n->executor);
    sherd__identity_free(n->identity);
    free(n->heard);
}

/* ---- moving bytes -------------------------------------------------------------------------- */

static void note_mask(world *w, sim_node *n, const uint8_t *upload);

/* What came of a node, before the job is told: masks and keys that it has made, and whether its
 * gradient is in the sum. */
static void witness(world *w, uint32_t i, const sherd__event *e)
{
    sim_node *n = &w->node[i];
    if (e->kind != SHERD__EV_RESULT) return;
    const uint8_t *bytes = sherd__fragment_bytes(e->fragment);
    if (e->task.op == SHERD__OP_JOIN) {
        assert_true(w->keys_len < 4000);
        w->keys[w->keys_len++] = sherd__get_u64(bytes + 32);
        for (uint32_t k = 0; k < w->count; k++) w->node[k].hidden = false; /* a sum of others */
    }
    if (e->task.op != SHERD__OP_HIDE) return;
    n->hidden = true;
    note_mask(w, n, bytes);
}

static void befall(world *w, const sherd__event *e)
{
    if (e->kind != SHERD__EV_RESULT) return;
    if (w->often && next_random() % w->often == 0) {
        uint32_t i = (uint32_t)(next_random() % w->count);
        bool up = w->node[i].up;
        if (up) cut(w, i);
        else if (!w->node[i].expelled) connect(&w->node[i]);
    }
    if (e->task.op != w->op || ++w->seen != w->at) return;
    for (uint32_t i = 0; i < w->lost_len; i++) {
        cut(w, w->lost[i]);
        if (w->returns) connect(&w->node[w->lost[i]]);
    }
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
    for (size_t used; at < len && n->up && n->sessions == session; at += used) {
        sherd__event e;
        assert_int_equal(sherd__session_feed(n->co, out + at, len - at, 1, &used, &e), 0);
        if (e.kind == SHERD__EV_READY) job->node_up(w->job, i, n->co, n->sessions, w->now);
        if (e.kind == SHERD__EV_RESULT || e.kind == SHERD__EV_REFUSED) {
            witness(w, i, &e);
            job->event(w->job, i, &e, w->now);
            befall(w, &e);
        }
        sherd__fragment_free(e.fragment);
        if (n->expelled) cut(w, i);
        job->pump(w->job, w->now);
    }
    if (n->up && len && n->sessions == session) sherd__session_sent(n->no, len);
    return len;
}

static void settle(world *w)
{
    const sherd__work_ops *job = sherd__secure_job_work(w->job).ops;
    size_t moved;
    unsigned still = 0;
    do {
        moved = 0;
        if (still) w->now += 100;
        if (still) job->tick(w->job, w->now);
        job->pump(w->job, w->now);
        for (uint32_t i = 0; i < w->count; i++) moved += to_node(&w->node[i]);
        for (uint32_t i = 0; i < w->count; i++) moved += from_node(w, i);
        still = moved ? 0 : still + 1;
    } while (still < 4);
}

static void begin_some(world *w, uint32_t nodes, uint32_t survivors, uint32_t colluding,
                       uint32_t absent, const sherd__peers *peers)
{
    memset(w, 0, sizeof *w);
    w->count = nodes;
    if (absent < NODES) w->node[absent].absent = true;
    w->node[0].peers = peers;
    w->lost[0] = NOBODY;
    assert_int_equal(sherd__recipe_parse(&w->recipe, text, sizeof text - 1, "t", SHERD__RECIPE_ALL,
                                         NULL), 0);
    for (uint32_t i = 0; i < nodes; i++) start_node(w, i);
    sherd__secure_job_options o = {
        .train = { .recipe = &w->recipe, .bits = 17, .survivors = survivors,
                   .colluding = colluding },
        .text = text, .text_len = sizeof text - 1, .tiers = 2, .count = COUNT, .id = 77,
        .nodes = nodes, .owner = { touch, expel, note, name, w }, .key = key, .key_ctx = w,
        .changed = changed,
    };
    assert_int_equal(sherd__secure_job_new(&w->job, &o), 0);
    w->params = sherd__version_new(COUNT, 0);
    for (size_t i = 0; i < COUNT; i++) w->params->values[i] = (double)next_random() / 0x1p31 - 0.5;
    if (absent < NODES)
        sherd__secure_job_work(w->job).ops->node_down(w->job, absent, true, "nobody", 0);
}

static void begin(world *w, uint32_t nodes, uint32_t survivors, uint32_t colluding)
{
    begin_some(w, nodes, survivors, colluding, NOBODY, NULL);
}

/* No key and no mask was there twice. */
static void all_differ(uint64_t *v, size_t len)
{
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < i; k++) assert_true(v[i] != v[k]);
}

static void end(world *w)
{
    sherd__secure_job_work(w->job).ops->rest(w->job);
    all_differ(w->keys, w->keys_len);
    all_differ(w->masks, w->masks_len);
    for (uint32_t i = 0; i < w->count; i++) stop_node(&w->node[i]);
    sherd__version_release(w->params);
    sherd__secure_job_free(w->job);
}

/* Asks for a sum; an error is the job's, or the sum's. */
static int ask(world *w)
{
    const uint64_t *answers[NODES];
    int err = 0;
    for (uint32_t i = 0; i < w->count; i++) w->node[i].hidden = false;
    w->sum.params = w->params;
    w->sum.scales = scales;
    sherd__secure_job_ask(w->job, &w->sum);
    settle(w);
    if (sherd__secure_job_work(w->job).ops->done(w->job, &err, NULL)) return err;
    assert_true(sherd__secure_job_answered(w->job));
    if (w->sum.err) return w->sum.err;
    const sherd__aggregate *a = &w->sum.a;
    for (uint32_t i = 0; i < a->threshold; i++)
        answers[i] = w->sum.answers + i * sherd__aggregate_piece_len(a);
    return sherd__aggregate_reveal(a, w->sum.uploads, w->sum.who, answers, w->out, NULL);
}

/* ---- what it should be --------------------------------------------------------------------- */

/* By the grader alone, in one pass. */
static void local_sum(const world *w, const sim_node *n, int64_t *out)
{
    sherd__grader *g;
    double x[ROWS * INPUTS], cost;
    uint32_t labels[ROWS];
    uint64_t hits;
    void *to[2] = { out, out + 35 };
    assert_int_equal(sherd__grader_new(&g, &w->recipe, ROWS, 17, false, NULL), 0);
    memcpy(sherd__grader_params(g, 0), w->params->values, 35 * sizeof(double));
    memcpy(sherd__grader_params(g, 1), w->params->values + 35, 18 * sizeof(double));
    for (size_t r = 0; r < n->rows; r++) {
        memcpy(x + r * INPUTS, n->examples + r * (INPUTS + 1), INPUTS * sizeof *x);
        labels[r] = (uint32_t)n->examples[r * (INPUTS + 1) + INPUTS];
    }
    sherd__shard s = { sherd_view_c(x, SHERD_F64, n->rows, INPUTS), { .labels = labels } };
    sherd__grading how = { .scales = scales, .room = 50, .sums = to };
    memset(out, 0, LEN * sizeof *out);
    assert_int_equal(sherd__grader_run(g, &s, &how, &cost, &hits, NULL), 0);
    out[COUNT] = (int64_t)n->rows;
    out[COUNT + 1] = (int64_t)rint(ldexp(cost, scales[2]));
    out[COUNT + 2] = (int64_t)hits;
    sherd__grader_free(g);
}

/* Upload less gradient, of two numbers. */
static void note_mask(world *w, sim_node *n, const uint8_t *upload)
{
    int64_t x[LEN];
    local_sum(w, n, x);
    for (size_t k = 7; k < LEN; k += 40) {
        uint64_t v = (uint64_t)(x[k] < 0 ? x[k] + (int64_t)SHERD__AGGREGATE_Q : x[k]);
        uint64_t z = sherd__get_u64(upload + 8 * k) + SHERD__AGGREGATE_Q - v;
        assert_true(w->masks_len < 4000);
        w->masks[w->masks_len++] = z % SHERD__AGGREGATE_Q;
    }
}

/* The sum over all but those without a gradient in it. */
static void is_sum_without(const world *w, const uint32_t *without, uint32_t len)
{
    int64_t want[LEN] = { 0 }, one[LEN];
    uint32_t in = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        bool left = true;
        for (uint32_t k = 0; k < len; k++) left = left && without[k] != i;
        if (!left) continue;
        in++;
        local_sum(w, &w->node[i], one);
        for (size_t k = 0; k < LEN; k++) want[k] += one[k];
    }
    assert_int_equal(w->sum.in, in);
    assert_memory_equal(w->out, want, sizeof want);
}

/* The sum over those whose uploads have come. */
static void is_sum_of_uploads(const world *w)
{
    uint32_t without[NODES], len = 0;
    for (uint32_t i = 0; i < w->count; i++)
        if (!w->node[i].hidden) without[len++] = i;
    is_sum_without(w, without, len);
}

static void meet(world *w)
{
    settle(w);
    if (!sherd__secure_job_ready(w->job, &w->a)) {
        sherd_diag d = { 0 };
        int err;
        (void)sherd__secure_job_work(w->job).ops->done(w->job, &err, &d);
        fail_msg("not ready: %s\n%s", d.message, w->log);
    }
}

/* ---- tests --------------------------------------------------------------------------------- */

static void the_sum_is_that_of_all_local_gradients_to_the_bit(void **s)
{
    (void)s;
    static const uint32_t kinds[][3] = { { 3, 3, 1 }, { 4, 0, 1 }, { 7, 0, 2 }, { 7, 7, 5 } };
    for (size_t i = 0; i < 4; i++) {
        world w;
        state = 11 + i;
        begin(&w, kinds[i][0], kinds[i][1], kinds[i][2]);
        meet(&w);
        assert_int_equal(w.a.nodes, kinds[i][0]);
        for (unsigned round = 0; round < 4; round++) {
            for (size_t k = 0; k < COUNT; k++) w.params->values[k] *= 0.75;
            assert_int_equal(ask(&w), 0);
            is_sum_without(&w, NULL, 0);
        }
        assert_string_equal(w.log, "");
        end(&w);
    }
}

/* Seven nodes, two may collude, five must be left (U > 4.5). */
static void nodes_may_be_lost_at_any_moment_as_long_as_enough_are_left(void **s)
{
    (void)s;
    for (uint32_t op = SHERD__OP_SEAL; op <= SHERD__OP_OPEN; op++)
        for (uint32_t at = 1; at <= 5; at++) {
            world w;
            state = 100 * op + at;
            begin(&w, 7, 5, 2);
            meet(&w);
            assert_int_equal(ask(&w), 0);
            w.op = op;
            w.at = at;
            w.seen = 0;
            w.lost[0] = 5;
            w.lost[1] = 6;
            w.lost_len = 2;
            assert_int_equal(ask(&w), 0);
            /* answers come in the order of nodes: 5 and 6 have given nothing before they are lost,
               and everything once answers to OPEN come */
            if (op == SHERD__OP_OPEN) is_sum_without(&w, NULL, 0);
            else is_sum_without(&w, w.lost, 2);
            w.lost_len = 0;
            assert_int_equal(ask(&w), 0);
            is_sum_without(&w, (uint32_t[]){ 5, 6 }, 2);
            end(&w);
        }
}

static void one_that_is_lost_behind_its_upload_is_in_the_sum(void **s)
{
    (void)s;
    world w;
    state = 5;
    begin(&w, 7, 5, 2);
    meet(&w);
    w.op = SHERD__OP_HIDE;
    w.at = 4; /* nodes 0 to 3 have given theirs */
    w.lost[0] = 1;
    w.lost[1] = 6;
    w.lost_len = 2;
    assert_int_equal(ask(&w), 0);
    is_sum_without(&w, (uint32_t[]){ 6 }, 1);
    assert_non_null(strstr(w.log, "n1 is lost: cut; what it has is still in this sum"));
    assert_non_null(strstr(w.log, "n6 is lost: cut; what it has is not in this sum"));
    end(&w);
}

static void one_that_is_lost_between_pieces_and_upload_is_not_in_the_sum(void **s)
{
    (void)s;
    world w;
    state = 15;
    begin(&w, 7, 5, 2);
    meet(&w);
    w.op = SHERD__OP_SEAL;
    w.at = 1;
    w.lost_len = 1; /* node 0, whose pieces came first */
    w.lost[0] = 0;
    assert_int_equal(ask(&w), 0);
    is_sum_without(&w, (uint32_t[]){ 0 }, 1);
    end(&w);
}

static void one_answer_too_few_opens_nothing(void **s)
{
    (void)s;
    for (uint32_t op = SHERD__OP_SEAL; op <= SHERD__OP_OPEN; op++) {
        world w;
        state = 6;
        begin(&w, 7, 5, 2);
        meet(&w);
        w.op = op;
        w.at = 1;
        w.lost[0] = 3;
        w.lost[1] = 4;
        w.lost[2] = 6;
        w.lost_len = 3;
        assert_int_equal(ask(&w), SHERD_EFEWNODES);
        assert_int_equal(sherd_err_exit(SHERD_EFEWNODES), 7);
        end(&w);
    }
}

static void who_is_lost_before_the_roster_is_done_without(void **s)
{
    (void)s;
    world w;
    state = 7;
    begin(&w, 5, 0, 1);
    w.op = SHERD__OP_JOIN;
    w.at = 2;
    w.lost[0] = 4;
    w.lost_len = 1;
    meet(&w);
    assert_int_equal(w.a.nodes, 4);
    assert_int_equal(ask(&w), 0);
    is_sum_without(&w, (uint32_t[]){ 4 }, 1);
    end(&w);
}

static void a_key_that_is_not_the_pinned_one_is_not_let_in(void **s)
{
    (void)s;
    world w;
    sherd_identity *other;
    state = 8;
    begin(&w, 5, 0, 1);
    assert_int_equal(sherd__identity_new(&other), 0);
    sherd_identity *own = w.node[2].identity;
    w.node[2].identity = other; /* what the coordinator expects of it from now on */
    meet(&w);
    assert_true(w.node[2].expelled);
    assert_int_equal(w.a.nodes, 4);
    assert_int_equal(ask(&w), 0);
    w.node[2].identity = own;
    is_sum_without(&w, (uint32_t[]){ 2 }, 1);
    sherd__identity_free(other);
    end(&w);
}

static void too_large_a_gradient_is_asked_for_again_in_a_round_of_its_own(void **s)
{
    (void)s;
    world w;
    state = 9;
    begin(&w, 4, 0, 1);
    meet(&w);
    double large = w.params->values[40];
    w.params->values[40] = 0x1p60;
    assert_int_equal(ask(&w), SHERD_EBUSY);
    w.params->values[40] = large;
    assert_int_equal(ask(&w), 0);
    is_sum_without(&w, NULL, 0);
    end(&w);
}

/* ---- who comes back ------------------------------------------------------------------------ */

static void who_was_lost_at_any_moment_is_in_the_sums_again_once_it_is_back(void **s)
{
    (void)s;
    for (uint32_t op = SHERD__OP_SEAL; op <= SHERD__OP_OPEN; op++)
        for (uint32_t at = 1; at <= 5; at++)
            for (unsigned during = 0; during < 2; during++) {
                world w;
                state = 1000 * op + 10 * at + during;
                begin(&w, 7, 5, 2);
                meet(&w);
                assert_int_equal(ask(&w), 0);
                w.op = op;
                w.at = at;
                w.seen = 0;
                w.lost[0] = at % 7;
                w.lost[1] = (at + 3) % 7;
                w.lost_len = 2;
                w.returns = during;
                assert_int_equal(ask(&w), 0);
                is_sum_of_uploads(&w);
                w.op = 0;
                for (unsigned i = 0; i < 2 && !during; i++) connect(&w.node[w.lost[i]]);
                settle(&w);
                assert_non_null(strstr(w.log, "is back, and in the sums from the next one on"));
                assert_int_equal(ask(&w), 0);
                is_sum_without(&w, NULL, 0);
                assert_int_equal(w.sum.a.nodes, 7);
                assert_int_equal(w.sum.a.threshold, 5);
                end(&w);
            }
}

static void who_is_lost_between_two_sums_is_missing_in_none_if_it_is_back_in_time(void **s)
{
    (void)s;
    world w;
    state = 21;
    begin(&w, 5, 0, 1);
    meet(&w);
    for (unsigned round = 0; round < 5; round++) {
        assert_int_equal(ask(&w), 0);
        is_sum_without(&w, NULL, 0);
        cut(&w, round);
        if (round % 2) settle(&w);
        connect(&w.node[round]);
        settle(&w);
    }
    assert_int_equal(w.keys_len, 5 * 5); /* the last one is back, and nothing was asked since */
    end(&w);
}

static void one_that_was_not_there_at_first_joins_later(void **s)
{
    (void)s;
    world w;
    state = 22;
    begin_some(&w, 5, 0, 1, 3, NULL);
    meet(&w);
    assert_int_equal(w.a.nodes, 4);
    assert_int_equal(ask(&w), 0);
    is_sum_without(&w, (uint32_t[]){ 3 }, 1);
    assert_int_equal(w.sum.a.threshold, 3);
    connect(&w.node[3]);
    settle(&w);
    assert_non_null(strstr(w.log, "n3 has come, and is in the sums from the next one on"));
    assert_int_equal(ask(&w), 0);
    is_sum_without(&w, NULL, 0);
    assert_int_equal(w.sum.a.nodes, 5);
    assert_int_equal(w.sum.a.threshold, 4); /* more than (5 + 1) / 2 */
    end(&w);
}

/* Its data do not fit, or others do not believe it: that is no end for those who were there. */
static void one_that_cannot_join_does_not_stop_the_others(void **s)
{
    (void)s;
    for (unsigned unbelieved = 0; unbelieved < 2; unbelieved++) {
        world w;
        sherd__peers peers = { 0 };
        char lines[2000] = "";
        state = 23 + unbelieved;
        begin_some(&w, 5, 0, 1, 4, &peers);
        for (uint32_t i = 0; i < 5 - unbelieved; i++) {
            char key[SHERD__FINGERPRINT_TEXT];
            sherd__fingerprint_text(sherd__identity_fingerprint(w.node[i].identity), key);
            sprintf(lines + strlen(lines), "127.0.0.1:700%u key=%s\n", i, key);
        }
        assert_int_equal(sherd__peers_parse(&peers, lines, strlen(lines), "peers", NULL), 0);
        if (!unbelieved) w.node[4].own.x.cols--;
        meet(&w);
        assert_int_equal(ask(&w), 0);
        connect(&w.node[4]);
        settle(&w);
        assert_int_equal(ask(&w), 0);
        is_sum_without(&w, (uint32_t[]){ 4 }, 1);
        assert_non_null(strstr(w.log, unbelieved ? "n4 takes no part in the training: not all "
                                                   "believe it"
                                                 : "n4: the node's data are not of"));
        assert_int_equal(ask(&w), 0);
        assert_int_equal(w.sum.a.nodes, 4);
        end(&w);
        sherd__peers_fini(&peers);
    }
}

/* Three of seven are lost, five must be left: a sum that nobody was asked to open is begun anew
 * with those that come back, and nothing of it is waited for where nobody will. */
static void a_sum_waits_for_those_that_may_be_back_at_once(void **s)
{
    (void)s;
    for (uint32_t op = SHERD__OP_SEAL; op <= SHERD__OP_HIDE; op++)
        for (unsigned back = 0; back < 2; back++) {
            const uint64_t *answers[NODES] = { NULL };
            world w;
            int err;
            state = 30 + op;
            begin(&w, 7, 5, 2);
            meet(&w);
            w.op = op;
            w.at = 2;
            for (uint32_t i = 0; i < 3; i++) w.lost[i] = i + 2;
            w.lost_len = 3;
            w.back = true;
            sherd__secure_job_ask(w.job, &w.sum);
            w.sum.params = w.params;
            w.sum.scales = scales;
            settle(&w);
            const sherd__work_ops *job = sherd__secure_job_work(w.job).ops;
            assert_false(job->done(w.job, &err, NULL));
            assert_false(sherd__secure_job_answered(w.job));
            w.op = 0;
            give_up(&w, 2);
            give_up(&w, 3);
            assert_false(job->done(w.job, &err, NULL));
            if (!back) {
                give_up(&w, 4);
                assert_true(job->done(w.job, &err, NULL));
                assert_int_equal(err, SHERD_EFEWNODES);
                end(&w);
                continue;
            }
            connect(&w.node[4]);
            settle(&w);
            assert_true(sherd__secure_job_answered(w.job));
            assert_int_equal(w.sum.in, 5);
            assert_int_equal(w.sum.a.nodes, 5);
            assert_int_equal(w.sum.a.threshold, 5); /* no fewer than at first */
            for (uint32_t i = 0; i < 5; i++)
                answers[i] = w.sum.answers + i * sherd__aggregate_piece_len(&w.sum.a);
            assert_int_equal(sherd__aggregate_reveal(&w.sum.a, w.sum.uploads, w.sum.who, answers,
                                                     w.out, NULL), 0);
            is_sum_without(&w, (uint32_t[]){ 2, 3 }, 2);
            end(&w);
        }
}

/* Two sums under the same parameters over other sets would differ by single gradients. */
static void once_survivors_were_named_no_other_set_of_them_is(void **s)
{
    (void)s;
    world w;
    state = 40;
    begin(&w, 7, 5, 2);
    meet(&w);
    w.op = SHERD__OP_OPEN;
    w.at = 2;
    for (uint32_t i = 0; i < 4; i++) w.lost[i] = i + 3;
    w.lost_len = 4;
    w.back = w.returns = true;
    assert_int_equal(ask(&w), SHERD_EFEWNODES);
    end(&w);
}

static void whoever_comes_and_goes_sums_are_those_of_the_uploads(void **s)
{
    (void)s;
    unsigned sums = 0, ends = 0, rosters = 0;
    for (unsigned seed = 0; seed < 60; seed++) {
        world w;
        int err = 0;
        state = 5000 + seed;
        begin(&w, 3 + seed % 5, 0, 1);
        meet(&w);
        w.back = true;
        w.often = 4 + seed % 40;
        for (unsigned round = 0; round < 9 && !err; round++) {
            for (size_t k = 0; k < COUNT; k++) w.params->values[k] *= 0.97;
            const sherd__work_ops *job = sherd__secure_job_work(w.job).ops;
            for (uint32_t i = 0; i < w.count; i++) w.node[i].hidden = false;
            w.sum.params = w.params;
            w.sum.scales = scales;
            sherd__secure_job_ask(w.job, &w.sum);
            for (unsigned go = 0; go < 20 && !sherd__secure_job_answered(w.job) &&
                                  !job->done(w.job, &err, NULL); go++) {
                settle(&w); /* it waits for somebody to be back */
                for (uint32_t i = 0; i < w.count; i++)
                    if (!w.node[i].up && !w.node[i].expelled) connect(&w.node[i]);
            }
            if (job->done(w.job, &err, NULL)) {
                assert_int_equal(err, SHERD_EFEWNODES);
                ends++;
                break;
            }
            assert_true(sherd__secure_job_answered(w.job));
            assert_int_equal(w.sum.err, 0);
            assert_true(w.sum.in >= w.a.threshold);
            const uint64_t *answers[NODES];
            for (uint32_t i = 0; i < w.sum.a.threshold; i++)
                answers[i] = w.sum.answers + i * sherd__aggregate_piece_len(&w.sum.a);
            assert_int_equal(sherd__aggregate_reveal(&w.sum.a, w.sum.uploads, w.sum.who, answers,
                                                     w.out, NULL), 0);
            is_sum_of_uploads(&w);
            sums++;
        }
        rosters += w.keys_len > w.count;
        end(&w);
    }
    assert_true(sums > 200 && ends > 3 && rosters > 40);
}

/* ---- what the coordinator hears ------------------------------------------------------------ */

enum { SET = 1 << 14 };

static void set_add(uint64_t *set, uint64_t v)
{
    size_t at = (size_t)(v * UINT64_C(0x9E3779B97F4A7C15) >> 50);
    while (set[at] && set[at] != v) at = (at + 1) % SET;
    set[at] = v;
}

static bool set_has(const uint64_t *set, uint64_t v)
{
    size_t at = (size_t)(v * UINT64_C(0x9E3779B97F4A7C15) >> 50);
    while (set[at] && set[at] != v) at = (at + 1) % SET;
    return v && set[at] == v;
}

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, 8);
    return bits;
}

static size_t found(const uint64_t *set, const uint8_t *bytes, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i + 8 <= len; i++) n += set_has(set, sherd__get_u64(bytes + i));
    return n;
}

static void put(sim_node *n, uint32_t block, uint8_t dtype, uint64_t rows, uint64_t cols,
                const void *bytes)
{
    sherd__fragment_info i = { .origin = SHERD__HIDDEN, .dtype = dtype, .rows = rows,
                               .cols = cols,
                               .len = sherd_dtype_size((sherd_dtype)dtype) * rows * cols };
    sherd_fragment *f;
    uint8_t *copy = malloc(i.len);
    memcpy(copy, bytes, i.len);
    assert_int_equal(sherd__fragment_take(&f, &i, copy, NULL, NULL), 0);
    assert_int_equal(sherd__session_put(n->co, 78, block, f), 0);
}

/* The same gradient by SHERD__OP_GRADIENT, of examples that the coordinator deals. */
static void ask_in_clear(world *w, sim_node *n)
{
    sherd__plan plan = { .recipe = 1, .bits = 17, .room = 50, .tiers = 2, .params = 5, .shards = 1,
                         .batch = ROWS };
    sherd__plan_shard shard = { .x = 2, .targets = 3, .rows = n->rows };
    uint8_t bytes[400];
    double x[ROWS * INPUTS];
    uint32_t labels[ROWS];
    for (size_t r = 0; r < n->rows; r++) {
        memcpy(x + r * INPUTS, n->examples + r * (INPUTS + 1), INPUTS * sizeof *x);
        labels[r] = (uint32_t)n->examples[r * (INPUTS + 1) + INPUTS];
    }
    sherd__plan_write(bytes, &plan, scales);
    sherd__plan_write_shard(bytes, &plan, 0, &shard);
    put(n, 1, SHERD_U8, 1, (uint64_t)(strstr(text, "data =") - text), text);
    put(n, 2, SHERD_F64, n->rows, INPUTS, x);
    put(n, 3, SHERD_U32, n->rows, 1, labels);
    put(n, 4, SHERD_I64, 1, sherd__plan_size(2, 1) / 8, bytes);
    for (uint32_t t = 0; t < 2; t++) {
        uint64_t cols = sherd__plan_numbers(t ? 18 : 35, t, 1);
        sherd__task task = { .job = 78, .task = t + 1, .attempt = 1, .op = SHERD__OP_GRADIENT,
                             .left = 4, .right = 5 + t,
                             .result = { .origin = SHERD__RESULT, .dtype = SHERD_I64, .rows = 1,
                                         .cols = cols, .len = 8 * cols } };
        put(n, 5 + t, SHERD_F64, 1, t ? 18 : 35, w->params->values + (t ? 35 : 0));
        assert_int_equal(sherd__session_task(n->co, &task), 0);
    }
    settle(w);
}

static void what_the_coordinator_hears_holds_no_gradient_and_no_example(void **s)
{
    (void)s;
    world w;
    static uint64_t set[SET];
    int64_t one[LEN];
    state = 10;
    memset(set, 0, sizeof set);
    begin(&w, 7, 5, 2);
    meet(&w);
    w.op = SHERD__OP_HIDE;
    w.at = 4;
    w.lost[0] = 1;
    w.lost[1] = 6;
    w.lost_len = 2;
    assert_int_equal(ask(&w), 0);
    for (uint32_t i = 0; i < w.count; i++) {
        const sim_node *n = &w.node[i];
        local_sum(&w, n, one);
        for (size_t k = 0; k < LEN; k++) {
            int32_t scale = k < 35 ? scales[0] : scales[1];
            if (k < COUNT + 2 && k != COUNT) set_add(set, (uint64_t)one[k]);
            if (k < COUNT) set_add(set, bits_of(ldexp((double)one[k], -scale)));
        }
        for (size_t k = 0; k < n->rows * (INPUTS + 1); k++)
            if (k % (INPUTS + 1) < INPUTS) set_add(set, bits_of(n->examples[k]));
    }
    size_t bytes = 0;
    for (uint32_t i = 0; i < w.count; i++) {
        assert_int_equal(found(set, w.node[i].heard, w.node[i].heard_len), 0);
        bytes += w.node[i].heard_len;
    }
    assert_true(bytes > 7 * 7 * 100);
    ask_in_clear(&w, &w.node[3]); /* they would be found */
    assert_true(found(set, w.node[3].heard, w.node[3].heard_len) >= COUNT - 5);
    assert_int_equal(found(set, (const uint8_t *)w.node[2].examples, 7 * 8), INPUTS);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_is_that_of_all_local_gradients_to_the_bit),
        cmocka_unit_test(nodes_may_be_lost_at_any_moment_as_long_as_enough_are_left),
        cmocka_unit_test(one_that_is_lost_behind_its_upload_is_in_the_sum),
        cmocka_unit_test(one_that_is_lost_between_pieces_and_upload_is_not_in_the_sum),
        cmocka_unit_test(one_answer_too_few_opens_nothing),
        cmocka_unit_test(who_is_lost_before_the_roster_is_done_without),
        cmocka_unit_test(a_key_that_is_not_the_pinned_one_is_not_let_in),
        cmocka_unit_test(too_large_a_gradient_is_asked_for_again_in_a_round_of_its_own),
        cmocka_unit_test(who_was_lost_at_any_moment_is_in_the_sums_again_once_it_is_back),
        cmocka_unit_test(who_is_lost_between_two_sums_is_missing_in_none_if_it_is_back_in_time),
        cmocka_unit_test(one_that_was_not_there_at_first_joins_later),
        cmocka_unit_test(one_that_cannot_join_does_not_stop_the_others),
        cmocka_unit_test(a_sum_waits_for_those_that_may_be_back_at_once),
        cmocka_unit_test(once_survivors_were_named_no_other_set_of_them_is),
        cmocka_unit_test(whoever_comes_and_goes_sums_are_those_of_the_uploads),
        cmocka_unit_test(what_the_coordinator_hears_holds_no_gradient_and_no_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
