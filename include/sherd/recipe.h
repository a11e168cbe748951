/*
 * Recipes: a network, the kind of data that it is trained on, and the method. The text of a recipe
 * is `key = value` lines; docs/TRAINING.md lists the keys. A recipe contains nothing secret and
 * nothing specific to a machine.
 */
#ifndef SHERD_RECIPE_H
#define SHERD_RECIPE_H

#include <stddef.h>

#include "sherd/err.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sherd_recipe sherd_recipe;

/** Returns the name of the i-th built-in recipe ("mnist"); NULL after the last. */
SHERD_API const char *sherd_recipe_builtin_at(size_t i);
/**
 * Reads a built-in recipe by its name, or else a file. The caller frees *out with
 * sherd_recipe_free; it is NULL on failure. SHERD_EOPEN (the hint names the nearest built-in one),
 * SHERD_EIO; SHERD_EFORMAT: the message names the line; SHERD_ENOMEM.
 */
SHERD_API int sherd_recipe_load(sherd_recipe **out, const char *name, sherd_diag *d) SHERD_MUST;
/** Parses the text of a recipe. name: the recipe's name in messages, "recipe" if NULL. The caller
 *  frees *out with sherd_recipe_free; it is NULL on failure. SHERD_EFORMAT, SHERD_ENOMEM. */
SHERD_API int sherd_recipe_parse(sherd_recipe **out, const char *text, const char *name,
                                 sherd_diag *d) SHERD_MUST;
/**
 * Sets one key to a value, both as they are written in a recipe: ("epochs", "10"), ("batch",
 * "all"). `epochs` replaces `steps` and vice versa. SHERD_EFORMAT: no such key or value, or the
 * recipe would not be valid; SHERD_EUNSUPPORTED: the key is `layer`, which may occur several times;
 * SHERD_ENOMEM. The recipe is unchanged then.
 */
SHERD_API int sherd_recipe_set(sherd_recipe *r, const char *key, const char *value,
                               sherd_diag *d) SHERD_MUST;
/** Returns the name or path that the recipe was loaded by. */
SHERD_API const char *sherd_recipe_name(const sherd_recipe *r);
/** Returns the canonical text, with every key. Equal recipes have equal texts. Valid until the
 *  recipe is changed or freed. */
SHERD_API const char *sherd_recipe_text(const sherd_recipe *r);
/** Frees r. NULL is allowed. */
SHERD_API void sherd_recipe_free(sherd_recipe *r);

#ifdef __cplusplus
}
#endif

#endif
