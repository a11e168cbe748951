/*
 * What one of equals holds who train one network together: parameters, gradient, optimiser, and a
 * grader for its own shards. All of them begin with the same state and are given the same sums, so
 * all make the same updates and nobody sends parameters.
 *
 * An update is made in two halves. A sum is *absorbed*: it becomes the gradient, and nothing else
 * changes. It is *committed*, by the round's number, when it is known that everybody has absorbed
 * it. So a round that was broken off can be made anew by those who are left, whoever of them had
 * come to its end.
 */
#ifndef LEARN_MEMBER_H
#define LEARN_MEMBER_H

#include "core/hash.h"
#include "learn/grader.h"
#include "learn/optimiser.h"

typedef struct sherd__member sherd__member;

typedef struct sherd__member_options {
    const sherd__recipe *recipe; /* of the network; copied */
    sherd__optimiser_spec optimiser;
    size_t batch;  /* most examples of a shard */
    unsigned bits; /* 2 to 53 */
} sherd__member_options;

/** Bytes that one will hold at most; UINT64_MAX where that wraps. Errors of sherd__grader_memory.
 *  */
int sherd__member_memory(const sherd__member_options *o, uint64_t *bytes, sherd_diag *d) SHERD_MUST;
/** Parameters 0, round 0 committed. Errors of sherd__grader_new and sherd__optimiser_init. */
int sherd__member_new(sherd__member **out, const sherd__member_options *o,
                      sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__member_free(sherd__member *m);

size_t sherd__member_tiers(const sherd__member *m);
/** Parameters, which are the numbers of a sum: tier after tier. */
size_t sherd__member_count(const sherd__member *m);
size_t sherd__member_inputs(const sherd__member *m);
size_t sherd__member_width(const sherd__member *m);

/** Numbers of a state: parameters, gradient, the optimiser's vector, steps that it has begun. */
size_t sherd__member_state_len(const sherd__member *m);
/** Takes a state, as that after `round`: a whole one, or parameters alone, where nothing was done
 *  with them yet. SHERD_ESHAPE: of another length; SHERD_EINVAL: numbers that are none. */
int sherd__member_load(sherd__member *m, uint64_t round, const double *state, uint64_t len,
                       sherd_diag *d) SHERD_MUST;
/** The first `len` numbers of the state; bare: the gradient's are zeros. */
void sherd__member_state(const sherd__member *m, bool bare, double *out, size_t len);

/** The same as a hash: of the last round committed (8 bytes, little-endian) and these numbers;
 *  bare: without the gradient's. */
void sherd__member_state_hash(const sherd__member *m, bool bare, size_t len,
                              uint8_t out[SHERD__HASH]);
/** Of a state of so many parameters that somebody tells of. */
void sherd__state_hash(uint64_t round, const double *state, size_t len, size_t count, bool bare,
                       uint8_t out[SHERD__HASH]);

/** From here on prints tell of sums to come alone: members that have just met agree on them. */
void sherd__member_meet(sherd__member *m);

/** Makes the update of this round's sum, unless that was done. SHERD_EINVAL: it is neither the one
 *  absorbed last nor the one committed last. */
int sherd__member_commit(sherd__member *m, uint64_t round, double rate, sherd_diag *d) SHERD_MUST;

/** Adds the sum of a shard's gradients to `sums`, count numbers. As sherd__grader_run; of `how`
 *  scales, room, local and stop count. */
int sherd__member_grade(sherd__member *m, const sherd__shard *s, const sherd__grading *how,
                        int64_t *sums, double *cost, uint64_t *hits, sherd_diag *d) SHERD_MUST;

/** What all members know of a sum, and must agree on. */
typedef struct sherd__member_figures {
    double most[SHERD__RECIPE_LAYERS_MAX]; /* by tier: the gradient's largest entry */
    double l2;      /* what the parameters before the update add to the cost */
    uint64_t print; /* of this sum and all that were committed; against accidents, not liars */
} sherd__member_figures;

/** The gradient of the sum of all: sums 2^-scale / by, and L2 unless it is of local steps. */
void sherd__member_absorb(sherd__member *m, uint64_t round, const int64_t *sums,
                          const int32_t *scales, double by, bool local, sherd__member_figures *out);

#endif
