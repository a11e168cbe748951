/* Four rows of bytes interleaved in vector registers, as byte products take them: the four bytes of
 * a column are one group of 32 bits. For files of AVX-512-VNNI; empty on other platforms. */
#ifndef MATRIX_INTERLEAVE_H
#define MATRIX_INTERLEAVE_H

#include "matrix/clones.h"

#ifdef SHERD__V4_BYTES
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define SHERD__V4_INLINED SHERD__V4_BYTES static inline __attribute__((always_inline))

/** The first n of 64 bytes. */
static inline __mmask64 sherd__bytes_mask(size_t n)
{
    return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/** Transposes 4 x 4 groups of four bytes: group j of each 128 bits is exchanged with group i of the
 *  128 bits number j. */
SHERD__V4_INLINED __m512i sherd__turned(__m512i x)
{
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7,
                                                      11, 15),
                                    x);
}

/** Interleaves rows of 64 columns: out[i] gets columns 4*i, ..., 4*i+3 of each 16. If the rows were
 *  turned before, these are columns 16*i, ..., 16*i+15. */
SHERD__V4_INLINED void sherd__interleave(const __m512i row[4], __m512i out[4])
{
    __m512i low = _mm512_unpacklo_epi8(row[0], row[1]), high = _mm512_unpackhi_epi8(row[0], row[1]);
    __m512i low2 = _mm512_unpacklo_epi8(row[2], row[3]);
    __m512i high2 = _mm512_unpackhi_epi8(row[2], row[3]);
    out[0] = _mm512_unpacklo_epi16(low, low2);
    out[1] = _mm512_unpackhi_epi16(low, low2);
    out[2] = _mm512_unpacklo_epi16(high, high2);
    out[3] = _mm512_unpackhi_epi16(high, high2);
}

/** Interleaves `rows` <= 4 rows of `cols` columns, up to 64, in the order of columns; other rows
 *  and columns are zero. */
SHERD__V4_INLINED void sherd__interleave_rows(const void *in, size_t rows, size_t cols,
                                              size_t stride, __m512i out[4])
{
    const uint8_t *at = in;
    const __mmask64 have = sherd__bytes_mask(cols);
    __m512i row[4];
    for (size_t j = 0; j < 4; j++) {
        row[j] = _mm512_setzero_si512();
        if (j < rows) row[j] = sherd__turned(_mm512_maskz_loadu_epi8(have, at + j * stride));
    }
    sherd__interleave(row, out);
}
#endif

#endif
