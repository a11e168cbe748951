/*
 * Training on data that nodes bring, by secure aggregation: of their gradients this process gets
 * the sum, and nothing else (crypto/aggregate.h; docs/THREATS.md says under what assumptions). For
 * the command:
 *
 *     err = sherd__secure_open(&summer, cluster, &o, d);
 *     if (!err) err = sherd__stepper_summed(&stepper, &g, summer, 0, 0, d); // takes it
 *     ...
 *     sherd__stepper_free(stepper);  // before the cluster is closed
 *
 * From its opening to its end the cluster does nothing else.
 */
#ifndef SCHEDULER_SECURE_SECURE_H
#define SCHEDULER_SECURE_SECURE_H

#include "learn/gradients.h"
#include "sherd/cluster.h"
#include "store/sumlist.h"

typedef struct sherd__secure_options {
    const sherd__recipe *recipe; /* borrowed, until the summer is freed */
    uint32_t colluding;          /* T; 0: 1 */
    uint32_t survivors;          /* U; 0: the least that is safe */
    uint64_t rows, places;       /* of each node, of a step and of an epoch (learn/secure.h) */
    double clip, noise;          /* likewise; 0: none */
    const sherd__dataset *deal;  /* NULL: nodes bring their own. Else it is dealt to them, in order,
                                    and nothing is hidden: for simulations */
    sherd__sumlist *sums;        /* whom each sum was to be opened over, in earlier runs too: sums
                                    of one step are over the same nodes, or none. Borrowed; NULL:
                                    none are kept */
} sherd__secure_options;

/** What rounds have cost an example that was in all of them, those of earlier runs included: by the
 *  accountant of crypto/privacy.h. */
typedef struct sherd__secure_spent {
    uint64_t rounds; /* of all places */
    double rho;      /* of the place that was in most; infinite without noise */
} sherd__secure_spent;
sherd__secure_spent sherd__secure_spent_of(const sherd__summer *s);

/**
 * All nodes that are up when this is called and can take part do; one that is lost, and one that
 * comes later, does from the next sum on that begins when it is up. SHERD_EFEWNODES: fewer than 3,
 * or than U, here or in a later sum, or one is not there that is in a sum which was not opened, or
 * was in an earlier run; SHERD_EINVAL: thresholds that are not safe (sherd__aggregate_check); what
 * nodes say of the recipe, of each other and of their policies, where too few are left;
 * SHERD_EINTERRUPTED, SHERD_ENOMEM.
 */
int sherd__secure_open(sherd__summer *out, sherd_cluster *c, const sherd__secure_options *opt,
                       sherd_diag *d) SHERD_MUST;

#endif
