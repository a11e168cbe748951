/*
 * Measures one connection: a local node process and a link to it, without a job. The measured path
 * is that of every product: session, TLS, loopback, session, block store, task loop, and back. For
 * `sherd bench`.
 */
#ifndef SCHEDULER_CLUSTER_MEASURE_H
#define SCHEDULER_CLUSTER_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/hooks.h"

/** Name of the thread that runs a cluster's loop, by which measurements find it. */
#define SHERD__CLUSTER_THREAD "sherd-cluster"

typedef struct sherd__measure sherd__measure;

typedef struct sherd__measure_options {
    const char *program;  /* the sherd command; NULL: as in sherd_cluster_options */
    uint64_t node_memory; /* 0: half of this machine's */
    uint32_t timeout_ms;  /* of each measurement; 0: 60000 */
    sherd_hooks hooks;    /* `interrupted` alone is used */
} sherd__measure_options;

/** Starts the node and connects. The caller frees *out with sherd__measure_free. Errors of
 *  sherd__launch_start and of the session. */
int sherd__measure_new(sherd__measure **out, const sherd__measure_options *opt,
                       sherd_diag *d) SHERD_MUST;
/** Closes the connection with a goodbye, ends the node and frees m. NULL is allowed. */
void sherd__measure_free(sherd__measure *m);

/**
 * Sends `count` blocks of `rows` x `cols` doubles, with at most three in transfer. *seconds is the
 * time from the first put to the answer after the last block. Each block is followed by a 1 x 1
 * product of blocks that the node already has. The session keeps the order, so the result of this
 * product shows that the block is complete in the node's store; then the block is dropped.
 * Afterwards, untimed, the node multiplies by a block sent in the same way, and the values are
 * compared: SHERD_EDIFFERS. SHERD_EREFUSED: no room at the node.
 */
int sherd__measure_blocks(sherd__measure *m, size_t rows, size_t cols, uint32_t count,
                          double *seconds, sherd_diag *d) SHERD_MUST;

/**
 * Sends `count` blocks of `rows` x `cols` doubles, and receives as many bytes for each, in both
 * directions at once while both have data. The only computation is the product of a column and a
 * row, made while it is sent. *seconds is the time from the first put to the last answer. The node
 * must have room for all blocks.
 */
int sherd__measure_exchange(sherd__measure *m, size_t rows, size_t cols, uint32_t count,
                            double *seconds, sherd_diag *d) SHERD_MUST;

/** The time of all products, and the median time of one from put to result. */
typedef struct sherd__measured {
    double seconds, median;
} sherd__measured;

/**
 * Computes `tasks` products of a fresh dim x dim block with a resident one, with `depth` of them in
 * progress at a time. Each result is returned whole; one in 64 is compared bit for bit
 * (SHERD_EDIFFERS).
 */
int sherd__measure_products(sherd__measure *m, uint32_t dim, uint32_t depth, uint32_t tasks,
                            sherd__measured *out, sherd_diag *d) SHERD_MUST;

#endif
