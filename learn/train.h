/*
 * The training loop: it decides the rows and the rate of step number s, and reports and stores
 * results at the end of an epoch. A stepper computes a step: with products over nodes (this file),
 * or with gradients that nodes compute.
 *
 * All randomness is derived from a 32-byte seed by labels and counters, and does not depend on
 * earlier steps. So (seed, number of the step) alone decides what comes next, and a resumed run has
 * the bits of an uninterrupted one.
 *
 * A step is counted when its update is complete. An epoch is ceil(examples / batch) steps; the last
 * one may be smaller (not under order "drawn"). Figures are those of a window: an epoch or, if the
 * recipe reports every so many steps, these steps.
 */
#ifndef LEARN_TRAIN_H
#define LEARN_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "learn/dataset.h"
#include "learn/network.h"
#include "learn/optimiser.h"
#include "learn/recipe.h"
#include "learn/rows.h"

/* ---- rows of a step -------------------------------------------------------------------------- */

/** The rows of every step, as a function of (seed, step). */
typedef struct sherd__train_order {
    sherd__order order;
    size_t examples, batch; /* batch: 1..examples */
    uint64_t per_epoch;     /* steps */
    uint8_t seed[32];
    uint32_t *rows;    /* scratch: the shuffle of one epoch (not for given and drawn) */
    uint32_t *batches; /* ORDER_BATCHES: the order of batches in one epoch */
    uint64_t epoch;    /* the epoch of the scratch; UINT64_MAX: no epoch */
} sherd__train_order;

/** batch 0: all examples. SHERD_EINVAL: a batch larger than the data, or more than UINT32_MAX
 *  examples; SHERD_ENOMEM. */
int sherd__train_order_init(sherd__train_order *o, sherd__order order, size_t examples,
                            size_t batch, const uint8_t seed[32], sherd_diag *d) SHERD_MUST;
void sherd__train_order_fini(sherd__train_order *o);
/** Writes the rows of step `number` into rows (room for `batch`); returns how many. */
size_t sherd__train_order_rows(sherd__train_order *o, uint64_t number, uint32_t *rows);
/** Returns the list that contains the rows of step `number` from entry *first on. Many steps share
 *  a list, except with "drawn". The list reveals nothing about the seed. */
sherd__rows sherd__train_order_list(sherd__train_order *o, uint64_t number, size_t *first);
/** ORDER_BATCHES and ORDER_GIVEN: returns the number of the batch of step `number`, counted in
 *  batches of `batch` rows in the order of sherd__train_order_fixed. */
uint64_t sherd__train_order_batch(sherd__train_order *o, uint64_t number);
/** The same orders: returns the rows of all batches one after another, `examples` of them, or NULL
 *  if the data keep their order. Data kept at nodes are in this order. */
const uint32_t *sherd__train_order_fixed(const sherd__train_order *o);

/* ---- one step -------------------------------------------------------------------------------- */

typedef struct sherd__step {
    uint64_t number; /* from 0 */
    double rate;
    const uint32_t *rows; /* of the training data, in the order of the step */
    size_t len;
    const sherd__rows *list; /* the list that `rows` is taken from, starting at `first`; NULL: not
                                given */
    size_t first;
    sherd__batch batch; /* the same rows, gathered; x.data is NULL for a stepper with
                           SHERD__STEPPER_ROWS */
    bool gradient;      /* the network must hold the gradient of the step afterwards */
} sherd__step;

typedef struct sherd__step_result {
    double cost;       /* mean over the examples, L2 included, before the update */
    uint64_t hits;     /* examples of the step with the largest output at their label; values: 0 */
    uint64_t examples; /* 0: the number of rows of the step */
} sherd__step_result;

enum {
    SHERD__STEPPER_ROWS = 1, /* needs only the numbers of the rows: nothing is gathered */
    SHERD__STEPPER_FAR = 2   /* settling sends all parameters over a network */
};

/** An implementation. Constant and shared; every slot is mandatory. */
typedef struct sherd__stepper_ops {
    const char *name; /* "products", "gradients" */
    unsigned traits;  /* SHERD__STEPPER_* */
    /** Makes one step: computes the gradient of the batch and applies the optimiser to the
     *  network's parameters, immediately or at the latest in `settle`. On failure *out is
     *  untouched, and the parameters are those before the step, except with SHERD_ERANGE if they
     *  became useless, and with SHERD_ENOMEM if memory ran out within the step. */
    int (*step)(void *ctx, const sherd__step *s, sherd__step_result *out, sherd_diag *d);
    /** Brings network and optimiser up to date with all steps made. Called before an evaluation,
     *  before a checkpoint and at the end. */
    int (*settle)(void *ctx, sherd_diag *d);
    void (*free)(void *ctx);
} sherd__stepper_ops;

typedef struct sherd__stepper {
    const sherd__stepper_ops *ops;
    void *ctx;
} sherd__stepper;

/** Creates the stepper by products: forward pass, backward pass and update here, with every product
 *  by e.products. Borrows network, optimiser and the multiplier. SHERD_ENOMEM. */
int sherd__stepper_products(sherd__stepper *out, sherd__network *n, sherd__optimiser *o,
                            sherd__engine e, sherd_diag *d) SHERD_MUST;
/** Accepts a zeroed stepper. */
void sherd__stepper_free(sherd__stepper s);

/* ---- the state of a run ---------------------------------------------------------------------- */

/** State that a run needs in addition to parameters and optimiser to resume without a difference.
 *  Plain data. */
typedef struct sherd__train_state {
    uint64_t step;          /* completed steps */
    double cost;            /* sum over the window's steps so far of cost times examples */
    uint64_t hits;          /* of those steps */
    uint64_t seen;          /* examples of those steps */
    double step_cost;       /* of the last step, per example */
    uint64_t step_examples; /* of the last step; 0: there was no step */
    double last_cost, last_accuracy, last_validation; /* of the last window, of the last
                                                         evaluation; NAN: there was none */
} sherd__train_state;

/** Results of a window. */
typedef struct sherd__train_epoch {
    uint64_t epoch; /* the epoch of its last step, from 1 */
    uint64_t step;
    double cost, accuracy; /* over its steps, each before its update; accuracy is NAN for values */
    double validation_cost, validation_accuracy; /* after the last step; NAN: no validation data */
    double rate;                                 /* of the last step */
} sherd__train_epoch;

/** Called from the loop; each may be NULL. A failure ends the run with that error. */
typedef struct sherd__train_calls {
    /** After each step. */
    int (*step)(void *ctx, const sherd__step *s, const sherd__step_result *r, sherd_diag *d);
    /** Called after each window, settled: parameters and optimiser are complete. Validation figures
     *  are present at every report_every-th epoch, or after report_every steps, and at the last
     *  step (report is true). */
    int (*epoch)(void *ctx, const sherd__train_epoch *e, bool report, sherd_diag *d);
    /** Called after a step, settled, if checkpoint_every divides the number of steps made (0:
     *  never), and at the end; parameters are finite. */
    int (*checkpoint)(void *ctx, const sherd__train_state *s, sherd_diag *d);
    uint64_t checkpoint_every;
    /** Called before each step; true ends the run with SHERD_EINTERRUPTED, settled and with a
     *  checkpoint. */
    bool (*interrupted)(void *ctx);
    /** Called before each step and after `epoch`; true ends the run as its last step does. */
    bool (*enough)(void *ctx);
    void *ctx;
    /** With products and a dense first layer: lets the multiplier keep the training data (order
     *  "given" or "batches"), and the validation data if nodes have room for both. In fixed point
     *  this decides the exponent of the inputs, so runs that need the same bits must use the same
     *  setting. */
    bool keep;
    /** `epoch` uses only figures. If parameters are remote, the local ones may then be those of an
     *  earlier step, unless validation needs them or it is the last epoch. */
    bool figures;
    uint64_t until; /* return 0 after this many steps; 0: run to the end */
} sherd__train_calls;

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct sherd__trainer sherd__trainer;

/**
 * Creates network, optimiser and order for a recipe and its data. Parameters are drawn from the
 * seed. Data and validation (x.rows 0: none) are borrowed; they must be finite and fit
 * (sherd__dataset_check), and divide_inputs and holdout have been applied to them. The caller owns
 * *out. SHERD_EINVAL (a batch larger than the data), errors of sherd__recipe_network, SHERD_ENOMEM.
 */
int sherd__trainer_new(sherd__trainer **out, const sherd__recipe *r, const sherd__dataset *data,
                       const sherd__dataset *validation, const uint8_t seed[32],
                       sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__trainer_free(sherd__trainer *t);

/** Owned by the trainer. The caller may replace their contents (initial weights, a checkpoint)
 *  before a run. */
sherd__network *sherd__trainer_network(sherd__trainer *t);
sherd__optimiser *sherd__trainer_optimiser(sherd__trainer *t);
sherd__train_order *sherd__trainer_order(sherd__trainer *t);
/** Returns the state after the last complete step. To resume, store that of a checkpoint in it (and
 *  restore the optimiser with sherd__optimiser_resume). */
sherd__train_state *sherd__trainer_state(sherd__trainer *t);
/** Returns the steps of the whole run. */
uint64_t sherd__trainer_steps(const sherd__trainer *t);
/** Returns the number of steps of a window, which the sums of the state are over. */
uint64_t sherd__trainer_window(const sherd__trainer *t);
/** Returns the steps between two reports; UINT64_MAX if there are more. */
uint64_t sherd__trainer_interval(const sherd__trainer *t);

/**
 * Runs from the state's step to the end. Evaluations use `e`, in batches. SHERD_ERANGE: training
 * diverged (names the step and epoch); SHERD_EINTERRUPTED; errors of the stepper and the calls. On
 * failure the state is that of the last complete step. With SHERD_ERANGE parameters may be useless,
 * and no checkpoint of such parameters was made.
 */
int sherd__trainer_run(sherd__trainer *t, sherd__stepper s, sherd__engine e,
                       const sherd__train_calls *calls, sherd_diag *d) SHERD_MUST;

/** Data to evaluate in batches of up to `batch` rows. kept: the same rows as e.products holds them,
 *  in parts of a size that divides `batch`, or NULL. */
typedef struct sherd__evaluation {
    const sherd__recipe *recipe;
    const sherd__dataset *data;
    sherd_kept *kept;
    size_t batch;
    uint64_t step;       /* number of steps made before, for e.begin */
    uint64_t *confusion; /* outputs x outputs counts, to which label and largest output of each
                            example are added; NULL: not counted */
} sherd__evaluation;
/** Computes the mean cost and the fraction of hits of the data under the network's parameters.
 *  *accuracy is NAN for values. Errors of sherd__network_forward. */
int sherd__train_evaluate(sherd__network *n, sherd__engine e, const sherd__evaluation *of,
                          double *cost, double *accuracy, sherd_diag *d) SHERD_MUST;

/** Returns a random stream derived from the run's seed, a purpose and a counter. `state` must
 *  outlive the result. */
sherd__entropy sherd__train_entropy(sherd__seeded *state, const uint8_t seed[32], const char *what,
                                    uint64_t number);

#endif
