/*
 * The seam between hiding and sending. A scheme turns one job (a product, an element-wise
 * operation) into cells, makes the fragments of each, checks each answer and folds it into the
 * result. The job (scheduler/job/job.h) decides which node computes which cell and when, and knows
 * nothing of operands.
 *
 * A cell is the answer of one slot for one row panel and one column tile. A slot is a part of the
 * work that is planned for one node; every cell must be folded exactly once, whoever computed it.
 */
#ifndef SCHEMES_SCHEME_H
#define SCHEMES_SCHEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/fragment.h"
#include "sherd/err.h"
#include "sherd/windows.h"

#define SHERD__SCHEME_ABI 1

typedef struct sherd__cell {
    uint32_t slot, tile, panel;
} sherd__cell;

typedef struct sherd__scheme_shape {
    uint32_t slots, tiles, panels; /* every slot has `panels` panels in each of `tiles` tiles */
    bool resident;                 /* multiply by a block that is resident per (slot, tile) */
    bool shared;                   /* the resident block of a tile is the same for every slot */
    bool paired;        /* B travels in the cells as A does: what is shown of one is shown of the
                       other */
    bool ordered;       /* answers are folded in ascending (tile, panel, slot): sums of floats */
    uint32_t threshold; /* 0: every cell is folded. Else slots are shares of one encoding: any so
                            many answers of a (tile, panel) are decoded together and the rest is not
                            needed; a slot belongs to one domain for good, and a domain to one
                            slot */
    bool left_stays;    /* the left operand's blocks stay at the nodes, one per (slot, panel), over
                            tiles and further runs; those of the right one go with each run */
    uint32_t lefts, left_from; /* left_stays: how many panels stay, and the first of them that this
                            run takes; lefts 0: it takes all */
    bool transposed;           /* result = left^T * right: SHERD__OP_MULTIPLY_T */
    sherd_windows windows; /* window 0: none; else nodes multiply those of the left blocks' rows */
    uint64_t result_max;   /* bytes of the largest answer */
    uint32_t primes_len;   /* 0: f64 arithmetic at the node */
    uint32_t primes[4];
} sherd__scheme_shape;

/** What a cell's task needs, and what its answer must look like. */
typedef struct sherd__cell_work {
    sherd__fragment *left, *right; /* the receiver's to free; right NULL unless it travels per
                                     cell */
    sherd__fragment_info result;
    bool empty; /* nothing to compute: fold it at once, nothing travels */
} sherd__cell_work;

/** The sizes of a cell: what its task's fragments and its answer will be. */
typedef struct sherd__cell_sizes {
    sherd__fragment_info left, right, result; /* right: len 0 unless it travels per cell */
    bool empty;                               /* nothing to compute, nothing travels */
} sherd__cell_sizes;

typedef enum sherd__changed {
    SHERD__UNCHANGED,
    SHERD__LEFT_CHANGED,
    SHERD__RIGHT_CHANGED
} sherd__changed;

typedef struct sherd__hiding_ops {
    uint32_t abi;
    const char *name;
    void (*shape)(const void *ctx, sherd__scheme_shape *out);
    /** Compute thread. A cell may be hidden again after its node was lost. SHERD_EIO: see
     *  `changed`. */
    int (*hide)(void *ctx, sherd__cell cell, sherd__cell_work *out);
    /** Compute thread: slots of which nothing is going to be asked, one bit each, until told
     *  otherwise; what is made for all slots at once is not made for these. One that is asked for
     *  all the same is given. NULL: nothing is made ahead. */
    void (*spare)(void *ctx, const uint8_t *dead);
    /** Loop thread. The block that stays at the node: a source, read while it is sent. Where its
     *  operand has changed it gives zeros instead: see `changed`. */
    int (*resident)(void *ctx, uint32_t slot, uint32_t tile, sherd__fragment **out);
    /** Compute thread, left_stays only: the block of a slot's panel that stays at the node; hide
     *  gives no left then. NULL otherwise. */
    int (*left)(void *ctx, uint32_t slot, uint32_t panel, sherd__fragment **out);
    /** Compute thread. body: work.result.len hostile bytes. SHERD_EWRONG: the answer is not
     *  right. SHERD_EBUSY: nobody needs it any more, and it was not looked at. */
    int (*check)(void *ctx, sherd__cell cell, const uint8_t *body);
    /** Compute thread, once per cell, after check (body NULL where the cell was empty). */
    int (*fold)(void *ctx, sherd__cell cell, const uint8_t *body);
    /** Compute thread, threshold only (fold is then not called): accepted answers of `len` =
     *  threshold distinct slots for one (tile, panel), once for each. NULL otherwise. */
    int (*decode)(void *ctx, uint32_t tile, uint32_t panel, const uint32_t *slots,
                  const uint8_t *const *bodies, uint32_t len);
    /** Entries of operand A that the cell shows its node, and of B that its resident block shows:
     *  distinct for distinct (slot, panel) and (slot, tile). Paired: of B 0, it is as A. Shares
     *  show none. */
    void (*entries)(const void *ctx, sherd__cell cell, uint64_t *a, uint64_t *b);
    /** What hide (and left, for blocks that stay) would give, for estimates; nothing is made or
     *  kept. Not while a job runs. NULL: the scheme does not tell. */
    int (*sizes)(void *ctx, sherd__cell cell, sherd__cell_sizes *out);
    /** Any thread: which operand was found to hold something else than what its masks hid before;
     *  nothing of it is hidden any more, and its owner is to be told. NULL: none has masks. */
    sherd__changed (*changed)(const void *ctx);
    /** Converts what was folded to the final result; after the last cell. */
    int (*finish)(void *ctx);
    void (*free)(void *ctx);
} sherd__hiding_ops;

/** A scheme opened for one job: the functions and what they work on. */
typedef struct sherd__hiding {
    const sherd__hiding_ops *ops;
    void *ctx;
} sherd__hiding;

#endif
