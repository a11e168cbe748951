/*
 * A scheduler node as a process: listener, allow-list, sessions, task loop and compute thread on
 * one event loop. Stateless: everything is gone with it. The command (cli/node.c) and tests call
 * it.
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

/** Sees the plaintext of each session, both ways (`sherd node --record`). */
typedef struct sherd__node_tap {
    /** A session begins; what it returns is given to the two below. NULL: the session is refused */
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
    const char *name, *domain; /* of the line that the node prints; may be NULL */

    /* Either key and allow-list from files, or both from the parent over an inherited pipe. */
    const char *key_file, *allow_file; /* the list is read again on SIGHUP */
    int parent_pipe;                   /* descriptor; -1: none. At its end the node ends, */
    bool stay;                         /* unless the parent has written something to it before */

    const sherd__backend *backend;
    uint32_t threads;         /* compute threads; 0: the backend's choice */
    const char *cores;        /* to be bound to (node/cores.h): "0,2,3"; NULL: none */
    bool quick;               /* sherd__backend_options.quick */
    uint64_t memory;          /* budget for blocks, arriving bodies and results */
    uint32_t connections_max; /* 0: 64 */

    const sherd__own *data; /* examples of its own, for secure aggregation; borrowed. NULL: none */
    const char *peers_file; /* whom it aggregates with; NULL: whom the coordinator names */
    const sherd__policy *policy; /* with data: what is allowed of them; borrowed */
    sherd__ledger_ref ledger;    /* with data: called from the compute thread */

    sherd__node_tap tap; /* open NULL: none */

    /** A signal came before the node watches for them itself: asked between the steps of its start,
     *  which then fails with SHERD_EINTERRUPTED. May be NULL. */
    bool (*interrupted)(void *ctx);
    /** The node listens: `line` is its own line of a node file. */
    void (*listening)(void *ctx, const char *line);
    /** Words for people, one line each; never secrets. May be NULL. */
    void (*say)(void *ctx, sherd__node_level level, const char *line);
    /** The counters: at the end, and on SIGUSR1. May be NULL. */
    void (*report)(void *ctx, const sherd__worker_stats *tasks, const sherd__pool_stats *memory,
                   const sherd__device *device);
    /** The node is to end, but a product is still running, two seconds later or with nobody left to
     *  want it: ends the process, does not return. */
    void (*abandon)(void *ctx);
    void *ctx;
} sherd__node_options;

/**
 * Runs a node until SIGTERM, SIGINT or the end of the parent's pipe: 0. Otherwise why it could not
 * start: SHERD_EDEVICE self-test, SHERD_EKEY, SHERD_EOPEN, SHERD_EFORMAT (allow-list, also an empty
 * one), SHERD_EADDRINUSE, SHERD_ENET, SHERD_ENOMEM, SHERD_EINTERRUPTED. Handles SIGHUP, SIGINT,
 * SIGTERM, SIGUSR1 while it runs, and expects SIGPIPE to be ignored.
 */
int sherd__node_run(const sherd__node_options *opt, sherd_diag *d) SHERD_MUST;

#endif
