/*
 * Gradients of examples that stay with their owner, as integers to be summed under a mask
 * (learn/secure.h). Whatever the examples are, the same work is done and no call fails because of
 * them:
 *
 *   - a round grades a fixed number of places. A place behind the last example is graded like any
 *     other and counts as zero; so is an example with a number that is not finite or a target that
 *     is no label;
 *   - what does not fit saturates. A gradient that is not finite counts as zero;
 *   - subnormal numbers count as zeros (core/subnormal.h), since arithmetic on them takes longer;
 *   - no branch and no address follows from a number of an example (core/pick.h): not here, nor in
 *     the layers and losses of f64 that a pass goes through.
 *
 * With a clipping norm each example is graded alone, its gradient is scaled down to that norm and
 * rounded to integers of SHERD__PRIVACY_UNITS (crypto/privacy.h). The norm counts numbers of any
 * size and is rounded up. Besides, squares of each example's integers are summed: an example
 * beyond sherd__privacy_gradient_bound would be graded again as an empty place; none is known. So
 * replacing one example by none changes the sum by a vector of bounded norm, exactly. Without a
 * clipping norm, examples are graded in batches, in float64.
 *
 * Public: the shape of the network and the numbers of columns. Private: everything else.
 */
#ifndef LEARN_LOCAL_DATA_H
#define LEARN_LOCAL_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "learn/recipe.h"

/** Examples of a pass without clipping: fixed, so that it decides no bit that a machine's memory
 *  would. */
#define SHERD__OWN_CHUNK 256u

/** Range of clipping norms: with them, factors of examples are normal numbers. */
#define SHERD__OWN_CLIP_LEAST 0x1p-100
#define SHERD__OWN_CLIP_MOST 0x1p100

/** As read; borrowed. x has at least one row. */
typedef struct sherd__own {
    sherd_view x; /* examples x numbers */
    sherd_view y; /* their targets, as many rows; rows 0: the last columns of x are */
} sherd__own;

typedef struct sherd__own_options {
    const sherd__recipe *recipe;
    const sherd__own *data;
    bool values;             /* targets are values; else labels */
    double divide;           /* inputs are divided by it */
    double clip;             /* norm of one example's gradient at most, in that range; 0: none */
    bool (*stop)(void *ctx); /* asked before each pass over a chunk of examples: true ends the call
                               with SHERD_EINTERRUPTED. Must not depend on examples. NULL: never */
    void *stop_ctx;
} sherd__own_options;

typedef struct sherd__own_grader sherd__own_grader;

/** Borrows data. SHERD_ESHAPE: the network takes other numbers of inputs and targets than the data
 *  have columns; errors of sherd__recipe_network; SHERD_ENOMEM. */
int sherd__own_new(sherd__own_grader **out, const sherd__own_options *o, sherd_diag *d) SHERD_MUST;
/** Wipes. NULL is allowed. */
void sherd__own_free(sherd__own_grader *g);
/** Most bytes that such a grader holds, a pass under way included: a function of the recipe and of
 *  whether it clips. Errors of sherd__network_new for layers that do not fit. */
int sherd__own_memory(const sherd__recipe *r, bool clips, uint64_t *bytes,
                      sherd_diag *d) SHERD_MUST;

/** The parameters, tier after tier (learn/grader.h), which the caller sets before it grades; all
 *  finite. */
double *sherd__own_params(sherd__own_grader *g);

/**
 * What is summed over the places [first, first + rows): the gradient's numbers, then
 * SHERD__SECURE_EXTRA figures. scales: by tier, then of the cost; of an entry x the integer is
 * rint(x 2^scale), and with clipping the tiers' are not looked at. Every number of out is at most
 * 2^room. SHERD_EINTERRUPTED, where `stop` says so: out is undefined then; SHERD_ENOMEM.
 */
int sherd__own_grade(sherd__own_grader *g, uint64_t first, uint64_t rows, const int32_t *scales,
                     unsigned room, int64_t *out, sherd_diag *d) SHERD_MUST;

#endif
