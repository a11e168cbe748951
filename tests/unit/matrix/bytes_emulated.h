/* Cases for kernels of byte residues whose instructions the including file computes. It defines
 * here(), which selects them and returns whether this processor can run the rest. */
#ifndef TESTS_UNIT_MATRIX_BYTES_EMULATED_H
#define TESTS_UNIT_MATRIX_BYTES_EMULATED_H

#include "tests/unit/matrix/bytes_products.h"

static bool here(void);

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

static int run_emulated(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_any_shape_are_exact),
        cmocka_unit_test(products_of_any_length_are_exact),
        cmocka_unit_test(the_self_test_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
