/* Comparisons with the centralized result, through the public header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "matrix/fixed.h"
#include "matrix/reference.h"
#include "sherd/check.h"
#include "sherd/multiplier.h"
#include "tests/support/draw.h"

enum { N = 37, K = 23, M = 19 };

static double a[N * K], b[K * M], c[N * M];

static sherd_view va(void)
{
    return sherd_view_c(a, SHERD_F64, N, K);
}

static sherd_view vb(void)
{
    return sherd_view_c(b, SHERD_F64, K, M);
}

static sherd_view vc(void)
{
    return sherd_view_c(c, SHERD_F64, N, M);
}

static void fill(void)
{
    for (int i = 0; i < N * K; i++) a[i] = (double)(draw() % 2001) / 1000 - 1;
    for (int i = 0; i < K * M; i++) b[i] = (double)(draw() % 2001) / 1000 - 1;
}

/* C by the multiplier of this machine; bits 0: in floats. */
static void multiply_here(unsigned bits)
{
    sherd_multiplier m;
    assert_int_equal(sherd_multiplier_local(&m, bits, NULL), 0);
    assert_int_equal(sherd_multiplier_multiply(m, va(), vb(), c, M, NULL), 0);
    sherd_multiplier_free(m);
}

static void exact_products_are_compared_bit_for_bit(void **s)
{
    (void)s;
    for (uint32_t bits = 0; bits <= 26; bits += 13) {
        sherd_check_options o = { .size = sizeof o, .exact = true, .bits = bits };
        sherd_check x = { .size = sizeof x };
        sherd_diag d = { 0 };
        fill();
        multiply_here(bits ? bits : 17);
        assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, &x, NULL), 0);
        assert_true(x.equal && x.judged == SHERD_JUDGED_BITS && x.seconds >= 0);
        assert_true(x.entries == N * M && x.bit_equal == N * M && x.isclose == N * M);
        assert_true(x.row == 0 && x.col == 0 && x.max_abs == 0 && x.beyond == 0);
        c[5 * M + 7] = nextafter(c[5 * M + 7], 9);
        c[6 * M] = NAN;
        o.name_c = "C.npy";
        assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, &x, &d), SHERD_EDIFFERS);
        assert_string_equal(d.message,
                            "C.npy: 2 of 703 entries differ from the centralized result, the "
                            "first at row 5, column 7");
        assert_true(!x.equal && x.row == 5 && x.col == 7 && x.mismatched == 1);
        assert_true(x.bit_equal == N * M - 2 && x.isclose == N * M - 1 && x.max_ulp == 1);
    }
}

static void entries_that_are_nan_in_both_are_equal_and_counted(void **s)
{
    (void)s;
    const sherd_check_options o = { .size = sizeof o };
    sherd_check x = { .size = sizeof x };
    fill();
    a[4 * K] = NAN;
    multiply_here(0);
    c[4 * M + 1] = -c[4 * M + 1]; /* a NaN with other bits */
    assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, &x, NULL), 0);
    assert_true(x.equal && x.nan == M && x.bit_equal >= M && x.isclose == N * M);
    c[4 * M] = 1;
    assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, &x, NULL), SHERD_EDIFFERS);
    assert_true(x.nan == M - 1 && x.mismatched == 1);
}

/* A size in bytes that wraps around never reaches an allocation. */
static void results_without_rows_have_a_limited_number_of_columns(void **s)
{
    (void)s;
    const size_t most = (size_t)1 << 24, wide[] = { most, most + 1, (size_t)1 << 61 };
    const sherd_check_options o = { .size = sizeof o, .exact = true };
    const sherd_view left = { .data = c, .cols = 0, .dtype = SHERD_F64 };
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        const sherd_view right = { .data = c, .cols = wide[i], .dtype = SHERD_F64 };
        assert_int_equal(sherd_check_result(left, right, right, &o, NULL, NULL),
                         wide[i] > most ? SHERD_ESHAPE : 0);
    }
}

static void the_widths_of_both_operands_are_used(void **s)
{
    (void)s;
    sherd_check_options o = { .size = sizeof o, .exact = true, .bits = 14, .bits_b = 9 };
    sherd__fixed fa, fb;
    fill();
    assert_int_equal(sherd__fixed_choose(va(), 14, "A", &fa, NULL), 0);
    assert_int_equal(sherd__fixed_choose(vb(), 9, "B", &fb, NULL), 0);
    assert_int_equal(sherd__reference_exact(&(sherd__matrices){ va(), vb(), c, M }, &fa, &fb, NULL),
                     0);
    assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, NULL, NULL), 0);
    o.bits_b = 0;
    assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, NULL, NULL), SHERD_EDIFFERS);
}

static void float_products_may_differ_by_the_error_bound_of_a_sum(void **s)
{
    (void)s;
    const sherd_check_options o = { .size = sizeof o };
    sherd_check x = { .size = sizeof x };
    sherd_diag d = { 0 };
    fill();
    multiply_here(0);
    for (int i = 0; i < N * M; i++) c[i] = nextafter(c[i], i % 2 ? 9 : -9);
    assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, &x, NULL), 0);
    assert_true(x.equal && x.judged == SHERD_JUDGED_GAMMA && x.bit_equal < N * M);
    assert_true(x.isclose == N * M && x.worst > 0 && x.worst < 1 && x.blas_calls > 0);
    c[3 * M + 2] += 1e-6;
    assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, &x, &d), SHERD_EDIFFERS);
    assert_string_equal(d.message, "1 of 703 entries differ from the centralized result by more "
                                   "than gamma_k |A||B|, the first at row 3, column 2");
    assert_true(!x.equal && x.beyond == 1 && x.row == 3 && x.col == 2 && x.worst > 1);
}

static void element_wise_results_are_compared(void **s)
{
    (void)s;
    static double out[N * K];
    sherd_check_options o = { .size = sizeof o, .op = SHERD_OP_TANH };
    sherd_check x = { .size = sizeof x };
    sherd_multiplier m;
    sherd_view second = sherd_view_sub(va(), 0, N, 0, K);
    fill();
    assert_int_equal(sherd_multiplier_local(&m, 0, NULL), 0);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_TANH, va(), va(), out, K, NULL), 0);
    const sherd_view none = { .data = NULL };
    sherd_view result = sherd_view_c(out, SHERD_F64, N, K);
    assert_int_equal(sherd_check_result(va(), none, result, &o, &x, NULL), 0);
    assert_true(x.equal && x.judged == SHERD_JUDGED_BITS && x.entries == N * K);
    out[N * K - 1] += 1e-9;
    assert_int_equal(sherd_check_result(va(), none, result, &o, &x, NULL), SHERD_EDIFFERS);
    assert_true(x.row == N - 1 && x.col == K - 1);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_TIMES, va(), second, out, K, NULL), 0);
    o.op = SHERD_OP_TIMES;
    assert_int_equal(sherd_check_result(va(), second, result, &o, &x, NULL), 0);
    o.op = SHERD_OP_MINUS;
    assert_int_equal(sherd_check_result(va(), second, result, &o, &x, NULL), SHERD_EDIFFERS);
    sherd_multiplier_free(m);
}

/* A transpose, and a result within a wider one, are not row-major without gaps. */
static void results_with_any_strides_are_compared(void **s)
{
    (void)s;
    static double wide[N * (M + 3)], turned[M * N];
    const sherd_check_options o = { .size = sizeof o, .exact = true };
    fill();
    multiply_here(17);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) wide[i * (M + 3) + j] = turned[j * N + i] = c[i * M + j];
    sherd_view in_wide = sherd_view_sub(sherd_view_c(wide, SHERD_F64, N, M + 3), 0, N, 0, M);
    sherd_view of_turned = sherd_view_t(sherd_view_c(turned, SHERD_F64, M, N));
    assert_int_equal(sherd_check_result(va(), vb(), in_wide, &o, NULL, NULL), 0);
    assert_int_equal(sherd_check_result(va(), vb(), of_turned, &o, NULL, NULL), 0);
    turned[1] += 1;
    sherd_check x = { .size = sizeof x };
    assert_int_equal(sherd_check_result(va(), vb(), of_turned, &o, &x, NULL), SHERD_EDIFFERS);
    assert_true(x.row == 1 && x.col == 0);
}

static void the_distance_from_float64_is_within_its_bound(void **s)
{
    (void)s;
    sherd_check_options o = { .size = sizeof o, .exact = true, .bits = 9 };
    sherd_distance far = { .size = sizeof far };
    static double there[N * M];
    fill();
    multiply_here(0);
    memcpy(there, c, sizeof there);
    multiply_here(9);
    assert_int_equal(sherd_check_distance(va(), vb(), vc(), &o, &far, NULL), 0);
    double largest = 0, off = 0, whole = 0;
    size_t at = 0;
    for (size_t i = 0; i < N * M; i++) {
        double x = fabs(c[i] - there[i]);
        off += x * x;
        whole += there[i] * there[i];
        if (x > largest) largest = x, at = i;
    }
    assert_true(far.largest == largest && far.row == at / M && far.col == at % M);
    assert_true(far.bound > largest && far.bound < 1000 * largest);
    assert_true(fabs(far.relative - sqrt(off / whole)) < 1e-15);
    o.op = SHERD_OP_TANH;
    assert_int_equal(sherd_check_distance(va(), vb(), sherd_view_c(a, SHERD_F64, N, K), &o, &far,
                                          NULL),
                     SHERD_EINVAL);
}

static void operands_and_results_of_wrong_shapes_are_refused(void **s)
{
    (void)s;
    sherd_check_options o = { .size = sizeof o, .exact = true, .name_a = "left" };
    sherd_check x = { .size = sizeof x, .entries = 99 }, none = { .size = 0 };
    sherd_diag d = { 0 };
    fill();
    assert_int_equal(sherd_check_result(vb(), va(), vc(), &o, &x, NULL), SHERD_ESHAPE);
    assert_int_equal(sherd_check_result(va(), vb(), sherd_view_c(c, SHERD_F32, N, M), &o, &x, NULL),
                     SHERD_EINVAL);
    assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, &none, NULL), SHERD_EINVAL);
    o.op = (sherd_op)99;
    assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, &x, NULL), SHERD_EINVAL);
    o.op = 0;
    a[K + 1] = INFINITY;
    assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, &x, &d), SHERD_ERANGE);
    assert_string_equal(d.message,
                        "left: row 1, column 1 is infinity: fixed point has no such value");
    assert_int_equal(x.entries, 99);
}

static void profiles_of_the_operands_are_used(void **s)
{
    (void)s;
    sherd_check_options o = { .size = sizeof o, .exact = true };
    sherd_profile_info i = { .size = sizeof i };
    fill();
    multiply_here(17);
    assert_int_equal(sherd_profile_new(&o.profile_a, va(), NULL), 0);
    assert_int_equal(sherd_profile_new(&o.profile_b, vb(), NULL), 0);
    assert_int_equal(sherd_profile_get(o.profile_a, &i, NULL), 0);
    assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, NULL, NULL), 0);
    a[0] = 1000; /* changes the exponent of an A that is examined now */
    for (int j = 0; j < M; j++) c[j] = 0;
    assert_int_equal(sherd_check_result(sherd_view_sub(va(), 1, N - 1, 0, K), vb(),
                                        sherd_view_sub(vc(), 1, N - 1, 0, M), &o, NULL, NULL),
                     SHERD_EINVAL);
    sherd_check x = { .size = sizeof x };
    assert_int_equal(sherd_check_result(va(), vb(), vc(), &o, &x, NULL), SHERD_EDIFFERS);
    assert_int_equal(x.bit_equal, (N - 1) * M);
    sherd_profile_free(o.profile_a);
    sherd_profile_free(o.profile_b);
}

static bool stop(void *ctx)
{
    unsigned *left = ctx;
    return (*left)-- == 0;
}

static void a_comparison_can_be_interrupted(void **s)
{
    (void)s;
    unsigned left = 5;
    const sherd_check_options o = { .size = sizeof o,
                                    .op = SHERD_OP_RELU,
                                    .hooks = { .interrupted = stop, .ctx = &left } };
    static double out[N * K];
    sherd_diag d = { 0 };
    assert_int_equal(sherd_check_result(va(), va(), sherd_view_c(out, SHERD_F64, N, K), &o, NULL,
                                        &d),
                     SHERD_EINTERRUPTED);
    assert_int_equal(d.code, SHERD_EINTERRUPTED);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    static double turned[M * N];
    fill();
    multiply_here(17);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) turned[j * N + i] = c[i * M + j];
    sherd_view of_turned = sherd_view_t(sherd_view_c(turned, SHERD_F64, M, N));
    for (int exact = 0; exact < 2; exact++) {
        const sherd_check_options o = { .size = sizeof o, .exact = exact };
        int err = SHERD_ENOMEM;
        for (size_t nth = 1; err; nth++) {
            sherd__alloc_fail_nth(nth);
            err = sherd_check_result(va(), vb(), of_turned, &o, NULL, NULL);
            sherd__alloc_fail_nth(0);
            if (!exact && err == SHERD_EDIFFERS) break; /* C is the exact one */
            if (err) assert_int_equal(err, SHERD_ENOMEM);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_products_are_compared_bit_for_bit),
        cmocka_unit_test(results_without_rows_have_a_limited_number_of_columns),
        cmocka_unit_test(the_widths_of_both_operands_are_used),
        cmocka_unit_test(entries_that_are_nan_in_both_are_equal_and_counted),
        cmocka_unit_test(float_products_may_differ_by_the_error_bound_of_a_sum),
        cmocka_unit_test(element_wise_results_are_compared),
        cmocka_unit_test(results_with_any_strides_are_compared),
        cmocka_unit_test(the_distance_from_float64_is_within_its_bound),
        cmocka_unit_test(operands_and_results_of_wrong_shapes_are_refused),
        cmocka_unit_test(profiles_of_the_operands_are_used),
        cmocka_unit_test(a_comparison_can_be_interrupted),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
