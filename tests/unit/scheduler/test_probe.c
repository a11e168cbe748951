/* A probe of links takes bounded time and transfers bounded bytes, over links of any rate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/cluster/probe.h"

#define FIRST (UINT64_C(16) << 10)
#define MOST (UINT64_C(8) << 20)

static void a_probe_grows_until_it_takes_long_enough(void **state)
{
    (void)state;
    assert_int_equal(sherd__probe_next(FIRST, 1e-6, MOST), 8 * FIRST);
    assert_int_equal(sherd__probe_next(FIRST, 0.05, MOST), 4 * FIRST); /* expected to take 0.2 s */
    assert_int_equal(sherd__probe_next(FIRST, 0.1, MOST), 0);
    assert_int_equal(sherd__probe_next(FIRST, 7, MOST), 0);
    assert_int_equal(sherd__probe_next(MOST / 2, 0.01, MOST), MOST);
    assert_int_equal(sherd__probe_next(MOST, 0.01, MOST), 0);
    assert_int_equal(sherd__probe_next(FIRST, 0, FIRST), 0);
}

/* From a hundred kilobytes to a terabyte per second. */
static void a_probe_takes_bounded_time_and_bytes_at_any_rate(void **state)
{
    (void)state;
    for (double rate = 1e5; rate < 1e12; rate *= 3) {
        double seconds = 0, took = 0;
        uint64_t bytes = FIRST, sum = 0;
        while (bytes > 0) {
            took = 2 * (double)bytes / rate;
            seconds += took;
            sum += bytes;
            bytes = sherd__probe_next(bytes, took, MOST);
        }
        assert_true(seconds < 1 && sum <= MOST + MOST / 2);
        assert_true(took >= 0.1 || sum >= MOST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probe_grows_until_it_takes_long_enough),
        cmocka_unit_test(a_probe_takes_bounded_time_and_bytes_at_any_rate),
    };
    return cmocka_run_group_tests_name("scheduler/probe", tests, NULL, NULL);
}
