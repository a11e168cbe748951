/*
 * How long to wait for nodes that the work does not need. A constant does not fit all cases:
 * starting seven processes takes a tenth of a second here and ten seconds on a busy machine, and a
 * node across the world answers later than one nearby. The time that the other nodes took is used
 * instead.
 */
#ifndef SCHEDULER_CLUSTER_WAIT_POLICY_H
#define SCHEDULER_CLUSTER_WAIT_POLICY_H

#include <stdint.h>

/**
 * Returns when to stop waiting for the remaining nodes, if enough nodes are up at now_ms after a
 * wait since began_ms: after twice that wait plus one second. end_ms is the end of the caller's
 * time (INT64_MAX: none); half of the time left until then is kept for the work.
 */
static inline int64_t sherd__wait_policy_until(int64_t began_ms, int64_t now_ms, int64_t end_ms)
{
    int64_t longest = 1000 + 2 * (now_ms - began_ms), half = (end_ms - now_ms) / 2;
    return now_ms + (half < longest ? half : longest);
}

#define SHERD__STARVED_MAX 6 /* times the usual time, for a process that waits for a processor */

/**
 * Returns when the time of a required local process is over: usually at deadline_ms, but later by
 * the time that it has waited for a processor, up to SHERD__STARVED_MAX times the usual limit, and
 * not later than end_ms (the caller's time, as above).
 */
static inline int64_t sherd__wait_policy_starved(int64_t began_ms, int64_t deadline_ms,
                                                 int64_t starved_ms, int64_t end_ms)
{
    int64_t most = (SHERD__STARVED_MAX - 1) * (deadline_ms - began_ms);
    int64_t until = deadline_ms + (starved_ms < most ? starved_ms : most);
    return until < end_ms ? until : end_ms;
}

/** How long a local process must be stopped before it counts as lost. A debugger that attaches to
 *  one stops it only briefly. */
#define SHERD__STOPPED_MS 1000

#endif
