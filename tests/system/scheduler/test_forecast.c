/*
 * The predicted bytes of a product equal those that its run counts, over real nodes: every scheme,
 * with and without zeros, tiles, panels, empty slots and shapes that do not divide. A forecast
 * sends nothing and uses no masks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "matrix/gemm.h"
#include "scheduler/cluster/state.h"
#include "sherd/forecast.h"

#define NODES 7u

static sherd_cluster *cluster;
static sherd__seeded rng_state;
static sherd__entropy rng;

static int begin(void **state)
{
    (void)state;
    sherd_diag d = { 0 };
    sherd_cluster_options o = { .size = sizeof o,
                                .local_nodes = NODES,
                                .program = getenv("SHERD"),
                                .node_memory = 64 << 20,
                                .same_host_domains = true };
    signal(SIGPIPE, SIG_IGN);
    rng = sherd__entropy_seeded(&rng_state, 5);
    if (sherd_cluster_open(&cluster, &o, &d)) fail_msg("%s", d.message);
    return 0;
}

static int end(void **state)
{
    (void)state;
    sherd_cluster_close(cluster);
    return 0;
}

/* `zeros` in a hundred entries are zero. */
static sherd_view matrix(size_t rows, size_t cols, unsigned zeros)
{
    double *x = malloc((rows * cols + 1) * sizeof *x);
    for (size_t i = 0; i < rows * cols; i++)
        x[i] = sherd__entropy_below(&rng, 100) < zeros ? 0
                                                       : 1 + (double)sherd__entropy_below(&rng, 99);
    return sherd_view_c(x, SHERD_F64, rows, cols);
}

static void forget(sherd_view v)
{
    free((void *)(uintptr_t)v.data);
}

static uint64_t sent_so_far(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        sherd_node_info info = { .size = sizeof info };
        assert_int_equal(sherd_cluster_node_at(cluster, i, &info, NULL), 0);
        sum += info.work_out;
    }
    return sum;
}

static sherd_forecast foretell(sherd_view a, sherd_view b, const sherd_product_options *o)
{
    sherd_forecast f = { .size = sizeof f };
    sherd_diag d = { 0 };
    sherd_forecast_options with = { .size = sizeof with,
                                    .cluster = cluster,
                                    .no_measurements = true };
    uint64_t blas = sherd__blas_calls(), sent = sent_so_far();
    if (sherd_forecast_multiply(a, b, o, &with, &f, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd__blas_calls(), blas);
    assert_int_equal(sent_so_far(), sent);
    return f;
}

/* Multiplies. If another process held up a node, an idle one has taken over some of its work, whose
 * bytes no forecast contains; then once more. */
static sherd_report product(sherd_view a, sherd_view b, double *c, const sherd_product_options *o)
{
    sherd_report r = { .size = sizeof r };
    sherd_diag d = { 0 };
    for (int tries = 0; tries < 10; tries++) {
        sherd_report_fini(&r);
        if (sherd_multiply(cluster, a, b, c, b.cols, o, &r, &d)) fail_msg("%s", d.message);
        if (r.tasks_repeated == 0) break;
    }
    return r;
}

static bool has_its_bytes(const sherd_report *r, const sherd_forecast *f)
{
    return f->at_most ? r->work_out <= f->bytes_out && r->work_in <= f->bytes_in
                      : r->work_out == f->bytes_out && r->work_in == f->bytes_in;
}

/* Predicts, then runs; *f is the forecast. If another process held up a node, it is given less, or
 * nothing, from the next product on, which may be between the two; then once more. */
static sherd_report compare(sherd_view a, sherd_view b, const sherd_product_options *o,
                            sherd_forecast *f)
{
    double *c = malloc((a.rows * b.cols + 1) * sizeof *c);
    sherd_report r = { .size = sizeof r };
    for (int tries = 0; tries < 10; tries++) {
        sherd_report_fini(&r);
        *f = foretell(a, b, o);
        r = product(a, b, c, o);
        if (has_its_bytes(&r, f) && (f->at_most || r.tasks == f->tasks)) break;
    }
    if (!has_its_bytes(&r, f))
        fail_msg("scheme %d group %u exact %d bits %u, %zu x %zu x %zu: %llu out and %llu in, "
                 "expected %llu and %llu",
                 o->scheme, o->group, o->exact, o->bits, a.rows, a.cols, b.cols,
                 (unsigned long long)r.work_out, (unsigned long long)r.work_in,
                 (unsigned long long)f->bytes_out, (unsigned long long)f->bytes_in);
    if (!f->at_most) assert_int_equal(r.tasks, f->tasks);
    assert_int_equal(r.encoding, f->encoding);
    assert_int_equal(r.tasks_csr, f->tasks_csr);
    assert_int_equal(r.primes, f->primes);
    assert_int_equal(r.tiles, f->tiles);
    assert_true(f->seconds > 0 || f->tasks == 0);
    free(c);
    return r;
}

static void check(sherd_view a, sherd_view b, const sherd_product_options *o)
{
    sherd_forecast f = { .size = sizeof f, .at_most = true };
    for (int tries = 0; tries < 10 && f.at_most; tries++) {
        sherd_report r = compare(a, b, o, &f);
        sherd_report_fini(&r);
    }
    if (f.at_most) fail_msg("the forecast was to be exact");
}

static const struct way {
    sherd_scheme scheme;
    uint32_t group;
    bool shuffle_rows, exact;
    uint32_t bits;
} ways[] = {
    { SHERD_PLAIN, 0, false, false, 17 },   { SHERD_PLAIN, 0, false, true, 17 },
    { SHERD_PLAIN, 0, false, true, 26 },    { SHERD_PERMUTE, 0, false, false, 17 },
    { SHERD_PERMUTE, 1, false, false, 17 }, { SHERD_PERMUTE, 7, false, false, 17 },
    { SHERD_PERMUTE, 7, true, true, 17 },   { SHERD_PERMUTE, 0, false, true, 26 },
    { SHERD_SHARE, 0, false, true, 17 },    { SHERD_SHARE1, 0, false, true, 17 },
};

/* With the usual bits. */
static sherd_product_options way_of(size_t w, const uint8_t *seed)
{
    sherd_product_options o = { .size = sizeof o };
    o.scheme = ways[w].scheme;
    o.group = ways[w].group;
    o.exact = ways[w].exact;
    o.seed = seed;
    return o;
}

/* B takes more than SHERD__TILE_STAYING bytes. */
static void panels_that_stay_are_sent_once(void **state)
{
    (void)state;
    enum { DIM = 1456, ROWS = 70 };
    const sherd_product_options o = { .size = sizeof o, .scheme = SHERD_PLAIN };
    sherd_view a = matrix(ROWS, DIM, 0), b = matrix(DIM, DIM, 0);
    const uint64_t operands = 8 * (uint64_t)DIM * (ROWS + (uint64_t)NODES * DIM);
    bool equal = false;
    for (int tries = 0; tries < 10 && !equal; tries++) {
        sherd_forecast f = { .size = sizeof f };
        sherd_report r = compare(a, b, &o, &f);
        assert_true(f.tiles > 1);
        assert_true(f.bytes_out > operands && f.bytes_out < operands + 100000);
        equal = r.work_out == f.bytes_out && r.work_in == f.bytes_in;
        sherd_report_fini(&r);
    }
    assert_true(equal);
    forget(a);
    forget(b);
}

static void every_scheme_sends_exactly_the_predicted_bytes(void **state)
{
    (void)state;
    /* 7 rows or more: every node of `plain` has work. */
    static const size_t sizes[][3] = { { 7, 1, 1 },    { 64, 33, 1 },    { 100, 50, 40 },
                                       { 301, 7, 63 }, { 2000, 90, 17 }, { 40, 300, 700 } };
    static const uint8_t seed[32] = { 9 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (unsigned zeros = 0; zeros <= 80; zeros += 40) {
            sherd_view a = matrix(sizes[i][0], sizes[i][1], zeros);
            sherd_view b = matrix(sizes[i][1], sizes[i][2], 0);
            for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                sherd_product_options o = way_of(w, seed);
                o.shuffle_rows = ways[w].shuffle_rows;
                o.bits = ways[w].bits;
                if (o.scheme == SHERD_SHARE1) o.spare = NODES - 7; /* all answers are needed */
                check(a, b, &o);
            }
            forget(a);
            forget(b);
        }
    }
}

static void tiles_and_many_panels_are_predicted(void **state)
{
    (void)state;
    static const uint8_t seed[32] = { 3 };
    sherd_view a = matrix(900, 260, 30), b = matrix(260, 1500, 0);
    for (uint32_t group = 0; group <= 40; group += 40) {
        sherd_product_options o = { .size = sizeof o };
        sherd_forecast f = { .size = sizeof f };
        o.group = group;
        o.seed = seed;
        o.memory = 8 << 20;
        sherd_report r = compare(a, b, &o, &f);
        assert_false(f.at_most);
        assert_true(r.tiles * r.panels > 4);
        sherd_report_fini(&r);
    }
    forget(a);
    forget(b);
}

static void with_spare_shares_the_maximum_is_predicted(void **state)
{
    (void)state;
    sherd_view a = matrix(300, 80, 0), b = matrix(80, 60, 0);
    sherd_product_options o = { .size = sizeof o };
    sherd_forecast f = { .size = sizeof f };
    o.scheme = SHERD_SHARE;
    o.exact = true;
    o.spare = 2;
    sherd_report r = compare(a, b, &o, &f);
    assert_true(f.at_most);
    assert_int_equal(f.threshold + f.slack, NODES);
    assert_true(f.slack >= 2);
    assert_true(r.work_out > f.bytes_out / 2);
    sherd_report_fini(&r);
    forget(a);
    forget(b);
}

static void shapes_alone_give_the_bytes_of_operands_without_zeros(void **state)
{
    (void)state;
    static const uint8_t seed[32] = { 1 };
    sherd_view a = matrix(150, 90, 0), b = matrix(90, 40, 0);
    sherd_view a0 = { .rows = 150, .cols = 90, .dtype = SHERD_F64 };
    sherd_view b0 = { .rows = 90, .cols = 40, .dtype = SHERD_F64 };
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        sherd_product_options o = way_of(w, seed);
        o.bits = ways[w].bits;
        sherd_forecast of_data = foretell(a, b, &o), of_shapes = foretell(a0, b0, &o);
        assert_int_equal(of_data.bytes_out, of_shapes.bytes_out);
        assert_int_equal(of_data.bytes_in, of_shapes.bytes_in);
        assert_true(of_data.flops == of_shapes.flops);
        /* 2 n k m; for shares, times the number of shares of a K-th each, for each prime */
        double plain = 2.0 * 150 * 90 * 40 * (of_data.primes ? of_data.primes : 1);
        if (of_data.blocks == 0) assert_true(of_data.flops == plain);
        else
            assert_true(of_data.flops ==
                        plain / 150 * NODES * ((150 + of_data.blocks - 1) / of_data.blocks));
    }
    forget(a);
    forget(b);
}

static void bytes_alone_are_predicted_without_computing_anything(void **state)
{
    (void)state;
    static const uint8_t seed[32] = { 1 };
    sherd_view a = matrix(150, 90, 30), b = matrix(90, 40, 0);
    sherd_forecast_options with = { .size = sizeof with, .cluster = cluster, .no_time = true };
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        sherd_product_options o = way_of(w, seed);
        sherd_forecast f = { .size = sizeof f };
        sherd_diag d = { 0 };
        sherd_forecast whole = foretell(a, b, &o);
        uint64_t blas = sherd__blas_calls();
        if (sherd_forecast_multiply(a, b, &o, &with, &f, &d)) fail_msg("%s", d.message);
        assert_int_equal(sherd__blas_calls(), blas);
        assert_int_equal(f.bytes_out, whole.bytes_out);
        assert_int_equal(f.bytes_in, whole.bytes_in);
        assert_true(f.seconds == 0 && f.own_seconds == 0 && f.rates.gflops == 0);
    }
    forget(a);
    forget(b);
}

/* All processors of this machine multiply meanwhile: a node that multiplies alone would be
 * faster. */
static void rates_that_are_not_given_are_measured(void **state)
{
    (void)state;
    static const uint8_t seed[32] = { 1 };
    sherd_view a = matrix(400, 300, 0), b = matrix(300, 200, 0);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        sherd_forecast_options with = { .size = sizeof with, .cluster = cluster };
        sherd_product_options o = way_of(w, seed);
        sherd_forecast f = { .size = sizeof f };
        sherd_diag d = { 0 };
        uint64_t sent = sent_so_far();
        unsigned threads = sherd__blas_threads();
        if (sherd_forecast_multiply(a, b, &o, &with, &f, &d)) fail_msg("%s", d.message);
        assert_int_equal(sent_so_far(), sent);
        assert_int_equal(sherd__blas_threads(), threads);
        assert_true(f.seconds > 0 && f.rates.node_gflops > 0 && f.rates.session > 0);
        with.rates = f.rates;
        with.rates.node_gflops *= 1000;
        double measured = f.seconds_nodes;
        if (sherd_forecast_multiply(a, b, &o, &with, &f, &d)) fail_msg("%s", d.message);
        assert_true(f.rates.node_gflops == with.rates.node_gflops);
        if (ways[w].group != 1 && !ways[w].exact) assert_true(f.seconds_nodes < measured);
    }
    forget(a);
    forget(b);
}

static void a_product_that_cannot_run_cannot_be_predicted(void **state)
{
    (void)state;
    sherd_view a = matrix(9, 9, 0), b = matrix(9, 9, 0);
    sherd_forecast f = { .size = sizeof f };
    sherd_product_options o = { .size = sizeof o };
    sherd_diag d = { 0 };
    sherd_forecast_options with = { .size = sizeof with, .nodes = 2, .node_memory = 1 << 26 };
    o.scheme = SHERD_SHARE;
    o.exact = true;
    assert_int_equal(sherd_forecast_multiply(a, b, &o, &with, &f, &d), SHERD_EFEWNODES);
    assert_true(d.message[0]);
    o.scheme = SHERD_PLAIN;
    b.rows = 8;
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_forecast_multiply(a, b, &o, &with, &f, &d), SHERD_ESHAPE);
    b.rows = 9;
    with.nodes = 0;
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_forecast_multiply(a, b, &o, &with, &f, &d), SHERD_EFEWNODES);
    forget(a);
    forget(b);
}

static void links_are_measured_with_their_constants(void **state)
{
    (void)state;
    sherd_rates rates = { 0 };
    sherd_diag d = { 0 };
    if (sherd_rates_probe(cluster, &rates, &d)) fail_msg("%s", d.message);
    assert_true(rates.session > 1e6 && rates.session < 1e12);
    assert_true(rates.link == 0); /* has no effect here */
    cluster->simulated = false;   /* as if its nodes were on other hosts */
    int err = sherd_rates_probe(cluster, &rates, &d);
    cluster->simulated = true;
    if (err) fail_msg("%s", d.message);
    assert_true(rates.link > 1e5 && rates.link < 1e12);
}

/* A forecast of a product over these links is bound by what was measured. */
static void a_forecast_uses_the_links_that_were_measured(void **state)
{
    (void)state;
    sherd_view a = matrix(60, 50, 0), b = matrix(50, 40, 0);
    sherd_forecast f = { .size = sizeof f };
    sherd_product_options o = { .size = sizeof o, .scheme = SHERD_PLAIN };
    sherd_diag d = { 0 };
    sherd_forecast_options with = { .size = sizeof with, .no_measurements = true };
    assert_int_equal(sherd_forecast_probe(&with, &d), SHERD_EINVAL);
    with.cluster = cluster;
    if (sherd_forecast_probe(&with, &d)) fail_msg("%s", d.message);
    assert_true(with.rates.link == 0 && with.latency == 0); /* the nodes are on this machine */
    cluster->simulated = false;
    int err = sherd_forecast_probe(&with, &d);
    if (!err) err = sherd_forecast_multiply(a, b, &o, &with, &f, &d);
    assert_true(with.rates.link > 1e5 && with.latency > 0 && with.latency < 10);
    assert_true(f.latency == with.latency && f.rates.link == with.rates.link && !f.local);
    assert_true(f.seconds >= with.latency);
    double rate = with.rates.link;
    if (!err) err = sherd_forecast_probe(&with, &d); /* the rate is known */
    cluster->simulated = true;
    if (err) fail_msg("%s", d.message);
    assert_true(with.rates.link == rate);
    forget(a);
    forget(b);
}

#define SPINNERS 16

static atomic_bool spin_over;

static void *spin(void *arg)
{
    while (!atomic_load(&spin_over)) continue;
    return arg;
}

/* Nodes on this machine run on its cores. Whatever else runs there slows both down. */
static void nodes_of_this_machine_are_never_faster_than_it(void **state)
{
    (void)state;
    static const uint8_t seed[32] = { 1 };
    pthread_t spinners[SPINNERS];
    sherd_view a = matrix(700, 600, 0), b = matrix(600, 500, 0);
    sherd_product_options o = { .size = sizeof o, .scheme = SHERD_PLAIN, .seed = seed };
    sherd_forecast_options with = { .size = sizeof with, .cluster = cluster };
    sherd_forecast f = { .size = sizeof f };
    sherd_diag d = { 0 };
    atomic_store(&spin_over, false);
    for (int i = 0; i < SPINNERS; i++)
        assert_int_equal(pthread_create(&spinners[i], NULL, spin, NULL), 0);
    int err = sherd_forecast_multiply(a, b, &o, &with, &f, &d);
    atomic_store(&spin_over, true);
    for (int i = 0; i < SPINNERS; i++) pthread_join(spinners[i], NULL);
    if (err) fail_msg("%s", d.message);
    assert_true(f.local && f.own_seconds > 0 && f.own_seconds <= f.seconds);
    forget(a);
    forget(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panels_that_stay_are_sent_once),
        cmocka_unit_test(every_scheme_sends_exactly_the_predicted_bytes),
        cmocka_unit_test(tiles_and_many_panels_are_predicted),
        cmocka_unit_test(with_spare_shares_the_maximum_is_predicted),
        cmocka_unit_test(shapes_alone_give_the_bytes_of_operands_without_zeros),
        cmocka_unit_test(bytes_alone_are_predicted_without_computing_anything),
        cmocka_unit_test(rates_that_are_not_given_are_measured),
        cmocka_unit_test(a_product_that_cannot_run_cannot_be_predicted),
        cmocka_unit_test(links_are_measured_with_their_constants),
        cmocka_unit_test(a_forecast_uses_the_links_that_were_measured),
        cmocka_unit_test(nodes_of_this_machine_are_never_faster_than_it),
    };
    return cmocka_run_group_tests_name("scheduler/forecast", tests, begin, end);
}
