/*
 * What nodes of a simulation compute on: nothing but passes of training, on the host; or devices
 * with memory of their own (remote.h), if a test has set node_devices.options.
 */
#ifndef TESTS_SUPPORT_NODE_DEVICES_H
#define TESTS_SUPPORT_NODE_DEVICES_H

#include "tests/support/remote.h"

typedef struct node_devices_now {
    const remote_options *options; /* seed: to which a node's number is added; NULL: the host */
    uint32_t dying;                /* nodes, the first ones, for which dies_at holds */
    remote_stats stats;            /* of all devices that were closed */
} node_devices_now;

extern node_devices_now node_devices;

/** Returns the backend of node `number`, and what it is opened with. */
const sherd__backend *node_devices_open(uint32_t number, void **ctx);
/** Closes it. Nothing may be left on the devices. */
void node_devices_close(void *ctx);
/** A group's teardown. */
int node_devices_end(void **unused);

#endif
