/* A view's values as they lie in a file: its own dtype, little-endian, C order, nothing between. */
#ifndef STORE_PACK_H
#define STORE_PACK_H

#include <stdbool.h>

#include "sherd/mat.h"

/** True if v's memory is that already. */
bool sherd__view_packed(sherd_view v);
/** Writes rows * cols * size bytes to out, which is aligned for the dtype. */
void sherd__view_pack(void *out, sherd_view v);

typedef int (*sherd__pack_sink)(void *ctx, const void *bytes, size_t len, sherd_diag *d);

/**
 * Gives v's packed values to `sink` in ascending order, in pieces of at most 1 GiB; through `buf`
 * (8-byte aligned, buf_len >= 8) where they are not packed already. Stops at the first error, which
 * it returns.
 */
int sherd__view_stream(sherd_view v, void *buf, size_t buf_len, sherd__pack_sink sink, void *ctx,
                       sherd_diag *d) SHERD_MUST;

#endif
