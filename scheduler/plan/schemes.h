/*
 * The schemes: the description of each (sherd/scheme.h) and the functions that plan and open its
 * products. To add a scheme, add its own files and one line to the table in schemes.c.
 */
#ifndef SCHEDULER_PLAN_SCHEMES_H
#define SCHEDULER_PLAN_SCHEMES_H

#include "scheduler/plan/prepare.h"
#include "sherd/scheme.h"

/** Functions that plan the products of a scheme. Errors are reported with a message that names the
 *  operand or the option and says what to do. */
typedef struct sherd__planner {
    /** Checks the operands' values before there are nodes: whether fixed point holds them, and
     *  primes their sums. opt has profiles of both, whose values have been examined. NULL: no
     *  check. */
    int (*range)(sherd_view a, sherd_view b, const sherd_product_options *opt, sherd_diag *d);
    /** Returns the least number of domains of nodes for opt->colluding and opt->spare. NULL: 1. */
    uint64_t (*least)(const sherd_product_options *opt);
    /**
     * Plans C = A*B and opens its hiding: sets p->hiding, p->plan, p->slots, p->threshold and the
     * values that a report includes. Shapes, strides and options have been checked, and opt has
     * profiles of both operands; p->planned has nodes->count entries. If m->out is NULL there will
     * be no run, unless m->a.data is NULL (KEEPS_RIGHT). The caller frees p, also after a failure.
     */
    int (*prepare)(sherd__prepared *p, const sherd__matrices *m, const sherd__nodes *nodes,
                   const sherd_product_options *opt, sherd_diag *d);
    /** SHERD_KEEPS_RIGHT: sets the next A for the same B, and the destination of the product. opt
     *  has a profile of A. SHERD_ESHAPE. */
    int (*next)(sherd__prepared *p, const sherd__matrices *m, const sherd_product_options *opt,
                sherd_diag *d);
    /** SHERD_KEEPS_LEFT: `keep` plans and opens an A that is kept; `right` sets the next B for
     *  `rows` of it. */
    int (*keep)(sherd__prepared *p, sherd_view a, const sherd_keep_options *how,
                const sherd__nodes *nodes, const sherd_product_options *opt, sherd_diag *d);
    int (*right)(sherd__prepared *p, const sherd__kept_product *m, const sherd_product_options *opt,
                 sherd_diag *d);
    /** The last step before a run. If it fails, nothing may be sent. NULL: no such step. */
    int (*ready)(sherd__prepared *p, sherd_diag *d);
    /** After a run: sets members of *r that only this scheme has. NULL: there are none. */
    void (*report)(const sherd__prepared *p, sherd_report *r);
} sherd__planner;

typedef struct sherd__scheme {
    const sherd_scheme_info *info;
    const sherd__planner *planner;
} sherd__scheme;

/** All schemes; the last entry has info NULL. */
extern const sherd__scheme sherd__schemes[];
/** Returns the entry of a scheme, or NULL if there is none. */
const sherd__scheme *sherd__scheme_find(sherd_scheme s);

extern const sherd__planner sherd__partition_planner; /* permute, plain */
extern const sherd__planner sherd__share_planner;     /* share, share1 */
extern const sherd__planner sherd__blind_planner;

#endif
