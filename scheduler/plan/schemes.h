/*
 * The schemes: the description of each (sherd/scheme.h) and the functions that plan and open its
 * products. A scheme is added by its own files and one line of the table in schemes.c.
 */
#ifndef SCHEDULER_PLAN_SCHEMES_H
#define SCHEDULER_PLAN_SCHEMES_H

#include "scheduler/plan/prepare.h"
#include "sherd/scheme.h"

/** How products under a scheme are planned. What goes wrong comes with a message that names the
 *  operand or the option, and the remedy. */
typedef struct sherd__planner {
    /** What can be said of the operands' values before there are nodes: whether fixed point holds
     *  them, and primes their sums. NULL: nothing. */
    int (*range)(sherd_view a, sherd_view b, const sherd_product_options *opt, sherd_diag *d);
    /** Fewest domains of nodes that opt->colluding and opt->spare take. NULL: 1. */
    uint64_t (*least)(const sherd_product_options *opt);
    /**
     * Plans C = A*B and opens its hiding: p->hiding, p->plan, p->slots, p->threshold and
     * whatever a report says of it. Shapes, strides and options have been checked, p->planned has
     * nodes->count entries. c NULL: nothing will be run, but for a.data NULL (KEEPS_RIGHT).
     * p is the caller's to free, also after a failure.
     */
    int (*prepare)(sherd__prepared *p, sherd_view a, sherd_view b, double *c, size_t ldc,
                   const sherd__nodes *nodes, const sherd_product_options *opt, sherd_diag *d);
    /** SHERD_KEEPS_RIGHT: the next A for the same B, and where the product goes. SHERD_ESHAPE. */
    int (*next)(sherd__prepared *p, sherd_view a, double *c, size_t ldc, uint32_t bits,
                sherd_diag *d);
    /** SHERD_KEEPS_LEFT: plans and opens an A that stays; and the next B for `rows` of it. */
    int (*keep)(sherd__prepared *p, sherd_view a, const sherd_keeping *how,
                const sherd__nodes *nodes, const sherd_product_options *opt, sherd_diag *d);
    int (*right)(sherd__prepared *p, sherd_rows rows, sherd_view b, bool transposed, double *c,
                 size_t ldc, const sherd_product_options *opt, sherd_diag *d);
    /** The last step before a run; then nothing may be sent if it fails. NULL: there is none. */
    int (*ready)(sherd__prepared *p, sherd_diag *d);
} sherd__planner;

typedef struct sherd__scheme {
    const sherd_scheme_info *info;
    const sherd__planner *planner;
} sherd__scheme;

/** All of them; the last has no info. */
extern const sherd__scheme sherd__schemes[];
/** That of a scheme; NULL: there is none. */
const sherd__scheme *sherd__scheme_find(sherd_scheme s);

extern const sherd__planner sherd__partition_planner; /* permute, plain */
extern const sherd__planner sherd__share_planner;     /* share, share1 */
extern const sherd__planner sherd__blind_planner;

#endif
