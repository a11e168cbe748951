/*
 * Secure aggregation as a state machine over sessions, without socket or clock, driven by a
 * cluster's loop as sherd__work; sums are asked for by another thread under its lock.
 *
 *   heard of all -> JOIN -> ROSTER -> idle -> SEAL and HIDE -> CONFIRM -> OPEN -> idle ...
 *                    ^__ lost __|       |
 *                    ^____ others are __| each with all members that are left
 *                          up by now
 *
 * A member that is lost before its upload is not in the sum; one that is lost behind it is, as long
 * as U others confirm whose sum it is, and answer. Before the next sum all that are up make a new
 * roster if some of them are not of the last one: with new keys, so that nothing that was sealed
 * for an old one is opened by a new one. A sum for which too few have uploaded, or confirmed, is
 * asked for again if those that may be back at once could make up for it; once anybody was asked to
 * open it, of its survivors alone (members.c). No roster needs fewer survivors than the
 * first did; fewer is the end.
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
    const char *text; /* the recipe; copied */
    size_t text_len;
    size_t tiers, count; /* count: parameters */
    uint64_t id;         /* random */
    uint32_t nodes;
    sherd__job_owner owner;
    /** The key that this node is known by. */
    const sherd__fingerprint *(*key)(void *ctx, uint32_t node);
    void *key_ctx;
    void (*changed)(void *ctx); /* whoever waits should look */
    void *changed_ctx;
} sherd__secure_job_options;

/** A sum: asked for, and what came of it. */
typedef struct sherd__secure_sum {
    sherd__version *params;  /* held by the caller until it is over */
    const int32_t *scales;   /* tiers + 1 */
    uint64_t step;           /* which examples, where a sum is not over all */
    sherd__aggregate a;      /* of this sum */
    const uint64_t *uploads; /* a.len: their sum; the job's until the next one is asked for */
    const uint64_t *answers; /* U pieces; the job's */
    uint32_t who[SHERD__AGGREGATE_NODES_MAX]; /* whose answers these are, U of them */
    uint32_t in;                              /* members in the sum */
} sherd__secure_sum;

int sherd__secure_job_new(sherd__secure_job **out, const sherd__secure_job_options *opt) SHERD_MUST;
/** Only once idle. */
void sherd__secure_job_free(sherd__secure_job *j);
sherd__work sherd__secure_job_work(sherd__secure_job *j);

/* Any thread. */

/** True once the first members are known; *a is what they agreed on. Later sums may have others. */
bool sherd__secure_job_ready(sherd__secure_job *j, sherd__aggregate *a);
void sherd__secure_job_ask(sherd__secure_job *j, sherd__secure_sum *s);
/** True once what was asked for is over; not before is it the caller's again, unless the job is. */
bool sherd__secure_job_answered(sherd__secure_job *j);
sherd__secure_spent sherd__secure_job_spent(sherd__secure_job *j);
/** Nobody asks any more. */
void sherd__secure_job_finish(sherd__secure_job *j);

#endif
