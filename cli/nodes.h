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
/** Counts the nodes that would be used without opening anything. Errors as above. */
int sherd__nodes_count(uint32_t *out, sherd__cli *cli, sherd_diag *d) SHERD_MUST;
/** Reads SHERD__OPTS_CLUSTER into *o, which borrows from *cli, for a call that opens the nodes.
 *  opens: false if they will not be opened (--dry-run): a key is not needed then. Errors as of
 *  sherd__nodes_open. */
int sherd__nodes_options(sherd_cluster_options *o, bool opens, sherd__cli *cli,
                         sherd_diag *d) SHERD_MUST;
/** Reads --nodes, --key and --timeout of a verb that only reads the state of a list's nodes. */
int sherd__nodes_look_options(sherd_cluster_options *o, const sherd__cli *cli,
                              sherd_diag *d) SHERD_MUST;
/** Prints, by `print`, a line for each node that does not compute on the processor: backend,
 *  devices, rate. */
void sherd__nodes_print_devices(const sherd__cli *cli, sherd_cluster *c,
                                void (*print)(const sherd__cli *cli, const char *line));
/** Returns an object with name, backend, devices and rates of node i. */
json_t *sherd__nodes_device_object(sherd_cluster *c, uint32_t i);
/** Warns if `budget`, the value of this option, is more than the memory of this machine. */
void sherd__nodes_check_memory(const sherd__cli *cli, const char *option, uint64_t budget);
/** Reports that the nodes to be started are more than the cores, since starting them takes a
 *  while. Warns if each is given more memory than this machine has. */
void sherd__nodes_say_start(const sherd__cli *cli, const sherd_cluster_options *o);

#endif
