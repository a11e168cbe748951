/*
 * A task for which the device has no memory is computed in parts. The node declares its memory when
 * it starts, and coordinators plan with that, but others may take memory of the device later. The
 * larger operand is cut in two until a part fits, with its rows or columns of the result. No sum is
 * divided, so a part has the bits of the whole. What a part has of an operand is copied on the
 * host, and from there to the device.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "matrix/residue_bytes.h"
#include "node/backends/accelerator_internal.h"
#include "node/check.h"

/* Bytes of operands and result. A device without room for these is not worth using. */
#define LEAST ((uint64_t)256 << 10)

/* What is cut. */
typedef enum cutting {
    NOTHING,
    GROUPS, /* of both operands */
    ROWS,   /* of both operands */
    LEFT,   /* what gives rows of the result */
    RIGHT   /* columns */
} cutting;

typedef struct span {
    uint64_t from, count;
} span;

/* Part of an operand or of a result. */
typedef struct area {
    span rows, cols;
} area;

static bool is_bytes(const accelerator_run *r)
{
    return r->task->result.dtype == SHERD__BYTES;
}

static bool transposed(const accelerator_run *r)
{
    return r->task->op == SHERD__OP_MULTIPLY_T;
}

/* Returns how many groups, rows or columns there are to cut. */
static uint64_t lines_of(const accelerator_run *r, cutting what)
{
    const sherd__fragment_info *a = sherd__fragment_info_of(r->left->from);
    switch (what) {
    case GROUPS: return sherd__groups_of(a);
    case RIGHT: return r->task->result.cols;
    case LEFT: return transposed(r) ? a->cols : a->rows;
    default: return a->rows;
    }
}

static cutting choose(const accelerator_run *r)
{
    const uint64_t least = is_bytes(r) ? SHERD__BYTES_TILE : 1;
    const uint64_t all = r->left->len + (r->right ? r->right->len : 0) + r->task->result.len;
    if (all < LEAST || sherd__fragment_info_of(r->left->from)->encoding != SHERD__DENSE)
        return NOTHING;
    if (r->task->op != SHERD__OP_MULTIPLY && !transposed(r))
        return lines_of(r, ROWS) > 1 ? ROWS : NOTHING;
    if (lines_of(r, GROUPS) > 1) return GROUPS;
    const bool turned = transposed(r) && (is_bytes(r) || r->task->windows.window);
    const bool left = lines_of(r, LEFT) > least && !turned, right = lines_of(r, RIGHT) > least;
    if (left && right) return r->left->len > r->right->len ? LEFT : RIGHT;
    return left ? LEFT : right ? RIGHT : NOTHING;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Copies `planes` matrices with `size` bytes an entry: the area of each between a whole matrix, of
 * `rows` rows and `cols` columns, and a matrix that is this area. */
static void copy_area(uint8_t *part, uint8_t *whole, const sherd__fragment_info *of, const area *at,
                      bool to_whole)
{
    const uint64_t size = sherd__wire_size(of->dtype), len = at->cols.count * size;
    for (uint64_t plane = 0; plane < (of->primes ? of->primes : 1u); plane++)
        for (uint64_t i = 0; i < at->rows.count; i++) {
            const uint64_t row = plane * of->rows + at->rows.from + i;
            uint8_t *there = whole + (row * of->cols + at->cols.from) * size;
            memcpy(to_whole ? there : part, to_whole ? part : there, len);
            part += len;
        }
}

/* Sets the length of what has so many rows and columns, and no groups. */
static void set_size(sherd__fragment_info *i, uint64_t rows, uint64_t cols)
{
    i->groups = 0;
    i->rows = rows;
    i->cols = cols;
    i->len = (i->primes ? i->primes : 1u) * rows * cols * sherd__wire_size(i->dtype);
}

/* Describes these groups. Returns the start of their values. */
static const uint8_t *take_groups(sherd__fragment_info *i, const sherd__fragment *f, span which)
{
    const uint64_t size = sherd__wire_size(i->dtype);
    const uint8_t *from = sherd__group_first(f);
    *i = (sherd__fragment_info){ .origin = i->origin,
                                 .dtype = i->dtype,
                                 .groups = (uint32_t)which.count,
                                 .len = 8 * which.count };
    for (uint64_t q = 0; q < which.from + which.count; q++) {
        const sherd__group g = sherd__group_at(f, (uint32_t)q, NULL);
        if (q < which.from) {
            from += g.rows * g.cols * size;
            continue;
        }
        i->rows += g.rows;
        i->cols = g.cols > i->cols ? g.cols : i->cols;
        i->len += g.rows * g.cols * size;
    }
    return from;
}

/* Describes these strips of 16 lines. Returns where they start. */
static const uint8_t *take_strips(sherd__fragment_info *i, const sherd__fragment *f, span lines)
{
    const bool right = i->dtype == SHERD__BYTES_RIGHT;
    const uint64_t strip = i->primes * sherd__bytes_laid(1, right ? i->rows : i->cols);
    const uint64_t strips = (lines.count + SHERD__BYTES_TILE - 1) / SHERD__BYTES_TILE;
    *(right ? &i->cols : &i->rows) = lines.count;
    i->len = strips * strip;
    return sherd__fragment_bytes(f) + lines.from / SHERD__BYTES_TILE * strip;
}

/* Makes a fragment of part of another one. */
static sherd__fragment *cut(const sherd__fragment *f, cutting what, bool by_columns, span lines)
{
    sherd__fragment_info i = *sherd__fragment_info_of(f), whole = i;
    const bool strips = sherd__fragment_is_bytes(i.dtype);
    const area at = { by_columns ? (span){ 0, i.rows } : lines,
                      by_columns ? lines : (span){ 0, i.cols } };
    const uint8_t *from = what == GROUPS ? take_groups(&i, f, lines)
                          : strips       ? take_strips(&i, f, lines)
                                         : sherd__group_first(f);
    if (what != GROUPS && !strips) set_size(&i, at.rows.count, at.cols.count);
    const uint64_t table = 8 * (uint64_t)i.groups;
    uint8_t *body = sherd__alloc(i.len + 1);
    sherd__fragment *part = NULL;
    if (!body) return NULL;
    if (what == GROUPS) memcpy(body, sherd__fragment_bytes(f) + 8 * lines.from, table);
    if (what == GROUPS || strips) memcpy(body + table, from, i.len - table);
    else copy_area(body, (uint8_t *)(uintptr_t)from, &whole, &at, false);
    if (!sherd__fragment_take(&part, &i, body, NULL, NULL)) return part;
    sherd__wipe(body, i.len);
    sherd__free(body);
    return NULL;
}

/* Returns the memory of a block's copy, unless other calls may use it. */
static void uncopy(const accelerator_run *r, accelerator_block *b)
{
    pthread_mutex_t *lock = &r->lane->on->of->lock;
    const uint32_t mine = r->left == r->right ? 2 : 1;
    pthread_mutex_lock(lock);
    void *memory = b && b->state == COPIED && b->calls <= mine ? b->memory : NULL;
    if (memory) {
        b->memory = NULL;
        b->state = TO_COPY;
    }
    pthread_mutex_unlock(lock);
    if (memory) sherd__accelerator_forget(r->lane, memory, b->len);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Sets the part's place in the result. */
static area place_of(const accelerator_run *r, cutting what, span lines)
{
    area at = { { 0, r->task->result.rows }, { 0, r->task->result.cols } };
    if (what == RIGHT) {
        at.cols = lines;
        return at;
    }
    at.rows = lines;
    if (what == GROUPS) {
        at.rows = (span){ 0, 0 };
        for (uint64_t q = 0; q < lines.from + lines.count; q++) {
            const uint64_t rows = sherd__group_at(r->left->from, (uint32_t)q, NULL).rows;
            *(q < lines.from ? &at.rows.from : &at.rows.count) += rows;
        }
    } else if (r->task->windows.window) {
        const uint64_t each = sherd__task_windows(r->task).count;
        at.rows = (span){ lines.from * each, lines.count * each };
    }
    return at;
}

/* Computes a part into the whole result. */
static int run_part(accelerator_run *r, cutting what, span lines, sherd_diag *d)
{
    const bool turned = what == LEFT && transposed(r);
    accelerator_block mine[2] = { { .on = r->lane->on }, { .on = r->lane->on } };
    sherd__fragment *left = what != RIGHT ? cut(r->left->from, what, turned, lines) : NULL;
    sherd__fragment *right = what != LEFT && r->right
                                 ? cut(r->right->from, what, what == RIGHT, lines)
                                 : NULL;
    const area at = place_of(r, what, lines);
    sherd__task task = *r->task;
    set_size(&task.result, at.rows.count, at.cols.count);
    uint8_t *out = sherd__alloc(task.result.len + 1);
    accelerator_run part = { .lane = r->lane,
                             .call = r->call,
                             .task = &task,
                             .left = left ? &mine[0] : r->left,
                             .right = right ? &mine[1] : r->right,
                             .result = out };
    mine[0].from = left;
    mine[0].len = left ? sherd__fragment_info_of(left)->len : 0;
    mine[1].from = right;
    mine[1].len = right ? sherd__fragment_info_of(right)->len : 0;
    const bool all = out && (left || what == RIGHT) && (right || what == LEFT || !r->right);
    int err = all ? sherd__accelerator_in_parts(&part, d) : sherd__fail_memory(d, "part of a task");
    if (!err && r->result) copy_area(out, r->result, &r->task->result, &at, true);
    uncopy(&part, left ? &mine[0] : NULL);
    uncopy(&part, right ? &mine[1] : NULL);
    sherd__fragment_free(left);
    sherd__fragment_free(right);
    if (out) sherd__wipe(out, task.result.len);
    sherd__free(out);
    return err;
}

int sherd__accelerator_in_parts(accelerator_run *r, sherd_diag *d)
{
    sherd__accelerator_renew(r->lane, sherd__task_flops(r->task, r->left->from));
    int err = sherd__accelerator_whole(r, d);
    const cutting what = err == SHERD_ENOMEM ? choose(r) : NOTHING;
    if (what == NOTHING) return err;
    accelerator *a = r->lane->on->of;
    if (d) *d = (sherd_diag){ .code = 0 };
    pthread_mutex_lock(&a->settling);
    err = sherd__task_settle(r->left->from, r->right ? r->right->from : NULL, NULL);
    pthread_mutex_unlock(&a->settling);
    if (err) return sherd__fail_to(d, err, "compute a share");
    if (what != RIGHT) uncopy(r, r->left);
    if (what != LEFT) uncopy(r, r->right);
    const uint64_t n = lines_of(r, what), unit = is_bytes(r) ? SHERD__BYTES_TILE : 1;
    const uint64_t middle = (n / 2 + unit - 1) / unit * unit;
    err = run_part(r, what, (span){ 0, middle }, d);
    return err ? err : run_part(r, what, (span){ middle, n - middle }, d);
}
