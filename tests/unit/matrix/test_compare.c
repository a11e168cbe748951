/* Comparison of products: what is counted, and that correct products pass and wrong ones fail. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "matrix/compare.h"
#include "matrix/reference.h"

static uint64_t state = 33;

static uint64_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 11;
}

static double real(void)
{
    return ldexp((double)draw(), -53) - 0.5;
}

static void measures_equal_a_count_by_hand(void **s)
{
    (void)s;
    double ref[8] = { 1.0, 2.0, NAN, HUGE_VAL, -0.0, 1e-300, 4.0, -1.0 };
    double c[8] = { 1.0, 2.0 + 0x1p-51, NAN, HUGE_VAL, 0.0, 0.0, NAN, 1.0 };
    sherd__compare x;
    sherd__compare_init(&x);
    sherd__compare_rows(&x, c, 4, ref, 4, (sherd__compare_part){ 10, 0, 1, 4 });
    sherd__compare_rows(&x, c + 4, 4, ref + 4, 4, (sherd__compare_part){ 11, 0, 1, 4 });
    assert_int_equal(x.count, 8);
    assert_int_equal(x.equal, 3);
    assert_int_equal(x.close, 6); /* neither the NaN nor the wrong sign */
    assert_int_equal(x.mismatched, 1);
    assert_true(x.max_abs == 2.0 && x.abs_row == 11 && x.abs_col == 3);
    assert_true(x.bit_row == 10 && x.bit_col == 1);
    assert_int_equal(x.max_ulp, 2 * UINT64_C(0x3ff0000000000000));
    assert_true(x.ulp_row == 11 && x.ulp_col == 3);
}

/* Computes C = A*B with the terms of each sum in random order, with or without fma. */
static void shuffled_product(const double *a, const double *b, size_t n, size_t k, size_t m,
                             double *c)
{
    size_t *order = malloc((k + 1) * sizeof *order);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            double sum = 0.0;
            for (size_t l = 0; l < k; l++) order[l] = l;
            for (size_t l = k; l > 1; l--) {
                size_t t = draw() % l, o = order[t];
                order[t] = order[l - 1];
                order[l - 1] = o;
            }
            bool fused = draw() & 1;
            for (size_t l = 0; l < k; l++) {
                double x = a[i * k + order[l]], y = b[order[l] * m + j];
                sum = fused ? fma(x, y, sum) : sum + x * y;
            }
            c[i * m + j] = sum;
        }
    free(order);
}

static void correct_products_in_any_order_pass_and_one_wrong_entry_fails(void **s)
{
    (void)s;
    static const size_t ks[] = { 1, 2, 3, 4, 5, 8, 50, 2100 };
    for (size_t z = 0; z < 8; z++)
        for (int round = 0; round < 4; round++) {
            size_t n = z == 7 ? 3 : 40, k = ks[z], m = z == 7 ? 4 : 30;
            double *a = malloc(n * k * 8), *b = malloc(k * m * 8), *c = malloc(n * m * 8);
            for (size_t i = 0; i < n * k; i++) a[i] = round == 3 ? ldexp(real(), -600) : real();
            for (size_t i = 0; i < k * m; i++) b[i] = round == 3 ? ldexp(real(), -460) : real();
            sherd_view va = sherd_view_c(a, SHERD_F64, n, k), vb = sherd_view_c(b, SHERD_F64, k, m);
            shuffled_product(a, b, n, k, m, c);
            sherd__compare x;
            assert_int_equal(sherd__compare_product(va, vb, c, m, &x, NULL), SHERD_OK);
            assert_int_equal(x.beyond, 0);
            assert_int_equal(x.count, n * m);
            assert_int_equal(x.unjudged, 0);
            if (round == 3) {
                free(a), free(b), free(c);
                continue;
            }
            size_t at = draw() % (n * m);
            double size = 0.0;
            for (size_t l = 0; l < k; l++) size += fabs(a[at / m * k + l] * b[l * m + at % m]);
            c[at] += 4.0 * (double)k * 0x1p-53 * size;
            assert_int_equal(sherd__compare_product(va, vb, c, m, &x, NULL), SHERD_OK);
            assert_int_equal(x.beyond, 1);
            assert_true(x.beyond_row == at / m && x.beyond_col == at % m && x.worst > 1.0);
            c[at] = NAN;
            assert_int_equal(sherd__compare_product(va, vb, c, m, &x, NULL), SHERD_OK);
            assert_int_equal(x.beyond, 1);
            free(a), free(b), free(c);
        }
}

/* Under valgrind, a long double has the precision of a double and cannot serve as an oracle. */
static bool long_double_is_wider(void)
{
    volatile long double one = 1.0L, tiny = 0x1p-60L;
    return one + tiny != one;
}

static void an_entry_between_one_and_two_bounds_is_judged_against_the_exact_product(void **s)
{
    (void)s;
    if (!long_double_is_wider()) skip();
    /* For k = 2, a product without fma can differ from BLAS with fma by more than gamma_2. Draws
     * values around the bound and requires the verdict that long double gives. */
    size_t gap = 0;
    for (int round = 0; round < 20000; round++) {
        double a[2], b[2], c;
        for (int i = 0; i < 2; i++)
            a[i] = 1.0 + ldexp((double)draw(), -53), b[i] = 1.0 + ldexp((double)draw(), -53);
        if (draw() & 1) b[1] = -b[1];
        long double exact = (long double)a[0] * b[0] + (long double)a[1] * b[1];
        long double size = fabsl((long double)a[0] * b[0]) + fabsl((long double)a[1] * b[1]);
        c = (double)(exact +
                     size * 0x1p-52L * (0.9L + 0.2L * ((long double)(draw() % 1000) / 1000)));
        long double off = fabsl((long double)c - exact) / (size * 0x1p-52L);
        if (fabsl(off - 1.0L) < 0.005L) continue; /* too close to the bound to decide */
        sherd__compare x;
        assert_int_equal(sherd__compare_product(sherd_view_c(a, SHERD_F64, 1, 2),
                                                sherd_view_c(b, SHERD_F64, 2, 1), &c, 1, &x, NULL),
                         SHERD_OK);
        assert_int_equal(x.beyond, off > 1.0L && x.worst > 1.0);
        gap += x.worst > 1.0 && x.beyond == 0;
    }
    assert_true(gap > 0); /* the recomputation was needed */
}

static void nan_and_infinity_must_be_where_the_operands_imply_them(void **s)
{
    (void)s;
    double a[6] = { 1, 2, NAN, 4, HUGE_VAL, 6 }, b[4] = { 1, -1, 2, 0 }, c[6];
    sherd_view va = sherd_view_c(a, SHERD_F64, 3, 2), vb = sherd_view_c(b, SHERD_F64, 2, 2);
    shuffled_product(a, b, 3, 2, 2, c);
    sherd__compare x;
    assert_int_equal(sherd__compare_product(va, vb, c, 2, &x, NULL), SHERD_OK);
    assert_true(x.beyond == 0 && x.mismatched == 0);
    c[2] = 7.0; /* should be NaN */
    assert_int_equal(sherd__compare_product(va, vb, c, 2, &x, NULL), SHERD_OK);
    assert_true(x.beyond == 1 && x.beyond_row == 1 && x.beyond_col == 0);
    c[2] = NAN;
    c[4] = -c[4]; /* the other infinity */
    assert_int_equal(sherd__compare_product(va, vb, c, 2, &x, NULL), SHERD_OK);
    assert_true(x.beyond == 1 && x.beyond_row == 2);
    double big[2] = { 1e300, -1e300 }, col[2] = { 1e300, 1e300 }, one = 0.0;
    assert_int_equal(sherd__compare_product(sherd_view_c(big, SHERD_F64, 1, 2),
                                            sherd_view_c(col, SHERD_F64, 2, 1), &one, 1, &x, NULL),
                     SHERD_OK);
    assert_true(x.unjudged == 1 && x.beyond == 0);
}

static void panels_cover_large_shapes_exactly_once(void **s)
{
    (void)s;
    size_t n = 1030, k = 2050, m = 1027;
    uint8_t *a = malloc(n * k), *b = malloc(k * m);
    double *c = malloc(n * m * 8);
    for (size_t i = 0; i < n * k; i++) a[i] = (uint8_t)draw();
    for (size_t i = 0; i < k * m; i++) b[i] = (uint8_t)draw();
    sherd_view va = sherd_view_c(a, SHERD_U8, n, k), vb = sherd_view_c(b, SHERD_U8, k, m);
    assert_int_equal(sherd__reference_float(va, vb, c, m, NULL), SHERD_OK);
    sherd__compare x;
    c[1029 * m + 3] += 1.0;
    c[1025 * m + 1026] += 1.0;
    assert_int_equal(sherd__compare_product(va, vb, c, m, &x, NULL), SHERD_OK);
    assert_int_equal(x.count, n * m);
    assert_int_equal(x.equal, n * m - 2);
    assert_true(x.bit_row == 1025 && x.bit_col == 1026 && x.max_abs == 1.0);
    free(a), free(b), free(c);
}

static void empty_products_and_failed_allocations_are_handled(void **s)
{
    (void)s;
    double a[4] = { 1, 2, 3, 4 }, c[4] = { 0 };
    sherd_view v = sherd_view_c(a, SHERD_F64, 2, 2);
    sherd__compare x = { .count = 77 };
    assert_int_equal(sherd__compare_product(sherd_view_c(a, SHERD_F64, 2, 0),
                                            sherd_view_c(a, SHERD_F64, 0, 2), c, 2, &x, NULL),
                     SHERD_OK);
    assert_true(x.count == 4 && x.equal == 4 && x.beyond == 0);
    c[1] = 1e-300;
    assert_int_equal(sherd__compare_product(sherd_view_c(a, SHERD_F64, 2, 0),
                                            sherd_view_c(a, SHERD_F64, 0, 2), c, 2, &x, NULL),
                     SHERD_OK);
    assert_int_equal(x.beyond, 1);
    assert_int_equal(sherd__compare_product(sherd_view_c(a, SHERD_F64, 0, 2), v, c, 2, &x, NULL),
                     SHERD_OK);
    assert_int_equal(x.count, 0);
    for (size_t nth = 1;; nth++) {
        x.count = 77;
        sherd__alloc_fail_nth(nth);
        int err = sherd__compare_product(v, v, c, 2, &x, NULL);
        if (sherd__alloc_fail_nth(0) < nth) break;
        assert_int_equal(err, SHERD_ENOMEM);
        assert_int_equal(x.count, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measures_equal_a_count_by_hand),
        cmocka_unit_test(correct_products_in_any_order_pass_and_one_wrong_entry_fails),
        cmocka_unit_test(an_entry_between_one_and_two_bounds_is_judged_against_the_exact_product),
        cmocka_unit_test(nan_and_infinity_must_be_where_the_operands_imply_them),
        cmocka_unit_test(panels_cover_large_shapes_exactly_once),
        cmocka_unit_test(empty_products_and_failed_allocations_are_handled),
    };
    return cmocka_run_group_tests_name("matrix/compare", tests, NULL, NULL);
}
