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

typedef struct programs {
    sherd__devices *devices;
    const sherd__device_state *only; /* in the test; NULL: any device */
    uint64_t owner;
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
    const sherd__device_run r = {
        .program = &s->pass.program, .only = s->only, .owner = s->owner, .executor = s->executor
    };
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

static bool runs_programs(const sherd__device_state *s)
{
    return !s->lost && s->what.does & SHERD__DOES_PROGRAMS;
}

static bool any_runs_programs(const sherd__devices *ds)
{
    bool any = false;
    for (uint32_t i = 0; i < ds->count; i++) any = any || runs_programs(&ds->list[i]);
    return any;
}

static programs *programs_make(sherd__devices *devices, uint64_t owner, unsigned bits)
{
    programs *s = sherd__calloc(1, sizeof *s);
    if (s && sherd__executor_new_inline(&s->executor)) {
        sherd__free(s);
        s = NULL;
    }
    if (!s) return NULL;
    s->devices = devices;
    s->owner = owner;
    s->bits = bits;
    return s;
}

/* ---- the test of devices --------------------------------------------------------------------- */

enum { EXAMPLES = 3, SIDE = 12, BITS = 17 };

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

/* What a pass computes. */
typedef struct result {
    double cost, y[EXAMPLES * 2];
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
    memcpy(out->y, got.y, sizeof out->y);
    sherd__network_get_gradient(n, out->gradient);
    return SHERD_OK;
}

/* Computes a pass on a device and on the host. *same: all bits are equal. */
static int compare(programs *s, sherd__network *n, sherd_multiplier m, bool *same)
{
    static const uint32_t labels[EXAMPLES] = { 1, 0, 1 };
    double x[EXAMPLES * SIDE * SIDE * 2];
    sherd__seeded state;
    const sherd__entropy e = sherd__entropy_seeded(&state, 20261128);
    const size_t count = sherd__network_count(n);
    const sherd__elsewhere by = { .run = run, .ctx = s };
    double *room = sherd__alloc(2 * count * sizeof *room);
    result here = { .gradient = room }, there = { .gradient = room ? room + count : NULL };
    if (!room) return SHERD_ENOMEM;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (double)sherd__entropy_below(&e, 4001) / 1000 - 2;
    sherd__network_draw(n, &e, 0);
    const sherd__batch batch = { .x = sherd_view_c(x, SHERD_F64, EXAMPLES,
                                                   sizeof x / sizeof *x / EXAMPLES),
                                 .targets = { .labels = labels } };
    int err = learn(n, NULL, m, &batch, &here);
    *same = !err && learn(n, &by, m, &batch, &there) == SHERD_OK &&
            memcmp(&here.cost, &there.cost, sizeof here.cost) == 0 &&
            memcmp(here.y, there.y, sizeof here.y) == 0 &&
            memcmp(here.gradient, there.gradient, count * sizeof(double)) == 0;
    sherd__free(room);
    return err;
}

/* One that fails, or has no memory for the test, runs no programs. */
static int test_devices(programs *s)
{
    const sherd__network_spec spec = { .in = { SIDE, SIDE, 2 },
                                       .layers = tested,
                                       .len = sizeof tested / sizeof *tested,
                                       .batch = EXAMPLES,
                                       .loss = SHERD__LOSS_CROSS_ENTROPY };
    sherd__devices *ds = s->devices;
    sherd__network *n = NULL;
    sherd_multiplier m = { 0 };
    int err = sherd_multiplier_local(&m, BITS, NULL);
    if (!err) err = sherd__network_new(&spec, &n, NULL);
    for (uint32_t i = 0; i < ds->count && !err; i++) {
        bool same = false;
        s->only = &ds->list[i];
        if (!runs_programs(s->only)) continue;
        err = compare(s, n, m, &same);
        if (!same) sherd__devices_without_programs(ds, s->only);
    }
    sherd__network_free(n);
    sherd_multiplier_free(m);
    return err;
}

int sherd__programs_test(sherd__devices *devices, sherd_diag *d)
{
    if (!any_runs_programs(devices)) return SHERD_OK;
    programs *s = programs_make(devices, 0, BITS);
    int err = s ? test_devices(s) : SHERD_ENOMEM;
    programs_free(s);
    return err ? sherd__fail_to(d, err, "test devices") : SHERD_OK;
}

int sherd__programs_new(sherd__elsewhere *out, sherd__devices *devices, uint64_t owner,
                        unsigned bits, sherd_diag *d)
{
    *out = (sherd__elsewhere){ .run = NULL };
    if (!bits || !any_runs_programs(devices)) return SHERD_OK;
    programs *s = programs_make(devices, owner, bits);
    if (!s) return sherd__fail_memory(d, "passes on devices");
    *out = (sherd__elsewhere){ run, programs_free, s };
    return SHERD_OK;
}
