/* The implementation of `sherd node`, also used by the nodes of `sherd bench` that answer
 * wrongly. */
#ifndef CLI_NODE_H
#define CLI_NODE_H

#include "cli/cli.h"
#include "node/backend.h"

/** Runs `sherd node` with another backend; the options are those of sherd__verb_node. */
int sherd__node_with(const sherd__backend *backend, sherd__cli *cli, sherd_diag *d) SHERD_MUST;

/** The options of `sherd node`. */
extern const sherd__option sherd__node_options_table[];

extern const sherd__verb sherd__verb_node;

#endif
