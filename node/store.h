/*
 * The blocks of one session, named (job, number). Each session has a store of its own, so another
 * session has no way to name them; the memory of all of them comes from one pool (node/pool.h),
 * through the session's place and unplace.
 *
 * A block that a task uses stays in memory until the task lets go of it, dropped or not.
 */
#ifndef NODE_STORE_H
#define NODE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "crypto/fragment.h"
#include "sherd/err.h"

typedef struct sherd__block {
    sherd_fragment *fragment;
    uint64_t job;
    uint32_t number;
    uint32_t refs;             /* the store's own, and one for each task that uses it */
    struct sherd__block *next; /* in its bucket */
} sherd__block;

typedef struct sherd__store {
    sherd__block **buckets;
    size_t buckets_len; /* 0 or a power of two */
    size_t blocks;
    uint64_t bytes;     /* of bodies */
} sherd__store;

void sherd__store_init(sherd__store *s);
/** Drops everything. */
void sherd__store_fini(sherd__store *s);

/** Takes f under (job, number). SHERD_EINVAL where that name is taken, SHERD_ENOMEM; f is then
 *  still the caller's. */
int sherd__store_put(sherd__store *s, uint64_t job, uint32_t number, sherd_fragment *f) SHERD_MUST;
/** The block, or NULL; borrowed until the next call on the store. */
sherd__block *sherd__store_find(const sherd__store *s, uint64_t job, uint32_t number);
/** Forgets one block, or with number 0 all of the job; returns how many there were. */
size_t sherd__store_drop(sherd__store *s, uint64_t job, uint32_t number);

void sherd__block_hold(sherd__block *b);
/** Frees the block with the last hold. NULL is allowed. */
void sherd__block_release(sherd__block *b);

#endif
