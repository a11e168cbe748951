/*
 * Messages between coordinator and nodes that train on the nodes' own data by secure aggregation
 * (docs/PROTOCOL.md, "Secure aggregation"), as bytes. Blocks are rows of 64-bit numbers,
 * little-endian, except cards and pieces, which are bytes. Readers trust nothing in them.
 *
 * A sum contains the gradient, tier after tier, as in learn/grader.h; then the number of examples,
 * their cost, and the number of hits. With clipping each of these three is a multiple of a quarter
 * of SHERD__PRIVACY_UNITS (crypto/privacy.h).
 *
 * Examples are counted by places. A training uses as many places of every node as its plan says,
 * whatever data a node has: a place after its last example is empty. So the places that a round
 * reads, and its cost, are public.
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
    SHERD__SECURE_TRAINING = 32, /* bytes that a plan has from `rows` to `noise`, the same for all
                                    members */
    SHERD__SECURE_SEAL = 6,      /* format, round, digest of the agreed data (4) */
    SHERD__SECURE_HIDE = 3,      /* format, round, step; then a scale for each tier, and one for the
                                    cost */
    SHERD__SECURE_CONFIRM = 2,   /* format, round; then the survivors, ascending */
    SHERD__SECURE_CHECK = 2,     /* format, round */
    SHERD__SECURE_OPEN = 2,      /* format, round; then for each member that confirms, ascending: */
    SHERD__SECURE_CONFIRMED = 9, /* its number, its signature (8) */
    SHERD__SECURE_EXTRA = 3,     /* numbers after the gradient: examples, cost, hits */
    SHERD__SECURE_CARD = 128,    /* bytes: identity's public key, seal key, signature */
    SHERD__SECURE_STATEMENT = 76, /* bytes that the identity's key signs */
    SHERD__SECURE_SIGNATURE = 64  /* bytes: the content of a CONFIRM */
};

/** A training and its members. */
typedef struct sherd__secure_plan {
    uint32_t recipe;                      /* block: the whole text of the recipe */
    uint32_t nodes, threshold, colluding; /* crypto/aggregate.h */
    uint32_t self;                        /* index of the receiver among the nodes */
    uint64_t rows;                        /* places of a round, of each node; 1 to places */
    uint64_t places;                      /* of an epoch, of each node */
    double clip;                          /* largest norm of one example's gradient; 0: no clipping
                                             (learn/local_data.h) */
    double noise;        /* multiplier of crypto/privacy.h; 0: no noise. Only with clip */
    uint32_t x, targets; /* blocks of examples that the coordinator distributes (which hides
                            nothing); 0: the node's own */
} sherd__secure_plan;

void sherd__secure_plan_write(uint8_t out[8 * SHERD__SECURE_PLAN], const sherd__secure_plan *p);
/** Checks the range of every number, but no relations between them. SHERD_EFORMAT. */
int sherd__secure_plan_parse(sherd__secure_plan *out, const uint8_t *bytes, size_t len,
                             sherd_diag *d) SHERD_MUST;

/** Returns how many places a step has, starting at *first; fewer at the end of an epoch. */
uint64_t sherd__secure_window(const sherd__secure_plan *p, uint64_t step, uint64_t *first);
/** Writes the numbers of a plan that are the same for all members, for a digest. */
void sherd__secure_training(uint8_t out[SHERD__SECURE_TRAINING], const sherd__secure_plan *p);
/** Returns a round of this plan as the privacy accountant needs it, for a network of `count`
 *  parameters. */
sherd__privacy_round sherd__secure_privacy(const sherd__secure_plan *p, uint64_t count);

/** Writes the statement that a node signs: that this seal key belongs to it as member `self` of
 *  this plan in this job, and whether the plan gives it examples. */
void sherd__secure_statement(uint8_t out[SHERD__SECURE_STATEMENT], uint64_t job,
                             const sherd__secure_plan *p, uint32_t self, const uint8_t seal[32]);

/** Returns the room: entries of a node's sum are at most 2^room in absolute value, so that the sum
 *  of all nodes fits in F_q. */
unsigned sherd__secure_room(uint32_t nodes);

#endif
