/*
 * The devices of a task loop: which of them computes a task, which blocks each of them holds, and
 * what happens when one is lost. The host keeps every block, so that a device is a cache of blocks:
 * the least recently used ones are dropped before it runs out of room, and held again when a task
 * needs them. A lost device takes no data with it.
 *
 * Besides the loop's thread, passes of training use the devices (sherd__devices_run), so all
 * functions lock.
 */
#ifndef NODE_DEVICES_H
#define NODE_DEVICES_H

#include "node/backend.h"
#include "node/store.h"

typedef struct sherd__residence sherd__residence;

/** Blocks on devices, by their last use. */
typedef struct sherd__uses {
    sherd__residence *oldest, *newest;
} sherd__uses;

/** Memory of one key for forms that a backend derives from blocks of this key, and the blocks that
 *  have some. It must outlive them. */
typedef struct sherd__lending {
    sherd__lender from;
    sherd__uses uses;
} sherd__lending;

typedef struct sherd__device_state {
    sherd__device what;
    uint32_t number;
    uint32_t under_way; /* calls of tasks in progress */
    uint32_t running;   /* the same of sherd__devices_run */
    bool lost;
    uint64_t held;    /* bytes of memory that the blocks below take */
    sherd__uses uses; /* blocks for which it takes memory */
} sherd__device_state;

typedef struct sherd__devices {
    const sherd__backend *backend;
    void *ctx; /* the backend's context */
    sherd__device_state list[SHERD__DEVICES_MAX];
    uint32_t count;
    const void *alone; /* a call of sherd__devices_run beside which no other one starts; or NULL */
} sherd__devices;

/** Initialises with the first devices of an open backend, at most SHERD__DEVICES_MAX
 *  (wire/session.h). */
void sherd__devices_init(sherd__devices *ds, const sherd__backend *backend, void *ctx,
                         const sherd__device *list, uint32_t count);
#define SHERD__DEVICES_FAILURES 2u /* of devices, after which a task is not tried again */

/** Returns the rate of the fastest device that is not lost, for tasks that need these kinds of
 *  arithmetic (sherd__task_needs); at least 1. */
double sherd__devices_gflops(const sherd__devices *ds, uint32_t needs);
/** Returns the number of calls in progress that keeps all devices busy. */
uint32_t sherd__devices_depth(const sherd__devices *ds);
/** Returns whether a call is in progress. */
bool sherd__devices_busy(const sherd__devices *ds);
/** Returns whether a device runs programs; on NULL: any of them. */
bool sherd__devices_run_programs(const sherd__devices *ds, const sherd__device_state *on);
/** Marks a device as one that runs no programs. */
void sherd__devices_without_programs(sherd__devices *ds, const sherd__device_state *on);
/** Returns whether no device is left. */
bool sherd__devices_lost(const sherd__devices *ds);
/**
 * Starts the call of a task over these blocks (right may be NULL) on the device that fits best.
 * Sets the call's handles and memory; the caller sets task, owner, out, executor, clock and done.
 * The device is *on until sherd__devices_done.
 *
 * Errors: SHERD_EBUSY where as many calls are in progress as the devices take; SHERD_ENOMEM where
 * there is no room in addition to the blocks of calls in progress; SHERD_EDEVICE and
 * SHERD_EUNSUPPORTED where no device computes the task.
 */
int sherd__devices_submit(sherd__devices *ds, sherd__call *c, sherd__block *left,
                          sherd__block *right, sherd__device_state **on, sherd_diag *d) SHERD_MUST;
/** Records the end of a call, and what its result says about the device. Returns true where another
 *  attempt may succeed. */
bool sherd__devices_done(const sherd__call *c, sherd__block *left, sherd__block *right,
                         sherd__device_state *on);
/** Drops the least recently used block for which a device took memory of the host, and that no call
 *  uses. Returns false where there is none. */
bool sherd__devices_relieve(sherd__devices *ds);
/** The same for blocks that have forms in the memory of one key. */
bool sherd__lending_relieve(sherd__lending *l);
/** Drops all handles of a block. */
void sherd__devices_drop(sherd__block *b);

/** A task or a program that is computed while the caller waits. All pointers are borrowed. */
typedef struct sherd__device_run {
    const sherd__program *program;   /* in place of task, operands and out */
    const sherd__device_state *only; /* the device that is to compute it; NULL: any */
    const sherd__task *task;
    sherd__fragment *left, *right;
    uint64_t owner;
    bool steady;               /* only on a device with SHERD__DOES_STEADY */
    uint8_t *out;              /* task->result.len bytes */
    sherd__executor *executor; /* without a thread, and without other work */
} sherd__device_run;

/**
 * Computes a task or runs a program, and waits for it. It is tried again where a device fails, and
 * starts although the devices may have as many calls as keep them busy. Where it finds no memory
 * beside other calls of this function, it is tried again when these have ended. Operands are held
 * for this call only.
 *
 * Errors: as sherd__devices_submit, but for SHERD_EBUSY; errors of the call.
 */
int sherd__devices_run(sherd__devices *ds, const sherd__device_run *r, sherd_diag *d) SHERD_MUST;

#endif
