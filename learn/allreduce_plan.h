/*
 * Messages from the leader of an all-reduce group to its members (docs/PROTOCOL.md, "All-reduce
 * groups"): 64-bit numbers, little-endian. The leader writes them; nodes parse them and trust
 * nothing in them.
 */
#ifndef LEARN_ALLREDUCE_PLAN_H
#define LEARN_ALLREDUCE_PLAN_H

#include "learn/allreduce.h"
#include "learn/plan.h"

enum {
    SHERD__ALLREDUCE_FORMAT = 3,
    SHERD__ALLREDUCE_PLAN = 15, /* numbers in the plan of MEET */
    SHERD__ALLREDUCE_STEP = 13, /* in STEP, before the plan of its shards */
    SHERD__ALLREDUCE_STATE = 5, /* in STATE */
    SHERD__ALLREDUCE_WHERE = 5, /* in the answer to WHERE */
    SHERD__ALLREDUCE_FIGURES =
        5 /* in the answer to REDUCE, after the tiers: l2, print, bytes sent and received on links
             so far, and how many of those were message bodies received */
};

/* ---- MEET ------------------------------------------------------------------------------------ */

typedef struct sherd__allreduce_plan {
    sherd__reduce kind;
    uint32_t members, self;
    uint64_t id;       /* not 0; the job id of messages between members */
    uint32_t recipe;   /* block: text of the recipe */
    uint32_t state;    /* block: the state to start or resume from; 0: keep the member's own */
    uint64_t round;    /* the last round that the state includes */
    unsigned bits;     /* 2 to 53 */
    size_t batch;      /* most examples of a shard */
    uint32_t examples; /* of the training; rows are named by their numbers; 1 or more */
    sherd__optimiser_spec optimiser;
} sherd__allreduce_plan;

void sherd__allreduce_plan_write(uint8_t out[8 * SHERD__ALLREDUCE_PLAN],
                                 const sherd__allreduce_plan *p);
/** SHERD_EFORMAT: malformed or out of range. */
int sherd__allreduce_plan_parse(sherd__allreduce_plan *out, const uint8_t *bytes, size_t len,
                                sherd_diag *d) SHERD_MUST;

/* ---- STEP, REDUCE, STATE --------------------------------------------------------------------- */

/**
 * The head of a step. A sherd__step_plan of its shards follows it, which may have no shards.
 * `first` and `rows` of a shard refer to the list, and a shard names no blocks. Examples are sent
 * in packs of three blocks each, and members remember the row numbers of a pack. Packs are counted
 * from 0 in a session and sent in order.
 */
typedef struct sherd__allreduce_round {
    uint64_t round;   /* ascending, from 1 */
    uint64_t commit;  /* the sum of this round must be in the parameters */
    double rate;      /* of that update */
    double by;        /* divisor of this round's sum, above 0 */
    bool local;       /* the round is of local steps */
    uint32_t packs;   /* sent so far */
    sherd__rows list; /* the shards are ranges of it; `examples` is taken from the plan */
} sherd__allreduce_round;

void sherd__allreduce_round_write(uint8_t out[8 * SHERD__ALLREDUCE_STEP],
                                  const sherd__allreduce_round *r);
/** Parses the head and the plan that follows it, but not the plan's shards. `examples` is that of
 *  the plan of MEET. SHERD_EFORMAT. */
int sherd__allreduce_round_parse(sherd__allreduce_round *out, sherd__step_plan *shards,
                                 uint32_t examples, const uint8_t *bytes, size_t len,
                                 sherd_diag *d) SHERD_MUST;
/** Returns whether a shard of a step is a range of its list of at most `batch` rows that names no
 *  block. */
bool sherd__allreduce_shard_valid(const sherd__allreduce_round *r, const sherd__step_plan_shard *s,
                                  size_t batch);
/** Returns the number of the first block of pack k, which holds its row numbers (u32). The inputs
 *  and the targets are the next two blocks. Blocks of plans, recipes and states have lower
 *  numbers. */
#define SHERD__ALLREDUCE_PACKS_MOST ((uint32_t)1 << 29)
uint32_t sherd__allreduce_pack(uint32_t k);
/** Asks for the first `len` numbers of a state or, where the type of the answer is i64, a hash of
 *  them. */
typedef struct sherd__allreduce_question {
    uint64_t commit;
    double rate;
    uint64_t len;
    bool bare; /* without the gradient, which may be that of a round that was given up: zeros
                  replace it, and the hash leaves it out */
} sherd__allreduce_question;

void sherd__allreduce_state_write(uint8_t out[8 * SHERD__ALLREDUCE_STATE],
                                  const sherd__allreduce_question *q);
int sherd__allreduce_state_parse(sherd__allreduce_question *out, const uint8_t *bytes, size_t len,
                                 sherd_diag *d) SHERD_MUST;

typedef enum sherd__allreduce_phase {
    SHERD__ALLREDUCE_NOWHERE, /* no round is open */
    SHERD__ALLREDUCE_GRADING,
    SHERD__ALLREDUCE_EXCHANGING,
    SHERD__ALLREDUCE_SUMMED, /* the sum is complete */
    SHERD__ALLREDUCE_BROKEN  /* the round cannot be completed */
} sherd__allreduce_phase;

/** Progress of a member. */
typedef struct sherd__allreduce_where {
    uint64_t round;
    sherd__allreduce_phase phase;
    uint32_t step;      /* of the exchange; the member has sent everything that it sends in it. If
                           the phase is BROKEN: the member at the other end of the failed link, or
                           its own number */
    uint64_t bytes;     /* sent and received by it on links */
    uint64_t worked_us; /* processor time of the node, for all its work */
} sherd__allreduce_where;

void sherd__allreduce_where_write(uint8_t out[8 * SHERD__ALLREDUCE_WHERE],
                                  const sherd__allreduce_where *w);
/** Returns false if the numbers are not valid. */
bool sherd__allreduce_where_parse(sherd__allreduce_where *out,
                                  const uint8_t bytes[8 * SHERD__ALLREDUCE_WHERE]) SHERD_MUST;
/** Returns the number of a block that members exchange in step `step` of this round. It contains
 *  the lowest 24 bits of the round and is never 0. */
uint32_t sherd__allreduce_block(uint64_t round, uint32_t step);
/** The inverse of sherd__allreduce_block. Of all rounds that match, it returns the one nearest to
 *  `near`. Round 0: no round matches. */
void sherd__allreduce_block_of(uint32_t number, uint64_t near, uint64_t *round, uint32_t *step);

#endif
