/* Both sides of a product under share, in one thread and without a network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/inner.h"
#include "crypto/seed.h"
#include "matrix/fixed.h"
#include "matrix/reference.h"
#include "matrix/residue.h"
#include "matrix/view.h"
#include "tests/unit/schemes/share_world.h"

sherd__seeded share_scheme_state;
static sherd__seeded rng_state;
static sherd__entropy rng, scheme_rng; /* for the tests, and for the code under test */

int share_seed(void **state)
{
    (void)state;
    rng = sherd__entropy_seeded(&rng_state, 11);
    scheme_rng = sherd__entropy_seeded(&share_scheme_state, 12);
    return 0;
}

size_t share_below(size_t n)
{
    return (size_t)sherd__entropy_below(&rng, n);
}

/* --- a product ------------------------------------------------------------------------------- */

static void *random_matrix(size_t rows, size_t cols, sherd_dtype t, bool zero, double all)
{
    size_t n = rows * cols;
    uint8_t *data = calloc(n * sherd_dtype_size(t) + 1, 1);
    for (size_t i = 0; i < n && !zero; i++) {
        double x = share_below(8) == 0 ? 0 : ((double)share_below(2001) - 1000) / 64;
        if (all != 0) x = all;
        if (t == SHERD_F64) memcpy(data + 8 * i, &x, 8);
        if (t == SHERD_U8) data[i] = (uint8_t)fabs(x);
        if (t == SHERD_I32) memcpy(data + 4 * i, &(int32_t){ (int32_t)x * 1000 }, 4);
    }
    return data;
}

void share_set_view(fixture f, size_t rows, size_t cols, bool zero, void **data, sherd_view *v,
                    sherd__fixed *fixed)
{
    free(*data);
    *data = random_matrix(rows, cols, f.type, zero, f.all);
    *v = sherd_view_c(*data, f.type, rows, cols);
    assert_int_equal(sherd__fixed_choose(*v, f.bits, "X", fixed, NULL), 0);
    if (fixed->integers)
        fixed->bound = f.type == SHERD_U8 ? 255 : 16383; /* the bound of all values, not of these */
}

sherd_view share_left(product *x)
{
    size_t rows = x->f.n * x->w.count, each = sherd_dtype_size(x->f.type);
    if (!x->w.count) return x->a;
    free(x->laid);
    x->laid = malloc(rows * x->w.row * each + 1);
    sherd__windows_rows(&x->w, x->da, each, 0, rows, x->laid);
    return sherd_view_c(x->laid, x->f.type, rows, x->w.row);
}

/* Makes the transpose of A a view of its own, for the reference of A^T * D. */
static void set_reference(product *x)
{
    sherd_view left = share_left(x);
    if (x->transposed) left = sherd_view_t(left);
    x->c_rows = left.rows;
    free(x->c);
    free(x->ref);
    x->c = malloc((left.rows * x->b.cols + 1) * sizeof *x->c);
    x->ref = calloc(left.rows * x->b.cols + 1, sizeof *x->ref);
    for (size_t i = 0; i < left.rows * x->b.cols; i++) x->c[i] = -1e300;
    assert_int_equal(sherd__reference_exact(&(sherd__matrices){ left, x->b, x->ref, x->b.cols },
                                            &x->fa, &x->fb, NULL),
                     0);
}

static const sherd__code *code_of(fixture f)
{
    return f.inner ? &sherd__code_inner : &sherd__code_lagrange;
}

uint32_t share_threshold(fixture f)
{
    return code_of(f)->threshold(f.blocks, f.masks, !f.public_b);
}

bool share_both_ways(fixture f)
{
    return !f.public_b && !f.inner;
}

void share_open(product *x, fixture f)
{
    static const uint32_t slots[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    size_t primes;
    assert_true(f.seeds <= sizeof slots / sizeof *slots);
    *x = (product){ .f = f };
    if (f.windows.window) assert_true(sherd__windows_fit(&f.windows, &x->w));
    if (x->w.count) x->f.k = f.k = x->w.row;
    share_set_view(f, f.n, x->w.count ? x->w.image : f.k, f.zero_a, &x->da, &x->a, &x->fa);
    share_set_view(f, f.k, f.m, false, &x->db, &x->b, &x->fb);
    set_reference(x);
    size_t terms = f.k > share_rows(x).count || f.grouped ? f.k : share_rows(x).count;
    if (f.bytes) primes = sherd__bytes_primes_needed(terms, x->fa.bound, x->fb.bound);
    else
        assert_int_equal(sherd__exact_primes_needed(terms, x->fa.bound, x->fb.bound,
                                                    &sherd__primes_default, &primes),
                         0);
    assert_true(primes > 0);
    x->p = (sherd__share_params){
        .a = x->a,
        .b = x->b,
        .c = x->c,
        .ldc = f.m,
        .by = code_of(f),
        .code = { f.blocks, f.masks, f.shares },
        .public_b = f.public_b,
        .left_stays = f.left_stays,
        .windows = f.windows,
        .part_rows = f.part,
        .panel_rows = f.panel_rows,
        .tile_cols = f.tile_cols,
        .fixed_a = x->fa,
        .fixed_b = x->fb,
        .bytes = f.bytes,
        .primes_len = (uint32_t)(primes < f.primes ? f.primes : primes),
        .seed_slots = slots,
        .seed_slots_len = !f.bytes || f.seeds < f.masks ? 0
                          : f.seeds < f.shares          ? f.seeds
                                                        : f.shares,
        .check_bytes = f.check_bytes,
        .entropy = scheme_rng,
    };
    memcpy(x->p.primes, f.bytes ? sherd__byte_primes : sherd__primes_default.p,
           x->p.primes_len * sizeof x->p.primes[0]);
    if (x->w.count) x->p.c = NULL; /* products come later */
    assert_int_equal(sherd__share_open(&x->h, &x->p), 0);
    x->h.ops->shape(x->h.ctx, &x->s);
}

void share_close(product *x)
{
    x->h.ops->free(x->h.ctx);
    free(x->da);
    free(x->db);
    free(x->laid);
    free(x->c);
    free(x->ref);
}

sherd_rows share_rows(const product *x)
{
    return (sherd_rows){ 0, x->f.n * (x->w.count ? x->w.count : 1) };
}

void share_next(product *x, size_t m, bool transposed)
{
    share_set_view(x->f, transposed ? share_rows(x).count : x->f.k, m, false, &x->db, &x->b,
                   &x->fb);
    x->transposed = transposed;
    set_reference(x);
    assert_int_equal(sherd__share_next(&x->h,
                                       &(sherd__kept_product){ share_rows(x), transposed, x->b,
                                                               x->c, m },
                                       &x->fb),
                     0);
    x->h.ops->shape(x->h.ctx, &x->s);
}

void share_is_exact(const product *x)
{
    for (size_t i = 0; i < x->c_rows * x->b.cols; i++)
        if (memcmp(&x->c[i], &x->ref[i], sizeof(double)) != 0)
            fail_msg("entry %zu is %.17g, not %.17g (%zu x %zu x %zu, K %u)", i, x->c[i], x->ref[i],
                     x->f.n, x->f.k, x->f.m, x->f.blocks);
}

/* --- a node ---------------------------------------------------------------------------------- */

unsigned share_shortages;

int share_again(int err)
{
    assert_int_equal(err, SHERD_ENOMEM);
    sherd__alloc_fail_nth(0);
    share_shortages++;
    return 1;
}

void share_grow(sherd__fragment **f)
{
    sherd__fragment_info whole = sherd__fragment_whole(sherd__fragment_info_of(*f));
    sherd__fragment *grown;
    if (sherd__fragment_info_of(*f)->encoding != SHERD__SEED) return;
    assert_int_equal(sherd__seed_check(*f, NULL), 0);
    uint8_t *bytes = sherd__alloc(whole.len);
    memset(bytes, 0xa5, whole.len);
    assert_int_equal(sherd__seed_defer(&grown, *f, bytes, NULL, NULL), 0);
    assert_int_equal(sherd__fragment_settle(grown), 0);
    *f = grown;
}

uint8_t *share_read(sherd__fragment *f)
{
    uint64_t len = sherd__fragment_info_of(f)->len;
    uint8_t *bytes = malloc(len + 1);
    for (uint64_t at = 0; at < len;) {
        size_t n = 1 + share_below(len > 100000 ? 70000 : 200);
        if (n > len - at) n = (size_t)(len - at);
        TRY(sherd__fragment_read(f, at, bytes + at, n));
        at += n;
    }
    return bytes;
}

static size_t tiles_of(uint64_t terms)
{
    return (size_t)(terms + 63) / 64;
}

/* Returns a byte residue of an operand that is laid out (crypto/fragment.h). */
static int64_t byte_at(const sherd__fragment_info *i, const uint8_t *body, uint32_t q, size_t at)
{
    size_t row = at / i->cols, col = at % i->cols;
    if (i->dtype == SHERD__BYTES_LEFT) {
        body += (row / 16 * i->primes + q) * tiles_of(i->cols) * 1024;
        return body[col / 64 * 1024 + row % 16 * 64 + col % 64];
    }
    body += (col / 16 * i->primes + q) * tiles_of(i->rows) * 1024;
    return (int8_t)body[row / 64 * 1024 + row % 64 / 4 * 64 + col % 16 * 4 + row % 4];
}

int64_t share_value(const sherd__fragment_info *i, const uint8_t *body, uint32_t q, size_t at)
{
    if (sherd__fragment_is_bytes(i->dtype)) return byte_at(i, body, q, at);
    if (i->dtype == SHERD__RESIDUES) {
        body += 3 * ((size_t)q * i->rows * i->cols + at);
        return body[0] | body[1] << 8 | body[2] << 16;
    }
    sherd_view v = sherd_view_c(body, (sherd_dtype)i->dtype, 1, i->rows * i->cols);
    double x;
    sherd__view_row_f64(v, 0, at, 1, &x);
    return (int64_t)x;
}

uint8_t *share_compute(const product *x, sherd__fragment *u, const uint8_t *ub, sherd__fragment *v,
                       const uint8_t *vb, const sherd__fragment_info *result)
{
    sherd__fragment_info left = *sherd__fragment_info_of(u), *ui = &left;
    const sherd__fragment_info *vi = sherd__fragment_info_of(v);
    uint8_t *body = malloc(result->len + 1), *to = body, *laid = NULL;
    assert_int_equal(memcmp(&x->s.windows, &x->f.windows, sizeof x->s.windows), 0);
    if (x->w.count) { /* of every prime */
        laid = malloc(3 * x->s.primes_len * left.rows * x->w.count * x->w.row + 1);
        sherd__windows_rows(&x->w, ub, 3, 0, x->s.primes_len * left.rows * x->w.count, laid);
        left.rows *= x->w.count;
        left.cols = x->w.row;
        ub = laid;
    }
    size_t inner = x->transposed ? ui->rows : ui->cols;
    assert_int_equal(inner, vi->rows);
    assert_int_equal(result->rows, x->transposed ? ui->cols : ui->rows);
    assert_int_equal(result->cols, vi->cols);
    const size_t each = x->f.bytes ? 1 : 3;
    assert_int_equal(result->len, each * result->rows * result->cols * x->s.primes_len);
    assert_true(result->len <= x->s.result_max);
    for (uint32_t q = 0; q < x->s.primes_len; q++) {
        int64_t p = x->s.primes[q];
        for (size_t i = 0; i < result->rows; i++) {
            for (size_t j = 0; j < result->cols; j++, to += each) {
                int64_t sum = 0;
                for (size_t l = 0; l < inner; l++) {
                    size_t at = x->transposed ? l * ui->cols + i : i * ui->cols + l;
                    int64_t factor = share_value(vi, vb, q, l * vi->cols + j) % p;
                    sum += share_value(ui, ub, q, at) % p * factor % p;
                }
                sum = (sum % p + p) % p;
                to[0] = (uint8_t)sum;
                if (each > 1) to[1] = (uint8_t)(sum >> 8), to[2] = (uint8_t)(sum >> 16);
            }
        }
    }
    free(laid);
    return body;
}

uint8_t *share_answer(product *x, sherd__cell c, uint64_t *len)
{
    const sherd__hiding_ops *ops = x->h.ops;
    sherd__cell_work w;
    sherd__fragment *u, *v;
    assert_int_equal(ops->hide(x->h.ctx, c, &w), 0);
    assert_false(w.empty);
    u = w.left;
    v = w.right;
    assert_true((!u) == x->s.left_stays);
    assert_true((!v) == x->s.resident);
    if (!u) assert_int_equal(ops->left(x->h.ctx, c.slot, c.panel, &u), 0);
    if (!v) assert_int_equal(ops->resident(x->h.ctx, c.slot, c.tile, &v), 0);
    share_grow(&u);
    share_grow(&v);
    uint8_t *ub = share_read(u), *vb = share_read(v);
    uint8_t *body = share_compute(x, u, ub, v, vb, &w.result);
    if (len) *len = w.result.len;
    free(ub);
    free(vb);
    sherd__fragment_free(u);
    sherd__fragment_free(v);
    return body;
}

int share_judge(product *x, sherd__cell c, const uint8_t *body)
{
    return x->h.ops->check(x->h.ctx, c, body);
}

uint32_t share_random_set(uint32_t n, uint32_t take)
{
    uint32_t set = 0;
    while (take) {
        uint32_t bit = UINT32_C(1) << share_below(n);
        if (set & bit) continue;
        set |= bit;
        take--;
    }
    return set;
}

void share_decode_from(product *x, uint32_t tile, uint32_t panel, uint8_t *const *body,
                       uint32_t set)
{
    uint32_t slots[32], len = 0;
    const uint8_t *bodies[32];
    for (uint32_t i = 0; i < x->s.slots; i++)
        if (set >> i & 1) slots[len++] = i;
    for (uint32_t i = len; i > 1; i--) {
        uint32_t j = (uint32_t)share_below(i), t = slots[i - 1];
        slots[i - 1] = slots[j];
        slots[j] = t;
    }
    for (uint32_t i = 0; i < len; i++) bodies[i] = body[slots[i]];
    assert_int_equal(len, x->s.threshold);
    assert_int_equal(x->h.ops->decode(x->h.ctx, tile, panel, slots, bodies, len), 0);
}

void share_run(product *x, const uint32_t *sets, size_t nsets)
{
    size_t at = 0;
    for (uint32_t t = 0; t < x->s.tiles; t++) {
        for (uint32_t p = 0; p < x->s.panels; p++) {
            uint32_t set = sets ? sets[at++ % nsets] : share_random_set(x->s.slots, x->s.threshold);
            uint8_t *body[32] = { 0 };
            for (uint32_t i = 0; i < x->s.slots; i++) {
                sherd__cell c = { i, t, p };
                if (!(set >> i & 1) && share_below(2)) continue;
                body[i] = share_answer(x, c, NULL);
                assert_int_equal(share_judge(x, c, body[i]), 0);
            }
            share_decode_from(x, t, p, body, set);
            for (uint32_t i = 0; i < x->s.slots; i++) free(body[i]);
        }
    }
    assert_int_equal(x->h.ops->finish(x->h.ctx), 0);
    share_is_exact(x);
}

fixture share_random_fixture(void)
{
    static const sherd_dtype types[] = { SHERD_F64, SHERD_U8, SHERD_I32 };
    fixture f = { .n = 1 + share_below(20),
                  .k = 1 + share_below(16),
                  .m = 1 + share_below(16),
                  .public_b = share_below(3) == 0,
                  .panel_rows = 1 + share_below(8),
                  .tile_cols = 1 + share_below(18),
                  .type = types[share_below(3)],
                  .bits = (unsigned[]){ 2, 9, 17, 26 }[share_below(4)],
                  .primes = 1 + (unsigned)share_below(4) };
    f.blocks = 1 + (uint32_t)share_below(f.n < 4 ? f.n : 4);
    f.masks = 1 + (uint32_t)share_below(2);
    f.inner = !f.public_b && share_below(2);
    f.shares = share_threshold(f) + (f.inner ? 0 : (uint32_t)share_below(3));
    f.left_stays = share_below(3) == 0;
    f.bytes = !f.public_b && share_below(2);
    if (f.bytes && share_below(2))
        f.seeds = f.masks + (uint32_t)share_below(f.shares - f.masks + 1);
    f.check_bytes = (size_t[]){ 0, 3000, 1u << 20 }[share_below(3)];
    return f;
}

fixture share_windows_fixture(void)
{
    fixture f = share_random_fixture();
    sherd_windows w = { 1 + (uint32_t)share_below(5), 1 + (uint32_t)share_below(5),
                        1 + (uint32_t)share_below(3), 1 + (uint32_t)share_below(4),
                        1 + (uint32_t)share_below(3), 0 };
    w.padding = (uint32_t)share_below(w.window);
    while (w.height + 2 * w.padding < w.window) w.height++;
    while (w.width + 2 * w.padding < w.window) w.width++;
    f.windows = w;
    f.n = 1 + share_below(12);
    f.blocks = 1 + (uint32_t)share_below(f.n < 4 ? f.n : 4);
    f.public_b = f.bytes = f.inner = false;
    f.seeds = 0;
    f.left_stays = true;
    f.shares = sherd__lcc_threshold(f.blocks, f.masks, true) + (uint32_t)share_below(2);
    if (f.n >= 2 * f.blocks && share_below(2))
        f.part = f.blocks + share_below(f.n / 2 - f.blocks + 1);
    if (f.part && f.n % f.part && f.n % f.part < f.blocks) f.part = 0;
    return f;
}

uint8_t *share_hidden(product *x, sherd__cell c, uint64_t *len)
{
    sherd__cell_work w;
    assert_int_equal(x->h.ops->hide(x->h.ctx, c, &w), 0);
    sherd__fragment *f = w.left ? w.left : w.right;
    if (!f) assert_int_equal(x->h.ops->left(x->h.ctx, c.slot, c.panel, &f), 0);
    share_grow(&f);
    uint8_t *bytes = share_read(f);
    if (len) *len = sherd__fragment_info_of(f)->len;
    sherd__fragment_free(f);
    return bytes;
}
