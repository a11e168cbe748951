/*
 * Convolution as products. The windows of all examples are laid out as rows (matrix/windows.c), so
 * that y = windows W is one product. Its rows are output pixels with their channels together, which
 * already is the order of a batch. dW = windows^T dy; dy W^T is added back to the pixels of the
 * windows in the same fixed order. In the backward pass the gradient of the windows overwrites the
 * windows once dW is made.
 */
#include <string.h>

#include "core/bytes.h"
#include "core/diag.h"
#include "learn/layer.h"
#include "matrix/local.h"

static size_t stride_of(const sherd__layer *l)
{
    return l->spec.stride > 0 ? l->spec.stride : 1;
}

static int conv_fit(sherd__layer *l, sherd_diag *d)
{
    size_t w = l->spec.window, high, wide, around, pixels;
    if (l->spec.units == 0 || w == 0)
        return sherd__fail(d, SHERD_EINVAL, "give it units (channels) and a window",
                           "a conv2d layer with %zu units and a window of %zu", l->spec.units, w);
    if (!sherd__mul(2, l->spec.padding, &around) || !sherd__add(l->in.height, around, &high) ||
        !sherd__add(l->in.width, around, &wide) || w > high || w > wide || l->spec.padding >= w)
        return sherd__fail(d, SHERD_ESHAPE,
                           "the window must fit into the image, and the padding must be smaller "
                           "than the window",
                           "a conv2d window of %zu with padding %zu on an image of %zu x %zu", w,
                           l->spec.padding, l->in.height, l->in.width);
    l->out = (sherd__tensor_shape){ (high - w) / stride_of(l) + 1, (wide - w) / stride_of(l) + 1,
                                    l->spec.units };
    l->cols = l->spec.units;
    if (!sherd__mul(w, w, &l->rows) || !sherd__mul(l->rows, l->in.channels, &l->rows) ||
        !sherd__mul(l->out.height, l->out.width, &pixels) ||
        !sherd__mul(pixels, l->rows, &l->scratch_each))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a conv2d layer is too large");
    return SHERD_OK;
}

static size_t pixels_of(const sherd__layer *l, const sherd__layer_call *call)
{
    return call->examples * l->out.height * l->out.width;
}

/* Sets *held if the multiplier already has x, so that windows need not be laid out here. */
static int hold(sherd__layer *l, const sherd__layer_call *call, bool *held, sherd_diag *d)
{
    *held = false;
    return sherd__local_is(call->engine.products) ? SHERD_OK
                                                  : sherd__products_hold(l, call, held, d);
}

static int hold32(sherd__layer *l, const sherd__layer_call *call, bool *held, sherd_diag *d)
{
    (void)l, (void)call, (void)d;
    *held = false;
    return SHERD_OK;
}

/* Makes the products by the multiplier or on this machine. dW is made first, and then dy W^T
   overwrites the windows, which are *down, or dx is made directly. */
static int forward_by(sherd__layer *l, const sherd__layer_call *call, sherd_view windows,
                      sherd_diag *d)
{
    sherd__windows w = sherd__layer_windows(l);
    if (!sherd__windows_cover(&w)) l->x_peak = 0; /* the peak of x may be outside all windows */
    return sherd__here_can(call, windows) ? sherd__here_forward(l, call, windows, call->y, d)
                                          : sherd__products_forward(l, call, windows, d);
}

static int backward_by(sherd__layer *l, const sherd__layer_call *call, sherd_view windows,
                       bool *down, sherd_diag *d)
{
    double *to = call->dx ? l->scratch : NULL;
    bool image = false;
    *down = to != NULL;
    if (sherd__here_can(call, windows))
        return sherd__here_backward(l, call, windows, call->y, call->dy, to, d);
    int err = sherd__products_backward(l, call, windows, NULL, d);
    if (err == 0 && to) err = sherd__products_image(l, call, &image, d);
    *down = to && !image;
    return err == 0 && *down ? sherd__products_down(l, call, windows.rows, to, d) : err;
}

static int forward_by32(sherd__layer *l, const sherd__layer_call *call, sherd_view windows,
                        sherd_diag *d)
{
    return sherd__here_forward32(l, call, windows, call->y32, d);
}

static int backward_by32(sherd__layer *l, const sherd__layer_call *call, sherd_view windows,
                         bool *down, sherd_diag *d)
{
    *down = call->dx32 != NULL;
    return sherd__here_backward32(l, call, windows, call->y32, call->dy32,
                                  call->dx32 ? l->scratch32 : NULL, d);
}

#define REAL double
#define R(name) name
#define OF(name) name##_f64
#define NUMBER SHERD_F64
#include "learn/conv.inc"
#undef REAL
#undef R
#undef OF
#undef NUMBER

#define REAL float
#define R(name) name##32
#define OF(name) name##_f32
#define NUMBER SHERD_F32
#include "learn/conv.inc"

const sherd__layer_kind sherd__layer_conv2d = {
    .name = "conv2d",
    .traits = SHERD__LAYER_FINISHES,
    .fit = conv_fit,
    .forward = conv_forward,
    .backward = conv_backward,
    .forward32 = conv_forward32,
    .backward32 = conv_backward32,
};
