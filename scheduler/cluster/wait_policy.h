/*
 * How long to wait for nodes that the work can do without. No constant would do: starting seven
 * processes takes a tenth of a second here and ten seconds on a machine that is busy, and a node
 * across the world answers later than one next door. The others are the measure.
 */
#ifndef SCHEDULER_CLUSTER_WAIT_POLICY_H
#define SCHEDULER_CLUSTER_WAIT_POLICY_H

#include <stdint.h>

/**
 * When to stop waiting for the rest, where enough nodes are there at now_ms, which were waited for
 * since began_ms: twice as long again, and a second. The caller's time ends at end_ms (INT64_MAX:
 * never), and half of what is left of it stays for the work.
 */
static inline int64_t sherd__wait_policy_until(int64_t began_ms, int64_t now_ms, int64_t end_ms)
{
    int64_t longest = 1000 + 2 * (now_ms - began_ms), half = (end_ms - now_ms) / 2;
    return now_ms + (half < longest ? half : longest);
}

#define SHERD__STARVED_MAX 6 /* times the usual time, for a process that gets no processor */

/**
 * When a local process that is needed has had its time, which is usually until deadline_ms: later
 * by what it waited for a processor so far, as far as SHERD__STARVED_MAX times as long, and not
 * beyond the caller's time (end_ms, as above).
 */
static inline int64_t sherd__wait_policy_starved(int64_t began_ms, int64_t deadline_ms,
                                                 int64_t starved_ms, int64_t end_ms)
{
    int64_t most = (SHERD__STARVED_MAX - 1) * (deadline_ms - began_ms);
    int64_t until = deadline_ms + (starved_ms < most ? starved_ms : most);
    return until < end_ms ? until : end_ms;
}

/** For how long a local process is seen to be stopped before it counts as lost: who looks at one
 *  with a debugger lets it go on at once. */
#define SHERD__STOPPED_MS 1000

#endif
