/*
 * Compares forecasts of products with measured runs. Each case of the bench runs once per round,
 * for several rounds. A figure is how far the time predicted just before a run is from the run's
 * time, in percent, in either direction. Bytes must equal the forecast exactly (or not exceed it if
 * it is an upper bound), or there is no figure. No measurement of a run is used by a prediction.
 */
#include <math.h>

#include "bench/bench.h"
#include "core/clock.h"
#include "sherd/forecast.h"

typedef struct kind {
    const char *name, *what, *what_quick;
    size_t dim, dim_quick; /* of a square matrix; 0: the layer */
    sherd_scheme scheme;
    uint32_t group, bits, bits_b;
} kind;

static const kind kinds[] = {
    { "forecast-share-2048", "share, 2048 cubed: time foretold", "share, 192 cubed (quick)", 2048,
      192, SHERD_SHARE, 0, 17, 17 },
    { "forecast-share-4096", "share, 4096 cubed", "share, 320 cubed (quick)", 4096, 320,
      SHERD_SHARE, 0, 17, 17 },
    { "forecast-share-layer", "share, layer 1 of MNIST", "share, layer 1 (quick)", 0, 0,
      SHERD_SHARE, 0, 9, 17 },
    { "forecast-all-4096", "permute, --group all, 4096 cubed", "--group all, 256 cubed (quick)",
      4096, 256, SHERD_PERMUTE, 0, 17, 0 },
    { "forecast-group1", "permute, --group 1, layer 1 of MNIST", "--group 1, layer 1 (quick)", 0, 0,
      SHERD_PERMUTE, 1, 17, 0 },
    { "forecast-plain-4096", "plain, 4096 cubed", "plain, 256 cubed (quick)", 4096, 256,
      SHERD_PLAIN, 0, 17, 0 },
};

/* The target is 30 %. A prediction of half the time counts as far off as one of twice the time. */
#define TARGET 30

typedef struct telling {
    double foretold[SHERD__BENCH_RUNS_MAX], took[SHERD__BENCH_RUNS_MAX];
} telling;

static int run_once(sherd_cluster *cluster, const sherd__bench_pair *p,
                    const sherd_product_options *opt, sherd_forecast *f, double *took,
                    sherd_diag *d)
{
    sherd_forecast_options with = { .size = sizeof with, .cluster = cluster, .result = p->c };
    sherd_report r = { .size = sizeof r };
    int err = sherd_forecast_multiply(p->a, p->b, opt, &with, f, d);
    if (err) return err;
    double began = sherd__clock_s();
    err = sherd_multiply(cluster, p->a, p->b, p->c, p->b.cols, opt, &r, d);
    *took = sherd__clock_s() - began;
    bool right = f->at_most ? r.work_out <= f->bytes_out && r.work_in <= f->bytes_in
                            : r.work_out == f->bytes_out && r.work_in == f->bytes_in;
    if (!err && !right)
        err = sherd__fail(d, SHERD_EINTERNAL, "please report this",
                          "%llu bytes out and %llu in were foretold, and %llu and %llu came",
                          (unsigned long long)f->bytes_out, (unsigned long long)f->bytes_in,
                          (unsigned long long)r.work_out, (unsigned long long)r.work_in);
    sherd_report_fini(&r);
    return err;
}

static int run_kind(sherd__bench *b, const kind *k, sherd_cluster *cluster,
                    const sherd__bench_pair *p, sherd_diag *d)
{
    sherd__figure f = { .name = k->name,
                        .what = b->quick ? k->what_quick : k->what,
                        .unit = "% off",
                        .target = TARGET };
    static const uint8_t seed[32] = { 1 }; /* so that forecast and run partition alike */
    telling t;
    sherd_product_options opt = { .size = sizeof opt };
    int runs = sherd__bench_runs(b, 3), err = 0;
    opt.scheme = k->scheme;
    opt.group = k->group;
    opt.bits = k->bits;
    opt.bits_b = k->bits_b;
    const sherd_scheme_info *s = sherd_scheme_describe(k->scheme);
    opt.exact = s->exact_only;
    if (s->takes & SHERD_TAKES_SHUFFLES) opt.seed = seed;
    for (int i = -1; i < runs && !err; i++) { /* the first run warms up */
        sherd_forecast fore = { .size = sizeof fore };
        int at = i < 0 ? 0 : i;
        err = run_once(cluster, p, &opt, &fore, &t.took[at], d);
        if (err) return err;
        t.foretold[at] = fore.seconds;
        if (i >= 0) sherd__figure_add(&f, 100 * fabs(t.foretold[at] / t.took[at] - 1));
    }
    double foretold = sherd__median(t.foretold, runs), took = sherd__median(t.took, runs);
    sherd__figure_beside(&f, "foretold_seconds", "foretold", foretold, "s");
    sherd__figure_beside(&f, "seconds", "and came", took, "s");
    sherd__figure_beside(&f, "ratio", "foretold / came", foretold / took, "");
    sherd__bench_tell(b, &f);
    return 0;
}

int sherd__bench_forecast(sherd__bench *b, sherd_diag *d)
{
    sherd_cluster *cluster = NULL;
    int err = sherd__bench_open(&cluster, b, SHERD__BENCH_NODES, d);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !err; i++) {
        const kind *k = &kinds[i];
        sherd__bench_pair p = { 0 };
        size_t dim = b->quick ? k->dim_quick : k->dim;
        err = dim ? sherd__bench_square(&p, dim, d)
                  : sherd__bench_layer(&p, b->quick ? 600 : 60000, d);
        if (!err) err = run_kind(b, k, cluster, &p, d);
        sherd__bench_pair_fini(&p);
    }
    sherd_cluster_close(cluster);
    return err;
}
