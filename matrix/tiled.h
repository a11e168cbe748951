/*
 * Products for training on this machine: float or double, operands of any layout and of a few types
 * read as they are (no copy of a transpose, none of bytes as doubles), several threads, and a
 * finishing step on each part of the result while it is in cache. matrix/gemm.h stays the door for
 * exact products and for those of nodes.
 */
#ifndef MATRIX_TILED_H
#define MATRIX_TILED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/team.h"
#include "sherd/mat.h"

/** Memory for panels; grows as products ask for it. Zeroed at first. One product at a time. */
typedef struct sherd__tiled_room {
    void *memory, *turned;
    size_t size, turned_size;
} sherd__tiled_room;

void sherd__tiled_room_fini(sherd__tiled_room *room);

typedef struct sherd__tiled {
    sherd_dtype type; /* SHERD_F64 or SHERD_F32: of C, and what operands are turned into */
    sherd_view a, b;  /* n x k and k x m, such that sherd__tiled_takes says yes */
    void *c;          /* n x m, row-major, overlaps neither; aligned as its type. NULL: only
                         `finish` gets to see it */
    size_t ldc;       /* m or more */
    /** Called once for each part of C, when it is complete, by any thread: rows x cols, its first
     *  element at `c`, being (row, col) of C, rows ld apart. All parts together are C. NULL:
     *  nothing. */
    void (*finish)(void *ctx, size_t row, size_t col, size_t rows, size_t cols, void *c, size_t ld);
    void *ctx;
    bool add; /* C += A*B; then c is not NULL */
    /** In fixed point alone (matrix/local.h). max |x| of an operand, 0 where nobody knows, and then
     *  it is found and left there; of C as `finish` leaves it, 0 where that is not finite. NULL:
     *  neither known nor wanted. */
    double *peak_a, *peak_b, *peak_c;
    const void *beside; /* n x m, rows ldc apart, of C's type: what `finish` reads beside C, and so
                           is fetched while a part is made. NULL: nothing */
} sherd__tiled;

/** A dtype of f64, f32 or u8, with rows or columns whose elements lie together. */
bool sherd__tiled_takes(sherd_view v);

/**
 * C = A*B, or C += A*B, the sum added to C piece by piece. Sums go by ascending k, in pieces whose
 * cuts depend on k alone, in chains of fused multiply-adds where the processor has them: the bits
 * depend on values and the processor's instruction set, not on threads, layouts or other elements.
 * team may be NULL.
 * SHERD_ENOMEM; C is undefined then. SHERD_EINVAL: another type.
 */
int sherd__tiled_multiply(const sherd__tiled *p, sherd__team *team,
                          sherd__tiled_room *room) SHERD_MUST;

/** Test hook, as sherd__funcs_force (matrix/funcs.h): 0 the best there is, 1 to 3. */
bool sherd__tiled_force(unsigned level);

#endif
