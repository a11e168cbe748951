/*
 * `blind`: one-time masks prepared ahead. B is public; R is uniform modulo each prime, as large as
 * A, and R*B is known. A node is given A + R and all of B, returns (A + R)*B, and the coordinator
 * subtracts R*B. Slots are ranges of A's rows, as under `plain`, and any node may do any slot's
 * next panel: a masked row is the same whoever gets it and however often it is sent.
 *
 * Who learns it: nodes, all of them together, nothing of A but its shape (as long as ChaCha20 is a
 * cipher), provided that no row of R ever masks two rows: which rows are free is not decided here
 * (store/maskfile.h), and until it has been, by sherd__blind_arm, nothing can be hidden. B and the
 * number of bits are in clear.
 */
#ifndef SCHEMES_BLIND_BLIND_H
#define SCHEMES_BLIND_BLIND_H

#include "core/rand.h"
#include "crypto/fragment.h"
#include "crypto/mask.h"
#include "matrix/fixed.h"
#include "schemes/scheme.h"
#include "sherd/mat.h"
#include "sherd/scheme.h"

extern const sherd_scheme_info sherd__blind;

/** R*B as it was prepared. */
typedef struct sherd__blind_source {
    /** Columns [from, from+n) of row `row`, modulo the prime number q: 3 n packed bytes. Compute
     *  thread. */
    int (*row)(void *ctx, uint64_t row, uint32_t q, size_t from, size_t n, uint8_t *out);
    void *ctx;
} sherd__blind_source;

typedef struct sherd__blind_params {
    sherd_view a, b; /* n x k, k x m; borrowed */
    double *c;       /* n x m result, row stride ldc; borrowed; NULL: nothing will be run */
    size_t ldc;
    uint32_t slots;
    size_t panel_rows;             /* rows of A that one cell covers, at most */
    size_t tile_cols;              /* columns of B that one tile covers, at most */
    sherd__fixed fixed_a, fixed_b; /* both at most 26 bits */
    uint32_t primes_len;           /* 1..4 */
    uint32_t primes[4];
    sherd__blind_source source;
    /** Strikes the masks off and gives them out by sherd__blind_arm: called by the first hide, on
     *  the compute thread, so that none are used up before there is anybody to send to. NULL:
     *  whoever opens it arms it. */
    int (*strike)(void *ctx);
    void *strike_ctx;
    sherd__entropy entropy; /* check vectors */
} sherd__blind_params;

/** SHERD_ENOMEM, SHERD_EINVAL (primes that are none). */
int sherd__blind_open(sherd__hiding *out, const sherd__blind_params *p) SHERD_MUST;
/**
 * Row i of A is masked by row first_row + i of the masks of `key`, both fresh out of a mask file.
 * Once, else SHERD_EINVAL. SHERD_ENOMEM.
 */
int sherd__blind_arm(sherd__hiding *h, const uint8_t key[32], uint64_t first_row) SHERD_MUST;
/** Rows [row, row+rows) of R modulo prime number q, which is p; out row-major, width k. */
int sherd__blind_mask(sherd__masks *m, uint32_t q, uint32_t p, uint64_t row, size_t rows, size_t k,
                      double *out) SHERD_MUST;
/** Columns [from, from+width) of B in integers of `dtype`, which holds what `fixed` makes of them:
 *  a source that is read on the loop thread. b is borrowed. SHERD_ENOMEM. */
int sherd__blind_tile(sherd__fragment **out, sherd_view b, const sherd__fixed *fixed, uint8_t dtype,
                      size_t from, size_t width) SHERD_MUST;
/** Rows of A in a slot. */
size_t sherd__blind_planned(const sherd__hiding *h, uint32_t slot);

#endif
