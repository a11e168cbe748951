/*
 * share and share1 through their vtable, with nodes that multiply by a plain loop modulo p: every product
 * is the exact one, whichever answers it is decoded from; no wrong answer is accepted; a share that is
 * made again is the same, and two encodings have nothing in common.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "crypto/share.h"
#include "matrix/exact.h"
#include "matrix/fixed.h"
#include "matrix/reference.h"
#include "matrix/residue.h"
#include "matrix/view.h"

static sherd_entropy_seeded rng_state;
static sherd_entropy rng;

static int seed(void **state)
{
    (void)state;
    rng = sherd__entropy_seeded(&rng_state, 11);
    return 0;
}

static size_t below(size_t n)
{
    return (size_t)sherd__entropy_below(&rng, n);
}

/* --- a product ------------------------------------------------------------------------------- */

typedef struct fixture {
    size_t n, k, m;
    uint32_t blocks, masks, shares;
    bool public_b, left_stays, zero_a;
    size_t panel_rows, tile_cols;
    unsigned bits, primes; /* primes: at least */
    sherd_dtype type;      /* of A and B */
} fixture;

typedef struct product {
    fixture f;
    void *da, *db;
    sherd_view a, b;
    sherd__fixed fa, fb;
    double *c, *ref;
    size_t c_rows;
    sherd__share_params p;
    sherd__hiding h;
    sherd__scheme_shape s;
    bool transposed;
} product;

static void *random_matrix(size_t rows, size_t cols, sherd_dtype t, bool zero)
{
    size_t n = rows * cols;
    uint8_t *data = calloc(n * sherd_dtype_size(t) + 1, 1);
    for (size_t i = 0; i < n && !zero; i++) {
        double x = below(8) == 0 ? 0 : ((double)below(2001) - 1000) / 64;
        if (t == SHERD_F64) memcpy(data + 8 * i, &x, 8);
        if (t == SHERD_U8) data[i] = (uint8_t)fabs(x);
        if (t == SHERD_I32) memcpy(data + 4 * i, &(int32_t){ (int32_t)x * 1000 }, 4);
    }
    return data;
}

static void set_view(fixture f, size_t rows, size_t cols, bool zero, void **data, sherd_view *v,
                     sherd__fixed *fixed)
{
    free(*data);
    *data = random_matrix(rows, cols, f.type, zero);
    *v = sherd_view_c(*data, f.type, rows, cols);
    assert_int_equal(sherd__fixed_choose(*v, f.bits, "X", fixed, NULL), 0);
}

/* The transpose of A as a view of its own, for the reference of A^T * D. */
static void set_reference(product *x)
{
    sherd_view left = x->transposed ? sherd_view_t(x->a) : x->a;
    x->c_rows = left.rows;
    free(x->c);
    free(x->ref);
    x->c = malloc((left.rows * x->b.cols + 1) * sizeof *x->c);
    x->ref = calloc(left.rows * x->b.cols + 1, sizeof *x->ref);
    for (size_t i = 0; i < left.rows * x->b.cols; i++) x->c[i] = -1e300;
    assert_int_equal(sherd__reference_exact(left, x->b, &x->fa, &x->fb, x->ref, x->b.cols, NULL), 0);
}

static void open_product(product *x, fixture f)
{
    size_t primes;
    *x = (product){ .f = f };
    set_view(f, f.n, f.k, f.zero_a, &x->da, &x->a, &x->fa);
    set_view(f, f.k, f.m, false, &x->db, &x->b, &x->fb);
    set_reference(x);
    size_t terms = f.k > f.n ? f.k : f.n;
    assert_int_equal(sherd__exact_primes_needed(terms, x->fa.bound, x->fb.bound,
                                                &sherd__primes_default, &primes), 0);
    x->p = (sherd__share_params){
        .a = x->a, .b = x->b, .c = x->c, .ldc = f.m, .code = { f.blocks, f.masks, f.shares },
        .public_b = f.public_b, .left_stays = f.left_stays, .panel_rows = f.panel_rows,
        .tile_cols = f.tile_cols, .fixed_a = x->fa, .fixed_b = x->fb,
        .primes_len = (uint32_t)(primes < f.primes ? f.primes : primes), .entropy = rng,
    };
    memcpy(x->p.primes, sherd__primes_default.p, sizeof x->p.primes);
    assert_int_equal(sherd__share_open(&x->h, &x->p), 0);
    x->h.ops->shape(x->h.ctx, &x->s);
}

static void close_product(product *x)
{
    x->h.ops->free(x->h.ctx);
    free(x->da);
    free(x->db);
    free(x->c);
    free(x->ref);
}

/* Another right operand for the same shares of A. */
static void next_product(product *x, size_t m, bool transposed)
{
    set_view(x->f, transposed ? x->f.n : x->f.k, m, false, &x->db, &x->b, &x->fb);
    x->transposed = transposed;
    set_reference(x);
    assert_int_equal(sherd__share_next(&x->h, x->b, transposed, x->c, m, &x->fb), 0);
    x->h.ops->shape(x->h.ctx, &x->s);
}

static void result_is_exact(const product *x)
{
    for (size_t i = 0; i < x->c_rows * x->b.cols; i++)
        if (memcmp(&x->c[i], &x->ref[i], sizeof(double)) != 0)
            fail_msg("entry %zu is %.17g, not %.17g (%zu x %zu x %zu, K %u)", i, x->c[i], x->ref[i],
                     x->f.n, x->f.k, x->f.m, x->f.blocks);
}

/* --- a node ---------------------------------------------------------------------------------- */

static uint8_t *read_by_pieces(sherd_fragment *f)
{
    uint64_t len = sherd__fragment_info_of(f)->len;
    uint8_t *bytes = malloc(len + 1);
    for (uint64_t at = 0; at < len;) {
        size_t n = 1 + below(200);
        if (n > len - at) n = (size_t)(len - at);
        assert_int_equal(sherd__fragment_read(f, at, bytes + at, n), 0);
        at += n;
    }
    return bytes;
}

static int64_t value_at(const sherd__fragment_info *i, const uint8_t *body, uint32_t q, size_t at)
{
    if (i->dtype == SHERD__RESIDUES) {
        body += 3 * ((size_t)q * i->rows * i->cols + at);
        return body[0] | body[1] << 8 | body[2] << 16;
    }
    sherd_view v = sherd_view_c(body, (sherd_dtype)i->dtype, 1, i->rows * i->cols);
    double x;
    sherd__view_row_f64(v, 0, at, 1, &x);
    return (int64_t)x;
}

/* The product of two blocks modulo every prime, by a plain loop. */
static uint8_t *compute(const product *x, sherd_fragment *u, const uint8_t *ub, sherd_fragment *v,
                        const uint8_t *vb, const sherd__fragment_info *result)
{
    const sherd__fragment_info *ui = sherd__fragment_info_of(u), *vi = sherd__fragment_info_of(v);
    uint8_t *body = malloc(result->len + 1), *to = body;
    size_t inner = x->transposed ? ui->rows : ui->cols;
    assert_int_equal(inner, vi->rows);
    assert_int_equal(result->rows, x->transposed ? ui->cols : ui->rows);
    assert_int_equal(result->cols, vi->cols);
    assert_int_equal(result->len, 3 * result->rows * result->cols * x->s.primes_len);
    assert_true(result->len <= x->s.result_max);
    for (uint32_t q = 0; q < x->s.primes_len; q++) {
        int64_t p = x->s.primes[q];
        for (size_t i = 0; i < result->rows; i++) {
            for (size_t j = 0; j < result->cols; j++, to += 3) {
                int64_t sum = 0;
                for (size_t l = 0; l < inner; l++) {
                    size_t at = x->transposed ? l * ui->cols + i : i * ui->cols + l;
                    sum += value_at(ui, ub, q, at) % p * (value_at(vi, vb, q, l * vi->cols + j) % p) % p;
                }
                sum = (sum % p + p) % p;
                to[0] = (uint8_t)sum, to[1] = (uint8_t)(sum >> 8), to[2] = (uint8_t)(sum >> 16);
            }
        }
    }
    return body;
}

/* The honest answer of a cell, and how long it is. */
static uint8_t *answer(product *x, sherd__cell c, uint64_t *len)
{
    const sherd__scheme *ops = x->h.ops;
    sherd__cell_work w;
    sherd_fragment *u, *v;
    assert_int_equal(ops->hide(x->h.ctx, c, &w), 0);
    assert_false(w.empty);
    u = w.left;
    v = w.right;
    assert_true((u == NULL) == x->s.left_stays);
    assert_true((v == NULL) == x->s.resident);
    if (!u) assert_int_equal(ops->left(x->h.ctx, c.slot, c.panel, &u), 0);
    if (!v) assert_int_equal(ops->resident(x->h.ctx, c.slot, c.tile, &v), 0);
    uint8_t *ub = read_by_pieces(u), *vb = read_by_pieces(v);
    uint8_t *body = compute(x, u, ub, v, vb, &w.result);
    if (len) *len = w.result.len;
    free(ub);
    free(vb);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
    return body;
}

static int judge(product *x, sherd__cell c, const uint8_t *body)
{
    return x->h.ops->check(x->h.ctx, c, body);
}

/* `take` of n slots, drawn: ones in bits. */
static uint32_t random_set(uint32_t n, uint32_t take)
{
    uint32_t set = 0;
    while (take) {
        uint32_t bit = UINT32_C(1) << below(n);
        if (set & bit) continue;
        set |= bit;
        take--;
    }
    return set;
}

/* Decodes a position from the answers of a set of slots, given in any order. */
static void decode_from(product *x, uint32_t tile, uint32_t panel, uint8_t *const *body, uint32_t set)
{
    uint32_t slots[32], len = 0;
    const uint8_t *bodies[32];
    for (uint32_t i = 0; i < x->s.slots; i++)
        if (set >> i & 1) slots[len++] = i;
    for (uint32_t i = len; i > 1; i--) {
        uint32_t j = (uint32_t)below(i), t = slots[i - 1];
        slots[i - 1] = slots[j];
        slots[j] = t;
    }
    for (uint32_t i = 0; i < len; i++) bodies[i] = body[slots[i]];
    assert_int_equal(len, x->s.threshold);
    assert_int_equal(x->h.ops->decode(x->h.ctx, tile, panel, slots, bodies, len), 0);
}

/* Runs every position; `sets` (NULL: drawn) are what each is decoded from, in turn. */
static void run_product(product *x, const uint32_t *sets, size_t nsets)
{
    size_t at = 0;
    for (uint32_t t = 0; t < x->s.tiles; t++) {
        for (uint32_t p = 0; p < x->s.panels; p++) {
            uint32_t set = sets ? sets[at++ % nsets] : random_set(x->s.slots, x->s.threshold);
            uint8_t *body[32] = { 0 };
            for (uint32_t i = 0; i < x->s.slots; i++) {
                sherd__cell c = { i, t, p };
                if (!(set >> i & 1) && below(2)) continue;
                body[i] = answer(x, c, NULL);
                assert_int_equal(judge(x, c, body[i]), 0);
            }
            decode_from(x, t, p, body, set);
            for (uint32_t i = 0; i < x->s.slots; i++) free(body[i]);
        }
    }
    assert_int_equal(x->h.ops->finish(x->h.ctx), 0);
    result_is_exact(x);
}

static fixture random_fixture(void)
{
    static const sherd_dtype types[] = { SHERD_F64, SHERD_U8, SHERD_I32 };
    fixture f = { .n = 1 + below(20), .k = 1 + below(16), .m = 1 + below(16), .public_b = below(3) == 0,
                  .panel_rows = 1 + below(8), .tile_cols = 1 + below(18), .type = types[below(3)],
                  .bits = (unsigned[]){ 2, 9, 17, 26 }[below(4)], .primes = 1 + (unsigned)below(4) };
    f.blocks = 1 + (uint32_t)below(f.n < 4 ? f.n : 4);
    f.masks = 1 + (uint32_t)below(2);
    f.shares = sherd__lcc_threshold(f.blocks, f.masks, !f.public_b) + (uint32_t)below(3);
    f.left_stays = below(3) == 0;
    return f;
}

static void any_product_is_the_exact_one(void **state)
{
    (void)state;
    for (int i = 0; i < 250; i++) {
        product x;
        open_product(&x, random_fixture());
        run_product(&x, NULL, 0);
        close_product(&x);
    }
}

static void shapes_at_their_limits_work(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 64; i++) {
        fixture f = random_fixture();
        f.n = i & 1 ? 1 : i & 32 ? 7 : f.n;
        f.k = i & 2 ? 1 : f.k;
        f.m = i & 4 ? 1 : f.m;
        f.blocks = i & 8 || f.blocks > f.n ? (uint32_t)(f.n < 6 ? f.n : 6) : f.blocks; /* K = n */
        f.zero_a = i & 16;
        f.shares = sherd__lcc_threshold(f.blocks, f.masks, !f.public_b) + 1;
        product x;
        open_product(&x, f);
        run_product(&x, NULL, 0);
        close_product(&x);
    }
}

static void empty_products_have_no_cells(void **state)
{
    (void)state;
    for (unsigned i = 1; i < 8; i++) {
        fixture f = { .n = i & 1 ? 0 : 3, .k = i & 2 ? 0 : 2, .m = i & 4 ? 0 : 4, .blocks = 2,
                      .masks = 1, .shares = 5, .panel_rows = 2, .tile_cols = 3, .type = SHERD_F64,
                      .bits = 17 };
        product x;
        open_product(&x, f);
        assert_int_equal(x.s.tiles * x.s.panels, 0);
        run_product(&x, NULL, 0);
        close_product(&x);
    }
}

/* --- any R of N ------------------------------------------------------------------------------ */

static void from_all_sets(bool public_b, uint32_t blocks, unsigned primes)
{
    uint32_t sets[256], r = sherd__lcc_threshold(blocks, 1, !public_b);
    size_t nsets = 0;
    for (uint32_t s = 0; s < 256; s++)
        if ((uint32_t)__builtin_popcount(s) == r) sets[nsets++] = s;
    /* As many panels as sets: each is decoded from another one. */
    fixture f = { .n = nsets * blocks - (blocks > 1 && nsets > 1), .k = 3, .m = 2, .blocks = blocks, .masks = 1, .shares = 8,
                  .public_b = public_b, .panel_rows = 1, .tile_cols = 2, .bits = 17,
                  .type = SHERD_F64, .primes = primes };
    product x;
    open_product(&x, f);
    assert_int_equal(x.s.panels, nsets);
    run_product(&x, sets, nsets);
    close_product(&x);
}

static void every_subset_of_eight_that_is_large_enough_decodes(void **state)
{
    (void)state;
    for (unsigned primes = 2; primes <= 4; primes++) {
        for (uint32_t k = 1; k <= 3; k++) from_all_sets(false, k, primes);
        for (uint32_t k = 1; k <= 7; k++) from_all_sets(true, k, primes);
    }
}

/* --- the same shares, other products --------------------------------------------------------- */

static void shares_that_stay_serve_products_both_ways(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        fixture f = random_fixture();
        f.public_b = false;
        f.left_stays = true;
        f.shares = sherd__lcc_threshold(f.blocks, f.masks, true) + (uint32_t)below(2);
        product x;
        open_product(&x, f);
        if (below(3)) run_product(&x, NULL, 0);
        for (int j = 0; j < 3; j++) {
            next_product(&x, 1 + below(12), below(2));
            if (below(4)) run_product(&x, NULL, 0); /* else given up before it began */
        }
        close_product(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_product_is_the_exact_one),
        cmocka_unit_test(shapes_at_their_limits_work),
        cmocka_unit_test(empty_products_have_no_cells),
        cmocka_unit_test(every_subset_of_eight_that_is_large_enough_decodes),
        cmocka_unit_test(shares_that_stay_serve_products_both_ways),
    };
    return cmocka_run_group_tests_name("crypto/share", tests, seed, NULL);
}
