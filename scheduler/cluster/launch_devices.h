/*
 * Which devices local nodes compute on. Where each node is to have devices of its own, the command
 * that runs nodes is asked for those of this machine (`node --list-devices --json`), and they are
 * divided before a node is started.
 */
#ifndef SCHEDULER_CLUSTER_LAUNCH_DEVICES_H
#define SCHEDULER_CLUSTER_LAUNCH_DEVICES_H

#include "scheduler/cluster/launch_command.h"

/**
 * Sets backend and devices of a command that was made, for all nodes of o.
 *
 * Errors: SHERD_EINVAL (no such device, or fewer than the nodes need), SHERD_EUNSUPPORTED (no
 * backend has a device), SHERD_EOPEN (no such program), SHERD_EFRAME (the program lists no
 * devices), SHERD_ETIMEOUT, SHERD_EINTERRUPTED, SHERD_ENOMEM.
 */
int sherd__launch_devices_divide(sherd__command *c, const sherd__launch_options *o,
                                 sherd_diag *d) SHERD_MUST;

#endif
