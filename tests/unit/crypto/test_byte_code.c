/* Codes over byte primes: every function compared with integers of 64 or 128 bits, by every path.
 * Operands end at the end of mapped memory, so that one byte beyond is a fault. */
#include "tests/support/bytes_paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/byte_code.h"
#include "matrix/exact.h"
#include "tests/support/fenced.h"

static const size_t lengths[] = { 0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 300, 4097 };
enum { LENGTHS = sizeof lengths / sizeof *lengths, CHECKS = SHERD__BYTE_CHECKS };

static void release(fenced f)
{
    munmap(f.map, f.size);
}

/* Returns x modulo p, signed or not, as one byte. */
static uint8_t residue(sherd__i128 x, uint32_t p, bool is_signed)
{
    int32_t r = (int32_t)((x % p + p) % p);
    return (uint8_t)(is_signed && r > (int32_t)(p - 1) / 2 ? r - (int32_t)p : r);
}

static uint32_t draw32(void)
{
    return draw(1u << 16) << 16 | draw(1u << 16);
}

/* ---- quantised numbers ----------------------------------------------------------------------- */

static void reduce(size_t n, uint32_t len)
{
    const size_t stride = n + 5;
    fenced in = fence(n * sizeof(double)), out = fence((len - 1) * stride + n);
    double *x = (double *)(void *)in.at;
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)((int64_t)draw32() - INT32_MAX);
        if (i % 7 == 1) x[i] = i % 2 ? INT32_MAX : -INT32_MAX;
        if (i % 7 == 3) x[i] = (double)draw(600) - 300;
        if (x[i] > INT32_MAX) x[i] = 0;
    }
    sherd__bytes_reduce(x, n, len, stride, out.at);
    for (uint32_t q = 0; q < len; q++) {
        for (size_t i = 0; i < n; i++)
            if (out.at[q * stride + i] != residue((int64_t)x[i], sherd__byte_primes[q], false))
                fail_msg("%.0f modulo %u: %u", x[i], sherd__byte_primes[q], out.at[q * stride + i]);
        for (size_t i = n; q + 1 < len && i < stride; i++)
            assert_int_equal(out.at[q * stride + i], 0xa5);
    }
    for (uint8_t *at = out.map; at < out.at; at++) assert_int_equal(*at, 0xa5);
    release(in);
    release(out);
}

static void numbers(void)
{
    for (size_t l = 0; l < LENGTHS; l++)
        for (uint32_t len = 1; len <= SHERD__BYTE_PRIMES; len++) reduce(lengths[l], len);
}

static void numbers_are_reduced_modulo_each_prime(void **s)
{
    (void)s;
    on_every_path(numbers);
}

/* ---- weighted sums --------------------------------------------------------------------------- */

enum { SUMS = 5, WORST_LOW, WORST_HIGH, ANY };

/* One of the outputs is not wanted, and no row or result is aligned. */
static void combine(uint32_t terms, uint32_t p, size_t n, bool is_signed, int how)
{
    fenced w = fence((size_t)SUMS * terms), in[SHERD__BYTE_TERMS], out[SUMS];
    const uint8_t *rows[SHERD__BYTE_TERMS];
    uint8_t *sums[SUMS];
    const int8_t *weights = (const int8_t *)w.at;
    for (size_t i = 0; i < (size_t)SUMS * terms; i++)
        w.at[i] = how == WORST_LOW ? 0x80 : how == WORST_HIGH ? 0x7f : (uint8_t)draw(256);
    for (uint32_t j = 0; j < terms; j++) {
        in[j] = fence(n);
        for (size_t i = 0; i < n; i++) in[j].at[i] = how == ANY ? (uint8_t)draw(256) : 255;
        for (size_t i = 0; i < n && how != ANY && j == 0; i++) in[j].at[i] -= (uint8_t)(i % 7);
        rows[j] = in[j].at;
    }
    for (int i = 0; i < SUMS; i++) {
        out[i] = fence(n);
        sums[i] = i == 2 ? NULL : out[i].at;
    }
    sherd__bytes_combine(weights, SUMS, terms, p, is_signed, rows, n, sums);
    for (uint32_t i = 0; i < SUMS; i++) {
        for (size_t c = 0; c < n && i != 2; c++) {
            int64_t sum = 0;
            for (uint32_t j = 0; j < terms; j++) sum += weights[i * terms + j] * rows[j][c];
            if (out[i].at[c] != residue(sum, p, is_signed))
                fail_msg("sum %u of %u terms modulo %u, column %zu of %zu: %u for %d", i, terms, p,
                         c, n, out[i].at[c], (int)sum);
        }
        for (uint8_t *at = out[i].map; at < out[i].at + (i == 2 ? n : 0); at++)
            assert_int_equal(*at, 0xa5);
        release(out[i]);
    }
    for (uint32_t j = 0; j < terms; j++) release(in[j]);
    release(w);
}

static void sums_of_bytes(void)
{
    for (uint32_t terms = 0; terms <= SHERD__BYTE_TERMS; terms += terms < 10   ? 1
                                                                  : terms < 64 ? 9
                                                                               : 64)
        for (size_t l = 0; l < LENGTHS; l++)
            combine(terms, sherd__byte_primes[(terms + l) % SHERD__BYTE_PRIMES], lengths[l],
                    (terms + l) % 2, WORST_LOW + (int)(l % 3));
    for (uint32_t p = 3; p < 256; p += 2)
        for (int how = WORST_LOW; how <= ANY; how++) {
            combine(4, p, 100, p % 4 == 1, how);
            combine(64, p, 100, p % 4 == 3, how);
            combine(65, p, 100, p % 4 == 3, how);
            if (p < 9 || p > 240) combine(SHERD__BYTE_TERMS, p, 33, p % 4 == 1, how);
        }
}

static void sums_of_any_bytes_are_exact(void **s)
{
    (void)s;
    on_every_path(sums_of_bytes);
}

/* ---- projections ----------------------------------------------------------------------------- */

static void fill(fenced f, size_t n, int worst)
{
    for (size_t i = 0; i < n; i++) f.at[i] = worst >= 0 ? (uint8_t)worst : (uint8_t)draw(256);
}

static void project(size_t rows, size_t cols, bool worst)
{
    const size_t ld = cols + 3, r_ld = rows + 2, acc_ld = cols + 1;
    const size_t x_len = rows ? (rows - 1) * ld + cols : 0, r_len = (CHECKS - 1) * r_ld + rows;
    const size_t acc_len = (CHECKS - 1) * acc_ld + cols;
    fenced x = fence(x_len), r = fence(r_len), acc = fence(acc_len * sizeof(int32_t));
    int32_t *got = (int32_t *)(void *)acc.at, *before = malloc(acc_len * sizeof *before);
    fill(x, x_len, worst ? 255 : -1);
    fill(r, r_len, worst ? 0x80 : -1);
    for (size_t i = 0; i < acc_len; i++)
        before[i] = got[i] = worst ? 0 : (int32_t)draw(1000000) - 500000;
    sherd__bytes_project((const int8_t *)r.at, r_ld, x.at, rows, cols, ld, got, acc_ld);
    for (size_t v = 0; v < CHECKS; v++)
        for (size_t c = 0; c < acc_ld && v * acc_ld + c < acc_len; c++) {
            int64_t sum = before[v * acc_ld + c];
            for (size_t i = 0; i < rows && c < cols; i++)
                sum += (int8_t)r.at[v * r_ld + i] * x.at[i * ld + c];
            if (got[v * acc_ld + c] != sum)
                fail_msg("vector %zu, column %zu of %zu x %zu: %d, expected %d", v, c, rows, cols,
                         got[v * acc_ld + c], (int)sum);
        }
    free(before);
    release(x);
    release(r);
    release(acc);
}

static void projections(void)
{
    for (size_t i = 0; i < LENGTHS; i++)
        for (size_t j = 0; j < LENGTHS; j++)
            if (lengths[i] * lengths[j] < 600 * 300) project(lengths[i], lengths[j], false);
    project(4097, 70, false);
    project(300, 300, false);
    project(65536, 19, true);
}

static void projections_of_any_shape_are_exact(void **s)
{
    (void)s;
    on_every_path(projections);
}

/* ---- sums of 32 bits ------------------------------------------------------------------------- */

enum { SOME = 5000 };

static void settle(uint32_t p, bool is_signed, size_t n)
{
    fenced in = fence(n * sizeof(int32_t)), out = fence(n);
    int32_t *acc = (int32_t *)(void *)in.at;
    for (size_t i = 0; i < n; i++) {
        int64_t near = (int64_t)(draw32() / p) * p - (int64_t)(UINT32_MAX / 2 / p) * p;
        int64_t v = near + (i % 3 == 0 ? (p - 1) / 2 : 0) + (int64_t)draw(3) - 1;
        acc[i] = (int32_t)(v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v);
        if (i % 4 == 1) acc[i] = (int32_t)(int64_t)draw32();
        if (i % 64 == 2) acc[i] = INT32_MIN;
        if (i % 64 == 6) acc[i] = INT32_MAX;
    }
    sherd__bytes_settle(acc, n, p, is_signed, out.at);
    for (size_t i = 0; i < n; i++)
        if (out.at[i] != residue(acc[i], p, is_signed))
            fail_msg("%d modulo %u: %u", acc[i], p, out.at[i]);
    for (uint8_t *at = out.map; at < out.at; at++) assert_int_equal(*at, 0xa5);
    release(in);
    release(out);
}

static void sums_of_32_bits(void)
{
    for (uint32_t p = 3; p < 256; p += 2) {
        settle(p, false, SOME);
        settle(p, true, SOME);
    }
    for (size_t l = 0; l < LENGTHS; l++) settle(251, l % 2, lengths[l]);
}

static void sums_of_any_32_bits_are_settled(void **s)
{
    (void)s;
    on_every_path(sums_of_32_bits);
}

static void a_byte_that_is_no_residue_is_found(void **s)
{
    (void)s;
    for (size_t l = 0; l < LENGTHS; l++) {
        size_t n = lengths[l];
        fenced in = fence(n);
        for (size_t i = 0; i < n; i++) in.at[i] = (uint8_t)(i % 2 ? 0 : 210);
        assert_true(sherd__bytes_below(in.at, n, 211));
        for (size_t i = 0; i < n; i += 1 + n / 20) {
            in.at[i] = 211;
            assert_false(sherd__bytes_below(in.at, n, 211));
            in.at[i] = 255;
            assert_false(sherd__bytes_below(in.at, n, 211));
            in.at[i] = 210;
        }
        release(in);
    }
}

/* ---- the Chinese remainder theorem ----------------------------------------------------------- */

static sherd__i128 bound_of(uint32_t len)
{
    sherd__i128 m = 1;
    for (uint32_t q = 0; q < len; q++) m *= sherd__byte_primes[q];
    return (m - 1) / 2 - (m >> 40);
}

/* Returns a number within the bound: a random one, or one near its ends, 0, or a tie. */
static sherd__i128 number(sherd__i128 bound, size_t i)
{
    sherd__i128 wide = ((sherd__i128)draw32() << 64 | (sherd__i128)draw32() << 32 | draw32());
    sherd__i128 x = wide % (2 * bound + 1) - bound;
    if (i % 8 == 1) x = bound - draw(40) % (unsigned)(bound < 40 ? bound : 40);
    if (i % 8 == 2) x = draw(40) % (unsigned)(bound < 40 ? bound : 40) - bound;
    if (i % 8 == 3) x %= 100;
    if (i == 4) x = 0;
    if (i % 8 == 5 && bound >> 60) x = (x & ~(sherd__i128)1023) + ((sherd__i128)1 << 8);
    return x;
}

static void recombine(uint32_t len, size_t n, int scale)
{
    const sherd__i128 bound = bound_of(len);
    sherd__bytes_crt c;
    fenced in[SHERD__BYTE_PRIMES], out = fence(n * sizeof(double));
    const uint8_t *residues[SHERD__BYTE_PRIMES];
    sherd__i128 *x = malloc(n * sizeof *x + 1);
    sherd__bytes_crt_init(&c, len);
    assert_int_equal(c.len, len);
    for (size_t i = 0; i < n; i++) x[i] = number(bound, i);
    for (uint32_t q = 0; q < len; q++) {
        in[q] = fence(n);
        residues[q] = in[q].at;
        for (size_t i = 0; i < n; i++)
            in[q].at[i] = residue(x[i] * c.fold[q], sherd__byte_primes[q], false);
    }
    sherd__bytes_crt_f64(&c, residues, n, scale, (double *)(void *)out.at);
    for (size_t i = 0; i < n; i++) {
        double want = ldexp(sherd__i128_f64(x[i]), -scale) + 0.0,
               got = ((double *)(void *)out.at)[i];
        if (memcmp(&want, &got, sizeof got) != 0)
            fail_msg("%u primes, 2^%d, element %zu: %a, expected %a", len, -scale, i, got, want);
    }
    for (uint32_t q = 0; q < len; q++) release(in[q]);
    release(out);
    free(x);
}

static void numbers_are_recombined_and_rounded_once(void **s)
{
    (void)s;
    static const int scales[] = { 0, 1, 20, -30, -1100, -3000, 1060, 1100, 5000 };
    for (uint32_t len = 1; len <= SHERD__BYTE_PRIMES; len++) {
        for (size_t l = 0; l < LENGTHS; l++) recombine(len, lengths[l], 20);
        for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) recombine(len, 1000, scales[i]);
    }
}

static void as_many_primes_are_used_as_a_sum_needs(void **s)
{
    (void)s;
    assert_int_equal(sherd__bytes_primes_needed(0, 1000, 1000), 1);
    assert_int_equal(sherd__bytes_primes_needed(1000, 0, UINT64_MAX), 1);
    assert_int_equal(sherd__bytes_primes_needed(1, 1, 125), 1);
    assert_int_equal(sherd__bytes_primes_needed(1, 126, 1), 2);
    for (uint32_t len = 1; len <= SHERD__BYTE_PRIMES; len++) {
        uint64_t bound = (uint64_t)bound_of(len);
        uint32_t more = len < SHERD__BYTE_PRIMES ? len + 1 : 0;
        assert_int_equal(sherd__bytes_primes_needed(1, bound, 1), len);
        assert_int_equal(sherd__bytes_primes_needed(1, 1, bound + 1), more);
        assert_int_equal(sherd__bytes_primes_needed(bound + 1, 1, 1), more);
    }
    assert_int_equal(sherd__bytes_primes_needed(4096, 1 << 17, 1 << 17), 6);
    assert_int_equal(sherd__bytes_primes_needed(SIZE_MAX, UINT64_MAX, UINT64_MAX), 0);
    assert_int_equal(sherd__bytes_primes_needed(SIZE_MAX, 2, UINT64_C(1) << 63), 0);
}

/* ---- a product ------------------------------------------------------------------------------- */

/* Numbers are reduced, multiplied modulo each prime and recombined. */
static void product(void)
{
    enum { N = 20, K = 70, M = 33, PRIMES = 6 };
    double a[N * K], b[K * M], c[N * M];
    uint8_t u[PRIMES * N * K], v[PRIMES * K * M], y[PRIMES][N * M], folded[PRIMES][N * M];
    uint8_t right[K * M], laid[3 * 2 * 1024] __attribute__((aligned(64)));
    const uint8_t *in[PRIMES];
    sherd__bytes_crt crt;
    for (size_t i = 0; i < N * K; i++) a[i] = (double)draw(1 << 18) - (1 << 17);
    for (size_t i = 0; i < K * M; i++) b[i] = (double)draw(1 << 18) - (1 << 17);
    sherd__bytes_reduce(a, N * K, PRIMES, N * K, u);
    sherd__bytes_reduce(b, K * M, PRIMES, K * M, v);
    sherd__bytes_crt_init(&crt, PRIMES);
    for (uint32_t q = 0; q < PRIMES; q++) {
        const uint32_t p = sherd__byte_primes[q];
        const sherd__bytes_product x = { .p = p,
                                         .n = N,
                                         .k = K,
                                         .m = M,
                                         .a = u + q * N * K,
                                         .a_ld = K,
                                         .b = laid,
                                         .out = y[q],
                                         .ld = M };
        const int8_t one = 1,
                     fold = (int8_t)(crt.fold[q] > p / 2 ? crt.fold[q] - (int)p : crt.fold[q]);
        sherd__bytes_combine(&one, 1, 1, p, true, &(const uint8_t *){ v + q * K * M }, K * M,
                             &(uint8_t *){ right });
        sherd__bytes_lay_columns((const int8_t *)right, K, M, M, laid);
        assert_int_equal(sherd__bytes_multiply(&x, NULL), SHERD_OK);
        in[q] = folded[q];
        sherd__bytes_combine(&fold, 1, 1, p, false, &(const uint8_t *){ y[q] }, N * M,
                             &(uint8_t *){ folded[q] });
    }
    sherd__bytes_crt_f64(&crt, in, N * M, 0, c);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < M; j++) {
            double sum = 0;
            for (size_t l = 0; l < K; l++) sum += a[i * K + l] * b[l * M + j];
            assert_true(c[i * M + j] == sum);
        }
}

static void a_product_of_residues_is_the_product_of_the_numbers(void **s)
{
    (void)s;
    on_every_path(product);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_reduced_modulo_each_prime),
        cmocka_unit_test(sums_of_any_bytes_are_exact),
        cmocka_unit_test(projections_of_any_shape_are_exact),
        cmocka_unit_test(sums_of_any_32_bits_are_settled),
        cmocka_unit_test(a_byte_that_is_no_residue_is_found),
        cmocka_unit_test(numbers_are_recombined_and_rounded_once),
        cmocka_unit_test(as_many_primes_are_used_as_a_sum_needs),
        cmocka_unit_test(a_product_of_residues_is_the_product_of_the_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
