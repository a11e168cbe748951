/*
 * The protocol state of one peer, without a socket, clock or TLS. Bytes go in, bytes and events
 * come out, and time is an argument. libuv with TLS (wire/link.h), the simulation, unit tests and
 * fuzzers all use the same object. It implements both roles; the role determines which messages are
 * valid in which direction.
 *
 * After any call, send what sherd__session_pending() returns: an error may have queued a BYE.
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

typedef struct sherd__session sherd__session;

typedef enum sherd__role { SHERD__COORDINATOR = 1, SHERD__NODE = 2 } sherd__role;

/* Operations of a task. The numbers are part of the protocol. */
typedef enum sherd__op {
    SHERD__OP_MULTIPLY = 1,
    SHERD__OP_MULTIPLY_T = 2, /* left^T * right, one group each */
    SHERD__OP_GRADIENT = 3,   /* left: a plan, right: parameters of one tier (docs/PROTOCOL.md) */
    /* Training by nodes that all-reduce among themselves (learn/allreduce.h): */
    SHERD__OP_MEET = 4,    /* left: a plan (members, model), right: a roster */
    SHERD__OP_CONNECT = 5, /* connects to other members; returns which connections failed */
    SHERD__OP_STEP = 6,    /* left: a round; returns the cost of its shards */
    SHERD__OP_REDUCE = 7,  /* left: a round; returns the sum over all members, and statistics */
    /* Secure aggregation, by nodes with their own data (learn/secure.h; CONFIRM and CHECK too): */
    SHERD__OP_JOIN = 8,   /* left: a plan; returns a signed key */
    SHERD__OP_ROSTER = 9, /* right: the keys of all members */
    SHERD__OP_SEAL = 10,  /* starts a round; returns sealed pieces of a mask */
    SHERD__OP_HIDE = 11,  /* right: parameters; returns the sum of gradient and mask */
    /* left: who confirmed, right: pieces of survivors, if not checked; returns their sum */
    SHERD__OP_OPEN = 12,
    SHERD__OP_STATE = 13,   /* all-reduce group: returns the parameters and their state */
    SHERD__OP_WHERE = 14,   /* all-reduce group: returns the progress of a round */
    SHERD__OP_CONFIRM = 15, /* left: survivors of a sum; returns a signature of them */
    SHERD__OP_SIGMOID = 16,
    SHERD__OP_MINUS = 17,
    SHERD__OP_SQUARE = 18,
    SHERD__OP_TIMES = 19, /* element by element */
    SHERD__OP_RELU = 20,
    SHERD__OP_TANH = 21,
    SHERD__OP_EXP = 22,
    SHERD__OP_CHECK = 23 /* right: pieces of survivors; returns which are not sealed correctly */
} sherd__op;

enum {                       /* sherd__task.flags */
       SHERD__DROP_LEFT = 1, /* the node drops the block when the task is done */
       SHERD__DROP_RIGHT = 2
};

#define SHERD__PRIMES_MAX 8 /* of a task; of one on packed residues, SHERD__RESIDUES_PRIMES_MAX */
#define SHERD__TEXT_MAX 200 /* bytes of a reason, with the terminating NUL */

/** A task: result = op(left, right), over blocks that were PUT under the same job. */
typedef struct sherd__task {
    uint64_t job; /* random, never reused */
    uint32_t task, attempt;
    uint32_t op; /* sherd__op */
    uint32_t flags;
    uint32_t left, right; /* block numbers; right = 0: none */
    uint32_t primes_len;  /* 0: plain f64 arithmetic; otherwise modulo each of these */
    uint32_t primes[SHERD__PRIMES_MAX];
    /* window 0: none. Otherwise the rows of left are images, and a product uses the matrix of their
     * windows */
    sherd_windows windows;
    sherd__fragment_info result; /* computed by the coordinator; the node refuses if it differs */
} sherd__task;

/** The protocol minor version of this code: minor_min and minor_max of our HELLO and WELCOME. The
 *  major version is part of the protocol name that TLS negotiates, "sherd/1". */
#define SHERD__MINOR 2u
#define SHERD__MINOR_DEVICES 2u /* the minor from which on nodes declare devices */

/* sherd__hello.features */
#define SHERD__FEATURE_GRADIENTS 1u  /* the node supports SHERD__OP_GRADIENT */
#define SHERD__FEATURE_SECURE 4u     /* ... SHERD__OP_JOIN to SHERD__OP_OPEN */
#define SHERD__FEATURE_ALLREDUCE 16u /* ... OP_MEET to OP_REDUCE, OP_STATE, OP_WHERE */
#define SHERD__FEATURE_WINDOWS 32u   /* ... sherd__task.windows */
#define SHERD__FEATURE_CONFIRM 64u   /* ... SHERD__OP_CONFIRM, and requires it before OP_OPEN */
#define SHERD__FEATURE_CHECK 128u    /* ... SHERD__OP_CHECK */
#define SHERD__FEATURE_SEEDS 256u    /* ... blocks in encoding SHERD__SEED */
#define SHERD__FEATURE_DATA 8u       /* the node has training data of its own */

/* Kinds of exact arithmetic: bits of sherd__hello_device.does. */
#define SHERD__DOES_F64 1u      /* products in float64, exact as long as sums stay below 2^53 */
#define SHERD__DOES_RESIDUES 2u /* products modulo primes, into packed residues */
#define SHERD__DOES_MAPS 4u     /* element-wise functions, bit for bit as in docs/FUNCTIONS.md */
#define SHERD__DOES_CSR 8u      /* products with a left operand in CSR */
#define SHERD__DOES_BYTES 16u   /* products modulo primes below 256, of residues of one byte */
#define SHERD__DOES_ALL 31u
#define SHERD__DOES_FIRST 15u /* what a node does that declares no devices */

#define SHERD__DEVICES_MAX 12u /* of a node */

/* A peer's numbers need not be possible. Larger ones are read as these, which are beyond any
 * machine, so that sums of all devices of all nodes, and times or bytes that follow from them, stay
 * finite. */
#define SHERD__HELLO_THREADS_MAX 65536u
#define SHERD__HELLO_BYTES_MAX (UINT64_C(1) << 50) /* memory, of a node or device, and cell */
#define SHERD__HELLO_GFLOPS_MAX 1e9
#define SHERD__HELLO_COPY_MAX 1e15 /* bytes per second */
#define SHERD__HELLO_DEPTH_MAX 1024u
#define SHERD__HELLO_UPTIME_MAX (UINT64_C(1) << 36) /* seconds */

/** One of the devices that a node computes with. */
typedef struct sherd__hello_device {
    uint32_t does; /* SHERD__DOES_*; unknown bits are ignored */
    double gflops; /* rate of products in float64 */
    double
        residue_gflops; /* rate from packed residues to packed residues; 0: they are unpacked, and
                              multiplied at the rate for float64 */
    uint64_t memory;    /* bytes of its own for blocks; 0: it uses the node's */
    uint64_t cell;      /* bytes of a result from which on its rate no longer grows; 0: unknown */
    uint32_t depth;     /* tasks in progress that keep it busy */
    double byte_gops;   /* rate of products of residues of one byte, in operations as gflops counts
                           them; 0: unknown */
} sherd__hello_device;

/** The state of a node when it greets a coordinator. */
typedef struct sherd__hello_load {
    bool known;           /* older nodes do not state it */
    uint64_t uptime_s;    /* since it started to listen */
    uint64_t memory_free; /* bytes of its budget that nothing takes */
    uint32_t tasks;       /* of all coordinators, accepted and not answered */
    uint32_t sessions;    /* of coordinators, this one included */
} sherd__hello_load;

/** What each side declares in HELLO (coordinator) and WELCOME (node). A peer's numbers are within
 *  the limits above. */
typedef struct sherd__hello {
    /* supported minor versions; WELCOME has the chosen one in both */
    uint32_t minor_min, minor_max;
    uint64_t features;  /* SHERD__FEATURE_*; unknown bits are ignored */
    char software[48];  /* "sherd 0.1.0" */
    char blas_core[32]; /* node: OpenBLAS core name */
    char backend[16];   /* node: "cpu", ... */
    uint32_t threads;   /* node: compute threads */
    uint64_t memory;    /* node: bytes that it will store for this coordinator's key */
    /* node: rates of all its devices together, as of one: what a peer of minor 1 knows of them */
    double gflops, residue_gflops;
    double byte_gops; /* likewise; above 0 in a node that declares no devices: it has
                         SHERD__DOES_BYTES */
    /* node: bytes per second that are copied to and from the memories of all its devices together;
       0: unknown, or they compute in the node's memory. Rates as those above, of products whose
       operands and results are in these memories; 0: unknown */
    double copy_rate, resident_gflops, resident_residue_gflops, resident_byte_gops;
    uint32_t devices_len; /* node, from minor 2 on; 0: not declared */
    sherd__hello_device devices[SHERD__DEVICES_MAX];
    sherd__hello_load load; /* node, to a coordinator */
} sherd__hello;

/** What a coordinator plans with. */
typedef struct sherd__hello_rates {
    uint32_t devices; /* at least 1 */
    uint32_t does;    /* kinds that some device computes */
    double gflops;    /* sum of the devices that compute in float64 */
    /* Likewise modulo primes, where a device multiplies packed residues; otherwise 0. */
    double residue_gflops;
    double byte_gops; /* sum of the devices that multiply residues of one byte */
    uint64_t cell;    /* largest of its devices; 0: unknown */
    uint32_t depth;   /* sum of its devices; 0: unknown */
    double copy_rate, resident_gflops, resident_residue_gflops,
        resident_byte_gops; /* as declared */
} sherd__hello_rates;

/** Adds up the devices of a node. One that declares none has one device, which computes
 *  everything. */
sherd__hello_rates sherd__hello_rates_of(const sherd__hello *h);

typedef enum sherd__event_kind {
    SHERD__EV_NONE = 0,
    SHERD__EV_READY, /* handshake done; event.hello is the peer's */
    SHERD__EV_BLOCK, /* node: block complete; the receiver frees event.fragment */
    SHERD__EV_DROP,  /* node: event.job, event.block (0: the whole job) */
    SHERD__EV_TASK,  /* node: event.task */
    /* node: event.job, event.number = task (0: the whole job), event.task has the attempt. The
     * session has answered: do not send RESULT or REFUSE. */
    SHERD__EV_CANCEL,
    /* coordinator: event.task as it was sent; the receiver frees event.fragment */
    SHERD__EV_RESULT,
    SHERD__EV_REFUSED, /* coordinator: event.refusal */
    /* the session is over: event.err and event.text give the reason; event.refusal.code is the code
     * of the peer's BYE, if one was received. Always the last event, sent once. */
    SHERD__EV_CLOSED
} sherd__event_kind;

typedef struct sherd__refusal {
    uint64_t job;
    uint32_t block, task, attempt; /* the one that applies is not 0 */
    int code;                      /* SHERD_E* that the node gives as the reason */
    char text[SHERD__TEXT_MAX];
} sherd__refusal;

typedef struct sherd__event {
    sherd__event_kind kind;
    uint64_t job;
    uint32_t block, number;
    sherd__hello hello;
    sherd__task task;
    sherd__refusal refusal;
    sherd__fragment *fragment;
    int err;
    char text[SHERD__TEXT_MAX];
} sherd__event;

/** Counters. Bytes are plaintext protocol bytes including headers, as seen by the tap. */
typedef struct sherd__session_stats {
    uint64_t bytes_in, bytes_out;
    uint64_t work_in, work_out; /* the part in PUT, TASK and RESULT, as computed by wire/size.h */
    /* in: bytes received of requested bodies; out: bytes of blocks and tasks passed to the
     * transport */
    uint64_t moved_in, moved_out;
    /* bytes of moved_out that the transport still holds (sherd__session_unsent) */
    uint64_t unsent;
    uint64_t records_in, records_out;
    uint64_t tasks, results, refusals;
    uint64_t last_heard_ms;
} sherd__session_stats;

typedef struct sherd__session_options {
    sherd__role role;
    sherd__hello hello; /* ours */
    uint64_t now_ms;
    /* node: maximum block length; a longer block is refused and skipped; 0: no limit */
    uint64_t block_max;
    /**
     * Allocates memory for the body of an arriving block (node) or result (coordinator), after its
     * description has passed every check. Returns NULL if there is no room: a node then REFUSEs the
     * block and skips its body, and a coordinator ends the session with SHERD_ENOMEM. NULL
     * callback: sherd__alloc.
     */
    uint8_t *(*place)(void *ctx, uint64_t job, uint32_t number, uint64_t len);
    /** Releases memory from `place`: when a body is cut off, and when the fragment is freed. */
    void (*unplace)(void *ctx, uint8_t *bytes, uint64_t len);
    void *place_ctx;
    /** Node: table_key is the hash key of the table of open tasks; the peer chooses the names in
     *  it. The memory of the table and of queued answers is counted in `budget`. A task that
     *  exceeds it is refused with SHERD_ENOMEM. */
    sherd__table_key table_key;
    sherd__budget budget;
    /** Receives every plaintext byte; `out` is true for bytes that we send. May be NULL. */
    void (*tap)(void *ctx, bool out, const uint8_t *bytes, size_t len);
    void *tap_ctx;
    /** Node: reports a refusal whose text is not sent to the peer (wire/says.h). May be NULL. */
    void (*withheld)(void *ctx, const sherd__refusal *r);
    void *withheld_ctx;
} sherd__session_options;

/* Timeouts in milliseconds. Any byte from the peer counts as a sign of life. */
#define SHERD__HANDSHAKE_MS 5000u /* for HELLO and WELCOME to complete */
#define SHERD__PING_MS 2000u      /* PING after this time without input */
#define SHERD__DEAD_MS 6000u      /* silence that ends the session with SHERD_ESILENT */
#define SHERD__STALL_MS 10000u    /* time in which a body must advance by SHERD__STALL_BYTES */
#define SHERD__STALL_BYTES 65536u
/* Maximum bytes of REFUSE that a peer can make a node queue without reading them; then the session
 * ends. It ends earlier if options.budget has no room for more than the first SHERD__ANSWERS_FREE
 * bytes. */
#define SHERD__ANSWERS_MAX (8u * 1024u * 1024u)
#define SHERD__ANSWERS_FREE (64u * 1024u)

/** Creates a session. The caller releases it with sherd__session_free. Errors: SHERD_EINVAL for
 *  invalid options (role, minor versions, a speed that is not a number); SHERD_ENOMEM. */
int sherd__session_new(sherd__session **out, const sherd__session_options *opt) SHERD_MUST;
/** Releases one reference, and frees the session with the last one. NULL is allowed. */
void sherd__session_free(sherd__session *s);
/** Adds a reference: one more call of sherd__session_free is needed to free the session. */
void sherd__session_share(sherd__session *s);
/** For a node's session that is over (SHERD__EV_CLOSED): frees up to `most` open tasks and unsent
 *  answers. Returns how many it freed. Otherwise sherd__session_free frees them. */
size_t sherd__session_reap(sherd__session *s, size_t most);
/** Returns true if no open tasks and unsent answers are left. */
bool sherd__session_reaped(const sherd__session *s);

/**
 * Passes bytes received from the peer to the session. Consumes at most one record; *used is the
 * number of bytes consumed (call again with the rest while *used < len). At most one event results.
 * It is returned complete in *event (kind NONE if nothing happened). Returns 0, or the SHERD_E*
 * code that ended the session: event->kind is then SHERD__EV_CLOSED, or NONE if that was delivered
 * before. Never blocks.
 */
int sherd__session_feed(sherd__session *s, const uint8_t *in, size_t len, uint64_t now_ms,
                        size_t *used, sherd__event *event);
/**
 * Returns where the next bytes of an arriving body belong: *room bytes of the body's memory. A
 * transport that decrypts directly into them, and then feeds at most *room bytes from there, saves
 * a copy. At any other time returns NULL with *room = 0: use another buffer.
 */
uint8_t *sherd__session_window(const sherd__session *s, size_t *room);
/** Reports the end of the peer's connection (err = SHERD_ECLOSED or an error of the transport). */
void sherd__session_eof(sherd__session *s, int err, const char *why, sherd__event *event);

/**
 * Returns the number of bytes to send now, 0 if there are none. *out is valid until the next call
 * on the session. Control messages precede bulk data. Bulk data is cut into records of at most
 * SHERD__CHUNK bytes, so that a PING or CANCEL never waits behind a whole block. Fragments are read
 * here, one chunk at a time: do not call this function while the transport holds more than its
 * high-water mark.
 */
size_t sherd__session_pending(sherd__session *s, uint64_t now_ms, const uint8_t **out);
/** Reports that the transport has taken the first n bytes that sherd__session_pending returned. */
void sherd__session_sent(sherd__session *s, size_t n);
#define SHERD__CHUNK (256u * 1024u)

/** Returns the earliest time at which sherd__session_tick has something to do. */
uint64_t sherd__session_deadline(const sherd__session *s);
/** Sends PINGs, ends a session whose peer is silent or stalls, and reports an end that another
 *  call caused (event SHERD__EV_CLOSED). If a call is far behind its deadline and nothing was
 *  received, the deadline is extended once: this process was suspended, and the peer's bytes may
 *  be unread. */
void sherd__session_tick(sherd__session *s, uint64_t now_ms, sherd__event *event);

bool sherd__session_ready(const sherd__session *s);
/** Returns what the peer declared. The session must be or have been ready. */
const sherd__hello *sherd__session_peer(const sherd__session *s);
const sherd__session_stats *sherd__session_stats_of(const sherd__session *s);
/** Reports how many of the bytes that the transport took it still holds; they have not arrived. */
void sherd__session_unsent(sherd__session *s, uint64_t bytes);
/** Returns the bytes of work that have moved in both directions: bytes of requested answers as they
 *  arrive, and of blocks and tasks that have left the transport. Heartbeats, unknown records and
 *  refusals do not count. The value may decrease while the transport takes more than it sends. */
uint64_t sherd__session_moved(const sherd__session *s);
/** Returns the bytes of fragments and control messages that wait in the session. */
uint64_t sherd__session_queued(const sherd__session *s);

/*
 * Coordinator. On success the session takes ownership of the fragment and frees it when it is sent.
 * For a fragment of the wrong origin, or a session that is not ready, the result is SHERD_EINVAL
 * and the caller keeps the fragment. The coordinator chooses block numbers, which are never 0.
 */
int sherd__session_put(sherd__session *s, uint64_t job, uint32_t block,
                       sherd__fragment *f) SHERD_MUST;
/** Sends a task and registers (job, task, attempt) as outstanding. A RESULT is accepted only for an
 *  outstanding task, once, and only with the description task->result. The task's blocks must have
 *  been put before. Errors: SHERD_EBUSY if 131072 tasks are outstanding; SHERD_EINVAL if this one
 *  is outstanding already. */
int sherd__session_task(sherd__session *s, const sherd__task *task) SHERD_MUST;
int sherd__session_drop(sherd__session *s, uint64_t job, uint32_t block) SHERD_MUST;
/**
 * Ends a job: cancels its tasks, removes its unsent entries from the queue and drops its blocks.
 * After this call, whatever it returns, the source of no fragment of the job is read again. A body
 * that is partially sent continues with zeros, and its drop follows. Errors: SHERD_EINVAL if the
 * session is not ready.
 */
int sherd__session_forget(sherd__session *s, uint64_t job) SHERD_MUST;
/**
 * Ends one block: removes it from the queue, or completes it with zeros as above, and drops it.
 * Outstanding tasks that read the block must not be needed any more. Errors: SHERD_EINVAL if the
 * session is not ready.
 */
int sherd__session_retract(sherd__session *s, uint64_t job, uint32_t block) SHERD_MUST;
/** Cancels a task (task and attempt 0: the whole job). A RESULT or REFUSE that is already on its
 *  way is discarded. A block that the task was to drop, and of which nothing has been sent, is not
 *  sent. Errors: SHERD_EINVAL if the task is not outstanding. */
int sherd__session_cancel(sherd__session *s, uint64_t job, uint32_t task,
                          uint32_t attempt) SHERD_MUST;

/*
 * Node. Every TASK is answered once. For a task that is not open (already answered or cancelled),
 * the result is SHERD_EUNASKED and the caller keeps the fragment.
 */
int sherd__session_result(sherd__session *s, const sherd__task *task,
                          sherd__fragment *f) SHERD_MUST;
int sherd__session_refuse(sherd__session *s, const sherd__refusal *r) SHERD_MUST;

/** Both roles: pauses (true) or resumes reading from the peer. While reading is paused, the peer's
 *  silence does not end the session, and PINGs are still sent as a sign of life. */
void sherd__session_hold(sherd__session *s, bool held, uint64_t now_ms);

/** Both roles: ends the session with a reason; unsent bulk data is dropped. The session is over
 *  when the BYE has been sent (SHERD__EV_CLOSED from tick, err = code, or SHERD_ECLOSED for 0). */
void sherd__session_bye(sherd__session *s, int code, const char *reason);

#endif
