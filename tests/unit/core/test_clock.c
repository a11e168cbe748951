/* A thread's processor time is that of this thread alone, whichever thread asks for it. */
#include "core/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <cmocka.h>

static atomic_bool computes = true;

static void *compute(void *arg)
{
    while (computes) {}
    return arg;
}

static void another_thread_can_read_a_threads_processor_time(void **s)
{
    (void)s;
    pthread_t thread;
    const double enough = 0.2; /* more than reading the clock takes, even under a tool that slows
                                * everything down */
    double own = sherd__clock_busy_s(), until = sherd__clock_s() + 20, of = 0;
    assert_int_equal(pthread_create(&thread, NULL, compute, NULL), 0);
    while (of < enough && sherd__clock_s() < until) {
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        of = sherd__clock_busy_of(thread);
    }
    own = sherd__clock_busy_s() - own;
    double seen = sherd__clock_busy_of(pthread_self()), now = sherd__clock_busy_s();
    computes = false;
    pthread_join(thread, NULL);
    assert_true(of >= enough);
    assert_true(own < enough);
    assert_true(seen <= now && now - seen < enough);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        another_thread_can_read_a_threads_processor_time) };
    return cmocka_run_group_tests_name("core/clock", tests, NULL, NULL);
}
