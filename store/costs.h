/*
 * Costs by place: a step function, ascending. Sums are exact, but that each cost is rounded up to a
 * multiple of 2^-64: a ledger that was read again has the bits of the one that was kept.
 */
#ifndef STORE_COSTS_H
#define STORE_COSTS_H

#include "core/buf.h"

typedef struct sherd__costs {
    sherd_buf steps;   /* the first is at 0 */
    sherd_buf waiting; /* ranges that sherd__costs_settle has not seen */
} sherd__costs;

/** SHERD_ENOMEM. */
int sherd__costs_init(sherd__costs *c) SHERD_MUST;
void sherd__costs_fini(sherd__costs *c);

/** For many at once, before any is added: remembered, and counted by sherd__costs_settle.
 *  first + rows does not wrap, and rows is not 0. SHERD_ENOMEM. */
int sherd__costs_wait(sherd__costs *c, uint64_t first, uint64_t rows, double rho) SHERD_MUST;
/** O(n log n) for n of them. SHERD_ENOMEM: none is counted. */
int sherd__costs_settle(sherd__costs *c) SHERD_MUST;

/** Room for one more: to add it cannot fail then. SHERD_ENOMEM. */
int sherd__costs_reserve(sherd__costs *c) SHERD_MUST;
int sherd__costs_add(sherd__costs *c, uint64_t first, uint64_t rows, double rho) SHERD_MUST;
/** The largest of these places. */
double sherd__costs_most(const sherd__costs *c, uint64_t first, uint64_t rows);

#endif
