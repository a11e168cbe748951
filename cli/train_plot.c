/*
 * --plot: curves of the reported epochs and, if examples are points in the plane with one class
 * each, the points and the network's decision regions around them. The network is evaluated here in
 * floats, however it was trained, which is accurate enough for a plot.
 */
#include <math.h>
#include <string.h>

#include "cli/plot.h"
#include "cli/train.h"
#include "core/alloc.h"
#include "matrix/view.h"

#define SIDE 200u
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
    sherd__network *n = sherd__trainer_network(t->trainer);
    sherd__engine here = { .maps = false };
    size_t width = sherd__network_width(n), batch = sherd__trainer_order(t->trainer)->batch;
    size_t cells = (size_t)SIDE * SIDE, room = batch < cells ? batch : cells;
    double *x = sherd__calloc(2 * room, sizeof *x);
    int err = !x ? sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for --plot")
                 : sherd_multiplier_local(&here.products, 0, d);
    for (size_t at = 0; at < cells && !err; at += room) {
        size_t len = cells - at < room ? cells - at : room;
        const double *y;
        for (size_t i = 0; i < len; i++) {
            double col = (double)((at + i) % SIDE) + 0.5, row = (double)((at + i) / SIDE) + 0.5;
            x[2 * i] = p->low[0] + col / SIDE * (p->high[0] - p->low[0]);
            x[2 * i + 1] = p->low[1] + row / SIDE * (p->high[1] - p->low[1]);
        }
        sherd__batch b = { .x = sherd_view_c(x, SHERD_F64, len, 2) };
        err = sherd__network_forward(n, here, &b, false, &y, d);
        for (size_t i = 0; i < len && !err; i++) {
            const double *out = y + i * width;
            uint32_t best = 0;
            for (uint32_t k = 1; k < width; k++)
                if (out[k] > out[best]) best = k;
            regions[at + i] = best;
        }
    }
    sherd_multiplier_free(here.products);
    sherd__free(x);
    return err;
}

static int add_plane(sherd__train *t, sherd__plot *p, double **points, uint32_t **regions,
                     sherd_diag *d)
{
    const sherd__dataset *s = &t->data.train;
    if (s->x.cols != 2 || !s->targets.labels) return 0;
    *points = sherd__calloc(s->x.rows, 2 * sizeof **points);
    *regions = sherd__calloc((size_t)SIDE * SIDE, sizeof **regions);
    if (!*points || !*regions) return sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for --plot");
    sherd__view_dense_f64(s->x, *points, 2);
    p->points = *points;
    p->labels = s->targets.labels;
    p->points_len = s->x.rows;
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
    bool drawn = true;
    sherd__plot p = { .title = t->name, .epochs_len = t->told_len };
    sherd__plot_epoch *epochs = sherd__calloc(t->told_len, sizeof *epochs);
    int err = epochs ? 0 : sherd__fail(d, SHERD_ENOMEM, NULL, "no memory for --plot");
    for (size_t i = 0; i < t->told_len && !err; i++) {
        const sherd__train_epoch *e = &t->told[i].e;
        epochs[i] = (sherd__plot_epoch){ (double)e->epoch, e->cost, e->validation_cost, e->accuracy,
                                         e->validation_accuracy };
    }
    p.epochs = epochs;
    if (!err && plane) err = add_plane(t, &p, &points, &regions, d);
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
    if (!path || (err && t->told_len == 0)) return err;
    if (!err) return draw(t, path, true, d);
    if (draw(t, path, err != SHERD_ERANGE, &mine) != 0) /* no regions for diverged weights */
        sherd__cli_warn(t->cli, "%s", mine.message);
    return err;
}
