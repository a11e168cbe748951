/*
 * Which columns of the data are these? Matches columns that a node saw with columns of public data
 * of the same kind: first by each column's own statistics (how often zero, mean, spread,
 * quantiles), then by correlation, since columns of one table go together in the same way in
 * another. No secret is used.
 */
#ifndef AUDIT_MATCH_H
#define AUDIT_MATCH_H

#include "audit/adversary_view.h"

#define SHERD__MATCH_RATES 9u
#define SHERD__MATCH_FEATURES (SHERD__MATCH_RATES + 3u)

/** Side information, made ready: what an attacker has of its own. */
typedef struct sherd__public {
    size_t rows, cols;
    double *x;                        /* rows x cols, over the largest |value| */
    double *corr;                     /* cols x cols */
    double *features;                 /* cols x SHERD__MATCH_FEATURES */
    double rates[SHERD__MATCH_RATES]; /* thresholds of the features */
    uint8_t *labels;                  /* rows, or NULL */
    unsigned classes;                 /* labels are below this */
} sherd__public;

/** labels: rows x 1 or 1 x rows of whole numbers below 256, or NULL. At most rows_max rows are
 *  used, evenly spread. SHERD_ENOMEM; SHERD_ESHAPE, SHERD_EFORMAT for labels that are none;
 *  SHERD_EINVAL: no values. */
int sherd__public_make(sherd__public *out, sherd_view data, const sherd_view *labels,
                       size_t rows_max, sherd_diag *d) SHERD_MUST;
void sherd__public_fini(sherd__public *p);

typedef enum sherd__match_how {
    SHERD__MATCH_OWN,      /* columns' own statistics only */
    SHERD__MATCH_TOGETHER, /* then correlations */
    SHERD__MATCH_ASCENDING /* and the columns are known to be in order */
} sherd__match_how;

/**
 * to[i] = the public column that column i of the sight (of all sheaves, one after the other) is
 * taken for, or SHERD__ASSIGN_NONE. n: rows of the operand, which is public: rows that a sheaf
 * lacks are zeros. SHERD_ENOMEM; SHERD_EINVAL: ASCENDING with more columns than are public.
 */
int sherd__match(const sherd__adversary_view *s, uint64_t n, const sherd__public *pub,
                 sherd__match_how how, size_t *to) SHERD_MUST;

#endif
