/* Schemes between operands and a backend in this process; see scheme_world.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "crypto/fragment_make.h"
#include "matrix/exact.h"
#include "matrix/funcs.h"
#include "matrix/reference.h"
#include "node/backend.h"
#include "schemes/elementwise.h"
#include "schemes/partition/partition.h"
#include "tests/contract/schemes/scheme_world.h"

sherd__entropy scheme_rng;
scheme_total scheme_sent;
uint64_t scheme_csr_cells;

static void *backend;
static sherd__seeded rng_state;

int scheme_begin(void **state)
{
    (void)state;
    sherd__backend_options opt = { .threads = 1, .quick = true };
    scheme_rng = sherd__entropy_seeded(&rng_state, 7);
    return sherd__backend_cpu.open(&backend, &opt, NULL);
}

int scheme_end(void **state)
{
    (void)state;
    sherd__backend_cpu.close(backend);
    return 0;
}

size_t scheme_below(size_t n)
{
    return (size_t)sherd__entropy_below(&scheme_rng, n);
}

void *scheme_matrix(size_t rows, size_t cols, sherd_dtype t, unsigned zeros)
{
    size_t n = rows * cols;
    uint8_t *data = malloc(n * sherd_dtype_size(t) + 1);
    for (size_t i = 0; i < n; i++) {
        double x = scheme_below(10) < zeros ? 0 : ((double)scheme_below(2001) - 1000) / 64;
        if (t == SHERD_F64) memcpy(data + 8 * i, &x, 8);
        if (t == SHERD_F32) memcpy(data + 4 * i, &(float){ (float)x }, 4);
        if (t == SHERD_U8) data[i] = (uint8_t)fabs(x);
        if (t == SHERD_I32) memcpy(data + 4 * i, &(int32_t){ (int32_t)x * 1000 }, 4);
    }
    return data;
}

/* --- all cells of a hiding ------------------------------------------------------------------- */

static uint64_t rows_answered; /* of the last run */

/* Returns a fragment of the bytes of a source, which are read in pieces of odd lengths. */
static sherd__fragment *read_source(sherd__fragment *src)
{
    const sherd__fragment_info *info = sherd__fragment_info_of(src);
    uint8_t *bytes = sherd__alloc(info->len);
    sherd__fragment *out;
    for (size_t at = 0; at < info->len;) {
        size_t n = 1 + scheme_below(97);
        if (n > info->len - at) n = info->len - at;
        assert_int_equal(sherd__fragment_read(src, at, bytes + at, n), SHERD_OK);
        at += n;
    }
    assert_int_equal(sherd__fragment_take(&out, info, bytes, NULL, NULL), 0);
    assert_int_equal(sherd__fragment_table_check(info, bytes, NULL), 0);
    sherd__fragment_free(src);
    return out;
}

/* Returns the left block of a cell, if it stays at the node. */
static sherd__fragment *staying(const sherd__hiding *h, sherd__cell c)
{
    sherd__fragment *f;
    assert_int_equal(h->ops->left(h->ctx, c.slot, c.panel, &f), SHERD_OK);
    return sherd__fragment_bytes(f) ? f : read_source(f);
}

void scheme_run(const sherd__hiding *h, uint32_t op, scheme_visit spoil)
{
    sherd__scheme_shape s;
    h->ops->shape(h->ctx, &s);
    rows_answered = 0;
    scheme_sent = (scheme_total){ 0 };
    for (uint32_t t = 0; t < s.tiles; t++) {
        for (uint32_t p = 0; p < s.panels; p++) {
            for (uint32_t i = 0; i < s.slots; i++) {
                sherd__cell c = { i, t, p };
                sherd__cell_work w;
                assert_int_equal(h->ops->hide(h->ctx, c, &w), SHERD_OK);
                if (scheme_below(5) == 0 && !w.empty) { /* its node was lost: hidden again */
                    sherd__fragment_free(w.left);
                    sherd__fragment_free(w.right);
                    assert_int_equal(h->ops->hide(h->ctx, c, &w), SHERD_OK);
                }
                if (w.empty) {
                    assert_int_equal(h->ops->fold(h->ctx, c, NULL), SHERD_OK);
                    continue;
                }
                sherd__fragment *right = w.right, *src;
                if (s.left_stays) w.left = staying(h, c);
                rows_answered += w.result.rows;
                scheme_sent.cells++;
                scheme_sent.bytes += sherd__fragment_info_of(w.left)->len;
                scheme_sent.csr_cells += sherd__fragment_info_of(w.left)->encoding == SHERD__CSR;
                if (s.resident) {
                    assert_int_equal(h->ops->resident(h->ctx, i, t, &src), SHERD_OK);
                    right = read_source(src);
                }
                sherd__task task = { .job = 1,
                                     .task = 1,
                                     .attempt = 1,
                                     .op = op,
                                     .result = w.result,
                                     .primes_len = s.primes_len };
                memcpy(task.primes, s.primes, sizeof s.primes);
                uint8_t *body = sherd__alloc(w.result.len);
                sherd_diag d = { 0 };
                assert_int_equal(sherd__fragment_table_check(sherd__fragment_info_of(w.left),
                                                             sherd__fragment_bytes(w.left), &d),
                                 0);
                if (sherd__backend_cpu.compute(backend,
                                               &(sherd__call){ .task = &task, .out = body }, w.left,
                                               right, &d))
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

/* --- products -------------------------------------------------------------------------------- */

static double odd(unsigned i)
{
    return (const double[]){ NAN, INFINITY, -INFINITY }[i % 3];
}

static bool same_kind(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b;
}

void scheme_multiply(const scheme_fixture *f, scheme_visit spoil)
{
    void *da = scheme_matrix(f->n, f->k, f->ta, f->zeros);
    void *db = scheme_matrix(f->k, f->m, f->tb, 0);
    double *c = calloc(f->n * f->m + 1, 8), *ref = calloc(f->n * f->m + 1, 8);
    for (unsigned i = 0; i < f->odd_a && f->n > 0 && f->k > 0; i++)
        ((double *)da)[scheme_below(f->n * f->k)] = odd(i);
    for (unsigned i = 0; i < f->odd_b && f->k > 0 && f->m > 0; i++)
        ((double *)db)[scheme_below(f->k * f->m)] = odd(i);
    uint32_t *expo = calloc(f->k + 1, 4);
    uint8_t seed[32], key[32], rows_key[32];
    scheme_rng.fill(scheme_rng.ctx, seed, sizeof seed);
    sherd__perm_key(key, seed, SHERD__PERM_LABEL, 3, 0);
    sherd__perm_key(rows_key, seed, SHERD__ROWS_LABEL, 3, 0);
    assert_int_equal(sherd__exposures(key, f->k, f->slots, f->balanced, expo), 0);
    sherd__partition_params p = {
        .a = sherd_view_c(da, f->ta, f->n, f->k),
        .b = sherd_view_c(db, f->tb, f->k, f->m),
        .c = c,
        .ldc = f->m,
        .slots = f->slots,
        .exposures = f->plain ? NULL : expo,
        .group = f->group,
        .panel_rows = f->panel_rows,
        .tile_cols = f->tile_cols,
        .left_stays = f->stays,
        .perm_cache = f->cache,
        .skip_zeros = !f->plain && !f->odd_b,
        .finite = !f->odd_a && !f->odd_b,
        .exact = f->exact,
        .entropy = scheme_rng,
    };
    if (!f->plain) p.perm = sherd__perm_from_key(key);
    if (f->shuffle_rows) p.rows = sherd__perm_from_key(rows_key);
    if (f->exact) {
        size_t primes = 0;
        assert_int_equal(sherd__fixed_choose(p.a, f->bits, "A", &p.fixed_a, NULL), 0);
        assert_int_equal(sherd__fixed_choose(p.b, f->bits, "B", &p.fixed_b, NULL), 0);
        if (!sherd__exact_in_f64(f->k, p.fixed_a.bound, p.fixed_b.bound))
            assert_int_equal(sherd__exact_primes_needed(f->k, p.fixed_a.bound, p.fixed_b.bound,
                                                        &sherd__primes_default, &primes),
                             0);
        p.primes_len = (uint32_t)primes;
        memcpy(p.primes, sherd__primes_default.p, sizeof p.primes);
        assert_int_equal(sherd__reference_exact(&(sherd__matrices){ p.a, p.b, ref, f->m },
                                                &p.fixed_a, &p.fixed_b, NULL),
                         0);
    } else {
        assert_int_equal(sherd__reference_float(p.a, p.b, ref, f->m, NULL), 0);
    }
    sherd__hiding h;
    assert_int_equal(sherd__partition_open(&h, &p), 0);
    sherd__partition_sparse(&h, f->csr);
    scheme_run(&h, SHERD__OP_MULTIPLY, spoil);
    uint64_t skipped, fragments;
    sherd__partition_counts(&h, &skipped, &fragments);
    assert_int_equal(fragments, rows_answered); /* each once, even if it was hidden several times */
    assert_int_equal(sherd__partition_csr_cells(&h), scheme_sent.csr_cells);
    scheme_csr_cells += scheme_sent.csr_cells;
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

scheme_fixture scheme_random(void)
{
    static const sherd_dtype types[] = { SHERD_F64, SHERD_F32, SHERD_U8, SHERD_I32 };
    static const uint32_t groups[] = { 1, 2, 3, 5, SHERD__GROUP_ALL };
    scheme_fixture f = { .n = scheme_below(24),
                         .k = scheme_below(24),
                         .m = scheme_below(24),
                         .ta = types[scheme_below(4)],
                         .tb = types[scheme_below(4)],
                         .slots = 1 + (uint32_t)scheme_below(8),
                         .group = groups[scheme_below(5)],
                         .plain = scheme_below(4) == 0,
                         .exact = scheme_below(2),
                         .balanced = scheme_below(2),
                         .bits = (unsigned[]){ 2, 9, 17, 26 }[scheme_below(4)],
                         .zeros = (unsigned)scheme_below(11),
                         .panel_rows = 1 + scheme_below(9),
                         .tile_cols = 1 + scheme_below(30),
                         .cache = scheme_below(2) ? 1 << 20 : 0 };
    f.shuffle_rows = !f.plain && scheme_below(3) == 0;
    f.csr = scheme_below(2);
    f.stays = f.plain && scheme_below(2);
    return f;
}

scheme_fixture scheme_odd(void)
{
    scheme_fixture f = scheme_random();
    f.exact = false;
    f.ta = f.tb = SHERD_F64;
    f.odd_a = (unsigned)scheme_below(3);
    f.odd_b = (unsigned)scheme_below(3) + !f.odd_a;
    f.csr = f.csr && !f.odd_b;
    return f;
}

/* --- element-wise ---------------------------------------------------------------------------- */

void scheme_apply(uint32_t op, size_t n, size_t m, uint32_t slots, bool permute, scheme_visit spoil)
{
    double *a = scheme_matrix(n, m, SHERD_F64, 1), *b = scheme_matrix(n, m, SHERD_F64, 1);
    double *out = calloc(n * m + 1, 8), *ref = calloc(n * m + 1, 8);
    const double odd[] = { NAN, INFINITY, -INFINITY, 800, -800, 0.0, -0.0 };
    uint32_t *expo = calloc(m + 1, 4);
    uint8_t key[32];
    for (size_t i = 0; i < n * m && i < 7; i++) a[scheme_below(n * m)] = odd[i];
    scheme_rng.fill(scheme_rng.ctx, key, sizeof key);
    assert_int_equal(sherd__exposures(key, m, slots, 0, expo), 0);
    sherd__elementwise_params p = { .op = op,
                                    .a = sherd_view_c(a, SHERD_F64, n, m),
                                    .b = sherd_view_c(b, SHERD_F64, n, m),
                                    .out = out,
                                    .ldo = m,
                                    .slots = slots,
                                    .exposures = expo,
                                    .panel_rows = 1 + scheme_below(5),
                                    .perm_cache = scheme_below(2) ? 1 << 20 : 0,
                                    .entropy = scheme_rng };
    if (permute) p.perm = sherd__perm_from_key(key);
    sherd__hiding h;
    assert_int_equal(sherd__elementwise_open(&h, &p), 0);
    scheme_run(&h, op, spoil);
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
