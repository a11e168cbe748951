/*
 * A trained network as a file that numpy.load opens: its recipe's text (member "recipe", bytes) and
 * its parameters, "w1" (inputs x outputs), "b1", "w2" and so on, in the network's precision.
 */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "learn/network.h"
#include "learn/recipe.h"

/** Writes the model atomically; an earlier file survives every failure. */
int sherd__model_save(const char *path, const sherd__recipe *r, sherd__network *n,
                      sherd_diag *d) SHERD_MUST;
/** Checks whether the disk currently has room for the model at this path; leaves no file there.
 *  SHERD_EOPEN, SHERD_EIO. */
int sherd__model_room(const char *path, const sherd__network *n, sherd_diag *d) SHERD_MUST;
/** Reads the recipe of a model. SHERD_EFORMAT if it is missing or invalid. */
int sherd__model_recipe(sherd__recipe *out, const char *path, sherd_diag *d) SHERD_MUST;
/** Loads the parameters of n from the members w1, b1, ...; each must exist, be finite and have n's
 *  shape (b1 may be n, 1 x n or n x 1). On failure n is unchanged. SHERD_EFORMAT, SHERD_ESHAPE,
 *  SHERD_ERANGE, SHERD_ENOMEM. */
int sherd__model_load(sherd__network *n, const char *path, sherd_diag *d) SHERD_MUST;

#endif
