/* Inside of rounds, for gradient_open.c (plans, networks, tasks) and gradient.c (passes, answers).
 * No other file includes this. */
#ifndef NODE_GRADIENT_STATE_H
#define NODE_GRADIENT_STATE_H

#include <pthread.h>

#include "learn/grader.h"
#include "node/examples.h"
#include "node/gradient.h"

typedef struct sherd__model {
    uint64_t job;
    uint32_t recipe;
    unsigned bits;
    size_t batch;
    sherd__grader *grader;
    double flops; /* of one example, forward and back */
    uint64_t reserved;
    uint32_t users;
    bool touched; /* by a pass: its pages are there */
    struct sherd__model *next;
} model;

typedef struct tier {
    sherd__task what;
    sherd__block *params;
    uint8_t *out; /* the answer's; NULL once it is given away */
    bool there;   /* its task has come */
    bool computed, given, cancelled;
} tier;

struct sherd__round {
    sherd__gradient_site *site;
    sherd__round *next;
    uint64_t job;
    uint32_t number; /* of the plan's block */
    sherd__block *plan;
    model *model;
    uint32_t tiers, shards;
    unsigned room;
    uint32_t params; /* block of tier 0 */
    int32_t *scales;
    tier *tier;
    sherd__examples *shard;
    void **sums;
    uint64_t reserved;
    uint32_t tasks; /* that have come */
    bool queued, running, ended, gone;
    pthread_mutex_t lock; /* guards there, computed, given, gone and times, while a pass runs */
    pthread_cond_t came;
    uint32_t at; /* the pass: shard */
    bool parked;
    int err;
    sherd_diag why;
    double base; /* all times count from the first task */
    double times[SHERD__PLAN_TIMES];
};

/** Seconds since the round's first task. */
double sherd__round_now(const sherd__round *r);
void sherd__round_free(sherd__round *r);

#endif
