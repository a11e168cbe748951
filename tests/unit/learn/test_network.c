/*
 * Layers and networks: every gradient compared with central differences of the cost, at odd sizes.
 * Each layer follows one with parameters, so that the gradient that it passes on is tested, too.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "learn/network.h"
#include "tests/unit/learn/network_world.h"

static void check_gradients(const plan *p, ptrdiff_t number, size_t rows)
{
    static double got[COUNT_MAX];
    sherd__network *n = net_made(p);
    sherd__engine e = { .products = net_local(0) };
    sherd__batch b = net_batch(p, rows);
    double *w = sherd__network_params(n), most = 0;
    size_t count = sherd__network_count(n);
    assert_in_range(count, 1, COUNT_MAX);
    assert_true(sherd__network_width(n) <= 4);
    net_cost(n, e, &b);
    memcpy(got, sherd__network_gradient(n), count * sizeof *got);
    for (size_t k = 0; k < count; k++) {
        const double h = 1e-5, was = w[k];
        w[k] = was + h;
        double up = net_cost(n, e, &b);
        w[k] = was - h;
        double want = (up - net_cost(n, e, &b)) / (2 * h);
        w[k] = was;
        if (!(fabs(got[k] - want) <= 1e-6 * (1 + fabs(want))))
            fail_msg("plan %td, parameter %zu: gradient %.12g, difference %.12g", number, k, got[k],
                     want);
        most = fmax(most, fabs(want));
    }
    assert_true(most > 1e-3); /* a flat cost would make the comparison meaningless */
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

static void every_gradient_equals_differences_of_the_cost(void **s)
{
    (void)s;
    for (size_t i = 0; i < NET_PLANS; i++) {
        check_gradients(&net_plans[i], (ptrdiff_t)i, ROWS);
        check_gradients(&net_plans[i], (ptrdiff_t)i, 1);
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

static struct {
    sherd__network *n;
    char seen[32];
    size_t fail_backward;
} hooked = { .fail_backward = 99 };

static void note(char c)
{
    size_t len = strlen(hooked.seen);
    assert_true(len + 1 < sizeof hooked.seen);
    hooked.seen[len] = c;
    hooked.seen[len + 1] = 0;
}

static int saw_forward(void *ctx, size_t layer, sherd_diag *d)
{
    (void)d;
    assert_ptr_equal(ctx, &hooked);
    note((char)('0' + layer));
    return SHERD_OK;
}

static int saw_backward(void *ctx, size_t layer, sherd_diag *d)
{
    (void)ctx;
    (void)d;
    const sherd__layer *l = sherd__network_layer(hooked.n, layer);
    assert_true(l->biases_gradient[0] != 0);
    for (size_t i = 0; i < layer; i++) { /* lower layers have not started */
        const sherd__layer *below = sherd__network_layer(hooked.n, i);
        if (below->cols > 0) assert_true(below->biases_gradient[0] == 0);
    }
    note((char)('a' + layer));
    return layer == hooked.fail_backward ? SHERD_ECLOSED : SHERD_OK;
}

static void hooks_see_the_gradients_of_upper_layers_before_those_of_lower_ones(void **s)
{
    (void)s;
    const sherd__network_hooks hooks = { saw_forward, saw_backward, &hooked };
    const plan *p = &net_plans[11];
    sherd__engine e = { .products = net_local(0) };
    sherd__batch batch = net_batch(p, ROWS);
    double cost;
    hooked.n = net_made(p);
    sherd__network_hook(hooked.n, &hooks);
    net_cost(hooked.n, e, &batch);
    assert_string_equal(hooked.seen, "025fca");
    sherd__network_free(hooked.n);
    hooked.n = net_made(p);
    sherd__network_hook(hooked.n, &hooks);
    hooked.seen[0] = 0;
    hooked.fail_backward = 2;
    assert_int_equal(sherd__network_learn(hooked.n, e, &batch, &cost, NULL, NULL), SHERD_ECLOSED);
    assert_string_equal(hooked.seen, "025fc");
    sherd__network_free(hooked.n);
    sherd_multiplier_free(e.products);
}

static void outputs_can_be_computed_without_biases(void **s)
{
    (void)s;
    const plan *p = &net_plans[0];
    const double *y;
    double with[ROWS * 3];
    sherd__network *n = net_made(p);
    sherd__engine e = { .products = net_local(0) };
    sherd__batch batch = net_batch(p, ROWS);
    assert_int_equal(sherd__network_forward(n, e, &batch, false, &y, NULL), SHERD_OK);
    memcpy(with, y, sizeof with);
    assert_int_equal(sherd__network_forward(n, e, &batch, true, &y, NULL), SHERD_OK);
    for (size_t k = 0; k < ROWS * 3; k++)
        assert_true(fabs(with[k] - y[k] - (0.1 * (double)(k % 3) - 0.15)) < 1e-15);
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

static void the_published_bias_gradient_is_one_common_sum(void **s)
{
    (void)s;
    const plan *p = &net_plans[4];
    sherd__network_spec spec = net_spec(p);
    sherd__network *right = net_made(p), *total;
    sherd__engine e = { .products = net_local(0) };
    sherd__batch batch = net_batch(p, ROWS);
    size_t count = sherd__network_count(right);
    spec.bias_total = true;
    assert_int_equal(sherd__network_new(&spec, &total, NULL), SHERD_OK);
    memcpy(sherd__network_params(total), sherd__network_params(right), count * sizeof(double));
    assert_true(net_cost(right, e, &batch) == net_cost(total, e, &batch));
    for (size_t i = 0; i < 4; i += 2) {
        const sherd__layer *l = sherd__network_layer(right, i), *q = sherd__network_layer(total, i);
        double sum = 0;
        for (size_t k = 0; k < l->cols; k++) sum += l->biases_gradient[k];
        for (size_t k = 0; k < l->cols; k++) assert_true(q->biases_gradient[k] == sum);
        assert_memory_equal(l->weights_gradient, q->weights_gradient,
                            l->rows * l->cols * sizeof(double));
    }
    sherd__network_free(right);
    sherd__network_free(total);
    sherd_multiplier_free(e.products);
}

static void a_small_batch_equals_one_of_a_network_made_for_it(void **s)
{
    (void)s;
    const plan *p = &net_plans[11];
    sherd__network_spec spec = net_spec(p);
    sherd__network *large = net_made(p), *small;
    sherd__engine e = { .products = net_local(20) };
    sherd__batch batch = net_batch(p, ROWS);
    size_t len = sherd__network_count(large) * sizeof(double);
    spec.batch = 2;
    assert_int_equal(sherd__network_new(&spec, &small, NULL), SHERD_OK);
    memcpy(sherd__network_params(small), sherd__network_params(large), len);
    net_cost(large, e, &batch); /* fills every buffer */
    batch.x.rows = 2;
    assert_true(net_cost(large, e, &batch) == net_cost(small, e, &batch));
    assert_memory_equal(sherd__network_gradient(large), sherd__network_gradient(small), len);
    sherd__network_free(large);
    sherd__network_free(small);
    sherd_multiplier_free(e.products);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void softmax_and_sigmoid_handle_large_inputs(void **s)
{
    (void)s;
    const plan soft = { { 1, 1, 3 }, { SOFTMAX }, SHERD__LOSS_SQUARED, 0 };
    const plan sig = { { 1, 1, 3 }, { SIGMOID }, SHERD__LOSS_SQUARED, 0 };
    static const double x[6] = { 1e4, 1e4, -1e4, -800, 0, 800 };
    const double *y;
    sherd__engine e = { .products = net_local(0) };
    sherd__batch batch = { .x = sherd_view_c(x, SHERD_F64, 2, 3) };
    sherd__network *n = net_made(&soft);
    assert_int_equal(sherd__network_forward(n, e, &batch, false, &y, NULL), SHERD_OK);
    assert_true(y[0] == 0.5 && y[1] == 0.5 && y[2] == 0 && y[5] == 1);
    sherd__network_free(n);
    n = net_made(&sig);
    assert_int_equal(sherd__network_forward(n, e, &batch, false, &y, NULL), SHERD_OK);
    assert_true(y[0] == 1 && y[2] == 0 && y[3] < 1e-300 && y[4] == 0.5 && y[5] == 1);
    assert_true(x[0] == 1e4 && x[5] == 800); /* the caller's input is not changed */
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

/* Returns pixel (y, x) of an example with its padding. */
static double padded(const plan *p, size_t row, size_t y, size_t x, size_t c, size_t padding)
{
    const sherd__tensor_shape in = p->in;
    if (y < padding || x < padding || y - padding >= in.height || x - padding >= in.width) return 0;
    return net_inputs[((row * in.height + y - padding) * in.width + x - padding) * in.channels + c];
}

/* Computes output (row, y, x, u) by loops over its window. */
static double by_loops(const plan *p, const sherd__layer *l, size_t row, size_t y, size_t x,
                       size_t u)
{
    const sherd__layer_kind *kind = l->spec.kind;
    size_t w = l->spec.window, stride = l->spec.stride, k = 0;
    double sum = kind == &sherd__layer_conv2d ? l->biases[u] : 0, most = -INFINITY;
    if (stride == 0) stride = kind == &sherd__layer_conv2d ? 1 : w;
    for (size_t wy = 0; wy < w; wy++)
        for (size_t wx = 0; wx < w; wx++)
            for (size_t c = 0; c < p->in.channels; c++, k++) {
                double v = padded(p, row, y * stride + wy, x * stride + wx, c, l->spec.padding);
                if (kind == &sherd__layer_conv2d) {
                    sum += v * l->weights[k * l->cols + u];
                } else if (c == u) {
                    sum += v / (double)(w * w);
                    most = fmax(most, v);
                }
            }
    return kind == &sherd__layer_max_pool ? most : sum;
}

static void convolutions_and_pools_equal_loops_over_their_windows(void **s)
{
    (void)s;
    static const plan cases[] = {
        { { 5, 7, 2 }, { CONV(3, 3, 0, 0) }, SHERD__LOSS_SQUARED, 0 },
        { { 5, 7, 2 }, { CONV(3, 3, 2, 1) }, SHERD__LOSS_SQUARED, 0 },
        { { 2, 3, 3 }, { CONV(2, 4, 0, 3) }, SHERD__LOSS_SQUARED, 0 }, /* windows completely
                                                                        * outside */
        { { 7, 6, 2 }, { CONV(5, 2, 3, 0) }, SHERD__LOSS_SQUARED, 0 },
        { { 7, 6, 2 }, { MAX_POOL(2, 0) }, SHERD__LOSS_SQUARED, 0 },
        { { 7, 6, 2 }, { MAX_POOL(3, 2) }, SHERD__LOSS_SQUARED, 0 },
        { { 7, 6, 2 }, { AVERAGE_POOL(2, 0) }, SHERD__LOSS_SQUARED, 0 },
        { { 7, 6, 2 }, { AVERAGE_POOL(4, 1) }, SHERD__LOSS_SQUARED, 0 },
    };
    static const size_t shapes[][2] = { { 3, 5 }, { 3, 4 }, { 5, 6 }, { 2, 2 },
                                        { 3, 3 }, { 3, 2 }, { 3, 3 }, { 4, 3 } };
    sherd__engine e = { .products = net_local(0) };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd__network *n = net_made(&cases[i]);
        const sherd__layer *l = sherd__network_layer(n, 0);
        sherd__batch batch = net_batch(&cases[i], ROWS);
        const double *y;
        assert_int_equal(l->out.height, shapes[i][0]);
        assert_int_equal(l->out.width, shapes[i][1]);
        assert_int_equal(sherd__network_forward(n, e, &batch, false, &y, NULL), SHERD_OK);
        for (size_t row = 0; row < ROWS; row++)
            for (size_t oy = 0; oy < l->out.height; oy++)
                for (size_t ox = 0; ox < l->out.width; ox++)
                    for (size_t u = 0; u < l->out.channels; u++)
                        assert_true(fabs(*y++ - by_loops(&cases[i], l, row, oy, ox, u)) < 1e-13);
        sherd__network_free(n);
    }
    sherd_multiplier_free(e.products);
}

static void initial_weights_are_normal_and_scaled(void **s)
{
    (void)s;
    const plan p = { { 1, 1, 99 }, { DENSE(401) }, SHERD__LOSS_SQUARED, 0 };
    sherd__seeded state;
    for (int he = 0; he < 2; he++) {
        sherd__network *n = net_made(&p);
        const sherd__layer *l = sherd__network_layer(n, 0);
        sherd__entropy e = sherd__entropy_seeded(&state, 9);
        double sum = 0, square = 0, fourth = 0, scale = he ? sqrt(2.0 / 99) : 0.01;
        size_t count = 99 * 401;
        sherd__network_draw(n, &e, he ? 0 : 0.01);
        for (size_t k = 0; k < count; k++) {
            double w = l->weights[k] / scale;
            sum += w;
            square += w * w;
            fourth += w * w * w * w;
        }
        assert_true(fabs(sum / (double)count) < 0.025);
        assert_true(fabs(square / (double)count - 1) < 0.035);
        assert_true(fabs(fourth / (double)count - 3) < 0.25);
        for (size_t k = 0; k < 401; k++) assert_true(l->biases[k] == 0);
        sherd__network_free(n);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refuse(const plan *p, int err)
{
    sherd__network *n = (sherd__network *)1;
    sherd__network_spec spec = net_spec(p);
    sherd_diag d = { 0 };
    assert_int_equal(sherd__network_new(&spec, &n, &d), err);
    assert_null(n);
    assert_int_equal(d.code, err);
    assert_true(d.message[0] != 0);
}

static void layers_that_do_not_fit_are_refused(void **s)
{
    (void)s;
    const plan squared = { { 1, 1, 3 }, { { 0 } }, SHERD__LOSS_SQUARED, 0 };
    plan p = squared;
    refuse(&p, SHERD_EINVAL);
    p.layers[0] = (sherd__layer_spec)DENSE(0);
    refuse(&p, SHERD_EINVAL);
    p.layers[0] = (sherd__layer_spec)DENSE(SIZE_MAX / 2);
    refuse(&p, SHERD_ESHAPE);
    p.layers[0] = (sherd__layer_spec)DENSE(SIZE_MAX / 16);
    refuse(&p, SHERD_ENOMEM);
    p.layers[0] = (sherd__layer_spec)CONV(2, 3, 1, 0);
    refuse(&p, SHERD_ESHAPE);
    p.layers[0] = (sherd__layer_spec)CONV(2, 3, 1, 3);
    refuse(&p, SHERD_ESHAPE);
    p.layers[0] = (sherd__layer_spec)CONV(2, 0, 1, 0);
    refuse(&p, SHERD_EINVAL);
    p.layers[0] = (sherd__layer_spec)MAX_POOL(2, 0);
    refuse(&p, SHERD_ESHAPE);
    p.layers[0] = (sherd__layer_spec)AVERAGE_POOL(0, 1);
    refuse(&p, SHERD_EINVAL);
    p.layers[0] = (sherd__layer_spec)DENSE(2);
    p.in.width = 0;
    refuse(&p, SHERD_EINVAL);
    p.in.width = SIZE_MAX;
    refuse(&p, SHERD_EINVAL);
    p.in.width = 1;
    p.l2 = -1;
    refuse(&p, SHERD_EINVAL);
    p.l2 = NAN;
    refuse(&p, SHERD_EINVAL);
    p.l2 = 0;
    p.loss = (sherd__loss)7;
    refuse(&p, SHERD_EINVAL);
}

static void batches_that_do_not_fit_are_refused(void **s)
{
    (void)s;
    static double wide[(ROWS + 1) * 8];
    sherd__network *n = net_made(&net_plans[3]);
    sherd__engine e = { .products = net_local(0) };
    static const size_t rows[] = { 0, ROWS + 1, ROWS, ROWS }, cols[] = { 7, 7, 8, 6 };
    const double *y = NULL;
    for (size_t i = 0; i < 4; i++) {
        sherd__batch b = { .x = sherd_view_c(wide, SHERD_F64, rows[i], cols[i]) };
        sherd_diag d = { 0 };
        assert_int_equal(sherd__network_forward(n, e, &b, false, &y, &d), SHERD_ESHAPE);
        assert_null(y);
    }
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

static void a_cost_that_is_not_finite_is_divergence(void **s)
{
    (void)s;
    sherd__network *n = net_made(&net_plans[3]);
    sherd__engine e = { .products = net_local(0) };
    sherd__batch b = net_batch(&net_plans[3], ROWS);
    sherd_diag d = { 0 };
    double cost = 42;
    sherd__network_params(n)[sherd__network_count(n) - 1] = NAN;
    assert_int_equal(sherd__network_learn(n, e, &b, &cost, NULL, &d), SHERD_ERANGE);
    assert_non_null(strstr(d.message, "diverged"));
    assert_true(cost == 42);
    sherd__network_free(n);
    sherd_multiplier_free(e.products);
}

static void without_memory_no_network_is_made(void **s)
{
    (void)s;
    sherd__network_spec spec = net_spec(&net_plans[8]);
    for (size_t i = 1;; i++) {
        sherd__network *n;
        sherd_diag d = { 0 };
        sherd__alloc_fail_nth(i);
        int err = sherd__network_new(&spec, &n, &d);
        sherd__alloc_fail_nth(0);
        if (err == SHERD_OK) {
            assert_true(i > 5);
            sherd__network_free(n);
            return;
        }
        assert_int_equal(err, SHERD_ENOMEM);
        assert_null(n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gradient_equals_differences_of_the_cost),
        cmocka_unit_test(hooks_see_the_gradients_of_upper_layers_before_those_of_lower_ones),
        cmocka_unit_test(outputs_can_be_computed_without_biases),
        cmocka_unit_test(the_published_bias_gradient_is_one_common_sum),
        cmocka_unit_test(a_small_batch_equals_one_of_a_network_made_for_it),
        cmocka_unit_test(softmax_and_sigmoid_handle_large_inputs),
        cmocka_unit_test(convolutions_and_pools_equal_loops_over_their_windows),
        cmocka_unit_test(initial_weights_are_normal_and_scaled),
        cmocka_unit_test(layers_that_do_not_fit_are_refused),
        cmocka_unit_test(batches_that_do_not_fit_are_refused),
        cmocka_unit_test(a_cost_that_is_not_finite_is_divergence),
        cmocka_unit_test(without_memory_no_network_is_made),
    };
    return cmocka_run_group_tests(tests, net_fill_inputs, NULL);
}
