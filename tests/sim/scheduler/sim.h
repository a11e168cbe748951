/*
 * A whole cluster in one process: a coordinator's job and real node task loops, joined by simulated
 * connections under a virtual clock. A seed determines delays, broken connections, deaths, stalls
 * and lies, so that a failing schedule can be run again. Nothing here sleeps: thousands of
 * schedules run in a second.
 */
#ifndef TESTS_SIM_SCHEDULER_SIM_H
#define TESTS_SIM_SCHEDULER_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "sherd/product.h"
#include "sherd/windows.h"
#include "tests/support/remote.h"

/* The faults of a node. */
typedef enum sim_fault {
    SIM_NONE,
    SIM_KILL,    /* its process has ended for good */
    SIM_CUT,     /* the connection breaks, possibly within a record; the node can come back */
    SIM_STOP,    /* it stops answering for good, with the connection open */
    SIM_PAUSE,   /* for two seconds */
    SIM_LIE,     /* well-formed wrong numbers from then on */
    SIM_GARBAGE, /* bytes that are not a record */
    SIM_TWICE,   /* an answer is sent again */
    SIM_DROP,    /* bytes in transit, to it or from it, are lost */
    SIM_SLOW,    /* from then on all that it sends takes two more seconds */
    SIM_COLLUDE, /* lies that agree with those of other liars: all residues doubled */
    SIM_FREEZE,  /* its loop runs, but it computes nothing any more */
    SIM_CHATTER, /* it reads nothing and sends unknown records and PINGs all the time */
    SIM_DRIP,    /* from then on it sends 100 bytes a second */
    SIM_FAULTS
} sim_fault;

typedef struct sim_options {
    uint64_t seed;
    uint32_t nodes;
    size_t n, k, m;
    sherd_windows windows; /* window 0: no windows; otherwise A is kept: n images of k numbers */
    uint32_t products;     /* A is kept for so many products A B with one B each; 0: no */
    bool one_way;          /* `products`: A is kept for A B only */
    bool transposed;       /* with windows: A^T B, otherwise A B */
    sherd_op op;           /* element-wise operation on n x k numbers; 0: a product */
    sherd_product_options product;
    bool bytes;     /* share: the nodes multiply residues of one byte, and expand seeds */
    uint32_t older; /* bytes: so many nodes, the first ones, do not expand seeds after all */
    uint64_t node_memory;
    uint32_t delay_ms;      /* maximum delay of a piece of bytes */
    uint32_t faulty;        /* this many nodes have one fault each */
    sim_fault fault;        /* SIM_FAULTS: random ones */
    bool fault_early;       /* before the first answer */
    bool remote;            /* nodes compute on `devices`, which have memory of their own */
    remote_options devices; /* seed and cpu are set by sim_run; dies_at: for the first `dying`
                             * nodes */
    uint32_t dying;
} sim_options;

typedef struct sim_outcome {
    int err; /* of the job */
    char message[480];
    bool equal; /* C equals the reference, bit for bit (exact) or within 1e-9 */
    uint64_t virtual_ms;
    uint64_t log_hash; /* of all events in order */
    uint64_t events;
    uint32_t banned, lost;
    uint64_t repeated;
    uint32_t threshold, encodings; /* share: answers that are enough to decode; number of times that
                                    * shares were made */
    bool bytes;                    /* share: residues have one byte */
    bool cut_inner;                /* share: the last encoding cuts A by columns */
    uint64_t cancelled;
    double exposure; /* largest fraction of A that a domain has received, and the bound */
    double bound;
    uint32_t struck;      /* faults that occurred before the job was done */
    remote_stats devices; /* of all nodes */
    bool hung;            /* the virtual clock ran far beyond all deadlines */
} sim_outcome;

/** Runs one schedule; asserts nothing. */
void sim_run(const sim_options *opt, sim_outcome *out);

const char *sim_fault_name(sim_fault f);

#endif
