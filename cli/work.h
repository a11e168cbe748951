/*
 * One operation from files to a file: operands are opened, nodes found, the product or element-wise
 * operation is computed on them, compared with a local result if requested, certified, and the
 * result is committed. `multiply` and `apply` are two settings of it.
 */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include "cli/cli.h"
#include "cli/operands.h"
#include "cli/progress.h"
#include "sherd/certificate.h"
#include "sherd/check.h"
#include "sherd/cluster.h"
#include "sherd/forecast.h"
#include "sherd/npy.h"
#include "sherd/product.h"

typedef struct sherd__product_run {
    sherd__cli *cli;
    const char *operation; /* "multiply", or an element-wise operation */
    sherd_op op;           /* or 0: a product */
    sherd__operand in[2];
    unsigned in_len;
    size_t rows, cols; /* of the result */
    double *c;
    sherd_npy_writer *writer;
    sherd_certificate *certificate; /* NULL: none was requested */
    bool committed;                 /* the result file exists, whatever fails later */
    bool certified;                 /* its certificate exists, too */

    sherd_product_options opt;
    uint8_t seed[32]; /* what opt.seed points to, unless it is the metadata's */
    sherd_meta *meta; /* what opt.shuffles points into */
    sherd_meta_usage usage;
    bool dry; /* nothing is sent, and metadata stays unused */

    sherd_cluster *cluster;
    sherd__progress_line progress;
    sherd_report report;
    bool predicted; /* forecast is set for this run */
    sherd_forecast forecast;
    bool checked; /* check is set */
    sherd_check check;
    bool measured; /* distance is set: of an exact product from float64 */
    sherd_distance distance;
    uint64_t check_calls; /* BLAS calls of both */
    double began, ended;  /* sherd__clock_s: start, result received */
    double forecasting;   /* seconds of that, not part of the work */
} sherd__product_run;

/** Zeroes w, reads options and opens the operands, the last arguments of *cli; op 0: a product. */
int sherd__product_run_begin(sherd__product_run *w, sherd__cli *cli, sherd_op op, unsigned operands,
                             sherd_diag *d) SHERD_MUST;
/** Returns the scheme. */
const sherd_scheme_info *sherd__work_scheme(const sherd__product_run *w);
/** Reads --seed, or takes the operation of --meta, into w->opt. */
int sherd__product_run_seed(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** Runs all steps from metadata to the committed result file; rows and cols must be set. */
int sherd__product_run_run(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** Makes only the call to the cluster, with its progress line (which begins with `label`), into
 *  w->c. Ends by --timeout, counted from w->began. */
int sherd__product_run_compute(sherd__product_run *w, const char *label, sherd_diag *d) SHERD_MUST;
/** Computes the operation locally, and sets w->check. SHERD_EDIFFERS: the result is wrong. */
int sherd__product_run_check(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** Releases everything and wipes the seed; safe after any failure. */
void sherd__product_run_fini(sherd__product_run *w);
/** Reports the result for people (stderr) or as JSON (stdout); err is the return value of
 *  sherd__product_run_run. */
int sherd__product_run_report(sherd__product_run *w, int err, sherd_diag *d) SHERD_MUST;

/** Returns SHERD_EINTERRUPTED after a signal. Called between steps that take time. */
int sherd__work_interrupted(sherd_diag *d) SHERD_MUST;
/** Formats the distance as a sentence. */
const char *sherd__work_distance_text(const sherd_distance *x, char out[200]);

#endif
