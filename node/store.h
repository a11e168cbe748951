/*
 * The blocks of one session, named (job, number). Each session has a store of its own, so no
 * session can name the blocks of another; the memory of all of them comes from one pool
 * (node/pool.h), through the session's place and unplace.
 *
 * A block that a task uses stays in memory until the task releases it, even if it is dropped
 * before. Where a job of many blocks is dropped, they are freed some at a time (sherd__store_reap);
 * their names are free at once.
 */
#ifndef NODE_STORE_H
#define NODE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "core/grouped.h"
#include "crypto/fragment.h"
#include "sherd/err.h"

/** Blocks that a session may have; growing a table to this size takes some 20 ms. */
#define SHERD__BLOCKS_MAX (1u << 20)

typedef struct sherd__block {
    sherd__grouped_item item; /* must be first */
    sherd__fragment *fragment;
    uint32_t number;
    uint32_t refs;                  /* one for the store, and one for each task that uses it */
    uint32_t calls;                 /* of these, tasks with a device call in progress */
    struct sherd__residence *held;  /* the devices that hold it (node/devices.h) */
    struct sherd__lending *lending; /* as that of the store */
} sherd__block;

/** Zero-initialise; set key and budget of the table as core/grouped.h says. */
typedef struct sherd__store {
    sherd__grouped table; /* table.len: blocks that can be found */
    uint64_t bytes;       /* of bodies, including those that are still to be freed */
    void (*left)(void *ctx, const sherd__block *b); /* called for each that leaves, or NULL */
    void *left_ctx;
    struct sherd__lending
        *lending; /* memory for forms of the blocks (node/devices.h); NULL: none */
} sherd__store;

void sherd__store_init(sherd__store *s);
/** Drops all blocks and frees them at once. */
void sherd__store_fini(sherd__store *s);

/** Takes f under (job, number). Returns SHERD_EINVAL where the name is in use, SHERD_ENOMEM, or
 *  SHERD_EBUSY at SHERD__BLOCKS_MAX; the caller then still owns f. */
int sherd__store_put(sherd__store *s, uint64_t job, uint32_t number, sherd__fragment *f) SHERD_MUST;
/** Returns the block, or NULL; borrowed until the next call on the store. */
sherd__block *sherd__store_find(const sherd__store *s, uint64_t job, uint32_t number);
/** As sherd__store_find; SHERD_EINVAL with a message if there is no such block. */
int sherd__store_need(const sherd__store *s, uint64_t job, uint32_t number, sherd__block **out,
                      sherd_diag *d) SHERD_MUST;
/** Drops one block and frees it, or with number 0 drops all blocks of the job, which
 *  sherd__store_reap frees. Returns how many there were. */
size_t sherd__store_drop(sherd__store *s, uint64_t job, uint32_t number);
/** Drops all blocks, which sherd__store_reap frees. */
void sherd__store_drop_all(sherd__store *s);
/** Frees up to `most` blocks of dropped jobs. Returns how many it freed. */
size_t sherd__store_reap(sherd__store *s, size_t most);

void sherd__block_hold(sherd__block *b);
/** Releases a hold, and frees the block with the last one. NULL is allowed. */
void sherd__block_release(sherd__block *b);

#endif
