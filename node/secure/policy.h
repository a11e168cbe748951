/*
 * What the owner of examples allows, whatever a coordinator asks. Checked before anything is
 * computed; a refusal says what the policy is and nothing else, so it tells nothing of the
 * examples.
 *
 * What rounds have cost so far is in a ledger that outlives the process (store/ledger.h), reached
 * through an interface, since a node reads no files.
 */
#ifndef NODE_SECURE_POLICY_H
#define NODE_SECURE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "learn/secure.h"
#include "sherd/err.h"

typedef struct sherd__policy {
    uint32_t nodes_min, colluding_min; /* of a plan */
    uint64_t rows_min;                 /* places of every round, the last of an epoch too */
    uint64_t rows_max;                 /* places of a round: it keeps the node from others as long
                                          as these take; 0: any number */
    uint64_t rounds_max, rounds_day;   /* uploads for one job, and for one coordinator in a day
                                          (UTC); in one day for all */
    double epsilon, delta;             /* budget of every example; epsilon infinite: no bound, and
                                          rounds without noise */
    bool any_peers;                    /* takes part without a file of peers, too */
    bool any_roster;                   /* gives the same sum to other members, too */
} sherd__policy;

/** What the command gives a node unless its owner says otherwise. */
#define SHERD__POLICY_DEFAULT                                                                      \
    {                                                                                              \
        .nodes_min = 3, .colluding_min = 1, .rows_min = 32, .rows_max = 1048576,                   \
        .rounds_max = 10000, .rounds_day = 20000, .epsilon = 8, .delta = 1e-6                      \
    }

enum { SHERD__LEDGER_DIGEST = 32 };

/** One upload, before it is computed. */
typedef struct sherd__charge {
    uint8_t coordinator[SHERD__LEDGER_DIGEST]; /* whose training it is: the print of its key */
    uint64_t job, first, rows;                 /* the places that it reads */
    double rho;                          /* what it costs (crypto/privacy.h); may be infinite */
    uint8_t about[SHERD__LEDGER_DIGEST]; /* what is computed: parameters, places */
    const uint8_t (*keys)[SHERD__LEDGER_DIGEST]; /* of all members, ascending; borrowed */
    uint32_t nodes, threshold;
} sherd__charge;

/** What is known of sums of one `about`. */
typedef struct sherd__charged {
    const uint8_t (*keys)[SHERD__LEDGER_DIGEST]; /* the members that it was last charged for; NULL:
                                                    never. Valid until the next call */
    uint32_t nodes, threshold;
    const uint8_t *opened; /* digest of the members that a sum was opened over; NULL: none was */
} sherd__charged;

/** What was charged. Called by one thread at a time. */
typedef struct sherd__ledger_ops {
    /** The most that any of these places has been charged. */
    double (*spent)(void *ctx, uint64_t first, uint64_t rows);
    /** Uploads for this job of a coordinator; today's for one, or NULL: for all. */
    uint64_t (*rounds)(void *ctx, const uint8_t *coordinator, uint64_t job);
    uint64_t (*today)(void *ctx, const uint8_t *coordinator);
    sherd__charged (*charged)(void *ctx, const uint8_t about[SHERD__LEDGER_DIGEST]);
    /** Synced when it returns. A failure: nothing may be sent. SHERD_EEXPOSURE: a new set of
     *  members, and no more of them are written down on this day. */
    int (*charge)(void *ctx, const sherd__charge *c, sherd_diag *d);
    /** A sum of `about` is opened over the members of this digest. Synced likewise.
     *  SHERD_EEXPOSURE where one was over others: that one stays. */
    int (*bind)(void *ctx, const uint8_t about[SHERD__LEDGER_DIGEST],
                const uint8_t members[SHERD__LEDGER_DIGEST], sherd_diag *d);
} sherd__ledger_ops;

typedef struct sherd__ledger_ref {
    const sherd__ledger_ops *ops;
    void *ctx;
} sherd__ledger_ref;

/** Of a plan that was parsed. SHERD_EREFUSED. */
int sherd__policy_join(const sherd__policy *p, const sherd__secure_plan *plan, bool peers,
                       sherd_diag *d) SHERD_MUST;
/**
 * Charges an upload, or refuses it. budget: the rho of p's epsilon and delta (crypto/privacy.h).
 * SHERD_EEXPOSURE, fewer places or more rounds than are allowed,
 * a budget that would be exceeded, or the same sum as before among other members; SHERD_EIO where
 * the ledger cannot be written. Every upload is charged, whether it will be part of a sum or not.
 *
 * A sum that is asked for again may be among fewer of the same members, if no fewer open it: any U
 * of the first ones and any U' >= U of a part of them have an honest node in common, since
 * 2U > N + T, and a node that was asked to open one set opens no other
 * (sherd__policy_open), in whatever session. So of one `about` the sums that this node gives to are
 * opened over one set at most.
 */
int sherd__policy_charge(const sherd__policy *p, double budget, sherd__ledger_ref ledger,
                         const sherd__charge *c, sherd_diag *d) SHERD_MUST;
/** Whether a sum of what was charged under `about` may be opened over these members:
 *  SHERD_EEXPOSURE where one was over others. Binds nothing: what is opened is opened by
 *  sherd__policy_open. */
int sherd__policy_confirm(const sherd__policy *p, sherd__ledger_ref ledger,
                          const uint8_t about[SHERD__LEDGER_DIGEST],
                          const uint8_t members[SHERD__LEDGER_DIGEST], sherd_diag *d) SHERD_MUST;
/** Before a node answers for these members: binds what was charged under `about` to them. The same
 *  SHERD_EEXPOSURE, since another session may have opened it between; SHERD_EIO where the ledger
 *  cannot be written. */
int sherd__policy_open(const sherd__policy *p, sherd__ledger_ref ledger,
                       const uint8_t about[SHERD__LEDGER_DIGEST],
                       const uint8_t members[SHERD__LEDGER_DIGEST], sherd_diag *d) SHERD_MUST;

#endif
