/*
 * Description and hiding of `unhidden`. It keeps A and B as doubles, or as whole numbers in doubles
 * in fixed point, and sends panels of rows of A and tiles of columns of B as they are. Answers are
 * checked by Freivalds' check in floats.
 */
#include "tests/contract/unhidden/unhidden.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "crypto/freivalds.h"

const sherd_scheme_info unhidden = {
    .scheme = UNHIDDEN,
    .name = "unhidden",
    .keeps = SHERD_KEEPS_RIGHT,
};

typedef struct hiding {
    unhidden_params p;
    size_t n, k, m; /* n: of the present A */
    double *a, *b;  /* rows_max x k, k x m */
    double *c;
    size_t ldc;
} hiding;

/* The rows of A and the columns of B of a cell. */
typedef struct part {
    size_t row, rows, col, cols;
} part;

static size_t slot_rows(const hiding *h, size_t n, uint32_t slot, size_t *first)
{
    size_t each = n / h->p.slots, more = n % h->p.slots;
    *first = slot * each + (slot < more ? slot : more);
    return each + (slot < more);
}

static part part_of(const hiding *h, sherd__cell at)
{
    part x = { .col = at.tile * h->p.tile_cols };
    size_t all = slot_rows(h, h->n, at.slot, &x.row), from = at.panel * h->p.panel_rows;
    if (from > all) from = all;
    x.row += from;
    x.rows = all - from < h->p.panel_rows ? all - from : h->p.panel_rows;
    x.cols = h->m - x.col < h->p.tile_cols ? h->m - x.col : h->p.tile_cols;
    return x;
}

static uint32_t pieces(size_t all, size_t each)
{
    return (uint32_t)((all + each - 1) / each);
}

static sherd__fragment_info block(sherd__origin origin, size_t rows, size_t cols)
{
    return (sherd__fragment_info){ .origin = (uint8_t)origin,
                                   .dtype = SHERD_F64,
                                   .rows = rows,
                                   .cols = cols,
                                   .len = (uint64_t)rows * cols * sizeof(double) };
}

/* Makes a fragment of a part of `from`, whose rows are ld numbers apart. */
static int copy(sherd__fragment **out, const double *from, size_t rows, size_t cols, size_t ld)
{
    sherd__fragment_info info = block(SHERD__HIDDEN, rows, cols);
    uint8_t *bytes = sherd__alloc(info.len);
    if (!bytes) return SHERD_ENOMEM;
    for (size_t i = 0; i < rows; i++)
        memcpy(bytes + i * cols * sizeof *from, from + i * ld, cols * sizeof *from);
    int err = sherd__fragment_take(out, &info, bytes, NULL, NULL);
    if (err) sherd__free(bytes);
    return err;
}

static void get_shape(const void *ctx, sherd__scheme_shape *out)
{
    const hiding *h = ctx;
    size_t first, rows = slot_rows(h, h->p.rows_max, 0, &first);
    *out = (sherd__scheme_shape){ .slots = h->p.slots,
                                  .tiles = pieces(h->m, h->p.tile_cols),
                                  .panels = pieces(rows, h->p.panel_rows),
                                  .resident = true,
                                  .shared = true,
                                  .result_max = h->p.panel_rows * h->p.tile_cols * sizeof(double) };
}

static int get_sizes(void *ctx, sherd__cell at, sherd__cell_sizes *out)
{
    const hiding *h = ctx;
    const part x = part_of(h, at);
    *out = (sherd__cell_sizes){ .left = block(SHERD__HIDDEN, x.rows, h->k),
                                .result = block(SHERD__RESULT, x.rows, x.cols),
                                .empty = x.rows == 0 || h->k == 0 };
    return SHERD_OK;
}

static int hide(void *ctx, sherd__cell at, sherd__cell_work *out)
{
    const hiding *h = ctx;
    const part x = part_of(h, at);
    *out = (sherd__cell_work){ .result = block(SHERD__RESULT, x.rows, x.cols),
                               .empty = x.rows == 0 || h->k == 0 };
    return out->empty ? SHERD_OK : copy(&out->left, h->a + x.row * h->k, x.rows, h->k, h->k);
}

static int resident(void *ctx, uint32_t slot, uint32_t tile, sherd__fragment **out)
{
    const hiding *h = ctx;
    const part x = part_of(h, (sherd__cell){ .slot = slot, .tile = tile });
    return copy(out, h->b + x.col, h->k, x.cols, h->m);
}

/* at: memory for r and s, B*s, and |B||s|. The tolerance bounds the rounding errors of an honest
 * answer (crypto/freivalds.h). */
static int judge(const hiding *h, part x, const double *y, double *at)
{
    double *r = at, *s = r + x.rows, *vs = s + x.cols, *abs_vs = vs + h->k, want = 0, size = 0;
    sherd__fv_weights(&h->p.entropy, x.rows, r);
    sherd__fv_weights(&h->p.entropy, x.cols, s);
    sherd__fv_right_f64(h->b + x.col, h->k, x.cols, h->m, s, vs, abs_vs);
    for (size_t i = 0; i < x.rows; i++) {
        const double *row = h->a + (x.row + i) * h->k;
        double sizes = 0;
        want += r[i] * sherd__fv_dot_f64(row, vs, h->k, NULL);
        (void)sherd__fv_dot_f64(row, abs_vs, h->k, &sizes);
        size += fabs(r[i]) * sizes;
    }
    double tolerance = (double)(x.rows + h->k + x.cols) * 0x1p-52 * size +
                       sherd__fv_underflow(x.rows, h->k, x.cols);
    double error = sherd__fv_answer_f64(y, x.rows, x.cols, x.cols, r, s) - want;
    return fabs(error) <= tolerance ? SHERD_OK : SHERD_EWRONG;
}

static int check(void *ctx, sherd__cell at, const uint8_t *body)
{
    const hiding *h = ctx;
    const part x = part_of(h, at);
    double *vectors = sherd__calloc(x.rows + x.cols + 2 * h->k, sizeof *vectors);
    if (!vectors) return SHERD_ENOMEM;
    int err = judge(h, x, (const double *)(const void *)body, vectors);
    sherd__free(vectors);
    return err;
}

static int fold(void *ctx, sherd__cell at, const uint8_t *body)
{
    const hiding *h = ctx;
    const part x = part_of(h, at);
    for (size_t i = 0; i < x.rows && body; i++) {
        double *to = h->c + (x.row + i) * h->ldc + x.col;
        memcpy(to, body + i * x.cols * sizeof *to, x.cols * sizeof *to);
        if (h->p.fixed_a) sherd__fixed_unscale(h->p.fixed_a, h->p.fixed_b, to, x.cols);
    }
    return SHERD_OK;
}

static void count_entries(const void *ctx, sherd__cell at, uint64_t *a, uint64_t *b)
{
    const hiding *h = ctx;
    const part x = part_of(h, at);
    *a = (uint64_t)x.rows * h->k;
    *b = (uint64_t)h->k * x.cols;
}

static int finish(void *ctx)
{
    (void)ctx;
    return SHERD_OK;
}

static void free_hiding(void *ctx)
{
    hiding *h = ctx;
    sherd__free(h->a);
    sherd__free(h->b);
    sherd__free(h);
}

static const sherd__hiding_ops ops = {
    .shape = get_shape,
    .hide = hide,
    .resident = resident,
    .check = check,
    .fold = fold,
    .entries = count_entries,
    .sizes = get_sizes,
    .finish = finish,
    .free = free_hiding,
};

static void read_operand(sherd_view v, const sherd__fixed *fixed, double *out)
{
    sherd__view_dense_f64(v, out, v.cols);
    if (fixed) sherd__fixed_apply(fixed, out, v.rows * v.cols);
}

int unhidden_open(sherd__hiding *out, const unhidden_params *p)
{
    hiding *h = sherd__calloc(1, sizeof *h);
    if (!h) return SHERD_ENOMEM;
    *h = (hiding){ .p = *p, .k = p->b.rows, .m = p->b.cols };
    h->a = sherd__calloc(p->rows_max * h->k, sizeof *h->a);
    h->b = sherd__calloc(h->k * h->m, sizeof *h->b);
    if (!h->a || !h->b) {
        free_hiding(h);
        return SHERD_ENOMEM;
    }
    read_operand(p->b, p->fixed_b, h->b);
    *out = (sherd__hiding){ &ops, h };
    return SHERD_OK;
}

int unhidden_next(sherd__hiding *hidden, sherd_view a, double *c, size_t ldc)
{
    hiding *h = hidden->ctx;
    if (a.rows > h->p.rows_max || a.cols != h->k) return SHERD_ESHAPE;
    h->n = a.rows;
    h->c = c;
    h->ldc = ldc;
    read_operand(a, h->p.fixed_a, h->a);
    for (size_t i = 0; c && h->k == 0 && i < a.rows; i++) memset(c + i * ldc, 0, h->m * sizeof *c);
    return SHERD_OK;
}

size_t unhidden_planned(const sherd__hiding *hidden, uint32_t slot)
{
    size_t first;
    return slot_rows(hidden->ctx, ((const hiding *)hidden->ctx)->n, slot, &first);
}
