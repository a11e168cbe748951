/*
 * Outer products, group by group, as `permute --group 1` requests them. Their result is far larger
 * than the blocks (rows x m numbers out of rows + m), so it is produced while it is sent, in chunks
 * that stay in cache, and never stored.
 */
#ifndef NODE_BACKENDS_OUTER_H
#define NODE_BACKENDS_OUTER_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto/fragment.h"
#include "crypto/fragment_make.h"
#include "sherd/err.h"
#include "wire/session.h"

/** Returns true for a checked plain multiplication of dense blocks into float64, in which all
 *  groups have inner size 1 or 0. */
bool sherd__outer_fits(const sherd__task *task, const sherd__fragment *left);

/**
 * Makes a source of the result's bytes, for a task that fits. It borrows left and right until
 * source.free is called. *memory (may be NULL) is set to the bytes that it holds. Offsets may come
 * in any order; ascending order is fast.
 */
int sherd__outer_source(sherd__fragment_source *out, const sherd__fragment *left,
                        const sherd__fragment *right, uint64_t *memory) SHERD_MUST;

#endif
