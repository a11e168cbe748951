/*
 * Scaling by powers of two in front of any multiplier. Operands of floats are scaled so that their
 * largest number is in [1/2, 1), and the product is scaled back. Fixed point alone chooses
 * exponents up to bits - 1, which suits numbers about 1 but loses the gradients of a large batch,
 * all of them below 2^-bits. With scaling every tensor has the exponent that its largest number
 * permits.
 *
 * Scaling by powers of two changes no bit of a float product, except for results below 2^-1022.
 */
#ifndef MATRIX_SCALING_H
#define MATRIX_SCALING_H

#include "sherd/multiplier.h"

/**
 * Creates a multiplier that scales and calls `inner`, which it takes: sherd_multiplier_free(*out)
 * frees both. A kept operand is scaled as a whole when it is kept. Operands of integers, of zeros
 * only, or with NaN or infinity, and element-wise operations, are passed on unchanged. Errors:
 * SHERD_ENOMEM; *out is then zeroed and the caller still owns inner.
 */
int sherd__scaling_new(sherd_multiplier *out, sherd_multiplier inner, sherd_diag *d) SHERD_MUST;
/** Returns the inner multiplier if m was created by sherd__scaling_new, else m. */
sherd_multiplier sherd__scaling_inner(sherd_multiplier m);

#endif
