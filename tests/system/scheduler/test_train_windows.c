/*
 * Convolutions by products over real node processes. Under share, images are sent and nodes form
 * the windows: every parameter has the bits of this machine, with kept data and with activations,
 * whatever happens to nodes. So it does in clear schemes, for which windows are sent. The bytes of
 * a step are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/rand.h"
#include "learn/network.h"
#include "matrix/scaling.h"
#include "sherd/product.h"
#include "tests/support/send_signal.h"
#include "tests/system/scheduler/local_nodes.h"

enum { SIDE = 10, PIXELS = SIDE * SIDE, N = 70, PART = 16, STEPS = 8, BITS = 17, COUNT_MAX = 2000 };

static double xs[N * PIXELS], began_with[COUNT_MAX], want[COUNT_MAX];
static uint32_t labels[N];
/* The windows of the third do not cover all pixels, and so are laid out here. */
static const sherd__layer_spec layers[] = {
    { .kind = &sherd__layer_conv2d, .units = 5, .window = 3, .padding = 1 },
    { .kind = &sherd__layer_relu },
    { .kind = &sherd__layer_average_pool, .window = 2 },
    { .kind = &sherd__layer_conv2d, .units = 6, .window = 3 },
    { .kind = &sherd__layer_tanh },
    { .kind = &sherd__layer_conv2d, .units = 4, .window = 1, .stride = 2 },
    { .kind = &sherd__layer_flatten },
    { .kind = &sherd__layer_dense, .units = 3 },
};

/* Steps over parts of kept data, in turn; `dies`: node 1 dies before the fourth. */
static void train(sherd_multiplier inner, bool keeps, sherd_cluster *dies, double *out)
{
    sherd__network_spec spec = { .in = { SIDE, SIDE, 1 },
                                 .layers = layers,
                                 .batch = PART,
                                 .len = sizeof layers / sizeof *layers,
                                 .loss = SHERD__LOSS_CROSS_ENTROPY };
    sherd__engine e = { .keeps = keeps, .whole = keeps ? (size_t)1 << 21 : 0 };
    sherd__network *n;
    sherd_kept *kept;
    sherd_diag d = { 0 };
    sherd_view x = sherd_view_c(xs, SHERD_F64, N, PIXELS);
    assert_int_equal(sherd__scaling_new(&e.products, inner, NULL), 0);
    assert_int_equal(sherd__network_new(&spec, &n, NULL), 0);
    size_t count = sherd__network_count(n);
    assert_true(count <= COUNT_MAX);
    memcpy(sherd__network_params(n), began_with, count * sizeof(double));
    if (sherd__network_keep(n, e, x, PART, &kept, &d)) fail_msg("%s", d.message);
    assert_non_null(kept);
    for (unsigned step = 0; step < STEPS; step++) {
        size_t first = step % 5 * PART, rows = N - first < PART ? N - first : PART;
        sherd__batch b = {
            sherd_view_sub(x, first, rows, 0, PIXELS), kept, first, { .labels = labels + first }
        };
        double cost;
        if (dies && step == 3) send_signal(local_pid(dies, 1), SIGKILL);
        if (sherd__network_learn(n, e, &b, &cost, NULL, &d)) fail_msg("%s", d.message);
        for (size_t k = 0; k < count; k++)
            sherd__network_params(n)[k] -= 0.2 * sherd__network_gradient(n)[k];
    }
    memcpy(out, sherd__network_params(n), count * sizeof(double));
    sherd_multiplier_release(e.products, kept);
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

static void trained_over(sherd_cluster *c, sherd_scheme scheme, uint32_t spare, bool dies)
{
    static double got[COUNT_MAX];
    sherd_multiplier m;
    sherd_product_options o = { .size = sizeof o };
    sherd_diag d = { 0 };
    o.scheme = scheme;
    o.exact = true;
    o.spare = spare;
    o.exposure_max = 1;
    memset(got, 0, sizeof got);
    if (sherd_multiplier_cluster(&m, c, &o, &d)) fail_msg("%s", d.message);
    train(m, scheme == SHERD_SHARE, dies ? c : NULL, got);
    assert_memory_equal(got, want, sizeof want);
}

static void every_scheme_gives_the_bits_of_this_machine_for_convolutions(void **s)
{
    (void)s;
    static const sherd_scheme schemes[] = { SHERD_SHARE, SHERD_PLAIN, SHERD_PERMUTE };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        sherd_cluster *c = local_open(5, NULL, 0);
        trained_over(c, schemes[i], 0, false);
        assert_string_equal(local_warned, "");
        sherd_cluster_close(c);
    }
}

/* Without a spare node all images are shared again, in fewer blocks with other windows. */
static void a_node_that_dies_does_not_change_weights(void **s)
{
    (void)s;
    for (uint32_t spare = 0; spare < 2; spare++) {
        sherd_cluster *c = local_open(5, NULL, 0);
        trained_over(c, SHERD_SHARE, spare, true);
        assert_int_equal(strstr(local_warned, "made again") != NULL, spare == 0);
        sherd_cluster_close(c);
    }
}

static void a_node_that_lies_does_not_change_weights(void **s)
{
    (void)s;
    sherd_cluster *c = local_open(6, "wrong:30@node-2", 0);
    trained_over(c, SHERD_SHARE, 1, false);
    assert_non_null(strstr(local_warned, "answered wrongly: banned"));
    sherd_cluster_close(c);
}

/* No share is planned for tasks that it does not support, so nothing has to be made again. If too
 * few others remain, nothing is kept, and windows are laid out here. */
static void a_node_too_old_for_windows_is_not_used_for_them(void **s)
{
    (void)s;
    sherd_multiplier m;
    sherd_product_options o;
    sherd_kept *kept;
    sherd_diag d = { 0 };
    static const sherd_windows w = { SIDE, SIDE, 1, 3, 1, 1 };
    const sherd_keep_options how = { sizeof how, PART, &w, 5, false };
    sherd_cluster *c = local_open(5, "older@node-4", 0);
    trained_over(c, SHERD_SHARE, 0, false);
    assert_non_null(strstr(local_warned, "does not support windows of images"));
    assert_null(strstr(local_warned, "made again"));
    sherd_cluster_close(c);

    c = local_open(3, "older@node-2", 0);
    o = (sherd_product_options){ .size = sizeof o };
    o.scheme = SHERD_SHARE;
    if (sherd_multiplier_cluster(&m, c, &o, &d)) fail_msg("%s", d.message);
    assert_int_equal(sherd_multiplier_keep(&kept, m, sherd_view_c(xs, SHERD_F64, N, PIXELS), &how,
                                           &d),
                     SHERD_EFEWNODES);
    assert_string_equal(d.message,
                        "2 domains of nodes are up, and 1 of older nodes, which do "
                        "not support windows of images; --scheme share with --colluding 1 "
                        "and --spare 0 needs 3 or more");
    assert_string_equal(d.hint, "update the older nodes");
    sherd_multiplier_free(m);
    sherd_cluster_close(c);
}

/* Images are sent once, for both products; windows, nine times as large, never. */
static void operands_kept_as_windows_send_images_only(void **s)
{
    (void)s;
    enum { NODES = 3, COLS = 2, WINDOW = 9, WIRE = 6 /* two primes, one block */ };
    static const sherd_windows w = { SIDE, SIDE, 1, 3, 1, 1 };
    static double right[N * PIXELS * COLS], got[N * PIXELS * COLS];
    sherd_cluster *c = local_open(NODES, NULL, 0);
    sherd_product_options o = { .size = sizeof o };
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_diag d = { 0 };
    const sherd_keep_options how = { sizeof how, N, &w, COLS, false };
    o.scheme = SHERD_SHARE;
    if (sherd_multiplier_cluster(&m, c, &o, &d)) fail_msg("%s", d.message);
    for (size_t i = 0; i < N * PIXELS * COLS; i++) right[i] = (double)(i % 7) / 8;
    uint64_t before = local_sent(c);
    sherd_view v = sherd_view_c(xs, SHERD_F64, N, PIXELS);
    if (sherd_multiplier_keep(&kept, m, v, &how, &d)) fail_msg("%s", d.message);
    for (int t = 0; t < 2; t++) {
        size_t rows = t ? N * PIXELS : WINDOW;
        if (sherd_multiplier_multiply_kept(m, kept, t, sherd_view_c(right, SHERD_F64, rows, COLS),
                                           got, COLS, &d))
            fail_msg("%s", d.message);
    }
    uint64_t most = NODES * WIRE * (uint64_t)(N * PIXELS + N * PIXELS * COLS + WINDOW * COLS);
    uint64_t sent = local_sent(c) - before;
    if (sent < most || sent > most + most / 20)
        fail_msg("%llu, %llu", (unsigned long long)sent, (unsigned long long)most);
    sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
    sherd_cluster_close(c);
}

static int begin(void **s)
{
    (void)s;
    sherd__seeded state;
    sherd__entropy rng = sherd__entropy_seeded(&state, 4);
    sherd_multiplier here;
    for (unsigned i = 0; i < N * PIXELS; i++)
        xs[i] = (double)sherd__entropy_below(&rng, 2001) / 1000 - 1;
    for (unsigned i = 0; i < N; i++) labels[i] = (uint32_t)sherd__entropy_below(&rng, 3);
    for (unsigned i = 0; i < COUNT_MAX; i++)
        began_with[i] = (double)sherd__entropy_below(&rng, 2001) / 2000 - 0.5;
    if (sherd_multiplier_local(&here, BITS, NULL)) return 1;
    train(here, false, NULL, want);
    return memcmp(want, began_with, 8 * sizeof(double)) == 0; /* otherwise nothing was trained */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scheme_gives_the_bits_of_this_machine_for_convolutions),
        cmocka_unit_test(a_node_that_dies_does_not_change_weights),
        cmocka_unit_test(a_node_that_lies_does_not_change_weights),
        cmocka_unit_test(a_node_too_old_for_windows_is_not_used_for_them),
        cmocka_unit_test(operands_kept_as_windows_send_images_only),
    };
    return cmocka_run_group_tests_name("scheduler/train_windows", tests, begin, NULL);
}
