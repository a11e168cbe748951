/*
 * What a local node is started with: its command line and environment, its share of this machine's
 * memory, threads and cores.
 */
#ifndef SCHEDULER_CLUSTER_LAUNCH_COMMAND_H
#define SCHEDULER_CLUSTER_LAUNCH_COMMAND_H

#include <sched.h>

#include "scheduler/cluster/launch.h"

#define SHERD__CHILD_PIPE 3 /* where a node finds its parent's pipe */

typedef struct sherd__command {
    char threads[16], memory[24], name[32], blas[40], omp[40], pipe[8], by[40];
    char cores[CPU_SETSIZE * 5 + 1]; /* "0,1,..."; empty: as the system pleases */
    const char *argv[20];
    char **env;    /* borrows from environ, and from here */
    uint32_t each; /* cores of each node; 0: none of its own */
    cpu_set_t usable;
} sherd__command;

/** For all nodes of o, but for name and cores. Free env with sherd__free. SHERD_ENOMEM. */
int sherd__command_make(sherd__command *c, const sherd__launch_options *o) SHERD_MUST;
/** SHERD_EINVAL in a process that was itself started as a node. A program that starts itself (named
 *  as its own `program`) and does not know the verb would open its cluster again, and so would each
 *  of those, until the machine has no process left. */
int sherd__command_allowed(sherd_diag *d) SHERD_MUST;
/** For node i. */
void sherd__command_for(sherd__command *c, uint32_t i, const char *name);

/**
 * How many cores each of so many nodes gets for itself: as many as it has threads, if that makes
 * all of the usable ones; else 0. Where fewer are asked for, the scheduler finds free ones, and two
 * commands would choose the same; where more are, somebody has to wait.
 */
uint32_t sherd__command_cores(uint32_t nodes, uint32_t threads, uint32_t usable);

#endif
