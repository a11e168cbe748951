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

/** How fast a node is. */
typedef struct sherd__speed {
    double rate;   /* of work, in the same unit for all nodes; 0: unknown */
    bool verified; /* measured in work whose answers were verified */
} sherd__speed;

/**
 * Notes the rate of a node in a job, relative to the median. One that was not verified replaces one
 * that was only if it is lower, or if that is below the median. 0: it had no part; its rate then
 * approaches 1, so that it is tried again after some jobs.
 */
void sherd__speed_learn(sherd__speed *s, double rate, bool verified);

/** By which factor a node must be slower, or faster, than the median to be planned for another
 *  part. */
#define SHERD__WEIGHTS_SLOWER 1.5
/** The largest weight, where the median has 1. */
#define SHERD__WEIGHTS_FASTER 4.0
/**
 * Writes the weight that nodes have by their speeds: the rate divided by the median for a node that
 * is slower than the median by more than SHERD__WEIGHTS_SLOWER, and, at most SHERD__WEIGHTS_FASTER,
 * for one whose verified rate is as much higher; 1 for all others. Unless most rates are known, all
 * weights are 1. The median is the lower one of two middle values: of two nodes, the slow one has
 * weight 1. Up to half of the nodes can therefore attract no more than an equal share of what slow
 * ones lose, whatever they report; by computing faster, they get more. room: scratch for `len`
 * numbers.
 */
void sherd__weights_of_speeds(const sherd__speed *speeds, uint32_t len, double *out, double *room);
/** Returns whether the weights are not all equal. */
bool sherd__weights_differ(const double *w, uint32_t len);

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
