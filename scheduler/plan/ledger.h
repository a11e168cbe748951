/*
 * Records which entries of a job's operands each domain has been given, and decides whether it may
 * be given more. The ledger is asked before every send, and it alone enforces the bound,
 * independently of the plan. Under a scheme with a threshold the bound is one share of an encoding
 * per domain, and one domain per share.
 */
#ifndef SCHEDULER_PLAN_LEDGER_H
#define SCHEDULER_PLAN_LEDGER_H

#include "scheduler/plan/exposure.h"
#include "schemes/scheme.h"

typedef struct sherd__exposure_ledger sherd__exposure_ledger;

typedef struct sherd__ledger_options {
    const sherd__hiding *hiding; /* for shape and entries; must outlive the ledger */
    uint32_t domains;
    double max_fraction; /* of either operand to one domain; 0: twice the largest planned share */
    const uint32_t *domain_of_slot; /* by slot: the domain to which the plan gives it; copied */
} sherd__ledger_options;

int sherd__ledger_new(sherd__exposure_ledger **out, const sherd__ledger_options *opt) SHERD_MUST;
void sherd__ledger_free(sherd__exposure_ledger *l);
/** Describes B as a part of a larger operand; numbers of entries by slot. */
typedef struct sherd__ledger_whole {
    const uint64_t *before; /* entries of the slot before the part, including those of overlapping
                               parts */
    const uint64_t *all;    /* entries of the slot in the whole operand */
    double max_fraction;    /* of the whole operand, and of A */
} sherd__ledger_whole;

/**
 * Counts operand B in this account from now on, together with all that it already records. The
 * account must outlive the ledger and have the same domains and slots. A bound that follows the
 * plan becomes twice the largest sum of the shares that the plans of both sides give to a domain.
 * With `whole` (NULL if B is a whole operand), fractions and the bound refer to the whole operand,
 * and the first block of a slot counts as all entries of the part in that slot. Must be called
 * before anything is given. SHERD_ENOMEM.
 */
int sherd__ledger_follow(sherd__exposure_ledger *l, sherd__exposure_account *account, unsigned side,
                         const sherd__ledger_whole *whole) SHERD_MUST;
/** Returns whether giving `cell` (and its slot's resident block) to `domain` keeps the bound. */
bool sherd__ledger_may(const sherd__exposure_ledger *l, uint32_t domain, sherd__cell cell);
/** Records that `cell` is given to `domain`. SHERD_EEXPOSURE: it would exceed the bound;
 *  SHERD_ENOMEM. On failure nothing is recorded. */
int sherd__ledger_give(sherd__exposure_ledger *l, uint32_t domain, sherd__cell cell) SHERD_MUST;
/** Forgets operand A (but not the holders of shares) for the next product with the same resident B.
 *  A bound that follows the plan is computed again from the scheme's new shape; a bound that was
 *  given is kept. */
void sherd__ledger_next_left(sherd__exposure_ledger *l);
/** Returns the fraction of operand A (which = 0) or B (1) that the domain has been given. */
double sherd__ledger_fraction(const sherd__exposure_ledger *l, uint32_t domain, int which);
/** Returns the bound in force for operand A (0) or B (1). */
double sherd__ledger_bound(const sherd__exposure_ledger *l, int which);
/** Returns the largest share that the bound permits, after rounding to whole entries. */
double sherd__ledger_fits(const sherd__exposure_ledger *l, int which);
/** Returns the largest share of operand A (0) or B (1) that the plan gives to a domain, and that
 *  domain. */
double sherd__ledger_planned(const sherd__exposure_ledger *l, int which, uint32_t *domain);

#endif
