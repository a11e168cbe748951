/*
 * Sends examples to nodes, in clear, and records which of them a node keeps. Rows that are used
 * again are sent once, up to a quarter of the node's memory.
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
    uint32_t x, targets; /* numbers of its blocks */
} sherd__kept;

/** The examples that a node keeps in one session. Zeroed at first, then initialised with
 *  sherd__keep_forget. */
typedef struct sherd__keep {
    sherd__kept *list; /* the owner frees it after the last sherd__keep_forget */
    size_t len, room;
    uint64_t bytes;
    uint32_t next_block;
} sherd__keep;

/** Destination of examples; all pointers are borrowed. */
typedef struct sherd__keep_to {
    sherd__session *session;
    uint64_t job;
    const sherd__dataset *data;
    bool recurring; /* the same rows may be used again */
} sherd__keep_to;

/** Makes sure that these rows are at the node. *out receives block numbers and the number of rows;
 *  `drop` is set if the node must not keep the rows. SHERD_ENOMEM, errors of sherd__session_put. */
int sherd__keep_send(sherd__keep *k, const sherd__keep_to *to, const uint32_t *rows, size_t len,
                     sherd__step_plan_shard *out) SHERD_MUST;
/** Records that the node keeps nothing any more; new blocks are numbered from first_block. */
void sherd__keep_forget(sherd__keep *k, uint32_t first_block);

#endif
