/*
 * Training by gradients over a cluster: nodes hold examples and parameters in clear and compute
 * gradients; this process is the parameter server. Use by the command:
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
 * The cluster can do no other work from the engine's start to its end.
 */
#ifndef SCHEDULER_TRAIN_TRAIN_H
#define SCHEDULER_TRAIN_TRAIN_H

#include "learn/gradients.h"
#include "sherd/cluster.h"

/** Times of one pass of a node, as reported in its answer, in seconds since it got its first
 *  task. */
typedef struct sherd__train_trace {
    uint64_t version; /* of the parameters: number of updates made before */
    const char *node;
    uint32_t shards;
    double forward;         /* the pass started */
    double last_params;     /* the last parameters arrived */
    double top_left;        /* the top layer's gradient was passed to the connection */
    double lowest_backward; /* the lowest layer's backward pass started (of the last shard) */
    double computed;        /* the pass ended */
    double asked, answered; /* sent and answered, measured by the coordinator in seconds since the
                               engine started */
} sherd__train_trace;

typedef struct sherd__train_options {
    const sherd__recipe *recipe; /* borrowed until the engine is freed */
    const sherd__dataset *data;  /* likewise */
    uint32_t shards;             /* as in the stepper's options */
    size_t batch;                /* largest number of examples in a step */
    unsigned bits;               /* as in the stepper's options */
    bool recurring;              /* the same rows are used again (given orders, batches): nodes keep
                                    the rows that they were sent, up to a quarter of their memory */
    bool allow_drop;             /* parts of a lost node are dropped, not given to another node */
    bool async;                  /* as in the stepper's options: a node gets its next part while it
                                    computes one, unless it would wait for the bound on staleness */
    uint64_t staleness_max;      /* as in the stepper's options */
    void (*trace)(void *ctx, const sherd__train_trace *t); /* on the calling thread, or NULL */
    void *trace_ctx;
} sherd__train_options;

/**
 * Makes an engine over all nodes of a cluster that compute gradients. Lost nodes are reported
 * through the cluster's log, and their unfinished parts are given to others. SHERD_EFEWNODES: no
 * node computes gradients, or, later, no node is left; SHERD_EINTERRUPTED, SHERD_ENOMEM. The caller
 * frees the engine before it closes the cluster.
 */
int sherd__train_engine(sherd__gradient_engine *out, sherd_cluster *c,
                        const sherd__train_options *opt, sherd_diag *d) SHERD_MUST;

#endif
