/*
 * Encoding for few nodes, in 32-bit integers. Points that lie close to each other have weights that
 * are small whole numbers (binomials), and data are often narrow; then a share's sum fits 32 bits
 * before it is reduced. So a term is cut into two halves of 16 bits, x = high*2^shift + low, and
 * w*x = (w*2^shift)*high + w*low is one instruction for 16 columns (VNNI), where doubles take two
 * and then have to be narrowed. The quotient needs the sum's upper half alone, and its product with
 * p is again one such instruction: a third fewer operations than lagrange_wide.c, the same bits.
 * Weights that are too large, wide data and other processors are left to that file.
 */
#include "crypto/lagrange_internal.h"

#include "core/wipe.h"
#include "matrix/clones.h"
#include "matrix/residue.h"

#ifndef SHERD__V4_BYTES
bool sherd__lcc_encode_near(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                            const double *const *in, const double *most, size_t n,
                            uint8_t *const *out)
{
    (void)w, (void)shares, (void)blocks, (void)p, (void)in, (void)most, (void)n, (void)out;
    return false;
}
#else
#include <immintrin.h>
#include <math.h>

#define INLINED SHERD__V4_BYTES static inline __attribute__((always_inline))
/* Columns of a group; bytes ahead of what is written for which lines are asked for (see
 * lagrange_wide.c); terms and shares at most; shares for which it is worth cutting terms. */
enum { GROUP = 16, AHEAD = 768, TERMS = 6, SHARES = 64, WORTH = 3 };
enum { TOGETHER = 4, BEYOND = 6, HALF = 32767 };

/*
 * The remainder of |sum| <= MOST_QUOTIENT*p: with c = round(2^31/p) and h the upper half of sum,
 * q = round(h*c/2^15) is off from sum/p by less than 0.5 + 2^16/p + 0.5*|sum|/2^31 < 1 for p >=
 * LEAST, so that -p < sum - q*p < p. q*2^8 and p/2^8 fit 16 bits.
 */
enum { MOST_QUOTIENT = 120, LEAST = 1 << 19 };

/* Low bits that a term's low half takes, so that the high one fits. */
static int shift_of(double most)
{
    int shift = 0;
    while (most >= HALF * (double)(1 << shift)) shift++;
    return shift;
}

/* One share's weights as halves, if its sums are small enough. */
static bool halves(const double *w, uint32_t blocks, uint32_t p, const double *most, int32_t *out)
{
    double sum = 0.0;
    for (uint32_t j = 0; j < blocks; j++) {
        double scale = (double)(1 << shift_of(most[j]));
        sum += fabs(w[j]) * most[j];
        if (fabs(w[j]) * scale > HALF) return false;
        out[j] = (int32_t)((uint32_t)(int32_t)(w[j] * scale) << 16 |
                           ((uint32_t)(int32_t)w[j] & 0xffff));
    }
    return sum <= MOST_QUOTIENT * (double)p;
}

/* Doubles to pairs of halves: the low word of 1.5*2^52 + x is x. The last group is filled up with
 * zeros. */
SHERD__V4_BYTES
static void cut(const double *x, size_t n, int shift, int32_t *out)
{
    const __m512d magic = _mm512_set1_pd(LCC_MAGIC);
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28,
                                           30);
    const __m512i low = _mm512_set1_epi32((1 << shift) - 1), high = _mm512_set1_epi32(-65536);
    const __m512i up = _mm512_set1_epi32(16 - shift);
    for (size_t i = 0; i < n; i += GROUP) {
        uint32_t lanes = n - i < GROUP ? (1u << (n - i)) - 1 : UINT32_MAX;
        __m512d a = _mm512_maskz_loadu_pd((__mmask8)lanes, x + i);
        __m512d b = _mm512_maskz_loadu_pd((__mmask8)(lanes >> 8), x + i + 8);
        a = _mm512_add_pd(a, magic);
        b = _mm512_add_pd(b, magic);
        __m512i v = _mm512_permutex2var_epi32(_mm512_castpd_si512(a), even, _mm512_castpd_si512(b));
        __m512i h = _mm512_and_si512(_mm512_sllv_epi32(v, up), high);
        _mm512_storeu_si512(out + i, _mm512_or_si512(h, _mm512_and_si512(v, low)));
    }
}

typedef struct constants {
    __m512i inverse, spread, minus, p, bytes;
} constants;

INLINED constants constants_of(uint32_t p)
{
    static const uint8_t words[64] = {0,  1,  2,  4,  5,  6,  8,  9,  10, 12, 13, 14,
                                      16, 17, 18, 20, 21, 22, 24, 25, 26, 28, 29, 30,
                                      32, 33, 34, 36, 37, 38, 40, 41, 42, 44, 45, 46,
                                      48, 49, 50, 52, 53, 54, 56, 57, 58, 60, 61, 62};
    const uint32_t c = ((UINT32_C(1) << 31) + p / 2) / p;
    const uint32_t minus = (-(p >> 8) & 0xffff) << 16 | (-(p & 255) & 0xffff);
    return (constants){
        .inverse = _mm512_set1_epi32((int)(c << 16)), /* the lower half gives 0 */
        .spread = _mm512_broadcast_i32x4(_mm_setr_epi8(2, 3, -1, 2, 6, 7, -1, 6, 10, 11, -1, 10, 14,
                                                       15, -1, 14)), /* to q, q*2^8 */
        .minus = _mm512_set1_epi32((int)minus),
        .p = _mm512_set1_epi32((int)p),
        .bytes = _mm512_loadu_si512(words),
    };
}

/*
 * One share of the terms in `pair`, LCC_CHUNK apart: `some` groups, a constant where this is
 * inlined, side by side, since each is a chain of ten instructions that wait for each other. The
 * store of each but a single one runs 16 bytes, BEYOND values, into the next.
 */
INLINED void join(uint32_t terms, size_t some, const __m512i *v, const constants *k,
                  const int32_t *pair, __mmask64 bytes, uint8_t *out)
{
    __m512i sum[TOGETHER], q[TOGETHER];
    for (size_t i = 0; i < some; i++) sum[i] = _mm512_setzero_si512();
    for (uint32_t j = 0; j < terms; j++)
        for (size_t i = 0; i < some; i++)
            sum[i] = _mm512_dpwssd_epi32(
                sum[i], v[j], _mm512_loadu_si512(pair + (size_t)j * LCC_CHUNK + GROUP * i));
    for (size_t i = 0; i < some; i++) q[i] = _mm512_mulhrs_epi16(sum[i], k->inverse);
    for (size_t i = 0; i < some; i++) q[i] = _mm512_shuffle_epi8(q[i], k->spread);
    for (size_t i = 0; i < some; i++) sum[i] = _mm512_dpwssd_epi32(sum[i], q[i], k->minus);
    for (size_t i = 0; i < some; i++) q[i] = _mm512_add_epi32(sum[i], k->p);
    for (size_t i = 0; i < some; i++) sum[i] = _mm512_min_epu32(sum[i], q[i]);
    for (size_t i = 0; i < some; i++, out += SHERD__RESIDUE_BYTES * GROUP) {
        __m512i r = _mm512_permutexvar_epi8(k->bytes, sum[i]);
        __builtin_prefetch((const void *)((uintptr_t)out + AHEAD), 1);
        if (some > 1) _mm512_storeu_si512(out, r);
        else _mm512_mask_storeu_epi8(out, bytes, r);
    }
}

INLINED void join_all(uint32_t terms, const int32_t *w, const constants *k, const int32_t *pair,
                      size_t n, uint8_t *out)
{
    const size_t each = SHERD__RESIDUE_BYTES * GROUP;
    const __mmask64 all = (UINT64_C(1) << each) - 1;
    __m512i v[TERMS];
    size_t i = 0;
    for (uint32_t j = 0; j < terms; j++) v[j] = _mm512_set1_epi32(w[j]);
    for (; n - i >= TOGETHER * GROUP + BEYOND; i += TOGETHER * GROUP, out += TOGETHER * each)
        join(terms, TOGETHER, v, k, pair + i, all, out);
    for (; i < n; i += GROUP, out += each)
        join(terms, 1, v, k, pair + i,
             n - i < GROUP ? (UINT64_C(1) << SHERD__RESIDUE_BYTES * (n - i)) - 1 : all, out);
}

#define CASE(terms)                                                                                \
    case terms: join_all(terms, w, &k, pair, n, out); break

SHERD__V4_BYTES
static void join_chunk(uint32_t terms, const int32_t *w, uint32_t p, const int32_t *pair,
                       size_t n, uint8_t *out)
{
    const constants k = constants_of(p);
    switch (terms) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
    }
}

bool sherd__lcc_encode_near(const double *w, uint32_t shares, uint32_t blocks, uint32_t p,
                            const double *const *in, const double *most, size_t n,
                            uint8_t *const *out)
{
    int32_t weights[SHARES][TERMS], pair[TERMS * LCC_CHUNK];
    uint32_t wanted = 0;
    if (!SHERD__IS_V4_BYTES || blocks > TERMS || shares > SHARES || p < LEAST) return false;
    for (uint32_t i = 0; i < shares; i++) {
        if (out[i] && !halves(w + (size_t)i * blocks, blocks, p, most, weights[i])) return false;
        wanted += out[i] != NULL;
    }
    if (wanted < WORTH) return false;
    for (size_t at = 0; at < n; at += LCC_CHUNK) {
        size_t part = n - at < LCC_CHUNK ? n - at : LCC_CHUNK;
        for (uint32_t j = 0; j < blocks; j++)
            cut(in[j] + at, part, shift_of(most[j]), pair + (size_t)j * LCC_CHUNK);
        for (uint32_t i = 0; i < shares; i++)
            if (out[i])
                join_chunk(blocks, weights[i], p, pair, part, out[i] + SHERD__RESIDUE_BYTES * at);
    }
    /* Blocks and masks, side by side: not left behind for whoever uses this stack next. */
    sherd__wipe(pair, (size_t)blocks * LCC_CHUNK * sizeof *pair);
    return true;
}
#endif
