/*
 * Blocking around the kernels of tiled_kernel.inc. C is cut into parts, each made by one thread:
 * rows in panels as high as a tile, columns in panels as wide. Panels of A lie in the second
 * cache, a panel of B in the first, both turned into the product's type as they are copied there.
 * An operand that several parts need is brought into panels once, beforehand, if it is small
 * enough; a large one is read again by each part, which costs less than memory for all of it.
 */
#include "matrix/tiled.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "matrix/tiled_internal.h"

#define STRIDE SHERD__TILED_STRIDE
#define ROWS SHERD__TILED_ROWS
#define PANELS 14u              /* of A in a part: with pieces of full depth about 200 KB */
#define SHARED ((size_t)2 << 20) /* bytes of panels that are made beforehand at most */
#define SECOND ((size_t)1 << 20) /* bytes of B's panels that the second cache holds besides A's */
#define SMALL 40000u            /* multiplications that no second thread is woken for */
#define LINE 64u

/* ---- which kernels --------------------------------------------------------------------------- */

static atomic_uint forced;

static bool level_runs(unsigned n)
{
#ifdef __x86_64__
    if (n == 2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (n == 3)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
#endif
    return n == 1;
}

bool sherd__tiled_force(unsigned level)
{
    if (level != 0 && !level_runs(level)) return false;
    atomic_store(&forced, level);
    return true;
}

static const sherd__tiles *tiles_of(sherd_dtype type)
{
    unsigned level = atomic_load_explicit(&forced, memory_order_relaxed);
    if (level == 0) level = level_runs(3) ? 3 : level_runs(2) ? 2 : 1;
    return type == SHERD_F64   ? sherd__tiles_f64(level)
           : type == SHERD_F32 ? sherd__tiles_f32(level)
                               : NULL;
}

/* ---- cuts ------------------------------------------------------------------------------------ */

/* Where piece i of `pieces` nearly equal ones of n begins. */
static size_t cut(size_t n, size_t pieces, size_t i)
{
    size_t each = n / pieces, more = n % pieces;
    return i * each + (i < more ? i : more);
}

static size_t ceil_of(size_t n, size_t by)
{
    return n / by + (n % by != 0);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* ---- operands -------------------------------------------------------------------------------- */

static bool known(sherd_dtype t)
{
    return t == SHERD_F64 || t == SHERD_F32 || t == SHERD_U8;
}

bool sherd__tiled_takes(sherd_view v)
{
    return known(v.dtype) &&
           (v.col_stride == 1 || v.row_stride == 1 || v.cols <= 1 || v.rows <= 1);
}

/* Rows whose elements lie together; with one row or column, whichever is true. */
static bool by_rows(sherd_view v)
{
    return v.col_stride == 1 || v.cols <= 1;
}

static const void *element(const sherd_view *v, size_t r, size_t c)
{
    ptrdiff_t at = (ptrdiff_t)r * v->row_stride + (ptrdiff_t)c * v->col_stride;
    return (const char *)v->data + at * (ptrdiff_t)sherd_dtype_size(v->dtype);
}

static const sherd__tiles_reader *reader_of(const sherd__tiles *t, sherd_dtype dtype)
{
    return &t->readers[dtype == SHERD_F64   ? SHERD__READS_F64
                       : dtype == SHERD_F32 ? SHERD__READS_F32
                                            : SHERD__READS_U8];
}

/* ---- a product ------------------------------------------------------------------------------- */

typedef struct job {
    const sherd__tiled *p;
    const sherd__tiles *t;
    const sherd__tiles_reader *read_a, *read_b;
    bool a_rows, b_rows;        /* how operands lie */
    size_t n, k, m;
    size_t rows, cols, depths;  /* panels of A, panels of B, pieces of k */
    size_t row_parts, col_parts;
    size_t slot_a, slot_b;      /* bytes of a panel's piece */
    bool share_a, share_b;      /* brought into panels beforehand */
    char *all_a, *all_b;        /* then: here, piece by piece */
    char *own;                  /* and for each thread: panels of a part of A, a panel of B */
    size_t own_size;
} job;

static void pack_a(const job *j, size_t panel, size_t piece, char *to)
{
    size_t r = cut(j->n, j->rows, panel), rows = cut(j->n, j->rows, panel + 1) - r;
    size_t l = cut(j->k, j->depths, piece), k = cut(j->k, j->depths, piece + 1) - l;
    if (!j->a_rows) {
        /* Rows that follow are read too where they are: a fixed width is quicker. */
        if (r + ROWS <= j->n) rows = ROWS;
        j->read_a->strip(element(&j->p->a, r, l), j->p->a.col_stride, k, rows, ROWS, to);
        return;
    }
    for (size_t i = 0; i < rows; i++)
        j->read_a->row(element(&j->p->a, r + i, l), k, to + i * STRIDE);
}

static void pack_b(const job *j, size_t panel, size_t piece, char *to)
{
    size_t c = panel * j->t->cols, cols = least(j->m - c, j->t->cols);
    size_t l = cut(j->k, j->depths, piece), k = cut(j->k, j->depths, piece + 1) - l;
    if (j->b_rows)
        j->read_b->strip(element(&j->p->b, l, c), j->p->b.row_stride, k, cols, j->t->cols, to);
    else
        j->read_b->turned(element(&j->p->b, l, c), j->p->b.col_stride, k, cols, j->t->cols, to);
}

/* Index i: one panel's piece of A, and behind those of A, of B. */
static void pack_shared(void *ctx, size_t i, unsigned thread)
{
    const job *j = ctx;
    size_t in_a = j->share_a ? j->rows * j->depths : 0;
    (void)thread;
    if (i < in_a)
        pack_a(j, i % j->rows, i / j->rows, j->all_a + i * j->slot_a);
    else
        pack_b(j, (i - in_a) % j->cols, (i - in_a) / j->cols, j->all_b + (i - in_a) * j->slot_b);
}

/* What kernel call `i` of a panel of B asks for, of the panel that comes next: a column of cache
 * lines, where B's rows are rows; the beginning of a row, where they are columns. */
static sherd__ahead ahead_of(const job *j, size_t panel, size_t piece, size_t i)
{
    size_t in_line = LINE / sherd_dtype_size(j->p->b.dtype), c = panel * j->t->cols;
    size_t l = cut(j->k, j->depths, piece);
    ptrdiff_t size = (ptrdiff_t)sherd_dtype_size(j->p->b.dtype);
    size_t at = c + least(i * in_line, j->t->cols - 1); /* rows may begin anywhere in a line */
    if (j->b_rows && i * in_line <= j->t->cols && at < j->m)
        return (sherd__ahead){ element(&j->p->b, l, at), j->p->b.row_stride * size };
    if (!j->b_rows && c + i < j->m)
        return (sherd__ahead){ element(&j->p->b, l, c + i), size };
    return (sherd__ahead){ j->own, 0 };
}

/* Where a part's panels lie, for one piece of k. */
typedef struct piece_of {
    const job *j;
    size_t piece, k;
    size_t r0, r1, c0, c1; /* panels */
    const char *a, *b;     /* that of r0, that of c0 (or of the one at hand, if not shared) */
} piece_of;

static void add_tile(const piece_of *s, size_t r, size_t c)
{
    const job *j = s->j;
    size_t row = cut(j->n, j->rows, r), rows = cut(j->n, j->rows, r + 1) - row;
    size_t col = c * j->t->cols, size = j->t->size;
    const char *b = s->b + (j->share_b ? (c - s->c0) * j->slot_b : 0);
    sherd__tiles_fn *kernel = j->a_rows ? j->t->by_rows : j->t->by_columns;
    sherd__ahead next = { b, 0 };
    if (!j->share_b && c + 1 < s->c1) next = ahead_of(j, c + 1, s->piece, r - s->r0);
    kernel((unsigned)rows, (unsigned)least(j->m - col, j->t->cols), s->k,
           s->a + (r - s->r0) * j->slot_a, b, (char *)j->p->c + (row * j->p->ldc + col) * size,
           j->p->ldc, s->piece > 0, next);
}

/* Panels [r0, r1) x [c0, c1), one piece of k. All of B's panels that fit the second cache go by for
 * each of A's, so that C is written row by row; else A's go by for each of B's. */
static void add_piece(const job *j, size_t piece, size_t r0, size_t r1, size_t c0, size_t c1,
                      char *own)
{
    piece_of s = { j, piece, cut(j->k, j->depths, piece + 1) - cut(j->k, j->depths, piece),
                   r0, r1, c0, c1, own, own };
    char *own_b = own + (j->share_a ? 0 : (r1 - r0) * j->slot_a);
    if (j->share_a) s.a = j->all_a + (piece * j->rows + r0) * j->slot_a;
    for (size_t r = r0; r < r1 && !j->share_a; r++)
        pack_a(j, r, piece, own + (r - r0) * j->slot_a);
    s.b = j->share_b ? j->all_b + (piece * j->cols + c0) * j->slot_b : own_b;
    if (j->share_b && (c1 - c0) * s.k * j->t->cols * j->t->size <= SECOND) {
        for (size_t r = r0; r < r1; r++)
            for (size_t c = c0; c < c1; c++) add_tile(&s, r, c);
        return;
    }
    for (size_t c = c0; c < c1; c++) {
        if (!j->share_b) pack_b(j, c, piece, own_b);
        for (size_t r = r0; r < r1; r++) add_tile(&s, r, c);
    }
}

static void make_part(void *ctx, size_t i, unsigned thread)
{
    const job *j = ctx;
    const sherd__tiled *p = j->p;
    size_t r0 = cut(j->rows, j->row_parts, i / j->col_parts);
    size_t r1 = cut(j->rows, j->row_parts, i / j->col_parts + 1);
    size_t c0 = cut(j->cols, j->col_parts, i % j->col_parts);
    size_t c1 = cut(j->cols, j->col_parts, i % j->col_parts + 1);
    size_t row = cut(j->n, j->rows, r0), rows = cut(j->n, j->rows, r1) - row;
    size_t col = c0 * j->t->cols, cols = least(j->m, c1 * j->t->cols) - col;
    char *c = (char *)p->c + (row * p->ldc + col) * j->t->size;
    for (size_t piece = 0; piece < j->depths; piece++)
        add_piece(j, piece, r0, r1, c0, c1, j->own + thread * j->own_size);
    for (size_t r = 0; r < rows && j->depths == 0; r++)
        memset(c + r * p->ldc * j->t->size, 0, cols * j->t->size);
    if (p->finish != NULL) p->finish(p->ctx, row, col, rows, cols, c);
}

static bool fits(size_t panels, size_t depths, size_t slot)
{
    size_t bytes;
    return sherd__mul(panels, depths, &bytes) && sherd__mul(bytes, slot, &bytes) && bytes <= SHARED;
}

/* Parts: several for each thread, so that a late one is not waited for with a whole share of the
 * work; cut by columns only where A's panels need not be made again for each. */
static void cut_parts(job *j, unsigned threads)
{
    bool small_a = fits(j->rows, j->depths, j->slot_a);
    bool small_b = fits(j->cols, j->depths, j->slot_b);
    size_t want = threads == 1 ? 1 : (small_a || small_b ? 6 : 2) * (size_t)threads;
    j->row_parts = ceil_of(j->rows, PANELS);
    j->col_parts = small_a ? least(j->cols, ceil_of(want, j->row_parts)) : 1;
    if (j->row_parts * j->col_parts < want)
        j->row_parts = least(j->rows, ceil_of(want, j->col_parts));
    j->row_parts = least(j->rows, ceil_of(j->row_parts, threads) * threads);
    j->share_a = small_a && j->col_parts > 1;
    j->share_b = small_b && j->row_parts > 1;
}

static bool grow(void **memory, size_t *size, size_t need)
{
    if (need <= *size) return true;
    sherd__free(*memory);
    *size = 0;
    *memory = sherd__alloc_large(need);
    if (*memory == NULL) return false;
    *size = need;
    return true;
}

/* Memory for the panels; all sizes are bounded by SHARED and the number of threads. */
static bool make_room(job *j, unsigned threads, sherd__tiled_room *room)
{
    size_t panels = ceil_of(j->rows, j->row_parts);
    size_t a = j->share_a ? j->rows * j->depths * j->slot_a : 0;
    size_t b = j->share_b ? j->cols * j->depths * j->slot_b : 0;
    j->own_size = (j->share_a ? 0 : panels * j->slot_a) + j->slot_b;
    size_t need = LINE + a + b + threads * j->own_size;
    if (!grow(&room->memory, &room->size, need)) return false;
    j->all_a = (char *)room->memory + (LINE - (uintptr_t)room->memory % LINE) % LINE;
    j->all_b = j->all_a + a;
    j->own = j->all_b + b;
    return true;
}

void sherd__tiled_room_fini(sherd__tiled_room *room)
{
    sherd__free(room->memory);
    sherd__free(room->turned);
    *room = (sherd__tiled_room){ 0 };
}

static bool is_small(const job *j)
{
    size_t all;
    return sherd__mul(j->n, most(j->k, 1), &all) && sherd__mul(all, j->m, &all) && all <= SMALL;
}

static int multiply(const sherd__tiled *p, sherd__team *team, sherd__tiled_room *room)
{
    job j = { .p = p, .t = tiles_of(p->type), .n = p->a.rows, .k = p->a.cols, .m = p->b.cols };
    if (j.t == NULL) return SHERD_EINVAL;
    assert(p->a.cols == p->b.rows && p->ldc >= j.m);
    assert(sherd__tiled_takes(p->a) && sherd__tiled_takes(p->b));
    if (j.n == 0 || j.m == 0) return SHERD_OK;
    if (is_small(&j)) team = NULL;
    unsigned threads = sherd__team_threads(team);
    j.read_a = reader_of(j.t, p->a.dtype);
    j.read_b = reader_of(j.t, p->b.dtype);
    j.a_rows = by_rows(p->a);
    j.b_rows = by_rows(p->b);
    j.rows = ceil_of(j.n, j.t->rows);
    j.cols = ceil_of(j.m, j.t->cols);
    j.depths = ceil_of(j.k, SHERD__TILED_BYTES / j.t->size);
    j.slot_a = j.a_rows ? STRIDE * j.t->rows : ROWS * SHERD__TILED_BYTES;
    j.slot_b = SHERD__TILED_BYTES * j.t->cols;
    cut_parts(&j, threads);
    if (!make_room(&j, threads, room)) return SHERD_ENOMEM;
    size_t shared = (j.share_a ? j.rows * j.depths : 0) + (j.share_b ? j.cols * j.depths : 0);
    sherd__team_run(team, shared, pack_shared, &j);
    sherd__team_run(team, j.row_parts * j.col_parts, make_part, &j);
    return SHERD_OK;
}

/* ---- turned products ------------------------------------------------------------------------- */

#define COLUMNS 64u /* of C that are turned at a time */

/* A large B whose columns lie together costs more to turn, panel by panel, than C does when it is
 * small: then B^T A^T is made, and turned. */
static bool better_turned(const sherd__tiled *p)
{
    size_t n = p->a.rows, m = p->b.cols, bytes;
    return !by_rows(p->b) && by_rows(p->a) && m > n && n > 1 && p->a.cols > 16 &&
           sherd__mul(n, m, &bytes) && sherd__mul(bytes, sherd_dtype_size(p->type), &bytes) &&
           bytes <= SHARED;
}

typedef struct turning {
    const sherd__tiled *p;
    const void *from; /* C^T */
} turning;

typedef uint64_t __attribute__((may_alias)) word8;
typedef uint32_t __attribute__((may_alias)) word4;

static void turn_columns(void *ctx, size_t i, unsigned thread)
{
    const turning *t = ctx;
    const sherd__tiled *p = t->p;
    size_t n = p->a.rows, col = i * COLUMNS, cols = least(p->b.cols - col, COLUMNS);
    char *c = (char *)p->c + col * sherd_dtype_size(p->type);
    (void)thread;
    for (size_t r = 0; r < n; r++)
        for (size_t j = 0; j < cols; j++)
            if (p->type == SHERD_F64)
                ((word8 *)(void *)c)[r * p->ldc + j] = ((const word8 *)t->from)[(col + j) * n + r];
            else
                ((word4 *)(void *)c)[r * p->ldc + j] = ((const word4 *)t->from)[(col + j) * n + r];
    if (p->finish != NULL) p->finish(p->ctx, 0, col, n, cols, c);
}

int sherd__tiled_multiply(const sherd__tiled *p, sherd__team *team, sherd__tiled_room *room)
{
    if (p->type != SHERD_F64 && p->type != SHERD_F32) return SHERD_EINVAL;
    if (!better_turned(p)) return multiply(p, team, room);
    size_t n = p->a.rows, m = p->b.cols, need = n * m * sherd_dtype_size(p->type);
    if (!grow(&room->turned, &room->turned_size, need)) return SHERD_ENOMEM;
    sherd__tiled back = { .type = p->type, .a = sherd_view_t(p->b), .b = sherd_view_t(p->a),
                          .c = room->turned, .ldc = n };
    int err = multiply(&back, team, room);
    if (err == 0)
        sherd__team_run(n * m > SMALL ? team : NULL, ceil_of(m, COLUMNS), turn_columns,
                        &(turning){ p, room->turned });
    return err;
}
