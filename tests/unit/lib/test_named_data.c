/* Named data: a .csv with a header and classes is trained on, its names and means are kept in the
 * model's file, and predictions find columns and classes by them. */
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
#include "lib/local_data.h"
#include "matrix/view.h"
#include "sherd/npy.h"
#include "sherd/train.h"
#include "store/npz.h"

enum { ROWS = 40 };

static char folder[] = "/tmp/sherd-named-XXXXXX", path[200];

static const char *in(const char *name)
{
    static char names[4][200];
    static unsigned next;
    char *out = names[next++ % 4];
    snprintf(out, sizeof names[0], "%s/%s", folder, name);
    return out;
}

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(in(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static char *read_text(const char *name)
{
    static char text[4000];
    FILE *f = fopen(in(name), "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static int end(void **state)
{
    char command[100];
    (void)state;
    snprintf(command, sizeof command, "exec rm -rf %s", folder);
    FILE *f = popen(command, "r");
    return f ? pclose(f) : -1;
}

/* Plants: two inputs of very different sizes, an identification, and three kinds. */
static int begin(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/m.npz", folder);
    static char text[8000], moved[8000], bare[8000];
    size_t at = 0, to = 0, b = 0;
    static const char *const kinds[] = { "tulip", "\"rose, red\"", "aster" };
    at += (size_t)snprintf(text, sizeof text, "id,height,width,kind\n");
    to += (size_t)snprintf(moved, sizeof moved, "kind,width,note,height\n");
    b += (size_t)snprintf(bare, sizeof bare, "height,width\n");
    for (int i = 0; i < ROWS; i++) {
        double height = 1000 * (i % 3) + 100 * sin(i), width = 0.01 * cos(i);
        const char *kind = kinds[i % 3];
        at += (size_t)snprintf(text + at, sizeof text - at, "p%d,%.17g,%.17g,%s\n", i, height,
                               width, kind);
        to += (size_t)snprintf(moved + to, sizeof moved - to, "%s,%.17g,,%.17g\n", kind, width,
                               height);
        b += (size_t)snprintf(bare + b, sizeof bare - b, "%.17g,%.17g\n", height, width);
    }
    write_text("plants.csv", text);
    write_text("moved.csv", moved);
    write_text("bare.csv", bare);
    return 0;
}

#define RECIPE                                                                                     \
    "input = 2\nlayer = dense 6\nlayer = tanh\nlayer = dense 3\nloss = cross-entropy\n"            \
    "data = file\nbatch = 10\nepochs = 60\nmethod = adam\nrate = 0.05\n"
#define BY_NAME "columns = height, width\nstandardise = yes\n"

static sherd_recipe *recipe(const char *more)
{
    char text[600];
    sherd_recipe *r;
    sherd_diag d = { 0 };
    snprintf(text, sizeof text, RECIPE "%s", more);
    if (sherd_recipe_parse(&r, text, NULL, &d)) fail_msg("%s", d.message);
    return r;
}

static int load(sherd_data **out, const char *file, const char *more, sherd_diag *d)
{
    static const uint8_t seed[32] = { 5 };
    sherd_recipe *r = recipe(more);
    const sherd_data_source from = { .size = sizeof from, .path = in(file) };
    *d = (sherd_diag){ 0 };
    int err = sherd_data_load(out, r, &from, seed, d);
    sherd_recipe_free(r);
    return err;
}

static void refused(const char *file, const char *more, int code, const char *words)
{
    sherd_data *x;
    sherd_diag d;
    int err = load(&x, file, more, &d);
    if (err != code || !strstr(d.message, words)) fail_msg("%d, %s", err, d.message);
    assert_null(x);
}

/* Trains on plants.csv, and writes and loads the model. */
static sherd_model *trained(const char *more)
{
    const uint64_t number = 402;
    const sherd_train_options o = { .size = sizeof o, .seed_number = &number };
    const sherd_data_source from = { .size = sizeof from, .path = in("plants.csv") };
    sherd_recipe *r = recipe(more);
    sherd_training *t;
    sherd_model *m;
    sherd_diag d = { 0 };
    if (sherd_training_new(&t, r, &from, &o, &d) || sherd_training_run(t, NULL, &d) ||
        sherd_model_save(sherd_training_model(t), path, &d) || sherd_model_load(&m, path, &d))
        fail_msg("%s", d.message);
    sherd_training_free(t);
    sherd_recipe_free(r);
    return m;
}

static void inputs_are_standardised_by_the_training_rows_alone(void **s)
{
    (void)s;
    sherd_data *plain, *scaled;
    sherd_diag d;
    const char *lines = "columns = height, width\nholdout = 0.25\ndivide_inputs = 4\n";
    char both[200];
    snprintf(both, sizeof both, "%sstandardise = yes\n", lines);
    if (load(&plain, "plants.csv", lines, &d) || load(&scaled, "plants.csv", both, &d))
        fail_msg("%s", d.message);
    sherd_view a = sherd_data_x(plain, SHERD_DATA_TRAINING),
               b = sherd_data_x(scaled, SHERD_DATA_TRAINING),
               va = sherd_data_x(plain, SHERD_DATA_VALIDATION),
               vb = sherd_data_x(scaled, SHERD_DATA_VALIDATION);
    assert_true(a.rows == 30 && b.rows == 30 && va.rows == 10 && vb.rows == 10);
    for (size_t c = 0; c < 2; c++) {
        double mean = 0, squares = 0;
        for (size_t i = 0; i < 30; i++) mean += sherd__view_at(a, i, c) / 30;
        for (size_t i = 0; i < 30; i++) squares += pow(sherd__view_at(a, i, c) - mean, 2) / 30;
        for (size_t i = 0; i < 10; i++)
            assert_true(fabs(sherd__view_at(vb, i, c) -
                             (sherd__view_at(va, i, c) - mean) / sqrt(squares)) < 1e-9);
        for (size_t i = 0; i < 30; i++)
            assert_true(fabs(sherd__view_at(b, i, c) -
                             (sherd__view_at(a, i, c) - mean) / sqrt(squares)) < 1e-9);
    }
    sherd_data_free(plain);
    sherd_data_free(scaled);
}

static void names_and_means_are_kept_in_the_models_file(void **s)
{
    (void)s;
    sherd_model *m = trained(BY_NAME);
    static const char *const classes[] = { "aster", "rose, red", "tulip" };
    for (size_t i = 0; i < 3; i++) assert_string_equal(sherd_model_class_name(m, i), classes[i]);
    assert_null(sherd_model_class_name(m, 3));
    assert_string_equal(sherd_model_input_name(m, 1), "width");
    assert_null(sherd_model_input_name(m, 2));
    sherd_model_free(m);
    sherd__npz *z;
    char text[40] = "";
    double deviation[2];
    assert_int_equal(sherd__npz_open(&z, path, 1 << 20, 100, NULL), 0);
    assert_int_equal(sherd__npz_take(z, "classes", SHERD_U8, text, 21, NULL), 0);
    assert_string_equal(text, "aster\nrose, red\ntulip");
    assert_int_equal(sherd__npz_take(z, "input_deviation", SHERD_F64, deviation, 16, NULL), 0);
    assert_true(deviation[0] > 500 && deviation[1] < 0.02);
    sherd__npz_close(z);
}

static void outputs_of(sherd_model *m, const char *file, double *y, double *accuracy)
{
    sherd_data *x;
    sherd_diag d = { 0 };
    if (sherd_model_inputs_load(&x, m, in(file), &d)) fail_msg("%s", d.message);
    sherd_view labels = sherd_data_y(x, SHERD_DATA_TRAINING);
    const sherd_predict_options o = { .size = sizeof o, .divided = true, .labels = labels.data };
    sherd_predict_report r = { .size = sizeof r };
    assert_int_equal(sherd_data_x(x, SHERD_DATA_TRAINING).rows, ROWS);
    if (sherd_model_predict(m, sherd_data_x(x, SHERD_DATA_TRAINING), y, 3, &o, &r, &d))
        fail_msg("%s", d.message);
    *accuracy = r.accuracy;
    sherd_data_free(x);
}

static void predictions_find_columns_and_classes_by_name(void **s)
{
    (void)s;
    sherd_model *m = trained(BY_NAME);
    static double a[ROWS * 3], b[ROWS * 3], raw[ROWS * 2];
    double accuracy;
    sherd_data *x;
    sherd_diag d = { 0 };
    outputs_of(m, "plants.csv", a, &accuracy);
    assert_true(accuracy > 0.95);
    outputs_of(m, "moved.csv", b, &accuracy);
    assert_memory_equal(a, b, sizeof a);
    assert_true(accuracy > 0.95);
    outputs_of(m, "bare.csv", b, &accuracy);
    assert_memory_equal(a, b, sizeof a);
    assert_true(isnan(accuracy));
    write_text("plain.csv", strchr(read_text("bare.csv"), '\n') + 1); /* without a header */
    outputs_of(m, "plain.csv", b, &accuracy);
    assert_memory_equal(a, b, sizeof a);
    char *line = read_text("plain.csv");
    for (size_t i = 0; i < ROWS; i++, line++) {
        raw[2 * i] = strtod(line, &line);
        raw[2 * i + 1] = strtod(line + 1, &line);
    }
    assert_int_equal(sherd_model_predict(m, sherd_view_c(raw, SHERD_F64, ROWS, 2), b, 3, NULL, NULL,
                                         NULL),
                     0);
    assert_memory_equal(a, b, sizeof a); /* a prediction standardises, too */
    static const char *const others[][2] = {
        { "height,breadth\n1,2\n", "bad.csv:1:1: expected a column 'width' in the header" },
        { "height,width,kind\n1,2,daisy\n",
          "bad.csv:2:5: field 3: expected one of the classes aster, \"rose, red\", tulip" },
        { "height,width,height\n1,2,3\n", "more than one column is named 'height'" },
        { "height,width\n1e300,-1e308\n", "when it is standardised" },
    };
    for (size_t i = 0; i < 4; i++) {
        write_text("bad.csv", others[i][0]);
        d = (sherd_diag){ 0 };
        assert_int_not_equal(sherd_model_inputs_load(&x, m, in("bad.csv"), &d), 0);
        if (!strstr(d.message, others[i][1])) fail_msg("%s", d.message);
        assert_null(x);
    }
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_data_inputs(&x, sherd_model_recipe(m), in("bare.csv"), &d),
                     SHERD_EINVAL);
    assert_non_null(strstr(d.message, "means and deviations of inputs are in the model"));
    sherd_model_free(m);
}

/* The recipe has no `label`, so the name of the last column is not needed to find the target. */
static void a_file_without_a_header_has_its_target_last(void **s)
{
    (void)s;
    static double a[ROWS * 3], b[ROWS * 3];
    static char text[4000];
    double accuracy;
    size_t at = 0;
    sherd_model *m = trained(BY_NAME);
    outputs_of(m, "plants.csv", a, &accuracy);
    char *line = strtok(read_text("bare.csv"), "\n");
    for (int i = 0; (line = strtok(NULL, "\n")); i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s,%s\n", line,
                               i % 3 == 0   ? "tulip"
                               : i % 3 == 1 ? "\"rose, red\""
                                            : "aster");
    write_text("labelled.csv", text);
    outputs_of(m, "labelled.csv", b, &accuracy);
    assert_memory_equal(a, b, sizeof a);
    assert_true(accuracy > 0.95);
    sherd_model_free(m);
    m = trained(BY_NAME "label = kind\n"); /* names the column, so a header is needed */
    sherd_data *x;
    sherd_diag d = { 0 };
    assert_int_equal(sherd_model_inputs_load(&x, m, in("labelled.csv"), &d), SHERD_EFORMAT);
    assert_non_null(strstr(d.message, "expected a header with one column 'kind', found numbers"));
    sherd_model_free(m);
}

static void parameters_alone_do_not_standardise(void **s)
{
    (void)s;
    sherd_model *plain = trained("columns = height, width\n"), *m;
    sherd_recipe *r = recipe(BY_NAME);
    sherd_diag d = { 0 };
    double y[3];
    static const double x[2] = { 1, 2 };
    assert_int_equal(sherd_model_load_parameters(&m, r, path, &d), 0);
    assert_int_equal(sherd_model_predict(m, sherd_view_c(x, SHERD_F64, 1, 2), y, 3, NULL, NULL, &d),
                     SHERD_EINVAL);
    assert_non_null(strstr(d.message, "the model has no means and deviations"));
    sherd_model_free(m);
    sherd_model_free(plain);
    sherd_recipe_free(r);
}

static void names_that_do_not_fit_are_refused(void **s)
{
    (void)s;
    refused("plants.csv", "columns = height, weight\n", SHERD_EFORMAT,
            "plants.csv:1:1: expected a column 'weight' in the header");
    refused("plants.csv", "columns = height\n", SHERD_EFORMAT,
            "there is 1 column: the network takes 2");
    refused("plants.csv", "", SHERD_EFORMAT,
            "plants.csv:2:1: field 1: expected a number, found 'p0'");
    refused("plants.csv", "columns = height, width\nclass_names = aster, tulip\n", SHERD_EFORMAT,
            "there are 2 classes (aster, tulip): the network has 3 outputs");
    refused("plants.csv", "columns = height, width\nclass_names = aster, tulip, rose\n",
            SHERD_EFORMAT, "field 4: expected one of the classes aster, tulip, rose, found 'rose");
    write_text("two.csv", "a,b,y\n1,2,u\n3,4,v\n");
    refused("two.csv", "", SHERD_EFORMAT,
            "two.csv: there are 2 classes (u, v): the network has 3 outputs");
    const double x[3] = { 1, 2, 0 };
    assert_int_equal(sherd_npy_save(in("d.npy"), sherd_view_c(x, SHERD_F64, 1, 3), NULL), 0);
    refused("d.npy", "columns = height, width\n", SHERD_EINVAL, "columns are those of a .csv");
    sherd_data *data;
    sherd_diag d;
    if (load(&data, "d.npy", "class_names = a, b, c\n", &d)) fail_msg("%s", d.message);
    sherd_data_free(data);
}

/* Equal or empty names cannot be found again: the model has none, and order counts. */
static void columns_with_equal_names_have_no_names(void **s)
{
    (void)s;
    static const char *const heads[] = { "a,a,y\n", ",b,y\n", "\"a\nb\",b,y\n" };
    for (size_t i = 0; i < 3; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s1,2,u\n3,4,v\n5,6,w\n", heads[i]);
        write_text("equal.csv", text);
        const sherd_data_source from = { .size = sizeof from, .path = in("equal.csv") };
        sherd_recipe *r = recipe("");
        sherd_training *t;
        sherd_diag d = { 0 };
        assert_int_equal(sherd_recipe_set(r, "batch", "all", NULL), 0);
        if (sherd_training_new(&t, r, &from, NULL, &d)) fail_msg("%s", d.message);
        sherd_model *m = sherd_training_model(t);
        assert_null(sherd_model_input_name(m, 0));
        assert_string_equal(sherd_model_class_name(m, 2), "w");
        sherd_data *x;
        assert_int_equal(sherd_model_inputs_load(&x, m, in("equal.csv"), &d), 0);
        assert_true(sherd_data_y(x, SHERD_DATA_TRAINING).rows == 3);
        sherd_data_free(x);
        sherd_training_free(t);
        sherd_recipe_free(r);
    }
}

/* Writes a model like the one at `path` whose member `name` is exchanged; text NULL: left out. */
static void forge(const char *name, sherd_dtype dtype, const void *values, size_t len)
{
    static uint8_t kept[20][2000];
    sherd__npz *z;
    sherd__npz_writer *w;
    assert_int_equal(sherd__npz_open(&z, path, 1 << 20, 100, NULL), 0);
    assert_int_equal(sherd__npz_writer_new(&w, in("forged.npz"), NULL), 0);
    for (size_t i = 0; i < sherd__npz_count(z); i++) {
        const sherd__npz_member *m = sherd__npz_member_at(z, i);
        bool other = strcmp(m->name, name) == 0;
        if (other && !values) continue;
        assert_int_equal(sherd__npz_read(z, i, kept[i], m->head.data_len, NULL), 0);
        const sherd__npz_array a = { m->name, other ? dtype : m->head.dtype,
                                     other ? 1 : m->head.ndim, other ? 1 : m->head.rows,
                                     other ? len : m->head.cols };
        assert_int_equal(sherd__npz_writer_add_values(w, &a, false, other ? values : kept[i], NULL),
                         0);
    }
    assert_int_equal(sherd__npz_writer_commit(w, NULL, NULL), 0);
    sherd__npz_close(z);
}

static void members_that_no_training_writes_are_refused(void **s)
{
    (void)s;
    static const double zero[] = { 1, 0 }, infinite[] = { 1, INFINITY }, three[] = { 1, 2, 3 };
    static char many[2000];
    memset(many, 'a', sizeof many);
    const struct {
        const char *name;
        sherd_dtype dtype;
        const void *values;
        size_t len;
        const char *words;
    } cases[] = {
        { "classes", SHERD_U8, "a\nb", 3, "classes: expected 3 different names, found 2" },
        { "classes", SHERD_U8, "a\nb\na", 5, "classes: expected 3 different names" },
        { "classes", SHERD_U8, "a\nb\n\x1b[2J", 8, "classes: expected 3 different names" },
        { "classes", SHERD_U8, many, sizeof many, "classes: expected a text of 3 lines" },
        { "classes", SHERD_F64, three, 3, "classes: expected a text of 3 lines" },
        { "columns", SHERD_U8, "height", 6, "columns: expected 2 different names, found 1" },
        { "target", SHERD_U8, "a\nb", 3, "target: expected 1 different name, found 2" },
        { "input_deviation", SHERD_F64, zero, 2,
          "input_deviation, entry 1 is 0: expected a number above 0" },
        { "input_mean", SHERD_F64, infinite, 2, "input_mean, entry 1 is inf" },
        { "input_mean", SHERD_F64, three, 3,
          "expected a member input_mean of 2 numbers, found another length" },
        { "input_mean", SHERD_F64, NULL, 0,
          "expected a member input_mean of 2 numbers, found none" },
    };
    sherd_model_free(trained(BY_NAME));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd_model *m;
        sherd_diag d = { 0 };
        forge(cases[i].name, cases[i].dtype, cases[i].values, cases[i].len);
        int err = sherd_model_load(&m, in("forged.npz"), &d);
        if (!err || !strstr(d.message, cases[i].words)) fail_msg("%zu: %d, %s", i, err, d.message);
        assert_null(m);
    }
}

static void predictions_are_written_with_names(void **s)
{
    (void)s;
    sherd_model *m = trained(BY_NAME);
    const double y[] = { 1, 2.5, 0, -1, 0.1, 3 };
    sherd_view v = sherd_view_c(y, SHERD_F64, 2, 3);
    assert_int_equal(sherd_model_predictions_save(m, in("y.csv"), v, true, NULL), 0);
    assert_string_equal(read_text("y.csv"), "kind\n\"rose, red\"\ntulip\n");
    assert_int_equal(sherd_model_predictions_save(m, in("y.csv"), v, false, NULL), 0);
    assert_string_equal(
        read_text("y.csv"),
        "logit_aster,\"logit_rose, red\",logit_tulip\n1,2.5,0\n-1,0.10000000000000001,3\n");
    assert_int_equal(sherd_model_predictions_save(m, in("y.npy"), v, true, NULL), 0);
    sherd_npy *f;
    assert_int_equal(sherd_npy_open(&f, in("y.npy"), NULL), 0);
    sherd_view labels = sherd_npy_view(f);
    assert_true(labels.dtype == SHERD_U32 && labels.rows == 2 && sherd__view_at(labels, 0, 0) == 1);
    sherd_npy_close(f);
    sherd_diag d = { 0 };
    v.cols = 2;
    assert_int_equal(sherd_model_predictions_save(m, in("y.csv"), v, true, &d), SHERD_ESHAPE);
    assert_string_equal(d.message, "predictions have 2 columns: the network gives 3");
    v.cols = 3;
    sherd_model_free(m);
}

/* The model of a network of this recipe before its training. */
static void expect_header(const char *recipe_text, const char *data, size_t width, bool labels,
                          const char *header)
{
    const double y[] = { 1, 2, 3 };
    sherd_recipe *r;
    sherd_training *t;
    sherd_diag d = { 0 };
    write_text("own.csv", data);
    const sherd_data_source from = { .size = sizeof from, .path = in("own.csv") };
    if (sherd_recipe_parse(&r, recipe_text, NULL, &d) || sherd_training_new(&t, r, &from, NULL, &d))
        fail_msg("%s", d.message);
    assert_int_equal(sherd_model_predictions_save(sherd_training_model(t), in("y.csv"),
                                                  sherd_view_c(y, SHERD_F64, 1, width), labels,
                                                  NULL),
                     0);
    const char *text = read_text("y.csv");
    if (strncmp(text, header, strlen(header)) != 0) fail_msg("%s: found %s", header, text);
    sherd_training_free(t);
    sherd_recipe_free(r);
}

static void a_header_says_what_the_outputs_are(void **s)
{
    (void)s;
#define OF(loss, targets, width)                                                                   \
    "input = 2\nlayer = dense " width "\nloss = " loss "\ndata = file\ntargets = " targets         \
    "\nbatch = all\nepochs = 1\nrate = 0.1\n"
    const char *numbers = "1,2,0\n3,4,1\n5,6,2\n", *names = "a,b,c\n1,2,x\n3,4,y\n5,6,z\n";
    expect_header(OF("cross-entropy", "labels", "3"), numbers, 3, true, "label\n2\n");
    expect_header(OF("cross-entropy", "labels", "3"), numbers, 3, false, "logit0,logit1,logit2\n");
    expect_header(OF("squared", "labels", "3"), numbers, 3, false, "output0,output1,output2\n");
    expect_header(OF("squared", "labels", "3"), names, 3, false, "output_x,output_y,output_z\n");
    expect_header(OF("squared", "values", "1"), "a,b,price\n1,2,3\n3,4,5\n", 1, false, "price\n");
    expect_header(OF("squared", "values", "1"), "1,2,3\n3,4,5\n", 1, false, "output0\n");
#undef OF
}

static void a_node_reads_columns_and_classes_by_name(void **s)
{
    (void)s;
    sherd__own_data own;
    sherd_diag d = { 0 };
    const sherd__own_columns all = { "kind", "width,height", "tulip, rose, aster" },
                             last = { NULL, "width, height", NULL }, bad = { NULL, "a,,b", NULL };
    write_text("own.csv", "kind,height,id,width\ntulip,1,x,2\naster,3,y,4\n");
    if (sherd__own_load(&own, in("own.csv"), &all, &d)) fail_msg("%s", d.message);
    assert_true(own.own.x.rows == 2 && own.own.x.cols == 2 && sherd__view_at(own.own.x, 1, 0) == 4);
    assert_true(own.own.y.dtype == SHERD_U32 && sherd__view_at(own.own.y, 1, 0) == 2);
    sherd__own_close(&own);
    assert_int_equal(sherd__own_load(&own, in("own.csv"), &bad, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "--columns: expected names, found 'a,,b'");
    sherd__own_close(&own);
    write_text("own.csv", "height,id,width,y\n1,x,2,7\n3,y,4,8\n");
    assert_int_equal(sherd__own_load(&own, in("own.csv"), &last, NULL), 0);
    assert_true(sherd__view_at(own.own.y, 1, 0) == 8 && sherd__view_at(own.own.x, 0, 1) == 1);
    sherd__own_close(&own);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd__own_load(&own, in("d.npy"), &last, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "--columns is for a .csv"));
    sherd__own_close(&own);
}

static void any_failed_allocation_is_an_error_and_leaves_nothing(void **s)
{
    (void)s;
    const sherd_data_source from = { .size = sizeof from, .path = in("plants.csv") };
    sherd_recipe *r = recipe(BY_NAME "holdout = 0.25\n");
    sherd_model *m = trained(BY_NAME), *again;
    sherd_data *x;
    const double y[] = { 1, 2, 0 };
    for (size_t call = 0; call < 4; call++)
        for (size_t n = 1, seen = n; seen >= n; n++) {
            int err = 0;
            sherd__alloc_fail_nth(n);
            if (call == 0) err = sherd_data_load(&x, r, &from, NULL, NULL);
            if (call == 1) err = sherd_model_inputs_load(&x, m, from.path, NULL);
            if (call == 2) err = sherd_model_load(&again, path, NULL);
            if (call == 3)
                err = sherd_model_predictions_save(m, in("y.csv"), sherd_view_c(y, SHERD_F64, 1, 3),
                                                   true, NULL);
            seen = sherd__alloc_fail_nth(0);
            if (err != 0 && err != SHERD_ENOMEM)
                fail_msg("call %zu, allocation %zu: %d", call, n, err);
            if (!err && call < 2) sherd_data_free(x);
            if (!err && call == 2) sherd_model_free(again);
        }
    sherd_model_free(m);
    sherd_recipe_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_are_standardised_by_the_training_rows_alone),
        cmocka_unit_test(names_and_means_are_kept_in_the_models_file),
        cmocka_unit_test(predictions_find_columns_and_classes_by_name),
        cmocka_unit_test(a_file_without_a_header_has_its_target_last),
        cmocka_unit_test(parameters_alone_do_not_standardise),
        cmocka_unit_test(names_that_do_not_fit_are_refused),
        cmocka_unit_test(columns_with_equal_names_have_no_names),
        cmocka_unit_test(members_that_no_training_writes_are_refused),
        cmocka_unit_test(predictions_are_written_with_names),
        cmocka_unit_test(a_header_says_what_the_outputs_are),
        cmocka_unit_test(a_node_reads_columns_and_classes_by_name),
        cmocka_unit_test(any_failed_allocation_is_an_error_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
