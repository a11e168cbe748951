/*
 * Running the program of a pass, and the test of devices. A program that fails is run again, on
 * another device if there is one (sherd__devices_run): nothing of a pass has been handed out before
 * its program ends.
 */
#include "node/programs.h"

#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/rand.h"
#include "node/programs_build.h"

#define LEAST_BITS 4u /* with fewer, exponents can be below those of powers that kernels make */

typedef struct programs {
    sherd__devices *devices;
    const sherd__device_state *only; /* in the test; NULL: any device */
    unsigned bits;
    sherd__executor *executor;
    sherd__pass_program pass;
} programs;

/* The loss, on a thread of the device. */
typedef struct losing {
    const sherd__network_pass *pass;
    int err;
    sherd_diag why;
} losing;

static int lose(void *ctx, sherd_diag *d)
{
    losing *l = ctx;
    (void)d;
    l->why = (sherd_diag){ .code = 0 };
    return l->err = l->pass->loss(l->pass->ctx, &l->why);
}

static int run(void *ctx, const sherd__network_pass *p, sherd_diag *d)
{
    programs *s = ctx;
    losing l = { .pass = p };
    sherd_diag mine = { .code = 0 };
    if (sherd__pass_program_make(&s->pass, p, s->bits)) return SHERD_EUNSUPPORTED;
    s->pass.program.call = lose;
    s->pass.program.ctx = &l;
    const sherd__device_run r = { .program = &s->pass.program,
                                  .only = s->only,
                                  .executor = s->executor };
    int err = sherd__devices_run(s->devices, &r, &mine);
    if (l.err) return sherd__fail(d, l.err, l.why.hint, "%s", l.why.message);
    if (err == SHERD_EDEVICE && sherd__devices_lost(s->devices))
        return sherd__fail(d, SHERD_EDEVICE, NULL, "%s", mine.message);
    return err ? SHERD_EUNSUPPORTED : SHERD_OK;
}

static void programs_free(void *ctx)
{
    programs *s = ctx;
    if (!s) return;
    sherd__executor_free(s->executor);
    sherd__pass_program_free(&s->pass);
    sherd__free(s);
}

static programs *programs_make(sherd__devices *devices, unsigned bits)
{
    programs *s = sherd__calloc(1, sizeof *s);
    if (s && sherd__executor_new_inline(&s->executor)) {
        sherd__free(s);
        s = NULL;
    }
    if (!s) return NULL;
    s->devices = devices;
    s->bits = bits;
    return s;
}

/* ---- the test of devices --------------------------------------------------------------------- */

enum { EXAMPLES = 3, SIDE = 12, MANY = 140, WIDE = 300, BITS = 17 };

static const sherd__layer_spec tested[] = {
    { .kind = &sherd__layer_conv2d, .units = 4, .window = 3, .padding = 1 },
    { .kind = &sherd__layer_tanh },
    { .kind = &sherd__layer_max_pool, .window = 3, .stride = 2 },
    { .kind = &sherd__layer_conv2d, .units = 5, .window = 2, .stride = 3 },
    { .kind = &sherd__layer_relu },
    { .kind = &sherd__layer_average_pool, .window = 2, .stride = 1 },
    { .kind = &sherd__layer_flatten },
    { .kind = &sherd__layer_dense, .units = 7 },
    { .kind = &sherd__layer_sigmoid },
    { .kind = &sherd__layer_dense, .units = 2 },
};

/* Bytes as inputs, and more numbers, columns and examples than one group of items has. */
static const sherd__layer_spec tested_too[] = {
    { .kind = &sherd__layer_dense, .units = 70 },
    { .kind = &sherd__layer_relu },
    { .kind = &sherd__layer_dense, .units = 2 },
};

/* What a pass computes. */
typedef struct result {
    double cost, y[MANY * 2];
    double *gradient;
} result;

static int learn(sherd__network *n, const sherd__elsewhere *by, sherd_multiplier m,
                 const sherd__batch *batch, result *out)
{
    sherd__learnt got;
    int err = by ? sherd__network_learn_by(n, by, batch, &got, NULL)
                 : sherd__network_learn(n, (sherd__engine){ .products = m }, batch, &got.cost,
                                        &got.y, NULL);
    if (err) return err;
    out->cost = got.cost;
    memcpy(out->y, got.y, batch->x.rows * 2 * sizeof *out->y);
    sherd__network_get_gradient(n, out->gradient);
    return SHERD_OK;
}

/* Draws examples, whole numbers where they are bytes, and parameters. */
static void draw(sherd__network *n, sherd_view x, uint32_t *labels)
{
    sherd__seeded state;
    const sherd__entropy e = sherd__entropy_seeded(&state, 20261128);
    for (size_t i = 0; i < x.rows * x.cols; i++) {
        const uint64_t v = sherd__entropy_below(&e, 4001);
        if (x.dtype == SHERD_U8) ((uint8_t *)(uintptr_t)x.data)[i] = (uint8_t)v;
        else ((double *)(uintptr_t)x.data)[i] = (double)v / 1000 - 2;
    }
    for (size_t i = 0; i < x.rows; i++) labels[i] = (uint32_t)sherd__entropy_below(&e, 2);
    sherd__network_draw(n, &e, 0);
}

/* Computes a pass on a device and on the host. *same: all bits are equal. */
static int compare(programs *s, const sherd__network_spec *spec, sherd_dtype dtype,
                   sherd_multiplier m, bool *same)
{
    uint32_t labels[MANY];
    sherd__network *n = NULL;
    int err = sherd__network_new(spec, &n, NULL);
    if (err) return err;
    const size_t count = sherd__network_count(n);
    const size_t size = spec->in.height * spec->in.width * spec->in.channels;
    double *x = sherd__calloc(spec->batch * size, sizeof *x);
    double *room = sherd__alloc(2 * count * sizeof *room);
    if (x && room) {
        const sherd__elsewhere by = { .run = run, .ctx = s };
        const sherd__batch batch = { .x = sherd_view_c(x, dtype, spec->batch, size),
                                     .targets = { .labels = labels } };
        result here = { .gradient = room }, there = { .gradient = room + count };
        draw(n, batch.x, labels);
        err = learn(n, NULL, m, &batch, &here);
        *same = !err && learn(n, &by, m, &batch, &there) == SHERD_OK &&
                memcmp(&here.cost, &there.cost, sizeof here.cost) == 0 &&
                memcmp(here.y, there.y, spec->batch * 2 * sizeof *here.y) == 0 &&
                memcmp(here.gradient, there.gradient, count * sizeof(double)) == 0;
    } else {
        err = SHERD_ENOMEM;
    }
    sherd__free(x);
    sherd__free(room);
    sherd__network_free(n);
    return err;
}

/* One that fails, or has no memory for the test, runs no programs. */
static int test_devices(programs *s)
{
    const sherd__network_spec specs[] = {
        { .in = { SIDE, SIDE, 2 },
          .layers = tested,
          .len = sizeof tested / sizeof *tested,
          .batch = EXAMPLES,
          .loss = SHERD__LOSS_CROSS_ENTROPY },
        { .in = { 1, 1, WIDE },
          .layers = tested_too,
          .len = sizeof tested_too / sizeof *tested_too,
          .batch = MANY,
          .loss = SHERD__LOSS_CROSS_ENTROPY },
    };
    sherd__devices *ds = s->devices;
    sherd_multiplier m = { 0 };
    int err = sherd_multiplier_local(&m, BITS, NULL);
    for (uint32_t i = 0; i < 2 * ds->count && !err; i++) {
        bool same = false;
        s->only = &ds->list[i / 2];
        if (!sherd__devices_run_programs(ds, s->only)) continue;
        err = compare(s, &specs[i % 2], i % 2 ? SHERD_U8 : SHERD_F64, m, &same);
        if (!same) sherd__devices_without_programs(ds, s->only);
    }
    sherd_multiplier_free(m);
    return err;
}

int sherd__programs_test(sherd__devices *devices, sherd_diag *d)
{
    if (!sherd__devices_run_programs(devices, NULL)) return SHERD_OK;
    programs *s = programs_make(devices, BITS);
    int err = s ? test_devices(s) : SHERD_ENOMEM;
    programs_free(s);
    if (!err && sherd__devices_lost(devices))
        return sherd__fail(d, SHERD_EDEVICE, NULL, "the device failed in a pass of training");
    return err ? sherd__fail_to(d, err, "test devices") : SHERD_OK;
}

int sherd__programs_new(sherd__elsewhere *out, sherd__devices *devices, unsigned bits,
                        sherd_diag *d)
{
    *out = (sherd__elsewhere){ .run = NULL };
    if (bits < LEAST_BITS || !sherd__devices_run_programs(devices, NULL)) return SHERD_OK;
    programs *s = programs_make(devices, bits);
    if (!s) return sherd__fail_memory(d, "passes on devices");
    *out = (sherd__elsewhere){ run, programs_free, s };
    return SHERD_OK;
}
