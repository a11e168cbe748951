/*
 * Garner's recombination with balanced digits: x = d0 + p0*(d1 + p1*(d2 + p2*d3)), each digit
 * within (p-1)/2 of 0. Digits are computed in doubles, where all products stay below 2^46 and are
 * reduced exactly. For up to three primes the last step to a double is one fma of exact parts, so
 * it rounds once; four primes need __int128.
 */
#include "matrix/exact.h"

#include "matrix/clones.h"

#include <math.h>
#include <string.h>

#define ROUND 0x1.8p52
#define CHUNK 256u

int sherd__exact_in_f64(size_t k, uint64_t amax, uint64_t bmax)
{
    sherd__u128 product;
    if (__builtin_mul_overflow((sherd__u128)k * amax, (sherd__u128)bmax, &product)) return 0;
    return product < (sherd__u128)1 << 53;
}

int sherd__exact_primes_needed(size_t k, uint64_t amax, uint64_t bmax, const sherd__primes *table,
                               size_t *primes)
{
    sherd__u128 need, product = 1;
    if (__builtin_mul_overflow((sherd__u128)k * amax, (sherd__u128)bmax, &need))
        return SHERD_ERANGE;
    for (size_t i = 0; i < SHERD__TABLE_PRIMES; i++) {
        product *= table->p[i];
        if (need <= (product - 1) / 2) {
            *primes = i + 1;
            return SHERD_OK;
        }
    }
    return SHERD_ERANGE;
}

/* Returns x^-1 mod p by Fermat's theorem. */
static uint32_t invert(uint32_t x, uint32_t p)
{
    uint64_t r = 1, b = x % p;
    for (uint32_t e = p - 2; e != 0; e >>= 1, b = b * b % p)
        if (e & 1) r = r * b % p;
    return (uint32_t)r;
}

int sherd__crt_init(sherd__crt *crt, const uint32_t *primes, size_t count)
{
    if (count < 1 || count > SHERD__TABLE_PRIMES) return SHERD_EINVAL;
    for (size_t i = 0; i < count; i++) {
        if (!sherd__prime_ok(primes[i])) return SHERD_EINVAL;
        for (size_t j = 0; j < i; j++)
            if (primes[i] == primes[j]) return SHERD_EINVAL;
    }
    *crt = (sherd__crt){ .count = count };
    for (size_t i = 0; i < count; i++) {
        crt->p[i] = primes[i];
        for (size_t j = 0; j < i; j++) crt->inverse[i][j] = invert(primes[j], primes[i]);
    }
    return SHERD_OK;
}

static inline __attribute__((always_inline)) double mod(double x, double p, double inverse)
{
    double q = x * inverse + ROUND - ROUND;
    double r = fma(-q, p, x), h = (p - 1.0) * 0.5;
    r = r > h ? r - p : r;
    return r < -h ? r + p : r;
}

/* One elimination step over a chunk: v = (v - digit) / prime of the digit, modulo p. Digits of
 * another prime may be larger than h of this one; the difference stays below 2^24. */
SHERD__CLONES_FMA
static void eliminate(double *v, const double *digit, size_t n, double p, double inv_digit)
{
    double inverse = 1.0 / p;
    for (size_t i = 0; i < n; i++)
        v[i] = mod(mod(v[i] - digit[i], p, inverse) * inv_digit, p, inverse);
}

/* Computes the digits of n <= CHUNK values. */
static void digits(const sherd__crt *crt, const double *const *residue, size_t at, size_t n,
                   double digit[SHERD__TABLE_PRIMES][CHUNK])
{
    for (size_t i = 0; i < crt->count; i++) {
        memcpy(digit[i], residue[i] + at, n * sizeof(double));
        for (size_t j = 0; j < i; j++)
            eliminate(digit[i], digit[j], n, (double)crt->p[i], (double)crt->inverse[i][j]);
    }
}

static sherd__i128 whole(const sherd__crt *crt, double digit[SHERD__TABLE_PRIMES][CHUNK], size_t i)
{
    sherd__i128 x = 0;
    for (size_t q = crt->count; q-- > 0;) x = x * crt->p[q] + (int64_t)digit[q][i];
    return x;
}

void sherd__crt_i128(const sherd__crt *crt, const double *const *residue, size_t n,
                     sherd__i128 *out)
{
    double digit[SHERD__TABLE_PRIMES][CHUNK];
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t part = n - at < CHUNK ? n - at : CHUNK;
        digits(crt, residue, at, part, digit);
        for (size_t i = 0; i < part; i++) out[at + i] = whole(crt, digit, i);
    }
}

/* d1 + p1*d2 is below 2^46, so only the outer fma rounds. */
SHERD__CLONES_FMA
static void join(const double *d0, const double *d1, const double *d2, size_t n, double p0,
                 double p1, double *out)
{
    for (size_t i = 0; i < n; i++) out[i] = fma(p0, d1[i] + p1 * d2[i], d0[i]);
}

SHERD__CLONES
static void scale_by(double *x, size_t n, double f, double g)
{
    for (size_t i = 0; i < n; i++) x[i] = x[i] * f * g + 0.0;
}

/* Uses two factors, since one may be outside the range of doubles; beyond 2^2046 any whole number
 * except 0 has already overflowed. */
void sherd__exact_unscale(double *x, size_t n, int shift)
{
    if (shift < -2046) shift = -2046;
    int first = -shift / 2;
    scale_by(x, n, ldexp(1.0, first), ldexp(1.0, -shift - first));
}

void sherd__crt_f64(const sherd__crt *crt, const double *const *residue, size_t n, int shift,
                    double *out)
{
    static const double zeros[CHUNK];
    double digit[SHERD__TABLE_PRIMES][CHUNK];
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t part = n - at < CHUNK ? n - at : CHUNK;
        digits(crt, residue, at, part, digit);
        if (crt->count <= 3)
            join(digit[0], crt->count > 1 ? digit[1] : zeros, crt->count > 2 ? digit[2] : zeros,
                 part, (double)crt->p[0], crt->count > 2 ? (double)crt->p[1] : 0.0, out + at);
        else
            for (size_t i = 0; i < part; i++) out[at + i] = sherd__i128_f64(whole(crt, digit, i));
        sherd__exact_unscale(out + at, part, shift);
    }
}

double sherd__i128_f64(sherd__i128 x)
{
    return (double)x; /* libgcc's conversion rounds to nearest, ties to even (tested) */
}
