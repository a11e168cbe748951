/*
 * Sparse times dense products: A is given by its entries, row by row, each with its column. A node
 * uses it for a panel that is mostly zeros (docs/PROTOCOL.md, CSR) where it is faster than
 * expanding the panel for BLAS. It uses one thread, and one multiplication and one addition per
 * entry, each rounded, in ascending order of columns: the bits are the same on every CPU.
 */
#ifndef MATRIX_SPARSE_H
#define MATRIX_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Speed of this product relative to dgemm, on one thread: multiplications of entries per second
 *  divided by multiplications of dgemm per second; see sherd__sparse_pays. */
#define SHERD__SPARSE_SPEED 0.3

/** Doubles of scratch memory for an inner size of k. */
#define SHERD__SPARSE_ROOM(k) (32 * (size_t)(k))

/**
 * Computes C = A*B, or C += A*B. A is n x k: count[i] is the number of entries of row i. The
 * entries of all rows are consecutive in index and value: B's row (below k) and the factor. B is k
 * x m; ldb, ldc >= m. C must not overlap any input. room: scratch of SHERD__SPARSE_ROOM(k) doubles,
 * or NULL, which is slower.
 */
void sherd__sparse_f64(size_t n, size_t k, size_t m, const uint32_t *count, const uint32_t *index,
                       const double *value, const double *b, size_t ldb, bool add, double *c,
                       size_t ldc, double *room);

/**
 * Returns whether sherd__sparse_f64 should be faster than sherd__gemm_f64 on `threads` threads for
 * this number of entries in rows x cols. It uses a measured constant instead of a measurement at
 * run time, so that a node always gives the same bits.
 */
bool sherd__sparse_pays(uint64_t entries, uint64_t rows, uint64_t cols, unsigned threads);

#endif
