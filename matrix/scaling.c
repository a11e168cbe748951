/*
 * One pass finds the largest magnitude, frexp its exponent. An operand already in [1/2, 1) is
 * passed on unchanged; others are copied, which costs less than a product with them. Factors stay
 * within 2^+-1000, so that they are doubles; smaller or larger operands are scaled only that far.
 */
#include "matrix/scaling.h"

#include <math.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "matrix/view.h"

#define MOST 1000

struct sherd_kept {
    sherd_multiplier m;
    sherd_kept *inner;
    int by;
};

typedef struct room {
    double *data;
    size_t len;
} room;

typedef struct scaling {
    sherd_multiplier inner;
    room left, right;
} scaling;

static void empty(room *r)
{
    if (r->data) sherd__wipe(r->data, r->len * sizeof *r->data);
    sherd__free(r->data);
    *r = (room){ NULL, 0 };
}

static int grow(room *r, size_t rows, size_t cols, sherd_diag *d)
{
    size_t len, bytes;
    bool fits = sherd__mul(rows, cols, &len) && sherd__mul(len, sizeof *r->data, &bytes);
    if (fits && len <= r->len && r->data) return SHERD_OK;
    empty(r);
    if (fits) r->data = sherd__alloc_large(bytes);
    if (!r->data) return sherd__fail_memory(d, "scaling an operand of %zu x %zu", rows, cols);
    r->len = len;
    return SHERD_OK;
}

/* Replaces *v by *v times 2^*by, a copy unless *by is 0. */
static int scale(room *to, sherd_view *v, int *by, sherd_diag *d)
{
    sherd__scan scan;
    int exponent;
    *by = 0;
    if (v->dtype != SHERD_F64 && v->dtype != SHERD_F32) return SHERD_OK;
    sherd__view_scan(*v, &scan);
    if (scan.nonfinite > 0 || scan.max_abs == 0) return SHERD_OK;
    frexp(scan.max_abs, &exponent);
    *by = exponent > MOST ? -MOST : exponent < -MOST ? MOST : -exponent;
    if (*by == 0) return SHERD_OK;
    int err = grow(to, v->rows, v->cols, d);
    if (err != 0) return err;
    double factor = ldexp(1, *by);
    sherd__view_dense_f64(*v, to->data, v->cols);
    for (size_t i = 0; i < v->rows * v->cols; i++) to->data[i] *= factor;
    *v = sherd_view_c(to->data, SHERD_F64, v->rows, v->cols);
    return SHERD_OK;
}

/* Multiplies c by 2^-by. */
static void scale_back(double *c, size_t rows, size_t cols, size_t ldc, int by)
{
    double first = ldexp(1, -(by / 2)), second = ldexp(1, -(by - by / 2));
    if (by == 0) return;
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < cols; k++) c[r * ldc + k] = c[r * ldc + k] * first * second;
}

static int scaling_multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc,
                            sherd_diag *d)
{
    scaling *s = ctx;
    int left, right, err = scale(&s->left, &a, &left, d);
    if (err == 0) err = scale(&s->right, &b, &right, d);
    if (err == 0) err = sherd_multiplier_multiply(s->inner, a, b, c, ldc, d);
    if (err == 0) scale_back(c, a.rows, b.cols, ldc, left + right);
    return err;
}

static int scaling_keep(void *ctx, sherd_view a, const sherd_keep_options *how, sherd_kept **out,
                        sherd_diag *d)
{
    scaling *s = ctx;
    room copy = { NULL, 0 };
    sherd_kept *kept = sherd__calloc(1, sizeof *kept);
    if (!kept) return sherd__fail_memory(d, "a kept operand of %zu x %zu", a.rows, a.cols);
    kept->m = s->inner;
    int err = scale(&copy, &a, &kept->by, d);
    if (err == 0) err = sherd_multiplier_keep(&kept->inner, s->inner, a, how, d);
    empty(&copy);
    if (err != 0) sherd__free(kept);
    else *out = kept;
    return err;
}

static int scaling_multiply_kept(void *ctx, sherd_kept *kept, sherd_rows rows, bool transposed,
                                 sherd_view b, double *c, size_t ldc, sherd_diag *d)
{
    scaling *s = ctx;
    size_t all, cols, part;
    int right, err = scale(&s->right, &b, &right, d);
    if (err == 0)
        err = sherd_multiplier_multiply_rows(s->inner, kept->inner, rows, transposed, b, c, ldc, d);
    if (err != 0) return err;
    kept->m.ops->kept_shape(kept->inner, &all, &cols, &part);
    scale_back(c, transposed ? cols : rows.count, b.cols, ldc, kept->by + right);
    return SHERD_OK;
}

static void scaling_kept_shape(const sherd_kept *kept, size_t *rows, size_t *cols, size_t *part)
{
    kept->m.ops->kept_shape(kept->inner, rows, cols, part);
}

static void scaling_release(void *ctx, sherd_kept *kept)
{
    (void)ctx;
    sherd_multiplier_release(kept->m, kept->inner);
    sherd__free(kept);
}

static int scaling_map(void *ctx, sherd_op op, sherd_view a, sherd_view b, double *out, size_t ld,
                       sherd_diag *d)
{
    const scaling *s = ctx;
    return sherd_multiplier_map(s->inner, op, a, b, out, ld, d);
}

static void scaling_free(void *ctx)
{
    scaling *s = ctx;
    sherd_multiplier_free(s->inner);
    empty(&s->left);
    empty(&s->right);
    sherd__free(s);
}

static const sherd_multiplier_ops scaling_ops = {
    .abi = SHERD_MULTIPLIER_ABI,
    .name = "scaling",
    .multiply = scaling_multiply,
    .keep = scaling_keep,
    .multiply_kept = scaling_multiply_kept,
    .kept_shape = scaling_kept_shape,
    .release = scaling_release,
    .map = scaling_map,
    .free = scaling_free,
};

int sherd__scaling_new(sherd_multiplier *out, sherd_multiplier inner, sherd_diag *d)
{
    scaling *s = sherd__calloc(1, sizeof *s);
    *out = (sherd_multiplier){ NULL, NULL };
    if (!s) return sherd__fail_memory(d, "a multiplier");
    s->inner = inner;
    *out = (sherd_multiplier){ &scaling_ops, s };
    return SHERD_OK;
}

sherd_multiplier sherd__scaling_inner(sherd_multiplier m)
{
    return m.ops == &scaling_ops ? ((const scaling *)m.ctx)->inner : m;
}
