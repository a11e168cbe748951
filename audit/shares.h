/*
 * What nodes saw of coded operands, read out of records as the arrays that stats.h attacks. Which
 * scheme it was is told by what travelled: under `share` every node has a B of its own, under
 * share1 and blind all have the same; shares of share1 have one height, rows of blind add up to
 * A's. Who holds a share is a domain: the records of its nodes are read as one.
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

/** Opaque arrays behind `seen`. */
typedef struct sherd__shares {
    sherd__shares_kind kind;
    sherd__seen_code code; /* of `share` and share1: K, T, N */
    bool apart;    /* each domain by itself: under blind, and where share numbers are not known */
    bool numbered; /* nodes' own records: share numbers follow from tasks; names are not by share */
    sherd__seen_code single; /* apart: one share, one mask */
    sherd__seen *seen;       /* share: A, and every tile of B; share1: A; apart: of each domain */
    uint32_t seen_len;
    uint64_t share_rows; /* of a share of A, all of them; seen[0].rows of them are here */
    size_t tile_cols;    /* of every tile of B but the last, which may have fewer */
    uint32_t **arrays;
    size_t arrays_len;
    uint32_t *domains;           /* apart: of each seen */
    bool stays;                  /* A serves many products: every right operand is an encoding */
    uint64_t largest, largest_b; /* magnitudes in fixed point, as the record says; 0: not known */
    uint32_t **rows;             /* behind seen.row: blind: of each domain; else of A, or none */
    size_t rows_len;
    const uint32_t **index;
    char note[200];                  /* what of it is not used, or empty */
    char left_out[160];              /* right operands beyond those that are read, or empty */
    char (*parts)[24], (*names)[24]; /* behind seen.name; names: once they are numbered */
} sherd__shares;

/** The jobs of the record by the bytes of residues that they moved, the most first: *len of them,
 *  sherd__free. SHERD_ENOMEM. */
int sherd__shares_jobs(const sherd__views *v, uint64_t **jobs, size_t *len) SHERD_MUST;

/** What the auditor says, and how much is read. */
typedef struct sherd__shares_want {
    uint64_t n;            /* rows of A (of a training's data), or 0: not known */
    uint32_t masks, spare; /* of the run, where the record does not say them */
    size_t rows;           /* of each share that are kept, at most */
    uint32_t rights;       /* tiles of a coded B, or right operands of a kept A; at least 1 */
} sherd__shares_want;

/** Calls the encodings of a further product "A (2)", "B (2)". SHERD_ENOMEM. */
int sherd__shares_number(sherd__shares *s, unsigned product) SHERD_MUST;
/**
 * Reads the encodings of a job. Where the record says how A was cut, that is how rows are named;
 * else A is taken as cut once. What is beyond w->rights is counted in the note. In a coordinator's
 * record domain i holds share i. Of nodes' own records a share's number follows from the numbers of
 * its tasks, where they agree (seen.domain is whose it is); else each is taken apart from the
 * others. Which rows of A a masked row of blind hides follows from the numbers
 * of tasks and from n. SHERD_ENOMEM; SHERD_EINVAL: other data than were recorded, no code of so
 * many nodes, masks and spares is possible, or none has shares of this height; SHERD_EFORMAT: no
 * share is whole.
 */
int sherd__shares_read(sherd__shares *out, const sherd__views *v, uint64_t job,
                       const sherd__shares_want *w, sherd_diag *d) SHERD_MUST;
/** Whether there are shares of a B, with their numbers: what is known of it can be used. */
bool sherd__shares_right(const sherd__shares *s);
void sherd__shares_fini(sherd__shares *s);

#endif
