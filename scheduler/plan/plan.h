/*
 * Divides a product into cells: rows of A into panels, columns of B into tiles. Also limits how
 * many cells may be in progress, so that neither the memory of a node nor that of the coordinator
 * is exceeded. Pure arithmetic on shapes: the same inputs give the same plan.
 */
#ifndef SCHEDULER_PLAN_PLAN_H
#define SCHEDULER_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"

typedef struct sherd__plan_input {
    size_t n, k, m;
    uint32_t slots;
    size_t widest;         /* columns of A of the widest slot; plain: k */
    double rows_kept;      /* rows of an answer per row of A, in the widest slot: number of its
                              groups, less the rows that zeros are expected to save */
    size_t rows_longest;   /* rows of A in the longest slot */
    size_t size_a, size_b; /* bytes of an operand's element, as transferred */
    uint32_t primes_len;   /* 0: answers are f64 */
    uint64_t memory;       /* of the coordinator, for cells in progress and permutations */
    uint64_t node_memory;  /* of the node with the least memory */
    const char *smallest;  /* name of that node; NULL: "a node" */
    bool may_stay;         /* panels of A can stay at the nodes (sherd__plan.left_stays) */
    uint64_t cell;         /* sherd__nodes.cell and depth */
    uint32_t tasks;
} sherd__plan_input;

typedef struct sherd__plan {
    size_t panel_rows, tile_cols;
    bool left_stays;     /* panels of A stay at the nodes, which are given one tile of B after the
                            other; otherwise tiles stay, and panels are sent for each tile */
    uint32_t depth;      /* cells in progress per node */
    uint64_t perm_cache; /* bytes */
    uint64_t cell_bytes; /* of the largest cell: operands and answer, as expected */
    uint64_t node_bytes; /* upper bound for one node, as expected */
} sherd__plan;

/** Returns the bytes from which on larger cells are made only where panels do not get too few: at
 *  least SHERD__CELL_SMALL. cell: as nodes declare it. */
uint64_t sherd__plan_enough(uint64_t cell);
/** Returns the number of rows of a panel, at least 1 and at most `most`, of `row` bytes each. If
 *  that gives fewer than `panels` panels for `rows` rows, panels are made smaller, so that transfer
 *  and computation overlap; but a cell keeps at least sherd__plan_enough(cell) bytes. */
size_t sherd__plan_panel(double most, double row, size_t rows, unsigned panels, uint64_t cell);
/** Plans a product of which each node has its own rows or columns. SHERD_EFEWNODES if a node cannot
 *  hold a single row and column; *d says what would be enough. */
int sherd__plan_make(sherd__plan *out, const sherd__plan_input *in, sherd_diag *d) SHERD_MUST;

/** Returns how many of `len` nodes may be left out: fewer than half. len is at least 1. */
size_t sherd__plan_spared(size_t len);
/**
 * Plans for most of the nodes. A node may declare too little or too much memory by mistake; it must
 * neither delay the work nor be given all of it. `rooms` is the memory of each node, ascending;
 * in->node_memory is not read. At most sherd__plan_spared(len) nodes with the least memory are left
 * out: if the work fits only without them, or if they would more than double the number of cells
 * and make cells smaller than 1 MB. *counted is the least memory of the remaining nodes. len is at
 * least 1. SHERD_EFEWNODES as sherd__plan_make, if the work does not fit in most of the nodes.
 */
int sherd__plan_fit(sherd__plan *out, uint64_t *counted, const sherd__plan_input *in,
                    const uint64_t *rooms, size_t len, sherd_diag *d) SHERD_MUST;

/**
 * Plans panels of rows for an element-wise operation of 1 or 2 operands: reads n, slots, widest and
 * memory of *in. Nodes are left out as by sherd__plan_fit: if a row does not fit into them, or if
 * they would more than double the number of panels. The memory of the remaining nodes is used,
 * however large or small.
 */
void sherd__plan_rows(sherd__plan *out, uint64_t *counted, const sherd__plan_input *in,
                      unsigned operands, const uint64_t *rooms, size_t len);

/* Bytes of a cell. Larger ones than the first bring no advantage; smaller ones than the second are
 * not made for overlap, or to suit one node. */
#define SHERD__CELL_MAX (UINT64_C(16) << 20)
#define SHERD__CELL_SMALL (UINT64_C(1) << 20)

/* Bytes of B at a node from which on panels of A stay (sherd__plan.left_stays); of a tile then, at
 * most. */
#define SHERD__TILE_STAYING (UINT64_C(16) << 20)

#define SHERD__MEMORY_DEFAULT (UINT64_C(192) << 20)

#endif
