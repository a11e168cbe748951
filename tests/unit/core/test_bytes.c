/* Loads and stores compared with shifts of single bytes; size arithmetic compared with 128 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "core/rand.h"

__extension__ typedef unsigned __int128 wide;

static uint64_t by_bytes(const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static void stored_numbers_are_little_endian_and_load_again(void **state)
{
    (void)state;
    sherd__seeded st;
    sherd__entropy e = sherd__entropy_seeded(&st, 1);
    for (int i = 0; i < 1000; i++) {
        uint64_t v = sherd__entropy_u64(&e);
        uint8_t p[10] = { 0 };
        sherd__put_u16(p + 1, (uint16_t)v);
        assert_int_equal(by_bytes(p + 1, 2), v & 0xffff);
        assert_int_equal(sherd__get_u16(p + 1), v & 0xffff);
        assert_int_equal(p[3], 0);
        sherd__put_u32(p + 1, (uint32_t)v);
        assert_int_equal(by_bytes(p + 1, 4), v & 0xffffffff);
        assert_int_equal(sherd__get_u32(p + 1), v & 0xffffffff);
        assert_int_equal(p[5], 0);
        sherd__put_u64(p + 1, v);
        assert_true(by_bytes(p + 1, 8) == v);
        assert_true(sherd__get_u64(p + 1) == v);
        assert_int_equal(p[0] | p[9], 0);
    }
}

static void sizes_that_overflow_are_refused_and_leave_the_output_unchanged(void **state)
{
    (void)state;
    static const size_t edge[] = { 0,
                                   1,
                                   2,
                                   3,
                                   (size_t)1 << 31,
                                   (size_t)1 << 32,
                                   SIZE_MAX / 3,
                                   SIZE_MAX / 2,
                                   SIZE_MAX / 2 + 1,
                                   SIZE_MAX - 1,
                                   SIZE_MAX };
    enum { N = sizeof edge / sizeof *edge };
    for (int i = 0; i < N * N; i++) {
        size_t a = edge[i / N], b = edge[i % N], out = 77;
        wide product = (wide)a * b, sum = (wide)a + b;
        assert_int_equal(sherd__mul(a, b, &out), product <= SIZE_MAX);
        assert_true(out == (product <= SIZE_MAX ? (size_t)product : 77));
        out = 77;
        assert_int_equal(sherd__add(a, b, &out), sum <= SIZE_MAX);
        assert_true(out == (sum <= SIZE_MAX ? (size_t)sum : 77));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_numbers_are_little_endian_and_load_again),
        cmocka_unit_test(sizes_that_overflow_are_refused_and_leave_the_output_unchanged),
    };
    return cmocka_run_group_tests_name("core/bytes", tests, NULL, NULL);
}
