/*
 * Exact products with a left factor of a few rows, as in training by single examples. No element of
 * B is reused, so B is rounded as it is read and neither copied nor packed.
 */
#ifndef MATRIX_SKINNY_GEMM_H
#define MATRIX_SKINNY_GEMM_H

#include "matrix/fixed.h"

#define SHERD__SKINNY_ROWS 4u

/** Returns whether sherd__skinny_exact accepts the product: few rows, B of doubles stored in rows
 *  or in columns, and fixed point of at most 50 bits. */
bool sherd__skinny_fits(size_t rows, sherd_view b, const sherd__fixed *fb);
/**
 * Computes C = A*B, b.cols wide, in whole numbers: qa is A in fixed point, rows x b.rows; B is
 * rounded according to fb. Every sum must be below 2^53 (sherd__exact_in_f64).
 */
void sherd__skinny_exact(const double *qa, size_t rows, sherd_view b, const sherd__fixed *fb,
                         double *c, size_t ldc);

#endif
