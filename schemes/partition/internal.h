/* Shared by the files of the partition schemes: layout (partition.c), hiding (hide.c, body.c),
 * resident blocks (resident.c), checking and folding (probe.c, fold.c). */
#ifndef SCHEMES_PARTITION_INTERNAL_H
#define SCHEMES_PARTITION_INTERNAL_H

#include "crypto/freivalds.h"

#include <assert.h>
#include "matrix/exact.h"
#include "schemes/partition/partition.h"

/** Columns of one slot that share a permutation: positions [first, first+len) of its list. */
typedef struct partition_group {
    uint32_t leader, first, len;
    size_t cached; /* row of the permutation cache, if there is one */
} partition_group;

/**
 * V*s of a resident block, for the check: one entry for each column of A in the slot. It lives as
 * long as the current check vectors of the block and the cells that were hidden under them. After a
 * wrong answer a new probe is drawn, and those cells are projected again before their answers are
 * checked.
 */
typedef struct partition_probe {
    unsigned refs; /* one reference is the block's while this probe is the current one */
    size_t width;
    double *s, *vs, *abs_vs; /* float: weights, V*s, |V||s| */
    uint8_t *taint;          /* operands with NaN or infinity: groups x width; 1 for a column of a
                                group that contains one; the column is left out of V*s */
    uint64_t *s61, *vs61;    /* exact: modulo 2^61-1 */
    sherd__f127 *vs127;      /* exact beyond 61 bits: V*s modulo 2^127-1; vs61 is then NULL */
} partition_probe;

typedef struct partition_slot {
    uint32_t *cols; /* ascending within a group, groups in order; plain: NULL */
    uint32_t ncols;
    partition_group *groups; /* in the order in which they are sent */
    uint32_t *ascending; /* indices of groups, by leader: the order in which answers are added */
    uint32_t ngroups;
    size_t row0, rows; /* rows of A */
} partition_slot;

/** State of a cell between hiding and folding it. */
typedef struct partition_cell {
    size_t rows;            /* rows of the answer, over all groups */
    partition_probe *probe; /* the probe under which it was hidden */
    uint32_t *count;        /* rows for each group */
    uint32_t *row;          /* rows of C, group after group */
    double *r;              /* float: weights (0: a row with NaN or infinity); NULL if exact */
    uint64_t *r61;
    bool csr;                /* it was sent in CSR */
    double ru_vs, tolerance; /* float: (rT*U)*(V*s); largest deviation of an honest answer */
    bool unjudged;           /* |r||U||V||s| overflows: the sums are not compared */
    uint64_t ru_vs61;
    sherd__f127 *dot, ru_vs127; /* beyond 61 bits; dot: for each row, until r is drawn */
} partition_cell;

typedef struct partition {
    sherd__partition_params p;
    size_t n, k, m;
    size_t n_max; /* rows for which buffers are sized */
    uint32_t panels, tiles;
    partition_slot *slots;
    size_t *bounds;            /* plain: of the rows of slots */
    partition_cell **cells;    /* indexed by partition_index */
    partition_probe **probes;  /* the current ones: slots (1 if plain) x tiles; NULL: not drawn */
    uint32_t *perms;           /* cached permutations, m each; NULL: derived when needed */
    uint32_t *rowperms;        /* cached row orders, n each; NULL: derived when needed */
    uint32_t *colbuf, *rowbuf; /* buffers of the compute thread: m, n */
    uint32_t *inverse;         /* likewise, m: inverse of the permutation that is being undone */
    double *panel;             /* panel_rows x widest slot */
    const double *gathered;    /* the first row that was gathered, in `panel` or in A */
    size_t gathered_ld;        /* numbers from one row to the next */
    double *line;              /* three of max(m, k) */
    size_t line_len;           /* max(m, k) */
    size_t widest;
    uint8_t dtype_a, dtype_b; /* on the wire */
    sherd__crt crt;
    sherd__i128 *wide; /* n x m sums, if residues are used */
    double *residues;  /* primes x tile_cols, of one answer row */
    sherd__i128 *wide_line;
    bool csr;          /* panels are sent in CSR, without zeros, if this is smaller */
    uint32_t *columns; /* sizes.c: for each panel and column of A, the entries that are not 0; NULL:
                          not counted */
    uint64_t skipped, fragments, csr_cells;
} partition;

/** The size of a cell's left block. */
typedef struct partition_size {
    uint8_t encoding;
    uint32_t widest;
    uint64_t rows, values; /* rows that are sent; their numbers */
    uint64_t entries, len; /* of these the non-zero ones; bytes */
} partition_size;

/** Write positions in a left block. */
typedef struct partition_body {
    uint8_t dtype, encoding;
    unsigned width; /* CSR, as are the three below */
    uint8_t *bytes;
    size_t counts, columns, values;
} partition_body;

static inline bool partition_plain(const partition *d)
{
    return !d->p.exposures;
}

static inline size_t partition_index(const partition *d, sherd__cell c)
{
    assert(c.slot < d->p.slots && c.tile < d->tiles && c.panel < d->panels);
    return ((size_t)c.tile * d->panels + c.panel) * d->p.slots + c.slot;
}

static inline size_t partition_tile_width(const partition *d, uint32_t tile)
{
    size_t from = (size_t)tile * d->p.tile_cols, left = d->m - from;
    return left < d->p.tile_cols ? left : d->p.tile_cols;
}

/** Returns row t of the panel that was gathered last. */
static inline const double *partition_panel_row(const partition *d, size_t t)
{
    return d->gathered + t * d->gathered_ld;
}

static inline partition_probe **partition_probe_of(const partition *d, uint32_t slot, uint32_t tile)
{
    return &d->probes[(partition_plain(d) ? 0 : (size_t)slot) * d->tiles + tile];
}

/** Returns the number of rows of A in a cell; *first is the first one's index in the row order. */
size_t sherd__partition_rows(const partition *d, sherd__cell c, size_t *first);
/** Returns the permutation of a group's columns, cached or derived into scratch (m entries). NULL
 *  on failure, with *err set; NULL with *err = 0 for plain: the identity. */
const uint32_t *sherd__partition_perm(const partition *d, const partition_group *g,
                                      uint32_t *scratch, int *err);
/** Returns the row order of a group in the same way; NULL with *err = 0: the natural order. */
const uint32_t *sherd__partition_order(const partition *d, const partition_group *g,
                                       uint32_t *scratch, int *err);
/** Returns columns [from, from+len) of row c of B, quantised in exact mode: in B itself where it
 *  holds them as doubles, else in `scratch`. */
const double *sherd__partition_row_b(const partition *d, size_t c, size_t from, size_t len,
                                     double *scratch);
/** Makes rows [first, first+rows) of the slot, s->ncols numbers each, readable by
 *  partition_panel_row: in A itself where its rows are those of the slot, else gathered into
 *  d->panel. */
int sherd__partition_gather(partition *d, const partition_slot *s, size_t first, size_t rows);
/** Computes the largest size of the gathered panel; if CSR is enabled, its actual size. */
void sherd__partition_size(const partition *d, const partition_slot *s, size_t rows,
                           partition_size *out);
/** Computes the actual size by examining every value. */
void sherd__partition_measure(const partition *d, const partition_slot *s, size_t rows,
                              partition_size *out);
/** Sets size->len, widest and encoding from its rows, values and (CSR) entries. */
void sherd__partition_encode(const partition *d, const partition_slot *s, partition_size *size);
/** Describes the blocks of a cell with `rows` rows. */
void sherd__partition_describe(const partition *d, sherd__cell at, size_t rows,
                               const partition_size *size, sherd__fragment_info *left,
                               sherd__fragment_info *result);
/** Forgets what sherd__partition_sizes has counted of A. */
void sherd__partition_forget(partition *d);
/** Starts a left block. bytes: room for size->len; the caller fills in the table. */
void sherd__partition_body_begin(partition_body *b, const partition *d, const partition_slot *s,
                                 const partition_size *size, uint8_t *bytes);
void sherd__partition_body_row(partition_body *b, const double *x, uint32_t len);
void sherd__partition_cell_free(partition_cell *cell);
/** Draws s and computes V*s: one pass over the slot's rows of B. */
int sherd__partition_probe_make(partition *d, const partition_slot *s, uint32_t tile,
                                partition_probe **out);
/** Releases a reference to a probe; the last release wipes and frees it. NULL is allowed. */
void sherd__partition_probe_drop(partition_probe *p);
/** A reader of the rows of a group of a slot's resident block, columns of the tile, in the order
 *  sent to the node. */
typedef struct partition_reader {
    uint32_t tile, q;
    double *line;         /* m: a row of B, if it has to be converted */
    double *row;          /* width of the tile: the row in the group's order, if it has one */
    uint32_t *scratch;    /* m */
    const uint32_t *perm; /* the group's order; NULL before its first row */
} partition_reader;
/** Sets *out to row `at` of the block: in r->row, r->line or B itself. */
int sherd__partition_shuffled_row(partition *d, const partition_slot *s, partition_reader *r,
                                  uint32_t at, const double **out);
/** Projects a cell that was hidden under an older probe again, under the current one; the data
 *  already sent does not change. */
int sherd__partition_renew(partition *d, sherd__cell at);

/** Writes columns [first, first+len) of the slot, of row r of A, quantised in exact mode. */
void sherd__partition_row_a(const partition *d, const partition_slot *s, size_t r, uint32_t first,
                            uint32_t len, double *out);
/** Makes a dense left block that info describes, of a plain slot's rows from `first` on: a source.
 */
int sherd__partition_left_rows(partition *d, uint32_t slot, size_t first,
                               const sherd__fragment_info *info, sherd__fragment **out);

int sherd__partition_hide(void *ctx, sherd__cell cell, sherd__cell_work *out);
int sherd__partition_left(void *ctx, uint32_t slot, uint32_t panel, sherd__fragment **out);
int sherd__partition_sizes(void *ctx, sherd__cell cell, sherd__cell_sizes *out);
int sherd__partition_resident(void *ctx, uint32_t slot, uint32_t tile, sherd__fragment **out);
int sherd__partition_check(void *ctx, sherd__cell cell, const uint8_t *body);
int sherd__partition_fold(void *ctx, sherd__cell cell, const uint8_t *body);
int sherd__partition_finish(void *ctx);

#endif
