/*
 * The sum of the gradients of several shards by several graders, each on a thread of its own. Where
 * devices compute the products, several of them are busy at the same time, and the host computes
 * the other parts of one pass while a device multiplies for another one.
 *
 * One pass at a time adds to the sum of a tier: integers in any order; float64 by ascending shards,
 * so that neither depends on the number of graders. A pass waits only for passes of lower shards,
 * which were started before it.
 */
#ifndef LEARN_PASSES_H
#define LEARN_PASSES_H

#include "core/team.h"
#include "learn/grader.h"

typedef struct sherd__passes sherd__passes;

typedef struct sherd__passes_options {
    const sherd__recipe *recipe;
    size_t batch; /* most examples of a shard */
    unsigned bits;
    const sherd__arithmetic *by; /* of each grader */
    uint32_t count;              /* graders, at least 1 */
} sherd__passes_options;

/** Creates graders, as sherd__grader_new, with its errors. The caller owns *out. */
int sherd__passes_new(sherd__passes **out, const sherd__passes_options *o,
                      sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
void sherd__passes_free(sherd__passes *p);
/** Returns one of the graders, which states the network's sizes. */
const sherd__grader *sherd__passes_grader(const sherd__passes *p);

/** A sum. All is borrowed. The functions are called on the threads of the team. */
typedef struct sherd__passes_sum {
    uint32_t shards;
    const int32_t *scales; /* these four as in sherd__grading; the sums are overwritten */
    unsigned room;
    void *const *sums;
    bool (*stop)(void *ctx);
    /** Returns the examples of shard i, which this pass (below the number of graders) uses until it
     *  asks for the next ones, and sets *local. */
    sherd__shard (*shard)(void *ctx, uint32_t i, uint32_t pass, sherd__local_steps *local);
    /** Sets *params to the tier's parameters; may wait for them. A failure ends all passes. */
    int (*need)(void *ctx, size_t tier, const double **params, sherd_diag *d);
    /** Called once for each tier, when its sum is complete; those of lower tiers are not. May be
     *  NULL. */
    void (*done)(void *ctx, size_t tier);
    sherd__graded *graded; /* result, by shard */
    uint32_t most;         /* graders that compute; 0: all */
    void *ctx;
} sherd__passes_sum;

/**
 * Computes a sum with the threads of a team (NULL: the caller's thread). With several graders and
 * shards the team has no other loop at the time.
 *
 * Errors: that of the first pass that fails, as sherd__grader_run; the others end soon after it.
 */
int sherd__passes_run(sherd__passes *p, sherd__team *team, const sherd__passes_sum *s,
                      sherd_diag *d) SHERD_MUST;

#endif
