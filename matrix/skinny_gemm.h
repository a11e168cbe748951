/*
 * Exact products whose left factor has a few rows, as in training by single examples: there is
 * nothing to use twice, so B is rounded where it is read and neither copied nor packed.
 */
#ifndef MATRIX_SKINNY_GEMM_H
#define MATRIX_SKINNY_GEMM_H

#include "matrix/fixed.h"

#define SHERD__SKINNY_ROWS 4u

/** Whether sherd__skinny_exact takes it: few rows, B doubles that lie in rows or in columns, and
 *  fixed point of at most 50 bits. */
bool sherd__skinny_fits(size_t rows, sherd_view b, const sherd__fixed *fb);
/**
 * C = A*B, b.cols wide, in whole numbers: qa is A in fixed point, rows x b.rows; B is rounded as
 * fb says. Every sum must be below 2^53 (sherd__exact_in_f64).
 */
void sherd__skinny_exact(const double *qa, size_t rows, sherd_view b, const sherd__fixed *fb,
                         double *c, size_t ldc);

#endif
