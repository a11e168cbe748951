/* Plots: the drawn values are the given ones, data that cannot be drawn are kept for later, and an
 * earlier plot survives a failure. */
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
                          .points = points,
                          .labels = labels,
                          .points_len = POINTS,
                          .regions = regions,
                          .side = SIDE,
                          .low = { -1, -1 },
                          .high = { 2, 2 } };
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

static void the_data_file_has_the_exact_values(void **state)
{
    sherd__plot p = plot();
    bool drawn;
    (void)state;
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(sherd__plot_draw(&p, "data.svg", &drawn, NULL), 0);
    FILE *f = fopen("data.svg.dat", "r");
    assert_non_null(f);
    char line[512];
    unsigned block = 0, blank = 0, rows[3] = { 0 };
    while (fgets(line, sizeof line, f)) {
        double v[5];
        if (line[0] == '#') continue;
        if (line[0] == '\n') {
            if (++blank % 2 == 0) block++;
            continue;
        }
        assert_true(block < 3);
        int n = sscanf(line, "%lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4]);
        unsigned i = rows[block]++;
        assert_int_equal(n, block == 0 ? 5 : 3);
        if (block == 0) {
            assert_memory_equal(&v[1], &epochs[i].cost, 8);
            assert_true(isnan(v[2]));
            assert_memory_equal(&v[3], &epochs[i].accuracy, 8);
            assert_memory_equal(&v[4], &epochs[i].validation_accuracy, 8);
        } else if (block == 1) {
            assert_memory_equal(v, &points[2 * i], 16);
            assert_true(v[2] == labels[i]);
        } else {
            assert_true(v[2] == regions[i]);
            assert_true(fabs(v[0] - (-1 + 3 * (i % SIDE + 0.5) / SIDE)) < 1e-12);
            assert_true(fabs(v[1] - (-1 + 3 * (i / SIDE + 0.5) / SIDE)) < 1e-12);
        }
    }
    fclose(f);
    assert_int_equal(rows[0], EPOCHS);
    assert_int_equal(rows[1], POINTS);
    assert_int_equal(rows[2], SIDE * SIDE);
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
    p.epochs_len = 0;
    assert_int_equal(sherd__plot_draw(&p, "it's a b.svg", &drawn, &d), 0);
    assert_true(drawn);
    assert_false(exists("it's a b.svg.dat"));
    assert_false(exists("it's a b.svg.gnuplot"));
    assert_false(exists("it's a b.svg.part.svg"));
    char *text = read_all("it's a b.svg");
    assert_non_null(strstr(text, "it's a_test"));
    const char *at = text;
    double x[2 * POINTS], y[2 * POINTS];
    for (unsigned i = 0; i < 2 * POINTS; i++) {
        at = strstr(at, "<use xlink:href='#gpPt6' transform='translate(");
        assert_non_null(at);
        assert_int_equal(sscanf(strstr(at, "translate("), "translate(%lf,%lf)", &x[i], &y[i]), 2);
        at++;
    }
    assert_null(strstr(at, "<use xlink:href='#gpPt6'"));
    for (unsigned i = 0; i < POINTS; i++) { /* places are an affine function of the points */
        double u = (x[i] - x[0]) / (x[POINTS - 1] - x[0]);
        double v = (y[i] - y[0]) / (y[POINTS - 1] - y[0]);
        assert_true(fabs(u - points[2 * i] / points[2 * POINTS - 2]) < 0.02);
        assert_true(fabs(v - (1 - points[2 * i + 1]) / (1 - points[2 * POINTS - 1])) < 0.02);
        assert_true(fabs(y[i] - y[POINTS + i]) < 0.6); /* the same in both panels */
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
    assert_non_null(strstr(text, "accuracy, validation"));
    assert_null(strstr(text, "loss, validation"));
    /* including that of the key */
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
    assert_true(exists("old.png.dat"));
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
    assert_int_equal(symlink("precious", "other.svg.dat"), 0);
    assert_int_equal(sherd__plot_check("other.svg", &d), SHERD_EOPEN);
    assert_non_null(strstr(d.message, "other.svg.dat: is not a regular file"));
    assert_int_equal(sherd__plot_draw(&p, "other.svg", &drawn, NULL), SHERD_EOPEN);
    assert_false(exists("other.svg") || exists("other.svg.gnuplot"));
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
        cmocka_unit_test_setup(the_data_file_has_the_exact_values, fresh),
        cmocka_unit_test_setup(each_point_is_drawn_at_its_place, fresh),
        cmocka_unit_test_setup(curves_without_figures_are_left_out, fresh),
        cmocka_unit_test_setup(if_gnuplot_fails_the_earlier_plot_is_kept, fresh),
        cmocka_unit_test_setup(no_name_in_the_folder_is_used_before_the_plot_is_whole, fresh),
        cmocka_unit_test_setup(a_kept_script_draws_the_plot_later, fresh),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
