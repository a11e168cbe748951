/*
 * The only door to BLAS. Validates shapes (a wrong one kills the process inside OpenBLAS or is
 * silently ignored), splits what does not fit a 32-bit blasint, and takes the rank-1 and thin cases
 * that BLAS is slow at. One product at a time: OpenBLAS serialises, and so should callers.
 */
#ifndef MATRIX_GEMM_H
#define MATRIX_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/**
 * C = A*B + beta*C; A is n x k, B is k x m, C is n x m, all row-major f64 with leading dimensions
 * lda >= k, ldb >= m, ldc >= m. Any dimension may be 0 (k = 0: C = beta*C). beta = 0 writes C
 * without reading it, so that garbage or NaN in it does not matter. C overlaps neither A nor B.
 *
 * Which of several correctly rounded orders of summation is used depends on shape, CPU and threads:
 * bits are promised only where every partial sum is an integer below 2^53.
 * SHERD_EINVAL: a leading dimension is too small, or a size wraps. SHERD_ENOMEM: address space is
 * too short for BLAS's buffer; C is as it was.
 */
int sherd__gemm_f64(size_t n, size_t k, size_t m, const double *a, size_t lda, const double *b,
                    size_t ldb, double beta, double *c, size_t ldc) SHERD_MUST;

/** C = A^T*B + beta*C, the same otherwise: A lies as k x n with lda >= n. */
int sherd__gemm_t_f64(size_t n, size_t k, size_t m, const double *a, size_t lda, const double *b,
                      size_t ldb, double beta, double *c, size_t ldc) SHERD_MUST;

/** BLAS threads of this process; 0 is taken as 1, and fewer are begun where address space for their
 *  buffers is short. */
void sherd__blas_threads_set(unsigned threads);
unsigned sherd__blas_threads(void);
/** Whether several threads of a process may multiply at once, each for itself: not by an OpenBLAS
 *  that is built for one thread, nor by one whose threads are OpenMP's, of which each would have
 *  a team. */
bool sherd__blas_by_many(void);
/** OpenBLAS's core name ("SkylakeX"); never NULL, borrowed for ever. */
const char *sherd__blas_core(void);
/** Calls that reached BLAS in this process so far: tests prove with it where products happen. */
uint64_t sherd__blas_calls(void);

/**
 * Products of awkward shapes and worst-case values against an int64 loop, through every path of
 * both functions above. SHERD_EDEVICE naming the first wrong element: such a BLAS must not be used.
 * 30 to 40 ms of processor time.
 */
int sherd__gemm_selftest(sherd_diag *d) SHERD_MUST;
/** Billions of floating-point operations a second of sherd__gemm_f64, best of a few at dim^3;
 *  0 where memory is short. */
double sherd__gemm_gflops(size_t dim);

#endif
