/*
 * Stochastic rounding in front of any multiplier. Operands of floats are rounded to `bits` here, up
 * or down at random so that the mean is exact, and are then already in fixed point. The inner
 * multiplier, of at least as many bits, rounds nothing. A cluster and this machine therefore round
 * in the same way.
 *
 * The random numbers are a function of (seed, step, tensor, position). There is no state except the
 * step that the caller sets, so that a training that is resumed rounds as if it had not stopped. A
 * tensor is an operand, numbered in the order in which products take them; the position is
 * row-major in the operand as given. The random numbers are not secret: they follow from the
 * rounded values and the operands.
 */
#ifndef MATRIX_ROUNDING_H
#define MATRIX_ROUNDING_H

#include "sherd/multiplier.h"

/**
 * Creates a multiplier that rounds and calls `inner`, which it takes: sherd_multiplier_free(*out)
 * frees both. Kept operands are rounded when they are kept, as step `SHERD__ROUNDING_KEPT` and
 * tensor 0, so that an operand that is kept again later has the same bits. Integer dtypes and
 * element-wise operations are passed on unchanged. bits: 2 to 53; no more than inner's. Errors:
 * SHERD_EINVAL, SHERD_ENOMEM; *out is then zeroed and the caller still owns inner.
 */
int sherd__rounding_new(sherd_multiplier *out, sherd_multiplier inner, unsigned bits,
                        const uint8_t seed[32], sherd_diag *d) SHERD_MUST;

#define SHERD__ROUNDING_KEPT UINT64_MAX

/** Sets the step of the training: the next operand is tensor 0 of this step. It has no effect on a
 *  multiplier that sherd__rounding_new did not create. */
void sherd__rounding_step(sherd_multiplier m, uint64_t step);

#endif
