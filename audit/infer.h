/*
 * What follows from columns that are known: an attacker who has public rows of the same kind
 * learns, from the columns that it matched, to tell a row's label and to fill in the columns that
 * it has not seen. Once with a ridge regression, once with the nearest public rows.
 */
#ifndef AUDIT_INFER_H
#define AUDIT_INFER_H

#include "audit/match.h"

#define SHERD__INFER_NEIGHBOURS 5u

/** What was inferred of `rows` rows. Linear and nearest: [0] and [1]. */
typedef struct sherd__inferred {
    size_t rows, cols;  /* cols: of the public data */
    double *rebuilt[2]; /* rows x cols, over the largest |value| of the sight */
    uint8_t *label[2];  /* rows; NULL without public labels */
} sherd__inferred;

/**
 * x: rows x m values of the matched columns, scaled as public data are; to: which public column
 * each of the m is taken for (SHERD__ASSIGN_NONE: not used). SHERD_ENOMEM.
 */
int sherd__infer(sherd__inferred *out, const double *x, size_t rows, size_t m, const size_t *to,
                 const sherd__public *pub) SHERD_MUST;
void sherd__inferred_fini(sherd__inferred *i);

/** Solves S W = R, S symmetric and positive definite m x m (destroyed), R m x k, W in R's place:
 *  Cholesky.
 *  SHERD_ERANGE: S is not positive definite. */
int sherd__cholesky_solve(double *s, size_t m, double *r, size_t k) SHERD_MUST;

#endif
