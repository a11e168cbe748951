/*
 * Training by nodes that add up among themselves: every member of a circle holds the parameters,
 * grades its shards, takes part in an all-reduce of the sums (learn/reduce.h) and makes the update
 * itself (learn/member.h). Who leads says which shards, under which scales, and when; and hears
 * costs and hits. Here is the stepper; plans as they travel are learn/allreduce_plan.h.
 *
 * Sums are of whole numbers modulo 2^64: the bits are those of a parameter server, whatever the
 * number of members, the schedule, arrivals and losses.
 */
#ifndef LEARN_ALLREDUCE_H
#define LEARN_ALLREDUCE_H

#include "learn/gradients.h"
#include "learn/reduce.h"

enum { SHERD__ALLREDUCE_MOST = 64 }; /* members */

/* ---- the stepper ----------------------------------------------------------------------------- */

/** A step as it is asked for, and what came of it. Arrays are by shard, but for scales and most
 *  (by tier); borrowed. */
typedef struct sherd__allreduce_step {
    uint64_t version; /* updates made before */
    const uint32_t *rows;
    const sherd__rows *list; /* which they are, from `first` on */
    size_t first;
    const size_t *at; /* shard i has rows[at[i]] to rows[at[i + 1] - 1] */
    uint32_t shards;
    const int32_t *scales;
    unsigned room;
    const sherd__local_steps *local; /* NULL: gradients */
    double rate;
    double weight; /* of all shards: examples, or weights of local steps */
    /* what comes back */
    double *costs;
    uint64_t *hits;
    bool *dropped; /* its member was lost, and nobody graded it */
    double *most, l2;
    uint32_t members; /* in it */
} sherd__allreduce_step;

/** Who leads a circle. Constant and shared; every slot is mandatory. */
typedef struct sherd__allreduce_ops {
    const char *name;
    /** One step, to its end. SHERD_EBUSY: scales too fine, nothing has changed; everything else
     *  ends the training. */
    int (*step)(void *ctx, sherd__allreduce_step *s, sherd_diag *d);
    /** The first `len` numbers of the state (learn/member.h), with all steps made. */
    int (*state)(void *ctx, double *out, size_t len, sherd_diag *d);
    void (*free)(void *ctx);
} sherd__allreduce_ops;

typedef struct sherd__allreduce_lead {
    const sherd__allreduce_ops *ops;
    void *ctx;
} sherd__allreduce_lead;

/** Numbers of the state of a network of `count` parameters under this optimiser, and the state
 *  itself, as the network and optimiser hold it. */
size_t sherd__allreduce_state_len(const sherd__optimiser *o);
void sherd__allreduce_state_of(const sherd__network *n, const sherd__optimiser *o, double *out);

/**
 * A stepper over these. Network and optimiser of opt are brought up to date by settle alone; with
 * `whole` the gradient and the optimiser too, as a checkpoint needs, else the parameters only. The
 * leader is taken on success. SHERD_EINVAL: async, floats, what sherd__stepper_gradients refuses;
 * SHERD_ENOMEM.
 */
int sherd__stepper_allreduce(sherd__stepper *out, const sherd__gradients_options *opt,
                             sherd__allreduce_lead lead, bool whole, sherd_diag *d) SHERD_MUST;

#endif
