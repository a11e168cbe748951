/*
 * Element-wise operations under permutation: row r of the operands is shuffled by permutation r
 * (the same for both), and position j of every shuffled row goes to node exposures[j].
 *
 * Who learns it: a node sees the values of its positions in clear, without their original columns.
 */
#ifndef SCHEMES_ELEMENTWISE_H
#define SCHEMES_ELEMENTWISE_H

#include "core/rand.h"
#include "crypto/perm.h"
#include "schemes/scheme.h"
#include "sherd/mat.h"

typedef struct sherd__elementwise_params {
    uint32_t op;     /* matrix/funcs.h */
    sherd_view a, b; /* n x m each; b ignored for one operand; borrowed */
    double *out;     /* n x m, row stride ldo */
    size_t ldo;
    uint32_t slots;
    const uint32_t *exposures; /* m slot numbers; read only while opening */
    sherd__perm_source perm;   /* row NULL: plain, not shuffled */
    size_t panel_rows;
    size_t perm_cache;      /* memory for cached permutations, bytes */
    sherd__entropy entropy; /* selects the entries that are recomputed */
} sherd__elementwise_params;

int sherd__elementwise_open(sherd__hiding *out, const sherd__elementwise_params *p) SHERD_MUST;
/** Returns the number of columns (positions of a shuffled row) assigned to a slot. */
size_t sherd__elementwise_planned(const sherd__hiding *h, uint32_t slot);
/** Returns the probability of missing one wrong entry of an answer, the largest over all cells. */
double sherd__elementwise_check_error(const sherd__hiding *h);

#endif
