/*
 * The backends of nodes in a simulation: the host, which computes passes of training only, or
 * devices with memory of their own (remote.h) if a test has set node_devices.options.
 */
#ifndef TESTS_SUPPORT_NODE_DEVICES_H
#define TESTS_SUPPORT_NODE_DEVICES_H

#include "tests/support/remote.h"

typedef struct node_devices_now {
    const remote_options *options; /* a node's number is added to the seed; NULL: the host */
    uint32_t dying;                /* dies_at applies to this many nodes, the first ones */
    remote_stats stats;            /* of all devices that were closed */
} node_devices_now;

extern node_devices_now node_devices;

/** Returns the backend of node `number` and the context with which it was opened. */
const sherd__backend *node_devices_open(uint32_t number, void **ctx);
/** Closes the backend. No block or call may be left on its devices. */
void node_devices_close(void *ctx);
/** The teardown of a group of tests. */
int node_devices_end(void **unused);

#endif
