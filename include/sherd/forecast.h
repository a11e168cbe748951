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
    double gflops;      /* rate of this product on this machine, all BLAS threads; 0: measured on a
                           part of it */
    double node_gflops; /* rate of one node for the arithmetic of the product; of nodes on devices
                           that report the rate of copies, without these. 0: if nodes compute on
                           processors of this machine, the rate is measured while all its cores
                           multiply; otherwise it is the rate that the node reports for which the
                           others wait or, without a connected node, that of one core of this
                           machine */
    double session;     /* bytes per second of processor time that one thread of this machine passes
                           through encrypted sessions; 0: measured over loopback */
    double link;        /* bytes per second of all links together, in each direction; 0: the speed
                           reported by the fastest network interface. Not used if nodes are on this
                           machine */
} sherd_rates;

typedef struct sherd_forecast {
    size_t size; /* sizeof(sherd_forecast), set by the caller */
    sherd_scheme scheme;
    uint32_t nodes, primes;
    uint32_t blocks, threshold;        /* share, share1: K, and the number of answers needed to
                                          decode; otherwise 0 */
    uint32_t slack;                    /* share, share1: number of nodes that may be missing;
                                          otherwise 0 */
    uint64_t panels, tiles;            /* row panels and column tiles of the work, of all slots */
    uint64_t tasks;                    /* number of tasks that are not empty */
    sherd_encoding encoding;           /* permute, plain: how A is sent; otherwise AUTO */
    uint64_t tasks_csr;                /* tasks with a panel sent in CSR */
    double seconds_dense, seconds_csr; /* predicted times of the parts that depend on the encoding,
                                          for dense and for CSR; 0 and 0: there was no choice */
    uint64_t bytes_out, bytes_in;      /* bytes of blocks, tasks and results, headers included,
                                          counted as work_out and work_in in sherd_report */
    bool at_most;                  /* the numbers of bytes are upper bounds: fewer are sent if spare
                                      answers come late or idle nodes help others */
    double flops;                  /* floating-point operations of all nodes; a multiply-add counts
                                      as two */
    uint64_t node_memory;          /* most bytes that one node holds at a time */
    double exposure_a, exposure_b; /* fraction of each operand that the most exposed node is
                                      given */
    double seconds;                /* predicted time, from nodes up and operands in memory to the
                                      result in memory */
    double seconds_nodes, seconds_links; /* predicted time of the nodes' products alone, and of the
                                            links alone */
    double seconds_here, seconds_cores;  /* predicted time of this machine's work alone, and of all
                                            work that shares its cores (0: the nodes are on other
                                            machines) */
    const char *bound;     /* the slowest of these four, and of seconds_copies: "nodes", "links",
                          "here", "cores" or "device link" */
    double own_seconds;    /* time of the same product by dgemm on this machine; 0: not known */
    sherd_rates rates;     /* the rates that were used */
    double latency;        /* seconds until the answer of a small task is here; 0: negligible */
    bool local;            /* the nodes are on this machine, and share its cores unless they compute
                           on devices */
    sherd_code code;       /* share, share1: how operands are coded; otherwise AUTO */
    uint32_t devices;      /* nodes that compute on devices and not on processors */
    double seconds_copies; /* predicted time of copying blocks and answers to the devices of the
                               busiest node and from them alone; 0: none, or unknown */
    double copy_rate;      /* bytes per second of these copies, as the node reports; 0: likewise */
    const char *arithmetic; /* of the nodes' products: "float64", "residues" (packed, modulo primes
                               of 23 bits) or "bytes" (residues modulo primes below 256) */
    char pace[64]; /* share, share1: name of the node that sets the pace: the slowest of those that
                      the result needs. The `slack` slowest ones are spare: they are not waited for.
                      Empty: equally fast, or unknown */
} sherd_forecast;

SHERD_API const sherd_field *sherd_forecast_fields(size_t *count);

/** Zero-initialise, set size, then set what differs. */
typedef struct sherd_forecast_options {
    size_t size;            /* sizeof(sherd_forecast_options) */
    sherd_cluster *cluster; /* forecast for the nodes of this cluster; NULL: use nodes_file */
    const char *nodes_file; /* forecast for the nodes listed in this file, with their domains; host
                               names are not resolved. NULL: use nodes */
    bool same_host_domains; /* as in sherd_cluster_options, for listed nodes */
    uint32_t nodes;         /* forecast for this number of nodes, 1 to 65535, each a domain of its
                               own */
    uint64_t node_memory;   /* memory budget of each node; 0: half of the memory of a machine like
                             this one, divided by the number of nodes that share it */
    bool remote;            /* the nodes are on other machines */
    sherd_rates rates;
    bool no_measurements; /* do not measure this machine: a forecast then takes little longer than
                             counting bytes, and its times are coarse. Rates that are not given are
                             those that nodes report, or typical ones. If nodes are on this machine,
                             own_seconds is derived from these rates */
    bool no_time;         /* predict bytes only: nothing is computed, hidden or folded; no times */
    double *result;       /* work space of n x m doubles, which is overwritten; NULL: allocated */
    sherd_hooks hooks; /* interruption; progress counts cells of the product whose bytes have been
                             counted; of sherd_choices_forecast: 100 parts of each choice */
    const char *nodes_text; /* instead of nodes_file: the same as a text */
    double latency;         /* seconds from a small task until the answer is here, of the slowest
                               node; 0: negligible. Not used if nodes are on this machine */
} sherd_forecast_options;

/**
 * Measures the links of f->cluster, and sets f->rates.link and f->latency. Does nothing if the
 * nodes are on this machine or f->rates.link is set. Products of constant matrices are computed,
 * small ones first; no user data is sent. It takes about a second. In each direction at most 12 MB
 * are transferred for each node, and at most 100 MB for all nodes; over slow links much less.
 * Errors: SHERD_EINVAL: no cluster; those of sherd_multiply; SHERD_ETIMEOUT: a link transferred
 * almost nothing.
 */
SHERD_API int sherd_forecast_probe(sherd_forecast_options *f, sherd_diag *d) SHERD_MUST;

/**
 * Predicts the cost of C = A*B with the options `opt`. If data is NULL in both views, only their
 * shapes are used, as f64 operands without zeros. With a seed (opt->seed) a later product uses the
 * partition of the forecast; without one another partition is drawn. If parts follow the speeds of
 * nodes, the partition is that of the speeds known now. Some cells are hidden and
 * folded to measure how long that takes; nothing is sent. blind: no masks are used up. Errors:
 * those that sherd_multiply returns before it sends anything; SHERD_EINTERRUPTED. *out is unchanged
 * then. If the result is too large to be measured with (1 GiB) and f->result is NULL, a product of
 * some rows of A and some columns of B is measured instead, and the times are scaled by bytes.
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
 * not the preferred one, can represent the operands. opt->hooks: interruption, and progress, which
 * counts the bytes of operands that were read. The caller frees *out, which is NULL on
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

/** Forecasts all choices. It fails, with the error of the first choice, if no choice, or not the
 *  preferred one, is possible; and with SHERD_EINTERRUPTED. */
SHERD_API int sherd_choices_forecast(sherd_choices *c, const sherd_forecast_options *f,
                                     sherd_diag *d) SHERD_MUST;
/** Fills *out with the forecast of choice i. If the choice is not possible, *out is unchanged and
 *  the error says why. SHERD_EINVAL: there is no choice i, or no forecast. */
SHERD_API int sherd_choices_at(const sherd_choices *c, size_t i, sherd_forecast *out,
                               sherd_diag *d) SHERD_MUST;

/** Measures rates->session and, for a cluster on other machines, rates->link as
 *  sherd_forecast_probe does. Errors: as of sherd_multiply. */
SHERD_API int sherd_rates_probe(sherd_cluster *c, sherd_rates *rates, sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
