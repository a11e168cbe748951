/*
 * The rate of a link's two ends is measured, including the work of both threads, and measured again
 * when it is old. The test provides the clocks, so that the time between two readings does not
 * depend on the machine's load.
 * link: -Wl,--wrap=clock_gettime
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "wire/link_rate.h"

#define BYTES ((double)(6 << 20)) /* bytes that each end takes between two readings of a clock */

static pthread_t here;
static atomic_int looks_here, looks_there;
static time_t now_s = 100;

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

/* Between two readings, this thread uses two seconds and any other thread one. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    bool mine = pthread_equal(pthread_self(), here);
    if (clock == CLOCK_MONOTONIC) return *out = (struct timespec){ .tv_sec = now_s }, 0;
    if (clock != CLOCK_THREAD_CPUTIME_ID) return __real_clock_gettime(clock, out);
    int looks = atomic_fetch_add(mine ? &looks_here : &looks_there, 1);
    *out = (struct timespec){ .tv_sec = (mine ? 2 : 1) * looks };
    return 0;
}

static void the_rate_follows_from_the_processor_time_of_both_ends(void **state)
{
    (void)state;
    double rate = sherd__link_rate_here();
    assert_true(looks_here > 0 && looks_here == looks_there);
    assert_true(rate > 0.999 * 2 * BYTES / 3 && rate < 1.001 * 2 * BYTES / 3);
}

static void an_old_rate_is_measured_again(void **state)
{
    (void)state;
    double rate = sherd__link_rate_here();
    int looks = looks_here;
    now_s++;
    assert_true(sherd__link_rate_here() == rate && looks_here == looks);
    now_s++;
    assert_true(sherd__link_rate_here() > 0 && looks_here == 2 * looks);
    looks = looks_here;
    assert_true(sherd__link_rate_here() > 0 && looks_here == looks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_follows_from_the_processor_time_of_both_ends),
        cmocka_unit_test(an_old_rate_is_measured_again),
    };
    here = pthread_self();
    return cmocka_run_group_tests_name("wire/carry", tests, NULL, NULL);
}
