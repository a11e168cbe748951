/*
 * `share` and `share1`: Lagrange coded computing (crypto/lagrange.h) as a scheme. A's rows are cut
 * into K blocks of ceil(n/K) (the last padded with zeros); share i of it is u(alpha_i). An A that
 * stays may be cut into parts first and each part into K blocks: a product of some parts takes the
 * same rows of all K blocks, and other shares' rows are not looked at. Under
 * `share` B is coded too, in all K places; under share1 B travels in clear. Slot i is share i: a
 * domain may be given cells of one slot only (the ledger holds it). Any `threshold` answers of a
 * (tile, panel) are decoded.
 *
 * Who learns it: a node, and any T domains together, nothing of A (and of B, under `share`) but
 * shapes, primes and timing, as long as ChaCha20 is a cipher: the privacy is computational. T+1
 * domains learn linear combinations of the blocks.
 */
#ifndef SCHEMES_SHARE_SHARE_H
#define SCHEMES_SHARE_SHARE_H

#include "core/rand.h"
#include "crypto/lagrange.h"
#include "matrix/fixed.h"
#include "matrix/windows.h"
#include "schemes/scheme.h"
#include "sherd/mat.h"
#include "sherd/multiplier.h"
#include "sherd/scheme.h"

extern const sherd_scheme_info sherd__share, sherd__share1;

typedef struct sherd__share_params {
    sherd_view a, b; /* n x k, k x m; borrowed */
    double *c;       /* n x m result, row stride ldc; borrowed. NULL: nothing will be decoded */
    size_t ldc;
    sherd__lcc code;
    bool public_b;   /* share1 */
    bool left_stays; /* A's shares stay at the nodes for further products (sherd__share_next) */
    sherd_windows windows; /* window 0: none. left_stays: the rows of `a` are images, and A is the
                              matrix of their windows: images are cut into blocks and coded, and
                              nodes take the windows of their shares, which are shares of the
                              windows */
    size_t part_rows;      /* left_stays: rows of `a` that are cut into K blocks together, so that a
                            product may take some parts of A alone; 0: all of them */
    size_t panel_rows;     /* rows of its share that one cell covers, at most */
    size_t tile_cols;      /* columns of B that one tile covers, at most */
    sherd__fixed fixed_a, fixed_b;
    uint32_t primes_len; /* 1..4 */
    uint32_t primes[4];
    size_t check_bytes; /* left_stays: room for what checks know of A from one product to the next;
                            what it does not hold is made again for each */
    sherd__entropy entropy; /* masks and check vectors */
} sherd__share_params;

/**
 * Opens a product, or with c NULL (left_stays; b and fixed_b are then not read) only A's encoding,
 * for sherd__share_next. The range proof is the caller's: k * |A| * |B| fits the primes. Errors:
 * SHERD_ENOMEM; SHERD_EINVAL: a code that is none, fewer shares than its threshold, more blocks
 * than A has rows, shapes that do not agree, windows of what does not stay or is no images.
 */
int sherd__share_open(sherd__hiding *out, const sherd__share_params *p) SHERD_MUST;
/** With so many primes at most, sums over A's rows may be larger than the primes hold, as long as
 *  those over one panel are not and 63 bits hold the whole: 45 bits of a panel's sum are a whole
 *  number that is added up. */
#define SHERD__SHARE_GROUPED 2u
/** How many products of numbers up to a and b in magnitude the primes hold the sum of. */
size_t sherd__share_sum_max(const uint32_t *primes, uint32_t len, uint64_t a, uint64_t b);
/**
 * Another B for the same shares of A (left_stays), with masks of its own, and A being `rows` of it
 * (windows, where it is of windows), whole parts; transposed: C = A^T * B, B has as many rows as
 * they are. Nothing of the product before may be under way, and no fragment of it still be read.
 * SHERD_ESHAPE: B's rows, or ldc. SHERD_ERANGE: bounds that the primes do not hold. SHERD_EINVAL:
 * shares do not stay, rows that are not whole parts, or transposed with a public B, which would
 * have to be coded. SHERD_ENOMEM: there is then no product to run (no tiles), but the next may be
 * tried.
 */
int sherd__share_next(sherd__hiding *h, sherd_rows rows, sherd_view b, bool transposed, double *c,
                      size_t ldc, const sherd__fixed *fixed_b) SHERD_MUST;

#endif
