/*
 * A residue below 2^24 is a0 + a1*2^8 + a2*2^16 with bytes a0, a1, a2, which is its form on the
 * wire. A product of matrices of residues is therefore nine products of matrices of bytes, added up
 * by their weights 2^0, 2^8, ..., 2^32 in five tiles of 16 x 16 sums of 32 bits: one AMX
 * instruction multiplies 16 x 64 by 64 x 16 bytes. Sums are exact and leave the tiles once per
 * DEPTH terms, when they are joined and reduced. This takes nine instructions of 16384 products
 * each where dgemm takes 2048 of 8, and no conversion except sorting bytes.
 *
 * Operands are sorted into strips of 16 rows of A or columns of B. A strip has a tile of each limb
 * for every 64 terms, in the form that the instruction reads: in A a row is 64 terms, in B a row is
 * four terms of each of 16 columns. Missing elements at edges are zero, which adds nothing. Values
 * are compared with p during sorting.
 *
 * A sum of weight 2^16 takes at most three products of bytes a term: 3*255^2*DEPTH < 2^32.
 */
#include "matrix/residue_limbs.h"

#include <stdlib.h>
#include <string.h>

#include "matrix/clones.h"
#include "matrix/residue.h"

enum {
    TILE = 16, /* rows or columns of a strip */
    STEP = 64, /* terms of a tile */
    LIMBS = 3,
    LIMB = TILE * STEP, /* bytes of a tile */
    ROWS = 1024,        /* rows of A sorted at a time; columns of B; terms */
    COLS = 256,
    DEPTH = SHERD__LIMBS_DEPTH,
    WIDE = 64, /* columns that are sorted and multiplied together */
    HIGH = 128 /* rows; a part that fits the second-level cache */
};
_Static_assert(SHERD__LIMBS_MOST == (size_t)LIMBS * ROWS * DEPTH && COLS <= ROWS, "room");
_Static_assert(3 * 255 * 255 <= UINT32_MAX / DEPTH, "sums of 32 bits");

static size_t pieces(size_t all, size_t each)
{
    return (all + each - 1) / each;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns the bytes of a strip of k terms. */
static size_t strip_of(size_t k)
{
    return pieces(least(k, DEPTH), STEP) * LIMBS * LIMB;
}

void sherd__limbs_room(const sherd__limbs *x, size_t *left, size_t *right)
{
    /* Strips sorted by columns come in groups of four. */
    size_t rows = pieces(least(x->n, ROWS), x->transposed ? WIDE : TILE);
    *left = rows * (x->transposed ? WIDE / TILE : 1) * strip_of(x->k);
    *right = pieces(least(x->m, COLS), WIDE) * (WIDE / TILE) * strip_of(x->k);
}

#ifndef SHERD__V4_BYTES
bool sherd__limbs_here(void)
{
    return false;
}

int sherd__limbs_multiply(const sherd__limbs *x, sherd__team *team, uint8_t *left, uint8_t *right)
{
    (void)x, (void)team, (void)left, (void)right;
    return SHERD_EINTERNAL;
}
#else
#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TILES __attribute__((target("arch=x86-64-v4,avx512vnni,avx512vbmi,amx-tile,amx-int8")))
#define INLINED TILES static inline __attribute__((always_inline))

/* ---- detection ------------------------------------------------------------------------------- */

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static bool granted;

/* The state of the tiles adds 8 KB to what the system saves, so the system requires a request. */
static void ask(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    const char *core = getenv("OPENBLAS_CORETYPE");
    if (core && core[0] != '\0') return;
    if (!SHERD__IS_V4_BYTES || !__builtin_cpu_supports("amx-tile") ||
        !__builtin_cpu_supports("amx-int8"))
        return;
    granted = syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

bool sherd__limbs_here(void)
{
    (void)pthread_once(&asked, ask);
    return granted;
}

/* ---- sorting --------------------------------------------------------------------------------- */

/* Selects byte i of limb l out of 192: from the first 128 by `first`, then from the last 64 by
 * `last`. */
typedef struct sorting {
    uint8_t first[LIMBS][STEP], last[LIMBS][STEP];
} sorting;

/* by_columns: first reverses the position of column c after interleaving four rows, 16 bytes at a
 * time. */
static void sorting_of(sorting *s, bool by_columns)
{
    for (unsigned i = 0; i < STEP; i++) {
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
        size_t have = LIMBS * n > STEP * i ? LIMBS * n - STEP * i : 0;
        __mmask64 mask = have >= STEP ? UINT64_MAX : (UINT64_C(1) << have) - 1;
        part[i] = _mm512_maskz_loadu_epi8(mask, in + STEP * i);
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
    for (size_t c = 0; c < k; c += STEP, strip += LIMBS * LIMB)
        for (size_t r = 0; r < TILE; r++) {
            size_t n = r >= rows ? 0 : k - c < STEP ? k - c : STEP;
            limbs v = sorted(n ? in + r * stride + LIMBS * c : in, n, &s);
            bad |= beyond(v, p);
            for (size_t l = 0; l < LIMBS; l++)
                _mm512_storeu_si512(strip + l * LIMB + r * STEP, v.x[l]);
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
    for (size_t r = 0; r < k; r += STEP, out += LIMBS * LIMB)
        for (size_t q = 0; q < STEP; q += 4) {
            limbs v[4];
            for (size_t i = 0; i < 4; i++) {
                size_t row = r + q + i;
                v[i] = sorted(in + (row < k ? row * stride : 0), row < k ? cols : 0, &s);
                bad |= beyond(v[i], p);
            }
            for (size_t l = 0; l < LIMBS; l++)
                interleave(v[0].x[l], v[1].x[l], v[2].x[l], v[3].x[l],
                           out + l * LIMB + q / 4 * STEP, strip);
        }
    return bad != 0;
}

/* Transposes a tile in the form of B to the form of A: 16 x 16 words of four terms. */
TILES static void turn(uint8_t *tile)
{
    __m512i x[TILE], y[TILE];
    for (size_t i = 0; i < TILE; i++) x[i] = _mm512_loadu_si512(tile + i * STEP);
    for (size_t i = 0; i < TILE; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    for (size_t i = 0; i < TILE; i += 4)
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
        _mm512_storeu_si512(tile + c * STEP, _mm512_shuffle_i32x4(a, d, 0x88));
        _mm512_storeu_si512(tile + (4 + c) * STEP, _mm512_shuffle_i32x4(b, e, 0x88));
        _mm512_storeu_si512(tile + (8 + c) * STEP, _mm512_shuffle_i32x4(a, d, 0xdd));
        _mm512_storeu_si512(tile + (12 + c) * STEP, _mm512_shuffle_i32x4(b, e, 0xdd));
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Eight tiles of 16 rows of 64 bytes. */
static const struct {
    uint8_t palette, start, none[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} shape = {
    .palette = 1,
    .bytes = { STEP, STEP, STEP, STEP, STEP, STEP, STEP, STEP },
    .rows = { TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE },
};

enum { SUMS = 5, SUM = TILE * TILE };

/* Computes the sums of each weight of two strips. The limbs of B that were loaded last are the
 * first to be multiplied by the next limb of A. */
INLINED void add_up(const uint8_t *a, const uint8_t *b, size_t steps, uint32_t *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    for (size_t i = 0; i < steps; i++, a += LIMBS * LIMB, b += LIMBS * LIMB) {
        _tile_loadd(5, a, STEP);
        _tile_loadd(6, b, STEP);
        _tile_dpbuud(0, 5, 6);
        _tile_loadd(7, b + LIMB, STEP);
        _tile_dpbuud(1, 5, 7);
        _tile_loadd(6, b + 2 * LIMB, STEP);
        _tile_dpbuud(2, 5, 6);
        _tile_loadd(5, a + LIMB, STEP);
        _tile_dpbuud(3, 5, 6);
        _tile_dpbuud(2, 5, 7);
        _tile_loadd(6, b, STEP);
        _tile_dpbuud(1, 5, 6);
        _tile_loadd(5, a + 2 * LIMB, STEP);
        _tile_dpbuud(2, 5, 6);
        _tile_dpbuud(3, 5, 7);
        _tile_loadd(7, b + 2 * LIMB, STEP);
        _tile_dpbuud(4, 5, 7);
    }
    _tile_stored(0, sums, STEP);
    _tile_stored(1, sums + SUM, STEP);
    _tile_stored(2, sums + 2 * SUM, STEP);
    _tile_stored(3, sums + 3 * SUM, STEP);
    _tile_stored(4, sums + 4 * SUM, STEP);
}

typedef struct field {
    __m512d p, inverse, high; /* 2^24 modulo p */
    __m512i words, join, spread;
} field;

TILES static field field_of(uint32_t p)
{
    uint8_t join[64] = { 0 }, spread[64] = { 0 };
    int32_t high = (int32_t)((UINT32_C(1) << 24) % p);
    for (unsigned i = 0; i < TILE * LIMBS; i++) {
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
    return _mm512_cvtepu32_pd(_mm256_loadu_si256((const void *)(sums + weight * SUM)));
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
    for (size_t i = 0; i < rows; i++, sums += TILE, out += stride) {
        __m512i v = _mm512_inserti64x4(_mm512_castsi256_si512(joined(sums, f)),
                                       joined(sums + TILE / 2, f), 1);
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

/* ---- the product ----------------------------------------------------------------------------- */

/* Rows [row, row+rows) of A, columns [col, col+cols) of B, terms [from, from+k). */
typedef struct part {
    const sherd__limbs *x;
    size_t row, rows, col, cols, from, k, strip;
    uint8_t *left, *right;
    atomic_bool bad;
} part;

/* Sorts columns [64*i, ...) of the `cols` from `col` on of a k-row matrix of `width` columns. */
static void sort_wide(part *t, const uint8_t *in, size_t width, size_t col, size_t cols, size_t i,
                      uint8_t *strips)
{
    const uint8_t *at = in + LIMBS * (t->from * width + col + WIDE * i);
    if (sort_columns(at, least(WIDE, cols - WIDE * i), t->k, LIMBS * width, t->x->p,
                     strips + WIDE / TILE * t->strip * i, t->strip))
        atomic_store_explicit(&t->bad, true, memory_order_relaxed);
}

static void sort_left(void *ctx, size_t i, unsigned thread)
{
    part *t = ctx;
    const sherd__limbs *x = t->x;
    (void)thread;
    if (x->transposed) {
        uint8_t *strips = t->left + WIDE / TILE * t->strip * i;
        sort_wide(t, x->a, x->n, t->row, t->rows, i, t->left);
        for (size_t at = 0; at < WIDE / TILE * t->strip; at += LIMB) turn(strips + at);
        return;
    }
    const uint8_t *at = x->a + LIMBS * ((t->row + TILE * i) * x->k + t->from);
    if (sort_rows(at, least(TILE, t->rows - TILE * i), t->k, LIMBS * x->k, x->p,
                  t->left + t->strip * i))
        atomic_store_explicit(&t->bad, true, memory_order_relaxed);
}

static void sort_right(void *ctx, size_t i, unsigned thread)
{
    part *t = ctx;
    (void)thread;
    sort_wide(t, t->x->b, t->x->m, t->col, t->cols, i, t->right);
}

static size_t ld_of(const sherd__limbs *x)
{
    return x->ld ? x->ld : x->m;
}

/* Computes HIGH x WIDE elements. */
TILES static void multiply_piece(void *ctx, size_t i, unsigned thread)
{
    const part *t = ctx;
    const size_t across = pieces(t->cols, WIDE), steps = pieces(t->k, STEP);
    const size_t row0 = i / across * HIGH, row1 = least(t->rows, row0 + HIGH);
    const size_t col0 = i % across * WIDE, col1 = least(t->cols, col0 + WIDE), ld = ld_of(t->x);
    uint32_t sums[SUMS * SUM] __attribute__((aligned(64)));
    const field f = field_of(t->x->p);
    (void)thread;
    _tile_loadconfig(&shape);
    __asm__ volatile("" ::: "memory"); /* the intrinsics do not declare what they read */
    for (size_t col = col0; col < col1; col += TILE)
        for (size_t row = row0; row < row1; row += TILE) {
            uint8_t *out = t->x->out + LIMBS * ((t->row + row) * ld + t->col + col);
            add_up(t->left + row / TILE * t->strip, t->right + col / TILE * t->strip, steps, sums);
            put(sums, &f, t->from > 0 || t->x->add, least(TILE, t->rows - row),
                least(TILE, t->cols - col), out, LIMBS * ld);
        }
    _tile_release();
}

/* Multiplies some rows by some terms and computes all columns. */
static bool multiply_part(part *t, sherd__team *team)
{
    const sherd__limbs *x = t->x;
    sherd__team_run(team, pieces(t->rows, x->transposed ? WIDE : TILE), sort_left, t);
    for (t->col = 0; t->col < x->m && !t->bad; t->col += COLS) {
        t->cols = least(COLS, x->m - t->col);
        sherd__team_run(team, pieces(t->cols, WIDE), sort_right, t);
        if (t->bad) break;
        sherd__team_run(team, pieces(t->rows, HIGH) * pieces(t->cols, WIDE), multiply_piece, t);
    }
    return !t->bad;
}

int sherd__limbs_multiply(const sherd__limbs *x, sherd__team *team, uint8_t *left, uint8_t *right)
{
    for (size_t row = 0; row < x->n && x->k == 0 && !x->add; row++)
        memset(x->out + LIMBS * row * ld_of(x), 0, LIMBS * x->m);
    for (size_t row = 0; row < x->n; row += ROWS)
        for (size_t from = 0; from < x->k; from += DEPTH) {
            size_t k = least(DEPTH, x->k - from);
            part t = { .x = x,
                       .row = row,
                       .rows = least(ROWS, x->n - row),
                       .from = from,
                       .k = k,
                       .strip = strip_of(k),
                       .left = left,
                       .right = right };
            if (!multiply_part(&t, team)) return SHERD_EFRAME;
        }
    return SHERD_OK;
}
#endif
