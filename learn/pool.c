/*
 * Pools over squares of an image, channel by channel; pixels at the lower and right edge that fill
 * no square are left out and get no gradient. Squares may overlap (a stride below the window). The
 * largest of a square is found again on the way back, from x, rather than remembered: the first of
 * equals in row order, both times.
 */
#include <string.h>

#include "core/diag.h"
#include "learn/layer.h"

static size_t stride_of(const sherd__layer *l)
{
    return l->spec.stride > 0 ? l->spec.stride : l->spec.window;
}

static int pool_fit(sherd__layer *l, sherd_diag *d)
{
    size_t w = l->spec.window, n;
    if (w == 0)
        return sherd__fail(d, SHERD_EINVAL, "give it a window", "a pool without a window");
    if (w > l->in.height || w > l->in.width)
        return sherd__fail(d, SHERD_ESHAPE, NULL,
                           "a pool's window of %zu on an image of %zu x %zu", w, l->in.height,
                           l->in.width);
    if (!sherd__form_size(l->in, &n))
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a pool's input is too large to count");
    l->out = (sherd__form){ (l->in.height - w) / stride_of(l) + 1,
                            (l->in.width - w) / stride_of(l) + 1, l->in.channels };
    return SHERD_OK;
}

/* Index into x of the square of output (example, oy, ox), channel 0. */
static size_t corner(const sherd__layer *l, size_t example, size_t oy, size_t ox)
{
    size_t y = oy * stride_of(l), x = ox * stride_of(l);
    return ((example * l->in.height + y) * l->in.width + x) * l->in.channels;
}

/* Index relative to the corner of the largest number of a square; NaN is largest. */
static size_t largest(const sherd__layer *l, const double *x)
{
    size_t best = 0;
    for (size_t wy = 0; wy < l->spec.window; wy++)
        for (size_t wx = 0; wx < l->spec.window; wx++) {
            size_t k = (wy * l->in.width + wx) * l->in.channels;
            if (x[k] > x[best] || (x[k] != x[k] && x[best] == x[best])) best = k;
        }
    return best;
}

static double mean(const sherd__layer *l, const double *x)
{
    double sum = 0;
    for (size_t wy = 0; wy < l->spec.window; wy++)
        for (size_t wx = 0; wx < l->spec.window; wx++)
            sum += x[(wy * l->in.width + wx) * l->in.channels];
    return sum / (double)(l->spec.window * l->spec.window);
}

static void spread(const sherd__layer *l, double dy, double *dx)
{
    double each = dy / (double)(l->spec.window * l->spec.window);
    for (size_t wy = 0; wy < l->spec.window; wy++)
        for (size_t wx = 0; wx < l->spec.window; wx++)
            dx[(wy * l->in.width + wx) * l->in.channels] += each;
}

static void forward(const sherd__layer *l, const sherd__layer_call *call, bool max)
{
    const double *x = call->x.data;
    double *y = call->y;
    for (size_t i = 0; i < call->examples; i++)
        for (size_t oy = 0; oy < l->out.height; oy++)
            for (size_t ox = 0; ox < l->out.width; ox++) {
                const double *at = x + corner(l, i, oy, ox);
                for (size_t c = 0; c < l->in.channels; c++, at++)
                    *y++ = max ? at[largest(l, at)] : mean(l, at);
            }
}

static void backward(const sherd__layer *l, const sherd__layer_call *call, bool max)
{
    const double *x = call->x.data, *dy = call->dy;
    size_t size = l->in.height * l->in.width * l->in.channels;
    if (call->dx == NULL) return;
    memset(call->dx, 0, call->examples * size * sizeof *call->dx);
    for (size_t i = 0; i < call->examples; i++)
        for (size_t oy = 0; oy < l->out.height; oy++)
            for (size_t ox = 0; ox < l->out.width; ox++) {
                size_t at = corner(l, i, oy, ox);
                for (size_t c = 0; c < l->in.channels; c++, at++, dy++)
                    if (max)
                        call->dx[at + largest(l, x + at)] += *dy;
                    else
                        spread(l, *dy, call->dx + at);
            }
}

static int max_forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)d;
    forward(l, call, true);
    return SHERD_OK;
}

static int max_backward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)d;
    backward(l, call, true);
    return SHERD_OK;
}

static int average_forward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)d;
    forward(l, call, false);
    return SHERD_OK;
}

static int average_backward(sherd__layer *l, const sherd__layer_call *call, sherd_diag *d)
{
    (void)d;
    backward(l, call, false);
    return SHERD_OK;
}

const sherd__layer_kind sherd__layer_max_pool = {
    .name = "max-pool",
    .fit = pool_fit,
    .forward = max_forward,
    .backward = max_backward,
};

const sherd__layer_kind sherd__layer_average_pool = {
    .name = "average-pool",
    .fit = pool_fit,
    .forward = average_forward,
    .backward = average_backward,
};
