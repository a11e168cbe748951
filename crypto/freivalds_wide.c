/*
 * rT*Y*s of packed answers with AVX-512, in intrinsics. Bytes are converted to doubles in
 * registers, eight residues at a time, and multiplied by both trials' s there; freivalds_fp.c
 * writes them to memory twice in between. Residues keep their wire form, in [0, p), which sums
 * permit. Sums are kept in eight lanes, reduced modulo p lane by lane, and joined only at the end,
 * so that a row needs no sum across lanes. The verdict is that of freivalds_fp.c, three times as
 * fast.
 *
 * A lane takes one product per eight columns, below p*(p-1)/2 < 2^45, and at most LANE of them are
 * added to a reduced value. Over rows it takes at most LANE products of two reduced values, of
 * which one may be one beyond the balanced range. Both sums stay below 2^53, so all arithmetic is
 * exact.
 */
#include "crypto/freivalds_internal.h"

#include "matrix/clones.h"
#include "matrix/residue.h"

#ifndef SHERD__V4_BYTES
bool sherd__fvp_answer_wide(const uint8_t *packed, size_t rows, size_t cols,
                            const double *const r[2], const double *const s[2], uint32_t p,
                            uint32_t *most, uint32_t out[2])
{
    (void)packed, (void)rows, (void)cols, (void)r, (void)s, (void)p, (void)most, (void)out;
    return false;
}
#else
#include <immintrin.h>

#define INLINED SHERD__V4_BYTES static inline __attribute__((always_inline))
enum { EIGHT = 8, BYTES = EIGHT * SHERD__RESIDUE_BYTES, LANE = 240, ROUND = _MM_FROUND_NO_EXC };

typedef struct field {
    __m512d p, inverse;
    __m512i spread; /* byte 3*i+j to byte 8*i+j */
} field;

typedef struct sums {
    __m512d x, y; /* of the two trials */
    __m512i most;
} sums;

INLINED field field_of(uint32_t p)
{
    return (field){
        .p = _mm512_set1_pd((double)p),
        .inverse = _mm512_set1_pd(1.0 / (double)p),
        .spread = _mm512_setr_epi64(0x020100, 0x050403, 0x080706, 0x0b0a09, 0x0e0d0c, 0x11100f,
                                    0x141312, 0x171615),
    };
}

/* Reduces to the balanced range or one beyond it: the quotient may be wrong next to a half. */
INLINED __m512d reduced(__m512d x, const field *f)
{
    __m512d q = _mm512_roundscale_pd(_mm512_mul_pd(x, f->inverse), ROUND);
    return _mm512_fnmadd_pd(q, f->p, x);
}

/* Adds eight residues, 24 bytes in the low half of `bytes`. */
INLINED void add(sums *t, __m256i bytes, __m512d s0, __m512d s1, const field *f)
{
    __m512i v = _mm512_maskz_permutexvar_epi8(UINT64_C(0x0707070707070707), f->spread,
                                              _mm512_castsi256_si512(bytes));
    __m512d y = _mm512_cvtepi64_pd(v);
    t->most = _mm512_max_epu32(t->most, v);
    t->x = _mm512_fmadd_pd(y, s0, t->x);
    t->y = _mm512_fmadd_pd(y, s1, t->y);
}

/* Adds n <= 8 columns and reads nothing beyond them. */
INLINED void add_last(sums *t, const uint8_t *in, size_t n, const double *s0, const double *s1,
                      const field *f)
{
    __mmask8 lanes = (__mmask8)((1u << n) - 1);
    __mmask32 bytes = (UINT32_C(1) << (n * SHERD__RESIDUE_BYTES)) - 1;
    add(t, _mm256_maskz_loadu_epi8(bytes, in), _mm512_maskz_loadu_pd(lanes, s0),
        _mm512_maskz_loadu_pd(lanes, s1), f);
}

/* Computes a row's products with both s, in lanes and reduced. */
INLINED void row(sums *t, const uint8_t *in, size_t cols, const double *const s[2], const field *f)
{
    size_t whole = cols < 3 ? 0 : (cols - 3) / EIGHT, i = 0; /* a load reads 32 bytes of 33 */
    t->x = t->y = _mm512_setzero_pd();
    while (i < whole) {
        size_t end = whole - i < LANE ? whole : i + LANE;
        for (; i < end; i++)
            add(t, _mm256_loadu_si256((const void *)(in + BYTES * i)),
                _mm512_loadu_pd(s[0] + EIGHT * i), _mm512_loadu_pd(s[1] + EIGHT * i), f);
        t->x = reduced(t->x, f);
        t->y = reduced(t->y, f);
    }
    for (i *= EIGHT; i < cols; i += EIGHT)
        add_last(t, in + SHERD__RESIDUE_BYTES * i, cols - i < EIGHT ? cols - i : EIGHT, s[0] + i,
                 s[1] + i, f);
    t->x = reduced(t->x, f);
    t->y = reduced(t->y, f);
}

SHERD__V4_BYTES
bool sherd__fvp_answer_wide(const uint8_t *packed, size_t rows, size_t cols,
                            const double *const r[2], const double *const s[2], uint32_t p,
                            uint32_t *most, uint32_t out[2])
{
    if (!SHERD__IS_V4_BYTES || cols == 0) return false;
    const field f = field_of(p);
    const size_t each = cols * SHERD__RESIDUE_BYTES;
    __m512d x = _mm512_setzero_pd(), y = x;
    sums t = { x, y, _mm512_setzero_si512() };
    for (size_t i = 0; i < rows; i++) {
        row(&t, packed + each * i, cols, s, &f);
        x = _mm512_fmadd_pd(_mm512_set1_pd(r[0][i]), t.x, x);
        y = _mm512_fmadd_pd(_mm512_set1_pd(r[1][i]), t.y, y);
        if (i % LANE != LANE - 1) continue;
        x = reduced(x, &f);
        y = reduced(y, &f);
    }
    int64_t a = (int64_t)_mm512_reduce_add_pd(reduced(x, &f)) % (int64_t)p;
    int64_t b = (int64_t)_mm512_reduce_add_pd(reduced(y, &f)) % (int64_t)p;
    out[0] = (uint32_t)(a < 0 ? a + p : a);
    out[1] = (uint32_t)(b < 0 ? b + p : b);
    *most = _mm512_reduce_max_epu32(t.most);
    return true;
}
#endif
