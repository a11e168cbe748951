/*
 * A small network, its examples and runs of it, for tests of training by gradients, and an engine
 * that returns parts in any order, late, dropped or failed.
 */
#ifndef TESTS_UNIT_LEARN_GRADIENTS_WORLD_H
#define TESTS_UNIT_LEARN_GRADIENTS_WORLD_H

#include "learn/gradients.h"

enum { ROWS = 45, INPUTS = 6, CLASSES = 3 };
/** Number of parameters. */
#define COUNT (6 * 5 + 5 + 5 * 4 + 4 + 4 * 3 + 3)

extern sherd__recipe grad_recipe;
extern sherd__dataset grad_data;  /* ROWS examples */
extern uint32_t grad_order[ROWS]; /* each row once */

/** The set-up of a group of tests. */
int grad_set_up(void **s);
/** Selects another network; NULL: the network of COUNT parameters again. */
void grad_choose(const char *which);

/** Training of grad_recipe's network, and the report of its last step. */
typedef struct grad_run {
    sherd__network *network;
    sherd__optimiser optimiser;
    sherd__stepper stepper;
    sherd__gradients_update last;
    uint64_t updates, stalest;
    double cost;
    uint64_t hits;
} grad_run;

/** Begins a run, with momentum, or without if steps are local; takes over the engine. */
void grad_begin(grad_run *r, sherd__gradient_engine engine, sherd__gradients_options o);
void grad_end(grad_run *r);
/** Runs a step over the first `len` rows of grad_order. */
int grad_step(grad_run *r, uint64_t number, size_t len, double rate, sherd_diag *d);
/** Runs steps 0..n-1 and settles. */
void grad_steps(grad_run *r, unsigned n, size_t len);
/** Runs some steps in a run of its own and returns the parameters. */
void grad_params_after(double *out, sherd__gradient_engine e, sherd__gradients_options o,
                       size_t len);

/** Returns an engine with threads of this process. */
sherd__gradient_engine grad_threads(unsigned n, unsigned bits);

/** An engine that computes a part when the next part is requested, whichever that is. */
typedef struct mock {
    sherd__grader *grader;
    sherd__part *queue[64];
    uint32_t len, workers;
    uint32_t shards_per_task,
        roomy;                 /* shards of a part; the largest number that it was ever allowed */
    uint32_t lost;             /* number of the post whose part is dropped */
    bool oldest_last, reverse; /* neither: in random order */
    uint32_t posts, most;      /* most: maximum number in progress */
    unsigned fail_after;       /* next fails after so many calls; 0: never */
    unsigned nexts;
    const sherd__sums *sums; /* of the last part */
    int32_t scales[3];
    sherd__local_steps local[8]; /* of the shards */
} mock;
extern unsigned mock_lent, mock_given_back; /* sums that mocks passed to steppers */

/** Returns an engine for grad_recipe's network; the options in *m are set before. */
sherd__gradient_engine mock_engine(mock *m, unsigned bits);

#endif
