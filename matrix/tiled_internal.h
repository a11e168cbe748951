/* What matrix/tiled.c and its kernels share. */
#ifndef MATRIX_TILED_INTERNAL_H
#define MATRIX_TILED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "matrix/tiled.h"

/** The inner dimension is cut into equal pieces of at most so many bytes: a piece of a panel of A
 *  and one of B stay in a first cache of 48 KB. */
#define SHERD__TILED_BYTES 1024u
/** Bytes from one row of a panel of A to the next where rows are kept as rows: not a power of two,
 *  whose multiples would share cache sets. */
#define SHERD__TILED_STRIDE (SHERD__TILED_BYTES + 64u)
/** Numbers from one column to the next where they are kept as columns; no tile has more rows. */
#define SHERD__TILED_ROWS 16u
#define SHERD__TILED_LINE 64u
/** Bytes of an operand that stays in the second cache while the other one passes by. */
#define SHERD__TILED_SECOND ((size_t)1 << 20)

typedef double __attribute__((aligned(1), may_alias)) f64_any;
typedef float __attribute__((aligned(1), may_alias)) f32_any;
typedef uint8_t __attribute__((may_alias)) u8_any;

/** Addresses that will be read soon, one for each step of a kernel. */
typedef struct sherd__ahead {
    const char *at;
    ptrdiff_t stride; /* in bytes */
} sherd__ahead;

/** rows x cols of C (+)= a panel of A times one of B, over k steps. B has as many columns as the
 *  tile is wide, however many of them count; as many as one vector, where those suffice. */
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
    unsigned rows, cols;                   /* of the largest tile */
    size_t size;                           /* bytes of a number */
    sherd__tiles_fn *by_rows, *by_columns; /* how A's panel lies */
    sherd__tiles_reader readers[SHERD__READS];
} sherd__tiles;

/** Which operand stays in the second cache while the other one passes by. */
typedef enum sherd__tiled_order {
    SHERD__PAST_A,
    SHERD__PAST_B,
    SHERD__BY_PIECES /* neither does as a whole */
} sherd__tiled_order;

/** Nearly equal pieces of a range, the longer ones first. */
typedef struct sherd__tiled_cuts {
    size_t each, more; /* so many pieces have one more */
} sherd__tiled_cuts;

static inline sherd__tiled_cuts sherd__tiled_cut(size_t n, size_t pieces)
{
    return (sherd__tiled_cuts){ n / pieces, n % pieces };
}

/** Where piece i begins. */
static inline size_t sherd__tiled_from(sherd__tiled_cuts c, size_t i)
{
    return i * c.each + (i < c.more ? i : c.more);
}

/** A product as its parts see it. */
typedef struct sherd__tiled_job {
    const sherd__tiled *p;
    const sherd__tiles *t;
    const sherd__tiles_reader *read_a, *read_b;
    bool a_rows, b_rows;     /* how operands lie */
    bool direct_a, direct_b; /* read where they are; of B, panels below shared_b */
    bool share_a;            /* A is brought into panels beforehand */
    size_t shared_b;         /* so are the panels of B from here on */
    size_t n, k, m;
    size_t rows, cols, depths; /* panels of A, panels of B, pieces of k */
    sherd__tiled_cuts row_cuts, depth_cuts;
    size_t row_parts, col_parts;
    sherd__tiled_order order;
    size_t slot_a, slot_b; /* bytes of a panel's piece */
    char *all_a, *all_b;   /* panels made beforehand, piece by piece */
    char *own;             /* for each thread: panels of A, one of B, and C if nobody has it */
    size_t own_a, own_ldc, own_size;
} sherd__tiled_job;

/** For sherd__team_run, ctx a job: one piece of a shared panel, A's before B's; one part. */
void sherd__tiled_share(void *ctx, size_t i, unsigned thread);
void sherd__tiled_part(void *ctx, size_t i, unsigned thread);

/** level 1 any x86-64 (and other processors), 2 AVX2 and FMA, 3 AVX-512; NULL where not built. */
const sherd__tiles *sherd__tiles_f64(unsigned level);
const sherd__tiles *sherd__tiles_f32(unsigned level);

#endif
