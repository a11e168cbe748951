/*
 * Figures of one connection: a local node process, a link to it, and nothing of a job in between.
 * What is timed is what every product goes through: session, TLS, loopback, session, block store,
 * task loop, and back. For `sherd bench`.
 */
#ifndef SCHEDULER_CLUSTER_MEASURE_H
#define SCHEDULER_CLUSTER_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__measure sherd__measure;

typedef struct sherd__measure_options {
    const char *program;  /* the sherd command; NULL: "sherd" in PATH */
    uint64_t node_memory; /* 0: half of this machine's */
    uint32_t timeout_ms;  /* of each measurement; 0: 60000 */
    /** Asked about ten times a second; true ends a measurement with SHERD_EINTERRUPTED. */
    bool (*interrupted)(void *ctx);
    void *ctx;
} sherd__measure_options;

/** Starts the node and connects. Errors of sherd__launch_start and of the session. */
int sherd__measure_new(sherd__measure **out, const sherd__measure_options *opt,
                       sherd_diag *d) SHERD_MUST;
/** Says goodbye, ends the node. NULL is allowed. */
void sherd__measure_free(sherd__measure *m);

/**
 * Sends `count` blocks of `rows` x `cols` doubles, at most three on their way; *seconds runs from
 * the first put to the answer that follows the last. Behind each block goes a 1 x 1 product over
 * blocks that are there already: the session keeps their order, so that its result says that the
 * block is whole in the node's store; then it is dropped. Untimed, the node multiplies with a
 * block that came so, and the values are compared: SHERD_EDIFFERS. SHERD_EREFUSED: no room at the
 * node.
 */
int sherd__measure_blocks(sherd__measure *m, size_t rows, size_t cols, uint32_t count,
                          double *seconds, sherd_diag *d) SHERD_MUST;

/**
 * Sends `count` blocks of `rows` x `cols` doubles and has as many bytes sent back for each, in both
 * directions at once where both have something; nothing is computed but the product of a column and
 * a row, as it is sent. *seconds runs from the first put to the last answer. The blocks stay until
 * then.
 */
int sherd__measure_exchange(sherd__measure *m, size_t rows, size_t cols, uint32_t count,
                            double *seconds, sherd_diag *d) SHERD_MUST;

/**
 * `tasks` products of a fresh dim x dim block with one that stays, `depth` of them on their way at
 * a time; each result comes back whole, one of 64 is compared in every bit (SHERD_EDIFFERS).
 * *seconds is for all of them; *median (NULL: not wanted) half the tasks were answered within, from
 * put to result.
 */
int sherd__measure_products(sherd__measure *m, uint32_t dim, uint32_t depth, uint32_t tasks,
                            double *seconds, double *median, sherd_diag *d) SHERD_MUST;

#endif
