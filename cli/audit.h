/* The parts of `sherd audit`: what it reads (audit_data.c), what it says (audit_tell.c), and the
 * short look that ends `sherd demo`. */
#ifndef CLI_AUDIT_H
#define CLI_AUDIT_H

#include "audit/audit.h"
#include "audit/right_operand.h"
#include "cli/cli.h"
#include "sherd/npy.h"
#include "store/idx.h"

/** A matrix from a .npy or an IDX file, or drawn. */
typedef struct sherd__audit_matrix {
    sherd_npy *npy;
    sherd__idx idx;
    uint8_t *drawn;
    sherd_view view;
    bool there;
} sherd__audit_matrix;

/** path NULL: nothing, and not there. */
int sherd__audit_matrix_open(sherd__audit_matrix *m, const char *path, sherd_diag *d) SHERD_MUST;
void sherd__audit_matrix_close(sherd__audit_matrix *m);
/** Digits drawn from strokes (learn/digits.h), rows [first, first + rows), and their labels. */
int sherd__audit_matrix_draw(sherd__audit_matrix *pixels, sherd__audit_matrix *labels,
                             uint64_t first, size_t rows, sherd_diag *d) SHERD_MUST;

/** All that an audit works on. */
typedef struct sherd__auditing {
    sherd__cli *cli;
    sherd__audit_matrix data, right, labels, pub_data, pub_labels;
    sherd__views views;
    sherd__adversary_view *sights;
    sherd__shares shares;
    sherd__shares *more; /* of further products of the record */
    size_t more_len;
    uint64_t job;                 /* of the record: what is audited */
    bool coded;                   /* shares, not sights, were seen */
    sherd__elements *elements[2]; /* [node] of A and of B: an element-wise operation was seen */
    char (*names)[96];
    uint32_t nodes, domains;
    const char **name, **domain_name; /* [node], [domain]; domain_name NULL: as nodes */
    uint32_t *domain;                 /* [node]; NULL: node i is domain i */
    uint8_t *label_bytes;             /* of A's rows */
    sherd__truth truth, truth_b;      /* truth_b: of an element-wise operation, or: */
    bool right_coded;                 /* --right is the B that shares were seen of */
    sherd__public pub;
    sherd__audit_report report;
} sherd__auditing;

/** Results on stdout. */
void sherd__audit_tell(const sherd__auditing *a);

/**
 * The end of `sherd demo`: what one of `nodes` nodes reads out of drawn digits under permute (as
 * published, and as sent here) and under share, in a few lines or, where `out` is not NULL, as its
 * member "audit". About a second.
 */
int sherd__audit_summary(uint32_t nodes, json_t *out, sherd_diag *d) SHERD_MUST;

#endif
