/* Shared by the files on shares: the bytes of each domain (shares_read.c), shares with a cut
   described by the record (shares_cut.c), and the code (shares.c). */
#ifndef AUDIT_SHARES_INTERNAL_H
#define AUDIT_SHARES_INTERNAL_H

#include "audit/shares.h"

/* Rows that were sent in one block, whose masks were drawn together. */
typedef struct shares_piece {
    size_t rows, kept;
    uint8_t dtype;
} shares_piece;

typedef struct shares_panel {
    uint32_t *of[SHERD__AUDIT_PRIMES]; /* kept x cols */
    size_t rows, kept, cols;
    size_t sent;          /* rows, including those that are not read */
    bool seeded;          /* a block of it was sent as a seed */
    uint64_t stray;       /* bytes beyond the edges of laid out blocks that are not 0 */
    shares_piece *pieces; /* blocks with kept rows */
    size_t pieces_len;
} shares_panel;

/* Position of a panel: the number of the first task that used it, and its rows. */
typedef struct shares_place {
    uint32_t task;
    size_t rows, at; /* first row in the share */
} shares_place;

/* A domain: what its nodes have of A and of B. */
typedef struct shares_node {
    shares_panel a, *b;
    uint64_t *right_operands;  /* hashes of right blocks, or of tiles */
    uint32_t tiles, tiles_max; /* number read; most to read */
    bool more;                 /* there are more */
    size_t rights_sent;        /* different right blocks, including those not read */
    uint64_t *known;           /* hashes of the panels that were read */
    shares_place *places;      /* of each of these panels */
    size_t known_len;
} shares_node;

/** Returns whether a task is a product with a coded left block. Its right block may be public, and
 *  then of any kind. */
bool sherd__shares_coded(const sherd__node_view *v, const sherd__view_task *t);
/** A job of a record, within the limits of `want`. cut: the record's description of it, or NULL. */
typedef struct shares_job {
    const sherd__views *v;
    uint64_t job;
    const sherd__shares_want *want;
    const sherd__view_coded *cut;
} shares_job;
/**
 * Reads what a domain's nodes have of a job: the tiles of its B and, without a description of its
 * cut, its share of A. code: its primes, once they are known. What cannot be read is left out.
 * SHERD_ENOMEM.
 */
int sherd__shares_domain(shares_node *n, const shares_job *of, uint32_t domain,
                         sherd__seen_code *code) SHERD_MUST;
void sherd__shares_node_fini(shares_node *n);
/** The description and the body of a block; of a seed, those of the share that it encodes. */
typedef struct shares_block {
    sherd__fragment_info info;
    uint8_t *body; /* the caller frees it with sherd__free */
    bool seeded;
} shares_block;
/** SHERD_EFRAME: it cannot be read; SHERD_ENOMEM. */
int sherd__shares_body(const sherd__node_view *v, const sherd__view_block *b,
                       shares_block *out) SHERD_MUST;
/** Appends a block's rows to a panel, up to rows_max. A byte that is no residue of its prime is
 *  appended as a number that is not below it. SHERD_ENOMEM. */
int sherd__shares_append(shares_panel *p, const shares_block *b, const uint32_t *primes,
                         size_t rows_max) SHERD_MUST;
/**
 * Reads shares of A by the record's description of their cut. It sets nodes[i].a of each domain
 * that has enough (the same panels for all) and s->rows[0], the row of the data of each row of each
 * block. SHERD_EFORMAT: no transferred block has that cut. SHERD_EINVAL:
 * the data are not those of the record. SHERD_ENOMEM.
 */
int sherd__shares_cut(sherd__shares *s, shares_node *nodes, const shares_job *from,
                      sherd_diag *d) SHERD_MUST;

#endif
