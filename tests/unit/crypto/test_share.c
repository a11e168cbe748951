/*
 * share and share1 through their vtable, with nodes that multiply by a plain loop modulo p: every
 * product is the exact one, whichever answers it is decoded from; no wrong answer is accepted; a
 * share that is made again is the same, and two encodings have nothing in common.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "crypto/share_internal.h"
#include "matrix/exact.h"
#include "matrix/fixed.h"
#include "matrix/reference.h"
#include "matrix/residue.h"
#include "matrix/view.h"

static sherd_entropy_seeded rng_state, scheme_state;
static sherd_entropy rng, scheme_rng; /* of the tests, and of what they test */

static int seed(void **state)
{
    (void)state;
    rng = sherd__entropy_seeded(&rng_state, 11);
    scheme_rng = sherd__entropy_seeded(&scheme_state, 12);
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
    size_t panel_rows, tile_cols, part;
    unsigned bits, primes; /* primes: at least */
    sherd_dtype type;      /* of A and B */
    size_t check_bytes;
    double all;            /* f64: what all entries of A, and of D, are; 0: they are drawn */
    bool grouped;          /* primes hold sums over columns alone */
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

static void *random_matrix(size_t rows, size_t cols, sherd_dtype t, bool zero, double all)
{
    size_t n = rows * cols;
    uint8_t *data = calloc(n * sherd_dtype_size(t) + 1, 1);
    for (size_t i = 0; i < n && !zero; i++) {
        double x = below(8) == 0 ? 0 : ((double)below(2001) - 1000) / 64;
        if (all != 0) x = all;
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
    *data = random_matrix(rows, cols, f.type, zero, f.all);
    *v = sherd_view_c(*data, f.type, rows, cols);
    assert_int_equal(sherd__fixed_choose(*v, f.bits, "X", fixed, NULL), 0);
    if (fixed->integers) fixed->bound = f.type == SHERD_U8 ? 255 : 16383; /* of all, not of these */
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
    assert_int_equal(sherd__reference_exact(left, x->b, &x->fa, &x->fb, x->ref, x->b.cols, NULL),
                     0);
}

static void open_product(product *x, fixture f)
{
    size_t primes;
    *x = (product){ .f = f };
    set_view(f, f.n, f.k, f.zero_a, &x->da, &x->a, &x->fa);
    set_view(f, f.k, f.m, false, &x->db, &x->b, &x->fb);
    set_reference(x);
    size_t terms = f.k > f.n || f.grouped ? f.k : f.n;
    assert_int_equal(sherd__exact_primes_needed(terms, x->fa.bound, x->fb.bound,
                                                &sherd__primes_default, &primes), 0);
    x->p = (sherd__share_params){
        .a = x->a, .b = x->b, .c = x->c, .ldc = f.m, .code = { f.blocks, f.masks, f.shares },
        .public_b = f.public_b, .left_stays = f.left_stays, .part_rows = f.part,
        .panel_rows = f.panel_rows,
        .tile_cols = f.tile_cols, .fixed_a = x->fa, .fixed_b = x->fb,
        .primes_len = (uint32_t)(primes < f.primes ? f.primes : primes),
        .check_bytes = f.check_bytes, .entropy = scheme_rng,
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

static sherd_rows all_rows(const product *x)
{
    return (sherd_rows){ 0, x->f.n };
}

/* Another right operand for the same shares of A. */
static void next_product(product *x, size_t m, bool transposed)
{
    set_view(x->f, transposed ? x->f.n : x->f.k, m, false, &x->db, &x->b, &x->fb);
    x->transposed = transposed;
    set_reference(x);
    assert_int_equal(sherd__share_next(&x->h, all_rows(x), x->b, transposed, x->c, m, &x->fb), 0);
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

static unsigned shortages; /* steps that failed for want of memory, and were tried again */

static int again(int err)
{
    assert_int_equal(err, SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
    shortages++;
    return 1;
}

/* A step, which may be tried again where there was no memory. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        int err_ = (call);                                                                         \
        if (err_ && again(err_)) assert_int_equal(call, 0);                                        \
    } while (0)

static uint8_t *read_by_pieces(sherd_fragment *f)
{
    uint64_t len = sherd__fragment_info_of(f)->len;
    uint8_t *bytes = malloc(len + 1);
    for (uint64_t at = 0; at < len;) {
        size_t n = 1 + below(len > 100000 ? 70000 : 200);
        if (n > len - at) n = (size_t)(len - at);
        TRY(sherd__fragment_read(f, at, bytes + at, n));
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
                    int64_t factor = value_at(vi, vb, q, l * vi->cols + j) % p;
                    sum += value_at(ui, ub, q, at) % p * factor % p;
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
static void decode_from(product *x, uint32_t tile, uint32_t panel, uint8_t *const *body,
                        uint32_t set)
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

/* 9000 rows of the largest numbers: their sum is beyond two primes, which hold those of two panels
 * of 1000 rows of two blocks. One panel less is in the last group, and rows of some parts alone. */
static void sums_over_many_rows_need_no_third_prime(void **state)
{
    (void)state;
    static const double signs[] = { 1, -1, 0 };
    for (size_t i = 0; i < 9; i++) {
        fixture f = { .n = 9000, .k = 3, .m = 2, .blocks = 2, .masks = 1, .shares = 5,
                      .left_stays = true, .panel_rows = i < 6 ? 1000 : 300, .tile_cols = 1,
                      .type = SHERD_F64, .bits = 17, .grouped = true,
                      .all = signs[i % 3] * 65535 / 65536, .part = i < 3 ? 0 : 4500 };
        product x;
        open_product(&x, f);
        assert_int_equal(x.p.primes_len, 2);
        for (unsigned round = 0; round < 2; round++) {
            next_product(&x, 2, true);
            run_product(&x, NULL, 0);
            next_product(&x, 2, false);
            run_product(&x, NULL, 0);
        }
        close_product(&x);
    }
}

/* A panel's sum must fit the primes, and more than two primes are not summed up so. */
static void sums_that_no_group_holds_are_refused(void **state)
{
    (void)state;
    fixture f = { .n = 9000, .k = 3, .m = 2, .blocks = 2, .masks = 1, .shares = 5,
                  .left_stays = true, .panel_rows = 2048, .tile_cols = 1, .type = SHERD_F64,
                  .bits = 17, .grouped = true, .all = 65535.0 / 65536 };
    for (unsigned i = 0; i < 4; i++) {
        product x;
        f.panel_rows = i == 0 ? 2049 : 2048;
        f.primes = i == 3 ? 3 : 2;
        open_product(&x, f);
        set_view(f, f.n, 2, false, &x.db, &x.b, &x.fb);
        if (i >= 2) x.fb.bound = UINT64_C(1) << (i == 2 ? 17 : 40);
        int err = sherd__share_next(&x.h, all_rows(&x), x.b, true, x.c, 2, &x.fb);
        assert_int_equal(err, i == 1 ? SHERD_OK : SHERD_ERANGE);
        close_product(&x);
    }
}

static fixture random_fixture(void)
{
    static const sherd_dtype types[] = { SHERD_F64, SHERD_U8, SHERD_I32 };
    fixture f = { .n = 1 + below(20), .k = 1 + below(16), .m = 1 + below(16),
                  .public_b = below(3) == 0, .panel_rows = 1 + below(8),
                  .tile_cols = 1 + below(18), .type = types[below(3)],
                  .bits = (unsigned[]){ 2, 9, 17, 26 }[below(4)],
                  .primes = 1 + (unsigned)below(4) };
    f.blocks = 1 + (uint32_t)below(f.n < 4 ? f.n : 4);
    f.masks = 1 + (uint32_t)below(2);
    f.shares = sherd__lcc_threshold(f.blocks, f.masks, !f.public_b) + (uint32_t)below(3);
    f.left_stays = below(3) == 0;
    f.check_bytes = (size_t[]){ 0, 3000, 1u << 20 }[below(3)];
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
    fixture f = { .n = nsets * blocks - (blocks > 1 && nsets > 1), .k = 3, .m = 2,
                  .blocks = blocks, .masks = 1, .shares = 8, .public_b = public_b,
                  .panel_rows = 1, .tile_cols = 2, .bits = 17, .type = SHERD_F64,
                  .primes = primes };
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
            if (below(4)) run_product(&x, NULL, 0);
            else free(answer(&x, (sherd__cell){ 0, 0, 0 }, NULL)); /* given up */
        }
        close_product(&x);
    }
}

/* --- who is there no more --------------------------------------------------------------------- */

static size_t allocations_of_a_hide(product *x, sherd__cell c)
{
    sherd__cell_work w;
    sherd__alloc_fail_nth(SIZE_MAX); /* counts */
    assert_int_equal(x->h.ops->hide(x->h.ctx, c, &w), 0);
    size_t n = sherd__alloc_fail_nth(0);
    sherd__fragment_free(w.left);
    sherd__fragment_free(w.right);
    return n;
}

static void shares_of_the_dead_are_not_made_unless_asked_for(void **state)
{
    (void)state;
    fixture f = { .n = 12, .k = 4, .m = 3, .blocks = 2, .masks = 1, .shares = 9, .panel_rows = 2,
                  .tile_cols = 3, .type = SHERD_F64, .bits = 17 };
    product x;
    open_product(&x, f);
    uint8_t dead[2] = { 0x28, 0x01 }; /* 3, 5 and 8 */
    (void)allocations_of_a_hide(&x, (sherd__cell){ 0, 0, 0 });
    size_t all = allocations_of_a_hide(&x, (sherd__cell){ 0, 0, 1 });
    x.h.ops->spare(x.h.ctx, dead);
    assert_int_equal(allocations_of_a_hide(&x, (sherd__cell){ 0, 0, 2 }), all - 3);
    run_product(&x, NULL, 0);
    close_product(&x);
}

/* --- wrong answers --------------------------------------------------------------------------- */

/* All honest answers of a product, by tile, panel, slot; its positions stay open. */
typedef struct answers {
    uint8_t **body;
    uint64_t *len;
    size_t n;
} answers;

static sherd__cell cell_at(const product *x, size_t i)
{
    return (sherd__cell){ (uint32_t)(i % x->s.slots), (uint32_t)(i / x->s.slots / x->s.panels),
                          (uint32_t)(i / x->s.slots % x->s.panels) };
}

static answers all_answers(product *x)
{
    answers a = { .n = (size_t)x->s.slots * x->s.tiles * x->s.panels };
    a.body = calloc(a.n + 1, sizeof *a.body);
    a.len = calloc(a.n + 1, sizeof *a.len);
    for (size_t i = 0; i < a.n; i++) a.body[i] = answer(x, cell_at(x, i), &a.len[i]);
    return a;
}

static void free_answers(answers *a)
{
    for (size_t i = 0; i < a->n; i++) free(a->body[i]);
    free(a->body);
    free(a->len);
}

static void put_u24(uint8_t *to, uint32_t v)
{
    to[0] = (uint8_t)v, to[1] = (uint8_t)(v >> 8), to[2] = (uint8_t)(v >> 16);
}

static uint32_t get_u24(const uint8_t *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;
}

enum { ONE_OFF, ANY_RESIDUE, OUT_OF_RANGE, ZERO, EXCHANGED, OTHER_ANSWER, EARLIER, KINDS };

/* Spoils an answer; false where nothing changed. old: honest answers of an earlier product. */
static bool spoil(const product *x, const answers *a, const answers *old, size_t which, int kind,
                  uint8_t *body)
{
    uint64_t len = a->len[which];
    size_t n = len / 3, i = below(n), part = n / x->s.primes_len;
    uint32_t p = x->s.primes[i / part], v = get_u24(body + 3 * i);
    const answers *from = kind == EARLIER ? old : a;
    size_t j = from ? below(from->n) : 0;
    switch (kind) {
    case ONE_OFF: put_u24(body + 3 * i, (v + (below(2) ? 1 : p - 1)) % p); break;
    case ANY_RESIDUE: put_u24(body + 3 * i, (uint32_t)below(p)); break;
    case OUT_OF_RANGE: put_u24(body + 3 * i, p + (uint32_t)below((1u << 24) - p)); break;
    case ZERO: memset(body, 0, len); break;
    case EXCHANGED: /* two values of one prime */
        j = i / part * part + below(part);
        put_u24(body + 3 * i, get_u24(body + 3 * j));
        put_u24(body + 3 * j, v);
        break;
    default: /* of another node, panel or tile, or of an earlier product */
        if (!from || from->len[j] != len) return false;
        memcpy(body, from->body[j], len);
    }
    return memcmp(body, a->body[which], len) != 0;
}

static size_t must_refuse(product *x, const answers *a, const answers *old, size_t tries)
{
    size_t refused = 0;
    for (size_t i = 0; i < tries; i++) {
        size_t which = below(a->n);
        int kind = (int)below(KINDS);
        uint8_t *body = malloc(a->len[which] + 1);
        memcpy(body, a->body[which], a->len[which]);
        if (spoil(x, a, old, which, kind, body)) {
            refused++;
            if (judge(x, cell_at(x, which), body) != SHERD_EWRONG)
                fail_msg("a wrong answer of kind %d was accepted", kind);
        }
        free(body);
        if (below(4) == 0) assert_int_equal(judge(x, cell_at(x, which), a->body[which]), 0);
    }
    return refused;
}

static void what_checks_know_of_a_kept_operand_keeps_to_its_room(void **state)
{
    (void)state;
    fixture f = { .n = 60, .k = 8, .m = 3, .blocks = 2, .masks = 1, .shares = 5, .panel_rows = 3,
                  .tile_cols = 2, .left_stays = true, .type = SHERD_F64, .bits = 17 };
    for (unsigned i = 0; i < 3; i++) {
        f.check_bytes = (size_t[]){ 0, 5000, 1u << 20 }[i];
        product x;
        open_product(&x, f);
        const share *d = x.h.ctx;
        size_t each = sizeof(double) * 2 * x.s.primes_len, all = 0, kept = 0;
        size_t direct = each * 3 * 8, both = direct + each * 3 * 3; /* ru; and ur */
        for (unsigned round = 0; round < 4; round++) {
            if (round) next_product(&x, 3, round & 1);
            run_product(&x, NULL, 0);
            all = kept = 0;
            for (uint32_t p = 0; p < d->lefts; p++) {
                const share_panel *s = &d->panel[p];
                all += (s->ru ? direct : 0) + (s->ur ? both - direct : 0);
                kept += s->ru != NULL;
            }
            assert_int_equal(d->held, all);
            assert_true(all <= f.check_bytes);
        }
        assert_int_equal(kept, i == 0 ? 0 : i == 1 ? 5000 / both : d->lefts);
        answers a = all_answers(&x); /* late, and wrong ones of the next */
        next_product(&x, 3, false);
        answers b = all_answers(&x);
        assert_true(must_refuse(&x, &b, &a, 50) > 0);
        free_answers(&a);
        free_answers(&b);
        close_product(&x);
    }
}

/* One pass over A makes its shares and what checks them, from either side. */
static void shares_of_a_are_projected_while_they_are_made(void **state)
{
    (void)state;
    for (unsigned transposed = 0; transposed < 2; transposed++) {
        fixture f = { .n = 12, .k = 4, .m = 3, .blocks = 2, .masks = 1, .shares = 5,
                      .panel_rows = 2, .tile_cols = 3, .left_stays = true, .type = SHERD_F64,
                      .bits = 17 };
        sherd_fragment *u;
        product x;
        open_product(&x, f);
        next_product(&x, 3, transposed);
        const share *d = x.h.ctx;
        assert_int_equal(x.h.ops->left(x.h.ctx, 1, 0, &u), 0);
        assert_true((d->panel[0].ur != NULL) == transposed);
        assert_true((d->panel[0].ru != NULL) == !transposed);
        sherd__fragment_free(u);
        run_product(&x, NULL, 0);
        close_product(&x);
    }
}

static void ten_thousand_wrong_answers_are_refused(void **state)
{
    (void)state;
    size_t refused = 0;
    for (int i = 0; refused < 10000; i++) {
        fixture f = random_fixture();
        f.left_stays = true;
        product x;
        open_product(&x, f);
        answers first = all_answers(&x);
        refused += must_refuse(&x, &first, NULL, 60);
        bool transposed = !f.public_b && below(2);
        next_product(&x, x.f.m, transposed);
        answers second = all_answers(&x);
        refused += must_refuse(&x, &second, &first, 100);
        free_answers(&first);
        free_answers(&second);
        run_product(&x, NULL, 0); /* lies left nothing behind */
        close_product(&x);
    }
}

/* A lie that vanishes under all of r but its first entry, or all of s: found because these are
 * random. */
static void errors_that_add_up_to_nothing_are_refused(void **state)
{
    (void)state;
    fixture f = { .n = 8, .k = 5, .m = 6, .blocks = 2, .masks = 1, .shares = 5, .panel_rows = 4,
                  .tile_cols = 6, .type = SHERD_F64, .bits = 17, .primes = 2 };
    for (int i = 0; i < 100; i++) {
        product x;
        open_product(&x, f);
        sherd__cell c = { (uint32_t)below(5), 0, 0 };
        uint64_t len;
        uint8_t *body = answer(&x, c, &len);
        size_t part = len / x.s.primes_len, row = 18, a = below(4), b = (a + 1 + below(3)) % 4;
        size_t q = below(x.s.primes_len), j = below(6);
        uint32_t p = x.s.primes[q];
        uint8_t *u = body + q * part + a * row + 3 * j, *v = body + q * part + b * row + 3 * j;
        put_u24(u, (get_u24(u) + 1) % p);
        put_u24(v, (get_u24(v) + p - 1) % p);
        assert_int_equal(judge(&x, c, body), SHERD_EWRONG);
        free(body);
        close_product(&x);
    }
}

static void a_wrong_answer_has_all_check_vectors_drawn_anew(void **state)
{
    (void)state;
    fixture f = { .n = 8, .k = 5, .m = 6, .blocks = 2, .masks = 1, .shares = 5, .panel_rows = 2,
                  .tile_cols = 3, .type = SHERD_F64, .bits = 17, .primes = 2, .left_stays = true };
    for (int transposed = 0; transposed < 2; transposed++) {
        product x;
        open_product(&x, f);
        if (transposed) next_product(&x, 6, true);
        answers a = all_answers(&x);
        for (size_t i = 0; i < a.n; i++) assert_int_equal(judge(&x, cell_at(&x, i), a.body[i]), 0);
        uint64_t drawn = scheme_state.drawn;
        for (size_t i = 0; i < a.n; i++) assert_int_equal(judge(&x, cell_at(&x, i), a.body[i]), 0);
        assert_true(scheme_state.drawn == drawn);
        a.body[0][0] ^= 1;
        assert_int_equal(judge(&x, cell_at(&x, 0), a.body[0]), SHERD_EWRONG);
        a.body[0][0] ^= 1;
        for (size_t i = a.n; i-- > 0;) { /* r and s, of panels and tiles that are open already */
            assert_int_equal(judge(&x, cell_at(&x, i), a.body[i]), 0);
            if (i == a.n - 1 || i == 0) assert_true(scheme_state.drawn > drawn);
            if (i == a.n - 1) drawn = scheme_state.drawn;
        }
        free_answers(&a);
        close_product(&x);
    }
}

static void what_was_projected_of_a_serves_the_next_product(void **state)
{
    (void)state;
    fixture f = { .n = 800, .k = 2, .m = 1, .blocks = 2, .masks = 1, .shares = 5, .panel_rows = 50,
                  .tile_cols = 1, .type = SHERD_F64, .bits = 17, .primes = 2, .left_stays = true,
                  .check_bytes = 1u << 20 };
    product x;
    open_product(&x, f);
    uint64_t start = scheme_state.drawn;
    run_product(&x, NULL, 0);
    uint64_t first = scheme_state.drawn - start;
    assert_int_equal(sherd__share_next(&x.h, all_rows(&x), x.b, false, x.c, 1, &x.fb), 0);
    run_product(&x, NULL, 0);
    uint64_t second = scheme_state.drawn - start - first; /* B's masks and s, no r: 8 panels' */
    assert_true(second + 8 * 2 * 32 <= first);            /* keys, one a prime */
    close_product(&x);
}

static void a_wrong_answer_that_comes_late_is_refused_and_does_no_harm(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        fixture f = random_fixture();
        product x;
        open_product(&x, f);
        answers a = all_answers(&x);
        run_product(&x, NULL, 0);
        size_t which = below(a.n);
        a.body[which][0] ^= 1;
        assert_int_equal(judge(&x, cell_at(&x, which), a.body[which]), SHERD_EWRONG);
        a.body[which][0] ^= 1;
        for (size_t j = 0; j < a.n; j++) assert_int_equal(judge(&x, cell_at(&x, j), a.body[j]), 0);
        result_is_exact(&x);
        free_answers(&a);
        close_product(&x);
    }
}

/* --- the same share again, and nothing else in common ---------------------------------------- */

static uint8_t *hidden(product *x, sherd__cell c, uint64_t *len)
{
    sherd__cell_work w;
    assert_int_equal(x->h.ops->hide(x->h.ctx, c, &w), 0);
    sherd_fragment *f = w.left ? w.left : w.right;
    if (!f) assert_int_equal(x->h.ops->left(x->h.ctx, c.slot, c.panel, &f), 0);
    uint8_t *bytes = read_by_pieces(f);
    if (len) *len = sherd__fragment_info_of(f)->len;
    sherd__fragment_free(f);
    return bytes;
}

static uint8_t *at_node(product *x, uint32_t slot, uint32_t tile, uint64_t *len)
{
    sherd_fragment *f;
    assert_int_equal(x->h.ops->resident(x->h.ctx, slot, tile, &f), 0);
    uint8_t *bytes = read_by_pieces(f);
    *len = sherd__fragment_info_of(f)->len;
    sherd__fragment_free(f);
    return bytes;
}

static void a_share_asked_for_again_is_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < 80; i++) {
        fixture f = random_fixture();
        product x;
        open_product(&x, f);
        bool transposed = f.left_stays && !f.public_b && below(2);
        if (transposed) next_product(&x, f.m, true);
        uint32_t slots = x.s.slots;
        sherd__cell c = { 0, (uint32_t)below(x.s.tiles), (uint32_t)below(x.s.panels) };
        uint8_t *first[32];
        uint64_t len;
        for (c.slot = 0; c.slot < slots; c.slot++) first[c.slot] = hidden(&x, c, &len);
        bool decoded = below(2);
        if (decoded) run_product(&x, NULL, 0);
        for (c.slot = 0; c.slot < slots; c.slot++) {
            uint8_t *again = hidden(&x, c, &len);
            assert_memory_equal(again, first[c.slot], len);
            free(again);
            free(first[c.slot]);
        }
        close_product(&x);
    }
}

static void blocks_of_b_do_not_depend_on_how_they_are_read(void **state)
{
    (void)state;
    /* 14 MB of terms for each prime: more than the cache keeps. */
    fixture f = { .n = 2, .k = 3000, .m = 300, .blocks = 1, .masks = 1, .shares = 8,
                  .panel_rows = 2, .tile_cols = 300, .type = SHERD_U8, .bits = 8, .primes = 2 };
    product x;
    open_product(&x, f);
    uint64_t len;
    uint8_t *whole = at_node(&x, 3, 0, &len), *other = at_node(&x, 4, 0, &len);
    sherd_fragment *u, *v;
    assert_int_equal(x.h.ops->resident(x.h.ctx, 3, 0, &u), 0);
    assert_int_equal(x.h.ops->resident(x.h.ctx, 4, 0, &v), 0);
    for (int i = 0; i < 60; i++) {
        uint8_t piece[5000];
        size_t n = 1 + below(sizeof piece), at = below(len - n);
        assert_int_equal(sherd__fragment_read(i % 2 ? u : v, at, piece, n), 0);
        assert_memory_equal(piece, (i % 2 ? whole : other) + at, n);
    }
    sherd__fragment_free(u);
    sherd__fragment_free(v);
    free(whole);
    free(other);
    close_product(&x);
}

static size_t equal_residues(const uint8_t *a, const uint8_t *b, size_t n)
{
    size_t equal = 0;
    for (size_t i = 0; i < n; i++) equal += memcmp(a + 3 * i, b + 3 * i, 3) == 0;
    return equal;
}

/* The same residues in two places are as rare as chance: one in six million. */
static void nothing_alike(const uint8_t *a, const uint8_t *b, uint64_t len)
{
    assert_true(equal_residues(a, b, len / 3) <= 1);
}

static void two_encodings_have_nothing_in_common(void **state)
{
    (void)state;
    fixture f = { .n = 60, .k = 40, .m = 50, .blocks = 2, .masks = 1, .shares = 5,
                  .left_stays = true, .panel_rows = 30, .tile_cols = 25, .type = SHERD_F64,
                  .bits = 9, .primes = 2 };
    product x, y;
    open_product(&x, f);
    open_product(&y, f);
    uint64_t len, blen;
    const sherd__cell cell = { 1, 0, 0 };
    uint8_t *a = hidden(&x, cell, &len), *b = hidden(&y, cell, &len);
    nothing_alike(a, b, len);
    nothing_alike(a, a + len / 2, len / 2); /* one mask reduced modulo two primes would be */
    free(b);
    b = hidden(&x, (sherd__cell){ 2, 0, 0 }, &len);
    nothing_alike(a, b, len);
    uint8_t *c = at_node(&x, 1, 0, &blen), *d = at_node(&x, 1, 1, &blen);
    nothing_alike(c, d, blen); /* tiles */
    nothing_alike(a, c, len < blen ? len : blen);
    free(d);
    /* The same B for the same shares of A. */
    assert_int_equal(sherd__share_next(&x.h, all_rows(&x), x.b, false, x.c, f.m, &x.fb), 0);
    d = at_node(&x, 1, 0, &blen);
    nothing_alike(c, d, blen);
    free(a);
    free(b);
    free(c);
    free(d);
    close_product(&x);
    close_product(&y);
}

/* Equal parts of an operand: shares of one tell nothing of those of another, nor do runs that take
 * different parts give a part other shares. */
static void parts_of_an_operand_have_masks_of_their_own(void **state)
{
    (void)state;
    enum { PARTS = 4, PART = 24 };
    fixture f = { .n = PARTS * PART, .k = 40, .m = 2, .blocks = 2, .masks = 1, .shares = 5,
                  .left_stays = true, .panel_rows = 30, .tile_cols = 2, .type = SHERD_F64,
                  .bits = 9, .primes = 2, .part = PART };
    product x;
    uint8_t *made[PARTS];
    uint64_t len;
    open_product(&x, f);
    double *a = x.da;
    for (size_t i = PART; i < PARTS * PART; i++)
        memcpy(a + i * f.k, a + i % PART * f.k, f.k * sizeof *a);
    assert_int_equal(x.s.lefts, PARTS);
    for (uint32_t i = 0; i < PARTS; i++) {
        made[i] = hidden(&x, (sherd__cell){ 1, 0, i }, &len);
        for (uint32_t j = 0; j < i; j++) nothing_alike(made[i], made[j], len);
    }
    for (uint32_t first = 0; first < PARTS; first++) {
        sherd_rows rows = { first * PART, (PARTS - first) * PART };
        assert_int_equal(sherd__share_next(&x.h, rows, x.b, false, x.c, f.m, &x.fb), 0);
        x.h.ops->shape(x.h.ctx, &x.s);
        assert_int_equal(x.s.left_from, first);
        assert_int_equal(x.s.lefts, PARTS);
        assert_int_equal(x.s.panels, PARTS - first);
        uint8_t *again = hidden(&x, (sherd__cell){ 1, 0, 0 }, &len);
        assert_memory_equal(again, made[first], len);
        free(again);
    }
    for (uint32_t i = 0; i < PARTS; i++) free(made[i]);
    close_product(&x);
}

static void sizes_depend_on_shapes_only(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        fixture f = random_fixture();
        uint64_t len[2], blen[2];
        f.type = SHERD_F64;
        for (int zero = 0; zero < 2; zero++) {
            product x;
            f.zero_a = zero;
            open_product(&x, f);
            free(hidden(&x, (sherd__cell){ 0, 0, 0 }, &len[zero]));
            free(at_node(&x, 0, 0, &blen[zero]));
            close_product(&x);
        }
        assert_int_equal(len[0], len[1]);
        assert_int_equal(blen[0], blen[1]);
    }
}

/* Chi-squared of residues in 64 classes: 63 on average, above 150 once in 10^8. */
static double chi_squared(const uint32_t *v, size_t n, uint32_t p)
{
    double count[64] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i++) count[(uint64_t)v[i] * 64 / p]++;
    for (int i = 0; i < 64; i++) sum += (count[i] - (double)n / 64) * (count[i] - (double)n / 64);
    return sum * 64 / (double)n;
}

/* a*x + b*y modulo p of two shares' residues. */
static double chi_of(const uint8_t *x, const uint8_t *y, size_t n, uint64_t a, uint64_t b,
                     uint32_t p)
{
    uint32_t *v = malloc((n + 1) * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (uint32_t)((a * get_u24(x + 3 * i) + b * get_u24(y + 3 * i)) % p);
    double chi = chi_squared(v, n, p);
    free(v);
    return chi;
}

static uint64_t unsigned_of(double w, uint32_t p)
{
    return (uint64_t)(w < 0 ? w + p : w);
}

static void two_shares_of_nothing_look_uniform_and_three_do_not(void **state)
{
    (void)state;
    fixture f = { .n = 128, .k = 64, .m = 3, .blocks = 2, .masks = 2, .shares = 7, .zero_a = true,
                  .panel_rows = 64, .tile_cols = 8, .type = SHERD_F64, .bits = 17, .primes = 2 };
    product x;
    open_product(&x, f);
    uint32_t p = x.s.primes[0];
    size_t n = 64 * 64;
    uint8_t *s[3];
    double w[3][4];
    for (uint32_t i = 0; i < 3; i++) {
        s[i] = hidden(&x, (sherd__cell){ i, 0, 0 }, NULL);
        sherd__lcc_encode_weights(&x.p.code, p, i, w[i]);
    }
    for (int i = 0; i < 50; i++) {
        uint64_t a = i ? below(p) : 1, b = i ? below(p) : 0;
        assert_true(chi_of(s[0], s[1], n, a, b, p) < 150);
        assert_true(chi_of(s[1], s[2], n, a, b, p) < 150);
    }
    /* Three shares: where both masks cancel, what is left is of the blocks alone, here 0. */
    uint64_t m[3][2], l[3];
    for (int i = 0; i < 3; i++)
        for (int t = 0; t < 2; t++) m[i][t] = unsigned_of(w[i][2 + t], p);
    for (int i = 0; i < 3; i++) {
        const uint64_t *u = m[(i + 1) % 3], *v = m[(i + 2) % 3];
        l[i] = (u[0] * v[1] % p + p - u[1] * v[0] % p) % p;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = 0;
        for (int j = 0; j < 3; j++) sum += l[j] * get_u24(s[j] + 3 * i) % p;
        assert_int_equal(sum % p, 0);
    }
    for (int i = 0; i < 3; i++) free(s[i]);
    close_product(&x);
}

/* --- two threads ----------------------------------------------------------------------------- */

/* As the loop does: B's shares are read while cells are hidden, checked and decoded elsewhere. */
static void *read_all_of_b(void *arg)
{
    product *x = arg;
    for (uint32_t t = 0; t < x->s.tiles; t++) {
        for (uint32_t i = 0; i < x->s.slots; i++) {
            sherd_fragment *f;
            uint8_t piece[512];
            if (x->h.ops->resident(x->h.ctx, i, t, &f)) return x;
            uint64_t len = sherd__fragment_info_of(f)->len;
            for (uint64_t at = 0; at < len; at += sizeof piece) {
                size_t n = len - at < sizeof piece ? (size_t)(len - at) : sizeof piece;
                if (sherd__fragment_read(f, at, piece, n)) return x;
            }
            sherd__fragment_free(f);
        }
    }
    return NULL;
}

static void b_is_sent_by_one_thread_while_another_hides(void **state)
{
    (void)state;
    fixture f = { .n = 40, .k = 60, .m = 50, .blocks = 2, .masks = 1, .shares = 5, .panel_rows = 5,
                  .tile_cols = 20, .type = SHERD_F64, .bits = 17, .primes = 2 };
    product x;
    pthread_t loop;
    void *failed;
    open_product(&x, f);
    assert_int_equal(pthread_create(&loop, NULL, read_all_of_b, &x), 0);
    for (uint32_t t = 0; t < x.s.tiles; t++) {
        for (uint32_t p = 0; p < x.s.panels; p++) {
            uint8_t *zeros = calloc(1, x.s.result_max);
            sherd__cell c = { 1, t, p };
            free(hidden(&x, c, NULL));
            assert_int_equal(judge(&x, c, zeros), SHERD_EWRONG);
            free(zeros);
        }
    }
    assert_int_equal(pthread_join(loop, &failed), 0);
    assert_null(failed);
    close_product(&x);
}

/* --- bookkeeping ----------------------------------------------------------------------------- */

static void codes_that_are_none_are_refused(void **state)
{
    (void)state;
    fixture f = { .n = 6, .k = 3, .m = 2, .blocks = 2, .masks = 1, .shares = 5, .panel_rows = 2,
                  .tile_cols = 2, .type = SHERD_F64, .bits = 17, .left_stays = true };
    product x;
    open_product(&x, f);
    sherd__share_params good = x.p, p = good;
    sherd__hiding h;
    p.code.masks = 0;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = good, p.code.shares = 4; /* one fewer than decode needs */
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = good, p.code = (sherd__lcc){ 7, 1, 20 }; /* more blocks than rows */
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = good, p.b.rows = 2;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = good, p.primes_len = 0;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = good, p.primes[0] = 5; /* points 1 to 8 */
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    assert_null(h.ops);
    sherd__fixed wide = x.fb;
    assert_int_equal(sherd__share_next(&x.h, all_rows(&x), x.a, false, x.c, 3, &x.fb),
                     SHERD_ESHAPE);
    static const sherd_rows none[] = { { 1, 5 }, { 0, 3 }, { 0, 7 }, { 6, 1 }, { 2, SIZE_MAX } };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        product y;
        open_product(&y, f);
        assert_int_equal(sherd__share_next(&y.h, none[i], y.b, false, y.c, 2, &y.fb),
                         SHERD_EINVAL);
        close_product(&y);
    }
    wide.bound = UINT64_C(1) << 52;
    assert_int_equal(sherd__share_next(&x.h, all_rows(&x), x.b, false, x.c, 2, &wide),
                     SHERD_ERANGE);
    run_product(&x, NULL, 0); /* still the first one */
    uint64_t a, b;
    x.h.ops->entries(x.h.ctx, (sherd__cell){ 0 }, &a, &b);
    assert_int_equal(a + b, 0);
    close_product(&x);
    f.left_stays = false;
    open_product(&x, f);
    assert_int_equal(sherd__share_next(&x.h, all_rows(&x), x.b, false, x.c, 2, &x.fb),
                     SHERD_EINVAL);
    close_product(&x);
    f.public_b = f.left_stays = true;
    open_product(&x, f);
    assert_int_equal(sherd__share_next(&x.h, all_rows(&x), x.a, true, x.c, 3, &x.fa), SHERD_EINVAL);
    close_product(&x);
}

static void a_product_may_come_after_its_left_operand(void **state)
{
    (void)state;
    fixture f = { .n = 9, .k = 4, .m = 5, .blocks = 2, .masks = 1, .shares = 6, .panel_rows = 2,
                  .tile_cols = 3, .type = SHERD_F64, .bits = 17, .left_stays = true };
    for (int transposed = 0; transposed < 2; transposed++) {
        product x;
        open_product(&x, f);
        x.h.ops->free(x.h.ctx);
        x.p.c = NULL;
        assert_int_equal(sherd__share_open(&x.h, &x.p), 0);
        x.h.ops->shape(x.h.ctx, &x.s);
        assert_int_equal(x.s.tiles, 0);
        next_product(&x, 5, transposed);
        run_product(&x, NULL, 0);
        close_product(&x);
    }
}

/* Every step that fails for want of memory may be tried again, and the product is right all the
 * same. */
static void poor_product(product *x, size_t nth)
{
    const sherd__scheme *ops = x->h.ops;
    uint8_t *body[32];
    sherd__alloc_fail_nth(nth);
    for (uint32_t t = 0; t < x->s.tiles; t++) {
        for (uint32_t p = 0; p < x->s.panels; p++) {
            uint32_t slots[32];
            const uint8_t *bodies[32];
            for (uint32_t i = 0; i < x->s.threshold; i++) {
                sherd__cell c = { i, t, p };
                sherd__cell_work w;
                sherd_fragment *u, *v;
                TRY(ops->hide(x->h.ctx, c, &w));
                u = w.left;
                v = w.right;
                if (!u) TRY(ops->left(x->h.ctx, c.slot, c.panel, &u));
                if (!v) TRY(ops->resident(x->h.ctx, c.slot, c.tile, &v));
                uint8_t *ub = read_by_pieces(u), *vb = read_by_pieces(v);
                bodies[i] = body[i] = compute(x, u, ub, v, vb, &w.result);
                slots[i] = i;
                free(ub);
                free(vb);
                sherd__fragment_free(u);
                sherd__fragment_free(v);
                TRY(ops->check(x->h.ctx, c, body[i]));
            }
            TRY(ops->decode(x->h.ctx, t, p, slots, bodies, x->s.threshold));
            for (uint32_t i = 0; i < x->s.threshold; i++) free(body[i]);
        }
    }
    sherd__alloc_fail_nth(0);
    result_is_exact(x);
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    fixture f = { .n = 5, .k = 2, .m = 3, .blocks = 2, .masks = 1, .shares = 5, .panel_rows = 2,
                  .tile_cols = 2, .type = SHERD_F64, .bits = 17, .primes = 2 };
    for (int stays = 0; stays < 3; stays++) {
        f.left_stays = stays;
        f.public_b = false;
        bool failed = true;
        for (size_t n = 1; failed; n++) {
            product x;
            sherd__hiding h = { 0 };
            open_product(&x, f);
            sherd__alloc_fail_nth(n);
            int err = sherd__share_open(&h, &x.p);
            bool met = sherd__alloc_fail_nth(0) >= n;
            assert_int_equal(err, met ? SHERD_ENOMEM : SHERD_OK);
            if (!err) h.ops->free(h.ctx);
            if (stays == 2) next_product(&x, 3, true);
            shortages = 0;
            poor_product(&x, n);
            failed = shortages || met;
            close_product(&x);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_over_many_rows_need_no_third_prime),
        cmocka_unit_test(sums_that_no_group_holds_are_refused),
        cmocka_unit_test(any_product_is_the_exact_one),
        cmocka_unit_test(shapes_at_their_limits_work),
        cmocka_unit_test(empty_products_have_no_cells),
        cmocka_unit_test(every_subset_of_eight_that_is_large_enough_decodes),
        cmocka_unit_test(shares_that_stay_serve_products_both_ways),
        cmocka_unit_test(shares_of_a_are_projected_while_they_are_made),
        cmocka_unit_test(what_checks_know_of_a_kept_operand_keeps_to_its_room),
        cmocka_unit_test(shares_of_the_dead_are_not_made_unless_asked_for),
        cmocka_unit_test(ten_thousand_wrong_answers_are_refused),
        cmocka_unit_test(errors_that_add_up_to_nothing_are_refused),
        cmocka_unit_test(a_wrong_answer_has_all_check_vectors_drawn_anew),
        cmocka_unit_test(what_was_projected_of_a_serves_the_next_product),
        cmocka_unit_test(a_wrong_answer_that_comes_late_is_refused_and_does_no_harm),
        cmocka_unit_test(a_share_asked_for_again_is_the_same),
        cmocka_unit_test(blocks_of_b_do_not_depend_on_how_they_are_read),
        cmocka_unit_test(two_encodings_have_nothing_in_common),
        cmocka_unit_test(parts_of_an_operand_have_masks_of_their_own),
        cmocka_unit_test(sizes_depend_on_shapes_only),
        cmocka_unit_test(two_shares_of_nothing_look_uniform_and_three_do_not),
        cmocka_unit_test(b_is_sent_by_one_thread_while_another_hides),
        cmocka_unit_test(codes_that_are_none_are_refused),
        cmocka_unit_test(a_product_may_come_after_its_left_operand),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("crypto/share", tests, seed, NULL);
}
