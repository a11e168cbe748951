/*
 * What a node sees of B under a scheme that sends its values in clear: rows of B, in order under
 * plain, each row shuffled under permute. A row is identified by its values in any order, over all
 * tiles that it was cut into.
 */
#ifndef AUDIT_RIGHT_OPERAND_H
#define AUDIT_RIGHT_OPERAND_H

#include "audit/stats.h"
#include "audit/truth.h"

typedef struct sherd__right_operand {
    sherd__column_key *keys; /* one per row */
    size_t len;
    uint64_t tall, wide; /* rows and columns of the largest blocks */
    double largest;      /* |value| */
    bool integers;       /* they were sent as integers */
} sherd__right_operand;

/** SHERD_ENOMEM. */
int sherd__right_operand_of(sherd__right_operand *out, const sherd__node_view *v,
                            uint64_t job) SHERD_MUST;
void sherd__right_operand_fini(sherd__right_operand *r);

/** Appends how many of B's rows r contains. b: the truth of B transposed. SHERD_ENOMEM. */
int sherd__audit_right(sherd__findings *l, const sherd__right_operand *r, const char *who,
                       const sherd__truth *b) SHERD_MUST;
/** Runs both functions above for every node of a record; names[] are the nodes' names.
 *  SHERD_ENOMEM, SHERD_EINVAL, SHERD_ESHAPE. */
int sherd__audit_right_operand(sherd__findings *l, const sherd__views *v, uint64_t job,
                               const char *const *names, sherd_view b, sherd_diag *d) SHERD_MUST;

#endif
