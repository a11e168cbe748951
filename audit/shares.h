/*
 * Coded operands as nodes saw them, converted from records to the arrays that stats.h attacks. The
 * transferred data identify the scheme: under `share` every node has its own B, and under share1
 * and blind all have the same B; shares of share1 have the same height, while rows of blind add up
 * to A's. A share belongs to a domain: the records of its nodes are read as one.
 */
#ifndef AUDIT_SHARES_H
#define AUDIT_SHARES_H

#include "audit/stats.h"
#include "audit/view.h"

typedef enum sherd__shares_kind {
    SHERD__SHARES_BOTH, /* share */
    SHERD__SHARES_ONE,  /* share1 */
    SHERD__SHARES_BLIND /* blind */
} sherd__shares_kind;

/** The arrays that `seen` points to; opaque. */
typedef struct sherd__shares {
    sherd__shares_kind kind;
    sherd__seen_code code, code_b; /* of `share` and share1: K, T, N; as a right operand has it */
    bool apart;    /* domains are separate: under blind, and if share numbers are unknown */
    bool numbered; /* nodes' own records: share numbers were derived from tasks, so names are not by
                      share */
    sherd__seen_code single; /* apart: one share, one mask */
    sherd__seen *seen;       /* share: A, and every tile of B; share1: A; apart: one for each
                                domain */
    uint32_t seen_len;
    uint64_t share_rows; /* rows of a complete share of A; the first seen[0].rows of them are
                            stored */
    uint64_t cols;       /* of A, if it was cut by columns */
    size_t tile_cols;    /* of every tile of B except the last, which may have fewer */
    uint32_t **arrays;
    size_t arrays_len;
    uint32_t *domains;     /* apart: domain of each entry of seen */
    bool stays;            /* A is kept for many products: every right operand is an
                                    encoding */
    const uint32_t *order; /* rows of the data that A consists of: borrowed from the views;
                                    NULL: all of them, in order */
    size_t order_len;
    uint64_t largest, largest_b; /* largest magnitudes in fixed point, from the record; 0:
                                    unknown */
    uint32_t **rows;             /* memory of seen.row. blind: one per domain; else one for A, or
                                    none */
    uint32_t *right_row;         /* memory of seen.row of B if it was cut, or NULL */
    size_t rows_len;
    const uint32_t **index;
    uint64_t stray;                  /* bytes of laid out blocks that are no residues and not 0 */
    char note[200];                  /* what is not used, or empty */
    char left_out[160];              /* right operands that are not read because of the limit, or
                                        empty */
    char (*parts)[24], (*names)[24]; /* memory of seen.name; names: after sherd__shares_number */
} sherd__shares;

/** Lists the jobs of the record by the bytes of residues that they transferred, the largest first:
 *  *len of them. The caller frees *jobs with sherd__free. SHERD_ENOMEM. */
int sherd__shares_jobs(const sherd__views *v, uint64_t **jobs, size_t *len) SHERD_MUST;

/** Information from the auditor, and limits on what is read. */
typedef struct sherd__shares_want {
    uint64_t n;            /* rows of A (of a training's data), or 0: unknown */
    uint32_t masks, spare; /* of the run, used if the record does not contain them */
    size_t rows;           /* most rows kept of each share */
    uint32_t
        right_operands; /* most tiles of a coded B, or right operands of a kept A, that are read;
                              at least 1 */
    uint64_t cols;      /* columns of A, or 0: unknown */
    sherd_code code;    /* of the run, used if the record does not contain it */
} sherd__shares_want;

/** Names the encodings of a further product "A (2)", "B (2)". SHERD_ENOMEM. */
int sherd__shares_number(sherd__shares *s, unsigned product) SHERD_MUST;
/**
 * Reads the encodings of a job. If the record describes how A was cut, rows are named by that; else
 * A is taken as cut once. Operands beyond w->right_operands are counted in the note.
 *
 * In a coordinator's record domain i holds share i. In nodes' own records a share's number is
 * derived from the numbers of its tasks, if they agree (seen.domain is its domain); otherwise each
 * share is treated separately. The row of A that a masked row of blind hides is derived from the
 * numbers of tasks and from n.
 *
 * Errors: SHERD_ENOMEM. SHERD_EINVAL: the data are not the recorded ones, no code of so many nodes,
 * masks and spares exists, or none has shares of this height. SHERD_EFORMAT: no share is complete.
 */
int sherd__shares_read(sherd__shares *out, const sherd__views *v, uint64_t job,
                       const sherd__shares_want *w, sherd_diag *d) SHERD_MUST;
/** Returns whether there are shares of a B with known numbers, so that knowledge of B can be
 *  used. */
bool sherd__shares_right(const sherd__shares *s);
void sherd__shares_fini(sherd__shares *s);

#endif
