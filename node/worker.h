/*
 * The task loop of a node, without a socket, clock or thread of its own: it takes sessions' events,
 * returns results and refusals through the sessions, and runs products on an executor. The server
 * (node/server.h) and the simulation use the same object.
 *
 * Every session is one client with its own blocks and its own queue. Keys share the compute
 * thread's time in equal parts, or take turns where no clock is given; the clients of one key take
 * turns in its part. Memory is reserved when a task arrives, so that an accepted task cannot fail
 * later for lack of it; a task that does not fit is refused, with the reason. A task small enough
 * not to delay the loop runs at once on the calling thread when nothing else runs: switching to the
 * compute thread costs more than the task.
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

/** A task with a lower estimate than this runs on the loop's thread. */
#define SHERD__INLINE_US 60.0

typedef struct sherd__worker_options {
    const sherd__backend *backend;
    void *backend_ctx;
    const sherd__device *devices; /* the first devices_len of the backend's devices; NULL: all */
    uint32_t devices_len;
    sherd__executor *executor;
    uint64_t memory; /* budget for blocks, arriving bodies and results of all clients */
    uint32_t passes; /* of training beside each other in a round; 0: one, also where the backend
                        computes passes in the host's memory */
    /** Called when a session has something to send outside one of its own events. May cause an
     *  event of the same session. May be NULL. */
    void (*flush)(void *ctx, void *tag);
    void *flush_ctx;
    /** Called from either thread when sherd__worker_poll should run in the loop's next turn. NULL:
     *  passes of gradients start only when all of their parameters are there, nothing is done in
     *  slices, and poll is not needed. */
    void (*wake)(void *ctx);
    void *wake_ctx;
    sherd__secure_self self;      /* zeroed: no secure aggregation */
    sherd__allreduce_links links; /* to members of all-reduce groups; zeroed: no links */
    /** Returns whether this key may send tasks to this node. NULL: no key is checked. */
    bool (*coordinator)(void *ctx, const sherd__fingerprint *key);
    void *coordinator_ctx;
    sherd__entropy entropy; /* keys of sessions' tables; zeroed: the system's */
    double (*clock)(void);  /* seconds, from any thread: for the times in results of gradients and
                               the times that keys' tasks take; NULL: no times */
} sherd__worker_options;

#define SHERD__OPS_MAX 32u /* all sherd__op numbers are lower */

/** Counters since the start; they are never reset. */
typedef struct sherd__worker_stats {
    uint64_t tasks[SHERD__OPS_MAX]; /* results passed to a session, by operation */
    uint64_t inline_tasks;          /* of these, computed on the loop's thread */
    uint64_t streamed_tasks;        /* of these, produced while they were sent */
    uint64_t refused, cancelled;
    uint64_t repeated;            /* device calls that failed and were submitted again */
    uint64_t blocks_in, bytes_in; /* bodies stored */
    uint64_t bytes_out;           /* bodies of results passed to a session */
    uint64_t clients_now, clients;
    uint64_t queued; /* tasks accepted and not answered, now */
    uint64_t reaped; /* records freed in slices: tasks, blocks, results */
} sherd__worker_stats;

/** Creates a worker. Free it only once the executor, which must outlive it, is drained. */
int sherd__worker_new(sherd__worker **out, const sherd__worker_options *opt) SHERD_MUST;
/** Frees the worker. All clients must have received SHERD__EV_CLOSED, and the executor must be
 *  drained. NULL is allowed. */
void sherd__worker_free(sherd__worker *w);

/**
 * Adds a session of the holder of `key`. The sessions of a key share one turn and may use `memory`
 * bytes of the budget (0: all of it). key NULL: the session has a turn and memory of its own. `tag`
 * is passed to flush. Returns SHERD_ENOMEM.
 */
int sherd__worker_join(sherd__worker *w, sherd__client **out, void *tag,
                       const sherd__fingerprint *key, uint64_t memory) SHERD_MUST;
/** Returns the account that the client shares with the other sessions of its key. */
sherd__account *sherd__worker_account(const sherd__client *c);
/** Sets place, unplace and block_max of the client's session, and the other options that concern
 *  the budget. */
void sherd__worker_session(sherd__client *c, sherd__session_options *opt);
/** Removes a client of which the session was not established (no event was given). */
void sherd__worker_leave(sherd__client *c);
/**
 * Handles an event of the client's session, and takes the event's fragment. SHERD__EV_CLOSED is the
 * last event: queued tasks and blocks are freed at once, those that the compute thread uses when it
 * is done.
 */
void sherd__worker_event(sherd__client *c, sherd__session *s, sherd__event *event);

/** Sends the finished results of running passes, frees a slice of what was dropped, and starts
 *  waiting tasks. */
void sherd__worker_poll(sherd__worker *w);

/*
 * Members of all-reduce groups. These functions handle events of the links that were opened for a
 * group, and records that other members send over their own connections, which belong to no client:
 * `id` names the group.
 */
void sherd__worker_link_up(sherd__worker *w, sherd__allreduce *allreduce, uint32_t member,
                           sherd__session *s);
/** The link has ended; the caller closes it. */
void sherd__worker_link_down(sherd__worker *w, sherd__allreduce *allreduce, uint32_t member,
                             int err, const char *why);
void sherd__worker_link_refused(sherd__worker *w, sherd__allreduce *allreduce, uint32_t member,
                                const sherd__refusal *r);
/** Returns the id of the group that the holder of this key may connect for, or 0. */
uint64_t sherd__worker_member(const sherd__worker *w, const sherd__fingerprint *key);
/** Returns how many groups of this account, with this id (0: any), have this key as a member. */
uint32_t sherd__worker_member_allreduces(const sherd__worker *w, const sherd__account *a,
                                         const sherd__fingerprint *key, uint64_t id);
/** Sets the options that concern the budget for a member's session, which counts in the account. */
void sherd__worker_member_session(sherd__worker *w, const sherd__account *a,
                                  sherd__session_options *opt);
/** Returns the account of the group's coordinator: links that the group opens count there. */
sherd__account *sherd__worker_allreduce_account(const sherd__worker *w,
                                                const sherd__allreduce *allreduce);
/** Allocates the body of a block for a group, from the account of the group's coordinator: from
 *  *account, or where that is NULL from the one that *account is set to. The bytes go back to the
 *  account's pool. Returns NULL where no group waits for the block, or where there is no room. */
uint8_t *sherd__worker_member_place(sherd__worker *w, sherd__account **account,
                                    const sherd__fingerprint *key, uint64_t id, uint32_t number,
                                    uint64_t len);
/** Handles a block for the groups of this account; NULL: of any account. Takes f. Returns
 *  SHERD_EUNASKED where this member may not send it; the caller then closes its connection. */
int sherd__worker_member_block(sherd__worker *w, const sherd__account *a,
                               const sherd__fingerprint *key, uint64_t id, uint32_t number,
                               sherd__fragment *f) SHERD_MUST;
/** Handles the end of a member's connection that counted for this account. */
void sherd__worker_member_gone(sherd__worker *w, const sherd__account *a,
                               const sherd__fingerprint *key, uint64_t id);
/** Takes bytes from the pool, as a session's place: frees what is no longer needed if there is no
 *  room. */
uint8_t *sherd__worker_place(void *pool, uint64_t job, uint32_t number, uint64_t len);
/** Returns bytes to the pool that they were taken from, as a session's unplace. */
void sherd__worker_unplace(void *pool, uint8_t *bytes, uint64_t len);
/** Returns the list of all accounts. */
sherd__account *sherd__worker_accounts(const sherd__worker *w);

/** Returns why all devices are lost; NULL: they are not. */
const char *sherd__worker_lost(const sherd__worker *w);

const sherd__worker_stats *sherd__worker_stats_of(const sherd__worker *w);
const sherd__pool_stats *sherd__worker_memory(const sherd__worker *w);

#endif
