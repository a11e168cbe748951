/*
 * Pools over squares of an image, channel by channel. Pixels at the lower and right edge that fill
 * no square are left out and get no gradient. Squares may overlap (a stride smaller than the
 * window). The backward pass finds the maximum of a square again from x and does not store it: both
 * passes take the first of equal numbers in row order.
 *
 * Neither instructions nor addresses depend on numbers, since images may be private
 * (learn/local_data.h). Masks select the maximum, and its gradient is added to the whole square as
 * zeros except at one place. Several squares are processed together, because otherwise each number
 * would wait for the one before.
 */
#include <string.h>

#include "core/diag.h"
#include "core/pick.h"
#include "learn/layer.h"
#include "matrix/clones.h"

#define TOGETHER 64u /* squares */
#define FEW 4u       /* channels */

static size_t stride_of(const sherd__layer *l)
{
    return l->spec.stride > 0 ? l->spec.stride : l->spec.window;
}

static int pool_fit(sherd__layer *l, sherd_diag *d)
{
    size_t w = l->spec.window, n;
    if (w == 0) return sherd__fail(d, SHERD_EINVAL, "give it a window", "a pool without a window");
    if (w > l->in.height || w > l->in.width)
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a pool's window of %zu on an image of %zu x %zu",
                           w, l->in.height, l->in.width);
    if (!sherd__form_size(l->in, &n) || w > UINT16_MAX) /* indices within a square are 32-bit
                                                           numbers */
        return sherd__fail(d, SHERD_ESHAPE, NULL, "a pool's input is too large");
    l->out = (sherd__tensor_shape){ (l->in.height - w) / stride_of(l) + 1,
                                    (l->in.width - w) / stride_of(l) + 1, l->in.channels };
    return SHERD_OK;
}

/* Returns the index in x of the first square of a row of outputs. */
static size_t corner(const sherd__layer *l, size_t example, size_t oy)
{
    return (example * l->in.height + oy * stride_of(l)) * l->in.width * l->in.channels;
}

/* How a row of outputs is divided: the channels of one square together or, if there are few
   channels, squares of one channel. Steps are in numbers of x and y. */
typedef struct pieces {
    size_t outer, x_outer, y_outer;
    size_t inner, x_step, y_step;
    size_t n; /* of inner pieces: squares or channels of one piece */
} pieces;

static pieces pieces_of(const sherd__layer *l)
{
    const size_t channels = l->in.channels, across = stride_of(l) * channels;
    const pieces squares = { .outer = channels,
                             .x_outer = 1,
                             .y_outer = 1,
                             .inner = l->out.width,
                             .x_step = across,
                             .y_step = channels };
    const pieces one = { .outer = l->out.width,
                         .x_outer = across,
                         .y_outer = channels,
                         .inner = channels,
                         .x_step = 1,
                         .y_step = 1 };
    return channels < FEW ? squares : one;
}

/* A pass over the examples, forward or backward. */
typedef struct passing {
    const sherd__layer *l;
    const sherd__layer_call *call;
    bool max, back;
} passing;

#define REAL double
#define R(name) name
#define OF(name) name##_f64
#define INDEX uint64_t
#include "learn/pool.inc"
#undef REAL
#undef R
#undef OF
#undef INDEX

#define REAL float
#define R(name) name##32
#define OF(name) name##_f32
#define INDEX uint32_t
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
