/*
 * The truth: the operand that was hidden, and labels of its rows. It is used only to count how much
 * an attack got right; no attack receives any of it. The origin of a view's columns and rows is
 * found by their values.
 */
#ifndef AUDIT_TRUTH_H
#define AUDIT_TRUTH_H

#include "audit/adversary_view.h"

#define SHERD__TRUTH_NONE UINT32_MAX

typedef struct sherd__truth_column {
    sherd__column_key key;
    uint32_t col;
} sherd__truth_column;

typedef struct sherd__truth {
    sherd_view a;                /* borrowed */
    double *quantised;           /* a as it was sent in exact mode, if that differs; row-major */
    sherd__truth_column *by_key; /* a.cols, sorted */
    uint32_t *first;             /* for each column: the first one that is equal to it in all
                                    rows */
    const uint8_t *labels;       /* a.rows, borrowed, or NULL */
    unsigned classes;
} sherd__truth;

/**
 * Opens the truth. a: borrowed. `integers` and `largest` of a view (or 0): the values sent were
 * integers of at most that size; if a has others, they are quantised as exact mode does.
 * SHERD_ENOMEM, SHERD_EINVAL (more than 2^32 - 2 rows or columns).
 */
int sherd__truth_open(sherd__truth *out, sherd_view a, bool integers, double largest,
                      sherd_diag *d) SHERD_MUST;
/** As sherd__truth_open if the largest coded magnitude is known. `a` may then be in any unit, such
 *  as bytes of which a training used fractions. 0: unknown. rows: the rows of `a` that were coded,
 *  each below its number of rows, which `largest` is of; NULL: all. */
int sherd__truth_open_scaled(sherd__truth *out, sherd_view a, const uint32_t *rows, size_t rows_len,
                             uint64_t largest, sherd_diag *d) SHERD_MUST;
void sherd__truth_fini(sherd__truth *t);

/** Writes row r as it was sent. */
void sherd__truth_row(const sherd__truth *t, size_t r, double *out);

/**
 * Finds, for each column of a sheaf, the first of A's columns with its values, and how many have
 * them: 1, or more if columns are equal in all rows, as empty ones are, so that they cannot be
 * distinguished. A column that was seen in part is not found: SHERD__TRUTH_NONE and 0 (but see
 * sherd__truth_rows).
 */
void sherd__truth_columns(const sherd__truth *t, const sherd__sheaf *f, uint32_t *col,
                          uint32_t *alike);
/**
 * Finds, for each row kept in a sheaf, the row of A that it comes from, or SHERD__TRUTH_NONE. col:
 * as above; columns that are NONE are not compared. If the sheaf is as wide as A and no column is
 * known, its columns are tried as A's, in order; col and alike are set if most rows are then found.
 * SHERD_ENOMEM.
 */
int sherd__truth_rows(const sherd__truth *t, const sherd__sheaf *f, uint32_t *col, uint32_t *alike,
                      uint32_t *row) SHERD_MUST;

#endif
