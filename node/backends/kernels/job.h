/*
 * What a kernel is to do, and how it reads blocks: values lie in a device's memory in the form in
 * which they travel (crypto/fragment.h), and are converted when they are read.
 *
 * Read by the host's compiler and by those of devices (core/kernel.h).
 */
#ifndef NODE_BACKENDS_KERNELS_JOB_H
#define NODE_BACKENDS_KERNELS_JOB_H

#ifndef SHERD__DEVICE
#include "core/kernel.h"
#endif

/* Kinds of values: sherd_dtype, and residues (sherd__fragment_info.dtype). */
enum {
    KERNEL_F64 = 1,
    KERNEL_F32 = 2,
    KERNEL_U8 = 3,
    KERNEL_U16 = 4,
    KERNEL_U32 = 5,
    KERNEL_I8 = 6,
    KERNEL_I16 = 7,
    KERNEL_I32 = 8,
    KERNEL_I64 = 9,
    KERNEL_RESIDUES = 32
};

/* Operations of layers.h. For a convolution, job.wide and job.count are the windows in a row of an
 * image and in an image; for a pool the outputs of one channel. LEFT, RIGHT, MORE and BIASES are
 * what is at these positions. */
enum {
    KERNEL_CONVERT = 1,  /* LEFT, of left_type, in float64 */
    KERNEL_TRANSPOSE,    /* LEFT, a matrix of k rows and m columns; `transposed` is set */
    KERNEL_QUANTISE,     /* LEFT in fixed point, whose exponent is at RIGHT */
    KERNEL_UNSCALE,      /* sums LEFT of products of fixed point, as numbers; exponents of both
                            operands are at RIGHT and MORE. k: with biases BIASES, of m columns */
    KERNEL_SIGMOID_DOWN, /* RIGHT times the slope of an activation whose result is LEFT */
    KERNEL_TANH_DOWN,
    KERNEL_RELU_DOWN,
    KERNEL_WINDOWS,      /* the windows of images LEFT (matrix/windows.h) */
    KERNEL_WINDOWS_DOWN, /* windows LEFT, added up where they overlap */
    KERNEL_MAX,          /* the maximum of each square of LEFT */
    KERNEL_MAX_DOWN,     /* the gradients RIGHT of the maxima of LEFT, at their places */
    KERNEL_MEAN,
    KERNEL_MEAN_DOWN /* the gradients RIGHT of means, divided among their squares */
};

/* Rows and columns of a tile of a result, and the numbers of each operand's line that are in the
 * group's memory at a time. */
enum { KERNEL_TILE = 64, KERNEL_DEPTH = 16 };

/* Terms that are added up in float64 before sums are reduced modulo a prime (convert.h). */
enum { KERNEL_RANGE = 512 };

/* A product of n x k by k x m, or an operation on n values (op). Positions are in bytes. A
 * transposed left operand is stored as k x n. */
typedef struct sherd__kernel_job {
    uint64_t left_at, right_at, out_at;
    uint64_t n, k, m;
    uint64_t row;                /* the first row of the result that is computed; for an operation
                                    on n values: groups in x */
    uint64_t more_at, biases_at; /* of layers.h */
    /* Bytes: from one strip of 16 lines to the next. */
    uint64_t left_strip, right_strip;
    uint32_t left_type, right_type, out_type;
    uint32_t prime;
    uint32_t transposed;
    uint32_t op; /* sherd_op */
    /* The left operand is the matrix of windows of images (matrix/windows.h); window 0: it is not.
     * `wide` and `count` are the windows in a row of an image and in an image. */
    uint32_t height, width, channels, window, stride, padding, wide, count;
    /* A part of an operand or result that is converted for a library (convert.h): its rows, the
     * first of which is `row`, and its columns. */
    uint64_t rows, cols, col;
} sherd__kernel_job;

/* Returns the number of an item, for kernels with one for each number: job.row groups are side by
 * side. */
SHERD__FUNCTION uint64_t sherd__kernel_item(const sherd__kernel_job *job, uint32_t x, uint32_t y,
                                            uint32_t item)
{
    return (y * job->row + x) * SHERD__GROUP + item;
}

SHERD__FUNCTION uint64_t sherd__kernel_pixel_at(const sherd__kernel_job *job, uint64_t image,
                                                uint32_t y, uint32_t x, uint32_t channel)
{
    return ((image * job->height + y) * job->width + x) * job->channels + channel;
}

/* Returns which number of the images is number l of row i of their matrix of windows; -1: it is
 * outside of them. */
SHERD__FUNCTION int64_t sherd__kernel_window_at(const sherd__kernel_job *job, uint64_t i,
                                                uint64_t l)
{
    const uint32_t at = (uint32_t)(i % job->count), in = (uint32_t)(l / job->channels);
    const int64_t y = (int64_t)(at / job->wide) * job->stride + in / job->window - job->padding;
    const int64_t x = (int64_t)(at % job->wide) * job->stride + in % job->window - job->padding;
    if (y < 0 || x < 0 || y >= (int64_t)job->height || x >= (int64_t)job->width) return -1;
    return (int64_t)sherd__kernel_pixel_at(job, i / job->count, (uint32_t)y, (uint32_t)x,
                                           (uint32_t)(l % job->channels));
}

SHERD__FUNCTION uint32_t sherd__kernel_word(const SHERD__GLOBAL uint8_t *at, uint64_t i)
{
    return ((const SHERD__GLOBAL uint32_t *)at)[i];
}

SHERD__FUNCTION int64_t sherd__kernel_integer(const SHERD__GLOBAL uint8_t *at, uint32_t type,
                                              uint64_t i)
{
    switch (type) {
    case KERNEL_U8: return (int64_t)at[i];
    case KERNEL_I8: return (int64_t)((const SHERD__GLOBAL int8_t *)at)[i];
    case KERNEL_U16: return (int64_t)((const SHERD__GLOBAL uint16_t *)at)[i];
    case KERNEL_I16: return (int64_t)((const SHERD__GLOBAL int16_t *)at)[i];
    case KERNEL_U32: return (int64_t)((const SHERD__GLOBAL uint32_t *)at)[i];
    case KERNEL_I32: return (int64_t)((const SHERD__GLOBAL int32_t *)at)[i];
    default: return ((const SHERD__GLOBAL int64_t *)at)[i];
    }
}

/* Returns value i modulo the prime, in [0, prime). Sets *bad where the value is no residue, or is
 * an integer beyond 2^53. */
SHERD__FUNCTION uint32_t sherd__kernel_residue(const SHERD__GLOBAL uint8_t *at, uint32_t type,
                                               uint64_t i, uint32_t prime,
                                               SHERD__GLOBAL uint32_t *bad)
{
    if (type == KERNEL_RESIDUES) {
        const SHERD__GLOBAL uint8_t *b = at + 3 * i;
        const uint32_t r = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16;
        if (r >= prime) *bad = 1;
        return r;
    }
    const int64_t limit = INT64_C(1) << 53, x = sherd__kernel_integer(at, type, i);
    if (x > limit || x < -limit) *bad = 1;
    const int64_t r = x % (int64_t)prime;
    return (uint32_t)(r < 0 ? r + (int64_t)prime : r);
}

#if SHERD__F64
SHERD__FUNCTION double sherd__kernel_number(const SHERD__GLOBAL uint8_t *at, uint32_t type,
                                            uint64_t i)
{
    if (type == KERNEL_F64) return ((const SHERD__GLOBAL double *)at)[i];
    if (type == KERNEL_F32) return (double)((const SHERD__GLOBAL float *)at)[i];
    return (double)sherd__kernel_integer(at, type, i);
}

SHERD__FUNCTION void sherd__kernel_put(SHERD__GLOBAL uint8_t *at, uint32_t type, uint64_t i,
                                       double x)
{
    if (type == KERNEL_F64) ((SHERD__GLOBAL double *)at)[i] = x;
    else ((SHERD__GLOBAL float *)at)[i] = (float)x;
}
#endif

#endif
