/*
 * Inference from known columns. An attacker with public rows of the same kind learns from the
 * matched columns to infer a row's label and the columns that it has not seen: once with a ridge
 * regression, once with the nearest public rows.
 */
#ifndef AUDIT_INFER_H
#define AUDIT_INFER_H

#include "audit/match.h"

#define SHERD__INFER_NEIGHBOURS 5u

/** Results for `rows` rows. [0] is by ridge regression, [1] by nearest neighbours. */
typedef struct sherd__inferred {
    size_t rows, cols;  /* cols: of the public data */
    double *rebuilt[2]; /* rows x cols, divided by the largest |value| of the view */
    uint8_t *label[2];  /* rows; NULL without public labels */
} sherd__inferred;

/**
 * Infers labels and columns. x: rows x m values of the matched columns, scaled as public data are.
 * to: the public column that each of the m is matched to (SHERD__ASSIGN_NONE: not used).
 * SHERD_ENOMEM.
 */
int sherd__infer(sherd__inferred *out, const double *x, size_t rows, size_t m, const size_t *to,
                 const sherd__public *pub) SHERD_MUST;
void sherd__inferred_fini(sherd__inferred *i);

/** Solves S W = R by Cholesky factorisation. S is symmetric and positive definite, m x m
 *  (destroyed); R is m x k, and W replaces it. SHERD_ERANGE: S is not positive definite. */
int sherd__cholesky_solve(double *s, size_t m, double *r, size_t k) SHERD_MUST;

#endif
