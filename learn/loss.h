/*
 * Loss functions: the cost of a batch and its gradient with respect to the network's output.
 * Computed on the trusted side, never by nodes.
 */
#ifndef LEARN_LOSS_H
#define LEARN_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef enum sherd__loss {
    SHERD__LOSS_SQUARED = 1,      /* sum (y - t)^2 / (2m) */
    SHERD__LOSS_CROSS_ENTROPY = 2 /* -sum t log softmax(y) / m: the output has no softmax layer */
} sherd__loss;

/** Targets of m outputs: either values or labels, borrowed. A label is short for a row of zeros
 *  with a one at that index. Cross-entropy accepts labels only. */
typedef struct sherd__targets {
    const double *values;   /* m x width, row-major */
    const uint32_t *labels; /* m */
    const uint8_t *absent;  /* m: a row where it is not 0 has no cost and a gradient of zeros, but
                               takes the same work. NULL: there are no absent rows */
} sherd__targets;

/** Returns "squared" or "cross-entropy"; NULL for an unknown number. */
const char *sherd__loss_name(sherd__loss loss);

/**
 * Computes *cost and dy = d cost / dy for outputs y (m x width, both at least 1). dy may be y. The
 * cost is summed by ascending examples. Any finite y is allowed (log-sum-exp with the maximum
 * subtracted). SHERD_EINVAL: unknown loss, not exactly one kind of target, cross-entropy with
 * values, a label out of range (names the example and the label).
 */
int sherd__loss_gradient(sherd__loss loss, const double *y, size_t m, size_t width,
                         sherd__targets t, double *cost, double *dy, sherd_diag *d) SHERD_MUST;

/** As sherd__loss_gradient for outputs in f32; cost and sums are in f64. */
int sherd__loss_gradient32(sherd__loss loss, const float *y, size_t m, size_t width,
                           sherd__targets t, double *cost, float *dy, sherd_diag *d) SHERD_MUST;

/** Returns the index of the largest number of a row (the first of equal ones). *sound: none is NaN.
 *  The time and the addresses used depend on width alone. */
uint32_t sherd__label_of(const double *row, size_t width, bool *sound);
/** Returns how many rows have their largest number (the first of equal ones) at their label. Rows
 *  with NaN count as wrong. */
size_t sherd__labels_hit(const double *y, size_t m, size_t width, const uint32_t *labels);
/** Adds 1 to counts[label * width + k] for each row, whose largest number (the first of equal ones)
 *  is number k. Labels are below width. Takes a time that depends on the data. */
void sherd__labels_confuse(const double *y, size_t m, size_t width, const uint32_t *labels,
                           uint64_t *counts);

#endif
