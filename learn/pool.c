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

/* A pass over the examples, in either direction. */
typedef struct passing {
    const sherd__layer *l;
    const sherd__layer_call *call;
    bool max, back;
} passing;

#define REAL double
#define R(name) name
#define OF(name) name##_f64
#define NUMBER SHERD_F64
#include "learn/pool.inc"
#undef REAL
#undef R
#undef OF
#undef NUMBER

#define REAL float
#define R(name) name##32
#define OF(name) name##_f32
#define NUMBER SHERD_F32
#include "learn/pool.inc"

const sherd__layer_kind sherd__layer_max_pool = {
    .name = "max-pool",
    .fit = pool_fit,
    .forward = max_forward,
    .backward = max_backward,
    .forward32 = max_forward32,
    .backward32 = max_backward32,
};

const sherd__layer_kind sherd__layer_average_pool = {
    .name = "average-pool",
    .fit = pool_fit,
    .forward = average_forward,
    .backward = average_backward,
    .forward32 = average_forward32,
    .backward32 = average_backward32,
};
