/* Profiles of operands (sherd/profile.h) as preparing uses them. */
#ifndef SCHEDULER_PLAN_PROFILE_H
#define SCHEDULER_PLAN_PROFILE_H

#include <pthread.h>
#include <stdatomic.h>

#include "matrix/fixed.h"
#include "sherd/profile.h"
#include "store/digest.h"

struct sherd_profile {
    sherd_view view;
    pthread_mutex_t values; /* of the members up to `loss` */
    bool scanned, measured;
    sherd__scan scan;
    int scale; /* of `loss` */
    sherd__fixed_loss loss;
    pthread_mutex_t hashing; /* of the members below */
    pthread_cond_t hashed;   /* a computation of the digest has ended */
    bool digested, running;
    bool hashes;      /* a thread computes the digest: `hasher` */
    pthread_t hasher; /* set by that thread */
    pthread_t thread; /* of sherd_profile_digest_start */
    sherd__digest digest;
    atomic_bool stop; /* `thread` must end soon */
};

/** Initialises a profile in the caller's memory, which must be passed to sherd__profile_fini. The
 *  view has been checked. */
void sherd__profile_init(sherd_profile *p, sherd_view v);
/** Ends the computation of the digest in a thread. */
void sherd__profile_fini(sherd_profile *p);
/** Returns SHERD_EINVAL if p, unless it is NULL, was made for another matrix than v. */
int sherd__profile_check(const sherd_profile *p, sherd_view v, const char *name,
                         sherd_diag *d) SHERD_MUST;

/** Examines the values, unless that has been done. Otherwise the first function that needs them
 *  does so, and cannot be interrupted. Progress counts entries. SHERD_EINTERRUPTED. */
int sherd__profile_examine(sherd_profile *p, const sherd_hooks *hooks, sherd_diag *d) SHERD_MUST;
const sherd__scan *sherd__profile_scan(sherd_profile *p);
/** As sherd__fixed_choose for the whole operand. */
int sherd__profile_fixed(sherd_profile *p, unsigned bits, const char *name, sherd__fixed *out,
                         sherd_diag *d) SHERD_MUST;
/** Computes the digest, or waits for the thread that does. SHERD_EINTERRUPTED, SHERD_ENOMEM. */
int sherd__profile_hash(sherd_profile *p, sherd__digest *out, const sherd_hooks *hooks,
                        sherd_diag *d) SHERD_MUST;

#endif
