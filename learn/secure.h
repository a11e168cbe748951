/*
 * What coordinator and nodes tell each other when they train on the nodes' own data by secure
 * aggregation (docs/PROTOCOL.md, "Secure aggregation"), as bytes. Blocks are rows of 64-bit
 * numbers, little-endian, but for cards and pieces, which are bytes. Readers trust nothing of it.
 *
 * What is summed: the gradient, tier after tier, as in learn/grader.h; then how many examples it is
 * over, their cost, and how many were hit. So the sums alone are known, of these too.
 */
#ifndef LEARN_SECURE_H
#define LEARN_SECURE_H

#include <stddef.h>
#include <stdint.h>

#include "learn/recipe.h"

enum {
    SHERD__SECURE_FORMAT = 2, /* first number of each of the five blocks below */
    SHERD__SECURE_PLAN = 10,  /* numbers: format, recipe, bits, nodes, threshold, colluding, self,
                                 rows, inputs, targets */
    SHERD__SECURE_SEAL = 6,   /* format, round, digest of what it is about (4) */
    SHERD__SECURE_HIDE = 3,   /* format, round, step; then a scale for each tier, and one for the
                                 cost */
    SHERD__SECURE_CONFIRM = 2, /* format, round; then the survivors, ascending */
    SHERD__SECURE_OPEN = 2,   /* format, round; then for each member that confirms, ascending: */
    SHERD__SECURE_CONFIRMED = 9, /* its number, its signature (8) */
    SHERD__SECURE_EXTRA = 3,  /* numbers behind the gradient: examples, cost, hits */
    SHERD__SECURE_CARD = 128, /* bytes: identity's public key, seal key, signature */
    SHERD__SECURE_STATEMENT = 72, /* bytes that are signed with it */
    SHERD__SECURE_SIGNATURE = 64 /* bytes: what a CONFIRM gives */
};

/** What is trained, and by whom. */
typedef struct sherd__secure_plan {
    uint32_t recipe;    /* block: its whole text */
    unsigned bits;      /* of fixed point in products */
    uint32_t nodes, threshold, colluding; /* crypto/aggregate.h */
    uint32_t self;      /* which of them the receiver is */
    uint64_t rows;      /* examples of a round, of each node; 0: all that it has */
    uint32_t x, targets; /* blocks of examples that the coordinator deals (which hides nothing);
                            0: the node's own */
} sherd__secure_plan;

void sherd__secure_plan_write(uint8_t out[8 * SHERD__SECURE_PLAN], const sherd__secure_plan *p);
/** Ranges of every number; not what belongs together. SHERD_EFORMAT. */
int sherd__secure_plan_parse(sherd__secure_plan *out, const uint8_t *bytes, size_t len,
                             sherd_diag *d) SHERD_MUST;

/** What a node signs: that this seal key is its own, as member `self` of this plan in this job. */
void sherd__secure_statement(uint8_t out[SHERD__SECURE_STATEMENT], uint64_t job,
                             const sherd__secure_plan *p, uint32_t self, const uint8_t seal[32]);

/** An entry of a node's sum is at most 2^this, either way, so that N of them add up in F_q. */
unsigned sherd__secure_room(uint32_t nodes);

#endif
