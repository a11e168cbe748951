/*
 * What a cluster is made of, for its four files: cluster.c (public calls, the calling thread),
 * loop.c (links and the running job, the loop thread), open.c (from options to
 * nodes that are up), end.c. No other file includes this.
 */
#ifndef SCHEDULER_CLUSTER_STATE_H
#define SCHEDULER_CLUSTER_STATE_H

#include <pthread.h>
#include <uv.h>

#include "core/executor.h"
#include "core/rand.h"
#include "scheduler/cluster/buffers.h"
#include "scheduler/cluster/internal.h"
#include "scheduler/cluster/launch.h"
#include "scheduler/cluster/work.h"
#include "store/record.h"
#include "wire/link.h"

#define CLUSTER_TICK_MS 100u
#define CLUSTER_LOG_LINES 64u
#define CLUSTER_LOG_LINE 400u

typedef struct pool_node {
    sherd_cluster *cluster;
    uint32_t index;
    sherd__peer peer;
    char label[400]; /* "node-3 (127.0.0.1:7003)" */
    uint32_t domain;
    pid_t pid;
    sherd__link *link; /* loop thread's, as everything below */
    bool up, banned, touched;
    bool absent;   /* a local node that never listened, and is no more */
    bool given_up; /* it was not reached, and nothing more was tried at once */
    bool expelled; /* from the job that runs */
    sherd__delivery delivery;
    uint32_t stalls;        /* sessions that ended in silence since it last answered a task */
    uint32_t silences;      /* works that it was expelled from for want of answers */
    uint64_t shut_until_ms; /* it is given nothing before, since its last silence */
    uint64_t up_ms;         /* since when it is up */
    uint64_t sessions;      /* so far: the number of the current one */
    uint32_t retries;
    uint64_t retry_ms; /* when to connect again; 0: not to */
    sherd__hello hello;
    sherd__session_stats past; /* of earlier sessions: bytes only */
    uint64_t tasks;
    sherd__record_peer *record;
    int last_err;
    char last_text[SHERD__TEXT_MAX];
    sherd_node_info info; /* snapshot, under the lock, as what follows */
    uint32_t ban;         /* the number of its ban, 1..; 0: it is not banned */
    bool windows;         /* it takes windows of images */
    bool told_small;      /* that it is passed over for its memory */
} pool_node;

struct sherd_cluster {
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t tick;
    uv_thread_t thread;
    bool loop_made, thread_runs;
    bool ended;       /* sherd_cluster_end: no loop, no nodes */
    bool record_told; /* loop thread's: that recording has stopped */
    sherd_identity *identity;
    sherd__launch *launch;
    sherd__record *record;
    sherd__executor *executor;
    sherd__buffers *answers;
    sherd__entropy entropy;
    pool_node *nodes;
    uint32_t count, domains;
    uint32_t *domain_of;
    bool simulated;
    char domain_fault[900]; /* why domains are not to be counted on; empty: they are */
    const char *domain_hint;
    sherd_cluster_options o;
    double open_until; /* when opening must be done; 0: no such time */

    sherd__work work; /* loop thread's: the one that runs */
    bool job_last, job_ended;
    uint64_t deadline_ms;
    uint32_t open_links;
    bool closing;

    pthread_mutex_t lock; /* guards what follows, and the nodes' info */
    pthread_cond_t changed;
    sherd__work next_work; /* request */
    bool next_last, next_drop, close_wanted, stop_wanted, job_waits, publish_wanted;
    uint64_t *budgets; /* the calling thread's: sherd__nodes.budgets */
    uint64_t *rooms;   /* likewise: sherd__nodes.rooms */
    uint64_t needed;   /* bytes that a node has to declare for the work that is on */
    uint64_t held;     /* bytes of every node that kept operands take */
    uint32_t next_timeout_ms;
    bool job_done;
    sherd_progress progress;
    char waiting[300];
    uint32_t bans, bans_before; /* so far; and before the call that is on */
    char log[CLUSTER_LOG_LINES][CLUSTER_LOG_LINE];
    sherd_log_level log_level[CLUSTER_LOG_LINES];
    uint32_t log_from, log_len;
    uint32_t log_lost; /* lines that found no room, and the gravest level among them */
    sherd_log_level log_lost_level;
};

/* cluster.c */

/** A line for people: kept until the calling thread hands it out. As a job's owner logs. */
void sherd__cluster_log(void *ctx, sherd_log_level level, const char *text);
/** Leaves work for the loop; the lock is held. */
void sherd__cluster_post(sherd_cluster *c, sherd__work work, bool last, bool drop,
                         uint32_t timeout_ms);
/** Names a node, once, that declares too little memory for the work that is on. */
void sherd__cluster_tell_small(sherd_cluster *c, uint32_t node);
/** Waits up to ms for a change; the lock is held. Hands out lines, asks whether to stop. */
void sherd__cluster_wait(sherd_cluster *c, unsigned ms);
/** Lines that still wait; the lock is held. */
void sherd__cluster_hand_out(sherd_cluster *c);

/* end.c: SHERD_EINVAL once sherd_cluster_end has been called. */

int sherd__cluster_over(const sherd_cluster *c, sherd_diag *d) SHERD_MUST;

/* loop.c: the callbacks of the two handles, and the loop itself. */

void sherd__cluster_on_wake(uv_async_t *h);
void sherd__cluster_on_tick(uv_timer_t *h);
void sherd__cluster_loop(void *cluster);
/** Makes the loop look for requests and finished work; any thread, and the executor. */
void sherd__cluster_wake(void *cluster);

#endif
