/*
 * Memory under one budget: every block, arriving body, result and scratch of a node comes from
 * here, so that its coordinators, all together, cannot make it grow beyond what it was started
 * with. Buffers that are given back are wiped, large ones in slices, and kept for the next one of
 * their size: fresh megabytes cost a page fault every 4 KB, which is more than filling them. What
 * is kept counts in the budget too, and goes back to the system when the room is needed.
 *
 * One thread (the loop's) makes all calls on a pool.
 */
#ifndef NODE_POOL_H
#define NODE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/grouped.h"
#include "sherd/err.h"

typedef struct sherd__pool sherd__pool;

/** What each buffer counts beyond its bytes: the bookkeeping that comes with it. */
#define SHERD__POOL_OVERHEAD 512u

typedef struct sherd__pool_stats {
    uint64_t budget;
    uint64_t used;    /* bytes in buffers handed out, and reserved */
    uint64_t kept;    /* bytes in buffers that wait for reuse; used + kept <= budget */
    uint64_t stale;   /* of these, in buffers that are wiped before they are handed out */
    uint64_t peak;    /* most that used ever was */
    uint64_t refused; /* requests that found no room */
} sherd__pool_stats;

int sherd__pool_new(sherd__pool **out, uint64_t budget) SHERD_MUST;
/**
 * Some of `of`, which outlives it: what is taken through *out counts in both, and may come to
 * `limit` bytes there. Buffers are kept by `of`; sole, relief and trim are for that one.
 * SHERD_ENOMEM.
 */
int sherd__pool_share(sherd__pool **out, sherd__pool *of, uint64_t limit) SHERD_MUST;
/** Another limit of such a share: what is beyond it stays until it is given back. */
void sherd__pool_limit(sherd__pool *p, uint64_t limit);
/** Every buffer must have been given back. NULL is allowed. */
void sherd__pool_free(sherd__pool *p);

/** len bytes, aligned to 64, uninitialised or zero; NULL where budget or system have none. */
uint8_t *sherd__pool_get(sherd__pool *p, uint64_t len);
/**
 * Whether all buffers are one client's. Then what it gives back is wiped only before it goes to the
 * system or to somebody else: to wipe megabytes that are about to be overwritten costs as much as
 * sending them. Once it is alone no longer, they are wiped before they are handed out. false at
 * first.
 */
void sherd__pool_sole(sherd__pool *p, bool sole);
/**
 * Large buffers are wiped by sherd__pool_clean, of which `later` asks for a call, instead of in the
 * call that gives them back or ends `sole`. Until then they count as kept. NULL, as at first: all
 * at once.
 */
void sherd__pool_slices(sherd__pool *p, void (*later)(void *ctx), void *ctx);
/** A turn: wipes some `most` bytes; true while more is left. Buffers above 64 MB, those beyond
 *  256 MB and 16,384 that are ready, and all of them after sherd__pool_trim, go to the system then
 *  (sherd__wipe_pages). */
bool sherd__pool_clean(sherd__pool *p, uint64_t most);
/** Gives back what get gave for len. The bytes are wiped (see sole, slices). NULL is allowed. */
void sherd__pool_give(sherd__pool *p, uint8_t *bytes, uint64_t len);

/** Counts len bytes as used, without memory yet; false where there is no room; of slices and
 *  several clients also where it would be made of more than 256 MB that is kept, in this turn. */
bool sherd__pool_reserve(sherd__pool *p, uint64_t len);
void sherd__pool_unreserve(sherd__pool *p, uint64_t len);
/** The same for tables of core/grouped.h. */
sherd__budget sherd__pool_budget(sherd__pool *p);
/**
 * relieve gives back memory of `p` that is not needed any more, and says whether it did: that of
 * the share that asks, and of others in the calls after that. It is called by sherd__pool_relieve
 * alone, never by a request: who asks for memory may hold what it would free.
 */
void sherd__pool_relief(sherd__pool *p, bool (*relieve)(void *ctx, const sherd__pool *asks),
                        void *ctx);
/** For a request that found no room, where nothing is held: while true, it is worth another try. */
bool sherd__pool_relieve(sherd__pool *p);
/** What a buffer of len bytes will count: for reserving one before it is needed. */
uint64_t sherd__pool_cost(uint64_t len);

/** Hands kept buffers back to the system, in slices where it has them (a session ended: the next
 *  may come in hours). */
void sherd__pool_trim(sherd__pool *p);

const sherd__pool_stats *sherd__pool_stats_of(const sherd__pool *p);

#endif
