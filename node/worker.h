/*
 * The task loop of a node, without socket, clock or thread of its own: sessions' events in, results
 * and refusals out through the sessions, products on an executor. The server (node/server.h) and
 * the simulation drive the same object.
 *
 * Every session is one client with its own blocks and its own queue. Keys share the compute
 * thread's time by equal parts, or take turns where no clock is given; the clients of one key take
 * turns in its part. Memory is reserved when a task arrives, so that an accepted task cannot fail
 * for want of it later; what does not fit is refused, with the reason. A task small enough not to
 * hold up the loop runs at once on the calling thread when nothing else runs: a hop to the compute
 * thread costs more than it does.
 *
 * One thread (the loop's) makes all calls here, and drains the executor.
 */
#ifndef NODE_WORKER_H
#define NODE_WORKER_H

#include <stdint.h>

#include "core/executor.h"
#include "node/allreduce/allreduce.h"
#include "node/backend.h"
#include "node/pool.h"
#include "node/secure/secure.h"
#include "sherd/err.h"
#include "wire/session.h"

typedef struct sherd__worker sherd__worker;
typedef struct sherd__client sherd__client;
typedef struct sherd__account sherd__account; /* node/account.h */

/** A task estimated to take less than this runs on the loop's thread. */
#define SHERD__INLINE_US 60.0

typedef struct sherd__worker_options {
    const sherd__backend *backend;
    void *backend_ctx;
    const sherd__device *devices; /* the first devices_len of the backend's; NULL: all */
    uint32_t devices_len;
    sherd__executor *executor;
    uint64_t memory; /* budget of blocks, arriving bodies and results of all clients */
    /** A session has something to send, from outside one of its own events. May end in an event of
     *  the same session. May be NULL. */
    void (*flush)(void *ctx, void *tag);
    void *flush_ctx;
    /** From either thread: sherd__worker_poll has something to do, in the loop's next turn. NULL:
     *  passes of gradients do not begin before all of their parameters are there, nothing is done
     *  in slices, and poll is not needed. */
    void (*wake)(void *ctx);
    void *wake_ctx;
    sherd__secure_self self;      /* zeroed: no secure aggregation */
    sherd__allreduce_links links; /* to members of circles; zeroed: none */
    /** Whether this key may give tasks here; NULL: nobody is asked. */
    bool (*coordinator)(void *ctx, const sherd__fingerprint *key);
    void *coordinator_ctx;
    sherd__entropy entropy; /* keys of sessions' tables; zeroed: the system's */
    double (*clock)(void);  /* seconds, from any thread: times in answers about gradients, and what
                              keys' tasks take; NULL: none */
} sherd__worker_options;

#define SHERD__OPS_MAX 32u /* sherd__op numbers are below */

/** Counters since the start; never reset. */
typedef struct sherd__worker_stats {
    uint64_t tasks[SHERD__OPS_MAX]; /* results handed to a session, by operation */
    uint64_t inline_tasks;          /* of these, on the loop's thread */
    uint64_t streamed_tasks;        /* of these, produced while sent */
    uint64_t refused, cancelled;
    uint64_t repeated;            /* calls of devices that failed and were submitted again */
    uint64_t blocks_in, bytes_in; /* bodies stored */
    uint64_t bytes_out;           /* bodies of results handed to a session */
    uint64_t clients_now, clients;
    uint64_t queued; /* tasks accepted and not answered, now */
    uint64_t reaped; /* records freed in slices: tasks, blocks, answers */
} sherd__worker_stats;

/** The executor outlives the worker's use of it: free the worker only once it is drained. */
int sherd__worker_new(sherd__worker **out, const sherd__worker_options *opt) SHERD_MUST;
/** All clients have seen SHERD__EV_CLOSED, and the executor is drained. NULL is allowed. */
void sherd__worker_free(sherd__worker *w);

/**
 * A new session of the holder of `key`, whose sessions take one turn together and may have `memory`
 * bytes of the budget (0: all of it). key NULL: a session that has its own. `tag` comes back in
 * flush. SHERD_ENOMEM.
 */
int sherd__worker_join(sherd__worker *w, sherd__client **out, void *tag,
                       const sherd__fingerprint *key, uint64_t memory) SHERD_MUST;
/** What its sessions share. */
sherd__account *sherd__worker_account(const sherd__client *c);
/** Sets place, unplace and block_max of its session, and what else the budget has to do with. */
void sherd__worker_session(sherd__client *c, sherd__session_options *opt);
/** The session never came to be (no event was ever given): forgets the client. */
void sherd__worker_leave(sherd__client *c);
/**
 * An event of the client's session. Takes the event's fragment. SHERD__EV_CLOSED is the last one:
 * queued tasks and blocks go at once, those that the compute thread uses when it is done.
 */
void sherd__worker_event(sherd__client *c, sherd__session *s, sherd__event *event);

/** Sends what passes that are still running have ready, frees a slice of what was dropped, and
 *  starts what waited for its turn. */
void sherd__worker_poll(sherd__worker *w);

/*
 * Members of circles. What a link that was opened for a circle meets, and what others send over
 * connections of theirs, which are nobody's client: `id` names the circle.
 */
void sherd__worker_link_up(sherd__worker *w, sherd__allreduce *circle, uint32_t member,
                           sherd__session *s);
/** The link is over, and closed by whoever calls. */
void sherd__worker_link_down(sherd__worker *w, sherd__allreduce *circle, uint32_t member, int err,
                             const char *why);
void sherd__worker_link_refused(sherd__worker *w, sherd__allreduce *circle, uint32_t member,
                                const sherd__refusal *r);
/** The circle that somebody with this key may connect for, or 0: none. */
uint64_t sherd__worker_member(const sherd__worker *w, const sherd__fingerprint *key);
/** How many circles of this account know them, of this name; 0: of any. */
uint32_t sherd__worker_member_allreduces(const sherd__worker *w, const sherd__account *a,
                                         const sherd__fingerprint *key, uint64_t id);
/** Sets what the budget has to do with of a session of theirs, which counts in the account. */
void sherd__worker_member_session(sherd__worker *w, const sherd__account *a,
                                  sherd__session_options *opt);
/** Whose circle it is: links that it opens count there. */
sherd__account *sherd__worker_allreduce_account(const sherd__worker *w,
                                                const sherd__allreduce *circle);
/** Bytes for the body of such a block, of the account of the circle's coordinator: of *account, or
 *  where that is NULL of the one that it is set to. They go back to its pool. NULL: no circle waits
 *  for it, or no room. */
uint8_t *sherd__worker_member_place(sherd__worker *w, sherd__account **account,
                                    const sherd__fingerprint *key, uint64_t id, uint32_t number,
                                    uint64_t len);
/** For circles of this account; NULL: of any. Takes f. SHERD_EUNASKED: not theirs to send; their
 *  connection is to be closed. */
int sherd__worker_member_block(sherd__worker *w, const sherd__account *a,
                               const sherd__fingerprint *key, uint64_t id, uint32_t number,
                               sherd__fragment *f) SHERD_MUST;
/** A connection of theirs that counted for this account, as above, is over. */
void sherd__worker_member_gone(sherd__worker *w, const sherd__account *a,
                               const sherd__fingerprint *key, uint64_t id);
/** Gives bytes back to the pool that they are of, as a session's unplace. */
void sherd__worker_unplace(void *pool, uint8_t *bytes, uint64_t len);
/** All accounts: a list. */
sherd__account *sherd__worker_accounts(const sherd__worker *w);

const sherd__worker_stats *sherd__worker_stats_of(const sherd__worker *w);
const sherd__pool_stats *sherd__worker_memory(const sherd__worker *w);

#endif
