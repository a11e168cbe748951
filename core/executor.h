/*
 * One compute thread with a bounded queue. A loop thread submits work; `run` is called on the
 * compute thread, in order; `done` is called on the thread that calls sherd__executor_drain. Work
 * that a device performs is delivered in the same way.
 */
#ifndef CORE_EXECUTOR_H
#define CORE_EXECUTOR_H

#include <stddef.h>

#include "sherd/err.h"

typedef struct sherd__executor sherd__executor;

/** Work item, embedded by the caller in its own struct. It must stay valid until `done` is
 *  called. */
typedef struct sherd__executor_item {
    void (*run)(struct sherd__executor_item *w);  /* on the compute thread */
    void (*done)(struct sherd__executor_item *w); /* on the draining thread; may free w */
    struct sherd__executor_item *next;            /* used by the executor */
} sherd__executor_item;

/**
 * Starts the thread. It calls `wake` (usually an uv_async_send) when it has finished work after
 * there was none to drain; sherd__executor_finish calls it always. `wake` must be cheap and must
 * not call back into the executor. The caller frees *out with sherd__executor_free. Errors:
 * SHERD_ENOMEM.
 */
int sherd__executor_new(sherd__executor **out, size_t queue_max, void (*wake)(void *ctx),
                        void *wake_ctx) SHERD_MUST;
/** Creates an executor without a thread, for the simulation: submit runs the work at once and drain
 *  delivers it. */
int sherd__executor_new_inline(sherd__executor **out) SHERD_MUST;
/** Queues a work item. Returns SHERD_EBUSY, and does not take the item, when queue_max items are
 *  queued already or the executor is being freed. */
int sherd__executor_submit(sherd__executor *e, sherd__executor_item *w) SHERD_MUST;
/** Announces a work item that this executor does not run. */
void sherd__executor_expect(sherd__executor *e);
/** Marks an announced item as finished: the next drain calls its `done`. Any thread may call it. It
 *  always calls `wake`, also where other finished work waits. Without a thread it calls nothing. */
void sherd__executor_finish(sherd__executor *e, sherd__executor_item *w);
/** Calls `done` for each finished item and returns their number. */
size_t sherd__executor_drain(sherd__executor *e);
/** Returns the number of items submitted or expected, and not yet drained. */
size_t sherd__executor_pending(const sherd__executor *e);
/** Waits for the running item and for expected ones, drops the queued ones without running them,
 *  calls `done` for all of them and ends the thread. NULL is allowed. */
void sherd__executor_free(sherd__executor *e);

#endif
