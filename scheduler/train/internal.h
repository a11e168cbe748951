/* Shared by the state machine of training (job.c), the code that sends for it (send.c) and the code
 * that processes its answers (answer.c). */
#ifndef SCHEDULER_TRAIN_INTERNAL_H
#define SCHEDULER_TRAIN_INTERNAL_H

#include <pthread.h>

#include "learn/plan.h"
#include "scheduler/cluster/work_state.h"
#include "scheduler/train/divide.h"
#include "scheduler/train/job.h"
#include "scheduler/train/keep.h"

/* A part that was posted and has not been returned. It outlives the node that computes it. */
typedef struct flight {
    struct flight *next;
    sherd__part *part;
    uint32_t adding; /* tiers that the executor holds */
    uint32_t left;   /* tiers that have not been added */
    double asked;    /* when it was sent, seconds */
    bool over;       /* failed: nothing more is added */
    bool added[];    /* by tier */
} flight;

/* A part that was sent to a node. */
typedef struct given {
    flight *flight;
    uint32_t plan, params; /* its block numbers */
    uint32_t answered;     /* number of its tiers answered */
    uint32_t attempt;      /* of tier 0; tier t has attempt + t */
} given;

enum { GIVEN_MOST = 2 }; /* one part is computed while the other is sent */

typedef struct train_node {
    sherd__work_node w;      /* first */
    uint64_t session_number; /* of the session that the next two fields describe */
    sherd__keep keep;
    bool has_text;
    bool back;             /* it may reconnect */
    bool unfit;            /* cannot compute gradients, or not those of this network */
    bool closing;          /* its session accepts no more messages */
    given has[GIVEN_MOST]; /* oldest first */
    uint32_t has_len;
} train_node;

enum { TRACES = 256, TEXT_BLOCK = 1 };

struct sherd__train_job {
    sherd__work_state w; /* first */
    sherd__train_job_options o;
    char *text;
    size_t *counts, *at; /* at: offset of each tier's parameters */
    train_node *nodes;
    flight *todo;
    uint32_t attempts;
    uint32_t pieces; /* pieces of work that the executor holds */
    uint64_t parts, parts_back;
    uint64_t began_ms;
    pthread_mutex_t lock; /* guards the fields below */
    sherd__part *posted, **posted_last;
    sherd__part *back, **back_last;
    bool finish;
    uint32_t usable, open;
    uint32_t *usable_nodes;       /* their numbers, ascending */
    sherd__divide_node *division; /* by node */
    sherd__divide_node **divided; /* among which shards were divided last */
    uint32_t divided_len;
    double *scratch; /* one for each node */
    sherd__train_trace traces[TRACES];
    uint32_t traces_from, traces_len;
};

/* send.c */

/** Sends the blocks and tasks of g->flight and fills in the rest of *g. SHERD_EINVAL if the session
 *  accepts none; SHERD_ENOMEM. On failure the node holds nothing of this job. */
int sherd__train_send(sherd__train_job *j, uint32_t node, given *g) SHERD_MUST;
/** Returns true if block numbers start again with this part; the node must then have no other. */
bool sherd__train_comes_round(const sherd__train_job *j, const train_node *n, const flight *f);
/** Records that the node keeps nothing any more. */
void sherd__train_forget(train_node *n);

/* answer.c */

/** Records costs, hits and times, which follow tier 0's sum. Returns false if they are invalid. */
bool sherd__train_figures(sherd__train_job *j, uint32_t node, flight *f, const uint8_t *bytes,
                          uint64_t now_ms) SHERD_MUST;
/** Adds tier t's answer to the part's sums, now or on the executor; takes ownership of the
 *  fragment. SHERD_ENOMEM. */
int sherd__train_add(sherd__train_job *j, flight *f, uint32_t t,
                     sherd__fragment *answer) SHERD_MUST;

/* job.c */

/** Returns the part to its poster if no answer to it is awaited any more. */
void sherd__train_maybe_back(sherd__train_job *j, flight *f);

#endif
