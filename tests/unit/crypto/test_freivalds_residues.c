/*
 * Freivalds' check of packed residues: two trials at once, every kernel, sums at their bounds.
 * link: -Wl,--wrap=sherd__fvp_answer_wide
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "crypto/freivalds_internal.h"
#include "matrix/residue.h"
#include "tests/support/draw.h"

static sherd__seeded seeded;
static sherd__entropy entropy;

static int start(void **s)
{
    (void)s;
    entropy = sherd__entropy_seeded(&seeded, 20);
    return 0;
}

static double whole(int64_t limit)
{
    return (double)((int64_t)(draw() % (uint64_t)(2 * limit + 1)) - limit);
}

/* Processors with wide vectors have kernels of their own; `plain` switches them off. */
static bool plain;

bool __real_sherd__fvp_answer_wide(const uint8_t *packed, size_t rows, size_t cols,
                                   const double *const r[2], const double *const s[2], uint32_t p,
                                   uint32_t *most, uint32_t out[2]);
bool __wrap_sherd__fvp_answer_wide(const uint8_t *packed, size_t rows, size_t cols,
                                   const double *const r[2], const double *const s[2], uint32_t p,
                                   uint32_t *most, uint32_t out[2]);

bool __wrap_sherd__fvp_answer_wide(const uint8_t *packed, size_t rows, size_t cols,
                                   const double *const r[2], const double *const s[2], uint32_t p,
                                   uint32_t *most, uint32_t out[2])
{
    return !plain && __real_sherd__fvp_answer_wide(packed, rows, cols, r, s, p, most, out);
}

static int set_plain(void **s)
{
    (void)s;
    plain = true;
    return 0;
}

static int set_wide(void **s)
{
    (void)s;
    plain = false;
    return 0;
}

#define UNIT_TEST_PLAIN(f)                                                                         \
    {                                                                                              \
#f " (plain)", f, set_plain, set_wide, NULL                                                \
    }

/* Small numbers of weights are drawn by another method than large ones. */
static void weights_are_uniform_for_any_number_of_draws(void **s)
{
    (void)s;
    static const size_t lengths[] = { 0, 1, 63, 64, 65, 1000, 3000 };
    static double x[3001];
    uint32_t count[11] = { 0 }, again = 0, all = 0;
    for (int i = 0; i < 300; i++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            size_t n = lengths[k];
            x[n] = 0.25;
            sherd__fvp_draw(&entropy, 11, n, x);
            assert_true(x[n] == 0.25);
            assert_true(sherd__residue_canonical(x, n, 11));
            for (size_t j = 0; j < n; j++) count[(int)x[j] + 5]++;
            for (size_t j = 1; j < n; j++) again += x[j] == x[j - 1];
            all += (uint32_t)n;
        }
    double chi = 0, each = all / 11.0;
    for (int i = 0; i < 11; i++) chi += (count[i] - each) * (count[i] - each) / each;
    assert_true(chi < 60); /* ten degrees of freedom: probability 4e-9 */
    assert_true(again > 0.98 * each && again < 1.02 * each);
    sherd__fvp_draw(&entropy, 8388593, 1500, x);
    sherd__fvp_draw(&entropy, 8388593, 1500, x + 1500);
    assert_memory_not_equal(x, x + 1500, 1500 * sizeof *x);
}

static void packed_residues_are_checked_two_trials_at_once(void **s)
{
    (void)s;
    static const uint32_t primes[] = { 5, 5931641, 8388593 };
    for (size_t q = 0; q < 3; q++) {
        enum { N = 1300, K = 21, M = 530 };
        uint32_t p = primes[q], left[2], right[2];
        double *u = malloc(N * K * 8), *v = malloc(K * M * 8), *y = malloc(N * M * 8);
        double *r[2], *t[2], ru[2][K], vs[2][K];
        uint8_t *packed = malloc(3 * N * M);
        sherd__fvp_draw(&entropy, p, N * K, u);
        sherd__fvp_draw(&entropy, p, K * M, v);
        assert_true(sherd__residue_canonical(u, N * K, p));
        assert_int_equal(sherd__residue_gemm(p, N, K, M, u, K, v, M, y, M), SHERD_OK);
        for (int i = 0; i < 2; i++) {
            r[i] = malloc(N * 8);
            t[i] = malloc(M * 8);
            sherd__fvp_draw(&entropy, p, N, r[i]);
            sherd__fvp_draw(&entropy, p, M, t[i]);
        }
        double *const to[2] = { ru[0], ru[1] }, *const by[2] = { vs[0], vs[1] };
        const double *const rs[2] = { r[0], r[1] }, *const ts[2] = { t[0], t[1] };
        size_t since = 0;
        memset(ru, 0, sizeof ru);
        for (size_t at = 0, rows; at < N; at += rows) { /* panels of 1, 2, 3, ... rows */
            const double *const part[2] = { r[0] + at, r[1] + at };
            rows = at % 9 + 1 < N - at ? at % 9 + 1 : N - at;
            sherd__fvp_left(u + at * K, rows, K, K, part, p, to, &since);
        }
        for (int i = 0; i < 2; i++) sherd__residue_from_f64(ru[i], K, p, ru[i]);
        sherd__fvp_right(v, K, M, M, ts, p, by);
        for (int i = 0; i < 2; i++) {
            assert_true(sherd__residue_canonical(vs[i], K, p));
            right[i] = sherd__fvp_dot(ru[i], vs[i], K, p);
        }
        for (int wrong = 0; wrong < 3; wrong++) {
            /* wrong 1: one entry differs by 1; wrong 2: a value that is not a residue. */
            double was = y[777 * M + 5];
            if (wrong == 1) y[777 * M + 5] += was < 0 ? 1 : -1;
            sherd__residue_pack(y, N * M, p, packed);
            y[777 * M + 5] = was;
            if (wrong == 2) memset(packed + 3 * (1299 * M + M - 1), 0xff, 3);
            int err = sherd__fvp_answer(packed, N, M, rs, ts, p, left);
            assert_int_equal(err, wrong == 2 ? SHERD_EFRAME : SHERD_OK);
            if (wrong == 0) assert_true(left[0] == right[0] && left[1] == right[1]);
            if (wrong == 1 && p > 5) assert_true(left[0] != right[0] && left[1] != right[1]);
        }
        for (int i = 0; i < 2; i++) free(r[i]), free(t[i]);
        free(u), free(v), free(y), free(packed);
    }
}

/* Values of one sign, most of them odd, so that a sum beyond 2^53 would be wrong. */
/* A value congruent to the right answer would pass the check, but is a second representation of the
 * same number. */
static void a_residue_not_below_its_prime_is_refused_at_any_place(void **s)
{
    (void)s;
    enum { N = 9 };
    static const size_t widths[] = { 1, 7, 600 }; /* short rows are checked together, long rows one
                                                   * by one */
    static double zero[N * 600];
    const uint32_t p = 5931641;
    for (size_t w = 0; w < 3; w++) {
        size_t m = widths[w], last = N * m - 1;
        uint8_t *packed = calloc(N * m, 3);
        const double *const none[2] = { zero, zero };
        uint32_t out[2];
        for (size_t at = 0; at <= last; at += at + 1 < last ? m : 1) {
            for (uint32_t odd = p - 1; odd <= p + 1; odd++) {
                for (int i = 0; i < 3; i++) packed[3 * at + (size_t)i] = (uint8_t)(odd >> 8 * i);
                assert_int_equal(sherd__fvp_answer(packed, N, m, none, none, p, out),
                                 odd < p ? SHERD_OK : SHERD_EFRAME);
            }
            memset(packed + 3 * at, 0, 3);
        }
        free(packed);
    }
}

static void residue_sums_stay_exact_for_the_largest_values(void **s)
{
    (void)s;
    enum { N = 6001 };
    static double y[N], v[N], ones[N];
    static uint8_t packed[3 * N];
    const uint32_t p = 8388593;
    const double *const by[2] = { v, y }, *const unit[2] = { ones, ones };
    double acc[2] = { 0.0, 0.0 }, *const to[2] = { acc, acc + 1 };
    uint64_t sum[2] = { 0, 0 };
    uint32_t out[2];
    size_t since = 0;
    for (size_t i = 0; i < N; i++) {
        y[i] = (double)((p - 1) / 2 - draw() % 32);
        v[i] = (double)((p - 1) / 2 - draw() % 32);
        ones[i] = 1.0;
        sum[0] = (sum[0] + (uint64_t)y[i] * (uint64_t)v[i]) % p;
        sum[1] = (sum[1] + (uint64_t)y[i] * (uint64_t)y[i]) % p;
    }
    sherd__residue_pack(y, N, p, packed);
    assert_int_equal(sherd__fvp_answer(packed, 1, N, unit, by, p, out), SHERD_OK);
    assert_true(out[0] == sum[0] && out[1] == sum[1]);
    assert_int_equal(sherd__fvp_answer(packed, N, 1, by, unit, p, out), SHERD_OK);
    assert_true(out[0] == sum[0] && out[1] == sum[1]);
    for (size_t i = 0; i < 3 * N; i++) packed[i] = (uint8_t)((p - 1) >> i % 3 * 8);
    for (size_t i = 0; i < N; i++) ones[i] = (p - 1) / 2; /* the largest values in packed form */
    for (size_t rows = 1; rows <= N; rows += N - 1) {
        const double *const most[2] = { ones, ones };
        uint64_t h = (p - 1) / 2, want = (p - h * N % p) % p * h % p;
        assert_int_equal(sherd__fvp_answer(packed, rows, N / rows, most, most, p, out), SHERD_OK);
        assert_true(out[0] == want && out[1] == want);
    }
    assert_int_equal(sherd__fvp_dot(y, v, N, p), sum[0]);
    sherd__fvp_left(y, N, 1, 1, by, p, to, &since);
    for (int t = 0; t < 2; t++) {
        sherd__residue_from_f64(to[t], 1, p, to[t]);
        assert_true(acc[t] == (double)(sum[t] > p / 2 ? (int64_t)sum[t] - p : (int64_t)sum[t]));
    }
}

static int64_t balanced(int64_t x, uint32_t p)
{
    int64_t q = p, h = (q - 1) / 2;
    x %= q;
    return x > h ? x - q : x < -h ? x + q : x;
}

/* All shapes around the sizes at which kernels switch code paths, compared with int64. */
static void residue_kernels_equal_int64_for_every_shape(void **s)
{
    (void)s;
    static const size_t sizes[] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 511, 512, 513, 1030 };
    enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 1030 };
    const uint32_t p = 8388593;
    const double h = (p - 1) / 2;
    double *x = malloc(MOST * MOST * 8), *v = malloc(6 * MOST * 8);
    uint8_t *packed = malloc(3 * MOST * MOST);
    for (size_t i = 0; i < MOST * MOST; i++) x[i] = i % 3 ? whole((int64_t)h) : i % 2 ? h : -h;
    for (size_t i = 0; i < 4 * MOST; i++) v[i] = i % 3 ? whole((int64_t)h) : h;
    const double *const r[2] = { v, v + MOST }, *const t[2] = { v + 2 * MOST, v + 3 * MOST };
    double *const out[2] = { v + 4 * MOST, v + 5 * MOST };
    for (size_t shape = 0; shape < SIZES * SIZES; shape++) {
        size_t rows = sizes[shape / SIZES], cols = sizes[shape % SIZES], since = 0;
        uint32_t got[2] = { 7, 7 };
        for (size_t i = 0; i < rows; i++)
            sherd__residue_pack(x + i * MOST, cols, p, packed + 3 * i * cols);
        assert_int_equal(sherd__fvp_answer(packed, rows, cols, r, t, p, got), SHERD_OK);
        sherd__fvp_right(x, rows, cols, MOST, t, p, out);
        for (int k = 0; k < 2; k++) {
            int64_t all = 0;
            for (size_t i = 0; i < rows; i++) {
                int64_t sum = 0;
                for (size_t j = 0; j < cols; j++)
                    sum = (sum + (int64_t)x[i * MOST + j] * (int64_t)t[k][j]) % p;
                assert_true(out[k][i] == (double)balanced(sum, p));
                all = (all + balanced(sum, p) * (int64_t)r[k][i]) % p;
            }
            assert_true((int64_t)got[k] == (all < 0 ? all + p : all));
            memset(out[k], 0, cols * 8);
        }
        sherd__fvp_left(x, rows, cols, MOST, r, p, out, &since);
        for (int k = 0; k < 2; k++) {
            sherd__residue_from_f64(out[k], cols, p, out[k]);
            for (size_t j = 0; j < cols; j += 1 + cols / 9) {
                int64_t sum = 0;
                for (size_t i = 0; i < rows; i++)
                    sum = (sum + (int64_t)x[i * MOST + j] * (int64_t)r[k][i]) % p;
                assert_true(out[k][j] == (double)balanced(sum, p));
            }
        }
    }
    free(x), free(v), free(packed);
}

static void several_primes_at_once_equal_single_primes(void **s)
{
    (void)s;
    enum { N = 1100, K = 37, LD = 40, MOST = 4 };
    double *x = malloc(N * LD * 8), *r = malloc(2 * MOST * N * 8);
    double one[2 * MOST][K], many[2 * MOST][K];
    for (size_t i = 0; i < N * LD; i++) x[i] = i % 3 ? whole(2965000) : 2965000;
    for (size_t i = 0; i < 2 * MOST * N; i++) r[i] = i % 3 ? whole(2965000) : 2965000;
    for (size_t len = 0; len <= MOST; len++) {
        sherd__fvp_sum sum[MOST];
        size_t together = 0;
        memset(one, 0, sizeof one);
        memset(many, 0, sizeof many);
        for (size_t q = 0; q < len; q++) {
            const double *const both[2] = { r + 2 * q * N, r + (2 * q + 1) * N };
            double *const to[2] = { one[2 * q], one[2 * q + 1] };
            size_t since = 0;
            sherd__fvp_left(x, N, K, LD, both, sherd__primes_default.p[q], to, &since);
            sum[q] = (sherd__fvp_sum){ sherd__primes_default.p[q],
                                       { both[0], both[1] },
                                       { many[2 * q], many[2 * q + 1] } };
        }
        for (size_t at = 0, rows; at < N; at += rows) { /* panels of 1, 2, 3, ... rows */
            rows = at % 9 + 1 < N - at ? at % 9 + 1 : N - at;
            sherd__fvp_left_many(x + at * LD, rows, K, LD, sum, len, &together);
            for (size_t q = 0; q < len; q++) sum[q].r[0] += rows, sum[q].r[1] += rows;
        }
        for (size_t i = 0; i < 2 * len; i++) {
            sherd__residue_from_f64(one[i], K, sherd__primes_default.p[i / 2], one[i]);
            sherd__residue_from_f64(many[i], K, sherd__primes_default.p[i / 2], many[i]);
            assert_memory_equal(one[i], many[i], sizeof one[i]);
        }
    }
    free(x), free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_uniform_for_any_number_of_draws),
        cmocka_unit_test(packed_residues_are_checked_two_trials_at_once),
        UNIT_TEST_PLAIN(packed_residues_are_checked_two_trials_at_once),
        cmocka_unit_test(a_residue_not_below_its_prime_is_refused_at_any_place),
        UNIT_TEST_PLAIN(a_residue_not_below_its_prime_is_refused_at_any_place),
        cmocka_unit_test(residue_sums_stay_exact_for_the_largest_values),
        UNIT_TEST_PLAIN(residue_sums_stay_exact_for_the_largest_values),
        cmocka_unit_test(residue_kernels_equal_int64_for_every_shape),
        cmocka_unit_test(several_primes_at_once_equal_single_primes),
        UNIT_TEST_PLAIN(residue_kernels_equal_int64_for_every_shape),
    };
    return cmocka_run_group_tests_name("crypto/freivalds_residues", tests, start, NULL);
}
