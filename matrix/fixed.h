/*
 * Fixed point: one power-of-two exponent per tensor. a = rint(x * 2^s), ties to even, with s the
 * largest integer, at most b-1, for which max|a| <= 2^(b-1)-1 (all zero: s = 0). Integer dtypes are
 * taken as they are, s = 0, exact, and only as wide as their values: small integers in a wide dtype
 * need no residues. The distributed run and the reference both call these functions,
 * so that they cannot differ in how they round.
 */
#ifndef MATRIX_FIXED_H
#define MATRIX_FIXED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/mat.h"

#define SHERD__FIXED_BITS 17u /* default b */
#define SHERD__FIXED_BITS_MIN 2u
#define SHERD__FIXED_BITS_MAX 53u
#define SHERD__PRIVATE_BITS 26u /* at most, where products modulo primes must hold any value */

typedef struct sherd__fixed {
    int scale;        /* s: a stands for a * 2^-s */
    unsigned bits;    /* b: sign and magnitude bits of `bound` */
    bool integers;    /* s = 0 and nothing was rounded */
    uint64_t bound;   /* |a| <= bound: what plans and range proofs use. Floats: from b alone.
                         Integers: the least 2^j - 1 that holds them, so j is of the data. It
                         decides how many primes and how wide elements travel, which nodes see */
    uint64_t largest; /* max |a| itself: it is of the data, and to act on it tells it */
    double max_abs;   /* max |x| */
} sherd__fixed;

/**
 * Chooses the exponent for all of v. bits in [2, 53], or 0: v's values are whole numbers and are
 * to be taken exactly (any dtype).
 * SHERD_ERANGE naming row, column and value: NaN or infinity; bits = 0 and not a whole number; an
 * integer beyond 2^53. SHERD_EINVAL: bits. `name` is the operand's name in messages.
 */
int sherd__fixed_choose(sherd_view v, unsigned bits, const char *name, sherd__fixed *out,
                        sherd_diag *d) SHERD_MUST;

/** sherd__fixed_choose for floats of which max |x| is known, and finite. bits in [2, 53]. */
void sherd__fixed_of_peak(double max_abs, unsigned bits, sherd__fixed *out);

/** Whether integers fit b bits that somebody asked for, 2 to 53: SHERD_ERANGE naming the first that
 *  is beyond 2^(b-1)-1. f was chosen for v; rounded floats always fit. */
int sherd__fixed_hold(const sherd__fixed *f, sherd_view v, unsigned bits, const char *name,
                      sherd_diag *d) SHERD_MUST;

/** x[i] = rint(x[i] * 2^s) in place: whole numbers in doubles, zeros positive. */
void sherd__fixed_apply(const sherd__fixed *f, double *x, size_t n);
/** Row readers like sherd__view_row_f64 and so on, quantised. v is the view f was chosen for, or a
 *  part of it. */
void sherd__fixed_row(const sherd__fixed *f, sherd_view v, size_t r, size_t c0, size_t n,
                      double *out);
/** sherd__fixed_row of `count` rows, row[j] to out[j], by turns in short pieces: several places of
 *  an operand at once come from memory a third faster than one after the other. */
void sherd__fixed_turns(const sherd__fixed *f, sherd_view v, const size_t *row, size_t count,
                        size_t c0, size_t n, double *const *out);
void sherd__fixed_gather(const sherd__fixed *f, sherd_view v, size_t r, const uint32_t *cols,
                         size_t n, double *out);
void sherd__fixed_dense(const sherd__fixed *f, sherd_view v, double *out, size_t ld);
/** Stochastic rounding of x[i] * 2^s: up with probability the fraction, by 53 bits of SplitMix64
 *  over (key, index + i); whole numbers stay, and nothing passes `bound`. */
void sherd__fixed_apply_stochastic(const sherd__fixed *f, uint64_t key, uint64_t index, double *x,
                                   size_t n);

/** What rounding did to a tensor: how many entries that were not zero became zero, and the largest
 *  |x - a * 2^-s|. Nothing for integers. */
typedef struct sherd__fixed_loss {
    uint64_t nonzeros, vanished;
    double max_error, max_abs; /* max_abs: of x */
} sherd__fixed_loss;
/** One pass over v, with s = scale. */
void sherd__fixed_measure(sherd_view v, int scale, sherd__fixed_loss *out);

/**
 * The way back: c[i] = c[i] * 2^-(sA+sB), in place, for sums of products that are exact in doubles.
 * Exact but where the result leaves the doubles' range (then infinite, as in float64); zeros come
 * out positive, so that equal results have equal bits however they were summed.
 */
void sherd__fixed_unscale(const sherd__fixed *a, const sherd__fixed *b, double *c, size_t n);

/**
 * How far an entry of the fixed-point product may lie from the same entry of a float64 product,
 * both rounding errors included. With eA = 2^-(sA+1) (0 for integers), eB likewise, a = max|A|,
 * b = max|B|, u = 2^-53, gamma = k*u/(1-k*u):
 *   k*(eA*b + eB*a + eA*eB)  quantisation, worst case
 *   + u*k*(a+eA)*(b+eB)      the one rounding of the fixed-point result
 *   + gamma*k*a*b            the float64 product (Higham, Accuracy and Stability, 3.1)
 */
double sherd__fixed_product_bound(const sherd__fixed *a, const sherd__fixed *b, size_t k);

#endif
