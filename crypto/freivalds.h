/*
 * Freivalds' check, two-sided and streaming: for secret vectors r, s an answer Y to U*V passes if
 * rT*Y*s = (rT*U)*(V*s). The coordinator reads each element of Y once, while it adds it to the
 * result, and never computes the product. r and s stay with the coordinator; a node that knew them
 * could pass any answer. All kernels take row panels, so that a panel is judged as soon as it is
 * complete.
 *
 * Three arithmetics:
 *   f61  integers modulo q = 2^61-1: exact products of `plain` and `permute`. A wrong Y passes with
 *        probability under 2/q (Schwartz-Zippel: degree 2), whatever the node knows of U and V.
 *   fp   integers modulo p, packed residues: for the coded schemes; 2/p a trial, two at once.
 *   f64  real weights, magnitudes in [1, 2), and a tolerance: catches gross errors only. A single
 *        error passes only below the tolerance. Several errors pass only if their weighted sum is
 *        below it, which a node that does not know the weights cannot arrange: for two errors e, f
 *        in a row the ratio of the weights would have to be -f/e to within tolerance/|e|. (With
 *        weights of +-1 two equal errors would pass half of the time.)
 */
#ifndef CRYPTO_FREIVALDS_H
#define CRYPTO_FREIVALDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rand.h"
#include "sherd/err.h"

/* --- integers modulo q = 2^61 - 1 ------------------------------------------------------------ */

#define SHERD__F61 UINT64_C(0x1fffffffffffffff)

/** Field operations on values below q. */
uint64_t sherd__f61_add(uint64_t a, uint64_t b);
uint64_t sherd__f61_sub(uint64_t a, uint64_t b);
uint64_t sherd__f61_mul(uint64_t a, uint64_t b);
uint64_t sherd__f61_from_i64(int64_t x);

/** Draws n uniform elements, by rejection. */
void sherd__f61_draw(const sherd__entropy *e, size_t n, uint64_t *out);
/** Returns sum a[i]*b[i]. */
uint64_t sherd__f61_dot(const uint64_t *a, const uint64_t *b, size_t n);
/**
 * Sets *out = sum y[i]*s[i] over a row of an answer. y must hold whole numbers |y| < 2^53. Returns
 * SHERD_EFRAME (the peer's fault) and leaves *out unchanged if one is not (NaN, infinity, a
 * fraction, too large).
 */
int sherd__f61_dot_f64(const double *y, const uint64_t *s, size_t n, uint64_t *out) SHERD_MUST;
/** Computes V*s: out[i] = sum_j x(i,j)*s[j] for a row-major rows x cols panel of whole numbers |x|
 *  < 2^53. Returns SHERD_EINVAL if a value is not such a number. */
int sherd__f61_right(const double *x, size_t rows, size_t cols, size_t ld, const uint64_t *s,
                     uint64_t *out) SHERD_MUST;
/** Computes rT*Y*s of a panel of an answer: *acc = *acc + sum_i r[i] * (sum_j y(i,j)*s[j]). Returns
 *  SHERD_EFRAME as sherd__f61_dot_f64 does, with *acc unchanged. */
int sherd__f61_answer(const double *y, size_t rows, size_t cols, size_t ld, const uint64_t *r,
                      const uint64_t *s, uint64_t *acc) SHERD_MUST;

/* --- integers modulo 2^127 - 1 --------------------------------------------------------------- */

/* For sums beyond 61 bits: different integers below 2^126 in magnitude are different elements of
 * this field, so that no error is invisible. Weights stay below 2^61: a wrong answer passes with
 * probability under 2/2^61 (Schwartz-Zippel over the set from which they are drawn). */
__extension__ typedef unsigned __int128 sherd__f127;

sherd__f127 sherd__f127_add(sherd__f127 a, sherd__f127 b);
sherd__f127 sherd__f127_mul(sherd__f127 a, sherd__f127 b);
/** Returns the element of an integer |x| < 2^126. */
__extension__ sherd__f127 sherd__f127_from(__int128 x);

/* --- floats ---------------------------------------------------------------------------------- */

/** Draws n weights of random sign, with magnitudes uniform in [1, 2) (all 52 bits): the bits of the
 *  stream with the exponent of 1. */
void sherd__fv_weights(const sherd__entropy *e, size_t n, double *out);

/**
 * Returns sum y[i]*s[i] over the i with s[i] != 0, in a fixed order (eight lanes), and adds sum
 * |y[i]|*|s[i]| to *abs_acc (may be NULL). An s of 0 masks its element even where y is NaN or
 * infinite.
 */
double sherd__fv_dot_f64(const double *y, const double *s, size_t n, double *abs_acc);
/** Computes V*s and |V||s|: out[i] = x(i,:)*s and out_abs[i] = |x(i,:)|*|s|. */
void sherd__fv_right_f64(const double *x, size_t rows, size_t cols, size_t ld, const double *s,
                         double *out, double *out_abs);
/** Returns rT*Y*s of a panel; rows with r = 0 and columns with s = 0 are skipped. */
double sherd__fv_answer_f64(const double *y, size_t rows, size_t cols, size_t ld, const double *r,
                            const double *s);

/**
 * Masks rows with NaN and infinities in honest data: such a value in a row of U makes the whole row
 * of Y non-finite. These rows are left out of the check (their r is set to 0 here), and the caller
 * reports their number, which is returned; all other values must be finite. x(i,:) belongs to r[i].
 */
size_t sherd__fv_mask_rows(const double *x, size_t rows, size_t cols, size_t ld, double *r);

/** Returns the error that underflow may cause in the n*k*m products of an honest answer and in
 *  their weighting, with weights below 2. It is part of every tolerance. */
double sherd__fv_underflow(size_t n, size_t k, size_t m);

/* --- packed residues modulo p ---------------------------------------------------------------- */

/* Two trials at once, each with vectors of its own: one pass over the data serves both, and a wrong
 * answer passes both with probability below (2/p)^2. All values are canonical residues in doubles,
 * and p passes sherd__prime_ok. */
#define SHERD__FVP_TRIALS 2u

/** Draws n uniform residues in canonical form (doubles), by rejection. */
void sherd__fvp_draw(const sherd__entropy *e, uint32_t p, size_t n, double *out);
/**
 * Sets out[t] = rT*Y*s of trial t, in [0, p), for an answer of rows x cols packed residues. Returns
 * SHERD_EFRAME if a value is >= p. It costs little more than unpacking.
 */
int sherd__fvp_answer(const uint8_t *packed, size_t rows, size_t cols,
                      const double *const r[SHERD__FVP_TRIALS],
                      const double *const s[SHERD__FVP_TRIALS], uint32_t p,
                      uint32_t out[SHERD__FVP_TRIALS]) SHERD_MUST;
/** Returns sum a[i]*b[i] mod p in [0, p). */
uint32_t sherd__fvp_dot(const double *a, const double *b, size_t n, uint32_t p);
/** Computes V*s for row-major residues: out[t][i] = x(i,:)*s[t] mod p, canonical. */
void sherd__fvp_right(const double *x, size_t rows, size_t cols, size_t ld,
                      const double *const s[SHERD__FVP_TRIALS], uint32_t p,
                      double *const out[SHERD__FVP_TRIALS]);
/**
 * Computes rT*U panel after panel: acc[t][j] += sum_i r[t][i]*x(i,j). Sums are reduced only when
 * necessary: *since counts the rows added since acc was canonical. *since and acc are 0 before the
 * first panel; after the last one sherd__residue_from_f64 makes acc canonical again.
 */
void sherd__fvp_left(const double *x, size_t rows, size_t cols, size_t ld,
                     const double *const r[SHERD__FVP_TRIALS], uint32_t p,
                     double *const acc[SHERD__FVP_TRIALS], size_t *since);

typedef struct sherd__fvp_sum {
    uint32_t p;
    const double *r[SHERD__FVP_TRIALS];
    double *acc[SHERD__FVP_TRIALS];
} sherd__fvp_sum;
/** Does sherd__fvp_left for several primes, for each of which x is canonical. It reads x from
 *  memory once for every two primes. */
void sherd__fvp_left_many(const double *x, size_t rows, size_t cols, size_t ld,
                          const sherd__fvp_sum *sum, size_t len, size_t *since);

#endif
