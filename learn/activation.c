/*
 * Layers without parameters that keep the shape. All take their gradient from y alone, so they may
 * work in place. What can be written in the element-wise operations that nodes offer is computed by
 * the same operations in the same order here, one at a time: whoever computes, the bits are equal.
 * ReLU's gradient is a choice, not arithmetic, and stays here.
 */
#include "core/diag.h"
#include "learn/layer.h"
#include "matrix/funcs.h"

static size_t count_of(const sherd__layer *l, const sherd__layer_call *call)
{
    return call->examples * l->in.height * l->in.width * l->in.channels;
}

static int same_fit(sherd__layer *l, sherd_diag *d)
{
    size_t n;
    if (!sherd__form_size(l->in, &n))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a layer's input is too large to count");
    l->out = l->in;
    return SHERD_OK;
}

/* out = op(a) or op(a, b) over n numbers, here or by the multiplier. */
static int apply(sherd__engine e, sherd_op op, const double *a, const double *b, size_t n,
                 double *out, sherd_diag *d)
{
    sherd_view va = sherd_view_c(a, SHERD_F64, 1, n), vb = sherd_view_c(b, SHERD_F64, 1, n);
    if (!e.maps) return sherd__map_f64(op, a, b, n, out);
    return sherd_multiplier_map(e.products, op, va, b != NULL ? &vb : NULL, out, n, d);
}

static int forward_by(sherd_op op, const sherd__layer *l, const sherd__layer_call *call,
                      sherd_diag *d)
{
    return apply(call->engine, op, call->x.data, NULL, count_of(l, call), call->y, d);
}

static int relu_forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return forward_by(SHERD_RELU, l, call, d);
}

static int sigmoid_forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return forward_by(SHERD_SIGMOID, l, call, d);
}

static int tanh_forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return forward_by(SHERD_TANH, l, call, d);
}

static int relu_backward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    size_t n = count_of(l, call);
    (void)d;
    if (call->dx == NULL) return SHERD_OK;
    for (size_t i = 0; i < n; i++) call->dx[i] = call->y[i] <= 0 ? 0.0 : call->dy[i];
    return SHERD_OK;
}

/* dx = dy * (y - y*y). */
static int sigmoid_backward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    size_t n = count_of(l, call);
    double *y = call->y, *s = l->scratch;
    if (call->dx == NULL) return SHERD_OK;
    if (!call->engine.maps) {
        for (size_t i = 0; i < n; i++) call->dx[i] = call->dy[i] * (y[i] - y[i] * y[i]);
        return SHERD_OK;
    }
    int err = apply(call->engine, SHERD_SQUARE, y, NULL, n, s, d);
    if (err == 0) err = apply(call->engine, SHERD_MINUS, y, s, n, s, d);
    if (err == 0) err = apply(call->engine, SHERD_TIMES, call->dy, s, n, call->dx, d);
    return err;
}

/* dx = dy - dy * (y*y). */
static int tanh_backward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    size_t n = count_of(l, call);
    double *y = call->y, *s = l->scratch;
    if (call->dx == NULL) return SHERD_OK;
    if (!call->engine.maps) {
        for (size_t i = 0; i < n; i++)
            call->dx[i] = call->dy[i] - call->dy[i] * (y[i] * y[i]);
        return SHERD_OK;
    }
    int err = apply(call->engine, SHERD_SQUARE, y, NULL, n, s, d);
    if (err == 0) err = apply(call->engine, SHERD_TIMES, call->dy, s, n, s, d);
    if (err == 0) err = apply(call->engine, SHERD_MINUS, call->dy, s, n, call->dx, d);
    return err;
}

/* Scratch is for gradients by way of the multiplier. */
static int smooth_fit(sherd__layer *l, sherd_diag *d)
{
    int err = same_fit(l, d);
    if (err == 0) l->scratch_each = l->in.height * l->in.width * l->in.channels;
    return err;
}

/* The largest is taken off first, so that exp cannot overflow and the sum is at least 1. */
static int softmax_forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    size_t n = l->in.height * l->in.width * l->in.channels;
    (void)d;
    for (size_t r = 0; r < call->examples; r++) {
        const double *x = (const double *)call->x.data + r * n;
        double *y = call->y + r * n, most = x[0], sum = 0;
        for (size_t j = 1; j < n; j++) most = x[j] > most ? x[j] : most;
        for (size_t j = 0; j < n; j++) y[j] = x[j] - most;
        sherd__exp_f64(y, n, y);
        for (size_t j = 0; j < n; j++) sum += y[j];
        for (size_t j = 0; j < n; j++) y[j] /= sum;
    }
    return SHERD_OK;
}

/* dx_j = y_j (dy_j - sum_i dy_i y_i). */
static int softmax_backward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    size_t n = l->in.height * l->in.width * l->in.channels;
    (void)d;
    if (call->dx == NULL) return SHERD_OK;
    for (size_t r = 0; r < call->examples; r++) {
        const double *y = call->y + r * n, *dy = call->dy + r * n;
        double *dx = call->dx + r * n, sum = 0;
        for (size_t j = 0; j < n; j++) sum += dy[j] * y[j];
        for (size_t j = 0; j < n; j++) dx[j] = y[j] * (dy[j] - sum);
    }
    return SHERD_OK;
}

static int flatten_fit(sherd__layer *l, sherd_diag *d)
{
    int err = same_fit(l, d);
    if (err == 0) l->out = (sherd__form){ 1, 1, l->in.height * l->in.width * l->in.channels };
    return err;
}

static int nothing(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)l;
    (void)call;
    (void)d;
    return SHERD_OK;
}

const sherd__layer_kind sherd__layer_relu = {
    .name = "relu",
    .traits = SHERD__LAYER_IN_PLACE,
    .fit = same_fit,
    .forward = relu_forward,
    .backward = relu_backward,
};

const sherd__layer_kind sherd__layer_sigmoid = {
    .name = "sigmoid",
    .traits = SHERD__LAYER_IN_PLACE,
    .fit = smooth_fit,
    .forward = sigmoid_forward,
    .backward = sigmoid_backward,
};

const sherd__layer_kind sherd__layer_tanh = {
    .name = "tanh",
    .traits = SHERD__LAYER_IN_PLACE,
    .fit = smooth_fit,
    .forward = tanh_forward,
    .backward = tanh_backward,
};

const sherd__layer_kind sherd__layer_softmax = {
    .name = "softmax",
    .traits = SHERD__LAYER_IN_PLACE,
    .fit = same_fit,
    .forward = softmax_forward,
    .backward = softmax_backward,
};

const sherd__layer_kind sherd__layer_flatten = {
    .name = "flatten",
    .traits = SHERD__LAYER_IN_PLACE | SHERD__LAYER_ALIAS | SHERD__LAYER_ANY_VIEW,
    .fit = flatten_fit,
    .forward = nothing,
    .backward = nothing,
};
