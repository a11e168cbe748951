/*
 * Several threads that multiply at one time: a BLAS that is not built for that has one caller.
 *
 * link: -Wl,--wrap=cblas_dgemm,--wrap=openblas_get_parallel
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cblas.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "matrix/gemm.h"

enum { THREADS = 4, N = 8, ROUNDS = 50 };

static int parallel;
static atomic_int inside, most;

int __wrap_openblas_get_parallel(void);
int __wrap_openblas_get_parallel(void)
{
    return parallel;
}

void __real_cblas_dgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m,
                        blasint n, blasint k, double alpha, const double *a, blasint lda,
                        const double *b, blasint ldb, double beta, double *c, blasint ldc);
void __wrap_cblas_dgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m,
                        blasint n, blasint k, double alpha, const double *a, blasint lda,
                        const double *b, blasint ldb, double beta, double *c, blasint ldc);
void __wrap_cblas_dgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m,
                        blasint n, blasint k, double alpha, const double *a, blasint lda,
                        const double *b, blasint ldb, double beta, double *c, blasint ldc)
{
    int now = atomic_fetch_add(&inside, 1) + 1, had = atomic_load(&most);
    while (now > had && !atomic_compare_exchange_weak(&most, &had, now)) continue;
    for (int i = 0; i < 20; i++) sched_yield(); /* and, where others may come, until one does */
    for (int i = 0; parallel == OPENBLAS_THREAD && atomic_load(&most) < 2 && i < 10000; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    if (parallel != OPENBLAS_SEQUENTIAL)
        __real_cblas_dgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    atomic_fetch_sub(&inside, 1);
}

static void *multiply(void *failures)
{
    double a[N * N], c[N * N];
    for (int i = 0; i < N * N; i++) a[i] = i;
    for (int r = 0; r < ROUNDS; r++)
        if (sherd__gemm_f64(N, N, N, a, N, a, N, 0, c, N))
            atomic_fetch_add((atomic_int *)failures, 1);
    return NULL;
}

static int callers_at_a_time(int kind)
{
    pthread_t threads[THREADS];
    atomic_int failures = 0;
    parallel = kind;
    atomic_store(&most, 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, multiply, &failures), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(failures, 0);
    return atomic_load(&most);
}

static void a_sequential_blas_has_one_caller(void **state)
{
    (void)state;
    assert_int_equal(callers_at_a_time(OPENBLAS_SEQUENTIAL), 1);
    assert_int_equal(callers_at_a_time(OPENBLAS_OPENMP), 1);
}

static void a_blas_with_threads_has_several(void **state)
{
    (void)state;
    assert_true(callers_at_a_time(OPENBLAS_THREAD) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequential_blas_has_one_caller),
        cmocka_unit_test(a_blas_with_threads_has_several),
    };
    return cmocka_run_group_tests_name("matrix/gemm_callers", tests, NULL, NULL);
}
