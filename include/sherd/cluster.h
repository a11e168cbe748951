/*
 * A cluster: the coordinator's side of a set of scheduler nodes. Opening one starts local node
 * processes or connects to nodes that run already. Products and element-wise operations
 * (product.h) then run over it. One loop thread inside the cluster keeps the connections alive
 * between calls.
 *
 * A cluster is used by one thread at a time. The library does not print, install signal handlers or
 * end the process. The cluster's own threads block all signals, including the SIGPIPE of a lost
 * connection, except those of their own memory accesses and arithmetic (SIGBUS, SIGSEGV, SIGFPE,
 * SIGILL).
 */
#ifndef SHERD_CLUSTER_H
#define SHERD_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sherd_identity;        /* sherd/identity.h */
struct sherd_product_options; /* sherd/product.h */

typedef struct sherd_cluster sherd_cluster;

/** Zero-initialise, set size, then set what differs; exactly one of local_nodes, nodes_file, nodes
 *  and running must be set. Strings are read while the cluster is opened and are not kept; the same
 *  holds for identity and work. */
typedef struct sherd_cluster_options {
    size_t size;              /* sizeof(sherd_cluster_options) */
    uint32_t local_nodes;     /* start this many processes on loopback, one simulated domain each */
    const char *program;      /* the sherd command for local nodes, searched for in PATH if it
                                 contains no slash; NULL: the command that was installed with this
                                 library, otherwise "sherd" in PATH. A program may name its own file
                                 if it runs a node when its first argument is program_verb */
    const char *program_verb; /* the command's verb that runs a node; NULL: "node" */
    uint64_t node_memory;     /* budget of each local node, bytes; 0: a share of this machine's */
    bool unbound;             /* local nodes run on any core. Otherwise each node has its own cores
                                 if all nodes together have as many threads as there are cores; it
                                 gives up these cores while another process uses them */
    const char *nodes_file;   /* connect to the nodes of this file instead (identity.h) */
    const char *nodes;        /* the same as a text */
    const struct sherd_identity *identity; /* the coordinator's key, which those nodes must allow;
                                              NULL: that of key_file */
    const char *key_file;
    bool running;               /* connect to the nodes that sherd_local_start left running, with
                                   their key; their domains may share the host */
    const char *running_folder; /* NULL: the user's (local.h) */
    const struct sherd_product_options *work; /* what the cluster is for: nodes_min and spare 0 mean
                                                 what its scheme needs, and too few nodes or domains
                                                 fail before any node is started. NULL: not known */
    uint32_t nodes_min; /* SHERD_EFEWNODES if fewer nodes are up within the connect time; 0:
                                 all nodes. A node that refuses the connection, has another key or
                                 speaks another version is named in a log line and counted as lost,
                                 like a node that cannot be reached */
    uint32_t spare;     /* number of domains that the work can do without. Once all other
                                 domains are up, the remaining ones are waited for about as long
                                 again. A node that comes up later can still take part */
    uint32_t connect_timeout_ms; /* time for one node to answer; 0: 10000 */
    uint32_t timeout_ms;         /* bound on all of opening, start of local nodes included:
                                    SHERD_ETIMEOUT, even if nodes are up. 0: no bound */
    bool same_host_domains;      /* private schemes accept several domains on one host as separate
                                    adversaries; if false: SHERD_EFORMAT in these schemes */
    const char *record_dir; /* folder in which to record all bytes sent to and received from each
                               node; NULL: none */
    sherd_hooks hooks;      /* of opening, and of every later call whose options have no hooks. Log
                               lines are about nodes lost or banned and work that was moved */
    bool look_only; /* open even if no node is up, to read the nodes' states and what they state
                          about themselves: sherd_cluster_node_at has the reason why a node is not
                          up. nodes_min and spare are not used */

    /* Where local nodes compute; with another source of nodes: SHERD_EINVAL. */
    const char *backend; /* as in sherd_node_options; NULL: "cpu", or "auto" if devices or
                            devices_each is set */
    const char *devices; /* as in sherd_node_options, for each node; with devices_each: the devices
                            that are divided among the nodes, NULL being all */
    uint32_t devices_each; /* each node computes on this number of devices of its own: the first one
                              on the first devices of the list, and so on. SHERD_EINVAL if there are
                              too few. Of backend "auto", those of the first backend with a device
                              other than the processor. 0: they are not divided */
    const char *opencl_library, *cuda_library; /* as in sherd_node_options */
} sherd_cluster_options;

typedef enum sherd_node_state {
    SHERD_NODE_CONNECTING,
    SHERD_NODE_UP,
    SHERD_NODE_LOST,
    SHERD_NODE_BANNED /* gave a wrong answer or violated the protocol */
} sherd_node_state;

typedef struct sherd_node_info {
    size_t size;       /* sizeof(sherd_node_info), set by the caller */
    char name[64];     /* "node-3", or the name= field of the node file */
    char address[280]; /* host:port */
    char domain[64];
    char key[56]; /* sha256:... */
    int64_t pid;  /* process of a local node; otherwise 0 */
    sherd_node_state state;
    char blas_core[32]; /* as reported by the node */
    uint32_t threads;
    uint64_t memory;
    double gflops;         /* rate in float64, of all its devices together */
    double residue_gflops; /* rate for packed residues, in the form in which they are sent; 0: the
                              same as gflops, after unpacking */
    uint64_t bytes_out, bytes_in; /* plaintext protocol bytes so far */
    uint64_t work_out, work_in;   /* the part of these that is blocks, tasks and results with their
                                     headers, without greetings, heartbeats and cancellations */
    uint64_t tasks;               /* results that were accepted */
    uint32_t devices;             /* devices that it computes with; 1 if it does not state their
                                     number */
    double weight;                /* weight= of its line; 1 if not given */
    char software[48];            /* name and version */
    char backend[16];             /* "cpu", ... */
    double latency;       /* round-trip time of its connection when it was made, in seconds */
    bool load_known;      /* the node stated the next four, as of that time */
    uint64_t memory_free; /* bytes of its budget, for all coordinators */
    uint64_t uptime;      /* seconds */
    uint32_t open_tasks;  /* of all coordinators, accepted and not answered */
    uint32_t sessions;    /* of coordinators, this one included */
    int error;            /* lost, or not connected yet: why, a SHERD_E* code; otherwise 0 */
    char why[200];        /* the same as text */
    double byte_gops;     /* rate of products modulo primes below 256, from residues of one byte, in
                             operations as gflops counts them; 0: unknown, or it computes none */
} sherd_node_info;

SHERD_API const sherd_field *sherd_node_info_fields(size_t *count);

/**
 * Checks the nodes that opening would use, without starting one or connecting. *nodes receives
 * their number, *loopback whether all of them are on this machine; each may be NULL. With
 * opt->work, checks whether there are as many nodes and domains as its scheme needs
 * (SHERD_EFEWNODES), and whether each line of a list gives a domain if the scheme is private
 * (SHERD_EFORMAT). Opening may still fail.
 *
 * Other errors: SHERD_EINVAL; SHERD_EOPEN, SHERD_EIO, SHERD_EFORMAT: of the list;
 * SHERD_EFEWNODES: no cluster is running; SHERD_ENOMEM.
 */
SHERD_API int sherd_cluster_check(uint32_t *nodes, bool *loopback, const sherd_cluster_options *opt,
                                  sherd_diag *d) SHERD_MUST;
SHERD_API int sherd_cluster_open(sherd_cluster **out, const sherd_cluster_options *opt,
                                 sherd_diag *d) SHERD_MUST;
/** Returns the number of nodes that the cluster was opened with. */
SHERD_API uint32_t sherd_cluster_size(const sherd_cluster *c);
/** Returns true if nodes simulate domains on one host: the nodes of local_nodes and running, and
 *  those of a list in which all addresses are loopback addresses. */
SHERD_API bool sherd_cluster_simulated(const sherd_cluster *c);
/** Fills *out with the present state of node i. Passes pending messages about nodes to log first,
 *  on the calling thread. SHERD_EINVAL: i >= sherd_cluster_size, or out's size is not set; *out is
 *  unchanged. */
SHERD_API int sherd_cluster_node_at(sherd_cluster *c, uint32_t i, sherd_node_info *out,
                                    sherd_diag *d) SHERD_MUST;
/**
 * Says goodbye to the nodes, ends local nodes, waits for them, and completes the record if there is
 * one. Returns SHERD_EIO, SHERD_EOPEN or another error if some of the record could not be written
 * at any time (log has reported by then that recording stopped). The record's index.json, if it
 * could be written, then contains "complete": false. Results are not affected. Afterwards size,
 * domains and nodes can still be queried, with their last state, and the cluster can be closed;
 * calls that need its nodes return SHERD_EINVAL. A second call, or NULL, returns 0.
 */
SHERD_API int sherd_cluster_end(sherd_cluster *c, sherd_diag *d) SHERD_MUST;
/** Ends the cluster if that has not been done, without reporting errors of the record, and frees
 *  it. NULL is allowed. */
SHERD_API void sherd_cluster_close(sherd_cluster *c);

#ifdef __cplusplus
}
#endif

#endif
