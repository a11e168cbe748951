/* Nodes with a backend of the caller's, for measurements and tests (sherd/node.h). */
#ifndef LIB_NODE_H
#define LIB_NODE_H

#include "node/backend.h"
#include "sherd/node.h"

/** Name of the thread that runs a node's loop. */
#define SHERD__NODE_THREAD "sherd-node"

/** As sherd_node_start, with this backend; opt->backend is not read. */
int sherd__node_start_with(sherd_node **out, const sherd_node_options *opt,
                           const sherd__backend *backend, sherd_diag *d) SHERD_MUST;

#endif
