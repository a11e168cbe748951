/*
 * Training here in floats, compared with numpy doing the same (bench/rival.c). numpy computes in
 * f64; its time in f32 is printed with the figure of f32.
 */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "learn/digits.h"
#include "learn/network.h"
#include "learn/optimiser.h"

#define DEEP_EXAMPLES 2000u
#define DEEP_BATCH 100u
#define DEEP_INPUTS 1000u

/* A training to measure: its data, and the work of one turn on either side. */
typedef struct course {
    sherd__network_spec spec;
    double rate, scale;
    sherd_view x; /* all examples */
    uint32_t *labels;
    size_t drawn; /* examples of a batch, drawn from all; 0: one batch of all examples */
    int steps;    /* in one turn; the first of a turn is not counted */
    const char *script;
    char examples[16], repeats[16]; /* arguments of the script */
} course;

typedef struct runner {
    const course *c;
    sherd__network *n;
    sherd__optimiser o;
    sherd__engine e;
    void *batch; /* examples drawn, in the network's dtype; NULL if one batch has all examples */
    uint32_t *labels;
    uint64_t state;
} runner;

static int no_memory(sherd_diag *d)
{
    return sherd__fail(d, SHERD_ENOMEM, "measure the others with --only", "out of memory");
}

static uint32_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static int begin(runner *r, const course *c, sherd_dtype dtype, sherd_diag *d)
{
    sherd__network_spec spec = c->spec;
    sherd__optimiser_spec how = { .method = SHERD__SGD, .dtype = dtype };
    sherd__seeded seeded;
    sherd__entropy rng = sherd__entropy_seeded(&seeded, 1);
    *r = (runner){ .c = c, .state = 7 };
    spec.dtype = dtype;
    int err = sherd__network_new(&spec, &r->n, d);
    if (!err) err = sherd__optimiser_init(&r->o, &how, sherd__network_count(r->n), d);
    if (!err) err = sherd_multiplier_local(&r->e.products, 0, d);
    if (err) return err;
    sherd__network_draw(r->n, &rng, c->scale);
    if (c->drawn == 0) return 0;
    r->batch = sherd__calloc(c->drawn * c->x.cols, sherd_dtype_size(dtype));
    r->labels = sherd__calloc(c->drawn, sizeof *r->labels);
    return r->batch && r->labels ? 0 : no_memory(d);
}

static void end(runner *r)
{
    sherd__free(r->batch);
    sherd__free(r->labels);
    sherd__network_free(r->n);
    sherd__optimiser_fini(&r->o);
    sherd_multiplier_free(r->e.products);
}

/* Draws examples with replacement and stores them in the network's dtype, as numpy does. */
static sherd__batch draw(runner *r)
{
    const course *c = r->c;
    size_t row = c->x.cols * sherd_dtype_size(c->x.dtype);
    for (size_t i = 0; i < c->drawn; i++) {
        size_t from = next(&r->state) % c->x.rows;
        memcpy((char *)r->batch + i * row, (const char *)c->x.data + from * row, row);
        r->labels[i] = c->labels[from];
    }
    return (sherd__batch){ .x = sherd_view_c(r->batch, c->x.dtype, c->drawn, c->x.cols),
                           .targets.labels = r->labels };
}

static int step(runner *r, double *seconds, sherd_diag *d)
{
    const course *c = r->c;
    const double *y;
    double began = sherd__clock_s(), cost;
    sherd__batch b = { .x = c->x, .targets.labels = c->labels };
    if (c->drawn > 0) b = draw(r);
    int err = sherd__network_step(r->n, r->e, &b, &r->o, c->rate, false, &cost, &y, d);
    if (err) return err;
    size_t hits = sherd__labels_hit(y, b.x.rows, sherd__network_width(r->n), b.targets.labels);
    *seconds = sherd__clock_s() - began;
    if (hits > b.x.rows) return sherd__fail(d, SHERD_EINTERNAL, NULL, "hits beyond the batch");
    if (!sherd__bench_interrupted(NULL)) return 0;
    return sherd__fail(d, SHERD_EINTERRUPTED, NULL, "interrupted");
}

/* Returns the median of one turn's steps in ms. */
static int turn(void *ctx, double *ms, sherd_diag *d)
{
    runner *r = ctx;
    double took[SHERD__BENCH_RUNS_MAX], warm;
    int err = step(r, &warm, d);
    for (int i = 0; i < r->c->steps && !err; i++) err = step(r, &took[i], d);
    *ms = err ? 0 : sherd__median(took, r->c->steps) * 1e3;
    return err;
}

/* Runs turns of both sides; f gets the ratio of each pair. */
static int compare(sherd__bench *b, const course *c, sherd_dtype dtype, sherd__figure *f,
                   sherd_diag *d)
{
    const char *args[] = { "f8", c->examples, c->repeats, NULL };
    double same = 0;
    runner r;
    sherd__rivalry pair = {
        .turn = turn, .ctx = &r, .turns = 5, .script = c->script, .args = args
    };
    if (c->examples[0] == '\0') args[1] = c->repeats, args[2] = NULL;
    int err = begin(&r, c, dtype, d);
    if (!err) err = sherd__rivalry_run(b, &pair, f, d);
    args[0] = "f4";
    if (!err && pair.with > 0 && dtype == SHERD_F32)
        err = sherd__numpy_run(b, c->script, args, 0, &same, 1, d);
    end(&r);
    if (err) return err;
    sherd__figure_beside(f, "here_ms", "here", pair.own, "ms");
    if (pair.with > 0) sherd__figure_beside(f, "numpy_ms", "numpy in f64", pair.numpy, "ms");
    if (same > 0) sherd__figure_beside(f, "numpy_f32_ms", "numpy in f32", same, "ms");
    sherd__bench_tell(b, f);
    return 0;
}

/* ---- 1000-900-900-900-10, batches of 100 ----------------------------------------------------- */

static int deep_data(course *c, sherd_dtype dtype, sherd_diag *d)
{
    uint64_t state = 3;
    size_t count = (size_t)DEEP_EXAMPLES * DEEP_INPUTS;
    double *x = sherd__alloc_large(count * sizeof *x);
    float *narrow = (float *)(void *)x;
    c->labels = sherd__calloc(DEEP_EXAMPLES, sizeof *c->labels);
    c->x = sherd_view_c(x, dtype, DEEP_EXAMPLES, DEEP_INPUTS);
    if (!x || !c->labels) return no_memory(d);
    for (size_t k = 0; k < count; k++) {
        double value = next(&state) * 0x1p-31;
        if (dtype == SHERD_F32) narrow[k] = (float)value;
        else x[k] = value;
    }
    for (size_t i = 0; i < DEEP_EXAMPLES; i++) c->labels[i] = next(&state) % 10;
    return 0;
}

static void data_fini(course *c)
{
    sherd__free((void *)(uintptr_t)c->x.data);
    sherd__free(c->labels);
}

int sherd__bench_train_deep(sherd__bench *b, sherd_diag *d)
{
    static const sherd__layer_spec layers[] = {
        { .kind = &sherd__layer_dense, .units = 900 }, { .kind = &sherd__layer_sigmoid },
        { .kind = &sherd__layer_dense, .units = 900 }, { .kind = &sherd__layer_sigmoid },
        { .kind = &sherd__layer_dense, .units = 900 }, { .kind = &sherd__layer_sigmoid },
        { .kind = &sherd__layer_dense, .units = 10 },  { .kind = &sherd__layer_sigmoid },
    };
    static const sherd_dtype types[] = { SHERD_F64, SHERD_F32 };
    int err = 0;
    for (size_t i = 0; i < 2 && !err; i++) {
        course c = { .spec = { .in = { 1, 1, DEEP_INPUTS },
                               .layers = layers,
                               .len = 8,
                               .batch = DEEP_BATCH,
                               .loss = SHERD__LOSS_SQUARED },
                     .rate = 0.1,
                     .scale = 0.033,
                     .drawn = DEEP_BATCH,
                     .steps = b->quick ? 2 : 25,
                     .script = sherd__bench_deep_py };
        sherd__figure f = { .name = i ? "train-deep-f32" : "train-deep-f64",
                            .unit = "x numpy",
                            .target = i ? 0.4 : 0.7,
                            .what = i ? "deep, a batch of 100 here, f32, beside numpy's f64"
                                      : "deep, a batch of 100 here, f64, beside numpy's" };
        snprintf(c.repeats, sizeof c.repeats, "%d", c.steps);
        err = deep_data(&c, types[i], d);
        if (!err) err = compare(b, &c, types[i], &f, d);
        data_fini(&c);
    }
    return err;
}

/* ---- 784-128-10, all examples at once -------------------------------------------------------- */

int sherd__bench_train_mnist(sherd__bench *b, sherd_diag *d)
{
    static const sherd__layer_spec layers[] = {
        { .kind = &sherd__layer_dense, .units = 128 },
        { .kind = &sherd__layer_sigmoid },
        { .kind = &sherd__layer_dense, .units = 10 },
        { .kind = &sherd__layer_sigmoid },
    };
    size_t rows = b->quick ? 600 : 60000;
    course c = { .spec = { .in = { 1, 1, SHERD__DIGIT_PIXELS },
                           .layers = layers,
                           .len = 4,
                           .batch = rows,
                           .loss = SHERD__LOSS_SQUARED,
                           .bias_total = true },
                 .rate = 0.05,
                 .scale = 0.01,
                 .steps = b->quick ? 1 : 3,
                 .script = sherd__bench_mnist_py };
    sherd__figure f = { .name = "train-mnist",
                        .unit = "x numpy",
                        .target = 0.6,
                        .what = "mnist, an epoch of one batch here, f64, beside numpy" };
    uint8_t *pixels = sherd__alloc_large(rows * SHERD__DIGIT_PIXELS);
    uint8_t *digits = sherd__alloc(rows);
    int err = 0;
    c.labels = sherd__calloc(rows, sizeof *c.labels);
    c.x = sherd_view_c(pixels, SHERD_U8, rows, SHERD__DIGIT_PIXELS);
    snprintf(c.examples, sizeof c.examples, "%zu", rows);
    snprintf(c.repeats, sizeof c.repeats, "%d", c.steps);
    if (!pixels || !digits || !c.labels) err = no_memory(d);
    if (!err) sherd__digits_draw(SHERD__DIGITS_SEED, 0, rows, pixels, digits);
    for (size_t i = 0; i < rows && !err; i++) c.labels[i] = digits[i];
    if (!err) err = compare(b, &c, SHERD_F64, &f, d);
    sherd__free(digits);
    data_fini(&c);
    return err;
}
