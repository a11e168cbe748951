/*
 * A simulated cluster: its nodes, some of which lie, the job's owner, and a run from operands to
 * the result, which is compared with that of one machine. sim_link.c simulates the connections.
 */
#include "sim.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "matrix/fixed.h"
#include "matrix/funcs.h"
#include "matrix/reference.h"
#include "matrix/windows.h"
#include "node/backends/hosted.h"
#include "scheduler/plan/prepare_internal.h"
#include "sherd/masks.h"
#include "sim_state.h"

#define TICK_MS 100u
#define END_MS 120000u

static const char *const fault_names[] = { "none",    "kill",    "cut",     "stop", "pause",
                                           "lie",     "garbage", "twice",   "drop", "slow",
                                           "collude", "freeze",  "chatter", "drip" };

const char *sim_fault_name(sim_fault f)
{
    return f < SIM_FAULTS ? fault_names[f] : "drawn";
}

uint64_t sim_below(sim *s, uint64_t n)
{
    return sherd__entropy_below(&s->rng, n);
}

void sim_note(sim *s, const char *fmt, ...)
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

static size_t residue_bytes(const sherd__task *t)
{
    return t->result.dtype == SHERD__BYTES ? 1 : 3;
}

/* Multiplies a residue by `by` and adds `more`. */
static void change(const sherd__task *t, uint64_t at, uint32_t by, uint32_t more, uint8_t *out)
{
    const size_t each = residue_bytes(t);
    uint32_t p = t->primes[at / (t->result.rows * t->result.cols)], v = 0;
    out += each * at;
    for (size_t b = each; b-- > 0;) v = v << 8 | out[b];
    v = (by * v + more) % p;
    for (size_t b = 0; b < each; b++) out[b] = (uint8_t)(v >> 8 * b);
}

/* Doubles the right answer: if all liars do so, the wrong answers belong to a polynomial of the
 * right degree. */
static void double_all(const sherd__task *t, uint8_t *out)
{
    const uint64_t all = t->result.rows * t->result.cols * t->primes_len;
    for (uint64_t i = 0; i < all; i++) change(t, i, 2, 0, out);
}

/* Adds one to one residue, modulo one prime. */
static void add_one(const sherd__task *t, uint64_t at, uint8_t *out)
{
    change(t, at, 1, 1, out);
}

static int liar_compute(void *ctx, const sherd__call *call, const sherd__fragment *l,
                        const sherd__fragment *r, sherd_diag *d)
{
    sim_node *n = ctx;
    const sherd__task *t = call->task;
    uint8_t *out = call->out;
    int err = sherd__backend_cpu.compute(n->backend, call, l, r, d);
    if (!err && n->colluding && t->primes_len) double_all(t, out);
    if (!err && n->lying && t->primes_len && t->result.len) {
        add_one(t, sim_below(n->sim, t->result.len / residue_bytes(t)), out);
    } else if (!err && n->lying && t->result.len) {
        size_t i = (size_t)sim_below(n->sim, t->result.len / 8);
        double x;
        memcpy(&x, out + 8 * i, 8);
        x += x < 0 ? -1 : 1;
        memcpy(out + 8 * i, &x, 8);
    }
    return err;
}

static int liar_submit(void *ctx, sherd__call *c, sherd_diag *d)
{
    return sherd__hosted_submit(ctx, liar_compute, c, d);
}

static const sherd__device *liar_devices(void *ctx, uint32_t *count)
{
    const sim_node *n = ctx;
    return sherd__backend_cpu.devices(n->backend, count);
}

static const sherd__backend liar = { .abi = SHERD__BACKEND_ABI,
                                     .name = "liar",
                                     .devices = liar_devices,
                                     .hold = sherd__hosted_hold,
                                     .drop = sherd__hosted_drop,
                                     .submit = liar_submit,
                                     .cancel = sherd__hosted_cancel,
                                     .multiplier = sherd__hosted_multiplier,
                                     .compute = liar_compute };

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
    sim_note(s, "expel %u %s", node, sherd_err_name(code));
    if (code == SHERD_EWRONG) n->banned = true;
    n->retries = 99;
    if (n->here) sherd__session_bye(n->here, code, why);
}

static void job_log(void *ctx, sherd_log_level level, const char *text)
{
    (void)level;
    sim_note(ctx, "log %s", text);
}

static const char *job_name(void *ctx, uint32_t node)
{
    static char text[32];
    (void)ctx;
    snprintf(text, sizeof text, "node-%u", node + 1);
    return text;
}

/* --- a run ----------------------------------------------------------------------------------- */

/* One backend serves all nodes of all runs, so that its self-test runs only once. */
static void *backend;

static void open_devices(sim_node *n)
{
    remote_options o = n->sim->o->devices;
    o.seed = n->sim->o->seed * 100 + n->index;
    o.cpu = backend;
    if (n->index >= n->sim->o->dying) o.dies_at = 0;
    if (remote_open(&n->remote, &o)) abort();
}

static void close_devices(sim_node *n)
{
    const remote_stats *r = remote_stats_of(n->remote);
    remote_stats *all = &n->sim->out->devices;
    if (!remote_is_clean(n->remote)) abort();
    all->calls += r->calls;
    all->full += r->full;
    all->failed += r->failed;
    all->lost += r->lost;
    all->overtaken += r->overtaken;
    remote_backend.close(n->remote);
}

static void make_nodes(sim *s)
{
    const sim_options *o = s->o;
    sherd__backend_options bo = { .threads = 1, .quick = true };
    if (!backend && sherd__backend_cpu.open(&backend, &bo, NULL)) abort();
    s->nodes = calloc(o->nodes, sizeof *s->nodes);
    for (uint32_t i = 0; i < o->nodes; i++) {
        sim_node *n = &s->nodes[i];
        n->sim = s;
        n->index = i;
        sim_pipe_clear(&n->down);
        sim_pipe_clear(&n->up);
        if (sherd__executor_new_inline(&n->executor)) abort();
        n->backend = backend;
        if (o->remote) open_devices(n);
        sherd__worker_options wo = {
            .backend = &liar, .backend_ctx = n, .executor = n->executor, .memory = o->node_memory
        };
        if (n->remote) wo.backend = &remote_backend, wo.backend_ctx = n->remote;
        if (sherd__worker_new(&n->worker, &wo)) abort();
    }
    for (uint32_t f = 0; f < o->faulty && f < o->nodes; f++) {
        sim_node *n;
        do n = &s->nodes[sim_below(s, o->nodes)];
        while (n->fault);
        n->fault = o->fault == SIM_FAULTS ? (sim_fault)(1 + sim_below(s, SIM_FAULTS - 1))
                                          : o->fault;
        n->fault_at = o->fault_early ? sim_below(s, 4) : sim_below(s, 12);
    }
}

static void free_nodes(sim *s)
{
    for (uint32_t i = 0; i < s->o->nodes; i++) {
        sim_node *n = &s->nodes[i];
        sim_end_there(n, SHERD_ECLOSED);
        sherd__session_free(n->here);
        sim_pipe_clear(&n->down);
        sim_pipe_clear(&n->up);
        sim_compute(s, n, true);
        sherd__worker_free(n->worker);
        if (n->remote) close_devices(n);
        sherd__executor_free(n->executor);
        free(n->last);
    }
    free(s->nodes);
}

/* last: nodes drop what they keep for the job. */
static void run_clock(sim *s, bool last, sherd_diag *d)
{
    uint64_t tick = s->now + TICK_MS;
    int err = 0;
    while (!sherd__job_done(s->job, &err, d) && s->now < END_MS) {
        sim_pull(s);
        s->now = sim_next_time(s, tick);
        for (uint32_t i = 0; i < s->o->nodes; i++) sim_move(s, &s->nodes[i]);
        if (s->now >= tick) {
            sherd__job_tick(s->job, s->now);
            tick = s->now + TICK_MS;
        }
        sherd__job_pump(s->job, s->now);
    }
    s->out->hung = !sherd__job_done(s->job, &err, d);
    s->out->err = err;
    while (!sherd__job_idle(s->job)) sherd__executor_drain(s->executor);
    if (last || err || s->out->hung) sherd__job_end(s->job);
    else sherd__job_rest(s->job);
}

static bool same(const sim_options *o, sherd_view a, sherd_view b, const double *c)
{
    double *ref = calloc(o->n * o->m + 1, sizeof *ref);
    bool ok;
    if (o->product.exact) {
        sherd__fixed fa, fb;
        ok = !sherd__fixed_choose(a, o->product.bits, "A", &fa, NULL) &&
             !sherd__fixed_choose(b, o->product.bits, "B", &fb, NULL) &&
             !sherd__reference_exact(&(sherd__matrices){ a, b, ref, o->m }, &fa, &fb, NULL) &&
             memcmp(ref, c, o->n * o->m * sizeof *c) == 0;
    } else {
        ok = !sherd__reference_float(a, b, ref, o->m, NULL);
        for (size_t i = 0; i < o->n * o->m; i++) ok = ok && fabs(ref[i] - c[i]) <= 1e-9;
    }
    free(ref);
    return ok;
}

/* If A consists of windows, the left factor of the product is laid out, and has the exponent of the
 * images. */
static bool same_windows(const sim_options *o, const sherd__windows *w, sherd_view a, sherd_view b,
                         const double *c)
{
    size_t rows = o->n * w->count, height = o->transposed ? w->row : rows;
    double *ref = calloc(height * o->m + 1, sizeof *ref);
    void *laid = NULL;
    sherd__fixed fa, fb;
    bool ok = !sherd__windows_lay(w, a.data, sizeof(double), (sherd_rows){ 0, rows }, &laid, NULL);
    sherd_view left = sherd_view_c(laid, SHERD_F64, rows, w->row);
    if (o->transposed) left = sherd_view_t(left);
    ok = ok && !sherd__fixed_choose(a, o->product.bits, "A", &fa, NULL) &&
         !sherd__fixed_choose(b, o->product.bits, "B", &fb, NULL) &&
         !sherd__reference_exact(&(sherd__matrices){ left, b, ref, o->m }, &fa, &fb, NULL) &&
         memcmp(ref, c, height * o->m * sizeof *c) == 0;
    sherd__free(laid);
    free(ref);
    return ok;
}

static bool same_map(const sim_options *o, const double *a, const double *b, const double *c)
{
    size_t n = o->n * o->k;
    double *ref = calloc(n + 1, sizeof *ref);
    bool ok = !sherd__map_f64(o->op, a, sherd__map_arity(o->op) > 1 ? b : NULL, n, ref) &&
              memcmp(ref, c, n * sizeof *c) == 0;
    free(ref);
    return ok;
}

/* Sets the right operand of a kept A. */
static int next_right(const sim_options *o, const sherd__windows *w, sherd__prepared *p,
                      sherd_view b, double *c, const sherd_product_options *po, sherd_diag *d)
{
    const sherd_rows all = { 0, o->n * (w->count ? w->count : 1) };
    return sherd__prepared_right(p, &(sherd__kept_product){ all, o->transposed, b, c, o->m }, po,
                                 d);
}

static int prepare(const sim_options *o, sherd__prepared *p, sherd_view a, sherd_view b, double *c,
                   const sherd__nodes *nodes, const sherd_product_options *po,
                   const sherd__windows *w, sherd_diag *d)
{
    const sherd_keep_options how = { .size = sizeof how,
                                     .part = o->n,
                                     .windows = w->count ? &o->windows : NULL,
                                     .cols = o->m,
                                     .one_way = o->one_way };
    if (o->op)
        return sherd__prepare_apply(p, o->op, &(sherd__matrices){ a, b, c, o->k }, nodes, po, d);
    if (!w->count && !o->products)
        return sherd__prepare_multiply(p, &(sherd__matrices){ a, b, c, o->m }, nodes, po, d);
    int err = sherd__prepare_kept(p, a, &how, nodes, po, d);
    if (!err) err = next_right(o, w, p, b, c, po, d);
    if (err) sherd__prepared_fini(p);
    return err;
}

static void fill_matrix(sim *s, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = sim_below(s, 4) == 0 ? 0 : ((double)sim_below(s, 2001) - 1000) / 256;
}

static void make_job(sim *s, sherd__prepared *p, const sherd__nodes *nodes, uint32_t nth,
                     sherd_diag *d)
{
    sherd__job_options jo = { .hiding = &p->hiding,
                              .ledger = p->ledger,
                              .executor = s->executor,
                              .op = p->op,
                              .id = 77 + nth,
                              .nodes = nodes->count,
                              .domain = nodes->domain,
                              .depth = p->plan.depth,
                              .return_ms = 1500,
                              .strict = s->o->product.strict,
                              .owner = { .touch = job_touch,
                                         .expel = job_expel,
                                         .log = job_log,
                                         .name = job_name,
                                         .ctx = s } };
    if (sherd__job_new(&s->job, &jo) || sherd__prepared_ready(p, d)) abort();
}

/* Runs the job once: the first run of all connects. */
static void run_once(sim *s, sherd__prepared *p, const sherd__nodes *nodes, bool first, bool last,
                     sherd_diag *d)
{
    sim_outcome *out = s->out;
    sherd__job_stats stats;
    for (uint32_t i = 0; i < nodes->count; i++) {
        sim_node *n = &s->nodes[i];
        if (n->banned) sherd__job_node_barred(s->job, i);
        if (first) sim_connect(s, n);
        else if (n->here && sherd__session_ready(n->here) && !n->banned)
            sherd__job_node_up(s->job, i, n->here, n->sessions, s->now);
        else sherd__job_node_down(s->job, i, !n->banned && n->retry_ms, "it is not there", s->now);
    }
    run_clock(s, last, d);
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
    size_t width = o->op ? o->k : o->m;
    if (o->op) inner = o->n;
    double *a = calloc(o->n * o->k + 1, 8), *b = calloc(inner * width + 1, 8);
    double *c = calloc(height * width + 1, 8);
    fill_matrix(&s, a, o->n * o->k);
    fill_matrix(&s, b, inner * width);
    s.rng.fill(s.rng.ctx, seed, sizeof seed);

    uint32_t *domain = calloc(o->nodes, sizeof *domain);
    for (uint32_t i = 0; i < o->nodes; i++) domain[i] = i;
    sherd__nodes nodes = { .count = o->nodes,
                           .domain = domain,
                           .domains = o->nodes,
                           .memory = o->node_memory,
                           .usable = o->nodes,
                           .entropy = &s.rng };
    bool *seeds = calloc(o->nodes, sizeof *seeds);
    for (uint32_t i = 0; i < o->nodes; i++) seeds[i] = o->bytes;
    if (o->bytes) {
        nodes.seeds = seeds;
        nodes.gflops = 1e-6; /* slow enough that residues of one byte are chosen */
        nodes.byte_gops = 1e-3;
    }
    sherd_product_options po = o->product;
    bool coded = po.scheme == SHERD_SHARE || po.scheme == SHERD_SHARE1;
    if (!coded) po.seed = seed;
    sherd_view va = sherd_view_c(a, SHERD_F64, o->n, o->k),
               vb = sherd_view_c(b, SHERD_F64, inner, width);
    sherd__prepared p;
    uint32_t done = 0; /* products of a kept A, all of them right? */
    bool right = true;
    sherd_masks_options masks = { .size = sizeof masks, .rows = o->n, .state = po.masks_state };
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
        make_job(&s, &p, &nodes, out->encodings++, &d);
        for (bool first = out->encodings == 1;; first = false) {
            bool last = done + 1 >= o->products;
            run_once(&s, &p, &nodes, first, last, &d);
            if (out->err || out->hung || last) break;
            right = right && same(o, va, vb, c);
            done++;
            fill_matrix(&s, b, inner * width);
            if (next_right(o, &w, &p, vb, c, &po, &d) || sherd__job_again(s.job)) abort();
        }
        uint32_t alive, before = nodes.usable;
        more = sherd__job_starved(s.job, &alive) && !out->hung;
        nodes.usable = alive;
        po.spare = 0;
        po.code = SHERD_CODE_AUTO; /* as scheduler/job/product.c */
        more = more && alive < before;
        out->threshold = p.threshold;
        out->bytes = p.bytes;
        out->cut_inner = p.coded_by && p.coded_by->cut == SHERD__CUT_INNER;
        sherd__job_free(s.job);
        sherd__prepared_fini(&p);
    }
    snprintf(out->message, sizeof out->message, "%s", d.message);
    out->virtual_ms = s.now - 1000;
    out->equal = !out->err && !out->hung && right &&
                 (o->op     ? same_map(o, a, b, c)
                  : w.count ? same_windows(o, &w, va, vb, c)
                            : same(o, va, vb, c));
    free_nodes(&s);
    sherd__executor_free(s.executor);
    free(a);
    free(b);
    free(c);
    free(seeds);
    free(domain);
}
