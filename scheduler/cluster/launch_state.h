/*
 * What local nodes are, for the two files that start them (launch.c) and wait until they listen
 * (launch_wait.c). No other file includes this.
 */
#ifndef SCHEDULER_CLUSTER_LAUNCH_STATE_H
#define SCHEDULER_CLUSTER_LAUNCH_STATE_H

#include "scheduler/cluster/launch.h"

#define LINE_MAX_BYTES 1200u

typedef struct local_node {
    sherd__launched is;
    sherd__fingerprint key; /* what we gave it */
    int pipe;               /* our end; -1: none */
    int out;                /* its stdout; -1: none */
    int err;                /* its stderr, a file; -1: none */
    char line[LINE_MAX_BYTES];
    size_t line_len;
    bool up;            /* it has printed its line */
    int64_t stopped_ms; /* since when it is seen to be stopped; 0: it is not */
} local_node;

struct sherd__launch {
    uint32_t len;
    local_node nodes[];
};

/* launch_wait.c */

/** Waits until all nodes listen, or so many as opt says; the others are ended, and say why. */
int sherd__local_wait(sherd__launch *l, const sherd__launch_options *opt, sherd_diag *d) SHERD_MUST;
/** True once the process is gone, and reaped; *status as waitpid gives it. */
bool sherd__local_reap(local_node *n, bool wait, int *status);
/** True where the process is stopped: it will not end by itself, however long it is waited for. */
bool sherd__local_stopped(const local_node *n);
/** Fails with how the process ended and its last words. */
int sherd__local_ended(local_node *n, int code, int status, sherd_diag *d);

#endif
