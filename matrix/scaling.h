/*
 * Powers of two in front of any multiplier: operands of floats are scaled so that their largest
 * number lies in [1/2, 1), and the product is scaled back. Fixed point alone chooses exponents up
 * to bits - 1, which suits numbers about 1 and loses gradients of a large batch, all of them below
 * 2^-bits. With this in front every tensor has the exponent that its largest number allows.
 *
 * Scaling by powers of two changes no bit of a float product, barring results below 2^-1022.
 */
#ifndef MATRIX_SCALING_H
#define MATRIX_SCALING_H

#include "sherd/multiplier.h"

/**
 * A multiplier that scales and hands on to `inner`, which it takes: sherd_multiplier_free(*out)
 * frees both. A kept operand is scaled as a whole when it is kept. Operands of integers, of nothing
 * but zeros, or with NaN or infinity, and element-wise operations, go on as they are. SHERD_ENOMEM:
 * *out is zeroed then and inner the caller's.
 */
int sherd__scaling_new(sherd_multiplier *out, sherd_multiplier inner, sherd_diag *d) SHERD_MUST;
/** What is behind m if it is one of these, else m. */
sherd_multiplier sherd__scaling_inner(sherd_multiplier m);

#endif
