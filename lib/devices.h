/* Which backend and devices a node uses, from its options. */
#ifndef LIB_DEVICES_H
#define LIB_DEVICES_H

#include "node/backend.h"
#include "sherd/node.h"

/** Returns the i-th backend; NULL after the last. */
const sherd__backend *sherd__backend_at(size_t i);

/**
 * Chooses a backend, and sets the members of *how that name its devices. A driver is first used by
 * another process, which opens the devices; where it fails, "auto" chooses the processor and logs
 * why, and a backend that was named is an error.
 *
 * Errors: SHERD_EUNSUPPORTED (no such backend, no driver, no device), SHERD_EDEVICE (the driver or
 * the device fails), SHERD_EINVAL (there is no such device, a budget beyond its memory),
 * SHERD_ENOMEM.
 */
int sherd__backend_choose(const sherd__backend **out, sherd__backend_options *how,
                          const sherd_node_options *opt, sherd_diag *d) SHERD_MUST;

#endif
