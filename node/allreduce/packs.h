/*
 * Examples that a node keeps by number: a coordinator sends each row once, in a pack with others,
 * and afterwards names steps by lists of rows alone. A pack is three blocks of the client's store
 * (learn/allreduce_plan.h), held from the first step that counts it until its inputs or targets are
 * dropped; of a row that came twice the later pack counts.
 *
 * A coordinator decides how many packs, rows and shards there are. So the loop's thread finds and
 * lets go of packs, some at a turn, and takes memory; whatever goes through rows is for the compute
 * thread. The two do not overlap, but for sherd__packs_drop.
 */
#ifndef NODE_ALLREDUCE_PACKS_H
#define NODE_ALLREDUCE_PACKS_H

#include "learn/allreduce_plan.h"
#include "node/pool.h"
#include "node/store.h"

typedef struct sherd__packed {
    uint32_t pack; /* counted from 1; 0: the row is not here */
    uint32_t at;   /* row of it */
} sherd__packed;

/** Some packs, by number. */
typedef struct sherd__pack_chunk sherd__pack_chunk;

typedef struct sherd__packs {
    sherd__pool *pool;
    uint32_t examples;
    uint32_t taken;             /* packs that were looked for */
    uint32_t noted;             /* of these, whose rows are in `rows` */
    sherd__pack_chunk **chunks; /* NULL among them: no pack of it is here */
    uint32_t room;              /* of `chunks` */
    uint32_t dropped;           /* a pack that is to be let go of, from 1; others follow */
    uint32_t x_size;            /* bytes of the widest kind of inputs that came */
    bool values;                /* some targets are f64 */
    bool cleared;
    sherd__packed *rows; /* of every example */
    sherd__rows list;    /* that `numbers` are for; len 0: none */
    bool listed;         /* and are */
    uint32_t *numbers;
} sherd__packs;

/* ---- the loop's thread ----------------------------------------------------------------------- */

/** Room for so many examples. SHERD_ENOMEM; *p is then closed. */
int sherd__packs_open(sherd__packs *p, sherd__pool *pool, uint32_t examples,
                      sherd_diag *d) SHERD_MUST;
/** Packs that are held go before *old, for sherd__packs_reap. A zeroed *p is allowed. */
void sherd__packs_close(sherd__packs *p, sherd__pack_chunk **old);

/** Finds and holds packs up to the first `packs`, `most` of them; p->taken says how far it came.
 *  SHERD_EFORMAT: more than a coordinator sends between two steps; SHERD_ENOMEM. */
int sherd__packs_take(sherd__packs *p, const sherd__store *store, uint64_t job, uint32_t packs,
                      uint32_t most, sherd_diag *d) SHERD_MUST;
/** A block has left the store. Its pack, if it is one's inputs or targets, is held until
 *  sherd__packs_let_go. At any time. */
void sherd__packs_drop(sherd__packs *p, const sherd__block *b);
/** Lets go of up to `most` packs that were dropped; how many. */
size_t sherd__packs_let_go(sherd__packs *p, size_t most);
/** The same of packs of before: all of it, some hundred at a time. */
size_t sherd__packs_reap(sherd__pack_chunk **old, size_t most);
/** Room for this list, unless it is the one that is here. SHERD_ENOMEM. */
int sherd__packs_list(sherd__packs *p, const sherd__rows *list, sherd_diag *d) SHERD_MUST;
/** Bytes that it takes to have so many rows in one place, at most. */
uint64_t sherd__packs_scratch(const sherd__packs *p, uint64_t rows, size_t inputs, size_t width);

/* ---- the compute thread ---------------------------------------------------------------------- */

/** Notes where the rows of the packs are that came since, and makes the list. SHERD_EFORMAT: a pack
 *  whose block of numbers is malformed. */
int sherd__packs_note(sherd__packs *p, sherd_diag *d) SHERD_MUST;
/** Whether rows what->first to first + rows - 1 of the list are here; *apart: not in one place.
 *  SHERD_EINVAL: one is not; SHERD_ESHAPE: blocks that do not fit. */
int sherd__packs_find(const sherd__packs *p, const sherd__step_plan_shard *what, size_t inputs,
                      size_t width, bool *apart, sherd_diag *d) SHERD_MUST;
/** These rows, which were found, as a shard; copied into `scratch` where they are apart. */
sherd__shard sherd__packs_shard(const sherd__packs *p, const sherd__step_plan_shard *what,
                                uint8_t *scratch);

#endif
