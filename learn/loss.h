/*
 * What training makes small: costs of a batch and their gradients with respect to the network's
 * output. Computed here, on the trusted side, never over nodes.
 */
#ifndef LEARN_LOSS_H
#define LEARN_LOSS_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef enum sherd__loss {
    SHERD__LOSS_SQUARED = 1,      /* sum (y - t)^2 / (2m) */
    SHERD__LOSS_CROSS_ENTROPY = 2 /* -sum t log softmax(y) / m: the output has no softmax layer */
} sherd__loss;

/** What m outputs should be: either values or labels, borrowed. A label is a row of zeros with a
 *  one at that place. Cross-entropy takes labels only. */
typedef struct sherd__targets {
    const double *values;   /* m x width, row-major */
    const uint32_t *labels; /* m */
    const uint8_t *absent;  /* m: rows where it is not 0 have no cost and a gradient of zeros, as if
                               they were met; their work is done all the same. NULL: no such rows */
} sherd__targets;

/** "squared", "cross-entropy"; NULL for a number that is no loss. */
const char *sherd__loss_name(sherd__loss loss);

/**
 * *cost and dy = d cost / dy for outputs y (m x width, both at least 1). dy may be y. The cost is
 * summed by ascending examples. Any finite y is allowed (log-sum-exp with the largest taken off).
 * SHERD_EINVAL: no such loss, not exactly one kind of target, cross-entropy with values, a label
 * out of range (which example, which label).
 */
int sherd__loss_gradient(sherd__loss loss, const double *y, size_t m, size_t width,
                         sherd__targets t, double *cost, double *dy, sherd_diag *d) SHERD_MUST;

/** The same for outputs in f32; cost and sums in f64. */
int sherd__loss_gradient32(sherd__loss loss, const float *y, size_t m, size_t width,
                           sherd__targets t, double *cost, float *dy, sherd_diag *d) SHERD_MUST;

/** How many rows have their largest number (the first of equals) at their label. Rows with NaN
 *  count as wrong. */
size_t sherd__labels_hit(const double *y, size_t m, size_t width, const uint32_t *labels);

#endif
