/*
 * Plots of a training, drawn by gnuplot if it is installed: loss and accuracy over epochs in panels
 * of their own, and for data in the plane the network's decision regions with the points. Without
 * gnuplot, a script with the data is saved beside the plot.
 */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** NAN means that a figure does not exist. A curve without figures is left out. epoch ascends, and
 *  may have a fraction. */
typedef struct sherd__plot_epoch {
    double epoch, loss, validation_loss, accuracy, validation_accuracy;
} sherd__plot_epoch;

/** Most classes that have a colour of their own, and so a legend. */
#define SHERD__PLOT_CLASSES 10u

/** All borrowed. */
typedef struct sherd__plot {
    const char *title;
    const sherd__plot_epoch *epochs;
    size_t epochs_len;
    double best;            /* the epoch whose parameters the model has; NAN: the last one */
    const double *points;   /* points_len x 2; NULL: not data in the plane */
    const uint32_t *labels; /* points_len */
    size_t points_len;
    const uint32_t *regions; /* side x side: the class at the centre of each cell; rows ascend */
    size_t side;
    double low[2], high[2];    /* the rectangle of the cells */
    const char *inputs[2];     /* names of the axes; NULL: they have none */
    bool standardised;         /* the axes are of standardised inputs */
    const char (*classes)[96]; /* their names, for the legend */
    size_t classes_len;        /* 0: no legend */
} sherd__plot;

/** Checks before the work that `path` ends in .svg or .png (SHERD_EINVAL), and that it and
 *  PATH.gnuplot can be written (SHERD_EOPEN). An existing PATH.gnuplot that sherd did not write is
 *  refused. */
int sherd__plot_check(const char *path, sherd_diag *d) SHERD_MUST;
/**
 * Draws to `path`; an earlier plot survives every failure. *drawn false: gnuplot is not installed
 * or failed; PATH.gnuplot is then kept, and *d reports this and how to draw from it. SHERD_EOPEN,
 * SHERD_EIO, SHERD_ENOMEM; SHERD_EINTERRUPTED, unless the signal was received before the call.
 */
int sherd__plot_draw(const sherd__plot *p, const char *path, bool *drawn, sherd_diag *d) SHERD_MUST;

#endif
