/* What the state machine of training (job.c), what sends for it (send.c) and what takes
 * its answers (answer.c) share. */
#ifndef SCHEDULER_TRAIN_INTERNAL_H
#define SCHEDULER_TRAIN_INTERNAL_H

#include <pthread.h>

#include "learn/plan.h"
#include "scheduler/cluster/work_state.h"
#include "scheduler/train/job.h"
#include "scheduler/train/keep.h"

/* A part on its way; it outlives the node that has it. */
typedef struct flight {
    struct flight *next;
    sherd__part *part;
    uint32_t adding; /* tiers that the executor holds */
    uint32_t left;   /* tiers that were not added */
    double asked;    /* seconds */
    bool over;       /* failed: nothing more is added */
    bool added[];    /* by tier */
} flight;

/* A part at a node. */
typedef struct given {
    flight *flight;
    uint32_t plan, params; /* blocks of it */
    uint32_t answered;     /* tiers of it */
    uint32_t attempt;      /* of tier 0; tier t's is t further */
} given;

enum { GIVEN_MOST = 2 }; /* one is computed while the other travels */

typedef struct train_node {
    sherd__work_node w;      /* first */
    uint64_t session_number; /* of the session that the next two are about */
    sherd__keep keep;
    bool has_text;
    bool back;             /* it may return */
    bool unfit;            /* cannot compute gradients, or not these */
    bool closing;          /* its session takes no more */
    given has[GIVEN_MOST]; /* the eldest first */
    uint32_t has_len;
} train_node;

enum { TRACES = 256, TEXT_BLOCK = 1 };

struct sherd__train_job {
    sherd__work_state w; /* first */
    sherd__train_job_options o;
    char *text;
    size_t *counts, *at; /* at: where a tier's parameters begin */
    train_node *nodes;
    flight *todo;
    uint32_t attempts;
    uint32_t pieces; /* that the executor holds */
    uint64_t parts, parts_back;
    uint64_t began_ms;
    pthread_mutex_t lock; /* guards what follows */
    sherd__part *posted, **posted_last;
    sherd__part *back, **back_last;
    bool finish;
    uint32_t usable, open;
    sherd__train_trace traces[TRACES];
    uint32_t traces_from, traces_len;
};

/* send.c */

/** Blocks and tasks of g->flight; fills in the rest of *g. SHERD_EINVAL where the session takes
 *  none; SHERD_ENOMEM. The node has nothing of this job then, nor of other parts. */
int sherd__train_send(sherd__train_job *j, uint32_t node, given *g) SHERD_MUST;
/** Numbers of blocks begin anew with this part, so the node must have no other one. */
bool sherd__train_comes_round(const sherd__train_job *j, const train_node *n, const flight *f);
/** The node keeps nothing any more. */
void sherd__train_forget(train_node *n);

/* answer.c */

/** Costs and hits behind tier 0's sum, and the times behind them. False: they are none. */
bool sherd__train_figures(sherd__train_job *j, uint32_t node, flight *f, const uint8_t *bytes,
                          uint64_t now_ms) SHERD_MUST;
/** Adds tier t's answer to the part's sums, now or on the executor; takes the fragment.
 *  SHERD_ENOMEM. */
int sherd__train_add(sherd__train_job *j, flight *f, uint32_t t,
                     sherd__fragment *answer) SHERD_MUST;

/* job.c */

/** Hands the part back if nothing of it is awaited any more, here or on the executor. */
void sherd__train_maybe_back(sherd__train_job *j, flight *f);

#endif
