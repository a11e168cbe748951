/* Functions and types shared by prepare.c and the planners of the schemes. */
#ifndef SCHEDULER_PLAN_PREPARE_INTERNAL_H
#define SCHEDULER_PLAN_PREPARE_INTERNAL_H

#include "crypto/perm.h"
#include "scheduler/plan/profile.h"
#include "scheduler/plan/schemes.h"

/** Returns the name of operand A for messages. */
static inline const char *sherd__name_a(const sherd_product_options *opt)
{
    return opt->name_a ? opt->name_a : "A";
}

static inline const char *sherd__name_b(const sherd_product_options *opt)
{
    return opt->name_b ? opt->name_b : "B";
}

/** Plans for nodes->rooms, or for nodes->memory if that is NULL, and sets p->plan and
 *  p->node_memory. Sets in->node_memory and in->smallest. SHERD_EFEWNODES. */
int sherd__prepare_cut(sherd__prepared *p, sherd__plan_input *in, const sherd__nodes *nodes,
                       sherd_diag *d) SHERD_MUST;

/** Returns whether the nodes are given columns of A, with shuffled rows of B; otherwise they are
 *  given rows of A. */
static inline bool sherd__prepare_shuffles(const sherd__prepared *p)
{
    return p->scheme->takes & SHERD_TAKES_SHUFFLES;
}

/** Draws seed, keys and exposures of `len` columns or positions, or uses the stored ones. weights:
 *  of the nodes (NULL: equal); not used with stored exposures. SHERD_ENOMEM; SHERD_EFORMAT: an
 *  exposure is not a node. */
int sherd__prepare_draw(sherd__prepared *p, size_t len, const uint32_t *weights,
                        const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
/** Returns the weights by which the product is divided: those of the list, or those of speeds in
 *  its kind of work if it follows them; its primes must be chosen. NULL: equal. */
const uint32_t *sherd__prepare_weights(const sherd__prepared *p, const sherd__nodes *nodes,
                                       const sherd_product_options *opt);
/** Counts in p->planned the columns of each slot according to the exposures. Returns the largest
 *  number. */
size_t sherd__prepare_widest(const sherd__prepared *p, size_t len);
/** Returns the source of the permutations of B's columns: drawn or stored. */
sherd__perm_source sherd__prepare_perms(sherd__prepared *p, const sherd_product_options *opt);

/** Returns the source of masks, check vectors and seeds that the user did not give: nodes->entropy,
 *  or the system's. */
sherd__entropy sherd__prepare_entropy(const sherd__nodes *nodes);

#endif
