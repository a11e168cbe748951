/*
 * Training by gradients over a cluster: nodes hold examples and parameters in clear and compute
 * gradients; this process is the parameter server. For the command:
 *
 *     sherd__train_options o = { .recipe = &recipe, .data = &data, .shards = shards, .batch =
 *                                batch, .bits = bits };
 *     err = sherd__train_engine(&engine, cluster, &o, d);     // or sherd__gradients_here(...)
 *     sherd__gradients_options g = { .recipe = &recipe, .data = &data, .engine = engine,
 *         .network = sherd__trainer_network(t), .optimiser = sherd__trainer_optimiser(t),
 *         .shards = shards, .bits = bits, ... };
 *     if (!err) err = sherd__stepper_gradients(&stepper, &g, d);  // takes the engine
 *     if (err) sherd__gradient_engine_free(engine);
 *     ...
 *     sherd__stepper_free(stepper);  // before the cluster is closed
 *
 * From the engine's start to its end the cluster does nothing else.
 */
#ifndef SCHEDULER_TRAIN_TRAIN_H
#define SCHEDULER_TRAIN_TRAIN_H

#include "learn/gradients.h"
#include "sherd/cluster.h"

/** One pass of a node, as its answer tells it: when, in seconds since the node got its first task.
 *  */
typedef struct sherd__train_trace {
    uint64_t version; /* of the parameters: updates made before */
    const char *node;
    uint32_t shards;
    double forward;         /* the pass began */
    double last_params;     /* the last parameters came */
    double top_left;        /* the top layer's gradient was handed to the connection */
    double lowest_backward; /* the lowest layer's backward pass began (of the last shard) */
    double computed;        /* the pass ended */
    double asked, answered; /* as seen here, seconds since the engine began */
} sherd__train_trace;

typedef struct sherd__train_options {
    const sherd__recipe *recipe; /* borrowed, until the engine is freed */
    const sherd__dataset *data;  /* likewise */
    uint32_t shards;             /* as the stepper's */
    size_t batch;                /* most examples of a step */
    unsigned bits;               /* as the stepper's */
    bool recurring;              /* the same rows come again (orders given, batches): nodes keep
                                     what they were sent, up to a quarter of their memory */
    bool allow_drop;             /* what a lost node had under way is not given to another one */
    bool async;                  /* as the stepper's: a node gets its next part while it computes
                                     one, unless the bound on staleness would then have it wait */
    uint64_t staleness_max;      /* as the stepper's */
    void (*trace)(void *ctx, const sherd__train_trace *t); /* on the calling thread; NULL: none */
    void *trace_ctx;
} sherd__train_options;

/**
 * An engine over all nodes of a cluster that compute gradients. Nodes that are lost are told of
 * through the cluster's log, and what they had under way goes to others. SHERD_EFEWNODES: no node
 * computes gradients, or later: none is left; SHERD_EINTERRUPTED, SHERD_ENOMEM. The engine is freed
 * before the cluster is closed.
 */
int sherd__train_engine(sherd__gradient_engine *out, sherd_cluster *c,
                        const sherd__train_options *opt, sherd_diag *d) SHERD_MUST;

#endif
