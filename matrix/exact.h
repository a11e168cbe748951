/*
 * The number of primes that a product of integers needs, and the recombination of its residues to
 * integers (Garner's form of the Chinese remainder theorem, balanced digits). The range is proved
 * before anything is computed or sent: an overflow modulo the product of the primes is consistent
 * in every residue, so that no later check would detect it.
 */
#ifndef MATRIX_EXACT_H
#define MATRIX_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "matrix/residue.h"
#include "sherd/err.h"

__extension__ typedef __int128 sherd__i128;
__extension__ typedef unsigned __int128 sherd__u128;

/**
 * Computes the smallest r for which k*amax*bmax <= (p_1*...*p_r - 1)/2, |A| <= amax, |B| <= bmax,
 * in integer arithmetic. For k = 0 or a zero bound it is one. Returns SHERD_ERANGE if all primes of
 * the table together do not suffice.
 */
int sherd__exact_primes_needed(size_t k, uint64_t amax, uint64_t bmax, const sherd__primes *table,
                               size_t *primes) SHERD_MUST;
/** Returns whether k*amax*bmax < 2^53, so that one dgemm is exact. */
int sherd__exact_in_f64(size_t k, uint64_t amax, uint64_t bmax);

/** Constants of a recombination. Plain data. */
typedef struct sherd__crt {
    size_t count; /* primes, 1..4 */
    uint32_t p[SHERD__TABLE_PRIMES];
    uint32_t inverse[SHERD__TABLE_PRIMES][SHERD__TABLE_PRIMES]; /* [i][j]: p_j^-1 mod p_i, j < i */
} sherd__crt;

/** Initialises the constants. Returns SHERD_EINVAL unless the primes are distinct and pass
 *  sherd__prime_ok. */
int sherd__crt_init(sherd__crt *crt, const uint32_t *primes, size_t count) SHERD_MUST;
/** Sets out[i] to the integer of least magnitude with residue[q][i] modulo each prime q. Residues
 *  are canonical. */
void sherd__crt_i128(const sherd__crt *crt, const double *const *residue, size_t n,
                     sherd__i128 *out);
/** Like sherd__crt_i128, in doubles times 2^-shift: rounded once, ties to even, then scaled. */
void sherd__crt_f64(const sherd__crt *crt, const double *const *residue, size_t n, int shift,
                    double *out);
/** Sets x[i] = x[i] * 2^-shift for whole numbers x; zeros become positive. */
void sherd__exact_unscale(double *x, size_t n, int shift);
/** Returns the nearest double, ties to even. */
double sherd__i128_f64(sherd__i128 x);

#endif
