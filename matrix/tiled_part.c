/*
 * One part of a product: the order in which panels are multiplied, and where they are stored. An
 * operand of the product's own type is read in place, unless its rows share cache sets in the
 * first-level cache. All others are converted to panels, once beforehand if several parts need
 * them. The kernels prefetch streamed data into the second-level cache one panel ahead; data that
 * are used repeatedly stay there. In each of the orders an element is summed by ascending pieces.
 */
#include <stdint.h>
#include <string.h>

#include "core/pieces.h"
#include "matrix/tiled_internal.h"

#define LINE SHERD__TILED_LINE

static const void *element(const sherd_view *v, size_t r, size_t c)
{
    ptrdiff_t at = (ptrdiff_t)r * v->row_stride + (ptrdiff_t)c * v->col_stride;
    return (const char *)v->data + at * (ptrdiff_t)sherd_dtype_size(v->dtype);
}

/* ---- panels ---------------------------------------------------------------------------------- */

/* A piece of a panel: its first number, and the distance to the next step (of B, or of A by
 * columns) or row (of A by rows). */
typedef struct panel {
    const void *at;
    size_t stride;
} panel;

static size_t row_of(const sherd__tiled_job *j, size_t r)
{
    return sherd__tiled_from(j->row_cuts, r);
}

static size_t step_of(const sherd__tiled_job *j, size_t piece)
{
    return sherd__tiled_from(j->depth_cuts, piece);
}

static void pack_a(const sherd__tiled_job *j, size_t piece, size_t r, char *to)
{
    size_t row = row_of(j, r), rows = row_of(j, r + 1) - row;
    size_t l = step_of(j, piece), k = step_of(j, piece + 1) - l;
    if (!j->a_rows) {
        /* The following rows are read too if they exist: a fixed width is faster. */
        if (row + SHERD__TILED_ROWS <= j->n) rows = SHERD__TILED_ROWS;
        j->read_a->strip(element(&j->p->a, row, l), j->p->a.col_stride, k, rows, SHERD__TILED_ROWS,
                         to);
        return;
    }
    for (size_t i = 0; i < rows; i++)
        j->read_a->row(element(&j->p->a, row + i, l), k, to + i * SHERD__TILED_STRIDE);
}

static void pack_b(const sherd__tiled_job *j, size_t piece, size_t c, char *to)
{
    size_t col = c * j->t->cols, cols = sherd__least(j->m - col, j->t->cols);
    size_t l = step_of(j, piece), k = step_of(j, piece + 1) - l;
    if (j->b_rows)
        j->read_b->strip(element(&j->p->b, l, col), j->p->b.row_stride, k, cols, j->t->cols, to);
    else j->read_b->turned(element(&j->p->b, l, col), j->p->b.col_stride, k, cols, j->t->cols, to);
}

void sherd__tiled_share(void *ctx, size_t i, unsigned thread)
{
    const sherd__tiled_job *j = ctx;
    size_t in_a = j->share_a ? j->rows * j->depths : 0, cols = j->cols - j->shared_b;
    (void)thread;
    if (i < in_a) pack_a(j, i / j->rows, i % j->rows, j->all_a + i * j->slot_a);
    else
        pack_b(j, (i - in_a) / cols, j->shared_b + (i - in_a) % cols,
               j->all_b + (i - in_a) * j->slot_b);
}

/* Returns a panel of A. It is packed into `own` if it is neither read in place nor converted
 * beforehand. */
static panel panel_of_a(const sherd__tiled_job *j, size_t piece, size_t r, char *own)
{
    size_t packed = j->a_rows ? SHERD__TILED_STRIDE / j->t->size : SHERD__TILED_ROWS;
    if (j->direct_a)
        return (panel){ element(&j->p->a, row_of(j, r), step_of(j, piece)),
                        (size_t)(j->a_rows ? j->p->a.row_stride : j->p->a.col_stride) };
    if (j->share_a) return (panel){ j->all_a + (piece * j->rows + r) * j->slot_a, packed };
    pack_a(j, piece, r, own);
    return (panel){ own, packed };
}

static panel panel_of_b(const sherd__tiled_job *j, size_t piece, size_t c, char *own)
{
    if (c >= j->shared_b)
        return (panel){ j->all_b + (piece * (j->cols - j->shared_b) + c - j->shared_b) * j->slot_b,
                        j->t->cols };
    if (j->direct_b)
        return (panel){ element(&j->p->b, step_of(j, piece), c * j->t->cols),
                        (size_t)j->p->b.row_stride };
    pack_b(j, piece, c, own);
    return (panel){ own, j->t->cols };
}

/* ---- prefetching ----------------------------------------------------------------------------- */

static const sherd__ahead nothing = { "", 0 };

/* Returns the addresses that kernel call `i` of a panel of B prefetches for the next panel: a
 * column of cache lines if B is stored by rows, the start of a row of memory if it is stored by
 * columns. */
static sherd__ahead ahead_in_b(const sherd__tiled_job *j, size_t piece, size_t c, size_t i)
{
    size_t in_line = LINE / sherd_dtype_size(j->p->b.dtype), col = c * j->t->cols;
    size_t l = piece < j->depths ? step_of(j, piece) : 0;
    ptrdiff_t size = (ptrdiff_t)sherd_dtype_size(j->p->b.dtype);
    size_t at = col +
                sherd__least(i * in_line, j->t->cols - 1); /* rows may begin anywhere in a line */
    if (piece >= j->depths || c >= j->shared_b) return nothing;
    if (j->b_rows && i * in_line <= j->t->cols && at < j->m)
        return (sherd__ahead){ element(&j->p->b, l, at), j->p->b.row_stride * size };
    if (!j->b_rows && col + i < j->m) return (sherd__ahead){ element(&j->p->b, l, col + i), size };
    return nothing;
}

/* Returns the addresses that kernel call `i` of a panel of A prefetches, of `rows` rows from `at`
 * on: as many lines of one row as the call has steps, then of the next row, and so on along all
 * rows. */
static sherd__ahead along_rows(const char *at, size_t rows, size_t bytes, ptrdiff_t stride,
                               size_t i, size_t k)
{
    size_t from = i / rows * k * LINE;
    if (from >= bytes) return nothing;
    return (sherd__ahead){ at + (ptrdiff_t)(i % rows) * stride + from, LINE };
}

/* Like along_rows, for panel r + 1 of A if it comes next (before `end`); or, if A is available in
 * panels, for the matrix `beside` that finishing panel r reads. */
static sherd__ahead ahead_of_rows(const sherd__tiled_job *j, size_t r, size_t end, size_t i,
                                  size_t k)
{
    size_t size = sherd_dtype_size(j->p->a.dtype), next = row_of(j, r + 1);
    if (j->a_rows && !j->share_a)
        return r + 1 < end ? along_rows(element(&j->p->a, next, 0), row_of(j, r + 2) - next,
                                        j->k * size, j->p->a.row_stride * (ptrdiff_t)size, i, k)
                           : nothing;
    if (!j->p->beside) return nothing;
    size_t row = row_of(j, r), stride = j->p->ldc * j->t->size;
    return along_rows((const char *)j->p->beside + row * stride, next - row, j->m * j->t->size,
                      (ptrdiff_t)stride, i, k);
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Panels [r0, r1) x [c0, c1), and the memory of a thread. */
typedef struct part {
    const sherd__tiled_job *j;
    size_t r0, r1, c0, c1;
    char *own_a, *own_b;
    char *c; /* address of panels r0 and c0 in C, or in memory that replaces it */
    size_t ldc;
} part;

static void add_tile(const part *s, size_t piece, size_t r, size_t c, panel a, panel b,
                     sherd__ahead next)
{
    const sherd__tiled_job *j = s->j;
    size_t row = row_of(j, r), rows = row_of(j, r + 1) - row, col = c * j->t->cols;
    size_t k = step_of(j, piece + 1) - step_of(j, piece);
    size_t at = (row - row_of(j, s->r0)) * s->ldc + col - s->c0 * j->t->cols;
    sherd__tile tile = { .rows = (unsigned)rows,
                         .cols = (unsigned)sherd__least(j->m - col, j->t->cols),
                         .k = k,
                         .a = a.at,
                         .a_stride = a.stride,
                         .b = b.at,
                         .b_stride = b.stride,
                         .c = s->c + at * j->t->size,
                         .ldc = s->ldc,
                         .add = piece > 0 || j->p->add,
                         .next = next };
    (j->a_rows ? j->t->by_rows : j->t->by_columns)(&tile);
}

static void finish(const part *s, size_t r0, size_t r1)
{
    const sherd__tiled_job *j = s->j;
    size_t row = row_of(j, r0), rows = row_of(j, r1) - row, col = s->c0 * j->t->cols;
    size_t cols = sherd__least(j->m, s->c1 * j->t->cols) - col;
    char *c = s->c + (row - row_of(j, s->r0)) * s->ldc * j->t->size;
    for (size_t i = 0; i < rows && j->depths == 0 && !j->p->add; i++)
        memset(c + i * s->ldc * j->t->size, 0, cols * j->t->size);
    if (j->p->finish) j->p->finish(j->p->ctx, row, col, rows, cols, c, s->ldc);
}

/* A stays in the second-level cache, strips of B are streamed. */
static void past_a(const part *s)
{
    const sherd__tiled_job *j = s->j;
    for (size_t c = s->c0; c < s->c1; c++)
        for (size_t piece = 0; piece < j->depths; piece++) {
            bool last = piece + 1 == j->depths;
            size_t next = last ? c + 1 : c;
            panel b = panel_of_b(j, piece, c, s->own_b);
            for (size_t r = s->r0; r < s->r1; r++)
                add_tile(s, piece, r, c, panel_of_a(j, piece, r, NULL), b,
                         next < s->c1 ? ahead_in_b(j, last ? 0 : piece + 1, next, r - s->r0)
                                      : nothing);
        }
    finish(s, s->r0, s->r1);
}

/* B stays in the second-level cache, rows of A are streamed, and those of C are finished one panel
 * after the other. */
static void past_b(const part *s)
{
    const sherd__tiled_job *j = s->j;
    part row = *s;
    for (size_t r = s->r0; r < s->r1; r++) {
        size_t i = 0;
        row.r0 = r;
        if (j->p->c) row.c = s->c + (row_of(j, r) - row_of(j, s->r0)) * s->ldc * j->t->size;
        for (size_t piece = 0; piece < j->depths; piece++) {
            panel a = panel_of_a(j, piece, r, s->own_a);
            size_t k = step_of(j, piece + 1) - step_of(j, piece);
            for (size_t c = s->c0; c < s->c1; c++, i++)
                add_tile(&row, piece, r, c, a, panel_of_b(j, piece, c, NULL),
                         ahead_of_rows(j, r, s->r1, i, k));
        }
        finish(&row, r, r + 1);
    }
}

/* Returns a panel of A of a part; they are stored consecutively if they were packed for this
 * part. */
static panel packed_a(const part *s, size_t piece, size_t r)
{
    const sherd__tiled_job *j = s->j;
    if (j->direct_a || j->share_a) return panel_of_a(j, piece, r, NULL);
    return (panel){ s->own_a + (r - s->r0) * j->slot_a,
                    j->a_rows ? SHERD__TILED_STRIDE / j->t->size : SHERD__TILED_ROWS };
}

/* Neither operand stays in cache for all of k: the product is computed piece by piece, with C in
 * between. B's panels are streamed for each panel of A if they were made beforehand and a piece of
 * them fits the second-level cache, so that C is accessed row by row. Otherwise A's panels are
 * streamed for each panel of B. */
static void by_pieces(const part *s)
{
    const sherd__tiled_job *j = s->j;
    const bool rows_first = s->c0 >= j->shared_b &&
                            (s->c1 - s->c0) * j->slot_b <= SHERD__TILED_SECOND;
    for (size_t piece = 0; piece < j->depths; piece++) {
        for (size_t r = s->r0; r < s->r1 && !j->direct_a && !j->share_a; r++)
            pack_a(j, piece, r, s->own_a + (r - s->r0) * j->slot_a);
        for (size_t r = s->r0; r < s->r1 && rows_first; r++)
            for (size_t c = s->c0; c < s->c1; c++)
                add_tile(s, piece, r, c, packed_a(s, piece, r), panel_of_b(j, piece, c, NULL),
                         nothing);
        for (size_t c = s->c0; c < s->c1 && !rows_first; c++) {
            bool last = c + 1 == s->c1;
            panel b = panel_of_b(j, piece, c, s->own_b);
            for (size_t r = s->r0; r < s->r1; r++)
                add_tile(s, piece, r, c, packed_a(s, piece, r), b,
                         ahead_in_b(j, last ? piece + 1 : piece, last ? s->c0 : c + 1, r - s->r0));
        }
    }
    finish(s, s->r0, s->r1);
}

void sherd__tiled_part(void *ctx, size_t i, unsigned thread)
{
    const sherd__tiled_job *j = ctx;
    char *own = j->own + thread * j->own_size;
    part s = { .j = j,
               .own_a = own,
               .own_b = own + j->own_a,
               .c = own + j->own_a + j->slot_b,
               .ldc = j->own_ldc };
    const size_t row = i / j->col_parts, col = i % j->col_parts;
    const sherd__tiled_cuts rows = sherd__tiled_cut(j->rows, j->row_parts);
    const sherd__tiled_cuts cols = sherd__tiled_cut(j->cols, j->col_parts);
    s.r0 = sherd__tiled_from(rows, row);
    s.r1 = sherd__tiled_from(rows, row + 1);
    s.c0 = sherd__tiled_from(cols, col);
    s.c1 = sherd__tiled_from(cols, col + 1);
    if (j->p->c) {
        s.ldc = j->p->ldc;
        s.c = (char *)j->p->c + (row_of(j, s.r0) * s.ldc + s.c0 * j->t->cols) * j->t->size;
    }
    switch (j->order) {
    case SHERD__PAST_A: past_a(&s); break;
    case SHERD__PAST_B: past_b(&s); break;
    case SHERD__BY_PIECES: by_pieces(&s); break;
    }
}
