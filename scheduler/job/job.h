/*
 * One job: which node computes which cell, when, and what happens when a node is slow, lost, wrong
 * or full. A state machine over sessions (wire/session.h), without socket or clock: the cluster's
 * loop thread drives it, and so does the simulation. Hiding, checking and folding run on the
 * executor.
 *
 * Every cell goes  todo -> hiding -> sent -> judging -> done,  back to todo when its node is lost,
 * refuses or answers wrongly. A slot belongs to one node; when that node is gone for good the slot
 * is given to another one, as far as the ledger allows.
 */
#ifndef SCHEDULER_JOB_JOB_H
#define SCHEDULER_JOB_JOB_H

#include "core/executor.h"
#include "scheduler/cluster/deadline.h"
#include "scheduler/plan/ledger.h"
#include "schemes/scheme.h"
#include "sherd/cluster.h"
#include "wire/session.h"

typedef struct sherd__job sherd__job;

typedef struct sherd__job_owner {
    /** The node's session has something to send. */
    void (*touch)(void *ctx, uint32_t node);
    /** The node answered wrongly (code SHERD_EWRONG) or makes no progress (SHERD_ESILENT): its
     *  connection is to be closed; a wrong one is not to be let back in. */
    void (*expel)(void *ctx, uint32_t node, int code, const char *why);
    void (*log)(void *ctx, sherd_log_level level, const char *text);
    /** How a node is called in messages. */
    const char *(*name)(void *ctx, uint32_t node);
    void *ctx;
} sherd__job_owner;

typedef struct sherd__job_options {
    const sherd__hiding *hiding;    /* outlives the job's executor work */
    sherd__exposure_ledger *ledger; /* outlives the job */
    sherd__executor *executor;
    uint32_t op;                 /* sherd__op of its tasks */
    uint64_t id;                 /* random */
    uint32_t nodes;              /* at least the scheme's slots; slot i is planned for node i, and
                                    with a threshold for domain i */
    const uint32_t *domain;      /* per node; copied */
    uint32_t depth;              /* cells under way per node; ordered, threshold: positions between
                                    the first that is open and the last that is begun */
    sherd__delivery *deliveries; /* of each node; the loop thread's, outlive the job. NULL: its
                                    own */
    size_t deliveries_stride;    /* bytes from one to the next */
    uint64_t memory;             /* a node that declares less has no part in it; 0: all have */
    uint32_t return_ms;          /* how long a lost node's work waits for it to come back */
    bool strict;                 /* a wrong answer fails the job */
    const char *left, *right;    /* the operands in messages; NULL: A, B */
    sherd__job_owner owner;
} sherd__job_options;

/** What the job has counted, for reports and progress. */
typedef struct sherd__job_stats {
    uint64_t cells, folded;
    uint64_t accepted, repeated; /* tasks answered rightly; sent again */
    uint64_t cancelled;          /* threshold: tasks that were sent and then not needed */
    uint32_t lost, banned;
} sherd__job_stats;

int sherd__job_new(sherd__job **out, const sherd__job_options *opt) SHERD_MUST;
/** Only once sherd__job_idle: the executor must not hold its work. */
void sherd__job_free(sherd__job *j);

/**
 * The node can be sent to: at the start, or again after its connection came back. session_number is
 * another one for every session with this node, and not 0: blocks are gone with their session.
 */
void sherd__job_node_up(sherd__job *j, uint32_t node, sherd__session *s, uint64_t session_number,
                        uint64_t now_ms);
/** Its session is over. back: it may return (the network failed, not the node). */
void sherd__job_node_down(sherd__job *j, uint32_t node, bool back, const char *why,
                          uint64_t now_ms);
/** It broke the protocol and is not let back in; to be told before sherd__job_node_down. */
void sherd__job_node_banned(sherd__job *j, uint32_t node, const char *why);
/** It was banned before this job: its domain is given no share of it. Before the first pump. */
void sherd__job_node_barred(sherd__job *j, uint32_t node);
/** A RESULT or REFUSED of this job; the fragment in it is taken. */
void sherd__job_event(sherd__job *j, uint32_t node, sherd__event *event, uint64_t now_ms);
/** Notices overdue tasks and nodes that did not return; call about ten times a second. */
void sherd__job_tick(sherd__job *j, uint64_t now_ms);
/** Drains the executor's finished pieces and sends what they made possible. */
void sherd__job_pump(sherd__job *j, uint64_t now_ms);

/** True once it has succeeded or failed; *err and *d then say how. */
bool sherd__job_done(const sherd__job *j, int *err, sherd_diag *d);
/** Gives the job up with this error (interrupted, timed out), unless it is done. */
void sherd__job_fail(sherd__job *j, int err, const char *hint, const char *message);
/** Cancels what is under way and drops the job's blocks at the nodes that are up; their sessions
 *  read nothing of the job after this. */
void sherd__job_end(sherd__job *j);
/**
 * The run is over: lets go of all sessions, which may now end without the job being told. Nodes
 * keep their blocks; sherd__job_node_up comes before the next run or sherd__job_end.
 */
void sherd__job_rest(sherd__job *j);
/** Whether it failed for want of answers: fewer domains could answer then (*alive) than must. */
bool sherd__job_starved(const sherd__job *j, uint32_t *alive);
/** True when the executor holds none of its work. */
bool sherd__job_idle(const sherd__job *j);

/**
 * Another run over the same resident blocks: the scheme has been given a new operand A, with at
 * most as many panels as when the job was made, or, where the left blocks stay, a new operand B.
 * Only before the first run, or when done without error and idle (else SHERD_EINVAL); nodes keep
 * what they hold.
 */
int sherd__job_again(sherd__job *j) SHERD_MUST;

void sherd__job_count(const sherd__job *j, sherd__job_stats *out);
/** Tasks of this job that node answered and that were accepted. */
uint64_t sherd__job_node_tasks(const sherd__job *j, uint32_t node);
/** What the job waits for, in a sentence ("waiting 12 s for node 3, ..."); empty when nothing. */
void sherd__job_waiting(const sherd__job *j, uint64_t now_ms, char *out, size_t size);

#endif
