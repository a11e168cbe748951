/*
 * Encoding by finite differences. Blocks, masks and shares are the values of one polynomial at 1,
 * 2, 3, ... The differences of its first K+T values give the next value by one addition per
 * difference, and so on for each further value (Newton), where a weighted sum takes one product per
 * term and share. The numbers that are added are fractions: y is represented by y*2^32/p, rounded,
 * in 32 bits. Overflow is the reduction modulo p, and the residue of a share is the upper half of
 * the product of its fraction and p.
 *
 * This is exact as long as the rounding errors, each counted as often as its difference was added,
 * stay below 2^32/p in total, that is, for few terms and few shares. Where they stay below a
 * quarter of it, the product is computed in floats, and its sum with 2^23 contains the bits of the
 * residue: two operations instead of four. Writing whole cache lines, 64 columns at a time, through
 * the caches or bypassing them, took fewer cycles but a tenth more time, since the processor slows
 * down for so many wide operations. Other weights and processors use lagrange_wide.c, which gives
 * the same bits.
 */
#include "crypto/lagrange_internal.h"

#include "matrix/clones.h"
#include "matrix/residue.h"

#ifndef SHERD__V4_BYTES
bool sherd__lcc_encode_steps(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                             const double *const *in, size_t n, uint8_t *const *out)
{
    (void)w, (void)shares, (void)blocks, (void)p, (void)in, (void)n, (void)out;
    return false;
}
#else
#include <immintrin.h>
#include <math.h>

#define INLINED SHERD__V4_BYTES static inline __attribute__((always_inline))
/* GROUP: columns of a group. AHEAD: bytes by which lines are prefetched before they are written
 * (see lagrange_wide.c). TERMS: most terms. WORTH: fewest shares for which differences pay. BEYOND:
 * columns after a group that leave room for the 16 bytes written beyond its 48. */
enum { GROUP = 16, AHEAD = 768, TERMS = 6, WORTH = 3, BEYOND = 6 };

/* Computes the differences: y[0] is the last value, y[k] its k-th backward difference. */
static void differences_of(double *y, uint32_t terms)
{
    for (uint32_t k = 1; k < terms; k++)
        for (uint32_t j = 0; j < terms - k; j++) y[j] = y[j + 1] - y[j];
    for (uint32_t i = 0, j = terms - 1; i < j; i++, j--) {
        double other = y[i];
        y[i] = y[j];
        y[j] = other;
    }
}

/* Advances the differences from one value to the next. */
static void step(double *y, uint32_t terms)
{
    for (uint32_t k = terms - 1; k > 0; k--) y[k - 1] += y[k];
}

/* Returns whether the weights of a term are those of points 1, 2, 3, ... */
static bool in_steps(const double *w, uint32_t shares, uint32_t terms, uint32_t term)
{
    double y[TERMS] = { 0 };
    y[term] = 1.0;
    differences_of(y, terms);
    for (uint32_t i = 0; i < shares; i++) {
        step(y, terms);
        if (w[(size_t)i * terms + term] != y[0]) return false;
    }
    return true;
}

/* Start value of the fractions, and how residues are computed from them. */
typedef struct reading {
    double start;
    bool floats;
} reading;

/**
 * Returns whether the fractions are exact enough, and how to read them. The last term's weight in
 * the last share is the number of times that differences have been added there. Each difference has
 * an error of at most 0.5 + 2^-16 in either direction; half of the total range of errors is added
 * to the value. The conversion of a fraction to float has a further error of at most 128, and the
 * result is rounded to nearest, so that a value starts in the middle of its residue's interval of
 * 2^32/p > 512. The floats of residue 0 are exact, but they are next to 2^23, below which floats
 * have halves: their error may be at most a quarter of 2^32/p, which is at least 128.
 */
static bool exact(const double *w, uint32_t shares, uint32_t terms, uint32_t p, reading *out)
{
    double times = w[(size_t)shares * terms - 1], off = times * (0.5 + 0x1p-16) + 1.0;
    out->floats = off * (double)p < 0x1p30;
    out->start = LCC_MAGIC + floor(out->floats ? 0x1p31 / (double)p : off);
    return times >= 1.0 && (2.0 * off + 1.0) * (double)p < 0x1p32;
}

typedef struct constants {
    __m512d fraction, magic, start;
    __m512 unit, whole;
    __m512i even, p, bytes;
} constants;

INLINED constants constants_of(uint32_t p, double start)
{
    static const uint8_t bytes[64] = { 0,  1,  2,  4,  5,  6,  8,  9,  10, 12, 13, 14,
                                       16, 17, 18, 20, 21, 22, 24, 25, 26, 28, 29, 30,
                                       32, 33, 34, 36, 37, 38, 40, 41, 42, 44, 45, 46,
                                       48, 49, 50, 52, 53, 54, 56, 57, 58, 60, 61, 62 };
    return (constants){
        .fraction = _mm512_set1_pd(0x1p32 / (double)p),
        .magic = _mm512_set1_pd(LCC_MAGIC),
        .start = _mm512_set1_pd(start),
        .unit = _mm512_set1_ps((float)p * 0x1p-32f),
        .whole = _mm512_set1_ps(0x1p23f - 0.5f),
        .even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
        .p = _mm512_set1_epi64(p),
        .bytes = _mm512_loadu_si512(bytes),
    };
}

/* Computes the fractions of a group's differences into y. Whole numbers are kept in doubles: the
 * low word of 1.5*2^52 + x is x modulo 2^32. */
INLINED void begin(uint32_t terms, const double *const *x, size_t at, uint32_t lanes,
                   const constants *k, __m512i *y)
{
    __m512d a[TERMS], b[TERMS];
    for (uint32_t j = 0; j < terms; j++) {
        a[j] = _mm512_maskz_loadu_pd((__mmask8)lanes, x[j] + at);
        b[j] = _mm512_maskz_loadu_pd((__mmask8)(lanes >> 8), x[j] + at + 8);
    }
    for (uint32_t i = 1; i < terms; i++)
        for (uint32_t j = 0; j < terms - i; j++) {
            a[j] = _mm512_sub_pd(a[j + 1], a[j]);
            b[j] = _mm512_sub_pd(b[j + 1], b[j]);
        }
    for (uint32_t j = 0; j < terms; j++) {
        __m512d from = j + 1 < terms ? k->magic : k->start;
        __m512d low = _mm512_fmadd_pd(a[j], k->fraction, from);
        __m512d high = _mm512_fmadd_pd(b[j], k->fraction, from);
        y[terms - 1 - j] = _mm512_permutex2var_epi32(_mm512_castpd_si512(low), k->even,
                                                     _mm512_castpd_si512(high));
    }
}

/* Converts 16 fractions to residues of three bytes, followed by 16 unused bytes. A float from 2^23
 * to 2^24 is a whole number; its lower three bytes are its excess over 2^23. */
INLINED __m512i residues_of(bool floats, __m512i y, const constants *k)
{
    __m512i r;
    if (floats) {
        r = _mm512_castps_si512(_mm512_fmadd_ps(_mm512_cvtepu32_ps(y), k->unit, k->whole));
    } else {
        __m512i even = _mm512_mul_epu32(y, k->p);
        __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(y, 32), k->p);
        r = _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
    }
    return _mm512_permutexvar_epi8(k->bytes, r);
}

/* `terms` and `floats` are constants where this is inlined. */
INLINED void encode(uint32_t terms, bool floats, uint32_t shares, uint32_t p, double start,
                    const double *const *in, size_t n, uint8_t *const *out)
{
    const constants k = constants_of(p, start);
    const double *x[TERMS];
    for (uint32_t j = 0; j < terms; j++) x[j] = in[j];
    for (size_t at = 0; at < n; at += GROUP) {
        size_t left = n - at < GROUP ? n - at : GROUP, byte = SHERD__RESIDUE_BYTES * at;
        bool room = n - at >= GROUP + BEYOND;
        __m512i y[TERMS];
        begin(terms, x, at, (1u << left) - 1, &k, y);
        for (uint32_t i = 0; i < shares; i++) {
            for (uint32_t j = terms - 1; j > 0; j--) y[j - 1] = _mm512_add_epi32(y[j - 1], y[j]);
            if (!out[i]) continue;
            __m512i r = residues_of(floats, y[0], &k);
            __builtin_prefetch((const void *)((uintptr_t)out[i] + byte + AHEAD), 1);
            if (room) _mm512_storeu_si512(out[i] + byte, r);
            else
                _mm512_mask_storeu_epi8(out[i] + byte,
                                        (UINT64_C(1) << SHERD__RESIDUE_BYTES * left) - 1, r);
        }
    }
}

#define CASE(terms)                                                                                \
    case terms:                                                                                    \
        if (how->floats) encode(terms, true, shares, p, how->start, in, n, out);                   \
        else encode(terms, false, shares, p, how->start, in, n, out);                              \
        break

SHERD__V4_BYTES
static void encode_few(uint32_t terms, const reading *how, uint32_t shares, uint32_t p,
                       const double *const *in, size_t n, uint8_t *const *out)
{
    switch (terms) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
    }
}

bool sherd__lcc_encode_steps(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                             const double *const *in, size_t n, uint8_t *const *out)
{
    uint32_t wanted = 0;
    reading how;
    if (!SHERD__IS_V4_BYTES || blocks == 0 || blocks > TERMS || shares == 0) return false;
    for (uint32_t i = 0; i < shares; i++) wanted += out[i] != NULL;
    if (wanted < WORTH || !exact(w, shares, blocks, p, &how)) return false;
    for (uint32_t j = 0; j < blocks; j++)
        if (!in_steps(w, shares, blocks, j)) return false;
    encode_few(blocks, &how, shares, p, in, n, out);
    return true;
}
#endif
