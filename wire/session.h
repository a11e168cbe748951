/*
 * One peer's protocol state, without socket, clock or TLS: bytes in, bytes and events out, time as
 * an argument. libuv + TLS (wire/link.h), the simulation, unit tests and fuzzers all drive this
 * same object. Both roles are here; the role decides which messages are legal in which direction.
 *
 * After any call, send what sherd__session_pending() offers: an error may have queued a BYE.
 */
#ifndef WIRE_SESSION_H
#define WIRE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/grouped.h"
#include "crypto/fragment.h"
#include "sherd/err.h"
#include "sherd/windows.h"

typedef struct sherd_session sherd_session;

typedef enum sherd__role { SHERD__COORDINATOR = 1, SHERD__NODE = 2 } sherd__role;

/* Operations of a task. The numbers travel. */
typedef enum sherd__op {
    SHERD__OP_MULTIPLY = 1,
    SHERD__OP_MULTIPLY_T = 2, /* left^T * right, one group each */
    SHERD__OP_GRADIENT = 3,   /* left: a plan, right: a tier's parameters (docs/PROTOCOL.md) */
    /* Training by nodes that add up among themselves (learn/allreduce.h): */
    SHERD__OP_MEET = 4,    /* left: who is in it and what is trained, right: a roster */
    SHERD__OP_CONNECT = 5, /* links to other members; gives which failed */
    SHERD__OP_STEP = 6,    /* left: a round; gives what its shards cost */
    SHERD__OP_REDUCE = 7,  /* left: the same; the sum over all members, and figures of it */
    /* Secure aggregation, by nodes with data of their own (learn/secure.h; CONFIRM and CHECK): */
    SHERD__OP_JOIN = 8,     /* left: what is trained; gives a key, signed */
    SHERD__OP_ROSTER = 9,   /* right: everybody's keys */
    SHERD__OP_SEAL = 10,    /* a round begins; gives pieces of a mask, sealed */
    SHERD__OP_HIDE = 11,    /* right: parameters; gives gradient and mask, added up */
    SHERD__OP_OPEN = 12,    /* left: who confirms, right: pieces of the survivors, if they were
                                 not checked; gives their sum */
    SHERD__OP_STATE = 13,   /* of a circle: parameters, and what belongs to them */
    SHERD__OP_WHERE = 14,   /* of a circle: how far a round has come */
    SHERD__OP_CONFIRM = 15, /* of a sum: its survivors; gives a signature of that */
    SHERD__OP_SIGMOID = 16,
    SHERD__OP_MINUS = 17,
    SHERD__OP_SQUARE = 18,
    SHERD__OP_TIMES = 19, /* element by element */
    SHERD__OP_RELU = 20,
    SHERD__OP_TANH = 21,
    SHERD__OP_EXP = 22,
    SHERD__OP_CHECK = 23 /* right: pieces of the survivors; gives which are not sealed well */
} sherd__op;

enum {                       /* sherd__task.flags */
       SHERD__DROP_LEFT = 1, /* the node drops the block once the task is done */
       SHERD__DROP_RIGHT = 2
};

#define SHERD__PRIMES_MAX 4
#define SHERD__TEXT_MAX 200 /* bytes of a reason, with its terminator */

/** What a task asks: result = op(left, right), over blocks that were PUT under the same job. */
typedef struct sherd__task {
    uint64_t job; /* random, never reused */
    uint32_t task, attempt;
    uint32_t op; /* sherd__op */
    uint32_t flags;
    uint32_t left, right; /* block numbers; right = 0: none */
    uint32_t primes_len;  /* 0: plain f64 arithmetic; else modulo each of these */
    uint32_t primes[SHERD__PRIMES_MAX];
    sherd_windows windows; /* window 0: none. Else, of a product: the rows of left are images, and
                              the matrix of their windows is meant */
    sherd__fragment_info result; /* computed by the coordinator; the node refuses if it disagrees */
} sherd__task;

/** The protocol minor that this code speaks: minor_min and minor_max of our HELLO and WELCOME. The
 *  major version is the name that TLS agrees on, "sherd/1". */
#define SHERD__MINOR 1u

/* sherd__hello.features */
#define SHERD__FEATURE_GRADIENTS 1u /* a node that computes SHERD__OP_GRADIENT */
#define SHERD__FEATURE_SECURE 4u    /* ... SHERD__OP_JOIN to SHERD__OP_OPEN */
#define SHERD__FEATURE_ALLREDUCE                                                                   \
    16u                            /* ... SHERD__OP_MEET to SHERD__OP_REDUCE, OP_STATE, OP_WHERE */
#define SHERD__FEATURE_WINDOWS 32u /* ... sherd__task.windows */
#define SHERD__FEATURE_CONFIRM 64u /* ... SHERD__OP_CONFIRM, and opens nothing without it */
#define SHERD__FEATURE_CHECK 128u  /* ... SHERD__OP_CHECK */
#define SHERD__FEATURE_DATA 8u     /* a node that has examples of its own */

/** What each side says of itself in HELLO (coordinator) and WELCOME (node). */
typedef struct sherd__hello {
    uint32_t minor_min, minor_max; /* protocol minors offered; WELCOME has the chosen one twice */
    uint64_t features;             /* SHERD__FEATURE_*; bits that are not known are ignored */
    char software[48];             /* "sherd 0.1.0" */
    char blas_core[32];            /* node: OpenBLAS core name */
    char backend[16];              /* node: "cpu", ... */
    uint32_t threads;              /* node: compute threads */
    uint64_t memory;               /* node: bytes it will store for this coordinator's key */
    double gflops;                 /* node: measured at its self-test, f64 */
    double residue_gflops;         /* likewise, of packed residues; 0: as f64, once taken apart */
} sherd__hello;

typedef enum sherd__event_kind {
    SHERD__EV_NONE = 0,
    SHERD__EV_READY,   /* handshake done; event.hello is the peer's */
    SHERD__EV_BLOCK,   /* node: block complete; event.fragment is the receiver's to free */
    SHERD__EV_DROP,    /* node: event.job, event.block (0: the whole job) */
    SHERD__EV_TASK,    /* node: event.task */
    SHERD__EV_CANCEL,  /* node: event.job, event.number = task (0: all of the job), event.task has
                           the attempt. The session has answered: give no RESULT or REFUSE. */
    SHERD__EV_RESULT,  /* coordinator: event.task as it was sent, event.fragment the receiver's */
    SHERD__EV_REFUSED, /* coordinator: event.refusal */
    SHERD__EV_CLOSED   /* the session is over: event.err and event.text say why; event.refusal.code
                           is the code of the peer's BYE, if one came. Always the last, once. */
} sherd__event_kind;

typedef struct sherd__refusal {
    uint64_t job;
    uint32_t block, task, attempt; /* the one that applies is not 0 */
    int code;                      /* SHERD_E* that the node gives as its reason */
    char text[SHERD__TEXT_MAX];
} sherd__refusal;

typedef struct sherd__event {
    sherd__event_kind kind;
    uint64_t job;
    uint32_t block, number;
    sherd__hello hello;
    sherd__task task;
    sherd__refusal refusal;
    sherd_fragment *fragment;
    int err;
    char text[SHERD__TEXT_MAX];
} sherd__event;

/** Counters: bytes are plaintext protocol bytes, headers included (what a recorder sees). */
typedef struct sherd__session_stats {
    uint64_t bytes_in, bytes_out;
    uint64_t work_in, work_out;   /* of these, PUT, TASK and RESULT: what wire/size.h foretells */
    uint64_t moved_in, moved_out; /* bytes of bodies that have come, of those asked for; of blocks
                                     and tasks that have been handed to the transport */
    uint64_t unsent;              /* of the latter, as sherd__session_unsent was told last */
    uint64_t records_in, records_out;
    uint64_t tasks, results, refusals;
    uint64_t last_heard_ms;
} sherd__session_stats;

typedef struct sherd__session_options {
    sherd__role role;
    sherd__hello hello; /* ours */
    uint64_t now_ms;
    uint64_t block_max; /* node: a longer block is refused, its body skipped; 0: any */
    /**
     * Memory for the body of an arriving block (node) or result (coordinator), after every check of
     * its description. NULL: no room; a node then REFUSEs the block and skips its body; a
     * coordinator ends the session with SHERD_ENOMEM. NULL callback: sherd__alloc.
     */
    uint8_t *(*place)(void *ctx, uint64_t job, uint32_t number, uint64_t len);
    /** Gives back what place gave: for bodies cut off midway, and when the fragment is freed. */
    void (*unplace)(void *ctx, uint8_t *bytes, uint64_t len);
    void *place_ctx;
    /** Node: of the table of open tasks, whose names the peer chooses, and what it and answers that
     *  wait count in. A task that finds no room there is refused with SHERD_ENOMEM. */
    sherd__table_key table_key;
    sherd__budget budget;
    /** Sees every plaintext byte: out = true for bytes we send. May be NULL. */
    void (*tap)(void *ctx, bool out, const uint8_t *bytes, size_t len);
    void *tap_ctx;
    /** Node: a refusal whose text the peer is not given (wire/says.h). May be NULL. */
    void (*withheld)(void *ctx, const sherd__refusal *r);
    void *withheld_ctx;
} sherd__session_options;

/* Times, in milliseconds. Any byte from the peer counts as life. */
#define SHERD__HANDSHAKE_MS 5000u /* HELLO and WELCOME done */
#define SHERD__PING_MS 2000u      /* a PING after this long without having heard anything */
#define SHERD__DEAD_MS 6000u      /* silence that ends the session with SHERD_ESILENT */
#define SHERD__STALL_MS 10000u    /* a body that makes less than SHERD__STALL_BYTES of progress */
#define SHERD__STALL_BYTES 65536u
/* Bytes of REFUSE that a peer may make a node queue without reading them; then the session ends. It
 * ends before, where there is no room in options.budget for more than the first of them. */
#define SHERD__ANSWERS_MAX (8u * 1024u * 1024u)
#define SHERD__ANSWERS_FREE (64u * 1024u)

/** SHERD_EINVAL for options that are none (role, minors, a speed that is no number); ENOMEM. */
int sherd__session_new(sherd_session **out, const sherd__session_options *opt) SHERD_MUST;
/** Lets go of it, and frees it where nobody else shares it. NULL is allowed. */
void sherd__session_free(sherd_session *s);
/** From now on it is freed by one call of sherd__session_free more. */
void sherd__session_share(sherd_session *s);
/** Of a node's session that is over (SHERD__EV_CLOSED): frees up to `most` of the tasks that were
 *  open and of the answers that were not sent; how many they were. Without it, free does so. */
size_t sherd__session_reap(sherd_session *s, size_t most);
/** Nothing is left of those. */
bool sherd__session_reaped(const sherd_session *s);

/**
 * Gives the session bytes that arrived from its peer. Takes at most one record's worth; *used says
 * how many bytes were taken (call again with the rest while *used < len). One event at most
 * results; it is complete in *event (kind NONE where nothing happened). Returns 0, or the SHERD_E*
 * code that ended the session (event->kind is then SHERD__EV_CLOSED; NONE if that was told before).
 * Never blocks.
 */
int sherd__session_feed(sherd_session *s, const uint8_t *in, size_t len, uint64_t now_ms,
                        size_t *used, sherd__event *event);
/**
 * Where the next bytes belong while a body is arriving: *room bytes of its own memory. A transport
 * that decrypts straight into them, and then feeds them from there (at most *room of them), saves a
 * copy. NULL, with *room = 0, at any other time: use a buffer of your own.
 */
uint8_t *sherd__session_window(const sherd_session *s, size_t *room);
/** The peer's end of the connection is gone (err = SHERD_ECLOSED or what the transport met). */
void sherd__session_eof(sherd_session *s, int err, const char *why, sherd__event *event);

/**
 * Bytes to send now: *out borrows until the next call on the session. 0: nothing. Control messages
 * go before bulk; bulk is cut into records of at most SHERD__CHUNK bytes, so that a PING or CANCEL
 * never waits behind a whole block. Fragments are read here, a chunk at a time: do not call it
 * while the transport already holds more than its high-water mark.
 */
size_t sherd__session_pending(sherd_session *s, uint64_t now_ms, const uint8_t **out);
/** The first n bytes of what pending offered have been taken over by the transport. */
void sherd__session_sent(sherd_session *s, size_t n);
#define SHERD__CHUNK (256u * 1024u)

/** Earliest time at which sherd__session_tick has something to do. */
uint64_t sherd__session_deadline(const sherd_session *s);
/** Pings, ends a session whose peer is silent or stalls, and tells of an end that another call
 *  met (event SHERD__EV_CLOSED). A call far behind its deadline after which nothing was heard is
 *  forgiven once: then it was this process that slept, and the peer's bytes may lie unread. */
void sherd__session_tick(sherd_session *s, uint64_t now_ms, sherd__event *event);

bool sherd__session_ready(const sherd_session *s);
/** What the peer has said of itself; of a session that is or was ready. */
const sherd__hello *sherd__session_peer(const sherd_session *s);
const sherd__session_stats *sherd__session_stats_of(const sherd_session *s);
/** The transport still holds so many of the bytes that it took over: they have not arrived. */
void sherd__session_unsent(sherd_session *s, uint64_t bytes);
/** Bytes of work that have moved, both ways: those of answers that were asked for, as they come,
 *  and of blocks and tasks that have left the transport. Heartbeats, unknown records and refusals
 *  are none. May decrease while the transport takes more than it sends. */
uint64_t sherd__session_moved(const sherd_session *s);
/** Bytes of fragments and control messages that wait in the session, not yet offered. */
uint64_t sherd__session_queued(const sherd_session *s);

/*
 * Coordinator. Fragments are taken on success and freed when sent; one that is of the wrong origin,
 * or a session that is not ready, is SHERD_EINVAL and the caller keeps it. Block numbers are the
 * coordinator's, never 0.
 */
int sherd__session_put(sherd_session *s, uint64_t job, uint32_t block,
                       sherd_fragment *f) SHERD_MUST;
/** Registers (job, task, attempt) as outstanding: only then is a RESULT of it accepted, once, and
 *  only of task->result's description. Blocks must have been put before. SHERD_EBUSY with 131072
 *  tasks outstanding; SHERD_EINVAL for one that is outstanding already. */
int sherd__session_task(sherd_session *s, const sherd__task *task) SHERD_MUST;
int sherd__session_drop(sherd_session *s, uint64_t job, uint32_t block) SHERD_MUST;
/**
 * The job is over: cancels its tasks, takes back what waits to be sent and drops its blocks. Once
 * this returns, whatever it returns, no fragment of the job is produced from its source again. A
 * body that is under way goes on with zeros; its drop follows it. SHERD_EINVAL where not ready.
 */
int sherd__session_forget(sherd_session *s, uint64_t job) SHERD_MUST;
/**
 * The block is no longer wanted, nor any task that is outstanding and reads it: as above, for one
 * block. SHERD_EINVAL where not ready.
 */
int sherd__session_retract(sherd_session *s, uint64_t job, uint32_t block) SHERD_MUST;
/** The task is no longer wanted (task and attempt 0: all of the job). A RESULT or REFUSE of it that
 *  is already under way is swallowed; a block that it was to drop and of which nothing has left
 *  does not leave. SHERD_EINVAL for a task that is not outstanding. */
int sherd__session_cancel(sherd_session *s, uint64_t job, uint32_t task,
                          uint32_t attempt) SHERD_MUST;

/*
 * Node. Every TASK is answered once. SHERD_EUNASKED, and the caller keeps the fragment, for a task
 * that is not open: answered before, or cancelled meanwhile.
 */
int sherd__session_result(sherd_session *s, const sherd__task *task, sherd_fragment *f) SHERD_MUST;
int sherd__session_refuse(sherd_session *s, const sherd__refusal *r) SHERD_MUST;

/** Both: reading from the peer is held back by us (true), or goes on. While it is, its silence
 *  says nothing and ends nothing; PINGs keep telling it that we live. */
void sherd__session_hold(sherd_session *s, bool held, uint64_t now_ms);

/** Both: says goodbye with a reason; what still waits in bulk is dropped. The session ends
 *  (SHERD__EV_CLOSED from tick, err = code, or SHERD_ECLOSED for 0) once that is sent. */
void sherd__session_bye(sherd_session *s, int code, const char *reason);

#endif
