/*
 * Uses products of operands that repeat one number, which take the path of every product (sessions,
 * cipher, network, and the thread here that serves them all): small ones for the latency, then
 * pairs of one with a large B, which is sent whole to every node, and one with a large result. The
 * pairs grow until one takes long enough to be measured, so a slow link carries few bytes and a
 * fast one is not judged by its first packets.
 */
#include "scheduler/cluster/probe.h"

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/hooks.h"
#include "scheduler/cluster/state.h"
#include "sherd/forecast.h"
#include "wire/link_rate.h"

#define ROWS 8u                      /* of the result, per node */
#define SMALL (UINT64_C(16) << 10)   /* bytes per node and direction of the first pair */
#define LARGE (UINT64_C(8) << 20)    /* of the largest */
#define ALL (UINT64_C(64) << 20)     /* of all nodes together */
#define GROWS 8u                     /* most from one pair to the next */
#define ENOUGH_S 0.1                 /* a pair that takes longer is accurate enough */
#define AIM_S 0.2                    /* expected time of the next pair */
#define ROUNDS 3u                    /* of the latency; the least counts */
#define TIMEOUT_MS 10000u            /* of one product */
#define GLANCE (UINT64_C(512) << 10) /* bytes per node, to compare nodes */
#define GLANCE_COLS 64u

typedef struct probed {
    double bytes, seconds;
} probed;

typedef struct probe {
    sherd_cluster *cluster;
    sherd_hooks hooks;
    uint32_t timeout_ms; /* of each product; 0: none */
} probe;

/* Multiplies A (n x k) by B (k x m), all ones, and adds the bytes and seconds to *sum. */
static int product(probed *sum, const probe *p, size_t n, size_t k, size_t m, sherd_diag *d)
{
    static const double one = 1;
    sherd_view a = { .data = &one, .rows = n, .cols = k, .dtype = SHERD_F64 };
    sherd_view b = { .data = &one, .rows = k, .cols = m, .dtype = SHERD_F64 };
    const sherd_product_options opt = {
        .size = sizeof opt, .scheme = SHERD_PLAIN, .timeout_ms = p->timeout_ms, .hooks = p->hooks
    };
    sherd_report r = { .size = sizeof r };
    double *out = sherd__calloc(n * m, sizeof *out);
    if (!out) return sherd__fail_memory(d, "a product of %zu x %zu", n, m);
    double began = sherd__clock_s();
    p->cluster->probing = true;
    int err = sherd_multiply(p->cluster, a, b, out, m, &opt, &r, d);
    p->cluster->probing = false;
    sum->seconds += sherd__clock_s() - began;
    sum->bytes += (double)r.work_out + (double)r.work_in;
    sherd_report_fini(&r);
    sherd__free(out);
    return err;
}

/* Sends about `bytes` to each node and receives about as many. */
static int both_ways(probed *sum, const probe *p, uint64_t bytes, sherd_diag *d)
{
    size_t nodes = sherd_cluster_size(p->cluster), side = 1;
    *sum = (probed){ 0 };
    while (16 * side * side * 2 <= bytes) side *= 2;
    int err = product(sum, p, nodes, bytes / 8 / side, side, d);
    return err ? err : product(sum, p, nodes * ROWS, 1, bytes / 8 / ROWS, d);
}

/* The first small product also wakes idle hardware. */
static int find_latency(double *latency, const probe *p, sherd_diag *d)
{
    int err = SHERD_OK;
    for (unsigned i = 0; i < ROUNDS && !err; i++) {
        probed one = { 0 };
        err = product(&one, p, sherd_cluster_size(p->cluster), 1, 1, d);
        if (i == 0 || one.seconds < *latency) *latency = one.seconds;
    }
    return err;
}

uint64_t sherd__probe_next(uint64_t bytes, double seconds, uint64_t most)
{
    if (seconds >= ENOUGH_S || bytes >= most) return 0;
    double grows = seconds > AIM_S / GROWS ? AIM_S / seconds : GROWS;
    uint64_t next = (uint64_t)((double)bytes * grows);
    return next < most ? next : most;
}

/* What a probe found. */
typedef struct links {
    double rate, latency; /* as in sherd_forecast_options */
} links;

static int find_links(links *out, const probe *p, sherd_diag *d)
{
    uint64_t most = ALL / sherd_cluster_size(p->cluster), bytes = SMALL;
    int err = find_latency(&out->latency, p, d);
    if (most > LARGE) most = LARGE;
    if (bytes > most) bytes = most;
    while (!err && bytes > 0) {
        probed pair;
        err = both_ways(&pair, p, bytes, d);
        /* Each of the two products waits for a round trip, however many bytes it transfers. */
        double least = pair.seconds / 10, net = pair.seconds - 2 * out->latency;
        if (net < least) net = least;
        out->rate = pair.bytes / (net > 0 ? net : 1e-9);
        bytes = sherd__probe_next(bytes, net, most);
    }
    return err;
}

static int measure_links(links *out, sherd_cluster *c, const sherd_hooks *hooks, sherd_diag *d)
{
    const probe p = { c, { .interrupted = hooks->interrupted, .ctx = hooks->ctx }, TIMEOUT_MS };
    sherd_diag own = { 0 };
    int err = find_links(out, &p, &own);
    if (!err) return SHERD_OK;
    if (err == SHERD_EINTERRUPTED) return sherd__fail(d, err, own.hint, "%s", own.message);
    return sherd__fail(d, err, own.hint, "the links to the nodes cannot be measured: %s",
                       own.message);
}

int sherd_forecast_probe(sherd_forecast_options *f, sherd_diag *d)
{
    links found = { 0 };
    if (!f || f->size < sizeof *f || !f->cluster)
        return sherd__fail(d, SHERD_EINVAL, "set size, and cluster to an open one",
                           "the options of a forecast name no cluster to measure");
    if (f->rates.link > 0 || sherd_cluster_simulated(f->cluster)) return SHERD_OK;
    int err = measure_links(&found, f->cluster, &f->hooks, d);
    if (err) return err;
    f->rates.link = found.rate;
    f->latency = found.latency;
    return SHERD_OK;
}

int sherd__rates_glance(sherd_cluster *c, const sherd_hooks *hooks, uint32_t timeout_ms,
                        sherd_diag *d)
{
    const probe p = { c, { .interrupted = hooks->interrupted, .ctx = hooks->ctx }, timeout_ms };
    probed sum = { 0 };
    /* One row and one task for each node, none of which another node takes over. */
    return product(&sum, &p, sherd_cluster_size(c), GLANCE / 8 / GLANCE_COLS, GLANCE_COLS, d);
}

int sherd_rates_probe(sherd_cluster *c, sherd_rates *rates, sherd_diag *d)
{
    sherd_forecast_options f = { .size = sizeof f, .cluster = c };
    rates->session = sherd__link_rate_here();
    int err = sherd_forecast_probe(&f, d);
    if (!err && f.rates.link > 0) rates->link = f.rates.link;
    return err;
}
