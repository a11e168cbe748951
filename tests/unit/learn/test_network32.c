/*
 * Networks of f32 compared with networks of f64 with equal parameters: every gradient against
 * central differences of the f64 cost; which multipliers may compute them; and the fused path of
 * f64, in which products and activations are one step, compared with the separate one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "learn/network.h"
#include "learn/optimiser.h"
#include "matrix/gemm.h"
#include "tests/unit/learn/network_world.h"

/* Values are about 1, and an element of a gradient has some dozens of roundings. */
#define TOLERANCE (64 * 0x1p-24)

static float inputs[ROWS * IN_MAX];
static double wide_inputs[ROWS * IN_MAX];
static uint8_t bytes[ROWS * IN_MAX];
static const double wanted[ROWS * 4] = { 0.5, -0.25, 1, 0, 1.5, 0.5, -0.75, 0.25, 0, 0.5, 0.5, -1 };
static const uint32_t labels[ROWS] = { 2, 0, 1 };

static int fill_inputs(void **s)
{
    (void)s;
    for (size_t i = 0; i < ROWS * IN_MAX; i++) {
        inputs[i] = (float)sin(7.0 * (double)i + 1.0);
        wide_inputs[i] = (double)inputs[i];
        bytes[i] = (uint8_t)(i * 37 % 5);
    }
    return 0;
}

static const plan plans[] = {
    { { 1, 1, 5 }, { DENSE(3) }, SHERD__LOSS_SQUARED, 0 },
    { { 1, 1, 5 }, { DENSE(3) }, SHERD__LOSS_CROSS_ENTROPY, 0.3 },
    { { 1, 1, 7 }, { DENSE(5), RELU, DENSE(3) }, SHERD__LOSS_CROSS_ENTROPY, 0 },
    { { 1, 1, 7 }, { DENSE(5), SIGMOID, DENSE(3), SIGMOID }, SHERD__LOSS_SQUARED, 0 },
    { { 1, 1, 7 }, { DENSE(5), TANH, DENSE(3), TANH }, SHERD__LOSS_SQUARED, 0.1 },
    { { 1, 1, 7 }, { DENSE(5), SOFTMAX, DENSE(3), SOFTMAX }, SHERD__LOSS_SQUARED, 0 },
    { { 1, 1, 7 },
      { DENSE(5), TANH, RELU, SIGMOID, DENSE(3), FLATTEN, SOFTMAX, TANH },
      SHERD__LOSS_SQUARED,
      0 },
    { { 1, 7, 1 }, { FLATTEN, SIGMOID, TANH, FLATTEN, DENSE(3) }, SHERD__LOSS_SQUARED, 0 },
    { { 5, 7, 2 },
      { CONV(3, 3, 0, 1), RELU, CONV(2, 3, 2, 2), TANH, FLATTEN, DENSE(3) },
      SHERD__LOSS_SQUARED,
      0 },
    { { 7, 5, 1 },
      { CONV(3, 2, 0, 0), AVERAGE_POOL(2, 0), RELU, FLATTEN, DENSE(3) },
      SHERD__LOSS_CROSS_ENTROPY,
      0.01 },
    { { 7, 5, 1 },
      { CONV(3, 2, 0, 0), SIGMOID, MAX_POOL(3, 1), FLATTEN, DENSE(3) },
      SHERD__LOSS_SQUARED,
      0 },
};
#define PLANS (sizeof plans / sizeof *plans)

static sherd__network *made(const plan *p, sherd_dtype dtype, bool total)
{
    sherd__network *n;
    size_t len = 0;
    sherd_diag d = { 0 };
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, 5);
    while (len < LAYERS_MAX && p->layers[len].kind) len++;
    sherd__network_spec spec = { .in = p->in,
                                 .layers = p->layers,
                                 .len = len,
                                 .batch = ROWS,
                                 .loss = p->loss,
                                 .l2 = p->l2,
                                 .bias_total = total,
                                 .dtype = dtype };
    if (sherd__network_new(&spec, &n, &d) != SHERD_OK) fail_msg("%s", d.message);
    assert_int_equal(sherd__network_dtype(n), dtype);
    assert_in_range(sherd__network_count(n), 1, COUNT_MAX);
    sherd__network_draw(n, &e, 0.7);
    return n;
}

/* Makes parameters equal that are representable as floats, including biases. */
static void equal_params(sherd__network *a, sherd__network *b)
{
    static double w[COUNT_MAX];
    sherd__network_get(a, w);
    for (size_t k = 0; k < sherd__network_count(a); k++)
        w[k] = (double)(float)(w[k] == 0 ? 0.1 * (double)(k % 4) - 0.15 : w[k]);
    sherd__network_set(a, w);
    sherd__network_set(b, w);
}

static sherd__batch batch_of(const plan *p, sherd_dtype dtype, size_t rows)
{
    const void *x = dtype == SHERD_F64   ? (const void *)wide_inputs
                    : dtype == SHERD_F32 ? (const void *)inputs
                                         : (const void *)bytes;
    size_t size = p->in.height * p->in.width * p->in.channels;
    sherd__batch b = { .x = sherd_view_c(x, dtype, rows, size) };
    if (p->loss == SHERD__LOSS_CROSS_ENTROPY) b.targets.labels = labels;
    else b.targets.values = wanted;
    return b;
}

static sherd__engine here(unsigned bits)
{
    sherd__engine e = { .maps = false };
    assert_int_equal(sherd_multiplier_local(&e.products, bits, NULL), SHERD_OK);
    return e;
}

static double cost_of(sherd__network *n, sherd__engine e, const sherd__batch *b)
{
    double cost = NAN;
    sherd_diag d = { 0 };
    if (sherd__network_learn(n, e, b, &cost, NULL, &d) != SHERD_OK) fail_msg("%s", d.message);
    return cost;
}

static void check_gradients(const plan *p, size_t number, size_t rows)
{
    static double got[COUNT_MAX];
    sherd__network *n = made(p, SHERD_F32, false), *twin = made(p, SHERD_F64, false);
    sherd__engine e = here(0);
    sherd__batch b = batch_of(p, SHERD_F32, rows), wide = batch_of(p, SHERD_F64, rows);
    const double *y, *y64;
    double *w = sherd__network_params(twin), cost;
    equal_params(n, twin);
    assert_int_equal(sherd__network_learn(n, e, &b, &cost, &y, NULL), SHERD_OK);
    assert_true(fabs(cost - cost_of(twin, e, &wide)) <= TOLERANCE * (1 + fabs(cost)));
    assert_int_equal(sherd__network_forward(twin, e, &wide, false, &y64, NULL), SHERD_OK);
    for (size_t k = 0; k < rows * sherd__network_width(n); k++)
        assert_true(fabs(y[k] - y64[k]) <= TOLERANCE * (1 + fabs(y64[k])));
    sherd__network_get_gradient(n, got);
    for (size_t k = 0; k < sherd__network_count(n); k++) {
        const double h = 1e-5, was = w[k];
        w[k] = was + h;
        double up = cost_of(twin, e, &wide);
        w[k] = was - h;
        double want = (up - cost_of(twin, e, &wide)) / (2 * h);
        w[k] = was;
        if (!(fabs(got[k] - want) <= (TOLERANCE + 1e-6) * (1 + fabs(want))))
            fail_msg("plan %zu, parameter %zu: gradient %.9g, difference %.9g", number, k, got[k],
                     want);
    }
    sherd__network_free(n);
    sherd__network_free(twin);
    sherd_multiplier_free(e.products);
}

static void every_gradient_in_f32_equals_differences_of_the_cost_in_f64(void **s)
{
    (void)s;
    for (size_t i = 0; i < PLANS; i++) {
        check_gradients(&plans[i], i, ROWS);
        check_gradients(&plans[i], i, 1);
    }
}

static void input_of_every_type_gives_the_same_bits(void **s)
{
    (void)s;
    static float as_float[ROWS * IN_MAX];
    static int16_t as_short[ROWS * IN_MAX];
    for (size_t k = 0; k < ROWS * IN_MAX; k++) as_short[k] = bytes[k], as_float[k] = bytes[k];
    for (size_t i = 0; i < PLANS; i++) {
        sherd__network *n = made(&plans[i], SHERD_F32, false);
        size_t size = sherd__network_count(n) * sizeof(double);
        double *one = malloc(size), *other = malloc(size);
        sherd__engine e = here(0);
        sherd__batch b = batch_of(&plans[i], SHERD_U8, ROWS);
        sherd_diag d = { 0 };
        double cost;
        cost_of(n, e, &b);
        sherd__network_get_gradient(n, one);
        b.x = sherd_view_c(as_float, SHERD_F32, ROWS, b.x.cols);
        cost_of(n, e, &b);
        sherd__network_get_gradient(n, other);
        assert_memory_equal(one, other, size);
        b.x = sherd_view_c(as_short, SHERD_I16, ROWS, b.x.cols);
        int err = sherd__network_learn(n, e, &b, &cost, NULL, &d);
        if (err == SHERD_OK) {
            sherd__network_get_gradient(n, other);
            assert_memory_equal(one, other, size);
        } else { /* a dense first layer reads x unchanged */
            assert_int_equal(err, SHERD_EUNSUPPORTED);
            assert_non_null(strstr(d.message, "int16"));
        }
        free(one);
        free(other);
        sherd__network_free(n);
        sherd_multiplier_free(e.products);
    }
}

static void only_the_local_multiplier_computes_a_network_of_f32(void **s)
{
    (void)s;
    sherd__network *n = made(&plans[2], SHERD_F32, false);
    sherd__engine exact = here(17), maps = here(0);
    sherd__batch b = batch_of(&plans[2], SHERD_F32, ROWS);
    const double *y = NULL;
    maps.maps = true;
    assert_int_equal(sherd__network_forward(n, exact, &b, false, &y, NULL), SHERD_EUNSUPPORTED);
    assert_int_equal(sherd__network_forward(n, maps, &b, false, &y, NULL), SHERD_EUNSUPPORTED);
    assert_null(y);
    sherd__network_free(n);
    sherd_multiplier_free(exact.products);
    sherd_multiplier_free(maps.products);
}

static void other_dtypes_and_missing_memory_are_refused(void **s)
{
    (void)s;
    static const sherd__layer_spec layers[] = { CONV(2, 2, 0, 0), FLATTEN, DENSE(3) };
    sherd__network_spec spec = { .in = { 3, 3, 1 },
                                 .layers = layers,
                                 .len = 3,
                                 .batch = ROWS,
                                 .loss = SHERD__LOSS_SQUARED,
                                 .dtype = SHERD_U8 };
    sherd__network *n;
    assert_int_equal(sherd__network_new(&spec, &n, NULL), SHERD_EINVAL);
    spec.dtype = SHERD_F32;
    for (size_t i = 1;; i++) {
        sherd__alloc_fail_nth(i);
        int err = sherd__network_new(&spec, &n, NULL);
        sherd__alloc_fail_nth(0);
        if (err == SHERD_OK) break;
        assert_int_equal(err, SHERD_ENOMEM);
        assert_null(n);
    }
    sherd__network_free(n);
}

/* ---- the fused path -------------------------------------------------------------------------- */

static int long_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                         sherd_diag *d)
{
    return sherd_multiplier_multiply(*(sherd_multiplier *)ctx, a, b, c, ldc, d);
}

static const sherd_multiplier_ops long_ops = { .abi = SHERD_MULTIPLIER_ABI,
                                               .name = "long",
                                               .multiply = long_multiply };

static void fused_products_and_activations_equal_separate_ones(void **s)
{
    (void)s;
    sherd__engine e = here(0), apart = { .products = { &long_ops, &e.products } };
    for (size_t i = 0; i < PLANS * 2; i++) {
        const plan *p = &plans[i / 2];
        sherd__network *a = made(p, SHERD_F64, i % 2), *b = made(p, SHERD_F64, i % 2);
        sherd__batch batch = batch_of(p, SHERD_F64, ROWS);
        const double *ya, *yb;
        equal_params(a, b);
        double cost = cost_of(a, e, &batch);
        assert_true(fabs(cost - cost_of(b, apart, &batch)) <= 1e-14 * (1 + cost));
        for (size_t k = 0; k < sherd__network_count(a); k++) {
            double x = sherd__network_gradient(a)[k], y = sherd__network_gradient(b)[k];
            if (!(fabs(x - y) <= 1e-13 * (1 + fabs(y))))
                fail_msg("plan %zu, parameter %zu: %.17g and %.17g", i / 2, k, x, y);
        }
        for (unsigned unbiased = 0; unbiased < 2; unbiased++) {
            assert_int_equal(sherd__network_forward(a, e, &batch, unbiased, &ya, NULL), SHERD_OK);
            assert_int_equal(sherd__network_forward(b, apart, &batch, unbiased, &yb, NULL),
                             SHERD_OK);
            for (size_t k = 0; k < ROWS * sherd__network_width(a); k++)
                assert_true(fabs(ya[k] - yb[k]) <= 1e-14 * (1 + fabs(yb[k])));
        }
        sherd__network_free(a);
        sherd__network_free(b);
    }
    sherd_multiplier_free(e.products);
}

static int nothing_to_say(void *ctx, size_t layer, sherd_diag *d)
{
    (void)layer;
    (void)d;
    ++*(unsigned *)ctx;
    return SHERD_OK;
}

/* One network learns and is then updated; the other one takes steps. */
static void check_steps(const plan *p, sherd_dtype type, sherd__method method, unsigned bits,
                        bool keep, bool hooked)
{
    sherd__network *n[2];
    sherd__optimiser o[2];
    sherd__engine e = here(bits);
    sherd__batch b = batch_of(p, type, ROWS);
    unsigned called = 0;
    sherd__network_hooks hooks = { .after_backward = nothing_to_say, .ctx = &called };
    for (size_t i = 0; i < 2; i++) {
        sherd__optimiser_spec how = { .method = method, .dtype = type };
        n[i] = made(p, type, false);
        assert_int_equal(sherd__optimiser_init(&o[i], &how, sherd__network_count(n[i]), NULL), 0);
    }
    if (hooked) sherd__network_hook(n[1], &hooks);
    size_t count = sherd__network_count(n[0]), size = sherd_dtype_size(type);
    for (size_t step = 0; step < 3; step++) {
        double cost = cost_of(n[0], e, &b);
        sherd__learnt same = { NAN, NULL };
        sherd__optimiser_begin(&o[0]);
        sherd__optimiser_apply_here(&o[0], 0.05, 0, count, sherd__network_params(n[0]),
                                    sherd__network_gradient(n[0]), NULL);
        assert_int_equal(sherd__network_step(n[1], e, &b,
                                             &(sherd__network_update){ &o[1], 0.05, keep }, &same,
                                             NULL),
                         SHERD_OK);
        assert_true(cost == same.cost);
        assert_memory_equal(sherd__network_params(n[0]), sherd__network_params(n[1]), count * size);
        if (keep)
            assert_memory_equal(sherd__network_gradient(n[0]), sherd__network_gradient(n[1]),
                                count * size);
        assert_memory_equal(o[0].state, o[1].state, o[0].state_len * size);
    }
    assert_true(hooked == (called > 0));
    for (size_t i = 0; i < 2; i++) {
        sherd__network_free(n[i]);
        sherd__optimiser_fini(&o[i]);
    }
    sherd_multiplier_free(e.products);
}

static void a_step_equals_a_gradient_and_an_update_for_every_multiplier(void **s)
{
    static const sherd__method methods[] = { SHERD__SGD, SHERD__MOMENTUM, SHERD__ADAM };
    (void)s;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        for (size_t q = 0; q < 3; q++)
            for (unsigned way = 0; way < 4; way++) {
                check_steps(&plans[i], SHERD_F64, methods[q], 0, way & 1, way & 2);
                check_steps(&plans[i], SHERD_F32, methods[q], 0, way & 1, way & 2);
                check_steps(&plans[i], SHERD_F64, methods[q], 17, way & 1, way & 2);
            }
}

/* Large enough for several threads in every pass. */
static void bits_do_not_depend_on_the_number_of_threads(void **s)
{
    (void)s;
    enum { BATCH = 700, IN = 50, WIDTH = 45 };
    static const sherd__layer_spec layers[] = { DENSE(WIDTH), SIGMOID, DENSE(WIDTH),
                                                TANH,         RELU,    DENSE(3) };
    static double x[BATCH * IN];
    static uint32_t classes[BATCH];
    unsigned was = sherd__blas_threads();
    for (size_t k = 0; k < BATCH * IN; k++) x[k] = sin((double)k);
    for (size_t k = 0; k < BATCH; k++) classes[k] = (uint32_t)(k % 3);
    for (unsigned f32 = 0; f32 < 2; f32++) {
        double *after[2];
        size_t count = 0;
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            sherd__network_spec spec = { .in = { 1, 1, IN },
                                         .layers = layers,
                                         .len = 6,
                                         .batch = BATCH,
                                         .loss = SHERD__LOSS_CROSS_ENTROPY,
                                         .dtype = f32 ? SHERD_F32 : SHERD_F64 };
            sherd__optimiser_spec how = { .method = SHERD__ADAM, .dtype = spec.dtype };
            sherd__batch b = { .x = sherd_view_c(x, SHERD_F64, BATCH, IN),
                               .targets.labels = classes };
            sherd__engine e = here(0);
            sherd__seeded state;
            sherd__entropy entropy = sherd__entropy_seeded(&state, 9);
            sherd__network *n;
            sherd__optimiser o;
            sherd__blas_threads_set(threads);
            assert_int_equal(sherd__network_new(&spec, &n, NULL), SHERD_OK);
            count = sherd__network_count(n);
            assert_int_equal(sherd__optimiser_init(&o, &how, count, NULL), SHERD_OK);
            sherd__network_draw(n, &entropy, 0);
            for (size_t i = 0; i < 3; i++) {
                sherd__learnt got;
                assert_int_equal(sherd__network_step(n, e, &b,
                                                     &(sherd__network_update){ &o, 0.01, false },
                                                     &got, NULL),
                                 SHERD_OK);
            }
            after[threads / 2] = malloc(count * sizeof(double));
            sherd__network_get(n, after[threads / 2]);
            sherd__optimiser_fini(&o);
            sherd__network_free(n);
            sherd_multiplier_free(e.products);
        }
        assert_memory_equal(after[0], after[1], count * sizeof(double));
        free(after[0]);
        free(after[1]);
    }
    sherd__blas_threads_set(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gradient_in_f32_equals_differences_of_the_cost_in_f64),
        cmocka_unit_test(input_of_every_type_gives_the_same_bits),
        cmocka_unit_test(only_the_local_multiplier_computes_a_network_of_f32),
        cmocka_unit_test(other_dtypes_and_missing_memory_are_refused),
        cmocka_unit_test(fused_products_and_activations_equal_separate_ones),
        cmocka_unit_test(a_step_equals_a_gradient_and_an_update_for_every_multiplier),
        cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, fill_inputs, NULL);
}
