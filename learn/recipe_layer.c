/*
 * The key `layer`: its kinds, and the options after a kind's first words. An option with its
 * default is not printed, so that a recipe has only one text.
 */
#include "learn/recipe_keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/diag.h"

static const sherd__layer_kind *const kinds[] = {
    &sherd__layer_dense,        &sherd__layer_conv2d,  &sherd__layer_max_pool,
    &sherd__layer_average_pool, &sherd__layer_flatten, &sherd__layer_relu,
    &sherd__layer_sigmoid,      &sherd__layer_tanh,    &sherd__layer_softmax,
};
#define KINDS (sizeof kinds / sizeof *kinds)

static const char what[] =
    "dense UNITS, conv2d CHANNELS window SIDE [stride N] [padding N], max-pool or average-pool "
    "SIDE [stride N], flatten, relu, sigmoid, tanh or softmax";

/* Parses "stride N", "padding N" and so on, after the first words of a layer. */
static bool read_parts(const sherd__recipe_value *v, size_t from, sherd__layer_spec *l)
{
    struct {
        const char *name;
        size_t *into;
        uint64_t min;
        bool takes, seen;
    } parts[] = {
        { "window", &l->window, 1, l->kind == &sherd__layer_conv2d, false },
        { "stride", &l->stride, 1, true, false },
        { "padding", &l->padding, 0, l->kind == &sherd__layer_conv2d, false },
    };
    for (size_t i = from; i < v->len; i += 2) {
        uint64_t n;
        size_t p = 0;
        while (p < 3 && strcmp(v->words[i], parts[p].name) != 0) p++;
        if (p == 3 || !parts[p].takes || parts[p].seen || i + 1 == v->len ||
            !sherd__word_count(v->words[i + 1], SHERD__RECIPE_SIDE_MAX, &n) || n < parts[p].min)
            return false;
        parts[p].seen = true;
        *parts[p].into = (size_t)n;
    }
    return true;
}

/* Reports a missing number after the kind of layer. */
static int number_expected(const sherd__recipe_value *v, sherd_diag *d)
{
    char text[80];
    snprintf(text, sizeof text, "%s and a whole number from 1 to %" PRIu64, v->words[0],
             SHERD__RECIPE_SIDE_MAX);
    return sherd__recipe_expected(v, text, NULL, d);
}

int sherd__recipe_read_layer(sherd__recipe *r, const sherd__recipe_value *v, sherd_diag *d)
{
    const char *names[KINDS + 1];
    sherd__layer_spec l = { 0 };
    uint64_t n = 0;
    if (r->len == SHERD__RECIPE_LAYERS_MAX)
        return sherd__fail(d, SHERD_EFORMAT, NULL, "%s: more than %u layers", v->where,
                           SHERD__RECIPE_LAYERS_MAX);
    for (size_t i = 0; i < KINDS; i++) names[i] = kinds[i]->name;
    names[KINDS] = NULL;
    int kind, err = sherd__recipe_first_of(v, names, what, &kind, d);
    if (err) return err;
    l.kind = kinds[kind];
    bool pool = l.kind == &sherd__layer_max_pool || l.kind == &sherd__layer_average_pool;
    bool numbers = pool || l.kind == &sherd__layer_dense || l.kind == &sherd__layer_conv2d;
    if (numbers &&
        (v->len < 2 || !sherd__word_count(v->words[1], SHERD__RECIPE_SIDE_MAX, &n) || n == 0))
        return number_expected(v, d);
    if (pool) l.window = (size_t)n;
    else l.units = (size_t)n;
    bool more = pool || l.kind == &sherd__layer_conv2d;
    if (more ? !read_parts(v, 2, &l) : v->len != (numbers ? 2u : 1u))
        return sherd__recipe_expected(v, what, NULL, d);
    if (l.kind == &sherd__layer_conv2d && l.window == 0)
        return sherd__recipe_expected(v, what, "conv2d 20 window 3", d);
    if (more && l.stride == 0) l.stride = pool ? l.window : 1;
    r->layers[r->len++] = l;
    return SHERD_OK;
}

bool sherd__recipe_write_layer(const sherd__recipe *r, size_t i, char out[SHERD__RECIPE_LIST])
{
    if (i >= r->len) return false;
    const sherd__layer_spec *l = &r->layers[i];
    const char *name = l->kind->name;
    bool conv = l->kind == &sherd__layer_conv2d;
    int at;
    if (conv) at = snprintf(out, 128, "%s %zu window %zu", name, l->units, l->window);
    else if (l->window > 0) at = snprintf(out, 128, "%s %zu", name, l->window);
    else if (l->units > 0) at = snprintf(out, 128, "%s %zu", name, l->units);
    else at = snprintf(out, 128, "%s", name);
    if (l->stride != (conv ? 1 : l->window))
        at += snprintf(out + at, 128 - (size_t)at, " stride %zu", l->stride);
    if (l->padding > 0) snprintf(out + at, 128 - (size_t)at, " padding %zu", l->padding);
    return true;
}
