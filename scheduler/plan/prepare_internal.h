/* Preparing by scheme: what prepare.c calls in the files of its schemes. */
#ifndef SCHEDULER_PLAN_PREPARE_INTERNAL_H
#define SCHEDULER_PLAN_PREPARE_INTERNAL_H

#include "crypto/perm.h"
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

/** Whether A's columns are dealt to the nodes, and B's shuffled; else nodes have rows of A. */
static inline bool sherd__prepare_shuffles(const sherd__prepared *p)
{
    return p->scheme->takes & SHERD_TAKES_SHUFFLES;
}

/** Draws seed, keys and exposures of `len` columns or positions, or takes those that are stored.
 *  SHERD_ENOMEM; SHERD_EFORMAT: an exposure that is no node. */
int sherd__prepare_draw(sherd__prepared *p, size_t len, const sherd_product_options *opt,
                        sherd_diag *d) SHERD_MUST;
/** Counts in p->planned the columns that each slot has by these exposures; returns the most. */
size_t sherd__prepare_widest(const sherd__prepared *p, size_t len);
/** The permutations of B's columns that were drawn, or are stored. */
sherd__perm_source sherd__prepare_perms(sherd__prepared *p, const sherd_product_options *opt);

/** Where masks, check vectors and seeds that nobody gave are drawn from: nodes->entropy, or the
 *  system's. */
sherd__entropy sherd__prepare_entropy(const sherd__nodes *nodes);

#endif
