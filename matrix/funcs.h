/*
 * Element-wise functions with reproducible bits: the same on every CPU, with every compiler flag
 * and vector width, because they are built from IEEE operations in one fixed order (fma only where
 * written). exp, tanh, sigmoid and log are within 1 ulp of the true value. NaN, infinities, signed
 * zeros and denormals give numpy's results; a NaN result is always the same quiet NaN.
 */
#ifndef MATRIX_FUNCS_H
#define MATRIX_FUNCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/op.h"

/* out may be equal to x (or a, b); it must not overlap them in any other way. */
void sherd__exp_f64(const double *x, size_t n, double *out);
void sherd__log_f64(const double *x, size_t n, double *out);
void sherd__tanh_f64(const double *x, size_t n, double *out);
void sherd__sigmoid_f64(const double *x, size_t n, double *out); /* 1/(1+exp(-x)); -800: about 0 */
void sherd__relu_f64(const double *x, size_t n, double *out);    /* np.maximum(x, 0): NaN remains */
void sherd__square_f64(const double *x, size_t n, double *out);
void sherd__minus_f64(const double *a, const double *b, size_t n, double *out);
void sherd__times_f64(const double *a, const double *b, size_t n, double *out);

/* The same functions for floats, with the same guarantee; within 0.501 ulp. */
void sherd__exp_f32(const float *x, size_t n, float *out);
void sherd__tanh_f32(const float *x, size_t n, float *out);
void sherd__sigmoid_f32(const float *x, size_t n, float *out);
void sherd__relu_f32(const float *x, size_t n, float *out);

/** Names by sherd_op number, "" for a number that is not an operation; ended by NULL. */
extern const char *const sherd__op_names[];
/** Returns 1 or 2, the operands of a sherd_op number (sherd/op.h); 0 if it is not an
 *  element-wise operation. */
unsigned sherd__map_arity(uint32_t op);
/** Applies op to n elements; b is NULL for one operand and not NULL for two. Returns SHERD_EINVAL
 *  otherwise. */
int sherd__map_f64(uint32_t op, const double *a, const double *b, size_t n, double *out) SHERD_MUST;

/** Test hook: 1 any x86-64, 2 AVX2 and FMA, 3 AVX-512, 0 the best available. Returns false and
 *  changes nothing where this CPU does not have these instructions. */
bool sherd__funcs_force(unsigned level);

#endif
