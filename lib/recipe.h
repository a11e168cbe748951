/* Recipes: the struct behind sherd/recipe.h. */
#ifndef LIB_RECIPE_H
#define LIB_RECIPE_H

#include "learn/recipe.h"
#include "sherd/recipe.h"

struct sherd_recipe {
    sherd__recipe recipe;
    char *name, *text; /* text: canonical */
};

/** Makes a recipe of parsed values. SHERD_ENOMEM. */
int sherd__recipe_of(sherd_recipe **out, const sherd__recipe *r, const char *name,
                     sherd_diag *d) SHERD_MUST;
/** Computes the size of its network for batches of `batch` examples, as sherd__recipe_measure.
 *  Messages begin with the recipe's name; layers that do not fit are SHERD_EFORMAT or
 *  SHERD_ESHAPE. */
int sherd__recipe_size(const sherd_recipe *r, size_t batch, sherd__network_size *out,
                       sherd_diag *d) SHERD_MUST;

#endif
