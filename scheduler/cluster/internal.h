/* Internal functions of a cluster, shared by the cluster's files (connections, loop thread) and
 * product.c (public calls). */
#ifndef SCHEDULER_CLUSTER_INTERNAL_H
#define SCHEDULER_CLUSTER_INTERNAL_H

#include "core/executor.h"
#include "scheduler/job/job.h"
#include "scheduler/plan/exposure.h"
#include "scheduler/plan/prepare.h"
#include "sherd/cluster.h"
#include "sherd/product.h"

/** Names of the values of sherd_node_state, ended by NULL. */
extern const char *const sherd__node_states[];

/** What a run of a job reports in addition to its result. Arrays are by node. */
typedef struct sherd__run_result {
    int err;
    uint64_t *bytes_out, *bytes_in;
    sherd_node_state *states;
    uint64_t work_out, work_in; /* of all nodes; 0 before the run */
    sherd__job_stats stats;
    uint32_t bans; /* since sherd__cluster_call, and the names of these nodes; "" before the run */
    char banned[256];
    double seconds;
    sherd__job_slowest slowest;
} sherd__run_result;

/** Fills in the nodes' properties for planning. The arrays are valid as long as the cluster. */
void sherd__cluster_nodes(sherd_cluster *c, sherd__nodes *out);
/** Reports each node that declared less than `memory` in addition to its kept operands, once; it
 *  takes no part in the work. 0: all nodes take part. Returns the least memory that a node must
 *  declare. */
uint64_t sherd__cluster_pass_over(sherd_cluster *c, uint64_t memory);
/** Reserves so many bytes of every node's memory for kept operands, or releases them. Later plans
 *  use what is left. */
void sherd__cluster_reserve(sherd_cluster *c, uint64_t bytes);
void sherd__cluster_unreserve(sherd_cluster *c, uint64_t bytes);
/** Returns the present state of a node, i < sherd_cluster_size, as sherd_cluster_node_at does. */
sherd_node_info sherd__cluster_node(sherd_cluster *c, uint32_t i);
/** Updates the nodes' counters; otherwise sherd_cluster_node_at may be one tick of the loop
 *  behind. */
void sherd__cluster_refresh(sherd_cluster *c);
/** Logs a line. It is delivered on the calling thread at its next wait. */
void sherd__cluster_say(sherd_cluster *c, sherd_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/** Sets options of a job over this cluster: executor, id, domains, owner callbacks. */
void sherd__cluster_job_options(sherd_cluster *c, sherd__job_options *out);

/** To be called at the start of a public function, on the calling thread. Bans from then on belong
 *  to that call, both during a job and between jobs, and its hooks are called; those of the cluster
 *  if it has none. */
void sherd__cluster_call(sherd_cluster *c, const sherd_hooks *hooks);
/** Returns the hooks of the cluster's options. */
const sherd_hooks *sherd__cluster_hooks(const sherd_cluster *c);
/** Returns the folder that the traffic is recorded in; NULL: it is not recorded. */
const char *sherd__cluster_record_dir(const sherd_cluster *c);
/**
 * Passes the job to the loop thread and waits until it is done and the executor holds none of its
 * work. Progress, log lines and the question whether to stop are delivered on the calling thread
 * meanwhile. last: the job's blocks are dropped at the nodes. The caller owns the arrays of *r,
 * which have an element per node.
 */
int sherd__cluster_run(sherd_cluster *c, sherd__job *job, bool last, uint32_t timeout_ms,
                       sherd__run_result *r, sherd_diag *d) SHERD_MUST;
/** For a B of some rows or columns of an operand: the operand's fixed point (exact mode), and how
 *  entries shown by B are counted. */
typedef struct sherd__resident_part {
    const sherd__fixed *fixed;
    sherd__ledger_whole whole; /* without the bound, which is in opt */
} sherd__resident_part;
/** A B that is kept: for at most n_max rows of A; as one direction (`side`) of an operand with an
 *  account, which must outlive the resident and in which all entries that are shown count together
 *  (NULL: none); and as a part of an operand (NULL: B is the whole operand). */
typedef struct sherd__resident_kept {
    size_t n_max;
    sherd__exposure_account *account;
    unsigned side;
    const sherd__resident_part *part;
} sherd__resident_kept;
/** As sherd_resident_new. */
int sherd__resident_of(sherd_resident **out, sherd_cluster *c, sherd_view b,
                       const sherd_product_options *opt, const sherd__resident_kept *how,
                       sherd_diag *d) SHERD_MUST;
/** Returns the largest number of bytes that a node holds of it between products. */
uint64_t sherd__resident_bytes(const sherd_resident *k);
/** Writes to the record, if there is one, how a coded operand of the job is partitioned.
 *  SHERD_EOPEN, SHERD_EIO. */
int sherd__cluster_coding(sherd_cluster *c, uint64_t job, const sherd__prepared *p,
                          sherd_diag *d) SHERD_MUST;
/** Creates a job for a prepared product over all nodes of the cluster. */
int sherd__product_job(sherd__job **out, sherd_cluster *c, const sherd__prepared *p, bool strict,
                       sherd_diag *d) SHERD_MUST;
/** A user's call: where it runs, on which nodes, with which options; r: the report, or NULL. */
typedef struct sherd__product_call {
    sherd_cluster *cluster;
    const sherd__nodes *nodes;
    const sherd_product_options *opt;
    sherd_report *r;
} sherd__product_call;
/** Runs a prepared job and fills in the caller's report, if there is one. last: as
 *  sherd__cluster_run. */
int sherd__product_run(const sherd__product_call *call, const sherd__prepared *p, sherd__job *job,
                       bool last, sherd_diag *d) SHERD_MUST;
/** Sets *ms to what is left of `all` ms since `began` (sherd__clock_s); both are 0 if there is no
 *  limit. SHERD_ETIMEOUT. */
int sherd__time_left(uint32_t *ms, uint32_t all, double began, sherd_diag *d) SHERD_MUST;
/** Makes an empty report of this many nodes. SHERD_ENOMEM. The caller frees it with
 *  sherd_report_fini. */
int sherd__report_init(sherd_report *r, uint32_t nodes) SHERD_MUST;
/** Adds the costs of an earlier encoding of the same product to r, and frees `before`. */
void sherd__report_add(sherd_report *r, sherd_report *before);
/** Notes how fast the nodes answered in a job of this kind, for the plans of later ones. Jobs of
 *  less than a tenth of a second or of less than 64 KiB for each node are not counted. verified: a
 *  node that answers without computing would have been found. */
void sherd__cluster_note_paces(sherd_cluster *c, const sherd__job_pace *paces,
                               sherd__work_kind kind, bool verified);
/** Measures the speeds of nodes elsewhere, with a product of ones, unless they are known. Errors:
 *  SHERD_EINTERRUPTED, SHERD_ETIMEOUT; other failures leave the speeds unknown. */
int sherd__cluster_measure_speeds(sherd_cluster *c, const sherd_hooks *hooks, uint32_t timeout_ms,
                                  sherd_diag *d) SHERD_MUST;
/** Before a large product whose parts may follow speeds, measures those of nodes elsewhere (what
 *  they declare says nothing of their links). Warns of weights of the list that the scheme cannot
 *  use. Errors as sherd__cluster_measure_speeds. */
int sherd__product_speeds(sherd_cluster *c, sherd_view a, sherd_view b,
                          const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
#define SHERD__WEIGHTS_OF_METADATA "the metadata file says what each node is given"
/** Warns, once, if the list of nodes has weights, that they have no effect, and why. */
void sherd__cluster_weights_unused(sherd_cluster *c, const char *why);
/** Drops the blocks of a kept job at the nodes. */
void sherd__cluster_drop(sherd_cluster *c, sherd__job *job);

#endif
