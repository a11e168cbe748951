/*
 * A backend with one device, in the host's memory, that computes on a thread of its own: calls end
 * while the node's threads do something else, or wait for them.
 */
#ifndef TESTS_SUPPORT_THREADED_H
#define TESTS_SUPPORT_THREADED_H

#include "node/backend.h"

typedef struct threaded_options {
    void *cpu;           /* a context of sherd__backend_cpu, which only this device uses */
    uint32_t depth;      /* calls that it accepts */
    unsigned latency_us; /* added latency of a call */
} threaded_options;

extern const sherd__backend threaded_backend;

/** Opens the backend with options; threaded_backend.open has none. */
int threaded_open(void **ctx, const threaded_options *o);
/** Returns the number of calls that were refused because others were in progress. */
uint64_t threaded_refused(const void *ctx);

#endif
