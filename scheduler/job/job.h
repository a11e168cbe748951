/*
 * One job: decides which node computes which cell and when, and handles nodes that are slow, lost,
 * wrong or full. It is a state machine over sessions (wire/session.h) without socket or clock,
 * driven by the cluster's loop thread or by the simulation. Hiding, checking and folding run on the
 * executor.
 *
 * Every cell passes through the states todo, hiding, sent, judging and done. It returns to todo if
 * its node is lost, refuses the task or answers wrongly. A slot belongs to one node; if that node
 * is gone for good, the slot is given to another one, as far as the ledger permits.
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
    /** The node's session has data to send. */
    void (*touch)(void *ctx, uint32_t node);
    /** The owner must close the connection to the node, because it answered wrongly (code
     *  SHERD_EWRONG) or makes no progress (SHERD_ESILENT). After a wrong answer the node must not
     *  be admitted again. */
    void (*expel)(void *ctx, uint32_t node, int code, const char *why);
    void (*log)(void *ctx, sherd_log_level level, const char *text);
    /** Returns the name of a node for messages. */
    const char *(*name)(void *ctx, uint32_t node);
    /** Returns true if the log does not say yet that this node cannot do `what`, a missing
     *  SHERD__DOES_* or SHERD__JOB_*, so that a series of jobs logs it once; for
     *  SHERD__JOB_CANNOT_WORK, if the last line had another reason. NULL: always true. */
    bool (*first_report)(void *ctx, uint32_t node, uint32_t what, const char *reason);
    void *ctx;
} sherd__job_owner;

/* What a node cannot do, besides SHERD__DOES_*. */
enum {
    SHERD__JOB_CANNOT_WINDOWS = 1 << 16,
    SHERD__JOB_CANNOT_WORK = 1 << 17,
    SHERD__JOB_IS_SLOW = 1 << 18
};

typedef struct sherd__job_options {
    const sherd__hiding *hiding;    /* must outlive the job's work on the executor */
    sherd__exposure_ledger *ledger; /* must outlive the job */
    sherd__executor *executor;
    uint32_t op;                 /* the sherd__op of its tasks */
    uint64_t id;                 /* random */
    uint32_t nodes;              /* at least as many as the scheme's slots; slot i is planned for
                                    node i, with a threshold for domain i */
    const uint32_t *domain;      /* by node; copied */
    uint32_t depth;              /* cells in progress per node; ordered, threshold: positions from
                                    the first unfinished one to the last one started */
    sherd__delivery *deliveries; /* by node; used by the loop thread, must outlive the job. NULL:
                                    the job has its own */
    size_t deliveries_stride;    /* bytes from one element to the next */
    uint64_t memory;             /* nodes that declare less take no part; 0: all take part */
    uint32_t needs;              /* SHERD__DOES_*: nodes without these kinds take no part */
    uint32_t return_ms;          /* how long the work of a lost node waits for the node to return */
    bool strict;                 /* a wrong answer fails the job */
    const char *left, *right;    /* names of the operands for messages; NULL: A, B */
    sherd__job_owner owner;
} sherd__job_options;

/** Counters of a job, for reports and progress. */
typedef struct sherd__job_stats {
    uint64_t cells, folded;
    uint64_t accepted, repeated; /* tasks answered correctly; tasks sent again */
    uint64_t cancelled;          /* threshold: tasks whose answer was not needed after they were
                                    sent */
    uint32_t lost, banned;
} sherd__job_stats;

int sherd__job_new(sherd__job **out, const sherd__job_options *opt) SHERD_MUST;
/** Frees the job. Only if sherd__job_idle: the executor must not hold any of its work. */
void sherd__job_free(sherd__job *j);

/**
 * The node can receive data: at the start, or after a new connection. session_number must be
 * different for every session with this node, and not 0: nodes lose their blocks when a session
 * ends.
 */
void sherd__job_node_up(sherd__job *j, uint32_t node, sherd__session *s, uint64_t session_number,
                        uint64_t now_ms);
/** The node's session is over. back: the node may return (the network failed, not the node). */
void sherd__job_node_down(sherd__job *j, uint32_t node, bool back, const char *why,
                          uint64_t now_ms);
/** The node broke the protocol and will not be admitted again. To be called before
 *  sherd__job_node_down. */
void sherd__job_node_banned(sherd__job *j, uint32_t node, const char *why);
/** The node was banned before this job: its domain is given no share. To be called before the first
 *  pump. */
void sherd__job_node_barred(sherd__job *j, uint32_t node);
/** A RESULT or REFUSED of this job; the job takes the fragment in it. */
void sherd__job_event(sherd__job *j, uint32_t node, sherd__event *event, uint64_t now_ms);
/** Detects overdue tasks and nodes that did not return. To be called about ten times a second. */
void sherd__job_tick(sherd__job *j, uint64_t now_ms);
/** Processes the executor's finished pieces of work and sends the tasks that can follow. */
void sherd__job_pump(sherd__job *j, uint64_t now_ms);

/** Returns true once the job has succeeded or failed; sets *err and *d. */
bool sherd__job_done(const sherd__job *j, int *err, sherd_diag *d);
/** Fails the job with this error (interrupted, timed out), unless it is done. */
void sherd__job_fail(sherd__job *j, int err, const char *hint, const char *message);
/** Cancels all tasks and drops the job's blocks at the nodes that are up. Afterwards their sessions
 *  read no data of the job. */
void sherd__job_end(sherd__job *j);
/**
 * To be called after a run: releases all sessions, which may then end without notice to the job.
 * Nodes keep their blocks. sherd__job_node_up must be called before the next run or before
 * sherd__job_end.
 */
void sherd__job_rest(sherd__job *j);
/** Returns whether the job failed because fewer domains could answer (*alive) than are needed. */
bool sherd__job_starved(const sherd__job *j, uint32_t *alive);
/** Returns true if the executor holds none of its work. */
bool sherd__job_idle(const sherd__job *j);

/**
 * Prepares another run with the same resident blocks. The scheme has been given a new operand A
 * with at most as many panels as when the job was made; if the left blocks are the resident ones, a
 * new operand B. Only before the first run, or if the job is done without error and idle (otherwise
 * SHERD_EINVAL). Nodes keep their blocks. SHERD_ENOMEM.
 */
int sherd__job_again(sherd__job *j) SHERD_MUST;

void sherd__job_count(const sherd__job *j, sherd__job_stats *out);
/** Returns the number of tasks of this job that the node answered and that were accepted. */
uint64_t sherd__job_node_tasks(const sherd__job *j, uint32_t node);
/** How fast a node answered in this run. */
typedef struct sherd__job_pace {
    double seconds; /* in which it owed answers that came; not those that were not needed, nor what
                       is usual for tasks in place of another node */
    double missed;  /* in which it owed answers, until it was lost or relieved of them */
    uint64_t bytes; /* of work that moved during `seconds` */
    double work; /* multiplications for answers that passed their check, without those of tasks in
                       place of another node, in a unit of this job */
} sherd__job_pace;
sherd__job_pace sherd__job_node_pace(const sherd__job *j, uint32_t node);
/** The node that a job waited longest for; it may have been lost. */
typedef struct sherd__job_slowest {
    uint32_t node;          /* UINT32_MAX: none was significantly slower than the others */
    double seconds, others; /* its time, and the median of the others' */
} sherd__job_slowest;
/** room: scratch space for `nodes` doubles. */
sherd__job_slowest sherd__job_slowest_of(const sherd__job_pace *paces, uint32_t nodes,
                                         double *room);
/** Writes what the job waits for as a sentence ("waiting 12 s for node 3, ..."); empty if
 *  nothing. */
void sherd__job_waiting(const sherd__job *j, uint64_t now_ms, char *out, size_t size);

#endif
