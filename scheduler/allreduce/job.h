/*
 * A circle's leader as a state machine over sessions, without socket or clock, driven by a
 * cluster's loop as sherd__work; steps and states are asked for by another thread under its lock.
 *
 *   heard of all -> MEET -> CONNECT -> idle -> STEP and REDUCE -> idle -> STATE -> idle ...
 *                    ^____ a member or a link is lost, a node has come (STATE first) ____|
 *
 * A round is over when every member has told the same figures of its sum; only then is the next one
 * told to make the update. So a round that was broken off, whoever had come to its end, is made
 * anew from the same parameters.
 */
#ifndef SCHEDULER_ALLREDUCE_JOB_H
#define SCHEDULER_ALLREDUCE_JOB_H

#include "scheduler/allreduce/allreduce.h"
#include "scheduler/cluster/work.h"
#include "wire/identity.h"

typedef struct sherd__allreduce_job sherd__allreduce_job;

typedef struct sherd__allreduce_job_options {
    sherd__allreduce_options train; /* network is not looked at */
    const char *text;               /* the network, as nodes are sent it; copied */
    size_t text_len;
    size_t tiers;
    sherd__version *state; /* where it begins; held until all have it */
    uint64_t id;           /* random */
    uint8_t names[32];     /* secret: what its meetings are called */
    uint32_t nodes;
    sherd__job_owner owner;
    /** Where this node is, and its key; outlives the job. */
    const sherd__peer *(*peer)(void *ctx, uint32_t node);
    void *peer_ctx;
    void (*changed)(void *ctx); /* whoever waits should look */
    void *changed_ctx;
} sherd__allreduce_job_options;

/** What is asked for: a step, or (step NULL) the first `len` numbers of the state. */
typedef struct sherd__allreduce_ask {
    sherd__allreduce_step *step;
    double *state;
    size_t len;
    int err; /* a step's: SHERD_EBUSY, SHERD_ERANGE; why says so */
    sherd_diag why;
} sherd__allreduce_ask;

int sherd__allreduce_job_new(sherd__allreduce_job **out,
                             const sherd__allreduce_job_options *opt) SHERD_MUST;
/** Only once the loop has let go of it. NULL is allowed. */
void sherd__allreduce_job_free(sherd__allreduce_job *j);
sherd__work sherd__allreduce_job_work(sherd__allreduce_job *j);

/* Any thread. */

/** The circle stands. */
bool sherd__allreduce_job_ready(sherd__allreduce_job *j);
void sherd__allreduce_job_ask(sherd__allreduce_job *j, sherd__allreduce_ask *a);
/** True once what was asked for is over; not before is it the caller's again, unless the job is. */
bool sherd__allreduce_job_answered(sherd__allreduce_job *j);
sherd__allreduce_link_bytes sherd__allreduce_job_links(sherd__allreduce_job *j, uint32_t node);
void sherd__allreduce_job_count(sherd__allreduce_job *j, sherd__allreduce_stats *out);
/** Nobody asks any more. */
void sherd__allreduce_job_finish(sherd__allreduce_job *j);

#endif
