/* The nodes of a command: from -n N, --nodes FILE, or a local cluster that runs already. */
#ifndef CLI_NODES_H
#define CLI_NODES_H

#include "cli/cli.h"
#include "sherd/cluster.h"
#include "sherd/product.h"

/**
 * Where `sherd cluster up` keeps its state: $XDG_RUNTIME_DIR/sherd, else /tmp/sherd-UID (made 0700
 * by it). In it: SHERD__CLUSTER_NODES, a node file, and SHERD__CLUSTER_KEY, the key that those
 * nodes allow. A cluster counts as up where the node file is there and the folder is ours alone.
 */
int sherd__nodes_folder(char *out, size_t size) SHERD_MUST;
#define SHERD__CLUSTER_NODES "nodes"
#define SHERD__CLUSTER_KEY "key"

/**
 * Opens the cluster that SHERD__OPTS_CLUSTER names; *out is the caller's (sherd_cluster_close). Its
 * log goes to stderr, Ctrl-C interrupts its calls. Nodes that are down are done without, as far as
 * the scheme of `work` allows (NULL: any one node will do), and those that it has to spare are not
 * waited for. With neither -n nor --nodes and no local cluster: SHERD_EINVAL naming both. `cli`
 * must outlive the cluster.
 */
int sherd__nodes_open(sherd_cluster **out, sherd__cli *cli, const sherd_product_options *work,
                      sherd_diag *d) SHERD_MUST;
/** What can be said of them before any is started or connected to: whether there are as many as the
 *  scheme of opt takes (SHERD_EFEWNODES), and whether each line of the node file says its domain
 *  (SHERD_EFORMAT). What passes may still fail there. */
int sherd__nodes_suit(sherd__cli *cli, const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
/** The node file of which that would be, into *file, size bytes; empty: local nodes. same_host:
 *  that its domains may be one host. Errors as above. */
int sherd__nodes_file(char *file, size_t size, bool *same_host, sherd__cli *cli,
                      sherd_diag *d) SHERD_MUST;
/** How many nodes that would be, without opening anything (--dry-run), and whether all of them are
 *  on loopback (here; may be NULL). Errors as above. */
int sherd__nodes_count(uint32_t *out, bool *here, sherd__cli *cli, sherd_diag *d) SHERD_MUST;

#endif
