/* Products by the code for AVX-VNNI, with its instruction computed by a function of this file, so
 * that it is tested on processors without AVX-VNNI as well (they need AVX2). */
#include "tests/unit/matrix/bytes_products.h"

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

static void products_of_any_shape_are_exact(void **s)
{
    (void)s;
    if (!here()) skip();
    products_of_any_shape();
}

static void products_of_any_length_are_exact(void **s)
{
    (void)s;
    if (!here()) skip();
    check(251, 3, 4097, 5, BEYOND);
    check_long(241, 35, 4200, 100, WORST);
    check_long(239, 2, 65537, 3, WORST);
}

static void the_self_test_passes(void **s)
{
    (void)s;
    if (!here()) skip();
    assert_int_equal(sherd__bytes_selftest(NULL), SHERD_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_any_shape_are_exact),
        cmocka_unit_test(products_of_any_length_are_exact),
        cmocka_unit_test(the_self_test_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
