/*
 * Blocks of training that no scheme makes: examples, parameters and plans in clear, sealed pieces
 * as they came.
 */
#ifndef SCHEDULER_TRAIN_PUT_H
#define SCHEDULER_TRAIN_PUT_H

#include "wire/session.h"

/** What becomes of bytes that were sent, or could not be: release(ctx, bytes, len), or sherd__free
 *  where release is NULL. */
typedef struct sherd__train_bytes {
    void *bytes;
    void (*release)(void *ctx, uint8_t *bytes, uint64_t len);
    void *ctx;
} sherd__train_bytes;

/** Puts rows x cols values of `dtype` as a block; takes the bytes in any case. Errors of
 *  sherd__fragment_take and sherd__session_put. */
int sherd__train_put(sherd__session *s, uint64_t job, uint32_t block, uint8_t dtype, uint64_t rows,
                     uint64_t cols, sherd__train_bytes from) SHERD_MUST;

#endif
