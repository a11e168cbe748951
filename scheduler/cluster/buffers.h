/*
 * Memory for answers, used again: a fresh buffer of some megabytes costs a page fault every 4 KB,
 * which is as much as decrypting into it. Taken on the loop thread, given back on any.
 */
#ifndef SCHEDULER_CLUSTER_BUFFERS_H
#define SCHEDULER_CLUSTER_BUFFERS_H

#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__buffers sherd__buffers;

int sherd__buffers_new(sherd__buffers **out) SHERD_MUST;
/** Every buffer must have been given back. NULL is allowed. */
void sherd__buffers_free(sherd__buffers *b);
/** len bytes, uninitialised, or NULL. */
uint8_t *sherd__buffers_get(sherd__buffers *b, uint64_t len);
/** What get gave; NULL is allowed. */
void sherd__buffers_give(sherd__buffers *b, uint8_t *bytes);
/** The same as a session takes them (sherd__session's place and unplace); ctx: the buffers. */
uint8_t *sherd__buffers_place(void *ctx, uint64_t job, uint32_t number, uint64_t len);
void sherd__buffers_unplace(void *ctx, uint8_t *bytes, uint64_t len);
/** Frees what waits for reuse. */
void sherd__buffers_trim(sherd__buffers *b);

#endif
