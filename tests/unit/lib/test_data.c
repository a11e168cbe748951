/* Data sets from arrays in memory: as a file of the same values, checked, converted, borrowed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "sherd/data.h"
#include "sherd/npy.h"

enum { ROWS = 20, INPUTS = 4, CLASSES = 3 };

static double x[ROWS * INPUTS];
static int64_t y[ROWS];
static const uint8_t seed[32] = { 3 };

static sherd_recipe *recipe(const char *more)
{
    char text[500];
    sherd_recipe *r;
    sherd_diag d = { 0 };
    snprintf(text, sizeof text,
             "input = 4\nlayer = dense 3\nloss = squared\ndata = file\nrate = 1\nepochs = 1\n%s",
             more);
    if (sherd_recipe_parse(&r, text, NULL, &d)) fail_msg("%s", d.message);
    return r;
}

static sherd_data_source arrays(void)
{
    return (sherd_data_source){ .size = sizeof(sherd_data_source),
                                .x = sherd_view_c(x, SHERD_F64, ROWS, INPUTS),
                                .y = sherd_view_c(y, SHERD_I64, ROWS, 1) };
}

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS * INPUTS; i++) x[i] = sin((double)i);
    for (size_t i = 0; i < ROWS; i++) y[i] = (int64_t)(i * 7 % CLASSES);
    return 0;
}

static sherd_data *load(const char *more, const sherd_data_source *from)
{
    sherd_recipe *r = recipe(more);
    sherd_data *data;
    sherd_diag d = { 0 };
    if (sherd_data_load(&data, r, from, seed, &d)) fail_msg("%s", d.message);
    sherd_recipe_free(r);
    return data;
}

static void refused(int code, const char *more, const sherd_data_source *from, const char *words)
{
    sherd_recipe *r = recipe(more);
    sherd_data *data = (void *)r;
    sherd_diag d = { 0 };
    int err = sherd_data_load(&data, r, from, seed, &d);
    if (err != code || !strstr(d.message, words)) fail_msg("%d, %s", err, d.message);
    assert_null(data);
    sherd_recipe_free(r);
}

static void arrays_are_borrowed_and_labels_converted(void **s)
{
    (void)s;
    sherd_data_source from = arrays();
    sherd_data *data = load("", &from);
    sherd_view in = sherd_data_x(data, SHERD_DATA_TRAINING),
               out = sherd_data_y(data, SHERD_DATA_TRAINING);
    assert_true(in.data == x && in.rows == ROWS && in.cols == INPUTS);
    assert_true(out.dtype == SHERD_U32 && out.rows == ROWS && out.cols == 1);
    for (size_t i = 0; i < ROWS; i++) assert_int_equal(((const uint32_t *)out.data)[i], y[i]);
    assert_true(sherd_data_x(data, SHERD_DATA_VALIDATION).rows == 0);
    assert_true(sherd_data_y(data, SHERD_DATA_VALIDATION).rows == 0);
    sherd_data_info info = { .size = sizeof info };
    assert_int_equal(sherd_data_get(data, &info, NULL), 0);
    assert_true(info.examples == ROWS && info.validation == 0 && info.inputs == INPUTS &&
                info.outputs == CLASSES && info.labels && !info.embedded);
    assert_string_equal(info.text, "arrays: 20 examples of 4 numbers");
    sherd_data_free(data);
}

static void arrays_with_any_strides_are_the_same_data(void **s)
{
    (void)s;
    static double turned[ROWS * INPUTS];
    uint8_t digests[2][32];
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < INPUTS; j++) turned[j * ROWS + i] = x[i * INPUTS + j];
    for (int i = 0; i < 2; i++) {
        sherd_data_source from = arrays();
        if (i) from.x = sherd_view_t(sherd_view_c(turned, SHERD_F64, INPUTS, ROWS));
        sherd_data *data = load("", &from);
        assert_int_equal(sherd_data_digest(data, digests[i], NULL), 0);
        sherd_data_free(data);
    }
    assert_memory_equal(digests[0], digests[1], 32);
}

static void a_file_of_the_same_values_is_the_same_data(void **s)
{
    (void)s;
    static double both[ROWS * (INPUTS + 1)];
    char folder[] = "/tmp/sherd-data-XXXXXX", path[64];
    uint8_t digests[2][32];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/both.npy", folder);
    for (size_t i = 0; i < ROWS; i++) {
        memcpy(both + i * (INPUTS + 1), x + i * INPUTS, INPUTS * sizeof *x);
        both[i * (INPUTS + 1) + INPUTS] = (double)y[i];
    }
    assert_int_equal(sherd_npy_save(path, sherd_view_c(both, SHERD_F64, ROWS, INPUTS + 1), NULL),
                     0);
    const char *const settings[] = { "", "holdout = 0.25\n", "examples = 7\ndivide_inputs = 3\n" };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const sherd_data_source file = { .size = sizeof file, .path = path };
        sherd_data_source memory = arrays();
        sherd_data *a = load(settings[i], &file), *b = load(settings[i], &memory);
        assert_int_equal(sherd_data_digest(a, digests[0], NULL), 0);
        assert_int_equal(sherd_data_digest(b, digests[1], NULL), 0);
        assert_memory_equal(digests[0], digests[1], 32);
        sherd_data_free(a);
        sherd_data_free(b);
    }
    unlink(path);
    rmdir(folder);
}

static void validation_is_given_or_held_out(void **s)
{
    (void)s;
    sherd_data_source from = arrays();
    sherd_data *data = load("holdout = 0.25\n", &from);
    assert_int_equal(sherd_data_x(data, SHERD_DATA_TRAINING).rows, 15);
    assert_int_equal(sherd_data_x(data, SHERD_DATA_VALIDATION).rows, 5);
    sherd_data_free(data);
    from.validation_x = sherd_view_sub(from.x, 3, 6, 0, INPUTS);
    from.validation_y = sherd_view_sub(from.y, 3, 6, 0, 1);
    data = load("divide_inputs = 4\n", &from);
    sherd_view v = sherd_data_x(data, SHERD_DATA_VALIDATION);
    assert_true(v.rows == 6 && ((const double *)v.data)[1] == x[3 * INPUTS + 1] / 4);
    assert_int_equal(((const uint32_t *)sherd_data_y(data, SHERD_DATA_VALIDATION).data)[2], y[5]);
    sherd_data_free(data);
}

static void targets_may_be_values(void **s)
{
    (void)s;
    static float values[ROWS * 3];
    for (size_t i = 0; i < ROWS * 3; i++) values[i] = (float)i / 8;
    sherd_data_source from = arrays();
    from.y = sherd_view_c(values, SHERD_F32, ROWS, 3);
    sherd_data *data = load("targets = values\n", &from);
    sherd_view v = sherd_data_y(data, SHERD_DATA_TRAINING);
    assert_true(v.dtype == SHERD_F64 && v.cols == 3 && ((const double *)v.data)[5] == 5. / 8);
    sherd_data_free(data);
}

static void errors_in_arrays_are_named(void **s)
{
    (void)s;
    sherd_data_source from = arrays();
    from.y.rows = ROWS - 1;
    refused(SHERD_ESHAPE, "", &from, "arrays: x has 20 rows and y has 19");
    from = arrays();
    from.y = (sherd_view){ .dtype = SHERD_F64 };
    refused(SHERD_EFORMAT, "", &from, "arrays: has x but not y");
    from = arrays();
    from.name = "mine";
    from.x = sherd_view_sub(from.x, 0, ROWS, 0, 3);
    refused(SHERD_ESHAPE, "", &from, "mine: examples have 3 numbers: the network takes 4");
    from = arrays();
    from.y = sherd_view_c(x, SHERD_F64, ROWS, 1);
    refused(SHERD_EFORMAT, "", &from, "arrays: y: row 1: expected a label");
    from = arrays();
    y[11] = CLASSES;
    refused(SHERD_EFORMAT, "", &from, "arrays: row 11 has the label 3");
    y[11] = 0;
    x[9] = INFINITY;
    refused(SHERD_ERANGE, "", &from, "arrays: row 2, column 1 is inf");
    (void)set_up(NULL);
    from.path = "some.npz";
    refused(SHERD_EINVAL, "", &from, "as a file and as arrays");
    from = arrays();
    from.x.dtype = (sherd_dtype)99;
    refused(SHERD_EINVAL, "", &from, "arrays");
    refused(SHERD_EINVAL, "", NULL, "neither a file nor arrays");
    from = arrays();
    from.size = 0;
    refused(SHERD_EINVAL, "", &from, "sherd_data_source.size");
    refused(SHERD_EINVAL, "label = a\n",
            &(sherd_data_source){ sizeof from, NULL, arrays().x, arrays().y, { 0 }, { 0 }, NULL },
            "label = a is a column of a .csv");
}

static void generated_data_depend_only_on_the_seed(void **s)
{
    (void)s;
    static const uint8_t other[32] = { 4 };
    uint8_t digests[4][32];
    sherd_recipe *r;
    assert_int_equal(sherd_recipe_load(&r, "spiral", NULL), 0);
    for (int i = 0; i < 4; i++) {
        sherd_data *data;
        assert_int_equal(sherd_data_load(&data, r, NULL,
                                         i < 2    ? seed
                                         : i == 2 ? other
                                                  : NULL,
                                         NULL),
                         0);
        assert_int_equal(sherd_data_digest(data, digests[i], NULL), 0);
        sherd_data_free(data);
    }
    sherd_recipe_free(r);
    assert_memory_equal(digests[0], digests[1], 32);
    assert_memory_not_equal(digests[0], digests[2], 32);
    assert_memory_not_equal(digests[0], digests[3], 32);
}

static void any_failed_allocation_is_an_error_and_leaves_nothing(void **s)
{
    (void)s;
    sherd_recipe *r = recipe("holdout = 0.25\ndivide_inputs = 2\n");
    sherd_data_source from = arrays();
    for (size_t n = 1, seen = n; seen >= n; n++) {
        sherd_data *data = NULL;
        sherd__alloc_fail_nth(n);
        int err = sherd_data_load(&data, r, &from, seed, NULL);
        seen = sherd__alloc_fail_nth(0);
        assert_int_equal(err, seen >= n ? SHERD_ENOMEM : 0);
        assert_true((data == NULL) == (err != 0));
        sherd_data_free(data);
    }
    sherd_recipe_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_borrowed_and_labels_converted),
        cmocka_unit_test(arrays_with_any_strides_are_the_same_data),
        cmocka_unit_test(a_file_of_the_same_values_is_the_same_data),
        cmocka_unit_test(validation_is_given_or_held_out),
        cmocka_unit_test(targets_may_be_values),
        cmocka_unit_test(errors_in_arrays_are_named),
        cmocka_unit_test(generated_data_depend_only_on_the_seed),
        cmocka_unit_test(any_failed_allocation_is_an_error_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
