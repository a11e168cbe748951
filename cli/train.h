/*
 * `sherd train`, in these files: options and the order of things (train.c), what it takes of memory
 * and time (train_weigh.c), --by gradients
 * (train_gradients.c, train_allreduce.c), what is said, logged and drawn (train_tell.c), the same
 * training here beside it (train_check.c), checkpoints (train_checkpoint.c), what a record needs
 * (train_record.c), and recipes by name (train_recipes.c).
 */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli/cli.h"
#include "cli/data.h"
#include "cli/jsonl.h"
#include "cli/progress.h"
#include "cli/remote_products.h"
#include "learn/collective.h"
#include "learn/train.h"
#include "store/sumlist.h"

/** Figures of one epoch that is told. NAN where there is none. */
typedef struct sherd__told_epoch {
    sherd__train_epoch e;
    double seconds;               /* since training began */
    double examples_per_second;   /* since the epoch told before */
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
    sherd__train_check *check;      /* NULL: not asked for */
    sherd__train_keep *keep;        /* checkpoints; NULL: not asked for */
    sherd__train_by *by;            /* --by gradients; NULL: by products */
    sherd__train_secure *secure;    /* --aggregate secure; NULL: not asked for */
    sherd__train_allreduce *circle; /* --aggregate ring, halving-doubling; likewise */

    sherd__jsonl log; /* --log; its fd -1: none */
    sherd__progress_line progress;
    int stopped;           /* between steps: SHERD_EINTERRUPTED, SHERD_ETIMEOUT, another failure */
    sherd_diag stopped_by; /* ... which says what it is; else empty */
    double began;          /* training itself; sherd__clock_s */
    double seconds;        /* that it took, when it is over: no saving, no drawing */
    uint64_t first_step;   /* that this run made */
    uint64_t examples;     /* of the steps of this run */
    double told_at;        /* when the last epoch was told, and `examples` then */
    uint64_t told_examples;
    sherd__train_epoch last; /* the last complete epoch */
    double first_cost;       /* of the first step of this run, before its update; NAN: none yet */
    bool plotted;            /* --plot was drawn */
    bool foretold;           /* that it takes long was said, or was found not to be so */
    sherd__told_epoch *told; /* one for each epoch that was told */
    size_t told_len, told_cap;
    json_t *result; /* --json: what is told once all else has ended; or NULL */
} sherd__train;

/* ---- recipes (train_recipes.c) --------------------------------------------------------------- */

/** A recipe by its name or from a file. SHERD_EOPEN (the nearest name is given), SHERD_EFORMAT. */
int sherd__train_recipe(sherd__recipe *out, const char *name, sherd_diag *d) SHERD_MUST;
/** Name i of those that are built in, or NULL behind the last. */
const char *sherd__train_recipe_name(size_t i);
/** Whether that name is a recipe that comes with sherd, and so no file. */
bool sherd__train_recipe_comes(const char *name);

/* ---- --by gradients (train_gradients.c) ------------------------------------------------------ */

/** Judges what was asked for (cli/applies.h), before any option is read. SHERD_EINVAL: options
 *  without effect, or that do not go together. */
int sherd__train_by_judge(sherd__cli *cli, sherd_diag *d) SHERD_MUST;
/** Reads its options, after sherd__remote_products_read; t->by stays NULL by products. */
int sherd__train_by_read(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Before any node is started: SHERD_EINVAL where there are more nodes than a step has examples,
 *  or none are named. */
int sherd__train_by_suits(const sherd__train *t, sherd_diag *d) SHERD_MUST;
/** The stepper, and the trace; the cluster is open. */
int sherd__train_by_open(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** The same stepper for --check, in one thread here. */
int sherd__train_by_beside(const sherd__train *t, sherd__trainer *trainer, sherd__stepper *out,
                           sherd_diag *d) SHERD_MUST;
/** Threads of this process that make gradients; 0: none. */
uint32_t sherd__train_by_threads(const sherd__train *t);
/** What decides its bits: "gradients of 8 shards, fixed point of 17 bits". */
void sherd__train_by_name(const sherd__train *t, char *out, size_t size);
void sherd__train_by_print(const sherd__train *t);
json_t *sherd__train_by_json(const sherd__train *t);
/** Ends the trace; err, or what that met. */
int sherd__train_by_end(sherd__train *t, int err, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__train_by_free(sherd__train_by *b);

/* ---- --aggregate secure (train_secure.c) ----------------------------------------------------- */

/** Of sherd__train_by_judge: what it needs and what it cannot do. SHERD_EINVAL. */
int sherd__train_secure_judge(sherd__cli *cli, sherd_diag *d) SHERD_MUST;
/** Reads its options, by gradients; t->secure stays NULL otherwise. SHERD_EINVAL. */
int sherd__train_secure_read(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** In place of data: a stand-in, and with --simulate what is dealt. */
int sherd__train_secure_data(sherd__train *t, size_t width, sherd_diag *d) SHERD_MUST;
/** Checkpoints are open (sherd__train_keep_open). */
int sherd__train_secure_trainer(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** The stepper; the cluster is open. Errors of sherd__secure_open. */
int sherd__train_secure_open(sherd__train *t, const sherd__gradients_options *g,
                             sherd_diag *d) SHERD_MUST;
json_t *sherd__train_secure_json(const sherd__train *t);
void sherd__train_secure_print(const sherd__train *t);
/** What decides the bits of its result, for checkpoints. */
void sherd__train_secure_arithmetic(const sherd__train *t, char *out, size_t size);

/** What training cost an example's privacy so far (crypto/privacy.h). */
typedef struct sherd__train_privacy {
    double epsilon, delta; /* NAN: there is no bound, or nothing secure was trained */
    uint64_t rounds;
} sherd__train_privacy;
sherd__train_privacy sherd__train_secure_privacy(const sherd__train *t);
/** NULL is allowed. */
void sherd__train_secure_free(sherd__train_secure *s);

/* ---- --aggregate ring, halving-doubling (train_allreduce.c)
 * ------------------------------------- */

/** Of sherd__train_by_judge: what it cannot do. SHERD_EINVAL. */
int sherd__train_allreduce_judge(sherd__cli *cli, sherd_diag *d) SHERD_MUST;
/** Reads its options, by gradients; t->circle stays NULL otherwise. SHERD_ENOMEM. */
int sherd__train_allreduce_read(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** The stepper; the cluster is open. Errors of sherd__allreduce_open. */
int sherd__train_allreduce_open(sherd__train *t, const sherd__gradients_options *g, bool allow_drop,
                                sherd_diag *d) SHERD_MUST;
/** Goes on with a line that has begun. */
void sherd__train_allreduce_print(const sherd__train *t);
json_t *sherd__train_allreduce_json(const sherd__train *t);
/** Bytes on the links of each node so far. */
json_t *sherd__train_allreduce_links(const sherd__train *t);
/** NULL is allowed. */
void sherd__train_allreduce_free(sherd__train_allreduce *c);

/* ---- what it takes (train_weigh.c) ----------------------------------------------------------- */

/** Compares what this process and its equals on this host need at least with the memory that is
 *  there; examples: 0 before the data are read. *width: outputs of the network. SHERD_ENOMEM;
 *  errors of sherd__network_weigh. */
int sherd__train_weigh(const sherd__train *t, size_t examples, size_t *width,
                       sherd_diag *d) SHERD_MUST;
/** Before the first step: warns where the pace of products here makes it more than a day. Takes
 *  some 20 ms, whatever the network. */
void sherd__train_foretell(sherd__train *t);
/** After each step: the same by the pace of the first ones, which the way to nodes is part of. */
void sherd__train_pace(sherd__train *t);

/* ---- records (train_record.c) ---------------------------------------------------------------- */

/** By products, with --record: writes DIR/rows.npy where the kept data are not in the order of the
 *  data that were read. The cluster is open. SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM. */
int sherd__train_record_rows(const sherd__train *t, sherd_diag *d) SHERD_MUST;

/* ---- words (train_tell.c) -------------------------------------------------------------------- */

/** Opens --log, new or behind what a run that is resumed has told, and writes a first line.
 *  SHERD_EOPEN, SHERD_EIO. */
int sherd__train_log_open(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** What is about to happen, on stderr. */
void sherd__train_say_start(const sherd__train *t);
/** After each step: the progress line. */
void sherd__train_progress(sherd__train *t);
/** An epoch that is told: remembered, and one line in the log. */
int sherd__train_tell_epoch(sherd__train *t, const sherd__train_epoch *e, sherd_diag *d) SHERD_MUST;
/** The last line of the log, then the table, or with --json t->result. err is how training ended;
 *  returns it, or what telling met. */
int sherd__train_tell_end(sherd__train *t, int err, sherd_diag *d) SHERD_MUST;
void sherd__train_tell_fini(sherd__train *t);

/* ---- --check (train_check.c) ----------------------------------------------------------------- */

/** Trainers beside t->trainer, from its parameters as they are now: one here by the same
 *  specification, one here in float64. */
int sherd__train_check_new(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** Brings them to t's step and compares every parameter: SHERD_EDIFFERS names the first that
 *  differs. With report, the float64 one's validation is measured too. */
int sherd__train_check_epoch(sherd__train *t, const sherd__train_epoch *e, bool report,
                             sherd_diag *d) SHERD_MUST;
/** float64's accuracies at the last epoch that was checked; NAN without --check. */
void sherd__train_check_float64(const sherd__train *t, double *accuracy, double *validation);
/** How many parameters were compared, in how many epochs. */
void sherd__train_check_count(const sherd__train *t, uint64_t *parameters, uint64_t *epochs);
void sherd__train_check_free(sherd__train_check *c);

/* ---- --plot (train_plot.c) ------------------------------------------------------------------- */

/** Draws --plot, if asked for, after training that ended with err: if that is a failure, of the
 *  epochs that were told before it, if any. Returns err, or what drawing met. */
int sherd__train_plot(sherd__train *t, int err, sherd_diag *d) SHERD_MUST;

/* ---- checkpoints (train_checkpoint.c) -------------------------------------------------------- */

/** Opens the folder of --checkpoint; with --resume the newest checkpoint's seed becomes t's. Before
 *  the data are loaded. SHERD_EINVAL: options that need a folder, a folder of another run without
 *  --resume; errors of sherd__chain_open. */
int sherd__train_keep_open(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** With --resume: parameters, optimiser and state as the newest checkpoint has them. SHERD_EFORMAT:
 *  one of another network, way to train, seed, data or arithmetic. */
int sherd__train_keep_load(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** The first checkpoint of a run, before its first step: a run that ends before the second one has
 *  its seed and initial weights. */
int sherd__train_keep_begin(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** For sherd__train_calls; the context is t. */
int sherd__train_keep_add(void *train, const sherd__train_state *s, sherd_diag *d) SHERD_MUST;
/** The list of sums beside them, empty where there is no checkpoint yet; NULL without a folder.
 *  SHERD_EFORMAT: it is missing, or none. */
int sherd__train_keep_sums(sherd__train *t, sherd__sumlist **out, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__train_keep_free(sherd__train_keep *k);

/* ---- among equals (train_together.c) --------------------------------------------------------- */

/** Said before the command begins: this process is one of several that run it. Borrowed. */
void sherd__train_among(const sherd__collective *c);
/** What was said; NULL: this process is alone. */
const sherd__collective *sherd__train_others(void);
/** Alone, or process 0: what is written and kept is its. */
bool sherd__train_is_first(void);
/** Options for what process 0 alone writes, says or goes on from are forgotten by the others. */
void sherd__train_leave_to_first(sherd__cli *cli);
/** t->seed is process 0's. Alone: nothing is done, here and below. */
int sherd__train_share_seed(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** err becomes the first failure among all, and *d its words; process 0 says them. */
int sherd__train_judge_together(const sherd__train *t, int err, sherd_diag *d) SHERD_MUST;
/** Recipe and data are compared (SHERD_EFORMAT: whose are others), the state of training is process
 *  0's. */
int sherd__train_share_start(sherd__train *t, sherd_diag *d) SHERD_MUST;
/** All of them stop at the same step: the reason of the first who has one (0: nobody has), or
 *  SHERD_E*, with *d filled in, where they cannot ask each other. */
int sherd__train_stop_together(int why, sherd_diag *d);

#endif
