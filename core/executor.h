/*
 * One compute thread with a bounded queue. A loop thread submits work; `run` happens on the compute
 * thread, in order; `done` happens on the thread that calls sherd__executor_drain. Work that a
 * device does by itself comes back the same way.
 */
#ifndef CORE_EXECUTOR_H
#define CORE_EXECUTOR_H

#include <stddef.h>

#include "sherd/err.h"

typedef struct sherd_executor sherd_executor;

/** Embedded by the caller in its own struct; must stay valid until `done` has been called. */
typedef struct sherd_work {
    void (*run)(struct sherd_work *w);  /* compute thread */
    void (*done)(struct sherd_work *w); /* draining thread; may free w */
    struct sherd_work *next;            /* the executor's */
} sherd_work;

/**
 * Starts the thread. `wake` is called on it whenever finished work waits to be drained (an
 * uv_async_send, usually); it must be cheap and must not call back into the executor.
 */
int sherd__executor_new(sherd_executor **out, size_t queue_max, void (*wake)(void *ctx),
                        void *wake_ctx) SHERD_MUST;
/** No thread: submit runs the work at once and drain delivers it. For the simulation. */
int sherd__executor_new_inline(sherd_executor **out) SHERD_MUST;
/** SHERD_EBUSY when queue_max pieces are queued already, or while freeing: nothing was taken. */
int sherd__executor_submit(sherd_executor *e, sherd_work *w) SHERD_MUST;
/** Announces a piece of work that is not this executor's to run. */
void sherd__executor_expect(sherd_executor *e);
/** Such a piece is finished: its `done` comes with the next drain. From any thread. */
void sherd__executor_finish(sherd_executor *e, sherd_work *w);
/** Calls `done` for all finished work; returns how many. */
size_t sherd__executor_drain(sherd_executor *e);
/** Pieces submitted or expected, and not yet drained. */
size_t sherd__executor_pending(const sherd_executor *e);
/** Waits for the running piece and for expected ones, drops the queued ones unrun, calls `done` for
 *  all of them, ends the thread. NULL is allowed. */
void sherd__executor_free(sherd_executor *e);

#endif
