/* What the files of the shares have in common: the bytes of each domain (shares_read.c), shares
 * whose cut the record tells (shares_cut.c), and which code it was (shares.c). */
#ifndef AUDIT_SHARES_INTERNAL_H
#define AUDIT_SHARES_INTERNAL_H

#include "audit/shares.h"

typedef struct shares_panel {
    uint32_t *of[SHERD__TABLE_PRIMES]; /* kept x cols */
    size_t rows, kept, cols;
    size_t sent; /* rows, with those that are not read */
} shares_panel;

/* Where a panel stands: the number of the first task that used it, and its rows. */
typedef struct shares_place {
    uint32_t task;
    size_t rows, at; /* of the share: its first row */
} shares_place;

/* A domain: what its nodes hold of A and of B. */
typedef struct shares_node {
    shares_panel a, *b;
    uint64_t *rights;          /* hashes of right blocks, those of tiles */
    uint32_t tiles, tiles_max; /* read; to be read at most */
    bool more;                 /* there are more */
    size_t rights_sent;        /* right blocks that differ, those not read too */
    uint64_t *known;           /* hashes of panels that are in */
    shares_place *places;      /* of each of these */
    size_t known_len;
} shares_node;

/** A product whose left block is coded; its right block may be public, and then is of any kind. */
bool sherd__shares_coded(const sherd__node_view *v, const sherd__view_task *t);
/**
 * What a domain's nodes hold of a job: the tiles of its B and, where cut is NULL, its share of A,
 * as far as w allows. cut: what the record says of the job. code: its primes, once they are known.
 * What cannot be read is left out. SHERD_ENOMEM.
 */
int sherd__shares_domain(shares_node *n, const sherd__views *v, uint32_t domain, uint64_t job,
                         const sherd__shares_want *w, const sherd__view_coded *cut,
                         sherd__seen_code *code) SHERD_MUST;
void sherd__shares_node_fini(shares_node *n);
/** The body of a block, sherd__free. SHERD_EFRAME: it cannot be read; SHERD_ENOMEM. */
int sherd__shares_body(const sherd__node_view *v, const sherd__view_block *b,
                       uint8_t **out) SHERD_MUST;
/** Appends a block's rows to a panel, as far as rows_max allows. SHERD_ENOMEM. */
int sherd__shares_append(shares_panel *p, const sherd__fragment_info *info, const uint8_t *body,
                         size_t rows_max) SHERD_MUST;
/**
 * Shares of A as they were cut, by what the record says: nodes[i].a of each domain that holds
 * enough, the same panels of all, and s->rows[0], which row of the data each row of each block is.
 * n: rows of the data, or 0. SHERD_EFORMAT: nothing that travelled was cut like that. SHERD_EINVAL:
 * the data are not those of the record. SHERD_ENOMEM.
 */
int sherd__shares_cut(sherd__shares *s, shares_node *nodes, const sherd__views *v, uint64_t job,
                      const sherd__view_coded *c, uint64_t n, size_t rows_max,
                      sherd_diag *d) SHERD_MUST;

#endif
