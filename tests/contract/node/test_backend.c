/*
 * One suite for every backend of a node, against a triple loop that shares nothing with them.
 * Values are small integers (so that f64 sums are exact and bits must agree) or worst cases;
 * outputs are filled with noise first, and carry a guard behind them. Packed residues
 * are multiplied both as they travel, where the processor does that, and taken apart.
 * link: -Wl,--wrap=sherd__limbs_here
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/rand.h"
#include "crypto/fragment_make.h"
#include "matrix/residue_limbs.h"
#include "node/backend.h"
#include "node/check.h"
#include "sherd/mat.h"

static const sherd__backend *const backends[] = { &sherd__backend_cpu };
#define BACKENDS (sizeof backends / sizeof *backends)

static void *contexts[BACKENDS];
static const sherd__backend *backend;
static void *ctx;
static sherd_entropy_seeded seed_state;
static sherd_entropy rnd;

/* A block as a test thinks of it: values as doubles, groups as shapes. */
typedef struct plan {
    uint32_t groups; /* 0: no table */
    uint32_t rows[64], cols[64];
    uint8_t dtype;
} plan;

typedef struct block {
    plan p;
    double *values; /* all groups' values in order */
    size_t len;
    sherd_fragment *f;
} block;

static size_t plan_values(const plan *p)
{
    size_t n = 0;
    for (uint32_t q = 0; q < (p->groups ? p->groups : 1); q++) n += (size_t)p->rows[q] * p->cols[q];
    return n;
}

static void store(uint8_t *at, uint8_t dtype, double v)
{
    switch (dtype) {
    case SHERD_F64: memcpy(at, &v, 8); break;
    case SHERD_F32: { float x = (float)v; memcpy(at, &x, 4); break; }
    case SHERD_U8: *at = (uint8_t)v; break;
    case SHERD_I8: *at = (uint8_t)(int8_t)v; break;
    case SHERD_U16: sherd__put_u16(at, (uint16_t)v); break;
    case SHERD_I16: sherd__put_u16(at, (uint16_t)(int16_t)v); break;
    case SHERD_U32: sherd__put_u32(at, (uint32_t)v); break;
    case SHERD_I32: sherd__put_u32(at, (uint32_t)(int32_t)v); break;
    case SHERD_I64: sherd__put_u64(at, (uint64_t)(int64_t)v); break;
    default: abort();
    }
}

static sherd_fragment *take(const sherd__fragment_info *info, uint8_t *body)
{
    sherd_fragment *f;
    assert_int_equal(sherd__fragment_take(&f, info, body, NULL, NULL), SHERD_OK);
    return f;
}

static sherd_fragment *encode(const plan *p, const double *values)
{
    sherd__fragment_info i = { .origin = SHERD__HIDDEN, .dtype = p->dtype, .groups = p->groups };
    size_t each = sherd_dtype_size((sherd_dtype)p->dtype), n = plan_values(p);
    for (uint32_t q = 0; q < (p->groups ? p->groups : 1); q++) {
        i.rows += p->rows[q];
        if (p->cols[q] > i.cols) i.cols = p->cols[q];
    }
    i.len = 8 * (uint64_t)p->groups + n * each;
    uint8_t *body = malloc(i.len + 1);
    for (uint32_t q = 0; q < p->groups; q++) {
        sherd__put_u32(body + 8 * q, p->rows[q]);
        sherd__put_u32(body + 8 * q + 4, p->cols[q]);
    }
    for (size_t k = 0; k < n; k++) store(body + 8 * p->groups + k * each, p->dtype, values[k]);
    sherd_diag d = { .code = 0 };
    assert_int_equal(sherd__fragment_table_check(&i, body, &d), SHERD_OK);
    return take(&i, body);
}

static double small_value(uint8_t dtype)
{
    double v = (double)sherd__entropy_below(&rnd, 120);
    bool is_signed = dtype != SHERD_U8 && dtype != SHERD_U16 && dtype != SHERD_U32;
    return is_signed && sherd__entropy_below(&rnd, 2) ? -v : v;
}

static block make_block(const plan *p)
{
    block b = { .p = *p, .len = plan_values(p) };
    b.values = malloc((b.len + 1) * sizeof(double));
    for (size_t k = 0; k < b.len; k++) b.values[k] = small_value(p->dtype);
    b.f = encode(p, b.values);
    return b;
}

static void free_block(block *b)
{
    sherd__fragment_free(b->f);
    free(b->values);
}

static sherd__task product_task(const sherd_fragment *a, const sherd_fragment *b, uint8_t dtype)
{
    uint64_t n = sherd__fragment_info_of(a)->rows, m = sherd__fragment_info_of(b)->cols;
    sherd__task t = { .job = 1, .task = 1, .attempt = 1, .op = SHERD__OP_MULTIPLY, .left = 1,
                      .right = 2 };
    t.result = (sherd__fragment_info){ .origin = SHERD__RESULT, .dtype = dtype, .rows = n,
                                       .cols = m, .len = n * m * sherd__wire_size(dtype) };
    return t;
}

/* The grouped product by the book. */
static double *reference(const block *a, const block *b, size_t n, size_t m)
{
    double *c = calloc(n * m + 1, sizeof *c);
    const double *u = a->values, *v = b->values;
    size_t row = 0;
    for (uint32_t q = 0; q < (a->p.groups ? a->p.groups : 1); q++) {
        size_t rows = a->p.rows[q], g = a->p.cols[q];
        for (size_t i = 0; i < rows; i++)
            for (size_t k = 0; k < g; k++)
                for (size_t j = 0; j < m; j++)
                    c[(row + i) * m + j] += u[i * g + k] * v[k * m + j];
        u += rows * g;
        v += g * m;
        row += rows;
    }
    return c;
}

/* left^T * right by the book. */
static double *reference_t(const block *a, const block *b, size_t n, size_t m)
{
    double *c = calloc(n * m + 1, sizeof *c);
    for (size_t k = 0; k < a->p.rows[0]; k++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < m; j++)
                c[i * m + j] += a->values[k * n + i] * b->values[k * m + j];
    return c;
}

#define GUARD 64

static uint8_t *noisy(size_t len)
{
    uint8_t *out = aligned_alloc(64, (len + GUARD + 63) / 64 * 64);
    memset(out, 0xFF, len + GUARD); /* NaN as f64 and as f32 */
    return out;
}

static void assert_guard(const uint8_t *out, size_t len)
{
    for (size_t i = 0; i < GUARD; i++) assert_int_equal(out[len + i], 0xFF);
}

static int run(const sherd__task *t, const sherd_fragment *a, const sherd_fragment *b, uint8_t *out)
{
    sherd_diag d = { .code = 0 };
    int err = backend->run(ctx, t, a, b, out, &d);
    assert_int_equal(err != 0, d.message[0] != '\0');
    return err;
}

static void assert_values(const uint8_t *out, uint8_t dtype, const double *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double got;
        float narrow;
        if (dtype == SHERD_F64) memcpy(&got, out + 8 * i, 8);
        else memcpy(&narrow, out + 4 * i, 4), got = (double)narrow;
        if (got != want[i]) fail_msg("element %zu is %g, expected %g", i, got, want[i]);
    }
}

/* The result as the backend streams it, if it does, in pieces of awkward lengths. */
static void check_stream(const sherd__task *t, const block *a, const block *b, const uint8_t *want)
{
    sherd__fragment_source s = { .fill = NULL };
    sherd_diag d = { .code = 0 };
    uint64_t memory = 0;
    if (!backend->stream) return;
    assert_int_equal(backend->stream(ctx, t, a->f, b->f, &s, &memory, &d), SHERD_OK);
    if (!s.fill) return;
    uint8_t *out = noisy(t->result.len);
    for (size_t at = 0, n; at < t->result.len; at += n) {
        n = 1 + sherd__entropy_below(&rnd, 2000);
        if (n > t->result.len - at) n = t->result.len - at;
        assert_int_equal(s.fill(s.ctx, at, out + at, n), SHERD_OK);
    }
    assert_memory_equal(out, want, t->result.len);
    size_t at = sherd__entropy_below(&rnd, t->result.len); /* backwards too */
    assert_int_equal(s.fill(s.ctx, at, out, 1), SHERD_OK);
    assert_int_equal(out[0], want[at]);
    s.free(s.ctx);
    free(out);
}

static void check_product(const plan *left, const plan *right, uint8_t dtype)
{
    block a = make_block(left), b = make_block(right);
    sherd__task t = product_task(a.f, b.f, dtype);
    uint8_t *out = noisy(t.result.len);
    double *want = reference(&a, &b, t.result.rows, t.result.cols);
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_OK);
    assert_values(out, dtype, want, t.result.rows * t.result.cols);
    assert_guard(out, t.result.len);
    check_stream(&t, &a, &b, out);
    free(out);
    free(want);
    free_block(&a);
    free_block(&b);
}

static void check_product_t(const plan *left, const plan *right, uint8_t dtype)
{
    block a = make_block(left), b = make_block(right);
    sherd__task t = product_task(a.f, b.f, dtype);
    t.op = SHERD__OP_MULTIPLY_T;
    t.result.rows = left->cols[0];
    t.result.len = t.result.rows * t.result.cols * sherd__wire_size(dtype);
    uint8_t *out = noisy(t.result.len);
    double *want = reference_t(&a, &b, t.result.rows, t.result.cols);
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_OK);
    assert_values(out, dtype, want, t.result.rows * t.result.cols);
    assert_guard(out, t.result.len);
    check_stream(&t, &a, &b, out);
    free(out);
    free(want);
    free_block(&a);
    free_block(&b);
}

static plan dense(uint32_t groups, uint32_t rows, uint32_t cols, uint8_t dtype)
{
    return (plan){ .groups = groups, .rows = { rows }, .cols = { cols }, .dtype = dtype };
}

static void products_of_all_dtypes_and_awkward_sizes_equal_the_loop(void **s)
{
    (void)s;
    static const uint8_t dtypes[] = { SHERD_F64, SHERD_F32, SHERD_U8,  SHERD_U16, SHERD_U32,
                                      SHERD_I8,  SHERD_I16, SHERD_I32, SHERD_I64 };
    static const uint32_t sizes[][3] = { { 1, 1, 1 },   { 0, 3, 2 },   { 3, 0, 2 },  { 3, 2, 0 },
                                         { 1, 17, 33 }, { 33, 17, 1 }, { 7, 13, 5 },
                                         { 64, 64, 64 } };
    for (size_t i = 0; i < sizeof dtypes; i++) {
        for (size_t j = 0; j < sizeof dtypes; j++) {
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
                plan a = dense((uint32_t)(i & 1), sizes[k][0], sizes[k][1], dtypes[i]);
                plan b = dense((uint32_t)(j & 1), sizes[k][1], sizes[k][2], dtypes[j]);
                check_product(&a, &b, (i + j + k) % 3 ? SHERD_F64 : SHERD_F32);
            }
        }
    }
}

static void products_beyond_one_panel_equal_the_loop(void **s)
{
    (void)s;
    static const uint32_t sizes[][3] = { { 1030, 9, 5 }, { 5, 2055, 9 }, { 3, 7, 1030 },
                                         { 1025, 3, 1025 }, { 2, 1024, 2 } };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        plan a = dense(0, sizes[k][0], sizes[k][1], SHERD_I16);
        plan b = dense(1, sizes[k][1], sizes[k][2], SHERD_F32);
        check_product(&a, &b, k & 1 ? SHERD_F32 : SHERD_F64);
        b.dtype = SHERD_F64;
        check_product(&a, &b, SHERD_F64);
    }
}

static void transposed_products_equal_the_loop(void **s)
{
    (void)s;
    static const uint8_t dtypes[] = { SHERD_F64, SHERD_U8, SHERD_F32, SHERD_I64 };
    /* rows of both, columns of left, columns of right */
    static const uint32_t sizes[][3] = { { 1, 1, 1 },    { 0, 3, 2 },    { 3, 0, 2 },
                                         { 3, 2, 0 },    { 1, 17, 33 },  { 2, 5, 3 },
                                         { 33, 17, 1 },  { 7, 1, 5 },    { 64, 63, 65 },
                                         { 2055, 9, 5 }, { 9, 1030, 5 }, { 3, 7, 1030 } };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (size_t i = 0; i < 16; i++) {
            plan a = dense((uint32_t)(i & 1), sizes[k][0], sizes[k][1], dtypes[i % 4]);
            plan b = dense((uint32_t)(k & 1), sizes[k][0], sizes[k][2], dtypes[i / 4]);
            check_product_t(&a, &b, (i + k) % 3 ? SHERD_F64 : SHERD_F32);
        }
    }
}

static void many_groups(plan *a, plan *b, uint32_t groups, uint32_t inner_max, uint32_t m)
{
    *a = (plan){ .groups = groups };
    *b = (plan){ .groups = groups };
    for (uint32_t q = 0; q < groups; q++) {
        bool empty = sherd__entropy_below(&rnd, 4) == 0;
        a->rows[q] = empty ? 0 : (uint32_t)sherd__entropy_below(&rnd, 70);
        a->cols[q] = b->rows[q] = (uint32_t)sherd__entropy_below(&rnd, inner_max + 1);
        b->cols[q] = m;
    }
}

static void grouped_products_with_empty_groups_equal_the_loop(void **s)
{
    (void)s;
    static const uint8_t dtypes[] = { SHERD_F64, SHERD_U8, SHERD_F32, SHERD_I32 };
    for (uint32_t k = 0; k < 200; k++) {
        plan a, b;
        uint32_t groups = 1 + (uint32_t)sherd__entropy_below(&rnd, 40);
        many_groups(&a, &b, groups, k % 4 ? 6 : 1, (uint32_t)sherd__entropy_below(&rnd, 40));
        a.dtype = dtypes[k % 4];
        b.dtype = dtypes[k / 4 % 4];
        check_product(&a, &b, k % 5 ? SHERD_F64 : SHERD_F32);
    }
}

static void outer_products_of_long_columns_equal_the_loop(void **s)
{
    (void)s;
    plan a = { .groups = 3, .rows = { 600, 0, 1500 }, .cols = { 1, 1, 1 }, .dtype = SHERD_U8 };
    plan b = { .groups = 3, .rows = { 1, 1, 1 }, .cols = { 129, 129, 129 }, .dtype = SHERD_F64 };
    check_product(&a, &b, SHERD_F64);
}

static void infinities_and_nan_come_out_as_ieee_says(void **s)
{
    (void)s;
    double a_values[] = { 1, INFINITY, 0, NAN }, b_values[] = { 2, 0, -1, 3 };
    plan a = dense(0, 4, 1, SHERD_F64), b = dense(0, 1, 4, SHERD_F64);
    sherd_fragment *u = encode(&a, a_values), *v = encode(&b, b_values);
    sherd__task t = product_task(u, v, SHERD_F64);
    double out[16];
    assert_int_equal(run(&t, u, v, (uint8_t *)out), SHERD_OK);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            double want = a_values[i] * b_values[j];
            assert_true(out[4 * i + j] == want || (isnan(want) && isnan(out[4 * i + j])));
        }
    }
    sherd__fragment_free(u);
    sherd__fragment_free(v);
}

/* --- modulo primes -------------------------------------------------------------------------- */

static const uint32_t primes[SHERD__PRIMES_MAX] = { 5931641, 8388593, 3, 65537 };

static sherd_fragment *residues(uint32_t groups, uint32_t rows, uint32_t cols, uint32_t r,
                                const uint32_t *values)
{
    size_t n = (size_t)rows * cols * r;
    sherd__fragment_info i = { .origin = SHERD__HIDDEN, .dtype = SHERD__RESIDUES,
                               .primes = (uint8_t)r, .groups = groups, .rows = rows, .cols = cols,
                               .len = 8 * (uint64_t)groups + 3 * n };
    uint8_t *body = malloc(i.len + 1);
    if (groups) {
        sherd__put_u32(body, rows);
        sherd__put_u32(body + 4, cols);
    }
    for (size_t k = 0; k < n; k++) {
        uint8_t *at = body + 8 * groups + 3 * k;
        sherd__put_u16(at, (uint16_t)values[k]);
        at[2] = (uint8_t)(values[k] >> 16);
    }
    return take(&i, body);
}

static uint32_t *random_residues(uint32_t rows, uint32_t cols, uint32_t r, bool worst)
{
    size_t each = (size_t)rows * cols;
    uint32_t *v = malloc((each * r + 1) * sizeof *v);
    for (size_t k = 0; k < each * r; k++) {
        uint32_t p = primes[k / each];
        v[k] = worst ? (p - 1) / 2 + (uint32_t)(k & 1) : (uint32_t)sherd__entropy_below(&rnd, p);
    }
    return v;
}

static sherd__task modular_task(uint32_t n, uint32_t m, uint32_t r)
{
    sherd__task t = { .job = 1, .task = 1, .attempt = 1, .op = SHERD__OP_MULTIPLY, .left = 1,
                      .right = 2, .primes_len = r };
    memcpy(t.primes, primes, sizeof primes);
    t.result = (sherd__fragment_info){ .origin = SHERD__RESULT, .dtype = SHERD__RESIDUES,
                                       .primes = (uint8_t)r, .rows = n, .cols = m,
                                       .len = (uint64_t)n * m * 3 * r };
    return t;
}

static uint32_t get24(const uint8_t *p)
{
    return sherd__get_u16(p) | (uint32_t)p[2] << 16;
}

bool __real_sherd__limbs_here(void);
bool __wrap_sherd__limbs_here(void);
static bool taken_apart;

bool __wrap_sherd__limbs_here(void)
{
    return !taken_apart && __real_sherd__limbs_here();
}

/* left is n x k, or k x n with its transpose meant. */
static void check_residues_so(uint32_t n, uint32_t k, uint32_t m, uint32_t r, bool worst,
                              bool transposed)
{
    uint32_t *a = random_residues(n, k, r, worst), *b = random_residues(k, m, r, worst);
    uint32_t rows = transposed ? k : n, cols = transposed ? n : k;
    sherd_fragment *u = residues(n & 1, rows, cols, r, a), *v = residues(m & 1, k, m, r, b);
    sherd__task t = modular_task(n, m, r);
    if (transposed) t.op = SHERD__OP_MULTIPLY_T;
    uint8_t *out = noisy(t.result.len);
    assert_int_equal(run(&t, u, v, out), SHERD_OK);
    assert_guard(out, t.result.len);
    for (uint32_t q = 0; q < r; q++) {
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < m; j++) {
                uint64_t sum = 0;
                for (uint32_t x = 0; x < k; x++) {
                    size_t at = transposed ? (size_t)x * n + i : (size_t)i * k + x;
                    sum = (sum + (uint64_t)a[(size_t)q * n * k + at] *
                                     b[((size_t)q * k + x) * m + j]) % primes[q];
                }
                assert_int_equal(get24(out + 3 * (((size_t)q * n + i) * m + j)), sum);
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
    static const uint32_t sizes[][3] = { { 1, 1, 1 },    { 0, 2, 3 },     { 2, 0, 3 },
                                         { 5, 7, 3 },    { 3, 1500, 4 },  { 2, 4097, 3 },
                                         { 1027, 5, 2 }, { 2, 3, 1027 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t r = 1; r <= SHERD__PRIMES_MAX; r++) {
            check_residues(sizes[i][0], sizes[i][1], sizes[i][2], r, r & 1, false);
            check_residues(sizes[i][0], sizes[i][1], sizes[i][2], r, i & 1, true);
        }
    }
}

static void integers_multiply_modulo_primes_group_by_group(void **s)
{
    (void)s;
    for (uint32_t round = 0; round < 30; round++) {
        plan pa, pb;
        many_groups(&pa, &pb, 1 + round % 9, round % 3 ? 5 : 1, round % 7);
        pa.dtype = round & 1 ? SHERD_I32 : SHERD_U8;
        pb.dtype = round & 2 ? SHERD_I64 : SHERD_I8;
        block a = make_block(&pa), b = make_block(&pb);
        size_t n = sherd__fragment_info_of(a.f)->rows, m = sherd__fragment_info_of(b.f)->cols;
        sherd__task t = modular_task((uint32_t)n, (uint32_t)m, 2);
        double *want = reference(&a, &b, n, m);
        uint8_t *out = noisy(t.result.len);
        assert_int_equal(run(&t, a.f, b.f, out), SHERD_OK);
        assert_guard(out, t.result.len);
        for (size_t i = 0; i < 2 * n * m; i++) {
            int64_t p = primes[i / (n * m)], w = (int64_t)want[i % (n * m)] % p;
            assert_int_equal(get24(out + 3 * i), w < 0 ? w + p : w);
        }
        free(out);
        free(want);
        free_block(&a);
        free_block(&b);
    }
}

static void integers_multiply_modulo_primes_transposed_and_beside_residues(void **s)
{
    (void)s;
    enum { N = 5, K = 1300, M = 3 };
    for (uint32_t round = 0; round < 4; round++) {
        plan pa = dense(round & 1, K, N, round & 1 ? SHERD_I32 : SHERD_U8);
        block a = make_block(&pa);
        uint32_t *b = random_residues(K, M, 3, round & 2);
        sherd_fragment *v = residues(0, K, M, 3, b);
        sherd__task t = modular_task(N, M, 3);
        t.op = SHERD__OP_MULTIPLY_T;
        uint8_t *out = noisy(t.result.len);
        assert_int_equal(run(&t, a.f, v, out), SHERD_OK);
        assert_guard(out, t.result.len);
        for (uint32_t e = 0; e < 3 * N * M; e++) {
            uint32_t q = e / (N * M), i = e / M % N, j = e % M;
            int64_t p = primes[q], sum = 0;
            for (uint32_t x = 0; x < K; x++)
                sum = (sum + (int64_t)a.values[x * N + i] * b[(q * K + x) * M + j]) % p;
            assert_int_equal(get24(out + 3 * e), sum < 0 ? sum + p : sum);
        }
        free(out);
        free(b);
        sherd__fragment_free(v);
        free_block(&a);
    }
}

/* Any that the type holds and a double does. */
static double any_integer(uint8_t dtype)
{
    int64_t x = (int64_t)(sherd__entropy_below(&rnd, UINT64_C(1) << 54)) - (INT64_C(1) << 53);
    return (double)(dtype == SHERD_I8    ? (int64_t)(int8_t)x
                    : dtype == SHERD_U8  ? (int64_t)(uint8_t)x
                    : dtype == SHERD_I32 ? (int64_t)(int32_t)x
                                         : x);
}

/* Residues by integers, in one panel of columns and in several: 50000 terms leave no room for 60
 * columns at a time. */
static void check_integers_so(uint32_t n, uint32_t k, uint32_t m, uint8_t dtype, bool transposed)
{
    enum { R = 2 };
    uint32_t *a = random_residues(n, k, R, k & 1);
    sherd_fragment *u = residues(n & 1, transposed ? k : n, transposed ? n : k, R, a);
    plan pb = dense(m & 1, k, m, dtype);
    double *b = malloc(((size_t)k * m + 1) * sizeof *b);
    for (size_t i = 0; i < (size_t)k * m; i++) b[i] = any_integer(dtype);
    sherd_fragment *v = encode(&pb, b);
    sherd__task t = modular_task(n, m, R);
    if (transposed) t.op = SHERD__OP_MULTIPLY_T;
    uint8_t *out = noisy(t.result.len);
    assert_int_equal(run(&t, u, v, out), SHERD_OK);
    assert_guard(out, t.result.len);
    for (uint32_t e = 0; e < R * n * m; e++) {
        uint32_t q = e / (n * m), i = e / m % n, j = e % m;
        int64_t p = primes[q], sum = 0;
        for (uint32_t x = 0; x < k; x++) {
            size_t at = (size_t)q * n * k + (transposed ? (size_t)x * n + i : (size_t)i * k + x);
            sum = (sum + (int64_t)b[(size_t)x * m + j] % p * a[at]) % p;
        }
        assert_int_equal(get24(out + 3 * e), sum < 0 ? sum + p : sum);
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
    static const uint32_t sizes[][3] = { { 1, 1, 1 },   { 0, 2, 3 },    { 2, 0, 3 },
                                         { 5, 7, 3 },   { 17, 65, 70 }, { 2, 3, 1100 },
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

static void integers_that_no_double_holds_are_refused_beside_residues(void **s)
{
    (void)s;
    enum { N = 3, K = 70, M = 5 };
    uint32_t *a = random_residues(N, K, 1, false);
    sherd_fragment *u = residues(0, N, K, 1, a);
    plan pb = dense(0, K, M, SHERD_I64);
    double b[K * M] = { [K * M - 1] = 0x1p60 };
    sherd_fragment *v = encode(&pb, b);
    sherd__task t = modular_task(N, M, 1);
    for (int way = 0; way < 2; way++) {
        taken_apart = way;
        uint8_t *out = noisy(t.result.len);
        assert_int_equal(run(&t, u, v, out), SHERD_ERANGE);
        assert_guard(out, t.result.len);
        free(out);
    }
    taken_apart = false;
    free(a);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
}

/* Windows of the rows of left, by the book: number l of row i, modulo prime number q. */
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
    uint32_t *a = random_residues(images, size, r, images & 1);
    uint32_t *b = random_residues(height, m, r, false);
    sherd_fragment *u = residues(images & 1, images, size, r, a), *v = residues(0, height, m, r, b);
    block bytes = { .f = NULL };
    if (narrow) {
        plan p = dense(0, height, m, SHERD_U8);
        bytes = make_block(&p);
        for (size_t k = 0; k < (size_t)r * height * m; k++)
            b[k] = (uint32_t)bytes.values[k % (height * m)];
    }
    sherd__task t = modular_task(n, m, r);
    t.windows = *w;
    if (transposed) t.op = SHERD__OP_MULTIPLY_T;
    uint8_t *out = noisy(t.result.len);
    assert_int_equal(run(&t, u, narrow ? bytes.f : v, out), SHERD_OK);
    assert_guard(out, t.result.len);
    for (uint32_t q = 0; q < r; q++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < m; j++) {
                uint64_t sum = 0;
                for (size_t l = 0; l < height; l++) {
                    uint64_t x = window_at(w, s.wide, s.count, images, a, q, transposed ? l : i,
                                           transposed ? i : l);
                    sum += x * (b[((size_t)q * height + l) * m + j] % primes[q]) % primes[q];
                }
                if (get24(out + 3 * ((q * (size_t)n + i) * m + j)) != sum % primes[q])
                    fail_msg("prime %u, %zu, %zu", q, i, j);
            }
    free(out);
    free(a);
    free(b);
    if (narrow) free_block(&bytes);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
}

/* The fourth has more windows than are laid out at a time, the last but one rather large ones. */
static void windows_of_residues_multiply_exactly(void **s)
{
    (void)s;
    static const sherd_windows of[] = {
        { 1, 1, 1, 1, 1, 0 }, { 5, 4, 2, 3, 1, 1 }, { 7, 6, 3, 2, 3, 0 }, { 40, 36, 1, 2, 1, 1 },
        { 9, 9, 31, 8, 1, 0 }, { 3, 3, 1, 3, 1, 2 },
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (unsigned k = 0; k < 8; k++) {
            taken_apart = k & 1;
            check_windows(&of[i], i == 3 ? 3 : (k >> 1) % 3 + 1, 1 + (uint32_t)(i + k) % 4,
                          1 + k % SHERD__PRIMES_MAX, i == 1 && k & 2, k & 4);
        }
    for (unsigned k = 0; k < 4; k++) {
        taken_apart = k & 1;
        check_windows(&of[1], 0, 2, 2, false, k & 2); /* sums of nothing */
    }
    taken_apart = false;
}

static void tasks_whose_windows_do_not_fit_are_refused(void **s)
{
    (void)s;
    const sherd_windows w = { 3, 4, 2, 2, 1, 0 }; /* 6 windows of 8 */
    uint32_t *a = random_residues(12, 25, 1, false);
    sherd_fragment *wide = residues(0, 2, 25, 1, a), *narrow = residues(0, 2, 23, 1, a);
    sherd_fragment *u = residues(0, 2, 24, 1, a), *v = residues(0, 8, 3, 1, a);
    sherd_fragment *d = residues(0, 12, 3, 1, a);
    plan p = dense(0, 2, 24, SHERD_U8), two = { .groups = 2, .rows = { 4, 4 }, .cols = { 3, 3 },
                                               .dtype = SHERD_U8 };
    block bytes = make_block(&p), groups = make_block(&two);
    sherd__task good = modular_task(12, 3, 1), t;
    uint8_t *out = noisy(good.result.len);
    good.windows = w;
    assert_int_equal(run(&good, u, v, out), SHERD_OK);
    assert_int_equal(run(&good, u, d, out), SHERD_ESHAPE);
    assert_int_equal(run(&good, v, v, out), SHERD_ESHAPE);
    assert_int_equal(run(&good, wide, v, out), SHERD_ESHAPE);
    assert_int_equal(run(&good, narrow, v, out), SHERD_ESHAPE);
    assert_int_equal(run(&good, bytes.f, v, out), SHERD_EUNSUPPORTED);
    assert_int_equal(run(&good, u, groups.f, out), SHERD_EUNSUPPORTED);
    assert_int_equal(run(&good, u, NULL, out), SHERD_EINVAL);
    t = good, t.op = SHERD__OP_MULTIPLY_T;
    assert_int_equal(run(&t, u, v, out), SHERD_ESHAPE);
    assert_int_equal(run(&t, u, d, out), SHERD_ESHAPE); /* the result has 8 rows */
    t = good, t.op = SHERD__OP_EXP;
    assert_int_equal(run(&t, u, NULL, out), SHERD_EUNSUPPORTED);
    t = good, t.result.rows = 2, t.result.len = 18; /* as of the images themselves */
    assert_int_equal(run(&t, u, v, out), SHERD_ESHAPE);
    t = good, t.windows.stride = 0;
    assert_int_equal(run(&t, u, v, out), SHERD_EUNSUPPORTED);
    t = good, t.windows.window = 4;
    assert_int_equal(run(&t, u, v, out), SHERD_EUNSUPPORTED);
    t = good, t.windows = (sherd_windows){ 1, 24, 1, 1100, 1, 1099 }; /* windows of 2^20 and more */
    assert_int_equal(run(&t, u, v, out), SHERD_EUNSUPPORTED);
    t = good, t.windows = (sherd_windows){ 3, 8, 1, 2, 1, 0 };
    assert_int_equal(run(&t, u, v, out), SHERD_ESHAPE);
    for (int way = 0; way < 2; way++) { /* a residue that is none, in a window */
        uint32_t bad[24] = { [7] = primes[0] };
        sherd_fragment *x = residues(0, 1, 24, 1, bad);
        taken_apart = way;
        t = modular_task(6, 3, 1), t.windows = w;
        assert_int_equal(run(&t, x, v, out), SHERD_ERANGE);
        sherd__fragment_free(x);
    }
    taken_apart = false;
    free(out);
    free(a);
    free_block(&bytes);
    free_block(&groups);
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
        *(at & 1 ? &b[1] : &a[0]) = primes[0] + at;
        sherd_fragment *u = transposed ? residues(0, 2, 1, 1, a) : residues(0, 1, 2, 1, a);
        sherd_fragment *v = residues(0, 2, 2, 1, b);
        sherd__task t = modular_task(1, 2, 1);
        if (transposed) t.op = SHERD__OP_MULTIPLY_T;
        uint8_t *out = noisy(t.result.len);
        assert_int_equal(run(&t, u, v, out), SHERD_ERANGE);
        free(out);
        sherd__fragment_free(u);
        sherd__fragment_free(v);
    }
    taken_apart = false;
}

static void integers_beyond_2_to_53_are_rejected_modulo_primes(void **s)
{
    (void)s;
    double a_values[] = { -0x1p60 }, b_values[] = { 1 };
    plan p = dense(0, 1, 1, SHERD_I64);
    sherd_fragment *u = encode(&p, a_values), *v = encode(&p, b_values);
    sherd__task t = modular_task(1, 1, 1);
    uint8_t out[64];
    assert_int_equal(run(&t, u, v, out), SHERD_ERANGE);
    t.op = SHERD__OP_MULTIPLY_T;
    assert_int_equal(run(&t, u, v, out), SHERD_ERANGE);
    assert_int_equal(run(&t, v, u, out), SHERD_ERANGE);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
}

/* --- element by element ----------------------------------------------------------------------- */

static double map_reference(uint32_t op, double x, double y)
{
    switch (op) {
    case SHERD__OP_SIGMOID: return 1 / (1 + exp(-x));
    case SHERD__OP_MINUS: return x - y;
    case SHERD__OP_SQUARE: return x * x;
    case SHERD__OP_TIMES: return x * y;
    case SHERD__OP_RELU: return x > 0 ? x : 0;
    case SHERD__OP_TANH: return tanh(x);
    default: return exp(x);
    }
}

static void maps_of_all_operations_and_dtypes_equal_libm_to_rounding(void **s)
{
    (void)s;
    static const uint8_t dtypes[] = { SHERD_F64, SHERD_F32, SHERD_U8, SHERD_I16 };
    static const uint32_t sizes[][2] = { { 1, 1 }, { 0, 5 }, { 5, 0 }, { 3, 5 }, { 2, 4099 } };
    for (uint32_t op = SHERD__OP_SIGMOID; op <= SHERD__OP_EXP; op++) {
        bool two = op == SHERD__OP_MINUS || op == SHERD__OP_TIMES;
        for (size_t k = 0; k < 20; k++) {
            plan p = dense((uint32_t)(k & 1), sizes[k % 5][0], sizes[k % 5][1], dtypes[k % 4]);
            plan o = dense(0, sizes[k % 5][0], sizes[k % 5][1], dtypes[k / 4 % 4]);
            uint8_t dtype = k % 3 ? SHERD_F64 : SHERD_F32;
            block a = make_block(&p), b = make_block(&o);
            sherd__task t = product_task(a.f, b.f, dtype);
            t.op = op;
            t.right = two ? 2 : 0;
            uint8_t *out = noisy(t.result.len);
            assert_int_equal(run(&t, a.f, two ? b.f : NULL, out), SHERD_OK);
            assert_guard(out, t.result.len);
            for (size_t i = 0; i < a.len; i++) {
                double want = map_reference(op, a.values[i], b.values[i]), got;
                float narrow;
                if (dtype == SHERD_F64) {
                    memcpy(&got, out + 8 * i, 8);
                } else {
                    memcpy(&narrow, out + 4 * i, 4);
                    got = (double)narrow;
                    want = (double)(float)want;
                }
                double slack = fabs(want) * (dtype == SHERD_F64 ? 0x1p-51 : 0x1p-22);
                if (!(got == want || fabs(got - want) <= slack))
                    fail_msg("op %u at %zu: %.17g, expected %.17g", op, i, got, want);
            }
            free(out);
            free_block(&a);
            free_block(&b);
        }
    }
}

/* --- what must not be computed ---------------------------------------------------------------- */

static void tasks_that_disagree_with_their_blocks_are_refused(void **s)
{
    (void)s;
    plan p = { .groups = 2, .rows = { 3, 2 }, .cols = { 4, 2 }, .dtype = SHERD_F64 };
    plan q = { .groups = 2, .rows = { 4, 2 }, .cols = { 5, 5 }, .dtype = SHERD_F64 };
    block a = make_block(&p), b = make_block(&q);
    sherd__task good = product_task(a.f, b.f, SHERD_F64), t;
    uint8_t *out = noisy(good.result.len);
    assert_int_equal(run(&good, a.f, b.f, out), SHERD_OK);

    t = good, t.result.rows++, t.result.len += 8 * t.result.cols; /* sound in itself */
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.result.cols--, t.result.len -= 8 * t.result.rows;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.result.len++;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.result.dtype = SHERD_U8;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    t = good, t.result.origin = SHERD__HIDDEN;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    t = good, t.result.primes = 1;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    t = good, t.op = 99;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    t = good, t.op = SHERD__OP_EXP;
    assert_int_equal(run(&t, a.f, NULL, out), SHERD_ESHAPE);
    t = good, t.primes_len = 1, t.primes[0] = 5931641;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_EINVAL);
    t = good, t.primes_len = SHERD__PRIMES_MAX + 1;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    assert_int_equal(run(&good, a.f, NULL, out), SHERD_EINVAL);
    assert_int_equal(run(&good, b.f, a.f, out), SHERD_ESHAPE);
    assert_int_equal(run(&good, a.f, a.f, out), SHERD_ESHAPE);
    free(out);
    free_block(&a);
    free_block(&b);
}

static void transposed_tasks_that_disagree_with_their_blocks_are_refused(void **s)
{
    (void)s;
    plan p = dense(1, 4, 3, SHERD_F64), q = dense(0, 4, 5, SHERD_F64);
    plan other = dense(0, 3, 5, SHERD_F64);
    plan two = { .groups = 2, .rows = { 2, 2 }, .cols = { 3, 3 }, .dtype = SHERD_F64 };
    plan wide = { .groups = 2, .rows = { 2, 2 }, .cols = { 5, 5 }, .dtype = SHERD_F64 };
    block a = make_block(&p), b = make_block(&q), c = make_block(&other), g = make_block(&two);
    block h = make_block(&wide);
    sherd__task good = product_task(a.f, b.f, SHERD_F64), t;
    good.op = SHERD__OP_MULTIPLY_T;
    good.result.rows = 3;
    good.result.len = 3 * 5 * 8;
    uint8_t *out = noisy(4 * 5 * 8);
    assert_int_equal(run(&good, a.f, b.f, out), SHERD_OK);
    assert_int_equal(run(&good, a.f, c.f, out), SHERD_ESHAPE); /* as if not transposed */
    assert_int_equal(run(&good, g.f, b.f, out), SHERD_ESHAPE); /* right but for its two groups */
    assert_int_equal(run(&good, a.f, h.f, out), SHERD_ESHAPE);
    assert_int_equal(run(&good, a.f, NULL, out), SHERD_EINVAL);
    t = good, t.result.rows = 4, t.result.len = 4 * 5 * 8;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.result.cols = 3, t.result.rows = 5;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.op = SHERD__OP_MULTIPLY;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.primes_len = 1, t.primes[0] = 5931641;
    assert_int_equal(run(&t, a.f, b.f, out), SHERD_EINVAL);
    free(out);
    free_block(&a);
    free_block(&b);
    free_block(&c);
    free_block(&g);
    free_block(&h);
}

static void moduli_that_are_not_odd_and_small_are_refused(void **s)
{
    (void)s;
    static const uint32_t bad[] = { 0, 1, 2, 4, 5931640, 1u << 23, UINT32_MAX };
    uint32_t one[1] = { 1 };
    sherd_fragment *u = residues(0, 1, 1, 1, one);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sherd__task t = modular_task(1, 1, 1);
        uint8_t out[64];
        t.primes[0] = bad[i];
        assert_int_equal(run(&t, u, u, out), SHERD_EUNSUPPORTED);
    }
    sherd__fragment_free(u);
}

/* --- the suite, once per backend ------------------------------------------------------------ */

static int open_all(void **s)
{
    (void)s;
    rnd = sherd__entropy_seeded(&seed_state, 20261121);
    for (size_t i = 0; i < BACKENDS; i++) {
        sherd__backend_options o = { .threads = 1, .quick = true };
        sherd__backend_caps caps;
        sherd_diag d = { .code = 0 };
        if (backends[i]->open(&contexts[i], &o, &caps, &d)) {
            print_error("%s: %s\n", backends[i]->name, d.message);
            return -1;
        }
        assert_int_equal(backends[i]->abi, SHERD__BACKEND_ABI);
        assert_string_equal(caps.name, backends[i]->name);
        assert_true(caps.gflops > 0 && caps.threads == 1 && caps.core[0]);
    }
    return 0;
}

static int close_all(void **s)
{
    (void)s;
    for (size_t i = 0; i < BACKENDS; i++) backends[i]->close(contexts[i]);
    return 0;
}

static int choose(void **state)
{
    backend = backends[(uintptr_t)*state];
    ctx = contexts[(uintptr_t)*state];
    return 0;
}

#define EACH(test, i) { #test, test, choose, NULL, (void *)(uintptr_t)(i) }

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(products_of_all_dtypes_and_awkward_sizes_equal_the_loop, 0),
        EACH(products_beyond_one_panel_equal_the_loop, 0),
        EACH(transposed_products_equal_the_loop, 0),
        EACH(grouped_products_with_empty_groups_equal_the_loop, 0),
        EACH(outer_products_of_long_columns_equal_the_loop, 0),
        EACH(infinities_and_nan_come_out_as_ieee_says, 0),
        EACH(residues_multiply_exactly_worst_values_included, 0),
        EACH(integers_multiply_modulo_primes_group_by_group, 0),
        EACH(integers_multiply_modulo_primes_transposed_and_beside_residues, 0),
        EACH(residues_multiply_with_integers_of_every_size, 0),
        EACH(integers_that_no_double_holds_are_refused_beside_residues, 0),
        EACH(a_residue_at_or_above_its_prime_is_rejected, 0),
        EACH(windows_of_residues_multiply_exactly, 0),
        EACH(tasks_whose_windows_do_not_fit_are_refused, 0),
        EACH(integers_beyond_2_to_53_are_rejected_modulo_primes, 0),
        EACH(maps_of_all_operations_and_dtypes_equal_libm_to_rounding, 0),
        EACH(tasks_that_disagree_with_their_blocks_are_refused, 0),
        EACH(transposed_tasks_that_disagree_with_their_blocks_are_refused, 0),
        EACH(moduli_that_are_not_odd_and_small_are_refused, 0),
    };
    unsetenv("OPENBLAS_CORETYPE"); /* which would turn tiles of bytes off */
    return cmocka_run_group_tests_name("node/backend", tests, open_all, close_all);
}
