/*
 * Training by gradients. The batch of a step is cut into shards, which an engine grades
 * (learn/grader.h). The parameter server in this file adds the results up and gives the sum to the
 * optimiser. An engine uses threads of this process (below) or nodes (scheduler/train/train.h),
 * which then see examples and parameters in clear.
 *
 * Synchronous: a step waits for all its shards, divides the sum by the number of examples once and
 * updates once. With bits above 0 the bits of the parameters do not depend on the engine, on the
 * number of nodes, or on arrival and losses of nodes. They are those of full-batch descent over the
 * same shards.
 *
 * Asynchronous: each part, of one or a few shards, is applied as it arrives to the parameters of
 * that moment, with its part of the step's rate (Recht et al. 2011 and Dean et al. 2012 describe
 * why that works). The staleness of a part is the number of updates made since the parameters that
 * it was computed from. A bound on staleness makes fast nodes wait for slow ones (stale
 * synchronous: Ho et al. 2013).
 *
 * An update is made as a whole, between steps of the loop, on the calling thread. Parameters that
 * are being sent are a copy of one version.
 */
#ifndef LEARN_GRADIENTS_H
#define LEARN_GRADIENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "learn/grader.h"
#include "learn/train.h"

/** Default number of shards of a batch. It is larger than usual numbers of nodes, so that shards
 *  divide evenly among 2, 4 and 8; it is small, since each shard is a separate pass. */
#define SHERD__SHARDS_DEFAULT 8u

/* ---- requests and results -------------------------------------------------------------------- */

/** The parameters after `number` updates, tier after tier. Shared and reference-counted: parts in
 *  progress and buffers being sent hold references. */
typedef struct sherd__version {
    atomic_uint holders;
    uint64_t number;
    size_t count;
    double values[];
} sherd__version;

/** Returns a version with one holder and undefined values; NULL without memory. */
sherd__version *sherd__version_new(size_t count, uint64_t number);
void sherd__version_hold(sherd__version *v);
/** Drops one holder; the last one frees the version. Any thread. NULL is allowed. */
void sherd__version_release(sherd__version *v);

/** A tier's sum that is stored in the sender's memory. */
typedef struct sherd__sums_taken {
    void *own;                  /* the memory that it replaces; NULL: the sum is in our own
                                   memory */
    void (*release)(void *ctx); /* releases the sender's memory */
    void *ctx;
} sherd__sums_taken;

/** Sums of gradients by tier, int64_t or double. */
typedef struct sherd__sums {
    size_t tiers;
    bool whole;     /* int64_t; else double */
    void **of;      /* by tier */
    size_t *counts; /* numbers by tier */
    bool *has_sum;  /* the tier has a sum; else it counts as 0 */
    sherd__sums_taken *taken;
} sherd__sums;

/** Adds one tier of a part's sum. `from` has the tier's count of numbers, 8 bytes each, in the
 *  little-endian format of messages. */
void sherd__sums_add(sherd__sums *s, size_t tier, const void *from);
/** As sherd__sums_add, for bytes that may be written to. The first bytes of a tier become its sum
 *  in place, and clearing or freeing the sums releases them, on the thread that does so. Other
 *  bytes are released at once. */
void sherd__sums_take(sherd__sums *s, size_t tier, void *bytes, void (*release)(void *ctx),
                      void *ctx);

/** Some shards of a step, for one grader. The request belongs to the stepper and does not change
 *  until the part has come back. */
typedef struct sherd__part {
    sherd__version *params;
    uint32_t first, shards; /* of the step: shard i has rows[at[i]] to rows[at[i + 1] - 1] */
    const uint32_t *rows;   /* of the training data */
    const size_t *at;
    const int32_t *scales; /* by tier */
    unsigned room;
    const sherd__local_steps *local; /* by shard of the step; NULL: gradients */
    /* results */
    sherd__sums *sums; /* added to; several parts may share them, since the engine serialises
                          additions */
    double *costs;     /* by shard of the step: sums over its examples */
    uint64_t *hits;
    bool dropped;   /* its node was lost and no other took over: nothing was added */
    int err;        /* grading failed with this error of sherd__grader_run; the sums are undefined
                       then */
    uint32_t by;    /* number of the node or thread that graded it */
    uint32_t wish;  /* 1 + number of the node that it is planned for; 0: any */
    sherd_diag why; /* of err */
    struct sherd__part *next; /* for the engine, while it has the part */
} sherd__part;

/** A part of a synchronous step: so many shards, for this `wish`. */
typedef struct sherd__division {
    uint32_t wish, shards;
} sherd__division;

/** The node that takes longest for its gradients, if clearly longer than the others. */
typedef struct sherd__slowest {
    uint32_t node; /* from 1; 0: none */
    double times;  /* as long as the median of the others */
} sherd__slowest;

/** A gradient engine. Constant and shared; every slot but shards_per_task, divide and slowest is
 *  mandatory. */
typedef struct sherd__gradient_engine_ops {
    const char *name;
    /** Returns how many parts can be in progress at once; at least 1. */
    uint32_t (*workers)(void *ctx);
    /** Returns how many shards a part of an asynchronous step should have, 1 to `most`. More than 1
     *  pays if the engine finds the cost of a part high compared with computing. NULL: always 1. */
    uint32_t (*shards_per_task)(void *ctx, uint32_t most);
    /** Divides the shards of a synchronous step into parts, each with at least one shard, by the
     *  speeds of the workers. Returns their number; out has room for `shards`. NULL: parts of equal
     *  size, one for each worker. */
    uint32_t (*divide)(void *ctx, uint32_t shards, sherd__division *out);
    /** Returns the node that takes longest for a shard of synchronous steps. NULL: workers are
     *  threads of one machine. */
    sherd__slowest (*slowest)(void *ctx);
    /** Takes the part. Its outcome, failures included, is returned by `next`, unless `next`
     *  fails. */
    int (*post)(void *ctx, sherd__part *part, sherd_diag *d);
    /** Waits for a part to come back. A failure (no worker left, interrupted) ends the engine: no
     *  part comes back after it, and the engine accesses none. */
    int (*next)(void *ctx, sherd__part **out, sherd_diag *d);
    void (*free)(void *ctx);
} sherd__gradient_engine_ops;

typedef struct sherd__gradient_engine {
    const sherd__gradient_engine_ops *ops;
    void *ctx;
} sherd__gradient_engine;

/** The most examples of a shard, bits of fixed point (0: floats), and threads, at least 1. */
typedef struct sherd__here_options {
    size_t batch;
    unsigned bits, threads;
} sherd__here_options;
/** Creates an engine of threads of this process. Borrows the data. SHERD_ENOMEM, errors of
 *  sherd__grader_new. */
int sherd__gradients_here(sherd__gradient_engine *out, const sherd__recipe *r,
                          const sherd__dataset *data, const sherd__here_options *opt,
                          sherd_diag *d) SHERD_MUST;
/** Accepts a zeroed engine. */
void sherd__gradient_engine_free(sherd__gradient_engine e);

/** Copies the examples of one shard into consecutive rows of out. _inputs copies x in the data's
 *  dtype, _targets labels or values. */
void sherd__shard_inputs(const sherd__dataset *data, const uint32_t *rows, size_t len, void *out);
void sherd__shard_targets(const sherd__dataset *data, const uint32_t *rows, size_t len, void *out);

/* ---- the stepper ----------------------------------------------------------------------------- */

/** One update, reported when it is made. */
typedef struct sherd__gradients_update {
    uint64_t version;   /* of the parameters before it: updates made so far */
    uint64_t staleness; /* of the oldest part in it; synchronous: 0 */
    uint32_t by;        /* number of the node or thread that graded that part */
    uint32_t parts, dropped;
    uint64_t examples; /* in the update */
} sherd__gradients_update;

typedef struct sherd__gradients_stats {
    uint64_t updates, parts;
    uint64_t staleness_sum, staleness_most; /* over parts */
    uint64_t dropped, examples, rescaled;   /* parts dropped, examples applied, steps graded again
                                               with coarser scales */
    sherd__slowest slowest; /* of an engine's workers, up to now; an all-reduce has its own
                               (scheduler/allreduce/allreduce.h) */
} sherd__gradients_stats;

typedef struct sherd__gradients_options {
    const sherd__recipe *recipe; /* all pointers are borrowed; the engine is taken on success */
    const sherd__dataset *data;
    sherd__network *network;
    sherd__optimiser *optimiser;
    sherd__gradient_engine engine;
    uint32_t shards; /* 0: SHERD__SHARDS_DEFAULT. A step with fewer examples than that has one shard
                        per example */
    unsigned bits;   /* of fixed point, equal to the engine's; 0: float64 */
    bool async;
    uint64_t staleness_max; /* UINT64_MAX: any */
    uint64_t local_steps;   /* of every shard between two averagings; 0: none, gradients */
    uint64_t local_batch;   /* examples of one local step; 0: all of the shard's */
    /* Local steps: shards of fewer examples make fewer steps, so that all pass over their examples
       equally often. A shard that makes k steps fewer gets weight (1 - l2 rate)^k over the sum of
       all such weights. On a convex cost with an L2 term l2, a step of rate r that is small enough
       to descend brings two parameter vectors nearer by a factor of 1 - l2 r, so the shard is that
       much farther from the common limit (docs/TRAINING.md says which part of this is from Cheng et
       al., arXiv 1708.04801). If false, or without L2, all weights are equal. */
    bool weighted;
    void (*note)(void *ctx, const sherd__gradients_update *u); /* called for each update; NULL: not
                                                                  called */
    void *note_ctx;
} sherd__gradients_options;

/**
 * Creates a stepper of the training loop that uses gradients. The scales of a step depend on the
 * gradient of the step before it, which the network holds, so a resumed run makes the same bits if
 * that gradient was restored.
 *
 * Errors: SHERD_EINVAL for shards out of range and for local steps with another optimiser than
 * plain descent; SHERD_ENOMEM. On error *out is zeroed and the caller still owns the engine. Steps
 * fail with SHERD_ERANGE if a gradient fits no scale, and with the errors of the engine.
 */
int sherd__stepper_gradients(sherd__stepper *out, const sherd__gradients_options *opt,
                             sherd_diag *d) SHERD_MUST;
/* ---- sums of parties ------------------------------------------------------------------------- */

/** Parties that hold their own examples and give only a sum over all of them. Constant and shared;
 *  every slot is mandatory. */
typedef struct sherd__summer_ops {
    const char *name;
    /**
     * Computes the sum over the examples of this step under these parameters, which are as many as
     * the network has. `sum` receives the numbers of all tiers and SHERD__SECURE_EXTRA more
     * (learn/secure.h). `scales` are indexed by tier, with that of the cost last; a number that
     * does not fit is saturated. *in receives how many parties contributed. A failure ends the
     * training.
     */
    int (*sum)(void *ctx, uint64_t step, sherd__version *params, const int32_t *scales,
               int64_t *sum, uint32_t *in, sherd_diag *d);
    void (*free)(void *ctx);
} sherd__summer_ops;

typedef struct sherd__summer {
    const sherd__summer_ops *ops;
    void *ctx;
    uint32_t parties; /* at the start */
    uint32_t most;    /* of a later sum */
    double clip;      /* norm of one example's gradient, in SHERD__PRIVACY_UNITS; 0: no clipping,
                         `scales` are used */
} sherd__summer;

/**
 * Creates a stepper over such parties. A step is one sum, its gradient over all examples in the
 * sum, and one update. The stepper ignores the rows of steps; step_result.examples is the number of
 * examples in the sum. The scales of a step depend on the gradient of the step before, which the
 * network holds, and on its `examples` and `cost`; examples 0: there was no step before. Of opt it
 * uses only recipe, network, optimiser, note and note_ctx. The summer is taken on success.
 *
 * Errors: SHERD_ENOMEM. Steps fail with SHERD_EWRONG if a sum is impossible, with SHERD_ERANGE, and
 * with the errors of the summer.
 */
int sherd__stepper_summed(sherd__stepper *out, const sherd__gradients_options *opt,
                          sherd__summer summer, uint64_t examples, double cost,
                          sherd_diag *d) SHERD_MUST;

/** Returns the statistics of a stepper that one of these two functions created, as they are now. */
const sherd__gradients_stats *sherd__gradients_stats_of(const sherd__stepper *s);
/** Returns the most examples that a shard of a batch of `batch` can have, as engines need it. */
size_t sherd__shard_most(size_t batch, uint32_t shards);

#endif
