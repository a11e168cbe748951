/*
 * The interface between hiding and sending. A scheme turns one job (a product, an element-wise
 * operation) into cells, makes the fragments of each cell, checks each answer and folds it into the
 * result. The job (scheduler/job/job.h) decides which node computes which cell and when, and does
 * not know the operands.
 *
 * A cell is the answer of one slot for one row panel and one column tile. A slot is a part of the
 * work that is planned for one node; every cell must be folded exactly once, whichever node
 * computed it.
 */
#ifndef SCHEMES_SCHEME_H
#define SCHEMES_SCHEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/fragment.h"
#include "sherd/err.h"
#include "sherd/windows.h"

typedef struct sherd__cell {
    uint32_t slot, tile, panel;
} sherd__cell;

typedef struct sherd__scheme_shape {
    uint32_t slots, tiles, panels; /* every slot has `panels` panels in each of `tiles` tiles */
    bool resident;                 /* a right operand's block is resident for each (slot, tile) */
    bool shared;                   /* the resident block of a tile is the same for every slot */
    bool paired;        /* B is sent in the cells, as A is: both operands reveal the same entries */
    bool ordered;       /* answers are folded in ascending (tile, panel, slot): sums of floats */
    uint32_t threshold; /* 0: every cell is folded. Otherwise slots are shares of one encoding: any
                           `threshold` answers of a (tile, panel) are decoded together and the rest
                           is not needed. A slot always belongs to the same domain, and a domain to
                           one slot */
    bool left_stays;    /* the left operand's blocks stay at the nodes, one for each (slot, panel),
                           over tiles and further runs; the right operand's are sent with each
                           run */
    uint32_t lefts, left_from; /* left_stays: the number of panels that stay, and the first of them
                                  in this run; lefts 0: the run uses all */
    bool transposed;           /* result = left^T * right: SHERD__OP_MULTIPLY_T */
    sherd_windows windows;     /* window 0: none; otherwise nodes multiply windows of left rows */
    uint64_t result_max;       /* bytes of the largest answer */
    uint32_t primes_len;       /* 0: the node uses f64 arithmetic */
    uint32_t primes[8];
} sherd__scheme_shape;

/** The input of a cell's task, and the form that its answer must have. */
typedef struct sherd__cell_work {
    sherd__fragment *left, *right; /* owned by the receiver; right NULL: not sent with each cell */
    sherd__fragment_info result;
    bool empty; /* nothing to compute: the cell is folded at once, and nothing is sent */
} sherd__cell_work;

/** The sizes of a cell: those of its task's fragments and of its answer. */
typedef struct sherd__cell_sizes {
    sherd__fragment_info left, right, result; /* right: len is 0 unless it is sent with each cell */
    bool empty;                               /* nothing to compute, nothing is sent */
} sherd__cell_sizes;

typedef enum sherd__changed {
    SHERD__UNCHANGED,
    SHERD__LEFT_CHANGED,
    SHERD__RIGHT_CHANGED
} sherd__changed;

typedef struct sherd__hiding_ops {
    void (*shape)(const void *ctx, sherd__scheme_shape *out);
    /** Compute thread. Makes the fragments of a cell's task. A cell may be hidden again after its
     *  node was lost. SHERD_EIO: see `changed`. */
    int (*hide)(void *ctx, sherd__cell cell, sherd__cell_work *out);
    /** Compute thread. Names slots that will not be used, one bit each, until the next call: work
     *  done for all slots at once is not done for these. A slot of this set that is used all the
     *  same gets its fragment. NULL: nothing is made in advance. */
    void (*spare)(void *ctx, const uint8_t *dead);
    /** Loop thread. Makes the block that stays at the node: a source, which is read while it is
     *  sent. If its operand has changed it gives zeros instead: see `changed`. */
    int (*resident)(void *ctx, uint32_t slot, uint32_t tile, sherd__fragment **out);
    /** Compute thread, left_stays only. Makes the block of a slot's panel that stays at the node;
     *  hide gives no left block then. NULL otherwise. */
    int (*left)(void *ctx, uint32_t slot, uint32_t panel, sherd__fragment **out);
    /** Compute thread. Checks an answer. body: work.result.len bytes, not trusted. SHERD_EWRONG:
     *  the answer is wrong. SHERD_EBUSY: the answer is no longer needed and was not checked. */
    int (*check)(void *ctx, sherd__cell cell, const uint8_t *body);
    /** Compute thread. Adds a cell's answer to the result; called once for each cell, after check
     *  (body NULL if the cell was empty). */
    int (*fold)(void *ctx, sherd__cell cell, const uint8_t *body);
    /** Compute thread, threshold only (fold is then not called). Decodes the accepted answers of
     *  `len` = threshold distinct slots for a (tile, panel), once for each. NULL otherwise. */
    int (*decode)(void *ctx, uint32_t tile, uint32_t panel, const uint32_t *slots,
                  const uint8_t *const *bodies, uint32_t len);
    /** Returns the number of entries of A that the cell reveals to its node, and of B that its
     *  resident block reveals; they are distinct for distinct (slot, panel) and (slot, tile).
     *  Paired: 0 for B, which is as A. Shares reveal none. */
    void (*entries)(const void *ctx, sherd__cell cell, uint64_t *a, uint64_t *b);
    /** Returns the sizes of what hide (and left, for blocks that stay) would make, for estimates.
     *  Nothing is made or kept. Must not be called while a job runs. NULL: not supported. */
    int (*sizes)(void *ctx, sherd__cell cell, sherd__cell_sizes *out);
    /** Any thread. Returns the operand that was found to differ from the values that its masks hid
     *  before. Nothing more of it is hidden; its owner must be informed. NULL: there are no
     *  masks. */
    sherd__changed (*changed)(const void *ctx);
    /** Converts the folded sums to the final result; called after the last cell. */
    int (*finish)(void *ctx);
    void (*free)(void *ctx);
} sherd__hiding_ops;

/** A scheme opened for one job: its functions and their context. */
typedef struct sherd__hiding {
    const sherd__hiding_ops *ops;
    void *ctx;
} sherd__hiding;

#endif
