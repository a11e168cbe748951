/*
 * Which sums of other people's numbers were to be opened, of which step and over whom: a file
 * `sums` in a folder of checkpoints, beside the chain (store/chain.h).
 *
 *     sherd-sums-1
 *     over HEX HEX ...               nodes of the steps that follow: SHA-256 of keys, ascending
 *     asked 40 4                     a round of step 40 was begun, of which 4 open a sum: its
 *                                    uploads cost privacy
 *     step 40                        its sum was to be opened
 *     asked 41 4
 *     step 41
 *
 * Two sums of one step over other sets of nodes would differ by what single nodes have. So a step
 * is written down, and synced, before a node is asked to open its sum; a process that is killed
 * and goes on from an earlier checkpoint reads here over which nodes it has to make that step again
 * (docs/THREATS.md).
 *
 * Who learns it: keys of nodes and how far a training came. The file is 0600. Whoever may write the
 * folder can remove it; an older copy of the folder does not know of what came later.
 */
#ifndef STORE_SUMLIST_H
#define STORE_SUMLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "store/digest.h"

/** Nodes of one sum. */
#define SHERD__SUMLIST_NODES 1024u

typedef struct sherd__sumlist sherd__sumlist;

/**
 * `fresh`: begins an empty list, whatever was there. Else the list must be there: SHERD_EFORMAT
 * where it is not, or holds what no such list does, with its line. SHERD_EOPEN, SHERD_EIO,
 * SHERD_ENOMEM. One process has a folder at a time (the chain's lock).
 */
int sherd__sumlist_open(sherd__sumlist **out, const char *folder, bool fresh,
                        sherd_diag *d) SHERD_MUST;
/** What is known of a step. */
typedef struct sherd__sumlist_step {
    const sherd__digest *who; /* ascending: over whom its sum was to be opened, or else its last
                                 round was begun; NULL: nothing was. Valid until the next call */
    size_t len;
    uint32_t threshold; /* of its last round; 0: of none */
    bool opened;
} sherd__sumlist_step;
sherd__sumlist_step sherd__sumlist_find(const sherd__sumlist *s, uint64_t step);
/**
 * The sum of this step is about to be opened over these, of which no two are alike: lasts when the
 * call returns. Again over the same is nothing new; over others it is SHERD_EINVAL. SHERD_EIO,
 * SHERD_ENOMEM: nobody may be asked.
 */
int sherd__sumlist_add(sherd__sumlist *s, uint64_t step, const sherd__digest *who, size_t len,
                       sherd_diag *d) SHERD_MUST;
/** A round of this step begins among these, which costs privacy whatever comes of it. Not synced.
 *  Errors of sherd__sumlist_add. */
int sherd__sumlist_ask(sherd__sumlist *s, uint64_t step, uint32_t threshold,
                       const sherd__digest *who, size_t len, sherd_diag *d) SHERD_MUST;
/** How many rounds were begun, in earlier runs too, and of which steps, i from 0. */
size_t sherd__sumlist_rounds(const sherd__sumlist *s);
uint64_t sherd__sumlist_round(const sherd__sumlist *s, size_t i);
/** NULL is allowed. */
void sherd__sumlist_close(sherd__sumlist *s);

#endif
