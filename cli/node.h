/* The implementation of `sherd node`, also used by the nodes of `sherd bench` that answer
 * wrongly. */
#ifndef CLI_NODE_H
#define CLI_NODE_H

#include "cli/cli.h"
#include "sherd/node.h"

/** sherd_node_start, or a function that starts a node with another backend. */
typedef int sherd__node_starter(sherd_node **out, const sherd_node_options *opt, sherd_diag *d);

/** Runs `sherd node`; the options are those of sherd__verb_node. */
int sherd__node_with(sherd__node_starter *start, sherd__cli *cli, sherd_diag *d) SHERD_MUST;
/** Reads the options. *o borrows from cli and *data; hooks are not set. SHERD_EINVAL: one is
 *  missing or has no effect. */
int sherd__node_read(sherd__cli *cli, sherd_node_options *o, sherd_node_data *data,
                     sherd_diag *d) SHERD_MUST;

/** The options of `sherd node`. */
extern const sherd__option sherd__node_options_table[];

extern const sherd__verb sherd__verb_node;

#endif
