/*
 * The libuv shell of circles (node/allreduce/allreduce.h): connections to other members, which this
 * node opens as a coordinator would, and those that members open to it. A member's connection is
 * not a client's: nothing that comes over it reaches the task loop but blocks of the circle, and
 * anything else ends it.
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
    /** A line for people; a problem, or not. Some a minute for each coordinator's key. */
    void (*say)(void *ctx, bool problem, const char *line);
    /** How many connections the holder of the account's key may have. */
    uint32_t (*most)(void *ctx, const sherd__account *a);
    /** The last connection is gone. */
    void (*drained)(void *ctx);
    void *ctx;
} sherd__members_options;

int sherd__members_new(sherd__members **out, const sherd__members_options *opt) SHERD_MUST;
/** No connection may be left. NULL is allowed. */
void sherd__members_free(sherd__members *m);
/** As a worker's options want them. */
sherd__allreduce_links sherd__members_links(sherd__members *m);
/** The worker that was made with these. */
void sherd__members_serve(sherd__members *m, sherd__worker *w);

/** As the listener's accept, for somebody whom sherd__worker_member knows; the session's hello is
 *  filled in. SHERD_EBUSY: it, or the coordinator that names it, has as many connections as it may;
 *  SHERD_ENOMEM. */
int sherd__members_accept(sherd__members *m, sherd__link *l, const sherd__fingerprint *key,
                          sherd__session_options *session, sherd__link_owner *owner) SHERD_MUST;
/** Connections that are not gone yet. */
uint32_t sherd__members_count(const sherd__members *m);
/** Says goodbye on all of them. */
void sherd__members_close(sherd__members *m);

#endif
