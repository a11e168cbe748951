/* Element-wise operations, with the bits of matrix/funcs.c: both compile matrix/funcs_kernels.h. */
#ifndef NODE_BACKENDS_KERNELS_MAPS_H
#define NODE_BACKENDS_KERNELS_MAPS_H

#ifndef SHERD__DEVICE
#include "matrix/funcs_kernels.h"
#include "node/backends/kernels/job.h"
#endif

#if SHERD__F64

/* The numbers are those of sherd_op. */
enum {
    KERNEL_SIGMOID = 16,
    KERNEL_MINUS = 17,
    KERNEL_SQUARE = 18,
    KERNEL_TIMES = 19,
    KERNEL_RELU = 20,
    KERNEL_TANH = 21,
    KERNEL_EXP = 22
};

SHERD__FUNCTION double sherd__kernel_map_one(uint32_t op, double x)
{
    switch (op) {
    case KERNEL_SIGMOID: return k_sigmoid(x);
    case KERNEL_SQUARE: return k_square(x);
    case KERNEL_RELU: return k_relu(x);
    case KERNEL_TANH: return k_tanh(x);
    default: return k_exp(x);
    }
}

SHERD__ENTRY(sherd__kernel_map)
{
    SHERD__ITEMS
    {
        const uint64_t i = sherd__kernel_item(&job, SHERD__GROUP_X, SHERD__GROUP_Y, item);
        if (i < job.n) {
            const double x = sherd__kernel_number(left + job.left_at, job.left_type, i);
            double y;
            if (job.op == KERNEL_MINUS || job.op == KERNEL_TIMES) {
                const double z = sherd__kernel_number(right + job.right_at, job.right_type, i);
                y = job.op == KERNEL_MINUS ? k_minus(x, z) : k_times(x, z);
            } else {
                y = sherd__kernel_map_one(job.op, x);
            }
            sherd__kernel_put(out + job.out_at, job.out_type, i, y);
        }
    }
#ifndef SHERD__DEVICE
    (void)bad;
#endif
}

#endif
#endif
