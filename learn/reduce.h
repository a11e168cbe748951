/*
 * Who sends which part of a vector to whom, so that n workers end with the sum of all n vectors and
 * each has sent and received 2 (n - 1) / n of one vector, the least there is. Pure: a worker asks
 * for its steps and whoever has links carries them out. A vector is cut into n blocks; the first
 * half of the steps adds (reduce-scatter: worker i ends with the sum of one block), the second half
 * copies (all-gather).
 *
 * ring: 2 (n - 1) steps, one block each, to the next worker only (Patarasuk and Yuan 2009): best
 * where links are slow and vectors long.
 * halving-doubling: 2 ceil(log2 n) steps for any n, over circulant distances (Traeff, arXiv
 * 2410.14234, algorithm 1): best where a message costs more than its bytes.
 *
 * Sums modulo 2^64 have the same bits in any order, so both give what one adder would.
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
    sherd__reduce_part out, in; /* what is sent, as it is when the step begins; what comes */
    bool add;                   /* what comes is added to what is there; else it takes its place */
} sherd__reduce_step;

/** "ring", "halving-doubling"; NULL for a number that is neither. */
const char *sherd__reduce_name(sherd__reduce kind);
/** Steps of one worker among n (1 or more); 0 for n = 1. */
uint32_t sherd__reduce_steps(sherd__reduce kind, uint32_t n);
/** Step `step` of worker `rank`. Everybody's step i goes with everybody's step i: what worker a
 *  sends to b in it is what b awaits from a. */
sherd__reduce_step sherd__reduce_step_of(sherd__reduce kind, uint32_t n, uint32_t rank,
                                         uint32_t step);
/** First number of block b <= n of a vector of len: blocks differ by one number at most, and block
 *  n would begin at len. */
size_t sherd__reduce_at(size_t len, uint32_t n, uint32_t b);
/** Numbers in a part. */
size_t sherd__reduce_len(size_t len, uint32_t n, sherd__reduce_part part);

#endif
