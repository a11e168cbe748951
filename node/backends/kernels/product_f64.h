/* Products in float64. Sums stay exact below 2^53. */
#ifndef NODE_BACKENDS_KERNELS_PRODUCT_F64_H
#define NODE_BACKENDS_KERNELS_PRODUCT_F64_H

#ifndef SHERD__DEVICE
#include "node/backends/kernels/job.h"
#endif

#if SHERD__F64
#define TILE_NAME sherd__kernel_product_f64
#define TILE_NUMBER double
#define TILE_SUM double
#define TILE_TERMS 1
#define TILE_LEFT(line, number)                                                                    \
    sherd__kernel_number(left + job.left_at, job.left_type,                                        \
                         job.transposed ? (number)*job.n + (line) : (line)*job.k + (number))
#define TILE_RIGHT(number, line)                                                                   \
    sherd__kernel_number(right + job.right_at, job.right_type, (number)*job.m + (line))
#define TILE_ADD(sum, u, v) fma(u, v, sum)
#define TILE_FOLD(sum) (sum)
#define TILE_FOLD_STEPS 65536
#define TILE_PUT(at, sum) sherd__kernel_put(out + job.out_at, job.out_type, at, sum)
#endif

#endif
