/*
 * Training by workers in an all-reduce group. Every member of the group holds the parameters,
 * grades its shards, takes part in an all-reduce of the sums (learn/reduce.h) and makes the update
 * locally (learn/member.h). The leader chooses the shards, their scales and the time of each step,
 * and receives costs and hits. This header declares the stepper; learn/allreduce_plan.h declares
 * the messages.
 *
 * Sums are of whole numbers modulo 2^64. The result therefore has the bits of a parameter server,
 * whatever the number of members, the schedule, the order of arrival and the losses.
 */
#ifndef LEARN_ALLREDUCE_H
#define LEARN_ALLREDUCE_H

#include "learn/gradients.h"
#include "learn/reduce.h"

enum { SHERD__ALLREDUCE_MOST = 64 }; /* members */

/* ---- the stepper ----------------------------------------------------------------------------- */

/** A requested step and its results. All arrays are borrowed. They are indexed by shard, except
 *  `scales` and `most`, which are indexed by tier. */
typedef struct sherd__allreduce_step {
    uint64_t version; /* number of updates made before */
    const uint32_t *rows;
    const sherd__rows *list; /* the list that `rows` is taken from, starting at `first` */
    size_t first;
    const size_t *at; /* shard i has rows[at[i]] to rows[at[i + 1] - 1] */
    uint32_t shards;
    const int32_t *scales;
    unsigned room;
    const sherd__local_steps *local; /* NULL: gradients are computed */
    double rate;
    double weight; /* of all shards together: examples, or the weights of local steps */
    /* results */
    double *costs;
    uint64_t *hits;
    bool *dropped; /* its member was lost and no other graded it */
    double *most, l2;
    uint32_t members; /* members that took part */
} sherd__allreduce_step;

/** The leader of an all-reduce group. Constant and shared; every slot is mandatory. */
typedef struct sherd__allreduce_ops {
    const char *name;
    /** Runs one step to its end. SHERD_EBUSY: the scales are too fine and nothing has changed.
     *  Every other error ends the training. */
    int (*step)(void *ctx, sherd__allreduce_step *s, sherd_diag *d);
    /** Copies the first `len` numbers of the state (learn/member.h) to out, after all steps so
     *  far. */
    int (*state)(void *ctx, double *out, size_t len, sherd_diag *d);
    void (*free)(void *ctx);
} sherd__allreduce_ops;

typedef struct sherd__allreduce_lead {
    const sherd__allreduce_ops *ops;
    void *ctx;
} sherd__allreduce_lead;

/** sherd__allreduce_state_len returns how many numbers the state of a network has under this
 *  optimiser. sherd__allreduce_state_of writes that state from the network and the optimiser. */
size_t sherd__allreduce_state_len(const sherd__optimiser *o);
void sherd__allreduce_state_of(const sherd__network *n, const sherd__optimiser *o, double *out);

/**
 * Creates a stepper for an all-reduce group. Only its `settle` brings the network and optimiser of
 * opt up to date: with `whole` the parameters, the gradient and the optimiser state, as a
 * checkpoint needs; otherwise the parameters only. The stepper takes ownership of the leader on
 * success.
 *
 * Errors: SHERD_EINVAL for async, for floats and for whatever sherd__stepper_gradients refuses;
 * SHERD_ENOMEM.
 */
int sherd__stepper_allreduce(sherd__stepper *out, const sherd__gradients_options *opt,
                             sherd__allreduce_lead lead, bool whole, sherd_diag *d) SHERD_MUST;

#endif
