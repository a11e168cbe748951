/*
 * Divides the shards of a synchronous step among nodes by how long each took for a shard. The
 * gradients are sums of integers, so the division changes no bit. Pure arithmetic: the caller
 * passes times.
 */
#ifndef SCHEDULER_TRAIN_DIVIDE_H
#define SCHEDULER_TRAIN_DIVIDE_H

#include <stdbool.h>
#include <stdint.h>

/** What is known of one node. Initialise it with zeros. */
typedef struct sherd__divide_node {
    double shard_s;   /* time for a shard, moving average of parts */
    uint32_t samples; /* number of parts, of which the first is not counted: it brings examples */
    double weight;    /* weight= of its line; 0: 1 */
    uint32_t shards;  /* its present part */
    uint32_t other;   /* its part of the last division of another number of shards */
    double named;     /* how slow it was when the last line about it was logged */
} sherd__divide_node;

/** Parts that take less than this are not measured precisely, and are all of one size. */
#define SHERD__DIVIDE_LEAST_S 0.01
/** A new division must shorten the step by this factor; otherwise the present one stays, with the
 *  examples that nodes keep. */
#define SHERD__DIVIDE_GAIN 1.25

/** Notes that the node took this long for a part of so many shards. */
void sherd__divide_took(sherd__divide_node *n, double seconds, uint32_t shards);
/**
 * Divides `shards` shards among the `len` nodes: sets their `shards`, whose sum that is. Weights
 * other than 1 decide alone. Without them, the division is equal until all nodes were measured;
 * then each shard goes to the node that would have it done first; a node counts as at most
 * SHERD__WEIGHTS_FASTER times as fast as the median (scheduler/plan/weights.h). A node may get
 * none; it is tried again after some steps. A division of as many shards among the same nodes is
 * kept if no other one is much better; those of two numbers of shards are remembered, since the
 * last batch of an epoch may have fewer. same: they are the nodes of the last division. Returns
 * whether the division has changed.
 */
bool sherd__divide(sherd__divide_node *const *nodes, uint32_t len, uint32_t shards, bool same);
/** Returns how many times as long as the median of the others node i takes for a shard; 0: not
 *  known. room: scratch for len numbers. */
double sherd__divide_slower(sherd__divide_node *const *nodes, uint32_t len, uint32_t i,
                            double *room);

#endif
