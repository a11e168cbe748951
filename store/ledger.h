/*
 * The privacy cost spent so far on a file of examples. It is a journal (store/journal.h) next to
 * that file, and outlives the process of the node.
 *
 *     sherd-ledger-1
 *     member KEY
 *     set NUMBER FIRST-LAST ...
 *     upload DAY JOB FIRST ROWS RHO ABOUT NUMBER U BY
 *     bind ABOUT MEMBERS
 *
 * DAY is a date (UTC), JOB 16 hexadecimal digits, FIRST and ROWS the positions from which the
 * upload was computed, RHO its cost (crypto/privacy.h; "inf" without noise), ABOUT a digest of the
 * subject of the computation, NUMBER the set of members for which it was computed
 * (store/rosters.h), U how many of them open a sum, BY the fingerprint of the coordinator's key.
 * `bind` records that a sum of ABOUT was opened over the members with this digest. Keys and digests
 * are 64 hexadecimal digits.
 *
 * Costs are stored by position: rounds over disjoint positions do not add up for any example. If a
 * ledger is removed, or replaced by an older copy, the cost spent is forgotten: its owner must
 * protect it.
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
    /* bytes per day that name members, for one coordinator; twice as many for all together */
    SHERD__LEDGER_NAMED = 4 << 20
};

typedef struct sherd__ledger_upload {
    int64_t day; /* days since 1970-01-01 */
    uint64_t job, first, rows;
    double rho;
    uint8_t about[SHERD__LEDGER_KEY];
    const uint8_t (*keys)[SHERD__LEDGER_KEY]; /* of the roster, ascending; borrowed */
    uint32_t nodes, threshold;
    uint8_t by[SHERD__LEDGER_KEY]; /* fingerprint of the coordinator's key */
} sherd__ledger_upload;

/** The recorded sums of one ABOUT. Pointers are valid until the next call. */
typedef struct sherd__ledger_known {
    const uint8_t (*keys)[SHERD__LEDGER_KEY]; /* of the last upload's roster; NULL: none */
    uint32_t nodes, threshold;
    const uint8_t *opened; /* MEMBERS of the bind; NULL: none */
} sherd__ledger_known;

typedef struct sherd__ledger_sum {
    uint64_t uploads;
    double rho; /* of the position with the highest cost */
} sherd__ledger_sum;

/** Opens the ledger. Creates it if it does not exist and `must_exist` is false. The caller closes
 *  *out with sherd__ledger_close. Errors: those of sherd__journal_open, such as SHERD_EBUSY if
 *  another process has it open, and SHERD_EFORMAT if it must exist and does not. */
int sherd__ledger_open(sherd__ledger **out, const char *path, bool must_exist,
                       sherd_diag *d) SHERD_MUST;
/** Returns true if the ledger was created when it was opened. */
bool sherd__ledger_made(const sherd__ledger *l);
/** Closes the ledger. NULL is allowed. */
void sherd__ledger_close(sherd__ledger *l);

/** Returns the highest cost of any of these positions. */
double sherd__ledger_spent(const sherd__ledger *l, uint64_t first, uint64_t rows);
/** Returns the number of uploads for this job of this coordinator. */
uint64_t sherd__ledger_job(const sherd__ledger *l, const uint8_t *by, uint64_t job);
/** Returns the number of uploads of this day and later ones, which exist if the clock was set back;
 *  for one coordinator, or for all (`by` NULL). */
uint64_t sherd__ledger_since(const sherd__ledger *l, int64_t day, const uint8_t *by);
sherd__ledger_known sherd__ledger_known_of(const sherd__ledger *l,
                                           const uint8_t about[SHERD__LEDGER_KEY]);
sherd__ledger_sum sherd__ledger_all(const sherd__ledger *l);

/** Record a charge or a binding. It is durable when the call returns. Repeating a binding has no
 *  effect. Errors: SHERD_EIO, SHERD_ENOMEM: nothing may be sent; SHERD_EEXPOSURE: the set of
 *  members is new and the limit of bytes that name members on this day is reached, or ABOUT is
 *  already bound to other MEMBERS, which is kept. */
int sherd__ledger_charge(sherd__ledger *l, const sherd__ledger_upload *u, sherd_diag *d) SHERD_MUST;
int sherd__ledger_bind(sherd__ledger *l, const uint8_t about[SHERD__LEDGER_KEY],
                       const uint8_t members[SHERD__LEDGER_KEY], sherd_diag *d) SHERD_MUST;

#endif
