/*
 * `share` and `share1`: the codes of crypto/code.h as schemes. Under Lagrange's code A's rows are
 * cut into K blocks of ceil(n/K) rows (the last one padded with zeros). An A that stays may be cut
 * into parts first, and each part into K blocks. A product of some parts then uses the same rows of
 * all K blocks, and the other rows of shares are not read. Under `share` B is coded too, with each
 * block of A; under share1 B is sent in clear. Under the inner-product code, of `share` only, A is
 * cut into K blocks of ceil(k/K) columns and B into K blocks of as many rows. Slot i is share i: a
 * domain may be given cells of one slot only (the ledger enforces this). Any `threshold` answers of
 * a (tile, panel) are decoded.
 *
 * Who learns it: a node, and any T domains together, learn nothing of A (and of B, under `share`)
 * except shapes, primes and timing, if ChaCha20 is secure: the privacy is computational. T+1
 * domains learn linear combinations of the blocks.
 */
#ifndef SCHEMES_SHARE_SHARE_H
#define SCHEMES_SHARE_SHARE_H

#include "core/rand.h"
#include "crypto/code.h"
#include "matrix/operation.h"
#include "matrix/fixed.h"
#include "matrix/windows.h"
#include "schemes/scheme.h"
#include "sherd/mat.h"
#include "sherd/multiplier.h"
#include "sherd/scheme.h"

extern const sherd_scheme_info sherd__share, sherd__share1;

#define SHERD__SHARE_PRIMES 8u
/** Most terms of a sum modulo primes below 256 at a node, and most rows and columns of its
 *  result. */
#define SHERD__SHARE_TERMS 65536u

typedef struct sherd__share_params {
    sherd_view a, b; /* n x k, k x m; borrowed */
    double *c;       /* n x m result, row stride ldc; borrowed. NULL: nothing will be decoded */
    size_t ldc;
    const sherd__code *by; /* the code */
    sherd__lcc code;       /* its sizes; slot i is given share i */
    bool public_b;         /* share1 */
    bool left_stays; /* A's shares stay at the nodes for further products (sherd__share_next) */
    sherd_windows windows; /* window 0: none. left_stays: the rows of `a` are images, and A is the
                              matrix of their windows. Images are cut into blocks and coded; nodes
                              take the windows of their shares, which are shares of the windows */
    size_t part_rows;      /* left_stays: rows of `a` that are cut into K blocks together, so that a
                              product may use some parts of A only; 0: all rows */
    size_t panel_rows;     /* rows of a share in one cell, at most */
    size_t tile_cols;      /* columns of B in one tile, at most */
    sherd__fixed fixed_a, fixed_b;
    bool bytes;          /* residues are bytes: the primes are the first of sherd__byte_primes. Not
                            with windows or a public B, and for at most SHERD__SHARE_TERMS columns
                            of A */
    uint32_t primes_len; /* 1..4, of bytes 1..8 */
    uint32_t primes[SHERD__SHARE_PRIMES];
    /* bytes: slots whose shares are sent as seeds, in turn: the first `masks` of the code of A, the
     * next ones of each right operand; after the last slot follows the first. All different, and at
     * least `masks` of them, or 0: no seeds. Copied. */
    const uint32_t *seed_slots;
    uint32_t seed_slots_len;
    size_t check_bytes;     /* left_stays: memory for check data of A that is kept between products;
                               data that does not fit is computed again for each product */
    sherd__entropy entropy; /* for masks and check vectors */
} sherd__share_params;

/**
 * Opens a product or, with c NULL (left_stays; b and fixed_b are then not read), only A's encoding,
 * for sherd__share_next. The caller must have checked the range: k * |A| * |B| fits the primes.
 * Errors: SHERD_ENOMEM; SHERD_EINVAL: an invalid code, fewer shares than its threshold, more blocks
 * of rows than A has rows, shapes that do not agree, windows of an operand that does not stay or
 * does not consist of such images, windows or a public B under a code that cuts A by columns.
 */
int sherd__share_open(sherd__hiding *out, const sherd__share_params *p) SHERD_MUST;
/**
 * Writes in which order the elements of a mask of residues of one byte are drawn: the position
 * row * cols + column of each element of the rows below `kept`. rows x cols: a block as a node is
 * sent it, of A (left) or of B. If B has so many rows that it is encoded in strips of 16 columns,
 * its streams change every 16 columns, and not every 64 as in this order.
 */
void sherd__share_drawn(bool left, size_t rows, size_t cols, size_t kept, uint32_t *order);
/** With at most this many primes, sums over A's rows may exceed the primes' range, provided that
 *  sums over one panel do not and that 63 bits hold the total: the sum of a panel, 47 bits, is an
 *  integer that is added up. */
#define SHERD__SHARE_GROUPED 2u
#define SHERD__SHARE_GROUPED_BYTES 6u
/** Returns how many products of factors up to a and b in magnitude the primes hold the sum of. */
size_t sherd__share_sum_max(const uint32_t *primes, uint32_t len, uint64_t a, uint64_t b);
/**
 * Starts a product of the same shares of A (left_stays) with another B and its own masks. The left
 * operand is `rows` of A (windows, if A is of windows), which must be whole parts. transposed: C =
 * A^T * B, and B has as many rows as `rows`. No cell of the previous product may be in progress,
 * and none of its fragments may still be read. SHERD_ESHAPE: B's rows, or ldc. SHERD_ERANGE: bounds
 * that the primes do not hold. SHERD_EINVAL: shares do not stay, rows that are not whole parts, or
 * transposed with a public B, which would have to be coded, or with an A that is cut by columns.
 * SHERD_ENOMEM: there is then no product to run (no tiles), but the next one may be tried.
 */
int sherd__share_next(sherd__hiding *h, const sherd__kept_product *m,
                      const sherd__fixed *fixed_b) SHERD_MUST;

#endif
