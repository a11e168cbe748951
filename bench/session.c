/*
 * One node, one connection: how fast blocks arrive in its store, and how many small products per
 * second it answers. Measured at the session (scheduler/cluster/measure.h), below jobs and schemes.
 * The time of a public call on a resident operand is printed with the round trip.
 */
#include <string.h>

#include "bench/bench.h"
#include "cli/process.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "scheduler/cluster/measure.h"
#include "sherd/product.h"

static int open_node(sherd__measure **out, sherd__bench *b, sherd_diag *d)
{
    sherd__measure_options opt = { .program = SHERD__SELF,
                                   .hooks = { sherd__bench_interrupted, NULL, NULL, b } };
    return sherd__measure_new(out, &opt, d);
}

int sherd__bench_connection(sherd__bench *b, sherd_diag *d)
{
    sherd__figure f = { .name = "connection",
                        .unit = "GB/s",
                        .better = SHERD__HIGHER,
                        .target = 1.5,
                        .what = "one connection into a block store, 64 MB blocks" };
    size_t rows = b->quick ? 100 : 1000, cols = b->quick ? 800 : 8000;
    uint32_t count = 16;
    int runs = sherd__bench_runs(b, 5);
    sherd__measure *m;
    double seconds = 0;
    int err = open_node(&m, b, d);
    if (!err) err = sherd__measure_blocks(m, rows, cols, count, &seconds, d); /* warms up */
    for (int i = 0; i < runs && !err; i++) {
        err = sherd__measure_blocks(m, rows, cols, count, &seconds, d);
        sherd__figure_add(&f, 8e-9 * (double)(rows * cols) * count / seconds);
    }
    sherd__measure_free(m);
    if (err) return err;
    sherd__figure_beside(&f, "block_mb", "blocks of", 8e-6 * (double)(rows * cols), "MB");
    sherd__figure_beside(&f, "blocks", "in each run", count, "blocks");
    sherd__bench_tell(b, &f);
    return 0;
}

/* ---- small products -------------------------------------------------------------------------- */

#define DIM 64u

static const uint32_t depths[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256 };

/* Tries the depths; *best is the fastest. */
static int find_depth(sherd__measure *m, uint32_t tasks, uint32_t *best, sherd_diag *d)
{
    double least = 0, seconds = 0;
    int err = 0;
    for (size_t i = 0; i < sizeof depths / sizeof *depths && !err; i++) {
        err = sherd__measure_products(m, DIM, depths[i], tasks, &seconds, NULL, d);
        if (i == 0 || seconds < least) {
            least = seconds;
            *best = depths[i];
        }
    }
    return err;
}

static int run_tasks(sherd__bench *b, sherd__measure *m, sherd__figure *rate, sherd__figure *trip,
                     uint32_t *depth, sherd_diag *d)
{
    uint32_t tasks = b->quick ? 500 : 20000;
    int runs = sherd__bench_runs(b, 5);
    int err = find_depth(m, tasks / 4, depth, d);
    for (int i = 0; i < runs && !err; i++) {
        double seconds = 0, median = 0;
        err = sherd__measure_products(m, DIM, *depth, tasks, &seconds, NULL, d);
        if (err) break;
        sherd__figure_add(rate, tasks / seconds);
        err = sherd__measure_products(m, DIM, 1, tasks / 4, &seconds, &median, d);
        sherd__figure_add(trip, median * 1e6);
    }
    return err;
}

/* Returns the median time of sherd_resident_multiply with 64 rows on one node. */
static int time_resident(sherd__bench *b, double *median, sherd_diag *d)
{
    static double a[DIM * DIM], kept[DIM * DIM], out[DIM * DIM];
    double took[SHERD__BENCH_RUNS_MAX];
    sherd_cluster_options co = { .size = sizeof co,
                                 .local_nodes = 1,
                                 .program = SHERD__SELF,
                                 .hooks = { sherd__bench_interrupted, NULL, NULL, b } };
    sherd_view va = sherd_view_c(a, SHERD_F64, DIM, DIM);
    sherd_view vb = sherd_view_c(kept, SHERD_F64, DIM, DIM);
    sherd_cluster *cluster = NULL;
    sherd_resident *resident = NULL;
    sherd_product_options po = { .size = sizeof po };
    int n = 0;
    for (size_t i = 0; i < DIM * DIM; i++) a[i] = kept[i] = (double)(i % 7);
    int err = sherd_cluster_open(&cluster, &co, d);
    if (!err) err = sherd_resident_new(&resident, cluster, vb, DIM, &po, d);
    for (; n < SHERD__BENCH_RUNS_MAX && !err; n++) {
        double began = sherd__clock_s();
        err = sherd_resident_multiply(resident, va, out, DIM, NULL, d);
        took[n] = sherd__clock_s() - began;
    }
    sherd_resident_free(resident);
    sherd_cluster_close(cluster);
    *median = sherd__median(took, n);
    return err;
}

int sherd__bench_tasks(sherd__bench *b, sherd_diag *d)
{
    sherd__figure rate = { .name = "tasks-rate",
                           .unit = "tasks/s",
                           .better = SHERD__HIGHER,
                           .target = 20000,
                           .what = "64 x 64 products, B resident, one node" };
    sherd__figure trip = { .name = "tasks-round-trip",
                           .unit = "us",
                           .target = 200,
                           .what = "  round trip, one at a time (median of each run)" };
    sherd__measure *m;
    uint32_t depth = 0;
    double resident = 0;
    int err = open_node(&m, b, d);
    if (!err) err = run_tasks(b, m, &rate, &trip, &depth, d);
    sherd__measure_free(m);
    if (!err) err = time_resident(b, &resident, d);
    if (err) return err;
    sherd__figure_beside(&rate, "depth", "depth", depth, "");
    sherd__figure_beside(&trip, "resident_us", "a call of sherd_resident_multiply with 64 rows",
                         resident * 1e6, "us");
    sherd__bench_tell(b, &rate);
    sherd__bench_tell(b, &trip);
    return 0;
}
