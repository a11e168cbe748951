/* Shared by matrix/tiled.c and its kernels. */
#ifndef MATRIX_TILED_INTERNAL_H
#define MATRIX_TILED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "matrix/tiled.h"

/** The inner dimension is divided into equal pieces of at most this many bytes, so that a piece of
 *  a panel of A and one of B fit in a first-level cache of 48 KB. */
#define SHERD__TILED_BYTES 1024u
/** Bytes from one row of a panel of A to the next, if it is stored by rows. It is not a power of
 *  two, since multiples of one would share cache sets. */
#define SHERD__TILED_STRIDE (SHERD__TILED_BYTES + 64u)
/** Numbers from one column to the next, if it is stored by columns; no tile has more rows. */
#define SHERD__TILED_ROWS 16u
#define SHERD__TILED_LINE 64u
/** Bytes of an operand that stays in the second-level cache while the other one is streamed. */
#define SHERD__TILED_SECOND ((size_t)1 << 20)

typedef double __attribute__((aligned(1), may_alias)) f64_any;
typedef float __attribute__((aligned(1), may_alias)) f32_any;
typedef uint8_t __attribute__((may_alias)) u8_any;

/** A kernel is compiled once for each size of its tile, with its loops unrolled. Under a sanitizer
 *  it is one function with loops: the same accesses are checked, and compilers take seconds instead
 *  of minutes. */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHERD__TILED_CHECKED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHERD__TILED_CHECKED
#endif
#ifdef SHERD__TILED_CHECKED
#define SHERD__TILED_EACH __attribute__((noinline))
#define SHERD__TILED_UNROLL
#else
#define SHERD__TILED_EACH inline __attribute__((always_inline))
#define SHERD__TILED_UNROLL _Pragma("GCC unroll 16")
#endif

/** Addresses to prefetch, one for each step of a kernel. */
typedef struct sherd__ahead {
    const char *at;
    ptrdiff_t stride; /* in bytes */
} sherd__ahead;

/** rows x cols of C (+)= a panel of A times one of B, over k steps. B has as many columns as the
 *  tile is wide, even if fewer are used; or as many as one vector holds, if those suffice. */
typedef struct sherd__tile {
    unsigned rows, cols;
    size_t k;
    const void *a, *b;
    size_t a_stride; /* numbers from one row of A to the next (by rows), or step (by columns) */
    size_t b_stride; /* from one step to the next */
    void *c;
    size_t ldc;
    bool add;
    sherd__ahead next;
} sherd__tile;

typedef void sherd__tiles_fn(const sherd__tile *tile);

/** Functions that make panels of operands of one dtype. Strides are in elements. */
typedef struct sherd__tiles_reader {
    /** Converts n numbers of a row. */
    void (*row)(const void *from, size_t n, void *to);
    /** Converts k rows of n numbers, each `width` wide in the panel, padded with zeros. */
    void (*strip)(const void *from, ptrdiff_t stride, size_t k, size_t n, size_t width, void *to);
    /** Like strip, for a matrix that is stored transposed: n rows of k numbers. */
    void (*turned)(const void *from, ptrdiff_t stride, size_t k, size_t n, size_t width, void *to);
} sherd__tiles_reader;

enum { SHERD__READS_F64, SHERD__READS_F32, SHERD__READS_U8, SHERD__READS };

/** Kernels of one type for one instruction set. */
typedef struct sherd__tiles {
    unsigned rows, cols;                   /* of the largest tile */
    size_t size;                           /* bytes of a number */
    sherd__tiles_fn *by_rows, *by_columns; /* by the layout of A's panel */
    sherd__tiles_reader readers[SHERD__READS];
} sherd__tiles;

/** The operand that stays in the second-level cache while the other one is streamed. */
typedef enum sherd__tiled_order {
    SHERD__PAST_A,
    SHERD__PAST_B,
    SHERD__BY_PIECES /* neither fits as a whole */
} sherd__tiled_order;

/** Nearly equal pieces of a range, the longer ones first. */
typedef struct sherd__tiled_cuts {
    size_t each, more; /* `more` pieces have one element more */
} sherd__tiled_cuts;

static inline sherd__tiled_cuts sherd__tiled_cut(size_t n, size_t pieces)
{
    return (sherd__tiled_cuts){ n / pieces, n % pieces };
}

/** Returns the start of piece i. */
static inline size_t sherd__tiled_from(sherd__tiled_cuts c, size_t i)
{
    return i * c.each + (i < c.more ? i : c.more);
}

/** A product in progress, shared by its parts. */
typedef struct sherd__tiled_job {
    const sherd__tiled *p;
    const sherd__tiles *t;
    const sherd__tiles_reader *read_a, *read_b;
    bool a_rows, b_rows;     /* layout of the operands */
    bool direct_a, direct_b; /* read in place; of B, panels below shared_b */
    bool share_a;            /* A is converted to panels beforehand */
    size_t shared_b;         /* so are the panels of B from this one on */
    size_t n, k, m;
    size_t rows, cols, depths; /* panels of A, panels of B, pieces of k */
    sherd__tiled_cuts row_cuts, depth_cuts;
    size_t row_parts, col_parts;
    sherd__tiled_order order;
    size_t slot_a, slot_b; /* bytes of a panel's piece */
    char *all_a, *all_b;   /* panels made beforehand, piece by piece */
    char *own;             /* per thread: panels of A, one of B, and C if p->c is NULL */
    size_t own_a, own_ldc, own_size;
} sherd__tiled_job;

/** For sherd__team_run, with ctx a job: makes one piece of a shared panel, A's before B's; computes
 *  one part. */
void sherd__tiled_share(void *ctx, size_t i, unsigned thread);
void sherd__tiled_part(void *ctx, size_t i, unsigned thread);

/** Return the kernels of a level: 1 any x86-64 (and other processors), 2 AVX2 and FMA, 3 AVX-512;
 *  NULL if it is not built. */
const sherd__tiles *sherd__tiles_f64(unsigned level);
const sherd__tiles *sherd__tiles_f32(unsigned level);

#endif
