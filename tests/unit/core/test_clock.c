/* Processor time of a thread is that thread's alone, whoever asks. */
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

static void a_threads_time_is_told_to_others(void **s)
{
    (void)s;
    pthread_t thread;
    const double enough = 0.2; /* more than looking takes under a tool that slows all down */
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_threads_time_is_told_to_others) };
    return cmocka_run_group_tests_name("core/clock", tests, NULL, NULL);
}
