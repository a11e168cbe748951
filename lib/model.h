/* Models: the struct behind sherd/model.h, and files for networks that belong to a trainer. */
#ifndef LIB_MODEL_H
#define LIB_MODEL_H

#include "learn/network.h"
#include "learn/recipe.h"
#include "sherd/model.h"

struct sherd_model {
    sherd__recipe recipe;
    sherd__network *network; /* its parameters are the model's */
    size_t batch;            /* examples that a pass of the network takes; it grows when needed */
};

/** Creates a model with a copy of n's parameters; n is a network of this recipe. The caller frees
 *  *out with sherd_model_free. SHERD_ENOMEM. */
int sherd__model_of(sherd_model **out, const sherd__recipe *r, const sherd__network *n,
                    sherd_diag *d) SHERD_MUST;

/** Writes the recipe and a network atomically; an earlier file survives every failure. */
int sherd__model_write(const char *path, const sherd__recipe *r, const sherd__network *n,
                       sherd_diag *d) SHERD_MUST;
/** Checks whether the disk currently has room for the model at this path; leaves no file there.
 *  SHERD_EOPEN, SHERD_EIO. */
int sherd__model_room(const char *path, const sherd__network *n, sherd_diag *d) SHERD_MUST;
/** Reads the recipe of a model. SHERD_EFORMAT if it is missing or invalid. */
int sherd__model_recipe(sherd__recipe *out, const char *path, sherd_diag *d) SHERD_MUST;
/** Loads the parameters of n from the members w1, b1, ...; each must exist, be finite and have n's
 *  shape (b1 may be n, 1 x n or n x 1). On failure n is unchanged. SHERD_EFORMAT, SHERD_ESHAPE,
 *  SHERD_ERANGE, SHERD_ENOMEM. */
int sherd__model_params(sherd__network *n, const char *path, sherd_diag *d) SHERD_MUST;

#endif
