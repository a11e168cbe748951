#ifndef CORE_BUF_H
#define CORE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** Growable byte buffer with a hard cap. A buffer with `secret` set is wiped on growth and
 *  release. */
typedef struct sherd__buf {
    uint8_t *data;
    size_t len, cap, cap_max;
    int secret;
} sherd__buf;

void sherd__buf_init(sherd__buf *b, size_t cap_max, int secret);
void sherd__buf_fini(sherd__buf *b);
/** Appends len bytes. Returns SHERD_EINVAL past the cap, SHERD_ENOMEM; on failure the buffer is
 *  unchanged. */
int sherd__buf_append(sherd__buf *b, const void *src, size_t len) SHERD_MUST;
/** Reserves len more bytes at the end and points *at to them; sherd__buf_commit adds them to the
 *  length. Errors as for sherd__buf_append. */
int sherd__buf_reserve(sherd__buf *b, size_t len, uint8_t **at) SHERD_MUST;
void sherd__buf_commit(sherd__buf *b, size_t len);
/** Removes the first n bytes (n <= len). */
void sherd__buf_consume(sherd__buf *b, size_t n);

#endif
