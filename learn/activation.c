/*
 * Layers without parameters that keep the shape. All compute their gradient from y alone, so they
 * can work in place. A function that the element-wise operations of nodes can express is computed
 * here by the same operations in the same order, one at a time, so nodes and this machine give
 * equal bits. ReLU's gradient is a selection and no arithmetic, so it is always computed here.
 */
#include "core/diag.h"
#include "core/pick.h"
#include "learn/layer.h"
#include "matrix/clones.h"
#include "matrix/funcs.h"

static size_t count_of(const sherd__layer *l, const sherd__layer_call *call)
{
    return call->examples * l->in.height * l->in.width * l->in.channels;
}

static int same_fit(sherd__layer *l, sherd_diag *d)
{
    size_t n;
    if (!sherd__form_size(l->in, &n))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a layer's input is too large");
    l->out = l->in;
    return SHERD_OK;
}

/* dx is either dy or separate memory, so no iteration depends on another. */
#ifdef __clang__
#define IN_PLACE
#else
#define IN_PLACE _Pragma("GCC ivdep")
#endif
#define PIECE 8192u /* numbers that a thread takes at a time */

#define REAL double
#define R(name) name
#define OF(name) name##_f64
#define NUMBER SHERD_F64
#include "learn/activation.inc"
#undef REAL
#undef R
#undef OF
#undef NUMBER

#define REAL float
#define R(name) name##32
#define OF(name) name##_f32
#define NUMBER SHERD_F32
#include "learn/activation.inc"

/* Computes out = op(a) or op(a, b) over n numbers with the multiplier. */
static int apply(sherd__engine e, sherd_op op, const double *a, const double *b, size_t n,
                 double *out, sherd_diag *d)
{
    sherd_view va = sherd_view_c(a, SHERD_F64, 1, n), vb = sherd_view_c(b, SHERD_F64, 1, n);
    return sherd_multiplier_map(e.products, op, va, vb, out, n, d);
}

static int forward_by(sherd_op op, const sherd__layer *l, const sherd__layer_call *call,
                      sherd_diag *d)
{
    if (!call->engine.maps) return forward_here(op, l, call);
    return apply(call->engine, op, call->x.data, NULL, count_of(l, call), call->y, d);
}

static int relu_forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return forward_by(SHERD_OP_RELU, l, call, d);
}

static int relu_forward32(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)d;
    return forward_here32(SHERD_OP_RELU, l, call);
}

static int relu_backward32(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)d;
    return backward_here32(SHERD_OP_RELU, l, call);
}

static int sigmoid_forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return forward_by(SHERD_OP_SIGMOID, l, call, d);
}

static int sigmoid_forward32(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)d;
    return forward_here32(SHERD_OP_SIGMOID, l, call);
}

static int sigmoid_backward32(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)d;
    return backward_here32(SHERD_OP_SIGMOID, l, call);
}

static int tanh_forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    return forward_by(SHERD_OP_TANH, l, call, d);
}

static int tanh_forward32(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)d;
    return forward_here32(SHERD_OP_TANH, l, call);
}

static int tanh_backward32(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)d;
    return backward_here32(SHERD_OP_TANH, l, call);
}

static int relu_backward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)d;
    return backward_here(SHERD_OP_RELU, l, call);
}

/* dx = dy * (y - y*y). */
static int sigmoid_backward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    size_t n = count_of(l, call);
    double *y = call->y, *s = l->scratch;
    if (!call->dx) return SHERD_OK;
    if (!call->engine.maps) return backward_here(SHERD_OP_SIGMOID, l, call);
    int err = apply(call->engine, SHERD_OP_SQUARE, y, NULL, n, s, d);
    if (err == 0) err = apply(call->engine, SHERD_OP_MINUS, y, s, n, s, d);
    if (err == 0) err = apply(call->engine, SHERD_OP_TIMES, call->dy, s, n, call->dx, d);
    return err;
}

/* dx = dy - dy * (y*y). */
static int tanh_backward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    size_t n = count_of(l, call);
    double *y = call->y, *s = l->scratch;
    if (!call->dx) return SHERD_OK;
    if (!call->engine.maps) return backward_here(SHERD_OP_TANH, l, call);
    int err = apply(call->engine, SHERD_OP_SQUARE, y, NULL, n, s, d);
    if (err == 0) err = apply(call->engine, SHERD_OP_TIMES, call->dy, s, n, s, d);
    if (err == 0) err = apply(call->engine, SHERD_OP_MINUS, call->dy, s, n, call->dx, d);
    return err;
}

/* The scratch memory is for gradients that the multiplier computes. */
static int smooth_fit(sherd__layer *l, sherd_diag *d)
{
    int err = same_fit(l, d);
    if (err == 0) l->scratch_each = l->in.height * l->in.width * l->in.channels;
    return err;
}

static int flatten_fit(sherd__layer *l, sherd_diag *d)
{
    int err = same_fit(l, d);
    if (err == 0)
        l->out = (sherd__tensor_shape){ 1, 1, l->in.height * l->in.width * l->in.channels };
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
    .forward32 = relu_forward32,
    .backward32 = relu_backward32,
    .op = SHERD_OP_RELU,
};

const sherd__layer_kind sherd__layer_sigmoid = {
    .name = "sigmoid",
    .traits = SHERD__LAYER_IN_PLACE,
    .fit = smooth_fit,
    .forward = sigmoid_forward,
    .backward = sigmoid_backward,
    .forward32 = sigmoid_forward32,
    .backward32 = sigmoid_backward32,
    .op = SHERD_OP_SIGMOID,
};

const sherd__layer_kind sherd__layer_tanh = {
    .name = "tanh",
    .traits = SHERD__LAYER_IN_PLACE,
    .fit = smooth_fit,
    .forward = tanh_forward,
    .backward = tanh_backward,
    .forward32 = tanh_forward32,
    .backward32 = tanh_backward32,
    .op = SHERD_OP_TANH,
};

const sherd__layer_kind sherd__layer_softmax = {
    .name = "softmax",
    .traits = SHERD__LAYER_IN_PLACE,
    .fit = same_fit,
    .forward = softmax_forward,
    .backward = softmax_backward,
    .forward32 = softmax_forward32,
    .backward32 = softmax_backward32,
};

const sherd__layer_kind sherd__layer_flatten = {
    .name = "flatten",
    .traits = SHERD__LAYER_IN_PLACE | SHERD__LAYER_ALIAS | SHERD__LAYER_ANY_VIEW,
    .fit = flatten_fit,
    .forward = nothing,
    .backward = nothing,
    .forward32 = nothing,
    .backward32 = nothing,
};
