/*
 * What a product would cost, without sending anything of its operands: bytes exactly, time as a
 * prediction. `sherd plan` and --dry-run show it, and `sherd multiply -v` shows it beside what
 * came.
 */
#ifndef SHERD_FORECAST_H
#define SHERD_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "sherd/cluster.h"
#include "sherd/err.h"
#include "sherd/mat.h"
#include "sherd/product.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What time is predicted from. 0: not known; sherd_forecast_multiply then measures or assumes
 *  it. */
typedef struct sherd_rates {
    double gflops;      /* this product here, on all threads of BLAS; 0: measured on a part of it */
    double node_gflops; /* of one node; 0: where nodes are on this machine, measured now, while all
                           its cores multiply; else as the slowest says of itself, or one core of
                           this machine where none is connected. Of packed residues, as they
                           travel, where that is what nodes are given and multiply */
    double session;     /* bytes a second that one thread here puts through encrypted sessions, in
                           processor time; 0: measured over loopback in some milliseconds */
    double link;        /* bytes a second of all links together, each way; 0: what the fastest
                           network interface says. Without effect where nodes are on this machine */
} sherd_rates;

typedef struct sherd_forecast {
    sherd_scheme scheme;
    uint32_t nodes, primes;
    uint32_t blocks, threshold;        /* share, share1: K, and how many answers decode; else 0 */
    uint32_t slack;                    /* share, share1: nodes that may be missing; else 0 */
    uint64_t panels, tiles;            /* that the work is cut into, of every slot */
    uint64_t tasks;                    /* of those that are not empty: what there is to compute */
    sherd_encoding encoding;           /* permute, plain: how A travels; else AUTO */
    uint64_t tasks_csr;                /* tasks whose panel travels in CSR */
    double dense_seconds, csr_seconds; /* predicted, of what the two encodings do not have in
                                          common; 0, 0: there was nothing to choose */
    uint64_t bytes_out, bytes_in;      /* of blocks, tasks and results, headers included: what
                                     sherd_report counts in work_out and work_in */
    bool at_most;                  /* less may travel: spare answers that come late, or where idle
                                     nodes help others */
    double flops;                  /* of all nodes together; multiply-adds count two */
    uint64_t node_memory;          /* most that one node holds at a time */
    double exposure_a, exposure_b; /* of the most exposed node */
    double seconds;                /* predicted, nodes up and operands in memory to result in
                                     memory */
    double nodes_s, links_s, here_s, cores_s; /* of products, links, this machine's own work, and
                                                 all that shares its cores (0: the nodes are
                                                 elsewhere), each by itself */
    const char *bound;  /* which of them sets the pace: "nodes", "links", "here",
                                     "cores" */
    double own_seconds; /* the same product by dgemm here; 0: not known */
    sherd_rates rates;  /* as they were used */
} sherd_forecast;

/** Zero-initialise, then set what differs. */
typedef struct sherd_forecast_options {
    sherd_cluster *cluster; /* whose nodes are meant; NULL: */
    const char *nodes_file; /* those that it lists, with their domains; nobody is asked for the
                               address of a name. NULL: */
    bool same_host_domains; /* of nodes_file, as in sherd_cluster_options */
    uint32_t nodes;         /* so many, each a domain of its own */
    uint64_t node_memory;
    bool remote; /* they are on other machines */
    sherd_rates rates;
    bool no_products; /* compute none here: speeds are then what the nodes say of
                               themselves, and own_seconds goes by those where they are here, unless
                               rates.gflops is given */
    bool no_time;     /* bytes alone: nothing is computed, hidden or folded, seconds are 0 and
                               rates unknown */
    double *result;   /* n x m doubles to work in, which are overwritten; NULL: allocated */
} sherd_forecast_options;

/**
 * What C = A*B by `opt` would take. data NULL in both views: shapes alone, f64 without zeros. With
 * a seed (opt->seed) a product that follows is dealt as it was forecast; without, another one is
 * drawn. Some cells are hidden and folded to see how long that takes; nothing is sent. blind: masks
 * stay. Errors: as sherd_multiply's before it sends.
 */
SHERD_API int sherd_forecast_multiply(sherd_forecast *out, sherd_view a, sherd_view b,
                                      const sherd_product_options *opt,
                                      const sherd_forecast_options *f, sherd_diag *d) SHERD_MUST;

/**
 * Measures rates->session, and of a cluster on other machines rates->link: by two products of
 * constants, one of large operands and one of a large result, some megabytes for each node (less
 * where links are slow). Nothing of the user's travels. Errors of sherd_multiply.
 */
SHERD_API int sherd_rates_probe(sherd_rates *rates, sherd_cluster *c, sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
