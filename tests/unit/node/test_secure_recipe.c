/*
 * A node identifies a sum by its parameters and places, for any recipe: a changed recipe must not
 * give other members access to the same sum. The test covers every key of a recipe, and fails if it
 * lacks one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "learn/recipe_keys.h"
#include "tests/unit/node/secure_member.h"

#define IN "input = 3\n"
#define DENSE "layer = dense 2\n"
#define LOSS "loss = squared\n"
#define NETWORK IN DENSE LOSS
#define REST "data = file\nepochs = 1\nrate = 0.5\n"
#define BASE NETWORK REST

/* Recipes that differ from BASE in this key and in its consequences. */
static const struct {
    const char *key, *text;
} others[] = {
    { "input", "input = 1 x 3 x 1\n" DENSE LOSS REST },
    { "layer", IN "layer = flatten\n" DENSE LOSS REST },
    { "layer", IN "layer = relu\n" DENSE LOSS REST }, /* of inputs that are not negative */
    { "layer", IN "layer = conv2d 2 window 1\n" LOSS REST },
    { "layer", IN DENSE "layer = max-pool 1\n" LOSS REST },
    { "loss", IN DENSE "loss = cross-entropy\n" REST }, /* at outputs of 1/2 */
    { "l2", BASE "l2 = 0.5\n" },
    { "bias_gradient", BASE "bias_gradient = total\n" },
    { "validation_biases", BASE "validation_biases = no\n" },
    { "precision", BASE "precision = f32\n" },
    { "data", NETWORK "data = idx\nepochs = 1\nrate = 0.5\n" },
    { "examples", BASE "examples = 5\n" },
    { "classes", NETWORK "data = random\nexamples = 9\nclasses = 2\nepochs = 1\nrate = 0.5\n" },
    { "targets", BASE "targets = values\n" },
    { "label", BASE "label = y\n" },
    { "columns", BASE "columns = a, b, c\n" },
    { "class_names", BASE "class_names = u, v\n" },
    { "divide_inputs", BASE "divide_inputs = 2\n" },
    { "standardise", BASE "standardise = yes\n" },
    { "holdout", BASE "holdout = 0.5\n" },
    { "weights", BASE "weights = normal 1\n" },
    { "batch", BASE "batch = 3\n" },
    { "order", BASE "order = given\n" },
    { "epochs", NETWORK "data = file\nepochs = 2\nrate = 0.5\n" },
    { "steps", NETWORK "data = file\nsteps = 1\nrate = 0.5\n" },
    { "report_every", BASE "report_every = 2\n" },
    { "report_every", BASE "report_every = 2 steps\n" },
    { "patience", BASE "patience = 2\n" },
    { "method", BASE "method = adam\n" },
    { "rate", NETWORK "data = file\nepochs = 1\nrate = 0.25\n" },
    { "schedule", BASE "schedule = inverse 0.5 every 3\n" },
    { "warmup", BASE "warmup = 1\n" },
};

/* Returns the canonical text of a recipe; the caller frees it. */
static sherd__buf printed(const char *text)
{
    sherd__recipe r;
    sherd__buf out;
    sherd__buf_init(&out, SHERD__RECIPE_BYTES_MAX, 0);
    assert_int_equal(sherd__recipe_parse(&r, text, strlen(text), "recipe", SHERD__RECIPE_ALL, NULL),
                     0);
    assert_int_equal(sherd__recipe_print(&r, SHERD__RECIPE_ALL, &out), 0);
    return out;
}

/* Returns the ledger's identification of a sum with this recipe. */
static void charged_for(const char *text, uint8_t about[SHERD__LEDGER_DIGEST])
{
    size_t targets = strstr(text, "targets = values") ? 2 : 1; /* or labels, of which 0 is one */
    static const double zeros[2 * ROWS];
    const sherd__own data = { .x = sherd_view_c(m.examples, SHERD_F64, ROWS, 3),
                              .y = sherd_view_c(zeros, SHERD_F64, ROWS, targets) };
    m.recipe = text;
    member_start_with((uint64_t)16 << 20, &data, NULL);
    member_meet();
    assert_int_equal(member_seal(1), 0);
    assert_int_equal(member_hide(1, 20), 0);
    assert_int_equal(m.ledger.len, 1);
    memcpy(about, m.ledger.charges[0].about, SHERD__LEDGER_DIGEST);
    member_stop();
}

static void no_key_of_a_recipe_makes_a_different_sum(void **s)
{
    (void)s;
    const char *was = m.recipe;
    uint8_t about[SHERD__LEDGER_DIGEST], other[SHERD__LEDGER_DIGEST];
    sherd__buf base = printed(BASE);
    charged_for(BASE, about);
    for (const sherd__recipe_key *k = sherd__recipe_keys; k->name; k++) {
        size_t tried = 0;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            if (strcmp(others[i].key, k->name) != 0) continue;
            sherd__buf text = printed(others[i].text);
            assert_false(text.len == base.len && !memcmp(text.data, base.data, text.len));
            sherd__buf_fini(&text);
            charged_for(others[i].text, other);
            assert_memory_equal(other, about, sizeof about);
            tried++;
        }
        if (!tried) fail_msg("the key %s is not tested: can it change the sum?", k->name);
    }
    sherd__buf_fini(&base);
    m.recipe = was;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        no_key_of_a_recipe_makes_a_different_sum) };
    return cmocka_run_group_tests(tests, member_fill, member_empty);
}
