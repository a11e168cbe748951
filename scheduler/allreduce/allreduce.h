/*
 * Training by a circle of nodes (learn/allreduce.h): nodes hold examples and parameters in clear,
 * add up their gradients among themselves, and each makes the update. From here go plans, and
 * examples where a node has not got them; back come costs, hits, and parameters when they are asked
 * for.
 *
 *     sherd__allreduce_options o = { .recipe = &recipe, .data = &data, .kind = SHERD__REDUCE_RING,
 *                                 .network = ..., .optimiser = ..., .shards = shards, ... };
 *     err = sherd__allreduce_open(&lead, cluster, &o, d);
 *     if (!err) err = sherd__stepper_allreduce(&stepper, &g, lead, whole, d); // takes the leader
 *     if (err) lead.ops->free(lead.ctx);
 *
 * From the leader's start to its end the cluster does nothing else.
 */
#ifndef SCHEDULER_ALLREDUCE_ALLREDUCE_H
#define SCHEDULER_ALLREDUCE_ALLREDUCE_H

#include "learn/allreduce.h"
#include "sherd/cluster.h"

typedef struct sherd__allreduce_options {
    const sherd__recipe *recipe; /* borrowed, until the leader is freed, as is the data */
    const sherd__dataset *data;
    const sherd__network *network; /* where the training begins; read once */
    const sherd__optimiser *optimiser;
    sherd__reduce kind;
    uint32_t shards; /* as the stepper's */
    size_t batch;    /* most examples of a step */
    unsigned bits;   /* as the stepper's, not 0 */
    bool allow_drop; /* a lost node's shards do not count in the step that it is
                                          lost in; else others grade them */
} sherd__allreduce_options;

/** Bytes on links that one node has opened, which is to whom it sends: out from it, in to it; and
 *  of what others sent it, the bodies of blocks. As it tells, over complete rounds. */
typedef struct sherd__allreduce_link_bytes {
    uint64_t out, in, bodies;
} sherd__allreduce_link_bytes;

/** What the leader has seen. */
typedef struct sherd__allreduce_stats {
    uint32_t members;           /* now */
    uint64_t rounds, repeated;  /* complete; and those that were begun anew */
    uint64_t link_out, link_in; /* bytes on links between members, as their openers tell:
                                          both ways of every link */
    uint64_t examples_out;      /* bytes of examples sent, to all members together */
} sherd__allreduce_stats;

/**
 * All nodes of the cluster that can, at most SHERD__ALLREDUCE_MOST, meet and connect; each is told
 * the addresses and keys of all. When a node is lost the round that it was in is made anew by the
 * others; one that comes back, or late, is given the state and takes part from the next step on.
 * SHERD_EFEWNODES: none is left; SHERD_ECONNECT: nodes that cannot reach each other; SHERD_EAUTH:
 * nodes that do not believe each other; SHERD_EWRONG: sums, or weights, that differ.
 */
int sherd__allreduce_open(sherd__allreduce_lead *out, sherd_cluster *c,
                          const sherd__allreduce_options *opt, sherd_diag *d) SHERD_MUST;
/** Of this node of the cluster. */
sherd__allreduce_link_bytes sherd__allreduce_links_of(const sherd__allreduce_lead *lead,
                                                      uint32_t node);
/** Of a leader that this made; any time. */
void sherd__allreduce_count(const sherd__allreduce_lead *lead, sherd__allreduce_stats *out);

#endif
