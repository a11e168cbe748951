/*
 * The codes in which both operands of a product can be hidden from any T nodes. A code divides each
 * operand into blocks, adds T masks, and makes one share of each for every node. An answer is the
 * product of a node's two shares, and enough answers determine the product of the operands. All
 * arithmetic is modulo a prime of matrix/residue.h.
 *
 * To add a code, add its own files and one line to the table in code.c.
 */
#ifndef CRYPTO_CODE_H
#define CRYPTO_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto/lagrange.h"
#include "sherd/err.h"

/** How the operands of a product are divided. */
typedef enum sherd__code_cut {
    /** The left operand is cut by rows into K blocks; the right one is used whole with each of
     *  them. An answer decodes to one value for each block. */
    SHERD__CUT_ROWS,
    /** The left operand is cut by columns into K blocks and the right one by rows; the product is
     *  the sum of the blocks' products. An answer is as large as the product. */
    SHERD__CUT_INNER
} sherd__code_cut;

typedef struct sherd__code {
    const char *name;
    sherd__code_cut cut;
    /** Every answer is needed: a code has as many shares as its threshold. */
    bool complete;
    /** See the functions of the same names in lagrange.h. both: both operands are coded; otherwise
     *  the right one is public. */
    uint32_t (*threshold)(uint32_t blocks, uint32_t masks, bool both);
    uint32_t (*blocks)(uint32_t nodes, uint32_t masks, uint32_t spare, bool both);
    /** Returns SHERD_EINVAL unless this code exists modulo p: sizes are within limits, and its
     *  points are distinct modulo p. */
    int (*check)(const sherd__lcc *c, uint32_t p);
    /** Compute the canonical weights of a share's blocks, followed by those of its masks: of the
     *  left operand K+T numbers, of the right one sherd__code_right_blocks + T. SHERD_EINVAL: no
     *  point is left for this share modulo p; w is unchanged then. */
    int (*left)(const sherd__lcc *c, uint32_t p, uint32_t share, double *w);
    int (*right)(const sherd__lcc *c, uint32_t p, uint32_t share, double *w);
    /** Computes len = threshold canonical weights w[i]: the sum of w[i] times the answer of
     *  share[i] is the product's block number `block`. The shares are distinct. */
    void (*decode)(const sherd__lcc *c, uint32_t p, uint32_t block, const uint32_t *share,
                   uint32_t len, double *w);
} sherd__code;

/** All codes; NULL is the last entry. The first one supports every kind of product. */
extern const sherd__code *const sherd__codes[];
extern const sherd__code sherd__code_lagrange;

/** Returns the number of blocks of the right operand. */
uint32_t sherd__code_right_blocks(const sherd__code *code, const sherd__lcc *c);

#endif
