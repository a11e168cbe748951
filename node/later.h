/*
 * Ends of objects that are left to the compute thread where a loop serves other clients: wiping
 * memory, or giving pages back to the system, takes up to 0.1 s for each GB.
 */
#ifndef NODE_LATER_H
#define NODE_LATER_H

#include <stdbool.h>
#include <stdint.h>

#include "node/pool.h"

typedef struct sherd__later {
    /** Runs end(what) on the compute thread, before any task that is admitted afterwards, and then
     *  returns `reserved` bytes to the pool. NULL: this is done at once, on the calling thread. */
    void (*end)(void *ctx, void (*end)(void *what), void *what, uint64_t reserved);
    /** Returns the number of bytes that ends in progress have yet to return. */
    uint64_t (*ending)(void *ctx);
    /** Transfers so many of these bytes to a task that runs after the ends; they are not returned
     *  to the pool. */
    void (*inherit)(void *ctx, uint64_t bytes);
    void *ctx;
} sherd__later;

/** Ends `what`, which has `reserved` bytes of `p` reserved, and returns these, later or now. */
void sherd__later_end(const sherd__later *l, sherd__pool *p, void (*end)(void *what), void *what,
                      uint64_t reserved);
/** Reserves memory for tasks that are admitted now. They run after the ends in progress, so they
 *  may use the memory of these. Returns false where there is no room. */
bool sherd__later_reserve(const sherd__later *l, sherd__pool *p, uint64_t memory) SHERD_MUST;
/** The same for `once` bytes and up to *count times `each`: for several only as far as they fit
 *  into a quarter of the budget, since blocks need room, too. Sets *count, at least 1. */
bool sherd__later_reserve_each(const sherd__later *l, sherd__pool *p, uint64_t once, uint64_t each,
                               uint32_t *count) SHERD_MUST;

#endif
