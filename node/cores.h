/*
 * Cores of a node's own. Where local nodes have as many threads together as there are cores, each
 * is bound to its share of them: in training they wait for each other at every step, and a
 * scheduler that wakes two of them on one core leaves them there, one behind the other, while the
 * core beside it is idle. A bound node gives way when it finds that it has to share, since then the
 * scheduler knows better; after a while it tries again.
 *
 * The loop's thread is bound while it computes itself, as it does what is small. Where others
 * compute beside it, it opens and seals what travels meanwhile: on their core that would be their
 * time, so it is free to run on any.
 *
 * Linux alone: elsewhere, and where the kernel does not tell how long threads wait, nothing is
 * bound. For one thread.
 */
#ifndef NODE_CORES_H
#define NODE_CORES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "sherd/err.h"

#define SHERD__CORES_LOOK_MS 250u  /* between two looks */
#define SHERD__CORES_AWAY_MS 2000u /* how long a node gives way at first; then twice that, ... */
#define SHERD__CORES_AWAY_MAX_MS 64000u

/** When to be bound, from what threads of a process did since the look before. */
typedef struct sherd__cores_rule {
    bool bound;
    unsigned crowded;  /* looks in a row */
    uint64_t since_ms; /* when it was bound, or not any more */
    uint64_t away_ms;  /* how long it gives way, or did the last time; 0: that is long ago */
} sherd__cores_rule;

/** Bound from now on. */
void sherd__cores_rule_init(sherd__cores_rule *r, uint64_t now_ms);
/**
 * Whether to be bound from here on. ran, waited: nanoseconds since the look before, of all threads
 * together: on a core, and ready for one that others had. A core is shared where, at two looks in a
 * row, it waited for more than half as long as it ran, and for a fifth of the time at least.
 */
bool sherd__cores_judge(sherd__cores_rule *r, uint64_t now_ms, uint64_t ran, uint64_t waited);

/** Whether the loop's thread is free, from nanoseconds that all others of its process ran since the
 *  look before: more than a tenth of the time. */
bool sherd__cores_frees_loop(uint64_t beside);

typedef struct sherd__cores sherd__cores;

/**
 * Binds all threads of this process, and those that they start, to the cores of list ("0,2,3").
 * *out is the caller's (sherd__cores_free); NULL, and SHERD_OK, where this system has no such thing
 * or does not give us these cores. SHERD_EINVAL: no list of cores; SHERD_ENOMEM.
 */
int sherd__cores_take(sherd__cores **out, const char *list, sherd_diag *d) SHERD_MUST;
/** Looks from time to time, on this loop, which it does not keep running and which the calling
 *  thread runs. */
void sherd__cores_watch(sherd__cores *c, uv_loop_t *loop);
/** Closes the handle that watch has opened; the loop has to be run for that. */
void sherd__cores_unwatch(sherd__cores *c);
bool sherd__cores_bound(const sherd__cores *c);
/** NULL is allowed; once its handle is closed. */
void sherd__cores_free(sherd__cores *c);

#endif
