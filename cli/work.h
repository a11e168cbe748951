/*
 * One piece of work from files to a file: operands are opened, nodes found, the product or
 * element-wise operation is computed over them, checked here if asked, certified, and the result
 * appears. `multiply` and `apply` are two settings of it.
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

/** How far the fixed-point product is from the float64 one, entry by entry. */
typedef struct sherd__distance {
    double largest, bound; /* largest difference, and what quantisation may make it */
    size_t row, col;       /* of the largest */
    double off, whole;     /* sums of squares: of differences, of the float64 product */
} sherd__distance;

/** What --check found. */
typedef struct sherd__comparison {
    bool done;    /* a comparison was made */
    bool equal;   /* bit for bit, or in float mode within gamma_k |A||B| */
    bool bitwise; /* judged by bits */
    sherd__compare found;
    sherd__distance from_float; /* exact products */
    double seconds;             /* of the local computation and the comparison */
    uint64_t blas_calls;        /* of it */
} sherd__comparison;

typedef struct sherd__product_run {
    sherd__cli *cli;
    const char *operation; /* "multiply", or an element-wise one */
    sherd_elementwise op;  /* or 0: a product */
    sherd__operand in[2];
    unsigned in_len;
    size_t rows, cols; /* of the result */
    double *c;
    sherd_npy_writer *writer;
    sherd__file *certificate; /* written, and not there yet; NULL: none */
    bool committed;           /* the result is there, whatever fails now */
    bool certified;           /* so is its certificate */

    sherd_product_options opt;
    uint8_t seed[32]; /* what opt.seed points to */
    sherd_meta *meta;
    sherd_shuffles shuffles;
    bool dry;    /* nothing will be sent: metadata stays unused */
    bool reused; /* metadata that served other operands, by --reuse-metadata */

    sherd_cluster *cluster;
    bool *up; /* of its nodes, when it was opened */
    sherd__progress_line progress;
    sherd_report report;
    bool foretold; /* forecast holds what was expected of this run */
    sherd_forecast forecast;
    sherd__comparison verdict;
    bool measures;               /* --check of an exact product measures its distance from float64,
                               too */
    double began, opened, ended; /* sherd__clock_s: start, nodes up, result here */
    double foretelling;          /* seconds between the last two, which are no part of the work */

    bool digested;  /* in[].digest are known */
    bool digesting; /* a thread is at it */
    pthread_t digester;
    int digest_err;
    sherd_diag digest_diag;
} sherd__product_run;

/** Zeroes w, reads options and opens the operands, the last arguments of *cli; op 0: a product. */
int sherd__product_run_begin(sherd__product_run *w, sherd__cli *cli, sherd_elementwise op,
                             unsigned operands, sherd_diag *d) SHERD_MUST;
/** By which scheme. */
const sherd_scheme_info *sherd__work_scheme(const sherd__product_run *w);
/** Whether it is one that hides the operands from nodes. */
bool sherd__product_run_private(const sherd__product_run *w);
/** Width that operand i is rounded to, in exact mode. */
unsigned sherd__product_run_bits(const sherd__product_run *w, unsigned i);
/** Everything from metadata to the committed result file; rows and cols must be set. */
int sherd__product_run_run(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** What the run that follows is expected to take, where somebody will read it (-v, --json); no
 *  product is computed here for it. */
void sherd__product_run_foretell(sherd__product_run *w);
/** The call to the cluster alone, with its progress line (which opens with `label`), into w->c.
 *  Ends by --timeout, counted from w->began. */
int sherd__product_run_compute(sherd__product_run *w, const char *label, sherd_diag *d) SHERD_MUST;
/** Releases all of it, wiping the seed; safe after any failure. */
void sherd__product_run_fini(sherd__product_run *w);

/** --seed, or --meta with its operation and the reuse rule, into w->opt (cli/work_meta.c). */
int sherd__product_run_seed(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** Draws the seed here and now where none was given: what is drawn from it is the same in every
 *  call. */
void sherd__product_run_seed_settle(sherd__product_run *w);
/** Input digests, once: by the thread that sherd__product_run_digest_start began, else here. */
int sherd__product_run_digests(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
void sherd__product_run_digest_start(sherd__product_run *w);
/** Relative Frobenius norm of the distance. */
double sherd__product_run_relative(const sherd__distance *x);
/** The distance for --json, and in a sentence. */
json_t *sherd__product_run_distance(const sherd__distance *x);
const char *sherd__work_distance_text(const sherd__distance *x, char out[200]);
/** Computes the operation here and compares: fills w->verdict. Does not judge. */
int sherd__product_run_check(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** What would keep --certificate from being written, or --key from being used, is found here,
 *  before anything is sent: SHERD_EOPEN, SHERD_EKEY (cli/certify.c). */
int sherd__product_run_certify_ready(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** Writes --certificate, but for its name: w->certificate (cli/certify.c). */
int sherd__product_run_certify(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** SHERD_EINTERRUPTED once a signal has come: asked between the steps that take time. */
int sherd__work_go_on(sherd_diag *d) SHERD_MUST;
/** What happened, for people (stderr) or as JSON (stdout); err is what sherd__product_run_run
 *  gave. */
int sherd__product_run_tell(sherd__product_run *w, int err, sherd_diag *d) SHERD_MUST;

#endif
