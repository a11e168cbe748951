/*
 * `permute` and `plain`: a product dealt out in clear, with or without shuffled columns.
 *
 * permute (published scheme, obfuscation only): slot i holds the columns c of A with exposures[c] =
 * i and the rows c of B, whose columns are shuffled by permutation c (or by that of the first
 * column of c's group, so that a node can add a whole group up). Wholly zero rows of a group's
 * columns are not sent, nor is the index of any row. Groups travel in an order that is drawn
 * afresh, and are added up in that of their first columns. Every slot contributes to every entry of
 * C.
 *
 * plain: slot i holds a range of A's rows and all of B. Every slot owns its rows of C.
 *
 * Who learns it: a node sees its columns of A (permute) or rows (plain) in clear, and its rows of
 * B, under permute as multisets; with groups of more than one column it also sees which rows of
 * them are equal in position. docs/THREATS.md has the attacks.
 */
#ifndef SCHEMES_PARTITION_PARTITION_H
#define SCHEMES_PARTITION_PARTITION_H

#include "core/rand.h"
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
    const uint32_t *exposures; /* k slots, copied; NULL: plain */
    uint32_t group;            /* permute: columns that share a permutation; SHERD__GROUP_ALL */
    sherd__perm_source perm;   /* permute: permutation of B's columns by column of A */
    sherd__perm_source rows;   /* row NULL: rows travel in their order; else by group leader */
    size_t panel_rows;         /* rows of A that one cell covers, at most */
    size_t tile_cols;          /* columns of B (shuffled order) that one tile covers, at most */
    size_t perm_cache;         /* bytes that may be spent on keeping permutations */
    bool skip_zeros;           /* B is finite: rows of zeros need no work */
    bool finite;               /* neither operand holds NaN or infinity */
    bool exact;
    sherd__fixed fixed_a, fixed_b; /* exact: how operands are quantised */
    uint32_t primes_len;           /* exact: 0 where one f64 product holds it */
    uint32_t primes[4];
    sherd__entropy entropy; /* check vectors: fresh, never from the seed */
} sherd__partition_params;

/** The narrowest kind of element that carries an operand without loss. f: of exact mode only. */
uint8_t sherd__partition_dtype(sherd_view v, bool exact, const sherd__fixed *f);
/** n values that the element kind is known to hold, as bytes. */
void sherd__partition_narrow(uint8_t dtype, const double *x, size_t n, uint8_t *out);

/** Opens a product. Errors: SHERD_ENOMEM, SHERD_EINVAL (an exposure out of range), or of perm. */
int sherd__partition_open(sherd__hiding *out, const sherd__partition_params *p) SHERD_MUST;

/**
 * Another A (at most as many rows as the one before had at most; same columns and dtype width) and
 * where its product goes; B, exposures and V*s stay. SHERD_ESHAPE.
 */
int sherd__partition_next(sherd__hiding *h, sherd_view a, double *c, size_t ldc, bool finite,
                          const sherd__fixed *fixed_a) SHERD_MUST;

/** Rows (entries where group = 1) that were not sent because they were zero, and fragments that
 *  were: counted while hiding. */
void sherd__partition_counts(const sherd__hiding *h, uint64_t *skipped, uint64_t *fragments);
/**
 * From now on cells travel in CSR where that is smaller (docs/PROTOCOL.md); not at first. Only
 * where B is finite: zeros count otherwise. Not while a job runs. Who learns it: nodes see zeros in
 * either form, and listeners sizes that follow how many there are.
 */
void sherd__partition_sparse(sherd__hiding *h, bool csr);
/** Cells that were sent so, counted while hiding. */
uint64_t sherd__partition_csr_cells(const sherd__hiding *h);

/** Columns of A (permute) or rows (plain) dealt to a slot. */
size_t sherd__partition_planned(const sherd__hiding *h, uint32_t slot);

#endif
