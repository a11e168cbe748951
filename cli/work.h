/*
 * One operation from files to a file (sherd/operation.h): its options, its progress line, and its
 * report. `multiply` and `apply` are two settings of it.
 */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include "cli/cli.h"
#include "cli/progress.h"
#include "sherd/operation.h"

typedef struct sherd__product_run {
    sherd__cli *cli;
    const char *operation; /* "multiply", or an element-wise operation */
    const char *paths[2];  /* of the operands */
    unsigned in_len;
    sherd_operation_options o;
    sherd_product_options opt;
    sherd_cluster_options nodes;
    uint8_t seed[32]; /* what opt.seed points to */
    sherd__progress_line progress;
    sherd_operation *work;
    sherd_operation_info info; /* of work; its members are NULL before it is made */
} sherd__product_run;

/** Zeroes w, reads and judges options, and makes the operation on the last arguments of *cli; op 0:
 *  a product. */
int sherd__product_run_begin(sherd__product_run *w, sherd__cli *cli, sherd_op op, unsigned operands,
                             sherd_diag *d) SHERD_MUST;
/** Runs the operation, with a progress line, and reports it. */
int sherd__product_run_run(sherd__product_run *w, sherd_diag *d) SHERD_MUST;
/** Releases everything and wipes the seed; safe after any failure. */
void sherd__product_run_fini(sherd__product_run *w);

/** Reports a finished operation for people (stderr) or as JSON (stdout); err is how it ended. */
int sherd__product_run_report(sherd__product_run *w, int err, sherd_diag *d) SHERD_MUST;
/** A hook of progress: shows bytes beside the tasks on the line `progress`. */
void sherd__product_progress(sherd__progress_line *line, const sherd_progress *p);
/** Returns the sum over the nodes of a report. */
uint64_t sherd__work_total(const uint64_t *each, const sherd_report *r);
/** Returns 100 if `all` is 0. */
double sherd__work_percent(uint64_t part, uint64_t all);
/** Formats which entries were not compared; "" if none. */
const char *sherd__work_unjudged_text(const sherd_check *x, char out[96]);
/** Writes how many entries are NaN in both results, "; ...", or nothing. */
const char *sherd__work_nan_text(const sherd_check *x, char out[96]);
/** Formats the distance as a sentence. */
const char *sherd__work_distance_text(const sherd_distance *x, char out[200]);

#endif
