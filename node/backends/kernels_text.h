/* The names of kernels, and the source of those that compute whole tasks, as compilers of devices
 * read it. */
#ifndef NODE_BACKENDS_KERNELS_TEXT_H
#define NODE_BACKENDS_KERNELS_TEXT_H

#include <stddef.h>

/** Kernels, by the functions of node/backends/kernels. Those up to that of float64 need a device
 *  that has it. */
typedef enum sherd__kernel {
    SHERD__KERNEL_MAP,
    SHERD__KERNEL_LAYER,
    SHERD__KERNEL_PEAK,
    SHERD__KERNEL_COLUMNS,
    SHERD__KERNEL_F64,
    SHERD__KERNEL_RESIDUES,
    SHERD__KERNEL_BYTES,
    SHERD__KERNELS_OWN, /* those before compute whole tasks; those after convert for a library */
    SHERD__KERNEL_CONVERT = SHERD__KERNELS_OWN,
    SHERD__KERNEL_STORE,
    SHERD__KERNEL_CENTRE,
    SHERD__KERNEL_REDUCE,
    SHERD__KERNELS
} sherd__kernel;

extern const char *const sherd__kernel_names[SHERD__KERNELS];

typedef struct sherd__kernels_part {
    const char *text; /* ends with a zero byte */
    size_t len;
} sherd__kernels_part;

#define SHERD__KERNELS_PARTS 11u
/** Returns part i of the source, which is all parts in their order. */
sherd__kernels_part sherd__kernels_part_at(size_t i);

#endif
