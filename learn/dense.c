/*
 * The dense layer, and the functions that all layers with parameters share except products
 * (learn/products.c). On this machine x is read in the caller's own type, without a copy.
 */
#include "learn/layer.h"

#include <string.h>

#include "core/bytes.h"
#include "core/diag.h"
#include "matrix/clones.h"

bool sherd__form_size(sherd__tensor_shape f, size_t *size)
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
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a dense layer's input is too large");
    l->cols = l->spec.units;
    l->out = (sherd__tensor_shape){ 1, 1, l->cols };
    return SHERD_OK;
}

static int dense_forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    bool held;
    if (sherd__here_can(call, call->x)) return sherd__here_forward(l, call, call->x, call->y, d);
    int err = sherd__products_hold(l, call, &held, d);
    return err ? err : sherd__products_forward(l, call, call->x, d);
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
