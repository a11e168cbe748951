/*
 * What each domain has been shown of one operand, over all jobs that send it. A ledger asks it
 * about operand B; a kept operand owns one and hands it to every ledger of its, so that what was
 * shown before a failure, under another cut or in the other direction still counts.
 */
#ifndef SCHEDULER_PLAN_EXPOSURE_H
#define SCHEDULER_PLAN_EXPOSURE_H

#include <stdint.h>

#include "sherd/err.h"

/** Directions in which an operand is dealt: by its rows, and by its columns. */
#define SHERD__SIDES 2u

typedef struct sherd__account sherd__account;

/** `parts` are the slots of either side. */
int sherd__account_new(sherd__account **out, uint32_t domains, uint32_t parts) SHERD_MUST;
void sherd__account_free(sherd__account *a);
/** The share of the operand that a side's plan gives the domain; a later plan takes its place. */
void sherd__account_plan(sherd__account *a, unsigned side, uint32_t domain, double share);
/** The side's plan was not carried out. */
void sherd__account_unplan(sherd__account *a, unsigned side);
/** The shares of both sides together, 1 at most. */
double sherd__account_planned(const sherd__account *a, uint32_t domain);
/** How many of the entries [from, to) of a part the domain has not been shown on this side. */
uint64_t sherd__account_unseen(const sherd__account *a, unsigned side, uint32_t domain,
                               uint32_t part, uint64_t from, uint64_t to);
/** Records them as shown. SHERD_ENOMEM, and nothing recorded. */
int sherd__account_show(sherd__account *a, unsigned side, uint32_t domain, uint32_t part,
                        uint64_t from, uint64_t to) SHERD_MUST;
/**
 * Entries shown to the domain: the sum of both sides. An entry that is in a row and in a column of
 * the domain's counts twice, so this is never too little; it may exceed the operand.
 */
uint64_t sherd__account_seen(const sherd__account *a, uint32_t domain);

#endif
