/*
 * State of a cluster, for its four files: cluster.c (public functions, calling thread), loop.c
 * (links and the running job, loop thread), open.c (from options to nodes that are up), end.c. No
 * other file includes this.
 */
#ifndef SCHEDULER_CLUSTER_STATE_H
#define SCHEDULER_CLUSTER_STATE_H

#include <pthread.h>
#include <uv.h>

#include "core/executor.h"
#include "core/rand.h"
#include "scheduler/cluster/domains.h"
#include "scheduler/cluster/buffers.h"
#include "scheduler/cluster/internal.h"
#include "scheduler/cluster/launch.h"
#include "scheduler/cluster/work.h"
#include "scheduler/plan/weights.h"
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
    sherd__link *link; /* used by the loop thread, as everything below */
    bool up, banned, touched;
    bool absent;   /* a local node that never listened and has ended */
    bool given_up; /* it could not be reached, and quick attempts were stopped */
    bool expelled; /* from the running job */
    sherd__delivery delivery;
    uint32_t stalls;        /* sessions that ended in silence since its last answer to a task */
    uint32_t silences;      /* number of works that it was expelled from for not answering */
    uint64_t shut_until_ms; /* it is given nothing before this time, after its last silence */
    uint64_t up_ms;         /* time since which it is up */
    uint64_t sessions;      /* number of sessions so far, which is the number of the current one */
    uint32_t retries;
    uint64_t retry_ms; /* when to connect again; 0: never */
    sherd__hello hello;
    double round_trip;         /* seconds, at the start of the session; 0: unknown */
    sherd__session_stats past; /* sum of earlier sessions: bytes only */
    uint64_t tasks;
    sherd__record_peer *record;
    int last_err;
    char last_text[SHERD__TEXT_MAX];
    sherd_node_info info; /* snapshot; under the lock, as the members below */
    uint32_t ban;         /* number of its ban, from 1; 0: not banned */
    bool windows;         /* it can process windows of images */
    bool seeds;           /* it expands seeds of shares */
    sherd__speed speed;   /* bytes a second in the last jobs, relative to the median of all nodes */
    sherd__speed speeds[SHERD__WORK_KINDS]; /* work in the last products of each kind, likewise */
    double owed_s;   /* time in which it owed answers, total of all products */
    bool pace_named; /* the log says that it is slow */
    sherd__hello_rates rates;
    bool reported_small; /* its lack of memory has been reported */
    /* What the log says that it cannot do, in its present session. Only the loop thread uses this
       member and the next. */
    uint32_t reported_cannot;
    char reported_refusal[SHERD__TEXT_MAX]; /* the last reason why it refuses its work */
} pool_node;

struct sherd_cluster {
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t tick;
    uv_thread_t thread;
    bool loop_made, thread_runs;
    bool ended;           /* sherd_cluster_end was called: no loop, no nodes */
    bool record_reported; /* used by the loop thread: a failure of recording has been reported */
    sherd_identity *identity;
    sherd__launch *launch;
    sherd__recording *record;
    sherd__executor *executor;
    sherd__buffers *answers;
    sherd__entropy entropy;
    pool_node *nodes;
    uint32_t count, domains;
    uint32_t *domain_of;
    bool simulated;
    sherd__domain_fault domain_fault; /* why domains cannot be trusted to be separate; empty: they
                                         can */
    sherd_cluster_options o;
    sherd_hooks hooks; /* of the present call */
    double open_until; /* when opening must be finished; 0: no limit */

    sherd__work work; /* used by the loop thread: the running work */
    bool job_last, job_ended;
    uint64_t deadline_ms;
    uint32_t open_links;
    bool closing;

    pthread_mutex_t lock; /* protects the members below, and the nodes' info */
    pthread_cond_t changed;
    sherd__work next_work; /* a request */
    bool next_last, next_drop, close_wanted, stop_wanted, job_waits, publish_wanted;
    uint64_t *budgets;          /* used by the calling thread: sherd__nodes.budgets */
    uint64_t *rooms;            /* as budgets: sherd__nodes.rooms */
    bool *seeds;                /* as budgets: sherd__nodes.seeds */
    uint32_t *weights, *speeds; /* as budgets: sherd__nodes.weights, and speeds by kind */
    double *scratch;            /* as budgets: four for each node, then its rate and pace */
    sherd__speed *compared;     /* as budgets: scratch */
    sherd__node_speed *each;    /* as budgets: sherd__nodes.each */
    bool speeds_measured, weights_reported; /* used by the calling thread, as are the next two */
    bool probing;                           /* products are of ones: no work to judge nodes by */
    uint32_t jobs;                          /* number of products that were complete */
    uint64_t needed; /* bytes that a node must declare for the current work */
    uint64_t held;   /* bytes that kept operands take at every node */
    uint32_t next_timeout_ms;
    bool job_done;
    sherd_progress progress;
    char waiting[300];
    uint32_t bans, bans_before; /* so far; at the start of the current call */
    char log[CLUSTER_LOG_LINES][CLUSTER_LOG_LINE];
    sherd_log_level log_level[CLUSTER_LOG_LINES];
    uint32_t log_from, log_len;
    uint32_t log_lost; /* lines dropped for lack of space, and their most severe level */
    sherd_log_level log_lost_level;
};

/* cluster.c */

/** Queues a line until the calling thread delivers it. Matches `log` of a job's owner. */
void sherd__cluster_log(void *ctx, sherd_log_level level, const char *text);
/** Leaves work for the loop. The lock must be held. */
void sherd__cluster_post(sherd_cluster *c, sherd__work work, bool last, bool drop,
                         uint32_t timeout_ms);
/** Reports, once, a node that declares too little memory for the current work. */
void sherd__cluster_report_small(sherd_cluster *c, uint32_t node);
/** Waits up to ms for a change, delivers log lines, and asks whether to stop. The lock must be
 *  held. */
void sherd__cluster_wait(sherd_cluster *c, unsigned ms);
/** Delivers the queued lines. The lock must be held. */
void sherd__cluster_hand_out(sherd_cluster *c);

/* speeds.c: sets out->weights and out->speeds. */

void sherd__cluster_weights(sherd_cluster *c, sherd__nodes *out);

/* probe.c: a product of ones, which shows how fast each node answers. */

int sherd__rates_glance(sherd_cluster *c, const sherd_hooks *hooks, uint32_t timeout_ms,
                        sherd_diag *d) SHERD_MUST;

/* end.c: returns SHERD_EINVAL after sherd_cluster_end has been called. */

int sherd__cluster_over(const sherd_cluster *c, sherd_diag *d) SHERD_MUST;

/* loop.c: the callbacks of the two handles, and the loop. */

void sherd__cluster_on_wake(uv_async_t *h);
void sherd__cluster_on_tick(uv_timer_t *h);
void sherd__cluster_loop(void *cluster);
/** Wakes the loop to look for requests and finished work. Any thread; also called by the
 *  executor. */
void sherd__cluster_wake(void *cluster);

#endif
