/*
 * Work over a cluster: products and element-wise operations, hidden by a scheme. Results are
 * checked before they are used.
 */
#ifndef SHERD_PRODUCT_H
#define SHERD_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/cluster.h"
#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"
#include "sherd/mat.h"
#include "sherd/meta.h"
#include "sherd/multiplier.h"
#include "sherd/op.h"
#include "sherd/profile.h"
#include "sherd/scheme.h"

#ifdef __cplusplus
extern "C" {
#endif

/** permute, plain: encoding in which panels of A are sent. A panel is always dense if CSR would not
 *  be smaller. All panels are dense if B holds NaN or infinity (zeros then matter), or if they have
 *  single columns (group 1). */
typedef enum sherd_encoding {
    SHERD_ENCODING_AUTO = 0, /* chosen by predicted time, from the number of zero entries */
    SHERD_ENCODING_DENSE = 1,
    SHERD_ENCODING_CSR = 2 /* zeros are left out */
} sherd_encoding;

/**
 * Stored exposures and permutations (a metadata file) in place of those derived from the seed.
 * exposures: one node index per column of A (products) or per column (element-wise). perm writes
 * permutation `row` (of the columns of B, or of the operands). rows writes the permutation of A's
 * rows if shuffle_rows is set (NULL: derived from the seed). Two other threads call these
 * functions, also at the same time; they must stay valid until the call (sherd_resident_free)
 * returns. An exposure that is not a node of the cluster is SHERD_EFORMAT.
 */
typedef struct sherd_shuffles {
    size_t size; /* sizeof(sherd_shuffles), set by the caller */
    const uint32_t *exposures;
    int (*perm)(void *ctx, size_t row, uint32_t *out);
    int (*rows)(void *ctx, size_t row, uint32_t *out);
    void *ctx;
} sherd_shuffles;

/** Zero-initialise, set size, then set what differs. */
typedef struct sherd_product_options {
    size_t size;         /* sizeof(sherd_product_options) */
    sherd_scheme scheme; /* 0: SHERD_PERMUTE */
    bool exact;          /* fixed point, bit for bit; otherwise float64 as BLAS computes it */
    uint32_t bits;   /* exact: width b that floats are rounded to, 2..26; 0: 17 (blind: as the masks
                        specify). Integers are used unchanged, with the width of the largest */
    uint32_t bits_b; /* private schemes: width of B if it differs from A's; 0: as bits (blind: as
                        the masks specify) */
    bool bits_bind;  /* exact: integers beyond `bits` are SHERD_ERANGE */
    const char *name_a, *name_b; /* names of the operands in messages; NULL: "A" and "B" */
    uint32_t group;    /* permute: columns that share one permutation; 0: all columns of a node */
    bool balanced;     /* permute: assign equal counts instead of drawing uniformly */
    bool shuffle_rows; /* permute: A's rows are sent in another order in every group */
    sherd_encoding encoding;
    double link_rate; /* rate of the links in bytes per second, used to choose encoding and code; 0:
                           the rate of encryption on this machine if nodes are on loopback,
                           otherwise that of its fastest network interface (1 Gbit/s if not
                           known) */
    uint32_t colluding; /* share, share1: T, the number of domains that may combine what they see;
                           0: 1 */
    const char *masks;  /* blind: file of sherd_masks_prepare for this B */
    const char *masks_state; /* folder of the counters of used masks; NULL: the user's folder
                                (masks.h) */
    uint32_t spare;          /* share, share1: S, the number of nodes that may be missing without
                                repeated work */
    double exposure_max;     /* permute, plain, element-wise: largest fraction of an operand that a
                                domain may be given; 0: twice the largest planned share. plain
                                gives every node all of B, which only 0 and 1 allow */
    const uint8_t *seed;     /* 32 bytes; NULL: a fresh seed. Exposures under a seed follow no
                                measured speeds (but see seed_drawn) */
    uint64_t operation;      /* index in the manifest from which permutations are derived */
    const sherd_shuffles *shuffles; /* NULL: derived from the seed */
    uint64_t memory;     /* the coordinator's working memory, besides operands and result, in bytes;
                            0: 192 MiB */
    bool strict;         /* a node's wrong answer fails the call (SHERD_EWRONG) instead of causing a
                            warning */
    uint32_t timeout_ms; /* time limit of the whole call, preparation included. If it expires during
                            preparation, nothing is sent. 0: no limit (silent or stalled nodes are
                            still dropped) */
    sherd_hooks hooks;   /* hooks of this call, preparation included; all NULL: those of the
                            cluster */
    sherd_profile *profile_a, *profile_b; /* profiles of the operands of this call, or NULL: values
                                             with a profile are not examined again. Not used for
                                             kept operands and multipliers */
    bool seed_drawn; /* `seed` was drawn for this work, for instance so that a forecast and its
                        product partition alike: it does not determine exposures, which may follow
                        the measured speeds of nodes as under a fresh seed. Not used for
                        multipliers */
    sherd_code code; /* share: how operands are coded. AUTO: a kept operand that serves both
                        directions by Lagrange's code */
} sherd_product_options;

/**
 * Results of a call, also of one that failed after nodes were given work: it overwrites all of *r
 * except its size, and frees nothing. The caller frees the arrays with sherd_report_fini, which is
 * safe on a zeroed report; do so before using a report again. A call that fails before nodes are
 * given work leaves *r unchanged.
 */
typedef struct sherd_report {
    size_t size;                    /* sizeof(sherd_report), set by the caller */
    uint32_t nodes;                 /* length of the arrays */
    uint32_t *planned;              /* columns of A (permute) or rows (plain) of each node */
    double *exposed_a, *exposed_b;  /* fraction of each operand's entries given to each node */
    uint64_t *bytes_out, *bytes_in; /* protocol bytes of this call, by node */
    sherd_node_state *states;   /* state of each node at the end of the call; sherd_cluster_node_at
                                       may report later states */
    uint64_t work_out, work_in; /* the part of bytes_out and bytes_in that is blocks, tasks and
                                   results with their headers, summed over all nodes: the numbers
                                   that sherd_forecast predicts */
    uint64_t tasks, tasks_repeated; /* accepted results; tasks that were sent again because a node
                                       was lost or wrong */
    uint64_t fragments;             /* permute: (row, group) pieces that a node multiplied */
    uint64_t panels, tiles;         /* row panels and column tiles of the plan */
    uint64_t rows_skipped;          /* all-zero rows (entries if group = 1) that were not sent */
    sherd_encoding encoding;        /* permute, plain: of the plan, DENSE or CSR; otherwise AUTO */
    uint64_t tasks_csr;             /* tasks with a panel sent in CSR; repeated ones count once */
    uint32_t blocks, threshold;     /* share, share1: K, and the number of answers that recover a
                                       product; otherwise 0 */
    uint32_t domains;               /* number of domains of the nodes, which is the number of
                                       shares */
    uint32_t nodes_used, domains_used; /* nodes that were up when the call began, or were given
                                          work; their domains */
    uint64_t tasks_cancelled;          /* answers that were no longer needed */
    uint32_t encodings;                /* share: 1, plus one each time all shares were made again */
    uint64_t masks_left;               /* blind: rows of masks that no product has used yet */
    uint32_t nodes_lost, nodes_banned; /* nodes lost and banned during this call, also between its
                                          jobs */
    char banned[256];                  /* names of the banned nodes */
    int scale_a, scale_b;              /* exact: exponents s of the fixed point */
    uint32_t bits_a, bits_b;           /* exact: width of each operand, sign included */
    uint32_t primes;                   /* exact: number of primes; 0 if one f64 product is enough */
    double check_error;  /* exact: probability that a single wrong answer is accepted; element-wise:
                            probability that one wrong entry is missed; float: 1, which means no
                            bound */
    bool check_tolerant; /* float products: the check catches gross errors only */
    uint8_t seed[32];    /* the seed that was used; a secret of the coordinator */
    double seconds;      /* duration of the call */
    /* The node that the others waited for: 1 plus its number, 0 if none was significantly slower
       than the others. pace_seconds is the time in which it owed answers, until it was lost or
       banned if it was (its state says so), and pace_others the median of the other nodes' times.
       Answers that were not needed do not count, nor do those in place of such a node */
    uint32_t pace_node;
    double pace_seconds, pace_others;
    double *done; /* fraction of the accepted tasks that each node answered: other nodes may do what
                     was planned for a slow or lost one */
    uint32_t prime_bits; /* bits of a prime, 23, or 8 where residues are bytes; 0: no primes */
    sherd_code code;     /* share, share1: how operands were coded; otherwise AUTO */
} sherd_report;

SHERD_API void sherd_report_fini(sherd_report *r);
SHERD_API const sherd_field *sherd_report_fields(size_t *count);

/** One node's part in a report, with what the cluster knows of it. */
typedef struct sherd_report_node {
    size_t size;   /* sizeof(sherd_report_node), set by the caller */
    char name[64]; /* name to blas_core, and tasks, as in sherd_node_info */
    char address[280];
    char domain[64];
    char key[56];
    int64_t pid;
    sherd_node_state state; /* state at the end of the call */
    char blas_core[32];
    uint64_t tasks;
    uint32_t planned; /* from here on as in sherd_report, for this node */
    double exposed_a, exposed_b;
    uint64_t bytes_out, bytes_in;
    double done;
} sherd_report_node;

/** Fills *out with node i of the cluster c that the report is about. If the report has no such
 *  node, because the call failed before nodes were given work, its members are 0 and its state is
 *  the present one. SHERD_EINVAL: i >= sherd_cluster_size. */
SHERD_API int sherd_report_node_at(const sherd_report *r, sherd_cluster *c, uint32_t i,
                                   sherd_report_node *out, sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_report_node_fields(size_t *count);

/* ---- metadata -------------------------------------------------------------------------------- */

/** Settings of sherd_product_options whose 0 is a value and not a default
 *  (sherd_meta_request.settings). */
enum { SHERD_META_GROUP = 1, SHERD_META_EXPOSURE = 2, SHERD_META_SHUFFLE_ROWS = 4 };

/** What metadata is requested for. Zero-initialise, set size, then set what differs. */
typedef struct sherd_meta_request {
    size_t size;           /* sizeof(sherd_meta_request) */
    sherd_op op;           /* 0: SHERD_OP_PRODUCT */
    sherd_view a, b;       /* the operands; b: of operations with two */
    const char *operation; /* name of the operation in the file; NULL: the only one that fits */
    uint32_t nodes;        /* number of nodes that will be used, which must be the file's; 0: not
                              known */
    unsigned settings;     /* SHERD_META_...: members of *opt that must agree with the file even if
                              they are 0; otherwise 0 means as in the file */
    bool reuse;            /* allow an operation that has served other operands */
    bool look_only;        /* for a forecast: the use is not recorded, and reuse not checked */
    sherd_hooks hooks;     /* interruption */
} sherd_meta_request;

/**
 * Takes exposures and permutations of one operation from a metadata file, and enforces its reuse
 * rule: loads the file, finds the operation, sets `shuffles`, `seed`, `operation`, `group`,
 * `balanced` and `shuffle_rows` of *opt, and records the operands in the file if this is the
 * operation's first use. The file is locked meanwhile: calls of other processes wait. What *opt
 * points to belongs to *out, which the caller frees with sherd_meta_free after the product.
 *
 * Call it as the last step before nodes are started, because a product that fails afterwards has
 * used the operation. *usage (may be NULL) receives how it was used (SHERD_META_SAME_USE with
 * look_only).
 *
 * Errors: SHERD_ESHAPE: another shape or number of nodes; SHERD_EINVAL: a setting of *opt
 * disagrees, or several operations fit; SHERD_EFORMAT: no such operation; SHERD_EEXPOSURE: the
 * reuse rule forbids it; SHERD_EINTERRUPTED, and those of sherd_meta_load and
 * sherd_meta_save. *opt is unchanged and *out NULL then.
 */
SHERD_API int sherd_meta_take(sherd_meta **out, const char *path, const sherd_meta_request *what,
                              sherd_product_options *opt, sherd_meta_usage *usage,
                              sherd_diag *d) SHERD_MUST;

/* ---- checks that need no nodes --------------------------------------------------------------- */

/** Writes the least number of domains of nodes that the scheme needs for opt->colluding and
 *  opt->spare; 1 if any number is enough. SHERD_EINVAL: there is no such scheme. */
SHERD_API int sherd_product_domains(uint64_t *least, const sherd_product_options *opt,
                                    sherd_diag *d) SHERD_MUST;
/** Checks whether fixed point can represent the operands' values (blind: in the widths of the
 *  masks), and whether primes hold the sums. Errors as of sherd_multiply: SHERD_ESHAPE,
 *  SHERD_ERANGE, SHERD_EINVAL, SHERD_EINTERRUPTED. */
SHERD_API int sherd_product_range(sherd_view a, sherd_view b, const sherd_product_options *opt,
                                  sherd_diag *d) SHERD_MUST;
/** Checks opt->exposure_max for an A of `columns` columns (element-wise: operands), if each node is
 *  a domain of its own: SHERD_EEXPOSURE. Exposures depend on seed or shuffles: without these, the
 *  exposures of the product will differ. A product may still fail if this check succeeds. */
SHERD_API int sherd_product_exposures(uint64_t columns, uint32_t nodes,
                                      const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;

/* ---- products -------------------------------------------------------------------------------- */

/**
 * Computes C = A*B over the cluster. A is n x k, B is k x m, C is n x m, row-major f64 with ldc >=
 * m.
 *
 * exact: C is bit for bit the fixed-point product of matrix/reference.h on one machine. Float: each
 * entry is within the usual bound gamma_k |A||B|; bits do not depend on arrival order. Every answer
 * is checked (Freivalds; docs/THREATS.md, "Verification") before it is folded into C. On failure
 * C's contents are undefined and nothing else was written. C shares no element with A or B.
 *
 * Errors: SHERD_ESHAPE; SHERD_EINVAL (views, an overlap); SHERD_ERANGE NaN or infinity in exact
 * mode, or no set of primes holds the product; SHERD_EFEWNODES; SHERD_EEXPOSURE; SHERD_ETIMEOUT;
 * SHERD_EINTERRUPTED; SHERD_EWRONG (strict); SHERD_ENOMEM. r may be NULL. Who learns it: see
 * docs/THREATS.md; C stays on this machine.
 */
SHERD_API int sherd_multiply(sherd_cluster *c, sherd_view a, sherd_view b, double *out, size_t ldc,
                             const sherd_product_options *opt, sherd_report *r,
                             sherd_diag *d) SHERD_MUST;

/**
 * Computes out = op(A) or op(A, B), entry by entry, all n x m; b is ignored for operations with one
 * operand. Each row has one permutation, which is the same for both operands; float64 only. out may
 * be the memory of A or B, in the same layout, and otherwise shares no element with them. A
 * secret sample of each answer is recomputed on this machine: r->check_error is the probability
 * that one wrong entry is missed.
 */
SHERD_API int sherd_apply(sherd_cluster *c, sherd_op op, sherd_view a, sherd_view b, double *out,
                          size_t ldc, const sherd_product_options *opt, sherd_report *r,
                          sherd_diag *d) SHERD_MUST;

/** A right operand that stays resident at the nodes over many products. */
typedef struct sherd_resident sherd_resident;

/**
 * Keeps B (k x m) at the nodes for products with an A of up to n_max rows. exact: A must have at
 * most opt->bits bits, integers included; otherwise its product is SHERD_ERANGE. Exposures are
 * drawn once, by this call. B's memory must stay valid until sherd_resident_free, which also drops
 * the nodes' blocks. The targets of pointers in *opt (names, hooks.ctx, shuffles) must stay
 * valid as long; the seed is copied.
 */
SHERD_API int sherd_resident_new(sherd_resident **out, sherd_cluster *c, sherd_view b, size_t n_max,
                                 const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
/** Computes C = A * kept B; otherwise as sherd_multiply. */
SHERD_API int sherd_resident_multiply(sherd_resident *kept, sherd_view a, double *out, size_t ldc,
                                      sherd_report *r, sherd_diag *d) SHERD_MUST;
SHERD_API void sherd_resident_free(sherd_resident *kept);

/**
 * Makes a multiplier (multiplier.h) that runs products and element-wise operations over the cluster
 * with these options. Element-wise operations are always in float64, independent of opt->exact. The
 * cluster is borrowed and must outlive the multiplier, as must the names and hooks.ctx of *opt;
 * its seed is copied. Progress and log lines come as in sherd_multiply.
 *
 * A kept operand K is copied on this machine and stays at the nodes as a right operand: K*B is
 * computed as (B^T K^T)^T, and K^T*B as (B^T K)^T. Each direction is sent at its first use. It is
 * sent once more if B has more columns than before or after a product that failed, with the same
 * exposures and permutations: these belong to the operand and are drawn once, when it is kept.
 * opt->exposure_max bounds the total exposure of K, over both directions and all transfers (rows
 * and columns added up); the default is twice the largest planned sum. Products of operands that
 * are not kept use exposures that depend only on the number of columns, so one operand in many
 * products shows a node the same columns.
 *
 * Parts of K (sherd_multiplier_keep): every range of rows that a product takes is sent at its
 * first use, in each direction, with its own permutations under K's exposures. It stays at the
 * nodes while there is room. All ranges are counted together.
 *
 * Private schemes: a kept K stays at the nodes as shares of a left operand, which serve K*B and
 * K^T*B and any range of its parts; each B has fresh masks. Sums of K^T*B run over the rows of one
 * part: sums over more rows are SHERD_ERANGE if the primes do not hold them. Element-wise
 * operations are computed on this machine, because nodes would see their operands.
 *
 * Errors: SHERD_EINVAL (opt->shuffles: stored tables serve one operation only), SHERD_EUNSUPPORTED
 * (opt->shuffle_rows: not with kept operands; SHERD_BLIND: masks serve one B), SHERD_ENOMEM; *out
 * is zeroed then. Who learns it: as for sherd_multiply. permute: a node sees its share of the
 * columns of K if K*B is computed, and its share of the rows of K if K^T*B is computed; with both,
 * it sees the union of the two.
 */
SHERD_API int sherd_multiplier_cluster(sherd_multiplier *out, sherd_cluster *c,
                                       const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
/**
 * Writes the report of each further product and element-wise operation of m to *r, as
 * sherd_multiply does; NULL: no more. Each of them first frees the arrays of *r and zeroes it
 * (sherd_report_fini), so *r describes the last one. An operation that is computed on this machine
 * leaves it as it is. With a kept operand, A and B of the report are those of the product that the
 * nodes compute (sherd_multiplier_cluster). *r must stay valid until it is replaced or m is freed;
 * the caller then frees its arrays. SHERD_EINVAL: m is not over a cluster, or the size of *r is not
 * set.
 */
SHERD_API int sherd_multiplier_report_set(sherd_multiplier m, sherd_report *r,
                                          sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
