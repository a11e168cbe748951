/* Recipes through the public interface: names, texts, single keys, and memory that runs out. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "sherd/recipe.h"

static const char text[] = "input = 2\nlayer = dense 8\nlayer = relu\nlayer = dense 3\n"
                           "loss = cross-entropy\ndata = spiral\nexamples = 90\nclasses = 3\n"
                           "rate = 0.5\nbatch = 30\nepochs = 4\n";

static sherd_recipe *parse(const char *of)
{
    sherd_recipe *r;
    sherd_diag d = { 0 };
    if (sherd_recipe_parse(&r, of, NULL, &d)) fail_msg("%s", d.message);
    return r;
}

/* Checks that a value is refused with this message and that the recipe is unchanged. */
static void refused(sherd_recipe *r, int code, const char *key, const char *value,
                    const char *words)
{
    char before[1000];
    sherd_diag d = { 0 };
    snprintf(before, sizeof before, "%s", sherd_recipe_text(r));
    int err = sherd_recipe_set(r, key, value, &d);
    if (err != code || !strstr(d.message, words)) fail_msg("%s: %d, %s", key, err, d.message);
    assert_string_equal(sherd_recipe_text(r), before);
}

static void built_in_recipes_are_listed_and_loaded(void **s)
{
    (void)s;
    const char *name;
    sherd_recipe *r, *again;
    size_t i = 0;
    for (; (name = sherd_recipe_builtin_at(i)); i++) {
        assert_int_equal(sherd_recipe_load(&r, name, NULL), 0);
        assert_string_equal(sherd_recipe_name(r), name);
        again = parse(sherd_recipe_text(r));
        assert_string_equal(sherd_recipe_text(again), sherd_recipe_text(r));
        sherd_recipe_free(r);
        sherd_recipe_free(again);
    }
    assert_true(i >= 6);
}

static void errors_name_the_recipe_and_the_line(void **s)
{
    (void)s;
    sherd_recipe *r = (void *)&r;
    sherd_diag d = { 0 };
    assert_int_equal(sherd_recipe_load(&r, "sprial", &d), SHERD_EOPEN);
    assert_null(r);
    assert_non_null(strstr(d.hint, "spiral"));
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_recipe_parse(&r, "input = 2\nlayer = dens 3\n", NULL, &d),
                     SHERD_EFORMAT);
    assert_null(r);
    assert_non_null(strstr(d.message, "recipe:2: "));
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_recipe_parse(&r, "input = 2\n", "mine", &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "mine: the key layer is missing"));
}

static void a_key_is_set_by_its_text(void **s)
{
    (void)s;
    sherd_recipe *r = parse(text);
    sherd_diag d = { 0 };
    assert_int_equal(sherd_recipe_set(r, "epochs", "10", &d), 0);
    assert_non_null(strstr(sherd_recipe_text(r), "\nepochs = 10\n"));
    assert_int_equal(sherd_recipe_set(r, "batch", " all ", &d), 0);
    assert_non_null(strstr(sherd_recipe_text(r), "\nbatch = all\n"));
    assert_int_equal(sherd_recipe_set(r, "method", "adam 0.8 0.9 1e-7", &d), 0);
    assert_non_null(strstr(sherd_recipe_text(r), "\nmethod = adam 0.8 0.9 1e-07\n"));
    sherd_recipe_free(r);
}

static void epochs_and_steps_replace_each_other(void **s)
{
    (void)s;
    sherd_recipe *r = parse(text);
    assert_int_equal(sherd_recipe_set(r, "steps", "7", NULL), 0);
    assert_non_null(strstr(sherd_recipe_text(r), "\nsteps = 7\n"));
    assert_null(strstr(sherd_recipe_text(r), "epochs = 4"));
    assert_int_equal(sherd_recipe_set(r, "epochs", "2", NULL), 0);
    assert_null(strstr(sherd_recipe_text(r), "steps = 7"));
    sherd_recipe_free(r);
}

static void changes_that_make_a_recipe_invalid_are_refused(void **s)
{
    (void)s;
    sherd_recipe *r = parse(text);
    refused(r, SHERD_EFORMAT, "epoch", "10", "unknown key 'epoch'");
    refused(r, SHERD_EFORMAT, "epochs", "ten", "recipe: epochs: expected a number of epochs");
    refused(r, SHERD_EFORMAT, "epochs", "", "epochs: expected");
    refused(r, SHERD_EFORMAT, "epochs", "1\nlayer = dense 4", "in one line");
    refused(r, SHERD_EFORMAT, "label", "name # of it", "without #");
    refused(r, SHERD_EFORMAT, "data", "parabola", "classes has no meaning");
    refused(r, SHERD_EUNSUPPORTED, "layer", "dense 5", "several keys `layer`");
    sherd_recipe_free(r);
}

static void any_failed_allocation_is_an_error_and_leaves_nothing(void **s)
{
    (void)s;
    for (size_t n = 1, seen = n; seen >= n; n++) {
        sherd_recipe *r = NULL;
        sherd__alloc_fail_nth(n);
        int err = sherd_recipe_parse(&r, text, NULL, NULL);
        if (!err) err = sherd_recipe_set(r, "rate", "0.25", NULL);
        seen = sherd__alloc_fail_nth(0);
        assert_int_equal(err, seen >= n ? SHERD_ENOMEM : 0);
        if (r) assert_true((strstr(sherd_recipe_text(r), "rate = 0.25") != NULL) == !err);
        sherd_recipe_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_recipes_are_listed_and_loaded),
        cmocka_unit_test(errors_name_the_recipe_and_the_line),
        cmocka_unit_test(a_key_is_set_by_its_text),
        cmocka_unit_test(epochs_and_steps_replace_each_other),
        cmocka_unit_test(changes_that_make_a_recipe_invalid_are_refused),
        cmocka_unit_test(any_failed_allocation_is_an_error_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
