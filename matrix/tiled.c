/*
 * Blocking around the kernels of tiled_kernel.inc. C is divided into parts, each computed by one
 * thread (tiled_part.c): rows in panels of a tile's height, columns in panels of its width. This
 * file decides the number of parts, which operand stays in cache and which is streamed, and the
 * memory for both. An operand that is converted to panels and needed by several parts is converted
 * once, beforehand, if it is small enough. A large one is read again by each part, which costs less
 * than memory for all of it.
 */
#include "matrix/tiled.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/pieces.h"
#include "matrix/tiled_internal.h"

/* Panels of A in a part: about 200 KB with pieces of full depth; twice as many if each part makes
 * panels of B again. */
#define PANELS 14u
#define SHARED ((size_t)2 << 20) /* maximum bytes of panels made beforehand */
#define SECOND SHERD__TILED_SECOND
#define SMALL 40000u /* multiplications for which no second thread is woken */
#define FEW 8u       /* pieces of shared panels for which no second thread is woken */
#define LINE SHERD__TILED_LINE

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

static size_t ceil_of(size_t n, size_t by)
{
    return n / by + (n % by != 0);
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
    return known(v.dtype) && (v.col_stride == 1 || v.row_stride == 1 || v.cols <= 1 || v.rows <= 1);
}

/* Returns whether elements of a row are contiguous; with one row or column both layouts apply. */
static bool by_rows(sherd_view v)
{
    return v.col_stride == 1 || v.cols <= 1;
}

static const sherd__tiles_reader *reader_of(const sherd__tiles *t, sherd_dtype dtype)
{
    return &t->readers[dtype == SHERD_F64   ? SHERD__READS_F64
                       : dtype == SHERD_F32 ? SHERD__READS_F32
                                            : SHERD__READS_U8];
}

/* Returns whether kernels may read v in place: it has numbers of the product's type, in rows that
 * do not fall on a few sets of the first-level cache (a way of it is a page of 4 KB; 8 ways hold a
 * panel's piece). */
static bool direct(sherd_view v, sherd_dtype type, ptrdiff_t stride)
{
    return v.dtype == type && stride > 0 && stride * (ptrdiff_t)sherd_dtype_size(type) % 512 != 0;
}

/* Returns whether n x k numbers take at most `bytes` bytes. */
static bool fits(size_t n, size_t k, size_t size, size_t bytes)
{
    size_t all;
    return sherd__mul(n, k, &all) && sherd__mul(all, size, &all) && all <= bytes;
}

/* ---- a product ------------------------------------------------------------------------------- */

typedef sherd__tiled_job job;

/* Chooses the parts: several for each thread, so that a late thread does not delay the product by a
 * whole share of the work. The smaller operand should stay in cache and the larger one should be
 * read once. If both are large, C is divided by columns only if A's panels need not be made again
 * for each part. A B that is read repeatedly is faster in panels, which have contiguous lines, than
 * in place. */
static void cut_parts(job *j, unsigned threads)
{
    const size_t size = j->t->size;
    bool small_a = fits(j->rows, j->depths, j->slot_a, SHARED);
    bool small_b = fits(j->cols, j->depths, j->slot_b, SHARED);
    bool ready_a = j->direct_a || small_a;
    bool a_stays = ready_a && j->n < j->m && fits(j->n, j->k, size, SECOND);
    bool b_stays = small_b && !a_stays && (j->direct_a || !j->p->c) &&
                   fits(j->m, j->k, size, SECOND);
    bool again = !ready_a && !small_b; /* each part makes panels of B again: few parts */
    size_t want = threads == 1 ? 1 : (again ? 1 : 6) * (size_t)threads;
    j->direct_b = j->direct_b && a_stays;
    j->order = a_stays ? SHERD__PAST_A : b_stays ? SHERD__PAST_B : SHERD__BY_PIECES;
    j->row_parts = a_stays || b_stays ? 1 : ceil_of(j->rows, again ? 2 * PANELS : PANELS);
    j->col_parts = ready_a && !b_stays ? sherd__least(j->cols, ceil_of(want, j->row_parts)) : 1;
    if (j->row_parts * j->col_parts < want)
        j->row_parts = sherd__least(j->rows, ceil_of(want, j->col_parts));
    if (!a_stays) j->row_parts = sherd__least(j->rows, ceil_of(j->row_parts, threads) * threads);
    j->share_a = !j->direct_a && small_a && (j->col_parts > 1 || a_stays);
    j->shared_b = j->direct_b                                ? j->m / j->t->cols
                  : small_b && (j->row_parts > 1 || b_stays) ? 0
                                                             : j->cols;
}

static bool grow(void **memory, size_t *size, size_t need)
{
    if (need <= *size) return true;
    sherd__free(*memory);
    *size = 0;
    *memory = sherd__alloc_pages(need);
    if (!*memory) return false;
    *size = need;
    return true;
}

/* Computes the bytes of C that a thread holds at a time if p->c is NULL: those of a part or, if B
 * stays in cache, of a panel. */
static bool own_c(job *j, size_t *bytes)
{
    size_t panels = j->order == SHERD__PAST_B ? 1 : ceil_of(j->rows, j->row_parts);
    *bytes = 0;
    if (j->p->c) return true;
    j->own_ldc = ceil_of(j->cols, j->col_parts) * j->t->cols;
    return sherd__mul(panels * j->t->rows, j->own_ldc, bytes) &&
           sherd__mul(*bytes, j->t->size, bytes);
}

/* Allocates memory for the panels, bounded by SHARED and the number of threads, and for C. */
static bool make_room(job *j, unsigned threads, sherd__tiled_room *room)
{
    size_t panels = j->direct_a || j->share_a   ? 0
                    : j->order == SHERD__PAST_B ? 1
                                                : ceil_of(j->rows, j->row_parts);
    size_t a = j->share_a ? j->rows * j->depths * j->slot_a : 0, c, need;
    size_t b = (j->cols - j->shared_b) * j->depths * j->slot_b;
    j->own_a = panels * j->slot_a;
    if (!own_c(j, &c) || !sherd__add(c, j->own_a + j->slot_b, &c)) return false;
    j->own_size = c + (LINE - c % LINE) % LINE;
    if (!sherd__mul(j->own_size, threads, &need) || !sherd__add(need, LINE + a + b, &need) ||
        !grow(&room->memory, &room->size, need))
        return false;
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
    if (!j.t) return SHERD_EINVAL;
    assert(p->a.cols == p->b.rows && (!p->c || p->ldc >= j.m));
    assert(sherd__tiled_takes(p->a) && sherd__tiled_takes(p->b) && (p->c || !p->add));
    if (j.n == 0 || j.m == 0) return SHERD_OK;
    if (is_small(&j)) team = NULL;
    unsigned threads = sherd__team_threads(team);
    j.read_a = reader_of(j.t, p->a.dtype);
    j.read_b = reader_of(j.t, p->b.dtype);
    j.a_rows = by_rows(p->a);
    j.b_rows = by_rows(p->b);
    j.direct_a = direct(p->a, p->type, j.a_rows ? p->a.row_stride : p->a.col_stride);
    j.direct_b = j.b_rows && direct(p->b, p->type, p->b.row_stride);
    j.rows = ceil_of(j.n, j.t->rows);
    j.cols = ceil_of(j.m, j.t->cols);
    j.depths = ceil_of(j.k, SHERD__TILED_BYTES / j.t->size);
    j.row_cuts = sherd__tiled_cut(j.n, j.rows);
    j.depth_cuts = sherd__tiled_cut(j.k, most(j.depths, 1));
    j.slot_a = j.a_rows ? SHERD__TILED_STRIDE * j.t->rows : SHERD__TILED_ROWS * SHERD__TILED_BYTES;
    j.slot_b = SHERD__TILED_BYTES * j.t->cols;
    cut_parts(&j, threads);
    if (!make_room(&j, threads, room)) return SHERD_ENOMEM;
    size_t shared = ((j.share_a ? j.rows : 0) + j.cols - j.shared_b) * j.depths;
    sherd__team_run(shared > FEW ? team : NULL, shared, sherd__tiled_share, &j);
    sherd__team_run(team, j.row_parts * j.col_parts, sherd__tiled_part, &j);
    return SHERD_OK;
}

/* ---- transposed products --------------------------------------------------------------------- */

#define COLUMNS 64u /* of C, transposed at a time */

/* A large B with contiguous columns costs more to transpose, panel by panel, than a small C does.
 * In that case B^T A^T is computed and transposed. */
static bool better_turned(const sherd__tiled *p)
{
    size_t n = p->a.rows, m = p->b.cols, bytes;
    return !by_rows(p->b) && by_rows(p->a) && m > n && n > 1 && p->a.cols > 16 && !p->add && p->c &&
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
    size_t n = p->a.rows, col = i * COLUMNS, cols = sherd__least(p->b.cols - col, COLUMNS);
    char *c = (char *)p->c + col * sherd_dtype_size(p->type);
    (void)thread;
    for (size_t r = 0; r < n; r++)
        for (size_t j = 0; j < cols; j++)
            if (p->type == SHERD_F64)
                ((word8 *)(void *)c)[r * p->ldc + j] = ((const word8 *)t->from)[(col + j) * n + r];
            else ((word4 *)(void *)c)[r * p->ldc + j] = ((const word4 *)t->from)[(col + j) * n + r];
    if (p->finish) p->finish(p->ctx, 0, col, n, cols, c, p->ldc);
}

int sherd__tiled_multiply(const sherd__tiled *p, sherd__team *team, sherd__tiled_room *room)
{
    if (p->type != SHERD_F64 && p->type != SHERD_F32) return SHERD_EINVAL;
    if (!better_turned(p)) return multiply(p, team, room);
    size_t n = p->a.rows, m = p->b.cols, need = n * m * sherd_dtype_size(p->type);
    if (!grow(&room->turned, &room->turned_size, need)) return SHERD_ENOMEM;
    sherd__tiled back = { .type = p->type,
                          .a = sherd_view_t(p->b),
                          .b = sherd_view_t(p->a),
                          .c = room->turned,
                          .ldc = n };
    int err = multiply(&back, team, room);
    if (err == 0)
        sherd__team_run(n * m > SMALL ? team : NULL, ceil_of(m, COLUMNS), turn_columns,
                        &(turning){ p, room->turned });
    return err;
}
