/*
 * Plots of a training, drawn by gnuplot if it is installed: loss and accuracy over epochs, and for
 * data in the plane the points and the network's decision regions. Without gnuplot, data and script
 * are saved in the plot's folder.
 */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** NAN means that a figure does not exist. A curve without figures is left out. */
typedef struct sherd__plot_epoch {
    double epoch, cost, validation_cost, accuracy, validation_accuracy;
} sherd__plot_epoch;

/** All borrowed. */
typedef struct sherd__plot {
    const char *title;
    const sherd__plot_epoch *epochs;
    size_t epochs_len;
    const double *points;   /* points_len x 2; NULL: not data in the plane */
    const uint32_t *labels; /* points_len */
    size_t points_len;
    const uint32_t *regions; /* side x side: the class at the centre of each cell; rows ascend */
    size_t side;
    double low[2], high[2]; /* the rectangle of the cells */
} sherd__plot;

/** Checks before the work that `path` ends in .svg or .png (SHERD_EINVAL) and can be written
 *  (SHERD_EOPEN). */
int sherd__plot_check(const char *path, sherd_diag *d) SHERD_MUST;
/**
 * Draws to `path`; an earlier plot survives every failure. *drawn false: gnuplot is not installed
 * or failed; PATH.gnuplot and PATH.dat are then kept, and *d reports this and how to draw from
 * them. SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM; SHERD_EINTERRUPTED, unless the signal was received
 * before the call.
 */
int sherd__plot_draw(const sherd__plot *p, const char *path, bool *drawn, sherd_diag *d) SHERD_MUST;

#endif
