/*
 * The plan of a round of gradients as it travels (docs/PROTOCOL.md, "Gradients"): 64-bit numbers,
 * little-endian, a head, then a scale for each tier, then SHERD__PLAN_SHARD numbers for each shard.
 * Written by whoever asks, read by nodes, which trust nothing of it.
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

/* Times in the answer of tier 0, in microseconds from the round's first task: what shows that
 * computing and sending overlap. */
enum {
    SHERD__PLAN_FORWARD,         /* the pass began */
    SHERD__PLAN_LAST_PARAMS,     /* the last parameters came */
    SHERD__PLAN_TOP_LEFT,        /* the top tier's answer was handed to the connection */
    SHERD__PLAN_LOWEST_BACKWARD, /* the way back of the lowest tier began, for the last shard */
    SHERD__PLAN_COMPUTED,        /* the pass ended */
    SHERD__PLAN_TIMES
};

typedef struct sherd__plan {
    uint32_t recipe; /* block of the network's text (learn/recipe.h) */
    unsigned bits;   /* of fixed point; 0: float64 */
    unsigned room;   /* sherd__grading */
    uint32_t tiers;
    uint32_t params; /* block of tier 0's parameters; tier t's is t further */
    uint32_t shards;
    size_t batch;         /* most examples of a shard in this training */
    const uint8_t *bytes; /* behind the head */
} sherd__plan;

typedef struct sherd__plan_shard {
    uint32_t x, targets;  /* blocks */
    uint64_t first, rows; /* of them */
    bool drop;            /* the blocks are not needed after the round */
    sherd__local_steps local;
} sherd__plan_shard;

/** Bytes of a plan. */
size_t sherd__plan_size(uint32_t tiers, uint32_t shards);
/** Writes head and scales; shards follow one by one. */
void sherd__plan_write(uint8_t *out, const sherd__plan *p, const int32_t *scales);
void sherd__plan_write_shard(uint8_t *out, const sherd__plan *p, uint32_t i,
                             const sherd__plan_shard *s);

/** Checks length, format and ranges of the head and all scales. *out borrows `bytes`.
 *  SHERD_EFORMAT. */
int sherd__plan_parse(sherd__plan *out, const uint8_t *bytes, size_t len, sherd_diag *d) SHERD_MUST;
int32_t sherd__plan_scale(const sherd__plan *p, uint32_t tier);
sherd__plan_shard sherd__plan_shard_at(const sherd__plan *p, uint32_t i);
/** False: no rows, more than `batch`, or steps that are no numbers. */
bool sherd__plan_shard_sized(const sherd__plan_shard *s, size_t batch);
/** Also block numbers that are none. */
bool sherd__plan_shard_valid(const sherd__plan_shard *s, size_t batch);

/** Numbers in the answer of a tier of `count` parameters: the sum; behind that of tier 0 cost (as
 *  f64) and hits of each shard, and times. */
uint64_t sherd__plan_numbers(size_t count, uint32_t tier, uint32_t shards);

#endif
