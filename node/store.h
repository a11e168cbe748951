/*
 * The blocks of one session, named (job, number). Each session has a store of its own, so another
 * session has no way to name them; the memory of all of them comes from one pool (node/pool.h),
 * through the session's place and unplace.
 *
 * A block that a task uses stays in memory until the task lets go of it, dropped or not. Where a
 * job of many blocks is dropped, they are freed some at a time (sherd__store_reap); their names are
 * free at once.
 */
#ifndef NODE_STORE_H
#define NODE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "core/grouped.h"
#include "crypto/fragment.h"
#include "sherd/err.h"

/** Blocks that a session may have; a table of as many is grown in some 20 ms. */
#define SHERD__BLOCKS_MAX (1u << 20)

typedef struct sherd__block {
    sherd__grouped_item item; /* first */
    sherd__fragment *fragment;
    uint32_t number;
    uint32_t refs;                 /* the store's own, and one for each task that uses it */
    uint32_t calls;                /* of these, tasks whose call of a device is under way */
    struct sherd__residence *held; /* where devices hold it (node/devices.h) */
} sherd__block;

/** Zero-initialise; key and budget of the table as core/grouped.h says. */
typedef struct sherd__store {
    sherd__grouped table; /* table.len: blocks that can be found */
    uint64_t bytes;       /* of bodies, those included that are still to be freed */
    void (*left)(void *ctx, const sherd__block *b); /* told of each that leaves; NULL: none */
    void *left_ctx;
} sherd__store;

void sherd__store_init(sherd__store *s);
/** Drops everything, and frees it at once. */
void sherd__store_fini(sherd__store *s);

/** Takes f under (job, number). SHERD_EINVAL where that name is taken, SHERD_ENOMEM, SHERD_EBUSY at
 *  SHERD__BLOCKS_MAX; f is then still the caller's. */
int sherd__store_put(sherd__store *s, uint64_t job, uint32_t number, sherd__fragment *f) SHERD_MUST;
/** The block, or NULL; borrowed until the next call on the store. */
sherd__block *sherd__store_find(const sherd__store *s, uint64_t job, uint32_t number);
/** Forgets one block and frees it, or with number 0 forgets all of the job, for reap to free;
 *  returns how many there were. */
size_t sherd__store_drop(sherd__store *s, uint64_t job, uint32_t number);
/** Forgets all. */
void sherd__store_drop_all(sherd__store *s);
/** Frees up to `most` blocks of dropped jobs; how many it freed. */
size_t sherd__store_reap(sherd__store *s, size_t most);

void sherd__block_hold(sherd__block *b);
/** Frees the block with the last hold. NULL is allowed. */
void sherd__block_release(sherd__block *b);

#endif
