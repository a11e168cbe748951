/*
 * The public products: prepare, run over the cluster, report. Everything that can be decided
 * without a node is decided before the first byte is sent.
 */
#include "sherd/product.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/hooks.h"
#include "core/options.h"
#include "core/wipe.h"
#include "matrix/funcs.h"
#include "matrix/view.h"
#include "scheduler/cluster/internal.h"
#include "scheduler/plan/profile.h"

#define RETURN_MS 1500u
#define MEASURED_BYTES 32e6 /* of operands and result: a larger product is worth a measurement */

static void report_fill(sherd_report *r, const sherd__prepared *p, const sherd__nodes *nodes,
                        const sherd__run_result *run)
{
    sherd__scheme_shape shape;
    p->hiding.ops->shape(p->hiding.ctx, &shape);
    for (uint32_t i = 0; i < r->nodes; i++) {
        uint32_t slot = p->threshold ? nodes->domain[i] : i;
        r->planned[i] = slot < p->slots ? p->planned[slot] : 0;
        r->exposed_a[i] = sherd__ledger_fraction(p->ledger, nodes->domain[i], 0);
        r->exposed_b[i] = sherd__ledger_fraction(p->ledger, nodes->domain[i], 1);
    }
    r->tasks = run->stats.accepted;
    r->tasks_repeated = run->stats.repeated;
    r->panels = shape.panels;
    r->tiles = shape.tiles;
    sherd__prepared_report(p, r);
    r->threshold = p->threshold;
    r->domains = nodes->domains;
    r->tasks_cancelled = run->stats.cancelled;
    r->nodes_lost = run->stats.lost;
    r->nodes_banned = run->bans;
    memcpy(r->banned, run->banned, sizeof r->banned);
    r->scale_a = p->fixed_a.scale;
    r->scale_b = p->fixed_b.scale;
    r->bits_a = p->fixed_a.bits;
    r->bits_b = p->fixed_b.bits;
    r->primes = p->primes_len;
    r->prime_bits = p->bytes ? 8 : p->primes_len ? 23 : 0;
    r->check_error = p->check_error;
    r->check_tolerant = p->tolerant;
    memcpy(r->seed, p->seed, sizeof r->seed);
    if (run->slowest.node < r->nodes) {
        r->pace_node = run->slowest.node + 1;
        r->pace_seconds = run->slowest.seconds;
        r->pace_others = run->slowest.others;
    }
    r->work_out = run->work_out;
    r->work_in = run->work_in;
    r->seconds = run->seconds;
}

int sherd__product_job(sherd__job **out, sherd_cluster *c, const sherd__prepared *p, bool strict,
                       sherd_diag *d)
{
    static const uint32_t needs[] = { [SHERD__WORK_F64] = SHERD__DOES_F64,
                                      [SHERD__WORK_RESIDUES] = SHERD__DOES_RESIDUES,
                                      [SHERD__WORK_BYTES] = SHERD__DOES_BYTES,
                                      [SHERD__WORK_MAPS] = SHERD__DOES_MAPS };
    sherd__job_options jo = { 0 };
    sherd__cluster_job_options(c, &jo);
    jo.hiding = &p->hiding;
    jo.ledger = p->ledger;
    jo.op = p->op;
    jo.depth = p->plan.depth;
    jo.return_ms = RETURN_MS;
    jo.strict = strict;
    jo.left = p->name_a;
    jo.right = p->name_b;
    jo.memory = sherd__cluster_pass_over(c, p->node_memory);
    jo.needs = needs[sherd__prepared_kind(p)];
    int err = sherd__cluster_coding(c, jo.id, p, d);
    return err ? err : sherd__job_new(out, &jo);
}

/* Under strict, fails the call if a node was banned during it, in any of its jobs or between two of
 * them. */
static int judge(int err, const sherd__run_result *run, bool strict, sherd_diag *d)
{
    if (!strict || !run->bans || (err && err != SHERD_EFEWNODES)) return err;
    if (d) *d = (sherd_diag){ 0 };
    return sherd__fail(d, SHERD_EWRONG, "without --strict the other nodes do its work",
                       "%s answered wrongly or broke the protocol", run->banned);
}

/* Nodes that take part in a call: those that are up when it begins, and others that are given work
 * later. */
typedef struct taking_part {
    bool *up;   /* by node */
    bool *seen; /* by domain */
} taking_part;

static int note_nodes(taking_part *t, sherd_cluster *c, const sherd__nodes *nodes)
{
    t->up = sherd__calloc((size_t)nodes->count + nodes->domains, sizeof *t->up);
    if (!t->up) return SHERD_ENOMEM;
    t->seen = t->up + nodes->count;
    for (uint32_t i = 0; i < nodes->count; i++)
        t->up[i] = sherd__cluster_node(c, i).state == SHERD_NODE_UP;
    return SHERD_OK;
}

static void count_nodes(sherd_report *r, const taking_part *t, const sherd__nodes *nodes)
{
    for (uint32_t i = 0; i < r->nodes; i++) {
        if (!t->up[i] && r->bytes_out[i] == 0) continue;
        r->nodes_used++;
        r->domains_used += !t->seen[nodes->domain[i]];
        t->seen[nodes->domain[i]] = true;
    }
}

/* Compares how fast the nodes answered; complete: the product, if it is, so that the cluster
 * learns their speeds; otherwise NULL. Without memory the report names no node. */
static void note_paces(const sherd__product_call *call, const sherd__job *job,
                       const sherd__prepared *complete, sherd__run_result *result)
{
    uint32_t nodes = call->nodes->count;
    sherd__job_pace *paces = sherd__calloc(nodes, sizeof *paces);
    double *room = sherd__calloc(nodes, sizeof *room);
    if (paces && room) {
        for (uint32_t i = 0; i < nodes; i++) paces[i] = sherd__job_node_pace(job, i);
        result->slowest = sherd__job_slowest_of(paces, nodes, room);
        if (complete)
            sherd__cluster_note_paces(call->cluster, paces, sherd__prepared_kind(complete),
                                      sherd__prepared_verified(complete));
    }
    sherd__free(paces);
    sherd__free(room);
}

int sherd__product_run(const sherd__product_call *call, const sherd__prepared *p, sherd__job *job,
                       bool last, sherd_diag *d)
{
    const sherd__nodes *nodes = call->nodes;
    sherd_report own;
    taking_part t = { .up = NULL };
    int err = sherd__report_init(&own, nodes->count);
    if (!err && call->r && (err = note_nodes(&t, call->cluster, nodes))) sherd_report_fini(&own);
    if (err) return sherd__fail_memory(d, "the report of a product");
    sherd__run_result result = { .slowest.node = UINT32_MAX,
                                 .bytes_out = own.bytes_out,
                                 .bytes_in = own.bytes_in,
                                 .states = own.states };
    err = judge(sherd__cluster_run(call->cluster, job, last, call->opt->timeout_ms, &result, d),
                &result, call->opt->strict, d);
    note_paces(call, job, err ? NULL : p, &result);
    report_fill(&own, p, nodes, &result);
    for (uint32_t i = 0; i < own.nodes && own.tasks > 0; i++)
        own.done[i] = (double)sherd__job_node_tasks(job, i) / (double)own.tasks;
    if (call->r) {
        count_nodes(&own, &t, nodes);
        *call->r = own;
        sherd__wipe(&own, sizeof own); /* it contains the seed */
    } else {
        sherd_report_fini(&own);
    }
    sherd__free(t.up);
    return err;
}

#define NOT_STARVED UINT32_MAX

/* *alive: if the product starved, the number of domains that could still answer. */
static int once(const sherd__product_call *call, sherd__prepared *p, double began, uint32_t *alive,
                sherd_diag *d)
{
    const sherd_product_options *opt = call->opt;
    sherd_product_options now = *opt;
    sherd__product_call timed = *call;
    timed.opt = &now;
    sherd__job *job = NULL;
    *alive = NOT_STARVED;
    int err = sherd__product_job(&job, call->cluster, p, opt->strict, d);
    if (err) sherd__fail_to(d, err, "prepare the job");
    else err = sherd__prepared_ready(p, d);
    if (!err) err = sherd__time_left(&now.timeout_ms, opt->timeout_ms, began, d);
    if (!err) {
        err = sherd__product_run(&timed, p, job, true, d);
        sherd__prepared_why(p, err, d);
        if (err != SHERD_EFEWNODES || !sherd__job_starved(job, alive)) *alive = NOT_STARVED;
    }
    sherd__job_free(job);
    sherd__prepared_fini(p);
    return err;
}

int sherd__time_left(uint32_t *ms, uint32_t all, double began, sherd_diag *d)
{
    double left = all - (sherd__clock_s() - began) * 1e3;
    *ms = 0;
    if (all == 0) return SHERD_OK;
    if (left < 1)
        return sherd__fail(d, SHERD_ETIMEOUT, "give it more with --timeout",
                           "the time limit expired: preparing took all of the %u ms", all);
    *ms = (uint32_t)left;
    return SHERD_OK;
}

void sherd__report_add(sherd_report *r, sherd_report *before)
{
    if (!r->nodes) { /* the later attempt failed before nodes were at work */
        *r = *before;
        return;
    }
    for (uint32_t i = 0; i < r->nodes && i < before->nodes; i++) {
        r->bytes_out[i] += before->bytes_out[i];
        r->bytes_in[i] += before->bytes_in[i];
    }
    r->tasks += before->tasks;
    r->tasks_repeated += before->tasks_repeated;
    r->tasks_cancelled += before->tasks_cancelled;
    r->nodes_lost += before->nodes_lost;
    if (before->nodes_used > r->nodes_used) r->nodes_used = before->nodes_used;
    if (before->domains_used > r->domains_used) r->domains_used = before->domains_used;
    r->seconds += before->seconds;
    if (before->pace_node && before->pace_seconds > r->pace_seconds) {
        r->pace_node = before->pace_node;
        r->pace_seconds = before->pace_seconds;
        r->pace_others = before->pace_others;
    }
    sherd_report_fini(before);
}

/*
 * Repeats a product after too few domains were left to decode it. The answers so far cannot be
 * used. Everything is encoded again, with fresh masks and in fewer blocks, for the domains that are
 * left: answers of two encodings cannot be combined. A node that is up may have refused its work or
 * be silent. Therefore only domains that could still answer count. Their number decreases each
 * time, so the loop ends. Any code will do: one that needs every node is no longer possible.
 */
static int again(const sherd__product_call *first, const sherd__matrices *m, double began,
                 uint32_t alive, sherd_diag *d)
{
    sherd__prepared p;
    sherd__nodes nodes;
    sherd_product_options fewer = *first->opt;
    sherd_report *r = first->r;
    const sherd__product_call call = { first->cluster, &nodes, &fewer, r };
    int err = SHERD_EFEWNODES;
    fewer.spare = 0;
    fewer.code = SHERD_CODE_AUTO;
    for (uint32_t encodings = 2; alive != NOT_STARVED; encodings++) {
        uint32_t left, ms;
        sherd_diag last = *d;
        sherd__cluster_nodes(call.cluster, &nodes);
        if (nodes.usable > alive) { /* domains with the least memory are the least likely to be
                                       usable */
            if (nodes.budgets) nodes.budgets += nodes.usable - alive;
            nodes.usable = alive;
        }
        *d = (sherd_diag){ 0 };
        err = sherd__time_left(&ms, fewer.timeout_ms, began, d);
        if (err) return err;
        left = nodes.usable;
        err = sherd__prepare_multiply(&p, m, &nodes, &fewer, d);
        if (err == SHERD_EFEWNODES) *d = last; /* the earlier error is more informative */
        if (err) return err;
        sherd__cluster_say(call.cluster, SHERD_LOG_WARN,
                           "%s: all shares are made again for the %u domains that are left",
                           last.message, left);
        sherd_report so_far = r ? *r : (sherd_report){ 0 };
        if (r) *r = (sherd_report){ 0 };
        err = once(&call, &p, began, &alive, d);
        if (r) sherd__report_add(r, &so_far);
        if (r) r->encodings = encodings;
    }
    return err;
}

/* The user's options and report, in this version's structs. */
typedef struct user_call {
    sherd_product_options opt;
    sherd_report report;
    sherd_report *r; /* &report, or NULL if the user wants none */
} user_call;

/* Without hooks of its own the call has those of the cluster, also while it is prepared. */
static void take_hooks(sherd_product_options *opt, const sherd_cluster *c)
{
    if (!sherd__hooks_any(&opt->hooks)) opt->hooks = *sherd__cluster_hooks(c);
}

static int begin_call(user_call *u, const sherd_cluster *c, const sherd_product_options *opt,
                      sherd_report *r, sherd_diag *d)
{
    *u = (user_call){ .r = r ? &u->report : NULL };
    int err = sherd__product_options_read(&u->opt, opt, d);
    if (!err && r) err = sherd__result_check(r, "sherd_report", d);
    if (!err) take_hooks(&u->opt, c);
    return err;
}

/* The user's report is unchanged, like any output, if the call failed before nodes were at work. */
static int end_call(user_call *u, sherd_report *r, int err)
{
    if (r && u->report.nodes) sherd__result_write(r, &u->report, sizeof u->report);
    sherd__wipe(&u->report, sizeof u->report); /* it contains the seed */
    return err;
}

int sherd__product_speeds(sherd_cluster *c, sherd_view a, sherd_view b,
                          const sherd_product_options *opt, sherd_diag *d)
{
    double n = (double)a.rows, k = (double)a.cols, cols = (double)b.cols;
    const sherd_scheme_info *s = sherd_scheme_get(opt->scheme);
    if (!(s->takes & SHERD_TAKES_WEIGHTS)) {
        char why[160];
        snprintf(why, sizeof why, "under --scheme %s each node is given a share of the same size",
                 s->name);
        sherd__cluster_weights_unused(c, why);
    } else if (sherd__prepare_follows_speeds(opt) &&
               sizeof(double) * (n * k + k * cols + n * cols) >= MEASURED_BYTES) {
        return sherd__cluster_measure_speeds(c, &opt->hooks, opt->timeout_ms, d);
    }
    return SHERD_OK;
}

static int multiply(sherd_cluster *c, const sherd__matrices *m, const sherd_product_options *opt,
                    sherd_report *r, sherd_diag *d)
{
    sherd__prepared p;
    sherd__nodes nodes;
    const sherd__product_call call = { c, &nodes, opt, r };
    int err = sherd__view_check(m->a, "A", d);
    if (!err) err = sherd__view_check(m->b, "B", d);
    if (!err) err = sherd__profile_check(opt->profile_a, m->a, "A", d);
    if (!err) err = sherd__profile_check(opt->profile_b, m->b, "B", d);
    const sherd__result out = { m->out, m->a.rows, m->b.cols, m->ld };
    if (!err) err = sherd__view_apart(m->a, "A", &out, d);
    if (!err) err = sherd__view_apart(m->b, "B", &out, d);
    if (err) return err;
    double began = sherd__clock_s();
    err = sherd__product_speeds(c, m->a, m->b, opt, d);
    if (err) return err;
    sherd__cluster_call(c, &opt->hooks);
    sherd__cluster_nodes(c, &nodes);
    sherd_diag own = { 0 };
    if (!d) d = &own;
    uint32_t alive;
    err = sherd__prepare_multiply(&p, m, &nodes, opt, d);
    if (err) return err;
    err = once(&call, &p, began, &alive, d);
    if (r) r->encodings = r->threshold > 0;
    if (alive == NOT_STARVED) return err;
    return again(&call, m, began, alive, d);
}

int sherd_multiply(sherd_cluster *c, sherd_view a, sherd_view b, double *out, size_t ldc,
                   const sherd_product_options *opt, sherd_report *r, sherd_diag *d)
{
    user_call u;
    int err = begin_call(&u, c, opt, r, d);
    return err ? err
               : end_call(&u, r, multiply(c, &(sherd__matrices){ a, b, out, ldc }, &u.opt, u.r, d));
}

/* Returns whether each entry of the result replaces that of the operand. An entry is in one
 * fragment, which is not needed again once its answer has been checked. */
static bool in_place(sherd_view v, const sherd__result *out)
{
    return v.data == out->at && v.dtype == SHERD_F64 && v.col_stride == 1 &&
           v.row_stride == (ptrdiff_t)out->ldc;
}

static int apply(sherd_cluster *c, sherd_op op, const sherd__matrices *m,
                 const sherd_product_options *opt, sherd_report *r, sherd_diag *d)
{
    sherd__prepared p;
    sherd__nodes nodes;
    const sherd__product_call call = { c, &nodes, opt, r };
    int err = sherd__view_check(m->a, "A", d);
    if (!err && sherd_op_operands(op) > 1) err = sherd__view_check(m->b, "B", d);
    const sherd__result out = { m->out, m->a.rows, m->a.cols, m->ld };
    if (!err && !in_place(m->a, &out)) err = sherd__view_apart(m->a, "A", &out, d);
    if (!err && sherd_op_operands(op) > 1 && !in_place(m->b, &out))
        err = sherd__view_apart(m->b, "B", &out, d);
    if (err) return err;
    sherd__cluster_call(c, &opt->hooks);
    sherd__cluster_nodes(c, &nodes);
    uint32_t alive;
    double began = sherd__clock_s();
    err = sherd__prepare_apply(&p, (uint32_t)op, m, &nodes, opt, d);
    return err ? err : once(&call, &p, began, &alive, d);
}

int sherd_apply(sherd_cluster *c, sherd_op op, sherd_view a, sherd_view b, double *out, size_t ldc,
                const sherd_product_options *opt, sherd_report *r, sherd_diag *d)
{
    user_call u;
    int err = begin_call(&u, c, opt, r, d);
    return err ? err
               : end_call(&u, r,
                          apply(c, op, &(sherd__matrices){ a, b, out, ldc }, &u.opt, u.r, d));
}

/* --- resident operands ----------------------------------------------------------------------- */

struct sherd_resident {
    sherd_cluster *cluster;
    sherd_view b;
    sherd__prepared p;
    sherd__nodes nodes;
    sherd_product_options opt;
    sherd__job *job;
    uint64_t bytes;
};

/* Returns the bytes of B at a node during a product; earlier tiles are dropped. */
static uint64_t bytes_of(const sherd__prepared *p, sherd_view b)
{
    bool some = p->scheme->takes & SHERD_TAKES_SHUFFLES;
    uint64_t rows = some ? 0 : b.rows;
    for (uint32_t i = 0; i < p->slots && some; i++)
        if (p->planned[i] > rows) rows = p->planned[i];
    return rows * p->size_b * (p->plan.tile_cols < b.cols ? 2 * p->plan.tile_cols : b.cols);
}

uint64_t sherd__resident_bytes(const sherd_resident *k)
{
    return k->bytes;
}

int sherd_resident_new(sherd_resident **out, sherd_cluster *c, sherd_view b, size_t n_max,
                       const sherd_product_options *opt, sherd_diag *d)
{
    sherd_product_options own;
    *out = NULL;
    int err = sherd__product_options_read(&own, opt, d);
    return err ? err
               : sherd__resident_of(out, c, b, &own, &(sherd__resident_kept){ .n_max = n_max }, d);
}

/* Makes the ledger count in the account of the operand, of which B may be a part. Then the bound
 * applies to the whole operand and not to the part. */
static int follow(sherd_resident *k, const sherd__resident_kept *how, double bound, sherd_diag *d)
{
    sherd__ledger_whole whole = { 0 };
    if (how->part) whole = how->part->whole;
    whole.max_fraction = bound;
    int err = sherd__ledger_follow(k->p.ledger, how->account, how->side, how->part ? &whole : NULL);
    return err ? sherd__fail_memory(d, "the account of exposures")
               : sherd__prepared_allowed(&k->p, &k->nodes, d);
}

int sherd__resident_of(sherd_resident **out, sherd_cluster *c, sherd_view b,
                       const sherd_product_options *opt, const sherd__resident_kept *how,
                       sherd_diag *d)
{
    *out = NULL;
    int err = sherd__view_check(b, "B", d);
    if (err) return err;
    if (opt->shuffle_rows)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "omit --shuffle-rows",
                           "rows cannot be shuffled with a resident operand");
    if (sherd_scheme_get(opt->scheme)->keeps != SHERD_KEEPS_RIGHT)
        return sherd__fail(d, SHERD_EUNSUPPORTED, "keep the left operand: sherd_multiplier_keep",
                           "a right operand is not kept under --scheme %s",
                           sherd_scheme_get(opt->scheme)->name);
    sherd_resident *k = sherd__calloc(1, sizeof *k);
    if (!k) return sherd__fail_memory(d, "a kept operand");
    k->cluster = c;
    k->b = b;
    k->opt = *opt;
    k->opt.seed = NULL;
    k->opt.profile_a = k->opt.profile_b = NULL;
    sherd__cluster_nodes(c, &k->nodes);
    const sherd__matrices m = { .a = sherd_view_c(NULL, SHERD_F64, how->n_max, b.rows),
                                .b = b,
                                .ld = b.cols };
    sherd_product_options own = k->opt;
    own.seed = opt->seed;
    take_hooks(&own, c);
    if (how->part) own.exposure_max = 1;
    err = sherd__prepare_part(&k->p, &m, how->part ? how->part->fixed : NULL, &k->nodes, &own, d);
    if (!err && how->account) err = follow(k, how, opt->exposure_max, d);
    if (!err) k->bytes = bytes_of(&k->p, b);
    if (err == SHERD_EEXPOSURE && how->account)
        sherd__exposure_account_unplan(how->account, how->side);
    if (!err) {
        err = sherd__product_job(&k->job, c, &k->p, opt->strict, d);
        if (err) sherd__fail_to(d, err, "prepare the job");
    }
    if (err) {
        sherd_resident_free(k);
        return err;
    }
    *out = k;
    return SHERD_OK;
}

static int resident_multiply(sherd_resident *k, const sherd__matrices *m, const user_call *u,
                             sherd_diag *d)
{
    const sherd_view a = m->a;
    sherd_product_options now = u->opt;
    double began = sherd__clock_s();
    int err = sherd__view_check(a, "A", d);
    const sherd__result out = { m->out, a.rows, k->b.cols, m->ld };
    if (!err) err = sherd__view_apart(a, "A", &out, d);
    if (!err) err = sherd__view_apart(k->b, "the kept operand", &out, d);
    if (err) return err;
    sherd__cluster_call(k->cluster, &u->opt.hooks);
    err = sherd__prepared_next(&k->p, m, &u->opt, d);
    if (err == SHERD_ESHAPE)
        return sherd__fail(d, err, "keep B for more rows, or give as many columns as B has rows",
                           "A is %zu x %zu and does not fit the kept operand", a.rows, a.cols);
    if (!err) {
        sherd__ledger_next_left(k->p.ledger);
        err = sherd__prepared_allowed(&k->p, &k->nodes, d);
        if (err) return err; /* nothing has started: another A may still follow */
    }
    /* Also before the first run: the job was made for the largest number of rows of any A. */
    if (!err) err = sherd__job_again(k->job);
    if (err)
        return sherd__fail(d, err, "keep the operand again", "the kept operand cannot be used: %s",
                           sherd_strerror(err));
    if (sherd__time_left(&now.timeout_ms, k->opt.timeout_ms, began, NULL)) now.timeout_ms = 1;
    return sherd__product_run(&(sherd__product_call){ k->cluster, &k->nodes, &now, u->r }, &k->p,
                              k->job, false, d);
}

int sherd_resident_multiply(sherd_resident *k, sherd_view a, double *out, size_t ldc,
                            sherd_report *r, sherd_diag *d)
{
    user_call u;
    int err = begin_call(&u, k->cluster, &k->opt, r, d);
    const sherd__matrices m = { .a = a, .out = out, .ld = ldc };
    return err ? err : end_call(&u, r, resident_multiply(k, &m, &u, d));
}

void sherd_resident_free(sherd_resident *k)
{
    if (!k) return;
    if (k->job) sherd__cluster_drop(k->cluster, k->job);
    sherd__job_free(k->job);
    sherd__prepared_fini(&k->p);
    sherd__free(k);
}
