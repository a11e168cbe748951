/*
 * Devices that a driver has found: how those that the options name are chosen and opened, with how
 * much of their memory.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "node/backends/accelerator_internal.h"

#define MEMORY_HINT                                                                                \
    "end other programs that use the device, choose another one with --device, or say with "       \
    "--device-memory how much the node may use"

/* A driver's library and what it found. */
typedef struct finding {
    const sherd__driver *driver;
    void *api;
    sherd__driver_found list[SHERD__DEVICES_MAX];
    uint32_t count;
} finding;

static void finding_free(finding *f)
{
    if (f) sherd__free(f->api);
    sherd__free(f);
}

/* The caller frees *out, also after a failure. */
static int finding_new(finding **out, const sherd__driver *driver,
                       const sherd__backend_options *opt, sherd_diag *d)
{
    finding *f = *out = sherd__calloc(1, sizeof *f);
    if (f) *f = (finding){ .driver = driver, .api = sherd__calloc(1, driver->api_size) };
    if (!f || !f->api) return sherd__fail_memory(d, "a list of devices");
    int err = driver->load(f->api, opt->library, d);
    return err ? err : driver->find(f->api, f->list, &f->count, d);
}

int sherd__accelerator_list(const sherd__driver *driver, const sherd__backend_options *opt,
                            sherd__device_info *out, uint32_t most, uint32_t *count, sherd_diag *d)
{
    finding *f;
    int err = finding_new(&f, driver, opt, d);
    *count = err ? 0 : f->count;
    for (uint32_t i = 0; i < *count && i < most; i++) out[i] = f->list[i].info;
    finding_free(f);
    return err;
}

/* Sets numbers to the devices that the options name. */
static int choose(const finding *f, const sherd__backend_options *opt,
                  uint32_t numbers[SHERD__DEVICES_MAX], uint32_t *len, sherd_diag *d)
{
    if (f->count == 0)
        return sherd__fail(d, SHERD_EUNSUPPORTED, f->driver->no_device,
                           "%s is installed, but has no device", f->driver->interface);
    *len = opt->all_devices ? f->count : opt->devices_len ? opt->devices_len : 1;
    for (uint32_t i = 0; i < *len; i++) {
        numbers[i] = opt->all_devices || !opt->devices_len ? i : opt->devices[i];
        if (numbers[i] >= f->count)
            return sherd__fail(d, SHERD_EINVAL, "sherd node --list-devices lists them",
                               "there is no device %u: %s has %u device%s", numbers[i],
                               f->driver->interface, f->count, f->count == 1 ? "" : "s");
    }
    return SHERD_OK;
}

static int check_asked(const sherd__driver_found *f, uint64_t asked, uint64_t has, int err,
                       const char *which, sherd_diag *d)
{
    return asked <= has ? SHERD_OK
                        : sherd__fail(d, err, NULL,
                                      "memory of the device: %llu bytes of %.60s, which has %llu%s",
                                      (unsigned long long)asked, f->info.model,
                                      (unsigned long long)has, which);
}

/* Checks that `memory` bytes suffice for the self-test. unused: bytes that others do not use. */
static int check_enough(const sherd__driver_found *f, uint64_t memory, uint64_t unused, bool asked,
                        sherd_diag *d)
{
    const uint64_t needed = sherd__accelerator_needs(f->f64);
    if (memory >= needed) return SHERD_OK;
    if (asked)
        return sherd__fail(d, SHERD_EINVAL, "give the node more with --device-memory",
                           "memory of the device: %llu bytes of %.60s, and a node needs %llu",
                           (unsigned long long)memory, f->info.model, (unsigned long long)needed);
    return sherd__fail(d, SHERD_ENOMEM, MEMORY_HINT,
                       "%.60s has %llu of its %llu bytes free: a node may use %llu of them, and "
                       "needs %llu",
                       f->info.model, (unsigned long long)unused,
                       (unsigned long long)f->info.memory, (unsigned long long)memory,
                       (unsigned long long)needed);
}

static int open_one(const finding *of, uint32_t number, const sherd__backend_options *opt,
                    sherd__driver_device *out, sherd_diag *d)
{
    const sherd__driver_found *f = &of->list[number];
    uint64_t unused = 0;
    if (f->info.unusable[0])
        return sherd__fail(d, SHERD_EUNSUPPORTED, NULL, "%s cannot be used: %s", f->info.model,
                           f->info.unusable);
    int err = check_asked(f, opt->device_memory, f->info.memory, SHERD_EINVAL, "", d);
    if (err) return err;
    *out = (sherd__driver_device){ .units = f->units, .largest = f->largest, .f64 = f->f64 };
    snprintf(out->model, sizeof out->model, "%.31s", f->info.model);
    err = of->driver->open(of->api, f, &out->of, &unused, d);
    if (err) return err;
    /* Not all of it: the driver, a display or other processes need some. Nodes that start together
     * divide what is unused then; parts of all memory would be too much where others use some. */
    const uint64_t nodes = opt->device_nodes ? opt->device_nodes : 1;
    out->memory = opt->device_memory ? opt->device_memory
                                     : (f->shared ? unused / 4 : unused / 5 * 4) / nodes;
    err = check_asked(f, opt->device_memory, unused, SHERD_ENOMEM, " that others do not use", d);
    if (!err) err = check_enough(f, out->memory, unused, opt->device_memory > 0, d);
    if (err) of->driver->close(out->of);
    return err;
}

int sherd__accelerator_open(void **ctx, const sherd__driver *driver,
                            const sherd__backend_options *opt, sherd_diag *d)
{
    finding *f;
    sherd__driver_device opened[SHERD__DEVICES_MAX];
    uint32_t numbers[SHERD__DEVICES_MAX], len = 0, done = 0;
    *ctx = NULL;
    int err = finding_new(&f, driver, opt, d);
    if (!err) err = choose(f, opt, numbers, &len, d);
    while (!err && done < len) {
        err = open_one(f, numbers[done], opt, &opened[done], d);
        done += !err;
    }
    finding_free(f);
    if (!err) err = sherd__accelerator_start(ctx, driver, opened, len, opt, d);
    else
        while (done > 0) driver->close(opened[--done].of);
    /* Of the host's memory, the hint is set. */
    if (err == SHERD_ENOMEM && d && !d->hint[0]) snprintf(d->hint, sizeof d->hint, MEMORY_HINT);
    return err == SHERD_ECLOSED ? SHERD_EDEVICE : err;
}

int sherd__driver_cannot_compile(const char *error, const char *log, const char *hint,
                                 sherd_diag *d)
{
    const char *line = log ? log + strspn(log, "\r\n") : "";
    const size_t len = strcspn(line, "\r\n");
    return sherd__fail(d, SHERD_EDEVICE, hint, "the driver cannot compile the kernels: %s%s%.*s",
                       error, *line ? ": " : "", len < 200 ? (int)len : 200, line);
}
