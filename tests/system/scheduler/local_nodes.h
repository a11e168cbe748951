/* Clusters of local nodes through the library, and the warnings that they log. */
#ifndef TESTS_SYSTEM_SCHEDULER_LOCAL_NODES_H
#define TESTS_SYSTEM_SCHEDULER_LOCAL_NODES_H

#include <sys/types.h>

#include "sherd/cluster.h"

extern char local_warned[4096]; /* since the latest cluster was opened */

/** The log hook that appends warnings to local_warned. */
void local_note(void *ctx, sherd_log_level level, const char *text);

/** misbehave: NULL, or a mode of prog_misbehave; memory of each node, 0: its own choice. */
sherd_cluster *local_open(uint32_t nodes, const char *misbehave, uint64_t memory);
/** The same with options `o`, whose log and program are filled in. */
sherd_cluster *local_open_as(sherd_cluster_options o, const char *misbehave);
pid_t local_pid(sherd_cluster *c, uint32_t node);
/** Returns the bytes of blocks and tasks sent to all nodes so far. */
uint64_t local_sent(sherd_cluster *c);
/** Stops a node, and waits for that: on a busy machine its threads run on for a while. */
void local_stop(sherd_cluster *c, uint32_t node);
/** Waits until the cluster knows that the node is down. */
void local_gone(sherd_cluster *c, uint32_t node);

#endif
