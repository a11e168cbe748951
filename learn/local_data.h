/*
 * Gradients of examples that stay with their owner, as integers to be summed under a mask
 * (learn/secure.h). The work does not depend on the examples, and no call fails because of them:
 *
 *   - A round grades a fixed number of places. A place after the last example is graded like any
 *     other and counts as zero. So does an example with a number that is not finite or an invalid
 *     label.
 *   - A number that does not fit saturates. A gradient that is not finite counts as zero.
 *   - Subnormal numbers count as zeros (core/subnormal.h), since arithmetic on them takes longer.
 *   - No branch and no address depends on a number of an example (core/pick.h), neither here nor in
 *     the layers and losses of f64 that a pass calls.
 *
 * With a clipping norm each example is graded separately; its gradient is scaled down to that norm
 * and rounded to integers of SHERD__PRIVACY_UNITS (crypto/privacy.h). The norm covers numbers of
 * any size and is rounded up. In addition, the squares of each example's integers are summed: an
 * example beyond sherd__privacy_gradient_bound would be graded again as an empty place, but no such
 * example is known. Therefore removing one example changes the sum by a vector of bounded norm,
 * exactly. Without a clipping norm, examples are graded in batches, in float64.
 *
 * Public: the shape of the network and the numbers of columns. Private: everything else.
 */
#ifndef LEARN_LOCAL_DATA_H
#define LEARN_LOCAL_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "learn/arithmetic.h"
#include "learn/recipe.h"

/** Examples of a pass without clipping. Fixed, so that the bits do not depend on a machine's
 *  memory. */
#define SHERD__OWN_CHUNK 256u

/** Range of clipping norms in which the factors of examples are normal numbers. */
#define SHERD__OWN_CLIP_LEAST 0x1p-100
#define SHERD__OWN_CLIP_MOST 0x1p100

/** An owner's data as read; borrowed. x has at least one row. */
typedef struct sherd__own {
    sherd_view x; /* examples x numbers */
    sherd_view y; /* their targets, as many rows; rows 0: the last columns of x are the targets */
} sherd__own;

typedef struct sherd__own_options {
    const sherd__recipe *recipe;
    const sherd__own *data;
    bool values;             /* targets are values; else labels */
    double divide;           /* divisor of the inputs */
    double clip;             /* largest norm of one example's gradient, within the range above; 0:
                                no clipping */
    bool (*stop)(void *ctx); /* called before each pass over a chunk of examples; true ends the call
                                with SHERD_EINTERRUPTED. Must not depend on examples. NULL: never
                                stops */
    void *stop_ctx;
    sherd__arithmetic by; /* makes the multiplier of passes; zeroed: this machine's. Its products
                             must take a time that does not depend on the numbers, and each row of a
                             product must not depend on other rows or on its place. If it fails
                             (SHERD_EDEVICE), the sum is computed again on this machine */
} sherd__own_options;

typedef struct sherd__own_grader sherd__own_grader;

/** Creates a grader. Borrows data. SHERD_ESHAPE: the network's inputs and targets do not match the
 *  columns of the data; errors of sherd__recipe_network; SHERD_ENOMEM. */
int sherd__own_new(sherd__own_grader **out, const sherd__own_options *o, sherd_diag *d) SHERD_MUST;
/** Wipes and frees. NULL is allowed. */
void sherd__own_free(sherd__own_grader *g);
/** Computes the most bytes that a grader holds, including a pass in progress. They depend only on
 *  the recipe and on whether it clips. Errors of sherd__network_new for layers that do not fit. */
int sherd__own_memory(const sherd__recipe *r, bool clips, uint64_t *bytes,
                      sherd_diag *d) SHERD_MUST;

/** Returns the parameters, tier after tier (learn/grader.h). The caller sets them before grading;
 *  all must be finite. */
double *sherd__own_params(sherd__own_grader *g);

/** The places [first, first + rows), and how their sums become integers: x is rint(x 2^scale), at
 *  most 2^room in absolute value. scales: by tier, that of the cost last; with clipping those of
 *  tiers are ignored. */
typedef struct sherd__own_request {
    uint64_t first, rows;
    const int32_t *scales;
    unsigned room;
} sherd__own_request;

/**
 * Computes the sums over places: the gradient's numbers, then SHERD__SECURE_EXTRA figures.
 *
 * Errors: SHERD_EINTERRUPTED if `stop` returned true (out is undefined then); SHERD_ENOMEM.
 */
int sherd__own_grade(sherd__own_grader *g, const sherd__own_request *r, int64_t *out,
                     sherd_diag *d) SHERD_MUST;

#endif
