/* What the three files of the deal share: layout (partition.c), hiding (hide.c), checking and
 * folding (fold.c). */
#ifndef SCHEMES_PARTITION_INTERNAL_H
#define SCHEMES_PARTITION_INTERNAL_H

#include "crypto/freivalds.h"
#include "matrix/exact.h"
#include "schemes/partition/partition.h"

/** Columns of one slot that share a permutation: positions [first, first+len) of the slot's
 *  list. */
typedef struct deal_group {
    uint32_t leader, first, len;
    size_t cached; /* row of the permutation cache, if there is one */
} deal_group;

/**
 * V*s of a resident block, for the check: one entry per column of A in the slot. Lives as long as
 * the current check vectors of the block and the cells that were hidden under them: after a wrong
 * answer a new one is drawn, and those cells are weighed once more before they are judged.
 */
typedef struct deal_probe {
    unsigned refs; /* one is the block's own, while it is the current one */
    size_t width;
    double *s, *vs, *abs_vs; /* float: weights, V*s, |V||s| */
    uint8_t *taint;          /* operands with NaN or infinity: groups x width; such a column of a
                                   group holds one and does not take part in its V*s */
    uint64_t *s61, *vs61;    /* exact: modulo 2^61-1 */
    sherd__f127 *vs127;      /* exact beyond 61 bits: V*s modulo 2^127-1; then no vs61 */
} deal_probe;

typedef struct deal_slot {
    uint32_t *cols; /* ascending within a group, groups one after another; plain: NULL */
    uint32_t ncols;
    deal_group *groups;  /* in the order in which they travel */
    uint32_t *ascending; /* places of groups, by leader: the order in which answers are added */
    uint32_t ngroups;
    size_t row0, rows; /* of A */
} deal_slot;

/** What the coordinator remembers of a cell between hiding and folding it. */
typedef struct deal_cell {
    size_t rows;       /* rows of the answer, all groups */
    deal_probe *probe; /* what it was hidden under */
    uint32_t *count;   /* per group */
    uint32_t *row;     /* rows of C, group after group */
    double *r;         /* float: weights (0: a row with NaN or infinity); NULL if exact */
    uint64_t *r61;
    bool csr;                /* how it was sent */
    double ru_vs, tolerance; /* float: (rT*U)*(V*s), and how far an honest answer may be off */
    bool unjudged;           /* |r||U||V||s| overflows */
    uint64_t ru_vs61;
    sherd__f127 *dot, ru_vs127; /* beyond 61 bits; dot: by row, until r is drawn */
} deal_cell;

typedef struct deal {
    sherd__partition_params p;
    size_t n, k, m;
    size_t n_max; /* rows that buffers are sized for */
    uint32_t panels, tiles;
    deal_slot *slots;
    deal_cell **cells;   /* by deal_index */
    deal_probe **probes; /* the current ones: slots (1 where plain) x tiles; NULL: not drawn */
    uint32_t *perms;     /* cached permutations, m each; NULL: derived when needed */
    uint32_t *rowperms;  /* cached row orders, n each; NULL likewise */
    uint32_t *colbuf, *rowbuf; /* compute thread's scratch: m, n */
    uint32_t *inverse;         /* likewise, m: of the permutation that is being undone */
    double *panel;             /* panel_rows x widest slot */
    double *line;              /* three of max(m, k) */
    size_t line_len;           /* max(m, k) */
    size_t widest;
    uint8_t dtype_a, dtype_b; /* on the wire */
    sherd__crt crt;
    sherd__i128 *wide; /* n x m sums, where residues are in use */
    double *residues;  /* primes x tile_cols of one answer row */
    sherd__i128 *wide_line;
    bool csr; /* zeros are left out of panels where that makes them smaller */
    uint64_t skipped, fragments, csr_cells;
} deal;

/** What a cell's left block will be. */
typedef struct deal_size {
    uint8_t encoding;
    uint32_t widest;
    uint64_t rows, values; /* that stay; their numbers */
    uint64_t entries, len; /* of these what is not zero; bytes */
} deal_size;

/** A left block that is being written: where its next bytes go. */
typedef struct deal_body {
    uint8_t dtype, encoding;
    unsigned width; /* CSR, as the three below */
    uint8_t *bytes;
    size_t counts, columns, values;
} deal_body;

static inline bool deal_plain(const deal *d)
{
    return !d->p.exposures;
}

static inline size_t deal_index(const deal *d, sherd__cell c)
{
    return ((size_t)c.tile * d->panels + c.panel) * d->p.slots + c.slot;
}

static inline size_t deal_tile_width(const deal *d, uint32_t tile)
{
    size_t from = (size_t)tile * d->p.tile_cols, left = d->m - from;
    return left < d->p.tile_cols ? left : d->p.tile_cols;
}

static inline deal_probe **deal_probe_of(const deal *d, uint32_t slot, uint32_t tile)
{
    return &d->probes[(deal_plain(d) ? 0 : (size_t)slot) * d->tiles + tile];
}

/** Rows of A that a cell covers: *first within the slot's rows, as positions of its row order. */
size_t sherd__partition_rows(const deal *d, sherd__cell c, size_t *first);
/** Permutation of a group's columns: cached, or derived into scratch (m entries). NULL on failure,
 *  with *err; plain gives NULL with *err = 0: the identity. */
const uint32_t *sherd__partition_perm(const deal *d, const deal_group *g, uint32_t *scratch,
                                      int *err);
/** Row order of a group, likewise; NULL with *err = 0: the natural order. */
const uint32_t *sherd__partition_order(const deal *d, const deal_group *g, uint32_t *scratch,
                                       int *err);
/** Row c of B, quantised in exact mode, m doubles. */
void sherd__partition_row_b(const deal *d, size_t c, double *out);
/** Gathers rows [first, first+rows) of the slot into d->panel: rows x s->ncols. */
int sherd__partition_gather(deal *d, const deal_slot *s, size_t first, size_t rows);
/** The most that the gathered panel can take; where CSR is asked for, what it will take. */
void sherd__partition_size(const deal *d, const deal_slot *s, size_t rows, deal_size *out);
/** What it will take, by a look at every value. */
void sherd__partition_measure(const deal *d, const deal_slot *s, size_t rows, deal_size *out);
/** bytes: room for size->len; the table is the caller's to fill in. */
void sherd__partition_body_begin(deal_body *b, const deal *d, const deal_slot *s,
                                 const deal_size *size, uint8_t *bytes);
void sherd__partition_body_row(deal_body *b, const double *x, uint32_t len);
void sherd__partition_cell_free(deal_cell *cell);
/** Draws s and computes V*s: one pass over the slot's rows of B. */
int sherd__partition_probe_make(deal *d, const deal_slot *s, uint32_t tile, deal_probe **out);
/** Lets go of a probe; the last one to do so wipes and frees it. NULL is allowed. */
void sherd__partition_probe_drop(deal_probe *p);
/** Row `at` of the slot's resident block (of group q), columns of the tile, as the node gets it.
 *  line, scratch: m each; *perm: the group's order, NULL before its first row. */
int sherd__partition_shuffled_row(deal *d, const deal_slot *s, uint32_t q, uint32_t at,
                                  uint32_t tile, double *line, uint32_t *scratch,
                                  const uint32_t **perm, double *out);
/** Has a cell that was hidden under a probe that is no longer current weighed under the current
 *  one; what was sent of it stays as it is. */
int sherd__partition_renew(deal *d, sherd__cell at);

int sherd__partition_hide(void *ctx, sherd__cell cell, sherd__cell_work *out);
int sherd__partition_sizes(void *ctx, sherd__cell cell, sherd__cell_sizes *out);
int sherd__partition_resident(void *ctx, uint32_t slot, uint32_t tile, sherd__fragment **out);
int sherd__partition_check(void *ctx, sherd__cell cell, const uint8_t *body);
int sherd__partition_fold(void *ctx, sherd__cell cell, const uint8_t *body);
int sherd__partition_finish(void *ctx);

#endif
