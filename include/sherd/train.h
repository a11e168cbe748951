/*
 * Trainings: a network is trained by a recipe on a data set, on this machine or over nodes.
 *
 *     err = sherd_recipe_load(&recipe, "spiral", &d);
 *     sherd_train_options o = { .size = sizeof o, .on_epoch = show };
 *     if (!err) err = sherd_training_new(&t, recipe, NULL, &o, &d);
 *     if (!err) err = sherd_training_run(t, NULL, &d);
 *     if (!err) err = sherd_model_save(sherd_training_model(t), "model.npz", &d);
 *     sherd_training_free(t);
 *
 * There are two ways to train. By products, the network stays in this process, and nodes compute
 * its products under a scheme. By gradients, nodes (or threads) have examples and parameters in
 * clear and compute gradients. In fixed point, recipe, data and seed determine every bit of the
 * result; the number of nodes and threads, and lost nodes, do not change it.
 *
 * A training is used by one thread at a time. From on_epoch and from the progress hook, the
 * functions that read a training (sherd_training_report_get to sherd_training_data) may be called.
 */
#ifndef SHERD_TRAIN_H
#define SHERD_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/cluster.h"
#include "sherd/collective.h"
#include "sherd/data.h"
#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"
#include "sherd/model.h"
#include "sherd/product.h"
#include "sherd/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHERD_TRAIN_SHARDS_MAX 4096u
#define SHERD_TRAIN_NOISE_MAX 500.0
#define SHERD_TRAIN_CONFUSION_MAX 1024u
#define SHERD_TRAIN_CONFUSION_ROWS 10000u
/** Numbers up to this one are exact in JSON. */
#define SHERD_TRAIN_SEED_MAX UINT64_C(9007199254740991)

typedef enum sherd_train_by {
    SHERD_BY_PRODUCTS, /* the network stays here; products go to the nodes */
    SHERD_BY_GRADIENTS /* nodes have examples and parameters in clear, and compute gradients */
} sherd_train_by;

/** By gradients: who adds them up. */
typedef enum sherd_aggregate {
    SHERD_AGGREGATE_PLAIN,           /* this process */
    SHERD_AGGREGATE_SECURE,          /* nodes have their own data; this process sees sums only */
    SHERD_AGGREGATE_RING,            /* nodes among themselves */
    SHERD_AGGREGATE_HALVING_DOUBLING /* likewise */
} sherd_aggregate;

/** Figures of a report. By the recipe's report_every there is one after every so many epochs, about
 *  the last of them, or after every so many steps, about these steps; and one at the end. NAN:
 *  there is no such figure. Made by the library, which may add members at the end. */
typedef struct sherd_epoch {
    uint64_t epoch;        /* the epoch of the last step, from 1. An epoch is a pass over all
                              examples, of steps_per_epoch steps (sherd_train_report) */
    uint64_t step;         /* steps made */
    double loss, accuracy; /* mean over these steps or the epoch's, each before its update;
                              accuracy: fraction of correct labels */
    double validation_loss, validation_accuracy;          /* after its last step */
    double float64_accuracy, float64_validation_accuracy; /* check: of the training in float64 */
    double rate;                                          /* of its last step */
    double epsilon, delta;        /* secure, with noise: privacy cost so far of one example */
    double seconds;               /* since sherd_training_run began; NAN: a report of an earlier
                                     run */
    double examples_per_second;   /* since the last report */
    uint32_t nodes;               /* that are up */
    uint64_t bytes_out, bytes_in; /* of this run so far, to and from nodes */
} sherd_epoch;

/** By gradients over nodes: times of one pass of a node, as its answer reports them, in seconds
 *  since it got its first task. */
typedef struct sherd_train_pass {
    uint64_t version; /* of the parameters: number of updates made before */
    const char *node;
    uint32_t shards;
    double asked, answered; /* sent and answered, in seconds since the training began, here */
    double forward;         /* the pass started */
    double last_params;     /* the last parameters arrived */
    double top_left;        /* the top layer's gradient was passed to the connection */
    double lowest_backward; /* the lowest layer's backward pass started (of the last shard) */
    double computed;        /* the pass ended */
} sherd_train_pass;

/** By gradients: one update of the parameters. */
typedef struct sherd_train_update {
    uint64_t version;   /* of the parameters before it: updates made so far */
    uint64_t staleness; /* of the oldest part in it; synchronous: 0 */
    uint32_t by;        /* number of the node or thread that computed that part */
    uint32_t parts, dropped;
    uint64_t examples; /* in the update */
} sherd_train_update;

/** Zero-initialise, set size, then set what differs. Strings and pointers are read by
 *  sherd_training_new, except for the hooks, the callbacks and their contexts. */
typedef struct sherd_train_options {
    size_t size;         /* sizeof(sherd_train_options) */
    sherd_hooks hooks;   /* progress counts the steps of the whole training, those of earlier runs
                            included; all NULL: those of the cluster */
    const uint8_t *seed; /* 32 bytes from which parameters, order, permutations and held-out
                            examples derive; NULL: seed_number, or fresh, or that of the newest
                            checkpoint */
    uint32_t timeout_ms; /* time limit of sherd_training_run: SHERD_ETIMEOUT after the step in
                            progress; 0: no limit */
    uint32_t nodes;      /* size of the cluster that sherd_training_run will be given; 0: none */
    sherd_train_by by;
    bool check; /* also make the same training in this process, and compare every parameter after
                   each epoch, bit for bit (SHERD_EDIFFERS). Needs nodes and fixed point */
    const sherd_model *initial; /* initial parameters, of the shapes of the recipe's network; NULL:
                                   drawn from the seed */

    /* by products */
    const sherd_product_options *products; /* scheme, exact, bits, ...; without hooks, those above
                                              are used; seed and operation are not used. NULL:
                                              floats, permute over nodes. The schemes share1 and
                                              blind are refused, since the parameters would be sent
                                              in clear. Without nodes only exact and bits have an
                                              effect */
    bool stochastic;           /* fixed point: round operands up or down at random, so that the mean
                                  is exact; false: round to nearest */
    bool elementwise_at_nodes; /* nodes compute sigmoid, tanh and ReLU too; not in private
                                  schemes */

    /* by gradients */
    sherd_aggregate aggregate;
    uint32_t shards;        /* number of parts of a batch, for any number of nodes, at most
                               SHERD_TRAIN_SHARDS_MAX; 0: 8 */
    uint32_t bits;          /* width of fixed point, 2..26; 0: 17 */
    bool floats;            /* float64 instead of fixed point; the bits depend on the nodes */
    bool async;             /* apply each gradient when it arrives, without waiting for the
                               others */
    bool staleness_bounded; /* async: a gradient may miss at most staleness_max updates; false: any
                               number */
    uint64_t staleness_max;
    uint64_t local_steps; /* number of steps that every shard makes on its own between two averages
                             of parameters; 0: none, shards give gradients */
    uint64_t local_batch; /* local_steps: examples of one local step; 0: all of the shard */
    bool weighted;        /* local_steps: averages are weighted by how many steps a shard made */
    bool allow_drop;      /* drop the work of a lost node instead of giving it to another node */
    uint32_t threads;     /* without nodes: threads of this process; 0: one for each processor */
    const sherd_collective *among; /* processes that train as peers, without nodes; NULL: none.
                                      Recipe, data and options must be the same in all of them;
                                      seed, initial and checkpoints are those of process 0 */
    void (*on_pass)(void *ctx, const sherd_train_pass *p);     /* NULL: not called */
    void (*on_update)(void *ctx, const sherd_train_update *u); /* NULL: not called */

    /* SHERD_AGGREGATE_SECURE (docs/THREATS.md states who learns what) */
    uint32_t colluding; /* number of nodes that may combine what they see with the coordinator;
                           0: 1 */
    uint32_t survivors; /* number of nodes that must remain to open a sum, 3 or more; 0: the
                           smallest safe number */
    uint64_t examples;  /* number of places of each node that an epoch covers, the same for all
                           nodes. Must be set unless `simulate` is */
    double clip;        /* scale each example's gradient down to this norm; 0: no clipping */
    double noise;       /* nodes add noise of this many times what one example can change, at most
                           SHERD_TRAIN_NOISE_MAX; 0: none. Needs clip */
    double delta;       /* the probability at which epsilon is reported; 0: 1e-6 */
    bool simulate;      /* give the nodes this process's data, which hides nothing */

    /* checkpoints */
    const char *checkpoints;   /* folder of the checkpoints, mode 0700; NULL: none are written. A
                                  checkpoint is also a model. It contains the seed and gradients */
    uint64_t checkpoint_every; /* steps between two checkpoints; 0: as many as between two
                                  reports */
    uint64_t checkpoint_keep;  /* keep only this number of the newest checkpoints; 0: keep all */
    bool resume;               /* continue from the newest checkpoint, with the bits of a training
                                  that was not interrupted; without a checkpoint, start from the
                                  first step */
    /** Called before a checkpoint is written (writes true), and after it. A program that is asked
     *  to end should wait in between. NULL: not called. */
    void (*on_checkpoint)(void *ctx, bool writes);

    /** Called after each report. Returns 0, or a SHERD_E* error that ends the training; *d
     *  may receive a message. NULL: not called. */
    int (*on_epoch)(void *ctx, const sherd_epoch *e, sherd_diag *d);
    bool epoch_model; /* on_epoch uses the model. If nodes hold the parameters (ring,
                         halving-doubling), they are then sent here after every epoch; otherwise the
                         model may be that of an earlier step */
    void *ctx;        /* context of all callbacks except the hooks */

    /* by products over nodes, with the scheme SHERD_PERMUTE: metadata */
    const char *meta; /* metadata file (sherd_meta_add_recipe) from which exposures and permutations
                         of all products are taken; NULL: they are drawn. The file is bound to this
                         training, before anything is sent */
    unsigned meta_settings; /* SHERD_META_...: settings of `products` that must agree with the file
                               even if they are 0; otherwise 0 means as in the file */
    bool meta_reuse;        /* accept a file that has served another training */

    const uint64_t *seed_number; /* a number, at most SHERD_TRAIN_SEED_MAX, from which parameters,
                                    order and held-out examples derive. Permutations do not, since
                                    it can be guessed: they are fresh. Only without `seed` */
} sherd_train_options;

typedef struct sherd_training sherd_training;

/**
 * Makes a training and finds everything wrong with it that needs no nodes: options that exclude
 * each other, too little memory (before anything large is allocated), data, layers that do not fit,
 * a folder of checkpoints of another training. A warning in the log says if the training is
 * expected to take more than a day. data NULL: the source that the recipe names; arrays are
 * borrowed until sherd_training_free. The recipe is copied. The caller frees *out with
 * sherd_training_free; it is NULL on failure.
 *
 * Errors: SHERD_EINVAL, SHERD_ENOMEM; those of sherd_data_load; SHERD_EFORMAT (layers that do not
 * fit, or checkpoints of another network, data, seed, arithmetic or metadata); SHERD_ECHAIN,
 * SHERD_EBUSY and SHERD_EINVAL of the folder of checkpoints; SHERD_EINTERRUPTED. Of a metadata
 * file: those of sherd_meta_load; SHERD_ESHAPE (an operation of another shape, another number of
 * nodes); SHERD_EFORMAT (an operation is missing); SHERD_EUNSUPPORTED (the file has no seed, or
 * shuffles rows); SHERD_EEXPOSURE (it has served another training, or exceeds exposure_max).
 */
SHERD_API int sherd_training_new(sherd_training **out, const sherd_recipe *r,
                                 const sherd_data_source *data, const sherd_train_options *opt,
                                 sherd_diag *d) SHERD_MUST;
/**
 * Trains, once, from the first step or the newest checkpoint to the end, or, if the recipe has
 * `patience`, until that many reports in a row had no lower loss of validation; the model then has
 * the parameters of the report with the lowest one. c: a cluster of
 * sherd_train_options.nodes nodes, which does no other work meanwhile; NULL: here. If the cluster
 * is recorded and nodes are sent the examples in another order, rows.npy in the folder of the
 * record has that order. Interruption is asked for between steps, and within steps over nodes.
 *
 * Errors: SHERD_EINTERRUPTED, or SHERD_ESTOPPED if a checkpoint was written from which to resume;
 * SHERD_ETIMEOUT; SHERD_ERANGE (it diverged; the message names the step); SHERD_EDIFFERS;
 * SHERD_EFEWNODES and other errors of nodes; SHERD_EIO (a checkpoint); those of on_epoch. The model
 * then has the parameters of the last complete step, except after SHERD_ERANGE. SHERD_EEXPOSURE:
 * metadata give a domain more than exposure_max; nothing was sent, and the training may be run over
 * another cluster. Who learns it: by
 * products, what the scheme leaves open (docs/THREATS.md); by gradients, nodes see examples and
 * parameters; with secure aggregation, sums are seen here, and parameters by nodes.
 */
SHERD_API int sherd_training_run(sherd_training *t, sherd_cluster *c, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
SHERD_API void sherd_training_free(sherd_training *t);

/* ---- results, at any time -------------------------------------------------------------------- */

typedef struct sherd_train_report {
    size_t size;           /* sizeof(sherd_train_report), set by the caller */
    const char *by;        /* "products", "gradients", "circle" (ring, halving-doubling) or "summed"
                              (secure) */
    uint32_t nodes;        /* nodes of the cluster; 0: trained here */
    uint32_t nodes_up;     /* nodes that are up now, or were at the end of sherd_training_run */
    const char *among;     /* name of the collective; NULL: none */
    uint32_t processes;    /* processes of the collective; otherwise 0 */
    const char *scheme;    /* scheme of the products, if nodes compute them; otherwise NULL */
    uint32_t bits;         /* width of fixed point; 0: floats */
    uint64_t parameters;   /* number of parameters of the network */
    uint64_t batch;        /* number of examples of a step */
    uint64_t step;         /* number of steps made, also by earlier runs */
    uint64_t first_step;   /* the step at which this run began; above 0: resumed */
    uint64_t steps;        /* number of steps of the whole training */
    uint64_t epochs;       /* number of epochs of the whole training */
    double loss, accuracy; /* mean over the current epoch so far, or over the last one; NAN before
                              the first step, and accuracy without labels */
    uint64_t examples;     /* number of examples of this run's steps, repetitions included */
    double seconds;        /* duration of the training so far */
    double examples_per_second;
    uint64_t bytes_out, bytes_in; /* bytes sent to and received from nodes */
    uint64_t epochs_checked;      /* check: number of epochs after which all parameters were
                                     equal */
    const char *sees;             /* which party sees which data, in one sentence without full
                                     stop */
    const char *meta;             /* metadata file of the products, or NULL */
    bool meta_reused;             /* it had served another training */
    bool seed_known;           /* seed_number makes parameters, order and held-out examples again. A
                             number is drawn if no seed is given, unless permutations derive from
                             the seed; false: a seed of 32 bytes, which is a secret, was used */
    uint64_t seed_number;      /* if seed_known */
    uint64_t steps_per_epoch;  /* number of steps of an epoch, a pass over all examples (secure:
                                     over all places) */
    uint64_t steps_per_report; /* number of steps between two reports */
    bool stopped_early;        /* `patience` reports in a row had no lower loss of validation */
    uint64_t best_step;        /* patience: the step of the report with the lowest loss of
                                     validation, whose parameters the model has at the end; 0: no
                                     such report, or no patience */
    double best_loss, best_accuracy; /* of validation at that report; NAN without one */
} sherd_train_report;

/** By gradients, except for secure aggregation. */
typedef struct sherd_train_gradients {
    size_t size;     /* sizeof(sherd_train_gradients), set by the caller */
    uint32_t shards; /* number of parts of a batch */
    bool async;
    bool in_process; /* threads of this process computed the gradients */
    uint32_t threads;
    uint64_t local_steps;
    uint64_t updates; /* number of updates of the parameters */
    uint64_t parts;   /* number of gradients that nodes or threads computed */
    double staleness_mean;
    uint64_t staleness_most;
    uint64_t dropped;   /* number of parts of lost nodes that did not count */
    uint64_t rescaled;  /* number of steps that were computed again with a coarser scale */
    char pace_node[64]; /* node that takes longest for a shard, if clearly longer than the others;
                           "": none, or asynchronous */
    double pace_times;  /* how many times as long as the others (median); 0: no such node */
} sherd_train_gradients;

/** SHERD_AGGREGATE_RING, SHERD_AGGREGATE_HALVING_DOUBLING; bytes as the nodes report them. */
typedef struct sherd_train_allreduce {
    size_t size;                            /* sizeof(sherd_train_allreduce), set by the caller */
    const char *by;                         /* "ring" or "halving-doubling" */
    uint32_t members;                       /* number of nodes that take part now */
    uint64_t rounds;                        /* number of complete rounds */
    uint64_t repeated;                      /* number of rounds that were repeated */
    uint64_t link_bytes_out, link_bytes_in; /* bytes sent and received on links between nodes */
    uint64_t examples_bytes;                /* bytes of examples sent to nodes */
} sherd_train_allreduce;

/** The same: links that one node opened to others. */
typedef struct sherd_train_link {
    size_t size; /* sizeof(sherd_train_link), set by the caller */
    char node[64];
    uint64_t bytes_out, bytes_in; /* bytes sent and received by the node on these links */
    uint64_t blocks_in;           /* bytes of blocks that other nodes sent it */
} sherd_train_link;

/** SHERD_AGGREGATE_SECURE. */
typedef struct sherd_train_secure {
    size_t size; /* sizeof(sherd_train_secure), set by the caller */
    bool simulated;
    uint32_t colluding;
    uint64_t updates;  /* number of updates of the parameters */
    uint64_t parts;    /* sum over all rounds of the number of nodes in the sum */
    uint64_t dropped;  /* sum over all rounds of the number of nodes that were not in the sum */
    uint64_t rescaled; /* number of steps that were computed again with a coarser scale */
    uint64_t rounds;   /* number of rounds that examples took part in, earlier runs included */
    uint64_t rows;     /* places of each node in a round */
    uint64_t places;   /* places of each node in an epoch */
    double clip, noise;
    double epsilon; /* privacy cost so far of an example that is present or not; NAN: no bound */
    double delta;
} sherd_train_secure;

/** With a metadata file: what nodes were shown of the operands of one operation of a step.
 *  Fractions are the largest of all steps of this run, and include work that was taken over from
 *  other nodes. Data that stay at the nodes are B of their operations, and their fraction adds up
 *  all operations that use them. A node's fractions are those of its domain. */
typedef struct sherd_train_exposure {
    size_t size; /* sizeof(sherd_train_exposure), set by the caller */
    char operation[SHERD_META_NAME_SIZE];
    sherd_op kind;
    uint32_t node;
    uint64_t calls;              /* number of times that nodes computed the operation */
    double exposed_a, exposed_b; /* fraction of each operand's entries */
} sherd_train_exposure;

SHERD_API int sherd_training_report_get(sherd_training *t, sherd_train_report *out,
                                        sherd_diag *d) SHERD_MUST;
/** Fill *out with the details of one way to train. SHERD_EINVAL: this training uses another way. */
SHERD_API int sherd_training_gradients_get(sherd_training *t, sherd_train_gradients *out,
                                           sherd_diag *d) SHERD_MUST;
SHERD_API int sherd_training_allreduce_get(sherd_training *t, sherd_train_allreduce *out,
                                           sherd_diag *d) SHERD_MUST;
SHERD_API int sherd_training_link_at(sherd_training *t, uint32_t node, sherd_train_link *out,
                                     sherd_diag *d) SHERD_MUST;
SHERD_API int sherd_training_secure_get(sherd_training *t, sherd_train_secure *out,
                                        sherd_diag *d) SHERD_MUST;
/** Fills *out with the exposures of operation `operation` of the step, counted from 0 in the order
 *  of a step, at a node. SHERD_EINVAL: there is no such operation or node, or no metadata. */
SHERD_API int sherd_training_exposure_at(sherd_training *t, uint32_t operation, uint32_t node,
                                         sherd_train_exposure *out, sherd_diag *d) SHERD_MUST;
/** Returns the i-th report; NULL after the last. Valid until the next report. The first ones are
 *  those of earlier runs, up to 501 of them, if checkpoints were resumed. */
SHERD_API const sherd_epoch *sherd_training_epoch_at(const sherd_training *t, size_t i);
/**
 * Counts how examples are classified by the current parameters: counts[i * outputs + j] is the
 * number of those with label i whose largest output is j; outputs is sherd_model_outputs. Of the
 * validation data, all of them; without, of the first SHERD_TRAIN_CONFUSION_ROWS training examples.
 * *part says which; it may be NULL. After sherd_training_run; computed on this machine, in the
 * arithmetic of the training.
 *
 * Errors: SHERD_EUNSUPPORTED (no labels, no examples in this process, or more than
 * SHERD_TRAIN_CONFUSION_MAX outputs); SHERD_ENOMEM. counts is unchanged then.
 */
SHERD_API int sherd_training_confusion(sherd_training *t, uint64_t *counts, sherd_data_part *part,
                                       sherd_diag *d) SHERD_MUST;
/** Returns the model, with its current parameters. It belongs to the training. */
SHERD_API sherd_model *sherd_training_model(sherd_training *t);
/** Returns the data, which belong to the training. */
SHERD_API const sherd_data *sherd_training_data(const sherd_training *t);

SHERD_API const sherd_field *sherd_epoch_fields(size_t *count);
SHERD_API const sherd_field *sherd_train_pass_fields(size_t *count);
SHERD_API const sherd_field *sherd_train_update_fields(size_t *count);
SHERD_API const sherd_field *sherd_train_report_fields(size_t *count);
SHERD_API const sherd_field *sherd_train_gradients_fields(size_t *count);
SHERD_API const sherd_field *sherd_train_allreduce_fields(size_t *count);
SHERD_API const sherd_field *sherd_train_link_fields(size_t *count);
SHERD_API const sherd_field *sherd_train_secure_fields(size_t *count);
SHERD_API const sherd_field *sherd_train_exposure_fields(size_t *count);

/* ---- metadata -------------------------------------------------------------------------------- */

/** A step whose operations are added to metadata. Zero-initialise, set size, then set what
 *  differs. */
typedef struct sherd_step_options {
    size_t size;       /* sizeof(sherd_step_options) */
    uint64_t examples; /* number of examples for training, if the recipe's batch is all of them */
    bool elementwise;  /* nodes also compute sigmoid, tanh and ReLU */
} sherd_step_options;

/**
 * Appends the operations of one training step of a recipe to metadata: for layer i with parameters
 * the products forward_i, backward_i_weights and backward_i_input (not for i = 1), and with
 * `elementwise` the operations activation_j, activation_j_square, ... of activation j. Shapes are
 * those of a step of full size. docs/METADATA.md lists them.
 *
 * Errors: SHERD_EINVAL: batch and examples do not fit each other, or the metadata shuffle rows;
 * those of sherd_meta_add; SHERD_EFORMAT, SHERD_ESHAPE (layers that do not fit); SHERD_ENOMEM.
 */
SHERD_API int sherd_meta_add_recipe(sherd_meta *meta, const sherd_recipe *r,
                                    const sherd_step_options *opt, sherd_diag *d) SHERD_MUST;

/* ---- checkpoints ----------------------------------------------------------------------------- */

/** The checkpoints of a folder. */
typedef struct sherd_checkpoints {
    size_t size;              /* sizeof(sherd_checkpoints), set by the caller */
    uint64_t checkpoints;     /* number of files */
    char first[40], last[40]; /* names of the oldest and the newest file */
    uint64_t step;            /* step of the newest file */
    char head[65];            /* SHA-256 of the newest file, hexadecimal: keep a copy elsewhere */
    bool whole;               /* the first file names no earlier one; otherwise earlier files were
                                 removed */
    bool late;                /* the writer was stopped before `head` named the last file */
} sherd_checkpoints;

/**
 * Verifies the checkpoints of a folder: each is complete and is the file that the next one names.
 * head: the SHA-256 that the newest one must have, 64 hexadecimal digits with or without "sha256:"
 * before them; NULL: any. *out is filled if the chain is complete, also if its head is not `head`.
 *
 * Errors: SHERD_ECHAIN (the message names the file that is damaged, exchanged or missing; there are
 * no checkpoints; or the head is not `head`); SHERD_EINVAL (head is not a hash); SHERD_EVERSION,
 * SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM.
 */
SHERD_API int sherd_checkpoints_verify(const char *folder, const char *head, sherd_checkpoints *out,
                                       sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_checkpoints_fields(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
