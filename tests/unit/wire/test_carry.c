/* The rate of a link's two ends is measured, with both threads' work in it, and only once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/resource.h>

#include "core/clock.h"
#include "wire/carry.h"

static double busy_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void it_is_what_the_two_ends_took_for_their_bytes(void **state)
{
    (void)state;
    double mine = sherd__clock_busy_s(), all = busy_s();
    double rate = sherd__carry_rate();
    mine = sherd__clock_busy_s() - mine;
    all = busy_s() - all;
    assert_true(rate > 1e6 && rate < 1e12);
    assert_true(all > mine); /* the other end is a thread of its own */
    /* The bytes at this rate are most of what was done, less keys, pages and the first of them. */
    double ends = 2.0 * (5 * 6 << 20) / rate;
    assert_true(ends < 1.5 * all && ends > 0.45 * all);
}

static void it_is_measured_once(void **state)
{
    (void)state;
    double rate = sherd__carry_rate(), began = sherd__clock_busy_s();
    assert_true(sherd__carry_rate() == rate);
    assert_true(sherd__clock_busy_s() - began < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_what_the_two_ends_took_for_their_bytes),
        cmocka_unit_test(it_is_measured_once),
    };
    return cmocka_run_group_tests_name("wire/carry", tests, NULL, NULL);
}
