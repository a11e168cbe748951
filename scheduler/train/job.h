/*
 * Parts of training and the nodes that compute them: assigns parts to nodes, records which answers
 * have come, and decides what happens to a part if its node is slow, lost or refuses. A state
 * machine over sessions without socket or clock, driven by a cluster's loop as sherd__work. Another
 * thread posts and takes parts under its lock.
 *
 *   posted -> todo -> with a node: PUT, TASK for each tier -> tiers added up as they come -> back
 *               ^______ node lost, or it cannot hold the part ______|
 *
 * If another node computes a part again, tiers that were already added are not added a second time:
 * sums of integers have the same bits from every node.
 */
#ifndef SCHEDULER_TRAIN_JOB_H
#define SCHEDULER_TRAIN_JOB_H

#include "core/executor.h"
#include "scheduler/cluster/work.h"
#include "scheduler/train/train.h"

typedef struct sherd__train_job sherd__train_job;

typedef struct sherd__train_job_options {
    sherd__train_options train;
    const char *text; /* text of the network that nodes are sent; copied */
    size_t text_len;
    size_t tiers;
    const size_t *counts; /* number of parameters of each tier; copied */
    sherd__executor *executor;
    uint64_t id; /* random */
    uint32_t nodes;
    const uint32_t *weights; /* by node: weight= of their lines; NULL: all equal */
    sherd__job_owner owner;
    /** Called when a part has come back, the set of usable nodes has changed, or the job is over: a
     *  waiting thread should then check. */
    void (*changed)(void *ctx);
    void *changed_ctx;
} sherd__train_job_options;

int sherd__train_job_new(sherd__train_job **out, const sherd__train_job_options *opt) SHERD_MUST;
/** May be called only once the job is idle. */
void sherd__train_job_free(sherd__train_job *j);
sherd__work sherd__train_job_work(sherd__train_job *j);

/* The functions below may be called by any thread. */

void sherd__train_job_post(sherd__train_job *j, sherd__part *p);
/** Returns a part that has come back, otherwise NULL. */
sherd__part *sherd__train_job_take(sherd__train_job *j);
/** Returns true and a trace that was not yet returned; otherwise false. */
bool sherd__train_job_trace(sherd__train_job *j, sherd__train_trace *out);
/** Counts the nodes that are up and compute gradients, and those not heard from yet. */
void sherd__train_job_count(sherd__train_job *j, uint32_t *usable, uint32_t *open);
/** Divides the shards of a step among the usable nodes (sherd__gradient_engine_ops.divide).
 *  *changed: not as in the step before. */
uint32_t sherd__train_job_divide(sherd__train_job *j, uint32_t shards, sherd__division *out,
                                 bool *changed);
/** A node that takes longer for a shard than the others. */
typedef struct sherd__train_slow {
    double times;    /* as long as the median of the others */
    uint32_t shards; /* that it has in each step */
} sherd__train_slow;
/** How many times longer a node must take to be named. */
#define SHERD__TRAIN_SLOW 1.5
/** Returns whether the node is that slow, and has not been named yet, or half as
 *  slow. */
bool sherd__train_job_slow(sherd__train_job *j, uint32_t node, sherd__train_slow *out);
/** Returns the slowest node, if it takes that much longer than the others. */
sherd__slowest sherd__train_job_slowest(sherd__train_job *j);
/** Declares that no more parts are posted: the job ends when the loop next looks at it. */
void sherd__train_job_finish(sherd__train_job *j);

#endif
