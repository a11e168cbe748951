/*
 * What training by gradients (scheduler/train/job.h) and by secure sums (scheduler/secure/job.h)
 * have in common as works of a cluster's loop: how they tell, how they end, which sessions they
 * have, and how long a node may take. A work begins with a sherd__work_state, and what it notes of
 * a node with a sherd__work_node: so the functions of sherd__work_ops here fit both.
 *
 * All calls are made by the loop's thread.
 */
#ifndef SCHEDULER_CLUSTER_WORK_STATE_H
#define SCHEDULER_CLUSTER_WORK_STATE_H

#include "scheduler/cluster/deadline.h"
#include "scheduler/cluster/work.h"

/** First member of what a work notes of a node. */
typedef struct sherd__work_node {
    sherd__session *session;     /* while up; borrowed */
    bool heard;                  /* it came up, or is known not to */
    bool silent;                 /* it has been expelled for want of patience */
    uint64_t since_ms;           /* when it was last asked */
    uint64_t answered_ms;        /* when it last answered */
    uint64_t progress_ms, moved; /* when bytes of work last moved, and how many had */
    sherd__delivery delivery;
    uint64_t accepted; /* answers */
} sherd__work_node;

/** First member of a work. Set up by hand, from its options; done, err and diag follow. */
typedef struct sherd__work_state {
    uint64_t id;
    uint32_t len;  /* nodes */
    void *nodes;   /* each begins with a sherd__work_node */
    size_t stride; /* bytes of one */
    sherd__job_owner owner;
    void (*changed)(void *ctx); /* whoever waits should look */
    void *changed_ctx;
    /** An answer of this node is awaited. */
    bool (*busy)(const sherd__work_node *n);
    bool apart;         /* no node's answer waits for another node */
    const char *wanted; /* "gradients of ": what it is asked for, before its name */
    const char *silent; /* "computes no gradient": what is said of one that takes too long */
    double usual_ms;    /* moving average of what an answer takes; 0: not known */
    bool done;
    int err;
    sherd_diag diag;
} sherd__work_state;

/** A warning to the cluster's log, at most 399 bytes. */
void sherd__work_say(const sherd__work_state *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
const char *sherd__work_name(const sherd__work_state *w, uint32_t node);
sherd__work_node *sherd__work_node_at(const sherd__work_state *w, uint32_t node);

/** The work is over, well (SHERD_OK) or not; the first that says so is heard. */
void sherd__work_stop(sherd__work_state *w, int err, const char *hint, const char *message);
/** The node keeps nothing of this work, and what it is asked is not wanted. */
void sherd__work_forget(sherd__work_state *w, uint32_t node);
/** It has been asked, now: its patience begins. */
void sherd__work_asked(sherd__work_state *w, uint32_t node, uint64_t now_ms);
/** It has answered something. */
void sherd__work_heard(sherd__work_state *w, uint32_t node, uint64_t now_ms);
/** It has answered what it was asked at since_ms, and what is usual follows from such answers. */
void sherd__work_took(sherd__work_state *w, uint32_t node, uint64_t now_ms);

/* As in sherd__work_ops. */

/** Expels busy nodes that are past their deadline: where as many others as not have answered since,
 *  and answers wait for nobody else, by what those took; else by what answers have taken so far. */
void sherd__work_tick(void *ctx, uint64_t now_ms);
bool sherd__work_done(const void *ctx, int *err, sherd_diag *d);
void sherd__work_fail(void *ctx, int err, const char *hint, const char *message);
void sherd__work_end(void *ctx);
void sherd__work_rest(void *ctx);
/** Always: for works that have nothing with the executor. */
bool sherd__work_idle(const void *ctx);
uint64_t sherd__work_node_tasks(const void *ctx, uint32_t node);
void sherd__work_waiting(const void *ctx, uint64_t now_ms, char *out, size_t size);

#endif
