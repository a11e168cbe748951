/*
 * A device that is measured for people (sherd node --list-devices --measure): copies of the driver
 * and products of the library with nothing around them, and those of a lane, whose products stay on
 * the device. Sizes grow until a product takes long, or does not fit.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "matrix/residue_bytes.h"
#include "node/backends/accelerator_trial.h"
#include "sherd/mat.h"

#define RUNS 3u
#define SMALLEST 256u
#define LARGEST 16384u
#define SLOW_S 0.05 /* a device that takes so long below 1024 is not measured at larger sizes */
#define LONG_S 0.4  /* nor any device that takes so long */
#define ALL_S 60.0  /* nothing is started after that */
#define FILL ((uint64_t)16 << 20) /* numbers that are repeated */

const accelerator_measured sherd__accelerator_measured[KINDS] = {
    [KIND_F64] = { "float64", SHERD_F64, 0 },
    [KIND_RESIDUES] = { "residues", SHERD__RESIDUES, 1 },
    [KIND_BYTES] = { "six-bytes", SHERD__BYTES, 6 },
};

typedef struct peaks {
    accelerator_trial *trial;
    sherd__device_rates *out;
    bool quick;
    double until; /* by sherd__clock_s */
} peaks;

void sherd__device_rates_add(sherd__device_rates *r, const char *name, uint32_t n, double value,
                             const char *unit)
{
    if (r->len == SHERD__DEVICE_RATES) return;
    sherd__device_rate *row = &r->list[r->len++];
    *row = (sherd__device_rate){ .n = n, .value = value };
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->unit, sizeof row->unit, "%s", unit);
}

/* Returns whether a product of twice the size n is measured, after one that took `seconds`. */
static bool goes_on(const peaks *p, uint32_t n, double seconds)
{
    return !p->quick && 2 * n <= LARGEST && seconds < (n < 1024 ? SLOW_S : LONG_S) &&
           sherd__clock_s() < p->until;
}

static void add_rate(const peaks *p, const char *name, uint32_t n, double seconds)
{
    sherd__device_rates_add(p->out, name, n, 2.0 * n * n * n / seconds, "op/s");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int take(accelerator_lane *l, uint64_t len, void **memory, sherd_diag *d)
{
    int err = sherd__accelerator_reserve(l->on, len, d);
    if (err) return err;
    err = sherd__lane_memory(l, len, memory, d);
    if (err) sherd__accelerator_unreserve(l->on, len);
    return err;
}

static void give(accelerator_lane *l, uint64_t len, void *memory)
{
    sherd__accelerator_forget(l, memory, len);
    sherd__accelerator_unreserve(l->on, len);
}

/* Fills memory of the device with numbers that are finite in float64, and not zero: a product of
 * zeros needs less power, so that a device may compute it faster. */
static int fill(accelerator_lane *l, void *memory, uint64_t len, sherd_diag *d)
{
    const uint64_t part = len < FILL ? len : FILL;
    double *numbers = sherd__alloc(part);
    int err = numbers ? SHERD_OK : sherd__fail_memory(d, "a measurement");
    uint32_t x = 1;
    for (uint64_t i = 0; !err && i < part / 8; i++) {
        x = x * 1664525 + 1013904223;
        numbers[i] = 1e-9 * x - 2;
    }
    for (uint64_t at = 0; at < len && !err; at += part)
        err = sherd__lane_write(l, memory, at, (const uint8_t *)numbers,
                                len - at < part ? len - at : part, d);
    sherd__free(numbers);
    return err;
}

/* ---- copies ---------------------------------------------------------------------------------- */

typedef int copy_function(void *lane, const sherd__driver_copy *c, sherd_diag *d);

/* The driver's copy of one piece, from or to memory of its own. */
static int time_driver(accelerator_lane *l, copy_function *copy, const sherd__driver_copy *c,
                       double *best, sherd_diag *d)
{
    int err = SHERD_OK;
    *best = INFINITY;
    for (unsigned i = 0; i < RUNS && !err; i++) {
        const double from = sherd__clock_s();
        sherd__lane_enter(l);
        err = copy(l->driver, c, d);
        if (!err) err = sherd__lane_driver(l)->wait(l->driver, c->part, d);
        sherd__lane_leave(l);
        *best = fmin(*best, sherd__clock_s() - from);
    }
    return err;
}

static int measure_driver(const peaks *p, const sherd__driver_copy *c, sherd_diag *d)
{
    accelerator_lane *l = p->trial->lane;
    double in = 0, out = 0;
    int err = time_driver(l, sherd__lane_driver(l)->write, c, &in, d);
    if (!err) err = time_driver(l, sherd__lane_driver(l)->read, c, &out, d);
    if (err) return err;
    sherd__device_rates_add(p->out, "copy-in", 0, (double)c->len / in, "B/s");
    sherd__device_rates_add(p->out, "copy-out", 0, (double)c->len / out, "B/s");
    return SHERD_OK;
}

/* The lane's copies, from and to ordinary memory. */
static int measure_lane(const peaks *p, const sherd__driver_copy *c, uint8_t *here, sherd_diag *d)
{
    accelerator_lane *l = p->trial->lane;
    double in = INFINITY, out = INFINITY;
    int err = SHERD_OK;
    for (unsigned i = 0; i < RUNS && !err; i++) {
        const double from = sherd__clock_s();
        err = sherd__lane_write(l, c->memory, 0, here, c->len, d);
        const double between = sherd__clock_s();
        if (!err) err = sherd__lane_read(l, c->memory, 0, here, c->len, d);
        in = fmin(in, between - from);
        out = fmin(out, sherd__clock_s() - between);
    }
    if (err) return err;
    sherd__device_rates_add(p->out, "upload", 0, (double)c->len / in, "B/s");
    sherd__device_rates_add(p->out, "download", 0, (double)c->len / out, "B/s");
    return SHERD_OK;
}

static int measure_copies(const peaks *p, sherd_diag *d)
{
    accelerator_lane *l = p->trial->lane;
    const sherd__driver *driver = sherd__lane_driver(l);
    const uint64_t most = l->on->driver.memory / 4, len = p->quick ? 4u << 20 : 256u << 20;
    sherd__driver_copy c = { .len = len < most ? len : most / 4 * 4 };
    void *pinned = NULL;
    uint8_t *here = sherd__alloc(c.len);
    int err = here ? take(l, c.len, &c.memory, d) : sherd__fail_memory(d, "a measurement");
    if (!err && driver->staging_new) err = driver->staging_new(l->driver, c.len, &pinned, d);
    else if (!err && !(pinned = sherd__alloc(c.len))) err = sherd__fail_memory(d, "a measurement");
    c.staging = pinned;
    if (!err) {
        memset(here, 1, c.len); /* so that the memory is there */
        memset(pinned, 1, c.len);
        err = measure_driver(p, &c, d);
    }
    if (!err) err = measure_lane(p, &c, here, d);
    if (pinned) sherd__wipe(pinned, c.len); /* no memory of a device or for it is freed as it was */
    if (pinned && driver->staging_free) driver->staging_free(l->driver, pinned);
    else sherd__free(pinned);
    if (c.memory) give(l, c.len, c.memory);
    sherd__free(here);
    return err;
}

/* ---- products -------------------------------------------------------------------------------- */

/* Products of the library, one after the other. */
static int time_library(accelerator_lane *l, const sherd__library_product *x, double *seconds,
                        sherd_diag *d)
{
    int err = sherd__lane_product(l, x, d); /* the first one loads functions */
    if (!err) err = sherd__lane_finish(l, d);
    const double from = sherd__clock_s();
    for (unsigned i = 0; i < RUNS && !err; i++) err = sherd__lane_product(l, x, d);
    if (!err) err = sherd__lane_finish(l, d);
    *seconds = (sherd__clock_s() - from) / RUNS;
    return err;
}

static int multiply_by_library(const peaks *p, bool bytes, uint32_t n, double *seconds,
                               sherd_diag *d)
{
    accelerator_lane *l = p->trial->lane;
    const uint64_t in = (uint64_t)n * n * (bytes ? 1 : 8), out = (uint64_t)n * n * (bytes ? 4 : 8);
    void *memory = NULL;
    int err = take(l, 2 * in + out, &memory, d);
    if (err) return err;
    const sherd__library_product x = { .kind = bytes ? SHERD__LIBRARY_INT8 : SHERD__LIBRARY_PLAIN,
                                       .right_turned = bytes,
                                       .n = n,
                                       .k = n,
                                       .m = n,
                                       .left = memory,
                                       .right = memory,
                                       .out = memory,
                                       .right_at = in,
                                       .out_at = 2 * in,
                                       .left_ld = n,
                                       .right_ld = n,
                                       .out_ld = n };
    err = fill(l, memory, 2 * in, d);
    if (!err) err = time_library(l, &x, seconds, d);
    if (err) (void)sherd__lane_finish(l, NULL);
    give(l, 2 * in + out, memory);
    return err;
}

static int measure_library(const peaks *p, bool bytes, sherd_diag *d)
{
    uint32_t n = SMALLEST;
    double seconds = 0;
    do {
        int err = multiply_by_library(p, bytes, n, &seconds, d);
        if (err) return sherd__trial_left_out(err, d);
        add_rate(p, bytes ? "library-int8" : "library-dgemm", n, seconds);
    } while (goes_on(p, n, seconds) && (n *= 2));
    return SHERD_OK;
}

static int measure_own(const peaks *p, accelerator_kind kind, double *rate, sherd_diag *d)
{
    const accelerator_measured *m = &sherd__accelerator_measured[kind];
    accelerator_trial *t = p->trial;
    uint32_t n = SMALLEST;
    do {
        if (!sherd__trial_fits(t, m->dtype, m->primes, n)) return SHERD_OK;
        int err = sherd__trial_square(t, m->dtype, m->primes, n, d);
        if (!err) err = sherd__trial_run(t, RUNS, d);
        sherd__trial_end(t);
        if (err) return sherd__trial_left_out(err, d);
        add_rate(p, m->name, n, t->seconds);
        *rate = 2e-9 * n * n * n / t->seconds * (m->primes > 1 ? m->primes : 1);
    } while (goes_on(p, n, t->seconds) && (n *= 2));
    return SHERD_OK;
}

int sherd__accelerator_measure_peaks(accelerator_trial *t, const sherd__backend_options *opt,
                                     sherd_diag *d)
{
    const accelerator_device *v = t->lane->on;
    const peaks p = { t, opt->rates, opt->quick, sherd__clock_s() + ALL_S };
    /* As measured at the start of a node, until a larger product has been. */
    double *const rates[KINDS] = { [KIND_F64] = &v->what->resident_gflops,
                                   [KIND_RESIDUES] = &v->what->resident_residue_gflops,
                                   [KIND_BYTES] = &v->what->resident_byte_gops };
    int err = measure_copies(&p, d);
    if (err) err = sherd__trial_left_out(err, d);
    for (int bytes = 0; bytes < 2 && !err && v->library.used; bytes++)
        err = measure_library(&p, bytes, d);
    t->resident = true;
    for (unsigned k = v->driver.f64 ? KIND_F64 : KIND_RESIDUES; k < KINDS && !err; k++)
        err = measure_own(&p, (accelerator_kind)k, rates[k], d);
    t->resident = false;
    return err;
}
