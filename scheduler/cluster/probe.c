/*
 * How fast a cluster's links are, where they leave this machine, by products whose operands are one
 * number over and over: first one of a large B, which every node is sent whole, then one of a large
 * result. They go the way that every product goes, so that what is measured is what a product will
 * find: sessions, cipher, network, and the thread here that serves them all. A link that takes long
 * for little is not asked for more.
 */
#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "sherd/forecast.h"
#include "wire/link_rate.h"

#define ROWS 8u                     /* of the result, from each node */
#define SMALL (UINT64_C(256) << 10) /* bytes for each node, at first */
#define LARGE (UINT64_C(8) << 20)
#define ALL (UINT64_C(64) << 20) /* for all nodes together */
#define SLOW_S 0.1               /* SMALL has told enough then */

typedef struct probed {
    double bytes, seconds;
} probed;

/* A of n x k times B of k x m, all ones. */
static int product(probed *sum, sherd_cluster *c, size_t n, size_t k, size_t m, sherd_diag *d)
{
    static const double one = 1;
    sherd_view a = { .data = &one, .rows = n, .cols = k, .dtype = SHERD_F64 };
    sherd_view b = { .data = &one, .rows = k, .cols = m, .dtype = SHERD_F64 };
    sherd_product_options opt;
    sherd_report r = { 0 };
    double *out = sherd__calloc(n * m, sizeof *out);
    if (!out) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    sherd_product_options_init(&opt);
    opt.scheme = SHERD_PLAIN;
    double began = sherd__clock_s();
    int err = sherd_multiply(c, a, b, out, m, &opt, &r, d);
    sum->seconds += sherd__clock_s() - began;
    sum->bytes += (double)r.work_out + (double)r.work_in;
    sherd_report_fini(&r);
    sherd__free(out);
    return err;
}

/* About `bytes` to each node, and about as many back. */
static int both_ways(probed *sum, sherd_cluster *c, uint64_t bytes, sherd_diag *d)
{
    size_t nodes = sherd_cluster_size(c), side = 1;
    *sum = (probed){ 0 };
    while (16 * side * side * 2 <= bytes) side *= 2;
    int err = product(sum, c, nodes, bytes / 8 / side, side, d);
    return err ? err : product(sum, c, nodes * ROWS, 1, bytes / 8 / ROWS, d);
}

int sherd_rates_probe(sherd_rates *rates, sherd_cluster *c, sherd_diag *d)
{
    uint64_t most = ALL / sherd_cluster_size(c);
    probed sum;
    rates->session = sherd__link_rate_here();
    if (sherd_cluster_simulated(c)) return SHERD_OK; /* there is no link but this */
    int err = both_ways(&sum, c, SMALL, d);          /* also wakes what sleeps */
    if (!err && sum.seconds < SLOW_S) err = both_ways(&sum, c, most < LARGE ? most : LARGE, d);
    if (err) return err;
    double rate = sum.bytes / (sum.seconds > 0 ? sum.seconds : 1e-9);
    rates->link = rate;
    return SHERD_OK;
}
