/*
 * Examples that a node keeps by number. A coordinator sends each row once, in a pack with others,
 * and afterwards names steps by lists of rows alone. A pack is three blocks of the client's store
 * (learn/allreduce_plan.h). It is held from the first step that counts it until its inputs or
 * targets are dropped. If a row is sent twice, the later pack is used.
 *
 * A coordinator decides how many packs, rows and shards there are. So the loop's thread finds and
 * releases packs, some in each turn, and allocates memory; work that visits rows runs on the
 * compute thread. The two do not run at the same time, except sherd__packs_drop.
 */
#ifndef NODE_ALLREDUCE_PACKS_H
#define NODE_ALLREDUCE_PACKS_H

#include "learn/allreduce_plan.h"
#include "node/pool.h"
#include "node/store.h"

typedef struct sherd__packed {
    uint32_t pack; /* counted from 1; 0: the row is not on this node */
    uint32_t at;   /* its row in the pack */
} sherd__packed;

/** A number of packs with consecutive numbers. */
typedef struct sherd__pack_chunk sherd__pack_chunk;

typedef struct sherd__packs {
    sherd__pool *pool;
    uint32_t examples;
    uint32_t taken;             /* packs that were looked up */
    uint32_t noted;             /* of these, packs with their rows in `rows` */
    sherd__pack_chunk **chunks; /* entry NULL: none of its packs is on this node */
    uint32_t room;              /* capacity of `chunks` */
    uint32_t dropped;           /* first pack to release, from 1; `next` links the others */
    uint32_t x_size;            /* bytes of the widest type of inputs so far */
    bool values;                /* some targets are float64 */
    bool cleared;
    sherd__packed *rows; /* one for each example */
    sherd__rows list;    /* the list that `numbers` is for; len 0: no list */
    bool listed;         /* `numbers` is filled in */
    uint32_t *numbers;
} sherd__packs;

/* ---- the loop's thread ----------------------------------------------------------------------- */

/** Allocates memory for this number of examples. On SHERD_ENOMEM *p is closed. */
int sherd__packs_open(sherd__packs *p, sherd__pool *pool, uint32_t examples,
                      sherd_diag *d) SHERD_MUST;
/** Closes *p, and adds its packs to *old, for sherd__packs_reap. A zeroed *p is allowed. */
void sherd__packs_close(sherd__packs *p, sherd__pack_chunk **old);

/** Finds and holds the packs below number `packs`, at most `most` of them in a call; p->taken is
 *  the number reached. Returns SHERD_EFORMAT where there are more than a coordinator sends between
 *  two steps, and SHERD_ENOMEM. */
int sherd__packs_take(sherd__packs *p, const sherd__store *store, uint64_t job, uint32_t packs,
                      uint32_t most, sherd_diag *d) SHERD_MUST;
/** Records that a block has left the store. If it holds the inputs or targets of a pack, this pack
 *  is held until sherd__packs_release. May be called at any time. */
void sherd__packs_drop(sherd__packs *p, const sherd__block *b);
/** Releases up to `most` dropped packs. Returns how many. */
size_t sherd__packs_release(sherd__packs *p, size_t most);
/** Releases packs of closed tables, some hundred at a time. Returns how many, up to `most`. */
size_t sherd__packs_reap(sherd__pack_chunk **old, size_t most);
/** Allocates memory for this list, unless it is the current one. Returns SHERD_ENOMEM. */
int sherd__packs_list(sherd__packs *p, const sherd__rows *list, sherd_diag *d) SHERD_MUST;
/** Returns the most bytes needed to copy this number of rows to one place. */
uint64_t sherd__packs_scratch(const sherd__packs *p, uint64_t rows, size_t inputs, size_t width);

/* ---- the compute thread ---------------------------------------------------------------------- */

/** Records the positions of rows in the packs that were taken since, and fills in the list. Returns
 *  SHERD_EFORMAT where a pack's block of numbers is malformed. */
int sherd__packs_note(sherd__packs *p, sherd_diag *d) SHERD_MUST;
/** Checks that rows what->first to first + rows - 1 of the list are on this node. Sets *apart where
 *  they are not contiguous. Returns SHERD_EINVAL where a row is missing, and SHERD_ESHAPE where
 *  blocks have the wrong shape. */
int sherd__packs_find(const sherd__packs *p, const sherd__step_plan_shard *what, size_t inputs,
                      size_t width, bool *apart, sherd_diag *d) SHERD_MUST;
/** Returns these rows, which sherd__packs_find found, as a shard. They are copied into `scratch`
 *  where they are not contiguous. */
sherd__shard sherd__packs_shard(const sherd__packs *p, const sherd__step_plan_shard *what,
                                uint8_t *scratch);

#endif
