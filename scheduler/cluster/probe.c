/*
 * Measures the speed of a cluster's links if they leave this machine. Uses products of operands
 * that repeat one number: first one with a large B, which is sent whole to every node, then one
 * with a large result. They take the path of every product (sessions, cipher, network, and the
 * thread here that serves them all), so the result applies to later products. If a small product
 * takes long, no larger one is sent.
 */
#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "scheduler/cluster/state.h"
#include "sherd/forecast.h"
#include "wire/link_rate.h"

#define ROWS 8u                     /* of the result, per node */
#define SMALL (UINT64_C(256) << 10) /* bytes per node, first measurement */
#define LARGE (UINT64_C(8) << 20)
#define ALL (UINT64_C(64) << 20)     /* for all nodes together */
#define GLANCE (UINT64_C(512) << 10) /* bytes per node, to compare nodes */
#define GLANCE_COLS 64u
#define SLOW_S 0.1 /* if SMALL takes longer, it is accurate enough */

typedef struct probed {
    double bytes, seconds;
    uint32_t timeout_ms; /* of each product; 0: none */
} probed;

/* Multiplies A (n x k) by B (k x m), all ones, and adds the bytes and seconds to *sum. */
static int product(probed *sum, sherd_cluster *c, size_t n, size_t k, size_t m, sherd_diag *d)
{
    static const double one = 1;
    sherd_view a = { .data = &one, .rows = n, .cols = k, .dtype = SHERD_F64 };
    sherd_view b = { .data = &one, .rows = k, .cols = m, .dtype = SHERD_F64 };
    const sherd_product_options opt = { .size = sizeof opt,
                                        .scheme = SHERD_PLAIN,
                                        .timeout_ms = sum->timeout_ms };
    sherd_report r = { .size = sizeof r };
    double *out = sherd__calloc(n * m, sizeof *out);
    if (!out) return sherd__fail_memory(d, "a product of %zu x %zu", n, m);
    double began = sherd__clock_s();
    int err = sherd_multiply(c, a, b, out, m, &opt, &r, d);
    sum->seconds += sherd__clock_s() - began;
    sum->bytes += (double)r.work_out + (double)r.work_in;
    sherd_report_fini(&r);
    sherd__free(out);
    return err;
}

/* Sends about `bytes` to each node and receives about as many. */
static int both_ways(probed *sum, sherd_cluster *c, uint64_t bytes, sherd_diag *d)
{
    size_t nodes = sherd_cluster_size(c), side = 1;
    *sum = (probed){ 0 };
    while (16 * side * side * 2 <= bytes) side *= 2;
    int err = product(sum, c, nodes, bytes / 8 / side, side, d);
    return err ? err : product(sum, c, nodes * ROWS, 1, bytes / 8 / ROWS, d);
}

int sherd__rates_glance(sherd_cluster *c, uint32_t timeout_ms)
{
    probed sum = { .timeout_ms = timeout_ms };
    /* One row and one task for each node, none of which another node takes over. */
    return product(&sum, c, sherd_cluster_size(c), GLANCE / 8 / GLANCE_COLS, GLANCE_COLS, NULL);
}

int sherd_rates_probe(sherd_cluster *c, sherd_rates *rates, sherd_diag *d)
{
    uint64_t most = ALL / sherd_cluster_size(c);
    probed sum;
    rates->session = sherd__link_rate_here();
    if (sherd_cluster_simulated(c)) return SHERD_OK; /* no link leaves this machine */
    int err = both_ways(&sum, c, SMALL, d);          /* also wakes idle hardware */
    if (!err && sum.seconds < SLOW_S) err = both_ways(&sum, c, most < LARGE ? most : LARGE, d);
    if (err) return err;
    double rate = sum.bytes / (sum.seconds > 0 ? sum.seconds : 1e-9);
    rates->link = rate;
    return SHERD_OK;
}
