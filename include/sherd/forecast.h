/*
 * Predicts the cost of a product without sending any part of its operands: of one way to compute it
 * (sherd_forecast_multiply), or of all sensible ones (sherd_choices). Numbers of bytes are exact;
 * times are estimates. `sherd plan` and --dry-run show the forecasts of all choices, and `sherd
 * multiply -v` compares that of its product with the measured values.
 */
#ifndef SHERD_FORECAST_H
#define SHERD_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "sherd/cluster.h"
#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"
#include "sherd/mat.h"
#include "sherd/product.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rates from which times are predicted. 0: not known; sherd_forecast_multiply then measures or
 *  assumes the rate. Never grows, because other structs contain it. */
typedef struct sherd_rates {
    double gflops;      /* of this product here, all BLAS threads; 0: measured on a part */
    double node_gflops; /* of one node. 0: if nodes are on this machine, measured now while all its
                           cores multiply; otherwise the rate that the slowest node reports, or that
                           of one core of this machine if no node is connected. If nodes are sent
                           packed residues, this is their rate for those */
    double session;     /* bytes a second that one thread of this machine passes through encrypted
                           sessions, in processor time; 0: measured over loopback */
    double link;        /* bytes a second of all links together, each way; 0: the speed reported by
                           the fastest network interface. Not used if nodes are on this machine */
} sherd_rates;

typedef struct sherd_forecast {
    size_t size; /* sizeof(sherd_forecast), set by the caller */
    sherd_scheme scheme;
    uint32_t nodes, primes;
    uint32_t blocks, threshold;        /* share, share1: K, and the number of answers needed to
                                          decode; otherwise 0 */
    uint32_t slack;                    /* share, share1: nodes that may be missing; otherwise 0 */
    uint64_t panels, tiles;            /* row panels and column tiles of the work, of all slots */
    uint64_t tasks;                    /* tasks to compute: those that are not empty */
    sherd_encoding encoding;           /* permute, plain: how A is sent; otherwise AUTO */
    uint64_t tasks_csr;                /* tasks with a panel sent in CSR */
    double seconds_dense, seconds_csr; /* predicted times of the parts in which the two encodings
                                          differ; 0, 0: there was no choice */
    uint64_t bytes_out, bytes_in;      /* of blocks, tasks and results, headers included: counted as
                                          work_out and work_in in sherd_report */
    bool at_most;                  /* the numbers of bytes are upper bounds: fewer may be sent if
                                      spare answers come late or idle nodes help others */
    double flops;                  /* of all nodes together; a multiply-add counts as two */
    uint64_t node_memory;          /* largest amount that one node holds at a time, bytes */
    double exposure_a, exposure_b; /* of the most exposed node */
    double seconds;                /* predicted, from nodes up and operands in memory to result */
    double seconds_nodes, seconds_links; /* predicted times, each on its own: of the nodes'
                                            products, of the links, */
    double seconds_here, seconds_cores;  /* of this machine's own work, and of all work that shares
                                            this machine's cores (0: the nodes are elsewhere) */
    const char *bound;  /* the slowest of these: "nodes", "links", "here" or "cores" */
    double own_seconds; /* the same product by dgemm on this machine; 0: not known */
    sherd_rates rates;  /* the rates that were used */
} sherd_forecast;

SHERD_API const sherd_field *sherd_forecast_fields(size_t *count);

/** Zero-initialise, set size, then set what differs. */
typedef struct sherd_forecast_options {
    size_t size;            /* sizeof(sherd_forecast_options) */
    sherd_cluster *cluster; /* forecast for the nodes of this cluster; NULL: use nodes_file */
    const char *nodes_file; /* forecast for the nodes listed in this file, with their domains; host
                               names are not resolved. NULL: use nodes */
    bool same_host_domains; /* of nodes_file, as in sherd_cluster_options */
    uint32_t nodes;         /* forecast for this number of nodes, each a domain of its own; 1 to
                               65535 */
    uint64_t node_memory; /* budget of each; 0: half of a machine's memory like this one's, for all
                               nodes that share it */
    bool remote;          /* the nodes are on other machines */
    sherd_rates rates;
    bool no_measurements; /* do not measure this machine: the forecast then takes little longer than
                             counting bytes, and its times are coarse. Rates that are not given are
                             those that the nodes report, or typical ones, and own_seconds is
                             derived from them if nodes are on this machine */
    bool no_time;         /* predict bytes only: nothing is computed, hidden or folded; no times */
    double *result;       /* work space of n x m doubles, which is overwritten; NULL: allocated */
    sherd_hooks hooks;    /* interruption; of sherd_choices_forecast: progress counts choices */
} sherd_forecast_options;

/**
 * Predicts the cost of C = A*B with the options `opt`. If data is NULL in both views, only their
 * shapes are used, as f64 operands without zeros. With a seed (opt->seed) a later product uses the
 * partition of the forecast; without one another partition is drawn. Some cells are hidden and
 * folded to measure how long that takes; nothing is sent. blind: no masks are used up. Errors:
 * those that sherd_multiply returns before it sends anything; SHERD_ERANGE: the result is too large
 * to be measured with (1 GiB), unless no_time or no_measurements is set; SHERD_EINTERRUPTED. *out
 * is unchanged then.
 */
SHERD_API int sherd_forecast_multiply(sherd_view a, sherd_view b, const sherd_product_options *opt,
                                      const sherd_forecast_options *f, sherd_forecast *out,
                                      sherd_diag *d) SHERD_MUST;

/** The ways to compute one product: schemes, and column groups of schemes that shuffle. One thread
 *  at a time may use it. */
typedef struct sherd_choices sherd_choices;

/**
 * Lists the choices for C = A*B. If opt->scheme is set, the first choice is *opt, the preferred
 * one, and the others are alternatives to it; otherwise all schemes are listed in their order
 * (sherd_scheme_at). A scheme with masks is listed if opt->masks is set. All choices use the other
 * members of *opt, and one seed. Views and options as in sherd_forecast_multiply; the memory of the
 * views, and what *opt points to except the seed, must stay valid until sherd_choices_free.
 *
 * Values are checked now, before there are nodes (sherd_product_range): it fails if no choice, or
 * not the preferred one, can represent the operands. The caller frees *out, which is NULL on
 * failure.
 */
SHERD_API int sherd_choices_new(sherd_choices **out, sherd_view a, sherd_view b,
                                const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
SHERD_API void sherd_choices_free(sherd_choices *c);
SHERD_API size_t sherd_choices_count(const sherd_choices *c);
/** Returns a name for people, such as "permute, 16" or "share, 2 colluding"; NULL if there is no
 *  choice i. */
SHERD_API const char *sherd_choices_name(const sherd_choices *c, size_t i);
/** Returns the options of a product that is computed in this way; NULL if there is no choice i.
 *  They are valid until sherd_choices_free. */
SHERD_API const sherd_product_options *sherd_choices_options(const sherd_choices *c, size_t i);

/** Forecasts all choices. If the result is too large to be measured with, times are left out as
 *  with f->no_time. It fails, with the error of the first choice, if no choice, or not the
 *  preferred one, is possible; and with SHERD_EINTERRUPTED. */
SHERD_API int sherd_choices_forecast(sherd_choices *c, const sherd_forecast_options *f,
                                     sherd_diag *d) SHERD_MUST;
/** Fills *out with the forecast of choice i. If the choice is not possible, *out is unchanged and
 *  the error says why. SHERD_EINVAL: there is no choice i, or no forecast. */
SHERD_API int sherd_choices_at(const sherd_choices *c, size_t i, sherd_forecast *out,
                               sherd_diag *d) SHERD_MUST;

/**
 * Measures rates->session and, for a cluster on other machines, rates->link. The link is measured
 * with two products of constant matrices, one with large operands and one with a large result, some
 * megabytes for each node (less if links are slow). No user data is sent. Errors: as of
 * sherd_multiply.
 */
SHERD_API int sherd_rates_probe(sherd_cluster *c, sherd_rates *rates, sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
