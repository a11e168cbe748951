/*
 * One suite for every scheme: hidden, computed by a real backend, checked and folded, a product or
 * an operation is what one machine computes; an answer with one wrong entry is not accepted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "crypto/deal.h"
#include "crypto/elementwise.h"
#include "crypto/fragment_make.h"
#include "matrix/exact.h"
#include "matrix/funcs.h"
#include "matrix/reference.h"
#include "matrix/view.h"
#include "node/backend.h"

static void *backend;
static sherd_entropy_seeded rng_state;
static sherd_entropy rng;

static int open_backend(void **state)
{
    (void)state;
    sherd__backend_caps caps;
    sherd__backend_options opt = { .threads = 1, .quick = true };
    rng = sherd__entropy_seeded(&rng_state, 7);
    return sherd__backend_cpu.open(&backend, &opt, &caps, NULL);
}

static int close_backend(void **state)
{
    (void)state;
    sherd__backend_cpu.close(backend);
    return 0;
}

static size_t below(size_t n)
{
    return (size_t)sherd__entropy_below(&rng, n);
}

/* A matrix of one dtype; `zeros` of ten entries are zero. */
static void *random_matrix(size_t rows, size_t cols, sherd_dtype t, unsigned zeros)
{
    size_t n = rows * cols;
    uint8_t *data = malloc(n * sherd_dtype_size(t) + 1);
    for (size_t i = 0; i < n; i++) {
        double x = below(10) < zeros ? 0 : ((double)below(2001) - 1000) / 64;
        if (t == SHERD_F64) memcpy(data + 8 * i, &x, 8);
        if (t == SHERD_F32) memcpy(data + 4 * i, &(float){ (float)x }, 4);
        if (t == SHERD_U8) data[i] = (uint8_t)fabs(x);
        if (t == SHERD_I32) memcpy(data + 4 * i, &(int32_t){ (int32_t)x * 1000 }, 4);
    }
    return data;
}

typedef struct fixture {
    size_t n, k, m;
    sherd_dtype ta, tb;
    uint32_t slots, group;
    bool plain, exact, shuffle_rows, balanced, csr;
    unsigned odd_a, odd_b; /* entries that are NaN or infinite */
    unsigned bits, zeros;
    size_t panel_rows, tile_cols, cache;
} fixture;

typedef void (*visit)(const sherd__hiding *h, sherd__cell c, uint8_t *body, uint64_t len);

static uint64_t rows_answered; /* of the last run */

typedef struct total {
    uint64_t cells, csr_cells, bytes;
} total;

static total run_total; /* of its left blocks */

/* Runs every cell of a job in a random order through the backend. */
static void run_all(const sherd__hiding *h, uint32_t op, visit spoil)
{
    sherd__scheme_shape s;
    h->ops->shape(h->ctx, &s);
    rows_answered = 0;
    run_total = (total){ 0 };
    for (uint32_t t = 0; t < s.tiles; t++) {
        for (uint32_t p = 0; p < s.panels; p++) {
            for (uint32_t i = 0; i < s.slots; i++) {
                sherd__cell c = { i, t, p };
                sherd__cell_work w;
                assert_int_equal(h->ops->hide(h->ctx, c, &w), SHERD_OK);
                if (below(5) == 0 && !w.empty) { /* its node was lost: hidden once more */
                    sherd__fragment_free(w.left);
                    sherd__fragment_free(w.right);
                    assert_int_equal(h->ops->hide(h->ctx, c, &w), SHERD_OK);
                }
                if (w.empty) {
                    assert_int_equal(h->ops->fold(h->ctx, c, NULL), SHERD_OK);
                    continue;
                }
                sherd_fragment *right = w.right;
                rows_answered += w.result.rows;
                run_total.cells++;
                run_total.bytes += sherd__fragment_info_of(w.left)->len;
                run_total.csr_cells += sherd__fragment_info_of(w.left)->encoding == SHERD__CSR;
                if (s.resident) {
                    sherd_fragment *src;
                    assert_int_equal(h->ops->resident(h->ctx, i, t, &src), SHERD_OK);
                    const sherd__fragment_info *info = sherd__fragment_info_of(src);
                    uint8_t *bytes = sherd__alloc(info->len);
                    for (size_t at = 0; at < info->len;) { /* by odd pieces */
                        size_t n = 1 + below(97);
                        if (n > info->len - at) n = info->len - at;
                        assert_int_equal(sherd__fragment_read(src, at, bytes + at, n), SHERD_OK);
                        at += n;
                    }
                    assert_int_equal(sherd__fragment_take(&right, info, bytes, NULL, NULL), 0);
                    assert_int_equal(sherd__fragment_table_check(info, bytes, NULL), 0);
                    sherd__fragment_free(src);
                }
                sherd__task task = { .job = 1, .task = 1, .attempt = 1, .op = op,
                                     .result = w.result, .primes_len = s.primes_len };
                memcpy(task.primes, s.primes, sizeof task.primes);
                uint8_t *body = sherd__alloc(w.result.len);
                sherd_diag d = { 0 };
                assert_int_equal(sherd__fragment_table_check(sherd__fragment_info_of(w.left),
                                                             sherd__fragment_bytes(w.left), &d), 0);
                if (sherd__backend_cpu.run(backend, &task, w.left, right, body, &d))
                    fail_msg("%s", d.message);
                if (spoil) spoil(h, c, body, w.result.len);
                assert_int_equal(h->ops->check(h->ctx, c, body), SHERD_OK);
                assert_int_equal(h->ops->fold(h->ctx, c, body), SHERD_OK);
                sherd__free(body);
                sherd__fragment_free(w.left);
                sherd__fragment_free(right);
            }
        }
    }
    assert_int_equal(h->ops->finish(h->ctx), SHERD_OK);
}

static double odd(unsigned i)
{
    return (const double[]){ NAN, INFINITY, -INFINITY }[i % 3];
}

static bool same_kind(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b;
}

static uint64_t all_csr; /* cells of all products so far */

static void multiply(const fixture *f, visit spoil)
{
    void *da = random_matrix(f->n, f->k, f->ta, f->zeros);
    void *db = random_matrix(f->k, f->m, f->tb, 0);
    double *c = calloc(f->n * f->m + 1, 8), *ref = calloc(f->n * f->m + 1, 8);
    for (unsigned i = 0; i < f->odd_a && f->n > 0 && f->k > 0; i++)
        ((double *)da)[below(f->n * f->k)] = odd(i);
    for (unsigned i = 0; i < f->odd_b && f->k > 0 && f->m > 0; i++)
        ((double *)db)[below(f->k * f->m)] = odd(i);
    uint32_t *expo = calloc(f->k + 1, 4);
    uint8_t seed[32], key[32], rows_key[32];
    rng.fill(rng.ctx, seed, sizeof seed);
    sherd__perm_key(key, seed, SHERD__PERM_LABEL, 3, 0);
    sherd__perm_key(rows_key, seed, SHERD__ROWS_LABEL, 3, 0);
    assert_int_equal(sherd__exposures(key, f->k, f->slots, f->balanced, expo), 0);
    sherd__deal_params p = {
        .a = sherd_view_c(da, f->ta, f->n, f->k), .b = sherd_view_c(db, f->tb, f->k, f->m),
        .c = c, .ldc = f->m, .slots = f->slots, .exposures = f->plain ? NULL : expo,
        .group = f->group, .panel_rows = f->panel_rows, .tile_cols = f->tile_cols,
        .perm_cache = f->cache, .skip_zeros = !f->plain && !f->odd_b,
        .finite = !f->odd_a && !f->odd_b, .exact = f->exact,
        .entropy = rng,
    };
    if (!f->plain) p.perm = sherd__perm_from_key(key);
    if (f->shuffle_rows) p.rows = sherd__perm_from_key(rows_key);
    if (f->exact) {
        size_t primes = 0;
        assert_int_equal(sherd__fixed_choose(p.a, f->bits, "A", &p.fixed_a, NULL), 0);
        assert_int_equal(sherd__fixed_choose(p.b, f->bits, "B", &p.fixed_b, NULL), 0);
        if (!sherd__exact_in_f64(f->k, p.fixed_a.bound, p.fixed_b.bound))
            assert_int_equal(sherd__exact_primes_needed(f->k, p.fixed_a.bound, p.fixed_b.bound,
                                                        &sherd__primes_default, &primes), 0);
        p.primes_len = (uint32_t)primes;
        memcpy(p.primes, sherd__primes_default.p, sizeof p.primes);
        assert_int_equal(sherd__reference_exact(p.a, p.b, &p.fixed_a, &p.fixed_b, ref, f->m, NULL),
                         0);
    } else {
        assert_int_equal(sherd__reference_float(p.a, p.b, ref, f->m, NULL), 0);
    }
    sherd__hiding h;
    assert_int_equal(sherd__deal_open(&h, &p), 0);
    sherd__deal_sparse(&h, f->csr);
    run_all(&h, SHERD__OP_MULTIPLY, spoil);
    uint64_t skipped, fragments;
    sherd__deal_counts(&h, &skipped, &fragments);
    assert_int_equal(fragments, rows_answered); /* each once, however often it was hidden */
    assert_int_equal(sherd__deal_csr_cells(&h), run_total.csr_cells);
    all_csr += run_total.csr_cells;
    for (size_t i = 0; i < f->n * f->m; i++) {
        if (f->exact) assert_memory_equal(&c[i], &ref[i], 8);
        else if (!isfinite(ref[i]) ? !same_kind(c[i], ref[i])
                                   : fabs(c[i] - ref[i]) > 1e-10 * (double)(f->k + 1) * 250)
            fail_msg("entry %zu: %.17g, not %.17g", i, c[i], ref[i]);
    }
    h.ops->free(h.ctx);
    free(da);
    free(db);
    free(c);
    free(ref);
    free(expo);
}

static fixture random_fixture(void)
{
    static const sherd_dtype types[] = { SHERD_F64, SHERD_F32, SHERD_U8, SHERD_I32 };
    static const uint32_t groups[] = { 1, 2, 3, 5, SHERD__GROUP_ALL };
    fixture f = { .n = below(24), .k = below(24), .m = below(24), .ta = types[below(4)],
                  .tb = types[below(4)], .slots = 1 + (uint32_t)below(8), .group = groups[below(5)],
                  .plain = below(4) == 0, .exact = below(2), .balanced = below(2),
                  .bits = (unsigned[]){ 2, 9, 17, 26 }[below(4)], .zeros = (unsigned)below(11),
                  .panel_rows = 1 + below(9), .tile_cols = 1 + below(30),
                  .cache = below(2) ? 1 << 20 : 0 };
    f.shuffle_rows = !f.plain && below(3) == 0;
    f.csr = below(2);
    return f;
}

static void any_product_equals_the_local_one(void **state)
{
    (void)state;
    for (int i = 0; i < 400; i++) {
        fixture f = random_fixture();
        multiply(&f, NULL);
    }
}

/* What one hiding sends of A, in each of its forms. */
static void totals(sherd__hiding *h, bool csr, total *out)
{
    sherd__deal_sparse(h, csr);
    run_all(h, SHERD__OP_MULTIPLY, NULL);
    *out = run_total;
}

static void sparse_operands_travel_without_their_zeros(void **state)
{
    (void)state;
    enum { N = 90, K = 300, M = 20 };
    static const sherd_dtype types[] = { SHERD_U8, SHERD_F64 };
    static const uint32_t groups[] = { 16, SHERD__GROUP_ALL };
    for (unsigned round = 0; round < 16; round++) {
        sherd_dtype t = types[round & 1];
        unsigned zeros = round & 4 ? 10 : 8; /* of ten */
        void *a = random_matrix(N, K, t, zeros), *b = random_matrix(K, M, SHERD_F64, 0);
        double *c = calloc(N * M, 8), *once = calloc(N * M, 8);
        uint32_t expo[K];
        uint8_t key[32] = { 9 };
        assert_int_equal(sherd__exposures(key, K, 2, true, expo), 0);
        sherd__deal_params p = { .a = sherd_view_c(a, t, N, K),
                                 .b = sherd_view_c(b, SHERD_F64, K, M),
                                 .c = c, .ldc = M, .slots = 2, .exposures = round & 8 ? NULL : expo,
                                 .group = groups[round >> 1 & 1], .panel_rows = 30, .tile_cols = M,
                                 .skip_zeros = !(round & 8), .finite = true, .exact = true,
                                 .entropy = rng };
        if (!(round & 8)) p.perm = sherd__perm_from_key(key);
        assert_int_equal(sherd__fixed_choose(p.a, 17, "A", &p.fixed_a, NULL), 0);
        assert_int_equal(sherd__fixed_choose(p.b, 17, "B", &p.fixed_b, NULL), 0);
        sherd__hiding h;
        total dense, csr;
        assert_int_equal(sherd__deal_open(&h, &p), 0);
        totals(&h, false, &dense);
        memcpy(once, c, N * M * sizeof *c);
        assert_int_equal(sherd__deal_next(&h, p.a, c, M, true, &p.fixed_a), 0);
        totals(&h, true, &csr);
        assert_memory_equal(c, once, N * M * sizeof *c);
        assert_int_equal(dense.csr_cells, 0);
        /* Not a zero is left of a matrix of zeros, but where whole rows stay. */
        if (zeros < 10) assert_int_equal(csr.csr_cells, csr.cells);
        if (zeros < 10)
            assert_true((double)csr.bytes < (t == SHERD_U8 ? 0.75 : 0.6) * (double)dense.bytes);
        if (zeros == 10) assert_int_equal(csr.cells, round & 8 ? 4 : 0);
        h.ops->free(h.ctx);
        free(a), free(b), free(c), free(once);
    }
    assert_true(all_csr > 300); /* of the products at random */
}

static void a_panel_fuller_than_the_others_travels_dense(void **state)
{
    (void)state;
    uint8_t a[4 * 8] = { 0 }, key[32] = { 1 };
    double b[8 * 2] = { 1, 2, 3 }, c[4 * 2];
    uint32_t expo[8] = { 0 };
    memset(a, 7, 16);    /* two rows full, and one entry in the others */
    a[16 + 3] = 1;
    sherd__deal_params p = { .a = sherd_view_c(a, SHERD_U8, 4, 8),
                             .b = sherd_view_c(b, SHERD_F64, 8, 2), .c = c, .ldc = 2, .slots = 1,
                             .exposures = expo, .group = SHERD__GROUP_ALL, .panel_rows = 2,
                             .tile_cols = 2, .skip_zeros = true, .finite = true, .entropy = rng };
    p.perm = sherd__perm_from_key(key);
    sherd__hiding h;
    total all;
    assert_int_equal(sherd__deal_open(&h, &p), 0);
    totals(&h, true, &all);
    assert_int_equal(all.cells, 2);
    assert_int_equal(all.csr_cells, 1);
    assert_int_equal(all.bytes, (8 + 16) + (8 + 1 + 2)); /* dense; one row of one entry */
    h.ops->free(h.ctx);
}

static void sizes_zero_and_one_work(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++) {
        fixture f = random_fixture();
        f.n = i & 1;
        f.k = i >> 1 & 1;
        f.m = i >> 2 & 1;
        multiply(&f, NULL);
    }
}

static void a_product_beyond_2_53_is_exact(void **state)
{
    (void)state;
    fixture f = { .n = 9, .k = 40, .m = 11, .ta = SHERD_F64, .tb = SHERD_F64, .slots = 3,
                  .group = 4,
                  .exact = true, .bits = 26, .panel_rows = 4, .tile_cols = 7 };
    multiply(&f, NULL);
    f.plain = true;
    multiply(&f, NULL);
}

/* Every kind of wrong answer must be refused; then the right one is put back. */
static unsigned spoiled;

static void must_refuse(const sherd__hiding *h, sherd__cell c, const uint8_t *body,
                        const char *what)
{
    spoiled++;
    if (h->ops->check(h->ctx, c, body) != SHERD_EWRONG) fail_msg("%s was accepted", what);
}

/* Adds x to the first entry of a residue answer, modulo every prime; x = 0 takes that back. */
static void add_everywhere(uint8_t *body, uint64_t len, const sherd__scheme_shape *s, uint64_t x)
{
    static uint32_t before[4];
    for (uint32_t i = 0; i < s->primes_len; i++) {
        uint8_t *at = body + i * (len / s->primes_len);
        uint32_t v = (uint32_t)(at[0] | at[1] << 8 | at[2] << 16);
        if (x) before[i] = v;
        v = x ? (uint32_t)((v + x % s->primes[i]) % s->primes[i]) : before[i];
        at[0] = (uint8_t)v, at[1] = (uint8_t)(v >> 8), at[2] = (uint8_t)(v >> 16);
    }
}

static void spoil_exact(const sherd__hiding *h, sherd__cell c, uint8_t *body, uint64_t len)
{
    double *y = (double *)(void *)body;
    size_t n = len / 8, i = below(n), j = below(n);
    sherd__scheme_shape s;
    h->ops->shape(h->ctx, &s);
    if (s.primes_len) {
        uint8_t *b = body + below(len / 3) * 3, was = *b;
        *b ^= 1;
        must_refuse(h, c, body, "a residue that is one off");
        *b = was;
        add_everywhere(body, len, &s, UINT64_C(0x1fffffffffffffff));
        must_refuse(h, c, body, "an entry that is off by 2^61-1");
        add_everywhere(body, len, &s, 0);
        return;
    }
    double was = y[i];
    const double wrong[] = { was + 1, was - 1, was + 0.5, -was - 1, NAN, INFINITY, was + 0x1p53 };
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        y[i] = wrong[w];
        must_refuse(h, c, body, "an entry that is off");
    }
    y[i] = was;
    if (y[i] != y[j]) {
        double t = y[j];
        y[j] = y[i];
        y[i] = t;
        must_refuse(h, c, body, "two entries exchanged");
        y[i] = was;
        y[j] = t;
    }
}

static void one_wrong_entry_of_an_exact_answer_is_noticed(void **state)
{
    (void)state;
    spoiled = 0;
    for (int i = 0; i < 150; i++) {
        fixture f = random_fixture();
        f.exact = true;
        multiply(&f, spoil_exact);
    }
    assert_true(spoiled > 10000);
}

static void spoil_float(const sherd__hiding *h, sherd__cell c, uint8_t *body, uint64_t len)
{
    double *y = (double *)(void *)body;
    size_t i = below(len / 8);
    double was = y[i];
    const double wrong[] = { was + 1, was * 1.001 + 1e-3, -was - 1e-3, NAN, INFINITY };
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        y[i] = wrong[w];
        must_refuse(h, c, body, "an entry that is grossly off");
    }
    y[i] = was;
}

static void a_gross_error_in_a_float_answer_is_noticed(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++) {
        fixture f = random_fixture();
        f.exact = false;
        multiply(&f, spoil_float);
    }
}

static fixture odd_fixture(void)
{
    fixture f = random_fixture();
    f.exact = false;
    f.ta = f.tb = SHERD_F64;
    f.odd_a = (unsigned)below(3);
    f.odd_b = (unsigned)below(3) + !f.odd_a;
    f.csr = f.csr && !f.odd_b;
    return f;
}

static void not_a_number_and_infinities_come_out_as_locally(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        fixture f = odd_fixture();
        multiply(&f, NULL);
    }
}

/* Wherever the honest entry is finite an error is noticed, whatever NaN stands beside it; where it
 * is not, a finite one is. */
static void spoil_odd(const sherd__hiding *h, sherd__cell c, uint8_t *body, uint64_t len)
{
    double *y = (double *)(void *)body;
    size_t i = below(len / 8);
    double was = y[i];
    y[i] = isfinite(was) ? was + 1 : 7;
    must_refuse(h, c, body, isfinite(was) ? "a wrong entry beside NaN" : "a number for NaN");
    y[i] = isfinite(was) ? NAN : isnan(was) ? INFINITY : -was;
    must_refuse(h, c, body, "another kind of entry");
    y[i] = was;
}

static void nothing_hides_behind_not_a_number(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        fixture f = odd_fixture();
        multiply(&f, spoil_odd);
    }
}

/* --- element-wise ---------------------------------------------------------------------------- */

static void apply(uint32_t op, size_t n, size_t m, uint32_t slots, bool permute, visit spoil)
{
    double *a = random_matrix(n, m, SHERD_F64, 1), *b = random_matrix(n, m, SHERD_F64, 1);
    double *out = calloc(n * m + 1, 8), *ref = calloc(n * m + 1, 8);
    const double odd[] = { NAN, INFINITY, -INFINITY, 800, -800, 0.0, -0.0 };
    uint32_t *expo = calloc(m + 1, 4);
    uint8_t key[32];
    for (size_t i = 0; i < n * m && i < 7; i++) a[below(n * m)] = odd[i];
    rng.fill(rng.ctx, key, sizeof key);
    assert_int_equal(sherd__exposures(key, m, slots, 0, expo), 0);
    sherd__elementwise_params p = { .op = op, .a = sherd_view_c(a, SHERD_F64, n, m),
                                    .b = sherd_view_c(b, SHERD_F64, n, m), .out = out, .ldo = m,
                                    .slots = slots, .exposures = expo, .panel_rows = 1 + below(5),
                                    .perm_cache = below(2) ? 1 << 20 : 0, .entropy = rng };
    if (permute) p.perm = sherd__perm_from_key(key);
    sherd__hiding h;
    assert_int_equal(sherd__elementwise_open(&h, &p), 0);
    run_all(&h, op, spoil);
    assert_int_equal(sherd__map_f64(op, a, sherd__map_arity(op) == 2 ? b : NULL, n * m, ref), 0);
    for (size_t i = 0; i < n * m; i++)
        assert_true(memcmp(&out[i], &ref[i], 8) == 0 || (isnan(out[i]) && isnan(ref[i])));
    h.ops->free(h.ctx);
    free(a);
    free(b);
    free(out);
    free(ref);
    free(expo);
}

static void every_operation_equals_the_local_one(void **state)
{
    (void)state;
    for (uint32_t op = SHERD__OP_SIGMOID; op <= SHERD__OP_EXP; op++)
        for (int i = 0; i < 12; i++)
            apply(op, below(12), below(12), 1 + (uint32_t)below(5), i % 2, NULL);
}

static void spoil_all(const sherd__hiding *h, sherd__cell c, uint8_t *body, uint64_t len)
{
    uint8_t *copy = malloc(len);
    memcpy(copy, body, len);
    for (size_t i = 0; i < len / 8; i++) body[8 * i + 3] ^= 1;
    double *y = (double *)(void *)body;
    bool all_nan = true;
    for (size_t i = 0; i < len / 8; i++) all_nan = all_nan && isnan(y[i]);
    if (!all_nan) must_refuse(h, c, body, "an answer that is wrong everywhere");
    memcpy(body, copy, len);
    free(copy);
}

static void a_wrong_element_wise_answer_is_noticed(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        apply(SHERD__OP_TANH, 1 + below(9), 1 + below(9), 3, true, spoil_all);
}

/* --- bookkeeping ----------------------------------------------------------------------------- */

static void zero_entries_are_not_sent(void **state)
{
    (void)state;
    double a[6] = { 0, 2, 0, 0, 0, 5 }, b[4] = { 1, 2, 3, 4 }, c[6];
    uint32_t expo[2] = { 0, 0 };
    uint8_t key[32] = { 1 };
    sherd__deal_params p = { .a = sherd_view_c(a, SHERD_F64, 3, 2),
                             .b = sherd_view_c(b, SHERD_F64, 2, 2), .c = c, .ldc = 2, .slots = 1,
                             .exposures = expo, .group = 1, .panel_rows = 8, .tile_cols = 8,
                             .skip_zeros = true, .finite = true, .entropy = rng };
    p.perm = sherd__perm_from_key(key);
    sherd__hiding h;
    sherd__cell_work w;
    uint64_t skipped, sent;
    assert_int_equal(sherd__deal_open(&h, &p), 0);
    assert_int_equal(h.ops->hide(h.ctx, (sherd__cell){ 0, 0, 0 }, &w), 0);
    const sherd__fragment_info *info = sherd__fragment_info_of(w.left);
    assert_int_equal(info->rows, 2);                 /* two entries are not zero */
    assert_int_equal(info->len, 2 * 8 + 2 * 8);      /* the table of two groups, and they */
    sherd__deal_counts(&h, &skipped, &sent);
    assert_int_equal(skipped, 4);
    assert_int_equal(sent, 2);
    sherd__fragment_free(w.left);
    h.ops->free(h.ctx);
}

/* 40 columns whose sum depends on the order of adding; as they travel, and what they add up to. */
static void deal_forty(uint32_t group, double *sent, double *sum)
{
    double a[40], b[40];
    uint32_t expo[40] = { 0 };
    uint8_t key[32] = { 3 };
    for (unsigned i = 0; i < 40; i++) {
        a[i] = (i % 3 == 0 ? 1e16 : i % 3 == 1 ? 1 : -1e16) + i;
        b[i] = 1;
    }
    sherd__deal_params p = { .a = sherd_view_c(a, SHERD_F64, 1, 40),
                             .b = sherd_view_c(b, SHERD_F64, 40, 1), .c = sum, .ldc = 1, .slots = 1,
                             .exposures = expo, .group = group, .panel_rows = 8, .tile_cols = 8,
                             .finite = true, .entropy = rng };
    p.perm = sherd__perm_from_key(key);
    sherd__hiding h;
    sherd__cell_work w;
    assert_int_equal(sherd__deal_open(&h, &p), 0);
    assert_int_equal(h.ops->hide(h.ctx, (sherd__cell){ 0, 0, 0 }, &w), 0);
    const sherd__fragment_info *info = sherd__fragment_info_of(w.left);
    const uint8_t *body = sherd__fragment_bytes(w.left);
    assert_int_equal(info->len, 8 * info->groups + sizeof a);
    memcpy(sent, body + 8 * info->groups, sizeof a);
    sherd__fragment_free(w.left);
    run_all(&h, SHERD__OP_MULTIPLY, NULL);
    h.ops->free(h.ctx);
}

static void groups_travel_in_a_drawn_order_and_add_up_in_their_own(void **state)
{
    (void)state;
    double first[40], again[40], sum, now, ascending = 0;
    unsigned same = 0, steps = 0;
    deal_forty(1, first, &sum);
    for (unsigned i = 0; i < 40; i++)
        ascending += (i % 3 == 0 ? 1e16 : i % 3 == 1 ? 1 : -1e16) + i;
    assert_true(sum == ascending);
    for (unsigned k = 0; k < 10; k++) {
        deal_forty(1, again, &now);
        assert_true(now == sum); /* bits do not depend on the draw */
        for (unsigned i = 0; i < 40; i++) same += again[i] == first[i];
    }
    assert_true(same < 100); /* of 400, about 10 by chance */
    deal_forty(SHERD__GROUP_ALL, again, &now); /* one group: in A's order */
    for (unsigned i = 0; i < 40; i++) steps += again[i] == first[i];
    assert_true(steps < 12);
    deal_forty(7, first, &now);
    for (unsigned i = 0; i < 40; i++) { /* in a group columns ascend: the next one is the next */
        unsigned at = 0;
        while (at < 40 && first[at] != again[i]) at++;
        assert_true(at < 40);
        if (i % 7 != 6 && i < 39) assert_true(first[at + 1] == again[i + 1]);
    }
}

static bool nothing_drawn;

static void fill_or_nothing(void *ctx, void *out, size_t len)
{
    (void)ctx;
    if (nothing_drawn) memset(out, 0, len);
    else rng.fill(rng.ctx, out, len);
}

/* The only slot's cell, hidden and answered here. */
static double *answer_of(const sherd__hiding *h, sherd__cell c, const sherd__deal_params *p,
                         size_t rows, size_t cols)
{
    const double *a = p->a.data, *b = p->b.data;
    double unit = p->exact ? ldexp(1, p->fixed_a.scale + p->fixed_b.scale) : 1;
    sherd__cell_work w;
    double *y = calloc(rows * cols, sizeof *y);
    assert_int_equal(h->ops->hide(h->ctx, c, &w), SHERD_OK);
    assert_int_equal(w.result.rows, rows);
    assert_int_equal(w.result.cols, cols);
    sherd__fragment_free(w.left);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            for (size_t k = 0; k < p->a.cols; k++)
                y[i * cols + j] += a[(c.panel * rows + i) * p->a.cols + k] *
                                   b[k * p->b.cols + c.tile * cols + j] * unit;
    return y;
}

/* Weights that are all alike let a lie pass that takes from one row what it gives to another. r is
 * the cell's own, s that of its tile. */
static void what_was_hidden_before_a_wrong_answer_is_judged_by_new_vectors(void **state)
{
    (void)state;
    enum { N = 4, K = 3, M = 4, ROWS = 2, COLS = 2 };
    for (int round = 0; round < 4; round++) {
        double a_data[N * K], b_data[K * M], c[N * M] = { 0 };
        for (int i = 0; i < N * K; i++) a_data[i] = i + 1;
        for (int i = 0; i < K * M; i++) b_data[i] = 100 - 7 * i;
        sherd__deal_params p = { .a = sherd_view_c(a_data, SHERD_F64, N, K),
                                 .b = sherd_view_c(b_data, SHERD_F64, K, M), .c = c, .ldc = M,
                                 .slots = 1, .group = SHERD__GROUP_ALL, .panel_rows = ROWS,
                                 .tile_cols = COLS,
                                 .finite = true, .exact = round & 2,
                                 .entropy = { fill_or_nothing, NULL } };
        sherd__cell liar = { 0, 0, 0 }, other = { 0, round & 1, 1 };
        sherd__hiding h;
        assert_int_equal(sherd__fixed_choose(p.a, 17, "A", &p.fixed_a, NULL), 0);
        assert_int_equal(sherd__fixed_choose(p.b, 17, "B", &p.fixed_b, NULL), 0);
        assert_int_equal(sherd__deal_open(&h, &p), 0);
        double *wrong = answer_of(&h, liar, &p, ROWS, COLS);
        nothing_drawn = true;
        double *y = answer_of(&h, other, &p, ROWS, COLS);
        nothing_drawn = false;
        uint64_t skipped, before, after;
        sherd__deal_counts(&h, &skipped, &before);
        wrong[0] += 1;
        assert_int_equal(h.ops->check(h.ctx, liar, (uint8_t *)wrong), SHERD_EWRONG);
        y[0] += 1, y[COLS] -= 1;
        assert_int_equal(h.ops->check(h.ctx, other, (uint8_t *)y), SHERD_EWRONG);
        y[0] -= 1, y[COLS] += 1;
        assert_int_equal(h.ops->check(h.ctx, other, (uint8_t *)y), SHERD_OK);
        sherd__deal_counts(&h, &skipped, &after);
        assert_int_equal(before, after); /* weighed once more, not sent */
        h.ops->free(h.ctx);
        free(wrong);
        free(y);
    }
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    double a[12], b[12], c[9];
    uint32_t expo[4] = { 0, 1, 1, 0 };
    uint8_t key[32] = { 2 };
    for (int i = 0; i < 12; i++) a[i] = b[i] = i;
    for (size_t n = 1, seen = n; seen >= n; n++) {
        sherd__deal_params p = { .a = sherd_view_c(a, SHERD_F64, 3, 4),
                                 .b = sherd_view_c(b, SHERD_F64, 4, 3), .c = c, .ldc = 3,
                                 .slots = 2, .exposures = expo, .group = 1, .panel_rows = 2,
                                 .tile_cols = 2, .perm_cache = 1000, .finite = true,
                                 .entropy = rng };
        p.perm = sherd__perm_from_key(key);
        sherd__hiding h;
        sherd__alloc_fail_nth(n);
        int err = sherd__deal_open(&h, &p);
        if (!err) {
            sherd__cell_work w = { 0 };
            sherd_fragment *f = NULL;
            err = h.ops->hide(h.ctx, (sherd__cell){ 0, 0, 0 }, &w);
            if (!err) err = h.ops->resident(h.ctx, 0, 0, &f);
            sherd__fragment_free(w.left);
            sherd__fragment_free(f);
            h.ops->free(h.ctx);
        }
        seen = sherd__alloc_fail_nth(0);
        if (seen >= n) assert_int_equal(err, SHERD_ENOMEM);
        else assert_int_equal(err, SHERD_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_product_equals_the_local_one),
        cmocka_unit_test(sparse_operands_travel_without_their_zeros),
        cmocka_unit_test(a_panel_fuller_than_the_others_travels_dense),
        cmocka_unit_test(sizes_zero_and_one_work),
        cmocka_unit_test(a_product_beyond_2_53_is_exact),
        cmocka_unit_test(one_wrong_entry_of_an_exact_answer_is_noticed),
        cmocka_unit_test(a_gross_error_in_a_float_answer_is_noticed),
        cmocka_unit_test(not_a_number_and_infinities_come_out_as_locally),
        cmocka_unit_test(nothing_hides_behind_not_a_number),
        cmocka_unit_test(every_operation_equals_the_local_one),
        cmocka_unit_test(a_wrong_element_wise_answer_is_noticed),
        cmocka_unit_test(zero_entries_are_not_sent),
        cmocka_unit_test(groups_travel_in_a_drawn_order_and_add_up_in_their_own),
        cmocka_unit_test(what_was_hidden_before_a_wrong_answer_is_judged_by_new_vectors),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("crypto/scheme", tests, open_backend, close_backend);
}
