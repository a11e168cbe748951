/* The values of a view in file format: its own dtype, little-endian, C order, without gaps. */
#ifndef STORE_PACK_H
#define STORE_PACK_H

#include <stdbool.h>

#include "sherd/mat.h"

/** Returns true if v's memory already has this format. */
bool sherd__view_packed(sherd_view v);
/** Writes rows * cols * size bytes to out, which must be aligned for the dtype. */
void sherd__view_pack(void *out, sherd_view v);

typedef int (*sherd__pack_sink)(void *ctx, const void *bytes, size_t len, sherd_diag *d);

/**
 * Passes v's packed values to `sink` in ascending order, in pieces of at most 1 GiB. Uses `buf`
 * (8-byte aligned, buf_len >= 8) if they are not packed already. Stops at the first error and
 * returns it.
 */
int sherd__view_stream(sherd_view v, void *buf, size_t buf_len, sherd__pack_sink sink, void *ctx,
                       sherd_diag *d) SHERD_MUST;

#endif
