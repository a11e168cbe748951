/* Shared by the files of the Lagrange code: the portable kernels (lagrange.c) and those for AVX-512
 * only (lagrange_wide.c, lagrange_steps.c). Arithmetic modulo p also serves inner.c. */
#ifndef CRYPTO_LAGRANGE_INTERNAL_H
#define CRYPTO_LAGRANGE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* LCC_CHUNK: columns per chunk, so that all its terms fit in the first-level cache. LCC_TERMS:
 * number of terms summed at a time. */
enum { LCC_CHUNK = 512, LCC_TERMS = 8 };

/** Returns x^e modulo p. */
static inline uint64_t lcc_power(uint64_t x, uint32_t e, uint32_t p)
{
    uint64_t r = 1;
    for (x %= p; e != 0; e /= 2, x = x * x % p)
        if (e & 1) r = r * x % p;
    return r;
}

/** Returns a number congruent to a - b, in [0, p]. */
static inline uint64_t lcc_difference(uint32_t a, uint32_t b, uint32_t p)
{
    return a >= b ? (a - b) % p : p - (b - a) % p;
}

/** Returns the canonical residue of x < p. */
static inline double lcc_balanced(uint64_t x, uint32_t p)
{
    return x > (p - 1) / 2 ? (double)x - (double)p : (double)x;
}

/**
 * Division of sums of at most LCC_TERMS products of canonical residues by p. Sums start at
 * LCC_MAGIC = 1.5*2^52, so that their lowest 32 bits are those of the sum in two's complement; the
 * same holds for quotients. The remainder is small and needs no more bits. The quotient is that by
 * 2^51/floor(2^51/p), so that LCC_MAGIC times its inverse is a whole number. For |sum| <= 8*h^2 it
 * has an error of at most 2^-4, so that -p < sum - quotient*p < p.
 */
#define LCC_MAGIC 0x1.8p52
typedef struct lcc_division {
    double inverse, start; /* quotient = sum * inverse + start */
    uint32_t p;
} lcc_division;

static inline lcc_division lcc_divide_by(uint32_t p)
{
    double whole = (double)((UINT64_C(1) << 51) / p);
    return (lcc_division){ whole * 0x1p-51, LCC_MAGIC - 3.0 * whole, p };
}

/** Does sherd__lcc_encode for the first columns, with AVX-512 and up to LCC_TERMS blocks and masks.
 *  Returns the number of columns done; 0 where it is not supported. */
size_t sherd__lcc_encode_wide(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                              const double *const *in, size_t n, uint8_t *const *out);
/** Does sherd__lcc_encode with AVX-512 if the weights are those of points 1, 2, 3, ... and there
 *  are not too many terms or shares. Otherwise returns false and does nothing. */
bool sherd__lcc_encode_steps(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                             const double *const *in, size_t n, uint8_t *const *out);

#endif
