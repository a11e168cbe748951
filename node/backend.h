/*
 * Computation on a node. A backend is a constant struct of functions over one or more devices; the
 * task loop uses nothing else of it. One contract suite (tests/contract/node) runs every backend
 * against the reference.
 *
 * A block must be held on a device before a call can use it. The handle that names it there is not
 * an address: the host may be unable to read the device's memory. Calls are asynchronous: several
 * may be in progress at a time, they finish in any order, and each of them ends in exactly one call
 * of `done`.
 *
 * Threads take turns: a backend is called by one thread at a time, except for `wait`, `compute`,
 * `stream` and `multiplier`. A thread that submits a call drains the call's executor. In the task
 * loop these are the loop's thread and those that run passes of training (node/products.h).
 */
#ifndef NODE_BACKEND_H
#define NODE_BACKEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/executor.h"
#include "crypto/fragment.h"
#include "crypto/fragment_make.h"
#include "sherd/err.h"
#include "sherd/multiplier.h"
#include "wire/session.h"

#define SHERD__BACKEND_ABI 3
#define SHERD__DEVICE_RATES 64u

/** Something that was measured of a device, as sherd_device_rate (sherd/node.h). */
typedef struct sherd__device_rate {
    char name[24], unit[8];
    uint32_t n;
    double value;
} sherd__device_rate;

/** What is measured of a device for people, beside the rates that it declares. */
typedef struct sherd__device_rates {
    uint32_t len;
    sherd__device_rate list[SHERD__DEVICE_RATES];
} sherd__device_rates;

typedef struct sherd__backend_options {
    uint32_t threads; /* 0: the backend chooses */
    bool quick;       /* test correctness at small sizes only and estimate the speed from them: for
                         many nodes that start on one machine at once */
    bool tested;      /* the same code has passed the tests of correctness on this machine: leave
                         them out */
    sherd__device_rates *rates; /* NULL; else also measure the first device for these
                                   (accelerator_peaks.c) */

    /* For devices with drivers. */
    const char *library;                  /* file of the driver's library; NULL: the system's */
    uint32_t devices[SHERD__DEVICES_MAX]; /* numbers of those to use, in the order of the list that
                                             sherd__backend.list gives */
    uint32_t devices_len;                 /* 0: the first one */
    bool all_devices;
    uint64_t device_memory; /* bytes of each device that may be used; 0: the backend chooses */
    uint32_t device_nodes;  /* nodes that use these devices and start together; 0: 1 */
    double timeout_s;       /* after which a device that does not respond is lost; 0: 30 */
} sherd__backend_options;

/** A device that a backend could open. */
typedef struct sherd__device_info {
    char model[64], driver[64];     /* names of device and driver, with the driver's version */
    uint64_t memory;                /* bytes */
    bool processor;                 /* it is the host's processor: not chosen automatically */
    char unusable[SHERD__TEXT_MAX]; /* why it cannot be used, or empty */
} sherd__device_info;

/* Not a kind (SHERD__DOES_*, wire/session.h), but a property of products in float64 that gradients
 * of private examples require: their time does not depend on the numbers, and a number of the
 * result depends only on its row of the left operand and its column of the right one, not on other
 * rows or on its place. */
#define SHERD__DOES_STEADY (1u << 31) /* of the node itself; not declared to peers */
/* Likewise: it runs programs of kernels (node/backends/program.h). */
#define SHERD__DOES_PROGRAMS (1u << 30)

typedef struct sherd__device {
    char name[16]; /* kind of device: "cpu" */
    char core[32]; /* OpenBLAS core, GPU model */
    uint32_t threads;
    uint32_t does;         /* SHERD__DOES_* */
    double gflops;         /* rate of float64 products, measured by the self-test in open */
    double residue_gflops; /* rate of products from packed residues to packed residues, where
                              residues are not unpacked and multiplied in float64; else 0 */
    double byte_gops;      /* rate of products of residues of one byte, counted as gflops is */
    uint64_t memory; /* bytes for the blocks that it holds and for computing; 0: it uses the host's
                        memory, and holding a block copies nothing */
    uint64_t cell;   /* size of a result in bytes from which on the rate no longer grows */
    uint32_t depth;  /* calls in progress that keep it busy */
    char library[SHERD__TEXT_MAX]; /* for messages: which library multiplies, and what, or why none
                                      does; empty: the backend knows none */
    bool library_fails;            /* it is there, or was asked for, and cannot be used */
    /* Rates as those above, of the largest products that were measured whose operands and results
     * stay on the device, and bytes per second that are copied to it and from it; 0: not measured,
     * or nothing is copied. */
    double resident_gflops, resident_residue_gflops, resident_byte_gops, copy_rate;
} sherd__device;

/** Names a block on a device. */
typedef struct sherd__handle {
    uint64_t id;    /* chosen by the backend; 0: no handle */
    uint64_t owner; /* the block's owner: calls for another owner are refused */
    uint32_t device;
    uint8_t dtype, primes, encoding; /* its fragment's number or residue type, and layout */
} sherd__handle;

/** Memory that the host lends to a backend which computes in the host's memory, for forms of blocks
 *  that are derived from them (hosted.h). Called on the thread that calls the backend. */
typedef struct sherd__lender {
    uint8_t *(*get)(void *ctx, uint64_t len); /* aligned to 64 bytes; NULL: no memory to spare */
    void (*give)(void *ctx, uint8_t *bytes, uint64_t len); /* overwrites them */
    void *ctx;
} sherd__lender;

typedef struct sherd__call sherd__call;
typedef struct sherd__program sherd__program; /* node/backends/program.h */

/** Computes c->task from blocks in the host's memory into c->out. Returns SHERD_ESHAPE,
 *  SHERD_EINVAL or SHERD_ERANGE where task and blocks disagree or a value is out of range, and
 *  SHERD_EINTERRUPTED where the call was cancelled. */
typedef int sherd__compute(void *ctx, const sherd__call *c, const sherd__fragment *left,
                           const sherd__fragment *right, sherd_diag *d);

/** One task on a device. The caller embeds it in its own struct. */
struct sherd__call {
    /* Set by the caller before submit; valid and unchanged until done. */
    const sherd__task *task;       /* passed sherd__task_check; the backend calls check_groups */
    sherd__handle left, right;     /* both of one device; right.id 0: the task has one operand */
    const sherd__program *program; /* in place of task, out and operands, on left.device, which
                                      has SHERD__DOES_PROGRAMS; left.id and right.id are 0 */
    uint64_t owner;
    bool in_parts;                /* it found no memory before, and nothing else can be dropped: a
                                     device with memory of its own computes it in parts */
    uint8_t *out;                 /* task->result.len bytes; written until done */
    sherd__executor *executor;    /* its drain calls done */
    double (*clock)(void);        /* seconds, from any thread; NULL: took_us is 0 */
    void (*done)(sherd__call *c); /* may free c */
    const sherd__lender *memory;  /* for derived forms of left and right, until their handles are
                                     dropped; NULL: none are kept, as with a backend that has
                                     `wait` */
    uint64_t derived[2]; /* 0; submit adds the bytes that it took from `memory` for left and right,
                            also where it fails */

    /* Set by the backend before done. */
    int err;
    bool lost;                  /* with SHERD_EDEVICE: device and blocks are lost */
    double took_us;             /* time on the device, by clock */
    char text[SHERD__TEXT_MAX]; /* with an error: the reason, or empty */

    /* Used by the backend, from submit to done. */
    sherd__executor_item work;
    atomic_bool cancelled;
    sherd__compute *compute;
    void *backend[5];
};

typedef struct sherd__backend {
    uint32_t abi;
    const char *name;
    /** Optional (NULL: there is one, which needs no driver). Lists up to `most` devices of this
     *  machine and sets *count to their number, which may be 0. It loads the driver, which may end
     *  the process: see lib/devices.c. Errors: SHERD_EUNSUPPORTED (there is no driver, or it is too
     *  old), SHERD_EDEVICE (the driver fails). */
    int (*list)(const sherd__backend_options *opt, sherd__device_info *out, uint32_t most,
                uint32_t *count, sherd_diag *d);
    /** Opens the devices and, unless opt->tested is set, tests them: products of irregular shapes
     *  are compared with plain loops of integers, in float64 and modulo primes. Returns
     *  SHERD_EDEVICE if a device computes wrongly: the node must not start. */
    int (*open)(void **ctx, const sherd__backend_options *opt, sherd_diag *d);
    /** Returns all devices, at least one. Handles and calls refer to them by their index in this
     *  list, which is valid until close. */
    const sherd__device *(*devices)(void *ctx, uint32_t *count);
    /**
     * Makes a block usable on a device. The fragment must stay in memory until the handle is
     * dropped and the calls that use it are done; residues of one byte are aligned to 64 bytes. The
     * backend may copy the block later; where this fails, calls fail.
     *
     * Errors: SHERD_ENOMEM where the device has no room now; SHERD_EDEVICE where the device is
     * lost.
     */
    int (*hold)(void *ctx, uint32_t device, const sherd__fragment *f, uint64_t owner,
                sherd__handle *out, sherd_diag *d);
    /** Ends a handle, also that of a lost device. Calls in progress that use it continue. After the
     *  last of them, copies and derived forms are overwritten and their memory is returned. */
    void (*drop)(void *ctx, const sherd__handle *h);
    /**
     * Starts a call. After 0, `done` is called once, from a drain of c->executor, with the result
     * in c->out or an error in c->err: SHERD_ENOMEM (no room on the device now), SHERD_EDEVICE (the
     * device failed, or with c->lost is lost), SHERD_EINTERRUPTED (cancelled), or an error of
     * sherd__compute, which would be the same on another attempt.
     *
     * After an error, done is not called: SHERD_EINVAL (handles of another owner or of two
     * devices), SHERD_EBUSY (too many calls), SHERD_ENOMEM, SHERD_EDEVICE (the device is lost).
     */
    int (*submit)(void *ctx, sherd__call *c, sherd_diag *d);
    /** Cancels a call in progress, the result of which is not needed: done is called as soon as the
     *  device can stop. */
    void (*cancel)(void *ctx, sherd__call *c);
    /** Blocks until a call in progress is finished, so that a drain of its executor calls `done`.
     *  c NULL: until any call is, or none is in progress. From any thread. A backend has this or
     *  `multiplier`. */
    void (*wait)(void *ctx, const sherd__call *c);
    /**
     * Makes a multiplier for passes of training, for a backend that computes in the host's memory:
     * it computes on the thread that runs the pass, from operands in place. NULL: the products of
     * passes are calls. Its arguments and the bits of its results are those of
     * sherd_multiplier_local; what layers compute with it in float64 (matrix/local.h) is as
     * SHERD__DOES_STEADY says.
     */
    int (*multiplier)(void *ctx, unsigned bits, sherd_multiplier *out, sherd_diag *d);
    /** Optional (NULL). Computes on the calling thread, for tasks that take less time than a call.
     *  Must not be called while calls are in progress. */
    sherd__compute *compute;
    /**
     * Optional (NULL). A result that costs no more to compute than to copy (outer products) need
     * not be stored. Sets *out to a source of its bytes and *memory to the bytes of memory that the
     * source holds; out->fill is NULL where running the task is better. The source borrows left and
     * right until its free is called; fill runs on the thread that sends. Errors as for compute.
     */
    int (*stream)(void *ctx, const sherd__task *task, const sherd__fragment *left,
                  const sherd__fragment *right, sherd__fragment_source *out, uint64_t *memory,
                  sherd_diag *d);
    /** Closes the devices. No call may be in progress, and every handle must have been dropped. */
    void (*close)(void *ctx);
} sherd__backend;

extern const sherd__backend sherd__backend_cpu, sherd__backend_cuda, sherd__backend_opencl;

#endif
