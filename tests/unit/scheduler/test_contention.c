/*
 * Threads that multiply during a measurement: the rate is the mean of the work of all threads in
 * the time that they ran, for any shape, and all threads end. The test provides the clocks if
 * figures matter.
 * link: -Wl,--wrap=clock_gettime
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "matrix/gemm.h"
#include "matrix/residue_limbs.h"
#include "scheduler/plan/contention.h"

static bool own;
static pthread_t here;
static atomic_int looks_here, looks_there, looks;

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

/* Between two readings, this thread uses a tenth of a second and any other thread three tenths. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    bool mine = pthread_equal(pthread_self(), here);
    if (!own) return __real_clock_gettime(clock, out);
    if (clock != CLOCK_THREAD_CPUTIME_ID) { /* until other threads have run */
        int n = looks_there > 3 ? ++looks : 0;
        *out = (struct timespec){ .tv_sec = 1, .tv_nsec = 10000000L * n };
        return 0;
    }
    int n = atomic_fetch_add(mine ? &looks_here : &looks_there, 1);
    long tenths = (mine ? 1 : 3) * (n / 2 + n % 2);
    *out = (struct timespec){ .tv_sec = tenths / 10, .tv_nsec = tenths % 10 * 100000000 };
    return 0;
}

static double rate(unsigned others, size_t rows, size_t inner, size_t cols, bool residues)
{
    const sherd__contention_work w = { rows, inner, cols, residues };
    sherd__contention *c = sherd__contention_begin(others, &w);
    assert_non_null(c);
    return sherd__contention_end(c);
}

/* This thread made h products in h tenths of a second, the others t in three tenths each; the rate
 * is the mean over their time. */
static void the_rate_is_the_work_of_all_threads_in_their_time(void **state)
{
    (void)state;
    own = true;
    double have = rate(1, 20, 30, 40, false);
    own = false;
    double here_n = looks_here / 2, there_n = looks_there / 2;
    double want = 2e-9 * 20 * 30 * 40 * (here_n + there_n) / (0.1 * here_n + 0.3 * there_n);
    assert_true(here_n > 0 && there_n > 0);
    if (fabs(have / want - 1) > 1e-6) fail_msg("%g, expected %g", have, want);
}

static void any_shape_is_multiplied_and_large_ones_partially(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {
        { 1, 1, 1 }, { 7, 1, 300 }, { 3000, 5000, 2 }, { 1, 9000, 4000 }, { 65, 129, 33 }
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (unsigned others = 0; others <= 2; others += 2) {
            const size_t *s = shapes[i];
            assert_true(rate(others, s[0], s[1], s[2], false) > 0);
            if (sherd__limbs_here()) assert_true(rate(others, s[0], s[1], s[2], true) > 0);
        }
    assert_true(rate(2, 0, 5, 5, false) == 0);
    assert_true(sherd__contention_end(NULL) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_is_the_work_of_all_threads_in_their_time),
        cmocka_unit_test(any_shape_is_multiplied_and_large_ones_partially),
    };
    here = pthread_self();
    sherd__blas_threads_set(1);
    return cmocka_run_group_tests_name("scheduler/company", tests, NULL, NULL);
}
