/*
 * --plot: curves of all reports, also of runs that were resumed, and, if examples are points in the
 * plane with one class each, the points and the network's decision regions around them. The network
 * is evaluated here in floats, however it was trained, which is accurate enough for a plot.
 */
#include <math.h>
#include <string.h>

#include "cli/plot.h"
#include "cli/train.h"
#include "core/alloc.h"

#define SIDE 300u
#define MARGIN 0.05 /* fraction of the points' extent, on each side */

/* Computes the rectangle around the points, which are pairs of coordinates. */
static void surround(const double *points, size_t len, double low[2], double high[2])
{
    for (size_t k = 0; k < 2; k++) {
        low[k] = high[k] = points[k];
        for (size_t i = 0; i < len; i++) {
            low[k] = fmin(low[k], points[2 * i + k]);
            high[k] = fmax(high[k], points[2 * i + k]);
        }
        double extent = high[k] > low[k] ? high[k] - low[k] : 1;
        low[k] -= MARGIN * extent;
        high[k] += MARGIN * extent;
    }
}

/* Computes the class with the largest output at the centre of each cell. */
static int decide(sherd__train *t, const sherd__plot *p, uint32_t *regions, sherd_diag *d)
{
    sherd_model *m = sherd_training_model(t->training);
    const sherd_predict_options o = { .size = sizeof o, .divided = true, .name = "--plot" };
    size_t width = sherd_model_outputs(m), cells = (size_t)SIDE * SIDE;
    double *x = sherd__calloc(cells, 2 * sizeof *x), *y = sherd__calloc(cells * width, sizeof *y);
    for (size_t i = 0; x && i < cells; i++) {
        double col = (double)(i % SIDE) + 0.5, row = (double)(i / SIDE) + 0.5;
        x[2 * i] = p->low[0] + col / SIDE * (p->high[0] - p->low[0]);
        x[2 * i + 1] = p->low[1] + row / SIDE * (p->high[1] - p->low[1]);
    }
    int err = !x || !y ? sherd__fail_memory(d, "the plot")
                       : sherd_model_predict(m, sherd_view_c(x, SHERD_F64, cells, 2), y, width, &o,
                                             NULL, d);
    if (!err) sherd_predict_labels(y, width, cells, width, regions);
    sherd__free(x);
    sherd__free(y);
    return err;
}

#define NAME_MOST 16 /* columns of a class's name in the legend */

/* Sets what axes and classes are called. More classes than colours have no legend. */
static void name_plane(sherd__train *t, sherd__plot *p, char classes[SHERD__PLOT_CLASSES][96])
{
    const sherd_model *m = sherd_training_model(t->training);
    size_t len = sherd_model_outputs(m);
    p->standardised = strstr(sherd_recipe_text(t->recipe), "\nstandardise = yes\n") != NULL;
    for (size_t k = 0; k < 2; k++) p->inputs[k] = sherd_model_input_name(m, k);
    if (len > SHERD__PLOT_CLASSES) return;
    for (size_t i = 0; i < len; i++) sherd__class_name(m, i, NAME_MOST, classes[i]);
    p->classes = (const char(*)[96])classes;
    p->classes_len = len;
}

static int add_plane(sherd__train *t, sherd__plot *p, double **points, uint32_t **regions,
                     sherd_diag *d)
{
    const sherd_data *data = sherd_training_data(t->training);
    sherd_view x = sherd_data_x(data, SHERD_DATA_TRAINING),
               y = sherd_data_y(data, SHERD_DATA_TRAINING);
    if (x.cols != 2 || y.dtype != SHERD_U32) return 0;
    *points = sherd__calloc(x.rows, 2 * sizeof **points);
    *regions = sherd__calloc((size_t)SIDE * SIDE, sizeof **regions);
    if (!*points || !*regions) return sherd__fail_memory(d, "the plot");
    sherd_view_read(x, *points, 2);
    p->points = *points;
    p->labels = y.data;
    p->points_len = x.rows;
    p->regions = *regions;
    p->side = SIDE;
    surround(*points, p->points_len, p->low, p->high);
    return decide(t, p, *regions, d);
}

/* plane false: only the curves. */
static int draw(sherd__train *t, const char *path, bool plane, sherd_diag *d)
{
    sherd_diag why = { 0 };
    double *points = NULL;
    uint32_t *regions = NULL;
    char classes[SHERD__PLOT_CLASSES][96];
    bool drawn = true;
    sherd_train_report r = { .size = sizeof r };
    (void)!sherd_training_report_get(t->training, &r, NULL);
    double each = (double)r.steps_per_epoch;
    sherd__plot p = { .title = t->name, .best = r.best_step ? (double)r.best_step / each : NAN };
    const sherd_epoch *e;
    while (sherd_training_epoch_at(t->training, p.epochs_len)) p.epochs_len++;
    sherd__plot_epoch *epochs = sherd__calloc(p.epochs_len, sizeof *epochs);
    int err = epochs ? 0 : sherd__fail_memory(d, "the plot");
    for (size_t i = 0; !err && (e = sherd_training_epoch_at(t->training, i)); i++) {
        epochs[i] = (sherd__plot_epoch){ (double)e->step / each, e->loss, e->validation_loss,
                                         e->accuracy, e->validation_accuracy };
    }
    p.epochs = epochs;
    if (!err && plane) err = add_plane(t, &p, &points, &regions, d);
    if (p.points) name_plane(t, &p, classes);
    if (!err && (err = sherd__plot_draw(&p, path, &drawn, &why)) != 0)
        sherd__fail(d, err, why.hint, "%s", why.message);
    if (!err && !drawn) sherd__cli_warn(t->cli, "%s: %s", why.message, why.hint);
    t->plotted = !err && drawn;
    sherd__free(epochs);
    sherd__free(points);
    sherd__free(regions);
    return err;
}

int sherd__train_plot(sherd__train *t, int err, sherd_diag *d)
{
    const char *path = sherd__opt_text(t->cli, "plot");
    sherd_diag mine = { 0 };
    if (!path || (err && !sherd_training_epoch_at(t->training, 0))) return err;
    if (!err) return draw(t, path, true, d);
    if (draw(t, path, err != SHERD_ERANGE, &mine) != 0) /* no regions for diverged weights */
        sherd__cli_warn(t->cli, "%s", mine.message);
    return err;
}
