/*
 * Products on tiles of bytes, for AVX-512: sorting and joining in intrinsics, and where the
 * processor has AMX, sums on its tiles. One AMX instruction multiplies 16 x 64 by 64 x 16 bytes.
 * The bytes of a strip and the bits of a result are those of residue_limbs.c.
 */
#include "matrix/clones.h"
#include "matrix/residue_limbs_kernels.h"

#ifndef SHERD__V4_BYTES
const sherd__limbs_kernels *sherd__limbs_wide(bool tiles)
{
    (void)tiles;
    return NULL;
}
#else
#include <immintrin.h>
#include <string.h>

#include "core/pieces.h"
#include "matrix/tiles.h"

#define TILES SHERD__TILES
#define INLINED TILES static inline __attribute__((always_inline))

/* ---- sorting --------------------------------------------------------------------------------- */

/* Selects byte i of limb l out of 192: from the first 128 by `first`, then from the last 64 by
 * `last`. */
typedef struct sorting {
    uint8_t first[LIMBS][LIMBS_STEP], last[LIMBS][LIMBS_STEP];
} sorting;

/* by_columns: first reverses the position of column c after interleaving four rows, 16 bytes at a
 * time. */
static void sorting_of(sorting *s, bool by_columns)
{
    for (unsigned i = 0; i < LIMBS_STEP; i++) {
        unsigned value = by_columns ? 16 * (i / 4 % 4) + 4 * (i / 16) + i % 4 : i;
        for (unsigned l = 0; l < LIMBS; l++) {
            unsigned at = LIMBS * value + l;
            s->first[l][i] = (uint8_t)(at < 128 ? at : 0);
            s->last[l][i] = (uint8_t)(at < 128 ? i : at - 64);
        }
    }
}

typedef struct limbs {
    __m512i x[LIMBS];
} limbs;

/* Loads the first n <= 64 values at `in`; the others are 0. */
INLINED limbs sorted(const uint8_t *in, size_t n, const sorting *s)
{
    limbs out;
    __m512i part[LIMBS];
    for (size_t i = 0; i < LIMBS; i++) {
        size_t have = LIMBS * n > LIMBS_STEP * i ? LIMBS * n - LIMBS_STEP * i : 0;
        __mmask64 mask = have >= LIMBS_STEP ? UINT64_MAX : (UINT64_C(1) << have) - 1;
        part[i] = _mm512_maskz_loadu_epi8(mask, in + LIMBS_STEP * i);
    }
    for (size_t l = 0; l < LIMBS; l++)
        out.x[l] = _mm512_permutex2var_epi8(_mm512_permutex2var_epi8(part[0],
                                                                     _mm512_loadu_si512(
                                                                         s->first[l]),
                                                                     part[1]),
                                            _mm512_loadu_si512(s->last[l]), part[2]);
    return out;
}

/* Returns a bit for each value that is not below p. */
INLINED __mmask64 beyond(limbs v, uint32_t p)
{
    __m512i p0 = _mm512_set1_epi8((char)p), p1 = _mm512_set1_epi8((char)(p >> 8));
    __m512i p2 = _mm512_set1_epi8((char)(p >> 16));
    __mmask64 low = _mm512_cmpge_epu8_mask(v.x[0], p0);
    low = (low & _mm512_cmpeq_epu8_mask(v.x[1], p1)) | _mm512_cmpgt_epu8_mask(v.x[1], p1);
    return (low & _mm512_cmpeq_epu8_mask(v.x[2], p2)) | _mm512_cmpgt_epu8_mask(v.x[2], p2);
}

/* Sorts `rows` <= 16 rows of k values, `stride` bytes apart, into a strip; returns true if a value
 * is not below p. */
TILES static bool sort_rows(const uint8_t *in, size_t rows, size_t k, size_t stride, uint32_t p,
                            uint8_t *strip)
{
    sorting s;
    __mmask64 bad = 0;
    sorting_of(&s, false);
    for (size_t c = 0; c < k; c += LIMBS_STEP, strip += LIMBS * LIMBS_LIMB)
        for (size_t r = 0; r < LIMBS_TILE; r++) {
            size_t n = r >= rows ? 0 : k - c < LIMBS_STEP ? k - c : LIMBS_STEP;
            limbs v = sorted(n ? in + r * stride + LIMBS * c : in, n, &s);
            bad |= beyond(v, p);
            for (size_t l = 0; l < LIMBS; l++)
                _mm512_storeu_si512(strip + l * LIMBS_LIMB + r * LIMBS_STEP, v.x[l]);
        }
    return bad != 0;
}

/* Interleaves four rows of one limb into rows of four terms in four strips. */
INLINED void interleave(__m512i a, __m512i b, __m512i c, __m512i d, uint8_t *out, size_t strip)
{
    __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
    _mm512_storeu_si512(out, _mm512_unpacklo_epi16(ab, cd));
    _mm512_storeu_si512(out + strip, _mm512_unpackhi_epi16(ab, cd));
    ab = _mm512_unpackhi_epi8(a, b);
    cd = _mm512_unpackhi_epi8(c, d);
    _mm512_storeu_si512(out + 2 * strip, _mm512_unpacklo_epi16(ab, cd));
    _mm512_storeu_si512(out + 3 * strip, _mm512_unpackhi_epi16(ab, cd));
}

/* Sorts up to 64 columns of k rows, `stride` bytes apart, into four strips of `strip` bytes
 * each. */
TILES static bool sort_columns(const uint8_t *in, size_t cols, size_t k, size_t stride, uint32_t p,
                               uint8_t *out, size_t strip)
{
    sorting s;
    __mmask64 bad = 0;
    sorting_of(&s, true);
    for (size_t r = 0; r < k; r += LIMBS_STEP, out += LIMBS * LIMBS_LIMB)
        for (size_t q = 0; q < LIMBS_STEP; q += 4) {
            limbs v[4];
            for (size_t i = 0; i < 4; i++) {
                size_t row = r + q + i;
                v[i] = sorted(in + (row < k ? row * stride : 0), row < k ? cols : 0, &s);
                bad |= beyond(v[i], p);
            }
            for (size_t l = 0; l < LIMBS; l++)
                interleave(v[0].x[l], v[1].x[l], v[2].x[l], v[3].x[l],
                           out + l * LIMBS_LIMB + q / 4 * LIMBS_STEP, strip);
        }
    return bad != 0;
}

/* Transposes a tile in the form of B to the form of A: 16 x 16 words of four terms. */
TILES static void turn(uint8_t *tile)
{
    __m512i x[LIMBS_TILE], y[LIMBS_TILE];
    for (size_t i = 0; i < LIMBS_TILE; i++) x[i] = _mm512_loadu_si512(tile + i * LIMBS_STEP);
    for (size_t i = 0; i < LIMBS_TILE; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    for (size_t i = 0; i < LIMBS_TILE; i += 4)
        for (size_t j = 0; j < 2; j++) {
            x[i + 2 * j] = _mm512_unpacklo_epi64(y[i + j], y[i + j + 2]);
            x[i + 2 * j + 1] = _mm512_unpackhi_epi64(y[i + j], y[i + j + 2]);
        }
    /* x[4*g + c], lane l: column 4*l + c of rows 4*g to 4*g + 3. */
    for (size_t c = 0; c < 4; c++) {
        __m512i a = _mm512_shuffle_i32x4(x[c], x[4 + c], 0x88);
        __m512i b = _mm512_shuffle_i32x4(x[c], x[4 + c], 0xdd);
        __m512i d = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0x88);
        __m512i e = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0xdd);
        _mm512_storeu_si512(tile + c * LIMBS_STEP, _mm512_shuffle_i32x4(a, d, 0x88));
        _mm512_storeu_si512(tile + (4 + c) * LIMBS_STEP, _mm512_shuffle_i32x4(b, e, 0x88));
        _mm512_storeu_si512(tile + (8 + c) * LIMBS_STEP, _mm512_shuffle_i32x4(a, d, 0xdd));
        _mm512_storeu_si512(tile + (12 + c) * LIMBS_STEP, _mm512_shuffle_i32x4(b, e, 0xdd));
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Computes the sums of each weight of two strips. The limbs of B that were loaded last are the
 * first to be multiplied by the next limb of A. */
INLINED void add_up(const uint8_t *a, const uint8_t *b, size_t steps, uint32_t *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    for (size_t i = 0; i < steps; i++, a += LIMBS * LIMBS_LIMB, b += LIMBS * LIMBS_LIMB) {
        _tile_loadd(5, a, LIMBS_STEP);
        _tile_loadd(6, b, LIMBS_STEP);
        _tile_dpbuud(0, 5, 6);
        _tile_loadd(7, b + LIMBS_LIMB, LIMBS_STEP);
        _tile_dpbuud(1, 5, 7);
        _tile_loadd(6, b + 2 * LIMBS_LIMB, LIMBS_STEP);
        _tile_dpbuud(2, 5, 6);
        _tile_loadd(5, a + LIMBS_LIMB, LIMBS_STEP);
        _tile_dpbuud(3, 5, 6);
        _tile_dpbuud(2, 5, 7);
        _tile_loadd(6, b, LIMBS_STEP);
        _tile_dpbuud(1, 5, 6);
        _tile_loadd(5, a + 2 * LIMBS_LIMB, LIMBS_STEP);
        _tile_dpbuud(2, 5, 6);
        _tile_dpbuud(3, 5, 7);
        _tile_loadd(7, b + 2 * LIMBS_LIMB, LIMBS_STEP);
        _tile_dpbuud(4, 5, 7);
    }
    _tile_stored(0, sums, LIMBS_STEP);
    _tile_stored(1, sums + LIMBS_SUM, LIMBS_STEP);
    _tile_stored(2, sums + 2 * LIMBS_SUM, LIMBS_STEP);
    _tile_stored(3, sums + 3 * LIMBS_SUM, LIMBS_STEP);
    _tile_stored(4, sums + 4 * LIMBS_SUM, LIMBS_STEP);
}

typedef struct field {
    __m512d p, inverse, high; /* 2^24 modulo p */
    __m512i words, join, spread;
} field;

TILES static field field_of(uint32_t p)
{
    uint8_t join[64] = { 0 }, spread[64] = { 0 };
    int32_t high = (int32_t)((UINT32_C(1) << 24) % p);
    for (unsigned i = 0; i < LIMBS_TILE * LIMBS; i++) {
        join[i] = (uint8_t)(i / LIMBS * 4 + i % LIMBS);
        spread[i / LIMBS * 4 + i % LIMBS] = (uint8_t)i;
    }
    return (field){
        .p = _mm512_set1_pd((double)p),
        .inverse = _mm512_set1_pd(1.0 / (double)p),
        .high = _mm512_set1_pd((double)(high > (int32_t)p / 2 ? high - (int32_t)p : high)),
        .words = _mm512_set1_epi32((int)p),
        .join = _mm512_loadu_si512(join),
        .spread = _mm512_loadu_si512(spread),
    };
}

/* Reduces |x| < 2^53 to the balanced range or one beyond, since the quotient may be wrong next to a
 * half. */
INLINED __m512d reduced(__m512d x, const field *f)
{
    __m512d q = _mm512_roundscale_pd(_mm512_mul_pd(x, f->inverse), _MM_FROUND_NO_EXC);
    return _mm512_fnmadd_pd(q, f->p, x);
}

INLINED __m512d sum_at(const uint32_t *sums, size_t weight)
{
    return _mm512_cvtepu32_pd(_mm256_loadu_si256((const void *)(sums + weight * LIMBS_SUM)));
}

/* Joins the sums of eight elements: weights below 2^24, with a sum below 2^49, and the rest,
 * reduced first. */
INLINED __m256i joined(const uint32_t *sums, const field *f)
{
    const __m512d byte = _mm512_set1_pd(0x1p8);
    __m512d low = _mm512_fmadd_pd(sum_at(sums, 1), byte, sum_at(sums, 0));
    low = _mm512_fmadd_pd(sum_at(sums, 2), _mm512_set1_pd(0x1p16), low);
    __m512d high = reduced(_mm512_fmadd_pd(sum_at(sums, 4), byte, sum_at(sums, 3)), f);
    return _mm512_cvtpd_epi32(reduced(_mm512_fmadd_pd(high, f->high, low), f));
}

/* Writes rows x cols <= 16 x 16 elements of the product, or adds them to those in `out`. */
INLINED void put(const uint32_t *sums, const field *f, bool add, size_t rows, size_t cols,
                 uint8_t *out, size_t stride)
{
    const __mmask64 bytes = (UINT64_C(1) << LIMBS * cols) - 1;
    for (size_t i = 0; i < rows; i++, sums += LIMBS_TILE, out += stride) {
        __m512i v = _mm512_inserti64x4(_mm512_castsi256_si512(joined(sums, f)),
                                       joined(sums + LIMBS_TILE / 2, f), 1);
        v = _mm512_min_epu32(v, _mm512_add_epi32(v, f->words)); /* a negative value is large */
        if (add) {
            __m512i had = _mm512_maskz_permutexvar_epi8(UINT64_C(0x7777777777777777), f->spread,
                                                        _mm512_maskz_loadu_epi8(bytes, out));
            v = _mm512_add_epi32(v, had);
            v = _mm512_min_epu32(v, _mm512_sub_epi32(v, f->words));
        }
        _mm512_mask_storeu_epi8(out, bytes, _mm512_permutexvar_epi8(f->join, v));
    }
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Computes all elements of the piece, with sums by AMX or by any processor's instructions. */
INLINED void multiply(const sherd__limbs_piece *t, bool tiles)
{
    uint32_t sums[LIMBS_SUMS * LIMBS_SUM] __attribute__((aligned(64)));
    const field f = field_of(t->p);
    for (size_t col = 0; col < t->cols; col += LIMBS_TILE)
        for (size_t row = 0; row < t->rows; row += LIMBS_TILE) {
            const uint8_t *a = t->left + row / LIMBS_TILE * t->strip;
            const uint8_t *b = t->right + col / LIMBS_TILE * t->strip;
            if (tiles) add_up(a, b, t->steps, sums);
            else sherd__limbs_sums(a, b, t->steps, sums);
            put(sums, &f, t->add, sherd__least(LIMBS_TILE, t->rows - row),
                sherd__least(LIMBS_TILE, t->cols - col), t->out + row * t->stride + LIMBS * col,
                t->stride);
        }
}

TILES static void multiply_here(const sherd__limbs_piece *t)
{
    multiply(t, false);
}

TILES static void multiply_tiles(const sherd__limbs_piece *t)
{
    SHERD__TILES_BEGIN();
    multiply(t, true);
    SHERD__TILES_END();
}

const sherd__limbs_kernels *sherd__limbs_wide(bool tiles)
{
    static const sherd__limbs_kernels wide = { sort_rows, sort_columns, turn, multiply_here };
    static const sherd__limbs_kernels with_tiles = { sort_rows, sort_columns, turn,
                                                     multiply_tiles };
    if (!tiles) return SHERD__IS_V4_BYTES ? &wide : NULL;
    return sherd__tiles_here() ? &with_tiles : NULL;
}
#endif
