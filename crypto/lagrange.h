/*
 * Lagrange coded computing (Yu et al., arXiv 1806.00939): an operand divided into K blocks,
 * together with T masks, defines a polynomial u(x) of degree K+T-1 with u(beta_j) = block or mask
 * j. A share is its value at a point alpha. Any T shares are independent of the blocks; enough
 * answers give the product by interpolation. All arithmetic is modulo a prime of matrix/residue.h.
 *
 * Points: beta_j = j for j = 1..K+T, alpha_i = K+T+i for i = 1, 2, ... up to p at most, where they
 * would begin again. They are public.
 */
#ifndef CRYPTO_LAGRANGE_H
#define CRYPTO_LAGRANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__LCC_BLOCKS_MAX 64u /* K + T */
#define SHERD__LCC_SHARES_MAX 4096u

typedef struct sherd__lcc {
    uint32_t blocks; /* K */
    uint32_t masks;  /* T */
    uint32_t shares; /* N */
} sherd__lcc;

/** Returns the number of answers that determine a product: 2K+2T-1 if both operands are coded, K+T
 *  if only one is. */
uint32_t sherd__lcc_threshold(uint32_t blocks, uint32_t masks, bool both);
/** Returns the largest K for N nodes of which S may be missing; 0 if not even one block is
 *  possible. */
uint32_t sherd__lcc_blocks(uint32_t nodes, uint32_t masks, uint32_t spare, bool both);
/** Returns alpha_i of share i = 0, 1, ..., or 0 if no point is left modulo p: the next one, p + 1,
 *  would be the point of the first block, and its share that block without a mask. */
uint32_t sherd__lcc_alpha(const sherd__lcc *c, uint32_t p, uint32_t share);
/** Returns beta_j of block or mask j = 0, 1, ... */
uint32_t sherd__lcc_beta(uint32_t block);
/** Returns SHERD_EINVAL unless K >= 1, T >= 1, N >= 1, sizes are within limits and all points are
 *  distinct modulo p. */
int sherd__lcc_check(const sherd__lcc *c, uint32_t p) SHERD_MUST;

/** Computes w[j] = l_j(alpha_share), j < K+T, canonical: the weight of block or mask j in the
 *  share. SHERD_EINVAL: no point is left for this share; w is unchanged then. */
int sherd__lcc_encode_weights(const sherd__lcc *c, uint32_t p, uint32_t share,
                              double *w) SHERD_MUST;
/**
 * Computes len weights w[i], canonical, such that f(beta_block) = sum_i w[i]*f(alpha_{share[i]})
 * for every polynomial f of degree below len. The shares are distinct and have points.
 */
void sherd__lcc_decode_weights(const sherd__lcc *c, uint32_t p, uint32_t block,
                               const uint32_t *share, uint32_t len, double *w);

/**
 * Computes out[i] = packed(sum_j w[i][j] * in[j]) modulo p for all shares at once. in[j] are K+T
 * rows of n canonical residues, w is shares x (K+T) row-major, out[i] has 3n bytes (NULL: this
 * share is not computed). The loop is cache-blocked: each input element is read from memory once.
 * Rows aligned to 64 bytes are summed up to a third faster. Several threads may encode at the same
 * time.
 */
void sherd__lcc_encode(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                       const double *const *in, size_t n, uint8_t *const *out);
/**
 * Computes out[j] = sum_i w[j][i] * in[i] modulo p, canonical doubles, for `blocks` rows of w
 * (blocks x len). in[i] are `len` packed answers of n residues each. Returns SHERD_EFRAME if a
 * residue is not below p.
 */
int sherd__lcc_decode(const double *w, uint32_t blocks, uint32_t len, uint32_t p,
                      const uint8_t *const *in, size_t n, double *const *out) SHERD_MUST;

#endif
