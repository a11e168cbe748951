/*
 * Products under `share` over local nodes: squares compared with one dgemm here, a layer whose
 * images stay at the nodes, and a product that loses a node while it runs. Timed like the others,
 * from operands in memory to the result in memory with the nodes running. The first rows of each
 * result must equal the product computed here bit for bit.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "matrix/fixed.h"
#include "matrix/reference.h"
#include "sherd/multiplier.h"
#include "sherd/product.h"

#define JUDGED_ROWS 64u
#define BITS_IMAGES 9u
#define BITS_WEIGHTS 17u
#define DISTURBED_NODES 8u

static sherd_product_options options(void)
{
    sherd_product_options opt = { .size = sizeof opt };
    opt.scheme = SHERD_SHARE;
    opt.exact = true;
    opt.bits = SHERD__FIXED_BITS;
    return opt;
}

/* Compares the first rows bit for bit. */
static int judge(const sherd__bench_pair *p, unsigned bits_a, unsigned bits_b, sherd_diag *d)
{
    size_t rows = p->a.rows < JUDGED_ROWS ? p->a.rows : JUDGED_ROWS, len = rows * p->b.cols;
    sherd__fixed fa, fb;
    double *ref = sherd__calloc(len, sizeof *ref);
    int err = ref ? sherd__fixed_choose(p->a, bits_a, "A", &fa, d)
                  : sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    if (!err) err = sherd__fixed_choose(p->b, bits_b, "B", &fb, d);
    if (!err)
        err = sherd__reference_exact(sherd_view_sub(p->a, 0, rows, 0, p->a.cols), p->b, &fa, &fb,
                                     ref, p->b.cols, d);
    if (!err && memcmp(ref, p->c, len * sizeof *ref) != 0)
        err = sherd__fail(d, SHERD_EDIFFERS, "please report this",
                          "the product differs from the one computed here");
    sherd__free(ref);
    return err;
}

static int multiply(sherd_cluster *cluster, const sherd__bench_pair *p,
                    const sherd_product_options *opt, sherd_report *r, double *seconds,
                    sherd_diag *d)
{
    double began = sherd__clock_s();
    int err = sherd_multiply(cluster, p->a, p->b, p->c, p->b.cols, opt, r, d);
    *seconds = sherd__clock_s() - began;
    return err;
}

/* ---- squares --------------------------------------------------------------------------------- */

static int run_square(sherd__bench *b, const sherd__bench_pair *p, sherd_cluster *cluster,
                      sherd__figure *f, sherd_diag *d)
{
    double here[SHERD__BENCH_RUNS_MAX], nodes[SHERD__BENCH_RUNS_MAX];
    int runs = sherd__bench_runs(b, 5), err = 0;
    sherd_product_options opt = options();
    sherd_report r = { .size = sizeof r };
    for (int i = -1; i < runs && !err; i++) { /* the first pair warms up */
        int at = i < 0 ? 0 : i;
        sherd_report_fini(&r);
        err = sherd__bench_local(p, &here[at], d);
        if (!err) err = multiply(cluster, p, &opt, &r, &nodes[at], d);
        if (!err && i < 0) err = judge(p, opt.bits, opt.bits, d);
        if (!err && i >= 0) sherd__figure_add(f, nodes[i] / here[i]);
    }
    double flops = err ? 0 : (double)r.primes * r.domains / r.blocks;
    sherd_report_fini(&r);
    if (err) return err;
    double n = sherd__median(nodes, runs), h = sherd__median(here, runs);
    f->median = n / h;
    sherd__figure_beside(f, "seconds", "over the nodes", n, "s");
    sherd__figure_beside(f, "local_seconds", "dgemm here", h, "s");
    sherd__figure_beside(f, "flops", "its products as dgemm", flops, "x");
    return 0;
}

static int square(sherd__bench *b, size_t dim, sherd__figure *f, sherd_diag *d)
{
    sherd__bench_pair p = { 0 };
    sherd_cluster *cluster = NULL;
    int err = sherd__bench_square(&p, dim, d);
    if (!err) err = sherd__bench_open(&cluster, b, SHERD__BENCH_NODES, d);
    if (!err) err = run_square(b, &p, cluster, f, d);
    sherd_cluster_close(cluster);
    sherd__bench_pair_fini(&p);
    if (!err) sherd__bench_tell(b, f);
    return err;
}

int sherd__bench_share_2048(sherd__bench *b, sherd_diag *d)
{
    sherd__figure f = { .name = "share-2048",
                        .unit = "x dgemm",
                        .target = 9,
                        .what = "share, 2048 x 2048 x 2048, 7 nodes, 1 colluding" };
    if (b->quick) f.what = "share, 192 x 192 x 192 (quick), 7 nodes";
    return square(b, b->quick ? 192 : 2048, &f, d);
}

int sherd__bench_share_4096(sherd__bench *b, sherd_diag *d)
{
    sherd__figure f = { .name = "share-4096",
                        .unit = "x dgemm",
                        .target = 7.5,
                        .what = "share, 4096 x 4096 x 4096, 7 nodes, 1 colluding" };
    if (b->quick) f.what = "share, 320 x 320 x 320 (quick), 7 nodes";
    return square(b, b->quick ? 320 : 4096, &f, d);
}

/* ---- a resident operand ---------------------------------------------------------------------- */

typedef struct resident {
    sherd__bench_pair pair;
    sherd_cluster *cluster;
    sherd_multiplier multiplier;
    sherd_kept *kept;
    sherd__figure ratio, up, down;
} resident;

static void traffic(sherd_cluster *c, double *up, double *down)
{
    *up = *down = 0;
    for (uint32_t i = 0; i < sherd_cluster_size(c); i++) {
        sherd_node_info info = { .size = sizeof info };
        sherd_cluster_node(c, i, &info);
        *up += (double)info.bytes_out;
        *down += (double)info.bytes_in;
    }
}

static int run_resident(sherd__bench *b, resident *r, sherd_diag *d)
{
    double here[SHERD__BENCH_RUNS_MAX], nodes[SHERD__BENCH_RUNS_MAX], first = 0;
    int runs = sherd__bench_runs(b, 5), err = 0;
    const sherd__bench_pair *p = &r->pair;
    for (int i = -1; i < runs && !err; i++) { /* the first product sends the images */
        double up, down, up_then, down_then, began;
        int at = i < 0 ? 0 : i;
        err = sherd__bench_local(p, &here[at], d);
        if (err) return err;
        traffic(r->cluster, &up, &down);
        began = sherd__clock_s();
        err = sherd_multiplier_multiply_kept(r->multiplier, r->kept, false, p->b, p->c, p->b.cols,
                                             d);
        nodes[at] = sherd__clock_s() - began;
        traffic(r->cluster, &up_then, &down_then);
        if (i < 0) first = nodes[0];
        if (err || i < 0) continue;
        sherd__figure_add(&r->ratio, nodes[i] / here[i]);
        sherd__figure_add(&r->up, (up_then - up) * 1e-6);
        sherd__figure_add(&r->down, (down_then - down) * 1e-6);
    }
    if (!err) err = judge(p, BITS_IMAGES, BITS_WEIGHTS, d);
    if (err) return err;
    double n = sherd__median(nodes, runs), h = sherd__median(here, runs);
    r->ratio.median = n / h;
    sherd__figure_beside(&r->ratio, "seconds", "over the nodes", n, "s");
    sherd__figure_beside(&r->ratio, "local_seconds", "dgemm here", h, "s");
    sherd__figure_beside(&r->ratio, "first_seconds", "the first, which sends images", first, "s");
    return 0;
}

int sherd__bench_resident(sherd__bench *b, sherd_diag *d)
{
    resident r = {
        .ratio = { .name = "resident",
                   .what = "share, images resident, 60000x784x128, 7 nodes",
                   .unit = "x dgemm",
                   .target = 8 },
        .up = { .name = "resident-up", .what = "  sent for each", .unit = "MB", .target = 6 },
        .down = { .name = "resident-down", .what = "  and received", .unit = "MB", .target = 110 },
    };
    sherd_product_options opt = options();
    opt.bits = BITS_IMAGES;
    opt.bits_b = BITS_WEIGHTS;
    int err = sherd__bench_layer(&r.pair, b->quick ? 600 : 60000, d);
    if (!err) err = sherd__bench_open(&r.cluster, b, SHERD__BENCH_NODES, d);
    if (!err) err = sherd_multiplier_cluster(&r.multiplier, r.cluster, &opt, d);
    if (!err) err = sherd_multiplier_keep(r.multiplier, r.pair.a, &r.kept, d);
    if (!err) err = run_resident(b, &r, d);
    if (r.kept) sherd_multiplier_release(r.multiplier, r.kept);
    sherd_multiplier_free(r.multiplier);
    sherd_cluster_close(r.cluster);
    sherd__bench_pair_fini(&r.pair);
    if (err) return err;
    sherd__bench_tell(b, &r.ratio);
    sherd__bench_tell(b, &r.up);
    sherd__bench_tell(b, &r.down);
    return 0;
}

/* ---- a node that dies, stops or lies --------------------------------------------------------- */

typedef struct harm {
    int signal; /* sent to one of the nodes */
    const char *name, *what;
} harm;

static const harm harms[] = {
    { SIGKILL, "disturbed-killed", "share, 8 nodes, 1 spare: one is killed" },
    { SIGSTOP, "disturbed-stopped", "share, 8 nodes, 1 spare: one stops" },
    { SIGUSR2, "disturbed-lying", "share, 8 nodes, 1 spare: one lies" },
};
static const double strike_at[] = { 0.2, 0.5, 0.8 };
enum {
    HARMS = sizeof harms / sizeof *harms,
    STRIKES = sizeof strike_at / sizeof *strike_at,
    STRIKE_TRIES = 5
};

/* Injects a fault into a node at a given time after a product started, from a thread with a clock.
 * Progress reports could not time it: they come per whole position, and the last ones come
 * together. */
typedef struct strike {
    pid_t pid;
    int signal;         /* 0: none */
    double after;       /* seconds */
    struct timespec at; /* CLOCK_MONOTONIC */
    bool over;          /* the product has finished */
    bool done;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    pthread_t thread;
} strike;

static void *strike_in_time(void *arg)
{
    strike *s = arg;
    int err = 0;
    pthread_mutex_lock(&s->lock);
    while (!s->over && err != ETIMEDOUT)
        err = pthread_cond_clockwait(&s->ended, &s->lock, CLOCK_MONOTONIC, &s->at);
    if (!s->over) s->done = kill(s->pid, s->signal) == 0;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int strike_begin(strike *s, sherd_diag *d)
{
    s->at = sherd__clock_after(s->after);
    s->over = s->done = false;
    if (pthread_create(&s->thread, NULL, strike_in_time, s) == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_ENOMEM, NULL, "cannot start a thread");
}

static void strike_end(strike *s)
{
    pthread_mutex_lock(&s->lock);
    s->over = true;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
}

static int multiply_struck(sherd_cluster *cluster, const sherd__bench_pair *p, strike *s,
                           const sherd_product_options *opt, double *seconds, sherd_diag *d)
{
    sherd_node_info info = { .size = sizeof info };
    sherd_report r = { .size = sizeof r };
    sherd_cluster_node(cluster, 2, &info);
    s->pid = info.pid;
    int err = s->signal ? strike_begin(s, d) : SHERD_OK;
    if (!err) {
        err = multiply(cluster, p, opt, &r, seconds, d);
        if (s->signal) strike_end(s);
    }
    if (!err && r.encodings != 1)
        err = sherd__fail(d, SHERD_EINTERNAL, "please report this",
                          "the spare node was not enough");
    sherd_report_fini(&r);
    return err;
}

/* Runs one product on new nodes; its result must be correct in spite of the fault. */
static int disturb(sherd__bench *b, const sherd__bench_pair *p, strike *s, double *seconds,
                   sherd_diag *d)
{
    sherd_cluster *cluster = NULL;
    double warm;
    sherd_product_options opt = options();
    opt.spare = 1;
    int err = sherd__bench_open_liars(&cluster, b, DISTURBED_NODES, d);
    if (!err) err = multiply(cluster, p, &opt, NULL, &warm, d);
    if (!err) err = multiply_struck(cluster, p, s, &opt, seconds, d);
    if (s->done && s->signal == SIGSTOP) (void)kill(s->pid, SIGKILL);
    sherd_cluster_close(cluster);
    return err ? err : judge(p, opt.bits, opt.bits, d);
}

/* Injects the fault after a share of an undisturbed product's time. If the product finishes before
 * that, it was undisturbed; the next try uses its time, which reflects the current load. */
static int disturb_at(sherd__bench *b, const sherd__bench_pair *p, int signal, double share,
                      double calm, double *seconds, sherd_diag *d)
{
    for (int try = 0; try < STRIKE_TRIES; try++) {
        strike s = { .signal = b->quick ? 0 : signal,
                     .after = share * calm,
                     .lock = PTHREAD_MUTEX_INITIALIZER,
                     .ended = PTHREAD_COND_INITIALIZER };
        int err = disturb(b, p, &s, seconds, d);
        if (err || s.done || s.signal == 0) return err;
        calm = *seconds;
    }
    return sherd__fail(d, SHERD_EINTERNAL, "measure on a machine that does nothing else",
                       "%d products were over before their node was struck: this machine's pace "
                       "changes too much",
                       STRIKE_TRIES);
}

/* Runs the undisturbed product and each fault in turn, so that all of them meet the same load. */
static int strike_all(sherd__bench *b, const sherd__bench_pair *p, int rounds, double *calm,
                      sherd__figure f[HARMS], sherd_diag *d)
{
    int err = 0;
    for (int i = 0; i < rounds && !err; i++) {
        err = disturb_at(b, p, 0, 0, 0, &calm[i], d);
        for (size_t k = 0; k < HARMS && !err; k++) {
            double took;
            err = disturb_at(b, p, harms[k].signal, strike_at[i % STRIKES], calm[i], &took, d);
            if (!err) sherd__figure_add(&f[k], took);
        }
    }
    return err;
}

/* The maximum of a figure's values has the same target as their median. */
static void tell_harm(sherd__bench *b, sherd__figure *f, double usual, double usual_worst)
{
    double worst = 0;
    for (int i = 0; i < f->len; i++) {
        f->values[i] /= usual;
        if (f->values[i] > worst) worst = f->values[i];
    }
    sherd__figure_beside(f, "worst", "worst", worst, "x");
    sherd__figure_beside(f, "undisturbed_seconds", "undisturbed", usual, "s");
    sherd__figure_beside(f, "undisturbed_worst", "its worst", usual_worst / usual, "x");
    f->remark = b->quick ? "quick: nothing is struck, the product is over too soon"
                         : "struck after 20, 50 and 80 % of the undisturbed time, each once a run";
    sherd__bench_tell(b, f);
}

int sherd__bench_disturbed(sherd__bench *b, sherd_diag *d)
{
    static sherd__figure f[HARMS]; /* static because it is large */
    sherd__bench_pair p = { 0 };
    double calm[SHERD__BENCH_RUNS_MAX];
    int rounds = (int)STRIKES * sherd__bench_runs(b, 3);
    if (rounds > SHERD__BENCH_RUNS_MAX) rounds = SHERD__BENCH_RUNS_MAX;
    if (b->quick) rounds = 1;
    for (size_t k = 0; k < HARMS; k++)
        f[k] = (sherd__figure){
            .name = harms[k].name, .what = harms[k].what, .unit = "x undisturbed", .target = 1.3
        };
    int err = sherd__bench_square(&p, b->quick ? 256 : 3072, d);
    if (!err) err = strike_all(b, &p, rounds, calm, f, d);
    double usual = err ? 1 : sherd__median(calm, rounds); /* sorts them */
    for (size_t k = 0; k < HARMS && !err; k++) tell_harm(b, &f[k], usual, calm[rounds - 1]);
    sherd__bench_pair_fini(&p);
    return err;
}
