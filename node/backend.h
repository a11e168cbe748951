/*
 * What computes on a node. A backend is a constant struct of functions over one or more devices;
 * the task loop knows nothing else of it. One contract suite (tests/contract/node) runs every
 * backend against the reference.
 *
 * A block is held on a device before a call can use it. The handle that names it there is not an
 * address: the host may be unable to read the device's memory. Calls are asynchronous: several are
 * under way at a time, they end in any order, and each of them ends in exactly one `done`.
 *
 * One thread (the loop's) calls a backend, and drains the executors that it completes calls on.
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
#include "wire/session.h"

#define SHERD__BACKEND_ABI 2

typedef struct sherd__backend_options {
    uint32_t threads; /* 0: as many as the backend finds sensible */
    bool quick;       /* test correctness only at small sizes, and guess the speed from them: for
                         many nodes that start on one machine at once */
} sherd__backend_options;

/* Kinds of exact arithmetic: bits of sherd__device.does. */
#define SHERD__DOES_F64 1u      /* products in float64, exact as long as sums stay below 2^53 */
#define SHERD__DOES_RESIDUES 2u /* products modulo primes, into packed residues */
#define SHERD__DOES_MAPS 4u     /* element-wise functions, to the bits of docs/FUNCTIONS.md */
#define SHERD__DOES_CSR 8u      /* products whose left operand is in CSR */
#define SHERD__DOES_ALL 15u

typedef struct sherd__device {
    char name[16]; /* kind of device: "cpu" */
    char core[32]; /* OpenBLAS core, GPU model */
    uint32_t threads;
    uint32_t does;         /* SHERD__DOES_* */
    double gflops;         /* of products in float64, measured by open's self-test */
    double residue_gflops; /* likewise, from packed residues to packed residues, where they are not
                              taken apart and multiplied in f64; else 0 */
    uint64_t memory; /* bytes for what it holds and computes; 0: it uses the host's memory, and
                              holding a block copies nothing */
    uint64_t cell;   /* bytes of a result from which on its rate no longer grows */
    uint32_t depth;  /* calls under way that keep it busy */
} sherd__device;

/** Names a block on a device. */
typedef struct sherd__handle {
    uint64_t id;    /* the backend's; 0: no handle */
    uint64_t owner; /* whose block it is: calls for another owner are refused */
    uint32_t device;
    uint8_t dtype, primes, encoding; /* kind of number or of residue, and layout: its fragment's */
} sherd__handle;

typedef struct sherd__call sherd__call;

/** Computes c->task from blocks in the host's memory into c->out. SHERD_ESHAPE, SHERD_EINVAL or
 *  SHERD_ERANGE where task and blocks disagree or a value is out of range; SHERD_EINTERRUPTED where
 *  the call was cancelled. */
typedef int sherd__compute(void *ctx, const sherd__call *c, const sherd__fragment *left,
                           const sherd__fragment *right, sherd_diag *d);

/** One task on its way through a device. Embedded by the caller in its own struct. */
struct sherd__call {
    /* The caller's: set before submit, valid and unchanged until done. */
    const sherd__task *task; /* passed sherd__task_check; check_groups is for the backend to call */
    sherd__handle left, right; /* of one device; right.id 0: the task has one operand */
    uint64_t owner;
    uint8_t *out;                 /* task->result.len bytes: the backend's to write until done */
    sherd__executor *executor;    /* whose drain calls done */
    double (*clock)(void);        /* seconds, from any thread; NULL: took_us is 0 */
    void (*done)(sherd__call *c); /* may free c */

    /* The answer. */
    int err;
    bool lost;                  /* with SHERD_EDEVICE: the device is gone, with all that it held */
    double took_us;             /* the device, by clock */
    char text[SHERD__TEXT_MAX]; /* with an error: the reason, or empty */

    /* The backend's, from submit to done. */
    sherd__executor_item work;
    atomic_bool cancelled;
    sherd__compute *compute;
    void *backend[3];
};

typedef struct sherd__backend {
    uint32_t abi;
    const char *name;
    /** Opens and self-tests the devices (a product of awkward shape against a plain int64 loop, in
     *  f64 and modulo a prime). SHERD_EDEVICE if one computes wrongly: the node must not start. */
    int (*open)(void **ctx, const sherd__backend_options *opt, sherd_diag *d);
    /** All devices, at least one; handles and calls name them by their place in this list. Valid
     *  until close. */
    const sherd__device *(*devices)(void *ctx, uint32_t *count);
    /**
     * Makes a block usable on a device. The fragment stays in memory until the handle is dropped
     * and the calls that use it are done. A copy may be made later: where that fails, calls fail.
     * SHERD_ENOMEM: no room on the device now. SHERD_EDEVICE: the device is gone.
     */
    int (*hold)(void *ctx, uint32_t device, const sherd__fragment *f, uint64_t owner,
                sherd__handle *out, sherd_diag *d);
    /** Ends a handle, of a device that is gone too. Calls under way that use it go on. With the
     *  last of them, copies and derived forms are overwritten and their memory is given back. */
    void (*drop)(void *ctx, const sherd__handle *h);
    /**
     * Starts a call. 0: `done` comes once, from a drain of c->executor, with the result in c->out
     * or with c->err: SHERD_ENOMEM (no room on the device now), SHERD_EDEVICE (it failed, or with
     * c->lost is gone), SHERD_EINTERRUPTED (cancelled), or what sherd__compute gives, which another
     * attempt does not change. Otherwise done does not come: SHERD_EINVAL (handles of another owner
     * or of two devices), SHERD_EBUSY (too many calls), SHERD_ENOMEM, SHERD_EDEVICE (it is gone).
     */
    int (*submit)(void *ctx, sherd__call *c, sherd_diag *d);
    /** The result of a call under way is not needed: done comes as soon as the device can stop. */
    void (*cancel)(void *ctx, sherd__call *c);
    /** Optional (NULL): computes on the calling thread what takes less time than a call. Not while
     *  calls are under way. */
    sherd__compute *compute;
    /**
     * Optional (NULL). A result that costs no more to compute than to copy (outer products) need
     * not be stored: gives a source of its bytes in *out, with the bytes of memory that it holds in
     * *memory; out->fill NULL where the task is better run. The source borrows left and right until
     * its free is called; fill runs on the thread that sends. Errors as in compute.
     */
    int (*stream)(void *ctx, const sherd__task *task, const sherd__fragment *left,
                  const sherd__fragment *right, sherd__fragment_source *out, uint64_t *memory,
                  sherd_diag *d);
    /** No call is under way, and every handle was dropped. */
    void (*close)(void *ctx);
} sherd__backend;

extern const sherd__backend sherd__backend_cpu;

#endif
