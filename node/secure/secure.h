/*
 * Secure aggregation on a node (docs/PROTOCOL.md, "Secure aggregation"): what a coordinator may ask
 * of examples that stay here. The rules that keep a mask from being opened are those of
 * crypto/aggregate.h; here is which of them a task may reach, whose keys are believed, and that one
 * question of a round is answered at most once, whether it went well or not.
 *
 * Of the node's own examples nothing leaves but sums under a mask. Whether a task is refused, why,
 * the size of its answer and the work it takes depend on what the coordinator asked, on the node's
 * policy and ledger (node/secure/policy.h), and on how many columns the examples have; on nothing
 * else of them.
 *
 * The loop's thread makes all calls but sherd__secure_run, which the compute thread makes between
 * sherd__secure_admit and sherd__secure_done; one at a time.
 */
#ifndef NODE_SECURE_SECURE_H
#define NODE_SECURE_SECURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/rand.h"
#include "learn/local_data.h"
#include "node/later.h"
#include "node/pool.h"
#include "node/secure/policy.h"
#include "node/store.h"
#include "wire/identity.h"
#include "wire/session.h"

/** What a node brings to it; all borrowed. */
typedef struct sherd__secure_self {
    const sherd_identity *identity; /* NULL: it takes no part */
    const sherd__own *data;         /* NULL: none */
    const sherd__peers *peers;      /* whose keys it believes; NULL: those that the coordinator
                                       names */
    const sherd__policy *policy;    /* of data; not looked at for examples that are dealt */
    sherd__ledger_ref ledger;       /* of data */
} sherd__secure_self;

typedef struct sherd__secure_site {
    sherd__secure_self self;
    sherd__later later;
    sherd__pool *pool;
    sherd__store *store;
    sherd__entropy entropy;                    /* of masks; fill NULL: the system's */
    uint8_t coordinator[SHERD__LEDGER_DIGEST]; /* the print of the client's key; zeros: unknown */
} sherd__secure_site;

/** One client's part in it. */
typedef struct sherd__secure sherd__secure;

/** Whether this operation is one of these. */
bool sherd__secure_op(uint32_t op);
int sherd__secure_new(sherd__secure **out, const sherd__secure_site *site) SHERD_MUST;
/** Wipes, now or later; not while a task is admitted and not done. NULL is allowed. */
void sherd__secure_free(sherd__secure *s);

/**
 * A task of these operations has come, with its blocks: may it be queued? JOIN begins anew: what
 * was before is wiped, and memory for all that follows is reserved. SHERD_EUNSUPPORTED: it has no
 * identity; SHERD_EREFUSED: its policy; SHERD_EBUSY: a JOIN before what was asked earlier is done;
 * SHERD_EINVAL, SHERD_EFORMAT, SHERD_ESHAPE: what makes no sense; SHERD_ENOMEM.
 */
int sherd__secure_admit(sherd__secure *s, const sherd__task *t, const sherd__block *left,
                        const sherd__block *right, sherd_diag *d) SHERD_MUST;
/**
 * Does it; out has t->result.len bytes. stop: looked at between parts of long work, none of which
 * depends on examples; where it is set, SHERD_EINTERRUPTED, and what the round was charged stays
 * charged. SHERD_EINVAL: not now, or not again; SHERD_EAUTH: a key
 * that nobody vouches for, or survivors that a member did not confirm; SHERD_EFRAME: a piece that
 * is not what its sender sealed; SHERD_EEXPOSURE: its policy, of a round; SHERD_ESHAPE,
 * SHERD_EFEWNODES, SHERD_EIO (the ledger), SHERD_ENOMEM. out is wiped then.
 */
int sherd__secure_run(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                      const sherd__fragment *right, uint8_t *out, const atomic_bool *stop,
                      sherd_diag *d) SHERD_MUST;
/** What was admitted is over, run or not. */
void sherd__secure_done(sherd__secure *s);
/** The job is over: wipes, now or when what is admitted is done. */
void sherd__secure_forget(sherd__secure *s, uint64_t job);

#endif
