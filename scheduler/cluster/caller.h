/*
 * The side of the thread that has a cluster's loop do a work of training
 * (scheduler/cluster/work_state.h): it hands the work over, waits as for a product (log lines,
 * interruption), and ends it. From the beginning to the end the cluster does nothing else.
 */
#ifndef SCHEDULER_CLUSTER_CALLER_H
#define SCHEDULER_CLUSTER_CALLER_H

#include "scheduler/cluster/state.h"
#include "scheduler/cluster/work.h"

/** What is waited for is there; called with the cluster's lock held. */
typedef bool sherd__caller_there(void *ctx);

/** A work's `changed`; ctx: the cluster. Any thread. */
void sherd__caller_changed(void *cluster);
/** Hands it to the loop and waits. Errors as of sherd__caller_await. */
int sherd__caller_begin(sherd_cluster *c, sherd__work w, sherd__caller_there *there, void *ctx,
                        sherd_diag *d) SHERD_MUST;
/** The loop has something to look at. */
void sherd__caller_wake(sherd_cluster *c);
/** Waits until it is there. Otherwise the work is over, and why that is is the error. */
int sherd__caller_await(sherd_cluster *c, sherd__work w, sherd__caller_there *there, void *ctx,
                        sherd_diag *d) SHERD_MUST;
/** Waits until the loop has ended a work that was told to finish. */
void sherd__caller_finished(sherd_cluster *c);

#endif
