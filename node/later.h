/*
 * Ends that are left to the compute thread, where a loop serves others: wiping, or giving pages
 * back to the system, takes up to 0.1 s for each GB.
 */
#ifndef NODE_LATER_H
#define NODE_LATER_H

#include <stdbool.h>
#include <stdint.h>

#include "node/pool.h"

typedef struct sherd__later {
    /** end(what) runs there, before any task that is admitted afterwards; then `reserved` bytes of
     *  the pool are given back. NULL: all at once, here. */
    void (*end)(void *ctx, void (*end)(void *what), void *what, uint64_t reserved);
    /** Bytes that are still to be given back so. */
    uint64_t (*ending)(void *ctx);
    /** So many of them are not given back: a task that runs behind these ends has them. */
    void (*inherit)(void *ctx, uint64_t bytes);
    void *ctx;
} sherd__later;

/** Ends `what`, which has so many bytes of `p` reserved, and gives them back: later or now. */
void sherd__later_end(const sherd__later *l, sherd__pool *p, void (*end)(void *what), void *what,
                      uint64_t reserved);
/** Reserves for what tasks that are admitted now will take: they run behind the ends of before, so
 *  it may be what these have. False where there is no room. */
bool sherd__later_reserve(const sherd__later *l, sherd__pool *p, uint64_t memory) SHERD_MUST;

#endif
