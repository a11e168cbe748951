/* The wrapper of dgemm: exact products compared with int64, invalid shapes, and memory that beta =
 * 0 must not read. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "matrix/gemm.h"

static uint64_t state = 3;

static double small(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)((int64_t)(state >> 33) % 2001 - 1000);
}

static void one_of(bool transposed, size_t n, size_t k, size_t m, double beta)
{
    size_t rows = transposed ? k : n, cols = transposed ? n : k;
    size_t lda = cols + state % 3, ldb = m + state % 2, ldc = m + state % 4;
    if (lda == 0) lda = 1;
    double *a = malloc((rows * lda + 1) * 8), *b = malloc((k * ldb + 1) * 8);
    double *c = malloc((n * ldc + 1) * 8), *before = malloc((n * ldc + 1) * 8);
    for (size_t i = 0; i < rows * lda; i++) a[i] = small();
    for (size_t i = 0; i < k * ldb; i++) b[i] = small();
    for (size_t i = 0; i < n * ldc; i++) before[i] = c[i] = beta == 0.0 ? NAN : small();
    int err = transposed ? sherd__gemm_t_f64(n, k, m, a, lda, b, ldb, beta, c, ldc)
                         : sherd__gemm_f64(n, k, m, a, lda, b, ldb, beta, c, ldc);
    assert_int_equal(err, SHERD_OK);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < ldc; j++) {
            if (j >= m) { /* nothing is written between rows */
                assert_memory_equal(&c[i * ldc + j], &before[i * ldc + j], 8);
                continue;
            }
            double want = beta == 0.0 ? 0.0 : beta * before[i * ldc + j];
            for (size_t l = 0; l < k; l++)
                want += a[transposed ? l * lda + i : i * lda + l] * b[l * ldb + j];
            assert_true(c[i * ldc + j] == want);
            if (beta == 0.0 && want == 0.0) assert_false(signbit(c[i * ldc + j]));
        }
    free(a);
    free(b);
    free(c);
    free(before);
}

static void one(size_t n, size_t k, size_t m, double beta)
{
    one_of(false, n, k, m, beta);
    one_of(true, n, k, m, beta);
}

static void products_of_all_small_shapes_are_exact(void **s)
{
    (void)s;
    static const double betas[] = { 0.0, 1.0, -2.0 };
    for (size_t n = 0; n < 5; n++)
        for (size_t k = 0; k < 6; k++)
            for (size_t m = 0; m < 5; m++)
                for (int b = 0; b < 3; b++) one(n, k, m, betas[b]);
    for (int b = 0; b < 3; b++) {
        one(70, 1, 130, betas[b]);
        one(70, 2, 130, betas[b]);
        one(70, 3, 130, betas[b]);
        one(129, 257, 65, betas[b]);
        one(1, 300, 1, betas[b]);
    }
}

static void shapes_that_would_end_the_process_are_refused(void **s)
{
    (void)s;
    double x[16] = { 0 };
    assert_int_equal(sherd__gemm_f64(2, 3, 2, x, 2, x, 2, 0.0, x, 2), SHERD_EINVAL);
    assert_int_equal(sherd__gemm_f64(2, 2, 3, x, 2, x, 2, 0.0, x, 3), SHERD_EINVAL);
    assert_int_equal(sherd__gemm_f64(2, 2, 3, x, 2, x, 3, 0.0, x, 2), SHERD_EINVAL);
    assert_int_equal(sherd__gemm_f64(SIZE_MAX, 2, 2, x, 2, x, 2, 0.0, x, 2), SHERD_EINVAL);
    assert_int_equal(sherd__gemm_t_f64(2, 3, 2, x, 1, x, 2, 0.0, x, 2), SHERD_EINVAL);
    assert_int_equal(sherd__gemm_t_f64(2, 3, 2, x, 2, x, 2, 0.0, x, 2), SHERD_OK);
    assert_int_equal(sherd__gemm_t_f64(2, SIZE_MAX, 2, x, 2, x, 2, 0.0, x, 2), SHERD_EINVAL);
    assert_int_equal(sherd__gemm_f64(2, 1, SIZE_MAX / 8, x, 1, x, SIZE_MAX / 8, 0.0, x,
                                     SIZE_MAX / 8),
                     SHERD_EINVAL);
}

static void leading_dimensions_beyond_32_bits_work(void **s)
{
    (void)s;
    /* Operands of one row: the leading dimension is never used, but BLAS cannot represent it. */
    double a[3] = { 1, 2, 3 }, b[1] = { 5 }, c[1] = { 0 };
    size_t far = (size_t)1 << 33;
    assert_int_equal(sherd__gemm_f64(1, 1, 1, a, far, b, far, 0.0, c, far), SHERD_OK);
    assert_true(c[0] == 5.0);
    double column[3] = { 7, 8, 9 };
    assert_int_equal(sherd__gemm_f64(1, 3, 1, a, far, column, 1, 0.0, c, 1), SHERD_OK);
    assert_true(c[0] == 50.0);
    assert_int_equal(sherd__gemm_t_f64(3, 1, 1, a, far, b, 1, 0.0, column, 1), SHERD_OK);
    assert_true(column[0] == 5.0 && column[1] == 10.0 && column[2] == 15.0);
}

static void nan_and_infinity_propagate_through_skinny_products(void **s)
{
    (void)s;
    double a[2] = { -0.0, 2.0 }, b[3] = { INFINITY, NAN, 1.0 }, c[6];
    assert_int_equal(sherd__gemm_f64(2, 1, 3, a, 1, b, 3, 0.0, c, 3), SHERD_OK);
    assert_true(isnan(c[0]) && isnan(c[1]) && c[2] == 0.0 && !signbit(c[2]));
    assert_true(c[3] == INFINITY && isnan(c[4]) && c[5] == 2.0);
}

static void the_self_test_passes_and_counts_as_products(void **s)
{
    (void)s;
    sherd_diag d = { 0 };
    uint64_t before = sherd__blas_calls();
    assert_int_equal(sherd__gemm_selftest(&d), SHERD_OK);
    assert_int_equal(sherd__blas_calls(), before + 14);
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__gemm_selftest(&d), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
    assert_true(sherd__gemm_gflops(128) > 0.0);
    assert_true(sherd__gemm_gflops(SIZE_MAX) == 0.0);
}

static void threads_and_core_can_be_queried(void **s)
{
    (void)s;
    unsigned was = sherd__blas_threads();
    sherd__blas_threads_set(1);
    assert_int_equal(sherd__blas_threads(), 1);
    sherd__blas_threads_set(0);
    assert_int_equal(sherd__blas_threads(), 1);
    sherd__blas_threads_set(was);
    assert_true(sherd__blas_core()[0] != '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_all_small_shapes_are_exact),
        cmocka_unit_test(shapes_that_would_end_the_process_are_refused),
        cmocka_unit_test(leading_dimensions_beyond_32_bits_work),
        cmocka_unit_test(nan_and_infinity_propagate_through_skinny_products),
        cmocka_unit_test(the_self_test_passes_and_counts_as_products),
        cmocka_unit_test(threads_and_core_can_be_queried),
    };
    return cmocka_run_group_tests_name("matrix/gemm", tests, NULL, NULL);
}
