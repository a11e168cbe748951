/*
 * State of one worker in all-reduce training: parameters, gradient, optimiser, and a grader for its
 * own shards. All workers start from the same state and are given the same sums, so all make the
 * same updates and none sends parameters.
 *
 * An update is made in two phases. A sum is *absorbed*: it becomes the gradient, and nothing else
 * changes. It is *committed*, by the round's number, when all workers are known to have absorbed
 * it. If a round is interrupted, the remaining workers can therefore repeat it, even if some of
 * them had completed it.
 */
#ifndef LEARN_MEMBER_H
#define LEARN_MEMBER_H

#include "core/hash.h"
#include "learn/optimiser.h"
#include "learn/passes.h"

typedef struct sherd__member sherd__member;

typedef struct sherd__member_options {
    const sherd__recipe *recipe; /* of the network; copied */
    sherd__optimiser_spec optimiser;
    size_t batch;         /* most examples of a shard */
    unsigned bits;        /* 2 to 53 */
    sherd__arithmetic by; /* makes the multipliers; zeroed: this machine's */
    uint32_t passes;      /* graders, which compute shards beside each other; at least 1 */
} sherd__member_options;

/** Computes the most bytes that a member will hold: *each for each grader, and *once; UINT64_MAX on
 *  overflow. Errors of sherd__grader_memory. */
int sherd__member_memory(const sherd__member_options *o, uint64_t *once, uint64_t *each,
                         sherd_diag *d) SHERD_MUST;
/** Creates a member with zero parameters and round 0 committed. Errors of sherd__grader_new and
 *  sherd__optimiser_init. */
int sherd__member_new(sherd__member **out, const sherd__member_options *o,
                      sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__member_free(sherd__member *m);

size_t sherd__member_tiers(const sherd__member *m);
/** Returns the number of parameters, which is that of a sum: tier after tier. */
size_t sherd__member_count(const sherd__member *m);
size_t sherd__member_inputs(const sherd__member *m);
size_t sherd__member_width(const sherd__member *m);

/** Returns how many numbers a state has: parameters, gradient, the optimiser's vector, and the
 *  number of steps it has started. */
size_t sherd__member_state_len(const sherd__member *m);
/** Loads the state after `round`: a whole one, or parameters only if they have not been used yet.
 *  SHERD_ESHAPE: wrong length; SHERD_EINVAL: invalid numbers. */
int sherd__member_load(sherd__member *m, uint64_t round, const double *state, uint64_t len,
                       sherd_diag *d) SHERD_MUST;
/** Copies the first `len` numbers of the state. bare: the gradient is replaced by zeros. */
void sherd__member_state(const sherd__member *m, bool bare, double *out, size_t len);

/** Computes a hash of the last round committed (8 bytes, little-endian) and these numbers. bare:
 *  without the gradient. */
void sherd__member_state_hash(const sherd__member *m, bool bare, size_t len,
                              uint8_t out[SHERD__HASH]);
/** Computes the same hash for a received state of a network of `count` parameters. */
void sherd__state_hash(uint64_t round, const double *state, size_t len, size_t count, bool bare,
                       uint8_t out[SHERD__HASH]);

/** Starts the prints again: they cover later sums only, so members that have just met agree on
 *  them. */
void sherd__member_meet(sherd__member *m);

/** Applies the update of this round's sum, unless that was done before. SHERD_EINVAL: the round is
 *  neither the one absorbed last nor the one committed last. */
int sherd__member_commit(sherd__member *m, uint64_t round, double rate, sherd_diag *d) SHERD_MUST;

/** Computes the sum of the gradients of shards, at least one, under the committed parameters.
 *  `sums` has `count` numbers. As sherd__passes_run; sums, need and done of s are not used. */
int sherd__member_grade(sherd__member *m, sherd__team *team, const sherd__passes_sum *s,
                        int64_t *sums, sherd_diag *d) SHERD_MUST;

/** Figures of a sum that all members know and must agree on. */
typedef struct sherd__member_figures {
    double most[SHERD__RECIPE_LAYERS_MAX]; /* by tier: the gradient's largest entry */
    double l2;                             /* the parameters' part of the cost before the update */
    uint64_t print; /* of this sum and all that were committed; detects accidents, not liars */
} sherd__member_figures;

/** The sum of a round over all members: of gradients, or of local steps. */
typedef struct sherd__member_sum {
    uint64_t round;
    const int64_t *sums;
    const int32_t *scales; /* by tier */
    double by;             /* the gradient is sums 2^-scale / by */
    bool local;
} sherd__member_sum;

/** Makes the gradient of a sum, plus L2 unless it is of local steps. */
void sherd__member_absorb(sherd__member *m, const sherd__member_sum *s, sherd__member_figures *out);

#endif
