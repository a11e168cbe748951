/*
 * The leader of an all-reduce group as a state machine over sessions, without socket or clock,
 * driven by a cluster's loop as sherd__work. Another thread requests steps and states under its
 * lock.
 *
 *   heard from all -> MEET -> CONNECT -> idle -> STEP and REDUCE -> idle -> STATE -> idle ...
 *                      ^____ a member or a link is lost, a node has come (STATE first) ____|
 *
 * A round is complete when every member has reported the same figures of its sum. Only then does
 * the next round tell members to make the update. A round that is aborted, however many members had
 * finished it, is therefore repeated from the same parameters.
 */
#ifndef SCHEDULER_ALLREDUCE_JOB_H
#define SCHEDULER_ALLREDUCE_JOB_H

#include "scheduler/allreduce/allreduce.h"
#include "scheduler/cluster/work.h"
#include "wire/identity.h"

typedef struct sherd__allreduce_job sherd__allreduce_job;

typedef struct sherd__allreduce_job_options {
    sherd__allreduce_options train; /* network is not read */
    const char *text;               /* text of the network that nodes are sent; copied */
    size_t text_len;
    size_t tiers;
    sherd__version *state; /* initial state; a reference is held until all members have it */
    uint64_t id;           /* random */
    uint8_t names[32];     /* secret from which the names of meetings are derived */
    uint32_t nodes;
    sherd__job_owner owner;
    /** Returns the address and key of a node; the result outlives the job. */
    const sherd__peer *(*peer)(void *ctx, uint32_t node);
    void *peer_ctx;
    void (*changed)(void *ctx); /* called when a waiting thread should check its condition */
    void *changed_ctx;
} sherd__allreduce_job_options;

/** A request: a step, or, if step is NULL, the first `len` numbers of the state. */
typedef struct sherd__allreduce_ask {
    sherd__allreduce_step *step;
    double *state;
    size_t len;
    int err; /* of a step: SHERD_EBUSY or SHERD_ERANGE, explained in why */
    sherd_diag why;
} sherd__allreduce_ask;

int sherd__allreduce_job_new(sherd__allreduce_job **out,
                             const sherd__allreduce_job_options *opt) SHERD_MUST;
/** May be called only after the loop has released the job. NULL is allowed. */
void sherd__allreduce_job_free(sherd__allreduce_job *j);
sherd__work sherd__allreduce_job_work(sherd__allreduce_job *j);

/* The functions below may be called by any thread. */

/** Returns true if the group is connected. */
bool sherd__allreduce_job_ready(sherd__allreduce_job *j);
void sherd__allreduce_job_ask(sherd__allreduce_job *j, sherd__allreduce_ask *a);
/** Returns true once the request has been answered. The caller may use the request again only then,
 *  or when the job is over. */
bool sherd__allreduce_job_answered(sherd__allreduce_job *j);
sherd__allreduce_link_bytes sherd__allreduce_job_links(sherd__allreduce_job *j, uint32_t node);
void sherd__allreduce_job_count(sherd__allreduce_job *j, sherd__allreduce_stats *out);
/** Declares that there are no more requests. */
void sherd__allreduce_job_finish(sherd__allreduce_job *j);

#endif
