/*
 * Secure aggregation on a node (docs/PROTOCOL.md, "Secure aggregation"): operations of a
 * coordinator on examples that stay on the node. crypto/aggregate.h has the rules that keep a mask
 * from being opened. This file decides which of them a task may reach and which keys are trusted,
 * and ensures that each question of a round is answered at most once, with or without success.
 *
 * Of the node's own examples, only sums under a mask leave the node. Whether a task is refused, the
 * reason, the size of its result and the work that it takes depend on the coordinator's request, on
 * the node's policy and ledger (node/secure/policy.h), and on the number of columns of the
 * examples; on nothing else of them.
 *
 * The loop's thread makes all calls except sherd__secure_run, which the compute thread makes
 * between sherd__secure_admit and sherd__secure_done, one at a time.
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

/** The node's own state for it; all members are borrowed. */
typedef struct sherd__secure_self {
    const sherd_identity *identity; /* NULL: the node takes no part */
    const sherd__own *data;         /* NULL: no examples of its own */
    const sherd__peers *peers;      /* trusted keys; NULL: those that the coordinator names */
    const sherd__policy *policy;    /* for data; not used for dealt examples */
    sherd__ledger_ref ledger;       /* for data */
} sherd__secure_self;

typedef struct sherd__secure_site {
    sherd__secure_self self;
    sherd__later later;
    sherd__pool *pool;
    sherd__store *store;
    sherd__arithmetic by;                      /* of gradients */
    sherd__entropy entropy;                    /* for masks; fill NULL: the system's */
    uint8_t coordinator[SHERD__LEDGER_DIGEST]; /* fingerprint of the client's key; zeros: unknown */
} sherd__secure_site;

/** The state of one client. */
typedef struct sherd__secure sherd__secure;

/** Returns whether this operation belongs to secure aggregation. */
bool sherd__secure_op(uint32_t op);
int sherd__secure_new(sherd__secure **out, const sherd__secure_site *site) SHERD_MUST;
/** Wipes and frees, now or later. No task may be admitted and not done. NULL is allowed. */
void sherd__secure_free(sherd__secure *s);

/**
 * Checks whether an arrived task of these operations, with its blocks, may be queued. JOIN starts a
 * new training: the earlier state is wiped, and memory for everything that follows is reserved.
 *
 * Errors: SHERD_EUNSUPPORTED where the node has no identity; SHERD_EREFUSED by its policy;
 * SHERD_EBUSY for a JOIN while earlier tasks are not done; SHERD_EINVAL, SHERD_EFORMAT and
 * SHERD_ESHAPE where the task's data are invalid; SHERD_ENOMEM.
 */
int sherd__secure_admit(sherd__secure *s, const sherd__task *t, const sherd__block *left,
                        const sherd__block *right, sherd_diag *d) SHERD_MUST;
/**
 * Runs a task; out has t->result.len bytes. `stop` is checked between parts of long work, at points
 * that do not depend on examples. Where it is set, SHERD_EINTERRUPTED is returned, and the round's
 * charge stays in the ledger. On error out is wiped.
 *
 * Errors: SHERD_EINVAL where the task may not run now, or not again; SHERD_EAUTH for a key that is
 * not vouched for, or survivors that a member did not confirm; SHERD_EFRAME for a piece that is not
 * what its sender sealed; SHERD_EEXPOSURE where the policy refuses a round; SHERD_ESHAPE,
 * SHERD_EFEWNODES, SHERD_EIO (the ledger), SHERD_ENOMEM.
 */
int sherd__secure_run(sherd__secure *s, const sherd__task *t, const sherd__fragment *left,
                      const sherd__fragment *right, uint8_t *out, const atomic_bool *stop,
                      sherd_diag *d) SHERD_MUST;
/** Ends an admitted task, whether it was run or not. */
void sherd__secure_done(sherd__secure *s);
/** Ends the job: wipes its state, now or when the admitted tasks are done. */
void sherd__secure_forget(sherd__secure *s, uint64_t job);

#endif
