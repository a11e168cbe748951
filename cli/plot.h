/*
 * Pictures of a training, drawn by gnuplot where the system has it: loss and accuracy over epochs,
 * and for data in the plane the points and the regions that the network decides on. Where it has
 * not, data and script are kept beside where the picture would be.
 */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

/** NAN where a figure does not exist: a curve without any is left out. */
typedef struct sherd__plot_epoch {
    double epoch, cost, validation_cost, accuracy, validation_accuracy;
} sherd__plot_epoch;

/** All borrowed. */
typedef struct sherd__plot {
    const char *title;
    const sherd__plot_epoch *epochs;
    size_t epochs_len;
    const double *points;   /* points_len x 2; NULL: no plane */
    const uint32_t *labels; /* points_len */
    size_t points_len;
    const uint32_t *regions; /* side x side: the class at the middle of each cell; rows ascend */
    size_t side;
    double low[2], high[2]; /* the rectangle that the cells divide */
} sherd__plot;

/** Before the work: `path` must end in .svg or .png (SHERD_EINVAL), and be a file that can be
 *  written (SHERD_EOPEN). */
int sherd__plot_check(const char *path, sherd_diag *d) SHERD_MUST;
/**
 * Draws to `path`; an earlier picture survives every failure. *drawn false: there is no gnuplot, or
 * it failed; then PATH.gnuplot and PATH.dat are kept and *d says so (and how to draw with them).
 * SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM; SHERD_EINTERRUPTED, unless that came before.
 */
int sherd__plot_draw(const sherd__plot *p, const char *path, bool *drawn, sherd_diag *d) SHERD_MUST;

#endif
