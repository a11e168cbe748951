/*
 * Tests of numbers that should be uniform in [0, m). Each has a known distribution, so that its
 * p-value is valid even when very small. m is a prime or a product of two, below 2^48.
 */
#ifndef AUDIT_UNIFORM_H
#define AUDIT_UNIFORM_H

#include <stddef.h>
#include <stdint.h>

#include "audit/stats.h"

/** Tests to run; combine with |. */
enum {
    SHERD__LOOK_HIGH = 1,    /* chi2 of x*B/m, both tails */
    SHERD__LOOK_LOW = 2,     /* chi2 of x mod B, both tails */
    SHERD__LOOK_PAIRS = 4,   /* chi2 of (x[2i], x[2i+1]), high bits of each, both tails */
    SHERD__LOOK_REPEATS = 8, /* values that occurred before; structured data have many */
    SHERD__LOOK_SMALL = 16,  /* distance from 0, by its logarithm; data without masks are near 0 */
    SHERD__LOOK_ALL = 31
};

typedef struct sherd__looked {
    double value, expected, ln_p;
    unsigned cells; /* of a chi2; 0: too few numbers for this test, ln_p 0 */
} sherd__looked;

/**
 * Computes chi2 with as many cells (a power of two, 4 to 256) as leave 32 numbers for each. p is
 * accurate within a factor of 1.3 from 1 to 1e-18 (importance sampling); smaller p are not below
 * what counting allows. Expected counts are exact for m. Fewer than 128 numbers: no test.
 */
sherd__looked sherd__uniform_high(const uint64_t *x, size_t n, uint64_t m);
sherd__looked sherd__uniform_low(const uint64_t *x, size_t n, uint64_t m);
sherd__looked sherd__uniform_pairs(const uint64_t *x, size_t n, uint64_t m);
/**
 * Counts repeats among the first 65536 numbers. Their distribution is bounded by Poisson of mean
 * n(n-1)/2m, whatever the order (each number equals one of the i before it with probability i/m at
 * most; Hoeffding 1956). p is a bound. SHERD_ENOMEM.
 */
int sherd__uniform_repeats(const uint64_t *x, size_t n, uint64_t m, sherd__looked *out) SHERD_MUST;
/** Computes the mean of -ln((2|x|+1)/m), where |x| is the distance from 0 modulo m (odd). The sum
 *  is bounded by a gamma(n) variable, so p is a bound. */
sherd__looked sherd__uniform_small(const uint64_t *x, size_t n, uint64_t m);

/** Runs the tests in `looks` on x and appends a copy of *about for each, with statistic, values and
 *  sentence set. SHERD_ENOMEM. */
int sherd__uniform_look(sherd__findings *l, const sherd_audit_finding *about, const uint64_t *x,
                        size_t n, uint64_t m, unsigned looks) SHERD_MUST;

/** Appends how many x[i] equal guess[i]; one in m is expected by chance. A guess of the data that
 *  many entries confirm is right. SHERD_ENOMEM. */
int sherd__uniform_guess(sherd__findings *l, const sherd_audit_finding *about, const uint64_t *x,
                         const uint64_t *guess, size_t n, uint64_t m) SHERD_MUST;

#endif
