/*
 * Products modulo a prime below 2^23, of packed residues or of integers. Products of two residues
 * are below 2^46, so 2^17 of them and a residue are added up in 64 bits.
 */
#ifndef NODE_BACKENDS_KERNELS_PRODUCT_RESIDUES_H
#define NODE_BACKENDS_KERNELS_PRODUCT_RESIDUES_H

#ifndef SHERD__DEVICE
#include "node/backends/kernels/job.h"
#endif

/* Returns number l of row i of the matrix of windows of the left operand's images. */
SHERD__FUNCTION uint32_t sherd__kernel_window(const SHERD__GLOBAL uint8_t *left,
                                              const sherd__kernel_job *job, uint64_t i, uint64_t l,
                                              SHERD__GLOBAL uint32_t *bad)
{
    const int64_t at = sherd__kernel_window_at(job, i, l);
    return at < 0 ? 0 : sherd__kernel_residue(left, KERNEL_RESIDUES, (uint64_t)at, job->prime, bad);
}

SHERD__FUNCTION uint32_t sherd__kernel_left(const SHERD__GLOBAL uint8_t *left,
                                            const sherd__kernel_job *job, uint64_t i, uint64_t k,
                                            SHERD__GLOBAL uint32_t *bad)
{
    left += job->left_at;
    if (job->window)
        return job->transposed ? sherd__kernel_window(left, job, k, i, bad)
                               : sherd__kernel_window(left, job, i, k, bad);
    return sherd__kernel_residue(left, job->left_type,
                                 job->transposed ? k * job->n + i : i * job->k + k, job->prime,
                                 bad);
}

SHERD__FUNCTION void sherd__kernel_pack(SHERD__GLOBAL uint8_t *at, uint64_t i, uint32_t r)
{
    at[3 * i] = (uint8_t)r;
    at[3 * i + 1] = (uint8_t)(r >> 8);
    at[3 * i + 2] = (uint8_t)(r >> 16);
}

#define TILE_NAME sherd__kernel_product_residues
#define TILE_NUMBER uint32_t
#define TILE_SUM uint64_t
#define TILE_TERMS 1
#define TILE_LEFT(line, number) sherd__kernel_left(left, &job, line, number, bad)
#define TILE_RIGHT(number, line)                                                                   \
    sherd__kernel_residue(right + job.right_at, job.right_type, (number)*job.m + (line),           \
                          job.prime, bad)
#define TILE_ADD(sum, u, v) ((sum) + (uint64_t)(u) * (v))
#define TILE_FOLD(sum) ((sum) % job.prime)
#define TILE_FOLD_STEPS 8192
#define TILE_PUT(at, sum) sherd__kernel_pack(out + job.out_at, at, (uint32_t)((sum) % job.prime))

#endif
