/*
 * Memory under one budget. Every block, arriving body, result and scratch buffer of a node is
 * allocated here, so that all its coordinators together cannot make it use more than it was started
 * with. Buffers that are given back are wiped, large ones in slices, and kept for the next request
 * of their size: fresh megabytes cost a page fault every 4 KB, which takes longer than filling
 * them. Kept buffers count in the budget too, and are returned to the system when the room is
 * needed.
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

/** What each buffer counts in addition to its bytes, for its bookkeeping. */
#define SHERD__POOL_OVERHEAD 512u

typedef struct sherd__pool_stats {
    uint64_t budget;
    uint64_t used;    /* bytes in buffers handed out, and reserved */
    uint64_t kept;    /* bytes in buffers kept for reuse; used + kept <= budget */
    uint64_t stale;   /* of these, in buffers that are wiped before they are handed out */
    uint64_t lent;    /* of `used`, in buffers that can be taken back */
    uint64_t peak;    /* largest value of used so far */
    uint64_t refused; /* requests that found no room */
} sherd__pool_stats;

int sherd__pool_new(sherd__pool **out, uint64_t budget) SHERD_MUST;
/**
 * Makes *out a share of pool `of`, which must outlive it. Memory taken through *out counts in both
 * pools, in the share up to `limit` bytes. Buffers are kept by `of`, on which sole, relief and trim
 * are called. Returns SHERD_ENOMEM.
 */
int sherd__pool_share(sherd__pool **out, sherd__pool *of, uint64_t limit) SHERD_MUST;
/** Changes the limit of a share. Memory beyond the new limit stays until it is given back. */
void sherd__pool_limit(sherd__pool *p, uint64_t limit);
/** Frees the pool. Every buffer must have been given back. NULL is allowed. */
void sherd__pool_free(sherd__pool *p);

/** Returns len bytes, aligned to 64, uninitialised or zero. NULL where budget or system have no
 *  room. The caller returns them with sherd__pool_give. */
uint8_t *sherd__pool_get(sherd__pool *p, uint64_t len);
/**
 * Sets whether one client owns all buffers (false at first). Then buffers that it gives back are
 * wiped only before they go to the system or to another client: wiping megabytes that are about to
 * be overwritten costs as much as sending them. After a change to false, kept buffers are wiped
 * before they are handed out.
 */
void sherd__pool_sole(sherd__pool *p, bool sole);
/**
 * Makes sherd__pool_clean wipe large buffers, instead of the call that gives them back or ends
 * `sole`. `later` is called to request a call of sherd__pool_clean. Until then the buffers count as
 * kept. NULL (the default): buffers are wiped at once.
 */
void sherd__pool_slices(sherd__pool *p, void (*later)(void *ctx), void *ctx);
/** Runs one turn: wipes about `most` bytes. Returns true while more are left. Buffers above 64 MB,
 *  those beyond 256 MB or 16,384 ready ones, and after sherd__pool_trim all of them, are then
 *  returned to the system (sherd__wipe_pages). */
bool sherd__pool_clean(sherd__pool *p, uint64_t most);
/** Gives back a buffer that sherd__pool_get returned for len. The bytes are wiped (see sole,
 *  slices). NULL is allowed. */
void sherd__pool_give(sherd__pool *p, uint8_t *bytes, uint64_t len);

/** Counts len bytes as used, without allocating. Returns false where there is no room. With slices
 *  and several clients it also returns false where more than 256 MB of kept buffers would have to
 *  be freed in this turn. */
bool sherd__pool_reserve(sherd__pool *p, uint64_t len);
void sherd__pool_unreserve(sherd__pool *p, uint64_t len);
/** Returns an interface to reserve and unreserve, for tables of core/grouped.h. */
sherd__budget sherd__pool_budget(sherd__pool *p);
/**
 * Sets the function that frees memory of `p` that is no longer needed and returns whether it freed
 * any: first memory of the share that asks, in later calls that of others. Only sherd__pool_relieve
 * calls it, never a request: the caller of a request may hold what it would free.
 */
void sherd__pool_relief(sherd__pool *p, bool (*relieve)(void *ctx, const sherd__pool *asks),
                        void *ctx);
/** Frees memory after a request that found no room. The caller must hold nothing that could be
 *  freed. Returns true where the request is worth another attempt. */
bool sherd__pool_relieve(sherd__pool *p);
/**
 * As sherd__pool_get, for what its owner can do without. NULL also where less than an eighth of the
 * budget would be left, of the share or of its pool. The caller returns the bytes with
 * sherd__pool_take_back.
 */
uint8_t *sherd__pool_lend(sherd__pool *p, uint64_t len);
void sherd__pool_take_back(sherd__pool *p, uint8_t *bytes, uint64_t len);
/** Sets the function that takes back a buffer that was lent from p or, where p is no share, from a
 *  share of it, and returns false where none can be taken back now. Requests that would otherwise
 *  find no room in p call it. It must not make requests. */
void sherd__pool_lender(sherd__pool *p, bool (*take_back)(void *ctx), void *ctx);
/** Returns what a buffer of len bytes counts, to reserve it before it is needed. */
uint64_t sherd__pool_cost(uint64_t len);

/** Returns kept buffers to the system, in slices where these are set. Called after the last
 *  session, since the next one may come in hours. */
void sherd__pool_trim(sherd__pool *p);

const sherd__pool_stats *sherd__pool_stats_of(const sherd__pool *p);

#endif
