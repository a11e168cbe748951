/* Products by the code for ARM's I8MM, with its instructions computed by functions of this file, so
 * that it is tested on every processor. */
#include "tests/unit/matrix/bytes_emulated.h"

#ifndef __aarch64__
typedef struct int32x4 {
    int32_t at[4];
} int32x4_t;
typedef struct uint8x16 {
    uint8_t at[16];
} uint8x16_t;
typedef struct int8x16 {
    int8_t at[16];
} int8x16_t;

static uint8x16_t vld1q_u8(const uint8_t *from)
{
    uint8x16_t x;
    memcpy(&x, from, sizeof x);
    return x;
}

static int8x16_t vld1q_s8(const int8_t *from)
{
    int8x16_t x;
    memcpy(&x, from, sizeof x);
    return x;
}

static int32x4_t vld1q_s32(const int32_t *from)
{
    int32x4_t x;
    memcpy(&x, from, sizeof x);
    return x;
}

static void vst1q_s32(int32_t *to, int32x4_t x)
{
    memcpy(to, &x, sizeof x);
}

static int32x4_t vdupq_n_s32(int32_t x)
{
    return (int32x4_t){ { x, x, x, x } };
}

/* As ARM's manual defines SUDOT by element. */
static int32x4_t vsudotq_laneq_s32(int32x4_t sums, int8x16_t a, uint8x16_t b, int lane)
{
    for (int i = 0; i < 16; i++) sums.at[i / 4] += a.at[i] * b.at[4 * lane + i % 4];
    return sums;
}

#define SHERD__I8MM
#define SHERD__IS_I8MM true
#endif

#include "matrix/residue_bytes_neon.c" /* instead of the library's */

static bool here(void)
{
    return sherd__bytes_force(SHERD__BYTES_NEON);
}

int main(void)
{
    return run_emulated();
}
