/*
 * Local nodes that outlive the process that starts them (`sherd cluster up`), for many short
 * programs on one machine. sherd_cluster_options.running opens them.
 *
 * Their state is in one folder that only this user can access: the file `nodes`, a node file; the
 * file `key`, the coordinator's key that these nodes allow; and each node's messages. There is one
 * such cluster for each folder. Only one process at a time can start, query or stop it; in others
 * the call fails with SHERD_EBUSY.
 */
#ifndef SHERD_LOCAL_H
#define SHERD_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"
#include "sherd/identity.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zero-initialise, set size and nodes, then set members that differ from their defaults. */
typedef struct sherd_local_options {
    size_t size;              /* sizeof(sherd_local_options) */
    uint32_t nodes;           /* 1 to 1000 */
    const char *folder;       /* NULL: the user's folder, $XDG_RUNTIME_DIR/sherd, or /tmp/sherd-UID
                                 if that variable is not an absolute path. Created if missing. A
                                 folder that other users can access, or that contains other files,
                                 is refused (SHERD_EOPEN) */
    const char *program;      /* as in sherd_cluster_options */
    const char *program_verb; /* as in sherd_cluster_options */
    uint64_t node_memory;     /* memory budget of each node, bytes; 0: a share of this machine's
                                 memory */
    uint32_t threads;         /* threads of each node; 0: the cores divided by the nodes, at
                                 least 1 */
    bool unbound;             /* as in sherd_cluster_options */
    sherd_hooks hooks;        /* hooks of the start */
    /* Where the nodes compute, as in sherd_cluster_options. */
    const char *backend, *devices;
    uint32_t devices_each;
    const char *opencl_library, *cuda_library;
} sherd_local_options;

/** The state of one node at the time of the call. */
typedef struct sherd_local_node {
    size_t size;                     /* sizeof(sherd_local_node), set by the caller */
    char name[64];                   /* "node-1" */
    int64_t pid;                     /* process id of the node; 0: the process has ended */
    char address[280];               /* host:port */
    bool up;                         /* the process runs */
    uint64_t resident;               /* resident memory of the process, bytes */
    char line[SHERD_PEER_LINE_SIZE]; /* its line of a node file; empty: not known */
    char log[4096];                  /* path of the file with its messages */
} sherd_local_node;

SHERD_API const sherd_field *sherd_local_node_fields(size_t *count);

/** The nodes of a folder, with their state at the time of the call. */
typedef struct sherd_local sherd_local;

/**
 * Starts nodes and returns once all of them listen. If it fails or is interrupted, or if this
 * process dies meanwhile, no node is left. *out (may be NULL): the nodes, which the caller frees
 * with sherd_local_free.
 *
 * Errors: SHERD_EINVAL: `nodes` is out of range, the folder's path is too long, or nodes of this
 * folder run already; SHERD_EBUSY; SHERD_EOPEN: the folder is refused, or there is no such program;
 * SHERD_EFORMAT: the folder's state is damaged; SHERD_EIO; SHERD_EFEWNODES: a node ended;
 * SHERD_ETIMEOUT; SHERD_EINTERRUPTED; SHERD_ENOMEM.
 */
SHERD_API int sherd_local_start(sherd_local **out, const sherd_local_options *opt,
                                sherd_diag *d) SHERD_MUST;
/**
 * Reads the state of the nodes of a folder (NULL: the user's). Nodes whose processes have ended are
 * listed, too. The caller frees *out with sherd_local_free. SHERD_EFEWNODES: none were started;
 * SHERD_EBUSY, SHERD_EOPEN; SHERD_EFORMAT: the folder's state is damaged; SHERD_EINVAL: its path is
 * too long; SHERD_ENOMEM.
 */
SHERD_API int sherd_local_status(sherd_local **out, const char *folder, sherd_diag *d) SHERD_MUST;
SHERD_API const char *sherd_local_folder(const sherd_local *l);
SHERD_API uint32_t sherd_local_count(const sherd_local *l);
/** Fills *out with the i-th node, i < sherd_local_count. SHERD_EINVAL. */
SHERD_API int sherd_local_at(const sherd_local *l, uint32_t i, sherd_local_node *out,
                             sherd_diag *d) SHERD_MUST;
/** Frees the list; the nodes keep running. NULL is allowed. */
SHERD_API void sherd_local_free(sherd_local *l);

/** Shuts down the nodes of a folder (NULL: the user's) and removes the folder. *ended (may be
 *  NULL): how many were running. Errors of sherd_local_status; also SHERD_EBUSY if a node does not
 *  end. */
SHERD_API int sherd_local_stop(const char *folder, uint32_t *ended, sherd_diag *d) SHERD_MUST;

/** Writes the path of the folder's node file (NULL: the user's folder) into out[size], with its
 *  terminator.
 *  SHERD_EFEWNODES: no nodes were started; SHERD_EOPEN: other users can access the folder;
 *  SHERD_EINVAL: the path is too long. */
SHERD_API int sherd_local_nodes_file(const char *folder, char *out, size_t size,
                                     sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
