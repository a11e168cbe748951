/*
 * What nodes see of A under a scheme that sends its values in clear (plain, permute), as matrices
 * that can be attacked. A sheaf is a set of columns with values stored in common rows: all columns
 * of a slot under --group all, one column of non-zero values under --group 1. An adversary view has
 * the sheaves of all nodes of one adversary; sheaves of the same rows are joined into one.
 *
 * The code here does not use A. A view is made of transferred data and of n, which every scheme
 * reveals.
 */
#ifndef AUDIT_ADVERSARY_VIEW_H
#define AUDIT_ADVERSARY_VIEW_H

#include "audit/view.h"
#include "sherd/audit.h"
#include "sherd/mat.h"

/** Identifies a column by its non-zero values, in any order. */
typedef struct sherd__column_key {
    uint64_t nonzeros, sum; /* sum of 64-bit hashes */
} sherd__column_key;

typedef struct sherd__sheaf {
    size_t cols;
    uint64_t rows;           /* as sent */
    size_t kept;             /* of the first rows; their values are stored */
    double *values;          /* kept x cols */
    sherd__column_key *keys; /* by column, over all rows sent */
    uint32_t *panels;        /* rows of each panel */
    size_t panels_len;
} sherd__sheaf;

typedef struct sherd__adversary_view {
    sherd__sheaf *sheaves;
    size_t len;
    size_t cols;    /* total */
    bool ordered;   /* the columns of all sheaves, concatenated, are in A's order */
    bool integers;  /* values were sent as integers */
    double largest; /* |value| over the rows kept */
    uint64_t bytes; /* total size of its blocks */
} sherd__adversary_view;

void sherd__adversary_view_fini(sherd__adversary_view *s);

typedef struct sherd__clear_product {
    uint64_t job; /* the one that transferred the most bytes of A */
    size_t jobs;  /* number of such jobs */
    size_t ones;  /* number of jobs that were left out */
} sherd__clear_product;

/** Finds the clear products of the record. Products of ones are left out: they measure links and
 *  nodes (scheduler/cluster/probe.c), and reveal nothing. SHERD_ENOMEM. */
int sherd__adversary_view_job(const sherd__views *v, sherd__clear_product *out) SHERD_MUST;
/**
 * Builds the view that a node has of A in a job, keeping rows_max rows. Blocks that are incomplete
 * or coded are left out. A view without sheaves is no error. SHERD_ENOMEM.
 */
int sherd__adversary_view_of(sherd__adversary_view *out, const sherd__node_view *v, uint64_t job,
                             size_t rows_max) SHERD_MUST;
/**
 * Joins views. Sheaves of the same panels are joined column-wise if their columns correlate beyond
 * chance; a column that occurs twice is used once. Rows of all k columns of A are stacked. k is
 * public; SIZE_MAX if unknown. SHERD_ENOMEM.
 */
int sherd__adversary_view_join(sherd__adversary_view *out, const sherd__adversary_view *const *part,
                               size_t len, size_t k) SHERD_MUST;

/** What a node has of an operand: these columns; under plain, `rows` rows from `first`. */
typedef struct sherd__node_part {
    const uint32_t *cols;
    size_t cols_len, first, rows;
} sherd__node_part;

/** Builds a node's view of `a` without a network. SHERD_ENOMEM. */
int sherd__adversary_view_make(sherd__adversary_view *out, sherd_audit_form form, sherd_view a,
                               const sherd__node_part *part, size_t rows_max) SHERD_MUST;

/** Adds x to a key; the order of calls does not matter. */
static inline void sherd__key_add(sherd__column_key *k, double x)
{
    uint64_t h;
    if (x == 0) return;
    __builtin_memcpy(&h, &x, sizeof h);
    h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9) + UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
    k->sum += h ^ h >> 31;
    k->nonzeros++;
}

#endif
