/*
 * Training by an all-reduce group of nodes (learn/allreduce.h): nodes hold examples and parameters
 * in clear, add up their gradients among themselves, and each node makes the update. The leader, in
 * this process, sends plans, and examples that a node does not have. It receives costs, hits, and,
 * on request, parameters.
 *
 *     sherd__allreduce_options o = { .recipe = &recipe, .data = &data, .kind = SHERD__REDUCE_RING,
 *                                 .network = ..., .optimiser = ..., .shards = shards, ... };
 *     err = sherd__allreduce_open(&lead, cluster, &o, d);
 *     if (!err) err = sherd__stepper_allreduce(&stepper, &g, lead, whole, d); // takes the leader
 *     if (err) lead.ops->free(lead.ctx);
 *
 * The cluster can do no other work from the leader's start to its end.
 */
#ifndef SCHEDULER_ALLREDUCE_ALLREDUCE_H
#define SCHEDULER_ALLREDUCE_ALLREDUCE_H

#include "learn/allreduce.h"
#include "sherd/cluster.h"

typedef struct sherd__allreduce_options {
    const sherd__recipe *recipe; /* borrowed until the leader is freed, as is the data */
    const sherd__dataset *data;
    const sherd__network *network; /* initial state of the training; read once */
    const sherd__optimiser *optimiser;
    sherd__reduce kind;
    uint32_t shards; /* as in the stepper's options */
    size_t batch;    /* largest number of examples in a step */
    unsigned bits;   /* as in the stepper's options, not 0 */
    bool allow_drop; /* shards of a lost node do not count in the step in which it was lost; if
                        false, other nodes compute their gradients */
} sherd__allreduce_options;

/** Bytes on the links that one node opened, which are the links it sends on: sent by it and
 *  received by it. bodies: bytes of block bodies that it received from others. As reported by the
 *  node, over complete rounds. */
typedef struct sherd__allreduce_link_bytes {
    uint64_t out, in, bodies;
} sherd__allreduce_link_bytes;

/** Statistics of a leader. */
typedef struct sherd__allreduce_stats {
    uint32_t members;           /* present number of members */
    uint64_t rounds, repeated;  /* complete rounds; rounds that were restarted */
    uint64_t link_out, link_in; /* bytes on links between members, in both directions of every link,
                                   as reported by the nodes that opened them */
    uint64_t examples_out;      /* bytes of examples sent, total over all members */
    sherd__slowest slowest;     /* over all rounds */
} sherd__allreduce_stats;

/**
 * Makes a leader. All capable nodes of the cluster, at most SHERD__ALLREDUCE_MOST, form a group and
 * connect; each node learns the addresses and keys of all. When a node is lost, the others repeat
 * the round in progress. A node that comes back, or comes late, receives the state and takes part
 * from the next step on. The caller frees the leader with out->ops->free. SHERD_EFEWNODES: no node
 * is left; SHERD_ECONNECT: nodes cannot reach each other; SHERD_EAUTH: nodes reject each other's
 * keys; SHERD_EWRONG: sums or weights differ.
 */
int sherd__allreduce_open(sherd__allreduce_lead *out, sherd_cluster *c,
                          const sherd__allreduce_options *opt, sherd_diag *d) SHERD_MUST;
/** Returns the link bytes of this node of the cluster. */
sherd__allreduce_link_bytes sherd__allreduce_links_of(const sherd__allreduce_lead *lead,
                                                      uint32_t node);
/** Writes the statistics of a leader made by sherd__allreduce_open; may be called at any time. */
void sherd__allreduce_count(const sherd__allreduce_lead *lead, sherd__allreduce_stats *out);

#endif
