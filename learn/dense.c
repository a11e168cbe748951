/*
 * The dense layer, and what all layers with parameters share. Forward and weight gradient have x on
 * the left, once as it is and once transposed: that is what a kept operand can do, so an input that
 * lies at the nodes travels once for both passes of every epoch. On this machine x is read as the
 * caller has it instead, in its own type.
 */
#include "learn/layer.h"

#include <string.h>

#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/clones.h"

bool sherd__form_size(sherd__form f, size_t *size)
{
    size_t n;
    return sherd__mul(f.height, f.width, &n) && sherd__mul(n, f.channels, size);
}

SHERD__CLONES
static void add_to_rows(double *restrict y, size_t rows, size_t cols, const double *restrict b)
{
    for (size_t r = 0; r < rows; r++, y += cols)
        for (size_t c = 0; c < cols; c++) y[c] += b[c];
}

SHERD__CLONES
static void add_rows(double *restrict b, const double *restrict dy, size_t rows, size_t cols)
{
    for (size_t r = 0; r < rows; r++, dy += cols)
        for (size_t c = 0; c < cols; c++) b[c] += dy[c];
}

void sherd__bias_add(const sherd__layer *l, size_t rows, double *y)
{
    add_to_rows(y, rows, l->cols, l->biases);
}

void sherd__bias_gradient(sherd__layer *l, size_t rows, const double *dy)
{
    double *db = l->biases_gradient, total = 0;
    memset(db, 0, l->cols * sizeof *db);
    add_rows(db, dy, rows, l->cols);
    if (!l->bias_total) return;
    for (size_t c = 0; c < l->cols; c++) total += db[c];
    for (size_t c = 0; c < l->cols; c++) db[c] = total;
}

static int dense_fit(sherd__layer *l, sherd_diag *d)
{
    if (l->spec.units == 0)
        return sherd__fail(d, SHERD_EINVAL, "give it units", "a dense layer without units");
    if (!sherd__form_size(l->in, &l->rows))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a dense layer's input is too large to count");
    l->cols = l->spec.units;
    l->out = (sherd__form){ 1, 1, l->cols };
    return SHERD_OK;
}

/* What is kept of all batches is x itself, which windows are not. */
static sherd_kept *kept_of(const sherd__layer *l, const sherd__layer_call *call)
{
    return l->spec.kind == &sherd__layer_dense ? call->kept : NULL;
}

/* Leaves x with the multiplier for the way back; where nodes have no room for it, it travels
 * twice. */
static int hold(sherd__layer *l, const sherd__layer_call *call, sherd_view x, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    if (!call->engine.keeps || !call->returns || kept_of(l, call) != NULL) return SHERD_OK;
    int err = sherd_multiplier_keep(call->engine.products, x, &l->held, &mine);
    return err == 0 || err == SHERD_EFEWNODES ? SHERD_OK
                                              : sherd__fail(d, err, mine.hint, "%s", mine.message);
}

/* x B, or x^T B, of what the multiplier has of x, or of x itself. */
static int multiply(const sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                    bool transposed, sherd_view b, double *c, sherd_diag *d)
{
    sherd_multiplier m = call->engine.products;
    sherd_rows rows = { call->first, call->examples }, all = { 0, x.rows };
    if (kept_of(l, call) != NULL)
        return sherd_multiplier_multiply_rows(m, call->kept, rows, transposed, b, c, l->cols, d);
    if (l->held != NULL)
        return sherd_multiplier_multiply_rows(m, l->held, all, transposed, b, c, l->cols, d);
    return sherd_multiplier_multiply(m, transposed ? sherd_view_t(x) : x, b, c, l->cols, d);
}

int sherd__products_forward(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                            sherd_diag *d)
{
    sherd_view w = sherd_view_c(l->weights, SHERD_F64, l->rows, l->cols);
    int err = hold(l, call, x, d);
    if (err == 0) err = multiply(l, call, x, false, w, call->y, d);
    if (err == 0 && !call->unbiased) sherd__bias_add(l, x.rows, call->y);
    return err;
}

int sherd__products_backward(sherd__layer *l, const sherd__layer_call *call, sherd_view x,
                             double *dx, sherd_diag *d)
{
    sherd_view dy = sherd_view_c(call->dy, SHERD_F64, x.rows, l->cols);
    sherd_view w = sherd_view_c(l->weights, SHERD_F64, l->rows, l->cols);
    int err = multiply(l, call, x, true, dy, l->weights_gradient, d);
    sherd__products_release(l, call->engine);
    if (err != 0) return err;
    sherd__bias_gradient(l, x.rows, call->dy);
    if (dx == NULL) return SHERD_OK;
    return sherd_multiplier_multiply(call->engine.products, dy, sherd_view_t(w), dx, l->rows, d);
}

void sherd__products_release(sherd__layer *l, sherd__engine e)
{
    sherd_multiplier_release(e.products, l->held);
    l->held = NULL;
}

static int dense_forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return sherd__here_can(call, call->x) ? sherd__here_forward(l, call, call->x, call->y, d)
                                          : sherd__products_forward(l, call, call->x, d);
}

static int dense_backward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return sherd__here_can(call, call->x)
               ? sherd__here_backward(l, call, call->x, call->y, call->dy, call->dx, d)
               : sherd__products_backward(l, call, call->x, call->dx, d);
}

static int dense_forward32(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return sherd__here_forward32(l, call, call->x, call->y32, d);
}

static int dense_backward32(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return sherd__here_backward32(l, call, call->x, call->y32, call->dy32, call->dx32, d);
}

const sherd__layer_kind sherd__layer_dense = {
    .name = "dense",
    .traits = SHERD__LAYER_ANY_VIEW | SHERD__LAYER_FINISHES,
    .fit = dense_fit,
    .forward = dense_forward,
    .backward = dense_backward,
    .forward32 = dense_forward32,
    .backward32 = dense_backward32,
};
