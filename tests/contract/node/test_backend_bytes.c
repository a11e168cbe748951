/*
 * Products of residues of one byte on every backend, compared with sums in 64 bits: by every path
 * that this processor has, with largest values and with bytes that are no residues.
 * link: -Wl,--wrap=sherd__bytes_turn
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/fragment_make.h"
#include "crypto/seeded.h"
#include "matrix/residue_bytes.h"
#include "node/backends/cpu.h"
#include "node/check.h"
#include "tests/contract/node/backend_world.h"

void __real_sherd__bytes_turn(const uint8_t *in, size_t n, size_t strip, size_t number,
                              uint8_t *out);
void __wrap_sherd__bytes_turn(const uint8_t *in, size_t n, size_t strip, size_t number,
                              uint8_t *out);
static unsigned turned;
static sherd__call *to_cancel;

void __wrap_sherd__bytes_turn(const uint8_t *in, size_t n, size_t strip, size_t number,
                              uint8_t *out)
{
    turned++;
    if (to_cancel) atomic_store(&to_cancel->cancelled, true);
    __real_sherd__bytes_turn(in, n, strip, number, out);
}

/* Any odd numbers in 3..255 are moduli. */
static const uint32_t primes[SHERD__BYTES_PRIMES_MAX] = { 251, 3, 255, 241, 5, 127, 239, 211 };

enum { RESIDUES, LARGEST, ANY };

/* A matrix of bytes for each of r primes, and the block of it. */
typedef struct bytes {
    uint8_t *values;
    sherd__fragment *f;
} bytes;

static void free_aligned(void *ctx, uint8_t *at, uint64_t len)
{
    (void)ctx, (void)len;
    free(at);
}

static sherd__fragment *take(const sherd__fragment_info *info, uint8_t *body)
{
    sherd__fragment *f;
    assert_int_equal(sherd__fragment_info_check(info, NULL), SHERD_OK);
    assert_int_equal(sherd__fragment_take(&f, info, body, free_aligned, NULL), SHERD_OK);
    return f;
}

static uint8_t *aligned(size_t len)
{
    return aligned_alloc(64, (len + 64) / 64 * 64);
}

static uint8_t byte_of(uint32_t p, bool right, int how)
{
    uint8_t largest = (uint8_t)(right ? 256 - (p - 1) / 2 : p - 1);
    if (how == ANY) return (uint8_t)sherd__entropy_below(&backend_rnd, 256);
    if (how == LARGEST) return largest;
    return (uint8_t)(sherd__entropy_below(&backend_rnd, p) - (right ? (p - 1) / 2 : 0));
}

/* Draws an operand and lays it out: strip after strip, in each of them prime after prime. */
static bytes draw(bool right, uint32_t rows, uint32_t cols, uint32_t r, int how)
{
    const size_t n = (size_t)rows * cols, lines = right ? cols : rows, terms = right ? rows : cols;
    const size_t strips = (lines + 15) / 16, strip = sherd__bytes_laid(1, terms);
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = right ? SHERD__BYTES_RIGHT : SHERD__BYTES_LEFT,
                               .primes = (uint8_t)r,
                               .rows = rows,
                               .cols = cols,
                               .len = strips * r * strip };
    uint8_t *body = aligned(i.len), *laid = aligned(strips * strip);
    bytes x = { .values = malloc(n * r + 1) };
    for (size_t q = 0; q < r; q++) {
        uint8_t *of = x.values + q * n;
        for (size_t k = 0; k < n; k++) of[k] = byte_of(primes[q], right, how);
        if (right) sherd__bytes_lay_columns((const int8_t *)of, rows, cols, cols, laid);
        else sherd__bytes_lay_rows(of, rows, cols, cols, laid);
        for (size_t s = 0; s < strips; s++)
            memcpy(body + (s * r + q) * strip, laid + s * strip, strip);
    }
    free(laid);
    x.f = take(&i, body);
    return x;
}

static void discard(bytes *x)
{
    sherd__fragment_free(x->f);
    free(x->values);
}

static sherd__task task_bytes(uint32_t n, uint32_t m, uint32_t r)
{
    sherd__task t = task_modular(n, m, r);
    memcpy(t.primes, primes, sizeof primes);
    t.result.dtype = SHERD__BYTES;
    t.result.len = (uint64_t)n * m * r;
    return t;
}

static void compare(const uint8_t *out, const bytes *a, const bytes *b, const uint32_t size[3],
                    uint32_t q, bool transposed)
{
    const size_t n = size[0], k = size[1], m = size[2];
    const uint8_t *u = a->values + q * n * k, *v = b->values + q * k * m;
    const int64_t p = primes[q];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            int64_t sum = 0;
            for (size_t l = 0; l < k; l++)
                sum += (int64_t)u[transposed ? l * n + i : i * k + l] * (int8_t)v[l * m + j];
            if (out[(q * n + i) * m + j] != (sum % p + p) % p)
                fail_msg("(%zu, %zu) of %zu x %zu x %zu, prime %u: %u", i, j, n, k, m, q,
                         out[(q * n + i) * m + j]);
        }
}

static void check(const uint32_t size[3], uint32_t r, int how, bool transposed)
{
    const uint32_t n = size[0], k = size[1], m = size[2];
    bytes a = transposed ? draw(false, k, n, r, how) : draw(false, n, k, r, how);
    bytes b = draw(true, k, m, r, how);
    sherd__task t = task_bytes(n, m, r);
    if (transposed) t.op = SHERD__OP_MULTIPLY_T;
    uint8_t *out = out_new(t.result.len);
    assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_OK);
    out_guarded(out, t.result.len);
    for (uint32_t q = 0; q < r; q++) compare(out, &a, &b, size, q, transposed);
    free(out);
    discard(&a);
    discard(&b);
}

static void bytes_multiply_exactly_by_every_path(void **s)
{
    (void)s;
    static const uint32_t sizes[][3] = {
        { 1, 1, 1 },    { 0, 2, 3 },      { 2, 0, 3 },     { 2, 3, 0 },     { 16, 64, 16 },
        { 17, 65, 33 }, { 130, 200, 97 }, { 3, 4097, 18 }, { 150, 129, 2 }, { 2, 65, 200 },
    };
    for (int path = SHERD__BYTES_ANY; path < SHERD__BYTES_PATHS; path++) {
        if (path > SHERD__BYTES_ANY && backend_now != &sherd__backend_cpu) break;
        if (!sherd__bytes_force((sherd__bytes_path)path)) continue;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (uint32_t r = 1; r <= SHERD__BYTES_PRIMES_MAX; r += i > 4 ? 7 : 1)
                for (int how = RESIDUES; how <= ANY; how++)
                    check(sizes[i], r, how, (r + (unsigned)how) & 1);
    }
    assert_true(sherd__bytes_force(SHERD__BYTES_BEST));
}

/* The scratch has room for seven strips of a transposed operand. */
static void sums_have_up_to_65536_terms(void **s)
{
    (void)s;
    static const uint32_t low[3] = { 5, SHERD__BYTES_TERMS_MAX, 3 };
    static const uint32_t high[3] = { 130, SHERD__BYTES_TERMS_MAX, 2 };
    check(low, 2, LARGEST, false);
    check(low, 1, ANY, true);
    check(high, 1, RESIDUES, true);
}

/* Sets the bytes of a right block that belong to no value. */
static void spoil_edges(const sherd__fragment *f)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    const size_t strip = sherd__bytes_laid(1, i->rows);
    uint8_t *body = (uint8_t *)(uintptr_t)sherd__fragment_bytes(f);
    for (size_t at = 0; at < i->len; at++) {
        size_t tile = at % strip / 1024, in = at % 1024;
        size_t row = tile * 64 + in / 64 * 4 + in % 4,
               col = at / strip / i->primes * 16 + in / 4 % 16;
        if (row >= i->rows || col >= i->cols) body[at] = 77;
    }
}

/* The left block has zeros there, or no bytes at all. */
static void bytes_beyond_the_edges_of_one_side_add_nothing(void **s)
{
    (void)s;
    static const uint32_t sizes[][3] = { { 20, 37, 5 }, { 20, 65, 17 }, { 3, 1, 1 } };
    for (size_t k = 0; k < 6; k++) {
        const uint32_t *z = sizes[k / 2], r = 2;
        const bool transposed = k & 1;
        bytes a = transposed ? draw(false, z[1], z[0], r, ANY) : draw(false, z[0], z[1], r, ANY);
        bytes b = draw(true, z[1], z[2], r, ANY);
        sherd__task t = task_bytes(z[0], z[2], r);
        uint8_t *out = out_new(t.result.len);
        if (transposed) t.op = SHERD__OP_MULTIPLY_T;
        spoil_edges(b.f);
        assert_int_equal(backend_run(&t, a.f, b.f, out), SHERD_OK);
        for (uint32_t q = 0; q < r; q++) compare(out, &a, &b, z, q, transposed);
        free(out);
        discard(&a);
        discard(&b);
    }
}

static void refuses(const sherd__task *t, const sherd__fragment *a, const sherd__fragment *b,
                    int err, const char *why)
{
    uint8_t out[4096];
    assert_true(t->result.len <= sizeof out);
    assert_int_equal(backend_run(t, a, b, out), err);
    assert_string_equal(backend_why, why);
}

static void tasks_and_blocks_of_bytes_that_disagree_are_refused(void **s)
{
    (void)s;
    bytes a = draw(false, 3, 7, 2, RESIDUES), b = draw(true, 7, 5, 2, RESIDUES);
    bytes three = draw(true, 7, 5, 3, RESIDUES), wide = draw(true, 8, 5, 2, RESIDUES);
    uint32_t *values = residues_draw(3, 7, 2, false);
    sherd__fragment *packed = residues_new(0, 3, 7, 2, values);
    const sherd__task good = task_bytes(3, 5, 2);
    sherd__task t = good;
    refuses(&good, a.f, three.f, SHERD_EINVAL,
            "left is modulo 2 primes, right modulo 3, the task modulo 2");
    t.primes_len = 3, t.result.primes = 3, t.result.len = 45;
    refuses(&t, a.f, three.f, SHERD_EINVAL,
            "left is modulo 2 primes, right modulo 3, the task modulo 3");
    refuses(&good, a.f, wide.f, SHERD_ESHAPE, "left is 3 x 7, right 8 x 5");
    t = good, t.op = SHERD__OP_MULTIPLY_T;
    refuses(&t, a.f, b.f, SHERD_ESHAPE, "left is 3 x 7 before it is transposed, right 7 x 5");
    refuses(&good, b.f, b.f, SHERD_EUNSUPPORTED,
            "operation 1 on a left block of dtype 34 and a right one of 34");
    refuses(&good, a.f, a.f, SHERD_EUNSUPPORTED,
            "operation 1 on a left block of dtype 33 and a right one of 33");
    refuses(&good, packed, b.f, SHERD_EUNSUPPORTED,
            "operation 1 on a left block of dtype 32 and a right one of 34");
    refuses(&good, a.f, packed, SHERD_EUNSUPPORTED,
            "operation 1 on a left block of dtype 33 and a right one of 32");
    t = good, t.op = SHERD__OP_EXP;
    refuses(&t, a.f, NULL, SHERD_EUNSUPPORTED,
            "operation 22 on a left block of dtype 33 and a right one of 0");
    t = good, t.windows = (sherd_windows){ 1, 7, 1, 1, 1, 0 };
    refuses(&t, a.f, b.f, SHERD_EUNSUPPORTED,
            "operation 1 with windows on a left block of dtype 33 and a right one of 34");
    t = good, t.result.rows = 4, t.result.len = 40;
    refuses(&t, a.f, b.f, SHERD_ESHAPE, "the blocks give 3 x 5, the task announces 4 x 5");
    t = good, t.result.dtype = SHERD__RESIDUES, t.result.len = 90;
    refuses(&t, a.f, b.f, SHERD_EUNSUPPORTED,
            "a result of dtype 32 with 2 primes and 0 groups is not computed");
    t = task_modular(3, 3, 2), t.result.dtype = SHERD__BYTES, t.result.len = 18;
    sherd__fragment *tall = residues_new(0, 7, 3, 2, values);
    refuses(&t, packed, tall, SHERD_EUNSUPPORTED,
            "a result of dtype 35 with 2 primes and 0 groups is not computed");
    static const uint32_t bad[] = { 0, 1, 2, 4, 250, 257, UINT32_MAX };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char why[80];
        t = good, t.primes[1] = bad[i];
        snprintf(why, sizeof why, "modulus %u, expected an odd one from 3 to 255", bad[i]);
        refuses(&t, a.f, b.f, SHERD_EUNSUPPORTED, why);
    }
    free(values);
    sherd__fragment_free(packed);
    sherd__fragment_free(tall);
    discard(&a);
    discard(&b);
    discard(&three);
    discard(&wide);
}

static void sums_of_more_terms_are_refused(void **s)
{
    (void)s;
    enum { K = SHERD__BYTES_TERMS_MAX + 1 };
    bytes a = draw(false, 1, K, 1, RESIDUES), b = draw(true, K, 1, 1, RESIDUES);
    bytes tall = draw(false, K, 1, 1, RESIDUES);
    sherd__task t = task_bytes(1, 1, 1);
    refuses(&t, a.f, b.f, SHERD_EUNSUPPORTED,
            "sums of 65537 terms of one byte, at most 65536 are added up");
    t.op = SHERD__OP_MULTIPLY_T;
    refuses(&t, tall.f, b.f, SHERD_EUNSUPPORTED,
            "sums of 65537 terms of one byte, at most 65536 are added up");
    discard(&a);
    discard(&b);
    discard(&tall);
}

static void a_cancelled_product_of_bytes_stops(void **s)
{
    (void)s;
    bytes a = draw(false, 300, 20, 2, RESIDUES), b = draw(true, 20, 5, 2, RESIDUES);
    bytes d = draw(true, 300, 5, 2, RESIDUES);
    sherd__task t = task_bytes(300, 5, 2), u = task_bytes(20, 5, 2);
    uint8_t out[3000];
    sherd__call c = { .task = &t, .out = out, .cancelled = true };
    sherd_diag diag = { .code = 0 };
    if (!backend_now->compute) return;
    assert_int_equal(backend_now->compute(backend_ctx, &c, a.f, b.f, &diag), SHERD_EINTERRUPTED);
    assert_string_equal(diag.message, "the task was cancelled");
    u.op = SHERD__OP_MULTIPLY_T;
    c = (sherd__call){ .task = &u, .out = out };
    to_cancel = &c;
    turned = 0;
    assert_int_equal(backend_now->compute(backend_ctx, &c, a.f, d.f, &diag), SHERD_EINTERRUPTED);
    assert_int_equal(turned, 1);
    to_cancel = NULL;
    discard(&a);
    discard(&b);
    discard(&d);
}

/* The first call that uses a block turns it for itself, the second one for all others. */
static void a_block_that_stays_is_turned_once(void **s)
{
    (void)s;
    enum { ROWS = 100, COLS = 40, M = 5, R = 3, STRIPS = 3 };
    static const uint32_t size[3] = { COLS, ROWS, M };
    bytes a = draw(false, ROWS, COLS, R, RESIDUES), b = draw(true, ROWS, M, R, RESIDUES);
    sherd__task t = task_bytes(COLS, M, R);
    sherd__handle left = backend_hold(a.f, 1), right = backend_hold(b.f, 1);
    uint8_t *out = out_new(t.result.len);
    calling c;
    t.op = SHERD__OP_MULTIPLY_T;
    turned = 0;
    for (unsigned k = 0; k < 4; k++) {
        memset(out, 0xFF, t.result.len);
        assert_int_equal(backend_begin(&c, &t, left, right, 1, out), SHERD_OK);
        backend_settle();
        assert_int_equal(c.call.err, SHERD_OK);
        for (uint32_t q = 0; q < R; q++) compare(out, &a, &b, size, q, true);
        assert_int_equal(turned, R * STRIPS * (k ? 2 : 1));
        assert_int_equal(backend_lent.bytes, k ? R * STRIPS * 2 * 1024 : 0);
        assert_int_equal(c.call.derived[0], k == 1 ? R * STRIPS * 2 * 1024 : 0);
        assert_int_equal(c.call.derived[1], 0);
    }
    backend_now->drop(backend_ctx, &left);
    backend_now->drop(backend_ctx, &right);
    assert_int_equal(backend_lent.bytes, 0);
    free(out);
    discard(&a);
    discard(&b);
}

/* Makes the share of a seed, which is computed now or when a call needs it. */
static sherd__fragment *share(bool right, bool now)
{
    static const uint8_t seed[SHERD__SEED_BYTES] = { 7 };
    const sherd__fragment_info whole = {
        .origin = SHERD__HIDDEN,
        .dtype = right ? SHERD__BYTES_RIGHT : SHERD__BYTES_LEFT,
        .primes = 2,
        .rows = right ? 70 : 20,
        .cols = right ? 33 : 70,
    };
    sherd__fragment *f, *of;
    assert_int_equal(sherd__seeded_fragment(&of, &whole, seed, right ? 64 : 256, primes), SHERD_OK);
    const sherd__fragment_info i = sherd__fragment_whole(sherd__fragment_info_of(of));
    uint8_t *body = aligned(i.len);
    memset(body, 0, i.len);
    assert_int_equal(sherd__seed_defer(&f, of, body, free_aligned, NULL), SHERD_OK);
    if (now) assert_int_equal(sherd__fragment_settle(f), SHERD_OK);
    return f;
}

static void calls_compute_the_shares_of_seeds(void **s)
{
    (void)s;
    const sherd__task t = task_bytes(20, 33, 2);
    uint8_t *out[2];
    for (int now = 0; now < 2; now++) {
        sherd__fragment *a = share(false, now), *b = share(true, now);
        out[now] = out_new(t.result.len);
        assert_int_equal(backend_run(&t, a, b, out[now]), SHERD_OK);
        sherd__fragment_free(a);
        sherd__fragment_free(b);
    }
    assert_memory_equal(out[0], out[1], t.result.len);
    free(out[0]);
    free(out[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(bytes_multiply_exactly_by_every_path),
        ALL(sums_have_up_to_65536_terms),
        ALL(bytes_beyond_the_edges_of_one_side_add_nothing),
        ALL(tasks_and_blocks_of_bytes_that_disagree_are_refused),
        ALL(sums_of_more_terms_are_refused),
        ALL(calls_compute_the_shares_of_seeds),
        EACH(a_cancelled_product_of_bytes_stops, 0),
        EACH(a_block_that_stays_is_turned_once, 0),
    };
    unsetenv("OPENBLAS_CORETYPE"); /* a set variable would disable AMX */
    return cmocka_run_group_tests_name("node/backend_bytes", tests, backend_open_all,
                                       backend_close_all);
}
