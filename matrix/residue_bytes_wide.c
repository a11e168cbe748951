/*
 * Products of byte residues by AVX-512-VNNI and by AMX. An instruction of VNNI multiplies four
 * terms of 16 columns by four terms of one row; one of AMX multiplies 16 x 64 by 64 x 16 bytes.
 * The saturating forms of these instructions are not used.
 */
#include "matrix/clones.h"
#include "matrix/residue_bytes_kernels.h"

#ifndef SHERD__V4_BYTES
const sherd__bytes_kernels *sherd__bytes_wide(sherd__bytes_path path)
{
    (void)path;
    return NULL;
}
#else
#include <string.h>

#include "matrix/interleave.h"
#include "matrix/tiles.h"

#define TILES SHERD__TILES
#define INLINED static inline __attribute__((always_inline))

enum { TILE = SHERD__BYTES_TILE, STEP = SHERD__BYTES_STEP, LEN = BYTES_TILE_LEN };

/* ---- VNNI ------------------------------------------------------------------------------------ */

enum { LOW = 8, STRIPS = 3 }; /* 24 registers of sums, and one for each strip of B */

/* Half a strip of A times `strips` strips of B. */
SHERD__V4_BYTES INLINED void sum_half(const sherd__bytes_piece *t, const uint8_t *a,
                                      const uint8_t *b, int32_t *sums, size_t strips)
{
    __m512i acc[STRIPS][LOW];
    for (size_t j = 0; j < strips; j++)
        for (size_t i = 0; i < LOW; i++)
            acc[j][i] = t->more ? _mm512_load_si512(sums + i * BYTES_WIDE + j * TILE)
                                : _mm512_setzero_si512();
    for (size_t s = 0; s < t->steps; s++, a += t->tile, b += LEN)
        for (size_t g = 0; g < STEP; g += 4) {
            __m512i at[STRIPS];
            for (size_t j = 0; j < strips; j++)
                at[j] = _mm512_load_si512(b + j * t->right_strip + g * TILE);
            for (size_t i = 0; i < LOW; i++) {
                int32_t four;
                memcpy(&four, a + i * t->row + g, sizeof four);
                __m512i terms = _mm512_set1_epi32(four);
                for (size_t j = 0; j < strips; j++)
                    acc[j][i] = _mm512_dpbusd_epi32(acc[j][i], terms, at[j]);
            }
        }
    for (size_t j = 0; j < strips; j++)
        for (size_t i = 0; i < LOW; i++)
            _mm512_store_si512(sums + i * BYTES_WIDE + j * TILE, acc[j][i]);
}

SHERD__V4_BYTES static void sum_vnni(const sherd__bytes_piece *t)
{
    for (size_t col = 0; col < t->cols; col += STRIPS * TILE)
        for (size_t row = 0; row < t->rows; row += LOW) {
            const uint8_t *a = t->left + row / TILE * t->left_strip + row % TILE * t->row;
            const uint8_t *b = t->right + col / TILE * t->right_strip;
            int32_t *sums = t->sums + row * BYTES_WIDE + col;
            size_t left = t->cols - col;
            if (left > 2 * TILE) sum_half(t, a, b, sums, 3);
            else if (left > TILE) sum_half(t, a, b, sums, 2);
            else sum_half(t, a, b, sums, 1);
        }
}

/* Subtracts p times the quotient, which is rounded to the nearest number. */
SHERD__V4_BYTES INLINED __m512i less(__m512i x, __m512 inverse, __m512i p)
{
    __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(x), inverse));
    return _mm512_sub_epi32(x, _mm512_mullo_epi32(q, p));
}

/* A sum has up to 31 bits and a float 24, so the first remainder is below p/2 + 2^8, and the second
 * is within p/2 + 1 of zero. */
SHERD__V4_BYTES static void reduce_wide(const int32_t *sums, size_t n, uint32_t p, bool add,
                                        uint8_t *out)
{
    const __m512 inverse = _mm512_set1_ps(1.0f / (float)p);
    const __m512i whole = _mm512_set1_epi32((int32_t)p);
    for (size_t i = 0; i < n; i += TILE) {
        __mmask16 have = (__mmask16)(n - i < TILE ? (1u << (n - i)) - 1 : 0xffffu);
        __m512i x = less(less(_mm512_loadu_si512(sums + i), inverse, whole), inverse, whole);
        x = _mm512_min_epu32(x, _mm512_add_epi32(x, whole)); /* a negative value is large */
        if (add) x = _mm512_add_epi32(x, _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(have, out + i)));
        x = _mm512_min_epu32(x, _mm512_sub_epi32(x, whole));
        _mm512_mask_cvtepi32_storeu_epi8(out + i, have, x);
    }
}

/* Lays out one tile of each of up to four strips. */
SHERD__V4_BYTES INLINED void lay_tiles(const int8_t *in, size_t rows, size_t cols, size_t stride,
                                       uint8_t *out, size_t strip)
{
    for (size_t row = 0; row < STEP; row += 4) {
        const size_t done = row < rows ? row : rows;
        __m512i four[4];
        sherd__interleave_rows(in + done * stride, rows - done, cols, stride, four);
        for (size_t i = 0; i < 4 && i * TILE < cols; i++)
            _mm512_storeu_si512(out + i * strip + row * TILE, four[i]);
    }
}

SHERD__V4_BYTES static void lay_wide(const int8_t *in, size_t k, size_t m, size_t stride,
                                     uint8_t *out, size_t strip)
{
    for (size_t row = 0; row < k; row += STEP)
        for (size_t col = 0; col < m; col += 4 * TILE)
            lay_tiles(in + row * stride + col, k - row, m - col, stride,
                      out + col / TILE * strip + row * TILE, strip);
}

/* ---- AMX ------------------------------------------------------------------------------------- */

/* Up to 2 x 2 tiles of sums. Tiles 0 to 3 are sums, 4 and 5 A, 6 and 7 B. */
TILES INLINED void sum_square(const sherd__bytes_piece *t, const uint8_t *a, const uint8_t *b,
                              int32_t *sums, bool low, bool right)
{
    enum { SUMS = BYTES_WIDE * 4 }; /* bytes of a row of sums */
    int32_t *below = sums + TILE * BYTES_WIDE;
    if (t->more) {
        _tile_loadd(0, sums, SUMS);
        if (right) _tile_loadd(1, sums + TILE, SUMS);
        if (low) _tile_loadd(2, below, SUMS);
        if (low && right) _tile_loadd(3, below + TILE, SUMS);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (size_t s = 0; s < t->steps; s++, a += t->tile, b += LEN) {
        _tile_loadd(4, a, t->row);
        _tile_loadd(6, b, STEP);
        _tile_dpbusd(0, 4, 6);
        if (right) {
            _tile_loadd(7, b + t->right_strip, STEP);
            _tile_dpbusd(1, 4, 7);
        }
        if (low) {
            _tile_loadd(5, a + t->left_strip, t->row);
            _tile_dpbusd(2, 5, 6);
            if (right) _tile_dpbusd(3, 5, 7);
        }
    }
    _tile_stored(0, sums, SUMS);
    if (right) _tile_stored(1, sums + TILE, SUMS);
    if (low) _tile_stored(2, below, SUMS);
    if (low && right) _tile_stored(3, below + TILE, SUMS);
}

TILES static void sum_tiles(const sherd__bytes_piece *t)
{
    SHERD__TILES_BEGIN();
    for (size_t col = 0; col < t->cols; col += 2 * TILE)
        for (size_t row = 0; row < t->rows; row += 2 * TILE) {
            const uint8_t *a = t->left + row / TILE * t->left_strip;
            const uint8_t *b = t->right + col / TILE * t->right_strip;
            int32_t *sums = t->sums + row * BYTES_WIDE + col;
            bool low = t->rows - row > TILE, right = t->cols - col > TILE;
            if (low && right) sum_square(t, a, b, sums, true, true);
            else if (low) sum_square(t, a, b, sums, true, false);
            else if (right) sum_square(t, a, b, sums, false, true);
            else sum_square(t, a, b, sums, false, false);
        }
    SHERD__TILES_END();
}

const sherd__bytes_kernels *sherd__bytes_wide(sherd__bytes_path path)
{
    static const sherd__bytes_kernels vnni = { sum_vnni, reduce_wide, lay_wide };
    static const sherd__bytes_kernels amx = { sum_tiles, reduce_wide, lay_wide };
    if (path == SHERD__BYTES_VNNI) return SHERD__IS_V4_BYTES ? &vnni : NULL;
    return path == SHERD__BYTES_AMX && sherd__tiles_here() ? &amx : NULL;
}
#endif
