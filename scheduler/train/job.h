/*
 * Parts of training and the nodes that compute them: which part goes to which node, what of it has
 * come back, and what becomes of it when its node is slow, lost or refuses. A state machine over
 * sessions without socket or clock, driven by a cluster's loop as sherd__work; parts are handed in
 * and out by another thread under its lock.
 *
 *   posted -> todo -> with a node: PUT, TASK for each tier -> tiers added up as they come -> back
 *               ^______ node lost, or it cannot hold the part ______|
 *
 * A tier that was added is not added again when another node computes the part anew: sums of whole
 * numbers would have the same bits, so it makes no difference whose they are.
 */
#ifndef SCHEDULER_TRAIN_JOB_H
#define SCHEDULER_TRAIN_JOB_H

#include "core/executor.h"
#include "scheduler/cluster/work.h"
#include "scheduler/train/train.h"

typedef struct sherd__train_job sherd__train_job;

typedef struct sherd__train_job_options {
    sherd__train_options train;
    const char *text; /* the network, as nodes are sent it; copied */
    size_t text_len;
    size_t tiers;
    const size_t *counts; /* numbers by tier; copied */
    sherd__executor *executor;
    uint64_t id; /* random */
    uint32_t nodes;
    sherd__job_owner owner;
    /** A part has come back, the nodes that can be used are others, or it is over: whoever waits
     *  should look. */
    void (*changed)(void *ctx);
    void *changed_ctx;
} sherd__train_job_options;

int sherd__train_job_new(sherd__train_job **out, const sherd__train_job_options *opt) SHERD_MUST;
/** Only once idle. */
void sherd__train_job_free(sherd__train_job *j);
sherd__work sherd__train_job_work(sherd__train_job *j);

/* Any thread. */

void sherd__train_job_post(sherd__train_job *j, sherd__part *p);
/** NULL: none is back. */
sherd__part *sherd__train_job_take(sherd__train_job *j);
/** A trace that was not yet told; false: none. */
bool sherd__train_job_trace(sherd__train_job *j, sherd__train_trace *out);
/** Nodes that are up and compute gradients, and those that are not heard of yet. */
void sherd__train_job_count(sherd__train_job *j, uint32_t *usable, uint32_t *open);
/** Nobody posts any more: it is done as soon as the loop looks. */
void sherd__train_job_finish(sherd__train_job *j);

#endif
