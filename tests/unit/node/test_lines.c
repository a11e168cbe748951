/* The log of a node is limited to a number of lines a minute for each key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "node/lines.h"

static sherd__fingerprint key_of(unsigned i)
{
    sherd__fingerprint k;
    memset(&k, 0, sizeof k);
    memcpy(&k, &i, sizeof i);
    return k;
}

static unsigned said(sherd__lines *l, unsigned key, unsigned times, uint64_t now,
                     uint32_t *left_out)
{
    const sherd__fingerprint k = key_of(key);
    unsigned n = 0;
    *left_out = 0;
    for (unsigned i = 0; i < times; i++) {
        uint32_t left;
        n += sherd__lines_may(l, &k, now, &left);
        *left_out += left;
    }
    return n;
}

static void one_key_does_not_use_up_the_lines_of_others(void **state)
{
    (void)state;
    sherd__lines l = { 0 };
    uint32_t left;
    assert_int_equal(said(&l, 1, 1000, 5, &left), SHERD__LINES_MAX);
    for (unsigned k = 2; k < SHERD__LINES_KEYS; k++) {
        assert_int_equal(said(&l, k, 3, 5, &left), 3);
        assert_int_equal(left, 0);
    }
    assert_int_equal(said(&l, 1, 10, SHERD__LINES_MS, &left), 0);
}

static void after_a_minute_the_number_of_suppressed_lines_is_logged(void **state)
{
    (void)state;
    sherd__lines l = { 0 };
    uint32_t left;
    assert_int_equal(said(&l, 1, 25, 0, &left), SHERD__LINES_MAX);
    assert_int_equal(said(&l, 1, 1, SHERD__LINES_MS + 1, &left), 1);
    assert_int_equal(left, 25 - SHERD__LINES_MAX);
    assert_int_equal(said(&l, 1, 1, 2 * SHERD__LINES_MS + 2, &left), 1);
    assert_int_equal(left, 0);
}

static void among_too_many_keys_the_oldest_is_forgotten(void **state)
{
    (void)state;
    sherd__lines l = { 0 };
    uint32_t left;
    for (unsigned k = 0; k < SHERD__LINES_KEYS; k++)
        assert_int_equal(said(&l, k, 30, 10 + k, &left), SHERD__LINES_MAX);
    assert_int_equal(said(&l, 1000, 1, 200, &left), 1);
    assert_int_equal(said(&l, 1, 1, 201, &left), 0);
    assert_int_equal(said(&l, 0, 1, 202, &left), 1); /* it counts as a new key again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_key_does_not_use_up_the_lines_of_others),
        cmocka_unit_test(after_a_minute_the_number_of_suppressed_lines_is_logged),
        cmocka_unit_test(among_too_many_keys_the_oldest_is_forgotten),
    };
    return cmocka_run_group_tests_name("node/lines", tests, NULL, NULL);
}
