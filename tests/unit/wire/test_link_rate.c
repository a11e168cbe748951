/*
 * The rate of a link's two ends is measured, with both threads' work in it, and again when it is
 * old. Clocks
 * are the test's own: what a thread works between two looks is decided here, however loaded the
 * machine is.
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

#define BYTES ((double)(6 << 20)) /* that each end takes between two looks */

static pthread_t here;
static atomic_int looks_here, looks_there;
static time_t now_s = 100;

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

/* This thread works two seconds between two looks, any other one. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    bool mine = pthread_equal(pthread_self(), here);
    if (clock == CLOCK_MONOTONIC) return *out = (struct timespec){ .tv_sec = now_s }, 0;
    if (clock != CLOCK_THREAD_CPUTIME_ID) return __real_clock_gettime(clock, out);
    int looks = atomic_fetch_add(mine ? &looks_here : &looks_there, 1);
    *out = (struct timespec){ .tv_sec = (mine ? 2 : 1) * looks };
    return 0;
}

static void it_is_what_the_two_ends_took_for_their_bytes(void **state)
{
    (void)state;
    double rate = sherd__link_rate_here();
    assert_true(looks_here > 0 && looks_here == looks_there);
    assert_true(rate > 0.999 * 2 * BYTES / 3 && rate < 1.001 * 2 * BYTES / 3);
}

static void it_is_measured_again_when_it_is_old(void **state)
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
        cmocka_unit_test(it_is_what_the_two_ends_took_for_their_bytes),
        cmocka_unit_test(it_is_measured_again_when_it_is_old),
    };
    here = pthread_self();
    return cmocka_run_group_tests_name("wire/carry", tests, NULL, NULL);
}
