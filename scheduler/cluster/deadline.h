/*
 * Decides when a node is late. A node that is connected but delivers nothing would hold up its work
 * without limit, so it is charged for time in which it owes an answer and does not deliver one. The
 * limit for this charge follows from the measured times of its peers and from its own. Bytes of
 * answers and operands reduce the charge at a minimum rate, which follows from the peers' rates as
 * well. Nothing that a node reports about itself counts, nor do heartbeats or unknown records.
 *
 * Pure arithmetic: the caller passes in time and counts.
 */
#ifndef SCHEDULER_CLUSTER_DEADLINE_H
#define SCHEDULER_CLUSTER_DEADLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The account of one node over successive works. Initialise it with zeros once. */
typedef struct sherd__delivery {
    bool up;          /* it counts as a peer of the others */
    bool owes;        /* an answer is outstanding */
    uint64_t at_ms;   /* time up to which it has been charged */
    uint64_t moved;   /* bytes of work sent and received at that time */
    double charge_ms; /* charge since its last answer, less what bytes paid for */
    double took_ms;   /* time since its last answer */
    double usual_ms;  /* between answers, moving average; 0: none yet */
    double rate;      /* bytes per ms while it owed answers, moving average; 0: unknown */
    double excess_ms; /* time of answers beyond the usual, less what has been forgiven */
} sherd__delivery;

/** What is usual for all nodes; 0: unknown. */
typedef struct sherd__delivery_peers {
    double usual_ms, rate;
} sherd__delivery_peers;

/** Computes medians over the nodes that are up and have delivered (the lower of two middle values)
 *  from `len` deliveries, each `stride` bytes after the one before. room: scratch space for `len`
 *  doubles. */
void sherd__delivery_peers_of(sherd__delivery_peers *out, const sherd__delivery *first,
                              size_t stride, uint32_t len, double *room);

/** The node starts a work. Times are reset, because answers are of another kind; its excess is
 *  kept. */
void sherd__delivery_begin(sherd__delivery *d, uint64_t moved, uint64_t now_ms);
/** The node is lost, or the work is over. It does not count as a peer until it starts again. */
void sherd__delivery_end(sherd__delivery *d);
/** The node was expelled for being late. Its excess is limited to half of what is allowed, so that
 *  the other half is left once it is back. */
void sherd__delivery_expelled(sherd__delivery *d);
/** Sets whether the node owes an answer as of now. Time before is not charged. */
void sherd__delivery_owes(sherd__delivery *d, bool owes, uint64_t moved, uint64_t now_ms);
/** The node has answered. */
void sherd__delivery_made(sherd__delivery *d, const sherd__delivery_peers *peers, uint64_t moved,
                          uint64_t now_ms);
/** Charges time until now, but at most SHERD__DELIVERY_STEP_MS: a longer step means that this
 *  process was suspended. moved: bytes of work that the session has sent and received since it
 *  began. */
void sherd__delivery_charge(sherd__delivery *d, const sherd__delivery_peers *peers, uint64_t moved,
                            uint64_t now_ms);

#define SHERD__DELIVERY_STEP_MS 1000.0
/* FLOOR_MS: allowance for a busy machine, even if answers usually take no time. TIMES: factor for
 * the usual time. EXCESS_MS: limit of a node's excess. SLOWER: how much slower than the median a
 * node may be and still be measured by its own times. */
#define SHERD__DELIVERY_FLOOR_MS 10000.0
#define SHERD__DELIVERY_TIMES 30.0
#define SHERD__DELIVERY_EXCESS_MS 60000.0
#define SHERD__DELIVERY_EXCESS_TIMES 8.0 /* times the usual: time beyond that is excess */
#define SHERD__DELIVERY_SLOWER 4.0
/* Bytes per ms that offset time: a 64th of the peers' rate, within these bounds. */
#define SHERD__DELIVERY_RATE_PART 64.0
#define SHERD__DELIVERY_RATE_MIN 6.5
#define SHERD__DELIVERY_RATE_MAX 1000.0

/** Returns the usual time of this node in ms; 0 if nothing is known of it or its peers. */
double sherd__delivery_usual(const sherd__delivery *d, const sherd__delivery_peers *peers);
/** Returns the allowed charge for one answer: SHERD__DELIVERY_FLOOR_MS plus SHERD__DELIVERY_TIMES
 *  the usual time. */
double sherd__delivery_allowed(const sherd__delivery *d, const sherd__delivery_peers *peers);
/** Returns whether the charge exceeds allowed_ms, or the excess exceeds
 *  SHERD__DELIVERY_EXCESS_MS. */
bool sherd__delivery_late(const sherd__delivery *d, const sherd__delivery_peers *peers,
                          double allowed_ms);
/** For a late node: returns whether it is slow and not silent. It is slow if bytes of work offset a
 *  tenth of its time, or if it has answered each time. */
bool sherd__delivery_slow(const sherd__delivery *d, double allowed_ms);

#endif
