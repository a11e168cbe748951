/*
 * Fixed point with one power-of-two exponent per tensor. a = rint(x * 2^s), ties to even, with s
 * the largest integer, at most b-1, for which max|a| <= 2^(b-1)-1 (all zero: s = 0). Integer dtypes
 * are taken exactly, with s = 0, and only as wide as their values: small integers in a wide dtype
 * need no residues. The distributed run and the reference both call these functions, so that they
 * cannot round differently.
 */
#ifndef MATRIX_FIXED_H
#define MATRIX_FIXED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "matrix/view.h"
#include "sherd/mat.h"

#define SHERD__FIXED_BITS 17u /* default b */
#define SHERD__FIXED_BITS_MIN 2u
#define SHERD__FIXED_BITS_MAX 53u
#define SHERD__PRIVATE_BITS 26u /* at most, if products modulo primes must hold any value */

typedef struct sherd__fixed {
    int scale;        /* s: a represents a * 2^-s */
    unsigned bits;    /* b: sign and magnitude bits of `bound` */
    bool integers;    /* s = 0 and nothing was rounded */
    uint64_t bound;   /* |a| <= bound, used by plans and range proofs. Floats: from b
                       * alone. Integers: the least 2^j - 1 that holds them, so that j depends on
                       * the data. It determines the number of primes and the width of elements on
                       * the wire, which nodes see */
    uint64_t largest; /* max |a|: depends on the data; a decision based on it reveals it */
    double max_abs;   /* max |x| */
} sherd__fixed;

/**
 * Chooses the exponent for all of v. bits is in [2, 53], or 0: the values of v are whole numbers
 * and are taken exactly (any dtype). `name` is the operand's name in messages. Errors:
 * SHERD_ERANGE, with row, column and value in *d, for NaN or infinity, for a number that is not
 * whole with bits = 0, and for an integer beyond 2^53; SHERD_EINVAL for bits.
 */
int sherd__fixed_choose(sherd_view v, unsigned bits, const char *name, sherd__fixed *out,
                        sherd_diag *d) SHERD_MUST;

/** Does the same for a view that was scanned (matrix/view.h). */
int sherd__fixed_of_scan(sherd_view v, const sherd__scan *scan, unsigned bits, const char *name,
                         sherd__fixed *out, sherd_diag *d) SHERD_MUST;

/** Does sherd__fixed_choose for floats with a known and finite max |x|. bits is in [2, 53]. */
void sherd__fixed_of_peak(double max_abs, unsigned bits, sherd__fixed *out);

/** Checks that integers fit the requested b bits, 2 to 53. Returns SHERD_ERANGE, with the first
 *  value beyond 2^(b-1)-1 in *d. f was chosen for v; rounded floats always fit. */
int sherd__fixed_hold(const sherd__fixed *f, sherd_view v, unsigned bits, const char *name,
                      sherd_diag *d) SHERD_MUST;

/** Sets x[i] = rint(x[i] * 2^s) in place: whole numbers in doubles, zeros positive. */
void sherd__fixed_apply(const sherd__fixed *f, double *x, size_t n);
/** Quantising readers, otherwise like sherd__view_row_f64 and so on. v is the view for which f was
 *  chosen, or a part of it. */
void sherd__fixed_row(const sherd__fixed *f, sherd_view v, size_t r, size_t c0, size_t n,
                      double *out);
/** Does sherd__fixed_row for `count` rows, row[j] to out[j], alternating between them in short
 *  pieces: reading several places of an operand in turn is a third faster than one after the
 *  other. */
void sherd__fixed_turns(const sherd__fixed *f, sherd_view v, const size_t *row, size_t count,
                        size_t c0, size_t n, double *const *out);
void sherd__fixed_gather(const sherd__fixed *f, sherd_view v, size_t r, const uint32_t *cols,
                         size_t n, double *out);
void sherd__fixed_dense(const sherd__fixed *f, sherd_view v, double *out, size_t ld);
/** Rounds x[i] * 2^s stochastically: up with a probability equal to the fraction, by 53 bits of
 *  SplitMix64 over (key, index + i). Whole numbers do not change, and no result exceeds `bound`. */
void sherd__fixed_apply_stochastic(const sherd__fixed *f, uint64_t key, uint64_t index, double *x,
                                   size_t n);

/** The effect of rounding on a tensor: how many nonzero entries became zero, and the largest
 *  |x - a * 2^-s|. All zero for integers. */
typedef struct sherd__fixed_loss {
    uint64_t nonzeros, vanished;
    double max_error, max_abs; /* max_abs: max |x| */
} sherd__fixed_loss;
/** Measures it in one pass over v, with s = scale. */
void sherd__fixed_measure(sherd_view v, int scale, sherd__fixed_loss *out);

/**
 * Converts back: c[i] = c[i] * 2^-(sA+sB), in place, for sums of products that are exact in
 * doubles. It is exact unless the result is outside the range of doubles (it is then infinite, as
 * in float64). Zeros become positive, so that equal results have equal bits however they were
 * summed.
 */
void sherd__fixed_unscale(const sherd__fixed *a, const sherd__fixed *b, double *c, size_t n);

/**
 * Returns the largest difference between an entry of the fixed-point product and the same entry of
 * a float64 product, including both rounding errors. With eA = 2^-(sA+1) (0 for integers), eB
 * likewise, a = max|A|, b = max|B|, u = 2^-53, gamma = k*u/(1-k*u):
 *   k*(eA*b + eB*a + eA*eB)  quantisation, worst case
 *   + u*k*(a+eA)*(b+eB)      the one rounding of the fixed-point result
 *   + gamma*k*a*b            the float64 product (Higham, Accuracy and Stability, 3.1)
 */
double sherd__fixed_product_bound(const sherd__fixed *a, const sherd__fixed *b, size_t k);

#endif
