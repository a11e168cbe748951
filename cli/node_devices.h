/* Devices of `sherd node`: their list, and the process that takes over when one fails. */
#ifndef CLI_NODE_DEVICES_H
#define CLI_NODE_DEVICES_H

#include "cli/cli.h"
#include "sherd/node.h"

/** Exit code of a node that has no device left, for the process that supervises it. */
#define SHERD__NODE_LOST 80

/** `sherd node --list-devices`. */
int sherd__node_devices(sherd__cli *cli, sherd_diag *d) SHERD_MUST;
/** What was found of one device, as a line for people. Returns out. */
const char *sherd__device_line(const sherd_device *v, char *out, size_t size);

/**
 * `sherd node --fallback cpu`: runs the same command in another process, and passes signals and
 * lines on, until that process ends. Returns SHERD_EDEVICE if a device or its driver failed: the
 * caller then serves with the processor. Sets `listen` to the address on which the other process
 * listened, if that is known. Signals are handled as before then. Otherwise this process ends as
 * the other one did. SHERD_EINVAL: the command line is too long.
 */
int sherd__node_supervise(sherd__cli *cli, char *listen, size_t size, sherd_diag *d) SHERD_MUST;

#endif
