/* A node's own examples, its owner's policy, and the ledger of privacy costs (sherd/node.h). */
#ifndef LIB_NODE_DATA_H
#define LIB_NODE_DATA_H

#include <pthread.h>

#include "lib/local_data.h"
#include "node/server.h"
#include "sherd/node.h"
#include "store/ledger.h"

typedef struct sherd__node_data {
    sherd__own_data own;
    sherd__policy policy;
    sherd__ledger *ledger;
    pthread_mutex_t lock; /* of the ledger: uploads are charged in a different thread from
                             reports */
} sherd__node_data;

/** Loads the examples and opens the ledger; warns hooks->log of what the owner should know.
 *  memory: the node's budget; peers: it has a list of peers. The caller closes *x with
 *  sherd__node_data_close, on failure too. Errors: those of sherd__own_load and
 *  sherd__ledger_open; SHERD_EINVAL. */
int sherd__node_data_open(sherd__node_data *x, const sherd_node_data *opt, uint64_t memory,
                          bool peers, const sherd_hooks *hooks, sherd_diag *d) SHERD_MUST;
/** Safe on a zeroed struct. */
void sherd__node_data_close(sherd__node_data *x);
/** Returns the node's access to the ledger. */
sherd__ledger_ref sherd__node_data_ledger(sherd__node_data *x);
/** Reads what uploads have cost so far. */
void sherd__node_data_spent(sherd__node_data *x, sherd_node_privacy *out);

#endif
