/*
 * `blind`: one-time masks prepared in advance. B is public; R is uniform modulo each prime, as
 * large as A, and R*B is known. A node is given A + R and all of B, returns (A + R)*B, and the
 * coordinator subtracts R*B. Slots are ranges of A's rows, as under `plain`, and any node may
 * compute the next panel of any slot: a masked row is the same for every node and every time it is
 * sent.
 *
 * Who learns it: all nodes together learn nothing of A except its shape (if ChaCha20 is secure),
 * provided that no row of R ever masks two rows. store/maskfile.h decides which rows are unused;
 * nothing can be hidden before it has done so and sherd__blind_arm was called. B and the number of
 * bits are sent in clear.
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

/** R*B from the prepared file. */
typedef struct sherd__blind_source {
    /** Reads columns [from, from+n) of row `row`, modulo the prime with index q: 3 n packed bytes.
     *  Compute thread. */
    int (*row)(void *ctx, uint64_t row, uint32_t q, size_t from, size_t n, uint8_t *out);
    void *ctx;
} sherd__blind_source;

typedef struct sherd__blind_params {
    sherd_view a, b; /* n x k, k x m; borrowed */
    double *c;       /* n x m result, row stride ldc; borrowed; NULL: no product will be run */
    size_t ldc;
    uint32_t slots;
    const uint32_t *weights;       /* of the slots' rows (schemes/slots.h); read while opening */
    size_t panel_rows;             /* rows of A in one cell, at most */
    size_t tile_cols;              /* columns of B in one tile, at most */
    sherd__fixed fixed_a, fixed_b; /* both at most 26 bits */
    uint32_t primes_len;           /* 1..4 */
    uint32_t primes[4];
    sherd__blind_source source;
    /** Reserves the masks and passes them to sherd__blind_arm. Called by the first hide, on the
     *  compute thread, so that no masks are used up before there is a node to send to. NULL: the
     *  code that opens the scheme calls sherd__blind_arm. */
    int (*strike)(void *ctx);
    void *strike_ctx;
    sherd__entropy entropy; /* for check vectors */
} sherd__blind_params;

/** Opens a product. SHERD_ENOMEM, SHERD_EINVAL (invalid primes). */
int sherd__blind_open(sherd__hiding *out, const sherd__blind_params *p) SHERD_MUST;
/**
 * Sets the masks: row i of A is masked by row first_row + i of the masks of `key`, both from a mask
 * file and unused. May be called once, otherwise SHERD_EINVAL. SHERD_ENOMEM.
 */
int sherd__blind_arm(sherd__hiding *h, const uint8_t key[32], uint64_t first_row) SHERD_MUST;
/** Writes whole rows of R modulo prime p with index q; out is row-major. */
int sherd__blind_mask(sherd__masks *m, uint32_t q, uint32_t p, sherd__mask_part part,
                      double *out) SHERD_MUST;
/** Makes a fragment of columns [from, from+width) of B in integers of `dtype`, which must hold the
 *  values quantised by `fixed`. The fragment is a source that is read on the loop thread. b is
 *  borrowed. SHERD_ENOMEM. */
int sherd__blind_tile(sherd__fragment **out, sherd_view b, const sherd__fixed *fixed, uint8_t dtype,
                      size_t from, size_t width) SHERD_MUST;
/** Returns the number of rows of A in a slot. */
size_t sherd__blind_planned(const sherd__hiding *h, uint32_t slot);

#endif
