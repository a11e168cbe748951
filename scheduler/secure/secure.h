/*
 * Training on the nodes' own data by secure aggregation: this process learns the sum of their
 * gradients and nothing else (crypto/aggregate.h; docs/THREATS.md states the assumptions). Use by
 * the command:
 *
 *     err = sherd__secure_open(&summer, cluster, &o, d);
 *     if (!err) err = sherd__stepper_summed(&stepper, &g, summer, 0, 0, d); // takes it
 *     ...
 *     sherd__stepper_free(stepper);  // before the cluster is closed
 *
 * The cluster can do no other work from the summer's start to its end.
 */
#ifndef SCHEDULER_SECURE_SECURE_H
#define SCHEDULER_SECURE_SECURE_H

#include "learn/gradients.h"
#include "sherd/cluster.h"
#include "store/sumlist.h"

typedef struct sherd__secure_options {
    const sherd__recipe *recipe; /* borrowed until the summer is freed */
    uint32_t colluding;          /* T; 0: 1 */
    uint32_t survivors;          /* U; 0: the smallest safe number */
    uint64_t rows, places;       /* of each node: examples of a step and of an epoch
                                    (learn/secure.h) */
    double clip, noise;          /* as in learn/secure.h; 0: none */
    const sherd__dataset *deal;  /* NULL: nodes have their own data. Otherwise this data is
                                    partitioned among them, in order, and not hidden: for
                                    simulations */
    sherd__sumlist *sums;        /* the nodes over which each sum was to be opened, also in earlier
                                    runs: all sums of one step are over the same nodes. Borrowed;
                                    NULL: no record is kept */
} sherd__secure_options;

/** Privacy cost, by the accountant of crypto/privacy.h, for an example that was in all rounds,
 *  including those of earlier runs. */
typedef struct sherd__secure_spent {
    uint64_t rounds; /* rounds of all places */
    double rho;      /* cost of the place that was in most rounds; infinite without noise */
} sherd__secure_spent;
sherd__secure_spent sherd__secure_spent_of(const sherd__summer *s);

/**
 * Makes a summer over all nodes that are up now and can take part. A node that was lost, or that
 * comes later, takes part from the first sum that starts after it is up. The caller frees it with
 * out->ops->free. SHERD_EFEWNODES: fewer than 3 nodes, or than U, now or in a later sum; or a node
 * is missing that is in a sum which was not opened, in this or an earlier run. SHERD_EINVAL:
 * thresholds that are not safe (sherd__aggregate_check). The nodes' error for the recipe, for each
 * other or for their policies, if too few nodes are left. SHERD_EINTERRUPTED, SHERD_ENOMEM.
 */
int sherd__secure_open(sherd__summer *out, sherd_cluster *c, const sherd__secure_options *opt,
                       sherd_diag *d) SHERD_MUST;

#endif
