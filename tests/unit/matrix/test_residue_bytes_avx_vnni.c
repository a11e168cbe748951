/* Products by the code for AVX-VNNI, with its instruction computed by a function of this file, so
 * that it is tested on processors without AVX-VNNI as well (they need AVX2). */
#include "tests/unit/matrix/bytes_emulated.h"

#include "matrix/clones.h"

#ifdef SHERD__V3
#include <immintrin.h>

#define SHERD__AVX_VNNI SHERD__V3
#define SHERD__IS_AVX_VNNI SHERD__IS_V3
#define multiply_add emulated

/* As Intel's manual defines VPDPBUSD. */
SHERD__V3 static __m256i emulated(__m256i sums, __m256i a, __m256i b)
{
    uint8_t left[32];
    int8_t right[32];
    int32_t words[8];
    memcpy(left, &a, sizeof left);
    memcpy(right, &b, sizeof right);
    memcpy(words, &sums, sizeof words);
    for (size_t i = 0; i < 32; i++) words[i / 4] += left[i] * right[i];
    memcpy(&sums, words, sizeof words);
    return sums;
}

#include "matrix/residue_bytes_avx2.c" /* instead of the library's */

static bool here(void)
{
    return sherd__bytes_force(SHERD__BYTES_AVX_VNNI);
}
#else
static bool here(void)
{
    return false;
}
#endif

int main(void)
{
    return run_emulated();
}
