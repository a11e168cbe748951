/*
 * Examples that a coordinator has put here, as shards of a plan name them: blocks of inputs and of
 * targets, which are compared with the network and with each other before anybody computes.
 */
#ifndef NODE_EXAMPLES_H
#define NODE_EXAMPLES_H

#include "learn/plan.h"
#include "node/store.h"

typedef struct sherd__examples {
    sherd__block *x, *targets; /* held; NULL: none */
    sherd__step_plan_shard what;
    double cost; /* once graded */
    uint64_t hits;
} sherd__examples;

/** Finds and holds shard i of the plan for a network of so many inputs and outputs. SHERD_EFORMAT,
 *  SHERD_EINVAL, SHERD_ESHAPE; what is held then is released as ever. */
int sherd__examples_take(sherd__examples *e, const sherd__store *store, uint64_t job,
                         const sherd__step_plan *p, uint32_t i, size_t inputs, size_t width,
                         sherd_diag *d) SHERD_MUST;
/** Whether `rows` rows from `first` on are inputs and targets of such a network. SHERD_ESHAPE. */
int sherd__examples_fit(const sherd__block *x, const sherd__block *targets, uint64_t first,
                        uint64_t rows, size_t inputs, size_t width, sherd_diag *d) SHERD_MUST;
/** The rows that the shard means, where they lie. */
sherd__shard sherd__examples_shard(const sherd__examples *e);
void sherd__examples_release(sherd__examples *e);

#endif
