/* What the attacks on clear and on coded views share: counting what they got right. */
#ifndef AUDIT_CLEAR_INTERNAL_H
#define AUDIT_CLEAR_INTERNAL_H

#include "audit/clear.h"

#define SHERD__CLEAR_TEST_ROWS 1000u

/** What is known of a sight after counting; no attack is given it. */
typedef struct sherd__counting {
    const sherd__adversary_view *s;
    const char *who, *subject;
    uint32_t *col, *alike; /* by column of the sight, as sherd__truth_columns has them */
    size_t sheaf, first;   /* the widest aligned sheaf and its first column */
    uint32_t *row;         /* by kept row of it: the row of A, or SHERD__TRUTH_NONE */
    size_t *test, tests;   /* rows of it on which attacks are counted */
    double scale;          /* what A's values are multiplied by, to be compared with public ones */
} sherd__counting;

/** The row of A that test i comes from, or SHERD__TRUTH_NONE: it is not counted. */
static inline uint32_t sherd__clear_row(const sherd__counting *k, size_t i)
{
    return k->row[k->test[i]];
}

/** Values of the test rows of the widest sheaf, over the sight's largest: tests x its columns.
 *  NULL: no memory. */
double *sherd__clear_test_rows(const sherd__counting *k);
/** Each appends a finding, or none where nothing can be counted. SHERD_ENOMEM. */
int sherd__clear_zero_mask(sherd__findings *l, const sherd__counting *k, const sherd__truth *t,
                           double *line) SHERD_MUST;
int sherd__clear_matched(sherd__findings *l, const sherd__counting *k, const sherd__truth *t,
                         const sherd__public *pub, sherd__match_how how,
                         const size_t *to) SHERD_MUST;
int sherd__clear_labels(sherd__findings *l, const sherd__counting *k, const sherd__truth *t,
                        const sherd__inferred *in, unsigned which) SHERD_MUST;
int sherd__clear_rebuilt(sherd__findings *l, const sherd__counting *k, const sherd__truth *t,
                         const sherd__public *pub, const sherd__inferred *in, unsigned which,
                         double *line, double *r2) SHERD_MUST;
/** Fills g; to: where each column is believed to belong. SHERD_ENOMEM. */
int sherd__clear_draw(sherd__gallery *g, const sherd__counting *k, const sherd__truth *t,
                      const size_t *to, const double *rebuilt) SHERD_MUST;
/** A finding with everything unknown. */
sherd__finding sherd__clear_about(const sherd__counting *k, const char *test,
                                  const char *statistic);
/** hits of n, each by chance with probability p: value, chance, interval, p-value. */
void sherd__clear_hits(sherd__finding *f, double hits, size_t n, double p);

#endif
