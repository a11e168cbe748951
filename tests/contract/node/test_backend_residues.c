/*
 * Products modulo primes on every backend, compared with loops over 64 bits: residues by residues,
 * by integers, and as windows of images, worst values included. Packed residues are multiplied in
 * packed form, on processors without AMX by the kernels for any processor, and also unpacked.
 * link: -Wl,--wrap=sherd__limbs_here
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "matrix/residue_limbs.h"
#include "matrix/windows.h"
#include "node/check.h"
#include "tests/contract/node/backend_world.h"

bool __real_sherd__limbs_here(void);
bool __wrap_sherd__limbs_here(void);
static bool taken_apart;

bool __wrap_sherd__limbs_here(void)
{
    return !taken_apart && __real_sherd__limbs_here();
}

/* left is n x k, or k x n and multiplied transposed. */
static void check_residues_so(uint32_t n, uint32_t k, uint32_t m, uint32_t r, bool worst,
                              bool transposed)
{
    uint32_t *a = residues_draw(n, k, r, worst), *b = residues_draw(k, m, r, worst);
    uint32_t rows = transposed ? k : n, cols = transposed ? n : k;
    sherd__fragment *u = residues_new(n & 1, rows, cols, r, a),
                    *v = residues_new(m & 1, k, m, r, b);
    sherd__task t = task_modular(n, m, r);
    if (transposed) t.op = SHERD__OP_MULTIPLY_T;
    uint8_t *out = out_new(t.result.len);
    assert_int_equal(backend_run(&t, u, v, out), SHERD_OK);
    out_guarded(out, t.result.len);
    for (uint32_t q = 0; q < r; q++) {
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < m; j++) {
                uint64_t sum = 0;
                for (uint32_t x = 0; x < k; x++) {
                    size_t at = transposed ? (size_t)x * n + i : (size_t)i * k + x;
                    sum = (sum +
                           (uint64_t)a[(size_t)q * n * k + at] * b[((size_t)q * k + x) * m + j]) %
                          backend_primes[q];
                }
                assert_int_equal(residue_at(out + 3 * (((size_t)q * n + i) * m + j)), sum);
            }
        }
    }
    free(out);
    free(a);
    free(b);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
}

static void check_residues(uint32_t n, uint32_t k, uint32_t m, uint32_t r, bool worst,
                           bool transposed)
{
    for (int way = 0; way < 2; way++) {
        taken_apart = way;
        check_residues_so(n, k, m, r, worst, transposed);
    }
    taken_apart = false;
}

static void residues_multiply_exactly_worst_values_included(void **s)
{
    (void)s;
    static const uint32_t sizes[][3] = { { 1, 1, 1 },    { 0, 2, 3 },    { 2, 0, 3 },
                                         { 5, 7, 3 },    { 3, 1500, 4 }, { 2, 4097, 3 },
                                         { 1027, 5, 2 }, { 2, 3, 1027 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t r = 1; r <= SHERD__RESIDUES_PRIMES_MAX; r++) {
            check_residues(sizes[i][0], sizes[i][1], sizes[i][2], r, r & 1, false);
            check_residues(sizes[i][0], sizes[i][1], sizes[i][2], r, i & 1, true);
        }
    }
}

/* More terms than 64 bits hold products of the largest residues: their sum is -1 each squared. */
static void sums_of_very_many_largest_residues_are_exact(void **s)
{
    (void)s;
    enum { K = 300000 };
    uint32_t *values = malloc(K * sizeof *values);
    sherd__task t = task_modular(1, 1, 1);
    t.primes[0] = backend_primes[1];
    for (size_t k = 0; k < K; k++) values[k] = t.primes[0] - 1;
    sherd__fragment *u = residues_new(0, 1, K, 1, values), *v = residues_new(0, K, 1, 1, values);
    uint8_t *out = out_new(t.result.len);
    assert_int_equal(backend_run(&t, u, v, out), SHERD_OK);
    assert_int_equal(residue_at(out), K % t.primes[0]);
    free(out);
    free(values);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
}

static void integers_multiply_modulo_primes_group_by_group(void **s)
{
    (void)s;
    for (uint32_t round = 0; round < 30; round++) {
        plan pa, pb;
        plan_groups(&pa, &pb, 1 + round % 9, round % 3 ? 5 : 1, round % 7);
        pa.dtype = round & 1 ? SHERD_I32 : SHERD_U8;
        pb.dtype = round & 2 ? SHERD_I64 : SHERD_I8;
        block a = block_new(&pa), b = block_new(&pb);
        size_t n = sherd__fragment_info_of(a.f)->rows, m = sherd__fragment_info_of(b.f)->cols;
        sherd__task t = task_modular((uint32_t)n, (uint32_t)m, 2);
        double *want = block_product(&a, &b, n, m);
        uint8_t *out = out_new(t.result.len);
        assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_OK);
        out_guarded(out, t.result.len);
        for (size_t i = 0; i < 2 * n * m; i++) {
            int64_t p = backend_primes[i / (n * m)], w = (int64_t)want[i % (n * m)] % p;
            assert_int_equal(residue_at(out + 3 * i), w < 0 ? w + p : w);
        }
        free(out);
        free(want);
        block_free(&a);
        block_free(&b);
    }
}

static void integers_multiply_modulo_primes_transposed_and_with_residues(void **s)
{
    (void)s;
    enum { N = 5, K = 1300, M = 3 };
    for (uint32_t round = 0; round < 4; round++) {
        plan pa = plan_dense(round & 1, K, N, round & 1 ? SHERD_I32 : SHERD_U8);
        block a = block_new(&pa);
        uint32_t *b = residues_draw(K, M, 3, round & 2);
        sherd__fragment *v = residues_new(0, K, M, 3, b);
        sherd__task t = task_modular(N, M, 3);
        t.op = SHERD__OP_MULTIPLY_T;
        uint8_t *out = out_new(t.result.len);
        assert_int_equal(backend_run(&t, a.f, v, out), SHERD_OK);
        out_guarded(out, t.result.len);
        for (uint32_t e = 0; e < 3 * N * M; e++) {
            uint32_t q = e / (N * M), i = e / M % N, j = e % M;
            int64_t p = backend_primes[q], sum = 0;
            for (uint32_t x = 0; x < K; x++)
                sum = (sum + (int64_t)a.values[x * N + i] * b[(q * K + x) * M + j]) % p;
            assert_int_equal(residue_at(out + 3 * e), sum < 0 ? sum + p : sum);
        }
        free(out);
        free(b);
        sherd__fragment_free(v);
        block_free(&a);
    }
}

/* Returns a random integer that the type and a double represent. */
static double any_integer(uint8_t dtype)
{
    int64_t x = (int64_t)sherd__entropy_below(&backend_rnd, UINT64_C(1) << 54) - (INT64_C(1) << 53);
    return (double)(dtype == SHERD_I8    ? (int64_t)(int8_t)x
                    : dtype == SHERD_U8  ? (int64_t)(uint8_t)x
                    : dtype == SHERD_I32 ? (int64_t)(int32_t)x
                                         : x);
}

/* Multiplies residues by integers, in one panel of columns and in several: with 50000 terms, 60
 * columns do not fit at once. */
static void check_integers_so(uint32_t n, uint32_t k, uint32_t m, uint8_t dtype, bool transposed)
{
    enum { R = 2 };
    uint32_t *a = residues_draw(n, k, R, k & 1);
    sherd__fragment *u = residues_new(n & 1, transposed ? k : n, transposed ? n : k, R, a);
    plan pb = plan_dense(m & 1, k, m, dtype);
    double *b = malloc(((size_t)k * m + 1) * sizeof *b);
    for (size_t i = 0; i < (size_t)k * m; i++) b[i] = any_integer(dtype);
    sherd__fragment *v = block_encode(&pb, b);
    sherd__task t = task_modular(n, m, R);
    if (transposed) t.op = SHERD__OP_MULTIPLY_T;
    uint8_t *out = out_new(t.result.len);
    assert_int_equal(backend_run(&t, u, v, out), SHERD_OK);
    out_guarded(out, t.result.len);
    for (uint32_t e = 0; e < R * n * m; e++) {
        uint32_t q = e / (n * m), i = e / m % n, j = e % m;
        int64_t p = backend_primes[q], sum = 0;
        for (uint32_t x = 0; x < k; x++) {
            size_t at = (size_t)q * n * k + (transposed ? (size_t)x * n + i : (size_t)i * k + x);
            sum = (sum + (int64_t)b[(size_t)x * m + j] % p * a[at]) % p;
        }
        assert_int_equal(residue_at(out + 3 * e), sum < 0 ? sum + p : sum);
    }
    free(out);
    free(a);
    free(b);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
}

static void residues_multiply_with_integers_of_every_size(void **s)
{
    (void)s;
    static const uint32_t sizes[][3] = { { 1, 1, 1 },    { 0, 2, 3 },     { 2, 0, 3 },
                                         { 5, 7, 3 },    { 17, 65, 70 },  { 2, 3, 1100 },
                                         { 3, 2049, 5 }, { 1, 50000, 60 } };
    static const uint8_t dtypes[] = { SHERD_I8, SHERD_U8, SHERD_I32, SHERD_I64 };
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        const uint32_t *z = sizes[i / 2];
        taken_apart = i & 1;
        for (size_t d = 0; d < (z[1] < 10000 ? 4 : 1); d++)
            check_integers_so(z[0], z[1], z[2], dtypes[d], (i + d) & 2);
    }
    taken_apart = false;
}

static void integers_that_no_double_represents_are_refused_with_residues(void **s)
{
    (void)s;
    enum { N = 3, K = 70, M = 5 };
    uint32_t *a = residues_draw(N, K, 1, false);
    sherd__fragment *u = residues_new(0, N, K, 1, a);
    plan pb = plan_dense(0, K, M, SHERD_I64);
    double b[K * M] = { [K * M - 1] = 0x1p60 };
    sherd__fragment *v = block_encode(&pb, b);
    sherd__task t = task_modular(N, M, 1);
    for (int way = 0; way < 2; way++) {
        taken_apart = way;
        uint8_t *out = out_new(t.result.len);
        assert_int_equal(backend_run(&t, u, v, out), SHERD_ERANGE);
        out_guarded(out, t.result.len);
        free(out);
    }
    taken_apart = false;
    free(a);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
}

static void integers_of_any_size_are_reduced_modulo_the_smallest_modulus(void **s)
{
    (void)s;
    enum { K = 4000 };
    double b[K];
    for (size_t i = 0; i < K; i++) b[i] = any_integer(SHERD_I64);
    const uint32_t one = 1;
    sherd__fragment *v = residues_new(0, 1, 1, 1, &one);
    plan pa = plan_dense(0, K, 1, SHERD_I64);
    sherd__fragment *u = block_encode(&pa, b);
    sherd__task t = task_modular(K, 1, 1);
    const int64_t p = t.primes[0] = SHERD__PRIME_MIN;
    uint8_t *out = out_new(t.result.len);
    assert_int_equal(backend_run(&t, u, v, out), SHERD_OK);
    for (size_t i = 0; i < K; i++) {
        int64_t r = (int64_t)b[i] % p;
        assert_int_equal(residue_at(out + 3 * i), r < 0 ? r + p : r);
    }
    free(out);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
}

/* Windows of the rows of left, by definition: number l of row i, modulo prime number q. */
static uint64_t window_at(const sherd_windows *w, size_t wide, size_t count, uint32_t images,
                          const uint32_t *a, uint32_t q, size_t i, size_t l)
{
    size_t c = l % w->channels, x = l / w->channels % w->window, y = l / w->channels / w->window;
    long down = (long)(i % count / wide * w->stride + y) - (long)w->padding;
    long across = (long)(i % count % wide * w->stride + x) - (long)w->padding;
    if (down < 0 || across < 0 || down >= (long)w->height || across >= (long)w->width) return 0;
    size_t image = (size_t)q * images + i / count;
    return a[((image * w->height + (size_t)down) * w->width + (size_t)across) * w->channels + c];
}

static void check_windows(const sherd_windows *w, uint32_t images, uint32_t m, uint32_t r,
                          bool narrow, bool transposed)
{
    sherd__windows s;
    assert_true(sherd__windows_fit(w, &s));
    uint32_t rows = images * (uint32_t)s.count, inner = (uint32_t)s.row, size = (uint32_t)s.image;
    uint32_t height = transposed ? rows : inner, n = transposed ? inner : rows;
    uint32_t *a = residues_draw(images, size, r, images & 1);
    uint32_t *b = residues_draw(height, m, r, false);
    sherd__fragment *u = residues_new(images & 1, images, size, r, a);
    sherd__fragment *v = residues_new(0, height, m, r, b);
    block bytes = { .f = NULL };
    if (narrow) {
        plan p = plan_dense(0, height, m, SHERD_U8);
        bytes = block_new(&p);
        for (size_t k = 0; k < (size_t)r * height * m; k++)
            b[k] = (uint32_t)bytes.values[k % (height * m)];
    }
    sherd__task t = task_modular(n, m, r);
    t.windows = *w;
    if (transposed) t.op = SHERD__OP_MULTIPLY_T;
    uint8_t *out = out_new(t.result.len);
    assert_int_equal(backend_run(&t, u, narrow ? bytes.f : v, out), SHERD_OK);
    out_guarded(out, t.result.len);
    for (uint32_t q = 0; q < r; q++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < m; j++) {
                uint64_t sum = 0;
                for (size_t l = 0; l < height; l++) {
                    uint64_t x = window_at(w, s.wide, s.count, images, a, q, transposed ? l : i,
                                           transposed ? i : l);
                    uint64_t p = backend_primes[q];
                    sum += x * (b[((size_t)q * height + l) * m + j] % p) % p;
                }
                if (residue_at(out + 3 * ((q * (size_t)n + i) * m + j)) != sum % backend_primes[q])
                    fail_msg("prime %u, %zu, %zu", q, i, j);
            }
    free(out);
    free(a);
    free(b);
    if (narrow) block_free(&bytes);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
}

/* The fourth has more windows than are laid out at a time; the last but one has large windows. */
static void windows_of_residues_multiply_exactly(void **s)
{
    (void)s;
    static const sherd_windows of[] = {
        { 1, 1, 1, 1, 1, 0 },   { 5, 4, 2, 3, 1, 1 },  { 7, 6, 3, 2, 3, 0 },
        { 40, 36, 1, 2, 1, 1 }, { 9, 9, 31, 8, 1, 0 }, { 3, 3, 1, 3, 1, 2 },
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (unsigned k = 0; k < 8; k++) {
            taken_apart = k & 1;
            check_windows(&of[i], i == 3 ? 3 : (k >> 1) % 3 + 1, 1 + (uint32_t)(i + k) % 4,
                          1 + k % SHERD__RESIDUES_PRIMES_MAX, (i == 1 || i == 3) && k & 2, k & 4);
        }
    for (unsigned k = 0; k < 4; k++) {
        taken_apart = k & 1;
        check_windows(&of[1], 0, 2, 2, false, k & 2); /* sums without terms */
    }
    taken_apart = false;
}

static void tasks_whose_windows_do_not_fit_are_refused(void **s)
{
    (void)s;
    const sherd_windows w = { 3, 4, 2, 2, 1, 0 }; /* 6 windows of 8 */
    uint32_t *a = residues_draw(12, 25, 1, false);
    sherd__fragment *wide = residues_new(0, 2, 25, 1, a), *narrow = residues_new(0, 2, 23, 1, a);
    sherd__fragment *u = residues_new(0, 2, 24, 1, a), *v = residues_new(0, 8, 3, 1, a);
    sherd__fragment *d = residues_new(0, 12, 3, 1, a);
    plan p = plan_dense(0, 2, 24, SHERD_U8);
    plan two = { .groups = 2, .rows = { 4, 4 }, .cols = { 3, 3 }, .dtype = SHERD_U8 };
    block bytes = block_new(&p), groups = block_new(&two);
    sherd__task good = task_modular(12, 3, 1), t;
    uint8_t *out = out_new(good.result.len);
    good.windows = w;
    assert_int_equal(backend_run(&good, u, v, out), SHERD_OK);
    assert_int_equal(backend_run(&good, u, d, out), SHERD_ESHAPE);
    assert_int_equal(backend_run(&good, v, v, out), SHERD_ESHAPE);
    assert_int_equal(backend_run(&good, wide, v, out), SHERD_ESHAPE);
    assert_int_equal(backend_run(&good, narrow, v, out), SHERD_ESHAPE);
    assert_int_equal(backend_run(&good, bytes.f, v, out), SHERD_EUNSUPPORTED);
    assert_int_equal(backend_run(&good, u, groups.f, out), SHERD_EUNSUPPORTED);
    assert_int_equal(backend_run(&good, u, NULL, out), SHERD_EINVAL);
    t = good, t.op = SHERD__OP_MULTIPLY_T;
    assert_int_equal(backend_run(&t, u, v, out), SHERD_ESHAPE);
    assert_int_equal(backend_run(&t, u, d, out), SHERD_ESHAPE); /* the result has 8 rows */
    t = good, t.op = SHERD__OP_EXP;
    assert_int_equal(backend_run(&t, u, NULL, out), SHERD_EUNSUPPORTED);
    t = good, t.result.rows = 2, t.result.len = 18; /* like that of the images themselves */
    assert_int_equal(backend_run(&t, u, v, out), SHERD_ESHAPE);
    t = good, t.windows.stride = 0;
    assert_int_equal(backend_run(&t, u, v, out), SHERD_EUNSUPPORTED);
    t = good, t.windows.window = 4;
    assert_int_equal(backend_run(&t, u, v, out), SHERD_EUNSUPPORTED);
    t = good, t.windows = (sherd_windows){ 1, 24, 1, 1100, 1, 1099 }; /* windows of 2^20 numbers and
                                                                       * more */
    assert_int_equal(backend_run(&t, u, v, out), SHERD_EUNSUPPORTED);
    t = good, t.windows = (sherd_windows){ 3, 8, 1, 2, 1, 0 };
    assert_int_equal(backend_run(&t, u, v, out), SHERD_ESHAPE);
    for (int way = 0; way < 2; way++) { /* an invalid residue in a window */
        uint32_t bad[24] = { [7] = backend_primes[0] };
        sherd__fragment *x = residues_new(0, 1, 24, 1, bad);
        taken_apart = way;
        t = task_modular(6, 3, 1), t.windows = w;
        assert_int_equal(backend_run(&t, x, v, out), SHERD_ERANGE);
        sherd__fragment_free(x);
    }
    taken_apart = false;
    free(out);
    free(a);
    block_free(&bytes);
    block_free(&groups);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
    sherd__fragment_free(d);
    sherd__fragment_free(wide);
    sherd__fragment_free(narrow);
}

static void a_residue_at_or_above_its_prime_is_rejected(void **s)
{
    (void)s;
    for (uint32_t at = 0; at < 8; at++) {
        uint32_t a[4] = { 1, 2, 0, 1 }, b[4] = { 3, 4, 1, 1 };
        bool transposed = at & 2;
        taken_apart = at & 4;
        *(at & 1 ? &b[1] : &a[0]) = backend_primes[0] + at;
        sherd__fragment *u = transposed ? residues_new(0, 2, 1, 1, a) : residues_new(0, 1, 2, 1, a);
        sherd__fragment *v = residues_new(0, 2, 2, 1, b);
        sherd__task t = task_modular(1, 2, 1);
        if (transposed) t.op = SHERD__OP_MULTIPLY_T;
        uint8_t *out = out_new(t.result.len);
        assert_int_equal(backend_run(&t, u, v, out), SHERD_ERANGE);
        free(out);
        sherd__fragment_free(u);
        sherd__fragment_free(v);
    }
    taken_apart = false;
}

static void integers_beyond_2_to_53_are_rejected_modulo_primes(void **s)
{
    (void)s;
    static const int64_t beyond[] = { (INT64_C(1) << 53) + 1, -(INT64_C(1) << 53) - 1, INT64_MIN };
    double a_values[] = { -0x1p53 }, b_values[] = { 1 };
    plan p = plan_dense(0, 1, 1, SHERD_I64);
    sherd__fragment *u = block_encode(&p, a_values), *v = block_encode(&p, b_values);
    sherd__task t = task_modular(1, 1, 1);
    uint8_t out[64];
    assert_int_equal(backend_run(&t, u, v, out), SHERD_OK);
    for (unsigned i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        const sherd__fragment_info *info = sherd__fragment_info_of(u);
        memcpy((uint8_t *)(uintptr_t)sherd__fragment_bytes(u) + info->len - 8, &beyond[i], 8);
        t.op = SHERD__OP_MULTIPLY;
        assert_int_equal(backend_run(&t, u, v, out), SHERD_ERANGE);
        t.op = SHERD__OP_MULTIPLY_T;
        assert_int_equal(backend_run(&t, u, v, out), SHERD_ERANGE);
        assert_int_equal(backend_run(&t, v, u, out), SHERD_ERANGE);
    }
    sherd__fragment_free(u);
    sherd__fragment_free(v);
}

static void moduli_that_are_not_odd_and_small_are_refused(void **s)
{
    (void)s;
    static const uint32_t bad[] = { 0, 1, 2, 3, 4, 5931640, 1u << 23, UINT32_MAX };
    uint32_t one[1] = { 1 };
    sherd__fragment *u = residues_new(0, 1, 1, 1, one);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sherd__task t = task_modular(1, 1, 1);
        uint8_t out[64];
        t.primes[0] = bad[i];
        assert_int_equal(backend_run(&t, u, u, out), SHERD_EUNSUPPORTED);
    }
    sherd__fragment_free(u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(residues_multiply_exactly_worst_values_included),
        ALL(sums_of_very_many_largest_residues_are_exact),
        ALL(integers_multiply_modulo_primes_group_by_group),
        ALL(integers_multiply_modulo_primes_transposed_and_with_residues),
        ALL(residues_multiply_with_integers_of_every_size),
        ALL(integers_that_no_double_represents_are_refused_with_residues),
        ALL(integers_of_any_size_are_reduced_modulo_the_smallest_modulus),
        ALL(a_residue_at_or_above_its_prime_is_rejected),
        ALL(windows_of_residues_multiply_exactly),
        ALL(tasks_whose_windows_do_not_fit_are_refused),
        ALL(integers_beyond_2_to_53_are_rejected_modulo_primes),
        ALL(moduli_that_are_not_odd_and_small_are_refused),
    };
    unsetenv("OPENBLAS_CORETYPE"); /* a set variable would disable tiles of bytes */
    if (!sherd__limbs_here() && !sherd__limbs_force(1)) return 1;
    return cmocka_run_group_tests_name("node/backend_residues", tests, backend_open_all,
                                       backend_close_all);
}
