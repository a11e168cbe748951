/*
 * A few threads that share one loop at a time: the caller works too, and a thread takes the next
 * index when it is done with one, so that a slow or late thread holds up no more than what it has
 * taken. For computations of tens of microseconds and more; results must not depend on who computes
 * which index.
 */
#ifndef CORE_TEAM_H
#define CORE_TEAM_H

#include <stddef.h>

#include "sherd/err.h"

typedef struct sherd__team sherd__team;

#define SHERD__TEAM_MOST 256u

/** Room for threads beside the caller's. They are started by the first loop that needs them; fewer
 *  start where the system has no more. threads: the caller's included; 0 is taken as 1, more
 *  than SHERD__TEAM_MOST as that. *out is the caller's (sherd__team_free). SHERD_ENOMEM. */
int sherd__team_new(sherd__team **out, unsigned threads) SHERD_MUST;
/** Ends the threads. NULL is allowed. */
void sherd__team_free(sherd__team *t);
/** Threads that a loop may have, the caller's included; 1 for NULL. */
unsigned sherd__team_threads(const sherd__team *t);
/**
 * fn(ctx, i, thread) for each i below count, once, in any order, several at the same time; all are
 * done on return. `thread` is below sherd__team_threads and the same for all calls that one thread
 * makes: scratch may be picked by it. All flush subnormal numbers as the caller does
 * (core/subnormal.h). One loop at a time, from one thread; fn starts no other. t may be NULL: the
 * caller alone, in ascending order.
 */
void sherd__team_run(sherd__team *t, size_t count, void (*fn)(void *ctx, size_t i, unsigned thread),
                     void *ctx);

#endif
