/* The centralized exact product: the fast path, residues and the __int128 loop give the same
 * bits. */
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
#include "tests/support/under_valgrind.h"

static uint64_t state = 21;

static uint64_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 11;
}

static double *values(size_t n, int spread)
{
    double *x = malloc(n * sizeof *x + 8);
    for (size_t i = 0; i < n; i++) {
        x[i] = ldexp((double)draw(), -53 - (int)(draw() % (unsigned)spread)) *
               (draw() & 1 ? 1 : -1);
        if (draw() % 7 == 0) x[i] = 0.0;
    }
    return x;
}

static void both_ways(sherd_view a, sherd_view b, unsigned bits)
{
    size_t n = a.rows, m = b.cols, ldc = m + 2 * (draw() & 1);
    double *fast = calloc(n * ldc + 1, 8), *slow = calloc(n * ldc + 1, 8),
           *f64 = calloc(n * ldc + 1, 8);
    sherd__fixed fa, fb;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__fixed_choose(a, bits, "A", &fa, &d), SHERD_OK);
    assert_int_equal(sherd__fixed_choose(b, bits, "B", &fb, &d), SHERD_OK);
    assert_int_equal(sherd__reference_exact(&(sherd__matrices){ a, b, fast, ldc }, &fa, &fb, &d),
                     SHERD_OK);
    assert_int_equal(sherd__reference_i128(&(sherd__matrices){ a, b, slow, ldc }, &fa, &fb, &d),
                     SHERD_OK);
    assert_memory_equal(fast, slow, n * ldc * 8);
    assert_int_equal(sherd__reference_float(a, b, f64, ldc, &d), SHERD_OK);
    double bound = sherd__fixed_product_bound(&fa, &fb, a.cols), worst = 0.0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            double e = fabs(fast[i * ldc + j] - f64[i * ldc + j]);
            if (e > worst) worst = e;
            assert_true(e <= bound);
        }
    free(fast);
    free(slow);
    free(f64);
}

static void every_path_gives_the_same_bits_within_the_bound(void **s)
{
    (void)s;
    static const size_t shapes[][3] = {
        { 1, 1, 1 }, { 7, 40, 5 }, { 3, 0, 2 },     { 0, 3, 2 },
        { 3, 2, 0 }, { 5, 1, 9 },  { 30, 700, 11 }, { 1100, 33, 6 }
    };
    static const unsigned bits[] = { 2, 9, 17, 24, 30, 38 }; /* one dgemm, then 2, 3, 4 primes */
    for (size_t z = 0; z < 8; z++)
        for (size_t i = 0; i < 6; i++) {
            size_t n = shapes[z][0], k = shapes[z][1], m = shapes[z][2];
            double *a = values(n * k, 12), *b = values(k * m, 3);
            both_ways(sherd_view_c(a, SHERD_F64, n, k), sherd_view_c(b, SHERD_F64, k, m), bits[i]);
            both_ways(sherd_view_t(sherd_view_c(a, SHERD_F64, k, n)),
                      sherd_view_t(sherd_view_c(b, SHERD_F64, m, k)), bits[i]);
            if (n > 2 && k > 2) /* blocks of larger matrices, also transposed */
                for (int t = 0; t < 2; t++) {
                    sherd_view part = sherd_view_sub(t ? sherd_view_t(
                                                             sherd_view_c(a, SHERD_F64, k, n))
                                                       : sherd_view_c(a, SHERD_F64, n, k),
                                                     1, n - 2, 1, k - 1);
                    both_ways(part, sherd_view_c(b, SHERD_F64, k - 1, m), bits[i]);
                }
            free(a);
            free(b);
        }
}

/* All code paths of a product of few rows: B in either order and within larger memory, columns
 * beyond a block, sums along rows with and without a remainder, B in one part and in several. */
static void products_of_few_rows_have_the_same_bits(void **s)
{
    (void)s;
    static const size_t shapes[][3] = { { 1, 1, 1 },       { 1, 64, 5 },      { 2, 67, 40 },
                                        { 4, 33, 31 },     { 3, 5, 70 },      { 1, 3, 5000 },
                                        { 5, 40, 9 },      { 4, 100, 1 },     { 12, 301, 500 },
                                        { 64, 140, 1000 }, { 65, 140, 1000 }, { 6, 3, 66000 } };
    static const unsigned bits[] = { 2, 17, 21, 23 };
    for (size_t z = 0; z < sizeof shapes / sizeof *shapes; z++)
        for (size_t i = 0; i < 4; i++) {
            size_t n = shapes[z][0], k = shapes[z][1], m = shapes[z][2];
            if (under_valgrind() && k * m > 100000 && i != z % 4) continue; /* each with one */
            double *a = values(n * k, 12), *b = values((k + 2) * (m + 3), 3);
            sherd_view va = sherd_view_c(a, SHERD_F64, n, k);
            both_ways(va, sherd_view_c(b, SHERD_F64, k, m), bits[i]);
            both_ways(va, sherd_view_t(sherd_view_c(b, SHERD_F64, m, k)), bits[i]);
            both_ways(va, sherd_view_sub(sherd_view_c(b, SHERD_F64, k + 2, m + 3), 1, k, 2, m),
                      bits[i]);
            both_ways(va,
                      sherd_view_sub(sherd_view_t(sherd_view_c(b, SHERD_F64, m + 3, k + 2)), 2, k,
                                     1, m),
                      bits[i]);
            free(a);
            free(b);
        }
}

/* Halves are rounded to the even neighbour, with either sign, as the definition says. */
static void halves_are_rounded_to_even_in_skinny_products(void **s)
{
    (void)s;
    double b[40];
    for (size_t j = 0; j < 40; j++) b[j] = ((double)j - 20) / 2;
    b[0] = 1 << 15; /* with one fractional bit, half a unit remains */
    const double one = 1;
    sherd_view va = sherd_view_c(&one, SHERD_F64, 1, 1);
    both_ways(va, sherd_view_c(b, SHERD_F64, 1, 40), 17);
    both_ways(va, sherd_view_t(sherd_view_c(b, SHERD_F64, 40, 1)), 17);
}

static void integers_multiply_exactly_beyond_2_53(void **s)
{
    (void)s;
    int64_t a[6], b[6];
    for (int i = 0; i < 6; i++) {
        a[i] = (int64_t)(draw() % (UINT64_C(1) << 42)) - (INT64_C(1) << 41);
        b[i] = (int64_t)(draw() % (UINT64_C(1) << 42)) - (INT64_C(1) << 41);
    }
    sherd_view va = sherd_view_c(a, SHERD_I64, 2, 3), vb = sherd_view_c(b, SHERD_I64, 3, 2);
    sherd__fixed fa, fb;
    double c[4];
    assert_int_equal(sherd__fixed_choose(va, 17, "A", &fa, NULL), SHERD_OK);
    assert_int_equal(sherd__fixed_choose(vb, 17, "B", &fb, NULL), SHERD_OK);
    assert_int_equal(sherd__reference_exact(&(sherd__matrices){ va, vb, c, 2 }, &fa, &fb, NULL),
                     SHERD_OK);
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++) {
            sherd__i128 sum = 0;
            for (size_t l = 0; l < 3; l++) sum += (sherd__i128)a[3 * i + l] * b[2 * l + j];
            assert_true(c[2 * i + j] == (double)sum);
        }
}

static void the_error_bound_is_reached_within_a_small_factor(void **s)
{
    (void)s;
    /* Values half a unit off the grid, all on the same side: the worst case of the bound's first
     * term. */
    enum { K = 64 };
    double a[K], b[K], c[1], r[1];
    for (size_t l = 0; l < K; l++) a[l] = b[l] = 1.0 + 0x1p-9;
    a[0] = b[0] = 1.99;
    sherd_view va = sherd_view_c(a, SHERD_F64, 1, K), vb = sherd_view_c(b, SHERD_F64, K, 1);
    sherd__fixed fa, fb;
    assert_int_equal(sherd__fixed_choose(va, 9, "A", &fa, NULL), SHERD_OK);
    assert_int_equal(sherd__fixed_choose(vb, 9, "B", &fb, NULL), SHERD_OK);
    assert_int_equal(sherd__reference_exact(&(sherd__matrices){ va, vb, c, 1 }, &fa, &fb, NULL),
                     SHERD_OK);
    assert_int_equal(sherd__reference_float(va, vb, r, 1, NULL), SHERD_OK);
    double bound = sherd__fixed_product_bound(&fa, &fb, K);
    assert_true(fabs(c[0] - r[0]) <= bound && fabs(c[0] - r[0]) > bound / 8);
}

typedef struct seen {
    const double *want; /* n x m */
    size_t m;
    unsigned char times[700];
} seen;

/* Checks that the rows are complete, then multiplies them by -2. */
static void see(void *ctx, size_t row, size_t col, size_t rows, size_t cols, void *c, size_t ld)
{
    seen *x = ctx;
    assert_true(col == 0 && cols == x->m);
    for (size_t r = 0; r < rows; r++) {
        double *at = (double *)c + r * ld;
        assert_memory_equal(at, x->want + (row + r) * cols, cols * sizeof *at);
        for (size_t j = 0; j < cols; j++) at[j] *= -2;
        x->times[row + r]++;
    }
}

static void each_row_is_finished_once_and_the_peak_is_reported(void **s)
{
    (void)s;
    static const size_t shapes[][3] = {
        { 3, 20, 30 }, { 1, 7, 5000 }, { 600, 2, 41 }, { 700, 40, 40 }
    };
    sherd__team *team;
    assert_int_equal(sherd__team_new(&team, 3), SHERD_OK);
    for (size_t z = 0; z < 16; z++) { /* one dgemm and residues, with and without gaps between
                                       * rows */
        size_t n = shapes[z / 4][0], k = shapes[z / 4][1], m = shapes[z / 4][2], ld = m + z % 2;
        double *a = values(n * k, 12), *b = values(k * m, 3), *want = values(n * m, 1),
               *c = calloc(n * ld, 8), peak = 7, most = 0;
        seen x = { .want = want, .m = m };
        sherd__tiled p = { .type = SHERD_F64,
                           .a = sherd_view_c(a, SHERD_F64, n, k),
                           .c = c,
                           .ldc = ld,
                           .b = sherd_view_c(b, SHERD_F64, k, m),
                           .finish = see,
                           .ctx = &x,
                           .peak_c = &peak };
        sherd__fixed fa, fb;
        assert_int_equal(sherd__fixed_choose(p.a, z & 2 ? 30 : 17, "A", &fa, NULL), SHERD_OK);
        assert_int_equal(sherd__fixed_choose(p.b, z & 2 ? 30 : 17, "B", &fb, NULL), SHERD_OK);
        assert_int_equal(sherd__reference_i128(&(sherd__matrices){ p.a, p.b, want, m }, &fa, &fb,
                                               NULL),
                         SHERD_OK);
        assert_int_equal(sherd__reference_finished(&p, &fa, &fb, team, NULL), SHERD_OK);
        for (size_t i = 0; i < n; i++) assert_int_equal(x.times[i], 1);
        for (size_t i = 0; i < n * m; i++) most = fmax(most, 2 * fabs(want[i]));
        for (size_t i = 0; i < n && ld > m; i++) assert_true(c[i * ld + m] == 0);
        assert_true(peak == most && peak > 0);
        free(a);
        free(b);
        free(want);
        free(c);
    }
    sherd__team_free(team);
}

static void a_result_beyond_the_range_of_doubles_has_no_peak(void **s)
{
    (void)s;
    double x[2] = { 0x1p1000, 1 }, c[4], peak = 7;
    sherd_view a = sherd_view_c(x, SHERD_F64, 2, 1);
    sherd__tiled p = {
        .type = SHERD_F64, .a = a, .b = sherd_view_t(a), .c = c, .ldc = 2, .peak_c = &peak
    };
    sherd__fixed f;
    assert_int_equal(sherd__fixed_choose(a, 17, "A", &f, NULL), SHERD_OK);
    assert_int_equal(sherd__reference_finished(&p, &f, &f, NULL, NULL), SHERD_OK);
    assert_true(isinf(c[0]) && peak == 0);
}

static void shapes_that_disagree_and_sums_that_are_too_large_are_refused(void **s)
{
    (void)s;
    double x[8] = { 1e300, 1, 1, 1, 1, 1, 1, 1 }, c[16] = { 5 };
    sherd_view a = sherd_view_c(x, SHERD_F64, 2, 3), b = sherd_view_c(x, SHERD_F64, 2, 3);
    sherd__fixed f;
    sherd_diag d = { 0 };
    assert_int_equal(sherd__fixed_choose(a, 53, "A", &f, NULL), SHERD_OK);
    assert_int_equal(sherd__reference_exact(&(sherd__matrices){ a, b, c, 3 }, &f, &f, &d),
                     SHERD_ESHAPE);
    assert_non_null(strstr(d.message, "3 and 2"));
    assert_int_equal(sherd__reference_float(a, b, c, 3, NULL), SHERD_ESHAPE);
    b = sherd_view_t(b);
    assert_int_equal(sherd__reference_float(a, b, c, 1, NULL), SHERD_EINVAL);
    assert_int_equal(sherd__reference_exact(&(sherd__matrices){ a, b, c, 2 }, &f, &f, NULL),
                     SHERD_ERANGE);
    assert_true(c[0] == 5.0);
}

static void every_failed_allocation_is_reported(void **s)
{
    (void)s;
    double *x = values(40, 2), c[16];
    sherd_view a = sherd_view_c(x, SHERD_F64, 4, 10), b = sherd_view_t(a);
    static const unsigned bits[] = { 9, 30 };
    for (int i = 0; i < 2; i++) {
        sherd__fixed f;
        assert_int_equal(sherd__fixed_choose(a, bits[i], "A", &f, NULL), SHERD_OK);
        for (int which = 0; which < 3; which++)
            for (size_t nth = 1;; nth++) {
                sherd__alloc_fail_nth(nth);
                int err = which == 0 ? sherd__reference_exact(&(sherd__matrices){ a, b, c, 4 }, &f,
                                                              &f, NULL)
                          : which == 1 ? sherd__reference_i128(&(sherd__matrices){ a, b, c, 4 }, &f,
                                                               &f, NULL)
                                       : sherd__reference_float(b, a, (double[100]){ 0 }, 10, NULL);
                if (sherd__alloc_fail_nth(0) < nth) {
                    assert_int_equal(err, SHERD_OK);
                    break;
                }
                assert_int_equal(err, SHERD_ENOMEM);
            }
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_gives_the_same_bits_within_the_bound),
        cmocka_unit_test(products_of_few_rows_have_the_same_bits),
        cmocka_unit_test(halves_are_rounded_to_even_in_skinny_products),
        cmocka_unit_test(integers_multiply_exactly_beyond_2_53),
        cmocka_unit_test(the_error_bound_is_reached_within_a_small_factor),
        cmocka_unit_test(each_row_is_finished_once_and_the_peak_is_reported),
        cmocka_unit_test(a_result_beyond_the_range_of_doubles_has_no_peak),
        cmocka_unit_test(shapes_that_disagree_and_sums_that_are_too_large_are_refused),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("matrix/reference", tests, NULL, NULL);
}
