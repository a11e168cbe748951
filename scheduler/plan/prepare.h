/*
 * Prepares a job from a user's request: examines the operands, draws seed and exposures, plans the
 * partition, opens the scheme, and sets up the ledger. No node is involved: the simulation,
 * --dry-run and the cluster all use these functions.
 */
#ifndef SCHEDULER_PLAN_PREPARE_H
#define SCHEDULER_PLAN_PREPARE_H

#include "core/rand.h"
#include "crypto/code.h"
#include "crypto/fragment_make.h"
#include "matrix/fixed.h"
#include "matrix/operation.h"
#include "matrix/residue_bytes.h"
#include "scheduler/plan/encoding.h"
#include "scheduler/plan/ledger.h"
#include "scheduler/plan/plan.h"
#include "sherd/product.h"
#include "store/maskfile.h"
#include "wire/session.h"

#define SHERD__SCHEME_DEFAULT SHERD_PERMUTE /* sherd_product_options.scheme 0 */

/** Copies a user's options to *own and sets defaults. Errors of sherd__options_read. */
int sherd__product_options_read(sherd_product_options *own, const sherd_product_options *opt,
                                sherd_diag *d) SHERD_MUST;
/** Sets options to their defaults. */
void sherd__product_options_init(sherd_product_options *opt);

/** Kinds of work whose speeds are kept apart: a device may be fast at one and slow at another. */
typedef enum sherd__work_kind {
    SHERD__WORK_F64,
    SHERD__WORK_RESIDUES,
    SHERD__WORK_BYTES,
    SHERD__WORK_MAPS, /* element-wise operations */
    SHERD__WORK_KINDS
} sherd__work_kind;

/** What a node declares, for forecasts. */
typedef struct sherd__node_speed {
    const char *name; /* valid as long as the cluster; NULL: it takes no part */
    bool device;      /* it computes on a device, not on a processor */
    uint32_t threads;
    uint32_t sharing; /* nodes that compute on its device, this one included; 0: unknown */
    sherd__hello_rates declared;
} sherd__node_speed;

/** The properties of the nodes that preparing needs. */
typedef struct sherd__nodes {
    uint32_t count;
    const uint32_t *domain; /* by node, numbered from 0 */
    uint32_t domains;
    uint64_t memory;         /* least that a node declared, less the memory of kept operands */
    const char *smallest;    /* name of that node; NULL: not a single one */
    const uint64_t *budgets; /* by usable domain: least memory, ascending; NULL: all equal */
    const uint64_t *rooms;   /* of each node that is up, ascending; NULL: use `memory` */
    uint32_t rooms_len;
    const bool
        *seeds;      /* by domain: its nodes that are up, at least one, expand seeds; NULL: none */
    uint32_t usable; /* domains with a node up and none banned */
    uint32_t older;  /* of these, unable to process windows */
    const char *domain_fault, *domain_hint; /* why domains cannot be trusted to be separate; NULL:
                                               they can */
    double gflops;         /* of the slowest node, all its devices together; 0: unknown */
    double residue_gflops; /* as gflops, for packed residues; 0: not all nodes multiply them without
                              unpacking */
    double byte_gops;      /* as gflops, for byte residues; 0: not all nodes multiply them */
    /* By node, for schemes that divide the work (SHERD_TAKES_WEIGHTS): weights that the list of
       nodes gives; what the speeds in each kind of work suggest. NULL: all equal. */
    const uint32_t *weights, *speeds[SHERD__WORK_KINDS];
    /* By node: rates that they declare, and how fast they answered as a fraction of the median.
       NULL or 0: unknown. Only forecasts use them. */
    const double *rates, *paces;
    const sherd__node_speed *each; /* by node, likewise; NULL: no node is known */
    bool no_csr;                   /* some node computes no products with an operand in CSR */
    uint64_t cell;    /* size of a result, in bytes, that suits more than half of the nodes: smaller
                              ones slow them down; 0: unknown */
    uint32_t depth;   /* tasks in progress that keep more than half of the nodes busy; 0: unknown */
    uint32_t threads; /* largest number at one node */
    bool remote;      /* at least one node is not on loopback */
    sherd__body_memory bodies;     /* for blocks that are sent once; outlives the product */
    const sherd__entropy *entropy; /* NULL: the system's. A simulation uses its own, to be
                                      reproducible */
} sherd__nodes;

typedef struct sherd__prepared {
    sherd__hiding hiding;
    sherd__exposure_ledger *ledger;
    sherd__plan plan;
    const sherd_scheme_info *scheme;      /* of opt->scheme */
    const struct sherd__planner *planner; /* of the scheme, for products; otherwise NULL */
    uint32_t op;                          /* a sherd__op */
    bool elementwise, exact, shape_only;
    const char *name_a, *name_b; /* for messages */
    sherd__fixed fixed_a, fixed_b;
    const sherd__fixed *as; /* while preparing: required fixed_b; NULL: chosen */
    bool bytes;             /* share: the primes are below 256 */
    uint32_t primes_len, primes[SHERD__BYTE_PRIMES];
    bool tolerant; /* floats: the check has a tolerance */
    double check_error;
    uint64_t entries_a;
    size_t size_a, size_b; /* bytes of an operand's element, as transferred; of A: at most */
    uint32_t *exposures;   /* k or m; NULL: plain */
    uint32_t *planned;     /* by slot */
    uint32_t slots;
    const double *rates, *paces; /* of the nodes, for forecasts */
    bool b_finite;
    sherd_encoding asked; /* permute, plain: how A is sent, as requested; the choice is in
                             `encoding` */
    sherd__encoding_input encoding_in;
    sherd__encoding encoding;
    const sherd__code *coded_by; /* share: the code, its sizes, and the number of answers needed to
                                    decode */
    sherd__lcc code;
    uint32_t threshold;
    size_t coded_rows, coded_cols, coded_part; /* share: shape of A, and number of its rows that are
                                                  divided together */
    uint64_t kept_bytes;                       /* of a kept A, at each node */
    uint64_t node_memory; /* that the plan assumes at nodes: those that declared less are left out;
                             0: none is left out */
    sherd__maskfile *masks; /* blind: open, and locked if a run will follow */
    uint64_t mask_rows;     /* that the run will use */
    sherd_diag mask_fault;  /* error with masks during the run */
    sherd__entropy entropy; /* for masks and check vectors: fresh, never derived from the seed */
    uint8_t seed[32], perm_key[32], rows_key[32]; /* secret; wiped */
    sherd_shuffles shuffles;                      /* copy of *opt->shuffles */
} sherd__prepared;

/**
 * Prepares C = A*B. m->a.data may be NULL if m->a.rows is the largest number of rows of any A; then
 * sherd__prepared_next must set an A before the first run. *p must not be moved. The caller frees
 * it with sherd__prepared_fini.
 */
int sherd__prepare_multiply(sherd__prepared *p, const sherd__matrices *m, const sherd__nodes *nodes,
                            const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
/** As sherd__prepare_multiply, where B is a part of an operand with this fixed point. */
int sherd__prepare_part(sherd__prepared *p, const sherd__matrices *m, const sherd__fixed *as,
                        const sherd__nodes *nodes, const sherd_product_options *opt,
                        sherd_diag *d) SHERD_MUST;
/** Prepares an element-wise operation, a sherd_op. */
int sherd__prepare_apply(sherd__prepared *p, uint32_t op, const sherd__matrices *m,
                         const sherd__nodes *nodes, const sherd_product_options *opt,
                         sherd_diag *d) SHERD_MUST;
/** Checks that A*B exists and is not too large. SHERD_ESHAPE. */
int sherd__prepare_shapes(sherd_view a, sherd_view b, const sherd_product_options *opt,
                          sherd_diag *d) SHERD_MUST;
/** Checks that an element-wise operation of two operands exists. SHERD_ESHAPE. */
int sherd__prepare_apply_shapes(sherd_view a, sherd_view b, const sherd_product_options *opt,
                                sherd_diag *d) SHERD_MUST;
/**
 * Returns whether the parts of nodes may follow measured speeds. Ranges of rows may in exact mode:
 * the bits of floats depend on where rows are cut. Exposures may unless the user has determined
 * them, by a seed of theirs, stored tables, `balanced` or a bound.
 */
bool sherd__prepare_follows_speeds(const sherd_product_options *opt);
/** Returns which kind of work the product or operation is. */
sherd__work_kind sherd__prepared_kind(const sherd__prepared *p);
/** Returns whether a node that answers without computing is found: the check of each answer covers
 *  all of its entries, and to the last bit. */
bool sherd__prepared_verified(const sherd__prepared *p);
/** Returns the least number of domains that the scheme needs for opt->colluding and opt->spare. */
uint64_t sherd__prepare_least(const sherd_product_options *opt);
/** Sets the next A, m->a (at most as many rows as prepared for), and the destination of its
 *  product. Of *opt, bits and hooks are read. Requires SHERD_KEEPS_RIGHT. */
int sherd__prepared_next(sherd__prepared *p, const sherd__matrices *m,
                         const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
/**
 * Prepares an A that is kept at the nodes for right operands that follow. With how->windows, the
 * nodes use windows of the rows of A. sherd__prepared_right must be called before each run. The
 * caller must call sherd__prepared_fini on *p in any case. SHERD_EUNSUPPORTED: the scheme lacks
 * SHERD_KEEPS_LEFT; other errors as sherd__prepare_multiply.
 */
int sherd__prepare_kept(sherd__prepared *p, sherd_view a, const sherd_keep_options *how,
                        const sherd__nodes *nodes, const sherd_product_options *opt,
                        sherd_diag *d) SHERD_MUST;
/** Sets the next B and the destination of A*B (transposed: A^T*B), where A is `rows` of the kept
 *  operand (of its windows if these are kept), in whole parts. SHERD_ERANGE, SHERD_ESHAPE,
 *  SHERD_EINVAL, SHERD_ENOMEM. */
int sherd__prepared_right(sherd__prepared *p, const sherd__kept_product *m,
                          const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
/** Returns SHERD_EEXPOSURE, with the domain in *d, if the plan alone would exceed the exposure
 *  bound; then nothing has been sent, and nothing may be. Preparing has already checked this for
 *  the first A. */
int sherd__prepared_allowed(const sherd__prepared *p, const sherd__nodes *nodes,
                            sherd_diag *d) SHERD_MUST;
/** The last step before a run: checks the masks that it will use. They are invalidated permanently
 *  when the first cell is hidden, which happens only after a node is up. SHERD_EIO, SHERD_EFORMAT,
 *  SHERD_ENOMEM; then nothing may be sent. */
int sherd__prepared_ready(sherd__prepared *p, sherd_diag *d) SHERD_MUST;
/** After a failed run: describes in *d the problem with its masks, if that was the reason. */
void sherd__prepared_why(const sherd__prepared *p, int err, sherd_diag *d);
/** After a run: sets members of *r that only the scheme has. */
void sherd__prepared_report(const sherd__prepared *p, sherd_report *r);
void sherd__prepared_fini(sherd__prepared *p);

#endif
