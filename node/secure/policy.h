/*
 * Limits that the owner of examples sets, which no coordinator can change. They are checked before
 * anything is computed. The text of a refusal has the policy and nothing else, so it reveals
 * nothing of the examples.
 *
 * The cost of earlier rounds is in a ledger that outlives the process (store/ledger.h). It is
 * reached through an interface, since a node reads no files.
 */
#ifndef NODE_SECURE_POLICY_H
#define NODE_SECURE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "learn/secure.h"
#include "sherd/err.h"

typedef struct sherd__policy {
    uint32_t nodes_min, colluding_min; /* required of a plan */
    uint64_t rows_min;                 /* places of every round, also of the last one of an epoch */
    uint64_t rows_max;                 /* places of a round, since they keep the node from serving
                                          others; 0: any number */
    uint64_t rounds_max, rounds_day;   /* uploads for one job, and for one coordinator in a day
                                          (UTC); uploads in one day for all */
    double epsilon, delta;             /* budget of every example; epsilon infinite: no limit, and
                                          rounds without noise are allowed */
    bool any_peers;                    /* takes part also without a file of peers */
    bool any_roster;                   /* gives the same sum also to other members */
} sherd__policy;

/** The command's policy for a node unless its owner sets another one. */
#define SHERD__POLICY_DEFAULT                                                                      \
    {                                                                                              \
        .nodes_min = 3, .colluding_min = 1, .rows_min = 32, .rows_max = 1048576,                   \
        .rounds_max = 10000, .rounds_day = 20000, .epsilon = 8, .delta = 1e-6                      \
    }

enum { SHERD__LEDGER_DIGEST = 32 };

/** One upload, before it is computed. */
typedef struct sherd__charge {
    uint8_t coordinator[SHERD__LEDGER_DIGEST];   /* fingerprint of its key */
    uint64_t job, first, rows;                   /* the places that it reads */
    double rho;                                  /* its cost (crypto/privacy.h); may be infinite */
    uint8_t about[SHERD__LEDGER_DIGEST];         /* digest of the parameters and places */
    const uint8_t (*keys)[SHERD__LEDGER_DIGEST]; /* keys of all members, ascending; borrowed */
    uint32_t nodes, threshold;
} sherd__charge;

/** What the ledger has about sums of one `about`. */
typedef struct sherd__charged {
    const uint8_t (*keys)[SHERD__LEDGER_DIGEST]; /* the members of its last charge; NULL: never
                                                    charged. Valid until the next call */
    uint32_t nodes, threshold;
    const uint8_t *opened; /* digest of the members of an opened sum; NULL: no sum */
} sherd__charged;

/** Access to the ledger. Called by one thread at a time. */
typedef struct sherd__ledger_ops {
    /** Returns the highest charge of any of these places. */
    double (*spent)(void *ctx, uint64_t first, uint64_t rows);
    /** rounds: returns the uploads for this job of a coordinator. today: returns today's uploads
     *  for one coordinator, or with NULL for all. */
    uint64_t (*rounds)(void *ctx, const uint8_t *coordinator, uint64_t job);
    uint64_t (*today)(void *ctx, const uint8_t *coordinator);
    sherd__charged (*charged)(void *ctx, const uint8_t about[SHERD__LEDGER_DIGEST]);
    /** Writes a charge, synced on return. After a failure nothing may be sent. Returns
     *  SHERD_EEXPOSURE for a new set of members above the day's limit of new sets. */
    int (*charge)(void *ctx, const sherd__charge *c, sherd_diag *d);
    /** Records that a sum of `about` is opened over the members of this digest; synced on return.
     *  Returns SHERD_EEXPOSURE where one was opened over others: that record stays. */
    int (*bind)(void *ctx, const uint8_t about[SHERD__LEDGER_DIGEST],
                const uint8_t members[SHERD__LEDGER_DIGEST], sherd_diag *d);
} sherd__ledger_ops;

typedef struct sherd__ledger_ref {
    const sherd__ledger_ops *ops;
    void *ctx;
} sherd__ledger_ref;

/** Checks a parsed plan against the policy. Returns SHERD_EREFUSED where it is not allowed. */
int sherd__policy_join(const sherd__policy *p, const sherd__secure_plan *plan, bool peers,
                       sherd_diag *d) SHERD_MUST;
/**
 * Charges an upload, or refuses it. budget: the rho of p's epsilon and delta (crypto/privacy.h).
 * Every upload is charged, whether it will be part of a sum or not.
 *
 * Errors: SHERD_EEXPOSURE for fewer places or more rounds than are allowed, a budget that would be
 * exceeded, or the same sum as before among other members; SHERD_EIO where the ledger cannot be
 * written.
 *
 * A sum that is requested again may be among fewer of the same members, if no fewer of them open
 * it: any U of the first set and any U' >= U of a subset of it have an honest node in common, since
 * 2U > N + T, and a node that was asked to open one set opens no other (sherd__policy_open), in any
 * session. So sums of one `about` that include this node's upload are opened over one set at most.
 */
int sherd__policy_charge(const sherd__policy *p, double budget, sherd__ledger_ref ledger,
                         const sherd__charge *c, sherd_diag *d) SHERD_MUST;
/** Checks whether a sum that was charged under `about` may be opened over these members. Returns
 *  SHERD_EEXPOSURE where one was opened over others. Binds nothing: this is done by
 *  sherd__policy_open. */
int sherd__policy_confirm(const sherd__policy *p, sherd__ledger_ref ledger,
                          const uint8_t about[SHERD__LEDGER_DIGEST],
                          const uint8_t members[SHERD__LEDGER_DIGEST], sherd_diag *d) SHERD_MUST;
/** Binds what was charged under `about` to these members, before the node answers for them. Returns
 *  SHERD_EEXPOSURE as above, since another session may have opened it in between, and SHERD_EIO
 *  where the ledger cannot be written. */
int sherd__policy_open(const sherd__policy *p, sherd__ledger_ref ledger,
                       const uint8_t about[SHERD__LEDGER_DIGEST],
                       const uint8_t members[SHERD__LEDGER_DIGEST], sherd_diag *d) SHERD_MUST;

#endif
