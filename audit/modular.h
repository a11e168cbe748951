/*
 * Linear algebra modulo a prime, as an attacker does it who knows the code: what blocks and masks
 * weigh in each share, which combinations of shares contain no mask, and how to scale a combination
 * so that small data stays small. Apart from crypto/lagrange.h on purpose, and for any points: an
 * audit that takes the weights from the code it judges would share its mistakes.
 */
#ifndef AUDIT_MODULAR_H
#define AUDIT_MODULAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/stats.h"

/** a^-1 modulo p, a not 0. */
uint32_t sherd__modular_inverse(uint32_t a, uint32_t p);
/** x below p as the number nearest zero that it stands for. */
int64_t sherd__modular_centre(uint64_t x, uint64_t p);
/** The x < p*q that is a modulo p and b modulo q. */
uint64_t sherd__modular_join(uint32_t a, uint32_t p, uint32_t b, uint32_t q);

/**
 * SHERD_EINVAL unless K, T, N >= 1 and within the limits of crypto/lagrange.h, the primes are
 * primes and distinct, and the K+T points beta are distinct modulo each. alpha may be anything:
 * that is for the attack to find.
 */
int sherd__modular_check(const sherd__seen_code *c, sherd_diag *d) SHERD_MUST;
/** w[j], j < K+T: what block or mask j weighs in `share`, modulo the prime_index-th prime. */
void sherd__modular_weights(const sherd__seen_code *c, uint32_t prime_index, uint32_t share,
                            uint32_t *w);

/**
 * Multiplies g (len residues, not all 0) by the s that makes its largest entry least, in distance
 * from 0, and returns s. Tried are all s that leave the first entry that is not 0 within 2^16 of 0:
 * combinations with larger weights wrap round the prime for all but the smallest data.
 */
uint32_t sherd__modular_shorten(uint32_t *g, uint32_t len, uint32_t p);

/**
 * All combinations of a coalition's shares that contain no mask, in reduced row echelon form by
 * their data: `rows` of them; row r is sum coef[r][i] * share i = sum weight[r][j] * block j.
 */
typedef struct sherd__unmasked {
    uint32_t rows, members, blocks;
    uint32_t *coef;   /* rows x members */
    uint32_t *weight; /* rows x blocks */
} sherd__unmasked;

/** SHERD_ENOMEM. rows = 0: none, the coalition learns nothing by linear means. */
int sherd__unmasked_find(sherd__unmasked *out, const sherd__seen_code *c, uint32_t prime_index,
                         const uint32_t *members, uint32_t members_len) SHERD_MUST;
void sherd__unmasked_fini(sherd__unmasked *u);
/** The block that row r is a multiple of: its weight is 1 then; UINT32_MAX if it mixes several. */
uint32_t sherd__unmasked_block(const sherd__unmasked *u, uint32_t r);

/** out[i] = sum_m coef[m] * x[m][i] modulo p, i < n. */
void sherd__modular_combine(const uint32_t *coef, const uint32_t *const *x, uint32_t len,
                            uint32_t p, size_t n, uint32_t *out);

#endif
