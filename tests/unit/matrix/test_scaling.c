/* Scaling by powers of two in front of a multiplier. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "matrix/scaling.h"
#include "tests/support/keep.h"

enum { N = 12, K = 7, M = 5 };

static double a[N * K], b[K * M];

static int draw(void **s)
{
    (void)s;
    sherd__seeded state;
    sherd__entropy e = sherd__entropy_seeded(&state, 8);
    for (size_t i = 0; i < N * K; i++) a[i] = (double)(sherd__entropy_u64(&e) >> 11) * 0x1p-52 - 1;
    for (size_t i = 0; i < K * M; i++) b[i] = (double)(sherd__entropy_u64(&e) >> 11) * 0x1p-52 - 1;
    return 0;
}

static sherd_multiplier scaled(unsigned bits)
{
    sherd_multiplier inner, m;
    assert_int_equal(sherd_multiplier_local(&inner, bits, NULL), SHERD_OK);
    assert_int_equal(sherd__scaling_new(&m, inner, NULL), SHERD_OK);
    assert_true(sherd__scaling_inner(m).ctx == inner.ctx);
    assert_true(sherd__scaling_inner(inner).ctx == inner.ctx);
    return m;
}

static void times(const double *from, double *to, size_t n, double by)
{
    for (size_t i = 0; i < n; i++) to[i] = from[i] * by;
}

/* The product uses the same 17 bits of its operands for all powers. */
static void a_power_of_two_times_an_operand_does_not_change_the_bits(void **s)
{
    (void)s;
    static const int powers[] = { 0, -30, 40, -300, 480, 1, -1 };
    sherd_multiplier m = scaled(17), inner = sherd__scaling_inner(m);
    double want[N * M], c[N * M], x[N * K], y[K * M];
    assert_int_equal(sherd_multiplier_multiply(inner, sherd_view_c(a, SHERD_F64, N, K),
                                               sherd_view_c(b, SHERD_F64, K, M), want, M, NULL),
                     SHERD_OK);
    for (size_t i = 0; i < 49; i++) {
        int p = powers[i / 7], q = powers[i % 7];
        times(a, x, N * K, ldexp(1, p));
        times(b, y, K * M, ldexp(1, q));
        assert_int_equal(sherd_multiplier_multiply(m, sherd_view_c(x, SHERD_F64, N, K),
                                                   sherd_view_c(y, SHERD_F64, K, M), c, M, NULL),
                         SHERD_OK);
        for (size_t k = 0; k < N * M; k++) assert_true(c[k] == ldexp(want[k], p + q));
    }
    sherd_multiplier_free(m);
}

static void a_kept_operand_is_scaled_as_a_whole(void **s)
{
    (void)s;
    sherd_multiplier m = scaled(17);
    double x[N * K], y[N * M], want[N * M], c[N * M], t[K * M];
    sherd_kept *kept;
    size_t rows, cols, part;
    times(a, x, N * K, 0x1p-40);
    memset(y, 0, sizeof y);
    times(a, y, N * M, 0x1p-20); /* arbitrary values */
    sherd_view vx = sherd_view_c(x, SHERD_F64, N, K), vb = sherd_view_c(b, SHERD_F64, K, M);
    assert_int_equal(sherd_multiplier_multiply(m, vx, vb, want, M, NULL), SHERD_OK);
    assert_int_equal(sherd_multiplier_keep(&kept, m, vx, keep_parts(4), NULL), SHERD_OK);
    m.ops->kept_shape(kept, &rows, &cols, &part);
    assert_true(rows == N && cols == K && part == 4);
    for (size_t first = 0; first < N; first += 4) {
        sherd_rows r = { first, 4 };
        assert_int_equal(sherd_multiplier_multiply_rows(m, kept, r, false, vb, c, M, NULL),
                         SHERD_OK);
        assert_memory_equal(c, want + first * M, 4 * M * sizeof *c);
    }
    sherd_view vy = sherd_view_c(y, SHERD_F64, N, M);
    assert_int_equal(sherd_multiplier_multiply(m, sherd_view_t(vx), vy, want, M, NULL), SHERD_OK);
    assert_int_equal(sherd_multiplier_multiply_kept(m, kept, true, vy, t, M, NULL), SHERD_OK);
    assert_memory_equal(t, want, sizeof t);
    sherd_multiplier_release(m, kept);
    sherd_multiplier_free(m);
}

static void operands_that_cannot_be_scaled_are_passed_on_unchanged(void **s)
{
    (void)s;
    sherd_multiplier m = scaled(17);
    const uint8_t bytes[4] = { 200, 3, 0, 255 };
    double zero[4] = { 0 }, x[4] = { 1, 2, NAN, 4 }, c[4], tiny[4] = { 0x1p-1070, 0, 0, 0x1p-1071 };
    sherd_view vb = sherd_view_c(bytes, SHERD_U8, 2, 2), vz = sherd_view_c(zero, SHERD_F64, 2, 2);
    sherd_diag d = { 0 };
    assert_int_equal(sherd_multiplier_multiply(m, vb, vb, c, 2, NULL), SHERD_OK);
    assert_true(c[0] == 40000 && c[1] == 600 + 765 && c[2] == 0 && c[3] == 65025);
    assert_int_equal(sherd_multiplier_multiply(m, vz, vb, c, 2, NULL), SHERD_OK);
    assert_memory_equal(c, zero, sizeof c);
    assert_int_equal(sherd_multiplier_multiply(m, sherd_view_c(x, SHERD_F64, 2, 2), vb, c, 2, &d),
                     SHERD_ERANGE);
    assert_non_null(strstr(d.message, "row 1, column 0"));
    assert_int_equal(sherd_multiplier_multiply(m, sherd_view_c(tiny, SHERD_F64, 2, 2), vb, c, 2,
                                               NULL),
                     SHERD_OK);
    for (size_t i = 0; i < 4; i++) assert_true(isfinite(c[i]));
    sherd_multiplier_free(m);
}

static void without_memory_a_product_fails(void **s)
{
    (void)s;
    sherd_multiplier m = scaled(17), out;
    double x[N * K], c[N * M];
    sherd_kept *kept = NULL;
    times(a, x, N * K, 4);
    sherd_view vx = sherd_view_c(x, SHERD_F64, N, K), vb = sherd_view_c(b, SHERD_F64, K, M);
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd_multiplier_multiply(m, vx, vb, c, M, NULL), SHERD_ENOMEM);
    for (size_t n = 1; n <= 2; n++) {
        sherd__alloc_fail_nth(n);
        assert_int_equal(sherd_multiplier_keep(&kept, m, vx, NULL, NULL), SHERD_ENOMEM);
    }
    sherd__alloc_fail_nth(1);
    assert_int_equal(sherd__scaling_new(&out, m, NULL), SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
    assert_null(out.ops);
    assert_int_equal(sherd_multiplier_multiply(m, vx, vb, c, M, NULL), SHERD_OK);
    sherd_multiplier_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_power_of_two_times_an_operand_does_not_change_the_bits),
        cmocka_unit_test(a_kept_operand_is_scaled_as_a_whole),
        cmocka_unit_test(operands_that_cannot_be_scaled_are_passed_on_unchanged),
        cmocka_unit_test(without_memory_a_product_fails),
    };
    return cmocka_run_group_tests(tests, draw, NULL);
}
