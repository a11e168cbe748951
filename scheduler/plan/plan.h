/*
 * How a product is cut: rows of A into panels, columns of B into tiles, and how many cells may be
 * under way, so that neither a node's memory nor the coordinator's is exceeded. Pure arithmetic on
 * shapes: the same inputs give the same plan.
 */
#ifndef SCHEDULER_PLAN_PLAN_H
#define SCHEDULER_PLAN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__plan_input {
    size_t n, k, m;
    uint32_t slots;
    size_t widest;         /* columns of A of the widest slot; plain: k */
    double rows_kept;      /* rows of an answer for one row of A, in the widest slot: its groups,
                               less what zeros are expected to save */
    size_t rows_longest;   /* rows of A in the longest slot */
    size_t size_a, size_b; /* bytes of an operand's element on the wire */
    uint32_t primes_len;   /* 0: answers are f64 */
    uint64_t memory;       /* the coordinator's, for cells under way and permutations */
    uint64_t node_memory;  /* the smallest node's */
    const char *smallest;  /* its name; NULL: a node */
} sherd__plan_input;

typedef struct sherd__plan {
    size_t panel_rows, tile_cols;
    uint32_t depth;      /* cells under way per node */
    uint64_t perm_cache; /* bytes */
    uint64_t cell_bytes; /* of the largest cell, operands and answer, as expected */
    uint64_t node_bytes; /* most that one node holds, as expected */
} sherd__plan;

/** "6.3 GB", "820 KB": powers of 1000, as everywhere in messages; returns out. */
const char *sherd__plan_bytes_text(double bytes, char out[16]);
/** SHERD_EFEWNODES, with what would be enough, where a node cannot hold a single row and column. */
int sherd__plan_make(sherd__plan *out, const sherd__plan_input *in, sherd_diag *d) SHERD_MUST;

/** How many of `len` nodes may be passed over: fewer than half. len is at least 1. */
size_t sherd__plan_spared(size_t len);
/**
 * Plans for most of the nodes, of which one may declare too little memory or too much, by mistake,
 * to hold the work up or to be given all of it: `rooms` is what each has, ascending;
 * in->node_memory is not read. At the low end sherd__plan_spared of them at most are passed over,
 * where the work fits only without them, or is in more than twice as many cells below 1 MB for
 * their sake. *counted: what those that remain have at least. len is at least 1. SHERD_EFEWNODES as
 * sherd__plan_make, where the work does not fit at most of them.
 */
int sherd__plan_fit(sherd__plan *out, uint64_t *counted, const sherd__plan_input *in,
                    const uint64_t *rooms, size_t len, sherd_diag *d) SHERD_MUST;

#define SHERD__MEMORY_DEFAULT (UINT64_C(192) << 20)

#endif
