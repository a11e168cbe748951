/*
 * Permutations, exposures and row shuffles as pure functions of a 32-byte seed: formats perm-v1,
 * expo-v1, rows-v1 (docs/METADATA.md; tests/oracle/perm_v1.py is a second implementation in
 * Python).
 *
 * perm-v1. One ChaCha20 key per operation. Row r is a Fisher-Yates shuffle of 0..n-1, downwards:
 * for i = n, n-1, ..., 2 draw d uniform in [0, i) and exchange p[i-1] with p[d]. One 64-bit word
 * gives q draws (Brackett-Rozinsky and Lemire, arXiv 2408.06213), where q depends on the first i of
 * them:
 *
 *   i >   2^30  2^19  2^14  2^11  2^9  6   else
 *   q =   1     2     3     4     5    6   i - 1
 *
 * For each of i, i-1, ..., i-q+1: w * i has 128 bits; d is the upper half, and the lower half
 * becomes w. If the final w is below 2^64 mod (i * (i-1) * ... * (i-q+1)), all q draws are rejected
 * before any exchange and are drawn again from the next word, so that every order is equally
 * likely. Words are little-endian, in stream order. A row without rejections needs W words. The
 * first W words of row r begin at block r * ceil(W/8) of nonce 0; further words are taken from
 * block 0 on of nonce 1+r.
 *
 * Tables have one row for every column of A (element-wise: for every row), independently of
 * --group: columns that share a permutation use the row of the first of them.
 *
 * Who learns it: the coordinator only. Memory accesses depend on the secret, so this must not run
 * on a machine that is shared with untrusted users.
 */
#ifndef CRYPTO_PERM_H
#define CRYPTO_PERM_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__PERM_LABEL "perm-v1" /* enshuffles */
#define SHERD__EXPO_LABEL "expo-v1" /* exposures */
#define SHERD__ROWS_LABEL "rows-v1" /* --shuffle-rows */

/** --group all; 0 has the same meaning, as in the public options. */
#define SHERD__GROUP_ALL UINT32_MAX

/**
 * Computes key = BLAKE2b-256(key = seed, label, 0x00, op_index as u64 LE), followed by step as u64
 * LE if step > 0. The tables of a metadata file are of step 0. Exposures are always of step 0,
 * since they belong to an operand and outlive a step. The key is secret: the caller wipes it.
 */
void sherd__perm_key(uint8_t key[32], const uint8_t seed[32], const char *label, uint64_t op_index,
                     uint64_t step);

/** Computes SHA-256("sherd seed-v1", 0x00, seed), which binds a file or a certificate to a seed
 *  that it does not contain. */
void sherd__seed_commitment(uint8_t out[32], const uint8_t seed[32]);

/** Returns the bytes of an index below n: 1 where n <= 256, 2 where n <= 65536, else 4. */
unsigned sherd__perm_width(uint64_t n);

/**
 * Computes rows [row0, row0+nrows) of the table under key, each a permutation of 0..n-1, row-major,
 * with width (1, 2 or 4, at least sherd__perm_width(n)) bytes per index. `inverse`, unless NULL,
 * receives the inverse of each row in the same form. Errors: SHERD_EINVAL (width), SHERD_ENOMEM,
 * SHERD_EINTERNAL (keystream). The rows are then undefined; the outputs hold no secrets other than
 * parts of these rows.
 */
int sherd__perm_rows(const uint8_t key[32], uint64_t row0, size_t nrows, uint32_t n, unsigned width,
                     void *perm, void *inverse) SHERD_MUST;

/** Computes one row as u32. A call has a fixed cost of about 1 us: for many rows use
 *  sherd__perm_rows. */
int sherd__perm_row(const uint8_t key[32], uint64_t row, uint32_t n, uint32_t *perm) SHERD_MUST;

/**
 * Computes k exposures in [0, nodes) under the expo-v1 key: out[c] is the node that receives column
 * c of A and row c of B (element-wise: position c of every shuffled row). Uniform: each is the
 * upper half of w * nodes for a word w of nonce 0, rejected if the lower half is below 2^64 mod
 * nodes. Balanced: out[c] = p[c] mod nodes, where p is row 0 of perm-v1 with length k under this
 * key, so that counts differ by at most one. Returns SHERD_EINVAL if nodes = 0 or a balanced k is
 * above 2^32 - 1.
 */
int sherd__exposures(const uint8_t key[32], size_t k, uint32_t nodes, int balanced,
                     uint32_t *out) SHERD_MUST;
/** Counts the exposures of each node, in memory that does not depend on k. Errors as for
 *  sherd__exposures. */
int sherd__exposure_counts(const uint8_t key[32], size_t k, uint32_t nodes, int balanced,
                           uint64_t *counts) SHERD_MUST;

/**
 * A source of permutations for a scheme: a key (sherd__perm_from_key), or the tables of a stored
 * file (scheduler/metadata/metadata.h). row() writes permutation `row` of 0..n-1 and returns 0 or a
 * SHERD_E* code.
 */
typedef struct sherd__perm_source {
    int (*row)(void *ctx, uint64_t row, uint32_t n, uint32_t *perm);
    void *ctx;
} sherd__perm_source;

/** Returns the source that derives rows under `key` (borrowed: 32 bytes that must outlive the
 *  source). */
sherd__perm_source sherd__perm_from_key(const uint8_t *key);

/** Returns W above: the number of words of a row of n without rejections. */
uint64_t sherd__perm_words_needed(uint32_t n);

/**
 * Performs the shuffle alone, for tests of rejections that a keystream seldom produces. `words` are
 * the row's first sherd__perm_words_needed(n) words; more() returns each further word.
 */
typedef struct sherd__perm_words {
    const uint64_t *words;
    uint64_t (*more)(void *ctx);
    void *ctx;
} sherd__perm_words;
void sherd__perm_from_words(const sherd__perm_words *src, uint32_t n, uint32_t *perm);

#endif
