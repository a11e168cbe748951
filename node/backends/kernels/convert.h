/*
 * Conversions for a library that multiplies (accelerator_library.c).
 *
 * Residues of 23 bits are multiplied in float64: they are centred, |x| <= 2^22 - 1 (a prime is
 * below 2^23), and so is a sum that a range of at most KERNEL_RANGE terms is added to. Then every
 * partial sum, in any order, is an integer of at most
 *
 *   512 * (2^22 - 1)^2 + 2^22 = 2^53 - 2^32 + 2^22 + 512 < 2^53,
 *
 * which float64 holds exactly.
 *
 * Residues of one byte are multiplied as signed bytes, which are centred, |x| <= 127: sums of
 * 65,536 terms are below 2^31.
 */
#ifndef NODE_BACKENDS_KERNELS_CONVERT_H
#define NODE_BACKENDS_KERNELS_CONVERT_H

#ifndef SHERD__DEVICE
#include "node/backends/kernels/job.h"
/* For how they read operands; each is followed by its kernel. */
#include "node/backends/kernels/product_residues.h"

#include "node/backends/kernels/tile.h"

#include "node/backends/kernels/product_bytes.h"

#include "node/backends/kernels/tile.h"
#endif

#if SHERD__F64

/* Stores a part of the left operand, whose lines have m values, as float64, modulo the prime if
 * there is one. A group has 64 x 64 values. */
SHERD__ENTRY(sherd__kernel_convert)
{
    SHERD__ITEMS
    {
        const uint64_t j = (uint64_t)SHERD__GROUP_X * KERNEL_TILE + item % KERNEL_TILE;
        const uint64_t first = (uint64_t)SHERD__GROUP_Y * KERNEL_TILE + item / KERNEL_TILE;
        for (uint64_t i = first; i < first + KERNEL_TILE; i += SHERD__GROUP / KERNEL_TILE) {
            if (i >= job.rows || j >= job.cols) continue;
            const uint64_t row = job.row + i, col = job.col + j;
            double x;
            if (job.prime) {
                const uint32_t r = job.window
                                       ? sherd__kernel_window(left + job.left_at, &job, row, col,
                                                              bad)
                                       : sherd__kernel_residue(left + job.left_at, job.left_type,
                                                               row * job.m + col, job.prime, bad);
                x = (double)r - (r > job.prime / 2 ? (double)job.prime : 0);
            } else {
                x = sherd__kernel_number(left + job.left_at, job.left_type, row * job.m + col);
            }
            ((SHERD__GLOBAL double *)(out + job.out_at))[i * job.cols + j] = x;
        }
    }
#ifndef SHERD__DEVICE
    (void)right;
#endif
}

/* Returns an integer below 2^53 modulo p, centred. The quotient is rounded from one with an error
 * below 1/2, so the remainder is exact and at most p before it is corrected. */
SHERD__FUNCTION double sherd__kernel_centred(double x, double p, double inverse)
{
    const double r = fma(-rint(x * inverse), p, x);
    return r > p / 2 ? r - p : r < -p / 2 ? r + p : r;
}

/* Stores n sums of float64: centred, in place of themselves (out_type KERNEL_F64), as residues, or
 * without a prime in the type of the result. */
SHERD__ENTRY(sherd__kernel_store)
{
    SHERD__ITEMS
    {
        const uint64_t i = sherd__kernel_item(&job, SHERD__GROUP_X, SHERD__GROUP_Y, item);
        if (i < job.n) {
            const double x = ((const SHERD__GLOBAL double *)(left + job.left_at))[i];
            const double p = (double)job.prime;
            const double r = job.prime ? sherd__kernel_centred(x, p, 1 / p) : x;
            if (job.out_type == KERNEL_RESIDUES)
                sherd__kernel_pack(out + job.out_at, i, (uint32_t)(r < 0 ? r + p : r));
            else sherd__kernel_put(out + job.out_at, job.out_type, i, r);
        }
    }
#ifndef SHERD__DEVICE
    (void)right, (void)bad;
#endif
}

#endif

SHERD__FUNCTION uint32_t sherd__kernel_centred_bytes(uint32_t word, uint32_t is_signed,
                                                     uint32_t prime)
{
    const int32_t p = (int32_t)prime;
    uint32_t out = 0;
    for (uint32_t t = 0; t < 32; t += 8) {
        const uint32_t byte = word >> t & 255;
        int32_t r = (is_signed ? (int32_t)(int8_t)(uint8_t)byte : (int32_t)byte) % p;
        r += r > p / 2 ? -p : r < -(p / 2) ? p : 0;
        out |= ((uint32_t)r & 255) << t;
    }
    return out;
}

/* Stores lines of residues of one byte, the first of which is `row`, as signed bytes in lines of
 * `cols` terms. A group has a tile of 16 lines and 64 terms. op 0: rows of the left operand; 1:
 * columns of the right one. */
SHERD__ENTRY(sherd__kernel_centre)
{
    SHERD__ITEMS
    {
        /* Neighbours read neighbouring bytes. */
        const uint32_t along = job.op == 0 && !job.transposed;
        const uint64_t i = (uint64_t)SHERD__GROUP_X * 16 + (along ? item / 16 : item % 16);
        const uint64_t k = (uint64_t)SHERD__GROUP_Y * 16 + (along ? item % 16 : item / 16);
        const uint32_t word = job.op == 0 ? sherd__kernel_bytes_left(left, &job, job.row + i, k)
                                          : sherd__kernel_bytes_right(right, &job, k, job.row + i);
        ((SHERD__GLOBAL uint32_t *)(out + job.out_at))[i * (job.cols / 4) + k] =
            sherd__kernel_centred_bytes(word, job.op, job.prime);
    }
#ifndef SHERD__DEVICE
    (void)bad;
#endif
}

/* Stores sums of 32 bits, in lines of `cols` of which m are used, as residues of one byte. A group
 * has 64 x 64 sums. */
SHERD__ENTRY(sherd__kernel_reduce)
{
    SHERD__ITEMS
    {
        const uint64_t j = (uint64_t)SHERD__GROUP_X * KERNEL_TILE + item % KERNEL_TILE;
        const uint64_t first = (uint64_t)SHERD__GROUP_Y * KERNEL_TILE + item / KERNEL_TILE;
        for (uint64_t i = first; i < first + KERNEL_TILE; i += SHERD__GROUP / KERNEL_TILE)
            if (i < job.rows && j < job.m)
                out[job.out_at + (job.row + i) * job.m + j] =
                    sherd__kernel_byte((int32_t)sherd__kernel_word(left + job.left_at,
                                                                   i * job.cols + j),
                                       job.prime);
    }
#ifndef SHERD__DEVICE
    (void)right, (void)bad;
#endif
}

#endif
