/*
 * What nodes saw of the operands of element-wise operations: of every row the values at some
 * places, in clear, in an order that is drawn for each row. So a view is, row by row, a set of
 * values; rows are those of A, in its order.
 */
#ifndef AUDIT_ELEMENTS_H
#define AUDIT_ELEMENTS_H

#include "audit/infer.h"
#include "audit/stats.h"
#include "audit/truth.h"

typedef struct sherd__elements {
    size_t rows, cols; /* that are here; cols: values of each row */
    uint64_t sent;     /* rows that were sent */
    double *values;    /* rows x cols */
    double largest;    /* |value| */
} sherd__elements;

/** The job of the record that moved the most bytes in element-wise tasks; false: there is none. */
bool sherd__elements_job(const sherd__views *v, uint64_t *job);
/**
 * What one node saw of the left operand (`right`: of the other one) in a job; rows_max rows are
 * kept. slots: nodes of the record, or 1 where that is not known. Where a node took another's part
 * over only the rows that it has of both are kept. SHERD_ENOMEM.
 */
int sherd__elements_of(sherd__elements *out, const sherd__node_view *v, uint64_t job, bool right,
                       size_t slots, size_t rows_max) SHERD_MUST;
/** What several have together: the rows that all have. SHERD_ENOMEM. */
int sherd__elements_join(sherd__elements *out, const sherd__elements *const *part,
                         size_t len) SHERD_MUST;
void sherd__elements_fini(sherd__elements *e);

/**
 * Attacks: how many of the operand's entries stand in their rows as they are; labels, and whole
 * rows, inferred from what the values of a row are, whatever their places. name: "A" or "B"; pub
 * may be NULL: entries only. Appends. SHERD_ENOMEM, SHERD_ESHAPE.
 */
int sherd__audit_elements(sherd__findings *l, const sherd__elements *e, const char *name,
                          const char *who, const sherd__truth *truth, const sherd__public *pub,
                          size_t tests, sherd_diag *d) SHERD_MUST;

#endif
