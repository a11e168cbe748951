/*
 * Layers of a network in float64, with the bits of learn/: every sum has the order that it has
 * there, and fixed point is that of matrix/fixed.c. All operands are in one memory; positions are
 * in bytes. What a layer computes:
 *
 *   sherd__kernel_peak     max |x| of n numbers: that of each group to out_at; bad: not finite. The
 *                          last launch, of one group, instead stores the exponent of fixed point
 *   sherd__kernel_columns  the sum of each of m columns of k rows, by ascending rows
 *   sherd__kernel_layer    one of the operations below for each of n results
 */
#ifndef NODE_BACKENDS_KERNELS_LAYERS_H
#define NODE_BACKENDS_KERNELS_LAYERS_H

#ifndef SHERD__DEVICE
#include "matrix/funcs_kernels.h"
#include "node/backends/kernels/job.h"
#endif

#if SHERD__F64

#define LAYER_NUMBERS(at) ((const SHERD__GLOBAL double *)(left + (at)))

/* Returns the exponent of fixed point of `bits` bits for numbers up to `peak` (matrix/fixed.h). */
SHERD__FUNCTION double sherd__kernel_exponent(double peak, uint32_t bits)
{
    const uint64_t all = sherd__kernel_bits(peak);
    const int32_t top = (int32_t)bits - 1;
    const double bound = (double)((UINT64_C(1) << top) - 1);
    int32_t e = (int32_t)(all >> 52) - 1022, s;
    if (all == 0) return 0;
    if (all >> 52 == 0) return (double)top;
    s = top - e < top ? top - e : top;
    if (rint(peak * k_power((double)s)) > bound) s--;
    return (double)s;
}

SHERD__FUNCTION double sherd__kernel_unscale(double sum, double exponents)
{
    const int32_t shift = (int32_t)exponents;
    const int32_t first = -shift / 2;
    return sum * k_power((double)first) * k_power((double)(-shift - first)) + 0.0;
}

/* Where a number of an image, or a square of it, is. */
typedef struct sherd__kernel_pixel {
    uint64_t image;
    uint32_t y, x, channel;
} sherd__kernel_pixel;

SHERD__FUNCTION sherd__kernel_pixel sherd__kernel_pixel_of(const sherd__kernel_job *job, uint64_t i)
{
    sherd__kernel_pixel p;
    p.channel = (uint32_t)(i % job->channels);
    i /= job->channels;
    p.x = (uint32_t)(i % job->width);
    i /= job->width;
    p.y = (uint32_t)(i % job->height);
    p.image = i / job->height;
    return p;
}

/* The windows, of a row or of a column of an image, that have a pixel: [from, to). */
typedef struct sherd__kernel_range {
    uint32_t from, to;
} sherd__kernel_range;

SHERD__FUNCTION sherd__kernel_range sherd__kernel_range_of(const sherd__kernel_job *job,
                                                           uint32_t pixel, uint32_t windows)
{
    sherd__kernel_range r;
    const uint32_t at = pixel + job->padding;
    r.from = at < job->window ? 0 : (at - job->window) / job->stride + 1;
    r.to = at / job->stride + 1;
    if (r.to > windows) r.to = windows;
    return r;
}

/* ---- convolutions ---------------------------------------------------------------------------- */

SHERD__FUNCTION double sherd__kernel_window_number(const SHERD__GLOBAL double *x,
                                                   const sherd__kernel_job *job, uint64_t i)
{
    const uint64_t row = (uint64_t)job->window * job->window * job->channels;
    const int64_t at = sherd__kernel_window_at(job, i / row, i % row);
    return at < 0 ? 0 : x[at];
}

SHERD__FUNCTION double sherd__kernel_windows_sum(const SHERD__GLOBAL double *windows,
                                                 const sherd__kernel_job *job, uint64_t i)
{
    const sherd__kernel_pixel p = sherd__kernel_pixel_of(job, i);
    const sherd__kernel_range down = sherd__kernel_range_of(job, p.y, job->count / job->wide);
    const sherd__kernel_range across = sherd__kernel_range_of(job, p.x, job->wide);
    double sum = 0;
    for (uint32_t v = down.from; v < down.to; v++)
        for (uint32_t u = across.from; u < across.to; u++) {
            const uint32_t y = p.y + job->padding - v * job->stride;
            const uint32_t x = p.x + job->padding - u * job->stride;
            const uint64_t row = p.image * job->count + v * job->wide + u;
            sum += windows[(row * job->window * job->window + y * job->window + x) * job->channels +
                           p.channel];
        }
    return sum;
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* Returns number k of a square, in row order. */
SHERD__FUNCTION double sherd__kernel_square_at(const SHERD__GLOBAL double *x,
                                               const sherd__kernel_job *job,
                                               sherd__kernel_pixel square, uint32_t k)
{
    return x[sherd__kernel_pixel_at(job, square.image, square.y * job->stride + k / job->window,
                                    square.x * job->stride + k % job->window, square.channel)];
}

/* Returns the index of the maximum of a square, the first of equal ones in row order; NaN counts as
 * the maximum. */
SHERD__FUNCTION uint32_t sherd__kernel_largest(const SHERD__GLOBAL double *x,
                                               const sherd__kernel_job *job,
                                               sherd__kernel_pixel square)
{
    uint32_t which = 0;
    double best = 0;
    for (uint32_t k = 0; k < job->window * job->window; k++) {
        const double v = sherd__kernel_square_at(x, job, square, k);
        if (k == 0 || (!(v <= best) && best == best)) {
            best = v;
            which = k;
        }
    }
    return which;
}

/* Returns the maximum or the mean of the square of output i. */
SHERD__FUNCTION double sherd__kernel_pool(const SHERD__GLOBAL double *x,
                                          const sherd__kernel_job *job, uint64_t i)
{
    const uint32_t w = job->window;
    sherd__kernel_pixel square;
    square.channel = (uint32_t)(i % job->channels);
    i /= job->channels;
    square.y = (uint32_t)(i % job->count) / job->wide;
    square.x = (uint32_t)(i % job->count) % job->wide;
    square.image = i / job->count;
    double sum = 0;
    if (job->op == KERNEL_MAX)
        return sherd__kernel_square_at(x, job, square, sherd__kernel_largest(x, job, square));
    for (uint32_t k = 0; k < w * w; k++) sum += sherd__kernel_square_at(x, job, square, k);
    return sum / (double)(w * w);
}

/* Returns the gradient of pixel i: the sum over its squares, row by row from left to right. */
SHERD__FUNCTION double sherd__kernel_pool_down(const SHERD__GLOBAL double *x,
                                               const SHERD__GLOBAL double *dy,
                                               const sherd__kernel_job *job, uint64_t i)
{
    const sherd__kernel_pixel p = sherd__kernel_pixel_of(job, i);
    const sherd__kernel_range down = sherd__kernel_range_of(job, p.y, job->count / job->wide);
    const sherd__kernel_range across = sherd__kernel_range_of(job, p.x, job->wide);
    double sum = 0;
    for (uint32_t v = down.from; v < down.to; v++)
        for (uint32_t u = across.from; u < across.to; u++) {
            const uint64_t square = p.image * job->count + v * job->wide + u;
            const double g = dy[square * job->channels + p.channel];
            if (job->op == KERNEL_MEAN_DOWN) {
                sum += g / (double)(job->window * job->window);
            } else {
                sherd__kernel_pixel at = p;
                at.y = v;
                at.x = u;
                const uint32_t k = sherd__kernel_largest(x, job, at);
                const uint32_t mine = (p.y - v * job->stride) * job->window + p.x - u * job->stride;
                sum += k == mine ? g : 0;
            }
        }
    return sum;
}

/* ---- the kernels ----------------------------------------------------------------------------- */

SHERD__FUNCTION double sherd__kernel_layer_one(const SHERD__GLOBAL uint8_t *left,
                                               const sherd__kernel_job *job, uint64_t i)
{
    const SHERD__GLOBAL double *x = LAYER_NUMBERS(job->left_at);
    const SHERD__GLOBAL double *z = LAYER_NUMBERS(job->right_at);
    double y;
    switch (job->op) {
    case KERNEL_CONVERT: return sherd__kernel_number(left + job->left_at, job->left_type, i);
    case KERNEL_TRANSPOSE: return x[i];
    case KERNEL_QUANTISE: return rint(x[i] * k_power(z[0])) + 0.0;
    case KERNEL_UNSCALE:
        y = sherd__kernel_unscale(x[i], z[0] + LAYER_NUMBERS(job->more_at)[0]);
        return job->k ? y + LAYER_NUMBERS(job->biases_at)[i % job->m] : y;
    case KERNEL_SIGMOID_DOWN: return z[i] * (x[i] - x[i] * x[i]);
    case KERNEL_TANH_DOWN: return z[i] - z[i] * (x[i] * x[i]);
    case KERNEL_RELU_DOWN: return x[i] <= 0 ? 0 : z[i];
    case KERNEL_WINDOWS: return sherd__kernel_window_number(x, job, i);
    case KERNEL_WINDOWS_DOWN: return sherd__kernel_windows_sum(x, job, i);
    case KERNEL_MAX:
    case KERNEL_MEAN: return sherd__kernel_pool(x, job, i);
    default: return sherd__kernel_pool_down(x, z, job, i);
    }
}

SHERD__ENTRY(sherd__kernel_layer)
{
    SHERD__ITEMS
    {
        const uint64_t i = sherd__kernel_item(&job, SHERD__GROUP_X, SHERD__GROUP_Y, item);
        if (i < job.n) {
            const uint64_t at = job.transposed ? i % job.m * job.k + i / job.m : i;
            ((SHERD__GLOBAL double *)(out + job.out_at))[at] = sherd__kernel_layer_one(left, &job,
                                                                                       i);
        }
    }
#ifndef SHERD__DEVICE
    (void)right, (void)bad;
#endif
}

SHERD__ENTRY(sherd__kernel_peak)
{
    SHERD__SHARED double most[SHERD__GROUP];
    SHERD__ITEMS
    {
        const SHERD__GLOBAL double *x = LAYER_NUMBERS(job.left_at);
        const uint64_t step = (uint64_t)job.count * SHERD__GROUP;
        double peak = 0;
        for (uint64_t i = (uint64_t)SHERD__GROUP_X * SHERD__GROUP + item; i < job.n; i += step) {
            const double v = fabs(x[i]);
            if (!(v <= 0x1.fffffffffffffp1023)) *bad = 1;
            if (v > peak) peak = v;
        }
        most[item] = peak;
    }
    SHERD__BARRIER;
    for (uint32_t step = SHERD__GROUP / 2; step > 0; step /= 2) {
        SHERD__ITEMS
        {
            if (item < step && most[item + step] > most[item]) most[item] = most[item + step];
        }
        SHERD__BARRIER;
    }
    SHERD__ITEMS
    {
        if (item == 0)
            ((SHERD__GLOBAL double *)(out + job.out_at))[SHERD__GROUP_X] =
                job.op ? sherd__kernel_exponent(most[0], job.op) : most[0];
    }
#ifndef SHERD__DEVICE
    (void)right, (void)group_y;
#endif
}

/* A group has 16 columns, and reads 64 of their rows at a time for the 16 items that add. */
SHERD__ENTRY(sherd__kernel_columns)
{
    SHERD__SHARED double some[64][16];
    SHERD__PRIVATE(double, sum, [1]);
    SHERD__ITEMS
    {
        SHERD__MINE(sum)[0] = 0;
    }
    for (uint64_t first = 0; first < job.k; first += 64) {
        SHERD__ITEMS
        {
            const SHERD__GLOBAL double *x = LAYER_NUMBERS(job.left_at);
            const uint64_t col = (uint64_t)SHERD__GROUP_X * 16 + item % 16;
            for (uint32_t r = item / 16; r < 64; r += 16)
                some[r][item % 16] = first + r < job.k && col < job.m ? x[(first + r) * job.m + col]
                                                                      : 0;
        }
        SHERD__BARRIER;
        SHERD__ITEMS
        {
            if (item < 16)
                for (uint32_t r = 0; r < 64; r++) SHERD__MINE(sum)[0] += some[r][item];
        }
        SHERD__BARRIER;
    }
    SHERD__ITEMS
    {
        const uint64_t col = (uint64_t)SHERD__GROUP_X * 16 + item;
        if (item < 16 && col < job.m)
            ((SHERD__GLOBAL double *)(out + job.out_at))[col] = SHERD__MINE(sum)[0];
    }
#ifndef SHERD__DEVICE
    (void)right, (void)bad, (void)group_y;
#endif
}

#undef LAYER_NUMBERS

#endif
#endif
