/* Plots: the drawn values are the given ones, data that cannot be drawn are kept for later, and an
 * earlier plot survives a failure, as do files of others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/plot.h"

#define EPOCHS 12
#define POINTS 9
#define SIDE 6

static char folder[] = "/tmp/sherd-plot-XXXXXX";
static char path_before[4096];
static sherd__plot_epoch epochs[EPOCHS];
static double points[2 * POINTS];
static const char classes[3][96] = { "cat", "dog's_bed", "2" };
static uint32_t labels[POINTS], regions[SIDE * SIDE];

static int setup(void **state)
{
    (void)state;
    snprintf(path_before, sizeof path_before, "%s", getenv("PATH") ? getenv("PATH") : "");
    for (unsigned i = 0; i < EPOCHS; i++)
        epochs[i] = (sherd__plot_epoch){ i + 1.0, 2.0 / (i + 1), NAN, i / 20.0, i / 30.0 };
    for (unsigned i = 0; i < POINTS; i++) {
        points[2 * i] = i / 10.0;
        points[2 * i + 1] = 1.0 - i * i / 81.0;
        labels[i] = i % 3;
    }
    for (unsigned i = 0; i < SIDE * SIDE; i++) regions[i] = i % SIDE / 2;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int fresh(void **state)
{
    (void)state;
    setenv("PATH", path_before, 1);
    return 0;
}

static int teardown(void **state)
{
    char command[128];
    fresh(state);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static sherd__plot plot(void)
{
    return (sherd__plot){ .title = "it's a_test",
                          .epochs = epochs,
                          .epochs_len = EPOCHS,
                          .best = NAN,
                          .points = points,
                          .labels = labels,
                          .points_len = POINTS,
                          .regions = regions,
                          .side = SIDE,
                          .low = { -1, -1 },
                          .high = { 2, 2 },
                          .inputs = { "wid'th_1", NULL },
                          .classes = classes,
                          .classes_len = 3 };
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1u << 20);
    assert_non_null(text);
    (void)!fread(text, 1, (1u << 20) - 1, f);
    fclose(f);
    return text;
}

static void put(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

/* Returns the number of occurrences of `what` in text. */
static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what)) n++;
    return n;
}

static void a_path_with_an_unknown_file_type_is_refused_before_the_work(void **state)
{
    sherd_diag d = { 0 };
    (void)state;
    assert_int_equal(sherd__plot_check("a.pdf", &d), SHERD_EINVAL);
    assert_non_null(strstr(d.hint, ".svg"));
    assert_int_equal(sherd__plot_check("svg", NULL), SHERD_EINVAL);
    assert_int_equal(sherd__plot_check("no/such/a.svg", NULL), SHERD_EOPEN);
    assert_int_equal(sherd__plot_check("a.svg", NULL), 0);
    assert_int_equal(sherd__plot_check("a.png", NULL), 0);
    assert_false(exists("a.svg"));
}

static void without_gnuplot_data_and_script_are_kept_and_this_is_reported(void **state)
{
    sherd__plot p = plot();
    sherd_diag d = { 0 };
    bool drawn = true;
    (void)state;
    setenv("PATH", "/nowhere", 1);
    put("kept.svg", "earlier", 0644);
    assert_int_equal(sherd__plot_draw(&p, "kept.svg", &drawn, &d), 0);
    assert_false(drawn);
    assert_non_null(strstr(d.message, "not installed"));
    assert_non_null(strstr(d.message, "kept.svg.gnuplot"));
    char *text = read_all("kept.svg");
    assert_string_equal(text, "earlier");
    free(text);
    assert_true(exists("kept.svg.gnuplot"));
}

/* Reads the next line of a block of data. Returns false at its end. */
static bool next_row(FILE *f, double *v, int len)
{
    char line[512], *at = line;
    assert_non_null(fgets(line, sizeof line, f));
    if (strcmp(line, "END\n") == 0) return false;
    for (int i = 0; i < len; i++) v[i] = strtod(at, &at);
    assert_string_equal(at, "\n");
    return true;
}

static void find_block(FILE *f, const char *name)
{
    char line[512];
    do assert_non_null(fgets(line, sizeof line, f));
    while (strncmp(line, name, strlen(name)) != 0);
}

static void the_script_has_the_exact_values(void **state)
{
    sherd__plot p = plot();
    bool drawn;
    double v[6];
    (void)state;
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(sherd__plot_draw(&p, "data.svg", &drawn, NULL), 0);
    FILE *f = fopen("data.svg.gnuplot", "r");
    assert_non_null(f);
    find_block(f, "$curves <<");
    for (unsigned i = 0; i < EPOCHS; i++) {
        assert_true(next_row(f, v, 5));
        assert_memory_equal(&v[0], &epochs[i].epoch, 16);
        assert_true(isnan(v[2]));
        assert_memory_equal(&v[3], &epochs[i].accuracy, 8);
        assert_memory_equal(&v[4], &epochs[i].validation_accuracy, 8);
    }
    assert_false(next_row(f, v, 5));
    find_block(f, "$points <<");
    for (unsigned i = 0; i < POINTS; i++) {
        assert_true(next_row(f, v, 4));
        assert_memory_equal(v, &points[2 * i], 16);
        assert_true(v[2] == labels[i]);
    }
    assert_false(next_row(f, v, 4));
    fclose(f);
}

/* The box drawn last over a place decides its colour: it must be the class of the cell there. No
 * place between cells is left to the background, as a grid. */
static void boxes_cover_the_plane_and_the_last_one_has_the_class_of_its_cell(void **state)
{
    sherd__plot p = plot();
    bool drawn;
    double box[64][6];
    size_t len = 0;
    (void)state;
    for (unsigned i = 0; i < SIDE * SIDE; i++) regions[i] = i * i % 7 / 3;
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(sherd__plot_draw(&p, "boxes.svg", &drawn, NULL), 0);
    FILE *f = fopen("boxes.svg.gnuplot", "r");
    assert_non_null(f);
    find_block(f, "$regions <<");
    while (next_row(f, box[len], 6)) assert_true(++len < 64);
    fclose(f);
    assert_true(len < SIDE * SIDE); /* equal neighbours share a box */
    for (unsigned i = 0; i < 12 * 12 * SIDE * SIDE; i++) {
        unsigned column = i % (12 * SIDE), row = i / (12 * SIDE), cover = 0;
        double x = -1 + 3 * (column + 0.5) / (12 * SIDE), y = -1 + 3 * (row + 0.5) / (12 * SIDE);
        const double *last = NULL;
        for (size_t k = 0; k < len; k++) {
            bool in = x > box[k][0] && x < box[k][1] && y > box[k][2] && y < box[k][3];
            if (in) last = box[k];
            cover += in;
        }
        assert_non_null(last);
        assert_true(last[4] == regions[row / 12 * SIDE + column / 12]);
        assert_true(cover > 1 || row < 12); /* the rows below reach under this one */
    }
    for (size_t k = 0; k < len; k++)
        assert_true(box[k][0] >= -1 && box[k][1] <= 2 && box[k][2] >= -1 && box[k][3] <= 2);
    for (unsigned i = 0; i < SIDE * SIDE; i++) regions[i] = i % SIDE / 2;
}

/* Returns the number after `before` in the script. */
static double number_after(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    if (!at) fail_msg("no %s", before);
    return at ? strtod(at + strlen(before), NULL) : NAN;
}

/* 97 to 99 % must not be a flat line at the top of an axis from 0 to 1. */
static void accuracy_has_a_panel_of_its_own_with_its_range(void **state)
{
    sherd__plot p = plot();
    sherd__plot_epoch near[EPOCHS];
    bool drawn;
    (void)state;
    for (unsigned i = 0; i < EPOCHS; i++)
        near[i] = (sherd__plot_epoch){ i + 1.0, 0.2 - 0.01 * i, NAN, 0.97 + i / 1e3, 0.98 };
    p.epochs = near;
    p.best = 5;
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(sherd__plot_draw(&p, "near.svg", &drawn, NULL), 0);
    char *text = read_all("near.svg.gnuplot");
    const char *percent = strstr(text, "set format y '%g %%'");
    assert_non_null(percent);
    assert_true(number_after(text, "set yrange [") < 0.09); /* of the loss: its own range */
    double low = number_after(percent, "set yrange [");
    assert_true(low > 96.8 && low < 97);
    const char *top = strchr(strstr(percent, "set yrange ["), ':');
    assert_true(strtod(top + 1, NULL) > 98.1 && strtod(top + 1, NULL) < 98.3);
    assert_true(number_after(text, "set arrow 1 from first ") == 5);
    assert_null(strstr(text, "logscale y\nset yrange"));
    free(text);
    for (unsigned i = 0; i < EPOCHS; i++) near[i].loss = pow(0.5, i);
    assert_int_equal(sherd__plot_draw(&p, "near.svg", &drawn, NULL), 0);
    text = read_all("near.svg.gnuplot");
    assert_non_null(strstr(text, "set logscale y\nset yrange"));
    free(text);
}

/* A panel is 400 pixels wide, and a number of five digits about 50. */
static void labels_of_epochs_do_not_touch(void **state)
{
    static const double ends[][2] = { { 2, 1 },   { 11, 1 },     { 12, 2 },        { 14, 5 },
                                      { 50, 10 }, { 2000, 500 }, { 60001, 10000 }, { 7e6, 2e6 } };
    sherd__plot p = plot();
    sherd__plot_epoch two[] = { { 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1 } };
    bool drawn;
    (void)state;
    p.epochs = two;
    p.epochs_len = 2;
    setenv("PATH", "/nowhere", 1);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        two[1].epoch = ends[i][0];
        assert_int_equal(sherd__plot_draw(&p, "tics.svg", &drawn, NULL), 0);
        char *text = read_all("tics.svg.gnuplot");
        assert_true(number_after(text, "set xtics ") == ends[i][1]);
        free(text);
    }
}

/* More classes than colours would have one colour twice. */
static void classes_have_a_legend_if_each_has_a_colour(void **state)
{
    sherd__plot p = plot();
    bool drawn;
    (void)state;
    setenv("PATH", "/nowhere", 1);
    for (int legend = 0; legend < 2; legend++) {
        p.classes_len = legend ? 3 : 0;
        p.standardised = legend;
        assert_int_equal(sherd__plot_draw(&p, "legend.svg", &drawn, NULL), 0);
        char *text = read_all("legend.svg.gnuplot");
        assert_int_equal(count(text, "NaN with points"), p.classes_len);
        assert_int_equal(strstr(text, "title 'dog''s_bed'") != NULL, legend);
        assert_non_null(strstr(text, legend ? "set xlabel 'wid''th_1, standardised' noenhanced\n"
                                            : "set xlabel 'wid''th_1' noenhanced\n"));
        assert_non_null(strstr(text, "set ylabel 'second input"));
        free(text);
    }
}

static bool have_gnuplot(void)
{
    FILE *f = popen("command -v gnuplot", "r");
    int c = f ? fgetc(f) : EOF;
    if (f) pclose(f);
    return c != EOF;
}

/* gnuplot draws each point as one "use" of its symbol, at its place in the plot. */
static void each_point_is_drawn_at_its_place(void **state)
{
    sherd__plot p = plot();
    sherd_diag d = { 0 };
    bool drawn;
    (void)state;
    if (!have_gnuplot()) skip();
    p.epochs_len = 0; /* no marks of curves */
    assert_int_equal(sherd__plot_draw(&p, "it's a b.svg", &drawn, &d), 0);
    assert_true(drawn);
    assert_false(exists("it's a b.svg.gnuplot"));
    assert_false(exists("it's a b.svg.part.svg"));
    char *text = read_all("it's a b.svg");
    assert_non_null(strstr(text, "it's a_test"));
    const char *at = text;
    double x[POINTS], y[POINTS];
    for (unsigned i = 0; i < POINTS; i++) {
        at = strstr(at, "<use xlink:href='#gpPt6' transform='translate(");
        assert_non_null(at);
        assert_int_equal(sscanf(strstr(at, "translate("), "translate(%lf,%lf)", &x[i], &y[i]), 2);
        at++;
    }
    assert_int_equal(count(at, "<use xlink:href='#gpPt6'"), p.classes_len); /* the legend */
    assert_true(strstr(at, ">cat<") && strstr(at, ">2<") && strstr(text, "wid"));
    for (unsigned i = 0; i < POINTS; i++) { /* places are an affine function of the points */
        double u = (x[i] - x[0]) / (x[POINTS - 1] - x[0]);
        double v = (y[i] - y[0]) / (y[POINTS - 1] - y[0]);
        assert_true(fabs(u - points[2 * i] / points[2 * POINTS - 2]) < 0.02);
        assert_true(fabs(v - (1 - points[2 * i + 1]) / (1 - points[2 * POINTS - 1])) < 0.02);
    }
    free(text);
}

static void curves_without_figures_are_left_out(void **state)
{
    sherd__plot p = plot();
    sherd_diag d = { 0 };
    bool drawn;
    (void)state;
    if (!have_gnuplot()) skip();
    p.points = NULL;
    p.points_len = p.side = 0;
    assert_int_equal(sherd__plot_draw(&p, "curves.svg", &drawn, &d), 0);
    assert_true(drawn);
    char *text = read_all("curves.svg");
    /* each name is written as a title of its curve and in the key */
    assert_int_equal(count(text, ">training<"), 2 * 2);
    assert_int_equal(count(text, ">validation<"), 2 * 1);
    /* including those of the keys */
    assert_int_equal(count(text, "<use xlink:href='#gpPt6'"), 3 * (EPOCHS + 1));
    free(text);
    p.epochs_len = 0; /* no figures at all */
    assert_int_equal(sherd__plot_draw(&p, "curves.svg", &drawn, &d), 0);
    assert_true(drawn);
}

static void if_gnuplot_fails_the_earlier_plot_is_kept(void **state)
{
    sherd__plot p = plot();
    sherd_diag d = { 0 };
    bool drawn = true;
    char path[64];
    (void)state;
    assert_int_equal(mkdir("bin", 0755), 0);
    put("bin/gnuplot", "#!/bin/sh\nexit 3\n", 0755);
    put("old.png", "earlier", 0644);
    snprintf(path, sizeof path, "%s/bin", folder);
    setenv("PATH", path, 1);
    assert_int_equal(sherd__plot_draw(&p, "old.png", &drawn, &d), 0);
    assert_false(drawn);
    assert_non_null(strstr(d.message, "gnuplot failed"));
    char *text = read_all("old.png");
    assert_string_equal(text, "earlier");
    free(text);
    assert_true(exists("old.png.gnuplot"));
}

/* Others who can write to the folder must not choose what gnuplot reads, or where it writes. */
static void no_name_in_the_folder_is_used_before_the_plot_is_whole(void **state)
{
    sherd__plot p = plot();
    sherd_diag d = { 0 };
    bool drawn = true;
    char path[64];
    (void)state;
    put("precious", "precious", 0644);
    assert_int_equal(symlink("precious", "safe.svg.part.svg"), 0);
    assert_int_equal(mkdir("look", 0755), 0);
    put("look/gnuplot", "#!/bin/sh\necho safe.svg* >seen\nexit 3\n", 0755);
    snprintf(path, sizeof path, "%s/look", folder);
    setenv("PATH", path, 1);
    assert_int_equal(sherd__plot_draw(&p, "safe.svg", &drawn, NULL), 0);
    char *text = read_all("seen");
    assert_string_equal(text, "safe.svg.part.svg\n");
    free(text);
    setenv("PATH", path_before, 1);
    if (have_gnuplot()) {
        assert_int_equal(sherd__plot_draw(&p, "safe.svg", &drawn, NULL), 0);
        assert_true(drawn);
    }
    text = read_all("precious");
    assert_string_equal(text, "precious");
    free(text);
    assert_int_equal(symlink("precious", "other.svg.gnuplot"), 0);
    assert_int_equal(sherd__plot_check("other.svg", &d), SHERD_EOPEN);
    assert_non_null(strstr(d.message, "other.svg.gnuplot: is not a regular file"));
    assert_int_equal(sherd__plot_draw(&p, "other.svg", &drawn, NULL), SHERD_EOPEN);
    assert_false(exists("other.svg"));
}

static void a_script_of_others_is_never_replaced(void **state)
{
    static const char *const texts[] = { "plot sin(x)\n", "#", "# sherd train --plot\n" };
    sherd__plot p = plot();
    bool drawn;
    (void)state;
    setenv("PATH", "/nowhere", 1);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sherd_diag d = { 0 };
        put("mine.svg.gnuplot", texts[i], 0644);
        assert_int_equal(sherd__plot_check("mine.svg", &d), SHERD_EOPEN);
        assert_non_null(strstr(d.message, "mine.svg.gnuplot: exists"));
        assert_int_equal(sherd__plot_draw(&p, "mine.svg", &drawn, NULL), SHERD_EOPEN);
        char *text = read_all("mine.svg.gnuplot");
        assert_string_equal(text, texts[i]);
        free(text);
    }
    assert_int_equal(unlink("mine.svg.gnuplot"), 0);
    for (size_t i = 0; i < 2; i++) { /* one of ours is */
        assert_int_equal(sherd__plot_check("mine.svg", NULL), 0);
        assert_int_equal(sherd__plot_draw(&p, "mine.svg", &drawn, NULL), 0);
    }
}

/* By gnuplot's own terminal: a PNG of the size of the page, which is not empty. */
static void a_png_is_drawn(void **state)
{
    static const unsigned char head[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
    sherd__plot p = plot();
    unsigned char bytes[24];
    struct stat st;
    bool drawn = false;
    (void)state;
    if (!have_gnuplot()) skip();
    assert_int_equal(sherd__plot_draw(&p, "real.png", &drawn, NULL), 0);
    assert_true(drawn);
    FILE *f = fopen("real.png", "rb");
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, sizeof bytes, f), sizeof bytes);
    assert_int_equal(fstat(fileno(f), &st), 0);
    fclose(f);
    assert_memory_equal(bytes, head, sizeof head);
    assert_int_equal(bytes[18] * 256 + bytes[19], 3 * 520); /* width, height */
    assert_int_equal(bytes[22] * 256 + bytes[23], 400);
    assert_true(st.st_size > 10000);
}

/* The kept script draws from the kept data. */
static void a_kept_script_draws_the_plot_later(void **state)
{
    sherd__plot p = plot();
    bool drawn;
    (void)state;
    if (!have_gnuplot()) skip();
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(sherd__plot_draw(&p, "later.svg", &drawn, NULL), 0);
    setenv("PATH", path_before, 1);
    assert_int_equal(system("gnuplot -d later.svg.gnuplot"), 0);
    char *text = read_all("later.svg");
    assert_non_null(strstr(text, "it's a_test"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_path_with_an_unknown_file_type_is_refused_before_the_work, fresh),
        cmocka_unit_test_setup(without_gnuplot_data_and_script_are_kept_and_this_is_reported,
                               fresh),
        cmocka_unit_test_setup(the_script_has_the_exact_values, fresh),
        cmocka_unit_test_setup(boxes_cover_the_plane_and_the_last_one_has_the_class_of_its_cell,
                               fresh),
        cmocka_unit_test_setup(accuracy_has_a_panel_of_its_own_with_its_range, fresh),
        cmocka_unit_test_setup(labels_of_epochs_do_not_touch, fresh),
        cmocka_unit_test_setup(classes_have_a_legend_if_each_has_a_colour, fresh),
        cmocka_unit_test_setup(each_point_is_drawn_at_its_place, fresh),
        cmocka_unit_test_setup(curves_without_figures_are_left_out, fresh),
        cmocka_unit_test_setup(if_gnuplot_fails_the_earlier_plot_is_kept, fresh),
        cmocka_unit_test_setup(no_name_in_the_folder_is_used_before_the_plot_is_whole, fresh),
        cmocka_unit_test_setup(a_script_of_others_is_never_replaced, fresh),
        cmocka_unit_test_setup(a_png_is_drawn, fresh),
        cmocka_unit_test_setup(a_kept_script_draws_the_plot_later, fresh),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
