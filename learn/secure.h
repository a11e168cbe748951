/*
 * What coordinator and nodes tell each other when they train on the nodes' own data by secure
 * aggregation (docs/PROTOCOL.md, "Secure aggregation"), as bytes. Blocks are rows of 64-bit
 * numbers, little-endian, but for cards and pieces, which are bytes. Readers trust nothing of it.
 *
 * What is summed: the gradient, tier after tier, as in learn/grader.h; then how many examples it is
 * over, their cost, and how many were hit. With clipping each of these three is a number of
 * quarters of SHERD__PRIVACY_UNITS (crypto/privacy.h).
 *
 * Examples are counted by places. A training goes over as many places of every node as its plan
 * says, whatever a node has: a place behind its last example is empty. So which places a round
 * reads, and what it costs, is public.
 */
#ifndef LEARN_SECURE_H
#define LEARN_SECURE_H

#include <stddef.h>
#include <stdint.h>

#include "crypto/privacy.h"
#include "learn/recipe.h"

enum {
    SHERD__SECURE_FORMAT = 3, /* first number of each of the six blocks below */
    SHERD__SECURE_PLAN = 12,  /* numbers: format, recipe, nodes, threshold, colluding, self, rows,
                                 places, clip (f64), noise (f64), inputs, targets */
    SHERD__SECURE_TRAINING = 32, /* bytes of the plan's rows to noise, which all are told alike */
    SHERD__SECURE_SEAL = 6,      /* format, round, digest of what it is about (4) */
    SHERD__SECURE_HIDE = 3,      /* format, round, step; then a scale for each tier, and one for the
                                 cost */
    SHERD__SECURE_CONFIRM = 2,   /* format, round; then the survivors, ascending */
    SHERD__SECURE_CHECK = 2,     /* format, round */
    SHERD__SECURE_OPEN = 2,      /* format, round; then for each member that confirms, ascending: */
    SHERD__SECURE_CONFIRMED = 9, /* its number, its signature (8) */
    SHERD__SECURE_EXTRA = 3,     /* numbers behind the gradient: examples, cost, hits */
    SHERD__SECURE_CARD = 128,    /* bytes: identity's public key, seal key, signature */
    SHERD__SECURE_STATEMENT = 76, /* bytes that are signed with it */
    SHERD__SECURE_SIGNATURE = 64  /* bytes: what a CONFIRM gives */
};

/** What is trained, and by whom. */
typedef struct sherd__secure_plan {
    uint32_t recipe;                      /* block: its whole text */
    uint32_t nodes, threshold, colluding; /* crypto/aggregate.h */
    uint32_t self;                        /* which of them the receiver is */
    uint64_t rows;                        /* places of a round, of each node; 1 to places */
    uint64_t places;                      /* of an epoch, of each node */
    double clip;         /* norm of one example's gradient at most; 0: none (learn/local_data.h) */
    double noise;        /* multiplier of crypto/privacy.h; 0: none. Not without clip */
    uint32_t x, targets; /* blocks of examples that the coordinator deals (which hides nothing);
                            0: the node's own */
} sherd__secure_plan;

void sherd__secure_plan_write(uint8_t out[8 * SHERD__SECURE_PLAN], const sherd__secure_plan *p);
/** Ranges of every number; not what belongs together. SHERD_EFORMAT. */
int sherd__secure_plan_parse(sherd__secure_plan *out, const uint8_t *bytes, size_t len,
                             sherd_diag *d) SHERD_MUST;

/** The places of a step: rows from *first on, fewer at the end of an epoch. */
uint64_t sherd__secure_window(const sherd__secure_plan *p, uint64_t step, uint64_t *first);
/** The numbers of a plan that are the same for all members, for a digest. */
void sherd__secure_training(uint8_t out[SHERD__SECURE_TRAINING], const sherd__secure_plan *p);
/** What a round of this plan is to the accountant, for a network of `count` parameters. */
sherd__privacy_round sherd__secure_privacy(const sherd__secure_plan *p, uint64_t count);

/** What a node signs: that this seal key is its own, as member `self` of this plan in this job, and
 *  whether the plan deals it examples. */
void sherd__secure_statement(uint8_t out[SHERD__SECURE_STATEMENT], uint64_t job,
                             const sherd__secure_plan *p, uint32_t self, const uint8_t seal[32]);

/** An entry of a node's sum is at most 2^this, either way, so that N of them add up in F_q. */
unsigned sherd__secure_room(uint32_t nodes);

#endif
