/*
 * Functions for the thread that has a cluster's loop run a training work
 * (scheduler/cluster/work_state.h). The thread passes the work to the loop, waits for it as for a
 * product (with log lines and interruption), and ends it. From beginning to end the cluster runs
 * nothing else.
 */
#ifndef SCHEDULER_CLUSTER_CALLER_H
#define SCHEDULER_CLUSTER_CALLER_H

#include "scheduler/cluster/state.h"
#include "scheduler/cluster/work.h"

/** Returns whether the awaited condition holds. Called with the cluster's lock held. */
typedef bool sherd__caller_there(void *ctx);

/** The `changed` callback of a work; ctx: the cluster. Any thread. */
void sherd__caller_changed(void *cluster);
/** Passes the work to the loop, and waits as sherd__caller_await does, with the same errors. */
int sherd__caller_begin(sherd_cluster *c, sherd__work w, sherd__caller_there *there, void *ctx,
                        sherd_diag *d) SHERD_MUST;
/** Wakes the loop to look for requests. */
void sherd__caller_wake(sherd_cluster *c);
/** Waits until `there` returns true. If the work ends first, returns its error. */
int sherd__caller_await(sherd_cluster *c, sherd__work w, sherd__caller_there *there, void *ctx,
                        sherd_diag *d) SHERD_MUST;
/** Waits until the loop has ended a work that was asked to finish. */
void sherd__caller_finished(sherd_cluster *c);

#endif
