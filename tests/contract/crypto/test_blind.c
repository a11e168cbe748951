/*
 * `blind` through its vtable and a real backend: masked, computed, checked, unmasked, a product has
 * the bits of the fixed-point reference; what travels is A plus masks and nothing else; no wrong
 * answer is accepted; and nothing is hidden before masks were given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "crypto/blind.h"
#include "crypto/fragment_make.h"
#include "matrix/reference.h"
#include "matrix/residue.h"
#include "node/backend.h"

static void *backend;
static sherd_entropy_seeded rng_state;
static sherd_entropy rng;

static int open_backend(void **state)
{
    (void)state;
    sherd__backend_caps caps;
    sherd__backend_options opt = { .threads = 1, .quick = true };
    rng = sherd__entropy_seeded(&rng_state, 11);
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

/* One product: operands, masks, and R*B by a plain loop. */
typedef struct blinded {
    size_t n, k, m;
    uint32_t slots, primes_len;
    size_t panel_rows, tile_cols;
    sherd_dtype ta, tb;
    unsigned bits_a, bits_b, zeros; /* zeros: tenths of A */
    uint64_t first;                 /* row of the masks */
    uint8_t key[32];
    void *a, *b;
    double *c, *ref, *qa, *qb;      /* quantised */
    uint8_t *rb;                    /* by row of A, prime, column: packed */
    double *r;                      /* by prime, row, column */
    sherd__blind_params p;
    sherd__hiding h;
} blinded;

static void *random_matrix(size_t n, sherd_dtype t, unsigned zeros, unsigned bits)
{
    uint8_t *data = malloc(n * 8 + 1);
    double top = ldexp(1, (int)bits - 1) - 1;
    for (size_t i = 0; i < n; i++) {
        double x = below(10) < zeros ? 0 : ((double)below(2000001) - 1e6) / 1e6 * top;
        if (t == SHERD_F64) memcpy(data + 8 * i, &(double){ x / 3 }, 8);
        if (t == SHERD_U8) data[i] = (uint8_t)fmin(fabs(x), 255);
        if (t == SHERD_I32) memcpy(data + 4 * i, &(int32_t){ (int32_t)x }, 4);
    }
    return data;
}

static int read_rb(void *ctx, uint64_t row, uint32_t q, size_t from, size_t n, uint8_t *out)
{
    const blinded *x = ctx;
    assert_true(row >= x->first && row < x->first + x->n && q < x->primes_len && from + n <= x->m);
    memcpy(out, x->rb + 3 * (((row - x->first) * x->primes_len + q) * x->m + from), 3 * n);
    return SHERD_OK;
}

static void prepare_masks(blinded *x)
{
    sherd__masks *masks;
    assert_int_equal(sherd__masks_from_key(&masks, x->key), 0);
    x->r = calloc(x->primes_len * x->n * x->k + 1, sizeof *x->r);
    x->rb = calloc(x->n * x->primes_len * x->m + 1, 3);
    for (uint32_t q = 0; q < x->primes_len; q++) {
        uint32_t p = sherd__primes_default.p[q];
        double *r = x->r + q * x->n * x->k;
        assert_int_equal(sherd__blind_mask(masks, q, p, x->first, x->n, x->k, r), 0);
        assert_true(sherd__residue_canonical(r, x->n * x->k, p));
        for (size_t i = 0; i < x->n; i++)
            for (size_t j = 0; j < x->m; j++) {
                int64_t sum = 0;
                for (size_t l = 0; l < x->k; l++)
                    sum = (sum + (int64_t)r[i * x->k + l] * (int64_t)x->qb[l * x->m + j]) % p;
                uint32_t v = (uint32_t)(sum < 0 ? sum + p : sum);
                uint8_t *at = x->rb + 3 * ((i * x->primes_len + q) * x->m + j);
                for (int b = 0; b < 3; b++) at[b] = (uint8_t)(v >> 8 * b);
            }
    }
    sherd__masks_free(masks);
}

static void blinded_new(blinded *x)
{
    x->a = random_matrix(x->n * x->k, x->ta, x->zeros, x->bits_a);
    x->b = random_matrix(x->k * x->m, x->tb, 1, x->bits_b);
    x->c = malloc((x->n * x->m + 1) * 8);
    x->ref = calloc(x->n * x->m + 1, 8);
    x->qa = calloc(x->n * x->k + 1, 8);
    x->qb = calloc(x->k * x->m + 1, 8);
    memset(x->c, 0x7f, (x->n * x->m + 1) * 8);
    x->p = (sherd__blind_params){
        .a = sherd_view_c(x->a, x->ta, x->n, x->k), .b = sherd_view_c(x->b, x->tb, x->k, x->m),
        .c = x->c, .ldc = x->m, .slots = x->slots, .panel_rows = x->panel_rows,
        .tile_cols = x->tile_cols, .primes_len = x->primes_len, .source = { read_rb, x },
        .entropy = rng,
    };
    memcpy(x->p.primes, sherd__primes_default.p, sizeof x->p.primes);
    assert_int_equal(sherd__fixed_choose(x->p.a, x->bits_a, "A", &x->p.fixed_a, NULL), 0);
    assert_int_equal(sherd__fixed_choose(x->p.b, x->bits_b, "B", &x->p.fixed_b, NULL), 0);
    sherd__fixed_dense(&x->p.fixed_a, x->p.a, x->qa, x->k);
    sherd__fixed_dense(&x->p.fixed_b, x->p.b, x->qb, x->m);
    assert_int_equal(sherd__reference_exact(x->p.a, x->p.b, &x->p.fixed_a, &x->p.fixed_b, x->ref,
                                            x->m, NULL), 0);
    rng.fill(rng.ctx, x->key, sizeof x->key);
    prepare_masks(x);
    assert_int_equal(sherd__blind_open(&x->h, &x->p), 0);
}

static void blinded_free(blinded *x)
{
    x->h.ops->free(x->h.ctx);
    free(x->a);
    free(x->b);
    free(x->c);
    free(x->ref);
    free(x->qa);
    free(x->qb);
    free(x->rb);
    free(x->r);
}

/* What a node is sent is A + R modulo each prime, row by row, and nothing more. */
static void left_is_masked(const blinded *x, sherd__cell c, const sherd_fragment *left)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(left);
    const uint8_t *body = sherd__fragment_bytes(left);
    size_t row0 =
        c.slot * (x->n / x->slots) + (c.slot < x->n % x->slots ? c.slot : x->n % x->slots);
    row0 += c.panel * x->panel_rows;
    assert_int_equal(i->origin, SHERD__HIDDEN);
    assert_int_equal(i->dtype, SHERD__RESIDUES);
    assert_int_equal(i->primes, x->primes_len);
    assert_int_equal(i->cols, x->k);
    assert_int_equal(i->groups, 0);
    double *u = malloc((i->rows * x->k + 1) * 8);
    for (uint32_t q = 0; q < x->primes_len; q++) {
        uint32_t p = sherd__primes_default.p[q];
        assert_int_equal(sherd__residue_unpack(body + 3 * q * i->rows * x->k, i->rows * x->k, p, u,
                                               NULL), 0);
        for (size_t t = 0; t < i->rows * x->k; t++) {
            double want = x->qa[row0 * x->k + t] + x->r[q * x->n * x->k + row0 * x->k + t];
            sherd__residue_from_f64(&want, 1, p, &want);
            assert_true(u[t] == want);
        }
    }
    free(u);
}

static sherd_fragment *in_memory(sherd_fragment *source)
{
    const sherd__fragment_info *info = sherd__fragment_info_of(source);
    uint8_t *bytes = sherd__alloc(info->len);
    sherd_fragment *out;
    for (size_t at = 0; at < info->len;) { /* by odd pieces */
        size_t n = 1 + below(97);
        if (n > info->len - at) n = info->len - at;
        assert_int_equal(sherd__fragment_read(source, at, bytes + at, n), SHERD_OK);
        at += n;
    }
    assert_int_equal(sherd__fragment_take(&out, info, bytes, NULL, NULL), 0);
    sherd__fragment_free(source);
    return out;
}

/* The node's answer to a cell; work.left stays. NULL where the cell is empty. */
static uint8_t *answer(const blinded *x, sherd__cell c, sherd__cell_work *work)
{
    sherd__scheme_shape s;
    sherd_fragment *right;
    sherd_diag d = { 0 };
    x->h.ops->shape(x->h.ctx, &s);
    assert_int_equal(x->h.ops->hide(x->h.ctx, c, work), SHERD_OK);
    if (work->empty) return NULL;
    assert_true(work->result.len <= s.result_max);
    assert_null(work->right);
    assert_int_equal(x->h.ops->resident(x->h.ctx, c.slot, c.tile, &right), SHERD_OK);
    right = in_memory(right);
    sherd__task task = { .job = 1, .task = 1, .attempt = 1, .op = SHERD__OP_MULTIPLY,
                         .result = work->result, .primes_len = s.primes_len };
    memcpy(task.primes, s.primes, sizeof task.primes);
    uint8_t *body = malloc(work->result.len + 1);
    if (sherd__backend_cpu.run(backend, &task, work->left, right, body, &d))
        fail_msg("%s", d.message);
    sherd__fragment_free(right);
    return body;
}

static void run_cell(blinded *x, sherd__cell c)
{
    sherd__cell_work w, again;
    uint64_t a, b;
    uint8_t *body = answer(x, c, &w);
    x->h.ops->entries(x->h.ctx, c, &a, &b);
    assert_int_equal(a, 0);
    if (body) {
        left_is_masked(x, c, w.left);
        if (below(4) == 0) { /* its node was lost: the same bytes go to another one */
            assert_int_equal(x->h.ops->hide(x->h.ctx, c, &again), SHERD_OK);
            assert_memory_equal(sherd__fragment_bytes(w.left), sherd__fragment_bytes(again.left),
                                sherd__fragment_info_of(w.left)->len);
            sherd__fragment_free(again.left);
        }
        assert_int_equal(x->h.ops->check(x->h.ctx, c, body), SHERD_OK);
    }
    assert_int_equal(x->h.ops->fold(x->h.ctx, c, body), SHERD_OK);
    sherd__fragment_free(w.left);
    free(body);
}

static void run_product(blinded *x)
{
    sherd__scheme_shape s;
    blinded_new(x);
    assert_int_equal(sherd__blind_arm(&x->h, x->key, x->first), 0);
    x->h.ops->shape(x->h.ctx, &s);
    assert_true(s.shared && s.resident && !s.ordered && s.threshold == 0);
    for (uint32_t t = s.tiles; t-- > 0;)
        for (uint32_t p = 0; p < s.panels; p++)
            for (uint32_t i = 0; i < s.slots; i++) run_cell(x, (sherd__cell){ i, t, p });
    assert_int_equal(x->h.ops->finish(x->h.ctx), SHERD_OK);
    for (size_t i = 0; i < x->n * x->m; i++)
        if (memcmp(&x->c[i], &x->ref[i], 8) != 0)
            fail_msg("%zu x %zu x %zu, entry %zu: %.17g, not %.17g", x->n, x->k, x->m, i, x->c[i],
                     x->ref[i]);
    blinded_free(x);
}

static blinded random_case(void)
{
    static const sherd_dtype types[] = { SHERD_F64, SHERD_U8, SHERD_I32 };
    blinded x = { .n = below(24), .k = below(24), .m = below(24), .slots = 1 + (uint32_t)below(8),
                  .panel_rows = 1 + below(9), .tile_cols = 1 + below(30), .ta = types[below(3)],
                  .tb = types[below(3)], .bits_a = 2 + (unsigned)below(25),
                  .bits_b = 2 + (unsigned)below(25), .zeros = (unsigned)below(11),
                  .first = below(3) * UINT64_C(1000000) };
    size_t need;
    assert_int_equal(
        sherd__exact_primes_needed(24, UINT64_C(1) << (x.bits_a - 1 < 8 ? 8 : x.bits_a - 1),
                                   UINT64_C(1) << (x.bits_b - 1 < 8 ? 8 : x.bits_b - 1),
                                   &sherd__primes_default, &need),
        0);
    x.primes_len = (uint32_t)(need + below(5 - need));
    return x;
}

static void any_product_has_the_bits_of_the_reference(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        blinded x = random_case();
        run_product(&x);
    }
}

static void sizes_zero_and_one_work(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++) {
        blinded x = random_case();
        x.n = i & 1;
        x.k = i >> 1 & 1;
        x.m = i >> 2 & 1;
        run_product(&x);
    }
}

static void a_panel_longer_than_a_run_works(void **state)
{
    (void)state;
    blinded x = { .n = 70, .k = 2000, .m = 5, .slots = 1, .panel_rows = 70, .tile_cols = 5,
                  .bits_a = 26, .bits_b = 26, .primes_len = 4 };
    x.ta = x.tb = SHERD_F64;
    run_product(&x);
}

static void nothing_is_hidden_before_masks_are_given(void **state)
{
    (void)state;
    blinded x = { .n = 3, .k = 4, .m = 2, .slots = 1, .panel_rows = 3, .tile_cols = 2,
                  .ta = SHERD_F64,
                  .tb = SHERD_F64, .bits_a = 17, .bits_b = 17, .primes_len = 2 };
    sherd__cell_work w;
    blinded_new(&x);
    assert_int_equal(x.h.ops->hide(x.h.ctx, (sherd__cell){ 0, 0, 0 }, &w), SHERD_EINTERNAL);
    assert_null(w.left);
    assert_int_equal(sherd__blind_arm(&x.h, x.key, 0), 0);
    assert_int_equal(sherd__blind_arm(&x.h, x.key, 3), SHERD_EINVAL); /* once */
    assert_int_equal(x.h.ops->hide(x.h.ctx, (sherd__cell){ 0, 0, 0 }, &w), SHERD_OK);
    sherd__fragment_free(w.left);
    blinded_free(&x);
}

/* Sizes and number of what travels are those of shapes alone: an A of zeros, one of ones. */
static void zeros_travel_like_any_value(void **state)
{
    (void)state;
    for (unsigned zeros = 0; zeros <= 10; zeros += 10) {
        blinded x = { .n = 8, .k = 16, .m = 4, .slots = 2, .panel_rows = 4, .tile_cols = 4,
                      .ta = SHERD_F64, .tb = SHERD_F64, .bits_a = 17, .bits_b = 17, .primes_len = 2,
                      .zeros = zeros };
        sherd__cell_work w;
        blinded_new(&x);
        assert_int_equal(sherd__blind_arm(&x.h, x.key, 0), 0);
        assert_int_equal(x.h.ops->hide(x.h.ctx, (sherd__cell){ 1, 0, 0 }, &w), SHERD_OK);
        assert_false(w.empty);
        assert_int_equal(sherd__fragment_info_of(w.left)->rows, 4);
        assert_int_equal(sherd__fragment_info_of(w.left)->len, 4 * 16 * 3 * 2);
        sherd__fragment_free(w.left);
        blinded_free(&x);
    }
}

/* Masks of two primes, of two rows, of two keys are not the same number twice; a chi-squared of the
 * masked values of a constant A is that of uniform ones. */
static void what_travels_looks_uniform_in_every_prime(void **state)
{
    (void)state;
    enum { BINS = 256, N = 64, K = 512 };
    blinded x = { .n = N, .k = K, .m = 1, .slots = 1, .panel_rows = N, .tile_cols = 1,
                  .ta = SHERD_U8,
                  .tb = SHERD_U8, .bits_a = 9, .bits_b = 9, .primes_len = 2, .zeros = 10 };
    sherd__cell_work w;
    blinded_new(&x);
    assert_int_equal(sherd__blind_arm(&x.h, x.key, 0), 0);
    assert_int_equal(x.h.ops->hide(x.h.ctx, (sherd__cell){ 0, 0, 0 }, &w), SHERD_OK);
    const uint8_t *body = sherd__fragment_bytes(w.left);
    size_t equal = 0;
    for (unsigned what = 0; what < 3; what++) { /* each prime, and their difference */
        double count[BINS] = { 0 }, chi = 0;
        for (size_t i = 0; i < N * K; i++) {
            uint32_t v[2];
            for (unsigned q = 0; q < 2; q++) {
                const uint8_t *at = body + 3 * (q * (size_t)N * K + i);
                v[q] = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
            }
            uint32_t p = sherd__primes_default.p[what & 1], d = (v[0] + p - v[1] % p) % p;
            count[(uint64_t)(what < 2 ? v[what] : d) * BINS / p]++;
            equal += what == 2 && v[0] == v[1];
        }
        for (unsigned b = 0; b < BINS; b++) {
            double e = (double)N * K / BINS;
            chi += (count[b] - e) * (count[b] - e) / e;
        }
        if (chi > 255 + 6 * sqrt(2 * 255))
            fail_msg("chi-squared of %u: %g with 255 degrees", what, chi);
    }
    assert_true(equal < 4); /* 32768 values of 6 million */
    sherd__fragment_free(w.left);
    blinded_free(&x);
}

/* ---- wrong answers --------------------------------------------------------------------------- */

static uint32_t get3(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
}

static void put3(uint8_t *at, uint32_t v)
{
    for (int b = 0; b < 3; b++) at[b] = (uint8_t)(v >> 8 * b);
}

/* One lie, of many kinds; false where it happens to be none. */
static bool spoil(const blinded *x, const sherd__fragment_info *r, uint8_t *body,
                  const uint8_t *other)
{
    size_t each = r->rows * r->cols, q = below(x->primes_len), i = below(each), j = below(each);
    uint32_t p = sherd__primes_default.p[q];
    uint8_t *at = body + 3 * (q * each + i), *to = body + 3 * (q * each + j);
    uint32_t v = get3(at), w = get3(to);
    switch (below(7)) {
    case 0: put3(at, (v + 1) % p); return true;
    case 1: put3(at, (v + p - 1) % p); return true;
    case 2: put3(at, (uint32_t)below(p)); return get3(at) != v;
    case 3: put3(at, p + (uint32_t)below((1u << 24) - p)); return true; /* no residue */
    case 4: put3(at, w), put3(to, v); return v != w;                    /* permuted */
    case 5: put3(at, (v + 1) % p), put3(to, (get3(to) + p - 1) % p); return i != j;
    default: memcpy(body, other, r->len); return true;                  /* of another cell */
    }
}

static void no_wrong_answer_is_accepted(void **state)
{
    (void)state;
    unsigned lies = 0;
    while (lies < 10000) {
        blinded x = random_case();
        sherd__cell_work w, v;
        x.n = 2 + below(8);
        x.k = 1 + below(8);
        x.m = 1 + below(8);
        x.slots = 1;
        x.panel_rows = x.n / 2;
        x.tile_cols = x.m;
        blinded_new(&x);
        assert_int_equal(sherd__blind_arm(&x.h, x.key, x.first), 0);
        sherd__cell c = { 0, 0, 0 };
        uint8_t *other = answer(&x, (sherd__cell){ 0, 0, 1 }, &v), *right = answer(&x, c, &w);
        uint8_t *body = malloc(w.result.len);
        for (int i = 0; i < 64; i++) {
            memcpy(body, right, w.result.len);
            if (!spoil(&x, &w.result, body, other)) continue;
            if (memcmp(body, right, w.result.len) == 0) continue;
            lies++;
            assert_int_equal(x.h.ops->check(x.h.ctx, c, body), SHERD_EWRONG);
            if (i % 8 == 0) { /* under new check vectors too */
                sherd__fragment_free(w.left);
                assert_int_equal(x.h.ops->hide(x.h.ctx, c, &w), 0);
            }
        }
        assert_int_equal(x.h.ops->check(x.h.ctx, c, right), SHERD_OK);
        free(body);
        free(right);
        free(other);
        sherd__fragment_free(w.left);
        sherd__fragment_free(v.left);
        blinded_free(&x);
    }
}

static bool zeros_drawn;

static void fill_or_zero(void *ctx, void *out, size_t len)
{
    (void)ctx;
    if (zeros_drawn) memset(out, 0, len);
    else rng.fill(rng.ctx, out, len);
}

/* Vectors of zeros let everything pass: a lie that is found was judged by others. r is the cell's
 * own, s that of its tile. */
static void what_was_hidden_before_a_wrong_answer_is_judged_by_new_vectors(void **state)
{
    (void)state;
    for (int of_tile = 0; of_tile < 2; of_tile++) {
        blinded x = { .n = 6, .k = 4, .m = 5, .slots = 1, .panel_rows = 3, .tile_cols = 3,
                      .ta = SHERD_F64, .tb = SHERD_F64, .bits_a = 17, .bits_b = 17,
                      .primes_len = 2 };
        sherd__cell_work v, w;
        sherd__cell liar = { 0, 0, 0 }, other = { 0, of_tile ? 1u : 0u, 1 };
        blinded_new(&x);
        x.h.ops->free(x.h.ctx);
        x.p.entropy = (sherd_entropy){ fill_or_zero, NULL };
        assert_int_equal(sherd__blind_open(&x.h, &x.p), 0);
        assert_int_equal(sherd__blind_arm(&x.h, x.key, x.first), 0);
        uint8_t *wrong = answer(&x, liar, &v);
        zeros_drawn = true;
        uint8_t *body = answer(&x, other, &w);
        zeros_drawn = false;
        put3(wrong, (get3(wrong) + 1) % sherd__primes_default.p[0]);
        assert_int_equal(x.h.ops->check(x.h.ctx, liar, wrong), SHERD_EWRONG);
        uint32_t true_value = get3(body);
        put3(body, (true_value + 1) % sherd__primes_default.p[0]);
        assert_int_equal(x.h.ops->check(x.h.ctx, other, body), SHERD_EWRONG);
        put3(body, true_value);
        assert_int_equal(x.h.ops->check(x.h.ctx, other, body), SHERD_OK);
        sherd__fragment_free(v.left);
        sherd__fragment_free(w.left);
        free(wrong);
        free(body);
        blinded_free(&x);
    }
}

static void a_failed_allocation_is_said_and_leaks_nothing(void **state)
{
    (void)state;
    blinded x = { .n = 5, .k = 4, .m = 6, .slots = 2, .panel_rows = 2, .tile_cols = 3,
                  .ta = SHERD_F64,
                  .tb = SHERD_F64, .bits_a = 17, .bits_b = 17, .primes_len = 2 };
    sherd__cell_work w;
    sherd__hiding h;
    blinded_new(&x);
    for (size_t n = 1;; n++) {
        sherd__alloc_fail_nth(n);
        int err = sherd__blind_open(&h, &x.p);
        if (!err) err = sherd__blind_arm(&h, x.key, 0);
        if (!err) err = h.ops->hide(h.ctx, (sherd__cell){ 0, 1, 0 }, &w);
        size_t made = sherd__alloc_fail_nth(0);
        if (h.ops) h.ops->free(h.ctx);
        if (!err) break;
        assert_int_equal(err, SHERD_ENOMEM);
        assert_true(made >= n && n < 60);
    }
    sherd__fragment_free(w.left);
    blinded_free(&x);
}

/* Tiles, attempts and checks read A again: what its masks have hidden once must still be there. */
static void rows_that_changed_are_not_hidden_again(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        blinded x = { .n = 8 + below(30), .k = 1 + below(20), .m = 2 + below(12),
                      .slots = 1 + (uint32_t)below(3), .panel_rows = 1 + below(5),
                      .primes_len = 3, .ta = SHERD_I32, .tb = SHERD_I32, .bits_a = 17,
                      .bits_b = 17, .first = below(1000) };
        x.tile_cols = 1 + below(x.m); /* the cells of one tile hide all rows */
        blinded_new(&x);
        assert_int_equal(sherd__blind_arm(&x.h, x.key, x.first), 0);
        sherd__scheme_shape s;
        sherd__cell_work w;
        x.h.ops->shape(x.h.ctx, &s);
        size_t at = below(x.n * x.k), cells = (size_t)s.panels * s.slots, hidden = 0;
        for (int round = 0; round < 2; round++) { /* round 1: hidden again, of the last tile */
            bool refused = false;
            for (size_t c = 0; c < cells; c++) {
                sherd__cell cell = { (uint32_t)(c % s.slots), round ? s.tiles - 1 : 0,
                                     (uint32_t)(c / s.slots) };
                int err = x.h.ops->hide(x.h.ctx, cell, &w);
                if (err) assert_null(w.left);
                if (!w.empty) assert_int_equal(err, refused ? SHERD_EIO : err);
                refused = refused || err == SHERD_EIO;
                if (!err && !w.empty) hidden++;
                sherd__fragment_free(w.left);
            }
            assert_int_equal(refused, round);
            assert_int_equal(x.h.ops->changed(x.h.ctx),
                             round ? SHERD__LEFT_CHANGED : SHERD__UNCHANGED);
            ((int32_t *)x.a)[at] ^= 1;
        }
        assert_true(hidden > 0);
        blinded_free(&x);
    }
}

/* A sum of a mask and a number far beyond 2^53 is the number: sent, it would not be hidden. */
static void rows_beyond_what_masks_hide_are_not_sent(void **state)
{
    (void)state;
    static const double far[] = { 1e25, -1e25, 1e17, NAN, INFINITY };
    for (size_t i = 0; i < 50; i++) {
        blinded x = { .n = 8 + below(30), .k = 1 + below(20), .m = 2 + below(12), .slots = 1,
                      .panel_rows = 1 + below(5), .primes_len = 3, .ta = SHERD_F64,
                      .tb = SHERD_F64, .bits_a = 17, .bits_b = 17, .first = below(1000) };
        x.tile_cols = x.m;
        blinded_new(&x);
        assert_int_equal(sherd__blind_arm(&x.h, x.key, x.first), 0);
        sherd__scheme_shape s;
        sherd__cell_work w;
        x.h.ops->shape(x.h.ctx, &s);
        size_t at = below(x.n * x.k);
        ((double *)x.a)[at] = far[i % (sizeof far / sizeof *far)]; /* nothing was hidden yet */
        bool refused = false;
        for (uint32_t panel = 0; panel < s.panels; panel++) {
            int err = x.h.ops->hide(x.h.ctx, (sherd__cell){ 0, 0, panel }, &w);
            refused = refused || err == SHERD_EIO;
            if (!w.empty) assert_int_equal(err, refused ? SHERD_EIO : 0);
            if (err) assert_null(w.left);
            sherd__fragment_free(w.left);
        }
        assert_true(refused);
        assert_int_equal(x.h.ops->changed(x.h.ctx), SHERD__LEFT_CHANGED);
        blinded_free(&x);
    }
}

/* After a wrong answer rows are weighed anew: not what the file holds by then. */
static void a_check_does_not_judge_by_rows_that_changed(void **state)
{
    (void)state;
    blinded x = { .n = 6, .k = 9, .m = 7, .slots = 1, .panel_rows = 3, .tile_cols = 7,
                  .primes_len = 3, .ta = SHERD_I32, .tb = SHERD_I32, .bits_a = 17, .bits_b = 17 };
    blinded_new(&x);
    assert_int_equal(sherd__blind_arm(&x.h, x.key, 0), 0);
    sherd__cell_work w[2];
    uint8_t *body[2];
    for (uint32_t p = 0; p < 2; p++) body[p] = answer(&x, (sherd__cell){ 0, 0, p }, &w[p]);
    body[0][0] ^= 1;
    assert_int_equal(x.h.ops->check(x.h.ctx, (sherd__cell){ 0, 0, 0 }, body[0]), SHERD_EWRONG);
    ((int32_t *)x.a)[4 * x.k + 2] ^= 1;
    assert_int_equal(x.h.ops->check(x.h.ctx, (sherd__cell){ 0, 0, 1 }, body[1]), SHERD_EIO);
    assert_int_equal(x.h.ops->changed(x.h.ctx), SHERD__LEFT_CHANGED);
    for (int p = 0; p < 2; p++) {
        sherd__fragment_free(w[p].left);
        free(body[p]);
    }
    blinded_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_product_has_the_bits_of_the_reference),
        cmocka_unit_test(sizes_zero_and_one_work),
        cmocka_unit_test(a_panel_longer_than_a_run_works),
        cmocka_unit_test(nothing_is_hidden_before_masks_are_given),
        cmocka_unit_test(zeros_travel_like_any_value),
        cmocka_unit_test(what_travels_looks_uniform_in_every_prime),
        cmocka_unit_test(no_wrong_answer_is_accepted),
        cmocka_unit_test(what_was_hidden_before_a_wrong_answer_is_judged_by_new_vectors),
        cmocka_unit_test(a_failed_allocation_is_said_and_leaks_nothing),
        cmocka_unit_test(rows_that_changed_are_not_hidden_again),
        cmocka_unit_test(rows_beyond_what_masks_hide_are_not_sent),
        cmocka_unit_test(a_check_does_not_judge_by_rows_that_changed),
    };
    return cmocka_run_group_tests_name("crypto/blind", tests, open_backend, close_backend);
}
