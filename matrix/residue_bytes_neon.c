/*
 * Products of byte residues on ARM by SUDOT, which multiplies signed bytes by unsigned ones (I8MM:
 * Neoverse V1 and N2, Apple M2, and later). Without it, the code for any processor computes them.
 */
#include "matrix/residue_bytes_kernels.h"

#ifdef __aarch64__
#include <arm_neon.h>
#include <sys/auxv.h>

#define SHERD__I8MM __attribute__((target("arch=armv8.2-a+i8mm")))
#define SHERD__IS_I8MM (getauxval(AT_HWCAP2) & 1u << 13) /* HWCAP2_I8MM */
#endif

#ifndef SHERD__I8MM
const sherd__bytes_kernels *sherd__bytes_neon(void)
{
    return NULL;
}
#else

#define INLINED static inline __attribute__((always_inline))

enum {
    TILE = SHERD__BYTES_TILE,
    STEP = SHERD__BYTES_STEP,
    LEN = BYTES_TILE_LEN,
    ROWS = 4,        /* rows at a time: a quarter of a strip, 16 registers of sums */
    PARTS = TILE / 4 /* registers with four columns of B each */
};

/* Adds four terms of each row; `q` is their place among the 16 of a register of A. */
#define ADD_GROUP(q)                                                                               \
    do {                                                                                           \
        for (size_t j = 0; j < PARTS; j++) cols[j] = vld1q_s8(group + (q)*4 * TILE + 16 * j);      \
        for (size_t i = 0; i < ROWS; i++)                                                          \
            for (size_t j = 0; j < PARTS; j++)                                                     \
                acc[i][j] = vsudotq_laneq_s32(acc[i][j], cols[j], rows[i], q);                     \
    } while (0)

/* Four rows times a strip. */
SHERD__I8MM INLINED void sum_quarter(const sherd__bytes_piece *t, const uint8_t *a,
                                     const uint8_t *b, int32_t *sums)
{
    int32x4_t acc[ROWS][PARTS];
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < PARTS; j++)
            acc[i][j] = t->more ? vld1q_s32(sums + i * BYTES_WIDE + 4 * j) : vdupq_n_s32(0);
    for (size_t s = 0; s < t->steps; s++, a += t->tile, b += LEN)
        for (size_t g = 0; g < STEP; g += 16) {
            const int8_t *group = (const int8_t *)b + g * TILE;
            uint8x16_t rows[ROWS];
            int8x16_t cols[PARTS];
            for (size_t i = 0; i < ROWS; i++) rows[i] = vld1q_u8(a + i * t->row + g);
            ADD_GROUP(0);
            ADD_GROUP(1);
            ADD_GROUP(2);
            ADD_GROUP(3);
        }
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < PARTS; j++) vst1q_s32(sums + i * BYTES_WIDE + 4 * j, acc[i][j]);
}

SHERD__I8MM static void sum_dots(const sherd__bytes_piece *t)
{
    for (size_t col = 0; col < t->cols; col += TILE)
        for (size_t row = 0; row < t->rows; row += ROWS)
            sum_quarter(t, t->left + row / TILE * t->left_strip + row % TILE * t->row,
                        t->right + col / TILE * t->right_strip, t->sums + row * BYTES_WIDE + col);
}

const sherd__bytes_kernels *sherd__bytes_neon(void)
{
    static const sherd__bytes_kernels neon = { sum_dots, sherd__bytes_reduce_any,
                                               sherd__bytes_lay_any };
    return SHERD__IS_I8MM ? &neon : NULL;
}
#endif
