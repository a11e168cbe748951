/*
 * A trained network as a file that numpy.load opens: its recipe's text (member "recipe", bytes) and
 * its parameters, "w1" (inputs x outputs), "b1", "w2" and so on, in the network's precision.
 */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "learn/network.h"
#include "learn/recipe.h"

/** Writes it, all or nothing; an earlier file survives every failure. */
int sherd__model_save(const char *path, const sherd__recipe *r, sherd__network *n,
                      sherd_diag *d) SHERD_MUST;
/** Whether the disk has room for it at this place now; nothing is left there. SHERD_EOPEN,
 *  SHERD_EIO. */
int sherd__model_room(const char *path, const sherd__network *n, sherd_diag *d) SHERD_MUST;
/** The recipe in a model. SHERD_EFORMAT where there is none, or not a sound one. */
int sherd__model_recipe(sherd__recipe *out, const char *path, sherd_diag *d) SHERD_MUST;
/** Parameters of n from the members w1, b1, ...; each must be there, finite, and of n's shape
 *  (b1 may be n, 1 x n or n x 1). n is as it was on failure. SHERD_EFORMAT, SHERD_ESHAPE,
 *  SHERD_ERANGE, SHERD_ENOMEM. */
int sherd__model_load(sherd__network *n, const char *path, sherd_diag *d) SHERD_MUST;

#endif
