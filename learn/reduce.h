/*
 * The schedule of an all-reduce: which worker sends which part of a vector to which other, so that
 * n workers end with the sum of all n vectors and each has sent and received 2 (n - 1) / n of one
 * vector, which is the minimum. Pure functions: a worker asks for its steps, and the code with the
 * connections executes them. A vector is cut into n blocks. The first half of the steps adds
 * (reduce-scatter: worker i ends with the sum of one block), the second half copies (all-gather).
 *
 * ring: 2 (n - 1) steps, one block each, to the next worker only (Patarasuk and Yuan 2009). Best
 * for slow links and long vectors. halving-doubling: 2 ceil(log2 n) steps for any n, over circulant
 * distances (Traeff, arXiv 2410.14234, algorithm 1). Best if a message costs more than its bytes.
 *
 * Sums modulo 2^64 have the same bits in any order, so both give the result of a single adder.
 */
#ifndef LEARN_REDUCE_H
#define LEARN_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sherd__reduce { SHERD__REDUCE_RING = 1, SHERD__REDUCE_HALVING = 2 } sherd__reduce;

/** Blocks first, first + 1, ... (modulo n). */
typedef struct sherd__reduce_part {
    uint32_t first, count;
} sherd__reduce_part;

typedef struct sherd__reduce_step {
    uint32_t to, from;          /* workers */
    sherd__reduce_part out, in; /* sent, with its contents at the start of the step; received */
    bool add;                   /* add the received numbers; else they replace those of the
                                   worker */
} sherd__reduce_step;

/** Returns "ring" or "halving-doubling"; NULL for an unknown number. */
const char *sherd__reduce_name(sherd__reduce kind);
/** Returns the steps of one worker among n (1 or more); 0 for n = 1. */
uint32_t sherd__reduce_steps(sherd__reduce kind, uint32_t n);
/** Returns step `step` of worker `rank`. Steps of all workers with the same number match: what
 *  worker a sends to b in step i is what b expects from a in step i. */
sherd__reduce_step sherd__reduce_step_of(sherd__reduce kind, uint32_t n, uint32_t rank,
                                         uint32_t step);
/** Returns the offset of block b <= n in a vector of len. Blocks differ by one number at most, and
 *  for b = n it is len. */
size_t sherd__reduce_at(size_t len, uint32_t n, uint32_t b);
/** Returns how many numbers a part has. */
size_t sherd__reduce_len(size_t len, uint32_t n, sherd__reduce_part part);

#endif
