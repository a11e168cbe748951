/*
 * Sparse times dense: the entries of A row by row, each with its column, instead of A. What a node
 * uses for a panel that is mostly zeros (docs/PROTOCOL.md, CSR) where this beats expanding it for
 * BLAS. One thread; a multiplication and an addition per entry, each rounded, in ascending order of
 * columns: the same bits on every CPU.
 */
#ifndef MATRIX_SPARSE_H
#define MATRIX_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One thread of this does as many multiplications that count in a second as one thread of dgemm
 *  does of all kinds, times this; see sherd__sparse_pays. */
#define SHERD__SPARSE_SPEED 0.3

/** Doubles of room that an inner size of k asks for. */
#define SHERD__SPARSE_ROOM(k) (32 * (size_t)(k))

/**
 * C = A*B, or C += A*B; A is n x k: count[i] entries of row i, which follow one another in index
 * and value: B's row (below k) and the factor. B is k x m; ldb, ldc >= m. C overlaps nothing. room:
 * scratch of SHERD__SPARSE_ROOM(k) doubles, or NULL, which is slower.
 */
void sherd__sparse_f64(size_t n, size_t k, size_t m, const uint32_t *count, const uint32_t *index,
                       const double *value, const double *b, size_t ldb, bool add, double *c,
                       size_t ldc, double *room);

/**
 * Whether sherd__sparse_f64 should beat sherd__gemm_f64 on `threads` threads for so many entries in
 * rows x cols. By a measured constant and not by the clock of the day, so that a node gives the
 * same bits tomorrow.
 */
bool sherd__sparse_pays(uint64_t entries, uint64_t rows, uint64_t cols, unsigned threads);

#endif
