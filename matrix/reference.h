/*
 * The centralized result that distributed ones are compared with. Exact: the fixed-point
 * specification of matrix/fixed.h, computed here, and again by a plain __int128 triple loop that
 * shares no arithmetic with it, for tests and --check. Float: local dgemm.
 */
#ifndef MATRIX_REFERENCE_H
#define MATRIX_REFERENCE_H

#include <stddef.h>

#include "matrix/exact.h"
#include "matrix/fixed.h"
#include "matrix/operation.h"
#include "matrix/tiled.h"
#include "sherd/mat.h"

/** Returns SHERD_ESHAPE unless a.cols == b.rows; checks both views. `ldc` >= b.cols. */
int sherd__product_shapes(sherd_view a, sherd_view b, size_t ldc, sherd_diag *d) SHERD_MUST;

/**
 * Computes C = A*B in fixed point, n x m row-major. fa and fb come from sherd__fixed_choose. It
 * uses one dgemm while k*|a|*|b| < 2^53 (with the actual maxima: nothing leaves this process), and
 * residues and CRT beyond; the bits do not depend on which. Temporaries: the quantised operands,
 * and beyond 2^53 a row panel. Errors: SHERD_ESHAPE, SHERD_ERANGE (more than four primes),
 * SHERD_ENOMEM.
 */
int sherd__reference_exact(const sherd__matrices *m, const sherd__fixed *fa, const sherd__fixed *fb,
                           sherd_diag *d) SHERD_MUST;
/** Like sherd__reference_exact, from p->a and p->b to p->c, and p->peak_c. p->finish receives whole
 *  rows, a few at a time, on threads of `team` (NULL: the caller's thread only) if there are many.
 *  p->type is SHERD_F64, p->c is not NULL, p->add is false; the other fields of p are ignored. */
int sherd__reference_finished(const sherd__tiled *p, const sherd__fixed *fa, const sherd__fixed *fb,
                              sherd__team *team, sherd_diag *d) SHERD_MUST;
/** Like sherd__reference_exact, by k*n*m multiplications in __int128, element by element: slow,
 *  independent. */
int sherd__reference_i128(const sherd__matrices *m, const sherd__fixed *fa, const sherd__fixed *fb,
                          sherd_diag *d) SHERD_MUST;
/** Computes C = A*B by local dgemm in f64. */
int sherd__reference_float(sherd_view a, sherd_view b, double *c, size_t ldc,
                           sherd_diag *d) SHERD_MUST;

#endif
