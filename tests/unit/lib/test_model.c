/* Models through the public interface: parameters by name, files, and predictions on this
 * machine. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "sherd/train.h"
#include "store/npz.h"

enum { ROWS = 2300, INPUTS = 3, HIDDEN = 5, OUTPUTS = 4 };

static const char text[] = "input = 3\nlayer = dense 5\nlayer = tanh\nlayer = dense 4\n"
                           "loss = cross-entropy\ndata = random\nexamples = 50\nclasses = 4\n"
                           "batch = 10\nepochs = 1\nrate = 0.1\nweights = normal 0.5\n";
static double x[ROWS * INPUTS];
static char folder[] = "/tmp/sherd-model-XXXXXX", path[64];

/* Writes a trained model of `text` and these lines to `path`, and loads it. */
static sherd_model *model(const char *more)
{
    char whole[500];
    const uint8_t seed[32] = { 9 };
    const sherd_train_options o = { .size = sizeof o, .seed = seed };
    sherd_diag d = { 0 };
    sherd_recipe *r;
    sherd_training *t;
    sherd_model *m;
    snprintf(whole, sizeof whole, "%s%s", text, more);
    if (sherd_recipe_parse(&r, whole, NULL, &d) || sherd_training_new(&t, r, NULL, &o, &d) ||
        sherd_training_run(t, NULL, &d) || sherd_model_save(sherd_training_model(t), path, &d) ||
        sherd_model_load(&m, path, &d))
        fail_msg("%s", d.message);
    sherd_training_free(t);
    sherd_recipe_free(r);
    return m;
}

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS * INPUTS; i++) x[i] = 3 * sin((double)i + 0.5);
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/model.npz", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static sherd_view inputs(size_t rows)
{
    return sherd_view_c(x, SHERD_F64, rows, INPUTS);
}

static void predict(sherd_model *m, sherd_view v, double *y, const sherd_predict_options *o)
{
    sherd_diag d = { 0 };
    if (sherd_model_predict(m, v, y, OUTPUTS, o, NULL, &d)) fail_msg("%s", d.message);
}

static void parameters_have_names_and_shapes(void **s)
{
    (void)s;
    sherd_model *m = model("");
    static const struct {
        const char *name;
        size_t rows, cols;
    } all[] = { { "w1", INPUTS, HIDDEN },
                { "b1", 1, HIDDEN },
                { "w2", HIDDEN, OUTPUTS },
                { "b2", 1, OUTPUTS } };
    for (size_t i = 0; i < 4; i++) {
        sherd_view v = sherd_model_parameter_find(m, all[i].name);
        assert_string_equal(sherd_model_parameter_name(m, i), all[i].name);
        assert_true(v.data && v.dtype == SHERD_F64 && v.rows == all[i].rows &&
                    v.cols == all[i].cols);
    }
    assert_null(sherd_model_parameter_name(m, 4));
    assert_null(sherd_model_parameter_find(m, "w3").data);
    assert_int_equal(sherd_model_inputs(m), INPUTS);
    assert_int_equal(sherd_model_outputs(m), OUTPUTS);
    assert_non_null(strstr(sherd_recipe_text(sherd_model_recipe(m)), "layer = dense 5\n"));
    sherd_model_free(m);
}

static void parameters_are_loaded_for_another_recipe_of_the_same_shapes(void **s)
{
    (void)s;
    sherd_model *m = model(""), *other = NULL;
    sherd_recipe *r;
    sherd_diag d = { 0 };
    assert_int_equal(sherd_recipe_parse(&r, text, NULL, NULL), 0);
    assert_int_equal(sherd_recipe_set(r, "rate", "7", NULL), 0);
    assert_int_equal(sherd_model_load_parameters(&other, r, path, &d), 0);
    assert_memory_equal(sherd_model_parameter_find(m, "w2").data,
                        sherd_model_parameter_find(other, "w2").data,
                        HIDDEN * OUTPUTS * sizeof(double));
    assert_non_null(strstr(sherd_recipe_text(sherd_model_recipe(other)), "rate = 7\n"));
    sherd_model_free(other);
    sherd_recipe_free(r);
    assert_int_equal(sherd_recipe_load(&r, "spiral", NULL), 0);
    assert_int_equal(sherd_model_load_parameters(&other, r, path, &d), SHERD_ESHAPE);
    assert_null(other);
    sherd_recipe_free(r);
    sherd_model_free(m);
}

/* Its network would take terabytes, more than any machine of these tests has. */
static void a_small_file_of_a_huge_network_is_refused_by_its_shapes(void **s)
{
    (void)s;
    static const char huge[] =
        "input = 1000000\nlayer = dense 1000000\nlayer = dense 4\nloss = cross-entropy\n"
        "data = random\nexamples = 50\nclasses = 4\nbatch = 10\nepochs = 1\nrate = 0.1\n"
        "weights = normal 0.5\n";
    sherd__npz_writer *w;
    sherd_model *m;
    sherd_recipe *r;
    assert_int_equal(sherd__npz_writer_new(&w, path, NULL), 0);
    const sherd__npz_array recipe = { "recipe", SHERD_U8, 1, 1, sizeof huge - 1 },
                           weights = { "w1", SHERD_F64, 2, 2, 3 };
    assert_int_equal(sherd__npz_writer_add_values(w, &recipe, false, huge, NULL), 0);
    assert_int_equal(sherd__npz_writer_add_values(w, &weights, false, x, NULL), 0);
    assert_int_equal(sherd__npz_writer_commit(w, NULL, NULL), 0);
    assert_int_equal(sherd_recipe_parse(&r, huge, NULL, NULL), 0);
    for (int i = 0; i < 2; i++) {
        sherd_diag d = { 0 };
        int err = i ? sherd_model_load_parameters(&m, r, path, &d) : sherd_model_load(&m, path, &d);
        if (err != SHERD_ESHAPE) fail_msg("%d: %s", err, d.message);
        assert_non_null(strstr(d.message, "w1 is 2 x 3: the network takes 1000000 x 1000000"));
        assert_null(m);
    }
    sherd_recipe_free(r);
}

static off_t size_of(const char *file)
{
    struct stat st;
    return stat(file, &st) == 0 ? st.st_size : -1;
}

static void a_file_that_is_open_has_no_name_before_it_is_saved(void **s)
{
    (void)s;
    sherd_model *m = model(""), *again;
    sherd_model_file *f;
    char other[128], whole[128];
    snprintf(other, sizeof other, "%s/nowhere/model.npz", folder);
    assert_int_equal(sherd_model_file_open(&f, m, other, NULL), SHERD_EOPEN);
    assert_null(f);
    snprintf(other, sizeof other, "%s/other.npz", folder);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sherd_model_file_open(&f, m, other, NULL), 0);
        assert_int_equal(size_of(other), -1);
        sherd_model_file_close(f);
        assert_int_equal(size_of(other), -1);
    }
    snprintf(whole, sizeof whole, "%s/whole.npz", folder);
    assert_int_equal(sherd_model_save(m, whole, NULL), 0);
    assert_int_equal(sherd_model_file_open(&f, m, other, NULL), 0);
    assert_int_equal(sherd_model_file_save(f, m, NULL), 0);
    assert_int_equal(size_of(other), size_of(whole)); /* without what was reserved beyond */
    assert_int_equal(sherd_model_file_save(f, m, NULL), SHERD_EINVAL);
    sherd_model_file_close(f);
    assert_int_equal(sherd_model_load(&again, other, NULL), 0);
    sherd_model_free(again);
    assert_int_equal(sherd_model_file_open(&f, m, other, NULL), 0);
    assert_int_equal(size_of(other), size_of(whole));
    sherd_model_file_close(f);
    assert_int_equal(size_of(other), size_of(whole));
    sherd_model_file_close(NULL);
    unlink(other);
    unlink(whole);
    sherd_model_free(m);
}

/* In a mount namespace of its own, on a tmpfs of 64 KB. 77: the user is not permitted to do so. */
static int save_on_a_full_disk(const sherd_model *m)
{
    static const char block[4096];
    char file[128];
    sherd_model_file *f, *second;
    if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, "")) return 77;
    if (mount("tmpfs", folder, "tmpfs", 0, "size=64k")) return 77;
    snprintf(file, sizeof file, "%s/m.npz", folder);
    if (sherd_model_file_open(&f, m, file, NULL)) return 2;
    snprintf(file, sizeof file, "%s/rest", folder);
    FILE *rest = fopen(file, "w");
    while (rest && fwrite(block, sizeof block, 1, rest) == 1 && fflush(rest) == 0) continue;
    snprintf(file, sizeof file, "%s/second.npz", folder);
    if (sherd_model_file_open(&second, m, file, NULL) != SHERD_EIO || second) return 3;
    if (sherd_model_file_save(f, m, NULL)) return 4;
    sherd_model_file_close(f);
    return 0;
}

static void the_space_of_an_open_file_is_reserved(void **s)
{
    (void)s;
    sherd_model *m = model("");
    pid_t child = fork();
    if (child == 0) _exit(save_on_a_full_disk(m));
    int status = 0;
    waitpid(child, &status, 0);
    sherd_model_free(m);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    assert_int_equal(status, 0);
}

static void opening_a_file_survives_each_failed_allocation(void **s)
{
    (void)s;
    sherd_model *m = model("");
    sherd_model_file *f;
    int err = SHERD_ENOMEM;
    for (size_t n = 1; err; n++) {
        (void)sherd__alloc_fail_nth(n);
        err = sherd_model_file_open(&f, m, path, NULL);
        if (!err) err = sherd_model_file_save(f, m, NULL);
        (void)sherd__alloc_fail_nth(0);
        sherd_model_file_close(f);
        assert_true(!err || err == SHERD_ENOMEM);
    }
    sherd_model_free(m);
}

static void outputs_are_those_of_the_layers(void **s)
{
    (void)s;
    sherd_model *m = model("divide_inputs = 2\n");
    static double y[ROWS * (OUTPUTS + 2)];
    const double *w1 = sherd_model_parameter_find(m, "w1").data,
                 *b1 = sherd_model_parameter_find(m, "b1").data,
                 *w2 = sherd_model_parameter_find(m, "w2").data,
                 *b2 = sherd_model_parameter_find(m, "b2").data;
    sherd_predict_report report = { .size = sizeof report };
    for (size_t i = 0; i < ROWS * (OUTPUTS + 2); i++) y[i] = -77;
    assert_int_equal(sherd_model_predict(m, inputs(ROWS), y, OUTPUTS + 2, NULL, &report, NULL), 0);
    for (size_t i = 0; i < ROWS; i++) {
        double hidden[HIDDEN];
        for (size_t j = 0; j < HIDDEN; j++) {
            double sum = b1[j];
            for (size_t k = 0; k < INPUTS; k++) sum += x[i * INPUTS + k] / 2 * w1[k * HIDDEN + j];
            hidden[j] = tanh(sum);
        }
        for (size_t j = 0; j < OUTPUTS; j++) {
            double sum = b2[j];
            for (size_t k = 0; k < HIDDEN; k++) sum += hidden[k] * w2[k * OUTPUTS + j];
            assert_true(fabs(sum - y[i * (OUTPUTS + 2) + j]) < 1e-12);
        }
        assert_true(y[i * (OUTPUTS + 2) + OUTPUTS] ==
                    -77); /* the gaps between rows are not written to */
    }
    assert_true(report.rows == ROWS && report.outputs == OUTPUTS && report.nodes == 0 &&
                report.bits == 0 && !report.scheme && !report.checked && isnan(report.accuracy));
    sherd_model_free(m);
}

static void inputs_that_were_divided_are_not_divided_again(void **s)
{
    (void)s;
    sherd_model *m = model("divide_inputs = 8\n");
    static uint8_t bytes[30 * INPUTS];
    static double divided[30 * INPUTS], y[2][30 * OUTPUTS];
    for (size_t i = 0; i < 30 * INPUTS; i++) divided[i] = (bytes[i] = (uint8_t)(i * 5)) / 8.;
    const sherd_predict_options o = { .size = sizeof o, .divided = true };
    predict(m, sherd_view_c(bytes, SHERD_U8, 30, INPUTS), y[0], NULL);
    predict(m, sherd_view_c(divided, SHERD_F64, 30, INPUTS), y[1], &o);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    sherd_model_free(m);
}

static void fixed_point_has_one_exponent_for_1000_rows(void **s)
{
    (void)s;
    sherd_model *m = model("");
    static double y[ROWS * OUTPUTS], part[ROWS * OUTPUTS], floats[ROWS * OUTPUTS];
    const sherd_product_options exact = { .size = sizeof exact, .exact = true, .bits = 12 };
    const sherd_predict_options o = { .size = sizeof o, .products = &exact };
    sherd_predict_report report = { .size = sizeof report };
    assert_int_equal(sherd_model_predict(m, inputs(ROWS), y, OUTPUTS, &o, &report, NULL), 0);
    assert_int_equal(report.bits, 12);
    for (size_t at = 0; at < ROWS; at += 1000) {
        size_t len = ROWS - at < 1000 ? ROWS - at : 1000;
        predict(m, sherd_view_sub(inputs(ROWS), at, len, 0, INPUTS), part + at * OUTPUTS, &o);
    }
    assert_memory_equal(y, part, sizeof y);
    predict(m, inputs(ROWS), floats, NULL);
    assert_memory_not_equal(y, floats, sizeof y);
    sherd_model_free(m);
}

static void a_multiplier_of_the_caller_computes_the_products(void **s)
{
    (void)s;
    sherd_model *m = model("");
    static double y[2][ROWS * OUTPUTS];
    sherd_multiplier by;
    assert_int_equal(sherd_multiplier_local(&by, 0, NULL), 0);
    const sherd_predict_options o = { .size = sizeof o, .by = &by };
    sherd_predict_report report = { .size = sizeof report };
    predict(m, inputs(ROWS), y[0], NULL);
    assert_int_equal(sherd_model_predict(m, inputs(ROWS), y[1], OUTPUTS, &o, &report, NULL), 0);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_string_equal(report.sees, "by a multiplier of the caller");
    sherd_multiplier_free(by);
    sherd_model_free(m);
}

static void labels_give_an_accuracy(void **s)
{
    (void)s;
    static const double y[] = { 1, 3, 2, 5, 5, 4, -1, -2, -1 };
    uint32_t labels[3];
    sherd_predict_labels(y, 3, 3, 3, labels);
    assert_true(labels[0] == 1 && labels[1] == 0 && labels[2] == 0);
    sherd_model *m = model("");
    double out[40 * OUTPUTS];
    uint32_t known[40];
    predict(m, inputs(40), out, NULL);
    sherd_predict_labels(out, OUTPUTS, 40, OUTPUTS, known);
    for (size_t i = 0; i < 10; i++) known[i] = (known[i] + 1) % OUTPUTS;
    const sherd_predict_options o = { .size = sizeof o, .labels = known };
    sherd_predict_report report = { .size = sizeof report };
    assert_int_equal(sherd_model_predict(m, inputs(40), out, OUTPUTS, &o, &report, NULL), 0);
    assert_true(report.accuracy == 0.75);
    sherd_model_free(m);
}

typedef struct watched {
    uint64_t done, total;
    unsigned asked, stop_at;
} watched;

static bool interrupted(void *ctx)
{
    watched *w = ctx;
    return ++w->asked == w->stop_at;
}

static void progress(void *ctx, const sherd_progress *p)
{
    watched *w = ctx;
    w->done = p->done;
    w->total = p->total;
}

static void hooks_count_rows_and_interrupt(void **s)
{
    (void)s;
    sherd_model *m = model("");
    static double y[ROWS * OUTPUTS];
    watched w = { 0 };
    const sherd_predict_options o = { .size = sizeof o,
                                      .hooks = { interrupted, NULL, progress, &w } };
    predict(m, inputs(ROWS), y, &o);
    assert_true(w.done == ROWS && w.total == ROWS && w.asked == 4);
    w = (watched){ .stop_at = 2 };
    assert_int_equal(sherd_model_predict(m, inputs(ROWS), y, OUTPUTS, &o, NULL, NULL),
                     SHERD_EINTERRUPTED);
    assert_int_equal(w.asked, 2);
    sherd_model_free(m);
}

static void refused(sherd_model *m, const sherd_predict_options *o, int code, const char *words)
{
    double y[OUTPUTS];
    sherd_diag d = { 0 };
    int err = sherd_model_predict(m, inputs(1), y, OUTPUTS, o, NULL, &d);
    if (err != code || !strstr(d.message, words)) fail_msg("%d, %s", err, d.message);
}

static void unsuitable_inputs_are_refused(void **s)
{
    (void)s;
    sherd_model *m = model(""), *single = model("precision = f32\n");
    double y[2 * OUTPUTS], wrong[] = { 1, 2, NAN };
    sherd_diag d = { 0 };
    sherd_multiplier by;
    assert_int_equal(sherd_multiplier_local(&by, 0, NULL), 0);
    sherd_product_options p = { .size = sizeof p, .exact = true };
    sherd_predict_options o = { .size = sizeof o, .by = &by, .products = &p };
    refused(m, &o, SHERD_EINVAL, "neither a cluster nor its options");
    o = (sherd_predict_options){ .size = sizeof o, .products = &p, .check = true };
    refused(m, &o, SHERD_EINVAL, "--check compares fixed point over nodes");
    o.check = false;
    refused(single, &o, SHERD_EINVAL, "a network of f32 is computed on this machine");
    p.bits = 40;
    refused(m, &o, SHERD_EINVAL, "40 bits");
    p = (sherd_product_options){ .size = sizeof p, .scheme = SHERD_SHARE1 };
    refused(m, &o, SHERD_EINVAL, "scheme share1 is refused for a network");
    p.scheme = (sherd_scheme)99;
    refused(m, &o, SHERD_EINVAL, "unknown scheme 99");
    assert_false(sherd_scheme_for_network(p.scheme) || sherd_scheme_for_network(SHERD_BLIND));
    assert_true(sherd_scheme_for_network(SHERD_SHARE) && sherd_scheme_for_network(SHERD_PLAIN));
    p.scheme = SHERD_SHARE;
    o.elementwise_at_nodes = true;
    assert_int_equal(sherd_model_predict_check(m, &o, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "would show the activations"));
    o.elementwise_at_nodes = false;
    o.check = true;
    assert_int_equal(sherd_model_predict_check(m, &o, NULL), 0);
    o = (sherd_predict_options){ .size = 0 };
    refused(m, &o, SHERD_EINVAL, "sherd_predict_options.size");
    d = (sherd_diag){ 0 };
    o = (sherd_predict_options){ .size = sizeof o, .name = "mine" };
    assert_int_equal(sherd_model_predict(m, sherd_view_c(wrong, SHERD_F64, 1, 3), y, OUTPUTS, &o,
                                         NULL, &d),
                     SHERD_ERANGE);
    assert_non_null(strstr(d.message, "mine: row 0, column 2 is nan"));
    assert_int_equal(sherd_model_predict(m, sherd_view_c(x, SHERD_F64, 2, 2), y, OUTPUTS, NULL,
                                         NULL, NULL),
                     SHERD_ESHAPE);
    assert_int_equal(sherd_model_predict(m, inputs(0), y, OUTPUTS, NULL, NULL, NULL), SHERD_ESHAPE);
    assert_int_equal(sherd_model_predict(m, inputs(2), y, OUTPUTS - 1, NULL, NULL, NULL),
                     SHERD_EINVAL);
    sherd_multiplier_free(by);
    sherd_model_free(m);
    sherd_model_free(single);
}

static void any_failed_allocation_is_an_error_and_leaves_nothing(void **s)
{
    (void)s;
    sherd_model *m = model("divide_inputs = 3\n");
    double y[10 * OUTPUTS], want[10 * OUTPUTS];
    predict(m, inputs(10), want, NULL);
    for (size_t n = 1, seen = n; seen >= n; n++) {
        sherd__alloc_fail_nth(n);
        int err = sherd_model_predict(m, inputs(10), y, OUTPUTS, NULL, NULL, NULL);
        seen = sherd__alloc_fail_nth(0);
        assert_true(err == 0 || err == SHERD_ENOMEM);
        if (!err) assert_memory_equal(y, want, sizeof y);
    }
    for (size_t n = 1, seen = n; seen >= n; n++) {
        sherd_model *again = NULL;
        sherd__alloc_fail_nth(n);
        int err = sherd_model_load(&again, path, NULL);
        seen = sherd__alloc_fail_nth(0);
        assert_true((again == NULL) == (err != 0) && (err != 0) == (seen >= n));
        sherd_model_free(again);
    }
    sherd_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_have_names_and_shapes),
        cmocka_unit_test(parameters_are_loaded_for_another_recipe_of_the_same_shapes),
        cmocka_unit_test(a_small_file_of_a_huge_network_is_refused_by_its_shapes),
        cmocka_unit_test(a_file_that_is_open_has_no_name_before_it_is_saved),
        cmocka_unit_test(the_space_of_an_open_file_is_reserved),
        cmocka_unit_test(opening_a_file_survives_each_failed_allocation),
        cmocka_unit_test(outputs_are_those_of_the_layers),
        cmocka_unit_test(inputs_that_were_divided_are_not_divided_again),
        cmocka_unit_test(fixed_point_has_one_exponent_for_1000_rows),
        cmocka_unit_test(a_multiplier_of_the_caller_computes_the_products),
        cmocka_unit_test(labels_give_an_accuracy),
        cmocka_unit_test(hooks_count_rows_and_interrupt),
        cmocka_unit_test(unsuitable_inputs_are_refused),
        cmocka_unit_test(any_failed_allocation_is_an_error_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
