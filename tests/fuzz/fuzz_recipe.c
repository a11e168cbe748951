/* Recipes: what parses is printed, and the printed text parses to a recipe that prints the same. */
#include <assert.h>
#include <string.h>

#include "learn/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int parse(sherd__recipe *r, const void *text, size_t len)
{
    sherd_diag d = { 0 };
    int err = sherd__recipe_parse(r, text, len, "fuzz", SHERD__RECIPE_ALL, &d);
    assert(!err || (d.code == err && d.message[0]));
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    sherd__recipe r, again;
    sherd__buf first, second;
    sherd__network *n;
    if (parse(&r, data, len)) return 0;
    sherd__buf_init(&first, SHERD__RECIPE_BYTES_MAX, 0);
    sherd__buf_init(&second, SHERD__RECIPE_BYTES_MAX, 0);
    int err = sherd__recipe_print(&r, SHERD__RECIPE_ALL, &first);
    assert(!err);
    err = parse(&again, first.data, first.len);
    assert(!err);
    err = sherd__recipe_print(&again, SHERD__RECIPE_ALL, &second);
    assert(!err && first.len == second.len && !memcmp(first.data, second.data, first.len));
    size_t inputs;
    if (sherd__form_size(r.in, &inputs) && inputs < 4096 &&
        r.len < 8) { /* layers with any numbers */
        bool small = true;
        for (size_t i = 0; i < r.len; i++) small = small && r.layers[i].units < 64;
        if (small && !sherd__recipe_network(&r, 1, &n, NULL)) sherd__network_free(n);
    }
    sherd__buf_fini(&first);
    sherd__buf_fini(&second);
    return 0;
}
