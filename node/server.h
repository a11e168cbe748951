/*
 * A scheduler node: listener, allow-list, sessions, task loop and compute thread on one event loop.
 * It keeps nothing when it is closed, and a process may have several. lib/node.c gives it a thread,
 * and the files that this folder may not use: its ledger and its record.
 */
#ifndef NODE_SERVER_H
#define NODE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "node/backend.h"
#include "node/pool.h"
#include "node/worker.h"
#include "sherd/err.h"
#include "sherd/hooks.h"
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

typedef struct sherd__server_options {
    const char *host;      /* address or name to listen on */
    uint16_t port;         /* 0: the system chooses */
    const char *line_host; /* host and port in the node's line; NULL, 0: those that it listens */
    uint16_t line_port;    /* on, or an address of this machine if it listens on all */
    const char *name, *domain; /* for the node's line; may be NULL */

    const sherd_identity *identity; /* borrowed */
    const sherd__peers *peers;      /* members to aggregate with; borrowed; NULL: named by the
                                       coordinator */
    int parent_pipe;                /* descriptor, closed with the node, which ends with
                                       it; -1: none */
    bool stay;                      /* unless the parent has written to it */

    const sherd__backend *backend;
    sherd__backend_options how; /* its devices; the members below are used in place of its own */
    uint32_t threads;           /* compute threads; 0: the backend's choice */
    const char *cores;          /* cores to bind to (node/cores.h): "0,2,3"; NULL: unbound */
    bool quick, tested;         /* sherd__backend_options.quick, .tested */
    uint64_t memory;            /* budget for blocks, arriving bodies and results */
    uint32_t connections_max;   /* 0: 64 */

    const sherd__own *data; /* its own examples, for secure aggregation; borrowed; may be NULL */
    const sherd__policy *policy; /* with data: limits on their use; borrowed */
    sherd__ledger_ref ledger;    /* with data: called from the compute thread */

    sherd__node_tap tap; /* open NULL: no tap */

    sherd_hooks hooks; /* interrupted: asked while the node opens. log: called on the thread that
                          opens the node, then on that of the loop */

    /* Called on the thread that opens the node, or on that of its loop. */
    /** sherd__server_wake was called. */
    void (*woken)(void *ctx);
    /** The node begins to end. parent: because the parent's pipe has ended. */
    void (*ending)(void *ctx, bool parent);
    /** The node should end, and all connections are closed, but a product is still running: the
     *  loop runs on until it is finished. */
    void (*computing)(void *ctx);
    void *ctx;
} sherd__server_options;

typedef struct sherd__server sherd__server;

/** Formats the line of a node that listens on this port. Calls hooks.log if the address in it is a
 *  guess. */
void sherd__server_line_of(const sherd__server_options *o, uint16_t port,
                           char out[SHERD_PEER_LINE_SIZE]);
/**
 * Opens a node: it listens, and serves when sherd__server_run is called. *opt must stay valid until
 * sherd__server_close, which the caller calls; *out is NULL on failure. `allowed` is taken on
 * success.
 *
 * Errors: SHERD_EDEVICE (self-test), SHERD_EINVAL (cores), SHERD_EADDRINUSE, SHERD_ENET,
 * SHERD_ENOMEM, SHERD_EINTERRUPTED.
 */
int sherd__server_open(sherd__server **out, const sherd__server_options *opt, sherd__peers *allowed,
                       sherd_diag *d) SHERD_MUST;
/** Returns its own line of a node file. */
const char *sherd__server_line(const sherd__server *s);
/** Serves on the calling thread, which must block SIGPIPE, until sherd__server_end was called or
 *  the parent's pipe has ended, and every connection is closed and every product finished. */
void sherd__server_run(sherd__server *s);
/** Makes the loop call `woken` soon. From any thread. */
void sherd__server_wake(sherd__server *s);
/** Frees everything; the loop must not run. NULL is allowed. */
void sherd__server_close(sherd__server *s);

/* To be called on the loop's thread, or by any thread while the loop does not run. */

/** Begins to end: no connection is accepted, and every coordinator is notified. */
void sherd__server_end(sherd__server *s, const char *why);
/** Replaces the allow-list, which is taken, and ends connections that the new one does not
 *  allow. */
void sherd__server_allow(sherd__server *s, sherd__peers *allowed);
const sherd__worker_stats *sherd__server_tasks(const sherd__server *s);
const sherd__pool_stats *sherd__server_memory(const sherd__server *s);
/** Returns the first device of the backend. */
const sherd__device *sherd__server_device(const sherd__server *s);
/** Returns why the node ended because all its devices are lost; NULL: it did not. */
const char *sherd__server_lost(const sherd__server *s);

#endif
