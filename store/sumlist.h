/*
 * The sums of other parties' numbers that were to be opened, with their step and their set of
 * nodes: a file `sums` in a folder of checkpoints, next to the chain (store/chain.h).
 *
 *     sherd-sums-1
 *     over HEX HEX ...               nodes of the steps that follow: SHA-256 of keys, ascending
 *     asked 40 4                     a round of step 40 was started, of which 4 open a sum: its
 *                                    uploads cost privacy
 *     step 40                        its sum was to be opened
 *     asked 41 4
 *     step 41
 *
 * The difference of two sums of one step over different sets of nodes would reveal the values of
 * single nodes. A step is therefore recorded and synced before a node is asked to open its sum. A
 * process that is killed and resumes from an earlier checkpoint reads here over which nodes it must
 * repeat that step (docs/THREATS.md).
 *
 * Who learns it: keys of nodes and the progress of a training. The file has mode 0600. Anyone who
 * can write to the folder can remove it; an older copy of the folder lacks the later entries.
 */
#ifndef STORE_SUMLIST_H
#define STORE_SUMLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "store/digest.h"

/** Maximum number of nodes of one sum. */
#define SHERD__SUMLIST_NODES 1024u

typedef struct sherd__sumlist sherd__sumlist;

/**
 * Opens the list in `folder`. `fresh`: starts an empty list, and replaces an existing one.
 * Otherwise the list must exist. Only one process uses a folder at a time (the chain's lock). The
 * caller closes *out with sherd__sumlist_close. Errors: SHERD_EFORMAT if the list is missing or has
 * an invalid line, which the message gives; SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM.
 */
int sherd__sumlist_open(sherd__sumlist **out, const char *folder, bool fresh,
                        sherd_diag *d) SHERD_MUST;
/** The recorded state of a step. */
typedef struct sherd__sumlist_step {
    /* ascending: the nodes of its sum, if one was to be opened, else of its last round; NULL: there
     * was neither. Valid until the next call */
    const sherd__digest *who;
    size_t len;
    uint32_t threshold; /* of its last round; 0: there was none */
    bool opened;
} sherd__sumlist_step;
sherd__sumlist_step sherd__sumlist_find(const sherd__sumlist *s, uint64_t step);
/**
 * Records that the sum of this step is about to be opened over these nodes, which must be distinct.
 * The record is durable when the call returns. Repeating it for the same nodes has no effect.
 * Errors: SHERD_EINVAL for other nodes; SHERD_EIO, SHERD_ENOMEM: no node may be asked to open it.
 */
int sherd__sumlist_add(sherd__sumlist *s, uint64_t step, const sherd__digest *who, size_t len,
                       sherd_diag *d) SHERD_MUST;
/** Records that a round of this step starts among these nodes, which costs privacy whatever its
 *  outcome. Not synced. Errors: those of sherd__sumlist_add. */
int sherd__sumlist_ask(sherd__sumlist *s, uint64_t step, uint32_t threshold,
                       const sherd__digest *who, size_t len, sherd_diag *d) SHERD_MUST;
/** Return the number of rounds that were started, in earlier runs too, and the step of round i,
 *  from 0. */
size_t sherd__sumlist_rounds(const sherd__sumlist *s);
uint64_t sherd__sumlist_round(const sherd__sumlist *s, size_t i);
/** Closes the list. NULL is allowed. */
void sherd__sumlist_close(sherd__sumlist *s);

#endif
