/*
 * By when a node has to deliver what it was given. A node that lives and delivers nothing would
 * hold its work for ever, so it is charged for time in which it owes an answer and none comes. What
 * it may be charged with follows from what its peers take, as measured, and from what it took
 * itself; bytes of answers and operands pay for time at no less than a rate, which follows from the
 * peers' too. Nothing that a node says of itself counts, nor do heartbeats or unknown records.
 *
 * Pure arithmetic: the caller brings time and counts.
 */
#ifndef SCHEDULER_CLUSTER_DEADLINE_H
#define SCHEDULER_CLUSTER_DEADLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a node is charged with, in one work after another: to be zeroed once. */
typedef struct sherd__delivery {
    bool up;          /* it is a peer of the others */
    bool owes;        /* an answer is awaited */
    uint64_t at_ms;   /* charged until then */
    uint64_t moved;   /* bytes of work that had moved, both ways */
    double charge_ms; /* since its last answer, less what bytes paid for */
    double took_ms;   /* since its last answer */
    double usual_ms;  /* from answer to answer, moving average; 0: none yet */
    double rate;      /* bytes a ms of time in which it owed answers, likewise; 0: not known */
    double excess_ms; /* what answers took beyond what is usual, less what has been forgiven */
} sherd__delivery;

/** What is usual among all; 0: not known. */
typedef struct sherd__delivery_peers {
    double usual_ms, rate;
} sherd__delivery_peers;

/** Medians over those that are up and have delivered, the lower one of an even number: `len`
 *  deliveries, each `stride` bytes from the one before. `room` has space for `len` doubles. */
void sherd__delivery_peers_of(sherd__delivery_peers *out, const sherd__delivery *first,
                              size_t stride, uint32_t len, double *room);

/** It is up for a work: answers are of another kind. What was in excess is kept. */
void sherd__delivery_begin(sherd__delivery *d, uint64_t moved, uint64_t now_ms);
/** It is lost, or the work is over: it is no peer until it begins again. */
void sherd__delivery_end(sherd__delivery *d);
/** It was late and pays for it. Of its excess so much is kept that half of what is allowed is left
 *  to it, once it is back. */
void sherd__delivery_expelled(sherd__delivery *d);
/** Whether it owes an answer, as of now: time before it does is not charged. */
void sherd__delivery_owes(sherd__delivery *d, bool owes, uint64_t moved, uint64_t now_ms);
/** It has answered. */
void sherd__delivery_made(sherd__delivery *d, const sherd__delivery_peers *peers, uint64_t moved,
                          uint64_t now_ms);
/** Charges time until now, SHERD__DELIVERY_STEP_MS at most: in a longer one it was this process
 *  that slept. moved: bytes of work that the session has moved since it began. */
void sherd__delivery_charge(sherd__delivery *d, const sherd__delivery_peers *peers, uint64_t moved,
                            uint64_t now_ms);

#define SHERD__DELIVERY_STEP_MS 1000.0
/* What a busy machine may take for an answer that usually takes no time; times what is usual; the
 * most that a node's excess may come to; how much slower than the median a node may be to be
 * measured by itself. */
#define SHERD__DELIVERY_FLOOR_MS 10000.0
#define SHERD__DELIVERY_TIMES 30.0
#define SHERD__DELIVERY_EXCESS_MS 60000.0
#define SHERD__DELIVERY_EXCESS_TIMES 8.0 /* what is usual: beyond that it is in excess */
#define SHERD__DELIVERY_SLOWER 4.0
/* Bytes a ms that pay for time: a 64th of what peers move, within these bounds. */
#define SHERD__DELIVERY_RATE_PART 64.0
#define SHERD__DELIVERY_RATE_MIN 6.5
#define SHERD__DELIVERY_RATE_MAX 1000.0

/** What is usual for this node, in ms: 0 where nothing is known of it nor of its peers. */
double sherd__delivery_usual(const sherd__delivery *d, const sherd__delivery_peers *peers);
/** What it may be charged with for one answer: SHERD__DELIVERY_FLOOR_MS and SHERD__DELIVERY_TIMES
 *  what is usual. */
double sherd__delivery_allowed(const sherd__delivery *d, const sherd__delivery_peers *peers);
/** Whether it has been charged with more than allowed_ms, or its excess comes to more than
 *  SHERD__DELIVERY_EXCESS_MS. */
bool sherd__delivery_late(const sherd__delivery *d, const sherd__delivery_peers *peers,
                          double allowed_ms);
/** Of one that is late: whether bytes of work have paid for a tenth of its time, or it has answered
 *  each time, so that it is slow and not silent. */
bool sherd__delivery_slow(const sherd__delivery *d, double allowed_ms);

#endif
