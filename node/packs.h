/*
 * Examples that a node keeps by number: a coordinator sends each row once, in a pack with others,
 * and afterwards names steps by lists of rows alone. A pack is three blocks of the client's store
 * (learn/circle_plan.h); of a row that came twice the later pack counts, and rows of a pack that
 * was dropped are not here.
 *
 * The loop's thread makes all calls but sherd__picked_shard.
 */
#ifndef NODE_PACKS_H
#define NODE_PACKS_H

#include "learn/circle_plan.h"
#include "node/pool.h"
#include "node/store.h"

typedef struct sherd__packed {
    uint32_t pack; /* counted from 1; 0: the row is not here */
    uint32_t at;   /* row of it */
} sherd__packed;

typedef struct sherd__packs {
    sherd__pool *pool;
    uint32_t examples, taken;
    sherd__packed *rows;  /* of every example */
    sherd__rows list;     /* that `numbers` are; len 0: none */
    uint32_t *numbers;
} sherd__packs;

/** Room for so many examples. SHERD_ENOMEM; *p is then closed. */
int sherd__packs_open(sherd__packs *p, sherd__pool *pool, uint32_t examples,
                      sherd_diag *d) SHERD_MUST;
/** A zeroed one is allowed. */
void sherd__packs_close(sherd__packs *p);

/** Notes where the rows of the first `packs` packs are, but for those noted before. SHERD_EFORMAT:
 *  numbers that are none. */
int sherd__packs_take(sherd__packs *p, const sherd__store *store, uint64_t job, uint32_t packs,
                      sherd_diag *d) SHERD_MUST;
/** Makes this list, unless it is the one that is here. SHERD_ENOMEM. */
int sherd__packs_list(sherd__packs *p, const sherd__rows *list, sherd_diag *d) SHERD_MUST;

/** Neighbours of one pack. */
typedef struct sherd__run {
    sherd__block *x, *targets; /* held */
    uint64_t first, rows;
} sherd__run;

/** Examples of one shard, where they lie. */
typedef struct sherd__picked {
    sherd__plan_shard what;
    sherd__pool *pool;
    sherd__run *runs;
    size_t len, room;
    uint64_t scratch;          /* bytes that it takes to have them in one place; 0: they are */
} sherd__picked;

/** Finds and holds rows what->first to first + rows - 1 of the list. SHERD_EINVAL: one that is not
 *  here; SHERD_ESHAPE, SHERD_ENOMEM. What is held then is released as ever. */
int sherd__packs_pick(const sherd__packs *p, const sherd__store *store, uint64_t job,
                      const sherd__plan_shard *what, size_t inputs, size_t width,
                      sherd__picked *out, sherd_diag *d) SHERD_MUST;
/** As one shard; copied into `scratch` where they are not in one place. */
sherd__shard sherd__picked_shard(const sherd__picked *p, uint8_t *scratch);
void sherd__picked_release(sherd__picked *p);

#endif
