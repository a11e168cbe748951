/*
 * Linear algebra modulo a prime for an attacker who knows the code: the weights of blocks and masks
 * in each share, the combinations of shares that contain no mask, and the scale at which a
 * combination of small data stays small. Intentionally independent of crypto/lagrange.h, and valid
 * for any points: an audit that took the weights from the code it judges would share its mistakes.
 */
#ifndef AUDIT_MODULAR_H
#define AUDIT_MODULAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/stats.h"

/** Returns a^-1 modulo p; a is not 0. */
uint32_t sherd__modular_inverse(uint32_t a, uint32_t p);
/** Returns the integer nearest to zero that is congruent to x < p. */
int64_t sherd__modular_centre(uint64_t x, uint64_t p);

/**
 * Checks a code. SHERD_EINVAL unless K, T, N >= 1 and within the limits of crypto/lagrange.h, the
 * primes are primes and distinct, and the K+T points beta are distinct modulo each prime. alpha may
 * be anything; attacks find its faults.
 */
int sherd__modular_check(const sherd__seen_code *c, sherd_diag *d) SHERD_MUST;
/** Sets w[j], j < K+T, to the weight of block or mask j in `share`, modulo the prime_index-th
 *  prime. */
void sherd__modular_weights(const sherd__seen_code *c, uint32_t prime_index, uint32_t share,
                            uint32_t *w);

/**
 * Multiplies g (len residues, not all 0) by the s that minimises its largest entry, in distance
 * from 0, and returns s. It tries all s that leave the first non-zero entry within 2^16 of 0:
 * combinations with larger weights exceed the prime for all but the smallest data.
 */
uint32_t sherd__modular_shorten(uint32_t *g, uint32_t len, uint32_t p);

/**
 * All combinations of a coalition's shares that contain no mask, in reduced row echelon form by
 * their data. There are `rows` of them; row r is sum coef[r][i] * share i = sum weight[r][j] *
 * block j.
 */
typedef struct sherd__unmasked {
    uint32_t rows, members, blocks;
    uint32_t *coef;   /* rows x members */
    uint32_t *weight; /* rows x blocks */
} sherd__unmasked;

/** SHERD_ENOMEM. rows = 0: there are no such combinations, so the coalition learns nothing by
 *  linear methods. */
int sherd__unmasked_find(sherd__unmasked *out, const sherd__seen_code *c, uint32_t prime_index,
                         const uint32_t *members, uint32_t members_len) SHERD_MUST;
void sherd__unmasked_fini(sherd__unmasked *u);
/** Returns the block that row r is a multiple of (its weight is then 1), or UINT32_MAX if the row
 *  mixes several. */
uint32_t sherd__unmasked_block(const sherd__unmasked *u, uint32_t r);

/** Computes out[i] = sum_m coef[m] * x[m][i] modulo p, i < n. */
void sherd__modular_combine(const uint32_t *coef, const uint32_t *const *x, uint32_t len,
                            uint32_t p, size_t n, uint32_t *out);

#endif
