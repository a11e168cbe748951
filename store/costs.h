/*
 * Privacy costs by position of an example, stored as an ascending step function. Sums are exact,
 * except that each cost is rounded up to a multiple of 2^-64. A ledger that is read again therefore
 * gives the same bits as the one in memory.
 */
#ifndef STORE_COSTS_H
#define STORE_COSTS_H

#include "core/buf.h"

typedef struct sherd__costs {
    sherd__buf steps;   /* the first starts at 0 */
    sherd__buf waiting; /* ranges not yet processed by sherd__costs_settle */
} sherd__costs;

/** Initialises *c. The caller frees it with sherd__costs_fini. Errors: SHERD_ENOMEM. */
int sherd__costs_init(sherd__costs *c) SHERD_MUST;
void sherd__costs_fini(sherd__costs *c);

/** Queues a range for sherd__costs_settle; for a batch, before any range is added. first + rows
 *  must not wrap, and rows must not be 0. Errors: SHERD_ENOMEM. */
int sherd__costs_wait(sherd__costs *c, uint64_t first, uint64_t rows, double rho) SHERD_MUST;
/** Adds the n queued ranges in O(n log n). Errors: SHERD_ENOMEM; then none is counted. */
int sherd__costs_settle(sherd__costs *c) SHERD_MUST;

/** Reserves room, so that the next sherd__costs_add cannot fail. Errors: SHERD_ENOMEM. */
int sherd__costs_reserve(sherd__costs *c) SHERD_MUST;
int sherd__costs_add(sherd__costs *c, uint64_t first, uint64_t rows, double rho) SHERD_MUST;
/** Returns the largest cost of these positions. */
double sherd__costs_most(const sherd__costs *c, uint64_t first, uint64_t rows);

#endif
