/* What the files of the Lagrange code share: kernels (lagrange.c), and those for AVX-512 alone
 * (lagrange_wide.c, lagrange_steps.c). */
#ifndef CRYPTO_LAGRANGE_INTERNAL_H
#define CRYPTO_LAGRANGE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Columns at a time, so that all terms of them lie in the first-level cache; terms summed at a
 * time. */
enum { LCC_CHUNK = 512, LCC_TERMS = 8 };

/**
 * Remainders of sums of at most LCC_TERMS products of canonical residues. Sums begin at LCC_MAGIC =
 * 1.5*2^52, so that their lowest 32 bits are those of the sum in two's complement, and quotients
 * likewise; the remainder is small and needs no more bits. The quotient is that by
 * 2^51/floor(2^51/p), which makes LCC_MAGIC times it whole: for |sum| <= 8*h^2 it is off by 2^-4 at
 * most, so that -p < sum - quotient*p < p.
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

/** sherd__lcc_encode of the first columns, with AVX-512 and up to LCC_TERMS blocks and masks: how
 *  many columns were done. 0 where that cannot be. */
size_t sherd__lcc_encode_wide(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                              const double *const *in, size_t n, uint8_t *const *out);
/** sherd__lcc_encode, if weights are those of points 1, 2, 3, ... and neither terms nor shares are
 *  too many, with AVX-512; false where that cannot be: nothing was done. */
bool sherd__lcc_encode_steps(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                             const double *const *in, size_t n, uint8_t *const *out);

#endif
