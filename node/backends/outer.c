/*
 * A cursor over the groups: the position of the current group's rows in the result, some thousand
 * values of its row of the right operand as doubles, and a few hundred of its left column. With
 * these two buffers, dtypes are converted once per group and once per few hundred rows; the inner
 * loop has one multiplication and one store per number. The buffers have a largest size, since
 * `compute` does not count them: a longer right row is converted in parts, for each row of the
 * result. Offsets come from the session, so a chunk may start or end anywhere, also inside a
 * number.
 */
#include "node/backends/outer.h"

#include <string.h>

#include "core/alloc.h"
#include "core/wipe.h"
#include "matrix/view.h"
#include "node/check.h"

#define LEFT_MAX 512u
#define RIGHT_MAX 65536u

typedef struct cursor {
    const sherd__fragment *left, *right;
    uint8_t left_dtype, right_dtype;
    uint32_t group, groups;
    uint64_t width;                 /* columns of the result */
    uint64_t first;                 /* first result row of the group */
    sherd__group u, v;              /* of the current group */
    uint64_t left_from, left_len;   /* rows of u that are in `a` */
    uint64_t right_from, right_len; /* columns of v that are in `b` */
    double a[LEFT_MAX];
    double b[]; /* room for right_most(width) */
} cursor;

static uint64_t right_most(uint64_t columns)
{
    return columns < RIGHT_MAX ? columns : RIGHT_MAX;
}

bool sherd__outer_fits(const sherd__task *t, const sherd__fragment *left)
{
    return t->op == SHERD__OP_MULTIPLY && t->primes_len == 0 && t->result.dtype == SHERD_F64 &&
           sherd__fragment_info_of(left)->encoding == SHERD__DENSE &&
           sherd__fragment_info_of(left)->cols <= 1;
}

static void enter(cursor *c, uint32_t q, uint64_t first, const uint8_t *u, const uint8_t *v)
{
    c->group = q;
    c->first = first;
    c->u = sherd__group_at(c->left, q, u);
    c->v = sherd__group_at(c->right, q, v);
    c->left_len = c->right_len = 0;
}

static void rewind_cursor(cursor *c)
{
    enter(c, 0, 0, sherd__group_first(c->left), sherd__group_first(c->right));
}

/* Moves to the group of result row r, which must exist. */
static void seek(cursor *c, uint64_t r)
{
    if (r < c->first) rewind_cursor(c);
    while (r - c->first >= c->u.rows && c->group + 1 < c->groups) {
        const uint8_t *u = c->u.values + c->u.rows * c->u.cols * sherd__wire_size(c->left_dtype);
        const uint8_t *v = c->v.values + c->v.rows * c->v.cols * sherd__wire_size(c->right_dtype);
        enter(c, c->group + 1, c->first + c->u.rows, u, v);
    }
}

/* Returns the left value of result row r; the cursor is at its group. */
static double left_value(cursor *c, uint64_t r)
{
    uint64_t row = r - c->first;
    if (c->u.cols == 0) return 0;
    if (row < c->left_from || row - c->left_from >= c->left_len) {
        uint64_t rest = c->u.rows - row;
        sherd_view u = sherd_view_c(c->u.values, (sherd_dtype)c->left_dtype, 1, c->u.rows);
        c->left_from = row;
        c->left_len = rest < LEFT_MAX ? rest : LEFT_MAX;
        sherd__view_row_f64(u, 0, row, c->left_len, c->a);
    }
    return c->a[row - c->left_from];
}

static void load_right(cursor *c, uint64_t j)
{
    sherd_view v = sherd_view_c(c->v.values, (sherd_dtype)c->right_dtype, 1, c->width);
    c->right_from = j - j % RIGHT_MAX;
    c->right_len = right_most(c->width - c->right_from);
    if (c->v.rows == 0) memset(c->b, 0, c->right_len * sizeof *c->b); /* inner size 0 */
    else sherd__view_row_f64(v, 0, c->right_from, c->right_len, c->b);
}

/* Returns right values of the group from column j on, and reduces *n to as many as there are. */
static const double *right_values(cursor *c, uint64_t j, size_t *n)
{
    if (c->right_dtype == SHERD_F64 && c->v.rows)
        return (const double *)(const void *)c->v.values + j;
    if (j - c->right_from >= c->right_len) load_right(c, j);
    uint64_t from = j - c->right_from, rest = c->right_len - from;
    if (*n > rest) *n = (size_t)rest;
    return c->b + from;
}

static void scale(double a, const double *restrict b, size_t n, double *restrict out)
{
    for (size_t j = 0; j < n; j++) out[j] = a * b[j];
}

static void scale_to(double a, const double *b, size_t n, uint8_t *out)
{
    if ((uintptr_t)out % _Alignof(double) == 0) {
        scale(a, b, n, (double *)(void *)out);
        return;
    }
    double part[64];
    for (size_t k = 0, m; k < n; k += m) {
        m = n - k < 64 ? n - k : 64;
        scale(a, b + k, m, part);
        memcpy(out + 8 * k, part, 8 * m);
    }
}

/* Computes values [at, at+n) of the result, all in one row. */
static void fill_row(cursor *c, uint64_t at, size_t n, uint8_t *out)
{
    uint64_t r = at / c->width, j = at % c->width;
    seek(c, r);
    double a = left_value(c, r);
    while (n) {
        size_t m = n;
        const double *b = right_values(c, j, &m);
        scale_to(a, b, m, out);
        j += m;
        out += 8 * m;
        n -= m;
    }
}

static int fill(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    cursor *c = ctx;
    while (len) {
        uint64_t at = offset / 8;
        size_t skip = offset % 8, n;
        if (skip || len < 8) { /* part of one number */
            uint8_t whole[8];
            fill_row(c, at, 1, whole);
            n = 8 - skip < len ? 8 - skip : len;
            memcpy(out, whole + skip, n);
        } else {
            uint64_t in_row = c->width - at % c->width;
            n = 8 * (len / 8 < in_row ? len / 8 : (size_t)in_row);
            fill_row(c, at, n / 8, out);
        }
        out += n;
        offset += n;
        len -= n;
    }
    return SHERD_OK;
}

static void free_cursor(void *ctx)
{
    cursor *c = ctx;
    sherd__wipe(c, sizeof *c + right_most(c->width) * sizeof *c->b);
    sherd__free(c);
}

int sherd__outer_source(sherd__fragment_source *out, const sherd__fragment *left,
                        const sherd__fragment *right, uint64_t *memory)
{
    const sherd__fragment_info *a = sherd__fragment_info_of(left);
    const sherd__fragment_info *b = sherd__fragment_info_of(right);
    size_t size = sizeof(cursor) + right_most(b->cols) * sizeof(double);
    cursor *c = sherd__alloc(size);
    if (!c) return SHERD_ENOMEM;
    *c = (cursor){ .left = left,
                   .right = right,
                   .left_dtype = a->dtype,
                   .right_dtype = b->dtype,
                   .groups = sherd__groups_of(a),
                   .width = b->cols };
    rewind_cursor(c);
    if (memory) *memory = size;
    *out = (sherd__fragment_source){ fill, free_cursor, c };
    return SHERD_OK;
}
