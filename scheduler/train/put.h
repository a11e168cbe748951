/*
 * Sends training blocks that no scheme makes: examples, parameters and plans in clear, and sealed
 * pieces in the form in which they arrived.
 */
#ifndef SCHEDULER_TRAIN_PUT_H
#define SCHEDULER_TRAIN_PUT_H

#include "wire/session.h"

/** Bytes to send. After sending, or on failure, they are freed with release(ctx, bytes, len), or
 *  with sherd__free if release is NULL. */
typedef struct sherd__train_bytes {
    void *bytes;
    void (*release)(void *ctx, uint8_t *bytes, uint64_t len);
    void *ctx;
} sherd__train_bytes;

/** The number of a block, and its rows x cols values of a dtype. */
typedef struct sherd__train_block {
    uint32_t number;
    uint8_t dtype;
    uint64_t rows, cols;
} sherd__train_block;

/** Sends a block. Takes ownership of the bytes in any case. Errors
 *  of sherd__fragment_take and sherd__session_put. */
int sherd__train_put(sherd__session *s, uint64_t job, sherd__train_block block,
                     sherd__train_bytes from) SHERD_MUST;

#endif
