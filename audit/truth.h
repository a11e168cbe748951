/*
 * The truth: the operand that was hidden, and labels of its rows. Only for counting how much an
 * attack got right; no attack is given any of it. Where a column or row of a sight comes from is
 * found by its values.
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
    sherd_view a;      /* borrowed */
    double *quantised; /* a as it travelled in exact mode, where that differs; row-major */
    sherd__truth_column *by_key; /* a.cols, sorted */
    uint32_t *first;             /* of each column: the first one that is equal to it in all rows */
    const uint8_t *labels;       /* a.rows, borrowed, or NULL */
    unsigned classes;
} sherd__truth;

/**
 * a: borrowed; `integers` and `largest` of a sight (or 0): what travelled were whole numbers of at
 * most that size; where a holds others they are quantised as exact mode does. SHERD_ENOMEM,
 * SHERD_EINVAL (more than 2^32 - 2 rows or columns).
 */
int sherd__truth_open(sherd__truth *out, sherd_view a, bool integers, double largest,
                      sherd_diag *d) SHERD_MUST;
/** The same where the largest magnitude that was coded is known: `a` may then be in any unit, as
 *  bytes are of which a training took fractions. 0: not known. */
int sherd__truth_open_scaled(sherd__truth *out, sherd_view a, uint64_t largest,
                             sherd_diag *d) SHERD_MUST;
void sherd__truth_fini(sherd__truth *t);

/** Row r as it travelled. */
void sherd__truth_row(const sherd__truth *t, size_t r, double *out);

/**
 * Of each column of a sheaf: the first of A's columns that hold its values, and how many of them do
 * (1, or more where columns are equal in all rows, as empty ones are: they cannot be told apart). A
 * column that was seen in part is not found: SHERD__TRUTH_NONE and 0 (but see sherd__truth_rows).
 */
void sherd__truth_columns(const sherd__truth *t, const sherd__sheaf *f, uint32_t *col,
                          uint32_t *alike);
/**
 * Of each row kept in a sheaf: the row of A that it comes from, or SHERD__TRUTH_NONE. col: as
 * above; those that are NONE are not compared. If the sheaf is as wide as A and no column is known,
 * its columns are tried as A's, in order, and col and alike are set if most rows are then found.
 * SHERD_ENOMEM.
 */
int sherd__truth_rows(const sherd__truth *t, const sherd__sheaf *f, uint32_t *col, uint32_t *alike,
                      uint32_t *row) SHERD_MUST;

#endif
