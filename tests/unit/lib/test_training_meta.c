/* Metadata of trainings through the public interface: the operations of a step, and which files a
 * training refuses before there are nodes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "training_world.h"

enum { NODES = 3 };

static char path[64];

/* ---- making ---------------------------------------------------------------------------------- */

static sherd_meta *empty(bool shuffle_rows)
{
    const sherd_meta_settings s = {
        .size = sizeof s, .nodes = NODES, .balanced = true, .shuffle_rows = shuffle_rows
    };
    sherd_meta *m;
    assert_int_equal(sherd_meta_new(&m, &s, world_seed, NULL), 0);
    return m;
}

static sherd_meta *of_step(const sherd_recipe *r, uint64_t examples, bool elementwise)
{
    const sherd_step_options o = { .size = sizeof o,
                                   .examples = examples,
                                   .elementwise = elementwise };
    sherd_meta *m = empty(false);
    sherd_diag d = { 0 };
    if (sherd_meta_add_recipe(m, r, &o, &d)) fail_msg("%s", d.message);
    return m;
}

static void save(sherd_meta *m, bool expanded, bool without_seed)
{
    const sherd_meta_save_options o = { .size = sizeof o,
                                        .expanded = expanded,
                                        .without_seed = without_seed };
    sherd_diag d = { 0 };
    if (sherd_meta_save(m, path, &o, NULL, &d)) fail_msg("%s", d.message);
    sherd_meta_free(m);
}

/* Writes the file of a step of the training of training_world.h. */
static void save_step(const char *more)
{
    sherd_recipe *r = world_recipe(more);
    save(of_step(r, 0, false), false, false);
    sherd_recipe_free(r);
}

static int set_up(void **s)
{
    (void)s;
    strcpy(path, "/tmp/sherd-step-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    save_step(NULL);
    return 0;
}

static int tear_down(void **s)
{
    (void)s;
    return unlink(path);
}

/* ---- the operations of a step ---------------------------------------------------------------- */

static void has(const sherd_meta *m, size_t i, const char *want)
{
    char text[96];
    const sherd_meta_operation *op = sherd_meta_at(m, i);
    assert_non_null(op);
    snprintf(text, sizeof text, "%s %s %d %d %d", op->name, sherd_op_name(op->kind), (int)op->n,
             (int)op->k, (int)op->m);
    assert_string_equal(text, want);
}

static void all(sherd_meta *m, const char *const *want)
{
    size_t len = 0;
    for (; want[len]; len++) has(m, len, want[len]);
    assert_int_equal(sherd_meta_count(m), len);
    sherd_meta_free(m);
}

static sherd_recipe *recipe_of(const char *text)
{
    sherd_recipe *r;
    sherd_diag d = { 0 };
    if (sherd_recipe_parse(&r, text, NULL, &d)) fail_msg("%s", d.message);
    return r;
}

static void data_that_stay_at_the_nodes_are_the_right_operand(void **s)
{
    (void)s;
    static const char
        *const kept[] = { "forward_1 dot 7 2 20",          "forward_2 dot 20 7 3",
                          "backward_2_weights dot 7 20 3", "backward_2_input dot 20 3 7",
                          "backward_1_weights dot 7 20 2", NULL },
               *const sent[] = { "forward_1 dot 20 2 7",          "forward_2 dot 20 7 3",
                                 "backward_2_weights dot 7 20 3", "backward_2_input dot 20 3 7",
                                 "backward_1_weights dot 2 20 7", NULL };
    static const char *const orders[] = { "batches", "given", "shuffled", "drawn" };
    sherd_recipe *r = world_recipe(NULL);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(sherd_recipe_set(r, "order", orders[i], NULL), 0);
        all(of_step(r, 0, false), i < 2 ? kept : sent);
    }
    sherd_recipe_free(r);
}

static void activations_are_operations_if_nodes_compute_them(void **s)
{
    (void)s;
    static const char *const want[] = { "activation_1 tanh 1 0 36",
                                        "forward_1 dot 9 4 5",
                                        "activation_2 relu 1 0 45",
                                        "forward_2 dot 9 5 6",
                                        "activation_3 sigmoid 1 0 54",
                                        "activation_4 tanh 1 0 54",
                                        "forward_3 dot 9 6 2",
                                        "backward_3_weights dot 6 9 2",
                                        "backward_3_input dot 9 2 6",
                                        "activation_4_square square 1 0 54",
                                        "activation_4_times multiply 1 0 54",
                                        "activation_4_minus minus 1 0 54",
                                        "activation_3_square square 1 0 54",
                                        "activation_3_minus minus 1 0 54",
                                        "activation_3_times multiply 1 0 54",
                                        "backward_2_weights dot 5 9 6",
                                        "backward_2_input dot 9 6 5",
                                        "backward_1_weights dot 4 9 5",
                                        NULL };
    sherd_recipe *r = recipe_of("input = 4\nlayer = tanh\nlayer = dense 5\nlayer = relu\n"
                                "layer = dense 6\nlayer = sigmoid\nlayer = tanh\n"
                                "layer = dense 2\nloss = cross-entropy\ndata = file\nbatch = 9\n"
                                "epochs = 1\nrate = 1\n");
    all(of_step(r, 0, true), want);
    sherd_recipe_free(r);
}

static void a_convolution_has_a_row_for_each_window(void **s)
{
    (void)s;
    static const char *const want[] = { "forward_1 dot 320 9 3",
                                        "forward_2 dot 320 27 4",
                                        "forward_3 dot 20 64 10",
                                        "backward_3_weights dot 64 20 10",
                                        "backward_3_input dot 20 10 64",
                                        "backward_2_weights dot 27 320 4",
                                        "backward_2_input dot 320 4 27",
                                        "backward_1_weights dot 9 320 3",
                                        NULL };
    sherd_recipe *r = recipe_of("input = 6 x 6 x 1\nlayer = conv2d 3 window 3\n"
                                "layer = conv2d 4 window 3 padding 1\nlayer = flatten\n"
                                "layer = dense 10\nloss = cross-entropy\ndata = file\n"
                                "batch = all\nepochs = 1\nrate = 1\n");
    all(of_step(r, 20, false), want);
    sherd_recipe_free(r);
}

static void a_step_needs_its_number_of_examples(void **s)
{
    (void)s;
    sherd_step_options o = { .size = sizeof o };
    sherd_recipe *r = world_recipe("batch = all\n");
    sherd_meta *m = empty(false), *rows = empty(true);
    sherd_diag d = { 0 };
    assert_int_equal(sherd_meta_add_recipe(m, r, NULL, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "whose number is not known"));
    assert_int_equal(sherd_recipe_set(r, "batch", "20", NULL), 0);
    assert_int_equal(sherd_meta_add_recipe(m, r, NULL, NULL), 0); /* all defaults */
    o.examples = 19;
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_meta_add_recipe(m, r, &o, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "a batch of 20 is larger than the data"));
    o.examples = 20;
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_meta_add_recipe(m, r, &o, &d), SHERD_EINVAL); /* the names are in use */
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_meta_add_recipe(rows, r, &o, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "rows cannot be shuffled in a training");
    assert_int_equal(sherd_meta_count(rows), 0);
    o.size = 0;
    assert_int_equal(sherd_meta_add_recipe(rows, r, &o, NULL), SHERD_EINVAL);
    sherd_meta_free(m);
    sherd_meta_free(rows);
    sherd_recipe_free(r);
}

/* ---- trainings ------------------------------------------------------------------------------- */

static sherd_product_options products;

static sherd_train_options with_file(void)
{
    products = (sherd_product_options){ .size = sizeof products };
    return (sherd_train_options){ .size = sizeof(sherd_train_options),
                                  .seed = world_seed,
                                  .nodes = NODES,
                                  .products = &products,
                                  .meta = path };
}

static void refused(const char *more, const sherd_train_options *o, int want, const char *words)
{
    sherd_diag d = { 0 };
    int err;
    sherd_training *t = world_new(more, o, &err, &d);
    assert_null(t);
    if (err != want || !strstr(d.message, words)) fail_msg("%d: %s", err, d.message);
}

static void accepted(const char *more, const sherd_train_options *o)
{
    sherd_diag d = { 0 };
    int err;
    sherd_training *t = world_new(more, o, &err, &d);
    if (err) fail_msg("%s", d.message);
    sherd_training_free(t);
}

static bool is_used(void)
{
    sherd_meta *m;
    bool used = false;
    assert_int_equal(sherd_meta_load(&m, path, NULL), 0);
    for (size_t i = 0; i < sherd_meta_count(m); i++) used = used || sherd_meta_at(m, i)->used;
    sherd_meta_free(m);
    return used;
}

static void a_training_that_was_not_run_has_not_used_the_file(void **s)
{
    (void)s;
    sherd_train_options o = with_file();
    sherd_train_exposure e = { .size = sizeof e };
    sherd_train_report r = { .size = sizeof r };
    int err;
    sherd_training *t = world_new("holdout = 0.2\n", &o, &err, NULL);
    assert_int_equal(err, 0);
    assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
    assert_string_equal(r.meta, path);
    assert_false(r.meta_reused);
    assert_int_equal(sherd_training_exposure_at(t, 4, NODES - 1, &e, NULL), 0);
    assert_string_equal(e.operation, "backward_1_weights");
    assert_true(e.kind == SHERD_OP_PRODUCT && e.node == NODES - 1 && e.calls == 0 &&
                e.exposed_a == 0 && e.exposed_b == 0);
    assert_int_equal(sherd_training_exposure_at(t, 5, 0, &e, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_training_exposure_at(t, 0, NODES, &e, NULL), SHERD_EINVAL);
    sherd_training_free(t);
    assert_false(is_used());
    o.meta = NULL;
    t = world_new(NULL, &o, &err, NULL);
    assert_int_equal(sherd_training_exposure_at(t, 0, 0, &e, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
    assert_null(r.meta);
    sherd_training_free(t);
}

static void a_file_that_does_not_fit_is_refused(void **s)
{
    (void)s;
    sherd_train_options o = with_file();
    refused("batch = 10\n", &o, SHERD_ESHAPE, "forward_1 is dot of 7 x 2 x 20, but");
    refused("order = drawn\n", &o, SHERD_ESHAPE, "needs dot of 20 x 2 x 7 (batches of 20)");
    o.elementwise_at_nodes = true;
    refused(NULL, &o, SHERD_EFORMAT, "has no operation activation_1");
    o = with_file();
    o.nodes = 4;
    refused(NULL, &o, SHERD_ESHAPE, "is for 3 nodes, not for 4");
    o.nodes = 0;
    refused(NULL, &o, SHERD_EINVAL, "--meta needs nodes");
    o.nodes = NODES;
    o.by = SHERD_BY_GRADIENTS;
    refused(NULL, &o, SHERD_EINVAL, "--meta needs --by products");
    o = with_file();
    o.meta = "/none/step.npz";
    refused(NULL, &o, SHERD_EOPEN, "/none/step.npz");
}

static void options_must_agree_with_the_file(void **s)
{
    (void)s;
    sherd_train_options o = with_file();
    products.scheme = SHERD_SHARE;
    refused(NULL, &o, SHERD_EINVAL, "--scheme disagrees with");
    products.scheme = SHERD_PERMUTE;
    accepted(NULL, &o);
    products.group = 2;
    refused(NULL, &o, SHERD_EINVAL, "--group disagrees with");
    products.group = 0;
    o.meta_settings = SHERD_META_GROUP;
    accepted(NULL, &o);
    o.meta_settings = SHERD_META_EXPOSURE;
    refused(NULL, &o, SHERD_EINVAL, "--exposure disagrees with"); /* the file's is balanced */
}

static void permutations_of_rows_or_without_a_seed_are_refused(void **s)
{
    (void)s;
    const sherd_meta_operation op = {
        .size = sizeof op, .name = "z", .kind = SHERD_OP_PRODUCT, .n = 2, .k = 2, .m = 2
    };
    sherd_train_options o = with_file();
    sherd_recipe *r = world_recipe(NULL);
    sherd_meta *m = empty(true);
    assert_int_equal(sherd_meta_add(m, &op, NULL), 0);
    save(m, false, false);
    refused(NULL, &o, SHERD_EUNSUPPORTED, "shuffles rows");
    save(of_step(r, 0, false), true, true);
    refused(NULL, &o, SHERD_EUNSUPPORTED, "has no seed, so its permutations serve one step only");
    save(of_step(r, 0, false), true, false);
    accepted(NULL, &o);
    sherd_recipe_free(r);
}

/* 20 columns of 60 examples in groups of 20 at 3 balanced nodes: a node is given 7 of 20 in each
 * part, and 1 of 2 columns. */
static void exposures_are_compared_with_their_limit(void **s)
{
    (void)s;
    sherd_train_options o = with_file();
    products.exposure_max = 0.4;
    refused(NULL, &o, SHERD_EEXPOSURE, "0.5 of forward_1; --exposure-max is 0.4");
    products.exposure_max = 0.6; /* 1/2 by columns and 7/20 by rows */
    refused(NULL, &o, SHERD_EEXPOSURE, "0.85 of the data; --exposure-max is 0.6");
    products.exposure_max = 0.86;
    accepted(NULL, &o);
}

/* The last batch has 1 example: one node is given all of it. */
static void a_shorter_batch_is_compared_too(void **s)
{
    (void)s;
    sherd_train_options o = with_file();
    save_step("batch = 59\n");
    products.exposure_max = 0.9;
    refused("batch = 59\n", &o, SHERD_EEXPOSURE, "1 of backward_2_weights; --exposure-max is 0.9");
    save_step("batch = 59\norder = drawn\n"); /* batches are never shorter */
    accepted("batch = 59\norder = drawn\n", &o);
}

static void a_file_of_another_training_is_refused(void **s)
{
    (void)s;
    sherd_train_options o = with_file();
    sherd_meta *m;
    sherd_meta_usage usage;
    uint8_t other[32] = { 1 };
    int err;
    assert_int_equal(sherd_meta_load(&m, path, NULL), 0);
    assert_int_equal(sherd_meta_use(m, 4, other, false, &usage, NULL), 0);
    save(m, false, false);
    refused(NULL, &o, SHERD_EEXPOSURE, "operation backward_1_weights was used by another training");
    o.meta_reuse = true;
    sherd_training *t = world_new(NULL, &o, &err, NULL);
    sherd_train_report r = { .size = sizeof r };
    assert_int_equal(sherd_training_report_get(t, &r, NULL), 0);
    assert_true(r.meta_reused);
    sherd_training_free(t);
}

static void memory_that_runs_out_is_reported(void **s)
{
    (void)s;
    sherd_train_options o = with_file();
    products.exposure_max = 0.9;
    int err = SHERD_ENOMEM;
    for (size_t n = 1; err == SHERD_ENOMEM; n++) {
        sherd_diag d = { 0 };
        sherd_recipe *r = world_recipe(NULL);
        sherd__alloc_fail_nth(n);
        sherd_training *t = world_make(r, &o, &err, &d);
        sherd__alloc_fail_nth(0);
        sherd_training_free(t);
        sherd_recipe_free(r);
        if (err) assert_true(err == SHERD_ENOMEM && d.message[0]);
    }
    assert_int_equal(err, 0);
    sherd_recipe *r = world_recipe(NULL);
    for (size_t n = 1; err == SHERD_ENOMEM || n == 1; n++) {
        sherd_meta *m = empty(false);
        sherd__alloc_fail_nth(n);
        err = sherd_meta_add_recipe(m, r, NULL, NULL);
        sherd__alloc_fail_nth(0);
        sherd_meta_free(m);
    }
    assert_int_equal(err, 0);
    sherd_recipe_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_that_stay_at_the_nodes_are_the_right_operand),
        cmocka_unit_test(activations_are_operations_if_nodes_compute_them),
        cmocka_unit_test(a_convolution_has_a_row_for_each_window),
        cmocka_unit_test(a_step_needs_its_number_of_examples),
        cmocka_unit_test_setup_teardown(a_training_that_was_not_run_has_not_used_the_file, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_does_not_fit_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(options_must_agree_with_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(permutations_of_rows_or_without_a_seed_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(exposures_are_compared_with_their_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shorter_batch_is_compared_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_of_another_training_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_that_runs_out_is_reported, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
