/*
 * Prepares a product as if it were to run, counts the bytes that it would send, measures the work
 * that this machine would do, and predicts the time (scheduler/plan/cost.h). If only shapes are
 * given, the product is prepared over views that repeat a single non-zero number.
 */
#include "sherd/forecast.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/hooks.h"
#include "core/memory.h"
#include "core/options.h"
#include "core/pieces.h"
#include "matrix/gemm.h"
#include "matrix/residue_limbs.h"
#include "matrix/view.h"
#include "scheduler/cluster/domains.h"
#include "scheduler/cluster/internal.h"
#include "scheduler/plan/contention.h"
#include "scheduler/plan/cost.h"
#include "scheduler/plan/encoding.h"
#include "scheduler/plan/forecast.h"
#include "scheduler/plan/kernel_rates.h"
#include "scheduler/plan/pace.h"
#include "scheduler/plan/profile.h"
#include "scheduler/plan/share_code.h"
#include "scheduler/plan/weights.h"
#include "wire/cipher.h"
#include "wire/link_rate.h"

static const double one = 1;

/* Returns the operand, or a view that repeats one number if only its shape is given. */
static sherd_view stand_in(sherd_view v)
{
    if (v.data) return v;
    return (sherd_view){ .data = &one, .rows = v.rows, .cols = v.cols, .dtype = SHERD_F64 };
}

static int ask(const sherd_forecast_options *f)
{
    return sherd__hooks_interrupted(&f->hooks) ? SHERD_EINTERRUPTED : SHERD_OK;
}

/* --- speeds ---------------------------------------------------------------------------------- */

#define OWN_MOST 640u /* rows and columns of a product that is timed */
#define OWN_ROUNDS 3
#define OWN_SHARED 0x1p24 /* multiplications from which on BLAS uses all threads */

/* Returns the speed of a product here in billions of operations per second: the best of some
 * rounds, by the clock. */
static double speed_by_clock(size_t n, size_t k, size_t m, const sherd_forecast_options *f)
{
    double best = 0;
    double *x = sherd__alloc((n * k + k * m + n * m) * sizeof *x);
    for (size_t i = 0; i < n * k + k * m && x; i++) x[i] = (double)(i % 1021) - 510;
    for (int round = 0; round < OWN_ROUNDS && x && !ask(f); round++) {
        double took = sherd__clock_s();
        int err = sherd__gemm_f64(n, k, m, x, k, x + n * k, m, 0, x + n * k + k * m, m);
        took = sherd__clock_s() - took;
        if (!err && took > 0 && 2e-9 * (double)n * (double)k * (double)m / took > best)
            best = 2e-9 * (double)n * (double)k * (double)m / took;
    }
    sherd__free(x);
    return best;
}

/* Returns the speed of all cores of this machine together, while all of them multiply. Processor
 * time is measured, as for local nodes: other processes, which slow down the rounds by the clock,
 * would make this machine seem slower than nodes that run on the same cores. 0: not known. */
static double speed_by_cores(size_t n, size_t k, size_t m)
{
    const sherd__contention_work all = { n, k, m, SHERD__IN_F64 };
    unsigned cores = sherd__cpu_usable(), threads = sherd__blas_threads();
    bool shared = (double)n * (double)k * (double)m >= OWN_SHARED;
    if (!shared || !sherd__blas_by_many()) return 0;
    sherd__blas_threads_set(1);
    double each = sherd__contention_end(sherd__contention_begin(cores - 1, &all));
    sherd__blas_threads_set(threads);
    return each * cores;
}

/* Returns the speed of a product on this machine, with all of its threads. */
static double own_speed(size_t n, size_t k, size_t m, const sherd_forecast_options *f)
{
    n = sherd__least(n, OWN_MOST);
    k = sherd__least(k, OWN_MOST);
    m = sherd__least(m, OWN_MOST);
    if (n == 0 || k == 0 || m == 0) return 1;
    double clock = speed_by_clock(n, k, m, f), cores = ask(f) ? 0 : speed_by_cores(n, k, m);
    double best = clock > cores ? clock : cores;
    return best > 0 ? best : 1;
}

static void fill_rates(sherd_rates *r, const sherd_forecast_options *f, const sherd__nodes *nodes)
{
    *r = f->rates;
    if (!(r->session > 0))
        r->session = f->no_measurements ? sherd__link_rate(true) : sherd__link_rate_here();
    if (!(r->session > 0)) r->session = sherd__cipher_rate();
    if (!(r->link > 0)) r->link = sherd__link_rate(!nodes->remote);
}

/* --- state ----------------------------------------------------------------------------------- */

typedef struct forecast {
    sherd_view a, b;
    const sherd_product_options *opt;
    sherd__nodes nodes;
    uint32_t *domain;
    sherd__domain_fault domain_fault;
    double *c, *own_c;
    double prepare_s; /* time of preparing: scanning the operands, allocating the result */
    bool alike;       /* all panels of A but the last have the same sizes */
    bool part;        /* the result is too large: a part of the product is measured */
    sherd__prepared p;
} forecast;

/* Results of measuring this machine. */
typedef struct measured {
    sherd__calibration own;
    sherd__kernel_rates kernel_rates;
    double gflops; /* of one thread, for products like the tasks'; 0: not measured here */
    sherd__node_arithmetic in; /* of nodes */
} measured;

/* Nodes on this machine share half of its memory; one on another machine has half of that one's. */
static uint64_t budget(const sherd_forecast_options *f, uint32_t nodes, bool remote)
{
    return f->node_memory ? f->node_memory : sherd__memory_of_node(remote || !nodes ? 1 : nodes);
}

/* Counts the nodes of a node file and their domains; coordinators are left out. */
static int number_nodes(forecast *w, const sherd_forecast_options *f, const sherd__peers *peers)
{
    sherd__nodes *n = &w->nodes;
    uint32_t unnamed;
    sherd__peer **list = sherd__calloc(peers->len, sizeof *list);
    w->domain = sherd__calloc(peers->len, sizeof *w->domain);
    int err = list && w->domain ? SHERD_OK : SHERD_ENOMEM;
    *n = (sherd__nodes){ .domain = w->domain };
    for (size_t i = 0; !err && i < peers->len; i++) {
        if (strcmp(peers->list[i].role, "coordinator") == 0) continue;
        n->remote = n->remote || !sherd__peer_loopback(&peers->list[i]);
        list[n->count++] = &peers->list[i];
    }
    for (unnamed = 0; !err && unnamed < n->count && list[unnamed]->domain[0];) unnamed++;
    sherd__domains found = { .of = w->domain, .file = f->nodes_file };
    if (!err) err = sherd__domains_number(&found, list, n->count, sherd__addresses_written, NULL);
    n->domains = found.len;
    n->usable = n->domains;
    n->memory = budget(f, n->count, n->remote);
    if (!err && sherd__domains_fault(&found, list, n->count, unnamed, f->same_host_domains,
                                     &w->domain_fault)) {
        n->domain_fault = w->domain_fault.text;
        n->domain_hint = w->domain_fault.hint;
    }
    sherd__free(list);
    return err;
}

static int read_nodes(forecast *w, const sherd_forecast_options *f, sherd_diag *d)
{
    sherd__peers peers = { 0 };
    int err = f->nodes_text ? sherd__peers_parse(&peers, f->nodes_text, strlen(f->nodes_text),
                                                 "list of nodes", d)
                            : sherd__peers_load(&peers, f->nodes_file, d);
    if (!err && number_nodes(w, f, &peers))
        err = sherd__fail_memory(d, "the nodes of the forecast");
    sherd__peers_fini(&peers);
    return err;
}

#define NODES_MAX 65535u /* as of metadata */

static int find_nodes(forecast *w, const sherd_forecast_options *f, sherd_diag *d)
{
    if (f->cluster) {
        sherd__cluster_nodes(f->cluster, &w->nodes);
        return SHERD_OK;
    }
    if (f->nodes_file || f->nodes_text) return read_nodes(w, f, d);
    if (f->nodes > NODES_MAX)
        return sherd__fail(d, SHERD_EINVAL, NULL, "a forecast for %u nodes: expected at most %u",
                           f->nodes, NODES_MAX);
    w->domain = sherd__calloc(f->nodes, sizeof *w->domain);
    if (!w->domain) return sherd__fail_memory(d, "the nodes of the forecast");
    for (uint32_t i = 0; i < f->nodes; i++) w->domain[i] = i;
    w->nodes = (sherd__nodes){ .count = f->nodes,
                               .domain = w->domain,
                               .domains = f->nodes,
                               .memory = budget(f, f->nodes, f->remote),
                               .usable = f->nodes,
                               .remote = f->remote };
    return SHERD_OK;
}

#define RESULT_MAX (UINT64_C(1) << 30) /* bytes; larger results are not calibrated with, ... */
#define PART_SIDE 2048u                /* ... but a part of so many rows and columns */

static bool is_small(size_t rows, size_t cols)
{
    size_t len;
    return sherd__mul(rows, cols, &len) && sherd__mul(len, sizeof(double), &len) &&
           len <= RESULT_MAX;
}

/* Allocates memory of the result's size if none is given; results are folded into it during the
 * measurement. */
static int take_result(forecast *w, double *given, sherd_diag *d)
{
    w->c = given;
    if (given) return SHERD_OK;
    size_t len = w->a.rows * w->b.cols * sizeof *w->c;
    w->own_c = w->c = sherd__calloc(len ? len : 1, 1);
    return w->c ? SHERD_OK : sherd__fail_memory(d, "the result");
}

static void look(sherd_forecast *out, const forecast *w)
{
    const sherd__prepared *p = &w->p;
    sherd__scheme_shape shape;
    p->hiding.ops->shape(p->hiding.ctx, &shape);
    out->scheme = w->opt->scheme;
    out->nodes = w->nodes.count;
    out->local = !w->nodes.remote;
    out->devices = sherd__pace_devices(&w->nodes);
    out->primes = p->primes_len;
    out->blocks = p->code.blocks;
    if (p->coded_by) out->code = sherd__share_code_number(p->coded_by);
    out->threshold = shape.threshold;
    out->slack = shape.threshold ? shape.slots - shape.threshold : 0;
    out->panels = shape.panels;
    out->tiles = shape.tiles;
    if (p->scheme->takes & SHERD_TAKES_ENCODING) {
        out->encoding = p->encoding.csr ? SHERD_ENCODING_CSR : SHERD_ENCODING_DENSE;
        out->seconds_dense = p->encoding.dense_s;
        out->seconds_csr = p->encoding.csr_s;
    }
    out->node_memory = p->plan.node_bytes;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t domain;
        *(i ? &out->exposure_b : &out->exposure_a) = sherd__ledger_planned(p->ledger, (int)i,
                                                                           &domain);
    }
}

/* --- speeds and time ------------------------------------------------------------------------- */

/* Returns the nodes that share the cores of this machine: those that compute on its processor. */
static uint32_t on_cores(const sherd__nodes *n)
{
    return n->remote ? 0 : n->count - sherd__pace_devices(n);
}

/* Returns the largest number of threads at a node that computes on a processor, at least 1. */
static uint32_t threads_of(const sherd__nodes *n)
{
    uint32_t most = n->each ? 1 : n->threads;
    for (uint32_t i = 0; i < n->count && n->each; i++)
        if (!n->each[i].device && n->each[i].threads > most) most = n->each[i].threads;
    return most ? most : 1;
}

/* Returns whether the speed of nodes must be measured here, since it is neither given nor what they
 * measured when they started. */
static bool is_measured(const forecast *w, const sherd_forecast_options *f)
{
    const bool unknown = on_cores(&w->nodes) > 0 || !(w->nodes.gflops > 0);
    return !(f->rates.node_gflops > 0) && !f->no_measurements && unknown;
}

/* Returns the arithmetic in which nodes multiply: residues as they travel, or doubles. */
static sherd__node_arithmetic as_they_travel(const forecast *w, const sherd__traffic *t,
                                             const sherd_rates *given)
{
    const sherd__nodes *n = &w->nodes;
    if (!t->residues || given->node_gflops > 0) return SHERD__IN_F64;
    if (t->bytes) return SHERD__IN_BYTES;
    bool packed = on_cores(n) == 0
                      ? n->residue_gflops > 0
                      : sherd__limbs_here() && (n->residue_gflops > 0 || !(n->gflops > 0));
    return packed ? SHERD__IN_RESIDUES : SHERD__IN_F64;
}

/* Returns the shape of a task's product: rows of a panel, columns of a group, columns of a tile. */
static sherd__contention_work task_of(const forecast *w, sherd__node_arithmetic in)
{
    size_t inner = w->a.cols, g = w->opt->group;
    if (w->p.scheme->takes & SHERD_TAKES_SHUFFLES) {
        inner = 1;
        for (uint32_t i = 0; i < w->p.slots; i++)
            if (w->p.planned[i] > inner) inner = w->p.planned[i];
        if (g > 0 && g < inner) inner = g;
    }
    return (sherd__contention_work){ w->p.plan.panel_rows, inner, w->p.plan.tile_cols, in };
}

/* Returns how many threads compute here at the same time as the measuring one: those of the nodes
 * if they are local, and two of this process. Limited by working memory, and to one if this BLAS
 * does not support more threads at a time. */
static unsigned others_of(const forecast *w, sherd__node_arithmetic in)
{
    const sherd__nodes *n = &w->nodes;
    uint64_t cores = sherd__cpu_usable();
    uint64_t all = 2 + (uint64_t)on_cores(n) * threads_of(n),
             room = w->opt->memory / SHERD__CONTENTION_MEMBER;
    if (n->remote || (in == SHERD__IN_F64 && !sherd__blas_by_many())) return 0;
    if (all > cores) all = cores;
    if (all > room) all = room;
    return all > 1 ? (unsigned)all - 1 : 0;
}

static double times(double seconds, uint64_t all, uint64_t part)
{
    return part ? seconds * (double)all / (double)part : 0;
}

/* Hides and folds cells of a product of some rows and columns, which has a small result, and scales
 * the times by bytes. */
static int calibrate_part(sherd__calibration *out, const forecast *w, const sherd__traffic *t,
                          const sherd_hooks *hooks)
{
    size_t rows = sherd__least(w->a.rows, PART_SIDE), cols = sherd__least(w->b.cols, PART_SIDE);
    sherd_view a = sherd_view_sub(w->a, 0, rows, 0, w->a.cols);
    sherd_view b = sherd_view_sub(w->b, 0, w->b.rows, 0, cols);
    double *c = sherd__calloc(rows * cols, sizeof *c);
    sherd_product_options opt = *w->opt;
    sherd__prepared p;
    sherd__traffic part;
    const sherd_hooks quiet = { hooks->interrupted, hooks->log, NULL, hooks->ctx };
    opt.profile_a = opt.profile_b = NULL; /* these are of the whole operands */
    int err = c ? sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, c, cols }, &w->nodes, &opt,
                                          NULL)
                : SHERD_ENOMEM;
    if (!err) {
        err = sherd__traffic_count(&part, &p, w->alike, &quiet);
        if (!err) err = sherd__calibration_measure(out, &p, &part, hooks);
        sherd__prepared_fini(&p);
    }
    sherd__free(c);
    if (err) return err;
    out->hide_s = times(out->hide_s, t->left, part.left);
    out->fold_s = times(out->fold_s, t->answer, part.answer);
    out->fill_s = times(out->fill_s, t->first, part.first);
    return SHERD_OK;
}

/* Masks of blind must be kept for a later run, so nothing is hidden with them. */
static bool uses_up_masks(const sherd_product_options *opt)
{
    return sherd_scheme_get(opt->scheme)->takes & SHERD_TAKES_MASKS;
}

static int calibrate(sherd__calibration *out, forecast *w, const sherd__traffic *t,
                     const sherd_hooks *hooks)
{
    if (w->part && !uses_up_masks(w->opt)) return calibrate_part(out, w, t, hooks);
    return sherd__calibration_measure(out, &w->p, t, hooks);
}

/* Measures everything while as many threads multiply as there will be during the product. m->gflops
 * is the speed of one of them. Without measurements everything is a typical value. */
static int measure(forecast *w, const sherd__traffic *t, const sherd_forecast_options *f,
                   measured *m, sherd_rates *rates)
{
    sherd__contention_work task = task_of(w, as_they_travel(w, t, &f->rates));
    sherd__contention *c = NULL;
    unsigned threads = sherd__blas_threads();
    m->in = task.in;
    if (f->no_measurements) {
        m->own = sherd__calibration_typical(&w->p, t);
        m->kernel_rates = sherd__kernel_rates_typical();
        fill_rates(rates, f, &w->nodes);
        return SHERD_OK;
    }
    sherd__blas_threads_set(1);
    if (is_measured(w, f)) c = sherd__contention_begin(others_of(w, task.in), &task);
    int err = ask(f);
    if (!err) m->kernel_rates = sherd__kernel_rates_here();
    if (!err) err = ask(f);
    if (!err) err = calibrate(&m->own, w, t, &f->hooks);
    if (!err) err = ask(f);
    if (!err) fill_rates(rates, f, &w->nodes);
    m->gflops = sherd__contention_end(c);
    sherd__blas_threads_set(threads);
    return err;
}

/* Predicts the same product computed here by BLAS, at the speed given, or at that measured (0:
 * not). Nodes on this machine run on its cores, so it is at least as fast as all of these at the
 * speed of the nodes' threads. */
static void find_own(sherd_forecast *out, const forecast *w, const measured *m, double given,
                     double speed)
{
    sherd_rates *r = &out->rates;
    const bool all = on_cores(&w->nodes) == w->nodes.count;
    double single = m->in || !(m->gflops > 0) ? w->nodes.gflops / threads_of(&w->nodes) : m->gflops;
    double shared = all ? single * sherd__cpu_usable() : 0;
    if (given > 0) r->gflops = given;
    else r->gflops = speed > shared ? speed : shared;
    if (r->gflops > 0)
        out->own_seconds = 2e-9 * (double)w->a.rows * (double)w->a.cols * (double)w->b.cols /
                           r->gflops;
}

/* Returns seconds of one core that nodes need to convert blocks and answers, in addition to the
 * products. */
static double conversions(const sherd__traffic *t, const measured *m)
{
    const sherd__kernel_rates *p = &m->kernel_rates;
    if (m->in) /* integers become packed residues: widened, reduced and packed */
        return t->right.widened / p->widen + 2 * t->right.packed / p->pack;
    return t->unpacked / p->unpack + t->packed / p->pack + t->widened / p->widen +
           t->expanded / p->expand + t->streamed / p->stream +
           (m->gflops > 0 ? 0 : t->laid / p->lay);
}

/* The links were measured with equal parts at all nodes, so the slowest one determined their rate.
 * Where parts follow speeds or move to other nodes, others carry more. */
static void follow_links(sherd__cost_input *in, const forecast *w, const sherd__traffic *t,
                         bool links_measured)
{
    double nodes = w->nodes.count, tasks = (double)t->tasks, speed = in->node_gflops * 1e9;
    if (!w->nodes.remote || !links_measured || !w->nodes.paces || !(tasks > 0)) return;
    double bytes = (double)(t->out > t->in ? t->out : t->in), slow = in->link_rate / nodes;
    double slow_s = fmax(t->multiplied / speed, bytes / slow) / tasks;
    double fast_s = fmax(t->multiplied / speed * t->busiest, bytes / slow * t->busiest_link) *
                    nodes / tasks;
    in->link_rate = slow / t->busiest_link;
    if (t->moves && slow_s > SHERD__WEIGHTS_SLOWER * fast_s)
        in->tail_s = fmin(slow_s, SHERD__TAKE_OVER_S + (SHERD__TAKE_OVER_TIMES + 1) * fast_s);
}

/* Finds the node that sets the pace, and its rate. Without nodes the rate is that of one like this
 * machine. */
static int find_pace(sherd__pace *pace, const forecast *w, const sherd__traffic *t,
                     const measured *m, const sherd_forecast *out)
{
    const sherd__nodes *n = &w->nodes;
    const double here = m->gflops * threads_of(n), given = out->rates.node_gflops;
    const sherd__pace_work work = {
        .in = m->in,
        .flops = t->multiplied,
        .copied = (double)(t->out + t->in) + t->expanded,
        .copied_all = (double)t->first,
        .here_gflops = here,
        .coded = out->threshold > 0,
        .spare = out->slack,
    };
    *pace = (sherd__pace){ .node = UINT32_MAX };
    int err = n->each && !(given > 0) ? sherd__pace_find(pace, n, &work) : SHERD_OK;
    if (given > 0) pace->gflops = given;
    if (!(pace->gflops > 0)) pace->gflops = here > 0 ? here : n->gflops > 0 ? n->gflops : 1;
    return err;
}

static const char *arithmetic_of(const measured *m)
{
    static const char *const names[] = {
        [SHERD__IN_F64] = "float64", [SHERD__IN_RESIDUES] = "residues", [SHERD__IN_BYTES] = "bytes"
    };
    return names[m->in];
}

static void predict(sherd_forecast *out, const forecast *w, const sherd__traffic *t,
                    const measured *m, const sherd__pace *pace)
{
    static const char *const bounds[] = {
        [SHERD__BOUND_CORES] = "cores",         [SHERD__BOUND_NODES] = "nodes",
        [SHERD__BOUND_LINKS] = "links",         [SHERD__BOUND_HERE] = "here",
        [SHERD__BOUND_DEVICES] = "device link",
    };
    const sherd__nodes *n = &w->nodes;
    const uint32_t sharing = on_cores(n);
    sherd__cost_input in = {
        .bytes_out = t->out,
        .bytes_in = t->in,
        .bytes_first = t->first,
        .tasks = t->tasks,
        .flops = t->multiplied,
        .convert_s = sharing || !out->devices ? conversions(t, m) : 0,
        .copied = pace->copied,
        .busiest = t->busiest,
        .hide_s = m->own.hide_s,
        .fold_s = m->own.fold_s,
        .fill_s = m->own.fill_s,
        .positions = out->panels * out->tiles,
        .cores = sherd__cpu_usable(),
        .local = !n->remote,
        .apart = n->remote || !n->count ? 0 : (double)(n->count - sharing) / n->count,
        .core_gflops = m->gflops * threads_of(n),
        .node_gflops = pace->gflops,
        .node_threads = threads_of(n),
        .copy_rate = pace->copy_rate,
        .session_rate = out->rates.session,
        .link_rate = out->rates.link,
        .latency_s = out->latency,
        .depth = w->p.plan.depth,
    };
    sherd__cost cost;
    out->rates.node_gflops = in.node_gflops;
    follow_links(&in, w, t, out->latency > 0);
    sherd__cost_predict(&cost, &in);
    out->seconds = w->prepare_s + cost.seconds; /* nothing is sent while preparing */
    out->seconds_nodes = cost.nodes_s;
    out->seconds_links = cost.links_s;
    out->seconds_here = cost.here_s;
    out->seconds_cores = cost.cores_s;
    out->seconds_copies = cost.copies_s;
    out->copy_rate = pace->copy_rate;
    out->arithmetic = arithmetic_of(m);
    if (pace->uneven && pace->node < n->count)
        snprintf(out->pace, sizeof out->pace, "%s", n->each[pace->node].name);
    out->bound = bounds[cost.bound ? cost.bound : SHERD__BOUND_HERE];
}

/* Returns whether all panels of A but the last are sent with the same sizes: under a private scheme
 * sizes follow from shapes, and otherwise no entry is zero, also after rounding. Counting what is
 * not zero in each panel, group and tile would take minutes for a large A. */
static bool is_alike(const forecast *w)
{
    if (sherd_scheme_private(w->opt->scheme)) return true;
    if (!w->opt->profile_a) return false;
    const sherd__scan *scan = sherd__profile_scan(w->opt->profile_a);
    double least = w->p.exact ? ldexp(0.5, -w->p.fixed_a.scale) : 0; /* rounding is to even */
    return scan->nonzeros == (uint64_t)w->a.rows * w->a.cols && scan->min_abs > least;
}

static int run(sherd_forecast *out, forecast *w, const sherd_forecast_options *f, sherd_diag *d)
{
    sherd__traffic t;
    sherd__pace pace;
    measured m = { .gflops = 0 };
    look(out, w);
    w->alike = w->alike || is_alike(w);
    int err = sherd__traffic_count(&t, &w->p, w->alike, &f->hooks);
    if (!err) err = ask(f);
    if (!err && !f->no_time) {
        static pthread_mutex_t blas = PTHREAD_MUTEX_INITIALIZER; /* of the BLAS threads */
        pthread_mutex_lock(&blas);
        /* Measured first: BLAS threads spin for a tenth of a second after a product, and must not
         * disturb the other measurements or the product itself. */
        double own = 0, given = f->rates.gflops;
        if (!(given > 0) && !f->no_measurements)
            own = own_speed(w->a.rows, w->a.cols, w->b.cols, f);
        err = ask(f);
        if (!err) err = measure(w, &t, f, &m, &out->rates);
        if (!err) find_own(out, w, &m, given, own);
        if (!err) err = find_pace(&pace, w, &t, &m, out);
        pthread_mutex_unlock(&blas);
    }
    if (err == SHERD_EINTERRUPTED) return sherd__fail(d, err, NULL, "interrupted");
    if (err) return sherd__fail_to(d, err, "forecast");
    out->tasks = t.tasks;
    out->bytes_out = t.out;
    out->bytes_in = t.in;
    out->at_most = t.at_most;
    out->tasks_csr = t.tasks_csr;
    out->flops = t.flops;
    if (f->no_time) return SHERD_OK;
    out->latency = w->nodes.remote ? f->latency : 0;
    predict(out, w, &t, &m, &pace);
    return SHERD_OK;
}

static int forecast_product(sherd_view a, sherd_view b, const sherd_product_options *opt,
                            const sherd_forecast_options *f, sherd_forecast *out, sherd_diag *d)
{
    forecast w = { .a = stand_in(a), .b = stand_in(b), .opt = opt, .alike = !a.data };
    sherd_diag own = { 0 };
    if (!d) d = &own;
    int err = sherd__view_check(w.a, "A", d);
    if (!err) err = sherd__view_check(w.b, "B", d);
    if (!err) err = sherd__profile_check(opt->profile_a, a, "A", d);
    if (!err) err = sherd__profile_check(opt->profile_b, b, "B", d);
    if (!err) err = find_nodes(&w, f, d);
    bool folds = !f->no_time && !f->no_measurements;
    w.part = !f->result && !is_small(a.rows, b.cols);
    if (!err && folds && !w.part) err = take_result(&w, f->result, d);
    if (!err) {
        bool look_only = !folds || w.part || uses_up_masks(opt);
        double began = sherd__clock_busy_s();
        err = sherd__prepare_multiply(&w.p,
                                      &(sherd__matrices){ w.a, w.b, look_only ? NULL : w.c,
                                                          w.b.cols },
                                      &w.nodes, opt, d);
        w.prepare_s = sherd__clock_busy_s() - began;
        if (!err) {
            err = ask(f) ? sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted")
                         : run(out, &w, f, d);
            sherd__prepared_fini(&w.p);
        }
    }
    sherd__free(w.own_c);
    sherd__free(w.domain);
    return err;
}

int sherd_forecast_multiply(sherd_view a, sherd_view b, const sherd_product_options *opt,
                            const sherd_forecast_options *f, sherd_forecast *out, sherd_diag *d)
{
    sherd_product_options own;
    sherd_forecast_options with;
    sherd_forecast found = { .bound = "", .arithmetic = "" };
    int err = sherd__result_check(out, "sherd_forecast", d);
    if (!err) err = sherd__product_options_read(&own, opt, d);
    if (!err) err = sherd__options_read(&with, sizeof with, f, "sherd_forecast_options", d);
    if (err) return err;
    if (sherd__hooks_any(&with.hooks)) own.hooks = with.hooks; /* preparing asks these */
    own.hooks.progress = NULL;                                 /* it counts tasks */
    err = forecast_product(a, b, &own, &with, &found, d);
    if (!err) sherd__result_write(out, &found, sizeof found);
    return err;
}

static const sherd_field forecast_fields[] = {
    SHERD__FIELD(sherd_forecast, scheme, U32, "", "number of the scheme"),
    SHERD__FIELD(sherd_forecast, nodes, U32, "", "nodes"),
    SHERD__FIELD(sherd_forecast, primes, U32, "", "primes; 0: one product in float64"),
    SHERD__FIELD(sherd_forecast, blocks, U32, "", "blocks that A is cut into"),
    SHERD__FIELD(sherd_forecast, threshold, U32, "", "answers that decode"),
    SHERD__FIELD(sherd_forecast, slack, U32, "", "answers that may be missing"),
    SHERD__FIELD(sherd_forecast, panels, U64, "", "row panels"),
    SHERD__FIELD(sherd_forecast, tiles, U64, "", "column tiles"),
    SHERD__FIELD(sherd_forecast, tasks, U64, "", "tasks to compute"),
    SHERD__FIELD_ENUM(sherd_forecast, encoding, sherd__encoding_names, "how A is sent"),
    SHERD__FIELD(sherd_forecast, tasks_csr, U64, "", "tasks with a panel in CSR"),
    SHERD__FIELD(sherd_forecast, seconds_dense, F64, "s",
                 "parts that depend on the encoding, if A is sent dense"),
    SHERD__FIELD(sherd_forecast, seconds_csr, F64, "s",
                 "parts that depend on the encoding, if A is sent in CSR"),
    SHERD__FIELD(sherd_forecast, bytes_out, U64, "bytes", "sent to the nodes"),
    SHERD__FIELD(sherd_forecast, bytes_in, U64, "bytes", "received from the nodes"),
    SHERD__FIELD(sherd_forecast, at_most, BOOL, "", "the numbers of bytes are upper bounds"),
    SHERD__FIELD(sherd_forecast, flops, F64, "", "operations of all nodes; a multiply-add is two"),
    SHERD__FIELD(sherd_forecast, node_memory, U64, "bytes", "held by one node at most"),
    SHERD__FIELD(sherd_forecast, exposure_a, F64, "fraction", "of A, to the most exposed node"),
    SHERD__FIELD(sherd_forecast, exposure_b, F64, "fraction", "of B, to the most exposed node"),
    SHERD__FIELD(sherd_forecast, seconds, F64, "s", "time until the result is in memory"),
    SHERD__FIELD(sherd_forecast, seconds_nodes, F64, "s", "the nodes' products alone"),
    SHERD__FIELD(sherd_forecast, seconds_links, F64, "s", "the links alone"),
    SHERD__FIELD(sherd_forecast, seconds_here, F64, "s", "this machine's own work alone"),
    SHERD__FIELD(sherd_forecast, seconds_cores, F64, "s", "all work on this machine's cores"),
    SHERD__FIELD(sherd_forecast, bound, NAME, "", "the part that limits the time"),
    SHERD__FIELD(sherd_forecast, own_seconds, F64, "s", "the same product by dgemm here"),
    SHERD__FIELD(sherd_forecast, rates.gflops, F64, "1e9/s", "rate of the product on this machine"),
    SHERD__FIELD(sherd_forecast, rates.node_gflops, F64, "1e9/s", "rate of one node"),
    SHERD__FIELD(sherd_forecast, rates.session, F64, "bytes/s", "rate of one thread, in sessions"),
    SHERD__FIELD(sherd_forecast, rates.link, F64, "bytes/s", "rate of all links together"),
    SHERD__FIELD(sherd_forecast, latency, F64, "s", "until the answer of a small task is here"),
    SHERD__FIELD(sherd_forecast, local, BOOL, "", "the nodes share this machine's cores"),
    SHERD__FIELD_ENUM(sherd_forecast, code, sherd__code_names, "code of the shares"),
    SHERD__FIELD(sherd_forecast, devices, U32, "", "nodes that compute on devices"),
    SHERD__FIELD(sherd_forecast, seconds_copies, F64, "s",
                 "copies to the devices of a node and from them alone"),
    SHERD__FIELD(sherd_forecast, copy_rate, F64, "bytes/s", "rate of these copies"),
    SHERD__FIELD(sherd_forecast, arithmetic, NAME, "", "kind of the nodes' products"),
    SHERD__FIELD(sherd_forecast, pace, TEXT, "", "node that all wait for"),
};
SHERD__FIELDS(sherd_forecast, forecast_fields)
