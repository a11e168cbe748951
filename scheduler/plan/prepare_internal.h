/* Preparing by scheme: what prepare.c calls in the files of its schemes. */
#ifndef SCHEDULER_PLAN_PREPARE_INTERNAL_H
#define SCHEDULER_PLAN_PREPARE_INTERNAL_H

#include "scheduler/plan/schemes.h"

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
/** Plans for nodes->rooms, or nodes->memory where that is NULL: p->plan and p->node_memory.
 *  in->node_memory and in->smallest are filled in. SHERD_EFEWNODES. */
int sherd__prepare_cut(sherd__prepared *p, sherd__plan_input *in, const sherd__nodes *nodes,
                       sherd_diag *d) SHERD_MUST;

/** Where masks, check vectors and seeds that nobody gave are drawn from: nodes->entropy, or the
 *  system's. */
sherd_entropy sherd__prepare_entropy(const sherd__nodes *nodes);

#endif
