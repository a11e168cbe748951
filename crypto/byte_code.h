/*
 * What codes over primes below 256 need at the coordinator: residues of quantised numbers, weighted
 * sums of residues, projections for Freivalds' check, and the Chinese remainder theorem. A residue
 * is one byte in [0, p); where a function says so, it is signed, in [-(p-1)/2, (p-1)/2]
 * (matrix/residue_bytes.h). Where a function takes the number of primes, they are the first ones of
 * sherd__byte_primes; where it takes p, any odd p from 3 to 255 is allowed.
 *
 * Every function has the same results on every processor, by the path that sherd__bytes_path_here
 * names. Its time does not depend on the numbers. No operand needs an alignment.
 */
#ifndef CRYPTO_BYTE_CODE_H
#define CRYPTO_BYTE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "matrix/residue_bytes.h"
#include "sherd/err.h"

/** Vectors on each side of a check. */
#define SHERD__BYTE_CHECKS 16u
/** Terms of a weighted sum, at most. */
#define SHERD__BYTE_TERMS 512u

/** Sets out[q*stride + i] = x[i] mod the q-th prime, for `len` primes. x holds whole numbers |x| <
 *  2^31. */
void sherd__bytes_reduce(const double *x, size_t n, uint32_t len, size_t stride, uint8_t *out);

/**
 * Computes out[i] = sum_j w[i*terms + j] * in[j] modulo p for `sums` sums of `terms` rows of n
 * bytes. w is signed; out[i] is signed if `is_signed`, and NULL where a sum is not wanted. Any
 * bytes in `in` have a defined sum, those that are no residues as well. out overlaps nothing.
 */
void sherd__bytes_combine(const int8_t *w, uint32_t sums, uint32_t terms, uint32_t p,
                          bool is_signed, const uint8_t *const *in, size_t n, uint8_t *const *out);

/** Returns whether all bytes are below p. */
bool sherd__bytes_below(const uint8_t *in, size_t n, uint32_t p);

/**
 * Adds R^T*X to acc: acc[v*acc_ld + j] += sum_i r[v*r_ld + i] * x[i*ld + j] for
 * v < SHERD__BYTE_CHECKS, i < rows, j < cols. r is signed, x unsigned. The sums of all calls hold
 * 65,536 rows.
 */
void sherd__bytes_project(const int8_t *r, size_t r_ld, const uint8_t *x, size_t rows, size_t cols,
                          size_t ld, int32_t *acc, size_t acc_ld);
/** Sets out[i] = acc[i] mod p. out is signed if `is_signed`. */
void sherd__bytes_settle(const int32_t *acc, size_t n, uint32_t p, bool is_signed, uint8_t *out);

/** The Chinese remainder theorem for the first `len` primes: x is represented by
 *  in[q] = x * fold[q] mod p_q. The factors belong into the weights of the sum before. */
typedef struct sherd__bytes_crt {
    uint32_t len;                     /* 1 to 8 */
    uint8_t fold[SHERD__BYTE_PRIMES]; /* inverse of M/p_q modulo p_q, M the product of the primes */
} sherd__bytes_crt;

/** Sets the factors. len is in 1..8. */
void sherd__bytes_crt_init(sherd__bytes_crt *c, uint32_t len);
/** Returns the least number of primes, at least 1, whose product M is large enough for a sum of k
 *  products of factors up to a and b in magnitude: k*a*b <= (M-1)/2 - (M >> 40), which makes
 *  recombination exact. Returns 0 if eight are not enough. */
uint32_t sherd__bytes_primes_needed(size_t k, uint64_t a, uint64_t b);
/** Sets out[i] = x[i] * 2^-scale, where |x| is at most what sherd__bytes_primes_needed allows for
 *  this number of primes. x is rounded once (ties to even) and then scaled: results beyond the
 *  range of doubles are infinite, and subnormal ones are rounded again. Zeros are positive. */
void sherd__bytes_crt_f64(const sherd__bytes_crt *c, const uint8_t *const *in, size_t n, int scale,
                          double *out);

#endif
