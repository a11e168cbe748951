/*
 * The gradient of some examples as a sum that adds up exactly: what a node computes, or a thread
 * here, and what makes both agree to the bit.
 *
 * A batch is cut into shards whose number does not depend on who computes. Of one shard a grader
 * makes the sum of its examples' gradients, by products of fixed point (sherd_multiplier_local),
 * and turns each entry x into the integer rint(x 2^scale), scale agreed on for each layer. Integers
 * add up to the same sum in any order and grouping: so the bits depend on neither nodes, threads,
 * arrival nor losses. With `bits` 0 everything is float64 instead, and none of this holds.
 *
 * A tier is a layer that has parameters; tiers count from 0 at the input.
 */
#ifndef LEARN_GRADER_H
#define LEARN_GRADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "learn/recipe.h"
#include "sherd/mat.h"

/** Most shards of a batch. */
#define SHERD__SHARDS_MAX 4096u

/** Examples of one shard; borrowed. */
typedef struct sherd__shard {
    sherd_view x; /* at least one row */
    sherd__targets targets;
} sherd__shard;

/**
 * Steps of plain gradient descent that a shard makes on its own, with `batch` of its examples after
 * the other, round and round (Zinkevich et al. 2010, algorithm 3, with averages in between). What
 * it gives is not its gradient but weight * (w - w'), from the parameters given to those it came
 * to.
 */
typedef struct sherd__local_steps {
    uint64_t steps; /* 0: none; the gradient is asked for */
    uint64_t batch; /* 0: all examples of the shard */
    double rate, l2;
    double weight; /* above 0 */
} sherd__local_steps;

/** How one shard is to be graded. Arrays are by tier; all borrowed. */
typedef struct sherd__grading {
    const int32_t *scales; /* of the integers; not looked at with bits 0 */
    unsigned room;         /* an entry may be at most 2^room, either way; 0..62 */
    sherd__local_steps local;
    void *const *sums; /* tier's count of int64_t (bits 0: double), added to; on failure
                              undefined */
    bool fresh;        /* sums hold nothing yet, whatever is there */
    /** Called before parameters of a tier are read: they must be in sherd__grader_params when it
     *  returns, or lent (sherd__grader_lend). NULL: they are. A failure ends the pass with that
     *  error. */
    int (*need)(void *ctx, size_t tier, sherd_diag *d);
    /** The tier's sum has been added to; those of lower tiers not yet, and with local.steps 0 not
     *  even computed. May be NULL. */
    void (*done)(void *ctx, size_t tier);
    /** Asked before each local step but the first: true ends the pass with SHERD_EINTERRUPTED.
     *  NULL: never. How many steps there are is a coordinator's word, and nothing else bounds
     *  them. */
    bool (*stop)(void *ctx);
    void *ctx;
} sherd__grading;

typedef struct sherd__grader sherd__grader;

/**
 * For shards of up to `batch` examples; parameters are undefined until they are set or lent. bits
 * as sherd_multiplier_local; `lock`: of graders in several threads of one process, only one
 * multiplies at a time. *out is the caller's. Errors of
 * sherd__recipe_network and sherd_multiplier_local; SHERD_EINVAL for a network without parameters.
 */
int sherd__grader_new(sherd__grader **out, const sherd__recipe *r, size_t batch, unsigned bits,
                      bool lock, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__grader_free(sherd__grader *g);
/** Bytes that a grader will hold at most, products under way included; UINT64_MAX where that wraps.
 *  Errors of sherd__network_new for layers that do not fit. */
int sherd__grader_memory(const sherd__recipe *r, size_t batch, uint64_t *bytes,
                         sherd_diag *d) SHERD_MUST;

/** The tiers of a recipe's network: how many, and numbers of each. SHERD_EINVAL: none; errors of
 *  sherd__network_new for layers that do not fit. */
int sherd__recipe_tiers(const sherd__recipe *r, size_t *tiers,
                        size_t counts[SHERD__RECIPE_LAYERS_MAX], sherd_diag *d) SHERD_MUST;

size_t sherd__grader_tiers(const sherd__grader *g);
/** Numbers of a tier: weights row-major, then biases. */
size_t sherd__grader_count(const sherd__grader *g, size_t tier);
double *sherd__grader_params(sherd__grader *g, size_t tier);
/** The tier's parameters are read there until the run that is under way, or comes next, ends; not
 *  for local steps, which change them. */
void sherd__grader_lend(sherd__grader *g, size_t tier, const double *params);
size_t sherd__grader_inputs(const sherd__grader *g);
size_t sherd__grader_width(const sherd__grader *g);

/**
 * Grades one shard: *cost is the sum over its examples without L2 (of the first local step's, as
 * many as the shard has), *hits as in sherd__labels_hit. With local steps parameters are different
 * ones afterwards. SHERD_EBUSY: an entry beyond `room`, ask again with a coarser scale; errors of
 * sherd__network_learn (SHERD_ERANGE: diverged) and of need. Cost and hits are untouched then.
 */
int sherd__grader_run(sherd__grader *g, const sherd__shard *s, const sherd__grading *how,
                      double *cost, uint64_t *hits, sherd_diag *d) SHERD_MUST;

/** sums[i] += rint(g[i] * factor); false where an entry is beyond 2^room or no number, sums are
 *  undefined then. */
bool sherd__grader_add(int64_t *sums, const double *g, size_t n, double factor, unsigned room);

#endif
