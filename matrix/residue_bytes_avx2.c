/*
 * Products of byte residues by AVX2 and by AVX-VNNI, for processors without AVX-512-VNNI.
 *
 * The instruction of AVX2 that multiplies bytes by bytes saturates. So bytes become numbers of 16
 * bits, and an instruction multiplies two terms by two terms exactly: |sum| <= 2 * 255 * 128.
 */
#include "matrix/clones.h"
#include "matrix/residue_bytes_kernels.h"

#ifndef SHERD__V3
const sherd__bytes_kernels *sherd__bytes_narrow(sherd__bytes_path path)
{
    (void)path;
    return NULL;
}
#else
#include <immintrin.h>
#include <string.h>

#include "core/wipe.h"

#define INLINED static inline __attribute__((always_inline))

enum { TILE = SHERD__BYTES_TILE, STEP = SHERD__BYTES_STEP, LEN = BYTES_TILE_LEN };

/* ---- AVX2 ------------------------------------------------------------------------------------ */

enum {
    DEEP = 4,            /* tiles that are widened at a time: those of B fit the first cache */
    TERMS = DEEP * STEP, /* of a row of A */
    ROWS = 4,            /* rows at a time: eight registers of sums */
    STRIPS = BYTES_WIDE / TILE
};

/* Some terms of a piece, as numbers of 16 bits. */
typedef struct widened {
    int16_t a[BYTES_HIGH][TERMS] __attribute__((aligned(32)));
    int16_t b[STRIPS][DEEP * LEN];
} widened;

SHERD__V3 INLINED __m256i load(const void *at)
{
    return _mm256_loadu_si256(at);
}

SHERD__V3 INLINED void store(void *at, __m256i x)
{
    _mm256_storeu_si256(at, x);
}

SHERD__V3 static void widen(widened *w, const sherd__bytes_piece *t, size_t from, size_t steps)
{
    for (size_t r = 0; r < t->rows; r++) {
        const uint8_t *a = t->left + r / TILE * t->left_strip + r % TILE * t->row + from * t->tile;
        for (size_t s = 0; s < steps; s++, a += t->tile)
            for (size_t i = 0; i < STEP; i += 16)
                store(w->a[r] + s * STEP + i,
                      _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(a + i))));
    }
    for (size_t c = 0; c * TILE < t->cols; c++) {
        const uint8_t *b = t->right + c * t->right_strip + from * LEN;
        for (size_t i = 0; i < steps * LEN; i += 16)
            store(w->b[c] + i, _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(b + i))));
    }
}

/* Adds the products of `rows` rows and half a strip. A register of B has four terms of four
 * columns. */
SHERD__V3 INLINED void add_half(const int16_t (*a)[TERMS], const int16_t *b, size_t terms,
                                int32_t *sums, size_t rows)
{
    __m256i acc[ROWS][2];
    for (size_t r = 0; r < rows; r++) acc[r][0] = acc[r][1] = _mm256_setzero_si256();
    for (size_t q = 0; q < terms; q += 4, b += 4 * TILE) {
        const __m256i left = load(b), right = load(b + 16);
        for (size_t r = 0; r < rows; r++) {
            int64_t bits;
            memcpy(&bits, a[r] + q, sizeof bits);
            const __m256i four = _mm256_set1_epi64x(bits);
            acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(four, left));
            acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(four, right));
        }
    }
    for (size_t r = 0; r < rows; r++, sums += BYTES_WIDE) {
        __m256i pairs = _mm256_hadd_epi32(acc[r][0], acc[r][1]);
        pairs = _mm256_permute4x64_epi64(pairs, 0xd8); /* in the order of columns */
        store(sums, _mm256_add_epi32(load(sums), pairs));
    }
}

SHERD__V3 static void add_widened(const widened *w, const sherd__bytes_piece *t, size_t terms)
{
    for (size_t c = 0; c < t->cols; c += TILE / 2)
        for (size_t r = 0; r < t->rows; r += ROWS) {
            const int16_t *b = w->b[c / TILE] + c % TILE * 4;
            int32_t *sums = t->sums + r * BYTES_WIDE + c;
            size_t left = t->rows - r;
            if (left >= ROWS) {
                add_half(w->a + r, b, terms, sums, ROWS);
                continue;
            }
            for (size_t i = 0; i < left; i++)
                add_half(w->a + r + i, b, terms, sums + i * BYTES_WIDE, 1);
        }
}

SHERD__V3 static void sum_pairs(const sherd__bytes_piece *t)
{
    widened w;
    if (!t->more) memset(t->sums, 0, t->rows * BYTES_WIDE * sizeof *t->sums);
    for (size_t from = 0; from < t->steps; from += DEEP) {
        size_t steps = t->steps - from < DEEP ? t->steps - from : DEEP;
        widen(&w, t, from, steps);
        add_widened(&w, t, steps * STEP);
    }
    sherd__wipe(w.a, t->rows * sizeof w.a[0]); /* may be terms of an operand */
}

/* Subtracts p times the quotient, which is rounded to the nearest number. */
SHERD__V3 INLINED __m256i less(__m256i x, __m256 inverse, __m256i p)
{
    __m256i q = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(x), inverse));
    return _mm256_sub_epi32(x, _mm256_mullo_epi32(q, p));
}

/* Returns eight sums modulo p, as reduce_wide of residue_bytes_wide.c. */
SHERD__V3 INLINED __m256i remainders(const int32_t *sums, uint32_t p, __m256i before)
{
    const __m256 inverse = _mm256_set1_ps(1.0f / (float)p);
    const __m256i whole = _mm256_set1_epi32((int32_t)p);
    __m256i x = less(less(load(sums), inverse, whole), inverse, whole);
    x = _mm256_min_epu32(x, _mm256_add_epi32(x, whole)); /* a negative value is large */
    x = _mm256_add_epi32(x, before);
    return _mm256_min_epu32(x, _mm256_sub_epi32(x, whole));
}

SHERD__V3 static void reduce_narrow(const int32_t *sums, size_t n, uint32_t p, bool add,
                                    uint8_t *out)
{
    for (size_t i = 0; i < n; i += 8) {
        const size_t have = n - i < 8 ? n - i : 8;
        uint64_t bytes = 0;
        int32_t lanes[8];
        if (add) memcpy(&bytes, out + i, have);
        __m256i before = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)bytes));
        store(lanes, remainders(sums + i, p, before));
        for (size_t j = 0; j < have; j++) out[i + j] = (uint8_t)lanes[j];
    }
}

/* ---- AVX-VNNI -------------------------------------------------------------------------------- */

enum { LOW = 4 }; /* rows at a time: a quarter of a strip */

#ifndef SHERD__AVX_VNNI
#define SHERD__AVX_VNNI __attribute__((target("arch=x86-64-v3,avxvnni")))
#define SHERD__IS_AVX_VNNI (SHERD__IS_V3 && __builtin_cpu_supports("avxvnni"))
#define multiply_add _mm256_dpbusd_avx_epi32
#endif

/* Four rows times a strip. */
SHERD__AVX_VNNI INLINED void sum_quarter(const sherd__bytes_piece *t, const uint8_t *a,
                                         const uint8_t *b, int32_t *sums)
{
    __m256i acc[LOW][2];
    for (size_t i = 0; i < LOW; i++)
        for (size_t j = 0; j < 2; j++)
            acc[i][j] = t->more ? _mm256_load_si256((void *)(sums + i * BYTES_WIDE + 8 * j))
                                : _mm256_setzero_si256();
    for (size_t s = 0; s < t->steps; s++, a += t->tile, b += LEN)
        for (size_t g = 0; g < STEP; g += 4) {
            __m256i low = _mm256_loadu_si256((const void *)(b + g * TILE));
            __m256i high = _mm256_loadu_si256((const void *)(b + g * TILE + 32));
            for (size_t i = 0; i < LOW; i++) {
                int32_t four;
                memcpy(&four, a + i * t->row + g, sizeof four);
                __m256i terms = _mm256_set1_epi32(four);
                acc[i][0] = multiply_add(acc[i][0], terms, low);
                acc[i][1] = multiply_add(acc[i][1], terms, high);
            }
        }
    for (size_t i = 0; i < LOW; i++)
        for (size_t j = 0; j < 2; j++)
            _mm256_store_si256((void *)(sums + i * BYTES_WIDE + 8 * j), acc[i][j]);
}

SHERD__AVX_VNNI static void sum_fours(const sherd__bytes_piece *t)
{
    for (size_t col = 0; col < t->cols; col += TILE)
        for (size_t row = 0; row < t->rows; row += LOW)
            sum_quarter(t, t->left + row / TILE * t->left_strip + row % TILE * t->row,
                        t->right + col / TILE * t->right_strip, t->sums + row * BYTES_WIDE + col);
}

const sherd__bytes_kernels *sherd__bytes_narrow(sherd__bytes_path path)
{
    static const sherd__bytes_kernels avx2 = { sum_pairs, reduce_narrow, sherd__bytes_lay_any };
    static const sherd__bytes_kernels vnni = { sum_fours, reduce_narrow, sherd__bytes_lay_any };
    if (path == SHERD__BYTES_AVX2) return SHERD__IS_V3 ? &avx2 : NULL;
    return path == SHERD__BYTES_AVX_VNNI && SHERD__IS_AVX_VNNI ? &vnni : NULL;
}
#endif
