/* The keys of a recipe's text: one table that the parser and the printer share (learn/recipe.c). */
#ifndef LEARN_RECIPE_KEYS_H
#define LEARN_RECIPE_KEYS_H

#include "learn/recipe.h"
#include "learn/recipe_value.h"

typedef struct sherd__recipe_key {
    const char *name;
    sherd__recipe_part part;
    bool required;
    bool repeats; /* may occur several times, one line for each item */
    int (*read)(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d);
    /** Prints item i of the recipe. Returns false if there is no such item or the line is
     *  omitted. */
    bool (*write)(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST]);
} sherd__recipe_key;

/** In the order of the canonical text; ends with {0}. */
extern const sherd__recipe_key sherd__recipe_keys[];

/** Parse and print the key `layer` (learn/recipe_layer.c). */
int sherd__recipe_read_layer(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d);
bool sherd__recipe_write_layer(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST]);

/** Returns whether a key's value is one text, which is not split into words. */
bool sherd__recipe_key_is_text(const sherd__recipe_key *k);

/** Sets the recipe of an empty text: the defaults. */
void sherd__recipe_defaults(sherd__recipe *r);

#endif
