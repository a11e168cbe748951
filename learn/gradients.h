/*
 * Training by gradients: a step's batch is cut into shards, somebody grades them (learn/grader.h),
 * and what comes back is added up and given to the optimiser here, the parameter server. Who grades
 * is an engine's business: threads of this process (below), or nodes (scheduler/train/train.h),
 * which then see examples and parameters in clear.
 *
 * Synchronous: a step waits for all its shards, divides the sum by the number of examples once and
 * updates once. With bits above 0 the parameters have the same bits whatever engine, number of
 * nodes, arrival and losses of nodes, and are those of full-batch descent over the same shards.
 *
 * Asynchronous: each part, a shard or a few, is applied as it arrives, to whatever the parameters
 * are then, with its part of the step's rate (Recht et al. 2011 and Dean et al. 2012 describe why
 * that works). How many updates were made since the parameters that it was computed from is its
 * staleness; a bound on it makes fast nodes wait for slow ones (stale synchronous: Ho et al. 2013).
 *
 * An update is made as a whole, between steps of the loop, on the thread that calls it; parameters
 * that are on their way to somebody are a copy of one version.
 */
#ifndef LEARN_GRADIENTS_H
#define LEARN_GRADIENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "learn/grader.h"
#include "learn/train.h"

/** Shards of a batch where nobody says otherwise. More than nodes, so that they divide evenly among
 *  2, 4 and 8; few, since each is a pass of its own. */
#define SHERD__SHARDS_DEFAULT 8u

/* ---- what is asked, and what comes back ------------------------------------------------------ */

/** The parameters as they were after `number` updates, tier after tier. Shared and counted: parts
 *  that are under way and buffers being sent hold them. */
typedef struct sherd__version {
    atomic_uint holders;
    uint64_t number;
    size_t count;
    double values[];
} sherd__version;

/** One holder, values undefined; NULL without memory. */
sherd__version *sherd__version_new(size_t count, uint64_t number);
void sherd__version_hold(sherd__version *v);
/** Frees with the last holder; any thread. NULL is allowed. */
void sherd__version_release(sherd__version *v);

/** A tier's sum that lies in memory of whom it came from. */
typedef struct sherd__sums_taken {
    void *own;                  /* instead of which; NULL: it does not */
    void (*release)(void *ctx); /* gives that memory back */
    void *ctx;
} sherd__sums_taken;

/** Sums of gradients by tier, int64_t or double. */
typedef struct sherd__sums {
    size_t tiers;
    bool whole;     /* int64_t; else double */
    void **of;      /* by tier */
    size_t *counts; /* numbers by tier */
    bool *begun;    /* the tier holds something; else it counts as 0 */
    sherd__sums_taken *taken;
} sherd__sums;

/** Adds one tier of a part's sum: `from` is its count of numbers, 8 bytes each, little-endian as
 *  they travel. */
void sherd__sums_add(sherd__sums *s, size_t tier, const void *from);
/** The same with bytes that may be written to: a tier's first become its sum where they lie, and
 *  are released when the sums are cleared or freed, by whoever does; others are at once. */
void sherd__sums_take(sherd__sums *s, size_t tier, void *bytes, void (*release)(void *ctx),
                      void *ctx);

/** Some shards of a step, for one who grades them. What is asked belongs to the stepper, and stays
 *  as it is until the part has come back. */
typedef struct sherd__part {
    sherd__version *params;
    uint32_t first, shards; /* of the step: shard i has rows[at[i]] to rows[at[i + 1] - 1] */
    const uint32_t *rows;   /* of the training data */
    const size_t *at;
    const int32_t *scales; /* by tier */
    unsigned room;
    const sherd__local_steps *local; /* by shard of the step; NULL: gradients */
    /* what comes back */
    sherd__sums *sums; /* added to; several parts may share them: the engine adds in turn */
    double *costs;     /* by shard of the step: sums over its examples */
    uint64_t *hits;
    bool dropped;   /* its node was lost and nobody took over: nothing was added */
    int err;        /* it could not be computed, with errors of sherd__grader_run. Its sums
                               are undefined then */
    uint32_t by;    /* who: number of node or thread */
    sherd_diag why; /* of err */
    struct sherd__part *next; /* the engine's, while it has the part */
} sherd__part;

/** Who grades. Constant and shared; every slot but grain is mandatory. */
typedef struct sherd__gradient_engine_ops {
    const char *name;
    /** How many parts can be under way at once; at least 1. */
    uint32_t (*workers)(void *ctx);
    /** How many shards a part of an asynchronous step is to have, 1 to `most`: more than 1 where
     *  the engine finds that what each part costs it is much beside computing. NULL: always 1. */
    uint32_t (*grain)(void *ctx, uint32_t most);
    /** Takes the part; it comes back by next, whatever becomes of it, unless next fails. */
    int (*post)(void *ctx, sherd__part *part, sherd_diag *d);
    /** Waits for a part to come back. A failure (nobody left, interrupted) ends the engine: no part
     *  comes back any more, nor is one touched. */
    int (*next)(void *ctx, sherd__part **out, sherd_diag *d);
    void (*free)(void *ctx);
} sherd__gradient_engine_ops;

typedef struct sherd__gradient_engine {
    const sherd__gradient_engine_ops *ops;
    void *ctx;
} sherd__gradient_engine;

/** Threads of this process, at least 1; `batch` is the most examples of a shard. Borrows the data.
 *  SHERD_ENOMEM, errors of sherd__grader_new. */
int sherd__gradients_here(sherd__gradient_engine *out, const sherd__recipe *r,
                          const sherd__dataset *data, size_t batch, unsigned bits, unsigned threads,
                          sherd_diag *d) SHERD_MUST;
/** A zeroed one is allowed. */
void sherd__gradient_engine_free(sherd__gradient_engine e);

/** Examples of one shard, one below the other: x in the data's dtype, and labels or values. */
void sherd__shard_inputs(const sherd__dataset *data, const uint32_t *rows, size_t len, void *out);
void sherd__shard_targets(const sherd__dataset *data, const uint32_t *rows, size_t len, void *out);

/* ---- the stepper ----------------------------------------------------------------------------- */

/** One update, as it is made. */
typedef struct sherd__gradients_update {
    uint64_t version;   /* of the parameters before it: updates made so far */
    uint64_t staleness; /* of the oldest part in it; synchronous: 0 */
    uint32_t by;        /* whose part that was */
    uint32_t parts, dropped;
    uint64_t examples; /* in it */
} sherd__gradients_update;

typedef struct sherd__gradients_stats {
    uint64_t updates, parts;
    uint64_t staleness_sum, staleness_most; /* over parts */
    uint64_t dropped, examples, rescaled;   /* parts, examples applied, steps graded once more with
                                               coarser scales */
} sherd__gradients_stats;

typedef struct sherd__gradients_options {
    const sherd__recipe *recipe; /* all borrowed, but the engine, which is taken on success */
    const sherd__dataset *data;
    sherd__network *network;
    sherd__optimiser *optimiser;
    sherd__gradient_engine engine;
    uint32_t shards; /* 0: SHERD__SHARDS_DEFAULT. A step of fewer examples has as many as it
                               has examples */
    unsigned bits;   /* of fixed point, as the engine's; 0: float64 */
    bool async;
    uint64_t staleness_max; /* UINT64_MAX: any */
    uint64_t local_steps;   /* of every shard between two averagings; 0: gradients */
    uint64_t local_batch;   /* examples of one; 0: a shard's all */
    bool weighted;          /* local steps: shards of fewer examples make fewer steps (as many as go
                               through their examples as often), and weigh less by the contraction
                               of the steps that they lack: (1 - l2 rate)^lacking over the sum of
                               all such weights: a step of rate r, small enough to descend, on a
                               convex cost with an L2 term l2 brings two parameter vectors nearer by
                               1 - l2 r, so who lacks k steps is so much farther from where all go
                               (docs/TRAINING.md says what of it is Cheng et al.'s, arXiv
                               1708.04801). Else, and without L2, all weigh as much */
    void (*note)(void *ctx, const sherd__gradients_update *u); /* NULL: none */
    void *note_ctx;
} sherd__gradients_options;

/**
 * A stepper of the training loop that goes by gradients. What scales a step takes is decided by the
 * gradient of the step before it, as the network holds it: a run that is resumed makes the same
 * bits if that was restored. SHERD_EINVAL: shards out of range, local steps with another optimiser
 * than plain descent; SHERD_ENOMEM; *out is zeroed then and the engine still the caller's. Its
 * steps fail with SHERD_ERANGE where a gradient fits no scale, and with what the engine says.
 */
int sherd__stepper_gradients(sherd__stepper *out, const sherd__gradients_options *opt,
                             sherd_diag *d) SHERD_MUST;
/* ---- sums of parties ------------------------------------------------------------------------- */

/** Parties that have examples of their own, and give nothing but a sum over all of them. Constant
 *  and shared; every slot is mandatory. */
typedef struct sherd__summer_ops {
    const char *name;
    /**
     * The sum under these parameters, which are as many as the network has, over the examples of
     * this step: in sum, numbers of all tiers and SHERD__SECURE_EXTRA more (learn/secure.h).
     * scales: by tier, then of the cost; what does not fit is saturated. *in: how many parties are
     * in it. A failure ends the training.
     */
    int (*sum)(void *ctx, uint64_t step, sherd__version *params, const int32_t *scales,
               int64_t *sum, uint32_t *in, sherd_diag *d);
    void (*free)(void *ctx);
} sherd__summer_ops;

typedef struct sherd__summer {
    const sherd__summer_ops *ops;
    void *ctx;
    uint32_t parties; /* at first */
    uint32_t most;    /* of a later sum */
    double clip;      /* norm of one example's gradient, in SHERD__PRIVACY_UNITS; 0: scales count */
} sherd__summer;

/**
 * A stepper over these: a step is one sum, its gradient over all examples in it, and one update.
 * Rows of steps mean nothing to it; step_result.examples says how many examples it was. What scales
 * a step takes is decided by the gradient of the step before, as the network holds it, and by
 * `examples` and `cost` of that step; examples 0: there was none. Of opt only recipe, network,
 * optimiser, note and note_ctx count. The summer is taken on success.
 * SHERD_ENOMEM; steps fail with SHERD_EWRONG where a sum is none, with SHERD_ERANGE, and as the
 * summer does.
 */
int sherd__stepper_summed(sherd__stepper *out, const sherd__gradients_options *opt,
                          sherd__summer summer, uint64_t examples, double cost,
                          sherd_diag *d) SHERD_MUST;

/** Of a stepper that one of these two made. */
const sherd__gradients_stats *sherd__gradients_stats_of(const sherd__stepper *s);
/** Most examples of a shard, for an engine: of batches of `batch`. */
size_t sherd__shard_most(size_t batch, uint32_t shards);

#endif
