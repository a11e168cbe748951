/*
 * The struct behind sherd/train.h, in these files: creation and freeing (training.c), options
 * (options.c), the run (run.c), reports (report.c, fields.c), estimates of memory and time
 * (estimate.c), engines by gradients (gradients.c, secure.c, allreduce.c), the comparison with the
 * same training here (check.c), checkpoints (checkpoint.c, history.c, verify.c), early stopping
 * (patience.c), metadata (metadata.c, operations.c), peers (peers.c), and the order of recorded
 * examples (record.c).
 */
#ifndef LIB_TRAIN_TRAINING_H
#define LIB_TRAIN_TRAINING_H

#include "core/hooks.h"
#include "learn/gradients.h"
#include "learn/train.h"
#include "lib/data.h"
#include "lib/model.h"
#include "lib/network_products.h"
#include "lib/recipe.h"
#include "scheduler/allreduce/allreduce.h"
#include "scheduler/secure/secure.h"
#include "sherd/train.h"
#include "store/npz.h"

#define SHERD__HISTORY_COLS 7u

typedef struct sherd__training_check sherd__training_check;
typedef struct sherd__training_keep sherd__training_keep;
typedef struct sherd__training_meta sherd__training_meta;

/** Secure aggregation. */
typedef struct sherd__training_secure {
    uint64_t rows, places; /* of each node: rows in a step, places in an epoch */
    size_t stand_in_batch;
    sherd__dataset stand_in; /* in place of examples that this process does not have */
    sherd__sumlist *sums;    /* in the folder of checkpoints; NULL: there is no list */
    sherd__summer summer;    /* during a run */
    bool opened;             /* it was open */
    sherd__secure_spent spent;
} sherd__training_secure;

typedef struct sherd__training_link {
    char node[64];
    sherd__allreduce_link_bytes bytes;
} sherd__training_link;

/** All-reduce. */
typedef struct sherd__training_allreduce {
    sherd__allreduce_lead lead; /* during a run */
    sherd__allreduce_stats stats;
    sherd__training_link *links; /* of each node */
} sherd__training_allreduce;

/** The slowest node, by its name. */
typedef struct sherd__training_pace {
    char node[64];
    double times; /* as long as the others (median); 0: no such node */
} sherd__training_pace;

/** Early stopping: the report with the lowest loss of validation. */
typedef struct sherd__training_best {
    int64_t patience;      /* of the recipe; 0: no early stopping */
    int64_t waited;        /* reports since that one */
    int64_t step;          /* of that one; 0: none yet */
    double cost, accuracy; /* of validation; NAN: none yet */
    void *params;          /* all parameters of the network, of its type; NULL without patience */
} sherd__training_best;

struct sherd_training {
    sherd_train_options o;  /* with defaults; after sherd_training_new without what belongs to the
                               caller, callbacks excepted */
    sherd_collective among; /* sum NULL: this is the only process */
    sherd_recipe *recipe;
    uint8_t seed[32];   /* parameters, order, held-out and generated examples derive from it */
    uint8_t secret[32]; /* permutations derive from it; the seed, unless that can be guessed */
    bool seed_known;    /* the seed derives from seed_number */
    uint64_t seed_number;
    sherd_data *data;
    sherd__trainer *trainer;
    sherd_model *model; /* of the trainer's network */
    bool given;         /* data are from a file or arrays, not from the recipe's own source */
    bool labels;        /* targets are labels: there is an accuracy */
    bool foretold;      /* a long duration was reported, or need not be */
    uint64_t first_step;

    sherd__network_products products;
    sherd__training_secure secure;
    sherd__training_allreduce allreduce;
    sherd__training_check *check; /* NULL: not requested */
    sherd__training_keep *keep;   /* checkpoints; NULL: not requested */
    sherd__training_meta *meta;   /* metadata; NULL: not requested */
    sherd__training_best best;

    /* the run */
    bool ran;
    sherd_cluster *cluster; /* NULL: local training, or not running */
    sherd_hooks outer;      /* the caller's, or else, in a run, those of the cluster */
    sherd__hooked hooked;
    sherd__stepper stepper;
    double began, deadline; /* sherd__clock_s; deadline: INFINITY without one */
    int stopped;            /* set between steps: SHERD_EINTERRUPTED, SHERD_ETIMEOUT, another
                               failure */
    sherd_diag stopped_by;  /* its message; else empty */

    /* figures */
    sherd__gradients_stats stats;
    sherd__training_pace pace;              /* set at the end */
    sherd__network_traffic before, traffic; /* at the start; at the end */
    double seconds;                         /* set at the end */
    uint64_t examples;                      /* of the steps of this run */
    double first_cost;                      /* of this run's first step; NAN: none yet */
    double reported_at;                     /* time of the last reported epoch, ... */
    uint64_t reported_examples;             /* ... and `examples` at that time */
    sherd_epoch *epochs;                    /* reported ones, by earlier runs too */
    size_t epochs_len, epochs_cap;
};

/** Sets the seed to the one that derives from a number. */
void sherd__training_seed(sherd_training *t, uint64_t number);
/** Returns whether this process is the only one, or the one that writes files and messages. */
bool sherd__training_first(const sherd_training *t);
/** Passes a message for people to the hook, in the first process. */
void sherd__training_log(const sherd_training *t, sherd_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- options.c ------------------------------------------------------------------------------- */

/** Copies options, sets defaults and checks their combination. The recipe and `given` are set.
 *  SHERD_EINVAL, SHERD_EUNSUPPORTED. */
int sherd__training_options(sherd_training *t, const sherd_train_options *opt,
                            sherd_diag *d) SHERD_MUST;

/* ---- estimate.c ------------------------------------------------------------------------------ */

/** Compares the least memory that this process and its peers on this host need with the memory
 *  available. examples: 0 before the data are loaded. *width: outputs of the network. SHERD_ENOMEM;
 *  errors of sherd__recipe_size. */
int sherd__training_measure(const sherd_training *t, size_t examples, size_t *width,
                            sherd_diag *d) SHERD_MUST;
/** Before the first step: warns if training takes more than a day at the speed of products on this
 *  machine. Takes about 20 ms for any network. */
void sherd__training_foretell(sherd_training *t);
/** Returns the predicted seconds of the products of one step on this machine, in one process; 0:
 *  not known. Takes about 20 ms. */
double sherd__training_step_here(const sherd_training *t);
/** Returns the number of steps that are left. */
uint64_t sherd__training_steps_left(const sherd_training *t);
/** After each step: gives the same warning by the speed of the first steps, which includes the
 *  transfer to nodes. */
void sherd__training_warn_slow(sherd_training *t);

/* ---- pace.c ---------------------------------------------------------------------------------- */

/** Before the first step over nodes: warns if a step is predicted to take several times as long as
 *  on this machine, and the training some seconds more. Links to other machines are measured for
 *  that (sherd_forecast_probe), except if their traffic is recorded: then nothing is predicted. */
void sherd__training_compare_pace(const sherd_training *t);

/* ---- gradients.c ----------------------------------------------------------------------------- */

/** Checks the number of nodes, threads or peers against the examples of a step. SHERD_EINVAL. */
int sherd__training_suits(const sherd_training *t, sherd_diag *d) SHERD_MUST;
/** Makes the stepper by gradients. */
int sherd__training_gradients_open(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** Makes the same stepper for the comparison, in one thread of this process. */
int sherd__training_gradients_beside(const sherd_training *t, sherd__trainer *trainer,
                                     sherd__stepper *out, sherd_diag *d) SHERD_MUST;
/** Returns the number of threads of this process that compute gradients; may be 0. */
uint32_t sherd__training_threads(const sherd_training *t);
/** Writes the settings that determine the bits of the result: "gradients of 8 shards, fixed point
 *  of 17 bits". */
void sherd__training_gradients_name(const sherd_training *t, char *out, size_t size);

/* ---- secure.c -------------------------------------------------------------------------------- */

/** Sets a placeholder in place of data; with `simulate`, loads the data that are partitioned among
 *  the nodes. */
int sherd__training_secure_data(sherd_training *t, const sherd_data_source *from, size_t width,
                                sherd_diag *d) SHERD_MUST;
/** Makes the trainer. Checkpoints are open. */
int sherd__training_secure_trainer(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** Makes the stepper. Errors of sherd__secure_open. */
int sherd__training_secure_open(sherd_training *t, const sherd__gradients_options *g,
                                sherd_diag *d) SHERD_MUST;
/** Writes the settings that determine the bits of the result. */
void sherd__training_secure_name(const sherd_training *t, char *out, size_t size);
/** Returns the privacy cost so far; NAN: there is no bound. */
double sherd__training_epsilon(const sherd_training *t);
void sherd__training_secure_close(sherd_training *t);

/* ---- allreduce.c ----------------------------------------------------------------------------- */

/** Makes the stepper. Errors of sherd__allreduce_open. */
int sherd__training_allreduce_open(sherd_training *t, const sherd__gradients_options *g,
                                   sherd_diag *d) SHERD_MUST;
/** Returns the slowest node so far, during the run. */
sherd__slowest sherd__training_allreduce_slowest(sherd_training *t);
/** Stores the statistics of the run, before its stepper is freed. */
void sherd__training_allreduce_end(sherd_training *t);

/* ---- check.c --------------------------------------------------------------------------------- */

/** Makes reference trainers that start from the current parameters of t->trainer: a local one with
 *  the same specification, and a local one in float64. */
int sherd__training_check_new(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** Advances them to the epoch's step and compares every parameter: SHERD_EDIFFERS names the first
 *  that differs. With report, also measures the validation of the float64 trainer. */
int sherd__training_check_epoch(sherd_training *t, const sherd__train_epoch *e, bool report,
                                sherd_diag *d) SHERD_MUST;
/** Returns float64's accuracies at the last checked epoch; NAN: not requested. */
void sherd__training_check_float64(const sherd_training *t, double *accuracy, double *validation);
/** Returns after how many epochs all parameters were equal. */
uint64_t sherd__training_checked(const sherd_training *t);
/** NULL is allowed. */
void sherd__training_check_free(sherd__training_check *c);

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

/** Opens the folder, if there is one. To resume, t gets the seed of the newest checkpoint. Called
 *  before the data are loaded. SHERD_EINVAL: a folder of another run, and not to resume; errors of
 *  sherd__chain_open. */
int sherd__training_keep_open(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** Loads parameters, optimiser and state from the newest checkpoint, if there is one.
 *  SHERD_EFORMAT:  it belongs to another network, way to train, seed, data or arithmetic. */
int sherd__training_keep_load(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** Writes the first checkpoint of a run, before its first step. A run that ends before the second
 *  one then has its seed and initial parameters. */
int sherd__training_keep_begin(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** A callback of sherd__train_calls; the context is t. */
int sherd__training_keep_add(void *training, const sherd__train_state *s, sherd_diag *d) SHERD_MUST;
/** Returns the list of sums in the folder of checkpoints: empty before the first checkpoint, NULL
 *  without a folder. SHERD_EFORMAT: the list is missing or invalid. */
int sherd__training_keep_sums(sherd_training *t, sherd__sumlist **out, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__training_keep_free(sherd__training_keep *k);
/** Computes a digest of what determines the operands of every step, except for the duration of the
 *  training: recipe, arithmetic, data, seed, and the present parameters. */
int sherd__training_identity(const sherd_training *t, uint8_t out[32], sherd_diag *d) SHERD_MUST;

/* ---- metadata.c ------------------------------------------------------------------------------ */

/** Loads the metadata file, if there is one: finds the operations of a step in it, and sets
 *  t->products. The trainer has its first parameters. Errors of sherd_training_new. */
int sherd__training_meta_open(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** Refuses a file that has served another training. Checkpoints are loaded. SHERD_EEXPOSURE. */
int sherd__training_meta_check(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** Compares what the file exposes to each domain of the cluster with exposure_max, as
 *  sherd__training_meta_open did for each node. Sends nothing. SHERD_EEXPOSURE, SHERD_ENOMEM. */
int sherd__training_meta_domains(sherd_training *t, sherd_cluster *c, sherd_diag *d) SHERD_MUST;
/** Records in the file that it serves this training. Nothing has been sent. Errors as above, and
 *  those of sherd_meta_save. */
int sherd__training_meta_record(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** Returns the digests of the metadata and of the training, 32 bytes each: checkpoints contain
 *  them, and a resumed run sets the second one to theirs. NULL: there are no metadata. */
uint8_t *sherd__training_meta_digests(const sherd_training *t);
/** Sets the members of a report on metadata. */
void sherd__training_meta_report(const sherd_training *t, sherd_train_report *r);
/** NULL is allowed. */
void sherd__training_meta_free(sherd__training_meta *m);

/* ---- history.c ------------------------------------------------------------------------------- */

/** Makes the table of a checkpoint: *len rows of SHERD__HISTORY_COLS numbers. The caller frees it
 *  with sherd__free. SHERD_ENOMEM. */
int sherd__training_history(const sherd_training *t, double **out, size_t *len,
                            sherd_diag *d) SHERD_MUST;
/** Sets the reports of earlier runs from a checkpoint, if it has them. The state of the training is
 *  set. SHERD_EFORMAT. */
int sherd__training_history_take(sherd_training *t, sherd__npz *z, sherd_diag *d) SHERD_MUST;

/* ---- patience.c: each does nothing if the recipe has no patience ----------------------------- */

/** The data and the trainer are set. SHERD_EINVAL: there are no validation data. */
int sherd__training_patience_open(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** Bytes of t->best.params. */
size_t sherd__training_best_bytes(const sherd_training *t);
/** Judges a report, whose parameters are those of the network. Errors of the collective. */
int sherd__training_patience_judge(sherd_training *t, const sherd__train_epoch *e,
                                   sherd_diag *d) SHERD_MUST;
/** A callback of sherd__train_calls; the context is t. Returns whether training should end. */
bool sherd__training_patience_over(void *training);
/** Gives the network the best parameters, at the end of a training. */
void sherd__training_patience_end(sherd_training *t);

/* ---- peers.c: each returns at once in a single process --------------------------------------- */

/** Sets t->seed to that of process 0. */
int sherd__training_share_seed(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** err: this process's result. Returns the first failure among all processes, with its message in
 *  *d. */
int sherd__training_agree(const sherd_training *t, int err, sherd_diag *d) SHERD_MUST;
/** Compares recipe and data (SHERD_EFORMAT names a process that differs) and sets the state of
 *  training to that of process 0. */
int sherd__training_share_start(sherd_training *t, sherd_diag *d) SHERD_MUST;
/** Stops all processes at the same step. Returns the reason of the first that has one (0: none
 *  has), or SHERD_E* with *d filled if they cannot communicate. */
int sherd__training_stop(const sherd_training *t, int why, sherd_diag *d);

/* ---- report.c -------------------------------------------------------------------------------- */

/** Stores the figures of an epoch and returns them. SHERD_ENOMEM. */
int sherd__training_add_epoch(sherd_training *t, const sherd__train_epoch *e,
                              const sherd_epoch **out, sherd_diag *d) SHERD_MUST;
/** Returns the statistics of the stepper by gradients. */
const sherd__gradients_stats *sherd__training_stats(const sherd_training *t);
/** Returns which node takes longest for its gradients, in a training by gradients. */
sherd__training_pace sherd__training_pace_of(sherd_training *t);
/** Returns the traffic of this run so far. */
sherd__network_traffic sherd__training_traffic(const sherd_training *t);

/* ---- record.c -------------------------------------------------------------------------------- */

/** By products over a cluster that is recorded: writes rows.npy if the kept data are in a different
 *  order from the data that were read. SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM. */
int sherd__training_record_rows(const sherd_training *t, sherd_diag *d) SHERD_MUST;

#endif
