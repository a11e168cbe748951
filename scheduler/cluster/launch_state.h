/*
 * State of local nodes, for the two files that start them (launch.c) and wait until they listen
 * (launch_wait.c). No other file includes this.
 */
#ifndef SCHEDULER_CLUSTER_LAUNCH_STATE_H
#define SCHEDULER_CLUSTER_LAUNCH_STATE_H

#include "scheduler/cluster/launch.h"

#define LINE_MAX_BYTES 1200u

typedef struct local_node {
    sherd__launched is;
    sherd__fingerprint key; /* that we gave it */
    int pipe;               /* our end; -1: none */
    int out;                /* its stdout; -1: none */
    int err;                /* its stderr, a file; -1: none */
    char line[LINE_MAX_BYTES];
    size_t line_len;
    bool up;            /* it has printed its line */
    int64_t stopped_ms; /* time since which it is stopped; 0: it is not */
} local_node;

struct sherd__launch {
    uint32_t len;
    local_node nodes[];
};

/* launch_wait.c */

/** Waits until all nodes listen, or as many as opt requires. The others are killed and marked
 *  absent, with the reason. */
int sherd__local_wait(sherd__launch *l, const sherd__launch_options *opt, sherd_diag *d) SHERD_MUST;
/** Returns true once the process has ended, and reaps it; *status is that of waitpid. */
bool sherd__local_reap(local_node *n, bool wait, int *status);
/** Returns true if the process is stopped: it does not end without a signal, however long we
 *  wait. */
bool sherd__local_stopped(const local_node *n);
/** Fails with the exit status of the process and the end of its stderr. */
int sherd__local_ended(local_node *n, int code, int status, sherd_diag *d);

#endif
