/* Subnormal numbers flushed to zero: in the calling thread, while flushing is on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>

#include "core/subnormal.h"

static double half_of_least(void)
{
    volatile double least = DBL_MIN, half = 0.5;
    return least * half;
}

static float half_of_least_f32(void)
{
    volatile float least = FLT_MIN, half = 0.5f;
    return least * half;
}

static double read_subnormal(void)
{
    volatile double subnormal = 0x1p-1074, large = 0x1p100;
    return subnormal * large;
}

static void subnormal_results_and_operands_are_zero_while_flushing_is_on(void **s)
{
    (void)s;
    assert_false(sherd__subnormal_flushed());
    assert_false(sherd__subnormal_flush(true));
    if (!sherd__subnormal_flushed()) skip(); /* this processor does not support it */
    assert_true(sherd__subnormal_flush(true));
    assert_true(half_of_least() == 0);
    assert_true(half_of_least_f32() == 0);
    assert_true(read_subnormal() == 0);
    (void)sherd__subnormal_flush(false);
    assert_false(sherd__subnormal_flushed());
    assert_true(half_of_least() == 0x1p-1023);
    assert_true(half_of_least_f32() == 0x1p-127f);
    assert_true(read_subnormal() == 0x1p-974);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subnormal_results_and_operands_are_zero_while_flushing_is_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
