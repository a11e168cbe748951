/*
 * What a cluster's loop drives: a product's job (scheduler/job/job.h), or training
 * (scheduler/train/job.h). State machines over sessions, without socket or clock. The loop's thread
 * makes all calls; contracts are those of sherd__job_*, which is one of them.
 */
#ifndef SCHEDULER_CLUSTER_WORK_H
#define SCHEDULER_CLUSTER_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/job/job.h"
#include "wire/session.h"

typedef struct sherd__work_ops {
    bool lasting; /* nodes that are lost are connected to again, slowly, as long as it runs; node_up
                     then, though node_down had said that they would not be back */
    void (*node_up)(void *ctx, uint32_t node, sherd__session *s, uint64_t session_number,
                    uint64_t now_ms);
    void (*node_down)(void *ctx, uint32_t node, bool back, const char *why, uint64_t now_ms);
    void (*node_banned)(void *ctx, uint32_t node, const char *why);
    void (*node_barred)(void *ctx, uint32_t node);
    void (*event)(void *ctx, uint32_t node, sherd__event *event, uint64_t now_ms);
    void (*tick)(void *ctx, uint64_t now_ms);
    void (*pump)(void *ctx, uint64_t now_ms);
    bool (*done)(const void *ctx, int *err, sherd_diag *d);
    void (*fail)(void *ctx, int err, const char *hint, const char *message);
    void (*end)(void *ctx);
    void (*rest)(void *ctx);
    bool (*idle)(const void *ctx);
    /** Tasks of this node that were accepted; pieces of the whole that are done, and all. */
    uint64_t (*node_tasks)(const void *ctx, uint32_t node);
    void (*progress)(const void *ctx, uint64_t *done, uint64_t *all);
    void (*waiting)(const void *ctx, uint64_t now_ms, char *out, size_t size);
} sherd__work_ops;

/** A reference; ops NULL: none. */
typedef struct sherd__work {
    const sherd__work_ops *ops;
    void *ctx;
} sherd__work;

sherd__work sherd__job_work(sherd__job *j);

#endif
