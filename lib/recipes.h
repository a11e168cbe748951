/* Recipes by name: those of examples/train are part of the library. */
#ifndef LIB_RECIPES_H
#define LIB_RECIPES_H

#include "learn/recipe.h"

/** Reads a recipe by its name or from a file. SHERD_EOPEN (names the nearest), SHERD_EFORMAT. */
int sherd__recipe_load(sherd__recipe *out, const char *name, sherd_diag *d) SHERD_MUST;
/** Returns the name of built-in recipe i, or NULL beyond the last. */
const char *sherd__recipe_builtin_name(size_t i);
/** Returns whether the name is a built-in recipe, and therefore not a file. */
bool sherd__recipe_is_builtin(const char *name);

#endif
