/*
 * Products of residues of one byte, in the order in which they arrive (matrix/residue_bytes.h): a
 * number is four terms of a line, unsigned in the left operand and signed in the right one. Sums of
 * up to 65,536 terms fit 32 bits, for all bytes.
 */
#ifndef NODE_BACKENDS_KERNELS_PRODUCT_BYTES_H
#define NODE_BACKENDS_KERNELS_PRODUCT_BYTES_H

#ifndef SHERD__DEVICE
#include "node/backends/kernels/job.h"
#endif

/* Returns terms [4k, 4k+4) of row i. Rows of a transposed operand are columns of the stored one,
 * whose terms are 64 bytes apart. */
SHERD__FUNCTION uint32_t sherd__kernel_bytes_left(const SHERD__GLOBAL uint8_t *left,
                                                  const sherd__kernel_job *job, uint64_t i,
                                                  uint64_t k)
{
    uint32_t word = 0;
    if (!job->transposed)
        return sherd__kernel_word(left + job->left_at + i / 16 * job->left_strip,
                                  k / 16 * 256 + i % 16 * 16 + k % 16);
    for (uint32_t t = 0; t < 4; t++) {
        const uint64_t term = 4 * k + t;
        if (term < job->k)
            word |= (uint32_t)left[job->left_at + term / 16 * job->left_strip + i / 64 * 1024 +
                                   term % 16 * 64 + i % 64]
                    << 8 * t;
    }
    return word;
}

SHERD__FUNCTION uint32_t sherd__kernel_bytes_right(const SHERD__GLOBAL uint8_t *right,
                                                   const sherd__kernel_job *job, uint64_t k,
                                                   uint64_t j)
{
    return sherd__kernel_word(right + job->right_at + j / 16 * job->right_strip, k * 16 + j % 16);
}

SHERD__FUNCTION int32_t sherd__kernel_dot(int32_t sum, uint32_t u, uint32_t v)
{
#ifdef __CUDACC__
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(u), "r"(v));
#else
    for (uint32_t t = 0; t < 32; t += 8)
        sum += (int32_t)(u >> t & 255) * (int32_t)(int8_t)(uint8_t)(v >> t & 255);
#endif
    return sum;
}

SHERD__FUNCTION uint8_t sherd__kernel_byte(int32_t sum, uint32_t prime)
{
    const int32_t r = sum % (int32_t)prime;
    return (uint8_t)(r < 0 ? r + (int32_t)prime : r);
}

#define TILE_NAME sherd__kernel_product_bytes
#define TILE_NUMBER uint32_t
#define TILE_SUM int32_t
#define TILE_TERMS 4
#define TILE_LEFT(line, number) sherd__kernel_bytes_left(left, &job, line, number)
#define TILE_RIGHT(number, line) sherd__kernel_bytes_right(right, &job, number, line)
#define TILE_ADD(sum, u, v) sherd__kernel_dot(sum, u, v)
#define TILE_FOLD(sum) (sum)
#define TILE_FOLD_STEPS 65536
#define TILE_PUT(at, sum) out[job.out_at + (at)] = sherd__kernel_byte(sum, job.prime)

#endif
