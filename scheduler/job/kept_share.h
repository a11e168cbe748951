/*
 * An operand whose shares stay at the nodes over many products (SHERD_KEEPS_LEFT): X is
 * sent once, only fresh shares of the other operand travel. Its masks are fixed while they are
 * there, the other operand's are fresh each time (So et al., arXiv 1902.00641: safe over all
 * products).
 */
#ifndef SCHEDULER_JOB_KEPT_SHARE_H
#define SCHEDULER_JOB_KEPT_SHARE_H

#include "scheduler/cluster/internal.h"

typedef struct sherd__kept_share sherd__kept_share;

/** `a` is borrowed and must stay as it is until the operand is freed; `how` is copied, and is what
 *  sherd_multiplier_keep_as lets pass. Windows are taken by the nodes. Errors of sherd_multiply. */
int sherd__kept_share_new(sherd__kept_share **out, sherd_cluster *c, sherd_view a,
                          const sherd_keeping *how, const sherd_product_options *opt,
                          sherd_diag *d) SHERD_MUST;
/** C = A*B, or A^T*B (not where B is public: SHERD_EUNSUPPORTED), A being `rows` of it (of
 *  its windows, where windows are kept), whole parts. SHERD_ERANGE: sums over the rows of several
 *  parts that neither the primes nor 63 bits hold. As sherd_multiply otherwise; after a failure, or
 *  when too few domains are left, A is coded and sent anew. r may be NULL. */
int sherd__kept_share_multiply(sherd__kept_share *k, sherd_rows rows, bool transposed, sherd_view b,
                               double *out, size_t ldc, sherd_report *r, sherd_diag *d) SHERD_MUST;
/** The nodes drop their shares and wipe them. NULL is allowed. */
void sherd__kept_share_free(sherd__kept_share *k);

#endif
