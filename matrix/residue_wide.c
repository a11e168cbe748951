/*
 * Conversion of residues to and from three bytes each with AVX-512, in intrinsics: values stay in
 * registers between bytes and doubles, where residue_pack.c uses words in memory. The bits are the
 * same, two to three times as fast. Nothing beyond the last value is read or written: the last
 * group uses a mask.
 */
#include "matrix/clones.h"
#include "matrix/residue_internal.h"

#ifndef SHERD__V4_BYTES
bool sherd__residue_pack_wide(const double *x, size_t n, uint32_t p, uint8_t *out)
{
    (void)x, (void)n, (void)p, (void)out;
    return false;
}

bool sherd__residue_unpack_wide(const uint8_t *in, size_t n, uint32_t p, double *out,
                                uint32_t *most)
{
    (void)in, (void)n, (void)p, (void)out, (void)most;
    return false;
}
#else
#include <immintrin.h>

#define INLINED SHERD__V4_BYTES static inline __attribute__((always_inline))
#define MAGIC 0x1.8p52 /* the low word of MAGIC + x is x */
enum { EIGHT = 8, SIXTEEN = 16 };

/* ---- to bytes -------------------------------------------------------------------------------- */

typedef struct packing {
    __m512d magic;
    __m512i p, even, bytes;
} packing;

/* Packs sixteen values into the lower 48 bytes. */
INLINED __m512i packed(__m512d low, __m512d high, const packing *k)
{
    __m512i a = _mm512_castpd_si512(_mm512_add_pd(low, k->magic));
    __m512i b = _mm512_castpd_si512(_mm512_add_pd(high, k->magic));
    __m512i v = _mm512_permutex2var_epi32(a, k->even, b);
    v = _mm512_min_epu32(v, _mm512_add_epi32(v, k->p)); /* a negative value is large */
    return _mm512_permutexvar_epi8(k->bytes, v);
}

SHERD__V4_BYTES
bool sherd__residue_pack_wide(const double *x, size_t n, uint32_t p, uint8_t *out)
{
    static const uint8_t bytes[64] = { 0,  1,  2,  4,  5,  6,  8,  9,  10, 12, 13, 14,
                                       16, 17, 18, 20, 21, 22, 24, 25, 26, 28, 29, 30,
                                       32, 33, 34, 36, 37, 38, 40, 41, 42, 44, 45, 46,
                                       48, 49, 50, 52, 53, 54, 56, 57, 58, 60, 61, 62 };
    if (!SHERD__IS_V4_BYTES) return false;
    const packing k = {
        .magic = _mm512_set1_pd(MAGIC),
        .p = _mm512_set1_epi32((int)p),
        .even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
        .bytes = _mm512_loadu_si512(bytes),
    };
    size_t i = 0;
    for (; n - i >= SIXTEEN + EIGHT; i += SIXTEEN) /* writes 64 bytes, 16 of them twice */
        _mm512_storeu_si512(out + SHERD__RESIDUE_BYTES * i,
                            packed(_mm512_loadu_pd(x + i), _mm512_loadu_pd(x + i + EIGHT), &k));
    for (; i < n; i += SIXTEEN) {
        uint32_t left = n - i < SIXTEEN ? (uint32_t)(n - i) : SIXTEEN, lanes = (1u << left) - 1;
        __mmask64 mask = (UINT64_C(1) << left * SHERD__RESIDUE_BYTES) - 1;
        __m512d low = _mm512_maskz_loadu_pd((__mmask8)lanes, x + i);
        __m512d high = _mm512_maskz_loadu_pd((__mmask8)(lanes >> EIGHT), x + i + EIGHT);
        _mm512_mask_storeu_epi8(out + SHERD__RESIDUE_BYTES * i, mask, packed(low, high, &k));
    }
    return true;
}

/* ---- from bytes ------------------------------------------------------------------------------ */

typedef struct unpacking {
    __m512d p, half;
    __m512i spread; /* byte 3*i+j to byte 8*i+j */
} unpacking;

/* Converts eight values from 24 bytes in the low part of `bytes`. */
INLINED __m512d unpacked(__m256i bytes, const unpacking *k, __m512i *most)
{
    __m512i v = _mm512_maskz_permutexvar_epi8(UINT64_C(0x0707070707070707), k->spread,
                                              _mm512_castsi256_si512(bytes));
    __m512d y = _mm512_cvtepi64_pd(v);
    *most = _mm512_max_epu32(*most, v);
    return _mm512_mask_sub_pd(y, _mm512_cmp_pd_mask(y, k->half, _CMP_GT_OQ), y, k->p);
}

SHERD__V4_BYTES
bool sherd__residue_unpack_wide(const uint8_t *in, size_t n, uint32_t p, double *out,
                                uint32_t *most)
{
    if (!SHERD__IS_V4_BYTES) return false;
    const unpacking k = {
        .p = _mm512_set1_pd((double)p),
        .half = _mm512_set1_pd((double)((p - 1) / 2)),
        .spread = _mm512_setr_epi64(0x020100, 0x050403, 0x080706, 0x0b0a09, 0x0e0d0c, 0x11100f,
                                    0x141312, 0x171615),
    };
    __m512i largest = _mm512_setzero_si512();
    size_t i = 0;
    for (; n - i >= 2 * EIGHT; i += EIGHT) /* reads 32 bytes of 48 */
        _mm512_storeu_pd(out + i,
                         unpacked(_mm256_loadu_si256((const void *)(in + SHERD__RESIDUE_BYTES * i)),
                                  &k, &largest));
    for (; i < n; i += EIGHT) {
        uint32_t left = n - i < EIGHT ? (uint32_t)(n - i) : EIGHT;
        __mmask32 mask = (UINT32_C(1) << left * SHERD__RESIDUE_BYTES) - 1;
        __m256i bytes = _mm256_maskz_loadu_epi8(mask, in + SHERD__RESIDUE_BYTES * i);
        _mm512_mask_storeu_pd(out + i, (__mmask8)((1u << left) - 1), unpacked(bytes, &k, &largest));
    }
    *most = _mm512_reduce_max_epu32(largest);
    return true;
}
#endif
