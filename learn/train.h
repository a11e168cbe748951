/*
 * The training loop: which rows make step number s, at which rate, and what is told and kept when
 * an epoch ends. How a step is computed is a stepper's business: here, by products over nodes, or
 * by gradients that nodes compute.
 *
 * Everything random derives from a 32-byte seed by labels and counters and nothing from what
 * happened before, so (seed, number of the step) alone decides what comes next: a run that is
 * resumed makes the bits of one that was not disturbed.
 *
 * A step is counted when its update is complete. An epoch is ceil(examples / batch) steps; the last
 * one may be smaller (not under order "drawn").
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

/* ---- which rows ------------------------------------------------------------------------------ */

/** The rows of every step, as a function of (seed, step). */
typedef struct sherd__train_order {
    sherd__order order;
    size_t examples, batch; /* batch: 1..examples */
    uint64_t per_epoch;     /* steps */
    uint8_t seed[32];
    uint32_t *rows;    /* scratch: the shuffle of one epoch (given, drawn: none) */
    uint32_t *batches; /* ORDER_BATCHES: the order of batches in one epoch */
    uint64_t epoch;    /* the one that scratch holds; UINT64_MAX: none */
} sherd__train_order;

/** batch 0: all examples. SHERD_EINVAL: a batch larger than the data, or more than UINT32_MAX
 *  examples; SHERD_ENOMEM. */
int sherd__train_order_init(sherd__train_order *o, sherd__order order, size_t examples,
                            size_t batch, const uint8_t seed[32], sherd_diag *d) SHERD_MUST;
void sherd__train_order_fini(sherd__train_order *o);
/** Writes the rows of step `number` into rows (room for `batch`); returns how many. */
size_t sherd__train_order_rows(sherd__train_order *o, uint64_t number, uint32_t *rows);
/** The list that step `number`'s rows stand in, from *first on. Many steps share one, but for those
 *  of "drawn". It tells nothing of the seed. */
sherd__rows sherd__train_order_list(sherd__train_order *o, uint64_t number, size_t *first);
/** ORDER_BATCHES and ORDER_GIVEN: the number of the batch (of batch rows each in the order of
 *  sherd__train_order_fixed) that step `number` takes. */
uint64_t sherd__train_order_batch(sherd__train_order *o, uint64_t number);
/** The same orders: the rows of all batches one after another, `examples` of them, or NULL where
 *  the data are to stay as they lie. What is kept at nodes is kept in this order. */
const uint32_t *sherd__train_order_fixed(const sherd__train_order *o);

/* ---- one step -------------------------------------------------------------------------------- */

typedef struct sherd__step {
    uint64_t number; /* from 0 */
    double rate;
    const uint32_t *rows; /* of the training data, in their order */
    size_t len;
    const sherd__rows *list; /* that they are from `first` on; NULL: not told */
    size_t first;
    sherd__batch batch; /* the same rows, gathered; x.data is NULL for a stepper that says
                             SHERD__STEPPER_ROWS */
    bool gradient;      /* the network's gradient is to be that of the step afterwards */
} sherd__step;

typedef struct sherd__step_result {
    double cost;   /* mean over the examples, L2 included, before the update */
    uint64_t hits; /* of the step's examples whose largest output is at their label; values: 0 */
    uint64_t examples; /* 0: as many as the step has rows */
} sherd__step_result;

enum {
    SHERD__STEPPER_ROWS = 1, /* needs the numbers of the rows only: nothing is gathered */
    SHERD__STEPPER_FAR = 2   /* settling moves all parameters over a network */
};

/** An implementation. Constant and shared; every slot is mandatory. */
typedef struct sherd__stepper_ops {
    const char *name; /* "products", "gradients" */
    unsigned traits;  /* SHERD__STEPPER_* */
    /** Makes one step: the gradient of the batch, and the optimiser applied to the network's
     *  parameters, now or by `settle` at the latest. On failure *out is untouched, and parameters
     *  are those of before the step unless SHERD_ERANGE says that they became useless, or
     *  SHERD_ENOMEM that there was no room to go on. */
    int (*step)(void *ctx, const sherd__step *s, sherd__step_result *out, sherd_diag *d);
    /** Afterwards network and optimiser hold all steps made: before an evaluation, a checkpoint and
     *  the end. */
    int (*settle)(void *ctx, sherd_diag *d);
    void (*free)(void *ctx);
} sherd__stepper_ops;

typedef struct sherd__stepper {
    const sherd__stepper_ops *ops;
    void *ctx;
} sherd__stepper;

/** The stepper by products: forward, backward and update here, every product by e.products. Borrows
 *  network, optimiser and the multiplier. SHERD_ENOMEM. */
int sherd__stepper_products(sherd__stepper *out, sherd__network *n, sherd__optimiser *o,
                            sherd__engine e, sherd_diag *d) SHERD_MUST;
/** A zeroed one is allowed. */
void sherd__stepper_free(sherd__stepper s);

/* ---- the state of a run ---------------------------------------------------------------------- */

/** Besides parameters and optimiser, what a run must remember to go on as if nothing had happened.
 *  Plain data. */
typedef struct sherd__train_state {
    uint64_t step;          /* steps complete */
    double cost;            /* sum over the epoch's steps so far of cost times examples */
    uint64_t hits;          /* of them */
    uint64_t seen;          /* examples of them */
    double step_cost;       /* of the last step, per example */
    uint64_t step_examples; /* of it; 0: there was none */
    double last_cost, last_accuracy, last_validation; /* of the last epoch that was evaluated; NAN:
                                                         none */
} sherd__train_state;

/** What an epoch gave. */
typedef struct sherd__train_epoch {
    uint64_t epoch; /* complete ones, from 1 */
    uint64_t step;
    double cost, accuracy; /* of its steps, each before its update; accuracy NAN for values */
    double validation_cost, validation_accuracy; /* after the last; NAN: no validation data */
    double rate;                                 /* of the last step */
} sherd__train_epoch;

/** Called from the loop; each may be NULL. A failure ends the run with that error. */
typedef struct sherd__train_calls {
    /** After each step. */
    int (*step)(void *ctx, const sherd__step *s, const sherd__step_result *r, sherd_diag *d);
    /** After each epoch, settled: parameters and optimiser are whole. Figures of validation are
     *  there at every report_every-th epoch and at the last (report true). */
    int (*epoch)(void *ctx, const sherd__train_epoch *e, bool report, sherd_diag *d);
    /** After a step, settled, where checkpoint_every divides the number of steps made (0: never)
     *  and at the end; parameters are finite. */
    int (*checkpoint)(void *ctx, const sherd__train_state *s, sherd_diag *d);
    uint64_t checkpoint_every;
    /** Asked before each step: true ends the run, settled and with a checkpoint, as
     *  SHERD_EINTERRUPTED. */
    bool (*interrupted)(void *ctx);
    void *ctx;
    /** By products, where the first layer is dense: let the multiplier keep the training data
     *  (order "given" or "batches"), and the validation data where nodes have room for both. In
     *  fixed point this decides the exponent of the inputs, so runs that are to have the same bits
     *  keep alike. */
    bool keep;
    /** `epoch` looks at figures alone: where parameters come from far they are those of an earlier
     *  step then, unless validation needs them or it is the last epoch. */
    bool figures;
    uint64_t until; /* return 0 after this many steps; 0: go to the end */
} sherd__train_calls;

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct sherd__trainer sherd__trainer;

/**
 * Network, optimiser and order for a recipe and its data; parameters are drawn from the seed. Data
 * and validation (x.rows 0: none) are borrowed and must be finite and fit (sherd__dataset_check);
 * divide_inputs and holdout have been applied to them. *out is the caller's. SHERD_EINVAL (a batch
 * larger than the data), errors of sherd__recipe_network, SHERD_ENOMEM.
 */
int sherd__trainer_new(sherd__trainer **out, const sherd__recipe *r, const sherd__dataset *data,
                       const sherd__dataset *validation, const uint8_t seed[32],
                       sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__trainer_free(sherd__trainer *t);

/** Owned by the trainer. What they hold may be replaced (initial weights, a checkpoint) before a
 *  run. */
sherd__network *sherd__trainer_network(sherd__trainer *t);
sherd__optimiser *sherd__trainer_optimiser(sherd__trainer *t);
sherd__train_order *sherd__trainer_order(sherd__trainer *t);
/** As of the last complete step; to resume, store what a checkpoint had (and the optimiser's by
 *  sherd__optimiser_resume). */
sherd__train_state *sherd__trainer_state(sherd__trainer *t);
/** Steps of the whole run. */
uint64_t sherd__trainer_steps(const sherd__trainer *t);

/**
 * Runs from the state's step to the end. Evaluations go through `e` in batches. SHERD_ERANGE:
 * training diverged (at which step and epoch), SHERD_EINTERRUPTED, and what stepper and calls say.
 * On failure the state is that of the last complete step; with SHERD_ERANGE parameters may be
 * useless, and no checkpoint was made of those.
 */
int sherd__trainer_run(sherd__trainer *t, sherd__stepper s, sherd__engine e,
                       const sherd__train_calls *calls, sherd_diag *d) SHERD_MUST;

/** Mean cost and share of hits of `data` under the network's parameters, by batches of up to
 *  `batch` rows. kept: the same rows as e.products holds them, in parts of which `batch` is a
 *  multiple, or NULL. accuracy NAN for values. Errors of sherd__network_forward. */
int sherd__train_evaluate(sherd__network *n, sherd__engine e, const sherd__recipe *r,
                          const sherd__dataset *data, sherd_kept *kept, size_t batch, double *cost,
                          double *accuracy, sherd_diag *d) SHERD_MUST;

/** A stream for what is random in training: from the run's seed, by what for and the how-manieth.
 *  `state` must outlive the result. */
sherd_entropy sherd__train_entropy(sherd_entropy_seeded *state, const uint8_t seed[32],
                                   const char *what, uint64_t number);

#endif
