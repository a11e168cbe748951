/* Clusters of local nodes through the library, and what they warn of. */
#ifndef TESTS_SYSTEM_SCHEDULER_LOCAL_NODES_H
#define TESTS_SYSTEM_SCHEDULER_LOCAL_NODES_H

#include <sys/types.h>

#include "sherd/cluster.h"

extern char local_warned[4096]; /* since the last one was opened */

/** misbehave: NULL, or what prog_misbehave's nodes do; memory of each, 0: its own choice. */
sherd_cluster *local_open(uint32_t nodes, const char *misbehave, uint64_t memory);
/** The same of `o`, whose log and program are filled in. */
sherd_cluster *local_open_as(sherd_cluster_options o, const char *misbehave);
pid_t local_pid(sherd_cluster *c, uint32_t node);
/** Bytes of blocks and tasks sent to all nodes until now. */
uint64_t local_sent(sherd_cluster *c);
/** Until the cluster knows that the node is not up. */
void local_gone(sherd_cluster *c, uint32_t node);

#endif
