/*
 * Stochastic rounding in front of any multiplier: operands of floats are rounded to `bits` here,
 * up or down by chance so that the mean is right, and what goes on is already in fixed point; the
 * multiplier behind it, of at least as many bits, then rounds nothing. So a cluster and this
 * machine round alike, whoever computes.
 *
 * Chance is a function of (seed, step, tensor, place): no state but where the caller says that it
 * is, so a training that is resumed rounds as if it had not stopped. A tensor is an operand, in the
 * order in which products take them; the place is row-major in the operand as it is given. Nothing
 * secret comes of it: whoever sees rounded values knows them.
 */
#ifndef MATRIX_ROUNDING_H
#define MATRIX_ROUNDING_H

#include "sherd/multiplier.h"

/**
 * A multiplier that rounds and hands on to `inner`, which it takes: sherd_multiplier_free(*out)
 * frees both. Kept operands are rounded when they are kept, as step `SHERD__ROUNDING_KEPT` and all
 * of them as tensor 0: what is kept again later has the same bits. Integer dtypes and element-wise
 * operations go on as they are. bits: 2 to 53; no more than inner's. SHERD_EINVAL, SHERD_ENOMEM:
 * *out is zeroed then and inner the caller's.
 */
int sherd__rounding_new(sherd_multiplier *out, sherd_multiplier inner, unsigned bits,
                        const uint8_t seed[32], sherd_diag *d) SHERD_MUST;

#define SHERD__ROUNDING_KEPT UINT64_MAX

/** Where training is: the next operand is tensor 0 of this step. Nothing happens to a multiplier
 *  that is not of sherd__rounding_new. */
void sherd__rounding_step(sherd_multiplier m, uint64_t step);

#endif
