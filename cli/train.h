/*
 * `sherd train`, in these files: the verb and the order of steps (train.c), options
 * (train_options.c), messages and log (train_report.c), the table (train_table.c), and plots
 * (train_plot.c). The work is the library's (sherd/train.h).
 */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli/cli.h"
#include "cli/confusion.h"
#include "cli/jsonl.h"
#include "cli/progress.h"
#include "cli/remote_products.h"
#include "cli/rows.h"
#include "sherd/train.h"

/** The lines of reports on standard output; with -v --json, on stderr; with --json, nowhere. */
typedef struct sherd__train_table {
    sherd__column columns[10]; /* ends with {0} */
    uint64_t reports, shown;   /* of this run; of these, lines of the table */
    uint64_t stride;           /* reports between two lines */
    sherd_epoch last;          /* the last report, if it is `pending`: not shown so far */
    bool pending;
} sherd__train_table;

typedef struct sherd__train {
    sherd__cli *cli;
    const char *name; /* of the recipe, as given */
    sherd_recipe *recipe;
    sherd_model *initial;
    uint8_t seed[32];
    uint64_t seed_number;
    sherd__remote_products over;
    sherd_train_options o;
    sherd_collective among; /* of t->o */
    bool common;            /* a failure is that of all processes */
    sherd_training *training;
    sherd_cluster *cluster;

    sherd_model_file *file;  /* of --output, or NULL */
    sherd__jsonl log, trace; /* --log, --trace; fd is -1 without it */
    bool trace_failed;       /* a line of the trace could not be written */
    sherd__progress_line progress;
    bool reported; /* progress was reported: its rate is that of the steps since */
    sherd__train_table table;
    sherd__confusion confusion; /* at the end, if there are labels */
    bool plotted;               /* --plot was drawn */
    json_t *result;             /* --json: printed after everything else has ended; or NULL */
} sherd__train;

/* ---- options (train_options.c) --------------------------------------------------------------- */

/** Makes the processes other than the first forget options for output, messages and resumption,
 *  which only the first one obeys. */
void sherd__train_leave_to_first(sherd__cli *cli);
/** Fills t->o and t->over. Options without effect that are not on the command line are forgotten.
 *  SHERD_EINVAL: options without effect on the command line, unless the library refuses them. */
int sherd__train_options(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Sets keys of a recipe to the options of the same names that the verb has and that are given.
 *  Errors of sherd_recipe_set. */
int sherd__train_change_recipe(const sherd__cli *cli, sherd_recipe *recipe,
                               sherd_diag *d) SHERD_MUST;
/** Returns whether this process is the only one, or the one that writes files and messages. */
bool sherd__train_is_first(const sherd__train *t);

/* ---- messages (train_report.c) --------------------------------------------------------------- */

/** Opens --log, new or after the lines of the run that is resumed, and writes a first line; opens
 *  --trace. SHERD_EOPEN, SHERD_EIO. */
int sherd__train_logs_open(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Describes on stderr the training that is about to start. */
void sherd__train_say_start(const sherd__train *t);
/** Callbacks of sherd_train_options and its hooks; the context is t. */
void sherd__train_on_progress(void *train, const sherd_progress *p);
int sherd__train_on_epoch(void *train, const sherd_epoch *e, sherd_diag *d);
void sherd__train_on_pass(void *train, const sherd_train_pass *p);
void sherd__train_on_update(void *train, const sherd_train_update *u);
/** Writes the last line of the log, then the table, or with --json t->result. err is how training
 *  ended. Returns err, or the error of reporting. */
int sherd__train_report_end(sherd__train *t, int err, sherd_diag *d) SHERD_MUST;

/* ---- the table (train_table.c) --------------------------------------------------------------- */

/** Adds a report. */
void sherd__train_table_add(sherd__train *t, const sherd_epoch *e);
/** Ends the table after the last report: shows that one, and says how many lines were left out. */
void sherd__train_table_end(sherd__train *t);

/* ---- --plot (train_plot.c) ------------------------------------------------------------------- */

/** Draws --plot, if requested, after training ended with err. If err is a failure, draws the epochs
 *  that were reported before it, if any. Returns err, or the error of drawing. */
int sherd__train_plot(sherd__train *t, int err, sherd_diag *d) SHERD_MUST;

#endif
