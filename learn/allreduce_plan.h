/*
 * What those who lead a circle send its members (docs/PROTOCOL.md, "Circles"): 64-bit numbers,
 * little-endian. Written by the leader, read by nodes, which trust nothing of it.
 */
#ifndef LEARN_ALLREDUCE_PLAN_H
#define LEARN_ALLREDUCE_PLAN_H

#include "learn/allreduce.h"
#include "learn/plan.h"

enum {
    SHERD__ALLREDUCE_FORMAT = 3,
    SHERD__ALLREDUCE_PLAN = 15, /* numbers of a plan of MEET */
    SHERD__ALLREDUCE_STEP = 13, /* of STEP, before the plan of its shards */
    SHERD__ALLREDUCE_STATE = 5, /* of STATE */
    SHERD__ALLREDUCE_WHERE = 5, /* of the answer to WHERE */
    SHERD__ALLREDUCE_FIGURES =
        5 /* that REDUCE gives behind the tiers: l2, print; bytes out and in on
                                  links so far; of these, bodies that came */
};

/* ---- MEET ------------------------------------------------------------------------------------ */

typedef struct sherd__allreduce_plan {
    sherd__reduce kind;
    uint32_t members, self;
    uint64_t id;       /* not 0; the job of what members send each other */
    uint32_t recipe;   /* block: text of the network */
    uint32_t state;    /* block: where it begins or goes on from; 0: what the member has */
    uint64_t round;    /* the last that the state has in it */
    unsigned bits;     /* 2 to 53 */
    size_t batch;      /* most examples of a shard */
    uint32_t examples; /* of the training, by whose numbers rows are named; 1 or more */
    sherd__optimiser_spec optimiser;
} sherd__allreduce_plan;

void sherd__allreduce_plan_write(uint8_t out[8 * SHERD__ALLREDUCE_PLAN],
                                 const sherd__allreduce_plan *p);
/** SHERD_EFORMAT: not one, or out of range. */
int sherd__allreduce_plan_parse(sherd__allreduce_plan *out, const uint8_t *bytes, size_t len,
                                sherd_diag *d) SHERD_MUST;

/* ---- STEP, REDUCE, STATE --------------------------------------------------------------------- */

/**
 * The head of a step; a sherd__plan of its shards, which may be none, stands behind it. Of a shard
 * `first` and `rows` are of the list, and it names no blocks: examples come in packs, each three
 * blocks, whose rows stay known by number. Packs are counted from 0 in a session and sent in order.
 */
typedef struct sherd__allreduce_round {
    uint64_t round;   /* ascending, from 1 */
    uint64_t commit;  /* the round whose sum is to be in the parameters */
    double rate;      /* of that update */
    double by;        /* what this round's sum is divided by, above 0 */
    bool local;       /* it is of local steps */
    uint32_t packs;   /* that were sent so far */
    sherd__rows list; /* of which the shards are stretches; `examples` is the plan's, not here */
} sherd__allreduce_round;

void sherd__allreduce_round_write(uint8_t out[8 * SHERD__ALLREDUCE_STEP],
                                  const sherd__allreduce_round *r);
/** Also the plan behind it, but for its shards. `examples` are those of the plan of MEET.
 *  SHERD_EFORMAT. */
int sherd__allreduce_round_parse(sherd__allreduce_round *out, sherd__plan *shards,
                                 uint32_t examples, const uint8_t *bytes, size_t len,
                                 sherd_diag *d) SHERD_MUST;
/** Whether a shard of a step is some of its list's rows, no more than batch, and names no block. */
bool sherd__allreduce_shard_valid(const sherd__allreduce_round *r, const sherd__plan_shard *s,
                                  size_t batch);
/** Blocks of pack k: the numbers of its rows (u32); then inputs, then targets, under the next two
 *  numbers. Plans and the like are numbered below them. */
#define SHERD__ALLREDUCE_PACKS_MOST ((uint32_t)1 << 29)
uint32_t sherd__allreduce_pack(uint32_t k);
/** The first `len` numbers of a state, or, where the answer is i64, a hash of them. */
typedef struct sherd__allreduce_question {
    uint64_t commit;
    double rate;
    uint64_t len;
    bool bare; /* without the gradient, which is that of a round that was given up where one
                          was: zeros stand for it, and nothing in the hash */
} sherd__allreduce_question;

void sherd__allreduce_state_write(uint8_t out[8 * SHERD__ALLREDUCE_STATE],
                                  const sherd__allreduce_question *q);
int sherd__allreduce_state_parse(sherd__allreduce_question *out, const uint8_t *bytes, size_t len,
                                 sherd_diag *d) SHERD_MUST;

typedef enum sherd__allreduce_phase {
    SHERD__ALLREDUCE_NOWHERE, /* no round is open */
    SHERD__ALLREDUCE_GRADING,
    SHERD__ALLREDUCE_EXCHANGING,
    SHERD__ALLREDUCE_SUMMED, /* the sum is there */
    SHERD__ALLREDUCE_BROKEN  /* the round cannot be ended */
} sherd__allreduce_phase;

/** How far a member has come. */
typedef struct sherd__allreduce_where {
    uint64_t round;
    sherd__allreduce_phase phase;
    uint32_t step;      /* of the exchange; it has handed on what is its to send in it. Where
                                 it is broken: the member at the other end of what broke, or its own
                                 number */
    uint64_t bytes;     /* that have moved for it on links, either way */
    uint64_t worked_us; /* processor time of the node, whatever it did */
} sherd__allreduce_where;

void sherd__allreduce_where_write(uint8_t out[8 * SHERD__ALLREDUCE_WHERE],
                                  const sherd__allreduce_where *w);
/** False: numbers that are none. */
bool sherd__allreduce_where_parse(sherd__allreduce_where *out,
                                  const uint8_t bytes[8 * SHERD__ALLREDUCE_WHERE]) SHERD_MUST;
/** The number of a block between members: of step `step` of this round, whose lowest 24 bits it
 *  has. Not 0. */
uint32_t sherd__allreduce_block(uint64_t round, uint32_t step);
/** Back; of all rounds that it may be, the one nearest to `near`. Round 0: none. */
void sherd__allreduce_block_of(uint32_t number, uint64_t near, uint64_t *round, uint32_t *step);

#endif
