/*
 * The attacks on values that travel in clear, run on what one adversary saw, and what they got
 * beside what chance gives: verbatim exposure, zero mask, columns recognised in public data,
 * labels, and rows rebuilt from the columns that were recognised.
 */
#ifndef AUDIT_CLEAR_H
#define AUDIT_CLEAR_H

#include "audit/infer.h"
#include "audit/stats.h"
#include "audit/truth.h"

#define SHERD__CLEAR_PICTURES 10u

/** Some rows as pictures, each SHERD__CLEAR_PICTURES x cols in 0..255; NULL: not to be had. */
typedef struct sherd__gallery {
    size_t rows, cols;
    uint8_t *truth;   /* the rows themselves */
    uint8_t *seen;    /* what the adversary was given, where its columns truly belong */
    uint8_t *placed;  /* the same, where it believes that they belong */
    uint8_t *rebuilt; /* what it made of that */
    char who[96];
} sherd__gallery;

void sherd__gallery_fini(sherd__gallery *g);

typedef struct sherd__clear_options {
    uint64_t n;          /* rows of the operand: public */
    uint64_t share_rows; /* coded views: rows of a whole share; 0: as many as are there */
    size_t test_rows;    /* on which labels and rebuilding are counted, at most; 0: 1000 */
    bool sketch;         /* the strongest matching only, labels and rebuilding; for `demo` */
} sherd__clear_options;

/**
 * Attacks one sight and appends findings of `who`. truth and pub may be NULL, each: what needs them
 * is left out. g (may be NULL) is filled where there is something to show. SHERD_ENOMEM;
 * SHERD_ESHAPE: the public data have other columns than the operand.
 */
int sherd__audit_clear(sherd__findings *l, sherd__gallery *g, const sherd__adversary_view *s,
                       const char *who, const sherd__truth *truth, const sherd__public *pub,
                       const sherd__clear_options *opt, sherd_diag *d) SHERD_MUST;

#endif
