/*
 * Which part of the work each node is planned for: weights of nodes as small integers, exposures in
 * proportion to them, and the nodes that are slower than the others. Pure arithmetic.
 */
#ifndef SCHEDULER_PLAN_WEIGHTS_H
#define SCHEDULER_PLAN_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** Writes weights in the same proportion as those of w (above 0): integers from 1 to
 *  SHERD__WEIGHT_MAX without a common divisor, so equal ones are 1. */
void sherd__weights_round(const double *w, uint32_t len, uint32_t *out);

/** How much slower than the median a node must be before it is planned for less. */
#define SHERD__WEIGHTS_SLOWER 1.5
/**
 * Writes the weight that nodes have by their speeds (0: unknown): that of a node which is slower
 * than the median by more than SHERD__WEIGHTS_SLOWER is its part of the median, of all others 1.
 * Unless most speeds are known, all weights are 1. The median is the lower one of two middle
 * values. Up to half of the nodes can therefore attract no more than an equal share of what slow
 * ones lose, whatever speeds they report; of two nodes neither gets less. room: scratch for `len`
 * numbers. Returns whether a weight is below 1.
 */
bool sherd__weights_of_speeds(const double *speeds, uint32_t len, double *out, double *room);

/**
 * Returns the node that delays a series of jobs: its answers took twice as long as the median of
 * the others', and two seconds longer. UINT32_MAX: none, or fewer than five jobs. seconds: in which
 * each node owed answers, over all jobs. room: scratch for `len` numbers. *median: of the others.
 */
uint32_t sherd__weights_slowest(const double *seconds, uint32_t len, uint64_t jobs, double *room,
                                double *median);

/** As sherd__exposures (crypto/perm.h), in proportion to weights (NULL: all equal): the node of a
 *  column is the one in whose range its expo-v1 exposure for as many nodes as the sum of all
 *  weights is (docs/METADATA.md). */
int sherd__weights_exposures(const uint8_t key[32], size_t k, uint32_t nodes,
                             const uint32_t *weights, int balanced, uint32_t *out) SHERD_MUST;

#endif
