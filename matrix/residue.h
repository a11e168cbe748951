/*
 * Integers modulo a prime p < 2^23 stored in doubles, so that products run on dgemm. The canonical
 * form is balanced, [-(p-1)/2, (p-1)/2]. On the wire a residue has 3 bytes, little-endian,
 * unsigned, in [0, p).
 *
 * Why it is exact: with h = (p-1)/2 and `block` rows at a time, every partial sum of a block added
 * to a reduced accumulator is an integer below block*h*h + h + 1 <= 2^53, independently of order,
 * threads and CPU. One unit beyond the canonical range breaks this, hence the checks on entry.
 */
#ifndef MATRIX_RESIDUE_H
#define MATRIX_RESIDUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

#define SHERD__RESIDUE_BYTES 3u
#define SHERD__TABLE_PRIMES 4u

/** Primes in the order in which they are used, and the k-block that all of them permit. */
typedef struct sherd__primes {
    uint32_t p[SHERD__TABLE_PRIMES];
    size_t block;
} sherd__primes;

extern const sherd__primes sherd__primes_default; /* 5931641, ...: block 1024 */
extern const sherd__primes sherd__primes_wide;    /* 8388593, ...: block 512 */

/** Returns whether p is a prime in [5, 2^23), which the functions below require. For values from a
 *  peer. */
bool sherd__prime_ok(uint32_t p);
/** Returns the largest power of two of rows that may be summed between reductions, at most 4096. */
size_t sherd__prime_block(uint32_t p);

/** Sets out[i] = x[i] mod p, canonical; x holds integers |x| <= 2^53. out may be x. */
void sherd__residue_from_f64(const double *x, size_t n, uint32_t p, double *out);
/** Returns whether every x is an integer in the canonical range. */
bool sherd__residue_canonical(const double *x, size_t n, uint32_t p);
/** Converts canonical doubles to 3 n bytes. The caller must ensure that values are in the canonical
 *  range. */
void sherd__residue_pack(const double *x, size_t n, uint32_t p, uint8_t *out);
/** Converts n words in [0, 2^24) to 3 n bytes. */
void sherd__residue_pack_words(const int32_t *v, size_t n, uint8_t *out);
/** Converts 3 n bytes to canonical doubles. Returns SHERD_EFRAME if a value is >= p; *bad (may be
 *  NULL) is then its first index, and out is undefined. */
int sherd__residue_unpack(const uint8_t *in, size_t n, uint32_t p, double *out,
                          size_t *bad) SHERD_MUST;

/**
 * Computes C = A*B mod p, canonical. Shapes, leading dimensions and overlap as for sherd__gemm_f64.
 * A and B must hold canonical residues; data from a peer are checked by sherd__residue_unpack. It
 * costs one dgemm plus 0.25 ns per element of C and block.
 */
int sherd__residue_gemm(uint32_t p, size_t n, size_t k, size_t m, const double *a, size_t lda,
                        const double *b, size_t ldb, double *c, size_t ldc) SHERD_MUST;
/** Compares it with int64 on random and worst-case values, for every prime of the tables. Returns
 *  SHERD_EDEVICE on a difference. */
int sherd__residue_selftest(sherd_diag *d) SHERD_MUST;

#endif
