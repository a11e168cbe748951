/*
 * Binding of a node to cores of its own. Where local nodes together have as many threads as there
 * are cores, each node is bound to its share of the cores. In training the nodes wait for each
 * other at every step, and a scheduler that wakes two of them on one core leaves them there, one
 * after the other, while the next core is idle. A bound node unbinds when it finds that other
 * processes use its cores, since the scheduler then distributes the threads better; after a while
 * it binds again.
 *
 * The loop's thread is bound while it computes, as it does for small tasks. Where other threads
 * compute meanwhile, the loop's thread encrypts and decrypts messages: on their cores it would take
 * their time, so it may run on any core.
 *
 * Linux only: elsewhere, and where the kernel does not report how long threads wait, nothing is
 * bound. To be used from one thread.
 */
#ifndef NODE_CORES_H
#define NODE_CORES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "sherd/err.h"

#define SHERD__CORES_LOOK_MS 250u  /* time between two looks */
#define SHERD__CORES_AWAY_MS 2000u /* time unbound at first; doubled each time */
#define SHERD__CORES_AWAY_MAX_MS 64000u

/** Decides when to be bound, from the times that the process's threads ran and waited since the
 *  last look. */
typedef struct sherd__cores_rule {
    bool bound;
    unsigned crowded;  /* looks in a row that found the cores shared */
    uint64_t since_ms; /* when it was last bound or unbound */
    uint64_t away_ms;  /* how long it stays unbound, or did the last time; 0: it has been bound for
                          longer since */
} sherd__cores_rule;

/** Starts in the bound state. */
void sherd__cores_rule_init(sherd__cores_rule *r, uint64_t now_ms);
/**
 * Decides whether to be bound from now on. ran and waited are nanoseconds since the last look,
 * summed over all threads: on a core, and ready while another thread had the core. The cores count
 * as shared where, at two looks in a row, the threads waited for more than half as long as they ran
 * and for more than a fifth of the time.
 */
bool sherd__cores_judge(sherd__cores_rule *r, uint64_t now_ms, uint64_t ran, uint64_t waited);

/** Returns whether the loop's thread is left unbound: where all other threads of its process ran
 *  for more than a tenth of the time since the last look. `beside` is the time that they ran, in
 *  nanoseconds. */
bool sherd__cores_frees_loop(uint64_t beside);

typedef struct sherd__cores sherd__cores;

/**
 * Binds all threads of this process, and those that they start, to the cores of list ("0,2,3"). The
 * caller frees *out with sherd__cores_free. *out is NULL, with SHERD_OK, where this system does not
 * support binding or does not grant these cores.
 *
 * Errors: SHERD_EINVAL where list is malformed; SHERD_ENOMEM.
 */
int sherd__cores_take(sherd__cores **out, const char *list, sherd_diag *d) SHERD_MUST;
/** Looks periodically, by a timer on this loop. The timer does not keep the loop running. The
 *  calling thread must be the one that runs the loop. */
void sherd__cores_watch(sherd__cores *c, uv_loop_t *loop);
/** Closes the handle that watch opened; the loop must run for this. */
void sherd__cores_unwatch(sherd__cores *c);
bool sherd__cores_bound(const sherd__cores *c);
/** Frees the state; its handle must be closed. NULL is allowed. */
void sherd__cores_free(sherd__cores *c);

#endif
