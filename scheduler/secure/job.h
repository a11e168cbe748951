/*
 * Secure aggregation as a state machine over sessions, without socket or clock, driven by a
 * cluster's loop as sherd__work. Another thread requests sums under its lock.
 *
 *   heard from all -> JOIN -> ROSTER -> idle -> SEAL and HIDE -> CONFIRM -> OPEN -> idle ...
 *                      ^__ lost __|       |
 *                      ^____ others are __| each with all remaining members
 *                            up by now
 *
 * A member that is lost before its upload is not in the sum. One that is lost after its upload is
 * in the sum, as long as U others confirm the survivors and answer. Before the next sum, if a node
 * is up that is not in the last roster, all nodes that are up make a new roster. It has new keys,
 * so nothing that was sealed for an old roster is opened by a new one. A sum with too few uploads
 * or confirmations is requested again if nodes that may be back soon could complete it. Once any
 * member has been asked to open it, the repeated sum is over its survivors alone (members.c). No
 * roster may need fewer survivors than the first one did; with fewer the training ends.
 */
#ifndef SCHEDULER_SECURE_JOB_H
#define SCHEDULER_SECURE_JOB_H

#include "crypto/aggregate.h"
#include "scheduler/cluster/work.h"
#include "scheduler/secure/secure.h"
#include "wire/identity.h"

typedef struct sherd__secure_job sherd__secure_job;

typedef struct sherd__secure_job_options {
    sherd__secure_options train;
    const char *text; /* text of the recipe; copied */
    size_t text_len;
    size_t tiers, count; /* count: number of parameters */
    uint64_t id;         /* random */
    uint32_t nodes;
    sherd__job_owner owner;
    /** Returns the key by which this node is known. */
    const sherd__fingerprint *(*key)(void *ctx, uint32_t node);
    void *key_ctx;
    void (*changed)(void *ctx); /* called when a waiting thread should check its condition */
    void *changed_ctx;
} sherd__secure_job_options;

/** A request for a sum, and its result. */
typedef struct sherd__secure_sum {
    sherd__version *params;  /* held by the caller until the sum is done */
    const int32_t *scales;   /* tiers + 1 */
    uint64_t step;           /* selects the examples if a sum is not over all of them */
    sherd__aggregate a;      /* of this sum */
    const uint64_t *uploads; /* a.len numbers, the sum of the uploads; owned by the job, valid until
                                the next request */
    const uint64_t *answers; /* U pieces; owned by the job */
    uint32_t who[SHERD__AGGREGATE_NODES_MAX]; /* the members that sent these answers, U of them */
    uint32_t in;                              /* number of members in the sum */
} sherd__secure_sum;

int sherd__secure_job_new(sherd__secure_job **out, const sherd__secure_job_options *opt) SHERD_MUST;
/** May be called only once the job is idle. */
void sherd__secure_job_free(sherd__secure_job *j);
sherd__work sherd__secure_job_work(sherd__secure_job *j);

/* The functions below may be called by any thread. */

/** Returns true once the first members are known; *a then has their parameters. Later sums may have
 *  other members. */
bool sherd__secure_job_ready(sherd__secure_job *j, sherd__aggregate *a);
void sherd__secure_job_ask(sherd__secure_job *j, sherd__secure_sum *s);
/** Returns true once the request has been answered. The caller may use the request again only then,
 *  or when the job is over. */
bool sherd__secure_job_answered(sherd__secure_job *j);
sherd__secure_spent sherd__secure_job_spent(sherd__secure_job *j);
/** Declares that there are no more requests. */
void sherd__secure_job_finish(sherd__secure_job *j);

#endif
