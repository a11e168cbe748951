/*
 * Local nodes: processes of the sherd command on loopback ports that the system chooses. Each
 * receives a fresh key and an allow-list of one line over a pipe (never in arguments, environment
 * or files). It ends when the pipe is closed, so that no node is left over even after `kill -9` of
 * this process.
 *
 * Processes are created by posix_spawn, which neither runs fork handlers nor copies memory. This is
 * therefore safe at any time, even while OpenBLAS's threads run. No signal handler is installed or
 * needed.
 */
#ifndef SCHEDULER_CLUSTER_LAUNCH_H
#define SCHEDULER_CLUSTER_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sherd/err.h"
#include "sherd/hooks.h"
#include "wire/identity.h"

typedef struct sherd__launch sherd__launch;

/** Where local nodes compute. Zeroed: on the processor. */
typedef struct sherd__launch_on {
    const char *backend; /* as in sherd_node_options; NULL: "cpu", or "auto" if a device is asked
                            for */
    const char *devices; /* as in sherd_node_options, for each node; with `each`: the devices that
                            are divided among the nodes, NULL being all */
    uint32_t each;       /* each node has this number of devices of its own; 0: not divided */
    const char *opencl_library, *cuda_library; /* as in sherd_node_options */
} sherd__launch_on;

typedef struct sherd__launch_options {
    uint32_t nodes;
    const char *program; /* the sherd command, searched for in PATH if it has no slash; NULL:
                                 sherd__command_find. The running executable is never the default: a
                                 program other than sherd would start itself again and again */
    const char *verb;    /* the command's verb that runs a node; NULL: "node" */
    uint64_t memory;     /* bytes per node; 0: sherd__memory_of_node */
    uint32_t threads;    /* BLAS threads per node; 0: max(1, cores / nodes) */
    bool unbound;        /* do not bind nodes to cores (node/cores.h), even if they have as
                                 many threads in total as there are cores */
    sherd__launch_on on;
    uint32_t deadline_ms;     /* for all of them to listen; 0: 10 s plus 100 ms per node, and four
                                 minutes if they may have to compile kernels for devices. Time that
                                 a node waits for a processor is not counted, up to six times the
                                 limit */
    uint32_t timeout_ms;      /* the caller's own limit, if it is less; 0: none */
    uint32_t least;           /* if fewer listen because others were stopped or killed:
                                 SHERD_EFEWNODES; 0: all must listen */
    uint32_t spare;           /* number of nodes that may be late: they are not waited for much
                                 longer than the others took (wait_policy.h) */
    sherd__fingerprint allow; /* the only key that they accept */
    const char *log_dir;      /* if not NULL, nodes outlive this process once they are released, and
                                 write their messages to NAME.log in this directory */
    sherd_hooks hooks;        /* `interrupted` alone is used */
} sherd__launch_options;

typedef struct sherd__launched {
    pid_t pid;        /* 0 after it has been waited for */
    uint64_t started; /* sherd__process_started(pid), which differs from that of later processes
                         with the same number */
    sherd__peer peer; /* host, port, key, name "node-1", ...; for sherd__link_connect */
    char absent[200]; /* why it does not listen and never will; then port and pid are 0. Empty: it
                         listens */
} sherd__launched;

/**
 * Starts the nodes and waits until each has printed its line, or is absent and may be: stopped for
 * a second, killed, or late, within the limits of least and spare. On failure no node is left, and
 * *d names the node that failed, with the end of its stderr. SHERD_EOPEN (no such program),
 * SHERD_ETIMEOUT, SHERD_EINTERRUPTED, SHERD_EAUTH (it printed another key), SHERD_EFEWNODES (it
 * ended, or too many are absent), SHERD_EINVAL (it has no such device), errors of
 * sherd__launch_devices_divide. The caller frees *out with sherd__launch_stop or
 * sherd__launch_release.
 */
int sherd__launch_start(sherd__launch **out, const sherd__launch_options *opt,
                        sherd_diag *d) SHERD_MUST;

uint32_t sherd__launch_len(const sherd__launch *l);
const sherd__launched *sherd__launch_node(const sherd__launch *l, uint32_t i);

/** Returns true if node i's process has been stopped for a second: no message will come from it. To
 *  be called repeatedly. */
bool sherd__launch_stopped(sherd__launch *l, uint32_t i);

/**
 * Returns 0 while node i runs. Otherwise reaps it and returns SHERD_ECLOSED, with its exit status
 * and the end of its stderr in *d.
 */
int sherd__launch_check(sherd__launch *l, uint32_t i, sherd_diag *d);

/**
 * Ends all nodes: closes their pipes, waits up to grace_ms (0: 3000), then kills those that remain.
 * Stopped ones are killed at once. All are reaped. Frees l; NULL is allowed.
 */
void sherd__launch_stop(sherd__launch *l, uint32_t grace_ms);

/** Releases nodes with a log_dir, so that they outlive this process. Frees l. */
void sherd__launch_release(sherd__launch *l);

/** Returns when the kernel started process pid, in ticks since boot; 0 if there is no such
 *  process. */
uint64_t sherd__process_started(pid_t pid);

#endif
