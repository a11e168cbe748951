/*
 * Training by gradients over local nodes. Measured are:
 * - one iteration of the spiral with everything transferred each time (a new partition of the
 *   examples, parameters, gradients), compared with numpy's in its process;
 * - a round of a network of 100 MB, compared with the links alone;
 * - the same round with sums among the nodes, compared with sums at the server;
 * - the cost of one node that is four times slower, to synchronous and asynchronous training, in
 *   examples per second and in time to one loss.
 * Except for sums among nodes, nodes keep nothing between iterations.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "cli/process.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "learn/digits.h"
#include "learn/network.h"
#include "scheduler/allreduce/allreduce.h"
#include "scheduler/cluster/measure.h"
#include "scheduler/train/train.h"

#define BITS 17u
#define NODES 2u

static const uint8_t seed[32] = "bench of gradients";

typedef struct training {
    sherd__recipe recipe;
    sherd__dataset data;
    sherd__train_order order;
    uint32_t *rows;
    sherd__network *network;
    sherd__optimiser optimiser;
    sherd__stepper stepper;
    double compute; /* seconds of computation that the nodes report */
    uint64_t passes, number;
    double *path, *when; /* parameters after each step, and seconds until then; NULL: not kept */
    size_t path_len;
    double *took;  /* seconds of each step of a turn; NULL: not kept */
    uint64_t turn; /* number of steps in a turn */
} training;

static void on_trace(void *ctx, const sherd__train_trace *x)
{
    training *t = ctx;
    t->compute += x->computed - x->forward;
    t->passes++;
}

/* Generates examples of the recipe's shape. */
static int generate(training *t, size_t examples, sherd_diag *d)
{
    size_t inputs = t->recipe.in.height * t->recipe.in.width * t->recipe.in.channels;
    if (inputs == 2) return sherd__generate_spiral(&t->data, examples, 3, seed, d);
    if (inputs != SHERD__DIGIT_PIXELS)
        return sherd__generate_random(&t->data, examples, inputs, 10, seed, d);
    sherd__dataset bytes = { .classes = 0 };
    int err = sherd__generate_digits(&bytes, 0, examples, d);
    if (!err) err = sherd__dataset_copy(&t->data, &bytes, NULL, examples, 256, d);
    sherd__dataset_fini(&bytes);
    return err;
}

/* Sets up everything except the stepper. */
static int prepare(training *t, const char *text, size_t examples, sherd_diag *d)
{
    sherd__optimiser_spec how = { .method = SHERD__SGD };
    sherd__seeded state;
    memset(t, 0, sizeof *t);
    int err = sherd__recipe_parse(&t->recipe, text, strlen(text), "bench", SHERD__RECIPE_NETWORK,
                                  d);
    if (!err) err = generate(t, examples, d);
    if (!err) err = sherd__train_order_init(&t->order, SHERD__ORDER_SHUFFLED, examples, 0, seed, d);
    if (!err && !(t->rows = sherd__calloc(examples, sizeof *t->rows)))
        err = sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    if (!err) err = sherd__recipe_network(&t->recipe, 1, &t->network, d);
    if (err) return err;
    sherd__entropy e = sherd__train_entropy(&state, seed, "weights", 0);
    sherd__network_draw(t->network, &e, 0);
    return sherd__optimiser_init(&t->optimiser, &how, sherd__network_count(t->network), d);
}

static int begin(training *t, const char *text, size_t examples, sherd_cluster *cluster,
                 uint32_t shards, bool async, sherd_diag *d)
{
    sherd__gradient_engine engine = { 0 };
    int err = prepare(t, text, examples, d);
    sherd__train_options o = { .recipe = &t->recipe,
                               .data = &t->data,
                               .shards = shards,
                               .batch = examples,
                               .bits = BITS,
                               .async = async,
                               .staleness_max = UINT64_MAX,
                               .trace = on_trace,
                               .trace_ctx = t };
    if (!err) err = sherd__train_engine(&engine, cluster, &o, d);
    if (err) return err;
    sherd__gradients_options g = { .recipe = &t->recipe,
                                   .data = &t->data,
                                   .network = t->network,
                                   .optimiser = &t->optimiser,
                                   .engine = engine,
                                   .shards = shards,
                                   .bits = BITS,
                                   .async = async,
                                   .staleness_max = UINT64_MAX };
    err = sherd__stepper_gradients(&t->stepper, &g, d);
    if (err) sherd__gradient_engine_free(engine);
    return err;
}

/* Starts the same training with gradients summed among the nodes (all-reduce). */
static int begin_circle(training *t, const char *text, size_t examples, sherd_cluster *cluster,
                        uint32_t shards, sherd__reduce kind, sherd_diag *d)
{
    sherd__allreduce_lead lead;
    int err = prepare(t, text, examples, d);
    if (err) return err;
    sherd__allreduce_options o = { .recipe = &t->recipe,
                                   .data = &t->data,
                                   .network = t->network,
                                   .optimiser = &t->optimiser,
                                   .kind = kind,
                                   .shards = shards,
                                   .batch = examples,
                                   .bits = BITS };
    sherd__gradients_options g = { .recipe = &t->recipe,
                                   .data = &t->data,
                                   .network = t->network,
                                   .optimiser = &t->optimiser,
                                   .shards = shards,
                                   .bits = BITS };
    err = sherd__allreduce_open(&lead, cluster, &o, d);
    if (err) return err;
    err = sherd__stepper_allreduce(&t->stepper, &g, lead, false, d);
    if (err) lead.ops->free(lead.ctx);
    return err;
}

static void end(training *t)
{
    sherd__stepper_free(t->stepper);
    sherd__optimiser_fini(&t->optimiser);
    sherd__network_free(t->network);
    sherd__train_order_fini(&t->order);
    sherd__free(t->rows);
    sherd__free(t->path);
    sherd__free(t->when);
    sherd__free(t->took);
    sherd__dataset_fini(&t->data);
}

static void note_path(training *t, double seconds)
{
    size_t count = sherd__network_count(t->network);
    memcpy(t->path + t->path_len * count, sherd__network_params(t->network),
           count * sizeof(double));
    t->when[t->path_len++] = seconds;
}

/* Runs `count` steps and returns their total time in *seconds. */
static int steps(training *t, uint64_t count, double rate, double *seconds, sherd_diag *d)
{
    double began = sherd__clock_s();
    int err = 0;
    for (uint64_t i = 0; i < count && !err; i++, t->number++) {
        sherd__step_result out = { 0 };
        double before = sherd__clock_s();
        size_t len = sherd__train_order_rows(&t->order, t->number, t->rows);
        sherd__step s = { .number = t->number, .rate = rate, .rows = t->rows, .len = len };
        sherd__rows list = sherd__train_order_list(&t->order, t->number, &s.first);
        s.list = &list;
        err = t->stepper.ops->step(t->stepper.ctx, &s, &out, d);
        if (t->took) t->took[i] = sherd__clock_s() - before;
        if (!err && t->path) note_path(t, sherd__clock_s() - began);
    }
    if (!err) err = t->stepper.ops->settle(t->stepper.ctx, d);
    *seconds = sherd__clock_s() - began;
    return err;
}

/* ---- the spiral ------------------------------------------------------------------------------ */

/* One turn: the median of its iterations in microseconds, as numpy's script prints it. */
static int spiral_turn(void *ctx, double *us, sherd_diag *d)
{
    training *t = ctx;
    double seconds;
    int err = steps(t, t->turn, 1, &seconds, d);
    *us = err ? 0 : sherd__median(t->took, (int)t->turn) * 1e6;
    return err;
}

static int spiral_warm(training *t, uint64_t count, sherd_diag *d)
{
    double ignored;
    t->took = sherd__calloc(count, sizeof *t->took);
    if (!t->took) return sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    t->turn = count;
    int err = steps(t, count, 1, &ignored, d);
    t->compute = 0;
    t->passes = 0;
    return err;
}

int sherd__bench_gradients_spiral(sherd__bench *b, sherd_diag *d)
{
    static const char text[] = "input = 2\nlayer = dense 100\nlayer = relu\nlayer = dense 3\n"
                               "loss = cross-entropy\nl2 = 0.001\n";
    static const char elsewhere[] = "a shard at each node (train makes 8 unless told otherwise); "
                                    "numpy's took 259 us where the target was first measured";
    const char *args[] = { "f8", b->quick ? "50" : "1000", NULL };
    sherd__figure f = { .name = "gradients-spiral",
                        .unit = "x numpy",
                        .target = 1,
                        .what = "spiral by gradients, 2 nodes, beside numpy here",
                        .remark = elsewhere };
    sherd_cluster *cluster = NULL;
    training t = { 0 };
    sherd__rivalry pair = { .turn = spiral_turn,
                            .ctx = &t,
                            .turns = 9,
                            .small = true,
                            .script = sherd__bench_spiral_py,
                            .args = args };
    int err = sherd__bench_open(&cluster, b, NODES, d);
    if (!err) err = begin(&t, text, 450, cluster, NODES, false, d);
    if (!err) err = spiral_warm(&t, b->quick ? 50 : 1000, d);
    if (!err) err = sherd__rivalry_run(b, &pair, &f, d);
    if (!err) {
        sherd__figure_beside(&f, "here_us", "an iteration", pair.own, "us");
        sherd__figure_beside(&f, "compute_us", "of it nodes compute",
                             t.compute / (double)(t.passes ? t.passes : 1) * 1e6, "us");
        if (pair.with > 0) sherd__figure_beside(&f, "numpy_us", "numpy's", pair.numpy, "us");
        sherd__bench_tell(b, &f);
    }
    end(&t);
    sherd_cluster_close(cluster);
    return err;
}

/* ---- many parameters ------------------------------------------------------------------------- */

enum { LARGE_NODES = 4, LARGE_TIERS = 4 };

/* One node and its connection, which transfers as much as a round would: every tier in each
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

static void *carry(void *arg)
{
    carrier *c = arg;
    c->err = sherd__measure_exchange(c->measure, c->units, c->units, LARGE_TIERS, &c->seconds,
                                     &c->why);
    return NULL;
}

/* Runs all connections at once and returns the time of the slowest. */
static int carry_all(carrier *c, double *seconds, sherd_diag *d)
{
    int err = 0;
    *seconds = 0;
    for (int i = 0; i < LARGE_NODES && !err; i++) {
        c[i].runs = pthread_create(&c[i].thread, NULL, carry, &c[i]) == 0;
        if (!c[i].runs) err = sherd__fail(d, SHERD_ENOMEM, NULL, "cannot start a thread");
    }
    for (int i = 0; i < LARGE_NODES; i++) {
        if (c[i].runs) pthread_join(c[i].thread, NULL);
        if (c[i].runs && c[i].err && !err)
            err = sherd__fail(d, c[i].err, c[i].why.hint, "%s", c[i].why.message);
        c[i].runs = false;
        if (c[i].seconds > *seconds) *seconds = c[i].seconds;
    }
    return err;
}

/* Writes the recipe of a network with square layers of `units` x `units`. */
static void large_text(size_t units, char *text, size_t size)
{
    int len = snprintf(text, size, "input = %zu\n", units);
    for (int i = 0; i < LARGE_TIERS; i++)
        len += snprintf(text + len, size - (size_t)len, "layer = dense %zu\n%s", units,
                        i + 1 < LARGE_TIERS ? "layer = relu\n" : "loss = cross-entropy\n");
}

int sherd__bench_gradients_large(sherd__bench *b, sherd_diag *d)
{
    sherd__figure f = { .name = "gradients-large",
                        .unit = "% of link",
                        .better = SHERD__HIGHER,
                        .target = 60,
                        .what = "100 MB of parameters, 4 nodes, a round" };
    double round[SHERD__BENCH_RUNS_MAX], link[SHERD__BENCH_RUNS_MAX], ignored;
    char text[256];
    size_t units = b->quick ? 200 : 1768;
    int runs = sherd__bench_runs(b, 7);
    carrier c[LARGE_NODES] = { { .measure = NULL } };
    sherd__measure_options mo = { .program = SHERD__SELF,
                                  .hooks = { sherd__bench_interrupted, NULL, NULL, b } };
    sherd_cluster *cluster = NULL;
    training t = { 0 };
    large_text(units, text, sizeof text);
    int err = sherd__bench_open(&cluster, b, LARGE_NODES, d);
    if (!err) err = begin(&t, text, LARGE_NODES, cluster, LARGE_NODES, false, d);
    for (int i = 0; i < LARGE_NODES && !err; i++) {
        c[i].units = units;
        err = sherd__measure_new(&c[i].measure, &mo, d);
    }
    if (!err) err = steps(&t, 2, 0.001, &ignored, d); /* warms everything up */
    if (!err) err = carry_all(c, &ignored, d);
    t.compute = 0;
    t.passes = 0;
    for (int i = 0; i < runs && !err; i++) {
        err = steps(&t, 1, 0.001, &round[i], d);
        if (!err) err = carry_all(c, &link[i], d);
        if (!err) sherd__figure_add(&f, 100 * link[i] / round[i]);
    }
    if (!err) {
        double bytes = 2 * LARGE_NODES * 8.0 * (double)sherd__network_count(t.network);
        sherd__figure_beside(&f, "round_ms", "a round", 1e3 * sherd__median(round, runs), "ms");
        sherd__figure_beside(&f, "link_ms", "its bytes alone", 1e3 * sherd__median(link, runs),
                             "ms");
        sherd__figure_beside(&f, "mb", "on the wire", bytes * 1e-6, "MB");
        sherd__figure_beside(&f, "compute_ms", "a node's pass",
                             t.compute / (double)(t.passes ? t.passes : 1) * 1e3, "ms");
        sherd__bench_tell(b, &f);
    }
    for (int i = 0; i < LARGE_NODES; i++) sherd__measure_free(c[i].measure);
    end(&t);
    sherd_cluster_close(cluster);
    return err;
}

/* ---- sums among nodes ------------------------------------------------------------------------ */

enum { BY_SERVER, BY_RING, BY_HALVING, WAYS };

/* Measures each of a few rounds after a warm-up. */
static int rounds(training *t, int runs, double *took, sherd_diag *d)
{
    double ignored;
    int err = steps(t, 2, 0.001, &ignored, d);
    t->took = took;
    if (!err) err = steps(t, (uint64_t)runs, 0.001, &ignored, d);
    t->took = NULL;
    return err;
}

int sherd__bench_gradients_allreduce(sherd__bench *b, sherd_diag *d)
{
    sherd__figure f[WAYS] = { [BY_RING] = { .name = "gradients-ring",
                                            .unit = "x server",
                                            .target = 1.3,
                                            .what = "100 MB summed in a ring of 4 nodes, a round" },
                              [BY_HALVING] = { .name = "gradients-halving",
                                               .unit = "x server",
                                               .target = 1.3,
                                               .what = "100 MB summed by halving and doubling" } };
    static const sherd__reduce kinds[WAYS] = {
        [BY_RING] = SHERD__REDUCE_RING, [BY_HALVING] = SHERD__REDUCE_HALVING
    };
    double took[WAYS][SHERD__BENCH_RUNS_MAX];
    char text[256];
    int runs = sherd__bench_runs(b, 5), err = 0;
    large_text(b->quick ? 200 : 1768, text, sizeof text);
    for (int way = 0; way < WAYS && !err; way++) {
        sherd_cluster *cluster = NULL; /* one for each way, so that none profits from another's
                                          memory */
        training t = { 0 };
        err = sherd__bench_open(&cluster, b, LARGE_NODES, d);
        if (!err)
            err = way == BY_SERVER
                      ? begin(&t, text, LARGE_NODES, cluster, LARGE_NODES, false, d)
                      : begin_circle(&t, text, LARGE_NODES, cluster, LARGE_NODES, kinds[way], d);
        if (!err) err = rounds(&t, runs, took[way], d);
        end(&t);
        sherd_cluster_close(cluster);
    }
    if (err) return err;
    double server = sherd__median(took[BY_SERVER], runs);
    for (int way = BY_RING; way < WAYS; way++) {
        for (int i = 0; i < runs; i++) sherd__figure_add(&f[way], took[way][i] / server);
        sherd__figure_beside(&f[way], "round_ms", "a round", 1e3 * sherd__median(took[way], runs),
                             "ms");
        sherd__figure_beside(&f[way], "server_ms", "by the server", 1e3 * server, "ms");
        sherd__bench_tell(b, &f[way]);
    }
    return 0;
}

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

/* Computes here the loss over all examples with the parameters after step i. */
static int loss_at(const training *t, size_t i, double *out, sherd_diag *d)
{
    sherd__network *n = NULL;
    sherd__engine e = { .maps = false };
    sherd__batch all = { .x = t->data.x, .targets = t->data.targets };
    size_t count = sherd__network_count(t->network);
    int err = sherd__recipe_network(&t->recipe, t->data.x.rows, &n, d);
    if (!err) err = sherd_multiplier_local(&e.products, 0, d);
    if (!err) {
        memcpy(sherd__network_params(n), t->path + i * count, count * sizeof(double));
        err = sherd__network_learn(n, e, &all, out, NULL, d);
    }
    sherd_multiplier_free(e.products);
    sherd__network_free(n);
    return err;
}

/* Finds the first step that reached this loss; path_len if none did. */
static int find_loss(const training *t, double loss, size_t *at, sherd_diag *d)
{
    int err = 0;
    for (*at = 0; *at < t->path_len && !err; ++*at) {
        double here;
        err = loss_at(t, *at, &here, d);
        if (!err && here <= loss) break;
    }
    return err;
}

/* Runs one training with node 1 slowed down. Returns examples per second and the seconds until
 * *loss was reached. With *loss 0 it runs to the last step and returns the loss after it. */
static int timed(sherd__bench *b, sherd_cluster *cluster, bool async, double *rate, double *loss,
                 double *until, sherd_diag *d)
{
    static const char text[] = "input = 784\nlayer = dense 128\nlayer = relu\nlayer = dense 10\n"
                               "loss = cross-entropy\n";
    size_t examples = b->quick ? 200 : 3200, at = 0;
    uint64_t count = b->quick ? 3 : 12;
    sherd_node_info info = { .size = sizeof info };
    training t = { 0 };
    double seconds = 0;
    brake k = { .on = true };
    if (async) count *= 2; /* it may need more steps */
    int err = begin(&t, text, examples, cluster, 16, async, d);
    if (!err) err = steps(&t, 1, 0.1, &seconds, d);
    if (!err) {
        t.path = sherd__calloc(count * sherd__network_count(t.network), sizeof *t.path);
        t.when = sherd__calloc(count, sizeof *t.when);
        if (!t.path || !t.when) err = sherd__fail(d, SHERD_ENOMEM, NULL, "out of memory");
    }
    sherd_cluster_node(cluster, 1, &info);
    k.pid = info.pid;
    if (!err) k.runs = pthread_create(&k.thread, NULL, hold_up, &k) == 0;
    if (!err) err = steps(&t, count, 0.1, &seconds, d);
    k.on = false;
    if (k.runs) pthread_join(k.thread, NULL);
    *rate = (double)count * (double)examples / seconds;
    if (!err && !async) err = loss_at(&t, at = count - 1, loss, d);
    if (!err && async) err = find_loss(&t, *loss, &at, d);
    if (!err && at == t.path_len)
        err = sherd__fail(d, SHERD_EDIFFERS, "please report this",
                          "asynchronous training did not come to a loss of %g in twice as many "
                          "steps",
                          *loss);
    if (!err) *until = t.when[at];
    end(&t);
    return err;
}

int sherd__bench_gradients_async(sherd__bench *b, sherd_diag *d)
{
    sherd__figure f = { .name = "gradients-async",
                        .what = "asynchronous, one of 2 nodes 4 times slower",
                        .unit = "x sync",
                        .better = SHERD__HIGHER,
                        .target = 2 };
    sherd__figure g = { .name = "gradients-async-loss",
                        .unit = "x sync",
                        .target = 1,
                        .what = "  its time to the loss that synchronous comes to" };
    double sync[SHERD__BENCH_RUNS_MAX], async[SHERD__BENCH_RUNS_MAX], loss = 0;
    double there[SHERD__BENCH_RUNS_MAX], here[SHERD__BENCH_RUNS_MAX];
    sherd_cluster *cluster = NULL;
    int err = sherd__bench_open(&cluster, b, NODES, d), runs = sherd__bench_runs(b, 5);
    for (int i = 0; i < runs && !err; i++) {
        err = timed(b, cluster, false, &sync[i], &loss, &there[i], d);
        if (!err) err = timed(b, cluster, true, &async[i], &loss, &here[i], d);
        if (!err) sherd__figure_add(&f, async[i] / sync[i]);
        if (!err) sherd__figure_add(&g, here[i] / there[i]);
    }
    sherd_cluster_close(cluster);
    if (err) return err;
    sherd__figure_beside(&f, "sync", "synchronous", sherd__median(sync, runs), "examples/s");
    sherd__figure_beside(&f, "async", "asynchronous", sherd__median(async, runs), "examples/s");
    sherd__figure_beside(&g, "loss", "a loss of", loss, "");
    sherd__figure_beside(&g, "sync_seconds", "synchronous", sherd__median(there, runs), "s");
    sherd__figure_beside(&g, "async_seconds", "asynchronous", sherd__median(here, runs), "s");
    sherd__bench_tell(b, &f);
    sherd__bench_tell(b, &g);
    return 0;
}
