/*
 * Training by gradients over real node processes: the same bits as with threads of this process,
 * for any number of nodes and whatever happens to them; which steps overlap; the effect of slow
 * nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "scheduler/train/train.h"
#include "tests/support/send_signal.h"
#include "tests/system/scheduler/local_nodes.h"

static const char spiral[] = "input = 2\nlayer = dense 100\nlayer = relu\nlayer = dense 3\n"
                             "loss = cross-entropy\nl2 = 0.001\n";
static const char conv[] = "input = 12 x 12 x 1\nlayer = conv2d 4 window 3\nlayer = relu\n"
                           "layer = average-pool 2\nlayer = dense 9\nlayer = tanh\n"
                           "layer = dense 3\nloss = cross-entropy\n";
static const char deep[] = "input = 1000\nlayer = dense 900\nlayer = sigmoid\n"
                           "layer = dense 900\nlayer = sigmoid\nlayer = dense 900\n"
                           "layer = sigmoid\nlayer = dense 10\nloss = cross-entropy\n";

enum { ROWS = 450 };
static const uint8_t seed[32] = "gradients over nodes";

/* ---- the networks ---------------------------------------------------------------------------- */

typedef struct world {
    sherd__recipe recipe;
    sherd__dataset data;
    void *memory[2];
    size_t batch;
    sherd_cluster *cluster;
} world;

static atomic_uint traces, overlapped, early, widest; /* widest: shards of a part */

static void world_open(world *w, const char *text, size_t rows, uint32_t nodes, uint64_t memory)
{
    sherd_diag d = { 0 };
    memset(w, 0, sizeof *w);
    if (sherd__recipe_parse(&w->recipe, text, strlen(text), "test", SHERD__RECIPE_NETWORK, &d))
        fail_msg("%s", d.message);
    size_t inputs = w->recipe.in.height * w->recipe.in.width * w->recipe.in.channels;
    if (inputs == 2) assert_int_equal(sherd__generate_spiral(&w->data, rows, 3, seed, &d), 0);
    else assert_int_equal(sherd__generate_random(&w->data, rows, inputs, 3, seed, &d), 0);
    w->batch = rows;
    if (nodes) w->cluster = local_open(nodes, NULL, memory);
}

static void world_close(world *w)
{
    sherd_cluster_close(w->cluster);
    sherd__dataset_fini(&w->data);
}

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct run {
    sherd__network *network;
    sherd__optimiser optimiser;
    sherd__stepper stepper;
    double first, cost;
    uint64_t stale, stalest, updates, dropped;
} run;

static void on_update(void *ctx, const sherd__gradients_update *u)
{
    run *r = ctx;
    r->updates++;
    r->stale += u->staleness;
    r->dropped += u->dropped;
    if (u->staleness > r->stalest) r->stalest = u->staleness;
}

static void on_trace(void *ctx, const sherd__train_trace *t)
{
    (void)ctx;
    traces++;
    assert_true(t->forward >= 0 && t->computed >= t->forward);
    assert_true(t->answered >= t->asked && t->node[0]);
    if (t->top_left < t->lowest_backward) overlapped++;
    if (t->forward < t->last_params) early++;
    if (t->shards > widest) widest = t->shards;
}

static sherd__gradient_engine engine_of(world *w, const sherd__gradients_options *g, bool here,
                                        bool allow_drop)
{
    sherd__gradient_engine e;
    sherd_diag d = { 0 };
    sherd__train_options o = { .recipe = &w->recipe,
                               .data = &w->data,
                               .shards = g->shards,
                               .batch = w->batch,
                               .bits = g->bits,
                               .allow_drop = allow_drop,
                               .recurring = g->shards == 5,
                               .trace = on_trace };
    int err = here ? sherd__gradients_here(&e, &w->recipe, &w->data,
                                           &(sherd__here_options){
                                               sherd__shard_most(w->batch, g->shards), g->bits, 2 },
                                           &d)
                   : sherd__train_engine(&e, w->cluster, &o, &d);
    if (err) fail_msg("%s", d.message);
    return e;
}

static void run_begin(run *r, world *w, sherd__gradients_options g, bool here, bool allow_drop)
{
    sherd_diag d = { 0 };
    sherd__seeded state;
    sherd__optimiser_spec spec = { .method = SHERD__SGD };
    memset(r, 0, sizeof *r);
    assert_int_equal(sherd__recipe_network(&w->recipe, 1, &r->network, &d), 0);
    sherd__entropy e = sherd__train_entropy(&state, seed, "weights", 0);
    sherd__network_draw(r->network, &e, 0);
    assert_int_equal(sherd__optimiser_init(&r->optimiser, &spec, sherd__network_count(r->network),
                                           &d),
                     0);
    g.recipe = &w->recipe;
    g.data = &w->data;
    g.network = r->network;
    g.optimiser = &r->optimiser;
    g.engine = engine_of(w, &g, here, allow_drop);
    g.note = on_update;
    g.note_ctx = r;
    if (sherd__stepper_gradients(&r->stepper, &g, &d)) fail_msg("%s", d.message);
}

/* Runs steps over rows that are shuffled again for each. Returns the error of a step. */
static int run_steps(run *r, world *w, uint64_t from, uint64_t to, double rate)
{
    sherd_diag d = { 0 };
    sherd__train_order order;
    uint32_t *rows = malloc(w->data.x.rows * sizeof *rows);
    int err = sherd__train_order_init(&order, SHERD__ORDER_SHUFFLED, w->data.x.rows, w->batch, seed,
                                      &d);
    for (uint64_t i = from; i < to && !err; i++) {
        sherd__step_result out;
        size_t len = sherd__train_order_rows(&order, i, rows);
        sherd__step s = { .number = i, .rate = rate, .rows = rows, .len = len };
        err = r->stepper.ops->step(r->stepper.ctx, &s, &out, &d);
        if (!err) r->cost = out.cost;
        if (!err && i == from) r->first = out.cost;
    }
    if (!err) err = r->stepper.ops->settle(r->stepper.ctx, &d);
    if (err) print_message("%s\n", d.message);
    sherd__train_order_fini(&order);
    free(rows);
    return err;
}

static void run_end(run *r)
{
    sherd__stepper_free(r->stepper);
    sherd__optimiser_fini(&r->optimiser);
    sherd__network_free(r->network);
}

/* Returns the parameters after some steps in threads of this process; the caller frees them. */
static double *expected(world *w, sherd__gradients_options g, uint64_t steps)
{
    run r;
    run_begin(&r, w, g, true, false);
    assert_int_equal(run_steps(&r, w, 0, steps, 0.5), 0);
    size_t bytes = sherd__network_count(r.network) * sizeof(double);
    double *out = malloc(bytes);
    memcpy(out, sherd__network_params(r.network), bytes);
    run_end(&r);
    return out;
}

static void same_bits(const run *r, const double *want)
{
    assert_memory_equal(sherd__network_params(r->network), want,
                        sherd__network_count(r->network) * sizeof(double));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void the_bits_are_those_of_one_process_for_any_number_of_nodes(void **s)
{
    (void)s;
    static const struct {
        const char *text;
        size_t rows, batch;
        uint32_t shards;
    } kinds[] = {
        { spiral, ROWS, ROWS, 4 },
        { spiral, ROWS, 37, 5 },
        { conv, 60, 25, 8 },
    };
    const uint32_t counts[] = { 1, 2, 3, 5 };
    for (size_t k = 0; k < 3; k++) {
        world w;
        sherd__gradients_options g = { .bits = 17, .shards = kinds[k].shards };
        world_open(&w, kinds[k].text, kinds[k].rows, 0, 0);
        w.batch = kinds[k].batch;
        double *want = expected(&w, g, 12);
        world_close(&w);
        for (size_t i = 0; i < 4; i++) {
            run r;
            world_open(&w, kinds[k].text, kinds[k].rows, counts[i], 0);
            w.batch = kinds[k].batch;
            run_begin(&r, &w, g, false, false);
            assert_int_equal(run_steps(&r, &w, 0, 12, 0.5), 0);
            same_bits(&r, want);
            assert_int_equal(r.updates, 12);
            assert_string_equal(local_warned, "");
            run_end(&r);
            world_close(&w);
        }
        free(want);
    }
}

static void one_cluster_trains_twice_and_multiplies_in_between(void **s)
{
    (void)s;
    world w;
    sherd__gradients_options g = { .bits = 17, .shards = 4 };
    world_open(&w, spiral, ROWS, 2, 0);
    double *want = expected(&w, g, 5);
    for (unsigned i = 0; i < 2; i++) {
        run r;
        run_begin(&r, &w, g, false, false);
        assert_int_equal(run_steps(&r, &w, 0, 5, 0.5), 0);
        same_bits(&r, want);
        run_end(&r);
    }
    free(want);
    world_close(&w);
}

static void float_gradients_are_close(void **s)
{
    (void)s;
    world w;
    run r;
    world_open(&w, spiral, ROWS, 3, 0);
    double *want = expected(&w, (sherd__gradients_options){ .shards = 4 }, 20);
    run_begin(&r, &w, (sherd__gradients_options){ .shards = 4 }, false, false);
    assert_int_equal(run_steps(&r, &w, 0, 20, 0.5), 0);
    for (size_t i = 0; i < sherd__network_count(r.network); i++)
        assert_true(fabs(sherd__network_params(r.network)[i] - want[i]) < 1e-9);
    run_end(&r);
    free(want);
    world_close(&w);
}

typedef struct killer {
    pid_t pid;
    int signal;
    unsigned after_ms;
} killer;

static void *kill_soon(void *arg)
{
    const killer *k = arg;
    usleep(k->after_ms * 1000);
    send_signal(k->pid, k->signal);
    return NULL;
}

static void a_node_that_is_killed_or_stalls_does_not_change_bits(void **s)
{
    (void)s;
    const int signals[] = { SIGKILL, SIGSTOP };
    for (unsigned i = 0; i < 2; i++) {
        world w;
        run r;
        pthread_t thread;
        sherd__gradients_options g = { .bits = 17, .shards = 6 };
        world_open(&w, spiral, ROWS, 3, 0);
        double *want = expected(&w, g, 600);
        killer k = { local_pid(w.cluster, 1), signals[i], 40 };
        run_begin(&r, &w, g, false, false);
        assert_int_equal(run_steps(&r, &w, 0, 20, 0.5), 0);
        assert_int_equal(pthread_create(&thread, NULL, kill_soon, &k), 0);
        assert_int_equal(run_steps(&r, &w, 20, 300, 0.5), 0);
        pthread_join(thread, NULL); /* by then, even if the thread has slept long */
        assert_int_equal(run_steps(&r, &w, 300, 600, 0.5), 0);
        same_bits(&r, want);
        assert_non_null(strstr(local_warned, "is lost"));
        assert_int_equal(r.dropped, 0);
        send_signal(k.pid, SIGCONT);
        run_end(&r);
        free(want);
        world_close(&w);
    }
}

/* A part of which one layer was added before its node died is still given to another node.
 * Therefore the test tries several instants, over the duration of the first run, which has no
 * fault. */
static void with_allow_drop_a_lost_part_does_not_count_and_is_reported(void **s)
{
    (void)s;
    uint64_t dropped = 0;
    double usual_ms = 0;
    for (unsigned i = 0; i < 40 && !dropped; i++) {
        world w;
        run r;
        pthread_t thread;
        world_open(&w, conv, 2000, 2, 0);
        killer k = { local_pid(w.cluster, 0), i ? SIGKILL : 0,
                     (unsigned)(usual_ms * (1 + 7 * i % 10) / 12) };
        run_begin(&r, &w, (sherd__gradients_options){ .bits = 17, .shards = 2 }, false, true);
        double began = sherd__clock_s();
        assert_int_equal(pthread_create(&thread, NULL, kill_soon, &k), 0);
        assert_int_equal(run_steps(&r, &w, 0, 10, 0.1), 0);
        if (i == 0) usual_ms = (sherd__clock_s() - began) * 1e3;
        pthread_join(thread, NULL);
        dropped = r.dropped;
        assert_int_equal(strstr(local_warned, "do not count") != NULL, dropped);
        assert_int_equal(r.updates, 10);
        run_end(&r);
        world_close(&w);
    }
    assert_int_equal(dropped, 1);
}

static void training_ends_when_no_node_is_left(void **s)
{
    (void)s;
    world w;
    run r;
    world_open(&w, spiral, ROWS, 2, 0);
    run_begin(&r, &w, (sherd__gradients_options){ .bits = 17 }, false, false);
    assert_int_equal(run_steps(&r, &w, 0, 5, 0.5), 0);
    send_signal(local_pid(w.cluster, 0), SIGKILL);
    send_signal(local_pid(w.cluster, 1), SIGKILL);
    assert_int_equal(run_steps(&r, &w, 5, 50, 0.5), SHERD_EFEWNODES);
    run_end(&r);
    world_close(&w);
}

static void a_network_that_fits_no_node_is_refused_with_the_reason(void **s)
{
    (void)s;
    world w;
    run r;
    world_open(&w, deep, 10, 2, 20 << 20);
    run_begin(&r, &w, (sherd__gradients_options){ .bits = 17 }, false, false);
    assert_int_equal(run_steps(&r, &w, 0, 1, 0.5), SHERD_EFEWNODES);
    assert_non_null(strstr(local_warned, "cannot take part"));
    run_end(&r);
    world_close(&w);
}

/* Sending, computing and answering overlap, as measured by the node's own clock. */
static void top_gradients_are_sent_before_the_last_backward_pass_and_all_parts_start_early(void **s)
{
    (void)s;
    world w;
    run r;
    traces = overlapped = early = 0;
    world_open(&w, deep, 100, 2, 0);
    run_begin(&r, &w, (sherd__gradients_options){ .bits = 17, .shards = 2 }, false, false);
    assert_int_equal(run_steps(&r, &w, 0, 8, 0.1), 0);
    assert_int_equal(traces, 16);
    print_message("%u of %u passes sent early, %u started early\n", overlapped, traces, early);
    assert_true(overlapped >= 12); /* other processes use these cores, too */
    assert_true(early >= 12);
    run_end(&r);
    world_close(&w);
}

static double busy_of(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t)) return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Stops a node for three quarters of the time, on a machine that gives it a processor in the
 * fourth. */
static atomic_bool slow_down;

static void *slow(void *arg)
{
    pid_t pid = *(const pid_t *)arg;
    while (slow_down) {
        send_signal(pid, SIGSTOP);
        usleep(15000);
        double had = busy_of(pid);
        send_signal(pid, SIGCONT);
        for (unsigned i = 0; i < 20; i++) {
            usleep(5000);
            if (busy_of(pid) - had > 1e-3) break;
        }
    }
    send_signal(pid, SIGCONT);
    return NULL;
}

static double samples_a_second(world *w, bool async, run *r, uint64_t most)
{
    sherd__gradients_options g = { .bits = 17, .shards = 8, .async = async, .staleness_max = most };
    run_begin(r, w, g, false, false);
    pthread_t thread;
    pid_t pid = local_pid(w->cluster, 1);
    slow_down = true;
    assert_int_equal(pthread_create(&thread, NULL, slow, &pid), 0);
    double began = sherd__clock_s();
    assert_int_equal(run_steps(r, w, 0, 25, 0.05), 0);
    double took = sherd__clock_s() - began;
    slow_down = false;
    pthread_join(thread, NULL);
    return 25.0 * (double)w->batch / took;
}

static void asynchronous_gradients_are_as_stale_as_allowed(void **s)
{
    (void)s;
    world w;
    run sync, async, bound;
    world_open(&w, conv, 1600, 2, 0);
    double one = samples_a_second(&w, false, &sync, 0);
    run_end(&sync);
    double other = samples_a_second(&w, true, &async, UINT64_MAX);
    print_message("synchronous %.0f, asynchronous %.0f samples/s; staleness %.2f on average, "
                  "%u at most; costs %.4f and %.4f\n",
                  one, other, (double)async.stale / (double)async.updates, (unsigned)async.stalest,
                  sync.cost, async.cost);
    assert_true(async.stale > 0);
    assert_true(async.cost < async.first);
    run_end(&async);
    samples_a_second(&w, true, &bound, 1);
    assert_true(bound.stalest <= 1);
    run_end(&bound);
    world_close(&w);
}

/* 0.8 MB of weights to a node, and of gradients back, for every two examples. */
static void parts_become_larger_if_transfers_take_long_compared_with_computation(void **s)
{
    (void)s;
    static const char wide[] = "input = 1000\nlayer = dense 100\nlayer = relu\n"
                               "layer = dense 3\nloss = cross-entropy\n";
    world w;
    run r;
    sherd__gradients_options g = {
        .bits = 17, .shards = 32, .async = true, .staleness_max = UINT64_MAX
    };
    double until = sherd__clock_s() + 60;
    uint64_t steps = 0;
    world_open(&w, wide, 64, 1, 0);
    run_begin(&r, &w, g, false, false);
    widest = 0;
    for (; widest < 2 && sherd__clock_s() < until; steps++)
        assert_int_equal(run_steps(&r, &w, steps, steps + 1, 0.01), 0);
    print_message("parts of %u shards after %u steps\n", widest, (unsigned)steps);
    assert_true(widest >= 2);
    assert_true(r.updates < 32 * steps);
    run_end(&r);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_are_those_of_one_process_for_any_number_of_nodes),
        cmocka_unit_test(one_cluster_trains_twice_and_multiplies_in_between),
        cmocka_unit_test(float_gradients_are_close),
        cmocka_unit_test(a_node_that_is_killed_or_stalls_does_not_change_bits),
        cmocka_unit_test(with_allow_drop_a_lost_part_does_not_count_and_is_reported),
        cmocka_unit_test(training_ends_when_no_node_is_left),
        cmocka_unit_test(a_network_that_fits_no_node_is_refused_with_the_reason),
        cmocka_unit_test(
            top_gradients_are_sent_before_the_last_backward_pass_and_all_parts_start_early),
        cmocka_unit_test(asynchronous_gradients_are_as_stale_as_allowed),
        cmocka_unit_test(parts_become_larger_if_transfers_take_long_compared_with_computation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
