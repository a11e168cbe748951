/*
 * A scheduler node as a process: listener, allow-list, sessions, task loop and compute thread on
 * one event loop. The node keeps no state beyond the process. The command (cli/node.c) and tests
 * call it.
 */
#ifndef NODE_SERVER_H
#define NODE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "node/backend.h"
#include "node/pool.h"
#include "node/worker.h"
#include "sherd/err.h"
#include "wire/identity.h"

/** Receives the plaintext of each session in both directions (`sherd node --record`). */
typedef struct sherd__node_tap {
    /** Called when a session starts. Its result is passed to the two functions below; NULL refuses
     *  the session. */
    void *(*open)(void *ctx, const sherd__fingerprint *peer, uint64_t session);
    void (*bytes)(void *tap, bool out, const uint8_t *bytes, size_t len);
    void (*close)(void *tap);
    void *ctx;
} sherd__node_tap;

typedef enum sherd__node_level {
    SHERD__NODE_NOTE,
    SHERD__NODE_SAY,
    SHERD__NODE_WARN
} sherd__node_level;

typedef struct sherd__node_options {
    const char *host;          /* address to listen on */
    uint16_t port;             /* 0: the system chooses */
    const char *name, *domain; /* for the line that the node prints; may be NULL */

    /* Key and allow-list come either from files, or both from the parent over an inherited pipe. */
    const char *key_file, *allow_file; /* the list is read again on SIGHUP */
    int parent_pipe;                   /* descriptor; -1: none. The node ends with it, */
    bool stay;                         /* unless the parent has written to it */

    const sherd__backend *backend;
    uint32_t threads;         /* compute threads; 0: the backend's choice */
    const char *cores;        /* cores to bind to (node/cores.h): "0,2,3"; NULL: unbound */
    bool quick;               /* sherd__backend_options.quick */
    uint64_t memory;          /* budget for blocks, arriving bodies and results */
    uint32_t connections_max; /* 0: 64 */

    const sherd__own *data; /* its own examples, for secure aggregation; borrowed; may be NULL */
    const char *peers_file; /* members to aggregate with; NULL: named by the coordinator */
    const sherd__policy *policy; /* with data: limits on their use; borrowed */
    sherd__ledger_ref ledger;    /* with data: called from the compute thread */

    sherd__node_tap tap; /* open NULL: no tap */

    /** Returns whether a signal came before the node handles signals. Called between the steps of
     *  its start, which then fails with SHERD_EINTERRUPTED. May be NULL. */
    bool (*interrupted)(void *ctx);
    /** Called when the node listens: `line` is its own line of a node file. */
    void (*listening)(void *ctx, const char *line);
    /** Receives messages for people, one line each; never secrets. May be NULL. */
    void (*say)(void *ctx, sherd__node_level level, const char *line);
    /** Receives the counters: at the end, and on SIGUSR1. May be NULL. */
    void (*report)(void *ctx, const sherd__worker_stats *tasks, const sherd__pool_stats *memory,
                   const sherd__device *device);
    /** Called where the node should end but a product is still running: two seconds later, or at
     *  once if the parent is gone. Must end the process and not return. */
    void (*abandon)(void *ctx);
    void *ctx;
} sherd__node_options;

/**
 * Runs a node until SIGTERM, SIGINT or the end of the parent's pipe, then returns 0. Handles
 * SIGHUP, SIGINT, SIGTERM and SIGUSR1 while it runs, and expects SIGPIPE to be ignored.
 *
 * Errors, where it could not start: SHERD_EDEVICE (self-test), SHERD_EKEY, SHERD_EOPEN,
 * SHERD_EFORMAT (allow-list, also an empty one), SHERD_EADDRINUSE, SHERD_ENET, SHERD_ENOMEM,
 * SHERD_EINTERRUPTED.
 */
int sherd__node_run(const sherd__node_options *opt, sherd_diag *d) SHERD_MUST;

#endif
