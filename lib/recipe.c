/*
 * Recipes with their names and texts. The built-in ones are the files of examples/train, byte for
 * byte, so that a name and its file are the same recipe.
 */
#include "lib/recipe.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/embed.h"
#include "core/suggest.h"
#include "store/file.h"

SHERD__EMBED(sherd__recipe_mnist, "examples/train/mnist.conf");
SHERD__EMBED(sherd__recipe_mnist_proper, "examples/train/mnist-proper.conf");
SHERD__EMBED(sherd__recipe_spiral, "examples/train/spiral.conf");
SHERD__EMBED(sherd__recipe_parabola, "examples/train/parabola.conf");
SHERD__EMBED(sherd__recipe_lenet, "examples/train/lenet.conf");
SHERD__EMBED(sherd__recipe_deep, "examples/train/deep.conf");

static const struct {
    const char *name, *text, *end;
} recipes[] = {
    { "mnist", sherd__recipe_mnist, sherd__recipe_mnist_end },
    { "mnist-proper", sherd__recipe_mnist_proper, sherd__recipe_mnist_proper_end },
    { "spiral", sherd__recipe_spiral, sherd__recipe_spiral_end },
    { "parabola", sherd__recipe_parabola, sherd__recipe_parabola_end },
    { "lenet", sherd__recipe_lenet, sherd__recipe_lenet_end },
    { "deep", sherd__recipe_deep, sherd__recipe_deep_end },
};
#define RECIPES (sizeof recipes / sizeof *recipes)

const char *sherd_recipe_builtin_at(size_t i)
{
    return i < RECIPES ? recipes[i].name : NULL;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Returns the canonical text, or NULL without memory. */
static char *print(const sherd__recipe *r)
{
    sherd__buf text;
    sherd__buf_init(&text, SHERD__RECIPE_BYTES_MAX, 0);
    int err = sherd__recipe_print(r, SHERD__RECIPE_ALL, &text);
    if (!err) err = sherd__buf_append(&text, "", 1);
    char *out = err ? NULL : sherd__strdup((const char *)text.data);
    sherd__buf_fini(&text);
    return out;
}

int sherd__recipe_of(sherd_recipe **out, const sherd__recipe *r, const char *name, sherd_diag *d)
{
    sherd_recipe *x = sherd__calloc(1, sizeof *x);
    *out = NULL;
    if (x) {
        x->recipe = *r;
        x->name = sherd__strdup(name);
        x->text = print(r);
    }
    if (!x || !x->name || !x->text) {
        sherd_recipe_free(x);
        return sherd__fail_memory(d, "the recipe %s", name);
    }
    *out = x;
    return SHERD_OK;
}

static int parse(sherd_recipe **out, const char *text, size_t len, const char *name, sherd_diag *d)
{
    sherd__recipe r;
    *out = NULL;
    int err = sherd__recipe_parse(&r, text, len, name, SHERD__RECIPE_ALL, d);
    return err ? err : sherd__recipe_of(out, &r, name, d);
}

/* ---- loading --------------------------------------------------------------------------------- */

static int unknown(const char *name, sherd_diag *d)
{
    const char *known[RECIPES + 1];
    char hint[120];
    for (size_t i = 0; i <= RECIPES; i++) known[i] = sherd_recipe_builtin_at(i);
    const char *near = sherd__suggest(name, known);
    if (near) snprintf(hint, sizeof hint, "did you mean %s?", near);
    else
        snprintf(hint, sizeof hint,
                 "mnist, mnist-proper, spiral, parabola, lenet, deep, or a file");
    return sherd__fail(d, SHERD_EOPEN, hint, "%s: there is no such recipe and no such file", name);
}

int sherd_recipe_load(sherd_recipe **out, const char *name, sherd_diag *d)
{
    struct stat st;
    uint8_t *text = NULL;
    size_t len = 0;
    *out = NULL;
    for (size_t i = 0; i < RECIPES; i++)
        if (strcmp(recipes[i].name, name) == 0)
            return parse(out, recipes[i].text, (size_t)(recipes[i].end - recipes[i].text), name, d);
    if (stat(name, &st) != 0) return unknown(name, d);
    int err = sherd__file_read_small(&text, &len, name, SHERD__RECIPE_BYTES_MAX, d);
    if (!err) err = parse(out, (char *)text, len, name, d);
    sherd__free(text);
    return err;
}

int sherd_recipe_parse(sherd_recipe **out, const char *text, const char *name, sherd_diag *d)
{
    return parse(out, text, strlen(text), name ? name : "recipe", d);
}

/* ---- use ------------------------------------------------------------------------------------- */

int sherd_recipe_set(sherd_recipe *r, const char *key, const char *value, sherd_diag *d)
{
    sherd__recipe changed = r->recipe;
    int err = sherd__recipe_set(&changed, key, value, r->name, d);
    if (err) return err;
    char *text = print(&changed);
    if (!text) return sherd__fail_memory(d, "changing %s", r->name);
    sherd__free(r->text);
    r->text = text;
    r->recipe = changed;
    return SHERD_OK;
}

int sherd__recipe_size(const sherd_recipe *r, size_t batch, sherd__network_size *out, sherd_diag *d)
{
    sherd_diag mine = { 0 };
    int err = sherd__recipe_measure(&r->recipe, batch, out, &mine);
    if (!err) return SHERD_OK;
    return sherd__fail(d, err == SHERD_EINVAL ? SHERD_EFORMAT : err, mine.hint, "%s: %s", r->name,
                       mine.message);
}

const char *sherd_recipe_name(const sherd_recipe *r)
{
    return r->name;
}

const char *sherd_recipe_text(const sherd_recipe *r)
{
    return r->text;
}

void sherd_recipe_free(sherd_recipe *r)
{
    if (!r) return;
    sherd__free(r->name);
    sherd__free(r->text);
    sherd__free(r);
}
