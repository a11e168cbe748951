/*
 * One suite for every backend of a node, compared with a triple loop that shares no code with them.
 * Values are small integers (so that f64 sums are exact and bits must agree) or worst cases.
 * Residues are tested in test_backend_residues.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/backends/outer.h"
#include "node/check.h"
#include "tests/contract/node/backend_world.h"

/* left^T * right, by definition. */
static double *reference_t(const block *a, const block *b, size_t n, size_t m)
{
    double *c = calloc(n * m + 1, sizeof *c);
    for (size_t k = 0; k < a->p.rows[0]; k++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < m; j++)
                c[i * m + j] += a->values[k * n + i] * b->values[k * m + j];
    return c;
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

/* Streams the result, if the backend does so, in pieces of odd lengths, and compares it. */
static void check_stream(const sherd__task *t, const block *a, const block *b, const uint8_t *want)
{
    sherd__fragment_source s = { .fill = NULL };
    sherd_diag d = { .code = 0 };
    uint64_t memory = 0;
    if (!backend_now->stream) return;
    assert_int_equal(backend_now->stream(backend_ctx, t, a->f, b->f, &s, &memory, &d), SHERD_OK);
    if (!s.fill) return;
    uint8_t *out = out_new(t->result.len);
    for (size_t at = 0, n; at < t->result.len; at += n) {
        n = 1 + sherd__entropy_below(&backend_rnd, 2000);
        if (n > t->result.len - at) n = t->result.len - at;
        assert_int_equal(s.fill(s.ctx, at, out + at, n), SHERD_OK);
    }
    assert_memory_equal(out, want, t->result.len);
    size_t at = sherd__entropy_below(&backend_rnd, t->result.len); /* also backwards */
    assert_int_equal(s.fill(s.ctx, at, out, 1), SHERD_OK);
    assert_int_equal(out[0], want[at]);
    s.free(s.ctx);
    free(out);
}

static void check_product(const plan *left, const plan *right, uint8_t dtype)
{
    block a = block_new(left), b = block_new(right);
    sherd__task t = task_product(a.f, b.f, dtype);
    uint8_t *out = out_new(t.result.len);
    double *want = block_product(&a, &b, t.result.rows, t.result.cols);
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_OK);
    assert_values(out, dtype, want, t.result.rows * t.result.cols);
    out_guarded(out, t.result.len);
    check_stream(&t, &a, &b, out);
    free(out);
    free(want);
    block_free(&a);
    block_free(&b);
}

static void check_product_t(const plan *left, const plan *right, uint8_t dtype)
{
    block a = block_new(left), b = block_new(right);
    sherd__task t = task_product(a.f, b.f, dtype);
    t.op = SHERD__OP_MULTIPLY_T;
    t.result.rows = left->cols[0];
    t.result.len = t.result.rows * t.result.cols * sherd__wire_size(dtype);
    uint8_t *out = out_new(t.result.len);
    double *want = reference_t(&a, &b, t.result.rows, t.result.cols);
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_OK);
    assert_values(out, dtype, want, t.result.rows * t.result.cols);
    out_guarded(out, t.result.len);
    check_stream(&t, &a, &b, out);
    free(out);
    free(want);
    block_free(&a);
    block_free(&b);
}

static void products_of_all_dtypes_and_awkward_sizes_equal_the_loop(void **s)
{
    (void)s;
    static const uint8_t dtypes[] = { SHERD_F64, SHERD_F32, SHERD_U8,  SHERD_U16, SHERD_U32,
                                      SHERD_I8,  SHERD_I16, SHERD_I32, SHERD_I64 };
    static const uint32_t sizes[][3] = {
        { 1, 1, 1 },   { 0, 3, 2 },   { 3, 0, 2 },  { 3, 2, 0 },
        { 1, 17, 33 }, { 33, 17, 1 }, { 7, 13, 5 }, { 64, 64, 64 }
    };
    for (size_t i = 0; i < sizeof dtypes; i++) {
        for (size_t j = 0; j < sizeof dtypes; j++) {
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
                plan a = plan_dense((uint32_t)(i & 1), sizes[k][0], sizes[k][1], dtypes[i]);
                plan b = plan_dense((uint32_t)(j & 1), sizes[k][1], sizes[k][2], dtypes[j]);
                check_product(&a, &b, (i + j + k) % 3 ? SHERD_F64 : SHERD_F32);
            }
        }
    }
}

static void products_beyond_one_panel_equal_the_loop(void **s)
{
    (void)s;
    static const uint32_t sizes[][3] = {
        { 1030, 9, 5 }, { 5, 2055, 9 }, { 3, 7, 1030 }, { 1025, 3, 1025 }, { 2, 1024, 2 }
    };
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        plan a = plan_dense(0, sizes[k][0], sizes[k][1], SHERD_I16);
        plan b = plan_dense(1, sizes[k][1], sizes[k][2], SHERD_F32);
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
            plan a = plan_dense((uint32_t)(i & 1), sizes[k][0], sizes[k][1], dtypes[i % 4]);
            plan b = plan_dense((uint32_t)(k & 1), sizes[k][0], sizes[k][2], dtypes[i / 4]);
            check_product_t(&a, &b, (i + k) % 3 ? SHERD_F64 : SHERD_F32);
        }
    }
}

static void grouped_products_with_empty_groups_equal_the_loop(void **s)
{
    (void)s;
    static const uint8_t dtypes[] = { SHERD_F64, SHERD_U8, SHERD_F32, SHERD_I32 };
    for (uint32_t k = 0; k < 200; k++) {
        plan a, b;
        uint32_t groups = 1 + (uint32_t)sherd__entropy_below(&backend_rnd, 40);
        uint32_t cols = (uint32_t)sherd__entropy_below(&backend_rnd, 40);
        plan_groups(&a, &b, groups, k % 4 ? 6 : 1, cols);
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

/* Rows are longer than what is converted at a time. */
static void outer_products_of_long_rows_equal_the_loop(void **s)
{
    (void)s;
    static const uint8_t dtypes[] = { SHERD_U8, SHERD_F64, SHERD_I16 };
    for (uint32_t k = 0; k < 3; k++) {
        plan a = { .groups = 3, .rows = { 2, 0, 3 }, .cols = { 1, 1, 1 }, .dtype = SHERD_F32 };
        plan b = {
            .groups = 3, .rows = { 1, 1, 1 }, .cols = { 140001, 140001, 140001 }, .dtype = dtypes[k]
        };
        check_product(&a, &b, SHERD_F64);
    }
    plan empty = { .groups = 1, .rows = { 2 }, .cols = { 0 }, .dtype = SHERD_F64 };
    plan none = { .groups = 1, .rows = { 0 }, .cols = { 140001 }, .dtype = SHERD_F64 };
    check_product(&empty, &none, SHERD_F64);
}

/* Parts of any length from anywhere. */
static void an_outer_product_takes_little_memory_however_long_its_rows(void **s)
{
    enum { WIDE = 1000000, PARTS = 40, MOST = 100000 };
    (void)s;
    plan left = plan_dense(0, 3, 1, SHERD_F64), right = plan_dense(0, 1, WIDE, SHERD_U8);
    block a = block_new(&left), b = block_new(&right);
    sherd__fragment_source source;
    uint64_t memory = 0;
    assert_int_equal(sherd__outer_source(&source, a.f, b.f, &memory), SHERD_OK);
    assert_in_range(memory, 1, 600000);
    double *part = malloc(MOST * sizeof *part);
    for (unsigned k = 0; k < PARTS; k++) {
        uint64_t at = sherd__entropy_below(&backend_rnd, 3 * WIDE - MOST);
        uint64_t len = 1 + sherd__entropy_below(&backend_rnd, MOST);
        assert_int_equal(source.fill(source.ctx, 8 * at, (uint8_t *)part, 8 * len), SHERD_OK);
        for (uint64_t i = 0; i < len; i++, at++)
            if (part[i] != a.values[at / WIDE] * b.values[at % WIDE]) fail_msg("%u", k);
    }
    source.free(source.ctx);
    free(part);
    block_free(&a);
    block_free(&b);
}

static void infinities_and_nan_follow_ieee_rules(void **s)
{
    (void)s;
    double a_values[] = { 1, INFINITY, 0, NAN }, b_values[] = { 2, 0, -1, 3 };
    plan a = plan_dense(0, 4, 1, SHERD_F64), b = plan_dense(0, 1, 4, SHERD_F64);
    sherd__fragment *u = block_encode(&a, a_values), *v = block_encode(&b, b_values);
    sherd__task t = task_product(u, v, SHERD_F64);
    double out[16];
    assert_int_equal(backend_run(&t, u, v, (uint8_t *)out), SHERD_OK);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            double want = a_values[i] * b_values[j];
            assert_true(out[4 * i + j] == want || (isnan(want) && isnan(out[4 * i + j])));
        }
    }
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
            plan p = plan_dense((uint32_t)(k & 1), sizes[k % 5][0], sizes[k % 5][1], dtypes[k % 4]);
            plan o = plan_dense(0, sizes[k % 5][0], sizes[k % 5][1], dtypes[k / 4 % 4]);
            uint8_t dtype = k % 3 ? SHERD_F64 : SHERD_F32;
            block a = block_new(&p), b = block_new(&o);
            sherd__task t = task_product(a.f, b.f, dtype);
            t.op = op;
            t.right = two ? 2 : 0;
            uint8_t *out = out_new(t.result.len);
            assert_int_equal(backend_run(&t, a.f, two ? b.f : NULL, out), SHERD_OK);
            out_guarded(out, t.result.len);
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
            block_free(&a);
            block_free(&b);
        }
    }
}

/* ---- tasks that must not be computed --------------------------------------------------------- */

static void tasks_that_disagree_with_their_blocks_are_refused(void **s)
{
    (void)s;
    plan p = { .groups = 2, .rows = { 3, 2 }, .cols = { 4, 2 }, .dtype = SHERD_F64 };
    plan q = { .groups = 2, .rows = { 4, 2 }, .cols = { 5, 5 }, .dtype = SHERD_F64 };
    block a = block_new(&p), b = block_new(&q);
    sherd__task good = task_product(a.f, b.f, SHERD_F64), t;
    uint8_t *out = out_new(good.result.len);
    assert_int_equal(backend_run(&good, a.f, b.f, out), SHERD_OK);

    t = good, t.result.rows++, t.result.len += 8 * t.result.cols; /* consistent in itself */
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.result.cols--, t.result.len -= 8 * t.result.rows;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.result.len++;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.result.dtype = SHERD_U8;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    t = good, t.result.origin = SHERD__HIDDEN;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    t = good, t.result.primes = 1;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    t = good, t.op = 99;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    t = good, t.op = SHERD__OP_EXP;
    assert_int_equal(backend_run(&t, a.f, NULL, out), SHERD_ESHAPE);
    t = good, t.primes_len = 1, t.primes[0] = 5931641;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_EINVAL);
    t = good, t.primes_len = SHERD__RESIDUES_PRIMES_MAX + 1;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_EUNSUPPORTED);
    assert_int_equal(backend_run(&good, a.f, NULL, out), SHERD_EINVAL);
    assert_int_equal(backend_run(&good, b.f, a.f, out), SHERD_ESHAPE);
    assert_int_equal(backend_run(&good, a.f, a.f, out), SHERD_ESHAPE);
    free(out);
    block_free(&a);
    block_free(&b);
}

static void transposed_tasks_that_disagree_with_their_blocks_are_refused(void **s)
{
    (void)s;
    plan p = plan_dense(1, 4, 3, SHERD_F64), q = plan_dense(0, 4, 5, SHERD_F64);
    plan other = plan_dense(0, 3, 5, SHERD_F64);
    plan two = { .groups = 2, .rows = { 2, 2 }, .cols = { 3, 3 }, .dtype = SHERD_F64 };
    plan wide = { .groups = 2, .rows = { 2, 2 }, .cols = { 5, 5 }, .dtype = SHERD_F64 };
    block a = block_new(&p), b = block_new(&q), c = block_new(&other), g = block_new(&two);
    block h = block_new(&wide);
    sherd__task good = task_product(a.f, b.f, SHERD_F64), t;
    good.op = SHERD__OP_MULTIPLY_T;
    good.result.rows = 3;
    good.result.len = 3 * 5 * 8;
    uint8_t *out = out_new(4 * 5 * 8);
    assert_int_equal(backend_run(&good, a.f, b.f, out), SHERD_OK);
    assert_int_equal(backend_run(&good, a.f, c.f, out), SHERD_ESHAPE); /* as if not transposed */
    assert_int_equal(backend_run(&good, g.f, b.f, out), SHERD_ESHAPE); /* right except for the
                                                                        * groups */
    assert_int_equal(backend_run(&good, a.f, h.f, out), SHERD_ESHAPE);
    assert_int_equal(backend_run(&good, a.f, NULL, out), SHERD_EINVAL);
    t = good, t.result.rows = 4, t.result.len = 4 * 5 * 8;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.result.cols = 3, t.result.rows = 5;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.op = SHERD__OP_MULTIPLY;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_ESHAPE);
    t = good, t.primes_len = 1, t.primes[0] = 5931641;
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_EINVAL);
    free(out);
    block_free(&a);
    block_free(&b);
    block_free(&c);
    block_free(&g);
    block_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(products_of_all_dtypes_and_awkward_sizes_equal_the_loop),
        ALL(products_beyond_one_panel_equal_the_loop),
        ALL(transposed_products_equal_the_loop),
        ALL(grouped_products_with_empty_groups_equal_the_loop),
        ALL(outer_products_of_long_columns_equal_the_loop),
        ALL(outer_products_of_long_rows_equal_the_loop),
        EACH(an_outer_product_takes_little_memory_however_long_its_rows, 0),
        ALL(infinities_and_nan_follow_ieee_rules),
        ALL(maps_of_all_operations_and_dtypes_equal_libm_to_rounding),
        ALL(tasks_that_disagree_with_their_blocks_are_refused),
        ALL(transposed_tasks_that_disagree_with_their_blocks_are_refused),
    };
    unsetenv("OPENBLAS_CORETYPE"); /* a set variable would disable tiles of bytes */
    return cmocka_run_group_tests_name("node/backend", tests, backend_open_all, backend_close_all);
}
