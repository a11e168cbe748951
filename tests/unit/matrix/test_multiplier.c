/* The multiplier interface, tested with its local implementation. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "matrix/reference.h"
#include "sherd/multiplier.h"
#include "tests/support/keep.h"

static void fill(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = sin((double)i + 1) * 3;
}

static void products_equal_the_reference_for_float_and_fixed_point(void **s)
{
    (void)s;
    double a[12], b[15], c[4 * 6], want[4 * 6];
    fill(a, 12);
    fill(b, 15);
    sherd_view va = sherd_view_c(a, SHERD_F64, 4, 3), vb = sherd_view_c(b, SHERD_F64, 3, 5);
    for (unsigned bits = 0; bits <= 17; bits += 17) {
        sherd_multiplier m;
        sherd_kept *kept;
        sherd__fixed fa, fb;
        memset(c, 0, sizeof c);
        memset(want, 0, sizeof want);
        assert_int_equal(sherd_multiplier_local(&m, bits, NULL), SHERD_OK);
        if (bits == 0) {
            assert_int_equal(sherd__reference_float(va, vb, want, 6, NULL), SHERD_OK);
        } else {
            assert_int_equal(sherd__fixed_choose(va, bits, "A", &fa, NULL), SHERD_OK);
            assert_int_equal(sherd__fixed_choose(vb, bits, "B", &fb, NULL), SHERD_OK);
            assert_int_equal(sherd__reference_i128(&(sherd__matrices){ va, vb, want, 6 }, &fa, &fb,
                                                   NULL),
                             SHERD_OK);
        }
        assert_int_equal(sherd_multiplier_multiply(m, va, vb, c, 6, NULL), SHERD_OK);
        assert_memory_equal(c, want, sizeof c);
        assert_int_equal(sherd_multiplier_keep(&kept, m, va, NULL, NULL), SHERD_OK);
        memset(c, 0, sizeof c);
        assert_int_equal(sherd_multiplier_multiply_kept(m, kept, false, vb, c, 6, NULL), SHERD_OK);
        assert_memory_equal(c, want, sizeof c);
        sherd_multiplier_release(m, kept);
        assert_int_equal(sherd_multiplier_keep(&kept, m, sherd_view_t(va), NULL, NULL), SHERD_OK);
        fill(a, 3); /* first no change, then a change: the kept values are not affected */
        a[0] = 1e9;
        memset(c, 0, sizeof c);
        assert_int_equal(sherd_multiplier_multiply_kept(m, kept, true, vb, c, 6, NULL), SHERD_OK);
        assert_memory_equal(c, want, sizeof c);
        fill(a, 12);
        sherd_multiplier_release(m, kept);
        sherd_multiplier_release(m, NULL);
        sherd_multiplier_free(m);
    }
}

/* In fixed point the exponent is that of all rows; some rows alone would have another. */
static void parts_of_a_kept_operand_are_multiplied_separately(void **s)
{
    (void)s;
    enum { N = 11, K = 3, M = 4, PART = 4 };
    double a[N * K], b[N * M], c[N * M], want[N * M];
    fill(a, N * K);
    fill(b, N * M);
    for (size_t i = 0; i < 4 * K; i++) a[i] *= 100; /* the first part */
    sherd_view va = sherd_view_c(a, SHERD_F64, N, K);
    for (unsigned bits = 0; bits <= 17; bits += 17)
        for (size_t from = 0; from < N; from += PART)
            for (size_t to = from + PART; to < N + PART; to += PART) {
                sherd_multiplier m;
                sherd_kept *kept;
                sherd_rows rows = { from, (to < N ? to : N) - from };
                sherd_view some = sherd_view_sub(va, from, rows.count, 0, K);
                sherd_view w = sherd_view_c(b, SHERD_F64, K, M);
                sherd_view d = sherd_view_c(b, SHERD_F64, rows.count, M);
                sherd__fixed fa, fw, fd;
                assert_int_equal(sherd_multiplier_local(&m, bits, NULL), SHERD_OK);
                assert_int_equal(sherd_multiplier_keep(&kept, m, va, keep_parts(PART), NULL),
                                 SHERD_OK);
                for (unsigned back = 0; back < 2; back++) {
                    sherd_view left = back ? sherd_view_t(some) : some, right = back ? d : w;
                    if (bits == 0) {
                        assert_int_equal(sherd__reference_float(left, right, want, M, NULL), 0);
                    } else {
                        assert_int_equal(sherd__fixed_choose(va, bits, "A", &fa, NULL), 0);
                        assert_int_equal(sherd__fixed_choose(w, bits, "W", &fw, NULL), 0);
                        assert_int_equal(sherd__fixed_choose(d, bits, "D", &fd, NULL), 0);
                        assert_int_equal(sherd__reference_i128(&(sherd__matrices){ left, right,
                                                                                   want, M },
                                                               &fa, back ? &fd : &fw, NULL),
                                         0);
                    }
                    assert_int_equal(sherd_multiplier_multiply_rows(m, kept, rows, back, right, c,
                                                                    M, NULL),
                                     SHERD_OK);
                    assert_memory_equal(c, want, left.rows * M * sizeof *c);
                }
                sherd_multiplier_release(m, kept);
                sherd_multiplier_free(m);
            }
}

static void row_ranges_that_are_not_parts_are_refused(void **s)
{
    (void)s;
    double a[10] = { 0 }, b[4] = { 0 }, c[10];
    sherd_multiplier m;
    sherd_kept *kept;
    sherd_view va = sherd_view_c(a, SHERD_F64, 10, 1), w = sherd_view_c(b, SHERD_F64, 1, 1);
    static const sherd_rows bad[] = { { 1, 4 },  { 0, 3 },        { 8, 3 },
                                      { 12, 0 }, { 4, SIZE_MAX }, { 8, 1 } };
    assert_int_equal(sherd_multiplier_local(&m, 0, NULL), SHERD_OK);
    assert_int_equal(sherd_multiplier_keep(&kept, m, va, &(sherd_keep_options){ .part = 4 }, NULL),
                     SHERD_EINVAL); /* no size */
    assert_null(kept);
    assert_int_equal(sherd_multiplier_keep(&kept, m, va, keep_parts(4), NULL), SHERD_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sherd_multiplier_multiply_rows(m, kept, bad[i], false, w, c, 1, NULL),
                         SHERD_EINVAL);
    assert_int_equal(sherd_multiplier_multiply_rows(m, kept, (sherd_rows){ 8, 2 }, false, w, c, 1,
                                                    NULL),
                     SHERD_OK);
    assert_int_equal(sherd_multiplier_multiply_rows(m, kept, (sherd_rows){ 8, 0 }, false, w, c, 1,
                                                    NULL),
                     SHERD_OK);
    sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
}

static void maps_equal_the_functions_for_all_strides(void **s)
{
    (void)s;
    enum { R = 3, C = 1100 };
    static double a[R * C], b[R * C], out[R * C];
    sherd_multiplier m;
    fill(a, R * C);
    fill(b, R * C);
    sherd_view va = sherd_view_t(sherd_view_c(a, SHERD_F64, C, R)),
               vb = sherd_view_c(b, SHERD_F64, R, C);
    assert_int_equal(sherd_multiplier_local(&m, 0, NULL), SHERD_OK);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_MINUS, va, vb, out, C, NULL), SHERD_OK);
    for (size_t r = 0; r < R; r++)
        for (size_t c = 0; c < C; c++) assert_true(out[r * C + c] == a[c * R + r] - b[r * C + c]);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_SQUARE, vb, vb, b, C, NULL), SHERD_OK);
    assert_true(b[0] == a[0] * a[0] && b[R * C - 1] == a[R * C - 1] * a[R * C - 1]);
    sherd_multiplier_free(m);
}

static void invalid_arguments_never_reach_an_implementation(void **s)
{
    (void)s;
    double a[6] = { 0 }, c[6];
    sherd_diag d = { 0 };
    sherd_multiplier m, none = { 0 };
    sherd_kept *kept = (sherd_kept *)a;
    sherd_view v = sherd_view_c(a, SHERD_F64, 2, 3), t = sherd_view_t(v), absent = { 0 };
    assert_int_equal(sherd_multiplier_local(&m, 1, &d), SHERD_EINVAL);
    assert_null(m.ops);
    assert_int_equal(sherd_multiplier_local(&m, 54, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_multiplier_multiply(none, v, t, c, 2, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_multiplier_local(&m, 0, NULL), SHERD_OK);
    assert_int_equal(sherd_multiplier_multiply(m, v, v, c, 3, NULL), SHERD_ESHAPE);
    assert_int_equal(sherd_multiplier_multiply(m, v, t, c, 1, NULL), SHERD_EINVAL);
    d = (sherd_diag){ 0 };
    assert_int_equal(sherd_multiplier_multiply(m, v, t, a, 2, &d), SHERD_EINVAL);
    assert_non_null(strstr(d.message, "the result overlaps A"));
    assert_int_equal(sherd_multiplier_map(m, (sherd_op)1, v, v, c, 3, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_MINUS, v, absent, c, 3, NULL), SHERD_EINVAL);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_EXP, v, absent, c, 3, NULL), SHERD_OK);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_MINUS, v, t, c, 3, NULL), SHERD_ESHAPE);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_EXP, v, v, c, 2, NULL), SHERD_EINVAL);
    v.dtype = (sherd_dtype)77;
    assert_int_equal(sherd_multiplier_keep(&kept, m, v, NULL, NULL), SHERD_EINVAL);
    assert_null(kept);
    assert_int_equal(sherd_multiplier_multiply_kept(m, NULL, false, t, c, 2, NULL), SHERD_EINVAL);
    sherd_multiplier_ops other = *m.ops;
    other.abi = SHERD_MULTIPLIER_ABI + 1;
    assert_int_equal(sherd_multiplier_multiply((sherd_multiplier){ &other, m.ctx }, t, t, c, 2,
                                               NULL),
                     SHERD_EINVAL);
    sherd_multiplier_free(m);
    sherd_multiplier_free(none);
}

static void failed_allocations_leave_nothing_behind(void **s)
{
    (void)s;
    double a[4] = { 1, 2, 3, 4 }, c[4];
    sherd_view v = sherd_view_c(a, SHERD_F64, 2, 2);
    for (size_t nth = 1;; nth++) {
        sherd_multiplier m = { 0 };
        sherd_kept *kept = NULL;
        sherd__alloc_fail_nth(nth);
        int err = sherd_multiplier_local(&m, 17, NULL);
        if (err == 0) err = sherd_multiplier_keep(&kept, m, v, NULL, NULL);
        if (err == 0) err = sherd_multiplier_multiply_kept(m, kept, true, v, c, 2, NULL);
        size_t seen = sherd__alloc_fail_nth(0);
        sherd_multiplier_release(m, kept);
        sherd_multiplier_free(m);
        if (seen < nth) break;
        assert_int_equal(err, SHERD_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_equal_the_reference_for_float_and_fixed_point),
        cmocka_unit_test(parts_of_a_kept_operand_are_multiplied_separately),
        cmocka_unit_test(row_ranges_that_are_not_parts_are_refused),
        cmocka_unit_test(maps_equal_the_functions_for_all_strides),
        cmocka_unit_test(invalid_arguments_never_reach_an_implementation),
        cmocka_unit_test(failed_allocations_leave_nothing_behind),
    };
    return cmocka_run_group_tests_name("matrix/multiplier", tests, NULL, NULL);
}
