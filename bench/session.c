/*
 * One node, one connection: how fast blocks arrive in its store, and how many small products per
 * second it answers. Measured at the session (scheduler/cluster/measure.h), below jobs and schemes.
 * The time of a public call on a resident operand is printed with the round trip.
 */
#include "bench/bench.h"
#include "scheduler/cluster/measure.h"

typedef struct session {
    sherd__measure *measure;
    uint32_t depth; /* the fastest */
} session;

static int open_session(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    const sherd__measure_options opt = { .program = SHERD__SELF,
                                         .hooks = { sherd__bench_interrupted, NULL, NULL, b } };
    (void)spec;
    return sherd__measure_new(&((session *)state)->measure, &opt, d);
}

static void close_session(void *state)
{
    sherd__measure_free(((session *)state)->measure);
}

static int turn_connection(sherd__bench *b, void *state, sherd_diag *d)
{
    const size_t rows = b->quick ? 100 : 1000, cols = b->quick ? 800 : 8000;
    const uint32_t count = 16;
    double seconds = 1;
    int err = sherd__measure_blocks(((session *)state)->measure, rows, cols, count, &seconds, d);
    sherd__bench_put(b, "bytes", 8.0 * (double)(rows * cols));
    sherd__bench_put(b, "blocks", count);
    sherd__bench_put(b, "rate", 8.0 * (double)(rows * cols) * count / seconds);
    return err;
}

const sherd__kind sherd__bench_connection = {
    sizeof(session), open_session, turn_connection, NULL, close_session, false, false
};

/* ---- small products -------------------------------------------------------------------------- */

#define DIM 64u

static int find_depth(session *s, uint32_t tasks, sherd_diag *d)
{
    double least = 0;
    sherd__measured got = { 0 };
    int err = 0;
    for (uint32_t depth = 1; depth <= 256 && !err; depth *= 2) {
        err = sherd__measure_products(s->measure, DIM, depth, tasks, &got, d);
        if (depth > 1 && got.seconds >= least) continue;
        least = got.seconds;
        s->depth = depth;
    }
    return err;
}

static int turn_tasks(sherd__bench *b, void *state, sherd_diag *d)
{
    session *s = state;
    const uint32_t tasks = b->quick ? 500 : 20000;
    sherd__measured all = { .seconds = 1 }, one = { 0 };
    if (b->warming) return find_depth(s, tasks / 4, d);
    int err = sherd__measure_products(s->measure, DIM, s->depth, tasks, &all, d);
    if (!err) err = sherd__measure_products(s->measure, DIM, 1, tasks / 4, &one, d);
    sherd__bench_put(b, "rate", tasks / all.seconds);
    sherd__bench_put(b, "trip", one.median);
    sherd__bench_put(b, "depth", s->depth);
    return err;
}

/* Times sherd_resident_multiply with 64 rows on one node. */
static int end_tasks(sherd__bench *b, void *state, sherd_diag *d)
{
    static double a[DIM * DIM], kept[DIM * DIM], out[DIM * DIM];
    const sherd_view va = sherd_view_c(a, SHERD_F64, DIM, DIM),
                     vb = sherd_view_c(kept, SHERD_F64, DIM, DIM);
    const sherd_product_options opt = { .size = sizeof opt };
    sherd_cluster *cluster = NULL;
    sherd_resident *resident = NULL;
    (void)state;
    for (size_t i = 0; i < DIM * DIM; i++) a[i] = kept[i] = (double)(i % 7);
    int err = sherd__bench_cluster(&cluster, b, 1, NULL, d);
    if (!err) err = sherd_resident_new(&resident, cluster, vb, DIM, &opt, d);
    for (int i = 0; i < SHERD__BENCH_RUNS_MAX && !err; i++) {
        double began = sherd__clock_s();
        err = sherd_resident_multiply(resident, va, out, DIM, NULL, d);
        sherd__bench_put(b, "resident", sherd__clock_s() - began);
    }
    sherd_resident_free(resident);
    sherd_cluster_close(cluster);
    return err;
}

const sherd__kind sherd__bench_tasks = { sizeof(session), open_session, turn_tasks, end_tasks,
                                         close_session,   false,        false };
