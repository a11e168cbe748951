/*
 * Lagrange coded computing (Yu et al., arXiv 1806.00939): an operand cut into K blocks and joined
 * by T masks is a polynomial u(x) of degree K+T-1 with u(beta_j) = block or mask j; a share is its
 * value at a point alpha. Any T shares are independent of the blocks; enough answers give the
 * product back by interpolation. All arithmetic is modulo a prime of matrix/residue.h.
 *
 * Points: beta_j = j for j = 1..K+T, alpha_i = K+T+i for i = 1, 2, ... They are public.
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

/** Answers that give a product back. coded: both operands are (2K+2T-1), else only one (K+T). */
uint32_t sherd__lcc_threshold(uint32_t blocks, uint32_t masks, bool both);
/** The largest K for N nodes of which S may be missing; 0: not even one block. */
uint32_t sherd__lcc_blocks(uint32_t nodes, uint32_t masks, uint32_t spare, bool both);
/** alpha_i of share i = 0, 1, ...; beta_j of block or mask j = 0, 1, ... */
uint32_t sherd__lcc_alpha(const sherd__lcc *c, uint32_t share);
uint32_t sherd__lcc_beta(uint32_t block);
/** SHERD_EINVAL unless K >= 1, T >= 1, N >= 1, sizes within limits and all points are distinct
 *  modulo p. */
int sherd__lcc_check(const sherd__lcc *c, uint32_t p) SHERD_MUST;

/** w[j] = l_j(alpha_share), j < K+T, canonical: what block or mask j counts in the share. */
void sherd__lcc_encode_weights(const sherd__lcc *c, uint32_t p, uint32_t share, double *w);
/**
 * w[i] such that f(beta_block) = sum_i w[i]*f(alpha_{share[i]}) for every polynomial f of degree
 * below len: canonical, len of them. The shares are distinct.
 */
void sherd__lcc_decode_weights(const sherd__lcc *c, uint32_t p, uint32_t block,
                               const uint32_t *share, uint32_t len, double *w);

/**
 * out[i] = packed(sum_j w[i][j] * in[j]) modulo p for every share at once: in[j] are K+T rows of n
 * canonical residues, w is shares x (K+T) row-major, out[i] takes 3n bytes (NULL: not wanted).
 * Cache-blocked: each input element is read from memory once. Rows that begin on lines of 64 bytes
 * are summed up to a third faster. Threads may encode what they like at once.
 */
void sherd__lcc_encode(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                       const double *const *in, size_t n, uint8_t *const *out);
/**
 * out[j] = sum_i w[j][i] * in[i] modulo p, canonical doubles, for `blocks` rows w (blocks x len):
 * in[i] are `len` packed answers of n residues each. SHERD_EFRAME: a residue is not below p.
 */
int sherd__lcc_decode(const double *w, uint32_t blocks, uint32_t len, uint32_t p,
                      const uint8_t *const *in, size_t n, double *const *out) SHERD_MUST;

#endif
