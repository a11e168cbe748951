/* Internals of rounds, for gradient_open.c (plans, networks, tasks) and gradient.c (passes,
 * results). No other file includes this. */
#ifndef NODE_GRADIENT_STATE_H
#define NODE_GRADIENT_STATE_H

#include <pthread.h>

#include "learn/passes.h"
#include "node/examples.h"
#include "node/gradient.h"

typedef struct sherd__model {
    uint64_t job;
    uint32_t recipe;
    unsigned bits;
    size_t batch;
    sherd__passes *passes;
    double flops; /* for one example, forward and backward */
    uint64_t reserved;
    uint32_t users;
    bool touched; /* a pass has used it, so its pages are resident */
    struct sherd__model *next;
} model;

typedef struct tier {
    sherd__task what;
    sherd__block *params;
    uint8_t *out; /* the result; NULL once its ownership has passed on */
    bool there;   /* its task has arrived */
    bool computed, given, cancelled;
} tier;

struct sherd__round {
    sherd__gradient_site *site;
    sherd__round *next;
    uint64_t job;
    uint32_t number; /* block number of the plan */
    sherd__block *plan;
    model *model;
    uint32_t tiers, shards;
    unsigned room;
    uint32_t params; /* block number of tier 0's parameters */
    int32_t *scales;
    tier *tier;
    sherd__examples *shard;
    sherd__graded *graded; /* by shard */
    void **sums;
    uint64_t reserved;
    uint32_t tasks; /* tasks that have arrived */
    bool queued, running, ended, gone;
    pthread_mutex_t
        lock; /* guards there, computed, given, gone, parked and times while passes run */
    pthread_cond_t changed;
    bool parked;
    int err;
    sherd_diag why;
    double base; /* time of the first task, from which all times count */
    double times[SHERD__PLAN_TIMES];
};

/** Returns the numbers of a tier. */
static inline size_t sherd__round_count(const sherd__round *r, uint32_t t)
{
    return sherd__grader_count(sherd__passes_grader(r->model->passes), t);
}

/** Returns the seconds since the round's first task. */
double sherd__round_now(const sherd__round *r);
void sherd__round_free(sherd__round *r);

#endif
