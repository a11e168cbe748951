/* The cluster's inside, for cluster.c (connections, loop thread) and product.c (public calls). */
#ifndef SCHEDULER_CLUSTER_INTERNAL_H
#define SCHEDULER_CLUSTER_INTERNAL_H

#include "core/executor.h"
#include "scheduler/job/job.h"
#include "scheduler/plan/exposure.h"
#include "scheduler/plan/prepare.h"
#include "sherd/cluster.h"
#include "sherd/product.h"

/** What a run of a job gave, besides the result itself. Arrays are per node. */
typedef struct sherd__run_result {
    int err;
    uint64_t *bytes_out, *bytes_in;
    sherd_node_state *states;
    uint64_t work_out, work_in; /* of all nodes; 0 before */
    sherd__job_stats stats;
    uint32_t bans; /* since sherd__cluster_call, and the nodes' names; "" before */
    char banned[256];
    double seconds;
} sherd__run_result;

/** The nodes as planning needs them; arrays live as long as the cluster. */
void sherd__cluster_nodes(sherd_cluster *c, sherd__nodes *out);
/** Work was cut for nodes that have so much besides what is kept there: those that declared less
 *  are told of, once each, and have no part in it. Returns what a node has to declare. 0: all
 *  do. */
uint64_t sherd__cluster_pass_over(sherd_cluster *c, uint64_t memory);
/** So many bytes of every node's memory are taken, or free again: kept operands. What is planned
 *  from then on has the rest. */
void sherd__cluster_hold(sherd_cluster *c, uint64_t bytes);
void sherd__cluster_let_go(sherd_cluster *c, uint64_t bytes);
/** Counters of nodes as of now: sherd_cluster_node otherwise lags by a tick of the loop. */
void sherd__cluster_refresh(sherd_cluster *c);
/** A line for people, handed out on the calling thread at its next wait. */
void sherd__cluster_say(sherd_cluster *c, sherd_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/** Options of a job over this cluster: executor, id, domains, owner callbacks. */
void sherd__cluster_job_options(sherd_cluster *c, sherd__job_options *out);

/** A call of the public interface begins: who is banned from now on is its affair, be it while a
 *  job runs or between two of them. On the calling thread. */
void sherd__cluster_call(sherd_cluster *c);
/**
 * Hands the job to the loop thread and waits until it is done and the executor has let go of it.
 * Progress, log lines and the question whether to stop come to the calling thread meanwhile.
 * `last`: the job's blocks are dropped at the nodes. The arrays of *r are the caller's, c's size
 * each.
 */
int sherd__cluster_run(sherd_cluster *c, sherd__job *job, bool last,
                       const sherd_product_options *opt, sherd__run_result *r,
                       sherd_diag *d) SHERD_MUST;
/** Where B is some rows or columns of an operand: the operand's fixed point (exact mode), and how
 *  what B shows is counted. */
typedef struct sherd__resident_part {
    const sherd__fixed *fixed;
    sherd__ledger_whole whole; /* without the bound, which opt has */
} sherd__resident_part;
/** sherd_resident_new for one direction of an operand that has an account of its own, which
 *  outlives the resident: what it shows is counted with all that was shown before. part NULL: B is
 *  all of it. */
int sherd__resident_of(sherd_resident **out, sherd_cluster *c, sherd_view b, size_t n_max,
                       const sherd_product_options *opt, sherd__account *account, unsigned side,
                       const sherd__resident_part *part, sherd_diag *d) SHERD_MUST;
/** Bytes that one node holds of it between products, at most. */
uint64_t sherd__resident_bytes(const sherd_resident *k);
/** Tells a record, if there is one, how a coded operand of the job is cut. SHERD_EOPEN,
 *  SHERD_EIO. */
int sherd__cluster_coding(sherd_cluster *c, uint64_t job, const sherd__prepared *p,
                          sherd_diag *d) SHERD_MUST;
/** A job for what was prepared, over all of the cluster's nodes. */
int sherd__product_job(sherd__job **out, sherd_cluster *c, const sherd__prepared *p, bool strict,
                       sherd_diag *d) SHERD_MUST;
/** Runs a prepared job and fills the caller's report, if there is one. */
int sherd__product_run(sherd_cluster *c, sherd__job *job, bool last, const sherd__prepared *p,
                       const sherd__nodes *nodes, const sherd_product_options *opt,
                       sherd_report *out, sherd_diag *d) SHERD_MUST;
/** What is left of `all` ms since `began` (sherd__clock_s); 0 in both where there is no such limit.
 *  SHERD_ETIMEOUT. */
int sherd__time_left(uint32_t *ms, uint32_t all, double began, sherd_diag *d) SHERD_MUST;
/** Adds what an earlier encoding of the same product cost to r, and frees `before`. */
void sherd__report_add(sherd_report *r, sherd_report *before);
/** Drops the blocks of a kept job. */
void sherd__cluster_drop(sherd_cluster *c, sherd__job *job);

#endif
