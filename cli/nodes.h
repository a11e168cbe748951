/* The nodes of a command: from -n N, --nodes FILE, or a running local cluster. */
#ifndef CLI_NODES_H
#define CLI_NODES_H

#include "cli/cli.h"
#include "sherd/cluster.h"
#include "sherd/product.h"

/**
 * Opens the cluster that SHERD__OPTS_CLUSTER names. The caller closes *out with
 * sherd_cluster_close. The cluster's log goes to stderr, and Ctrl-C interrupts its calls. Nodes
 * that are down are left out as far as the scheme of `work` allows (NULL: one node is enough), and
 * spare nodes are not waited for. With neither -n nor --nodes and no local cluster: SHERD_EINVAL
 * naming both. `cli` must outlive the cluster.
 */
int sherd__nodes_open(sherd_cluster **out, sherd__cli *cli, const sherd_product_options *work,
                      sherd_diag *d) SHERD_MUST;
/** Prints a line of the cluster's log, if the verbosity of `cli` includes its level. */
void sherd__nodes_log(const sherd__cli *cli, sherd_log_level level, const char *text);
/** Checks the nodes before any is started or connected to: whether there are as many as the scheme
 *  of opt needs (SHERD_EFEWNODES), and whether each line of the node file gives a domain
 *  (SHERD_EFORMAT). Starting and connecting may still fail. */
int sherd__nodes_suit(sherd__cli *cli, const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
/** Writes the path of the node file that would be used into *file (size bytes); empty: local nodes.
 *  same_host: whether its domains may be on one host. Errors as above. */
int sherd__nodes_file(char *file, size_t size, bool *same_host, sherd__cli *cli,
                      sherd_diag *d) SHERD_MUST;
/** Counts the nodes that would be used without opening anything (--dry-run). *loopback (may be
 *  NULL): whether all of them are on loopback. Errors as above. */
int sherd__nodes_count(uint32_t *out, bool *loopback, sherd__cli *cli, sherd_diag *d) SHERD_MUST;

#endif
