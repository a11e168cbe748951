/*
 * Encoding with AVX-512, in intrinsics, for two optimisations that no compiler finds in the loops
 * of lagrange.c: terms are loaded once for two shares, and results are converted from registers to
 * bytes directly. It takes a quarter fewer operations a share and gives the same bits. It handles
 * sixteen columns at a time: the low words of two vectors of doubles are joined to 16 remainders,
 * and their low three bytes to 48 bytes. A store writes 64 bytes, so the last columns are left to
 * lagrange.c. Shares are far apart in memory and a chunk writes a little of each, a pattern that
 * hardware prefetchers do not follow. Lines are therefore prefetched AHEAD bytes before they are
 * written, half of what a chunk writes.
 */
#include "crypto/lagrange_internal.h"

#include "matrix/clones.h"
#include "matrix/residue.h"

#ifndef SHERD__V4
size_t sherd__lcc_encode_wide(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                              const double *const *in, size_t n, uint8_t *const *out)
{
    (void)w, (void)shares, (void)blocks, (void)p, (void)in, (void)n, (void)out;
    return 0;
}
#else
#include <immintrin.h>
#include <stdbool.h>

#define INLINED SHERD__V4 static inline __attribute__((always_inline))
enum { GROUP = 16, AHEAD = 768 };

typedef struct constants {
    __m512d inverse, start;
    __m512i p, even, bytes, words;
} constants;

INLINED void constants_of(uint32_t p, constants *k)
{
    const lcc_division d = lcc_divide_by(p);
    k->inverse = _mm512_set1_pd(d.inverse);
    k->start = _mm512_set1_pd(d.start);
    k->p = _mm512_set1_epi32((int)p);
    k->even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    k->bytes = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0, 0, 0, 0));
    k->words = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 3, 3, 3);
}

/* Converts 16 sums to 48 bytes, followed by 16 unused bytes. */
INLINED void put(const __m512d *low, const __m512d *high, const constants *k, uint8_t *out)
{
    __m512i a = _mm512_castpd_si512(*low), b = _mm512_castpd_si512(*high);
    __m512i c = _mm512_castpd_si512(_mm512_fmadd_pd(*low, k->inverse, k->start));
    __m512i d = _mm512_castpd_si512(_mm512_fmadd_pd(*high, k->inverse, k->start));
    __m512i sum = _mm512_permutex2var_epi32(a, k->even, b);
    __m512i quotient = _mm512_permutex2var_epi32(c, k->even, d);
    __m512i r = _mm512_sub_epi32(sum, _mm512_mullo_epi32(quotient, k->p));
    r = _mm512_min_epu32(r, _mm512_add_epi32(r, k->p));
    r = _mm512_permutexvar_epi32(k->words, _mm512_shuffle_epi8(r, k->bytes));
    _mm512_storeu_si512(out, r);
}

/* The address may be beyond the buffer: a prefetch does not access it. */
INLINED void expect(const uint8_t *out)
{
    __builtin_prefetch((const void *)((uintptr_t)out + AHEAD), 1);
}

/* Encodes one share, or two. `terms` and `two` are constants where this is inlined. The empty asm
 * keeps a term in a register; without it the term would be loaded for each use. */
INLINED void encode(uint32_t terms, bool two, const double *w, const double *u, uint32_t p,
                    const double *const *in, size_t groups, uint8_t *out, uint8_t *next)
{
    const __m512d start = _mm512_set1_pd(LCC_MAGIC);
    __m512d v[2][LCC_TERMS];
    const double *x[LCC_TERMS];
    constants k;
    constants_of(p, &k);
    for (uint32_t j = 0; j < terms; j++) {
        v[0][j] = _mm512_set1_pd(w[j]);
        v[1][j] = _mm512_set1_pd(u[j]);
        x[j] = in[j];
    }
    for (size_t i = 0; i < groups; i++) {
        __m512d a = start, b = start, c = start, d = start;
        for (uint32_t j = 0; j < terms; j++) {
            __m512d y = _mm512_loadu_pd(x[j] + GROUP * i),
                    z = _mm512_loadu_pd(x[j] + GROUP * i + 8);
            __asm__("" : "+v"(y), "+v"(z));
            a = _mm512_fmadd_pd(v[0][j], y, a);
            b = _mm512_fmadd_pd(v[0][j], z, b);
            if (two) c = _mm512_fmadd_pd(v[1][j], y, c);
            if (two) d = _mm512_fmadd_pd(v[1][j], z, d);
        }
        expect(out + SHERD__RESIDUE_BYTES * GROUP * i);
        if (two) expect(next + SHERD__RESIDUE_BYTES * GROUP * i);
        put(&a, &b, &k, out + SHERD__RESIDUE_BYTES * GROUP * i);
        if (two) put(&c, &d, &k, next + SHERD__RESIDUE_BYTES * GROUP * i);
    }
}

#define CASE(terms)                                                                                \
    case terms:                                                                                    \
        if (next) encode(terms, true, w, u, p, in, groups, out, next);                             \
        else encode(terms, false, w, w, p, in, groups, out, NULL);                                 \
        break

SHERD__V4
static void encode_chunk(uint32_t terms, const double *w, const double *u, uint32_t p,
                         const double *const *in, size_t groups, uint8_t *out, uint8_t *next)
{
    switch (terms) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
    }
}

size_t sherd__lcc_encode_wide(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                              const double *const *in, size_t n, uint8_t *const *out)
{
    if (!SHERD__IS_V4 || blocks > LCC_TERMS || n < GROUP + 6) return 0;
    /* Six values leave room for the 16 bytes beyond. */
    size_t groups = (n - 6) / GROUP, chunk = LCC_CHUNK / GROUP;
    const double *x[LCC_TERMS];
    for (size_t g = 0, some; g < groups; g += some) {
        size_t at = SHERD__RESIDUE_BYTES * GROUP * g;
        some = groups - g < chunk ? groups - g : chunk;
        for (uint32_t j = 0; j < blocks; j++) x[j] = in[j] + GROUP * g;
        for (uint32_t i = 0, next; i < shares; i = next + 1) {
            for (; i < shares && !out[i]; i++) continue;
            for (next = i + 1; next < shares && !out[next]; next++) continue;
            if (i < shares)
                encode_chunk(blocks, w + (size_t)i * blocks,
                             next < shares ? w + (size_t)next * blocks : NULL, p, x, some,
                             out[i] + at, next < shares ? out[next] + at : NULL);
        }
    }
    return GROUP * groups;
}
#endif
