/*
 * Codes over byte primes by AVX-512-VNNI. One instruction multiplies four bytes of each of 16
 * columns by four weights and adds the products to a sum. Four rows of 64 columns are interleaved
 * for it; the order of columns that this leaves in four registers is the one from which packing
 * instructions restore the bytes.
 *
 * The same instruction divides. Sums start at -2^31, which makes their four bytes digits of a
 * number of 32 bits without a sign; digit j times the residue of 256^j that is least in magnitude,
 * added up, is congruent to the sum, and with a start of the right residue fits 16 bits with a
 * sign. There the quotient by p is computed with p's inverse of 15 bits. Its error moves the
 * remainder by less than p/2, so that the remainder is between -p and p. That holds for any odd p
 * from 3 to 255 and any sum; the tests compare all of them.
 */
#include "crypto/byte_code_kernels.h"

#include "core/pieces.h"
#include "core/wipe.h"
#include "matrix/interleave.h"

#ifndef SHERD__V4_BYTES
const sherd__byte_kernels *sherd__byte_kernels_wide(void)
{
    return NULL;
}
#else
#include <string.h>

#define INLINED SHERD__V4_INLINED

enum {
    WIDE = 64,                      /* columns of a block: four registers of sums */
    BLOCKS = 64,                    /* blocks times groups of four rows that are kept, 16 KB */
    GROUPS = SHERD__BYTE_TERMS / 4, /* groups of four terms, at most: one block, 32 KB */
    CHECKS = SHERD__BYTE_CHECKS
};
#define START INT32_MIN

/* Stores the first n bytes. Some processors are slow to store a part. */
INLINED void store(__m512i x, size_t n, uint8_t *out)
{
    if (n >= WIDE) _mm512_storeu_si512(out, x);
    else _mm512_mask_storeu_epi8(out, sherd__bytes_mask(n), x);
}

/* ---- remainders ------------------------------------------------------------------------------ */

typedef struct modulus {
    __m512i digits, start; /* of 32 bits */
    __m512i p, inverse;    /* of 16 bits */
    __m512i bytes, most;   /* p, and the largest residue that is left as it is */
} modulus;

/* The residue of least magnitude of a number that is not negative. */
static int32_t balanced(int32_t x, int32_t p)
{
    int32_t r = x % p;
    return r > p / 2 ? r - p : r;
}

SHERD__V4_BYTES static modulus modulus_of(uint32_t prime, bool is_signed)
{
    const int32_t p = (int32_t)prime;
    const int32_t square = balanced(1 << 16, p), cube = balanced(1 << 24, p);
    const int8_t digits[4] = { 1, (int8_t)balanced(1 << 8, p), (int8_t)square, (int8_t)cube };
    const int32_t half = 255 * (digits[0] + digits[1] + digits[2] + digits[3]) / 2;
    /* Congruent to -2^31, and the middle of the sums is near 0. */
    const int32_t start = -half + balanced(half - 128 * cube + 1024 * p, p);
    int32_t four;
    memcpy(&four, digits, sizeof four);
    return (modulus){ .digits = _mm512_set1_epi32(four),
                      .start = _mm512_set1_epi32(start),
                      .p = _mm512_set1_epi16((short)p),
                      .inverse = _mm512_set1_epi16((short)((65536 / p + 1) / 2)),
                      .bytes = _mm512_set1_epi8((char)p),
                      .most = _mm512_set1_epi8((char)(is_signed ? p / 2 : 255)) };
}

/* Numbers of 16 bits with a sign to residues. A negative remainder is large without one. */
INLINED __m512i residues_16(__m512i x, const modulus *m)
{
    __m512i quotient = _mm512_mulhrs_epi16(x, m->inverse);
    __m512i r = _mm512_sub_epi16(x, _mm512_mullo_epi16(quotient, m->p));
    return _mm512_min_epu16(r, _mm512_add_epi16(r, m->p));
}

/* Sums that began at START to residues, in bytes, each part of 128 bits of which has those of the
 * same part of sum[0], ..., sum[3]. */
INLINED __m512i residues(const __m512i sum[4], const modulus *m)
{
    __m512i at[4];
    for (int i = 0; i < 4; i++) at[i] = _mm512_dpbusd_epi32(m->start, sum[i], m->digits);
    __m512i low = residues_16(_mm512_packs_epi32(at[0], at[1]), m);
    __m512i high = residues_16(_mm512_packs_epi32(at[2], at[3]), m);
    __m512i r = _mm512_packus_epi16(low, high);
    return _mm512_mask_sub_epi8(r, _mm512_cmpgt_epu8_mask(r, m->most), r, m->bytes);
}

/* 64 numbers in the order of columns. */
INLINED void put(const __m512i x[4], const modulus *m, size_t n, uint8_t *out)
{
    store(sherd__turned(residues(x, m)), n, out);
}

SHERD__V4_BYTES static void settle_wide(const int32_t *acc, size_t n, uint32_t p, bool is_signed,
                                        uint8_t *out)
{
    const modulus m = modulus_of(p, is_signed);
    const __m512i start = _mm512_set1_epi32(START);
    for (size_t at = 0; at < n; at += WIDE) {
        const __mmask64 have = sherd__bytes_mask(n - at);
        __m512i x[4];
        for (int i = 0; i < 4; i++)
            x[i] = _mm512_xor_si512(start, _mm512_maskz_loadu_epi32((__mmask16)(have >> 16 * i),
                                                                    acc + at + 16 * i));
        put(x, &m, n - at, out + at);
    }
}

SHERD__V4_BYTES static void reduce_wide(const double *x, size_t n, uint32_t len, size_t stride,
                                        uint8_t *out)
{
    modulus m[SHERD__BYTE_PRIMES];
    for (uint32_t q = 0; q < len; q++) m[q] = modulus_of(sherd__byte_primes[q], false);
    const __m512i start = _mm512_set1_epi32(START);
    for (size_t at = 0; at < n; at += WIDE) {
        const __mmask64 have = sherd__bytes_mask(n - at);
        __m512i whole[4];
        for (int i = 0; i < 4; i++) {
            const double *from = x + at + 16 * i;
            __m512d low = _mm512_maskz_loadu_pd((__mmask8)(have >> 16 * i), from);
            __m512d high = _mm512_maskz_loadu_pd((__mmask8)(have >> (16 * i + 8)), from + 8);
            __m512i both = _mm512_castsi256_si512(_mm512_cvtpd_epi32(low));
            both = _mm512_inserti64x4(both, _mm512_cvtpd_epi32(high), 1);
            whole[i] = _mm512_xor_si512(start, both);
        }
        for (uint32_t q = 0; q < len; q++) put(whole, &m[q], n - at, out + q * stride + at);
    }
}

/* ---- weighted sums --------------------------------------------------------------------------- */

/* A block of `groups` groups of rows, interleaved, times one row of weights. */
INLINED void weigh(const __m512i *in, const int32_t *four, size_t groups, __m512i sum[4])
{
    for (int i = 0; i < 4; i++) sum[i] = _mm512_set1_epi32(START);
    for (size_t g = 0; g < groups; g++)
        for (int i = 0; i < 4; i++)
            sum[i] = _mm512_dpbusd_epi32(sum[i], in[4 * g + (size_t)i], _mm512_set1_epi32(four[g]));
}

/* Interleaves some columns of all rows. */
SHERD__V4_BYTES static void take(const sherd__byte_sums *s, size_t from, size_t n, size_t groups,
                                 __m512i *laid)
{
    for (size_t at = 0; at < n; at += WIDE)
        for (size_t g = 0; g < groups; g++) {
            __m512i row[4];
            for (size_t j = 0; j < 4; j++)
                row[j] = 4 * g + j < s->terms
                             ? _mm512_maskz_loadu_epi8(sherd__bytes_mask(n - at),
                                                       s->in[4 * g + j] + from + at)
                             : _mm512_setzero_si512();
            sherd__interleave(row, laid + 4 * (at / WIDE * groups + g));
        }
}

INLINED void sum_blocks(const __m512i *laid, const int32_t *four, size_t groups, size_t n,
                        const modulus *m, uint8_t *out)
{
    for (size_t at = 0; at < n; at += WIDE) {
        __m512i sum[4];
        weigh(laid + 4 * (at / WIDE * groups), four, groups, sum);
        store(residues(sum, m), n - at, out + at);
    }
}

SHERD__V4_BYTES static void combine_wide(const sherd__byte_sums *s)
{
    __m512i laid[4 * GROUPS];
    const modulus m = modulus_of(s->p, s->is_signed);
    const size_t groups = (s->terms + 3) / 4;
    const size_t wide = groups && groups < BLOCKS ? BLOCKS / groups * WIDE : WIDE;
    for (size_t at = 0; at < s->n; at += wide) {
        const size_t n = sherd__least(wide, s->n - at);
        take(s, at, n, groups, laid);
        for (uint32_t i = 0; i < s->sums; i++) {
            int32_t four[GROUPS] = { 0 };
            if (!s->out[i]) continue;
            memcpy(four, s->w + (size_t)i * s->terms, s->terms);
            if (groups == 1) sum_blocks(laid, four, 1, n, &m, s->out[i] + at);
            else if (groups == 2) sum_blocks(laid, four, 2, n, &m, s->out[i] + at);
            else sum_blocks(laid, four, groups, n, &m, s->out[i] + at);
        }
    }
    sherd__wipe(laid, sherd__least(sizeof laid, 4 * groups * (s->n + WIDE))); /* masks */
}

/* ---- projections ----------------------------------------------------------------------------- */

enum { ROWS = 64, ROW_GROUPS = ROWS / 4, COLS = 256, TOGETHER = 4 };

/* Interleaves up to 64 rows of up to 256 columns, in the order of columns. */
SHERD__V4_BYTES static void take_rows(const sherd__byte_projection *s, size_t row, size_t rows,
                                      size_t col, size_t cols, __m512i *laid)
{
    for (size_t at = 0; at < cols; at += WIDE)
        for (size_t g = 0; 4 * g < rows; g++)
            sherd__interleave_rows(s->x + (row + 4 * g) * s->ld + col + at, rows - 4 * g, cols - at,
                                   s->ld, laid + 4 * (at / WIDE * ROW_GROUPS + g));
}

/* Adds the products of one block of columns and TOGETHER vectors. */
INLINED void project_block(const __m512i *laid, size_t groups, int32_t r[][ROW_GROUPS], size_t n,
                           int32_t *acc, size_t acc_ld)
{
    __m512i sum[TOGETHER][4];
    __mmask64 have = sherd__bytes_mask(n);
    for (int v = 0; v < TOGETHER; v++)
        for (int i = 0; i < 4; i++)
            sum[v][i] = _mm512_maskz_loadu_epi32((__mmask16)(have >> 16 * i),
                                                 acc + (size_t)v * acc_ld + 16 * i);
    for (size_t g = 0; g < groups; g++)
        for (int v = 0; v < TOGETHER; v++) {
            __m512i four = _mm512_set1_epi32(r[v][g]);
            for (int i = 0; i < 4; i++)
                sum[v][i] = _mm512_dpbusd_epi32(sum[v][i], laid[4 * g + (size_t)i], four);
        }
    for (int v = 0; v < TOGETHER; v++)
        for (int i = 0; i < 4; i++)
            _mm512_mask_storeu_epi32(acc + (size_t)v * acc_ld + 16 * i, (__mmask16)(have >> 16 * i),
                                     sum[v][i]);
}

SHERD__V4_BYTES static void project_wide(const sherd__byte_projection *s)
{
    __m512i laid[COLS / WIDE * ROW_GROUPS * 4];
    int32_t r[CHECKS][ROW_GROUPS];
    for (size_t row = 0; row < s->rows; row += ROWS) {
        const size_t rows = sherd__least(ROWS, s->rows - row);
        memset(r, 0, sizeof r);
        for (size_t v = 0; v < CHECKS; v++) memcpy(r[v], s->r + v * s->r_ld + row, rows);
        for (size_t col = 0; col < s->cols; col += COLS) {
            const size_t cols = sherd__least(COLS, s->cols - col);
            take_rows(s, row, rows, col, cols, laid);
            for (size_t at = 0; at < cols; at += WIDE)
                for (size_t v = 0; v < CHECKS; v += TOGETHER)
                    project_block(laid + 4 * (at / WIDE * ROW_GROUPS), (rows + 3) / 4, r + v,
                                  cols - at, s->acc + v * s->acc_ld + col + at, s->acc_ld);
        }
    }
    sherd__wipe(laid,
                sherd__pieces(sherd__least(COLS, s->cols), WIDE) * ROW_GROUPS * 4 * sizeof laid[0]);
    sherd__wipe(r, sizeof r); /* vectors of the check */
}

/* ---- rejection ------------------------------------------------------------------------------- */

/* Compresses in a register: storing a register and moving on by the bytes kept is much faster on
 * some processors than the instruction that stores them. */
__attribute__((target("arch=x86-64-v4,avx512vnni,avx512vbmi,avx512vbmi2"))) static size_t keep_wide(
    const uint8_t *in, size_t n, uint32_t p, uint8_t *out, size_t room)
{
    const __m512i limit = _mm512_set1_epi8((char)p);
    size_t have = 0;
    for (size_t at = 0; at < n && have < room; at += WIDE) {
        __m512i x = _mm512_maskz_loadu_epi8(sherd__bytes_mask(n - at), in + at);
        __mmask64 kept = _mm512_mask_cmplt_epu8_mask(sherd__bytes_mask(n - at), x, limit);
        size_t more = sherd__least((size_t)__builtin_popcountll(kept), room - have);
        x = _mm512_maskz_compress_epi8(kept, x);
        store(x, room - have >= WIDE ? WIDE : more, out + have);
        have += more;
    }
    return have;
}

const sherd__byte_kernels *sherd__byte_kernels_wide(void)
{
    static const sherd__byte_kernels wide = { reduce_wide, combine_wide, project_wide, settle_wide,
                                              keep_wide };
    return SHERD__IS_V4_BYTES && __builtin_cpu_supports("avx512vbmi2") ? &wide : NULL;
}
#endif
