/*
 * The plan of a round of gradients as a message (docs/PROTOCOL.md, "Gradients"): 64-bit numbers,
 * little-endian. A head, then a scale for each tier, then SHERD__PLAN_SHARD numbers for each shard.
 * The coordinator writes it; nodes parse it and trust nothing in it.
 */
#ifndef LEARN_PLAN_H
#define LEARN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "learn/grader.h"

enum {
    SHERD__PLAN_FORMAT = 1, /* first number of a plan */
    SHERD__PLAN_HEAD = 8,   /* numbers: format, recipe, bits, room, tiers, params, shards, batch */
    SHERD__PLAN_SHARD = 10  /* x, targets, first, rows, drop, steps, batch, rate, l2, weight */
};

/* Times in the answer of tier 0, in microseconds from the round's first task. They show that
   computing and sending overlap. */
enum {
    SHERD__PLAN_FORWARD,         /* the pass started */
    SHERD__PLAN_LAST_PARAMS,     /* the last parameters arrived */
    SHERD__PLAN_TOP_LEFT,        /* the top tier's answer was given to the connection */
    SHERD__PLAN_LOWEST_BACKWARD, /* the backward pass of the lowest tier started, for the last
                                    shard */
    SHERD__PLAN_COMPUTED,        /* the pass ended */
    SHERD__PLAN_TIMES
};

typedef struct sherd__step_plan {
    uint32_t recipe; /* block of the recipe's text (learn/recipe.h) */
    unsigned bits;   /* of fixed point; 0: float64 */
    unsigned room;   /* as in sherd__grading */
    uint32_t tiers;
    uint32_t params; /* block of tier 0's parameters; that of tier t is params + t */
    uint32_t shards;
    size_t batch;         /* most examples of a shard in this training */
    const uint8_t *bytes; /* after the head */
} sherd__step_plan;

typedef struct sherd__step_plan_shard {
    uint32_t x, targets;  /* blocks */
    uint64_t first, rows; /* range of rows in the blocks */
    bool drop;            /* the blocks are not needed after the round */
    sherd__local_steps local;
} sherd__step_plan_shard;

/** Returns the bytes of a plan. */
size_t sherd__plan_size(uint32_t tiers, uint32_t shards);
/** Writes the head and the scales. sherd__step_plan_write_shard writes the shards one by one. */
void sherd__step_plan_write(uint8_t *out, const sherd__step_plan *p, const int32_t *scales);
void sherd__step_plan_write_shard(uint8_t *out, const sherd__step_plan *p, uint32_t i,
                                  const sherd__step_plan_shard *s);

/** Checks length, format and ranges of the head and all scales. *out borrows `bytes`.
 *  SHERD_EFORMAT. */
int sherd__step_plan_parse(sherd__step_plan *out, const uint8_t *bytes, size_t len,
                           sherd_diag *d) SHERD_MUST;
int32_t sherd__step_plan_scale(const sherd__step_plan *p, uint32_t tier);
sherd__step_plan_shard sherd__step_plan_shard_at(const sherd__step_plan *p, uint32_t i);
/** Returns false for no rows, more than `batch` rows, or steps with invalid numbers. */
bool sherd__plan_shard_sized(const sherd__step_plan_shard *s, size_t batch);
/** As sherd__plan_shard_sized, and also returns false for invalid block numbers. */
bool sherd__plan_shard_valid(const sherd__step_plan_shard *s, size_t batch);

/** Returns how many numbers the answer of a tier of `count` parameters has: the sum; for tier 0
 *  then cost (as f64) and hits of each shard, and times. */
uint64_t sherd__plan_numbers(size_t count, uint32_t tier, uint32_t shards);

#endif
