/*
 * Inside of a session, shared by its files: session.c (calls, handshake, clocks), session_in.c
 * (bytes to events), session_out.c (queues to bytes) and session_forget.c (what is taken back).
 * No other file includes this.
 */
#ifndef WIRE_SESSION_STATE_H
#define WIRE_SESSION_STATE_H

#include "core/buf.h"
#include "crypto/fragment_make.h"
#include "wire/record.h"
#include "wire/session.h"
#include "wire/tasks.h"

/* What is offered at once: a whole chunk and its header, and small control records before it. */
#define SHERD__OFFER_MAX (SHERD__CHUNK + 8u * 1024u)
/* Control records that our own calls may queue. */
#define SHERD__CONTROLS_MAX (64u * 1024u * 1024u)
/* REFUSEs that a CANCEL of a whole job gives at once, each later record, and each tick. */
#define SHERD__ANSWERS_AT_ONCE 512u
#define SHERD__ANSWERS_RECORD 16u
#define SHERD__ANSWERS_TICK 512u
/* A tick that comes this much too late says that we, not the peer, were asleep. */
#define SHERD__LATE_MS 1000u

typedef enum sherd__phase {
    SHERD__IN_HEADER,
    SHERD__IN_CONTROL,
    SHERD__IN_CHUNK,
    SHERD__IN_SKIP
} sherd__phase;

typedef enum sherd__bulk_kind {
    SHERD__BULK_FRAGMENT,
    SHERD__BULK_TASK,
    SHERD__BULK_DROP
} sherd__bulk_kind;

/** One entry of the bulk queue: sent in order, fragments chunk by chunk. */
typedef struct sherd__bulk {
    sherd__bulk_kind kind;
    bool described;  /* fragment: its first record is out */
    bool cancelled;  /* task: only its drops remain */
    uint32_t part;   /* fragment: parts sent */
    uint64_t offset; /* fragment: bytes sent */
    sherd_fragment *fragment;
    sherd__task task; /* task whole; else job, and the block or task number in task.task */
} sherd__bulk;

/** Ring of bulk entries; sequence numbers count entries over the session's life. */
typedef struct sherd__bulks {
    sherd__bulk *ring; /* cap of them, a power of two */
    size_t cap;
    uint64_t head, tail; /* sequence of the front, of the next to be pushed */
} sherd__bulks;

/** The body that is arriving: at most one at a time. */
typedef struct sherd__arrival {
    bool active;
    bool placed;      /* bytes came from options.place */
    sherd__task task; /* result: the task as it was sent; block: job, number in task.task */
    sherd__fragment_info info;
    uint8_t *bytes; /* NULL: the body is skipped */
    uint64_t got;
    uint32_t part;                  /* the last one that arrived */
    sherd__fragment_check check;    /* node: of all parts that arrived */
    uint64_t window_ms, window_got; /* progress is measured since then */
} sherd__arrival;

struct sherd_session {
    unsigned refs;
    sherd__session_options opt;
    sherd__hello peer;
    bool ready, ended, told; /* told: EV_CLOSED was given out */
    bool held;               /* we do not read: the peer's silence says nothing */
    bool graced;             /* one late tick was forgiven since the last byte */
    int err;                 /* why it ended */
    int peer_code;           /* what the peer's BYE gave */
    char text[SHERD__TEXT_MAX];

    /* clocks, ms */
    uint64_t now_ms, start_ms, ping_ms, bye_ms, record_ms;
    sherd__session_stats stats;

    /* in */
    sherd__phase phase;
    uint8_t head[SHERD__RECORD_BYTES];
    size_t head_len;
    sherd__record rec;
    uint64_t left; /* body bytes of this record still to come */
    uint8_t body[SHERD__CONTROL_MAX];
    size_t body_len;
    sherd__arrival arrival;
    sherd__tasks open;

    /* out */
    sherd__bulks bulks;
    sherd__bulks unsent;     /* node: those that a session that is over has not sent */
    sherd_buf controls;      /* whole records */
    size_t controls_sent;    /* of them already offered */
    size_t controls_counted; /* of their memory, in the budget */
    uint64_t bulk_bytes;     /* of bodies and records waiting in bulks */
    uint32_t ping_sent, pong_heard, pong_due; /* numbers; pong_due 0: none */
    bool ping_due, bye_due, bye_offered;
    int bye_code;
    char bye_text[SHERD__TEXT_MAX];
    uint8_t *offer; /* SHERD__OFFER_MAX */
    size_t offer_len, offer_sent;
    size_t offer_work; /* of the rest of the offer: bytes of blocks, tasks and results */
    /* A chunk that lies in memory follows the offer from where it lies. */
    const uint8_t *lent;
    size_t lent_len, lent_sent;
    sherd_fragment *lender; /* it outlived the queue, until the chunk is through; else NULL */
};

/**
 * Ends the session: frees what waits and what was arriving, keeps the reason for EV_CLOSED, and
 * queues a BYE with it where `tell` (not if the peer or the connection is gone). Returns err.
 */
int sherd__session_end(sherd_session *s, int err, bool tell, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/** Makes *event the EV_CLOSED of an ended session, once. */
void sherd__session_tell(sherd_session *s, sherd__event *event);
void sherd__event_clear(sherd__event *event);

/* session_in.c */

/** Takes at most one record's worth of bytes; *used counts also on failure. */
int sherd__session_take(sherd_session *s, const uint8_t *in, size_t len, size_t *used,
                        sherd__event *event) SHERD_MUST;
/** REFUSEs for up to `most` tasks of jobs that the coordinator has cancelled. */
void sherd__answer_cancelled(sherd_session *s, unsigned most);
/** Gives the arriving body's memory back; what still comes of it is skipped. */
void sherd__arrival_skip(sherd_session *s);

/* session_out.c */

/** Room for one more entry: push cannot fail after it. */
int sherd__bulks_reserve(sherd__bulks *b) SHERD_MUST;
void sherd__bulk_push(sherd_session *s, const sherd__bulk *item);
/** The lent chunk is through, or nobody wants it any more. */
void sherd__lent_done(sherd_session *s);
/** Frees all entries, or of a node sets them aside; a fragment of which a chunk is lent lives until
 *  that is through. */
void sherd__bulks_clear(sherd_session *s);
/** Frees up to `most` of what was set aside; how many they were. */
size_t sherd__bulks_reap(sherd_session *s, size_t most);
/** Queues a control record. SHERD_EBUSY above `most` waiting bytes, or where the budget has no
 *  room; SHERD_ENOMEM. */
int sherd__control_push(sherd_session *s, const sherd__record *r, const uint8_t *body,
                        size_t most) SHERD_MUST;
/** Drops all control records, and gives their memory back where it is more than is kept. */
void sherd__controls_clear(sherd_session *s);
/** REFUSE of r as an answer that the session gives by itself, or the end of the session. */
int sherd__control_refuse(sherd_session *s, const sherd__refusal *r, size_t most) SHERD_MUST;

/* session_forget.c */

/** The entry of a TASK that is not yet offered becomes the drops that it would have caused; of the
 *  blocks that go with it, those of which nothing has left are taken out of the queue instead. */
void sherd__bulk_cancel(sherd_session *s, uint64_t sequence);

#endif
