/*
 * One operation from files to a file: operands are opened, nodes found, the product or element-wise
 * operation is computed on them, checked here if requested, certified, and the result is committed.
 * `multiply` and `apply` are two settings of it.
 */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include <pthread.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "matrix/compare.h"
#include "sherd/cluster.h"
#include "sherd/forecast.h"
#include "sherd/meta.h"
#include "sherd/npy.h"
#include "sherd/product.h"
#include "store/digest.h"
#include "store/file.h"

typedef struct sherd__operand {
    const char *path;
    sherd_npy *file;
    sherd_view view;
    sherd__digest digest;
} sherd__operand;

/** Difference of the fixed-point product from the float64 product, entry by entry. */
typedef struct sherd__distance {
    double largest, bound; /* largest difference, and its bound from quantisation */
    size_t row, col;       /* position of the largest */
    double off, whole;     /* sums of squares: of the differences, of the float64 product */
} sherd__distance;

/** Result of --check. */
typedef struct sherd__comparison {
    bool done;    /* a comparison was made */
    bool equal;   /* bit for bit, or in float mode within gamma_k |A||B| */
    bool bitwise; /* compared bit for bit */
    sherd__compare found;
    sherd__distance from_float; /* exact products */
    double seconds;             /* of the local computation and the comparison */
    uint64_t blas_calls;        /* made by the local computation */
} sherd__comparison;

typedef struct sherd__product_run {
    sherd__cli *cli;
    const char *operation; /* "multiply", or an element-wise operation */
    sherd_op op;           /* or 0: a product */
    sherd__operand in[2];
    unsigned in_len;
    size_t rows, cols; /* of the result */
    double *c;
    sherd_npy_writer *writer;
    sherd__file *certificate; /* written, but not yet named; NULL: none */
    bool committed;           /* the result file exists, whatever fails later */
    bool certified;           /* its certificate exists, too */

    sherd_product_options opt;
    uint8_t seed[32]; /* what opt.seed points to */
    sherd_meta *meta;
    sherd_shuffles shuffles;
    bool dry;    /* nothing is sent, and metadata stays unused */
    bool reused; /* metadata that served other operands, by --reuse-metadata */

    sherd_cluster *cluster;
    bool *up; /* [node]: was up when the cluster was opened */
    sherd__progress_line progress;
    sherd_report report;
    bool foretold; /* forecast is set for this run */
    sherd_forecast forecast;
    sherd__comparison verdict;
    bool measures;               /* --check of an exact product measures its distance from
                                    float64, too */
    double began, opened, ended; /* sherd__clock_s: start, nodes up, result received */
    double foretelling;          /* seconds of forecasting between opened and ended; not part of
                                    the work */

    bool digested;  /* in[].digest are known */
    bool digesting; /* the thread is running */
    pthread_t digester;
    int digest_err;
    sherd_diag digest_diag;
} sherd__product_run;

/** Zeroes w, reads options and opens the operands, the last arguments of *cli; op 0: a product. */
int sherd__product_run_begin(sherd__product_run *w, sherd__cli *cli, sherd_op op, unsigned operands,
                             sherd_diag *d) SHERD_MUST;
/** Returns the scheme. */
const sherd_scheme_info *sherd__work_scheme(const sherd__product_run *w);
/** Returns whether the scheme hides the operands from nodes. */
bool sherd__product_run_private(const sherd__product_run *w);
/** Returns the width that operand i is rounded to, in exact mode. */
unsigned sherd__product_run_bits(const sherd__product_run *w, unsigned i);
/** Runs all steps from metadata to the committed result file; rows and cols must be set. */
int sherd__product_run_run(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** Forecasts the run that follows if the forecast will be shown (-v, --json). Computes no product
 *  here for it. */
void sherd__product_run_foretell(sherd__product_run *w);
/** Makes only the call to the cluster, with its progress line (which begins with `label`), into
 *  w->c. Ends by --timeout, counted from w->began. */
int sherd__product_run_compute(sherd__product_run *w, const char *label, sherd_diag *d) SHERD_MUST;
/** Releases everything and wipes the seed; safe after any failure. */
void sherd__product_run_fini(sherd__product_run *w);

/** Reads --seed, or --meta with its operation and the reuse rule, into w->opt (cli/work_meta.c). */
int sherd__product_run_seed(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** Draws the seed now if none was given, so that every call derives the same values from it. */
void sherd__product_run_seed_settle(sherd__product_run *w);
/** Computes the input digests once: waits for the thread of sherd__product_run_digest_start, else
 *  computes them here. */
int sherd__product_run_digests(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
void sherd__product_run_digest_start(sherd__product_run *w);
/** Returns the relative Frobenius norm of the distance. */
double sherd__product_run_relative(const sherd__distance *x);
/** Format the distance for --json, and as a sentence. */
json_t *sherd__product_run_distance(const sherd__distance *x);
const char *sherd__work_distance_text(const sherd__distance *x, char out[200]);
/** Computes the operation here, compares, and fills w->verdict. A difference is not an error
 *  here. */
int sherd__product_run_check(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** Detects, before anything is sent, that --certificate cannot be written or --key cannot be used:
 *  SHERD_EOPEN, SHERD_EKEY (cli/certify.c). */
int sherd__product_run_certify_ready(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** Writes --certificate to w->certificate, without its name (cli/certify.c). */
int sherd__product_run_certify(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** Returns SHERD_EINTERRUPTED after a signal. Called between steps that take time. */
int sherd__work_go_on(sherd_diag *d) SHERD_MUST;
/** Reports the result for people (stderr) or as JSON (stdout); err is the return value of
 *  sherd__product_run_run. */
int sherd__product_run_tell(sherd__product_run *w, int err, sherd_diag *d) SHERD_MUST;

#endif
