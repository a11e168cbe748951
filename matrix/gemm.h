/*
 * The only interface to BLAS. It validates shapes (OpenBLAS ends the process on a wrong shape, or
 * ignores it silently), splits dimensions that do not fit a 32-bit blasint, and computes rank-1 and
 * thin products, at which BLAS is slow. Any thread may call it. Threads that multiply at the same
 * time share BLAS's threads, or take turns where sherd__blas_by_many is false, so a caller gains
 * nothing from several.
 */
#ifndef MATRIX_GEMM_H
#define MATRIX_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/**
 * Computes C = A*B + beta*C. A is n x k, B is k x m, C is n x m, all row-major f64 with leading
 * dimensions lda >= k, ldb >= m, ldc >= m. Any dimension may be 0 (k = 0: C = beta*C). beta = 0
 * writes C without reading it, so that C may contain garbage or NaN. C overlaps neither A nor B.
 *
 * The order of summation depends on shape, CPU and threads; the bits of the result are defined only
 * if every partial sum is an integer below 2^53. Errors: SHERD_EINVAL if a leading dimension is too
 * small or a size wraps; SHERD_ENOMEM if address space is too short for BLAS's buffer, with C
 * unchanged.
 */
int sherd__gemm_f64(size_t n, size_t k, size_t m, const double *a, size_t lda, const double *b,
                    size_t ldb, double beta, double *c, size_t ldc) SHERD_MUST;

/** Computes C = A^T*B + beta*C, otherwise like sherd__gemm_f64: A is stored as k x n with lda >=
 *  n. */
int sherd__gemm_t_f64(size_t n, size_t k, size_t m, const double *a, size_t lda, const double *b,
                      size_t ldb, double beta, double *c, size_t ldc) SHERD_MUST;

/** Sets the number of BLAS threads of this process; 0 is taken as 1, and fewer are started where
 *  address space for their buffers is short. */
void sherd__blas_threads_set(unsigned threads);
unsigned sherd__blas_threads(void);
/** Returns whether several threads of a process may multiply at the same time.
 *  This is false for an OpenBLAS built for one thread, and for one that uses OpenMP, in which each
 *  caller would have a team of threads. */
bool sherd__blas_by_many(void);
/** Returns OpenBLAS's core name ("SkylakeX"), never NULL. The string is static. */
const char *sherd__blas_core(void);
/** Returns the number of calls that reached BLAS in this process. Tests use it to prove where
 *  products are computed. */
uint64_t sherd__blas_calls(void);

/**
 * Compares products of awkward shapes and worst-case values with an int64 loop, through every path
 * of both functions above. Returns SHERD_EDEVICE, with the first wrong element in *d: such a BLAS
 * must not be used. It takes some 5 ms of CPU time.
 */
int sherd__gemm_selftest(sherd_diag *d) SHERD_MUST;
/** Returns the speed of sherd__gemm_f64 in billions of floating-point operations a second, the best
 *  of several runs at dim^3; 0 where memory is short. */
double sherd__gemm_gflops(size_t dim);

#endif
