/*
 * From what a user asks to what a job needs: operands looked at, seed and exposures drawn, the cut
 * planned, the scheme opened, the ledger set up. No node is involved: the simulation, --dry-run and
 * the cluster start from the same.
 */
#ifndef SCHEDULER_PLAN_PREPARE_H
#define SCHEDULER_PLAN_PREPARE_H

#include "core/rand.h"
#include "crypto/lagrange.h"
#include "matrix/fixed.h"
#include "scheduler/plan/encoding.h"
#include "scheduler/plan/ledger.h"
#include "scheduler/plan/plan.h"
#include "sherd/product.h"
#include "store/maskfile.h"

/** The nodes as far as preparing needs to know them. */
typedef struct sherd__nodes {
    uint32_t count;
    const uint32_t *domain; /* per node, 0.. */
    uint32_t domains;
    uint64_t memory;         /* of the smallest, as it declared, less what is kept there */
    const char *smallest;    /* its name; NULL: none stands out */
    const uint64_t *budgets; /* of each usable domain's smallest node, ascending; NULL: all alike */
    const uint64_t *rooms;   /* of each node that is up, ascending; NULL: memory */
    uint32_t rooms_len;
    uint32_t usable;                        /* domains of which a node is up and none has lied */
    uint32_t older;                         /* of these, such as take no windows of images */
    const char *domain_fault, *domain_hint; /* why domains are not to be counted on; NULL: they
                                               are */
    double gflops;                          /* of the slowest, as it measured; 0: not known */
    double gflops_most;                     /* of the fastest */
    double residue_gflops; /* of packed residues, in the same way; 0: not all nodes multiply them
                               as they travel */
    double residue_gflops_most;
    uint32_t threads;              /* most that one has */
    bool remote;                   /* not all are on loopback */
    const sherd__entropy *entropy; /* NULL: the system's. A simulation's own, which replays it */
} sherd__nodes;

typedef struct sherd__prepared {
    sherd__hiding hiding;
    sherd__exposure_ledger *ledger;
    sherd__plan plan;
    const sherd_scheme_info *scheme;      /* of opt->scheme */
    const struct sherd__planner *planner; /* of a product: the scheme's; else NULL */
    uint32_t op;                          /* sherd__op */
    bool elementwise, exact, shape_only;
    const char *name_a, *name_b; /* in messages */
    sherd__fixed fixed_a, fixed_b;
    const sherd__fixed *as; /* while preparing: what fixed_b is to be; NULL: it is chosen */
    uint32_t primes_len;
    bool tolerant; /* float: the check has a tolerance */
    double check_error;
    uint64_t entries_a;
    size_t size_a, size_b; /* bytes of an operand's element on the wire; of A: at most */
    uint32_t *exposures;   /* k or m; NULL: plain */
    uint32_t *planned;     /* per slot */
    uint32_t slots;
    bool b_finite;
    sherd_encoding asked; /* permute, plain: how A travels, as asked for and as it was chosen */
    sherd__encoding_input encoding_in;
    sherd__encoding encoding;
    sherd__lcc code; /* share: the code, and how many answers decode */
    uint32_t threshold;
    size_t coded_rows, coded_cols, coded_part; /* share: A, and rows of it that are cut together */
    uint64_t kept_bytes;                       /* of an A that stays, at each node */
    uint64_t node_memory; /* what nodes are counted on to have: those that declared less are passed
                              over; 0: none is */
    sherd__maskfile *masks; /* blind: open, and locked where a run will follow */
    uint64_t mask_rows;     /* that the run will use up */
    sherd_diag mask_fault;  /* what went wrong with them during the run */
    sherd__entropy entropy; /* masks and check vectors: fresh, never from the seed */
    uint8_t seed[32], perm_key[32], rows_key[32]; /* wiped */
    sherd_shuffles shuffles;                      /* what opt->shuffles pointed to */
} sherd__prepared;

/**
 * Prepares C = A*B. a.data may be NULL with a.rows the most rows that any A will have: then
 * sherd__prepared_next must bring an A before the first run. *p must stay where it is.
 */
int sherd__prepare_multiply(sherd__prepared *p, sherd_view a, sherd_view b, double *c, size_t ldc,
                            const sherd__nodes *nodes, const sherd_product_options *opt,
                            sherd_diag *d) SHERD_MUST;
/** The same where B is a part of an operand of which this is the fixed point. */
int sherd__prepare_part(sherd__prepared *p, sherd_view a, sherd_view b, const sherd__fixed *as,
                        double *c, size_t ldc, const sherd__nodes *nodes,
                        const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
int sherd__prepare_apply(sherd__prepared *p, uint32_t op, sherd_view a, sherd_view b, double *out,
                         size_t ldo, const sherd__nodes *nodes, const sherd_product_options *opt,
                         sherd_diag *d) SHERD_MUST;
/**
 * What can be said of the operands' values before there are nodes: whether fixed point holds them
 * in the bits that were asked for (blind: those of the masks), and primes their sums, as preparing
 * would say it. SHERD_ERANGE, SHERD_EINVAL.
 */
int sherd__prepare_range(sherd_view a, sherd_view b, const sherd_product_options *opt,
                         sherd_diag *d) SHERD_MUST;
/** Fewest domains of nodes that the scheme takes by opt->colluding and opt->spare. */
uint64_t sherd__prepare_least(const sherd_product_options *opt);
/**
 * What can be said of opt->exposure_max before there are nodes or anybody looks at operands:
 * whether the exposures of `len` columns, which seed or shuffles decide, keep to it where each node
 * is a domain of its own. SHERD_EEXPOSURE as preparing would say it; what passes may still fail
 * there.
 */
int sherd__prepare_exposures(size_t len, uint32_t nodes, const sherd_product_options *opt,
                             sherd_diag *d) SHERD_MUST;
/** The next A (at most the rows prepared for) and where its product goes: SHERD_KEEPS_RIGHT. */
int sherd__prepared_next(sherd__prepared *p, sherd_view a, double *c, size_t ldc, uint32_t bits,
                         sherd_diag *d) SHERD_MUST;
/**
 * An A that is kept (or the windows of its rows, which nodes take), for right operands to come:
 * sherd__prepared_right before each run. *p is to be sherd__prepared_fini'd in any case.
 * SHERD_EUNSUPPORTED: not SHERD_KEEPS_LEFT; errors as sherd__prepare_multiply.
 */
int sherd__prepare_kept(sherd__prepared *p, sherd_view a, const sherd_keeping *how,
                        const sherd__nodes *nodes, const sherd_product_options *opt,
                        sherd_diag *d) SHERD_MUST;
/** The next B, and where A*B (transposed: A^T*B) goes, A being `rows` of it (of its windows, where
 *  they are kept): whole parts. SHERD_ERANGE, SHERD_ESHAPE, SHERD_EINVAL, SHERD_ENOMEM. */
int sherd__prepared_right(sherd__prepared *p, sherd_rows rows, sherd_view b, bool transposed,
                          double *c, size_t ldc, const sherd_product_options *opt,
                          sherd_diag *d) SHERD_MUST;
/** SHERD_EEXPOSURE, by a domain's name, where the plan alone would break the exposure bound:
 *  nothing was sent then, and nothing should be. Preparing has asked it of the first A. */
int sherd__prepared_allowed(const sherd__prepared *p, const sherd__nodes *nodes,
                            sherd_diag *d) SHERD_MUST;
/** The last step before a run: masks that it will use up are checked. They are struck off, for
 *  good, when the first cell is hidden, and no cell is before a node is up. SHERD_EIO,
 *  SHERD_EFORMAT, SHERD_ENOMEM; then nothing may be sent. */
int sherd__prepared_ready(sherd__prepared *p, sherd_diag *d) SHERD_MUST;
/** After a run that failed: says in *d what was wrong with its masks, where that was the reason. */
void sherd__prepared_why(const sherd__prepared *p, int err, sherd_diag *d);
void sherd__prepared_fini(sherd__prepared *p);

#endif
