/*
 * Identifies the columns of the data: matches columns that a node saw with columns of public data
 * of the same kind. It uses first each column's own statistics (frequency of zeros, mean, spread,
 * quantiles), then correlations, since columns correlate in the same way in similar tables. No
 * secret is used.
 */
#ifndef AUDIT_MATCH_H
#define AUDIT_MATCH_H

#include "audit/adversary_view.h"

#define SHERD__MATCH_RATES 9u
#define SHERD__MATCH_FEATURES (SHERD__MATCH_RATES + 3u)

/** Side information of an attacker, prepared for matching. */
typedef struct sherd__public {
    size_t rows, cols;
    double *x;                        /* rows x cols, divided by the largest |value| */
    double *corr;                     /* cols x cols */
    double *features;                 /* cols x SHERD__MATCH_FEATURES */
    double rates[SHERD__MATCH_RATES]; /* thresholds of the features */
    uint8_t *labels;                  /* rows, or NULL */
    unsigned classes;                 /* labels are below it */
} sherd__public;

/** Prepares side information. labels: rows x 1 or 1 x rows of integers below 256, or NULL. At most
 *  rows_max rows are used, evenly spread. SHERD_ENOMEM; SHERD_ESHAPE, SHERD_EFORMAT for invalid
 *  labels; SHERD_EINVAL: no values. */
int sherd__public_make(sherd__public *out, sherd_view data, const sherd_view *labels,
                       size_t rows_max, sherd_diag *d) SHERD_MUST;
void sherd__public_fini(sherd__public *p);

typedef enum sherd__match_how {
    SHERD__MATCH_OWN,      /* the columns' own statistics only */
    SHERD__MATCH_TOGETHER, /* then correlations, too */
    SHERD__MATCH_ASCENDING /* and the order of columns is known to be ascending */
} sherd__match_how;

/**
 * Sets to[i] to the public column that column i of the view (of all sheaves, concatenated) is
 * matched to, or SHERD__ASSIGN_NONE. n: rows of the operand, which is public: rows that a sheaf
 * lacks are zeros. SHERD_ENOMEM; SHERD_EINVAL: ASCENDING with more columns than the public data
 * have.
 */
int sherd__match(const sherd__adversary_view *s, uint64_t n, const sherd__public *pub,
                 sherd__match_how how, size_t *to) SHERD_MUST;

#endif
