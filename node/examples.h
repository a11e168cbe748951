/*
 * Examples that a coordinator has stored on this node, as the shards of a plan name them: blocks of
 * inputs and of targets. They are compared with the network and with each other before anything is
 * computed.
 */
#ifndef NODE_EXAMPLES_H
#define NODE_EXAMPLES_H

#include "learn/plan.h"
#include "node/store.h"

typedef struct sherd__examples {
    sherd__block *x, *targets; /* held; NULL: not taken */
    sherd__step_plan_shard what;
    double cost; /* set once the shard is graded */
    uint64_t hits;
} sherd__examples;

/** Finds and holds shard i of the plan, for a network of so many inputs and outputs. Held blocks
 *  are released with sherd__examples_release, also after an error. */
int sherd__examples_take(sherd__examples *e, const sherd__store *store, uint64_t job,
                         const sherd__step_plan *p, uint32_t i, size_t inputs, size_t width,
                         sherd_diag *d) SHERD_MUST;
/** Checks that `rows` rows from `first` on are inputs and targets of a network of these sizes.
 *  Returns SHERD_ESHAPE where they are not. */
int sherd__examples_fit(const sherd__block *x, const sherd__block *targets, uint64_t first,
                        uint64_t rows, size_t inputs, size_t width, sherd_diag *d) SHERD_MUST;
/** Returns the rows of the shard as views of the held blocks. */
sherd__shard sherd__examples_shard(const sherd__examples *e);
void sherd__examples_release(sherd__examples *e);

#endif
