/*
 * `sherd train`, in these files: options and the order of steps (train.c), estimates of memory and
 * time (train_weigh.c), --by gradients (train_gradients.c, train_allreduce.c), messages, log and
 * table (train_tell.c), plots (train_plot.c), the reference training of --check (train_check.c),
 * checkpoints (train_checkpoint.c) and files for records (train_record.c).
 */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli/cli.h"
#include "cli/jsonl.h"
#include "cli/progress.h"
#include "cli/remote_products.h"
#include "learn/collective.h"
#include "learn/train.h"
#include "lib/data.h"
#include "lib/recipes.h"
#include "store/sumlist.h"

/** Figures of one reported epoch. NAN if a figure does not exist. */
typedef struct sherd__told_epoch {
    sherd__train_epoch e;
    double seconds;               /* since the start of training */
    double examples_per_second;   /* since the previous reported epoch */
    uint64_t bytes_out, bytes_in; /* so far */
    double float64_accuracy;      /* --check: of the same training in float64 */
    double float64_validation;
    double epsilon, delta; /* --aggregate secure with noise: spent so far */
} sherd__told_epoch;

typedef struct sherd__train_check sherd__train_check;
typedef struct sherd__train_keep sherd__train_keep;
typedef struct sherd__train_by sherd__train_by;
typedef struct sherd__train_secure sherd__train_secure;
typedef struct sherd__train_allreduce sherd__train_allreduce;

/** --aggregate, in the order of its choices. */
enum {
    SHERD__AGGREGATE_PLAIN,
    SHERD__AGGREGATE_SECURE,
    SHERD__AGGREGATE_RING,
    SHERD__AGGREGATE_HALVING
};

typedef struct sherd__train {
    sherd__cli *cli;
    const char *name;     /* of the recipe, as given */
    sherd__recipe recipe; /* options applied */
    uint8_t seed[32];
    sherd__data data;
    sherd__remote_products over;
    sherd__trainer *trainer;
    sherd__stepper stepper;
    sherd__train_check *check;      /* NULL: not requested */
    sherd__train_keep *keep;        /* checkpoints; NULL: not requested */
    sherd__train_by *by;            /* --by gradients; NULL: by products */
    sherd__train_secure *secure;    /* --aggregate secure; NULL: not requested */
    sherd__train_allreduce *circle; /* --aggregate ring, halving-doubling; NULL: not requested */

    sherd__jsonl log; /* --log; fd is -1 without it */
    sherd__progress_line progress;
    int stopped;           /* set between steps: SHERD_EINTERRUPTED, SHERD_ETIMEOUT, another
                              failure */
    sherd_diag stopped_by; /* its message; else empty */
    double began;          /* start of training; sherd__clock_s */
    double seconds;        /* duration of training, set at its end; without saving and drawing */
    uint64_t first_step;   /* first step of this run */
    uint64_t examples;     /* total of the steps of this run */
    double told_at;        /* time of the last reported epoch, and `examples` at that time */
    uint64_t told_examples;
    sherd__train_epoch last; /* the last complete epoch */
    double first_cost;       /* of this run's first step, before its update; NAN: none yet */
    bool plotted;            /* --plot was drawn */
    bool foretold;           /* the long duration was reported, or there is no need to report it */
    sherd__told_epoch *told; /* one for each reported epoch */
    size_t told_len, told_cap;
    json_t *result; /* --json: printed after everything else has ended; or NULL */
} sherd__train;

/* ---- --by gradients (train_gradients.c) ------------------------------------------------------ */

/** Checks the combination of options (cli/applies.h) before any is read. SHERD_EINVAL: options
 *  without effect, or that cannot be combined. */
int sherd__train_by_judge(sherd__cli *cli, sherd_diag *d) SHERD_MUST;
/** Reads the options of --by gradients, after sherd__remote_products_read. By products, t->by stays
 *  NULL. */
int sherd__train_by_read(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Checks the nodes before any is started: SHERD_EINVAL if there are more nodes than a step has
 *  examples, or if no nodes are named. */
int sherd__train_by_suits(const sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Creates the stepper and the trace. The cluster is open. */
int sherd__train_by_open(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Creates the same stepper for --check, in one thread here. */
int sherd__train_by_beside(const sherd__train *t, sherd__trainer *trainer, sherd__stepper *out,
                           sherd_diag *d) SHERD_MUST;
/** Returns the number of threads of this process that compute gradients; may be 0. */
uint32_t sherd__train_by_threads(const sherd__train *t);
/** Writes the settings that determine the bits of the result: "gradients of 8 shards, fixed point
 *  of 17 bits". */
void sherd__train_by_name(const sherd__train *t, char *out, size_t size);
void sherd__train_by_print(const sherd__train *t);
json_t *sherd__train_by_json(const sherd__train *t);
/** Ends the trace. Returns err, or the trace's error. */
int sherd__train_by_end(sherd__train *t, int err, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__train_by_free(sherd__train_by *b);

/* ---- --aggregate secure (train_secure.c) ----------------------------------------------------- */

/** Part of sherd__train_by_judge: checks requirements and limits. SHERD_EINVAL. */
int sherd__train_secure_judge(sherd__cli *cli, sherd_diag *d) SHERD_MUST;
/** Reads the options of secure aggregation, by gradients; else t->secure stays NULL.
 *  SHERD_EINVAL. */
int sherd__train_secure_read(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Sets a placeholder in place of data; with --simulate, the data that is partitioned among the
 *  nodes. */
int sherd__train_secure_data(sherd__train *t, size_t width, sherd_diag *d) SHERD_MUST;
/** Creates the trainer. Checkpoints are open (sherd__train_keep_open). */
int sherd__train_secure_trainer(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Creates the stepper. The cluster is open. Errors of sherd__secure_open. */
int sherd__train_secure_open(sherd__train *t, const sherd__gradients_options *g,
                             sherd_diag *d) SHERD_MUST;
json_t *sherd__train_secure_json(const sherd__train *t);
void sherd__train_secure_print(const sherd__train *t);
/** Writes the settings that determine the bits of the result, for checkpoints. */
void sherd__train_secure_arithmetic(const sherd__train *t, char *out, size_t size);

/** Privacy cost of training so far for one example (crypto/privacy.h). */
typedef struct sherd__train_privacy {
    double epsilon, delta; /* NAN: there is no bound, or no secure training took place */
    uint64_t rounds;
} sherd__train_privacy;
sherd__train_privacy sherd__train_secure_privacy(const sherd__train *t);
/** NULL is allowed. */
void sherd__train_secure_free(sherd__train_secure *s);

/* ---- --aggregate ring, halving-doubling (train_allreduce.c) ---------------------------------- */

/** Part of sherd__train_by_judge: checks limits. SHERD_EINVAL. */
int sherd__train_allreduce_judge(sherd__cli *cli, sherd_diag *d) SHERD_MUST;
/** Reads the options of all-reduce, by gradients; else t->circle stays NULL. SHERD_ENOMEM. */
int sherd__train_allreduce_read(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Creates the stepper. The cluster is open. Errors of sherd__allreduce_open. */
int sherd__train_allreduce_open(sherd__train *t, const sherd__gradients_options *g, bool allow_drop,
                                sherd_diag *d) SHERD_MUST;
/** Continues a line that has been started. */
void sherd__train_allreduce_print(const sherd__train *t);
json_t *sherd__train_allreduce_json(const sherd__train *t);
/** Returns the bytes on each node's links so far. */
json_t *sherd__train_allreduce_links(const sherd__train *t);
/** NULL is allowed. */
void sherd__train_allreduce_free(sherd__train_allreduce *c);

/* ---- estimates (train_weigh.c) --------------------------------------------------------------- */

/** Compares the least memory that this process and its peers on this host need with the memory
 *  available. examples: 0 before the data are read. *width: outputs of the network. SHERD_ENOMEM;
 *  errors of sherd__network_weigh. */
int sherd__train_weigh(const sherd__train *t, size_t examples, size_t *width,
                       sherd_diag *d) SHERD_MUST;
/** Before the first step: warns if training takes more than a day at the speed of products here.
 *  Takes about 20 ms for any network. */
void sherd__train_foretell(sherd__train *t);
/** After each step: gives the same warning by the speed of the first steps, which includes the
 *  transfer to nodes. */
void sherd__train_pace(sherd__train *t);

/* ---- records (train_record.c) ---------------------------------------------------------------- */

/** By products, with --record: writes DIR/rows.npy if the kept data are in a different order from
 *  the data that were read. The cluster is open. SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM. */
int sherd__train_record_rows(const sherd__train *t, sherd_diag *d) SHERD_MUST;

/* ---- messages (train_tell.c) ----------------------------------------------------------------- */

/** Opens --log, new or after the lines of the run that is resumed, and writes a first line.
 *  SHERD_EOPEN, SHERD_EIO. */
int sherd__train_log_open(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Describes on stderr the training that is about to start. */
void sherd__train_say_start(const sherd__train *t);
/** Updates the progress line after each step. */
void sherd__train_progress(sherd__train *t);
/** Reports an epoch: stores it, and writes one line to the log. */
int sherd__train_tell_epoch(sherd__train *t, const sherd__train_epoch *e, sherd_diag *d) SHERD_MUST;
/** Writes the last line of the log, then the table, or with --json t->result. err is how training
 *  ended. Returns err, or the error of reporting. */
int sherd__train_tell_end(sherd__train *t, int err, sherd_diag *d) SHERD_MUST;
void sherd__train_tell_fini(sherd__train *t);

/* ---- --check (train_check.c) ----------------------------------------------------------------- */

/** Creates reference trainers that start from the current parameters of t->trainer: one here with
 *  the same specification, one here in float64. */
int sherd__train_check_new(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Advances them to t's step and compares every parameter: SHERD_EDIFFERS names the first that
 *  differs. With report, also measures the validation of the float64 trainer. */
int sherd__train_check_epoch(sherd__train *t, const sherd__train_epoch *e, bool report,
                             sherd_diag *d) SHERD_MUST;
/** Returns float64's accuracies at the last checked epoch; NAN without --check. */
void sherd__train_check_float64(const sherd__train *t, double *accuracy, double *validation);
/** Returns how many parameters were compared, in how many epochs. */
void sherd__train_check_count(const sherd__train *t, uint64_t *parameters, uint64_t *epochs);
void sherd__train_check_free(sherd__train_check *c);

/* ---- --plot (train_plot.c) ------------------------------------------------------------------- */

/** Draws --plot, if requested, after training ended with err. If err is a failure, draws the epochs
 *  that were reported before it, if any. Returns err, or the error of drawing. */
int sherd__train_plot(sherd__train *t, int err, sherd_diag *d) SHERD_MUST;

/* ---- checkpoints (train_checkpoint.c) -------------------------------------------------------- */

/** Opens the folder of --checkpoint. With --resume, t gets the seed of the newest checkpoint.
 *  Called before the data are loaded. SHERD_EINVAL: options that need a folder, a folder of another
 *  run without --resume; errors of sherd__chain_open. */
int sherd__train_keep_open(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** With --resume: loads parameters, optimiser and state from the newest checkpoint. SHERD_EFORMAT:
 *  it belongs to another network, way to train, seed, data or arithmetic. */
int sherd__train_keep_load(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Writes the first checkpoint of a run, before its first step. A run that ends before the second
 *  checkpoint then has its seed and initial weights. */
int sherd__train_keep_begin(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** A callback of sherd__train_calls; the context is t. */
int sherd__train_keep_add(void *train, const sherd__train_state *s, sherd_diag *d) SHERD_MUST;
/** Returns the list of sums in the folder of checkpoints: empty before the first checkpoint, NULL
 *  without a folder. SHERD_EFORMAT: the list is missing or invalid. */
int sherd__train_keep_sums(sherd__train *t, sherd__sumlist **out, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__train_keep_free(sherd__train_keep *k);

/* ---- peer processes (train_together.c) ------------------------------------------------------- */

/** Set before the command begins if this process is one of several that run it. Borrowed. */
void sherd__train_among(const sherd__collective *c);
/** Returns that collective; NULL: this is the only process. */
const sherd__collective *sherd__train_others(void);
/** Returns true in a single process and in process 0, which writes and keeps the files. */
bool sherd__train_is_first(void);
/** Makes the other processes forget options for output, messages and resumption, which only process
 *  0 does. */
void sherd__train_leave_to_first(sherd__cli *cli);
/** Sets t->seed to that of process 0. In a single process this function and those below do
 *  nothing. */
int sherd__train_share_seed(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** err: this process's result. Returns the first failure among all processes, with its message in
 *  *d, which process 0 prints. */
int sherd__train_judge_together(const sherd__train *t, int err, sherd_diag *d) SHERD_MUST;
/** Compares recipe and data (SHERD_EFORMAT names a process that differs) and sets the state of
 *  training to that of process 0. */
int sherd__train_share_start(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Stops all processes at the same step. Returns the reason of the first that has one (0: none
 *  has), or SHERD_E* with *d filled if they cannot communicate. */
int sherd__train_stop_together(int why, sherd_diag *d);

#endif
