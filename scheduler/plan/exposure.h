/*
 * Counts the entries of one operand that each domain has been shown, over all jobs that send it. A
 * ledger uses an account for operand B. A kept operand owns an account and passes it to each of its
 * ledgers. Entries shown before a failure, with another partition or in the other direction are
 * therefore counted as well.
 */
#ifndef SCHEDULER_PLAN_EXPOSURE_H
#define SCHEDULER_PLAN_EXPOSURE_H

#include <stdint.h>

#include "sherd/err.h"

/** Directions in which an operand is partitioned: by rows, and by columns. */
#define SHERD__SIDES 2u

typedef struct sherd__exposure_account sherd__exposure_account;

/** Creates an account. parts: slots of either side. The caller frees it with
 *  sherd__exposure_account_free. SHERD_ENOMEM. */
int sherd__exposure_account_new(sherd__exposure_account **out, uint32_t domains,
                                uint32_t parts) SHERD_MUST;
void sherd__exposure_account_free(sherd__exposure_account *a);
/** Sets the share of the operand that the plan of a side gives to the domain. Replaces that of an
 *  earlier plan. */
void sherd__exposure_account_plan(sherd__exposure_account *a, unsigned side, uint32_t domain,
                                  double share);
/** Removes the shares of a side whose plan was not carried out. */
void sherd__exposure_account_unplan(sherd__exposure_account *a, unsigned side);
/** Returns the sum of the shares of both sides, at most 1. */
double sherd__exposure_account_planned(const sherd__exposure_account *a, uint32_t domain);
/** Returns how many of the entries [from, to) of a part the domain has not been shown on this
 *  side. */
uint64_t sherd__exposure_account_unseen(const sherd__exposure_account *a, unsigned side,
                                        uint32_t domain, uint32_t part, uint64_t from, uint64_t to);
/** Records these entries as shown. SHERD_ENOMEM: nothing is recorded. */
int sherd__exposure_account_show(sherd__exposure_account *a, unsigned side, uint32_t domain,
                                 uint32_t part, uint64_t from, uint64_t to) SHERD_MUST;
/**
 * Returns the number of entries shown to the domain, summed over both sides. An entry that is in a
 * row and in a column given to the domain counts twice. The result is therefore never too small,
 * but may exceed the size of the operand.
 */
uint64_t sherd__exposure_account_seen(const sherd__exposure_account *a, uint32_t domain);

#endif
