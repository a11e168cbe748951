/*
 * What the privacy of a file of examples has cost so far: a journal (store/journal.h) beside it
 * that outlives the process of the node.
 *
 *     sherd-ledger-1
 *     member KEY
 *     set NUMBER FIRST-LAST ...
 *     upload DAY JOB FIRST ROWS RHO ABOUT NUMBER U BY
 *     bind ABOUT MEMBERS
 *
 * DAY is a date (UTC), JOB 16 hexadecimal digits, FIRST and ROWS the places that the upload was
 * computed from, RHO its cost (crypto/privacy.h; "inf" without noise), ABOUT a digest of what was
 * computed, NUMBER the set of members that it was computed for (store/rosters.h), U how many of
 * them open a sum, BY the print of the coordinator's key. `bind` says that a sum of ABOUT was
 * opened over the members of this digest. Keys and digests are 64 hexadecimal digits.
 *
 * Costs are kept by place: rounds over disjoint places do not add up for any example. A ledger that
 * is removed, or replaced by an older copy, forgets what was spent: it is its owner's to keep.
 */
#ifndef STORE_LEDGER_H
#define STORE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__ledger sherd__ledger;

enum {
    SHERD__LEDGER_KEY = 32,
    SHERD__LEDGER_NAMED = 4 << 20 /* bytes that name members, of one coordinator in a day; of all
                                     together twice as many */
};

typedef struct sherd__ledger_upload {
    int64_t day; /* since 1970-01-01 */
    uint64_t job, first, rows;
    double rho;
    uint8_t about[SHERD__LEDGER_KEY];
    const uint8_t (*keys)[SHERD__LEDGER_KEY]; /* of the roster, ascending; borrowed */
    uint32_t nodes, threshold;
    uint8_t by[SHERD__LEDGER_KEY]; /* the print of the coordinator's key */
} sherd__ledger_upload;

/** What is known of sums of one ABOUT; pointers are valid until the next call. */
typedef struct sherd__ledger_known {
    const uint8_t (*keys)[SHERD__LEDGER_KEY]; /* of the last upload's roster; NULL: none */
    uint32_t nodes, threshold;
    const uint8_t *opened; /* MEMBERS of the bind; NULL: none */
} sherd__ledger_known;

typedef struct sherd__ledger_sum {
    uint64_t uploads;
    double rho; /* of the place that was charged most */
} sherd__ledger_sum;

/** Opens the ledger, making it where it does not exist and `must_exist` is false. Errors of
 *  sherd__journal_open: SHERD_EBUSY where another process has it, SHERD_EFORMAT where it must exist
 *  and does not. */
int sherd__ledger_open(sherd__ledger **out, const char *path, bool must_exist,
                       sherd_diag *d) SHERD_MUST;
/** Whether it was made when it was opened. */
bool sherd__ledger_made(const sherd__ledger *l);
/** NULL is allowed. */
void sherd__ledger_close(sherd__ledger *l);

/** The most that any of these places was charged. */
double sherd__ledger_spent(const sherd__ledger *l, uint64_t first, uint64_t rows);
/** Uploads for this training of this coordinator. */
uint64_t sherd__ledger_job(const sherd__ledger *l, const uint8_t *by, uint64_t job);
/** Uploads of this day and of later ones, which a clock that was set back leaves; for one
 *  coordinator, or for all (`by` NULL). */
uint64_t sherd__ledger_since(const sherd__ledger *l, int64_t day, const uint8_t *by);
sherd__ledger_known sherd__ledger_known_of(const sherd__ledger *l,
                                           const uint8_t about[SHERD__LEDGER_KEY]);
sherd__ledger_sum sherd__ledger_all(const sherd__ledger *l);

/** Both last when they return; to bind once more is nothing new. SHERD_EIO, SHERD_ENOMEM: nothing
 *  may be sent. SHERD_EEXPOSURE: a new set of members, and no more of them are written down on this
 *  day; ABOUT is bound to other MEMBERS, and stays so. */
int sherd__ledger_charge(sherd__ledger *l, const sherd__ledger_upload *u, sherd_diag *d) SHERD_MUST;
int sherd__ledger_bind(sherd__ledger *l, const uint8_t about[SHERD__LEDGER_KEY],
                       const uint8_t members[SHERD__LEDGER_KEY], sherd_diag *d) SHERD_MUST;

#endif
