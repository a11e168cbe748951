/*
 * An operand X whose shares stay at the nodes for many products (SHERD_KEEPS_LEFT). X is sent once;
 * after that only fresh shares of the other operand are sent. The masks of X are fixed while its
 * shares are at the nodes; those of the other operand are fresh for each product (So et al., arXiv
 * 1902.00641: private over all products).
 */
#ifndef SCHEDULER_JOB_KEPT_SHARE_H
#define SCHEDULER_JOB_KEPT_SHARE_H

#include "scheduler/cluster/internal.h"

typedef struct sherd__kept_share sherd__kept_share;

/** Encodes and sends `a`. `a` is borrowed and must not change until the operand is freed. `how` is
 *  copied; it must be valid for sherd_multiplier_keep. Nodes extract windows themselves. The
 *  caller frees *out with sherd__kept_share_free. Errors of sherd_multiply. */
int sherd__kept_share_new(sherd__kept_share **out, sherd_cluster *c, sherd_view a,
                          const sherd_keep_options *how, const sherd_product_options *opt,
                          sherd_diag *d) SHERD_MUST;
/** Computes C = A*B or A^T*B, where A is `rows` of the operand (of its windows if these are kept),
 *  in whole parts. SHERD_EUNSUPPORTED: A^T*B with a public B, by the inner-product code, or of an
 *  operand that is kept for one direction. SHERD_ERANGE: neither the primes nor
 *  63 bits hold sums over the rows of several parts. Otherwise as sherd_multiply. After a failure,
 *  or if too few domains are left, A is encoded and sent again. r may be NULL. */
int sherd__kept_share_multiply(sherd__kept_share *k, const sherd__kept_product *m, sherd_report *r,
                               sherd_diag *d) SHERD_MUST;
/** Makes the nodes drop and wipe their shares, and frees k. NULL is allowed. */
void sherd__kept_share_free(sherd__kept_share *k);

#endif
