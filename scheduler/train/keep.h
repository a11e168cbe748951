/*
 * Examples that nodes are sent, in clear, and which of them a node keeps: where the same rows come
 * again they travel once, up to a quarter of the node's memory.
 */
#ifndef SCHEDULER_TRAIN_KEEP_H
#define SCHEDULER_TRAIN_KEEP_H

#include "learn/dataset.h"
#include "learn/plan.h"
#include "wire/session.h"

/** Examples of one shard that a node keeps. */
typedef struct sherd__kept {
    uint64_t hash;
    uint32_t *rows;
    size_t len;
    uint32_t x, targets; /* blocks */
} sherd__kept;

/** What a node keeps in one session. Zeroed, then forgotten once. */
typedef struct sherd__keep {
    sherd__kept *list; /* the owner frees it, after the last forget */
    size_t len, room;
    uint64_t bytes;
    uint32_t next_block;
} sherd__keep;

/** Where examples go; all borrowed. */
typedef struct sherd__keep_to {
    sherd__session *session;
    uint64_t job;
    const sherd__dataset *data;
    bool recurring; /* the same rows may come again */
} sherd__keep_to;

/** Makes sure that these rows are at the node; *out has blocks and number of rows, and `drop` where
 *  it is not to keep them. SHERD_ENOMEM, errors of sherd__session_put. */
int sherd__keep_send(sherd__keep *k, const sherd__keep_to *to, const uint32_t *rows, size_t len,
                     sherd__step_plan_shard *out) SHERD_MUST;
/** The node keeps nothing any more; blocks are numbered from here. */
void sherd__keep_forget(sherd__keep *k, uint32_t first_block);

#endif
