/*
 * Local nodes: processes of the command's own binary on loopback ports that the system chooses.
 * Each gets a fresh key and an allow-list of one line over a pipe (never arguments, environment or
 * files) and ends when that pipe does, so that not even `kill -9` of this process leaves one
 * behind.
 *
 * Processes are made by posix_spawn, which neither runs fork handlers nor copies memory: safe
 * beside OpenBLAS's threads, at any time. No signal handler is installed, none is needed.
 */
#ifndef SCHEDULER_CLUSTER_LAUNCH_H
#define SCHEDULER_CLUSTER_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sherd/err.h"
#include "wire/identity.h"

typedef struct sherd__launch sherd__launch;

typedef struct sherd__launch_options {
    uint32_t nodes;
    const char *program;      /* the sherd command, looked for in PATH where it has no slash; NULL:
                                  "sherd". Never by itself this executable: a program that is not
                                  sherd would start itself, and those themselves, without end */
    const char *verb;         /* its verb that runs a node; NULL: "node" */
    uint64_t memory;          /* budget of each, bytes; 0: half of this machine's, shared */
    uint32_t threads;         /* BLAS threads of each; 0: max(1, cores / nodes) */
    bool unbound;             /* no cores of their own (node/cores.h), also where they have as many
                                  threads together as there are cores */
    uint32_t deadline_ms;     /* for all of them to listen; 0: 10 s, and 100 ms more a node; not
                                  counted is what one of them waits for a processor, as far as six
                                  times as long */
    uint32_t timeout_ms;      /* the caller's own time, where that is less; 0: as much as it
                                  takes */
    uint32_t least;           /* fewer that listen, others being stopped or killed:
                                  SHERD_EFEWNODES; 0: all */
    uint32_t spare;           /* so many may be late: not waited for much longer than the others
                                  took (wait_policy.h) */
    sherd__fingerprint allow; /* the only key that they let in */
    const char *log_dir;      /* not NULL: the nodes are to outlive this process once they are
                                  released; what they say goes into NAME.log there */
    /** Asked about ten times a second while waiting; true ends it with SHERD_EINTERRUPTED. */
    bool (*interrupted)(void *ctx);
    void *ctx;
} sherd__launch_options;

/** What `memory` 0 means: half of this machine's (or its container's), shared by `nodes`. */
uint64_t sherd__launch_memory(uint32_t nodes);

typedef struct sherd__launched {
    pid_t pid;        /* 0 once it has been waited for */
    uint64_t started; /* sherd__process_started(pid): no later process of that number has it */
    sherd__peer peer; /* host, port, key, name "node-1", ...; ready for sherd__link_connect */
    char absent[200]; /* why it does not listen and never will, port and pid being 0; empty: it
                           does */
} sherd__launched;

/**
 * Starts the nodes and waits until each has printed its line, or is absent and may be: stopped for
 * a second, killed, or late, as far as least and spare allow. On failure none is left, and *d says
 * which one failed and what it last wrote to stderr: SHERD_EOPEN (no such program), SHERD_ETIMEOUT,
 * SHERD_EINTERRUPTED, SHERD_EAUTH (it printed another key), SHERD_EFEWNODES (it ended, or too many
 * are absent).
 */
int sherd__launch_start(sherd__launch **out, const sherd__launch_options *opt,
                        sherd_diag *d) SHERD_MUST;

uint32_t sherd__launch_len(const sherd__launch *l);
const sherd__launched *sherd__launch_node(const sherd__launch *l, uint32_t i);

/** True where node i's process is seen to be stopped for a second now: no word comes from it. Asked
 *  again and again. */
bool sherd__launch_stopped(sherd__launch *l, uint32_t i);

/**
 * How node i is: 0 while it runs, else SHERD_ECLOSED with how it ended and its last words in *d.
 * Reaps it.
 */
int sherd__launch_check(sherd__launch *l, uint32_t i, sherd_diag *d);

/**
 * Ends all nodes: closes their pipes, waits up to grace_ms (0: 3000), then kills what is left, and
 * what is stopped at once; all are reaped. NULL is allowed. Frees l.
 */
void sherd__launch_stop(sherd__launch *l, uint32_t grace_ms);

/** Lets go of nodes with a log_dir: from now on they outlive this process. Frees l. */
void sherd__launch_release(sherd__launch *l);

/** When the kernel started process pid, in ticks since boot; 0 where none of that number runs. */
uint64_t sherd__process_started(pid_t pid);

#endif
