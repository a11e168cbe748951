/* What matrix/tiled.c and its kernels share. */
#ifndef MATRIX_TILED_INTERNAL_H
#define MATRIX_TILED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The inner dimension is cut into equal pieces of at most so many bytes: a piece of a panel of A
 *  and one of B stay in a first cache of 48 KB. */
#define SHERD__TILED_BYTES 1024u
/** Bytes from one row of a panel of A to the next where rows are kept as rows: not a power of two,
 *  whose multiples would share cache sets. */
#define SHERD__TILED_STRIDE (SHERD__TILED_BYTES + 64u)
/** Numbers from one column to the next where they are kept as columns; no tile has more rows. */
#define SHERD__TILED_ROWS 16u

typedef double __attribute__((aligned(1), may_alias)) f64_any;
typedef float __attribute__((aligned(1), may_alias)) f32_any;
typedef uint8_t __attribute__((may_alias)) u8_any;

/** Addresses that will be read soon, one for each step of a kernel. */
typedef struct sherd__ahead {
    const char *at;
    ptrdiff_t stride; /* in bytes */
} sherd__ahead;

/** rows x cols of C (+)= a panel of A times one of B, over k steps. */
typedef void sherd__tiles_fn(unsigned rows, unsigned cols, size_t k, const void *a, const void *b,
                             void *c, size_t ldc, bool add, sherd__ahead next);

/** How panels are made of operands of one dtype. Strides in elements. */
typedef struct sherd__tiles_reader {
    /** n numbers in a row. */
    void (*row)(const void *from, size_t n, void *to);
    /** k rows of n numbers, each `width` wide in the panel, zeros behind. */
    void (*strip)(const void *from, ptrdiff_t stride, size_t k, size_t n, size_t width, void *to);
    /** The same of a matrix that lies transposed: n rows of k numbers. */
    void (*turned)(const void *from, ptrdiff_t stride, size_t k, size_t n, size_t width, void *to);
} sherd__tiles_reader;

enum { SHERD__READS_F64, SHERD__READS_F32, SHERD__READS_U8, SHERD__READS };

/** Kernels of one type for one set of instructions. */
typedef struct sherd__tiles {
    unsigned rows, cols; /* of the largest tile */
    size_t size;         /* bytes of a number */
    sherd__tiles_fn *by_rows, *by_columns; /* how A's panel lies */
    sherd__tiles_reader readers[SHERD__READS];
} sherd__tiles;

/** level 1 any x86-64 (and other processors), 2 AVX2 and FMA, 3 AVX-512; NULL where not built. */
const sherd__tiles *sherd__tiles_f64(unsigned level);
const sherd__tiles *sherd__tiles_f32(unsigned level);

#endif
