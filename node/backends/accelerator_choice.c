/*
 * The library that multiplies on a device: lanes are given it when the device is opened, products
 * are tested as those of kernels are, and both are compared. Whatever the library fails to do,
 * kernels do: only a device that is lost is an error.
 */
#include <math.h>
#include <stdio.h>

#include "core/diag.h"
#include "node/backends/accelerator_trial.h"

#define WORKSPACE ((uint64_t)32 << 20) /* what cuBLAS asks for on the devices that need most */
#define SHARE 8u                       /* the part of the device's memory that all may take */

static const sherd__driver *driver_of(const accelerator_device *v)
{
    return v->of->driver;
}

/* ---- lanes: called while no lane runs -------------------------------------------------------- */

void sherd__accelerator_library_close(accelerator_lane *l)
{
    const sherd__driver *driver = driver_of(l->on);
    if (!l->workspace) return;
    driver->library_free(l->driver);
    int err = driver->zero(l->driver, l->workspace, WORKSPACE, NULL);
    if (!err) err = driver->finish(l->driver, NULL);
    (void)err; /* of a device that is lost */
    driver->memory_free(l->driver, l->workspace);
    sherd__accelerator_unreserve(l->on, WORKSPACE);
    l->workspace = NULL;
}

static int open_lane(accelerator_lane *l, sherd_diag *d)
{
    const sherd__driver *driver = driver_of(l->on);
    int err = sherd__accelerator_reserve(l->on, WORKSPACE, d);
    if (err) return err;
    err = driver->memory_new(l->driver, WORKSPACE, &l->workspace, d);
    if (err) {
        l->workspace = NULL;
        sherd__accelerator_unreserve(l->on, WORKSPACE);
        return err;
    }
    return driver->library_new(l->driver, l->workspace, WORKSPACE, l->on->library.name, d);
}

static void close_lanes(accelerator_device *v)
{
    v->library.used = false;
    for (uint32_t i = 0; i < ACCELERATOR_LANES; i++) sherd__accelerator_library_close(&v->lanes[i]);
}

static int open_lanes(accelerator_device *v, sherd_diag *d)
{
    int err = SHERD_OK;
    if (ACCELERATOR_LANES * WORKSPACE > v->driver.memory / SHARE)
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL,
                           "%llu bytes of the device are too few for a library of products",
                           (unsigned long long)v->driver.memory);
    sherd__accelerator_evict(&v->lanes[0], 0); /* the lane of the test */
    for (uint32_t i = 0; i < ACCELERATOR_LANES && !err; i++) err = open_lane(&v->lanes[i], d);
    v->library.used = !err;
    return err;
}

/* ---- the test -------------------------------------------------------------------------------- */

/* Tests products of one kind. Where the library does not compute all of them, it is not used for
 * them, and *d says why. */
static int test(accelerator_trial *t, accelerator_kind kind, sherd_diag *d)
{
    accelerator_lane *lane = t->lane;
    lane->refused[0] = '\0';
    int err = sherd__trial_products(t, kind, SHERD__TRIAL_SHAPES, d);
    if (!err && lane->refused[0])
        err = sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "%s", lane->refused);
    if (err) lane->on->library.from[kind] = INFINITY;
    return err;
}

/* Tests and measures all kinds. Another kind may be computed where one is not. */
static int examine(accelerator_trial *t, const sherd__backend_options *opt, sherd_diag *d)
{
    double *from = t->lane->on->library.from;
    int err = SHERD_OK;
    for (unsigned i = 0; i < KINDS && !err; i++) {
        from[i] = 0;
        if (!opt->tested) err = test(t, (accelerator_kind)i, d);
        if (err == SHERD_EUNSUPPORTED) err = SHERD_OK;
    }
    for (unsigned i = 0; i < KINDS && !err; i++)
        if (!isinf(from[i])) err = sherd__accelerator_choose(t, (accelerator_kind)i, opt->quick, d);
    return err;
}

/* ---- what the device says -------------------------------------------------------------------- */

static void describe_kind(double from, char out[24])
{
    if (from > 0 && !isinf(from)) snprintf(out, 24, "from n = %.0f on", cbrt(from / 2));
    else snprintf(out, 24, "%s", from > 0 ? "none" : "all");
}

static void describe(accelerator_device *v, const sherd_diag *why)
{
    const accelerator_library *l = &v->library;
    char parts[KINDS][24];
    for (size_t i = 0; i < KINDS; i++) describe_kind(l->from[i], parts[i]);
    if (!l->used)
        snprintf(v->what->library, sizeof v->what->library, "%s%s%.150s", l->name,
                 l->name[0] ? " is not used: " : "", why->message);
    else
        snprintf(v->what->library, sizeof v->what->library,
                 "%s multiplies: in float64 %s, modulo primes %s, bytes %s%s%.40s", l->name,
                 parts[KIND_F64], parts[KIND_RESIDUES], parts[KIND_BYTES],
                 why->message[0] ? ": " : "", why->message);
    v->what->library_fails = why->code && why->code != SHERD_EUNSUPPORTED;
}

int sherd__accelerator_library_open(accelerator_trial *t, const sherd__backend_options *opt,
                                    sherd_diag *d)
{
    accelerator_device *v = t->lane->on;
    sherd_diag why = { .code = 0 };
    if (!driver_of(v)->library_product || !v->driver.f64) return SHERD_OK;
    for (size_t i = 0; i < KINDS; i++) v->library.from[i] = INFINITY;
    int err = open_lanes(v, &why);
    if (!err) err = examine(t, opt, &why);
    if (err == SHERD_ECLOSED) return sherd__fail(d, err, NULL, "%s", why.message);
    if (err) close_lanes(v);
    else v->what->memory -= ACCELERATOR_LANES * WORKSPACE;
    describe(v, &why);
    return SHERD_OK;
}
