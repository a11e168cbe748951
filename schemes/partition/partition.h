/*
 * `permute` and `plain`: a product partitioned among nodes in clear, with or without shuffled
 * columns.
 *
 * permute (published scheme, obfuscation only): slot i holds the columns c of A with exposures[c] =
 * i, and the rows c of B. The columns of row c of B are shuffled by permutation c (or by that of
 * the first column of c's group, so that a node can add up a whole group). All-zero rows of a
 * group's columns are not sent, nor is the index of any row. Groups are sent in an order that is
 * drawn each time, and are added up in the order of their first columns. Every slot contributes to
 * every entry of C.
 *
 * plain: slot i holds a range of A's rows and all of B. Every slot owns its rows of C.
 *
 * Who learns it: a node sees its columns of A (permute) or rows (plain) in clear, and its rows of
 * B, under permute as multisets. With groups of more than one column it also sees which of their
 * rows have equal positions. docs/THREATS.md describes the attacks.
 */
#ifndef SCHEMES_PARTITION_PARTITION_H
#define SCHEMES_PARTITION_PARTITION_H

#include "core/rand.h"
#include "crypto/fragment_make.h"
#include "crypto/perm.h"
#include "matrix/fixed.h"
#include "schemes/scheme.h"
#include "sherd/mat.h"
#include "sherd/scheme.h"

extern const sherd_scheme_info sherd__permute, sherd__plain;

typedef struct sherd__partition_params {
    sherd_view a, b; /* n x k, k x m; borrowed */
    double *c;       /* n x m result, row stride ldc; borrowed */
    size_t ldc;
    uint32_t slots;
    const uint32_t *exposures; /* k slot numbers, copied; NULL: plain */
    const uint32_t *weights;   /* plain: of the slots' rows (schemes/slots.h), read while opening
                                  and not used for the next A; NULL: equal */
    uint32_t group;            /* permute: columns that share a permutation, or SHERD__GROUP_ALL */
    sherd__perm_source perm;   /* permute: permutation of B's columns, by column of A */
    sherd__perm_source rows;   /* row NULL: rows are sent in their order; otherwise a row order for
                                  each group leader */
    size_t panel_rows;         /* rows of A in one cell, at most */
    size_t tile_cols;          /* columns of B (shuffled order) in one tile, at most */
    bool left_stays;           /* plain: a panel of A is sent once and stays at its node, which is
                                  given one tile of B after the other. Otherwise a tile stays, and
                                  panels are sent for each tile */
    size_t perm_cache;         /* memory for cached permutations, bytes */
    bool skip_zeros;           /* B is finite: all-zero rows need no work */
    bool finite;               /* neither operand holds NaN or infinity */
    bool exact;
    sherd__fixed fixed_a, fixed_b; /* exact: quantisation of the operands */
    uint32_t primes_len;           /* exact: 0 if one f64 product is enough */
    uint32_t primes[4];
    sherd__entropy entropy;    /* for check vectors: fresh, never derived from the seed */
    sherd__body_memory bodies; /* for panels of A; outlives their fragments */
} sherd__partition_params;

/** Returns the narrowest element kind that holds an operand without loss. f: for exact mode. */
uint8_t sherd__partition_dtype(sherd_view v, bool exact, const sherd__fixed *f);
/** Writes n values, which the element kind must be able to hold, as bytes. */
void sherd__partition_narrow(uint8_t dtype, const double *x, size_t n, uint8_t *out);

/** Opens a product. SHERD_ENOMEM, SHERD_EINVAL (an exposure out of range), errors of perm. */
int sherd__partition_open(sherd__hiding *out, const sherd__partition_params *p) SHERD_MUST;

/**
 * Sets another A (at most as many rows as the first one; same columns and dtype width) and the
 * destination of its product; B, exposures and V*s are kept. SHERD_ESHAPE. Not with left_stays.
 */
int sherd__partition_next(sherd__hiding *h, sherd_view a, double *c, size_t ldc, bool finite,
                          const sherd__fixed *fixed_a) SHERD_MUST;

/** Returns the number of rows (entries if group = 1) that were not sent because they were zero, and
 *  the number of fragments that were sent; counted while hiding. */
void sherd__partition_counts(const sherd__hiding *h, uint64_t *skipped, uint64_t *fragments);
/**
 * Selects whether cells are sent in CSR if that is smaller (docs/PROTOCOL.md); initially they are
 * not. May be used only if B is finite, since zeros matter otherwise, and not while a job runs. Who
 * learns it: nodes see zeros in either form; listeners see sizes that depend on the number of
 * zeros.
 */
void sherd__partition_sparse(sherd__hiding *h, bool csr);
/** Returns the number of cells sent in CSR, counted while hiding. */
uint64_t sherd__partition_csr_cells(const sherd__hiding *h);

/** Returns the number of columns of A (permute) or rows (plain) assigned to a slot. */
size_t sherd__partition_planned(const sherd__hiding *h, uint32_t slot);

#endif
