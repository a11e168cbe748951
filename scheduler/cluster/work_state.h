/*
 * Functions and state shared by training by gradients (scheduler/train/job.h) and by secure sums
 * (scheduler/secure/job.h) as works of a cluster's loop: logging, the end of the work, sessions,
 * and deadlines of nodes. The struct of a work begins with a sherd__work_state, and its data of a
 * node with a sherd__work_node, so the functions of sherd__work_ops declared here fit both.
 *
 * The loop thread makes all calls.
 */
#ifndef SCHEDULER_CLUSTER_WORK_STATE_H
#define SCHEDULER_CLUSTER_WORK_STATE_H

#include "scheduler/cluster/deadline.h"
#include "scheduler/cluster/work.h"

/** First member of a work's data about a node. */
typedef struct sherd__work_node {
    sherd__session *session;     /* if up; borrowed */
    bool heard;                  /* it is known whether the node is up */
    bool silent;                 /* it was expelled because its deadline passed */
    uint64_t since_ms;           /* time of the last request to it */
    uint64_t answered_ms;        /* time of its last answer */
    uint64_t progress_ms, moved; /* time of the last transfer of work, and byte count */
    sherd__delivery delivery;
    uint64_t accepted; /* number of accepted answers */
} sherd__work_node;

/** First member of a work. The work sets it from its options, except done, err and diag. */
typedef struct sherd__work_state {
    uint64_t id;
    uint32_t len;  /* number of nodes */
    void *nodes;   /* each element begins with a sherd__work_node */
    size_t stride; /* bytes from one element to the next */
    sherd__job_owner owner;
    void (*changed)(void *ctx); /* notifies the waiting thread */
    void *changed_ctx;
    /** Returns whether an answer of this node is outstanding. */
    bool (*busy)(const sherd__work_node *n);
    bool apart;         /* no node's answer depends on another node */
    const char *wanted; /* "gradients of ": what is requested, before the node's name */
    const char *silent; /* "computes no gradient": reason given for a node that takes too long */
    double usual_ms;    /* moving average of the time of an answer; 0: unknown */
    double flops;       /* operations for one example, as sherd__recipe_flops counts them */
    double first_ms;    /* time of the slowest node for the latest request (sherd__work_expect) */
    bool done;
    int err;
    sherd_diag diag;
} sherd__work_state;

/** Writes a warning to the cluster's log, at most 399 bytes. */
void sherd__work_say(const sherd__work_state *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
const char *sherd__work_name(const sherd__work_state *w, uint32_t node);
sherd__work_node *sherd__work_node_at(const sherd__work_state *w, uint32_t node);

/** Ends the work with success (SHERD_OK) or an error. Only the first call has an effect. */
void sherd__work_stop(sherd__work_state *w, int err, const char *hint, const char *message);
/** Makes the node drop everything of this work, and cancels its requests. */
void sherd__work_forget(sherd__work_state *w, uint32_t node);
/** A request of so many operations is about to be sent. */
void sherd__work_expect(sherd__work_state *w, double flops);
/** Returns how long a node may take for a request as long as no answer has been received. */
double sherd__work_first_ms(const sherd__work_state *w);
/** The node has just been sent a request: its time starts. */
void sherd__work_asked(sherd__work_state *w, uint32_t node, uint64_t now_ms);
/** The node has answered something. */
void sherd__work_heard(sherd__work_state *w, uint32_t node, uint64_t now_ms);
/** The node has answered the request of since_ms. The usual time follows from such answers. */
void sherd__work_took(sherd__work_state *w, uint32_t node, uint64_t now_ms);

/* Implementations of sherd__work_ops. */

/** Expels nodes that owe an answer and are past their deadline. If at least half of the other nodes
 *  have answered since, and answers do not depend on other nodes, the deadline follows from their
 *  times; otherwise from the times of all answers so far. */
void sherd__work_tick(void *ctx, uint64_t now_ms);
bool sherd__work_done(const void *ctx, int *err, sherd_diag *d);
void sherd__work_fail(void *ctx, int err, const char *hint, const char *message);
void sherd__work_end(void *ctx);
void sherd__work_rest(void *ctx);
/** Always true: these works do not use the executor. */
bool sherd__work_idle(const void *ctx);
uint64_t sherd__work_node_tasks(const void *ctx, uint32_t node);
void sherd__work_waiting(const void *ctx, uint64_t now_ms, char *out, size_t size);

#endif
