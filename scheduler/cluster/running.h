/* Where a running local cluster (sherd/local.h) is found. */
#ifndef SCHEDULER_CLUSTER_RUNNING_H
#define SCHEDULER_CLUSTER_RUNNING_H

#include <limits.h>

#include "sherd/err.h"

typedef struct sherd__running {
    char nodes[PATH_MAX], key[PATH_MAX]; /* the node file, and the key that its nodes allow */
} sherd__running;

/** Finds the running cluster of a folder, NULL: the user's. Errors as of sherd_local_nodes_file. */
int sherd__running_find(sherd__running *out, const char *folder, sherd_diag *d) SHERD_MUST;

#endif
