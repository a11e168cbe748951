/*
 * What nodes saw of A under a scheme that sends its values in clear (plain, permute), as matrices
 * that can be attacked. A sheaf is a set of columns whose values lie side by side, row by row: all
 * columns of a slot under --group all, one column of non-zero values under --group 1. A sight is
 * what one adversary has: the sheaves of its nodes, those that belong to the same rows laid side by
 * side.
 *
 * Nothing here knows A: it is made of what travelled, and of n, which every scheme shows.
 */
#ifndef AUDIT_ADVERSARY_VIEW_H
#define AUDIT_ADVERSARY_VIEW_H

#include "audit/view.h"
#include "sherd/mat.h"

/** A column told from others by its values that are not zero, in any order. */
typedef struct sherd__column_key {
    uint64_t nonzeros, sum; /* sum of 64-bit hashes */
} sherd__column_key;

typedef struct sherd__sheaf {
    size_t cols;
    uint64_t rows;           /* as sent */
    size_t kept;             /* rows whose values are here, the first ones */
    double *values;          /* kept x cols */
    sherd__column_key *keys; /* by column, over all rows */
    uint32_t *panels;        /* rows of each panel */
    size_t panels_len;
} sherd__sheaf;

typedef struct sherd__adversary_view {
    sherd__sheaf *sheaves;
    size_t len;
    size_t cols;    /* in all */
    bool ordered;   /* the columns of all sheaves, one after the other, stand in A's order */
    bool integers;  /* values travelled as whole numbers */
    double largest; /* |value| over what is kept */
    uint64_t bytes; /* of blocks that it is made of */
} sherd__adversary_view;

void sherd__adversary_view_fini(sherd__adversary_view *s);

/** The job of the record that moved the most bytes in clear products; how many there are in *jobs.
 *  false: there is none. */
bool sherd__adversary_view_job(const sherd__views *v, uint64_t *job, size_t *jobs);
/**
 * What a node saw of A in a job: rows_max rows are kept. Blocks that are not whole, or coded, are
 * left out. A sight without sheaves is no error. SHERD_ENOMEM.
 */
int sherd__adversary_view_of(sherd__adversary_view *out, const sherd__node_view *v, uint64_t job,
                             size_t rows_max) SHERD_MUST;
/**
 * Pools sights: sheaves of the same panels are laid side by side where their columns are seen to go
 * together (correlations beyond chance), and a column that is there twice is taken once; rows of
 * all k columns of A are stacked. k: public; SIZE_MAX where it is not known. SHERD_ENOMEM.
 */
int sherd__adversary_view_join(sherd__adversary_view *out, const sherd__adversary_view *const *part,
                               size_t len, size_t k) SHERD_MUST;

/** What the audit's own recorder writes down. */
typedef enum sherd__form {
    SHERD__FORM_PUBLISHED, /* permute as published: values with their row indices; order not used */
    SHERD__FORM_SINGLE,    /* permute --group 1: non-zero values in row order, no indices; columns
                              in an order of their own */
    SHERD__FORM_GROUP,     /* permute --group all */
    SHERD__FORM_PLAIN      /* rows */
} sherd__form;

/**
 * A node's sight of `a` without a network: columns `cols` (rows `first`..+`rows` under plain).
 * SHERD_ENOMEM.
 */
int sherd__adversary_view_make(sherd__adversary_view *out, sherd__form form, sherd_view a,
                               const uint32_t *cols, size_t cols_len, size_t first, size_t rows,
                               size_t rows_max) SHERD_MUST;

/** Adds x (any order of calls) to a key. */
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
