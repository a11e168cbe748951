/*
 * The libuv shell of all-reduce groups (node/allreduce/allreduce.h): connections to other members,
 * which this node opens in the role of a coordinator, and those that members open to it. A member's
 * connection is not a client's: only blocks of the group reach the task loop over it, and any other
 * record ends it.
 *
 * The loop's thread makes all calls.
 */
#ifndef NODE_ALLREDUCE_MEMBERS_H
#define NODE_ALLREDUCE_MEMBERS_H

#include <uv.h>

#include "node/worker.h"
#include "wire/link.h"

typedef struct sherd__members sherd__members;

typedef struct sherd__members_options {
    uv_loop_t *loop;
    const sherd_identity *identity;
    /** Writes a line to the log, as a problem or a note. The number of lines a minute is limited
     *  for each coordinator's key. */
    void (*say)(void *ctx, bool problem, const char *line);
    /** Returns how many connections the holder of the account's key may have. */
    uint32_t (*most)(void *ctx, const sherd__account *a);
    /** Called when the last connection is closed. */
    void (*drained)(void *ctx);
    void *ctx;
} sherd__members_options;

int sherd__members_new(sherd__members **out, const sherd__members_options *opt) SHERD_MUST;
/** Frees the members. No connection may be left. NULL is allowed. */
void sherd__members_free(sherd__members *m);
/** Returns the functions that a worker's options need. */
sherd__allreduce_links sherd__members_links(sherd__members *m);
/** Sets the worker, which was made with these functions. */
void sherd__members_serve(sherd__members *m, sherd__worker *w);

/** Accepts a connection, as the listener's accept, from the holder of a key that
 *  sherd__worker_member knows; the session's hello is filled in. Returns SHERD_EBUSY where the
 *  member, or the coordinator that names it, has as many connections as it may, and
 *  SHERD_ENOMEM. */
int sherd__members_accept(sherd__members *m, sherd__link *l, const sherd__fingerprint *key,
                          sherd__session_options *session, sherd__link_owner *owner) SHERD_MUST;
/** Returns the number of connections that are not closed yet. */
uint32_t sherd__members_count(const sherd__members *m);
/** Says goodbye on all connections. */
void sherd__members_close(sherd__members *m);

#endif
