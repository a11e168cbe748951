/*
 * Work over a cluster: products and element-wise operations, hidden by a scheme, checked before
 * use.
 */
#ifndef SHERD_PRODUCT_H
#define SHERD_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/cluster.h"
#include "sherd/err.h"
#include "sherd/mat.h"
#include "sherd/multiplier.h"
#include "sherd/scheme.h"

#ifdef __cplusplus
extern "C" {
#endif

/** permute, plain: how panels of A travel. A panel for which CSR is not smaller is dense in any
 *  case, and all are where B holds NaN or infinity (zeros count then), or of single columns (group
 *  1). */
typedef enum sherd_encoding {
    SHERD_ENCODING_AUTO = 0, /* by predicted time, from how many entries are zero */
    SHERD_ENCODING_DENSE = 1,
    SHERD_ENCODING_CSR = 2 /* zeros are left out */
} sherd_encoding;

typedef enum sherd_elementwise {
    SHERD_OP_SIGMOID = 16,
    SHERD_OP_MINUS = 17,
    SHERD_OP_SQUARE = 18,
    SHERD_OP_MULTIPLY = 19,
    SHERD_OP_RELU = 20,
    SHERD_OP_TANH = 21,
    SHERD_OP_EXP = 22
} sherd_elementwise;

/**
 * Stored exposures and permutations (a metadata file) in place of those derived from the seed.
 * exposures: one node index per column of A (products) or per column (element-wise); perm writes
 * permutation `row` (of the columns of B, or of the operands); rows that of A's rows, where
 * shuffle_rows is set (NULL: derived from the seed). They are called from two other threads, also
 * at the same time, and must live until the call (sherd_resident_free) returns. An exposure that
 * is no node of the cluster is SHERD_EFORMAT.
 */
typedef struct sherd_shuffles {
    const uint32_t *exposures;
    int (*perm)(void *ctx, size_t row, uint32_t *out);
    void *ctx;
    int (*rows)(void *ctx, size_t row, uint32_t *out);
} sherd_shuffles;

typedef struct sherd_progress {
    uint64_t done, total; /* tasks: one per node, row panel and column tile */
    uint64_t bytes_out, bytes_in;
    uint32_t nodes_up;
    double seconds;
} sherd_progress;

/** Zero-initialise with sherd_product_options_init, then set what differs. */
typedef struct sherd_product_options {
    sherd_scheme scheme;
    bool exact;      /* fixed point, bit for bit; else float64 as BLAS computes it */
    uint32_t bits;   /* exact: width b that floats are rounded to, 2..26; integers are taken
                              as they are, as wide as the largest of them needs */
    uint32_t bits_b; /* private schemes: width of B where it is another than A's; 0: as bits
                              (blind: as the masks say) */
    bool bits_bind;  /* exact: integers beyond `bits` are SHERD_ERANGE */
    const char *name_a, *name_b; /* what messages call the operands; NULL: A and B */
    uint32_t group;    /* permute: columns that share one permutation; 0: all of a node's */
    bool balanced;     /* permute: deal equal counts instead of drawing uniformly */
    bool shuffle_rows; /* permute: A's rows travel in another order in every group */
    sherd_encoding encoding;
    double link_rate;   /* bytes a second that links carry, for the choice of the encoding; 0: as
                              this machine enciphers where nodes are on loopback, else as its
                              fastest network interface says (1 Gbit/s where none does) */
    uint32_t colluding; /* share, share1: T, domains that may put together what they see; 1 or
                              more */
    const char *masks;  /* blind: file of sherd_masks_prepare for this B; bits 0: as it says */
    const char *masks_state; /* folder of the counters of used masks; NULL: the user's (masks.h) */
    uint32_t spare;          /* share, share1: S, nodes that may be missing without doing work
                              again */
    double exposure_max;     /* largest fraction of an operand a domain may be given; 0: twice the
                              largest planned share */
    const uint8_t *seed;     /* 32 bytes; NULL: fresh */
    uint64_t operation;      /* index in the manifest that permutations are derived for */
    const sherd_shuffles *shuffles; /* NULL: derived from the seed */
    uint64_t memory;     /* coordinator's working memory besides operands and result; 0: 192
                              MiB */
    bool strict;         /* a node's wrong answer is SHERD_EWRONG instead of a warning */
    uint32_t timeout_ms; /* for the whole call, preparing included: once that is done
                              nothing is sent if no time is left; 0: none (silent or stalled nodes
                              still end) */
    void (*progress)(void *ctx, const sherd_progress *p); /* calling thread, at most 10 Hz */
    void *progress_ctx;
} sherd_product_options;

/**
 * What happened, of a call that failed, too: once nodes were at work the arrays are there. They are
 * the caller's (sherd_report_fini, safe on a zeroed report). A call begins by overwriting *r as a
 * whole and frees nothing of it: one that is used again is given to sherd_report_fini first.
 */
typedef struct sherd_report {
    uint32_t nodes;                 /* length of the arrays */
    uint32_t *planned;              /* columns of A (permute) or rows (plain) dealt to each node */
    double *exposed_a, *exposed_b;  /* fraction of each operand's entries each node was given */
    uint64_t *bytes_out, *bytes_in; /* of this call, per node, protocol bytes */
    sherd_node_state *states;       /* of each node when the call was over; sherd_cluster_node may
                                   know of later things */
    uint64_t work_out, work_in; /* of these, of all nodes together: blocks, tasks and results, with
                                   their headers. What sherd_forecast foretells */
    uint64_t tasks, tasks_repeated; /* accepted; sent again because a node was lost or wrong */
    uint64_t fragments;             /* permute: (row, group) pieces that a node multiplied */
    uint64_t panels, tiles;         /* row panels and column tiles of the plan */
    uint64_t rows_skipped;      /* wholly zero rows (entries, where group = 1) that were not sent */
    sherd_encoding encoding;    /* permute, plain: of the plan, DENSE or CSR; else AUTO */
    uint64_t tasks_csr;         /* tasks whose panel travelled in CSR, repeated ones once */
    uint32_t blocks, threshold; /* share, share1: K, and how many answers give a product back; else
                                   0 */
    uint32_t domains;           /* of the nodes: shares that were made */
    uint64_t tasks_cancelled;   /* answers that were no longer needed */
    uint32_t encodings;         /* share: 1, and one more for each time all shares were made anew */
    uint64_t masks_left;        /* blind: rows of masks that no product has used yet */
    uint32_t nodes_lost, nodes_banned; /* in this call, between its jobs too */
    char banned[256];                  /* names of those that were banned */
    int scale_a, scale_b;              /* exact: exponents s of the fixed point */
    uint32_t bits_a, bits_b;           /* exact: width of each operand, sign included */
    uint32_t primes;                   /* exact: 0 where one f64 product holds it */
    double check_error;  /* exact: that a wrong answer, each by itself, is accepted; element-
                                   wise: that one wrong entry is missed; float: 1, there is no
                                   bound */
    bool check_tolerant; /* float products: the check catches gross errors only */
    uint8_t seed[32];    /* the seed that was used: a secret of the coordinator */
    double seconds;      /* of the call */
} sherd_report;

SHERD_API void sherd_product_options_init(sherd_product_options *opt);
SHERD_API void sherd_report_fini(sherd_report *r);

/**
 * C = A*B over the cluster. A is n x k, B is k x m, C is n x m, row-major f64 with ldc >= m.
 *
 * exact: bit for bit the fixed-point product of matrix/reference.h on one machine. Float: each
 * entry within the usual bound gamma_k |A||B|; bits do not depend on arrival order.
 * Every answer is checked (Freivalds; docs/THREATS.md, "Verification") before it is folded into C.
 * On failure C's contents are undefined and nothing else was written.
 *
 * Errors: SHERD_ESHAPE; SHERD_ERANGE NaN or infinity in exact mode, or no set of primes holds the
 * product; SHERD_EFEWNODES; SHERD_EEXPOSURE; SHERD_ETIMEOUT; SHERD_EINTERRUPTED; SHERD_EWRONG
 * (strict); SHERD_ENOMEM. r may be NULL.
 * Who learns it: see docs/THREATS.md; C stays here.
 */
SHERD_API int sherd_multiply(sherd_cluster *c, sherd_view a, sherd_view b, double *out, size_t ldc,
                             const sherd_product_options *opt, sherd_report *r,
                             sherd_diag *d) SHERD_MUST;

/**
 * out = op(A) or op(A, B), entry by entry, all n x m; b is ignored for one-operand operations. One
 * permutation per row, the same for both operands; float64 only. A secret sample of each answer is
 * recomputed here: r->check_error says how likely one wrong entry is to be missed.
 */
SHERD_API int sherd_apply(sherd_cluster *c, sherd_elementwise op, sherd_view a, sherd_view b,
                          double *out, size_t ldc, const sherd_product_options *opt,
                          sherd_report *r, sherd_diag *d) SHERD_MUST;

/** A right operand that stays resident at the nodes over many products. */
typedef struct sherd_resident sherd_resident;

/**
 * Keeps B (k x m) at the nodes for products with an A of up to n_max rows; exact: of at most
 * opt->bits, integers included, else that product is SHERD_ERANGE. Exposures are drawn once, here.
 * B's memory must stay valid until sherd_resident_free, which also drops the nodes' blocks; so must
 * what *opt points to (names, progress_ctx, shuffles), though not its seed, which is copied.
 */
SHERD_API int sherd_resident_new(sherd_resident **out, sherd_cluster *c, sherd_view b, size_t n_max,
                                 const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
/** C = A * kept B; as sherd_multiply otherwise. */
SHERD_API int sherd_resident_multiply(sherd_resident *kept, sherd_view a, double *out, size_t ldc,
                                      sherd_report *r, sherd_diag *d) SHERD_MUST;
SHERD_API void sherd_resident_free(sherd_resident *kept);

/**
 * A multiplier (multiplier.h) whose products and element-wise operations run over the cluster, with
 * these options; element-wise ones in float64, whatever opt->exact says. The cluster is borrowed
 * and must outlive the multiplier, as must the names and progress_ctx of *opt; its seed is copied.
 * Progress and log lines come as in sherd_multiply.
 *
 * A kept operand K is copied here and stays at the nodes as a right operand: K*B is computed as
 * (B^T K^T)^T, and K^T*B as (B^T K)^T. Each direction is sent at its first use, and once more when
 * B has more columns than before or after a product that failed, under the same exposures and
 * permutations: they belong to the operand and are drawn once, when it is kept. All that it shows,
 * in both directions and every time, is held to opt->exposure_max together (rows and columns added
 * up); the default is twice the largest planned sum. Products of operands that are not kept are
 * dealt by exposures that depend on the number of columns alone, so that one operand in many
 * products shows a node the same columns.
 *
 * Parts of K (sherd_multiplier_keep_parts): every range of rows that a product takes is sent at its
 * first use, in each direction, with permutations of its own under K's exposures, and stays while
 * there is room; all ranges are counted together.
 *
 * Private schemes: a kept K stays at the nodes as shares of a left operand, which serve K*B and
 * K^T*B, and any range of its parts; each B's masks are fresh. Sums of K^T*B run over the rows of
 * one part: over more they are SHERD_ERANGE where the primes do not hold them. Element-wise
 * operations are computed here: they would show their operands.
 *
 * Errors: SHERD_EINVAL (opt->shuffles: stored tables are for one operation, not for many),
 * SHERD_EUNSUPPORTED (opt->shuffle_rows: not with kept operands; SHERD_BLIND: masks serve one B),
 * SHERD_ENOMEM; *out is zeroed then.
 * Who learns it: as for sherd_multiply. permute: a node sees its share of the columns of K if K*B
 * is computed, and its share of the rows of K if K^T*B is: with both, the union of the two.
 */
SHERD_API int sherd_multiplier_cluster(sherd_multiplier *out, sherd_cluster *c,
                                       const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;

#ifdef __cplusplus
}
#endif

#endif
