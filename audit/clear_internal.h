/* Counting of successes, shared by the attacks on clear and on coded views. */
#ifndef AUDIT_CLEAR_INTERNAL_H
#define AUDIT_CLEAR_INTERNAL_H

#include "audit/clear.h"

#define SHERD__CLEAR_TEST_ROWS 1000u

/** Truth about a view, found when counting; no attack receives it. */
typedef struct sherd__counting {
    const sherd__adversary_view *s;
    const char *who, *subject;
    uint32_t *col, *alike; /* by column of the view, as sherd__truth_columns returns them */
    size_t sheaf, first;   /* the widest aligned sheaf and its first column */
    bool in_place;         /* coded operands: values are residues, and a column's place is known,
                              while `col` has the first of equal columns */
    uint32_t *row;         /* by kept row of that sheaf: the row of A, or SHERD__TRUTH_NONE */
    size_t *test, tests;   /* rows of that sheaf on which attacks are counted */
    double scale;          /* factor from A's values to the scale of the public ones */
} sherd__counting;

/** Returns the row of A that test i comes from, or SHERD__TRUTH_NONE: it is not counted. */
static inline uint32_t sherd__clear_row(const sherd__counting *k, size_t i)
{
    return k->row[k->test[i]];
}

/** Returns the values of the test rows of the widest sheaf, divided by the view's largest: tests x
 *  its columns. NULL: no memory. */
double *sherd__clear_test_rows(const sherd__counting *k);
/** Each appends a finding, or none if nothing can be counted. SHERD_ENOMEM. */
int sherd__clear_zero_mask(sherd__findings *l, const sherd__counting *k, const sherd__truth *t,
                           double *line) SHERD_MUST;
int sherd__clear_matched(sherd__findings *l, const sherd__counting *k, const sherd__truth *t,
                         const sherd__public *pub, sherd__match_how how,
                         const size_t *to) SHERD_MUST;
int sherd__clear_labels(sherd__findings *l, const sherd__counting *k, const sherd__truth *t,
                        const sherd__inferred *in, unsigned which) SHERD_MUST;
int sherd__clear_rebuilt(const sherd__attack *by, const sherd__counting *k,
                         const sherd__inferred *in, unsigned which, double *line,
                         double *r2) SHERD_MUST;
/** Fills g. to: the guessed position of each column. SHERD_ENOMEM. */
int sherd__clear_draw(sherd__gallery *g, const sherd__counting *k, const sherd__truth *t,
                      const size_t *to, const double *rebuilt) SHERD_MUST;
/** Returns a finding with all values unknown. */
sherd_audit_finding sherd__clear_about(const sherd__counting *k, const char *test,
                                       const char *statistic);
/** Sets value, chance, interval and p-value of `hits` hits in n, each of probability p by
 *  chance. */
void sherd__clear_hits(sherd_audit_finding *f, double hits, size_t n, double p);

#endif
