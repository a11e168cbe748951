/*
 * Attacks on values that are sent in clear, run on one adversary's view. The results are given with
 * their values by chance: verbatim exposure, zero mask, columns recognised in public data, labels,
 * and rows rebuilt from recognised columns.
 */
#ifndef AUDIT_CLEAR_H
#define AUDIT_CLEAR_H

#include "audit/infer.h"
#include "audit/stats.h"
#include "audit/truth.h"

#define SHERD__CLEAR_PICTURES 10u

#define SHERD__GALLERY 4u

/** Some rows as pictures, SHERD__GALLERY of at most SHERD__CLEAR_PICTURES rows, or none. */
typedef struct sherd__gallery {
    size_t len;
    sherd_audit_picture picture[SHERD__GALLERY];
    uint8_t *pixels; /* of all pictures */
} sherd__gallery;

/** Makes a gallery of pictures that are black; *g is then freed by sherd__gallery_fini. */
int sherd__gallery_init(sherd__gallery *g, const char *who, size_t rows, size_t cols) SHERD_MUST;
void sherd__gallery_fini(sherd__gallery *g);

typedef struct sherd__clear_options {
    uint64_t n;          /* rows of the operand: public */
    uint64_t share_rows; /* coded views: rows of a complete share; 0: as many as there are */
    size_t test_rows;    /* most rows on which labels and rebuilding are tested; 0: 1000 */
    bool sketch;         /* only the strongest matching, labels and rebuilding; for `demo` */
} sherd__clear_options;

/** An attack of `who` on a view, and where its results go. truth, to count with, and pub may each
 *  be NULL: what needs them is left out. gallery may be NULL; it is filled if there is something to
 *  show. */
typedef struct sherd__attack {
    const char *who;
    const sherd__truth *truth;
    const sherd__public *pub;
    sherd__findings *findings;
    sherd__gallery *gallery;
} sherd__attack;

/** Attacks one view and appends findings. SHERD_ENOMEM; SHERD_ESHAPE: the columns of the public
 *  data differ from the operand's. */
int sherd__audit_clear(const sherd__attack *by, const sherd__adversary_view *s,
                       const sherd__clear_options *opt, sherd_diag *d) SHERD_MUST;

#endif
