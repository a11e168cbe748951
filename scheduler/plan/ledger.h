/*
 * What each domain has been given of a job's operands, in distinct entries, and whether it may be
 * given more. Asked before every send; it alone holds the bound, whatever the plan says. Under a
 * scheme with a threshold the bound is one share of an encoding per domain, and one domain per
 * share.
 */
#ifndef SCHEDULER_PLAN_LEDGER_H
#define SCHEDULER_PLAN_LEDGER_H

#include "scheduler/plan/exposure.h"
#include "schemes/scheme.h"

typedef struct sherd__exposure_ledger sherd__exposure_ledger;

typedef struct sherd__ledger_options {
    const sherd__hiding *hiding; /* for shape and entries; outlives the ledger */
    uint32_t domains;
    double max_fraction; /* of either operand to one domain; 0: twice the largest planned */
    const uint32_t *domain_of_slot; /* slots: the domain that the plan gives each slot to; copied */
} sherd__ledger_options;

int sherd__ledger_new(sherd__exposure_ledger **out, const sherd__ledger_options *opt) SHERD_MUST;
void sherd__ledger_free(sherd__exposure_ledger *l);
/** B as a part of a larger operand, in entries by slot. */
typedef struct sherd__ledger_whole {
    const uint64_t *before; /* of the slot, ahead of the part's; those of parts that overlap, too */
    const uint64_t *all;    /* of the slot, of the whole operand */
    double max_fraction;    /* of the whole operand, and of A */
} sherd__ledger_whole;

/**
 * Operand B is counted in this account, with all that it holds already, from now on; it outlives
 * the ledger, and has its domains and slots. A bound that follows the plan is then twice the
 * largest sum of what the plans of both sides give a domain. `whole`, or NULL: fractions and the
 * bound are of the whole operand, and the first block of a slot counts as all that the slot has of
 * the part. Before anything was given. SHERD_ENOMEM.
 */
int sherd__ledger_follow(sherd__exposure_ledger *l, sherd__account *account, unsigned side,
                         const sherd__ledger_whole *whole) SHERD_MUST;
/** Whether giving `cell` (and its slot's resident block) to `domain` keeps the bound. */
bool sherd__ledger_may(const sherd__exposure_ledger *l, uint32_t domain, sherd__cell cell);
/** Records it: SHERD_EEXPOSURE, and nothing recorded, where it would break the bound;
 *  SHERD_ENOMEM. */
int sherd__ledger_give(sherd__exposure_ledger *l, uint32_t domain, sherd__cell cell) SHERD_MUST;
/** Forgets operand A (not a share's holder): the next product with the same resident B. A bound
 *  that follows the plan is set anew from the scheme's new shape; one that was given stays. */
void sherd__ledger_next_left(sherd__exposure_ledger *l);
/** Fraction of operand A (which = 0) or B (1) that the domain has been given. */
double sherd__ledger_fraction(const sherd__exposure_ledger *l, uint32_t domain, int which);
/** The bound in force for operand A (0) or B (1). */
double sherd__ledger_bound(const sherd__exposure_ledger *l, int which);
/** The largest share that the bound admits: it is rounded to whole entries. */
double sherd__ledger_fits(const sherd__exposure_ledger *l, int which);
/** The largest share of operand A (0) or B (1) that the plan gives a domain, and which domain. */
double sherd__ledger_planned(const sherd__exposure_ledger *l, int which, uint32_t *domain);

#endif
