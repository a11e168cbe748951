/* The nodes that a cluster's options name, before any is started or connected to. */
#ifndef SCHEDULER_CLUSTER_SOURCE_H
#define SCHEDULER_CLUSTER_SOURCE_H

#include <limits.h>

#include "sherd/cluster.h"
#include "sherd/product.h"
#include "wire/identity.h"

/** Options with their defaults. */
typedef struct sherd__node_source {
    sherd_cluster_options o;
    sherd_product_options work; /* with o.work */
    uint64_t least;             /* domains that the work needs; 1: one node is enough */
    char where[PATH_MAX];       /* name of the list in messages */
    sherd__peers peers;         /* its nodes, without coordinators; none: local nodes */
} sherd__node_source;

/** Reads the options. The caller frees *out with sherd__node_source_fini, on failure too.
 *  SHERD_EINVAL, SHERD_EUNSUPPORTED. */
int sherd__node_source_options(sherd__node_source *out, const sherd_cluster_options *opt,
                               sherd_diag *d) SHERD_MUST;
/** Loads the coordinator's key; *out is NULL for local nodes. The caller frees it with
 *  sherd_identity_free. */
int sherd__node_source_key(const sherd__node_source *s, sherd_identity **out,
                           sherd_diag *d) SHERD_MUST;
/** Reads the list of nodes, if there is one, and checks that the nodes are enough for the work.
 *  Errors as of sherd_cluster_check. */
int sherd__node_source_nodes(sherd__node_source *s, sherd_diag *d) SHERD_MUST;
void sherd__node_source_fini(sherd__node_source *s);

#endif
