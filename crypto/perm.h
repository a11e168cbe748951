/*
 * Permutations, exposures and row shuffles as pure functions of a 32-byte seed: formats perm-v1,
 * expo-v1, rows-v1 (docs/METADATA.md; tests/oracle/perm_v1.py says the same again in Python).
 *
 * perm-v1. One ChaCha20 key per operation. Row r is a Fisher-Yates shuffle of 0..n-1, downwards:
 * for i = n, n-1, ..., 2 draw d uniform in [0, i) and exchange p[i-1] with p[d]. One 64-bit word
 * serves q draws at once (Brackett-Rozinsky and Lemire, arXiv 2408.06213), q by the first i of
 * them:
 *
 *   i >   2^30  2^19  2^14  2^11  2^9  6   else
 *   q =   1     2     3     4     5    6   i - 1
 *
 * For each of i, i-1, ..., i-q+1: w * i is 128 bits; d is the upper half, the lower half becomes w.
 * Where the w that is left is below 2^64 mod (i * (i-1) * ... * (i-q+1)), all q draws are dropped,
 * before any exchange, and drawn again from the next word; so every order is equally likely.
 * Words are little-endian, in stream order. A row that drops nothing needs W words; row r's first W
 * begin at block r * ceil(W/8) of nonce 0, what it needs beyond these at block 0 of nonce 1+r.
 *
 * Tables have a row for every column of A (element-wise: for every row), whatever --group says:
 * columns that share a permutation use the row of the first among them.
 *
 * Who learns it: the coordinator only. Memory access depends on the secret, so no machine that
 * strangers share may run this.
 */
#ifndef CRYPTO_PERM_H
#define CRYPTO_PERM_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__PERM_LABEL "perm-v1" /* enshuffles */
#define SHERD__EXPO_LABEL "expo-v1" /* exposures */
#define SHERD__ROWS_LABEL "rows-v1" /* --shuffle-rows */

/** --group all; 0 means the same, as in the public options. */
#define SHERD__GROUP_ALL UINT32_MAX

/**
 * key = BLAKE2b-256(key = seed, label, 0x00, op_index as u64 LE); where step > 0, followed by step
 * as u64 LE. Step 0 is the step that a metadata file's tables hold; exposures are always of step 0,
 * since they belong to an operand and outlive a step. The key is a secret: wipe it.
 */
void sherd__perm_key(uint8_t key[32], const uint8_t seed[32], const char *label, uint64_t op_index,
                     uint64_t step);

/** SHA-256("sherd seed-v1", 0x00, seed): binds a file or a certificate to a seed it does not
 *  hold. */
void sherd__seed_commitment(uint8_t out[32], const uint8_t seed[32]);

/** Bytes of an index below n: 1 where n <= 256, 2 where n <= 65536, else 4. */
unsigned sherd__perm_width(uint64_t n);

/**
 * Rows [row0, row0+nrows) of the table under key, each a permutation of 0..n-1, row-major, width
 * (1, 2 or 4, at least sherd__perm_width(n)) bytes an index. `inverse`, unless NULL, gets each
 * row's inverse in the same form. Errors: SHERD_EINVAL (width), SHERD_ENOMEM, SHERD_EINTERNAL
 * (keystream); the outputs then hold no secret that is not theirs, but no defined rows either.
 */
int sherd__perm_rows(const uint8_t key[32], uint64_t row0, size_t nrows, uint32_t n, unsigned width,
                     void *perm, void *inverse) SHERD_MUST;

/** One row as u32. A call costs about 1 us beside the row: for many rows ask sherd__perm_rows. */
int sherd__perm_row(const uint8_t key[32], uint64_t row, uint32_t n, uint32_t *perm) SHERD_MUST;

/**
 * k exposures in [0, nodes) under the expo-v1 key: out[c] is the node that is given column c of A
 * and row c of B (element-wise: position c of every shuffled row). Uniform: a word w of nonce 0
 * each, the upper half of w * nodes, dropped where the lower half is below 2^64 mod nodes.
 * Balanced: with p the perm-v1 row 0 of length k under this key, out[c] = p[c] mod nodes, so that
 * counts differ by at most one.
 * SHERD_EINVAL: nodes = 0, or a balanced k beyond 2^32 - 1.
 */
int sherd__exposures(const uint8_t key[32], size_t k, uint32_t nodes, int balanced,
                     uint32_t *out) SHERD_MUST;
/** How many of them each of the nodes has, in memory that k does not matter to. Errors likewise. */
int sherd__exposure_counts(const uint8_t key[32], size_t k, uint32_t nodes, int balanced,
                           uint64_t *counts) SHERD_MUST;

/**
 * Where a scheme takes its permutations from: a key (sherd__perm_from_key), or the tables of a
 * stored file (scheduler/metadata/metadata.h). row() writes permutation `row` of 0..n-1; 0 or a
 * SHERD_E*.
 */
typedef struct sherd__perm_source {
    int (*row)(void *ctx, uint64_t row, uint32_t n, uint32_t *perm);
    void *ctx;
} sherd__perm_source;

/** The source that derives rows under `key` (borrowed: 32 bytes that outlive the source). */
sherd__perm_source sherd__perm_from_key(const uint8_t *key);

/** W above: the words that a row of n needs when none is dropped. */
uint64_t sherd__perm_words_needed(uint32_t n);

/**
 * The shuffle alone, for tests of drops that a keystream seldom shows: `words` are the row's first
 * sherd__perm_words_needed(n), more() gives every one after these.
 */
typedef struct sherd__perm_words {
    const uint64_t *words;
    uint64_t (*more)(void *ctx);
    void *ctx;
} sherd__perm_words;
void sherd__perm_from_words(const sherd__perm_words *src, uint32_t n, uint32_t *perm);

#endif
