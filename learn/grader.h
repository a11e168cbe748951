/*
 * The gradient of some examples as an exact integer sum. Nodes and local threads compute it with
 * this code, so their results agree to the bit.
 *
 * A batch is cut into shards; their number does not depend on who computes them. For one shard a
 * grader computes the sum of its examples' gradients with fixed-point products
 * (sherd_multiplier_local) and turns each entry x into the integer rint(x 2^scale), where each
 * layer has an agreed scale. The sum of integers does not depend on order or grouping, so the bits
 * do not depend on nodes, threads, order of arrival or losses. With `bits` 0 all arithmetic is
 * float64 instead, and this guarantee does not hold.
 *
 * A tier is a layer that has parameters. Tiers count from 0 at the input.
 */
#ifndef LEARN_GRADER_H
#define LEARN_GRADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "learn/arithmetic.h"
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
 * Steps of plain gradient descent that a shard makes locally. Each step takes the next `batch` of
 * its examples, cyclically (Zinkevich et al. 2010, algorithm 3, with averages in between). The
 * result is not a gradient but weight * (w - w'), where w are the parameters before the first step
 * and w' those after the last.
 */
typedef struct sherd__local_steps {
    uint64_t steps; /* 0: no local steps; the gradient is computed */
    uint64_t batch; /* 0: all examples of the shard */
    double rate, l2;
    double weight; /* above 0 */
} sherd__local_steps;

/** How one shard is graded. Arrays are indexed by tier; all are borrowed. */
typedef struct sherd__grading {
    const int32_t *scales; /* of the integers; ignored if bits is 0 */
    unsigned room;         /* an absolute value may be at most 2^room; 0..62 */
    sherd__local_steps local;
    void *const *sums; /* a tier's count of int64_t (bits 0: double), added to; undefined on
                          failure */
    bool fresh;        /* treat the sums as zero, whatever they contain */
    /** Called before parameters of a tier are read. On return they must be in sherd__grader_params,
     *  or lent (sherd__grader_lend). NULL: they already are. A failure ends the pass with that
     *  error. */
    int (*need)(void *ctx, size_t tier, sherd_diag *d);
    /** Called before the tier's sum is added to, and may wait until no other pass adds to it. Sets
     *  *fresh, for this tier. NULL: as `fresh` says. A failure ends the pass with that error. */
    int (*begin)(void *ctx, size_t tier, bool *fresh, sherd_diag *d);
    /** Called when the tier's sum has been added to. Those of lower tiers have not been added to
     *  and, if local.steps is 0, not even computed. May be NULL. */
    void (*done)(void *ctx, size_t tier);
    /** Called before each local step except the first; true ends the pass with SHERD_EINTERRUPTED.
     *  NULL: never stops. The coordinator chooses the number of steps, and nothing else bounds
     *  it. */
    bool (*stop)(void *ctx);
    void *ctx;
} sherd__grading;

typedef struct sherd__grader sherd__grader;

/**
 * Creates a grader for shards of up to `batch` examples. The parameters are undefined until they
 * are set or lent. `bits` is as in sherd_multiplier_local. `by` makes the multiplier; NULL: this
 * machine's. The caller owns *out.
 *
 * Errors: those of sherd__recipe_network and of `by`; SHERD_EINVAL for a network without
 * parameters.
 */
int sherd__grader_new(sherd__grader **out, const sherd__recipe *r, size_t batch, unsigned bits,
                      const sherd__arithmetic *by, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__grader_free(sherd__grader *g);
/** Computes the most bytes that a grader will hold, including products in progress; UINT64_MAX if
 *  that overflows. Errors of sherd__network_new for layers that do not fit. */
int sherd__grader_memory(const sherd__recipe *r, size_t batch, uint64_t *bytes,
                         sherd_diag *d) SHERD_MUST;

/** Returns the tiers of a recipe's network: how many there are, and the numbers of each.
 *  SHERD_EINVAL: there are none. Errors of sherd__network_new for layers that do not fit. */
int sherd__recipe_tiers(const sherd__recipe *r, size_t *tiers,
                        size_t counts[SHERD__RECIPE_LAYERS_MAX], sherd_diag *d) SHERD_MUST;

/** Returns the floating-point operations of a forward and a backward pass for one example, counting
 *  a multiply-add as two and the other operations as 50 for each output of a layer. 0 if
 *  a layer does not fit. */
double sherd__recipe_flops(const sherd__recipe *r);
/** Returns how many examples pass through the network for these shards: shard i has at[i + 1] -
 *  at[i]. local: by shard; NULL: no local steps. */
double sherd__shards_examples(const size_t *at, uint32_t shards, const sherd__local_steps *local);

size_t sherd__grader_tiers(const sherd__grader *g);
/** Returns how many numbers a tier has: weights row-major, then biases. */
size_t sherd__grader_count(const sherd__grader *g, size_t tier);
double *sherd__grader_params(sherd__grader *g, size_t tier);
/** Makes the grader read the tier's parameters from `params` until the end of the current run or,
 *  between runs, of the next one. Not allowed for local steps, which change the parameters. */
void sherd__grader_lend(sherd__grader *g, size_t tier, const double *params);
size_t sherd__grader_inputs(const sherd__grader *g);
size_t sherd__grader_width(const sherd__grader *g);

/** The sum of the costs of examples, and how many were hits. */
typedef struct sherd__graded {
    double cost;
    uint64_t hits;
} sherd__graded;

/**
 * Grades one shard. *cost is the sum over its examples without L2; with local steps it is that of
 * the first step, scaled to the shard's number of examples. *hits is as in sherd__labels_hit. Local
 * steps change the parameters.
 *
 * Errors: SHERD_EBUSY if an entry is beyond `room` (repeat with a coarser scale); errors of
 * sherd__network_learn (SHERD_ERANGE: diverged) and of `need`. On error *cost and *hits are
 * untouched.
 */
int sherd__grader_run(sherd__grader *g, const sherd__shard *s, const sherd__grading *how,
                      double *cost, uint64_t *hits, sherd_diag *d) SHERD_MUST;

/** Computes sums[i] += rint(g[i] * factor). Returns false if an entry is beyond 2^room or not a
 *  number; sums are undefined then. */
bool sherd__grader_add(int64_t *sums, const double *g, size_t n, double factor, unsigned room);

#endif
