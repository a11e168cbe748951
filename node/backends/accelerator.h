/*
 * The common part of backends for devices with memory of their own, over a small driver: blocks are
 * copied to a device when the first call uses them, calls run on lanes (a thread and a queue of the
 * device each, so that copies of one call overlap with products of another one), and all memory is
 * counted against a budget.
 *
 * A device cannot be stopped. A call that takes far longer than it should ends with `lost`, as all
 * calls of its device do; the lane and what the driver may still use are abandoned. Therefore a
 * driver only reads and writes memory of the lane, never blocks or results.
 *
 * Memory of the host and of the device that held a block or a result is overwritten before it is
 * returned, except for a device that is lost or hangs.
 */
#ifndef NODE_BACKENDS_ACCELERATOR_H
#define NODE_BACKENDS_ACCELERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/backend.h"
#include "node/backends/kernels/job.h"
#include "node/backends/kernels_text.h"

/* A device that a driver has found. */
typedef struct sherd__driver_found {
    void *id[2]; /* the driver's names of it */
    sherd__device_info info;
    uint64_t largest; /* bytes of one allocation */
    uint32_t units;   /* compute units */
    bool f64;         /* it has float64 */
    bool shared;      /* its memory is the host's */
} sherd__driver_found;

/* Memory of a device: a kernel's operands, result and word for values out of range. */
typedef struct sherd__kernel_memory {
    void *left, *right, *out, *bad;
} sherd__kernel_memory;

/* A copy between the device and a part of a lane's memory for copies. */
#define SHERD__STAGING_PARTS 4u
typedef struct sherd__driver_copy {
    void *memory; /* of the device */
    uint64_t at;  /* where in it */
    uint8_t *staging;
    size_t len;
    uint32_t part; /* below SHERD__STAGING_PARTS */
} sherd__driver_copy;

/* A product by a library of the driver's: out (n x m) = left (n x k) * right (k x m), or is added
 * to out. Positions are in bytes; `ld` numbers are from one line to the next. A turned operand is
 * stored as its transpose. INT8: of signed bytes, to sums of 32 bits; n, k, m, positions and ld of
 * the operands are multiples of 16, and the right operand alone is turned. PLAIN: as F64, but as
 * the library computes it if nothing is asked of it, which may be emulated; for measurements. */
typedef struct sherd__library_product {
    enum { SHERD__LIBRARY_F64, SHERD__LIBRARY_INT8, SHERD__LIBRARY_PLAIN } kind;
    bool add, left_turned, right_turned;
    uint64_t n, k, m; /* below 2^31, as ld */
    void *left, *right, *out;
    uint64_t left_at, right_at, out_at;
    uint64_t left_ld, right_ld, out_ld;
} sherd__library_product;

#define SHERD__LIBRARY_NAME 32u /* bytes of the name of a library, "cuBLAS 13.1" */

typedef struct sherd__driver {
    const char *name;      /* of the backend */
    const char *interface; /* for messages: "OpenCL" */
    const char *no_device; /* hint where it has none */
    size_t api_size;       /* bytes of its functions, as load fills them */
    /* Loads the library; NULL: the system's. SHERD_EUNSUPPORTED: it is missing or too old. */
    int (*load)(void *api, const char *file, sherd_diag *d);
    /* Finds up to SHERD__DEVICES_MAX devices, in the order of their numbers. */
    int (*find)(const void *api, sherd__driver_found *out, uint32_t *count, sherd_diag *d);
    /* Opens a device, and sets *memory to its bytes that no other process uses, if the driver knows
     * them, and else to all. SHERD_EUNSUPPORTED where it cannot be used. */
    int (*open)(const void *api, const sherd__driver_found *f, void **device, uint64_t *memory,
                sherd_diag *d);
    void (*close)(void *device); /* after all lanes were freed */

    /* All functions of a lane are called by one thread at a time. They return SHERD_ENOMEM (the
     * device has no room), SHERD_EDEVICE (it failed) or SHERD_ECLOSED (it is lost). */
    int (*lane_new)(void *device, void **lane, sherd_diag *d);
    void (*lane_free)(void *lane);
    /* Optional (NULL: ordinary memory). Memory of the host that the device reads and writes fast;
     * all copies are from and to it. */
    int (*staging_new)(void *lane, size_t len, void **out, sherd_diag *d);
    void (*staging_free)(void *lane, void *staging);
    int (*memory_new)(void *lane, uint64_t len, void **out, sherd_diag *d);
    void (*memory_free)(void *lane, void *memory);
    /* Start a copy to or from the device. Its part of the staging memory is in use until `wait` for
     * that part, or `finish`, has returned. The copies of a lane are done in order. */
    int (*write)(void *lane, const sherd__driver_copy *c, sherd_diag *d);
    int (*read)(void *lane, const sherd__driver_copy *c, sherd_diag *d);
    int (*wait)(void *lane, uint32_t part, sherd_diag *d);
    int (*zero)(void *lane, void *memory, uint64_t len, sherd_diag *d); /* len: a multiple of 4 */
    /* Starts groups[0] * groups[1] groups. */
    int (*launch)(void *lane, sherd__kernel kernel, const sherd__kernel_memory *memory,
                  const sherd__kernel_job *job, const uint32_t groups[2], sherd_diag *d);
    int (*finish)(void *lane, sherd_diag *d);

    /* Optional (NULL). A library that multiplies: makes what a lane needs of it, which computes in
     * `memory`, and sets its name. SHERD_EUNSUPPORTED: the machine has none. After another error
     * than SHERD_ECLOSED, the lane computes without it. */
    int (*library_new)(void *lane, void *memory, uint64_t len, char name[SHERD__LIBRARY_NAME],
                       sherd_diag *d);
    void (*library_free)(void *lane); /* before `memory` is freed */
    /* Starts a product. SHERD_EUNSUPPORTED: the library does not compute it on this device. */
    int (*library_product)(void *lane, const sherd__library_product *p, sherd_diag *d);
} sherd__driver;

/** Fails with the first line of the log of a driver's compiler. log may be NULL. */
int sherd__driver_cannot_compile(const char *error, const char *log, const char *hint,
                                 sherd_diag *d);

/** sherd__backend.list over a driver. */
int sherd__accelerator_list(const sherd__driver *driver, const sherd__backend_options *opt,
                            sherd__device_info *out, uint32_t most, uint32_t *count,
                            sherd_diag *d) SHERD_MUST;
/**
 * Opens the devices that the options name. Unless opt->tested is set, every device is tested as
 * sherd__backend.open says. What a device computes wrongly or not at all in float64 or element by
 * element it does not declare.
 *
 * Errors: SHERD_EINVAL (no such device, or more memory than it has), SHERD_EUNSUPPORTED (no driver,
 * no device, or one that cannot be used), SHERD_ENOMEM (also where others use its memory),
 * SHERD_EDEVICE (the driver or the device fails, or computes wrongly modulo primes or in float64).
 */
int sherd__accelerator_open(void **ctx, const sherd__driver *driver,
                            const sherd__backend_options *opt, sherd_diag *d) SHERD_MUST;

/* The functions of sherd__backend. */
const sherd__device *sherd__accelerator_devices(void *ctx, uint32_t *count);
int sherd__accelerator_hold(void *ctx, uint32_t device, const sherd__fragment *f, uint64_t owner,
                            sherd__handle *out, sherd_diag *d);
void sherd__accelerator_drop(void *ctx, const sherd__handle *h);
int sherd__accelerator_submit(void *ctx, sherd__call *c, sherd_diag *d);
void sherd__accelerator_cancel(void *ctx, sherd__call *c);
void sherd__accelerator_wait(void *ctx, const sherd__call *c);
void sherd__accelerator_close(void *ctx);

/** Defines sherd__backend_NAME over `driver`, a static object. Outside functions. */
#define SHERD__ACCELERATOR_BACKEND(NAME, driver)                                                   \
    static int NAME##_list(const sherd__backend_options *opt, sherd__device_info *out,             \
                           uint32_t most, uint32_t *count, sherd_diag *d)                          \
    {                                                                                              \
        return sherd__accelerator_list(&driver, opt, out, most, count, d);                         \
    }                                                                                              \
    static int NAME##_open(void **ctx, const sherd__backend_options *opt, sherd_diag *d)           \
    {                                                                                              \
        return sherd__accelerator_open(ctx, &driver, opt, d);                                      \
    }                                                                                              \
    const sherd__backend sherd__backend_##NAME = {                                                 \
        .abi = SHERD__BACKEND_ABI,                                                                 \
        .name = #NAME,                                                                             \
        .list = NAME##_list,                                                                       \
        .open = NAME##_open,                                                                       \
        .devices = sherd__accelerator_devices,                                                     \
        .hold = sherd__accelerator_hold,                                                           \
        .drop = sherd__accelerator_drop,                                                           \
        .submit = sherd__accelerator_submit,                                                       \
        .cancel = sherd__accelerator_cancel,                                                       \
        .wait = sherd__accelerator_wait,                                                           \
        .close = sherd__accelerator_close,                                                         \
    }

#endif
