/*
 * A work that a cluster's loop runs: a product's job (scheduler/job/job.h) or training
 * (scheduler/train/job.h). Works are state machines over sessions, without socket or clock. The
 * loop thread makes all calls. The contracts are those of sherd__job_*, which is one
 * implementation.
 */
#ifndef SCHEDULER_CLUSTER_WORK_H
#define SCHEDULER_CLUSTER_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/job/job.h"
#include "wire/session.h"

typedef struct sherd__work_ops {
    bool lasting; /* lost nodes are connected to again, slowly, while the work runs; then node_up is
                     called although node_down had said that they would not return */
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
    /** node_tasks: accepted tasks of this node. progress: finished pieces of the work, and all
     *  pieces. */
    uint64_t (*node_tasks)(const void *ctx, uint32_t node);
    void (*progress)(const void *ctx, uint64_t *done, uint64_t *all);
    void (*waiting)(const void *ctx, uint64_t now_ms, char *out, size_t size);
} sherd__work_ops;

/** A reference to a work; ops NULL: none. */
typedef struct sherd__work {
    const sherd__work_ops *ops;
    void *ctx;
} sherd__work;

sherd__work sherd__job_work(sherd__job *j);

#endif
