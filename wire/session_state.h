/*
 * Private state of a session, shared by the files that implement it: session.c (calls, handshake,
 * timers), session_in.c (bytes to events), session_out.c (queues to bytes) and session_forget.c
 * (cancellation). No other file includes this header.
 */
#ifndef WIRE_SESSION_STATE_H
#define WIRE_SESSION_STATE_H

#include "core/buf.h"
#include "crypto/fragment_make.h"
#include "wire/record.h"
#include "wire/session.h"
#include "wire/tasks.h"

/* Size of one offer: a whole chunk with its header, preceded by small control records. */
#define SHERD__OFFER_MAX (SHERD__CHUNK + 8u * 1024u)
/* Limit on the bytes of control records that our own calls may queue. */
#define SHERD__CONTROLS_MAX (64u * 1024u * 1024u)
/* REFUSEs sent at once for the CANCEL of a whole job, with each later record, and per tick. */
#define SHERD__ANSWERS_AT_ONCE 512u
#define SHERD__ANSWERS_RECORD 16u
#define SHERD__ANSWERS_TICK 512u
/* A tick that is late by more than this means that our process, not the peer, was suspended. */
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

/** One entry of the bulk queue. Entries are sent in order, fragments chunk by chunk. */
typedef struct sherd__bulk {
    sherd__bulk_kind kind;
    bool described;  /* fragment: its first record was sent */
    bool cancelled;  /* task: only its drops remain */
    uint32_t part;   /* fragment: parts sent */
    uint64_t offset; /* fragment: bytes sent */
    sherd__fragment *fragment;
    sherd__task task; /* the whole task; otherwise job, and the block or task number in task.task */
} sherd__bulk;

/** Ring of bulk entries. Sequence numbers count entries over the lifetime of the session. */
typedef struct sherd__bulks {
    sherd__bulk *ring; /* has `cap` entries, a power of two */
    size_t cap;
    uint64_t head, tail; /* sequence number of the front entry; of the next one to be added */
} sherd__bulks;

/** The body that is arriving. There is at most one at a time. */
typedef struct sherd__arrival {
    bool active;
    bool placed;      /* bytes were allocated by options.place */
    sherd__task task; /* result: the task as it was sent; block: job, number in task.task */
    sherd__fragment_info info;
    uint8_t *bytes; /* NULL: the body is skipped */
    uint64_t got;
    uint32_t part;               /* the last part received */
    sherd__fragment_check check; /* node: of all parts received */
    /* start of the current interval in which progress is measured */
    uint64_t window_ms, window_got;
} sherd__arrival;

struct sherd__session {
    unsigned refs;
    sherd__session_options opt;
    sherd__hello peer;
    bool ready, ended, closed_emitted; /* closed_emitted: EV_CLOSED was delivered */
    bool held;                         /* reading is paused: the peer's silence is ignored */
    bool graced;                       /* one late tick was forgiven since the last received byte */
    int err;                           /* why the session ended */
    int peer_code;                     /* code of the peer's BYE */
    char text[SHERD__TEXT_MAX];

    /* times in ms */
    uint64_t now_ms, start_ms, ping_ms, bye_ms, record_ms;
    sherd__session_stats stats;

    /* receiving */
    sherd__phase phase;
    uint8_t head[SHERD__RECORD_BYTES];
    size_t head_len;
    sherd__record rec;
    uint64_t left; /* body bytes of this record not received yet */
    uint8_t body[SHERD__CONTROL_MAX];
    size_t body_len;
    sherd__arrival arrival;
    sherd__tasks open;

    /* sending */
    sherd__bulks bulks;
    sherd__bulks unsent;                      /* node: entries left unsent when the session ended */
    sherd__buf controls;                      /* encoded records */
    size_t controls_sent;                     /* bytes of them already offered */
    size_t controls_counted;                  /* bytes of their memory, counted in the budget */
    uint64_t bulk_bytes;                      /* bytes of bodies and records waiting in bulks */
    uint32_t ping_sent, pong_heard, pong_due; /* numbers; pong_due 0: none */
    bool ping_due, bye_due, bye_offered;
    int bye_code;
    char bye_text[SHERD__TEXT_MAX];
    uint8_t *offer; /* has SHERD__OFFER_MAX bytes */
    size_t offer_len, offer_sent;
    size_t offer_work; /* bytes of blocks, tasks and results in the rest of the offer */
    /* A chunk that is sent from the fragment's own memory, after the offer. */
    const uint8_t *lent;
    size_t lent_len, lent_sent;
    /* fragment removed from the queue, kept until the chunk is sent; else NULL */
    sherd__fragment *lender;
};

/**
 * Ends the session: frees the queues and the arriving body, and stores the reason for EV_CLOSED.
 * Queues a BYE with the reason if `tell` is set (not if the peer or the connection is gone).
 * Returns err.
 */
int sherd__session_end(sherd__session *s, int err, bool tell, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/** Turns *event into EV_CLOSED if the session has ended and the event was not delivered before. */
void sherd__session_emit_closed(sherd__session *s, sherd__event *event);
void sherd__event_clear(sherd__event *event);

/* session_in.c */

/** Consumes bytes of at most one record; *used is valid on failure too. */
int sherd__session_take(sherd__session *s, const uint8_t *in, size_t len, size_t *used,
                        sherd__event *event) SHERD_MUST;
/** Sends REFUSEs for up to `most` tasks of jobs that the coordinator has cancelled. */
void sherd__answer_cancelled(sherd__session *s, unsigned most);
/** Releases the memory of the arriving body; the rest of the body is skipped. */
void sherd__arrival_skip(sherd__session *s);

/* session_out.c */

/** Reserves room for one more entry, so that the next push cannot fail. */
int sherd__bulks_reserve(sherd__bulks *b) SHERD_MUST;
void sherd__bulk_push(sherd__session *s, const sherd__bulk *item);
/** Ends the use of the lent chunk, when it is sent or no longer needed. */
void sherd__lent_done(sherd__session *s);
/** Frees all entries; a node sets them aside for sherd__bulks_reap. A fragment of which a chunk is
 *  lent is kept until the chunk is sent. */
void sherd__bulks_clear(sherd__session *s);
/** Frees up to `most` of the entries that were set aside. Returns how many it freed. */
size_t sherd__bulks_reap(sherd__session *s, size_t most);
/** Queues a control record. Errors: SHERD_EBUSY if more than `most` bytes are waiting or the budget
 *  has no room; SHERD_ENOMEM. */
int sherd__control_push(sherd__session *s, const sherd__record *r, const uint8_t *body,
                        size_t most) SHERD_MUST;
/** Drops all control records, and shrinks their buffer if it is larger than is kept. */
void sherd__controls_clear(sherd__session *s);
/** Queues a REFUSE that the session sends by itself. On failure it ends the session. */
int sherd__control_refuse(sherd__session *s, const sherd__refusal *r, size_t most) SHERD_MUST;

/* session_forget.c */

/** Replaces the entry of a TASK that is not yet offered by the drops that it would have caused.
 *  Blocks to be dropped of which nothing has been sent are removed from the queue instead. */
void sherd__bulk_cancel(sherd__session *s, uint64_t sequence);

#endif
