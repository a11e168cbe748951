#include "sim.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/executor.h"
#include "core/rand.h"
#include "matrix/fixed.h"
#include "matrix/reference.h"
#include "matrix/windows.h"
#include "node/worker.h"
#include "scheduler/job.h"
#include "scheduler/prepare_internal.h"
#include "sherd/masks.h"

#define RETRY_MS 300u
#define TICK_MS 100u
#define END_MS 120000u

/* Bytes on their way. */
typedef struct segment {
    uint8_t *bytes;
    size_t len;
    uint64_t at_ms;
    struct segment *next;
} segment;

typedef struct pipe_end {
    segment *head, **tail;
    uint64_t last_ms;
} pipe_end;

struct sim;

typedef struct sim_node {
    struct sim *sim;
    uint32_t index;
    sherd__worker *worker;
    sherd_executor *executor;
    sherd__client *client;
    sherd_session *here, *there; /* coordinator's end, node's end */
    pipe_end down, up;           /* to the node, from it */
    bool dead, stopped, lying, colluding, banned;
    uint32_t slow_ms;
    uint64_t resume_ms, retry_ms;
    unsigned retries;
    uint64_t sessions;
    sim_fault fault;
    uint64_t fault_at;           /* count of its pieces of bytes, either way */
    uint64_t pieces;
    uint8_t *last;               /* what it last sent: to be sent twice */
    size_t last_len;
    void *backend;
} sim_node;

typedef struct sim {
    const sim_options *o;
    sim_outcome *out;
    sherd_entropy_seeded state;
    sherd_entropy rng;
    sim_node *nodes;
    sherd_job *job;
    sherd_executor *executor;
    uint64_t now;
} sim;

static const char *const fault_names[] = { "none", "kill", "cut", "stop", "pause", "lie", "garbage",
                                           "twice", "drop", "slow", "collude" };

const char *sim_fault_name(sim_fault f)
{
    return f < SIM_FAULTS ? fault_names[f] : "drawn";
}

static uint64_t below(sim *s, uint64_t n)
{
    return sherd__entropy_below(&s->rng, n);
}

static void note(sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void note(sim *s, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    s->out->events++;
    for (int i = 0; i < n && i < (int)sizeof text - 1; i++)
        s->out->log_hash = (s->out->log_hash ^ (uint8_t)text[i]) * UINT64_C(1099511628211);
    if (getenv("SIM_VERBOSE")) fprintf(stderr, "%8llu %s\n", (unsigned long long)s->now, text);
}

/* --- a backend that can lie ------------------------------------------------------------------ */

/* Twice the right answer: on a polynomial of the right degree, if all lie so. */
static void double_all(const sherd__task *t, uint8_t *out)
{
    uint64_t each = t->result.rows * t->result.cols;
    for (uint64_t i = 0; i < each * t->primes_len; i++, out += 3) {
        uint32_t p = t->primes[i / each];
        uint32_t v = 2 * (out[0] | (uint32_t)out[1] << 8 | (uint32_t)out[2] << 16) % p;
        for (int b = 0; b < 3; b++) out[b] = (uint8_t)(v >> 8 * b);
    }
}

/* One residue one higher, in one prime. */
static void add_one(const sherd__task *t, uint64_t at, uint8_t *out)
{
    uint32_t p = t->primes[at / (t->result.rows * t->result.cols)];
    uint8_t *x = out + 3 * at;
    uint32_t v = ((x[0] | (uint32_t)x[1] << 8 | (uint32_t)x[2] << 16) + 1) % p;
    for (int b = 0; b < 3; b++) x[b] = (uint8_t)(v >> 8 * b);
}

static int liar_run(void *ctx, const sherd__task *t, const sherd_fragment *l,
                    const sherd_fragment *r, uint8_t *out, sherd_diag *d)
{
    sim_node *n = ctx;
    int err = sherd__backend_cpu.run(n->backend, t, l, r, out, d);
    if (!err && n->colluding && t->primes_len) double_all(t, out);
    if (!err && n->lying && t->primes_len && t->result.len) {
        add_one(t, below(n->sim, t->result.len / 3), out);
    } else if (!err && n->lying && t->result.len) {
        size_t i = (size_t)below(n->sim, t->result.len / 8);
        double x;
        memcpy(&x, out + 8 * i, 8);
        x += x < 0 ? -1 : 1;
        memcpy(out + 8 * i, &x, 8);
    }
    return err;
}

static const sherd__backend liar = { .abi = SHERD__BACKEND_ABI, .name = "liar", .run = liar_run };

/* --- connections ----------------------------------------------------------------------------- */

static void pipe_clear(pipe_end *p)
{
    for (segment *s = p->head, *next; s; s = next) {
        next = s->next;
        free(s->bytes);
        free(s);
    }
    *p = (pipe_end){ .tail = &p->head };
    p->tail = &p->head;
}

static void pipe_push(sim *s, pipe_end *p, uint32_t more_ms, const uint8_t *bytes, size_t len)
{
    segment *seg = calloc(1, sizeof *seg);
    uint64_t at = s->now + below(s, s->o->delay_ms + 1) + more_ms;
    if (at < p->last_ms) at = p->last_ms;
    *seg = (segment){ .bytes = malloc(len), .len = len, .at_ms = at };
    memcpy(seg->bytes, bytes, len);
    p->last_ms = at;
    *p->tail = seg;
    p->tail = &seg->next;
}

static void strike(sim *s, sim_node *n);

/* Takes what a session wants sent, in pieces of random size. */
static void pull(sim *s, sim_node *n, sherd_session *session, pipe_end *to, bool from_node)
{
    const uint8_t *bytes;
    size_t len;
    while (session && (len = sherd__session_pending(session, s->now, &bytes)) > 0) {
        size_t part = len > 200 && below(s, 4) == 0 ? 1 + (size_t)below(s, len) : len;
        pipe_push(s, to, from_node ? n->slow_ms : 0, bytes, part);
        if (from_node && part == len) {
            free(n->last);
            n->last = memcpy(malloc(len), bytes, len);
            n->last_len = len;
        }
        sherd__session_sent(session, part);
    }
}

static void connect_node(sim *s, sim_node *n)
{
    sherd__session_options here = { .role = SHERD__COORDINATOR, .now_ms = s->now,
                                    .hello = { .software = "sim" } };
    sherd__session_options there = { .role = SHERD__NODE, .now_ms = s->now,
                                     .hello = { .software = "sim", .memory = s->o->node_memory,
                                                .features = SHERD__FEATURE_WINDOWS } };
    n->retry_ms = 0;
    if (n->dead || n->stopped) { /* nobody answers: as a refused or stalled connection */
        sherd__job_node_down(s->job, n->index, false, "cannot connect", s->now);
        return;
    }
    sherd__worker_session(n->worker, &there);
    pipe_clear(&n->down);
    pipe_clear(&n->up);
    if (sherd__worker_join(n->worker, &n->client, n) || sherd__session_new(&n->here, &here) ||
        sherd__session_new(&n->there, &there))
        abort();
    note(s, "connect %u", n->index);
}

static void end_there(sim *s, sim_node *n, int err)
{
    sherd__event e;
    if (!n->there) return;
    sherd__session_eof(n->there, err, "connection gone", &e);
    if (e.kind == SHERD__EV_CLOSED) sherd__worker_event(n->client, n->there, &e);
    else sherd__worker_leave(n->client);
    sherd__executor_drain(n->executor);
    sherd__session_free(n->there);
    n->there = NULL;
    (void)s;
}

static void here_closed(sim *s, sim_node *n, const sherd__event *e)
{
    bool peer = sherd_err_class(e->err) == SHERD_BLAME_PEER && e->err != SHERD_ESILENT;
    bool back = !n->banned && !peer && n->retries++ < 5;
    note(s, "closed %u %s", n->index, sherd_err_name(e->err));
    if (peer && !n->banned) sherd__job_node_banned(s->job, n->index, e->text);
    if (peer) n->banned = true;
    sherd_session *old = n->here;
    n->here = NULL;
    sherd__job_node_down(s->job, n->index, back, e->text, s->now);
    sherd__session_free(old);
    end_there(s, n, SHERD_ECLOSED);
    pipe_clear(&n->down);
    pipe_clear(&n->up);
    if (back) n->retry_ms = s->now + RETRY_MS;
}

static void break_connection(sim *s, sim_node *n)
{
    sherd__event e;
    if (!n->here) return;
    sherd__session_eof(n->here, SHERD_ECLOSED, "connection gone", &e);
    if (e.kind == SHERD__EV_CLOSED) here_closed(s, n, &e);
}

/* --- events ---------------------------------------------------------------------------------- */

static void here_event(sim *s, sim_node *n, sherd__event *e)
{
    switch (e->kind) {
    case SHERD__EV_READY:
        note(s, "ready %u", n->index);
        sherd__job_node_up(s->job, n->index, n->here, ++n->sessions, s->now);
        break;
    case SHERD__EV_RESULT:
    case SHERD__EV_REFUSED:
        note(s, "%s %u task %u.%u", e->kind == SHERD__EV_RESULT ? "result" : "refused", n->index,
             e->task.task, e->task.attempt);
        sherd__job_event(s->job, n->index, e, s->now);
        break;
    case SHERD__EV_CLOSED: here_closed(s, n, e); break;
    default: break;
    }
}

static void deliver_here(sim *s, sim_node *n, segment *seg)
{
    for (size_t at = 0; at < seg->len && n->here;) {
        size_t used = 0;
        sherd__event e;
        (void)!sherd__session_feed(n->here, seg->bytes + at, seg->len - at, s->now, &used, &e);
        at += used;
        here_event(s, n, &e);
        sherd__job_pump(s->job, s->now);
    }
}

static void deliver_there(sim *s, sim_node *n, segment *seg)
{
    for (size_t at = 0; at < seg->len && n->there;) {
        size_t used = 0;
        sherd__event e;
        int err = sherd__session_feed(n->there, seg->bytes + at, seg->len - at, s->now, &used, &e);
        at += used;
        if (e.kind == SHERD__EV_NONE) continue;
        if (e.kind == SHERD__EV_CLOSED || err) {
            sherd__worker_event(n->client, n->there, &e);
            sherd__session_free(n->there);
            n->there = NULL;
            break_connection(s, n);
            return;
        }
        sherd__worker_event(n->client, n->there, &e);
        while (sherd__executor_drain(n->executor)) {}
    }
}

static void lose_bytes(pipe_end *p)
{
    segment *seg = p->head;
    if (!seg) return;
    if (!(p->head = seg->next)) p->tail = &p->head;
    free(seg->bytes);
    free(seg);
}

static void strike(sim *s, sim_node *n)
{
    uint8_t junk[64];
    note(s, "%s strikes %u", sim_fault_name(n->fault), n->index);
    s->out->struck++;
    switch (n->fault) {
    case SIM_KILL:
        n->dead = true;
        break_connection(s, n);
        break;
    case SIM_CUT: break_connection(s, n); break;
    case SIM_STOP: n->stopped = true; break;
    case SIM_PAUSE:
        n->stopped = true;
        n->resume_ms = s->now + 2000;
        break;
    case SIM_LIE: n->lying = true; break;
    case SIM_GARBAGE:
        s->rng.fill(s->rng.ctx, junk, sizeof junk);
        pipe_push(s, &n->up, 0, junk, sizeof junk);
        break;
    case SIM_TWICE:
        if (n->last) pipe_push(s, &n->up, 0, n->last, n->last_len);
        break;
    case SIM_DROP: lose_bytes(n->up.head ? &n->up : &n->down); break;
    case SIM_SLOW: n->slow_ms = 2000; break;
    case SIM_COLLUDE: n->colluding = true; break;
    default: break;
    }
    n->fault = SIM_NONE;
}

/* --- the clock ------------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_time(const sim *s, uint64_t tick)
{
    uint64_t at = tick;
    for (uint32_t i = 0; i < s->o->nodes; i++) {
        const sim_node *n = &s->nodes[i];
        if (n->up.head) at = least(at, n->up.head->at_ms);
        if (n->down.head && !n->stopped) at = least(at, n->down.head->at_ms);
        if (n->here) at = least(at, sherd__session_deadline(n->here));
        if (n->retry_ms) at = least(at, n->retry_ms);
    }
    return at > s->now ? at : s->now;
}

static segment *due(sim *s, pipe_end *p)
{
    segment *seg = p->head;
    if (!seg || seg->at_ms > s->now) return NULL;
    if (!(p->head = seg->next)) p->tail = &p->head;
    return seg;
}

static void drop(segment *seg)
{
    free(seg->bytes);
    free(seg);
}

static void move_node(sim *s, sim_node *n)
{
    segment *seg;
    if (n->resume_ms && s->now >= n->resume_ms) n->stopped = false, n->resume_ms = 0;
    if (n->retry_ms && s->now >= n->retry_ms) connect_node(s, n);
    if (n->fault && (n->down.head || n->up.head) && n->pieces++ >= n->fault_at) strike(s, n);
    if (!n->stopped && (seg = due(s, &n->down))) {
        deliver_there(s, n, seg);
        drop(seg);
    }
    if ((seg = due(s, &n->up))) {
        deliver_here(s, n, seg);
        drop(seg);
    }
    if (n->here && s->now >= sherd__session_deadline(n->here)) {
        sherd__event e;
        sherd__session_tick(n->here, s->now, &e);
        here_event(s, n, &e);
    }
    if (n->there && !n->stopped && s->now >= sherd__session_deadline(n->there)) {
        sherd__event e;
        sherd__session_tick(n->there, s->now, &e);
        if (e.kind == SHERD__EV_CLOSED) {
            sherd__worker_event(n->client, n->there, &e);
            sherd__session_free(n->there);
            n->there = NULL;
            break_connection(s, n);
        }
    }
}

static void pull_all(sim *s)
{
    for (uint32_t i = 0; i < s->o->nodes; i++) {
        sim_node *n = &s->nodes[i];
        pull(s, n, n->here, &n->down, false);
        if (!n->stopped) pull(s, n, n->there, &n->up, true);
    }
}

/* --- the job's owner ------------------------------------------------------------------------- */

static void job_touch(void *ctx, uint32_t node)
{
    (void)ctx;
    (void)node;
}

static void job_expel(void *ctx, uint32_t node, int code, const char *why)
{
    sim *s = ctx;
    sim_node *n = &s->nodes[node];
    note(s, "expel %u %s", node, sherd_err_name(code));
    if (code == SHERD_EWRONG) n->banned = true;
    n->retries = 99;
    if (n->here) sherd__session_bye(n->here, code, why);
}

static void job_log(void *ctx, sherd_log_level level, const char *text)
{
    (void)level;
    note(ctx, "log %s", text);
}

static const char *job_name(void *ctx, uint32_t node)
{
    static char text[32];
    (void)ctx;
    snprintf(text, sizeof text, "node-%u", node + 1);
    return text;
}

/* --- a run ----------------------------------------------------------------------------------- */

/* One device serves all nodes of all runs: its self-test is not what is tested here. */
static void *backend;
static sherd__backend_caps caps;

static void make_nodes(sim *s)
{
    const sim_options *o = s->o;
    sherd__backend_options bo = { .threads = 1, .quick = true };
    if (!backend && sherd__backend_cpu.open(&backend, &bo, &caps, NULL)) abort();
    s->nodes = calloc(o->nodes, sizeof *s->nodes);
    for (uint32_t i = 0; i < o->nodes; i++) {
        sim_node *n = &s->nodes[i];
        n->sim = s;
        n->index = i;
        pipe_clear(&n->down);
        pipe_clear(&n->up);
        if (sherd__executor_new_inline(&n->executor)) abort();
        n->backend = backend;
        sherd__worker_options wo = { .backend = &liar, .backend_ctx = n, .caps = caps,
                                     .executor = n->executor, .memory = o->node_memory };
        if (sherd__worker_new(&n->worker, &wo)) abort();
    }
    for (uint32_t f = 0; f < o->faulty && f < o->nodes; f++) {
        sim_node *n;
        do n = &s->nodes[below(s, o->nodes)];
        while (n->fault);
        n->fault = o->fault == SIM_FAULTS ? (sim_fault)(1 + below(s, SIM_FAULTS - 1)) : o->fault;
        n->fault_at = o->fault_early ? below(s, 4) : below(s, 12);
    }
}

static void free_nodes(sim *s)
{
    for (uint32_t i = 0; i < s->o->nodes; i++) {
        sim_node *n = &s->nodes[i];
        end_there(s, n, SHERD_ECLOSED);
        sherd__session_free(n->here);
        pipe_clear(&n->down);
        pipe_clear(&n->up);
        while (sherd__executor_drain(n->executor)) {}
        sherd__worker_free(n->worker);
        sherd__executor_free(n->executor);
        free(n->last);
    }
    free(s->nodes);
}

static void run_clock(sim *s, sherd_diag *d)
{
    uint64_t tick = s->now + TICK_MS;
    int err = 0;
    while (!sherd__job_done(s->job, &err, d) && s->now < END_MS) {
        pull_all(s);
        s->now = next_time(s, tick);
        for (uint32_t i = 0; i < s->o->nodes; i++) move_node(s, &s->nodes[i]);
        if (s->now >= tick) {
            sherd__job_tick(s->job, s->now);
            tick = s->now + TICK_MS;
        }
        sherd__job_pump(s->job, s->now);
    }
    s->out->hung = !sherd__job_done(s->job, &err, d);
    s->out->err = err;
    while (!sherd__job_idle(s->job)) sherd__executor_drain(s->executor);
    sherd__job_end(s->job);
}

static bool same(const sim_options *o, sherd_view a, sherd_view b, const double *c)
{
    double *ref = calloc(o->n * o->m + 1, sizeof *ref);
    bool ok;
    if (o->product.exact) {
        sherd__fixed fa, fb;
        ok = !sherd__fixed_choose(a, o->product.bits, "A", &fa, NULL) &&
             !sherd__fixed_choose(b, o->product.bits, "B", &fb, NULL) &&
             !sherd__reference_exact(a, b, &fa, &fb, ref, o->m, NULL) &&
             memcmp(ref, c, o->n * o->m * sizeof *c) == 0;
    } else {
        ok = !sherd__reference_float(a, b, ref, o->m, NULL);
        for (size_t i = 0; i < o->n * o->m; i++) ok = ok && fabs(ref[i] - c[i]) <= 1e-9;
    }
    free(ref);
    return ok;
}

/* A of windows: the product's left factor is laid out, and has the exponent of the images. */
static bool same_windows(const sim_options *o, const sherd__windows *w, sherd_view a, sherd_view b,
                         const double *c)
{
    size_t rows = o->n * w->count, height = o->transposed ? w->row : rows;
    double *ref = calloc(height * o->m + 1, sizeof *ref);
    void *laid = NULL;
    sherd__fixed fa, fb;
    bool ok = !sherd__windows_lay(w, a.data, sizeof(double), 0, rows, &laid, NULL);
    sherd_view left = sherd_view_c(laid, SHERD_F64, rows, w->row);
    if (o->transposed) left = sherd_view_t(left);
    ok = ok && !sherd__fixed_choose(a, o->product.bits, "A", &fa, NULL) &&
         !sherd__fixed_choose(b, o->product.bits, "B", &fb, NULL) &&
         !sherd__reference_exact(left, b, &fa, &fb, ref, o->m, NULL) &&
         memcmp(ref, c, height * o->m * sizeof *c) == 0;
    sherd__free(laid);
    free(ref);
    return ok;
}

static int prepare(const sim_options *o, sherd__prepared *p, sherd_view a, sherd_view b, double *c,
                   const sherd__nodes *nodes, const sherd_product_options *po,
                   const sherd__windows *w, sherd_diag *d)
{
    const sherd_keeping how = { o->n, &o->windows, o->m };
    if (!w->count) return sherd__prepare_multiply(p, a, b, c, o->m, nodes, po, d);
    int err = sherd__prepare_kept(p, a, &how, nodes, po, d);
    if (!err)
        err = sherd__prepared_right(p, (sherd_rows){ 0, o->n * w->count }, b, o->transposed, c,
                                    o->m, po, d);
    if (err) sherd__prepared_fini(p);
    return err;
}

static void fill_matrix(sim *s, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = below(s, 4) == 0 ? 0 : ((double)below(s, 2001) - 1000) / 256;
}

/* One encoding, or the whole of a scheme that has none. */
static void run_once(sim *s, sherd__prepared *p, const sherd__nodes *nodes, uint32_t nth,
                     sherd_diag *d)
{
    sim_outcome *out = s->out;
    sherd__job_stats stats;
    sherd__job_options jo = { .hiding = &p->hiding, .ledger = p->ledger, .executor = s->executor,
                              .op = p->op, .id = 77 + nth, .nodes = nodes->count,
                              .domain = nodes->domain, .depth = p->plan.depth, .return_ms = 1500,
                              .strict = s->o->product.strict,
                              .owner = { job_touch, job_expel, job_log, job_name, s } };
    if (sherd__job_new(&s->job, &jo) || sherd__prepared_ready(p, d)) abort();
    for (uint32_t i = 0; i < nodes->count; i++) {
        sim_node *n = &s->nodes[i];
        if (n->banned) sherd__job_node_barred(s->job, i);
        if (nth == 0) connect_node(s, n);
        else if (n->here && sherd__session_ready(n->here) && !n->banned)
            sherd__job_node_up(s->job, i, n->here, n->sessions, s->now);
        else sherd__job_node_down(s->job, i, !n->banned && n->retry_ms, "it is not there", s->now);
    }
    run_clock(s, d);
    sherd__job_count(s->job, &stats);
    out->banned += stats.banned;
    out->lost += stats.lost;
    out->repeated += stats.repeated;
    out->cancelled += stats.cancelled;
    out->bound = sherd__ledger_bound(p->ledger, 0);
    for (uint32_t i = 0; i < nodes->count; i++) {
        double x = sherd__ledger_fraction(p->ledger, i, 0);
        if (x > out->exposure) out->exposure = x;
    }
}

void sim_run(const sim_options *o, sim_outcome *out)
{
    sim s = { .o = o, .out = out, .now = 1000 };
    sherd_diag d = { 0 };
    uint8_t seed[32];
    *out = (sim_outcome){ .log_hash = UINT64_C(1469598103934665603) };
    s.rng = sherd__entropy_seeded(&s.state, o->seed);
    sherd__windows w = { .count = 0 };
    size_t inner = o->k, height = o->n;
    if (o->windows.window && !sherd__windows_fit(&o->windows, &w)) abort();
    if (w.count) {
        inner = o->transposed ? o->n * w.count : w.row;
        height = o->transposed ? w.row : o->n * w.count;
    }
    double *a = calloc(o->n * o->k + 1, 8), *b = calloc(inner * o->m + 1, 8);
    double *c = calloc(height * o->m + 1, 8);
    fill_matrix(&s, a, o->n * o->k);
    fill_matrix(&s, b, inner * o->m);
    s.rng.fill(s.rng.ctx, seed, sizeof seed);

    uint32_t *domain = calloc(o->nodes, sizeof *domain);
    for (uint32_t i = 0; i < o->nodes; i++) domain[i] = i;
    sherd__nodes nodes = { .count = o->nodes, .domain = domain, .domains = o->nodes,
                           .memory = o->node_memory, .usable = o->nodes,
                           .entropy = &s.rng };
    sherd_product_options po = o->product;
    bool coded = po.scheme == SHERD_SHARE || po.scheme == SHERD_SHARE1;
    if (!coded) po.seed = seed;
    sherd_view va = sherd_view_c(a, SHERD_F64, o->n, o->k),
               vb = sherd_view_c(b, SHERD_F64, inner, o->m);
    sherd__prepared p;
    sherd_masks_options masks = { .rows = o->n, .state = po.masks_state };
    if (po.scheme == SHERD_BLIND && sherd_masks_prepare(po.masks, vb, &masks, NULL, &d)) abort();
    if (sherd__executor_new_inline(&s.executor)) abort();
    make_nodes(&s);
    for (bool more = true; more;) {
        more = false;
        d = (sherd_diag){ 0 };
        if (prepare(o, &p, va, vb, c, &nodes, &po, &w, &d)) {
            out->err = d.code;
            break;
        }
        run_once(&s, &p, &nodes, out->encodings++, &d);
        uint32_t alive, before = nodes.usable;
        more = sherd__job_starved(s.job, &alive) && !out->hung;
        nodes.usable = alive;
        po.spare = 0;
        more = more && alive < before;
        out->threshold = p.threshold;
        sherd__job_free(s.job);
        sherd__prepared_fini(&p);
    }
    snprintf(out->message, sizeof out->message, "%s", d.message);
    out->virtual_ms = s.now - 1000;
    out->equal = !out->err && !out->hung &&
                 (w.count ? same_windows(o, &w, va, vb, c) : same(o, va, vb, c));
    free_nodes(&s);
    sherd__executor_free(s.executor);
    free(a);
    free(b);
    free(c);
    free(domain);
}
