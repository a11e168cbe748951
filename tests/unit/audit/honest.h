/* Operands hidden by the scheme's own functions, for the tests of the audit. */
#ifndef TESTS_UNIT_AUDIT_HONEST_H
#define TESTS_UNIT_AUDIT_HONEST_H

#include "audit/stats.h"

typedef struct honest {
    sherd__seen_code code;
    sherd__seen seen;
    double **blocks;
    uint32_t *residues;
    const uint32_t **pointers;
    uint32_t *domains; /* share i belongs to domain i, unless a test changes that */
} honest;

/** The primes of the next encodings; two of 23 bits, unless a test changes that. */
typedef struct honest_primes {
    uint32_t len, p[SHERD__AUDIT_PRIMES];
} honest_primes;
extern honest_primes honest_under;

/** Encodes K blocks of rows x cols values, similar to those of an image, for N shares, with masks
 *  of their own. */
void honest_make(honest *h, uint32_t k, uint32_t t, uint32_t n, size_t rows, size_t cols,
                 uint64_t seed);
/** Writes one row of a mask: canonical residues of p. */
typedef void honest_mask(void *ctx, uint32_t t, uint32_t prime, uint32_t p, size_t row, size_t cols,
                         double *out);
/** As honest_make, with masks that the caller provides. */
void honest_make_under(honest *h, uint32_t k, uint32_t t, uint32_t n, size_t rows, size_t cols,
                       uint64_t seed, honest_mask *mask, void *ctx);
void honest_free(honest *h);

#endif
