/* Models: the struct behind sherd/model.h, and reading of files into a network. */
#ifndef LIB_MODEL_H
#define LIB_MODEL_H

#include "learn/network.h"
#include "lib/recipe.h"
#include "lib/schema.h"
#include "sherd/model.h"

struct sherd_model {
    sherd_recipe *recipe;
    sherd__network *network; /* its parameters are the model's */
    sherd__schema schema;    /* belongs to the model */
    bool borrowed;           /* recipe and network belong to a training */
    char names[2 * SHERD__RECIPE_LAYERS_MAX][16];
    size_t names_len;
};

/** Makes a model of a recipe and its network, and takes both unless `borrowed` is set. On failure
 *  the caller still owns them. The schema is copied. SHERD_ENOMEM. */
int sherd__model_of(sherd_model **out, sherd_recipe *r, sherd__network *n,
                    const sherd__schema *schema, bool borrowed, sherd_diag *d) SHERD_MUST;
/** Frees any model; NULL is allowed. */
void sherd__model_free(sherd_model *m);

/** Reads the recipe of a model. SHERD_EFORMAT if it is missing or invalid. */
int sherd__model_recipe(sherd__recipe *out, const char *path, sherd_diag *d) SHERD_MUST;
/** Loads the parameters of n from the members w1, b1, ...; each must exist, be finite and have n's
 *  shape (b1 may be n, 1 x n or n x 1). On failure n is unchanged. SHERD_EFORMAT, SHERD_ESHAPE,
 *  SHERD_ERANGE, SHERD_ENOMEM. */
int sherd__model_params(sherd__network *n, const char *path, sherd_diag *d) SHERD_MUST;

#endif
