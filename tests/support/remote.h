/*
 * A backend whose memory the host cannot read: a handle is an address in pages that are mapped
 * without access, and the device reaches the same memory through a second mapping. Its calls end
 * late and out of order, it runs out of memory, fails and is lost, all determined by a seed. It
 * makes progress only in turns, which the test calls.
 */
#ifndef TESTS_SUPPORT_REMOTE_H
#define TESTS_SUPPORT_REMOTE_H

#include "node/backend.h"

typedef struct remote_options {
    uint64_t seed;
    uint32_t devices; /* 0: one */
    size_t memory;    /* bytes of each device; 0: 16 MB */
    uint64_t stated;  /* memory that each device reports; 0: as much as it has */
    uint32_t depth;   /* calls that each device accepts; 0: 4 */
    uint32_t late;    /* maximum number of turns that a call takes; 0: one */
    uint32_t full_in; /* one in this many holds and calls finds no memory; 0: none */
    uint32_t fail_in; /* one in this many calls fails; 0: none */
    uint32_t dies_at; /* the turn with calls in progress in which device 0 is lost; 0: never */
    uint32_t all_die; /* the same for all devices */
    void *cpu;        /* a context of sherd__backend_cpu, which computes; owned by the caller */
} remote_options;

typedef struct remote_stats {
    uint64_t holds, drops, calls, dones; /* dones: calls that ended with a result */
    uint64_t full, failed, lost, cancelled;
    uint64_t overtaken;      /* calls that ended before an earlier one */
    uint64_t most;           /* maximum number of calls in progress */
    uint64_t dropped_in_use; /* handles that were dropped while a call used them */
    uint64_t lent;           /* calls that were lent memory of the loop's thread */
    uint64_t waits;          /* turns that a caller of wait waited for a call */
} remote_stats;

extern const sherd__backend remote_backend;

/** Opens the backend; sherd__backend.open of remote_backend opens it without faults. */
int remote_open(void **ctx, const remote_options *o);
/** Lets time pass on the devices. Returns true while calls are in progress. */
bool remote_turn(void *ctx);
const remote_stats *remote_stats_of(const void *ctx);
/** Returns whether all memory that is not in use was overwritten after its last use. */
bool remote_is_clean(const void *ctx);

#endif
