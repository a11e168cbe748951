/* The parts of `sherd audit`: reading its input (audit_data.c), printing the results
 * (audit_tell.c), and the short audit at the end of `sherd demo`. */
#ifndef CLI_AUDIT_H
#define CLI_AUDIT_H

#include "audit/audit.h"
#include "audit/right_operand.h"
#include "cli/cli.h"
#include "sherd/npy.h"
#include "store/idx.h"

/** A matrix from a .npy or an IDX file, or a generated one. */
typedef struct sherd__audit_matrix {
    sherd_npy *npy;
    sherd__idx idx;
    uint8_t *drawn;
    sherd_view view;
    bool there;
} sherd__audit_matrix;

/** With path NULL nothing is opened and the matrix is marked absent. */
int sherd__audit_matrix_open(sherd__audit_matrix *m, const char *path, sherd_diag *d) SHERD_MUST;
void sherd__audit_matrix_close(sherd__audit_matrix *m);
/** Generates digits from strokes (learn/digits.h), rows [first, first + rows), and their labels. */
int sherd__audit_matrix_draw(sherd__audit_matrix *pixels, sherd__audit_matrix *labels,
                             uint64_t first, size_t rows, sherd_diag *d) SHERD_MUST;

/** State of an audit. */
typedef struct sherd__auditing {
    sherd__cli *cli;
    sherd__audit_matrix data, right, labels, pub_data, pub_labels;
    sherd__views views;
    sherd__adversary_view *sights;
    sherd__shares shares;
    sherd__shares *more; /* of the record's further products */
    size_t more_len;
    uint64_t job;                 /* the job of the record that is audited */
    bool coded;                   /* the nodes saw shares, not clear values */
    sherd__elements *elements[2]; /* [node] of A and of B; set if the nodes saw an element-wise
                                     operation */
    char (*names)[96];
    uint32_t nodes, domains;
    const char **name, **domain_name; /* [node], [domain]; domain_name NULL: the names of the
                                         nodes */
    uint32_t *domain;                 /* [node]; NULL: node i is domain i */
    uint8_t *label_bytes;             /* labels of A's rows */
    sherd__truth truth, truth_b;      /* truth_b: B of an element-wise operation, or: */
    bool right_coded;                 /* --right is the B of the shares that were seen */
    sherd__public pub;
    sherd_audit report;
} sherd__auditing;

/** Prints the results on stdout. */
void sherd__audit_tell(const sherd__auditing *a);

/**
 * Computes the audit at the end of `sherd demo`: what one of `nodes` nodes recovers from generated
 * digits under permute (as published, and as sent here) and under share. Prints a few lines or, if
 * `out` is not NULL, adds it as member "audit". Takes about a second.
 */
int sherd__audit_summary(uint32_t nodes, json_t *out, sherd_diag *d) SHERD_MUST;

#endif
