/*
 * Views of the operands of element-wise operations. A node sees of every row the values at some
 * positions, in clear, in an order that is drawn for each row. So a view is a set of values for
 * each row; rows are those of A, in its order.
 */
#ifndef AUDIT_ELEMENTS_H
#define AUDIT_ELEMENTS_H

#include "audit/clear.h"

typedef struct sherd__elements {
    size_t rows, cols; /* stored here; cols: values of each row */
    uint64_t sent;     /* rows that were sent */
    double *values;    /* rows x cols */
    double largest;    /* |value| */
} sherd__elements;

/** Finds the job of the record that transferred the most bytes in element-wise tasks. Returns false
 *  if there is none. */
bool sherd__elements_job(const sherd__views *v, uint64_t *job);
/**
 * Builds the view that one node has of the left operand (`right`: of the other one) in a job,
 * keeping rows_max rows. slots: nodes of the record, or 1 if unknown. If a node took over another's
 * part, only the rows that it has of both are kept. SHERD_ENOMEM.
 */
int sherd__elements_of(sherd__elements *out, const sherd__node_view *v, uint64_t job, bool right,
                       size_t slots, size_t rows_max) SHERD_MUST;
/** Joins the views of several nodes: the rows that all have. SHERD_ENOMEM. */
int sherd__elements_join(sherd__elements *out, const sherd__elements *const *part,
                         size_t len) SHERD_MUST;
void sherd__elements_fini(sherd__elements *e);

/**
 * Attacks: counts the operand's entries that occur in their rows unchanged; infers labels and whole
 * rows from the values of a row without their positions, at most `tests` of them. name: "A" or "B".
 * by->truth must be set; without by->pub entries only are counted. SHERD_ENOMEM, SHERD_ESHAPE.
 */
int sherd__audit_elements(const sherd__attack *by, const sherd__elements *e, const char *name,
                          size_t tests, sherd_diag *d) SHERD_MUST;

#endif
