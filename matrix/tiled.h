/*
 * Products for training on this machine: float or double, operands of any layout and of several
 * types read in place (without a copy of a transpose or of bytes as doubles), several threads, and
 * a finishing step on each part of the result while it is in cache. matrix/gemm.h remains the
 * interface for exact products and for those of nodes.
 */
#ifndef MATRIX_TILED_H
#define MATRIX_TILED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/team.h"
#include "sherd/mat.h"

/** Memory for panels, which grows as products need it. Zero-initialise it. One product at a
 *  time. */
typedef struct sherd__tiled_room {
    void *memory, *turned;
    size_t size, turned_size;
} sherd__tiled_room;

void sherd__tiled_room_fini(sherd__tiled_room *room);

typedef struct sherd__tiled {
    sherd_dtype type; /* SHERD_F64 or SHERD_F32: of C; operands are converted to it */
    sherd_view a, b;  /* n x k and k x m; sherd__tiled_takes must accept them */
    void *c;          /* n x m, row-major, overlaps neither; aligned as its type. NULL: only
                       * `finish` receives it */
    size_t ldc;       /* at least m */
    /** Called once for each complete part of C, on any thread: rows x cols elements, the first at
     *  `c`, which is (row, col) of C, with rows ld apart. All parts together are C. NULL: not
     *  called. */
    void (*finish)(void *ctx, size_t row, size_t col, size_t rows, size_t cols, void *c, size_t ld);
    void *ctx;
    bool add; /* C += A*B; c must then not be NULL */
    /** For fixed point only (matrix/local.h). max |x| of an operand; if 0, it is unknown, and is
     *  computed and stored here. peak_c: max |x| of C after `finish`, 0 if that is not finite.
     *  NULL: neither known nor wanted. */
    double *peak_a, *peak_b, *peak_c;
    const void *beside; /* n x m, rows ldc apart, of C's type: read by `finish` together with C and
                         * therefore prefetched while a part is computed. NULL: none */
} sherd__tiled;

/** Returns whether v is of dtype f64, f32 or u8 and has contiguous rows or columns. */
bool sherd__tiled_takes(sherd_view v);

/**
 * Computes C = A*B, or C += A*B, adding the sum to C piece by piece. Sums are in order of ascending
 * k, in pieces with boundaries that depend on k alone, in chains of fused multiply-adds where the
 * processor has them. The bits depend on values and the processor's instruction set, not on
 * threads, layouts or other elements. team may be NULL. Errors: SHERD_ENOMEM, with C undefined;
 * SHERD_EINVAL for another type.
 */
int sherd__tiled_multiply(const sherd__tiled *p, sherd__team *team,
                          sherd__tiled_room *room) SHERD_MUST;

/** Test hook, like sherd__funcs_force (matrix/funcs.h): 0 the best available, 1 to 3. */
bool sherd__tiled_force(unsigned level);

#endif
