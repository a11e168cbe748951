/*
 * Products over seven local nodes: the layer with one permutation per column, compared with numpy's
 * loop over fragments, and large squares with one permutation per node, compared with one dgemm
 * here.
 *
 * The measured time is from operands in memory to the result in memory, with the nodes running.
 * Runs that are compared alternate, so that both meet the same load. The first rows of each result
 * are compared with the product computed here, since a figure of a wrong product means nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/verbs.h"
#include "cli/node.h"
#include "cli/process.h"
#include "core/clock.h"
#include "matrix/compare.h"
#include "matrix/gemm.h"
#include "sherd/npy.h"
#include "sherd/product.h"

#define JUDGED_ROWS 128u
#define SETTLE_NS 50000000 /* for BLAS threads to go to sleep after their last product */

static void log_line(void *ctx, sherd_log_level level, const char *text)
{
    const sherd__bench *b = ctx;
    if (level == SHERD_LOG_WARN) sherd__cli_warn(b->cli, "%s", text);
}

int sherd__bench_open(sherd_cluster **out, sherd__bench *b, uint32_t nodes, sherd_diag *d)
{
    sherd_cluster_options opt = { .size = sizeof opt,
                                  .local_nodes = nodes,
                                  .program = SHERD__SELF,
                                  .hooks = { sherd__bench_interrupted, log_line, NULL, b } };
    return sherd_cluster_open(out, &opt, d);
}

int sherd__bench_open_liars(sherd_cluster **out, sherd__bench *b, uint32_t nodes, sherd_diag *d)
{
    sherd_cluster_options opt = { .size = sizeof opt,
                                  .local_nodes = nodes,
                                  .program = SHERD__SELF,
                                  .program_verb = SHERD__BENCH_NODE,
                                  .hooks = { sherd__bench_interrupted, NULL, NULL, b } };
    return sherd_cluster_open(out, &opt, d);
}

int sherd__bench_multiply(sherd_cluster *cluster, const sherd__bench_pair *p, uint32_t group,
                          double *seconds, uint64_t *fragments, sherd_diag *d)
{
    sherd_product_options opt = { .size = sizeof opt };
    sherd_report r = { .size = sizeof r };
    opt.group = group;
    double began = sherd__clock_s();
    int err = sherd_multiply(cluster, p->a, p->b, p->c, p->b.cols, &opt, &r, d);
    *seconds = sherd__clock_s() - began;
    if (!err && r.nodes_lost + r.nodes_banned > 0)
        err = sherd__fail(d, SHERD_EFEWNODES, NULL, "a node was lost while it was measured");
    if (fragments) *fragments = r.fragments;
    sherd_report_fini(&r);
    return err;
}

static int judge(const sherd__bench_pair *p, sherd_diag *d)
{
    size_t rows = p->a.rows < JUDGED_ROWS ? p->a.rows : JUDGED_ROWS;
    sherd__compare found;
    int err = sherd__compare_product(sherd_view_sub(p->a, 0, rows, 0, p->a.cols), p->b, p->c,
                                     p->b.cols, &found, d);
    if (!err && found.beyond > 0)
        err = sherd__fail(d, SHERD_EDIFFERS, "please report this",
                          "%llu entries of the product lie beyond the bound of float64",
                          (unsigned long long)found.beyond);
    return err;
}

/* ---- whole commands -------------------------------------------------------------------------- */

static int save(sherd__bench *b, const sherd__bench_pair *p, char a[PATH_MAX], char w[PATH_MAX],
                sherd_diag *d)
{
    int err = sherd__bench_path(b, "A.npy", a, d);
    if (!err) err = sherd__bench_path(b, "B.npy", w, d);
    if (!err) err = sherd_npy_save(a, p->a, d);
    return err ? err : sherd_npy_save(w, p->b, d);
}

/* Times `sherd multiply` on files: starting and ending the nodes and writing the result
 * included. */
static int time_command(sherd__bench *b, const char *a, const char *w, const char *group,
                        double *seconds, sherd_diag *d)
{
    char c[PATH_MAX];
    sherd__child child = { 0 };
    const char *argv[] = {
        "multiply", a, w, "-o", c, "-n", "7", "--group", group, "--quiet", NULL
    };
    int err = sherd__bench_path(b, "C.npy", c, d);
    if (!err) err = sherd__child_self(&child, b, argv, d);
    *seconds = child.seconds;
    unlink(c);
    return err;
}

/* ---- --group 1 ------------------------------------------------------------------------------- */

static const char numpy_fragments[] =
    "import time\n"
    "A, B, most = np.load(sys.argv[1]), np.load(sys.argv[2]), int(sys.argv[3])\n"
    "k, m = B.shape\n"
    "rng = np.random.default_rng(1)\n"
    "enshuffles = np.array([rng.permutation(m) for c in range(k)])\n"
    "unshuffles = np.argsort(enshuffles, axis=1)\n"
    "def loop(hoist):\n"
    "    C = np.zeros((A.shape[0], m))\n"
    "    done, began = 0, time.perf_counter()\n"
    "    for c in rng.permutation(k):\n"
    "        row, back = B[c][enshuffles[c]], unshuffles[c]\n"
    "        for r in np.nonzero(A[:, c])[0]:\n"
    "            if hoist: C[r] += (A[r, c] * row)[back]\n"
    "            else: C[r] += (A[r, c] * B[c][enshuffles[c]])[unshuffles[c]]\n"
    "            done += 1\n"
    "            if done >= most: return done / (time.perf_counter() - began)\n"
    "    return done / (time.perf_counter() - began)\n"
    "print(loop(False), loop(True))\n";

typedef struct layer {
    sherd__bench_pair pair;
    sherd_cluster *cluster;
    char a[PATH_MAX], w[PATH_MAX];
    sherd__figure rate, ratio;
    double seconds[SHERD__BENCH_RUNS_MAX], loop[SHERD__BENCH_RUNS_MAX];
    double hoisted[SHERD__BENCH_RUNS_MAX], command;
    uint64_t fragments;
    int with; /* number of runs that numpy did, too */
} layer;

static int run_layer(sherd__bench *b, layer *l, int i, sherd_diag *d)
{
    const char *args[] = { l->a, l->w, b->quick ? "2000" : "200000", NULL };
    double np[2];
    sherd_diag mine = { 0 };
    int err = sherd__bench_multiply(l->cluster, &l->pair, 1, &l->seconds[i], &l->fragments, d);
    if (err) return err;
    double rate = (double)l->fragments / l->seconds[i];
    sherd__figure_add(&l->rate, rate);
    if (l->with < i) return 0; /* no numpy */
    err = sherd__numpy_run(b, numpy_fragments, args, 0, np, 2, &mine);
    if (err == SHERD_EUNSUPPORTED) return 0;
    if (err) return sherd__fail(d, err, mine.hint, "%s", mine.message);
    sherd__figure_add(&l->ratio, rate / np[0]);
    l->loop[l->with] = np[0];
    l->hoisted[l->with++] = np[1];
    return 0;
}

static int measure_layer(sherd__bench *b, layer *l, sherd_diag *d)
{
    int runs = sherd__bench_runs(b, 3);
    double warm;
    int err = sherd__bench_layer(&l->pair, b->quick ? 600 : 60000, d);
    if (!err) err = save(b, &l->pair, l->a, l->w, d);
    if (!err) err = sherd__bench_open(&l->cluster, b, SHERD__BENCH_NODES, d);
    if (!err) err = sherd__bench_multiply(l->cluster, &l->pair, 1, &warm, NULL, d);
    if (!err) err = judge(&l->pair, d);
    for (int i = 0; i < runs && !err; i++) err = run_layer(b, l, i, d);
    sherd_cluster_close(l->cluster);
    if (!err) err = time_command(b, l->a, l->w, "1", &l->command, d);
    return err;
}

static void tell_layer(sherd__bench *b, layer *l)
{
    char text[120];
    snprintf(text, sizeof text, "%s, %zu x %zu times %zu x %zu", l->pair.data, l->pair.a.rows,
             l->pair.a.cols, l->pair.b.rows, l->pair.b.cols);
    l->rate.remark = text;
    sherd__figure_beside(&l->rate, "fragments", "fragments", (double)l->fragments, "");
    sherd__figure_beside(&l->rate, "seconds", "product", sherd__median(l->seconds, l->rate.len),
                         "s");
    sherd__figure_beside(&l->rate, "command_seconds", "whole command", l->command, "s");
    if (l->with > 0) {
        sherd__figure_beside(&l->ratio, "numpy_rate", "numpy's loop",
                             sherd__median(l->loop, l->with), "fragments/s (sampled)");
        sherd__figure_beside(&l->ratio, "numpy_hoisted_rate", "with shuffled rows kept",
                             sherd__median(l->hoisted, l->with), "fragments/s (sampled)");
    } else {
        l->ratio.remark = "no numpy in /usr/bin/python3: nothing to compare with";
    }
    sherd__bench_tell(b, &l->rate);
    sherd__bench_tell(b, &l->ratio);
}

int sherd__bench_group1(sherd__bench *b, sherd_diag *d)
{
    static layer l; /* static because it is large; used by one measurement at a time */
    l = (layer){
        .rate = { .name = "group1-rate",
                  .what = "--group 1, layer 1 of MNIST, 7 nodes",
                  .unit = "fragments/s",
                  .better = SHERD__HIGHER,
                  .target = 900000 },
        .ratio = { .name = "group1-numpy",
                   .what = "  against numpy's loop over fragments",
                   .unit = "x",
                   .better = SHERD__HIGHER,
                   .target = 8 },
    };
    int err = measure_layer(b, &l, d);
    if (!err) tell_layer(b, &l);
    sherd__bench_pair_fini(&l.pair);
    sherd__bench_clean(b);
    return err;
}

/* ---- --group all ----------------------------------------------------------------------------- */

void sherd__bench_rest(void)
{
    struct timespec settle = { .tv_nsec = SETTLE_NS };
    nanosleep(&settle, NULL);
}

int sherd__bench_local(const sherd__bench_pair *p, double *seconds, sherd_diag *d)
{
    size_t n = p->a.rows, k = p->a.cols, m = p->b.cols;
    double began = sherd__clock_s();
    int err = sherd__gemm_f64(n, k, m, p->a_values, k, p->b_values, m, 0, p->c, m);
    *seconds = sherd__clock_s() - began;
    sherd__bench_rest();
    return err ? sherd__fail(d, err, NULL, "cannot multiply here") : 0;
}

/* The figure is the ratio of medians; its minimum and maximum are of single pairs of runs. */
static int run_squares(sherd__bench *b, const sherd__bench_pair *p, sherd_cluster *cluster,
                       sherd__figure *f, sherd_diag *d)
{
    double here[SHERD__BENCH_RUNS_MAX], nodes[SHERD__BENCH_RUNS_MAX];
    int runs = sherd__bench_runs(b, 3), err = 0;
    for (int i = -1; i < runs && !err; i++) { /* the first pair warms up */
        int at = i < 0 ? 0 : i;
        err = sherd__bench_local(p, &here[at], d);
        if (!err) err = sherd__bench_multiply(cluster, p, 0, &nodes[at], NULL, d);
        if (!err && i < 0) err = judge(p, d);
        if (!err && i >= 0) sherd__figure_add(f, nodes[i] / here[i]);
    }
    if (err) return err;
    double n = sherd__median(nodes, runs), h = sherd__median(here, runs);
    f->median = n / h;
    sherd__figure_beside(f, "seconds", "over the nodes", n, "s");
    sherd__figure_beside(f, "local_seconds", "dgemm here", h, "s");
    return 0;
}

static int measure_square(sherd__bench *b, size_t dim, sherd__figure *f, sherd_diag *d)
{
    char a[PATH_MAX], w[PATH_MAX];
    sherd__bench_pair p = { 0 };
    sherd_cluster *cluster = NULL;
    double command = 0;
    int err = sherd__bench_square(&p, dim, d);
    if (!err) err = sherd__bench_open(&cluster, b, SHERD__BENCH_NODES, d);
    if (!err) err = run_squares(b, &p, cluster, f, d);
    sherd_cluster_close(cluster);
    if (!err) err = save(b, &p, a, w, d);
    sherd__bench_pair_fini(&p);
    if (!err) err = time_command(b, a, w, "all", &command, d);
    sherd__bench_clean(b);
    if (err) return err;
    sherd__figure_beside(f, "command_seconds", "whole command", command, "s");
    sherd__bench_tell(b, f);
    return 0;
}

int sherd__bench_all_4096(sherd__bench *b, sherd_diag *d)
{
    sherd__figure f = { .name = "all-4096",
                        .unit = "x dgemm",
                        .target = 2.6,
                        .what = "--group all, 4096 x 4096 x 4096, 7 nodes" };
    if (b->quick) f.what = "--group all, 256 x 256 x 256 (quick), 7 nodes";
    return measure_square(b, b->quick ? 256 : 4096, &f, d);
}

int sherd__bench_all_8192(sherd__bench *b, sherd_diag *d)
{
    sherd__figure f = { .name = "all-8192",
                        .unit = "x dgemm",
                        .target = 1.9,
                        .what = "--group all, 8192 x 8192 x 8192, 7 nodes" };
    if (b->quick) f.what = "--group all, 384 x 384 x 384 (quick), 7 nodes";
    return measure_square(b, b->quick ? 384 : 8192, &f, d);
}
