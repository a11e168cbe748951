/*
 * Training by products over real node processes. The data are sent once and stay, divided into
 * parts; every mini-batch is one of them. After each epoch every parameter has the bits of the same
 * training on this machine in fixed point, under every scheme, whatever happens to the nodes during
 * an epoch. A step sends shares of the other operands, but none of the data.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/rand.h"
#include "learn/network.h"
#include "learn/optimiser.h"
#include "matrix/rounding.h"
#include "sherd/product.h"
#include "tests/support/send_signal.h"
#include "tests/system/scheduler/local_nodes.h"
#include "tests/support/keep.h"

enum { N = 250, K = 24, PART = 40, PARTS = 7, CLASSES = 4, EPOCHS = 3, HIDDEN = 13, BITS = 17 };
enum { COUNT_MAX = 2000 };

static double xs[N * K], began_with[COUNT_MAX], want[EPOCHS][COUNT_MAX];
static uint32_t labels[N];
static const sherd__layer_spec layers[] = {
    { .kind = &sherd__layer_dense, .units = HIDDEN },  { .kind = &sherd__layer_sigmoid },
    { .kind = &sherd__layer_dense, .units = 9 },       { .kind = &sherd__layer_relu },
    { .kind = &sherd__layer_dense, .units = CLASSES },
};

static sherd_product_options scheme(sherd_scheme s, uint32_t spare)
{
    sherd_product_options o = { .size = sizeof o };
    o.scheme = s;
    o.exact = true;
    o.spare = spare;
    return o;
}

/* The fault during the second epoch. */
typedef struct fault {
    sherd_cluster *cluster;
    int signal; /* 0: no fault */
    uint32_t node, nodes;
} fault;

static void strike(const fault *f)
{
    for (uint32_t i = 0; f && f->signal && i < f->nodes; i++)
        send_signal(local_pid(f->cluster, f->node + i), f->signal);
}

/* One training with any multiplier; writes the parameters after each epoch to out. Parts are used
 * in another order in each epoch. rounding: m was made by sherd__rounding_new. */
static void train(sherd_multiplier m, bool maps, bool keeps, bool rounding, const fault *f,
                  double out[EPOCHS][COUNT_MAX])
{
    sherd__network_spec spec = { .in = { 1, 1, K },
                                 .layers = layers,
                                 .batch = PART,
                                 .len = sizeof layers / sizeof *layers,
                                 .loss = SHERD__LOSS_CROSS_ENTROPY,
                                 .l2 = 1e-3 };
    sherd__optimiser_spec how = { .method = SHERD__MOMENTUM };
    sherd__engine e = { .products = m, .maps = maps, .keeps = keeps };
    sherd__network *n;
    sherd__optimiser o;
    sherd_kept *kept;
    sherd_diag d = { 0 };
    sherd_view x = sherd_view_c(xs, SHERD_F64, N, K);
    assert_int_equal(sherd__network_new(&spec, &n, NULL), 0);
    size_t count = sherd__network_count(n), len = count * sizeof(double);
    assert_true(count <= COUNT_MAX);
    assert_int_equal(sherd__optimiser_init(&o, &how, count, NULL), 0);
    memcpy(sherd__network_params(n), began_with, len);
    if (sherd_multiplier_keep(&kept, m, x, keep_parts(PART), &d)) fail_msg("%s", d.message);
    for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
        for (unsigned i = 0; i < PARTS; i++) {
            size_t first = (3 * i + epoch) % PARTS * PART;
            size_t rows = N - first < PART ? N - first : PART;
            double cost;
            sherd__batch b = {
                sherd_view_sub(x, first, rows, 0, K), kept, first, { .labels = labels + first }
            };
            if (epoch == 1 && i == PARTS / 2) strike(f);
            if (rounding) sherd__rounding_step(m, epoch * PARTS + i);
            if (sherd__network_learn(n, e, &b, &cost, NULL, &d)) fail_msg("%s", d.message);
            sherd__optimiser_begin(&o);
            sherd__optimiser_apply(&o, 0.1, 0, count, sherd__network_params(n),
                                   sherd__network_gradient(n));
        }
        memcpy(out[epoch], sherd__network_params(n), len);
    }
    sherd_multiplier_release(m, kept);
    sherd__optimiser_fini(&o);
    sherd__network_free(n);
}

static void must_equal(double got[EPOCHS][COUNT_MAX], double here[EPOCHS][COUNT_MAX],
                       const char *what)
{
    for (unsigned e = 0; e < EPOCHS; e++)
        for (unsigned i = 0; i < COUNT_MAX; i++)
            if (memcmp(&got[e][i], &here[e][i], sizeof(double)))
                fail_msg("%s: parameter %u is %.17g after epoch %u, here %.17g", what, i, got[e][i],
                         e + 1, here[e][i]);
}

static void trained_over(sherd_cluster *c, const sherd_product_options *o, bool maps,
                         const fault *f, const char *what)
{
    static double got[EPOCHS][COUNT_MAX];
    sherd_multiplier m;
    sherd_diag d = { 0 };
    memset(got, 0, sizeof got);
    if (sherd_multiplier_cluster(&m, c, o, &d)) fail_msg("%s: %s", what, d.message);
    train(m, maps, o->scheme == SHERD_SHARE, false, f, got);
    sherd_multiplier_free(m);
    must_equal(got, want, what);
}

/* ---------------------------------------------------------------------------------------------- */

static void every_scheme_gives_the_bits_of_this_machine(void **s)
{
    (void)s;
    sherd_cluster *c = local_open(5, NULL, 0);
    for (unsigned i = 0; i < 6; i++) {
        sherd_product_options o = scheme(i < 2   ? SHERD_SHARE
                                         : i < 4 ? SHERD_PLAIN
                                                 : SHERD_PERMUTE,
                                         i == 1 ? 2 : 0);
        if (i == 5) o.group = 3;
        trained_over(c, &o, i >= 3, NULL, o.scheme == SHERD_SHARE ? "share" : "a clear scheme");
    }
    sherd_cluster_close(c);
}

/* Windows laid out as rows are the left operands; 8 x 3 pixels replace the 24 numbers. */
static void convolutions_give_the_bits_of_this_machine(void **s)
{
    (void)s;
    static const sherd__layer_spec conv[] = {
        { .kind = &sherd__layer_conv2d, .units = 3, .window = 3, .padding = 1 },
        { .kind = &sherd__layer_relu },
        { .kind = &sherd__layer_average_pool, .window = 2 },
        { .kind = &sherd__layer_conv2d, .units = 4, .window = 1 },
        { .kind = &sherd__layer_relu },
        { .kind = &sherd__layer_flatten },
        { .kind = &sherd__layer_dense, .units = CLASSES },
    };
    sherd__network_spec spec = { .in = { 8, 3, 1 },
                                 .layers = conv,
                                 .batch = PART,
                                 .len = sizeof conv / sizeof *conv,
                                 .loss = SHERD__LOSS_CROSS_ENTROPY };
    sherd_cluster *c = local_open(5, NULL, 0);
    static double params[3][COUNT_MAX];
    for (unsigned i = 0; i < 3; i++) {
        sherd_product_options o = scheme(i == 1 ? SHERD_SHARE : SHERD_PERMUTE, 0);
        sherd__network *n;
        sherd__engine e = { 0 };
        sherd_diag d = { 0 };
        double cost;
        int err = i == 0 ? sherd_multiplier_local(&e.products, BITS, &d)
                         : sherd_multiplier_cluster(&e.products, c, &o, &d);
        if (!err) err = sherd__network_new(&spec, &n, &d);
        if (err) fail_msg("%s", d.message);
        e.keeps = o.scheme == SHERD_SHARE;
        memcpy(sherd__network_params(n), began_with, sherd__network_count(n) * sizeof(double));
        for (unsigned step = 0; step < 4; step++) {
            sherd__batch b = { .x = sherd_view_c(xs + step * PART * K, SHERD_F64, PART, K),
                               .targets = { .labels = labels + step * PART } };
            if (sherd__network_learn(n, e, &b, &cost, NULL, &d)) fail_msg("%s", d.message);
            for (size_t k = 0; k < sherd__network_count(n); k++)
                sherd__network_params(n)[k] -= 0.1 * sherd__network_gradient(n)[k];
        }
        memcpy(params[i], sherd__network_params(n), sherd__network_count(n) * sizeof(double));
        sherd__network_free(n);
        sherd_multiplier_free(e.products);
        assert_memory_equal(params[i], params[0], sizeof params[0]);
    }
    assert_true(memcmp(params[0], began_with, 8 * sizeof(double)) != 0);
    sherd_cluster_close(c);
}

static void stochastic_rounding_of_operands_equals_that_of_this_machine(void **s)
{
    (void)s;
    static const uint8_t seed[32] = { 9 };
    static double got[2][EPOCHS][COUNT_MAX];
    sherd_cluster *c = local_open(3, NULL, 0);
    sherd_product_options o = scheme(SHERD_SHARE, 0);
    sherd_multiplier m, r;
    sherd_diag d = { 0 };
    for (unsigned i = 0; i < 2; i++) {
        int err = i == 0 ? sherd_multiplier_local(&m, BITS, &d)
                         : sherd_multiplier_cluster(&m, c, &o, &d);
        if (!err) err = sherd__rounding_new(&r, m, BITS, seed, &d);
        if (err) fail_msg("%s", d.message);
        train(r, false, false, true, NULL, got[i]);
        sherd_multiplier_free(r);
    }
    must_equal(got[1], got[0], "stochastic rounding");
    assert_true(memcmp(got[0], want, sizeof want) != 0);
    sherd_cluster_close(c);
}

static void a_node_that_dies_within_an_epoch_does_not_change_weights(void **s)
{
    (void)s;
    for (unsigned i = 0; i < 4; i++) {
        sherd_cluster *c = local_open(5, NULL, 0);
        sherd_product_options o = scheme(i < 2    ? SHERD_SHARE
                                         : i == 2 ? SHERD_PLAIN
                                                  : SHERD_PERMUTE,
                                         i == 1);
        fault f = { c, SIGKILL, 2, 1 };
        o.exposure_max = 1;
        trained_over(c, &o, false, &f, "a node killed");
        if (i == 0) assert_non_null(strstr(local_warned, "all shares are made again"));
        if (i == 1) assert_null(strstr(local_warned, "made again"));
        sherd_cluster_close(c);
    }
}

/* It dies between two products or within one: the remaining nodes are enough for all that
 * follow. */
static void a_spare_node_replaces_a_dead_one_to_the_end(void **s)
{
    (void)s;
    sherd_cluster *c = local_open(4, NULL, 0);
    sherd_product_options o = scheme(SHERD_SHARE, 1);
    fault f = { c, SIGKILL, 1, 1 };
    trained_over(c, &o, false, &f, "the fourth of four nodes killed");
    assert_null(strstr(local_warned, "made again"));
    sherd_cluster_close(c);
}

/* Two die at once, one of which is spare: then there is 1 block instead of 2. */
static void fewer_blocks_than_at_the_start_do_not_change_weights(void **s)
{
    (void)s;
    sherd_cluster *c = local_open(6, NULL, 0);
    sherd_product_options o = scheme(SHERD_SHARE, 1);
    fault f = { c, SIGKILL, 1, 2 };
    trained_over(c, &o, false, &f, "two nodes killed");
    assert_non_null(strstr(local_warned, "for the 4 domains that are left"));
    sherd_cluster_close(c);
}

static void a_node_that_stalls_within_an_epoch_does_not_change_weights(void **s)
{
    (void)s;
    sherd_cluster *c = local_open(6, NULL, 0);
    sherd_product_options o = scheme(SHERD_SHARE, 1);
    fault f = { c, SIGSTOP, 3, 1 };
    trained_over(c, &o, false, &f, "a node stopped");
    f.signal = SIGCONT;
    strike(&f);
    sherd_cluster_close(c);
    /* There is no spare node: the job waits for it, and gives it up. */
    c = local_open(5, "silent:60@node-2", 0);
    o.spare = 0;
    trained_over(c, &o, false, NULL, "a silent node");
    assert_non_null(
        strstr(local_warned, "all shares are made again for the 4 domains that are left"));
    sherd_cluster_close(c);
}

/* By number of answers: each training asks a node for well over a hundred. */
static void a_node_that_lies_within_an_epoch_does_not_change_weights(void **s)
{
    (void)s;
    static const char *const modes[] = { "wrong:60@node-2", "crash:75@node-4", "garbage:90@node-1",
                                         "cut:50@node-5", "refuse:80@node-3" };
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
        for (unsigned clear = 0; clear < (i < 2 ? 2 : 1); clear++) {
            sherd_cluster *c = local_open(5, modes[i], 0);
            sherd_product_options o = scheme(clear ? SHERD_PLAIN : SHERD_SHARE, 0);
            o.exposure_max = 1;
            trained_over(c, &o, false, NULL, modes[i]);
            if (i == 0 && !strstr(local_warned, "answered wrongly: banned"))
                fail_msg("%s", local_warned);
            sherd_cluster_close(c);
        }
    }
}

/* With kept data, only shares of W of the first layer and of dy are sent, nothing of x. */
static void a_step_sends_shares_of_the_other_operands_only(void **s)
{
    (void)s;
    enum { NODES = 5, BLOCKS = 2, WIRE = 6 /* two primes */ };
    sherd_cluster *c = local_open(NODES, NULL, 0);
    sherd_product_options o = scheme(SHERD_SHARE, 0);
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_diag d = { 0 };
    double w[K * HIDDEN], got[PART * HIDDEN], back[K * HIDDEN];
    sherd_view x = sherd_view_c(xs, SHERD_F64, N, K), vw = sherd_view_c(w, SHERD_F64, K, HIDDEN);
    sherd_view dy = sherd_view_c(got, SHERD_F64, PART, HIDDEN);
    for (unsigned i = 0; i < K * HIDDEN; i++) w[i] = began_with[i];
    if (sherd_multiplier_cluster(&m, c, &o, &d)) fail_msg("%s", d.message);
    if (sherd_multiplier_keep(&kept, m, x, keep_parts(PART), &d)) fail_msg("%s", d.message);
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < 3; i++) {
            sherd_rows rows = { (2 * i + round % 2) * PART, PART };
            uint64_t before = local_sent(c);
            assert_int_equal(sherd_multiplier_multiply_rows(m, kept, rows, false, vw, got, HIDDEN,
                                                            &d),
                             0);
            assert_int_equal(sherd_multiplier_multiply_rows(m, kept, rows, true, dy, back, HIDDEN,
                                                            &d),
                             0);
            uint64_t up = local_sent(c) - before;
            uint64_t others = NODES * WIRE * (K + PART / BLOCKS) * HIDDEN;
            uint64_t data = round == 2 ? 0 : NODES * WIRE * K * (PART / BLOCKS);
            if (up < others + data || up > others + data + NODES * 1000)
                fail_msg("%llu bytes up in round %u: %llu are shares", (unsigned long long)up,
                         round, (unsigned long long)(others + data));
        }
    }
    sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
    sherd_cluster_close(c);
}

/* A fifth of the columns for each node, then a fifth of the rows: the bound is between. */
static void parts_of_a_kept_operand_share_one_bound(void **s)
{
    (void)s;
    sherd_cluster *c = local_open(5, NULL, 0);
    sherd_product_options o = scheme(SHERD_PERMUTE, 0);
    sherd_multiplier m;
    sherd_kept *kept;
    double w[K] = { 1 }, got[N], back[K];
    sherd_view vw = sherd_view_c(w, SHERD_F64, K, 1);
    o.balanced = true;
    for (unsigned i = 0; i < 3; i++) {
        o.exposure_max = i == 0 ? 0.3 : i == 1 ? 0.41 : 0;
        assert_int_equal(sherd_multiplier_cluster(&m, c, &o, NULL), 0);
        assert_int_equal(sherd_multiplier_keep(&kept, m, sherd_view_c(xs, SHERD_F64, N, K),
                                               keep_parts(PART), NULL),
                         0);
        for (unsigned round = 0; round < 2; round++) {
            for (size_t first = 0; first < N; first += PART) {
                sherd_rows rows = { first, N - first < PART ? N - first : PART };
                sherd_view d = sherd_view_c(xs, SHERD_F64, rows.count, 1);
                sherd_diag why = { 0 };
                assert_int_equal(sherd_multiplier_multiply_rows(m, kept, rows, false, vw, got, 1,
                                                                NULL),
                                 0);
                uint64_t before = local_sent(c);
                int err = sherd_multiplier_multiply_rows(m, kept, rows, true, d, back, 1, &why);
                assert_int_equal(err, i == 0 ? SHERD_EEXPOSURE : SHERD_OK);
                if (i > 0) continue;
                if (!strstr(why.message, "domain 0.408 of B; --exposure-max is 0.3"))
                    fail_msg("%s", why.message);
                assert_int_equal(local_sent(c), before);
            }
            /* All rows together are no new entries. */
            sherd_rows all = { 0, N };
            assert_int_equal(sherd_multiplier_multiply_rows(m, kept, all, false, vw, got, 1, NULL),
                             0);
        }
        sherd_multiplier_release(m, kept);
        sherd_multiplier_free(m);
    }
    sherd_cluster_close(c);
}

/* Both orientations of all parts take 19 MB at each node of 16: some are dropped and sent again. */
static void parts_that_do_not_fit_take_turns_at_the_nodes(void **s)
{
    (void)s;
    enum { ROWS = 12000, COLS = 100, BATCH = 1000 };
    sherd_cluster *c = local_open(2, NULL, UINT64_C(16) << 20);
    sherd_product_options o = scheme(SHERD_PLAIN, 0);
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_diag d = { 0 };
    double *x = malloc(ROWS * COLS * sizeof *x), w[COLS], y[BATCH], back[COLS];
    assert_non_null(x);
    for (size_t i = 0; i < ROWS * COLS; i++) x[i] = (double)(i % 1009) + 0.5;
    for (size_t i = 0; i < COLS; i++) w[i] = (double)(i % 7);
    o.exact = false;
    o.exposure_max = 1;
    if (sherd_multiplier_cluster(&m, c, &o, &d)) fail_msg("%s", d.message);
    if (sherd_multiplier_keep(&kept, m, sherd_view_c(x, SHERD_F64, ROWS, COLS), keep_parts(BATCH),
                              &d))
        fail_msg("%s", d.message);
    for (size_t i = 0; i < 3 * ROWS / BATCH; i++) {
        sherd_rows rows = { i * BATCH % ROWS, BATCH };
        const double *part = x + rows.first * COLS;
        sherd_view vw = sherd_view_c(w, SHERD_F64, COLS, 1);
        sherd_view vy = sherd_view_c(y, SHERD_F64, BATCH, 1);
        if (sherd_multiplier_multiply_rows(m, kept, rows, false, vw, y, 1, &d) ||
            sherd_multiplier_multiply_rows(m, kept, rows, true, vy, back, 1, &d))
            fail_msg("%s", d.message);
        double sum = 0, sum_back = 0;
        for (size_t k = 0; k < COLS; k++) sum += part[k] * w[k];
        for (size_t k = 0; k < BATCH; k++) sum_back += part[k * COLS] * y[k];
        assert_true(sum == y[0] && fabs(back[0] / sum_back - 1) < 1e-12);
    }
    if (local_warned[0]) fail_msg("%s", local_warned); /* no node refused anything */
    sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
    sherd_cluster_close(c);
    free(x);
}

/* A share of x is 8 MB; at a node of 16 MB, at most three fifths of the free memory are used for
 * kept operands. */
static void memory_of_kept_operands_is_not_used_twice(void **s)
{
    (void)s;
    enum { ROWS = 1000, COLS = 1340 };
    sherd_cluster *c = local_open(3, NULL, UINT64_C(16) << 20);
    sherd_product_options o = scheme(SHERD_SHARE, 0);
    sherd_multiplier m;
    sherd_kept *one, *other = NULL;
    sherd_diag d = { 0 };
    double *x = calloc(ROWS * COLS, sizeof *x), w[COLS] = { 3 }, y[ROWS];
    sherd_view vx = sherd_view_c(x, SHERD_F64, ROWS, COLS);
    assert_non_null(x);
    for (size_t i = 0; i < ROWS; i++) x[i * COLS] = (double)i / ROWS;
    if (sherd_multiplier_cluster(&m, c, &o, &d)) fail_msg("%s", d.message);
    if (sherd_multiplier_keep(&one, m, vx, NULL, &d)) fail_msg("%s", d.message);
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(sherd_multiplier_keep(&other, m, vx, NULL, &d), SHERD_EFEWNODES);
        assert_non_null(strstr(d.message, "of the operand that is kept is 8 MB"));
        if (sherd_multiplier_multiply_kept(m, one, false, sherd_view_c(w, SHERD_F64, COLS, 1), y, 1,
                                           &d))
            fail_msg("%s", d.message);
        assert_true(fabs(y[ROWS / 2] - 1.5) < 1e-3);
    }
    sherd_multiplier_release(m, one);
    assert_int_equal(sherd_multiplier_keep(&other, m, vx, NULL, &d), SHERD_OK);
    sherd_multiplier_release(m, other);
    sherd_multiplier_free(m);
    sherd_cluster_close(c);
    free(x);
}

/* ---------------------------------------------------------------------------------------------- */

static int begin(void **state)
{
    (void)state;
    sherd__seeded seeded;
    sherd__entropy rng = sherd__entropy_seeded(&seeded, 4);
    sherd_multiplier here;
    for (unsigned i = 0; i < N * K; i++)
        xs[i] = (double)sherd__entropy_below(&rng, 2001) / 1000 - 1;
    for (unsigned i = 0; i < N; i++)
        labels[i] = (uint32_t)((xs[i * K] > 0) + 2 * (xs[i * K + 1] * xs[i * K + 2] > 0));
    for (unsigned i = 0; i < COUNT_MAX; i++)
        began_with[i] = (double)sherd__entropy_below(&rng, 2001) / 2000 - 0.5;
    if (sherd_multiplier_local(&here, BITS, NULL)) return 1;
    train(here, false, false, false, NULL, want);
    sherd_multiplier_free(here);
    return memcmp(want[0], want[2], sizeof want[0]) == 0; /* otherwise nothing was trained */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scheme_gives_the_bits_of_this_machine),
        cmocka_unit_test(convolutions_give_the_bits_of_this_machine),
        cmocka_unit_test(stochastic_rounding_of_operands_equals_that_of_this_machine),
        cmocka_unit_test(a_node_that_dies_within_an_epoch_does_not_change_weights),
        cmocka_unit_test(a_spare_node_replaces_a_dead_one_to_the_end),
        cmocka_unit_test(fewer_blocks_than_at_the_start_do_not_change_weights),
        cmocka_unit_test(a_node_that_stalls_within_an_epoch_does_not_change_weights),
        cmocka_unit_test(a_node_that_lies_within_an_epoch_does_not_change_weights),
        cmocka_unit_test(a_step_sends_shares_of_the_other_operands_only),
        cmocka_unit_test(parts_of_a_kept_operand_share_one_bound),
        cmocka_unit_test(parts_that_do_not_fit_take_turns_at_the_nodes),
        cmocka_unit_test(memory_of_kept_operands_is_not_used_twice),
    };
    return cmocka_run_group_tests_name("scheduler/train_products", tests, begin, NULL);
}
