/* What `sherd node` runs on, for the one other verb that runs nodes: those of `sherd bench` that
 * shall lie. */
#ifndef CLI_NODE_H
#define CLI_NODE_H

#include "cli/cli.h"
#include "node/backend.h"

/** `sherd node` with another backend; options as of sherd__verb_node. */
int sherd__node_with(const sherd__backend *backend, sherd__cli *cli, sherd_diag *d) SHERD_MUST;

/** The options of `sherd node`. */
extern const sherd__option sherd__node_options_table[];

extern const sherd__verb sherd__verb_node;

#endif
