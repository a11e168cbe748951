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
} sherd__examples;

/** The blocks of a job, and the network that its examples are for. */
typedef struct sherd__examples_for {
    const sherd__store *store;
    uint64_t job;
    size_t inputs, width;
} sherd__examples_for;
/** Finds and holds shard i of the plan. Held blocks are released with sherd__examples_release,
 *  also after an error. */
int sherd__examples_take(sherd__examples *e, const sherd__examples_for *of,
                         const sherd__step_plan *p, uint32_t i, sherd_diag *d) SHERD_MUST;
/** Rows of examples, and the sizes of the network that they are for. */
typedef struct sherd__examples_rows {
    uint64_t first, rows;
    size_t inputs, width;
} sherd__examples_rows;
/** Checks that these rows of blocks are inputs and targets of such a network.
 *  Returns SHERD_ESHAPE where they are not. */
int sherd__examples_fit(const sherd__block *x, const sherd__block *targets,
                        const sherd__examples_rows *what, sherd_diag *d) SHERD_MUST;
/** Returns the rows of the shard as views of the held blocks. */
sherd__shard sherd__examples_shard(const sherd__examples *e);
void sherd__examples_release(sherd__examples *e);

#endif
