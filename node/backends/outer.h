/*
 * Outer products, group by group: what `permute --group 1` asks of a node. Their result is far
 * larger than the blocks (rows x m numbers out of rows + m), so it is produced as it is sent, a
 * chunk that stays in cache at a time, and never stored.
 */
#ifndef NODE_BACKENDS_OUTER_H
#define NODE_BACKENDS_OUTER_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto/fragment.h"
#include "crypto/fragment_make.h"
#include "sherd/err.h"
#include "wire/session.h"

/** True for a checked plain multiplication of dense blocks into f64 whose groups all have inner
 *  size 1 or 0. */
bool sherd__outer_fits(const sherd__task *task, const sherd__fragment *left);

/**
 * A source of the result's bytes, for a task that fits. Borrows left and right until source.free.
 * `memory` (may be NULL) is what it holds. Any order of offsets works; ascending is fast.
 */
int sherd__outer_source(sherd__fragment_source *out, const sherd__fragment *left,
                        const sherd__fragment *right, uint64_t *memory) SHERD_MUST;

#endif
