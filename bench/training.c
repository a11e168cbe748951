/*
 * Training: local training compared with numpy, products under `share` over nodes compared with
 * local products, and gradients over nodes: one iteration with everything transferred each time
 * (examples, parameters, gradients), a round of a large network compared with its links alone and
 * with sums among the nodes, and what a slow node costs. Steps are those of the training loop
 * (learn/train.h), with its networks, orders and steppers.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "core/alloc.h"
#include "learn/digits.h"
#include "learn/train.h"
#include "lib/recipe.h"
#include "scheduler/allreduce/allreduce.h"
#include "scheduler/cluster/measure.h"
#include "scheduler/train/train.h"

#define BITS 17u

static const uint8_t seed[32] = "bench of trainings";

typedef struct training {
    sherd__recipe recipe;
    sherd__dataset data;
    sherd__trainer *trainer;
    sherd__stepper stepper;
    sherd_multiplier products; /* of a stepper by products */
    sherd_kept *kept;
    sherd__dataset batch; /* gathered */
    uint32_t *rows;
    uint64_t number; /* steps made */
    double compute;  /* seconds of computation that a node reported last */
} training;

/* ---- one training ---------------------------------------------------------------------------- */

/* Generates examples of the recipe's shape. */
static int generate(training *t, size_t examples, sherd_diag *d)
{
    size_t inputs = t->recipe.in.height * t->recipe.in.width * t->recipe.in.channels;
    sherd__dataset all = { .classes = 0 };
    if (inputs == 2) return sherd__generate_spiral(&t->data, examples, 3, seed, d);
    int err = inputs == SHERD__DIGIT_PIXELS
                  ? sherd__generate_digits(&all, 0, examples, d)
                  : sherd__generate_random(&all, examples, inputs, 10, seed, d);
    if (!err)
        err = sherd__dataset_copy(&t->data, &all, NULL, examples,
                                  &(sherd__input_scale){ .divide = t->recipe.divide_inputs }, d);
    sherd__dataset_fini(&all);
    if (err || t->recipe.precision != SHERD_F32 || t->data.x.dtype != SHERD_F64) return err;
    float *narrow = t->data.owned[0]; /* in place */
    for (size_t i = 0; i < examples * inputs; i++)
        narrow[i] = (float)((double *)t->data.owned[0])[i];
    t->data.x = sherd_view_c(narrow, SHERD_F32, examples, inputs);
    return 0;
}

/* Sets up everything except the stepper. */
static int prepare(training *t, const char *recipe, size_t examples, bool f32, sherd_diag *d)
{
    sherd_recipe *r = NULL;
    memset(t, 0, sizeof *t);
    int err = strchr(recipe, '\n') ? sherd_recipe_parse(&r, recipe, "bench", d)
                                   : sherd_recipe_load(&r, recipe, d);
    if (!err) t->recipe = r->recipe;
    sherd_recipe_free(r);
    if (err) return err;
    if (f32) t->recipe.precision = SHERD_F32;
    err = generate(t, examples, d);
    if (!err) err = sherd__trainer_new(&t->trainer, &t->recipe, &t->data, NULL, seed, d);
    t->rows = sherd__calloc(examples, sizeof *t->rows);
    return err || t->rows ? err : sherd__bench_no_memory(d);
}

/* Gives it a stepper. By products in floats on this machine, or under `share` over nodes that keep
 * the data; bits: in fixed point on this machine, with the bits of nodes. Otherwise by gradients of
 * nodes. */
static int begin_products(training *t, sherd_cluster *cluster, unsigned bits, sherd_diag *d)
{
    const sherd_product_options opt = {
        .size = sizeof opt, .scheme = SHERD_SHARE, .exact = true, .bits = BITS
    };
    int err = cluster ? sherd_multiplier_cluster(&t->products, cluster, &opt, d)
                      : sherd_multiplier_local(&t->products, bits, d);
    const sherd__engine e = { .products = t->products, .keeps = cluster != NULL };
    sherd__network *n = sherd__trainer_network(t->trainer);
    const sherd__train_order *order = sherd__trainer_order(t->trainer);
    if (!err)
        err = sherd__stepper_products(&t->stepper, n, sherd__trainer_optimiser(t->trainer), e, d);
    if (err || (!cluster && !bits)) return err;
    return sherd__network_keep(n, e, t->data.x, order->batch, &t->kept, d);
}

static void on_trace(void *ctx, const sherd__train_trace *x)
{
    ((training *)ctx)->compute = x->computed - x->forward;
}

static int begin_gradients(training *t, sherd_cluster *cluster, sherd__way way, uint32_t shards,
                           sherd_diag *d)
{
    const bool async = way == SHERD__WAY_ASYNC;
    const size_t batch = t->data.x.rows;
    sherd__gradients_options g = { .recipe = &t->recipe,
                                   .data = &t->data,
                                   .network = sherd__trainer_network(t->trainer),
                                   .optimiser = sherd__trainer_optimiser(t->trainer),
                                   .shards = shards,
                                   .bits = BITS,
                                   .async = async,
                                   .staleness_max = UINT64_MAX };
    if (way == SHERD__WAY_SERVER || async) {
        const sherd__train_options o = { .recipe = &t->recipe,
                                         .data = &t->data,
                                         .shards = shards,
                                         .batch = batch,
                                         .bits = BITS,
                                         .async = async,
                                         .staleness_max = UINT64_MAX,
                                         .trace = on_trace,
                                         .trace_ctx = t };
        int err = sherd__train_engine(&g.engine, cluster, &o, d);
        if (err) return err;
        err = sherd__stepper_gradients(&t->stepper, &g, d);
        if (err) sherd__gradient_engine_free(g.engine);
        return err;
    }
    const sherd__allreduce_options o = { .recipe = &t->recipe,
                                         .data = &t->data,
                                         .network = g.network,
                                         .optimiser = g.optimiser,
                                         .kind = way == SHERD__WAY_RING ? SHERD__REDUCE_RING
                                                                        : SHERD__REDUCE_HALVING,
                                         .shards = shards,
                                         .batch = batch,
                                         .bits = BITS };
    sherd__allreduce_lead lead;
    int err = sherd__allreduce_open(&lead, cluster, &o, d);
    if (err) return err;
    err = sherd__stepper_allreduce(&t->stepper, &g, lead, false, d);
    if (err) lead.ops->free(lead.ctx);
    return err;
}

static void end(training *t)
{
    sherd__stepper_free(t->stepper);
    if (t->kept) sherd_multiplier_release(t->products, t->kept);
    sherd_multiplier_free(t->products);
    sherd__trainer_free(t->trainer);
    sherd__dataset_fini(&t->data);
    sherd__dataset_fini(&t->batch);
    sherd__free(t->rows);
    *t = (training){ .number = 0 };
}

static void gather(training *t, size_t len)
{
    size_t row = t->data.x.cols * sherd_dtype_size(t->data.x.dtype);
    const char *x = t->data.x.data;
    for (size_t i = 0; i < len; i++) {
        memcpy((char *)t->batch.owned[0] + i * row, x + t->rows[i] * row, row);
        ((uint32_t *)t->batch.owned[1])[i] = t->data.targets.labels[t->rows[i]];
    }
}

/* Makes a step as the training loop does, and times it. Its batch is a part of the data if these
 * keep their order, else it is gathered. */
static int step(training *t, double *seconds, sherd_diag *d)
{
    sherd__train_order *order = sherd__trainer_order(t->trainer);
    sherd__step s = { .number = t->number,
                      .rate = sherd__schedule_rate(&t->recipe.schedule, t->number),
                      .rows = t->rows };
    sherd__step_result out = { 0 };
    double began = sherd__clock_s();
    int err = 0;
    s.len = sherd__train_order_rows(order, t->number, t->rows);
    sherd__rows list = sherd__train_order_list(order, t->number, &s.first);
    s.list = &list;
    if (!(t->stepper.ops->traits & SHERD__STEPPER_ROWS)) {
        bool given = order->order == SHERD__ORDER_GIVEN;
        if (given)
            s.batch.first = (size_t)sherd__train_order_batch(order, t->number) * order->batch;
        if (!given && !t->batch.x.rows)
            err = sherd__dataset_copy(&t->batch, &t->data, t->rows, s.len, NULL, d);
        if (!err && !given) gather(t, s.len);
        sherd__dataset part = given ? sherd__dataset_part(&t->data, s.batch.first, s.len)
                                    : t->batch;
        s.batch.x = part.x;
        s.batch.targets = part.targets;
        s.batch.kept = t->kept;
    }
    if (!err) err = t->stepper.ops->step(t->stepper.ctx, &s, &out, d);
    *seconds = sherd__clock_s() - began;
    t->number++;
    return err ? err : sherd__bench_go_on(d);
}

/* Makes `count` steps, settled. *median: seconds of a step. */
static int steps(training *t, int count, double *median, sherd_diag *d)
{
    double *took = sherd__calloc((size_t)count, sizeof *took);
    int err = took ? 0 : sherd__bench_no_memory(d);
    for (int i = 0; i < count && !err; i++) err = step(t, &took[i], d);
    if (!err) err = t->stepper.ops->settle(t->stepper.ctx, d);
    *median = err ? 0 : sherd__median(took, count);
    sherd__free(took);
    return err;
}

/* ---- ways to make the same steps ------------------------------------------------------------- */

enum { LARGE_NODES = 4, LARGE_TIERS = 4, LARGE_UNITS = 1768, LARGE_UNITS_QUICK = 200 };

/* A node and its connection, which transfers as much as a round would: every tier in each
 * direction. */
typedef struct carrier {
    sherd__measure *measure;
    size_t units; /* a tier is units x units */
    double seconds;
    int err;
    sherd_diag why;
    pthread_t thread;
    bool runs;
} carrier;

typedef struct ways {
    const sherd__training_spec *spec;
    training t[SHERD__WAYS_MAX];
    sherd_cluster *cluster[SHERD__WAYS_MAX];
    carrier carriers[LARGE_NODES];
} ways;

static void *transfer(void *arg)
{
    carrier *c = arg;
    c->err = sherd__measure_exchange(c->measure, c->units, c->units, LARGE_TIERS, &c->seconds,
                                     &c->why);
    return NULL;
}

/* Runs all connections at once; the slowest counts. */
static int transfer_all(sherd__bench *b, carrier *c, sherd_diag *d)
{
    const sherd__measure_options opt = { .program = SHERD__SELF,
                                         .hooks = { sherd__bench_interrupted, NULL, NULL, b } };
    double slowest = 0;
    int err = 0;
    for (int i = 0; i < LARGE_NODES && !err; i++) {
        c[i].units = b->quick ? LARGE_UNITS_QUICK : LARGE_UNITS;
        if (!c[i].measure) err = sherd__measure_new(&c[i].measure, &opt, d);
    }
    for (int i = 0; i < LARGE_NODES && !err; i++) {
        c[i].runs = pthread_create(&c[i].thread, NULL, transfer, &c[i]) == 0;
        if (!c[i].runs) err = sherd__fail(d, SHERD_ENOMEM, NULL, "cannot start a thread");
    }
    for (int i = 0; i < LARGE_NODES; i++) {
        if (c[i].runs) pthread_join(c[i].thread, NULL);
        if (c[i].runs && c[i].err && !err)
            err = sherd__fail(d, c[i].err, c[i].why.hint, "%s", c[i].why.message);
        if (c[i].seconds > slowest) slowest = c[i].seconds;
        c[i].runs = false;
    }
    sherd__bench_put(b, "link", slowest);
    return err;
}

/* Without a recipe, a network of 100 MB in square layers. */
static int prepare_way(training *t, const sherd__bench *b, const sherd__training_spec *s,
                       sherd_diag *d)
{
    char text[400];
    if (s->recipe)
        return prepare(t, s->recipe, b->quick ? s->examples_quick : s->examples, s->f32, d);
    int units = b->quick ? LARGE_UNITS_QUICK : LARGE_UNITS,
        len = snprintf(text, sizeof text,
                       "input = %d\nloss = cross-entropy\ndata = random\nexamples = 4\nclasses = "
                       "10\norder = shuffled\nepochs = 1\nrate = 0.001\n",
                       units);
    for (int i = 0; i < LARGE_TIERS; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, "layer = dense %d\n%s", units,
                        i + 1 < LARGE_TIERS ? "layer = relu\n" : "");
    return prepare(t, text, LARGE_NODES, false, d);
}

static int open_way(sherd__bench *b, ways *w, size_t i, sherd_diag *d)
{
    const sherd__training_spec *s = w->spec;
    sherd__way way = s->ways[i];
    int err = prepare_way(&w->t[i], b, s, d);
    if (!err && way != SHERD__WAY_HERE)
        err = sherd__bench_cluster(&w->cluster[i], b, s->nodes, NULL, d);
    if (err) return err;
    return way <= SHERD__WAY_PRODUCTS ? begin_products(&w->t[i], w->cluster[i], 0, d)
                                      : begin_gradients(&w->t[i], w->cluster[i], way, s->nodes, d);
}

static void close_way(ways *w, size_t i)
{
    end(&w->t[i]);
    sherd_cluster_close(w->cluster[i]);
    w->cluster[i] = NULL;
}

/* Makes the steps of one turn, of which the median counts. The first turn is a whole epoch, in
 * which nodes are sent what they keep. */
static int turn_way(sherd__bench *b, ways *w, size_t i, sherd_diag *d)
{
    static const char *const series[] = { "", "here", "nodes", "server", "ring", "halving", "" };
    const sherd__training_spec *s = w->spec;
    training *t = &w->t[i];
    double median = 0, up, down, up_then, down_then;
    sherd__busy before, after;
    int count = b->quick ? s->steps_quick : s->steps, epoch = 1;
    if (b->warming) epoch = (int)sherd__trainer_order(t->trainer)->per_epoch;
    if (w->cluster[i]) sherd__bench_rest();
    if (w->cluster[i]) sherd__bench_traffic(w->cluster[i], &up, &down);
    if (w->cluster[i]) sherd__bench_busy(w->cluster[i], &before);
    double began = sherd__clock_s();
    int err = steps(t, count > epoch ? count : epoch, &median, d);
    sherd__bench_put(b, series[s->ways[i]], median);
    sherd__bench_put(b, "compute", t->compute);
    sherd__bench_set(b, "bytes",
                     2.0 * LARGE_NODES * sizeof(double) *
                         (double)sherd__network_count(sherd__trainer_network(t->trainer)));
    if (!w->cluster[i]) return err;
    double seconds = sherd__clock_s() - began;
    sherd__bench_busy(w->cluster[i], &after);
    sherd__bench_put_busy(b, &before, &after, seconds);
    sherd__bench_traffic(w->cluster[i], &up_then, &down_then);
    sherd__bench_put(b, "up", up_then - up);
    sherd__bench_put(b, "down", down_then - down);
    return err;
}

/* Where arrays are small, as in an iteration over nodes, numpy runs with one thread, too, and the
 * faster setting counts. f32: how long numpy takes in f32, once. */
static int run_numpy(sherd__bench *b, const ways *w, bool f32, sherd_diag *d)
{
    const sherd__training_spec *s = w->spec;
    char examples[16], repeats[16];
    const char *const names[] = { f32 ? "numpy-f32" : "numpy", NULL }, *const one[] = { "numpy.one",
                                                                                        NULL };
    const char *args[] = { f32 ? "f4" : "f8", repeats, NULL, NULL };
    snprintf(repeats, sizeof repeats, "%d", b->quick ? s->steps_quick : s->steps);
    snprintf(examples, sizeof examples, "%zu", w->t[0].data.x.rows);
    if (s->script == sherd__bench_mnist_epoch_py) args[1] = examples, args[2] = repeats;
    int err = sherd__bench_numpy(b, s->script, args, 0, names, d);
    return err || !s->nodes ? err : sherd__bench_numpy(b, s->script, args, 1, one, d);
}

static int open_ways(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    ways *w = state;
    int err = 0;
    w->spec = spec;
    for (size_t i = 0; i < SHERD__WAYS_MAX && w->spec->ways[i] && !err; i++)
        err = open_way(b, w, i, d);
    return err;
}

static int turn_ways(sherd__bench *b, void *state, sherd_diag *d)
{
    ways *w = state;
    int err = 0;
    for (size_t i = 0; i < SHERD__WAYS_MAX && w->spec->ways[i] && !err; i++)
        err = turn_way(b, w, i, d);
    if (!err && !w->spec->recipe) err = transfer_all(b, w->carriers, d);
    return !err && w->spec->script ? run_numpy(b, w, false, d) : err;
}

/* Steps by local products in fixed point must give the same bits as those over nodes. */
static int end_ways(sherd__bench *b, void *state, sherd_diag *d)
{
    ways *w = state;
    training t;
    double ignored;
    if (w->spec->f32) return run_numpy(b, w, true, d);
    if (w->spec->ways[1] != SHERD__WAY_PRODUCTS) return 0;
    int err = prepare_way(&t, b, w->spec, d);
    if (!err) err = begin_products(&t, NULL, BITS, d);
    if (!err) err = steps(&t, (int)w->t[1].number, &ignored, d);
    if (!err) {
        sherd__network *here = sherd__trainer_network(t.trainer),
                       *over = sherd__trainer_network(w->t[1].trainer);
        if (memcmp(sherd__network_params(here), sherd__network_params(over),
                   sherd__network_count(here) * sizeof(double)) != 0)
            err = sherd__fail(d, SHERD_EDIFFERS, "please report this",
                              "the parameters differ from those trained here");
    }
    end(&t);
    return err;
}

static void close_ways(void *state)
{
    ways *w = state;
    for (size_t i = 0; i < SHERD__WAYS_MAX; i++) close_way(w, i);
    for (int i = 0; i < LARGE_NODES; i++) sherd__measure_free(w->carriers[i].measure);
}

const sherd__kind sherd__bench_ways = { sizeof(ways), open_ways, turn_ways, end_ways,
                                        close_ways,   false,     false };

/* One way after the other, each over nodes of its own, so that none profits from another's
 * memory. */
static int turn_apart(sherd__bench *b, void *state, sherd_diag *d)
{
    ways *w = state;
    int err = 0;
    for (size_t i = 0; i < SHERD__WAYS_MAX && w->spec->ways[i] && !err; i++) {
        err = open_way(b, w, i, d);
        for (int k = -2; k < b->turns && !err; k++) {
            b->warming = k < 0;
            err = turn_way(b, w, i, d);
        }
        close_way(w, i);
    }
    return err;
}

static int open_apart(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    (void)b;
    (void)d;
    ((ways *)state)->spec = spec;
    return 0;
}

const sherd__kind sherd__bench_apart = { sizeof(ways), open_apart, turn_apart, NULL,
                                         close_ways,   true,       true };

/* ---- a slow node ----------------------------------------------------------------------------- */

typedef struct brake {
    pid_t pid;
    atomic_bool on;
    pthread_t thread;
    bool runs;
} brake;

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* Lets the node run a quarter of the time. */
static void *hold_up(void *arg)
{
    brake *k = arg;
    while (k->on) {
        kill(k->pid, SIGSTOP);
        sleep_ms(15);
        kill(k->pid, SIGCONT);
        sleep_ms(5);
    }
    return NULL;
}

/* A training with node 1 slowed down: parameters after each step, and seconds until then. */
typedef struct slowed {
    training t;
    sherd_cluster *cluster;
    double *path, *when;
    size_t params, len;
} slowed;

/* Finds the first step after which the loss over all examples, computed locally, is at most *loss.
 * If *loss is 0, that is the last step, and *loss becomes its loss. *at is len if there is none. */
static int find_loss(const slowed *s, double *loss, size_t *at, sherd_diag *d)
{
    const training *t = &s->t;
    sherd__network *n = NULL;
    sherd__engine e = { .maps = false };
    double here = 0, accuracy;
    bool last = *loss == 0;
    int err = sherd__recipe_network(&t->recipe, t->data.x.rows, &n, d);
    if (!err) err = sherd_multiplier_local(&e.products, 0, d);
    for (*at = last ? s->len - 1 : 0; *at < s->len && !err; ++*at) {
        sherd__network_set(n, s->path + *at * s->params);
        err = sherd__train_evaluate(n, e,
                                    &(sherd__evaluation){ .recipe = &t->recipe,
                                                          .data = &t->data,
                                                          .batch = t->data.x.rows },
                                    &here, &accuracy, d);
        if (!err && (last || here <= *loss)) break;
    }
    if (last) *loss = here;
    sherd_multiplier_free(e.products);
    sherd__network_free(n);
    return err;
}

/* Makes the steps; *total: seconds of all, settled. */
static int run_slowed(slowed *s, double *total, sherd_diag *d)
{
    sherd_node_info info = { .size = sizeof info };
    brake k = { .on = true };
    double ignored, began = sherd__clock_s();
    int err = sherd_cluster_node_at(s->cluster, 1, &info, d);
    if (err) return err;
    k.pid = (pid_t)info.pid;
    k.runs = pthread_create(&k.thread, NULL, hold_up, &k) == 0;
    for (size_t i = 0; i < s->len && !err; i++) {
        err = step(&s->t, &ignored, d);
        sherd__network_get(sherd__trainer_network(s->t.trainer), s->path + i * s->params);
        s->when[i] = sherd__clock_s() - began;
    }
    if (!err) err = s->t.stepper.ops->settle(s->t.stepper.ctx, d);
    *total = sherd__clock_s() - began;
    k.on = false;
    if (k.runs) pthread_join(k.thread, NULL);
    return err;
}

static int open_slowed(sherd__bench *b, void *state, const void *spec, sherd_diag *d)
{
    ways *w = state;
    w->spec = spec;
    return sherd__bench_cluster(&w->cluster[0], b, w->spec->nodes, NULL, d);
}

/* One training: examples per second, and the seconds until *loss was reached. Asynchronously it may
 * take twice as many steps. */
static int time_slowed(sherd__bench *b, ways *w, sherd__way way, double *loss, sherd_diag *d)
{
    bool async = way == SHERD__WAY_ASYNC;
    int count = (b->quick ? w->spec->steps_quick : w->spec->steps) * (async ? 2 : 1);
    slowed s = { .cluster = w->cluster[0], .len = (size_t)count };
    double total = 0, ignored;
    size_t at = 0;
    int err = prepare_way(&s.t, b, w->spec, d);
    if (!err) err = begin_gradients(&s.t, s.cluster, way, 16, d);
    if (!err) err = steps(&s.t, 1, &ignored, d);
    if (!err) s.params = sherd__network_count(sherd__trainer_network(s.t.trainer));
    s.path = sherd__calloc(s.len, s.params * sizeof *s.path);
    s.when = sherd__calloc(s.len, sizeof *s.when);
    if (!err && (!s.path || !s.when)) err = sherd__bench_no_memory(d);
    if (!err) err = run_slowed(&s, &total, d);
    if (!err) err = find_loss(&s, loss, &at, d);
    if (!err && at == s.len)
        err = sherd__fail(d, SHERD_EDIFFERS, "please report this",
                          "asynchronous training did not reach a loss of %g in twice as many steps",
                          *loss);
    if (!err) {
        sherd__bench_put(b, async ? "async" : "sync", count * (double)s.t.data.x.rows / total);
        sherd__bench_put(b, async ? "async-until" : "sync-until", s.when[at]);
    }
    end(&s.t);
    sherd__free(s.path);
    sherd__free(s.when);
    return err;
}

static int turn_slowed(sherd__bench *b, void *state, sherd_diag *d)
{
    double loss = 0;
    int err = time_slowed(b, state, SHERD__WAY_SERVER, &loss, d);
    sherd__bench_put(b, "loss", loss);
    return err ? err : time_slowed(b, state, SHERD__WAY_ASYNC, &loss, d);
}

const sherd__kind sherd__bench_slowed = { sizeof(ways), open_slowed, turn_slowed, NULL,
                                          close_ways,   true,        false };
