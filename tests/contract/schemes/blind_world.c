/* All masks have one key; R*B is computed by a plain loop, and the expected product by the
 * reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contract/schemes/blind_world.h"

#include "core/alloc.h"
#include "crypto/fragment_make.h"
#include "matrix/reference.h"
#include "matrix/residue.h"
#include "node/backend.h"

static void *backend;
static sherd__seeded rng_state;
sherd__entropy blind_rng;

int blind_begin(void **state)
{
    (void)state;
    sherd__backend_options opt = { .threads = 1, .quick = true };
    blind_rng = sherd__entropy_seeded(&rng_state, 11);
    return sherd__backend_cpu.open(&backend, &opt, NULL);
}

int blind_end(void **state)
{
    (void)state;
    sherd__backend_cpu.close(backend);
    return 0;
}

size_t blind_below(size_t n)
{
    return (size_t)sherd__entropy_below(&blind_rng, n);
}

static void *random_matrix(size_t n, sherd_dtype t, unsigned zeros, unsigned bits)
{
    uint8_t *data = malloc(n * 8 + 1);
    double top = ldexp(1, (int)bits - 1) - 1;
    for (size_t i = 0; i < n; i++) {
        double x = blind_below(10) < zeros ? 0 : ((double)blind_below(2000001) - 1e6) / 1e6 * top;
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
        assert_int_equal(sherd__blind_mask(masks, q, p,
                                           (sherd__mask_part){ x->first, x->n, 0, x->k }, r),
                         0);
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

void blinded_new(blinded *x)
{
    x->a = random_matrix(x->n * x->k, x->ta, x->zeros, x->bits_a);
    x->b = random_matrix(x->k * x->m, x->tb, 1, x->bits_b);
    x->c = malloc((x->n * x->m + 1) * 8);
    x->ref = calloc(x->n * x->m + 1, 8);
    x->qa = calloc(x->n * x->k + 1, 8);
    x->qb = calloc(x->k * x->m + 1, 8);
    memset(x->c, 0x7f, (x->n * x->m + 1) * 8);
    x->p = (sherd__blind_params){
        .a = sherd_view_c(x->a, x->ta, x->n, x->k),
        .b = sherd_view_c(x->b, x->tb, x->k, x->m),
        .c = x->c,
        .ldc = x->m,
        .slots = x->slots,
        .panel_rows = x->panel_rows,
        .tile_cols = x->tile_cols,
        .primes_len = x->primes_len,
        .source = { read_rb, x },
        .entropy = blind_rng,
    };
    memcpy(x->p.primes, sherd__primes_default.p, sizeof x->p.primes);
    assert_int_equal(sherd__fixed_choose(x->p.a, x->bits_a, "A", &x->p.fixed_a, NULL), 0);
    assert_int_equal(sherd__fixed_choose(x->p.b, x->bits_b, "B", &x->p.fixed_b, NULL), 0);
    sherd__fixed_dense(&x->p.fixed_a, x->p.a, x->qa, x->k);
    sherd__fixed_dense(&x->p.fixed_b, x->p.b, x->qb, x->m);
    assert_int_equal(sherd__reference_exact(&(sherd__matrices){ x->p.a, x->p.b, x->ref, x->m },
                                            &x->p.fixed_a, &x->p.fixed_b, NULL),
                     0);
    blind_rng.fill(blind_rng.ctx, x->key, sizeof x->key);
    prepare_masks(x);
    assert_int_equal(sherd__blind_open(&x->h, &x->p), 0);
}

void blinded_free(blinded *x)
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

/* Checks that a node receives A + R modulo each prime, row by row, and nothing more. */
static void left_is_masked(const blinded *x, sherd__cell c, const sherd__fragment *left)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(left);
    const uint8_t *body = sherd__fragment_bytes(left);
    size_t row0 = c.slot * (x->n / x->slots) +
                  (c.slot < x->n % x->slots ? c.slot : x->n % x->slots);
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
                                               NULL),
                         0);
        for (size_t t = 0; t < i->rows * x->k; t++) {
            double want = x->qa[row0 * x->k + t] + x->r[q * x->n * x->k + row0 * x->k + t];
            sherd__residue_from_f64(&want, 1, p, &want);
            assert_true(u[t] == want);
        }
    }
    free(u);
}

static sherd__fragment *in_memory(sherd__fragment *source)
{
    const sherd__fragment_info *info = sherd__fragment_info_of(source);
    uint8_t *bytes = sherd__alloc(info->len);
    sherd__fragment *out;
    for (size_t at = 0; at < info->len;) { /* in pieces of odd lengths */
        size_t n = 1 + blind_below(97);
        if (n > info->len - at) n = info->len - at;
        assert_int_equal(sherd__fragment_read(source, at, bytes + at, n), SHERD_OK);
        at += n;
    }
    assert_int_equal(sherd__fragment_take(&out, info, bytes, NULL, NULL), 0);
    sherd__fragment_free(source);
    return out;
}

/* Returns the node's answer to a cell; work.left stays. NULL if the cell is empty. */
uint8_t *blind_answer(const blinded *x, sherd__cell c, sherd__cell_work *work)
{
    sherd__scheme_shape s;
    sherd__fragment *right;
    sherd_diag d = { 0 };
    x->h.ops->shape(x->h.ctx, &s);
    assert_int_equal(x->h.ops->hide(x->h.ctx, c, work), SHERD_OK);
    if (work->empty) return NULL;
    assert_true(work->result.len <= s.result_max);
    assert_null(work->right);
    assert_int_equal(x->h.ops->resident(x->h.ctx, c.slot, c.tile, &right), SHERD_OK);
    right = in_memory(right);
    sherd__task task = { .job = 1,
                         .task = 1,
                         .attempt = 1,
                         .op = SHERD__OP_MULTIPLY,
                         .result = work->result,
                         .primes_len = s.primes_len };
    memcpy(task.primes, s.primes, sizeof s.primes);
    uint8_t *body = malloc(work->result.len + 1);
    if (sherd__backend_cpu.compute(backend, &(sherd__call){ .task = &task, .out = body },
                                   work->left, right, &d))
        fail_msg("%s", d.message);
    sherd__fragment_free(right);
    return body;
}

static void run_cell(blinded *x, sherd__cell c)
{
    sherd__cell_work w, again;
    uint64_t a, b;
    uint8_t *body = blind_answer(x, c, &w);
    x->h.ops->entries(x->h.ctx, c, &a, &b);
    assert_int_equal(a, 0);
    if (body) {
        left_is_masked(x, c, w.left);
        if (blind_below(4) == 0) { /* its node was lost: the same bytes are sent to another one */
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

void blind_run(blinded *x)
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

blinded blind_case(void)
{
    static const sherd_dtype types[] = { SHERD_F64, SHERD_U8, SHERD_I32 };
    blinded x = { .n = blind_below(24),
                  .k = blind_below(24),
                  .m = blind_below(24),
                  .slots = 1 + (uint32_t)blind_below(8),
                  .panel_rows = 1 + blind_below(9),
                  .tile_cols = 1 + blind_below(30),
                  .ta = types[blind_below(3)],
                  .tb = types[blind_below(3)],
                  .bits_a = 2 + (unsigned)blind_below(25),
                  .bits_b = 2 + (unsigned)blind_below(25),
                  .zeros = (unsigned)blind_below(11),
                  .first = blind_below(3) * UINT64_C(1000000) };
    size_t need;
    assert_int_equal(sherd__exact_primes_needed(24,
                                                UINT64_C(1)
                                                    << (x.bits_a - 1 < 8 ? 8 : x.bits_a - 1),
                                                UINT64_C(1)
                                                    << (x.bits_b - 1 < 8 ? 8 : x.bits_b - 1),
                                                &sherd__primes_default, &need),
                     0);
    x.primes_len = (uint32_t)(need + blind_below(5 - need));
    return x;
}
