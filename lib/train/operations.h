/* The operations of one training step that nodes compute, for metadata. */
#ifndef LIB_TRAIN_OPERATIONS_H
#define LIB_TRAIN_OPERATIONS_H

#include "learn/recipe.h"
#include "scheduler/job/step_tables.h"

/** The most operations of a step. */
#define SHERD__STEP_OPERATIONS_MAX (4 * SHERD__RECIPE_LAYERS_MAX)

/**
 * Lists the operations of a step of the recipe's network over `batch` examples, in the order in
 * which its passes need them: name, kind, shape, and `kept`; other members are 0. elementwise:
 * nodes also compute activations. Returns their number, at most SHERD__STEP_OPERATIONS_MAX.
 */
size_t sherd__step_operations(const sherd__recipe *r, const sherd__network *n, size_t batch,
                              bool elementwise, sherd__step_table *out);

#endif
