/*
 * Training by products under `share` over local nodes: an epoch of the published network compared
 * with the same epoch here in float64, and batches of a deeper network. The data are at the nodes
 * when the clock starts, as in every epoch except the first. A step is forward, backward and
 * update. Parameters trained over the nodes must equal those of the same training here in fixed
 * point bit for bit.
 */
#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "learn/network.h"
#include "learn/optimiser.h"
#include "sherd/product.h"

#define BITS 17u
#define CLASSES 10u

typedef struct training {
    const sherd__layer_spec *layers;
    size_t len, rows, part;
    sherd__loss loss;
    double rate;
    uint8_t *images;
    uint32_t *labels;
} training;

/* One engine with its network and buffers. */
typedef struct side {
    sherd_multiplier m;
    sherd_kept *kept;
    sherd__network *n;
    sherd__optimiser o;
    size_t at;  /* first row of the next batch */
    bool keeps; /* see sherd__engine */
} side;

static sherd_view images(const training *t)
{
    return sherd_view_c(t->images, SHERD_U8, t->rows, 784);
}

static int load(training *t, sherd_diag *d)
{
    sherd__bench_pair p = { 0 };
    int err = sherd__bench_layer(&p, t->rows, d);
    if (err) return err;
    t->rows = p.a.rows;
    if (t->part > t->rows) t->part = t->rows;
    t->images = sherd__alloc_large(t->rows * 784);
    t->labels = sherd__calloc(t->rows, sizeof *t->labels);
    if (!t->images || !t->labels) err = sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; !err && i < t->rows * 784; i++)
        t->images[i] = (uint8_t)rint(p.a_values[i] * 255);
    for (size_t i = 0; !err && i < t->rows; i++) t->labels[i] = (uint32_t)(i % CLASSES);
    sherd__bench_pair_fini(&p);
    return err;
}

static void training_fini(training *t)
{
    sherd__free(t->images);
    sherd__free(t->labels);
}

/* Takes ownership of the multiplier. */
static int side_init(side *s, const training *t, sherd_multiplier m, sherd_diag *d)
{
    sherd__network_spec spec = {
        .in = { 1, 1, 784 }, .layers = t->layers, .len = t->len, .batch = t->part, .loss = t->loss
    };
    sherd__optimiser_spec how = { .method = SHERD__SGD };
    sherd__seeded seeded;
    sherd__entropy rng = sherd__entropy_seeded(&seeded, 1);
    s->m = m;
    int err = sherd__network_new(&spec, &s->n, d);
    if (!err) err = sherd__optimiser_init(&s->o, &how, sherd__network_count(s->n), d);
    if (!err) sherd__network_draw(s->n, &rng, 0.01);
    return err ? err : sherd_multiplier_keep_parts(m, images(t), t->part, &s->kept, d);
}

static void side_fini(side *s)
{
    sherd_multiplier_release(s->m, s->kept);
    sherd_multiplier_free(s->m);
    sherd__network_free(s->n);
    sherd__optimiser_fini(&s->o);
}

static int step(side *s, const training *t, double *seconds, sherd_diag *d)
{
    double began = sherd__clock_s(), cost;
    sherd__engine e = { .products = s->m, .keeps = s->keeps };
    size_t rows = t->rows - s->at < t->part ? t->rows - s->at : t->part;
    sherd__batch b = { sherd_view_sub(images(t), s->at, rows, 0, 784),
                       s->kept,
                       s->at,
                       { .labels = t->labels + s->at } };
    int err = sherd__network_learn(s->n, e, &b, &cost, NULL, d);
    if (err) return err;
    sherd__optimiser_begin(&s->o);
    sherd__optimiser_apply(&s->o, t->rate, 0, sherd__network_count(s->n),
                           sherd__network_params(s->n), sherd__network_gradient(s->n));
    *seconds = sherd__clock_s() - began;
    s->at = s->at + rows < t->rows ? s->at + rows : 0;
    return 0;
}

/* Checks that the same steps here in fixed point give the same bits. */
static int judge(const training *t, const side *over, int steps, sherd_diag *d)
{
    side s = { 0 };
    sherd_multiplier m;
    double seconds;
    int err = sherd_multiplier_local(&m, BITS, d);
    if (!err) err = side_init(&s, t, m, d);
    for (int i = 0; !err && i < steps; i++) err = step(&s, t, &seconds, d);
    if (!err && memcmp(sherd__network_params(s.n), sherd__network_params(over->n),
                       sherd__network_count(s.n) * sizeof(double)) != 0)
        err = sherd__fail(d, SHERD_EDIFFERS, "please report this",
                          "the parameters differ from those trained here");
    side_fini(&s);
    return err;
}

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

/* Alternates steps here and over the nodes. The first of each warms up and sends the images. */
static int run(sherd__bench *b, const training *t, sherd_cluster *cluster, int preset, double *here,
               double *nodes, double bytes[2], sherd_diag *d)
{
    side local = { 0 }, over = { .keeps = true };
    sherd_multiplier m;
    sherd_product_options opt = { .size = sizeof opt };
    double up, down, up_then, down_then;
    int runs = sherd__bench_runs(b, preset);
    opt.scheme = SHERD_SHARE;
    opt.bits = BITS;
    int err = sherd_multiplier_local(&m, 0, d);
    if (!err) err = side_init(&local, t, m, d);
    if (!err) err = sherd_multiplier_cluster(&m, cluster, &opt, d);
    if (!err) err = side_init(&over, t, m, d);
    size_t parts = (t->rows - 1) / t->part + 1;
    for (size_t i = 0; !err && i < parts; i++) err = step(&over, t, nodes, d);
    if (!err) err = step(&local, t, here, d);
    if (!err) traffic(cluster, &up, &down);
    for (int i = 0; !err && i < runs; i++) {
        err = step(&local, t, &here[i], d);
        sherd__bench_rest();
        if (!err) err = step(&over, t, &nodes[i], d);
    }
    if (!err) traffic(cluster, &up_then, &down_then);
    if (!err) bytes[0] = (up_then - up) / runs, bytes[1] = (down_then - down) / runs;
    if (!err) err = judge(t, &over, (int)parts + runs, d);
    side_fini(&local);
    side_fini(&over);
    return err;
}

static int measure(sherd__bench *b, training *t, uint32_t count, int preset, bool ratio,
                   sherd__figure *f, sherd_diag *d)
{
    double here[SHERD__BENCH_RUNS_MAX], nodes[SHERD__BENCH_RUNS_MAX], bytes[2] = { 0 };
    sherd_cluster *cluster = NULL;
    int err = load(t, d), runs = sherd__bench_runs(b, preset);
    if (!err) err = sherd__bench_open(&cluster, b, count, d);
    if (!err) err = run(b, t, cluster, preset, here, nodes, bytes, d);
    sherd_cluster_close(cluster);
    training_fini(t);
    if (err) return err;
    for (int i = 0; i < runs; i++)
        sherd__figure_add(f, ratio ? nodes[i] / here[i] : nodes[i] * 1e3);
    double n = sherd__median(nodes, runs), h = sherd__median(here, runs);
    if (ratio) f->median = n / h;
    sherd__figure_beside(f, "seconds", "over the nodes", n, "s");
    sherd__figure_beside(f, "local_seconds", "here in float64", h, "s");
    sherd__figure_beside(f, "up", "sent", bytes[0] * 1e-6, "MB");
    sherd__figure_beside(f, "down", "received", bytes[1] * 1e-6, "MB");
    sherd__bench_tell(b, f);
    return 0;
}

int sherd__bench_train_epoch(sherd__bench *b, sherd_diag *d)
{
    static const sherd__layer_spec layers[] = {
        { .kind = &sherd__layer_dense, .units = 128 },
        { .kind = &sherd__layer_sigmoid },
        { .kind = &sherd__layer_dense, .units = CLASSES },
        { .kind = &sherd__layer_sigmoid },
    };
    size_t rows = b->quick ? 600 : 60000;
    training t = { .layers = layers,
                   .len = 4,
                   .rows = rows,
                   .part = rows,
                   .loss = SHERD__LOSS_SQUARED,
                   .rate = 0.05 };
    sherd__figure f = { .name = "train-epoch",
                        .what = "mnist by products, share, 7 nodes, an epoch",
                        .unit = "x here",
                        .target = 10 };
    return measure(b, &t, SHERD__BENCH_NODES, 5, true, &f, d);
}

int sherd__bench_train_batch(sherd__bench *b, sherd_diag *d)
{
    static const sherd__layer_spec layers[] = {
        { .kind = &sherd__layer_dense, .units = 128 },     { .kind = &sherd__layer_relu },
        { .kind = &sherd__layer_dense, .units = 128 },     { .kind = &sherd__layer_relu },
        { .kind = &sherd__layer_dense, .units = CLASSES },
    };
    training t = { .layers = layers,
                   .len = 5,
                   .rows = 8 * 128,
                   .part = 128,
                   .loss = SHERD__LOSS_CROSS_ENTROPY,
                   .rate = 0.001 };
    sherd__figure f = { .name = "train-batch",
                        .what = "784-128-128-10 by products, share, 3 nodes, a batch of 128",
                        .unit = "ms",
                        .target = 39.6 };
    return measure(b, &t, 3, 30, false, &f, d);
}
