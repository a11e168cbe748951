/*
 * A cluster: the coordinator's side of a set of scheduler nodes. Opening one starts local node
 * processes or connects to those of a node file; products and element-wise operations (product.h)
 * then run over it. One loop thread inside the cluster keeps the connections alive between calls.
 *
 * A cluster is used by one thread at a time. Nothing here prints, installs a signal handler or ends
 * the process; the cluster's own threads block all signals, SIGPIPE of a lost connection included,
 * but those of their own accesses (SIGBUS, SIGSEGV, SIGFPE, SIGILL).
 */
#ifndef SHERD_CLUSTER_H
#define SHERD_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sherd/err.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sherd_cluster sherd_cluster;

typedef enum sherd_log_level { SHERD_LOG_DEBUG, SHERD_LOG_INFO, SHERD_LOG_WARN } sherd_log_level;

/** Zero-initialise, then set what differs: exactly one of local_nodes and nodes_file. Texts are
 *  read while the cluster is opened, and not kept; functions and ctx are called until it ends. */
typedef struct sherd_cluster_options {
    uint32_t local_nodes;     /* start this many processes on loopback, one simulated domain each */
    const char *program;      /* the sherd command for local nodes, looked for in PATH where it has
                                no slash; NULL: "sherd". A program may name itself, if it runs a
                                node where its first argument is program_verb */
    const char *program_verb; /* its verb that runs a node; NULL: "node" */
    uint64_t node_memory;     /* budget of each local node, bytes; 0: a share of this machine's */
    bool unbound;             /* local nodes run on any core. Else each has cores of its own where
                                they have as many threads together as there are cores, and gives
                                them up as long as somebody else is busy there */
    const char *nodes_file;   /* connect to these nodes instead (grammar: sherd(1), NODE FILES) */
    const char *key_file;     /* our key, which those nodes must allow */
    uint32_t nodes_min;       /* fewer nodes up within the connect time: SHERD_EFEWNODES; 0: all.
                                Those that turn us away, have another key or speak another version
                                are named to `log` and counted as lost, as those that are away */
    uint32_t spare;           /* domains that the work can do without: once all but so many are up,
                                the others are waited for about as long again; who comes later
                                still takes part */
    uint32_t connect_timeout_ms; /* for one node to answer; 0: 10000 */
    uint32_t timeout_ms;         /* for all of opening, local nodes' start included; beyond it
                                SHERD_ETIMEOUT, however many nodes are up. 0: no such bound */
    bool same_host_domains; /* private schemes take domains that are on one host for adversaries of
                                their own; else that is SHERD_EFORMAT there */
    const char *record_dir; /* write all bytes sent to and received from each node there */
    /** Asked about ten times a second while a call waits; true ends it with SHERD_EINTERRUPTED. */
    bool (*interrupted)(void *ctx);
    /** What happens, for people: nodes lost, banned, work moved. Called on the calling thread. */
    void (*log)(void *ctx, sherd_log_level level, const char *text);
    void *ctx;
} sherd_cluster_options;

typedef enum sherd_node_state {
    SHERD_NODE_CONNECTING,
    SHERD_NODE_UP,
    SHERD_NODE_LOST,
    SHERD_NODE_BANNED /* caught with a wrong answer, or with breaking the protocol */
} sherd_node_state;

typedef struct sherd_node_info {
    char name[64];     /* "node 3", or name= of the node file */
    char address[280]; /* host:port */
    char domain[64];
    char key[56]; /* sha256:... */
    pid_t pid;    /* of a local node; else 0 */
    sherd_node_state state;
    char blas_core[32]; /* as the node says */
    uint32_t threads;
    uint64_t memory;
    double gflops;
    double residue_gflops; /* of packed residues, as they travel; 0: as gflops, once taken apart */
    uint64_t bytes_out, bytes_in; /* plaintext protocol bytes so far */
    uint64_t work_out, work_in;   /* of these, blocks, tasks and results with their headers: without
                                     greetings, heartbeats and what is taken back */
    uint64_t tasks;               /* answered and accepted */
} sherd_node_info;

SHERD_API int sherd_cluster_open(sherd_cluster **out, const sherd_cluster_options *opt,
                                 sherd_diag *d) SHERD_MUST;
/** How many nodes the cluster was opened with. */
SHERD_API uint32_t sherd_cluster_size(const sherd_cluster *c);
/** True where nodes stand for domains on one host: those of local_nodes, and those of a nodes_file
 *  whose addresses are all loopback ones. */
SHERD_API bool sherd_cluster_simulated(const sherd_cluster *c);
/** Node i as it stands, or, from sherd_cluster_size on, one without a name that is lost. log is
 *  called first for what there is to tell of nodes, on the calling thread. */
SHERD_API void sherd_cluster_node(sherd_cluster *c, uint32_t i, sherd_node_info *out);
/**
 * Says goodbye, ends local nodes, waits for them, and completes the record, where there is one:
 * SHERD_EIO, SHERD_EOPEN and others where some of it could not be written, at whatever time (log
 * has told by then that recording stopped). Its index.json, if that could be written, says
 * "complete": false; results are not touched by it. The cluster may then be asked for size, domains
 * and nodes, as they stood, and closed; what needs its nodes is SHERD_EINVAL. Again, or NULL: 0.
 */
SHERD_API int sherd_cluster_end(sherd_cluster *c, sherd_diag *d) SHERD_MUST;
/** Ends it, where that has not been done, but without a word of the record; and frees it. NULL is
 *  allowed. */
SHERD_API void sherd_cluster_close(sherd_cluster *c);

#ifdef __cplusplus
}
#endif

#endif
