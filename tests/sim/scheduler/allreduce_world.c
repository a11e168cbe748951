/*
 * The world of all-reduce groups: it moves bytes between coordinator, nodes and members, and
 * applies faults. Virtual time passes when nothing moves any more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/diag.h"
#include "learn/allreduce_plan.h"
#include "scheduler/allreduce/internal.h"
#include "tests/sim/scheduler/allreduce_world.h"
#include "tests/support/draw.h"
#include "tests/support/node_devices.h"

static const char text[] = "input = 6\nlayer = dense 5\nlayer = tanh\nlayer = dense 3\n"
                           "loss = cross-entropy\nl2 = 0.01\n";

typedef struct link {
    struct sim_node *from, *to;
    sherd__allreduce *allreduce; /* NULL: abandoned by its opener */
    uint32_t member;
    sherd__session *out, *in;
    uint64_t id;
    sherd__account *account; /* the account whose memory its bodies use */
    bool up, cut;
    uint32_t bodies;
    struct link *next;
} link;

enum { TURNS_MOST = 50000 }; /* for one request */

static sherd_identity *identity[NODES];

/* ---- links ----------------------------------------------------------------------------------- */

static uint8_t *place(void *ctx, uint64_t job, uint32_t number, uint64_t len)
{
    link *l = ctx;
    uint8_t *bytes = sherd__worker_member_place(l->to->worker, &l->account, &l->from->peer.key, job,
                                                number, len);
    if (bytes) l->bodies++;
    return bytes;
}

static void unplace(void *ctx, uint8_t *bytes, uint64_t len)
{
    link *l = ctx;
    sherd__worker_unplace(l->account->pool, bytes, len);
    l->bodies--;
}

static int open_link(void *ctx, void **out, sherd__allreduce *allreduce, uint32_t number,
                     const sherd__peer *peer)
{
    sim_node *n = ctx;
    world *w = n->world;
    link *l = calloc(1, sizeof *l);
    assert_non_null(l);
    *l = (link){ .from = n, .allreduce = allreduce, .member = number, .next = w->links };
    for (uint32_t i = 0; i < w->count; i++)
        if (sherd__fingerprint_equal(&w->node[i].peer.key, &peer->key)) l->to = &w->node[i];
    assert_non_null(l->to);
    assert_ptr_not_equal(l->to, n);
    sherd__session_options s = { .role = SHERD__COORDINATOR, .now_ms = 1 };
    assert_int_equal(sherd__session_new(&l->out, &s), 0);
    s = (sherd__session_options){
        .role = SHERD__NODE, .now_ms = 1, .place = place, .unplace = unplace, .place_ctx = l
    };
    assert_int_equal(sherd__session_new(&l->in, &s), 0);
    l->id = l->to->up ? sherd__worker_member(l->to->worker, &n->peer.key) : 0;
    l->up = true;
    l->cut = !l->id || n->expelled; /* the node is absent, or not admitted */
    w->links = l;
    *out = l;
    return SHERD_OK;
}

static void flush_link(void *ctx, void *l)
{
    (void)ctx, (void)l;
}

static void end_link(link *l, bool tell)
{
    sherd__event e;
    sherd__allreduce *allreduce = l->allreduce;
    if (!l->up) return;
    l->up = false;
    l->allreduce = NULL;
    sherd__session_eof(l->out, SHERD_ECLOSED, "cut", &e);
    sherd__session_eof(l->in, SHERD_ECLOSED, "cut", &e);
    if (allreduce && tell) {
        const sherd__session_stats *s = sherd__session_stats_of(l->out);
        l->from->world->link_bytes += s->bytes_out;
        sherd__worker_link_down(l->from->worker, allreduce, l->member, SHERD_ECLOSED, "cut");
    }
    if (l->to->up) sherd__worker_member_gone(l->to->worker, l->account, &l->from->peer.key, l->id);
}

static void close_link(void *ctx, void *link_)
{
    link *l = link_;
    (void)ctx;
    l->from->world->link_bytes += sherd__session_stats_of(l->out)->bytes_out;
    l->allreduce = NULL;
    l->cut = true; /* the loop removes it */
}

/* Moves some bytes in one direction and records their kind. */
static size_t pass(link *l, bool out)
{
    sherd__session *from = out ? l->out : l->in, *to = out ? l->in : l->out;
    const uint8_t *bytes;
    size_t len = sherd__session_pending(from, 1, &bytes), used;
    if (len > 1) len = 1 + draw() % len;
    for (size_t at = 0; at < len && l->up; at += used) {
        sherd__event e;
        assert_int_equal(sherd__session_feed(to, bytes + at, len - at, 1, &used, &e), 0);
        sherd__fragment *f = e.fragment;
        if (out && e.kind == SHERD__EV_BLOCK) {
            l->from->world->body_bytes += sherd__fragment_info_of(f)->len;
            if (l->from->world->tamper && (e.block & 255) > l->from->world->count - 1) {
                ((uint8_t *)(uintptr_t)sherd__fragment_bytes(f))[3] ^= 4;
                l->from->world->tamper = false;
            }
            assert_int_equal(sherd__worker_member_block(l->to->worker, l->account,
                                                        &l->from->peer.key, e.job, e.block, f),
                             0);
        } else {
            sherd__fragment_free(f);
        }
        if (!out && l->allreduce && e.kind == SHERD__EV_READY)
            sherd__worker_link_up(l->from->worker, l->allreduce, l->member, l->out);
        if (!out && l->allreduce && e.kind == SHERD__EV_REFUSED)
            sherd__worker_link_refused(l->from->worker, l->allreduce, l->member, &e.refusal);
    }
    if (len && l->up) sherd__session_sent(from, len);
    return len;
}

static size_t move_links(world *w)
{
    size_t moved = 0;
    for (link *l = w->links; l; l = l->next) {
        if (!l->up) continue;
        if (l->cut) {
            end_link(l, true);
            moved++;
        }
        if (l->up && !l->from->frozen && !l->to->frozen) {
            bool held = (l->from->index == w->mute || l->to->index == w->deaf) &&
                        sherd__session_ready(l->out);
            if (!held) moved += pass(l, true);
            if (l->up) moved += pass(l, false);
        }
        if (w->often && l->up && draw() % w->often == 0) l->cut = true;
    }
    return moved;
}

/* ---- the coordinator's callbacks ------------------------------------------------------------- */

static void touch(void *ctx, uint32_t node)
{
    (void)ctx, (void)node;
}

static void expel(void *ctx, uint32_t node, int code, const char *why)
{
    (void)code, (void)why;
    ((world *)ctx)->node[node].expelled = true;
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
    static const char *const names[NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7" };
    (void)ctx;
    return names[node];
}

static const sherd__peer *peer(void *ctx, uint32_t node)
{
    return &((world *)ctx)->node[node].peer;
}

static void changed(void *ctx)
{
    (void)ctx;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void make_keys(world *w)
{
    char lines[200 * NODES] = "", key[SHERD__FINGERPRINT_TEXT];
    for (uint32_t i = 0; i < w->count; i++) {
        if (!identity[i]) assert_int_equal(sherd_identity_new(&identity[i], NULL), 0);
        sherd__fingerprint_text(sherd__identity_fingerprint(identity[i]), key);
        if (i != w->absent)
            sprintf(lines + strlen(lines), "127.0.0.%u:%u key=%s\n", i + 1, 7000 + i, key);
    }
    assert_int_equal(sherd__peers_parse(&w->peers, lines, strlen(lines), "peers", NULL), 0);
}

static void start_node(world *w, uint32_t i)
{
    sim_node *n = &w->node[i];
    *n = (sim_node){ .world = w, .index = i, .up = true };
    bool doubts = i == w->doubts || (w->doubts == ALL && i != w->absent);
    snprintf(n->peer.host, sizeof n->peer.host, "127.0.0.%u", i + 1);
    n->peer.port = (uint16_t)(7000 + i);
    n->peer.has_key = true;
    n->peer.weight = 1;
    n->peer.key = *sherd__identity_fingerprint(identity[i]);
    assert_int_equal(sherd__executor_new_inline(&n->executor), 0);
    sherd__worker_options o = { .backend = node_devices_open(i, &n->devices),
                                .backend_ctx = n->devices,
                                .memory = (uint64_t)16 << 20,
                                .executor = n->executor,
                                .self = { .identity = identity[i],
                                          .peers = doubts ? &w->peers : NULL },
                                .links = { open_link, flush_link, close_link, n } };
    assert_int_equal(sherd__worker_new(&n->worker, &o), 0);
    sherd__session_options s = { .role = SHERD__COORDINATOR, .now_ms = 1 };
    assert_int_equal(sherd__session_new(&n->co, &s), 0);
    s = (sherd__session_options){ .role = SHERD__NODE, .now_ms = 1 };
    s.hello.features = SHERD__FEATURE_ALLREDUCE;
    s.hello.memory = w->memory;
    assert_int_equal(sherd__worker_join(n->worker, &n->client, n, NULL, 0), 0);
    sherd__worker_session(n->client, &s);
    assert_int_equal(sherd__session_new(&n->no, &s), 0);
}

static void kill_node(world *w, uint32_t i)
{
    sim_node *n = &w->node[i];
    sherd__event e;
    if (!n->up) return;
    n->up = false;
    sherd__session_eof(n->no, SHERD_ECLOSED, "cut", &e);
    sherd__worker_event(n->client, n->no, &e);
    sherd__executor_drain(n->executor);
    for (link *l = w->links; l; l = l->next)
        if (l->from == n || l->to == n) l->cut = true;
    if (w->job) sherd__allreduce_job_work(w->job).ops->node_down(w->job, i, false, "cut", w->now);
}

/* Records the blocks of states that the node has now. */
static void note_states(sim_node *n, const sherd__event *e)
{
    if (e->kind == SHERD__EV_BLOCK) {
        const sherd__fragment_info *i = sherd__fragment_info_of(e->fragment);
        if (i->dtype != SHERD_F64 || i->rows != 1 || i->cols < COUNT) return;
        assert_true(n->states_len < sizeof n->states / sizeof *n->states);
        n->states[n->states_len++] = e->block;
    }
    for (uint32_t k = 0; k < n->states_len && e->kind == SHERD__EV_DROP; k++)
        if (n->states[k] == e->block) n->states[k] = n->states[--n->states_len];
}

static bool stuck(const sim_node *n)
{
    const world *w = n->world;
    return (n->index == w->stuck || (n->index == w->slow && w->now < w->slow_until)) &&
           (w->stands || !w->later);
}

static size_t to_node(sim_node *n)
{
    const uint8_t *out;
    size_t len = n->up ? sherd__session_pending(n->co, 1, &out) : 0;
    if (len > 1) len = 1 + draw() % len;
    for (size_t at = 0, used; at < len; at += used) {
        sherd__event e;
        assert_int_equal(sherd__session_feed(n->no, out + at, len - at, 1, &used, &e), 0);
        note_states(n, &e);
        sherd__worker_event(n->client, n->no, &e);
    }
    if (len) sherd__session_sent(n->co, len);
    if (draw() % 2 || stuck(n)) return len; /* it computes later, or never */
    sherd__executor_drain(n->executor);
    return len;
}

/* Returns the step at which the node would wait for the first honest node from which it gets a
 * part. */
static uint32_t accuse(const world *w, uint32_t i)
{
    const sherd__allreduce_job *j = w->job;
    sherd__reduce kind = j->o.train.kind;
    for (uint32_t node = 0; node < w->count; node++)
        for (uint32_t s = 0; s < sherd__reduce_steps(kind, j->members); s++) {
            uint32_t from = sherd__reduce_step_of(kind, j->members, j->nodes[i].self, s).from;
            if (j->node_of[from] == node && !(w->agree >> node & 1)) return s;
        }
    return 0;
}

static void falsify_where(const world *w, uint32_t i, uint8_t *bytes)
{
    sherd__allreduce_where where;
    assert_true(sherd__allreduce_where_parse(&where, bytes));
    where.worked_us = i == w->stuck ? 7 : w->now * 500; /* all nodes are in this process */
    if (i == w->hurries) where.bytes = w->now * 1000;
    if (w->agree >> i & 1) {
        where.phase = SHERD__ALLREDUCE_EXCHANGING;
        where.step = accuse(w, i);
        where.bytes = 0;
    }
    if (i == w->keeps) where.phase = SHERD__ALLREDUCE_SUMMED;
    sherd__allreduce_where_write(bytes, &where);
}

/* Changes what a node reports of its state, its links and its part in a sum. */
static void falsify(const world *w, uint32_t i, const sherd__event *e)
{
    if (e->kind != SHERD__EV_RESULT) return;
    bool hash = e->task.result.dtype == SHERD_I64;
    uint8_t *bytes = (uint8_t *)(uintptr_t)sherd__fragment_bytes(e->fragment);
    if (e->task.op == SHERD__OP_STATE && i == (hash ? w->other : w->liar)) bytes[3] ^= 4;
    if (e->task.op == SHERD__OP_CONNECT && i == w->liar_links && w->stands)
        memcpy(bytes + e->task.result.len - 8, &(int64_t){ SHERD_ECONNECT }, 8);
    if (e->task.op == SHERD__OP_WHERE) falsify_where(w, i, bytes);
}

/* Turns an answer into a refusal, and a refusal into one with another code. */
static void refuse(world *w, uint32_t i, sherd__event *e)
{
    if ((i != w->refuses && i != w->refuses_too) || w->refuse_times == 0) return;
    if (e->kind == SHERD__EV_REFUSED && e->refusal.task && e->task.op == w->refused)
        e->refusal.code = w->refuse_code;
    if (e->kind != SHERD__EV_RESULT || e->task.op != w->refused) return;
    w->refuse_times--;
    w->refused_under = w->job->id;
    sherd__fragment_free(e->fragment);
    e->fragment = NULL;
    e->kind = SHERD__EV_REFUSED;
    e->refusal = (sherd__refusal){ .job = e->job,
                                   .task = e->task.task,
                                   .attempt = e->task.attempt,
                                   .code = w->refuse_code,
                                   .text = "another job is under way" };
}

static bool withheld(const world *w, uint32_t i, const sherd__event *e)
{
    return e->kind == SHERD__EV_RESULT && w->stands &&
           (((i == w->keeps || w->agree >> i & 1) && e->task.op == SHERD__OP_REDUCE) ||
            (i == w->dumb && e->task.op == SHERD__OP_WHERE));
}

static size_t from_node(world *w, uint32_t i)
{
    sim_node *n = &w->node[i];
    const sherd__work_ops *job = sherd__allreduce_job_work(w->job).ops;
    const uint8_t *out;
    size_t len = n->up ? sherd__session_pending(n->no, 1, &out) : 0;
    if (len > 1) len = 1 + draw() % len;
    for (size_t at = 0, used; at < len && n->up; at += used) {
        sherd__event e;
        assert_int_equal(sherd__session_feed(n->co, out + at, len - at, 1, &used, &e), 0);
        falsify(w, i, &e);
        refuse(w, i, &e);
        if (e.kind == SHERD__EV_READY) job->node_up(w->job, i, n->co, 1, w->now);
        bool answer = e.kind == SHERD__EV_RESULT || e.kind == SHERD__EV_REFUSED;
        if (answer && !withheld(w, i, &e)) job->event(w->job, i, &e, w->now);
        sherd__fragment_free(e.fragment);
        if (n->expelled) kill_node(w, i);
        if (answer && i == w->flaps && w->stands && e.task.op == SHERD__OP_STEP) {
            kill_node(w, i);
            w->back = i;
        }
        job->pump(w->job, w->now);
    }
    if (n->up && len) sherd__session_sent(n->no, len);
    return len;
}

/* ---- the world ------------------------------------------------------------------------------- */

static void befall(world *w)
{
    if (!w->stands || ++w->moves != w->at) return;
    if (w->kill < w->count) kill_node(w, w->kill);
    if (w->freeze < w->count) w->node[w->freeze].frozen = true;
    for (link *l = w->links; l && w->sever < w->count; l = l->next)
        if (l->up && l->from->index == w->sever) {
            l->cut = true;
            break;
        }
}

static bool over(world *w)
{
    int err;
    return sherd__allreduce_job_work(w->job).ops->done(w->job, &err, NULL);
}

/* Restarts a lost node: a new process with the same key. */
static void revive(world *w)
{
    if (w->back >= w->count || w->node[w->back].up || (w->back != w->flaps && draw() % 40)) return;
    sim_node *n = &w->node[w->back];
    for (link *l = w->links; l; l = l->next)
        if (l->up && (l->from == n || l->to == n)) return;
    assert_int_equal(sherd__worker_memory(n->worker)->used, 0);
    sherd__session_free(n->co);
    sherd__session_free(n->no);
    sherd__worker_free(n->worker);
    node_devices_close(n->devices);
    sherd__executor_free(n->executor);
    start_node(w, w->back);
    w->back = NOBODY;
}

/* Runs until `until` returns true or the job is over. Returns false if nothing moves any more, or
 * if moves have no effect. */
static bool settle(world *w, bool (*until)(sherd__allreduce_job *))
{
    const sherd__work_ops *job = sherd__allreduce_job_work(w->job).ops;
    for (unsigned still = 0, turns = 0; still < 2000000 / w->idle && turns < TURNS_MOST; turns++) {
        size_t moved = 0;
        job->pump(w->job, w->now);
        if (until(w->job) || over(w)) return true;
        for (uint32_t i = 0; i < w->count; i++) {
            sim_node *n = &w->node[draw() % w->count];
            if (n->frozen) continue;
            moved += to_node(n);
            moved += from_node(w, n->index);
        }
        moved += move_links(w);
        for (uint32_t i = 0; i < w->count && !moved; i++) {
            if (w->node[i].frozen) continue;
            if (!stuck(&w->node[i])) sherd__executor_drain(w->node[i].executor);
            moved += to_node(&w->node[i]) + from_node(w, i);
        }
        befall(w);
        w->now += w->pace;
        if (w->pace) job->tick(w->job, w->now);
        revive(w);
        still = moved ? 0 : still + 1;
        if (moved) continue;
        w->now += w->idle;
        job->tick(w->job, w->now);
        for (uint32_t i = 0; i < w->count; i++)
            if (w->node[i].expelled) kill_node(w, i);
    }
    return false;
}

static int answer(world *w, sherd_diag *d)
{
    sherd__allreduce_job_ask(w->job, &w->ask);
    assert_true(settle(w, sherd__allreduce_job_answered)); /* it never hangs */
    if (sherd__allreduce_job_answered(w->job))
        return w->ask.err ? sherd__fail(d, w->ask.err, NULL, "%s", w->ask.why.message) : 0;
    int err = SHERD_EINTERNAL;
    sherd_diag why = { 0 };
    (void)sherd__allreduce_job_work(w->job).ops->done(w->job, &err, &why);
    return sherd__fail(d, err, NULL, "%s", why.message);
}

static int lead_step(void *ctx, sherd__allreduce_step *s, sherd_diag *d)
{
    world *w = ctx;
    w->ask = (sherd__allreduce_ask){ .step = s };
    return answer(w, d);
}

static int lead_state(void *ctx, double *out, size_t len, sherd_diag *d)
{
    world *w = ctx;
    w->ask = (sherd__allreduce_ask){ .state = out, .len = len };
    int err = answer(w, d);
    if (!err && w->steps != 0) out[len - 1] = w->steps;
    return err;
}

static void lead_free(void *ctx)
{
    (void)ctx;
}

static const sherd__allreduce_ops lead = {
    .name = "sim", .step = lead_step, .state = lead_state, .free = lead_free
};

/* ---- a training ------------------------------------------------------------------------------ */

void allreduce_world_open(world *w, const training *t)
{
    sherd_diag d = { 0 };
    static const uint8_t seed[32] = "circles";
    memset(w, 0, sizeof *w);
    w->kill = w->freeze = w->sever = w->mute = w->deaf = w->back = w->liar = w->other = NOBODY;
    w->liar_links = w->keeps = w->dumb = w->hurries = w->flaps = w->absent = w->doubts = NOBODY;
    w->stuck = w->slow = w->refuses = w->refuses_too = NOBODY;
    w->idle = 10000;
    w->now = 1000;
    w->memory = (uint64_t)16 << 20;
    w->count = t->nodes;
    assert_int_equal(sherd__recipe_parse(&w->recipe, text, strlen(text), "test",
                                         SHERD__RECIPE_NETWORK, &d),
                     0);
    assert_int_equal(sherd__generate_random(&w->data, ROWS, 6, 3, seed, &d), 0);
}

void allreduce_job_open(world *w, const training *t, run *r)
{
    sherd_diag d = { 0 };
    sherd__version *v = sherd__version_new(sherd__allreduce_state_len(&r->optimiser), 0);
    sherd__allreduce_state_of(r->network, &r->optimiser, v->values);
    sherd__allreduce_job_options o = {
        .train = { .recipe = &w->recipe,
                   .data = &w->data,
                   .optimiser = &r->optimiser,
                   .kind = t->kind,
                   .shards = t->shards,
                   .batch = t->batch,
                   .bits = 20,
                   .allow_drop = t->allow_drop },
        .text = text,
        .text_len = strlen(text),
        .tiers = 2,
        .state = v,
        .id = 77,
        .names = { w->secret },
        .nodes = w->count,
        .peer = peer,
        .peer_ctx = w,
        .changed = changed,
        .owner = { .touch = touch, .expel = expel, .log = note, .name = name, .ctx = w }
    };
    assert_int_equal(sherd__allreduce_job_new(&w->job, &o), 0);
    sherd__version_release(v);
    make_keys(w);
    for (uint32_t i = 0; i < w->count; i++) start_node(w, i);
    if (w->absent < w->count) kill_node(w, w->absent);
    assert_true(settle(w, sherd__allreduce_job_ready));
    w->stands = sherd__allreduce_job_ready(w->job);
    sherd__gradients_options g = allreduce_options(w, t, r);
    assert_int_equal(sherd__stepper_allreduce(&r->stepper, &g, (sherd__allreduce_lead){ &lead, w },
                                              true, &d),
                     0);
}

uint64_t allreduce_world_name(const world *w)
{
    const sherd__allreduce_job *j = w->job;
    for (uint32_t i = 0; i < j->members; i++) {
        const sim_node *n = &w->node[j->node_of[i]],
                       *of = &w->node[j->node_of[(i + 1) % j->members]];
        if (sherd__worker_member(n->worker, &of->peer.key) != j->id) return 0;
    }
    return j->id;
}

void allreduce_world_close(world *w)
{
    sherd__allreduce_job_work(w->job).ops->end(w->job);
    for (uint32_t i = 0; i < w->count; i++) kill_node(w, i);
    sherd__allreduce_job_free(w->job);
    w->job = NULL;
    for (unsigned k = 0; k < 3; k++)
        for (link *l = w->links; l; l = l->next)
            if (l->up) end_link(l, false);
    for (uint32_t i = 0; i < w->count; i++) {
        sim_node *n = &w->node[i];
        sherd__executor_drain(n->executor);
        sherd__session_free(n->co);
        sherd__session_free(n->no);
    }
    for (link *l = w->links, *next; l; l = next) {
        next = l->next;
        sherd__session_free(l->out);
        sherd__session_free(l->in);
        assert_int_equal(l->bodies, 0);
        free(l);
    }
    for (uint32_t i = 0; i < w->count; i++) {
        assert_int_equal(sherd__worker_memory(w->node[i].worker)->used, 0);
        sherd__worker_free(w->node[i].worker);
        node_devices_close(w->node[i].devices);
        sherd__executor_free(w->node[i].executor);
    }
    sherd__peers_fini(&w->peers);
    sherd__dataset_fini(&w->data);
}

int allreduce_keys_free(void **unused)
{
    (void)unused;
    for (uint32_t i = 0; i < NODES; i++) sherd_identity_free(identity[i]);
    return 0;
}
