/*
 * A small pool of threads that share one loop at a time. The caller works too. A thread takes the
 * next index when it has finished one, so that a slow or late thread delays only the index that it
 * has taken. For computations of tens of microseconds and more. Results must not depend on which
 * thread computes which index.
 */
#ifndef CORE_TEAM_H
#define CORE_TEAM_H

#include <stddef.h>

#include "sherd/err.h"

typedef struct sherd__team sherd__team;

#define SHERD__TEAM_MOST 256u

/**
 * Creates a team. Its threads are started by the first loop that needs them; fewer start if the
 * system has no more. threads: includes the caller's; 0 is taken as 1, and more than
 * SHERD__TEAM_MOST as SHERD__TEAM_MOST. The caller frees *out with sherd__team_free. Errors:
 * SHERD_ENOMEM.
 */
int sherd__team_new(sherd__team **out, unsigned threads) SHERD_MUST;
/** Ends the threads and frees the team. NULL is allowed. */
void sherd__team_free(sherd__team *t);
/** Returns the number of threads that a loop may use, including the caller's; 1 for NULL. */
unsigned sherd__team_threads(const sherd__team *t);
/**
 * Calls fn(ctx, i, thread) once for each i below count, in any order and on several threads at the
 * same time; returns when all calls have returned. `thread` is below sherd__team_threads and
 * constant for each thread, so that it can select scratch memory. All threads flush subnormal
 * numbers as the caller does (core/subnormal.h). Only one loop may run at a time, started from one
 * thread; fn must not start another. If t is NULL, the caller runs all indices in ascending order.
 */
void sherd__team_run(sherd__team *t, size_t count, void (*fn)(void *ctx, size_t i, unsigned thread),
                     void *ctx);

#endif
