/*
 * A small network, its examples and runs of it, for tests of training by gradients, and an engine
 * that hands parts back in any order, late, dropped or failed.
 */
#ifndef TESTS_UNIT_LEARN_GRADIENTS_WORLD_H
#define TESTS_UNIT_LEARN_GRADIENTS_WORLD_H

#include "learn/gradients.h"

enum { ROWS = 45, INPUTS = 6, CLASSES = 3 };
/** Parameters. */
#define COUNT (6 * 5 + 5 + 5 * 4 + 4 + 4 * 3 + 3)

extern sherd__recipe grad_recipe;
extern sherd__dataset grad_data;  /* ROWS examples */
extern uint32_t grad_order[ROWS]; /* each of them once */

/** A group's set-up. */
int grad_set_up(void **s);
/** Another network; NULL: that of COUNT parameters again. */
void grad_choose(const char *which);

/** Training of grad_recipe's network, and what its last step told. */
typedef struct grad_run {
    sherd__network *network;
    sherd__optimiser optimiser;
    sherd__stepper stepper;
    sherd__gradients_update last;
    uint64_t updates, stalest;
    double cost;
    uint64_t hits;
} grad_run;

/** With momentum, or without where steps are local; takes the engine. */
void grad_begin(grad_run *r, sherd__gradient_engine engine, sherd__gradients_options o);
void grad_end(grad_run *r);
/** A step of the first `len` of grad_order. */
int grad_step(grad_run *r, uint64_t number, size_t len, double rate, sherd_diag *d);
/** Steps 0..n-1, settled. */
void grad_steps(grad_run *r, unsigned n, size_t len);
/** The parameters after some steps of a run of its own. */
void grad_params_after(double *out, sherd__gradient_engine e, sherd__gradients_options o,
                       size_t len);

/** Threads of this process. */
sherd__gradient_engine grad_threads(unsigned n, unsigned bits);

/** An engine that computes a part when it is asked for the next one, whichever that is. */
typedef struct mock {
    sherd__grader *grader;
    sherd__part *queue[64];
    uint32_t len, workers;
    uint32_t grain, roomy;     /* shards of a part; the most that it was ever allowed */
    uint32_t lost;             /* this part in the order of posts is dropped */
    bool oldest_last, reverse; /* neither: by chance */
    uint32_t posts, most;      /* most: under way at once */
    unsigned fail_after;       /* next fails then; 0: never */
    unsigned nexts;
    const sherd__sums *sums; /* of the last part */
    int32_t scales[3];
    sherd__local_steps local[8]; /* of shards */
} mock;
extern unsigned mock_lent, mock_given_back; /* sums, by mocks to steppers */

/** Of grad_recipe's network; what is chosen of m is set before. */
sherd__gradient_engine mock_engine(mock *m, unsigned bits);

#endif
