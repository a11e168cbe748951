/*
 * A whole cluster in one process: a coordinator's job and real node task loops, joined by simulated
 * connections under a virtual clock. Delays, cuts, deaths, stalls and lies come from a seed, so
 * that a failing schedule can be run again. Nothing here sleeps: thousands of schedules a second.
 */
#ifndef TESTS_SIM_SCHEDULER_SIM_H
#define TESTS_SIM_SCHEDULER_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "sherd/product.h"
#include "sherd/windows.h"
#include "tests/support/remote.h"

/* What may befall a node. */
typedef enum sim_fault {
    SIM_NONE,
    SIM_KILL,    /* its process is gone for good */
    SIM_CUT,     /* the connection breaks, maybe in the middle of a record; it can come back */
    SIM_STOP,    /* it stops answering, connection open, for good */
    SIM_PAUSE,   /* for two seconds */
    SIM_LIE,     /* well-formed wrong numbers from then on */
    SIM_GARBAGE, /* bytes that are no record */
    SIM_TWICE,   /* an answer once more */
    SIM_DROP,    /* bytes on their way, to it or from it, are lost */
    SIM_SLOW,    /* from then on all that it sends takes two seconds more */
    SIM_COLLUDE, /* lies that agree with those of others who do: all residues doubled */
    SIM_FREEZE,  /* its loop lives and computes nothing any more */
    SIM_CHATTER, /* it hears nothing and sends unknown records and PINGs all the time */
    SIM_DRIP,    /* from then on 100 bytes a second leave it */
    SIM_FAULTS
} sim_fault;

typedef struct sim_options {
    uint64_t seed;
    uint32_t nodes;
    size_t n, k, m;
    sherd_windows windows; /* window 0: none; else A is kept: n images of k numbers */
    bool transposed;       /* windows: A^T B, else A B */
    sherd_product_options product;
    uint64_t node_memory;
    uint32_t delay_ms;      /* longest delay of a piece of bytes */
    uint32_t faulty;        /* this many nodes have a fault each */
    sim_fault fault;        /* SIM_FAULTS: drawn */
    bool fault_early;       /* before the first answer */
    bool remote;            /* nodes compute on `devices`, whose memory is their own */
    remote_options devices; /* seed and cpu are set here; dies_at: of the first `dying` nodes */
    uint32_t dying;
} sim_options;

typedef struct sim_outcome {
    int err; /* of the job */
    char message[480];
    bool equal; /* C is the reference, bit for bit (exact) or within 1e-9 */
    uint64_t virtual_ms;
    uint64_t log_hash; /* of every event in order */
    uint64_t events;
    uint32_t banned, lost;
    uint64_t repeated;
    uint32_t threshold, encodings; /* share: answers that decode; times that shares were made */
    uint64_t cancelled;
    double exposure; /* largest fraction of A that a domain was given, and the bound */
    double bound;
    uint32_t struck;      /* faults that happened before the job was done */
    remote_stats devices; /* of all nodes */
    bool hung;            /* the virtual clock ran far beyond any deadline */
} sim_outcome;

/** Runs one schedule; asserts nothing. */
void sim_run(const sim_options *opt, sim_outcome *out);

const char *sim_fault_name(sim_fault f);

#endif
