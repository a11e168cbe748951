/*
 * Element-wise functions whose bits are promised: the same on every CPU, compiler flag and vector
 * width, because they are built from IEEE operations in one fixed order (fma only where written).
 * exp, tanh, sigmoid and log are within 1 ulp of the true value. NaN, infinities, signed zeros and
 * denormals as numpy gives them; a NaN that comes out is always the same quiet one.
 */
#ifndef MATRIX_FUNCS_H
#define MATRIX_FUNCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/multiplier.h"

/* out may be x (or a, b) itself; it overlaps them in no other way. */
void sherd__exp_f64(const double *x, size_t n, double *out);
void sherd__log_f64(const double *x, size_t n, double *out);
void sherd__tanh_f64(const double *x, size_t n, double *out);
void sherd__sigmoid_f64(const double *x, size_t n, double *out); /* 1/(1+exp(-x)); -800: 0-ish */
void sherd__relu_f64(const double *x, size_t n, double *out);    /* np.maximum(x, 0): NaN stays */
void sherd__square_f64(const double *x, size_t n, double *out);
void sherd__minus_f64(const double *a, const double *b, size_t n, double *out);
void sherd__times_f64(const double *a, const double *b, size_t n, double *out);

/* The same of floats, to the same promise; within 0.501 ulp. */
void sherd__exp_f32(const float *x, size_t n, float *out);
void sherd__tanh_f32(const float *x, size_t n, float *out);
void sherd__sigmoid_f32(const float *x, size_t n, float *out);
void sherd__relu_f32(const float *x, size_t n, float *out);

/** 1 or 2 operands for a sherd_op number (sherd/multiplier.h); 0: not an element-wise operation. */
unsigned sherd__map_arity(uint32_t op);
/** "sigmoid"; NULL for a number that is no element-wise operation. */
const char *sherd__map_name(uint32_t op);
/** The number of a name ("multiply" is SHERD_TIMES, as numpy calls it); 0 if unknown. */
uint32_t sherd__map_find(const char *name);
/** Applies op to n elements; b is NULL exactly for one operand. SHERD_EINVAL otherwise. */
int sherd__map_f64(uint32_t op, const double *a, const double *b, size_t n, double *out) SHERD_MUST;

/** Test hook: 1 any x86-64, 2 AVX2 and FMA, 3 AVX-512, 0 the best there is. False, and nothing
 *  changed, where this CPU has no such instructions. */
bool sherd__funcs_force(unsigned level);

#endif
