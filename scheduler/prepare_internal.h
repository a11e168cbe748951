/* Preparing by scheme: what prepare.c calls in the files of its schemes. */
#ifndef SCHEDULER_PREPARE_INTERNAL_H
#define SCHEDULER_PREPARE_INTERNAL_H

#include "scheduler/prepare.h"

/** Fixed point of both operands under a private scheme, and the primes that hold sums of `inner`
 *  products: of shapes, types and bits alone. SHERD_ERANGE. */
int sherd__prepare_bounds(sherd__prepared *p, sherd_view a, sherd_view b, size_t inner,
                          const sherd_product_options *opt, sherd_diag *d) SHERD_MUST;
/** share, share1; shapes have been checked and p->planned has nodes->count entries. SHERD_EFEWNODES,
 *  SHERD_ERANGE, SHERD_EINVAL, SHERD_EFORMAT (domains that cannot be told apart), SHERD_ENOMEM. */
int sherd__prepare_share(sherd__prepared *p, sherd_view a, sherd_view b, double *c, size_t ldc,
                         const sherd__nodes *nodes, const sherd_product_options *opt,
                         sherd_diag *d) SHERD_MUST;

#endif
