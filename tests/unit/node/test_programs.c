/*
 * Whole passes on devices, over stand-ins for their drivers: costs, outputs and gradients have the
 * bits of the host for every kind of layer and of examples; what a program does not compute is left
 * to products; failures of a device change nothing, and a device with other bits runs no programs.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rand.h"
#include "learn/draw.h"
#include "node/programs.h"
#include "tests/support/under_valgrind.h"
#include "tests/unit/node/standins.h"

/* A network, and how its examples are stored. */
typedef struct world {
    const char *name;
    sherd__tensor_shape in;
    sherd__layer_spec layers[10];
    sherd_dtype dtype;
    sherd__loss loss;
    unsigned bits; /* 0: 17 */
    size_t examples;
    bool strided;
    size_t outlier; /* a number of the first example that is larger than all others; 0: none */
} world;

#define DENSE(n)                                                                                   \
    {                                                                                              \
        .kind = &sherd__layer_dense, .units = n                                                    \
    }
#define CONV(n, w, s, p)                                                                           \
    {                                                                                              \
        .kind = &sherd__layer_conv2d, .units = n, .window = w, .stride = s, .padding = p           \
    }
#define POOL(which, w, s)                                                                          \
    {                                                                                              \
        .kind = &sherd__layer_##which##_pool, .window = w, .stride = s                             \
    }
#define KIND(which)                                                                                \
    {                                                                                              \
        .kind = &sherd__layer_##which                                                              \
    }

static const world worlds[] = {
    { .name = "dense",
      .in = { 1, 1, 13 },
      .layers = { DENSE(70), KIND(relu), DENSE(5) },
      .examples = 67 },
    { .name = "one layer of bytes",
      .in = { 1, 1, 300 },
      .layers = { DENSE(3) },
      .dtype = SHERD_U8,
      .examples = 5 },
    { .name = "whole numbers in a flattened image",
      .in = { 3, 4, 2 },
      .layers = { KIND(flatten), DENSE(9), KIND(sigmoid), DENSE(2) },
      .dtype = SHERD_I16,
      .loss = SHERD__LOSS_SQUARED,
      .examples = 9,
      .strided = true },
    { .name = "floats in rows with gaps",
      .in = { 1, 1, 11 },
      .layers = { DENSE(4), KIND(tanh), DENSE(4), KIND(tanh), DENSE(3) },
      .dtype = SHERD_F32,
      .examples = 8,
      .strided = true },
    { .name = "activations first and twice",
      .in = { 1, 1, 6 },
      .layers = { KIND(tanh), KIND(sigmoid), DENSE(6), KIND(sigmoid), KIND(tanh), DENSE(2),
                  KIND(sigmoid) },
      .loss = SHERD__LOSS_SQUARED,
      .examples = 10 },
    { .name = "lenet",
      .in = { 12, 12, 1 },
      .layers = { CONV(6, 5, 1, 0), KIND(relu), POOL(max, 2, 2), CONV(8, 3, 1, 1), KIND(tanh),
                  POOL(max, 2, 0), KIND(flatten), DENSE(20), KIND(relu), DENSE(4) },
      .dtype = SHERD_U8,
      .examples = 6 },
    { .name = "windows that leave pixels out",
      .in = { 11, 9, 3 },
      .layers = { CONV(4, 2, 3, 0), KIND(sigmoid), CONV(3, 2, 1, 1), POOL(average, 3, 1),
                  DENSE(3) },
      .outlier = (2 * 9 + 2) * 3,
      .examples = 4 },
    { .name = "pools that overlap",
      .in = { 9, 10, 2 },
      .layers = { POOL(max, 3, 2), CONV(5, 3, 2, 2), POOL(max, 2, 1), KIND(relu),
                  POOL(average, 2, 2), DENSE(2) },
      .loss = SHERD__LOSS_SQUARED,
      .examples = 3 },
    { .name = "a pool below the lowest parameters",
      .in = { 8, 8, 1 },
      .layers = { POOL(average, 2, 2), KIND(flatten), DENSE(5), KIND(relu), DENSE(2) },
      .dtype = SHERD_U16,
      .examples = 7 },
    { .name = "few bits",
      .in = { 1, 1, 20 },
      .layers = { DENSE(10), KIND(relu), DENSE(3) },
      .bits = 4,
      .examples = 12 },
    { .name = "many bits",
      .in = { 1, 1, 20 },
      .layers = { DENSE(10), KIND(relu), DENSE(3) },
      .bits = 24,
      .examples = 12 },
};
#define WORLDS (sizeof worlds / sizeof *worlds)

/* A network of a world, its examples, and devices for it. */
typedef struct trial {
    void *ctx;
    sherd__devices devices;
    sherd__elsewhere elsewhere;
    sherd__network *network;
    sherd__batch batch;
    sherd_multiplier here;
    uint8_t *x;
    double *wanted;
    uint32_t *labels;
} trial;

static size_t layers_of(const world *w)
{
    size_t n = 0;
    while (n < 10 && w->layers[n].kind) n++;
    return n;
}

/* Draws examples: integers, or numbers of very different sizes, zeros among them. */
static void draw_examples(trial *t, const world *w, const sherd__entropy *e, size_t size)
{
    const sherd_dtype dtype = w->dtype ? w->dtype : SHERD_F64;
    const size_t each = sherd_dtype_size(dtype), ld = size + 3 * w->strided;
    t->x = calloc(w->examples * ld, each);
    for (size_t i = 0; i < w->examples * ld; i++) {
        const double v = ldexp((double)sherd__entropy_below(e, 2001) - 1000,
                               -(int)sherd__entropy_below(e, 12));
        const float f = (float)v;
        const uint64_t some = sherd__entropy_below(e, 65536);
        if (dtype == SHERD_F64) memcpy(t->x + i * each, &v, each);
        else if (dtype == SHERD_F32) memcpy(t->x + i * each, &f, each);
        else memcpy(t->x + i * each, &some, each);
    }
    if (w->outlier) ((double *)(void *)t->x)[w->outlier] = 1e5;
    t->batch.x = sherd_view_sub(sherd_view_c(t->x, dtype, w->examples, ld), 0, w->examples, 0,
                                size);
}

static void draw_targets(trial *t, const world *w, const sherd__entropy *e)
{
    const size_t width = sherd__network_width(t->network);
    t->labels = calloc(w->examples, sizeof *t->labels);
    t->wanted = calloc(w->examples * width, sizeof *t->wanted);
    sherd__draw_below(e, (uint32_t)width, t->labels, w->examples);
    for (size_t i = 0; i < w->examples * width; i++)
        t->wanted[i] = (double)sherd__entropy_below(e, 100) / 50;
    if (w->loss == SHERD__LOSS_SQUARED) t->batch.targets.values = t->wanted;
    else t->batch.targets.labels = t->labels;
}

static unsigned bits_of(const world *w)
{
    return w->bits ? w->bits : 17;
}

static void start_network(trial *t, const world *w)
{
    sherd__seeded state;
    const sherd__entropy e = sherd__entropy_seeded(&state, (uint64_t)(w - worlds) + 1);
    const sherd__network_spec spec = { .in = w->in,
                                       .layers = w->layers,
                                       .len = layers_of(w),
                                       .batch = w->examples,
                                       .loss = w->loss ? w->loss : SHERD__LOSS_CROSS_ENTROPY };
    sherd_diag d = { .code = 0 };
    *t = (trial){ .ctx = NULL };
    if (sherd__network_new(&spec, &t->network, &d)) fail_msg("%s: %s", w->name, d.message);
    sherd__network_draw(t->network, &e, 0);
    draw_examples(t, w, &e, w->in.height * w->in.width * w->in.channels);
    draw_targets(t, w, &e);
    assert_int_equal(sherd_multiplier_local(&t->here, bits_of(w), NULL), 0);
}

static void start_devices(trial *t, const world *w, void *ctx)
{
    uint32_t count;
    t->ctx = ctx;
    const sherd__device *list = backend->devices(ctx, &count);
    sherd__devices_init(&t->devices, backend, ctx, list, count);
    assert_int_equal(sherd__programs_new(&t->elsewhere, &t->devices, bits_of(w), NULL), 0);
    assert_non_null(t->elsewhere.run);
}

static void stop_devices(trial *t)
{
    t->elsewhere.free(t->elsewhere.ctx);
    assert_false(sherd__devices_busy(&t->devices));
    backend->close(t->ctx);
}

static void stop_network(trial *t)
{
    sherd__network_free(t->network);
    sherd_multiplier_free(t->here);
    free(t->x);
    free(t->wanted);
    free(t->labels);
}

/* The result of a pass on the host. */
typedef struct result {
    double cost;
    double *y, *gradient;
    size_t outputs;
} result;

static result expected(const trial *t)
{
    const sherd__engine e = { .products = t->here };
    result r;
    const double *y;
    r.outputs = t->batch.x.rows * sherd__network_width(t->network);
    r.y = calloc(r.outputs, sizeof *r.y);
    r.gradient = calloc(sherd__network_count(t->network), sizeof *r.gradient);
    assert_int_equal(sherd__network_learn(t->network, e, &t->batch, &r.cost, &y, NULL), 0);
    memcpy(r.y, y, r.outputs * sizeof *y);
    sherd__network_get_gradient(t->network, r.gradient);
    sherd__network_forget_gradient(t->network);
    return r;
}

static void result_free(result *r)
{
    free(r->y);
    free(r->gradient);
}

/* Makes a pass on the devices; if it succeeds, its bits are those of `want`. */
static int pass_is(const trial *t, const result *want, const char *name)
{
    sherd__learnt got = { 0 };
    sherd_diag d = { .code = 0 };
    const size_t count = sherd__network_count(t->network);
    int err = sherd__network_learn_by(t->network, &t->elsewhere, &t->batch, &got, &d);
    if (err) return err;
    const double *gradient = sherd__network_gradient(t->network);
    assert_true(memcmp(&got.cost, &want->cost, sizeof got.cost) == 0);
    for (size_t i = 0; i < want->outputs; i++)
        if (memcmp(&got.y[i], &want->y[i], sizeof *got.y))
            fail_msg("%s: output %zu: %.17g, not %.17g", name, i, got.y[i], want->y[i]);
    for (size_t i = 0; i < count; i++)
        if (memcmp(&gradient[i], &want->gradient[i], sizeof *gradient))
            fail_msg("%s: gradient %zu: %.17g, not %.17g", name, i, gradient[i], want->gradient[i]);
    return SHERD_OK;
}

static void passes_have_the_bits_of_the_host(void **s)
{
    (void)s;
    void *ctx = opened("");
    for (size_t i = 0; i < WORLDS; i++) {
        trial t;
        start_network(&t, &worlds[i]);
        result want = expected(&t);
        start_devices(&t, &worlds[i], ctx);
        for (unsigned k = 0; k < 2; k++)
            assert_int_equal(pass_is(&t, &want, worlds[i].name), SHERD_OK);
        t.elsewhere.free(t.elsewhere.ctx);
        result_free(&want);
        stop_network(&t);
    }
    backend->close(ctx);
    assert_int_equal(on->dirty(), 0);
}

static void what_a_program_does_not_compute_is_left_to_products(void **s)
{
    (void)s;
    static const world others[] = {
        { .in = { 1, 1, 20 }, .layers = { DENSE(10), DENSE(3) }, .bits = 30, .examples = 12 },
        { .in = { 1, 1, 4 },
          .layers = { DENSE(3), KIND(softmax) },
          .loss = SHERD__LOSS_SQUARED,
          .examples = 2 },
        { .in = { 1, 1, 4 }, .layers = { DENSE(3) }, .dtype = SHERD_I64, .examples = 2 },
        { .in = { 20, 20, 1 },
          .layers = { CONV(1, 1, 1, 0), POOL(max, 10, 1), DENSE(2) },
          .examples = 2 },
    };
    void *ctx = opened("");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        trial t;
        start_network(&t, &others[i]);
        start_devices(&t, &others[i], ctx);
        const unsigned before = on->launches();
        assert_int_equal(pass_is(&t, NULL, ""), SHERD_EUNSUPPORTED);
        assert_int_equal(on->launches(), before);
        t.elsewhere.free(t.elsewhere.ctx);
        stop_network(&t);
    }
    backend->close(ctx);
}

static void numbers_that_are_not_finite_are_left_to_products(void **s)
{
    (void)s;
    static const double bad[] = { NAN, INFINITY, -INFINITY };
    trial t;
    start_network(&t, &worlds[0]);
    start_devices(&t, &worlds[0], opened(""));
    for (size_t i = 0; i < 3; i++) {
        memcpy(t.x + 8 * 17, &bad[i], 8);
        assert_int_equal(pass_is(&t, NULL, ""), SHERD_EUNSUPPORTED);
    }
    stop_devices(&t);
    stop_network(&t);
    assert_int_equal(on->dirty(), 0);
}

static void a_loss_that_fails_ends_the_pass_with_its_error(void **s)
{
    (void)s;
    trial t;
    sherd__learnt got;
    sherd_diag d = { .code = 0 };
    start_network(&t, &worlds[0]);
    start_devices(&t, &worlds[0], opened(""));
    t.labels[3] = 99;
    assert_int_equal(sherd__network_learn_by(t.network, &t.elsewhere, &t.batch, &got, &d),
                     SHERD_EINVAL);
    assert_non_null(strstr(d.message, "99"));
    stop_devices(&t);
    stop_network(&t);
    assert_int_equal(on->dirty(), 0);
}

/* Makes passes with a fault at each launch or allocation of the first one. */
static void every_fault_is_survived(const char *fault, unsigned step)
{
    const world *w = &worlds[5];
    trial t;
    unsigned ended = 0;
    start_network(&t, w);
    result want = expected(&t);
    const unsigned first = launches_of_open();
    for (unsigned k = 1; ended < 2; k += step) {
        char faults[64];
        snprintf(faults, sizeof faults, "devices=2,%s=%u", fault, first + k);
        sherd_diag d;
        void *ctx;
        assert_int_equal(open_with(&ctx, faults, (sherd__backend_options){ .timeout_s = 60 }, &d),
                         SHERD_OK);
        start_devices(&t, w, ctx);
        int err = pass_is(&t, &want, faults);
        assert_int_equal(err, SHERD_OK); /* on the second attempt */
        ended = on->launches() < first + k ? ended + 1 : 0;
        stop_devices(&t);
    }
    result_free(&want);
    stop_network(&t);
}

static void a_failed_launch_changes_nothing(void **s)
{
    (void)s;
    every_fault_is_survived("fail", under_valgrind() ? 60 : 5);
}

static void a_device_that_is_short_of_memory_leaves_passes_to_products(void **s)
{
    (void)s;
    const world *w = &worlds[5];
    trial t;
    void *ctx;
    sherd_diag d;
    start_network(&t, w);
    const uint64_t least = 4 << 20;
    assert_int_equal(open_with(&ctx, "", (sherd__backend_options){ .device_memory = least }, &d),
                     0);
    start_devices(&t, w, ctx);
    result want = expected(&t);
    assert_int_equal(pass_is(&t, &want, ""), SHERD_OK);
    sherd__fragment *f = block_new();
    const uint64_t fit = least / LEN;
    sherd__handle *all = calloc(fit, sizeof *all);
    for (uint64_t i = 0; i < fit; i++) all[i] = held(ctx, f);
    assert_int_equal(pass_is(&t, &want, ""), SHERD_EUNSUPPORTED);
    for (uint64_t i = 0; i < fit; i++) backend->drop(ctx, &all[i]);
    assert_int_equal(pass_is(&t, &want, ""), SHERD_OK);
    stop_devices(&t);
    sherd__fragment_free(f);
    free(all);
    result_free(&want);
    stop_network(&t);
    assert_int_equal(on->dirty(), 0);
}

static void the_last_device_that_is_lost_fails_the_pass(void **s)
{
    (void)s;
    trial t;
    char faults[32];
    start_network(&t, &worlds[5]);
    snprintf(faults, sizeof faults, "lost=%u", launches_of_open() + 9);
    start_devices(&t, &worlds[5], opened(faults));
    assert_int_equal(pass_is(&t, NULL, ""), SHERD_EDEVICE);
    assert_true(sherd__devices_lost(&t.devices));
    stop_devices(&t);
    stop_network(&t);
}

static void a_device_with_other_bits_runs_no_programs(void **s)
{
    (void)s;
    const unsigned first = launches_of_open();
    unsigned refused = 0, all = 0;
    const unsigned step = under_valgrind() ? 60 : 3;
    for (unsigned k = 1; k == 1 || on->launches() >= first + k - step; k += step) {
        char faults[32];
        uint32_t count;
        sherd__devices devices;
        snprintf(faults, sizeof faults, "wrong=%u", first + k);
        void *ctx = opened(faults);
        const sherd__device *list = backend->devices(ctx, &count);
        sherd__devices_init(&devices, backend, ctx, list, count);
        assert_true(devices.list[0].what.does & SHERD__DOES_PROGRAMS);
        assert_int_equal(sherd__programs_test(&devices, NULL), SHERD_OK);
        refused += !(devices.list[0].what.does & SHERD__DOES_PROGRAMS);
        all++;
        backend->close(ctx);
    }
    /* Others spoil a peak, or a zero, which is then tiny. */
    assert_true(under_valgrind() || refused > all / 3);
    uint32_t count;
    sherd__devices devices;
    void *ctx = opened("");
    const sherd__device *list = backend->devices(ctx, &count);
    sherd__devices_init(&devices, backend, ctx, list, count);
    assert_int_equal(sherd__programs_test(&devices, NULL), SHERD_OK);
    assert_true(devices.list[0].what.does & SHERD__DOES_PROGRAMS);
    backend->close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH(passes_have_the_bits_of_the_host),
        OVER_BOTH(what_a_program_does_not_compute_is_left_to_products),
        OVER_BOTH(numbers_that_are_not_finite_are_left_to_products),
        OVER_BOTH(a_loss_that_fails_ends_the_pass_with_its_error),
        OVER_BOTH(a_failed_launch_changes_nothing),
        OVER_BOTH(a_device_that_is_short_of_memory_leaves_passes_to_products),
        OVER_BOTH(the_last_device_that_is_lost_fails_the_pass),
        OVER_BOTH(a_device_with_other_bits_runs_no_programs),
    };
    return cmocka_run_group_tests_name("node/programs", tests, standins_open, standins_close);
}
