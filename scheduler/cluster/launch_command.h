/*
 * Command line and environment of a local node, and its share of this machine's memory, threads and
 * cores.
 */
#ifndef SCHEDULER_CLUSTER_LAUNCH_COMMAND_H
#define SCHEDULER_CLUSTER_LAUNCH_COMMAND_H

#include <limits.h>
#include <sched.h>

#include "scheduler/cluster/launch.h"
#include "wire/session.h"

#define SHERD__CHILD_PIPE 3 /* descriptor of its parent's pipe, in a node */

typedef struct sherd__command {
    char program[PATH_MAX];
    char threads[16], nodes[16], memory[24], name[32], blas[40], omp[40], pipe[8], by[40];
    char cores[CPU_SETSIZE * 5 + 1]; /* "0,1,..."; empty: not bound */
    char backend[16];
    uint32_t pool[SHERD__DEVICES_MAX];     /* devices that are divided among the nodes */
    uint32_t pool_len, each;               /* each: devices of a node; 0: they are not divided */
    char devices[SHERD__DEVICES_MAX * 11]; /* those of a node, as "0,1" */
    const char *argv[32];
    char **env;     /* strings from environ and from this struct */
    uint32_t bound; /* cores of each node; 0: not bound */
    cpu_set_t usable;
} sherd__command;

/**
 * Finds the sherd command that belongs to this library: in the folder of the file that contains it
 * (the shared library, or the program that it is linked to), or in the `bin` folder beside that or
 * beside its parent, as `make install` places them. Otherwise writes "sherd", which is searched for
 * in PATH.
 */
void sherd__command_find(char *out, size_t size);
/** Makes the command for all nodes of o, except name, cores and devices. The caller frees env with
 *  sherd__free. SHERD_ENOMEM. */
int sherd__command_make(sherd__command *c, const sherd__launch_options *o) SHERD_MUST;
/** Returns SHERD_EINVAL in a process that was itself started as a node. A program that names itself
 *  as its own `program` and does not know the verb would open its cluster again, and so would each
 *  of its children, until the machine can create no more processes. */
int sherd__command_allowed(sherd_diag *d) SHERD_MUST;
/** Sets name, cores and devices for node i. */
void sherd__command_for(sherd__command *c, uint32_t i, const char *name);

/**
 * Returns how many cores each of `nodes` nodes is bound to: as many as its threads, if these add up
 * to all usable cores; otherwise 0. If fewer cores are needed, the scheduler finds free ones, while
 * two commands would choose the same; if more are needed, some threads must wait.
 */
uint32_t sherd__command_cores(uint32_t nodes, uint32_t threads, uint32_t usable);

#endif
