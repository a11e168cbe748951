/*
 * Reusable memory for answers, and for blocks that are sent once. A new buffer of some megabytes
 * causes a page fault every 4 KB, which costs as much as decrypting into it. Buffers are taken and
 * given back on any thread.
 */
#ifndef SCHEDULER_CLUSTER_BUFFERS_H
#define SCHEDULER_CLUSTER_BUFFERS_H

#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__buffers sherd__buffers;

int sherd__buffers_new(sherd__buffers **out) SHERD_MUST;
/** Wipes and frees all buffers. Every buffer must have been given back. NULL is allowed. */
void sherd__buffers_free(sherd__buffers *b);
/** Returns len uninitialised bytes, or NULL if there is no memory. */
uint8_t *sherd__buffers_get(sherd__buffers *b, uint64_t len);
/** Gives back a buffer of sherd__buffers_get. NULL is allowed. */
void sherd__buffers_give(sherd__buffers *b, uint8_t *bytes);
/** The same in the form of a session's `place` and `unplace` callbacks; ctx: the sherd__buffers. */
uint8_t *sherd__buffers_place(void *ctx, uint64_t job, uint32_t number, uint64_t len);
void sherd__buffers_unplace(void *ctx, uint8_t *bytes, uint64_t len);
/** get of sherd__body_memory; its give is sherd__buffers_unplace. */
uint8_t *sherd__buffers_body(void *ctx, uint64_t len);
/** Bytes of idle buffers that stay between jobs, at most. */
#define SHERD__BUFFERS_KEPT ((size_t)64 << 20)
/** Called between jobs: wipes the idle buffers and frees those beyond SHERD__BUFFERS_KEPT. */
void sherd__buffers_rest(sherd__buffers *b);

#endif
