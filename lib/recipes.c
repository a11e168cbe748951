/*
 * Recipes by name: the files of examples/train, byte for byte, so that a name and its file are the
 * same recipe. The assembler includes the files; the Makefile has the dependency of this object on
 * them.
 */
#include "lib/recipes.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/suggest.h"
#include "store/file.h"

#define EMBED(symbol, file)                                                                        \
    __asm__(".section .rodata\n"                                                                   \
            ".hidden " #symbol ", " #symbol "_end\n"                                               \
            ".global " #symbol "\n"                                                                \
            ".global " #symbol "_end\n" #symbol ":\n"                                              \
            ".incbin \"examples/train/" file "\"\n" #symbol "_end:\n"                              \
            ".byte 0\n"                                                                            \
            ".previous\n");                                                                        \
    extern const char symbol[], symbol##_end[]

EMBED(sherd__recipe_mnist, "mnist.conf");
EMBED(sherd__recipe_mnist_proper, "mnist-proper.conf");
EMBED(sherd__recipe_spiral, "spiral.conf");
EMBED(sherd__recipe_parabola, "parabola.conf");
EMBED(sherd__recipe_lenet, "lenet.conf");
EMBED(sherd__recipe_deep, "deep.conf");

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

const char *sherd__recipe_builtin_name(size_t i)
{
    return i < RECIPES ? recipes[i].name : NULL;
}

bool sherd__recipe_is_builtin(const char *name)
{
    for (size_t i = 0; i < RECIPES; i++)
        if (strcmp(recipes[i].name, name) == 0) return true;
    return false;
}

static int unknown(const char *name, sherd_diag *d)
{
    const char *known[RECIPES + 1];
    char hint[120];
    for (size_t i = 0; i <= RECIPES; i++) known[i] = sherd__recipe_builtin_name(i);
    const char *near = sherd__suggest(name, known);
    if (near) snprintf(hint, sizeof hint, "did you mean %s?", near);
    else
        snprintf(hint, sizeof hint,
                 "mnist, mnist-proper, spiral, parabola, lenet, deep, or a file");
    return sherd__fail(d, SHERD_EOPEN, hint, "%s: there is no such recipe and no such file", name);
}

int sherd__recipe_load(sherd__recipe *out, const char *name, sherd_diag *d)
{
    struct stat st;
    uint8_t *text = NULL;
    size_t len = 0;
    for (size_t i = 0; i < RECIPES; i++)
        if (strcmp(recipes[i].name, name) == 0)
            return sherd__recipe_parse(out, recipes[i].text,
                                       (size_t)(recipes[i].end - recipes[i].text), name,
                                       SHERD__RECIPE_ALL, d);
    if (stat(name, &st) != 0) return unknown(name, d);
    int err = sherd__file_read_small(&text, &len, name, SHERD__RECIPE_BYTES_MAX, d);
    if (!err) err = sherd__recipe_parse(out, (char *)text, len, name, SHERD__RECIPE_ALL, d);
    sherd__free(text);
    return err;
}
