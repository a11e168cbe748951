/* The keys of a recipe's text: one table that parser and printer share (learn/recipe.c). */
#ifndef LEARN_RECIPE_KEYS_H
#define LEARN_RECIPE_KEYS_H

#include "learn/recipe.h"
#include "learn/recipe_value.h"

typedef struct sherd__recipe_key {
    const char *name;
    sherd__recipe_part part;
    bool required;
    bool repeats; /* one line for each of several things */
    int (*read)(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d);
    /** Writes thing i of the recipe; false where there is no such thing or the line is left out. */
    bool (*write)(const sherd__recipe *r, size_t i, char out[128]);
} sherd__recipe_key;

/** In the order of the canonical text, then {0}. */
extern const sherd__recipe_key sherd__recipe_keys[];

/** Those of the key layer (learn/recipe_layer.c). */
int sherd__recipe_read_layer(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d);
bool sherd__recipe_write_layer(const sherd__recipe *r, size_t i, char out[128]);

/** The recipe of a text without lines: defaults. */
void sherd__recipe_defaults(sherd__recipe *r);

#endif
