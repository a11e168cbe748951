/* Preparing by scheme: what prepare.c calls in the files of its schemes. */
#ifndef SCHEDULER_PLAN_PREPARE_INTERNAL_H
#define SCHEDULER_PLAN_PREPARE_INTERNAL_H

#include "scheduler/plan/prepare.h"

/** What messages call an operand. */
static inline const char *sherd__name_a(const sherd_product_options *opt)
{
    return opt->name_a ? opt->name_a : "A";
}

static inline const char *sherd__name_b(const sherd_product_options *opt)
{
    return opt->name_b ? opt->name_b : "B";
}

/** Fixed point of both operands under a private scheme, and the primes that hold sums of `inner`
 *  products: of shapes, types and bits alone. SHERD_ERANGE; SHERD_EINVAL (a type that is wider than
 *  the bits that were asked for). */
int sherd__prepare_bounds(sherd__prepared *p, sherd_view a, sherd_view b, size_t inner,
                          const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
/** share, share1; shapes have been checked and p->planned has nodes->count entries.
 *  SHERD_EFEWNODES, SHERD_ERANGE, SHERD_EINVAL, SHERD_EFORMAT (domains that cannot be told apart),
 *  SHERD_ENOMEM. */
int sherd__prepare_share(sherd__prepared *p, sherd_view a, sherd_view b, double *c, size_t ldc,
                         const sherd__nodes *nodes, const sherd_product_options *opt,
                         sherd_diag *d) SHERD_MUST;
/** blind, by the masks of opt->masks. SHERD_EEXPOSURE (too few rows left, another B, an older
 *  copy), SHERD_EINVAL, SHERD_ESHAPE, SHERD_ERANGE, and errors of the file. c NULL: it is only
 *  looked at. */
int sherd__prepare_blind(sherd__prepared *p, sherd_view a, sherd_view b, double *c, size_t ldc,
                         const sherd__nodes *nodes, const sherd_product_options *opt,
                         sherd_diag *d) SHERD_MUST;

/** blind: whether the masks' width holds A. SHERD_ERANGE; SHERD_EINVAL: not the width that was
 *  asked for; errors of the file. */
int sherd__prepare_blind_range(sherd_view a, const sherd_product_options *opt,
                               sherd_diag *d) SHERD_MUST;

/** Plans for nodes->rooms, or nodes->memory where that is NULL: p->plan and p->node_memory.
 *  in->node_memory and in->smallest are filled in. SHERD_EFEWNODES. */
int sherd__prepare_cut(sherd__prepared *p, sherd__plan_input *in, const sherd__nodes *nodes,
                       sherd_diag *d) SHERD_MUST;

/** Where masks, check vectors and seeds that nobody gave are drawn from: nodes->entropy, or the
 *  system's. */
sherd_entropy sherd__prepare_entropy(const sherd__nodes *nodes);

/** share, share1 of an A that is kept (or the windows of its rows, which nodes take), for right
 *  operands to come: sherd__prepared_right before each run. Primes hold sums over the columns;
 *  those over the rows of one part too, or panel by panel (schemes/share/share.h). *p is to be
 *  sherd__prepared_fini'd in any case. Errors as sherd__prepare_share. */
int sherd__prepare_kept(sherd__prepared *p, sherd_view a, const sherd_keeping *how,
                        const sherd__nodes *nodes, const sherd_product_options *opt,
                        sherd_diag *d) SHERD_MUST;
/** The next B, and where A*B (transposed: A^T*B) goes, A being `rows` of it (of its
 *  windows, where they are kept): whole parts.
 *  SHERD_ERANGE, SHERD_ESHAPE, SHERD_EINVAL, SHERD_ENOMEM. */
int sherd__prepared_right(sherd__prepared *p, sherd_rows rows, sherd_view b, bool transposed,
                          double *c, size_t ldc, const sherd_product_options *opt,
                          sherd_diag *d) SHERD_MUST;

#endif
