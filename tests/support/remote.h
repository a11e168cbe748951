/*
 * A backend whose memory the host cannot read: a handle is an address in pages that are mapped
 * without any access, and the device sees the same memory by a second mapping. Its calls end late
 * and out of order, it runs out of memory, fails and dies, all by a seed. Nothing happens between
 * turns, which a test gives it.
 */
#ifndef TESTS_SUPPORT_REMOTE_H
#define TESTS_SUPPORT_REMOTE_H

#include "node/backend.h"

typedef struct remote_options {
    uint64_t seed;
    uint32_t devices; /* 0: one */
    size_t memory;    /* bytes of each device; 0: 16 MB */
    uint64_t stated;  /* bytes that each says it has; 0: as many as it has */
    uint32_t depth;   /* calls that each of them takes; 0: 4 */
    uint32_t late;    /* turns that a call takes at most; 0: one */
    uint32_t full_in; /* one of so many holds and calls finds no memory; 0: none */
    uint32_t fail_in; /* one of so many calls fails; 0: none */
    uint32_t dies_at; /* the turn with calls under way in which device 0 is lost; 0: never */
    uint32_t all_die; /* the same for all devices */
    void *cpu;        /* a context of sherd__backend_cpu, which computes; the caller's */
} remote_options;

typedef struct remote_stats {
    uint64_t holds, drops, calls, dones; /* dones: with a result */
    uint64_t full, failed, lost, cancelled;
    uint64_t overtaken;      /* calls that ended before an earlier one */
    uint64_t most;           /* calls under way at a time */
    uint64_t dropped_in_use; /* handles that were dropped while a call used them */
    uint64_t waits;          /* turns that somebody waited for a call */
} remote_stats;

extern const sherd__backend remote_backend;

/** sherd__backend.open of remote_backend is this with no faults. */
int remote_open(void **ctx, const remote_options *o);
/** Time passes on the devices; true while calls are under way. */
bool remote_turn(void *ctx);
const remote_stats *remote_stats_of(const void *ctx);
/** Whether memory that nothing is held in was overwritten since it was last used. */
bool remote_is_clean(const void *ctx);

#endif
