/* What nodes saw, from records or simulated: the input of the attacks. */
#ifndef AUDIT_INPUT_H
#define AUDIT_INPUT_H

#include "audit/audit.h"

typedef struct sherd__audit_input {
    sherd__audit_cast cast;       /* points into the members below */
    sherd__views record;          /* empty: simulated */
    uint64_t job;                 /* of the record, that is audited */
    sherd__adversary_view *views; /* [node] values in clear of a product */
    sherd__elements *elements[2]; /* [node] of A and of B; NULL: no element-wise operation */
    bool coded;                   /* nodes saw shares: */
    sherd__shares shares, *more;  /* of the job, and of further products of the record */
    size_t more_len;
    char (*names)[96];
    const char **name, **domain_name;
    uint32_t *domain;
} sherd__audit_input;

/**
 * Reads records. Warnings, what is left out, subject and form go to the report. opt: with defaults.
 * The caller frees *in (zeroed before) with sherd__audit_input_fini, on failure too. Errors as
 * sherd_audit_records.
 */
int sherd__audit_input_read(sherd__audit_input *in, sherd_audit *r, const char *const *folders,
                            size_t folders_len, const sherd_audit_options *opt,
                            sherd_diag *d) SHERD_MUST;
/** Makes what `nodes` nodes would see of opt->data. SHERD_ENOMEM. */
int sherd__audit_input_simulate(sherd__audit_input *in, sherd_audit *r, sherd_audit_form form,
                                uint32_t nodes, const sherd_audit_options *opt,
                                sherd_diag *d) SHERD_MUST;
void sherd__audit_input_fini(sherd__audit_input *in);

/**
 * Draws the columns of a k-column operand that nodes are given: *cols receives the columns of node
 * i, ascending, at (*first)[i] to (*first)[i + 1]. The caller frees both with sherd__free.
 * SHERD_ENOMEM.
 */
int sherd__audit_assign(uint32_t **cols, size_t **first, size_t k, uint32_t nodes,
                        uint64_t draw) SHERD_MUST;

#endif
