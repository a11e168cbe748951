/*
 * A scheduler node: it stores blocks that coordinators send and computes on them. It serves in a
 * thread of its own, over TLS 1.3, only coordinators whose keys are on its allow-list, and forgets
 * everything when it ends. A process may have several nodes, and a coordinator (cluster.h) beside
 * them.
 *
 * Any thread may call the functions of a node that was started, except that nothing may follow
 * sherd_node_free. The node's threads block all signals, except those of their own memory accesses
 * and arithmetic.
 */
#ifndef SHERD_NODE_H
#define SHERD_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"
#include "sherd/identity.h"
#include "sherd/mat.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sherd_node sherd_node;

/**
 * Examples of the node's own, and what protects them. They never leave the node; only masked sums
 * over them do (training with secure aggregation). Zero-initialise, set size, then path or
 * examples, then what differs.
 *
 * Every upload is charged to the ledger before it is computed. If the ledger is removed, or
 * replaced by an older copy, the privacy that was spent is forgotten.
 */
typedef struct sherd_node_data {
    size_t size;      /* sizeof(sherd_node_data) */
    const char *path; /* a .npy or .csv (targets are the last columns), a .npz with members x and y,
                         or a folder of IDX files */
    const char *label;   /* name, in the header of a .csv, of the target's column; NULL: the last
                            columns are the targets */
    sherd_view examples; /* examples in memory instead of path, one in each row; copied. Needs a
                            ledger */
    sherd_view targets;  /* targets of the examples, one row for each; no data: the last columns of
                            examples are the targets */
    const char *ledger;  /* file that records uploads and their costs; NULL: the path, links
                            resolved, with ".ledger" appended */
    bool require_ledger; /* fail if the ledger does not exist, instead of creating an empty one */
    double epsilon;      /* limit of the privacy cost of an example over all uploads; 0: 8. INFINITY
                            also allows rounds without noise */
    double delta;        /* the probability at which epsilon holds; 0: 1e-6 */
    bool any_peers;      /* accept any other nodes that the coordinator names, without a list of
                            peers */
    bool any_roster;     /* allow another sum over the same examples and weights with other nodes */
    /* The node takes part in sums: */
    uint32_t nodes_min;     /* fewest nodes in a sum, 3 or more; 0: 3 */
    uint32_t colluding_min; /* fewest colluding nodes that a sum must withstand; 0: 1 */
    uint64_t rows_min;      /* fewest places of each node in a round; 0: 32 */
    uint64_t rows_max;      /* most places of each node in a round; 0: 1048576 */
    uint64_t rounds_max;    /* most rounds of one training, and of one coordinator in a day; 0:
                               10000 */
    uint64_t rounds_day;    /* most rounds in one day (UTC), of all trainings; 0: 20000 */
    /* Of a .csv, as lists of names, "a, b, c": */
    const char *columns; /* inputs, by their names in the header, in the order of the network's
                            inputs; the target is `label` or the last column, and other columns are
                            not used. NULL: all columns but the target */
    const char *classes; /* names of the classes in the order of the network's outputs; the target
                            has these names. NULL: it has numbers */
} sherd_node_data;

/** Zero-initialise, set size and allow or allow_file, then set what differs. Texts, views and the
 *  identity are copied or read while the node starts; hooks.ctx must stay valid as long as the
 *  node. */
typedef struct sherd_node_options {
    size_t size;                    /* sizeof(sherd_node_options) */
    const char *listen;             /* "127.0.0.1:7001", "[::1]:7001", "host:7001", or ":7001" for
                                       every address; with port 0 the system chooses a port; NULL:
                                       "127.0.0.1:0" */
    const char *name, *domain;      /* name and domain (host, tenant or operator) in the node's
                                       line: letters, digits and . _ - : / @ +; NULL: none */
    const sherd_identity *identity; /* the node's key; NULL: that of key_file */
    const char *key_file;           /* NULL: a fresh key that ends with the node */
    const char *allow;      /* coordinators that may connect, as a text (identity.h), for example "*
                               key=sha256:... role=coordinator"; NULL: those of allow_file */
    const char *allow_file; /* the same as a file. One of the two is required, with at least one
                               line */
    uint64_t memory;        /* memory budget for blocks and results of all coordinators, bytes; 0:
                               half of this machine's memory */
    uint32_t threads;       /* threads of products in this process (sherd_blas_threads_set); 0:
                               unchanged */
    uint32_t connections;   /* maximum number of connections of coordinators and members; 0: 64 */
    const char *backend;    /* name of the backend that computes (sherd_backend_name); NULL, "auto":
                               chosen by the library */
    bool quick_test;        /* estimate the backend's speed from small sizes, and do not repeat
                               tests of its correctness that this machine has passed with the same
                               program and libraries since it booted: the user's cache folder has a
                               list of them ($XDG_CACHE_HOME/sherd, or ~/.cache/sherd) */
    const char *record_dir; /* new folder in which to record all bytes sent to and received from
                               each coordinator; NULL: none */
    const char *peers;      /* nodes that may be members of sums with this one, as a text; NULL:
                               those of peers_file, if it is set */
    const char *peers_file;
    const sherd_node_data *data; /* NULL: no examples of its own */
    sherd_hooks hooks; /* interrupted is called while the node starts, and by sherd_node_wait. log
                          is called on the calling thread while the node starts, and on the node's
                          thread afterwards */

    /* For a process that is a node. */
    int parent_pipe;   /* a pipe from the process that started this one. Key and allow-list are
                          received over it, instead of from identity, key_file, allow and
                          allow_file, and the node ends when it is closed; 0: none */
    bool parent_stays; /* the node keeps running when the pipe is closed, if more was written to
                          it */
    const char *cores; /* bind all threads of this process to these cores, as "0,2,3", while no
                          other process uses them; NULL: unbound */

    const char
        *advertise; /* host, or host:port, in the node's line, for coordinators that reach the
                              node under another address than it listens on; NULL: that of
                              `listen`, or an address of this machine if it listens on all */

    /* Of a backend that computes on devices with drivers. */
    const char *devices;        /* numbers as sherd_devices_find lists them, "0" or "0,2", or "all";
                                   NULL: the first one */
    uint64_t device_memory;     /* bytes of each device that the node may use; 0: most of it */
    double device_timeout_s;    /* a device that does not respond for this time, after 20 times what
                                   its task should take, is lost; 0: 30 */
    const char *opencl_library; /* file of OpenCL's library; NULL: the system's libOpenCL */
    const char *program;        /* the sherd command, which examines drivers in a process of its
                                   own; NULL: looked for as for local clusters */
    double probe_timeout_s;     /* within which it must do so; 0: 20 to list, 120 to open */
    const char *cuda_library;   /* file of CUDA's library; NULL: the system's libcuda. With backend
                                   "auto", other backends than those whose library is named are not
                                   tried */
    uint32_t device_nodes;      /* how many nodes use the devices that this one uses, and start at
                                   the same time: with device_memory 0 each takes an equal part;
                                   0: 1 */
} sherd_node_options;

/** Returns the name of the i-th backend, such as "cpu"; NULL after the last. */
SHERD_API const char *sherd_backend_name(size_t i);

/** A device with a driver, on which a node could compute. The library allocates it, so it may grow
 *  at its end. */
typedef struct sherd_device {
    char backend[16]; /* "cuda" or "opencl" */
    uint32_t number;  /* for sherd_node_options.devices */
    char model[64], driver[64];
    uint64_t memory; /* bytes */
    bool processor;  /* it is the host's processor, which "auto" does not choose */
    bool usable;     /* false: `why` is the reason */
    char why[200];
    double gflops, residue_gflops, byte_gops; /* rates of products in float64, modulo primes, and of
                                                 bytes, with copies; 0: not measured */
    char library[200]; /* which library multiplies and what, or why none does; empty: not known, or
                          the devices were not opened */
    double resident_gflops, resident_residue_gflops, resident_byte_gops; /* rates of large products
                                                 whose operands and results stay on the device */
} sherd_device;

typedef struct sherd_devices sherd_devices;

/** Something that was measured of a device: docs/BACKENDS.md, "Measuring a device". */
typedef struct sherd_device_rate {
    char name[24];
    uint32_t n;   /* rows and columns of the operands; 0: it has no product */
    double value; /* bytes or operations a second, or a fraction of the time */
    char unit[8]; /* "B/s", "op/s", or "" */
} sherd_device_rate;

/**
 * Lists the devices that the backends find, in a process of its own, since drivers can fail. Reads
 * backend ("auto": all), devices, device_memory, opencl_library, cuda_library, quick_test, program
 * and hooks of the options, of which NULL means all defaults. rates: also opens, tests and measures
 * each of them, or those that `devices` names, which takes up to two minutes. A driver that is
 * missing or fails is no error: sherd_devices_fault_at says so. The caller frees *out with
 * sherd_devices_free. Errors: SHERD_EINVAL (also of a backend that has no devices),
 * SHERD_EUNSUPPORTED (there is no such backend), SHERD_ENOMEM, SHERD_EINTERRUPTED.
 */
SHERD_API int sherd_devices_find(sherd_devices **out, const sherd_node_options *opt, bool rates,
                                 sherd_diag *d) SHERD_MUST;
SHERD_API size_t sherd_devices_count(const sherd_devices *v);
/** Returns device i; NULL beyond the last. */
SHERD_API const sherd_device *sherd_devices_at(const sherd_devices *v, size_t i);
/** Returns measurement k of device i; NULL beyond the last. */
SHERD_API const sherd_device_rate *sherd_devices_rate(const sherd_devices *v, size_t i, size_t k);
SHERD_API const sherd_field *sherd_device_rate_fields(size_t *count);
/** Returns why backends have no device, as a sentence for each; NULL: each has some. */
SHERD_API const char *sherd_devices_missing(const sherd_devices *v);
/** Returns why the i-th of the backends without a device has none, with the remedy; NULL beyond the
 *  last. Its code is SHERD_EUNSUPPORTED where the driver or device is missing or too old, and
 *  another error where the driver fails. */
SHERD_API const sherd_diag *sherd_devices_fault_at(const sherd_devices *v, size_t i);
SHERD_API void sherd_devices_free(sherd_devices *v);
SHERD_API const sherd_field *sherd_device_fields(size_t *count);
/** For the sherd command: examines the devices of opt->backend in this process, and writes what it
 *  finds to a descriptor for sherd_devices_find. how_much: "list"; "open" opens those that the
 *  options name, "first" the first that is usable and not a processor, "measure" all. SHERD_EINVAL,
 *  SHERD_EUNSUPPORTED, SHERD_EIO. */
SHERD_API int sherd_devices_probe(const sherd_node_options *opt, const char *how_much, int fd,
                                  sherd_diag *d) SHERD_MUST;

/**
 * Starts a node. It listens and serves when the call returns, until it is ended. The caller frees
 * *out with sherd_node_free; it is NULL on failure.
 *
 * Errors: SHERD_EDEVICE (the backend or its driver fails, also in its self-test), SHERD_EINVAL
 * (also no such device), SHERD_EUNSUPPORTED (no such backend, no driver, no device), SHERD_EKEY,
 * SHERD_EOPEN, SHERD_EIO, SHERD_EFORMAT (a list, an empty allow-list,
 * data), SHERD_ESHAPE, SHERD_EBUSY (the ledger is in use), SHERD_EADDRINUSE, SHERD_ENET,
 * SHERD_ENOMEM, SHERD_EINTERRUPTED, SHERD_ETIMEOUT and SHERD_ECLOSED (the parent's pipe).
 */
SHERD_API int sherd_node_start(sherd_node **out, const sherd_node_options *opt,
                               sherd_diag *d) SHERD_MUST;
/** Returns the node's own line of a node file, with the port that was chosen. It is valid as long
 *  as the node. */
SHERD_API const char *sherd_node_line(const sherd_node *n);
/** Formats the line of a node with these options without starting it, so that lists of peers can be
 *  made first. Reads listen, which must name a port unless advertise does, advertise, name, domain,
 *  identity or key_file, and hooks.log. Errors: SHERD_EINVAL, SHERD_EKEY, SHERD_EOPEN. */
SHERD_API int sherd_node_line_of(const sherd_node_options *opt, char out[SHERD_PEER_LINE_SIZE],
                                 sherd_diag *d) SHERD_MUST;

/** Replaces the allow-list by a text; NULL: reads allow_file again. Connections of keys that are no
 *  longer allowed are closed. On failure the list is unchanged. SHERD_EOPEN, SHERD_EIO,
 *  SHERD_EFORMAT, SHERD_ENOMEM; SHERD_EINVAL: there is no allow_file. */
SHERD_API int sherd_node_allow(sherd_node *n, const char *allow, sherd_diag *d) SHERD_MUST;

/** Waits until the node starts to shut down: returns 0 after sherd_node_end, and when the parent's
 *  pipe was closed. SHERD_EINTERRUPTED: hooks.interrupted, which is called ten times a second,
 *  returned true; the node continues to serve. */
SHERD_API int sherd_node_wait(sherd_node *n, sherd_diag *d) SHERD_MUST;
/** Returns true once the parent's pipe was closed. */
SHERD_API bool sherd_node_orphaned(const sherd_node *n);

/**
 * Shuts the node down: it accepts no more connections, says goodbye to coordinators, waits for the
 * product in progress, and completes the record. timeout_ms: how long to wait for the product, once
 * all connections are closed; 0: until it is finished.
 *
 * Errors: SHERD_ETIMEOUT: the product is still in progress; the record has been completed, and the
 * node ends when the product does. SHERD_EDEVICE: the node has ended itself, since all its devices
 * are lost, also where a call that a driver does not return from is still in progress; a driver may
 * still run in this process, which should end soon. SHERD_EIO, SHERD_EOPEN:
 * some of the record could not be written.
 * A second call waits likewise and returns the same.
 */
SHERD_API int sherd_node_end(sherd_node *n, uint32_t timeout_ms, sherd_diag *d) SHERD_MUST;
/** Ends the node if that has not been done, without a bound on the time, and frees it. NULL is
 *  allowed. */
SHERD_API void sherd_node_free(sherd_node *n);

/* Counters since the start, also after sherd_node_end. */

typedef struct sherd_node_report {
    size_t size;        /* sizeof(sherd_node_report), set by the caller */
    uint64_t blocks_in; /* blocks stored */
    uint64_t bytes_in;  /* their bytes */
    uint64_t bytes_out; /* bytes of results */
    uint64_t sessions;  /* connections of coordinators */
    uint64_t memory_budget;
    uint64_t memory_peak; /* most memory in use so far */
    char blas_core[32];   /* kernels that compute */
    uint32_t threads;     /* compute threads */
} sherd_node_report;

/** Tasks by operation: results that were passed to a coordinator. */
typedef struct sherd_node_tasks {
    size_t size; /* sizeof(sherd_node_tasks), set by the caller */
    uint64_t multiply, multiply_transposed, gradient;
    uint64_t meet, connect, step, reduce;    /* all-reduce */
    uint64_t join, roster, seal, hide, open; /* secure sums */
    uint64_t state, where;                   /* all-reduce */
    uint64_t confirm;                        /* secure sums */
    uint64_t sigmoid, minus, square, times, relu, tanh, exp;
    uint64_t check; /* secure sums */
    uint64_t refused, cancelled;
} sherd_node_tasks;

/** The privacy that uploads over the node's own examples have cost, as the ledger has it. */
typedef struct sherd_node_privacy {
    size_t size;        /* sizeof(sherd_node_privacy), set by the caller */
    uint64_t uploads;   /* charged so far */
    double epsilon;     /* spent, at delta; INFINITY: some were without noise */
    double epsilon_max; /* allowed; INFINITY: no bound */
    double delta;
} sherd_node_privacy;

SHERD_API int sherd_node_report_get(sherd_node *n, sherd_node_report *out,
                                    sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_node_report_fields(size_t *count);
SHERD_API int sherd_node_tasks_get(sherd_node *n, sherd_node_tasks *out, sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_node_tasks_fields(size_t *count);
/** SHERD_EINVAL: the node has no examples of its own. */
SHERD_API int sherd_node_privacy_get(sherd_node *n, sherd_node_privacy *out,
                                     sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_node_privacy_fields(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
