/* All kernels, compiled for the host: the reference of those that devices compile. kernels_text.c
 * has the same headers in the same order, but for those that only serve a library of CUDA. */
#ifndef NODE_BACKENDS_KERNELS_KERNELS_H
#define NODE_BACKENDS_KERNELS_KERNELS_H

#include "core/kernel.h"
#include "matrix/funcs_kernels.h"
#include "node/backends/kernels/job.h"
#include "node/backends/kernels/maps.h"

#include "node/backends/kernels/layers.h"

#include "node/backends/kernels/product_f64.h"

#include "node/backends/kernels/tile.h"

#include "node/backends/kernels/product_residues.h"

#include "node/backends/kernels/tile.h"

#include "node/backends/kernels/product_bytes.h"

#include "node/backends/kernels/tile.h"

#include "node/backends/kernels/convert.h"

#endif
