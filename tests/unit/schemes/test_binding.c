/*
 * What a mask has hidden is bound to its content: the hash itself, and that rows that have changed
 * are not hidden again under the masks of the old rows, for every tile, attempt, check and way of
 * sending.
 *
 * link: -Wl,--wrap=sherd__fixed_turns
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
#include "crypto/binding.h"
#include "tests/support/under_valgrind.h"
#include "tests/unit/schemes/share_world.h"

/* --- the hash -------------------------------------------------------------------------------- */

static sherd__binding *new_binding(size_t runs)
{
    sherd__entropy e = sherd__entropy_os();
    sherd__binding *b;
    assert_int_equal(sherd__binding_new(&b, runs, INFINITY, &e), 0);
    return b;
}

/* Hashes n numbers in portions of any size. */
static int hold(sherd__binding *b, size_t run, const double *x, size_t n)
{
    sherd__binding_hash h = { 0 };
    for (size_t at = 0; at < n;) {
        size_t some = 1 + share_below(n > 2000 ? 1500 : 20);
        if (some > n - at) some = n - at;
        int err = sherd__binding_add(b, &h, x + at, some);
        if (err) return err;
        at += some;
    }
    return sherd__binding_hold(b, run, &h);
}

static void the_same_numbers_match_in_portions_of_any_size(void **state)
{
    (void)state;
    double x[5000];
    for (size_t i = 0; i < 5000; i++) x[i] = (double)share_below(1000) - 500;
    for (size_t n = 0; n < 5000; n += 1 + share_below(500)) {
        sherd__binding *b = new_binding(3);
        for (int i = 0; i < 5; i++) assert_int_equal(hold(b, 1, x, n), 0);
        assert_false(sherd__binding_broken(b));
        sherd__binding_free(b);
    }
    assert_false(sherd__binding_broken(NULL));
    sherd__binding_free(NULL);
}

static void every_bit_of_every_number_changes_the_hash(void **state)
{
    (void)state;
    double x[1100] = { 0 };
    sherd__binding *b = new_binding(2);
    for (size_t i = 0; i < 1100; i++) x[i] = (double)share_below(1u << 26) - (1 << 25);
    for (int i = 0; i < 3000; i++) {
        uint64_t bits;
        size_t at = share_below(1100);
        unsigned bit = (unsigned)share_below(64);
        assert_int_equal(sherd__binding_reset(b, 2, INFINITY), 0);
        assert_int_equal(hold(b, 0, x, 1100), 0);
        double was = x[at];
        memcpy(&bits, &was, 8);
        bits ^= UINT64_C(1) << bit;
        memcpy(&x[at], &bits, 8);
        if (hold(b, 0, x, 1100) != SHERD_EIO) fail_msg("bit %u of number %zu", bit, at);
        assert_true(sherd__binding_broken(b));
        /* Another run, of which nothing was hidden. */
        assert_int_equal(hold(b, 1, x, 1100), isnan(x[at]) ? SHERD_EIO : 0);
        x[at] = was;
        assert_int_equal(hold(b, 0, x, 1100), 0);
        assert_true(sherd__binding_broken(b)); /* the binding stays broken */
    }
    sherd__binding_free(b);
}

/* Changes that a sum without places, or without a key, would miss. */
static void the_hash_depends_on_the_place_of_each_number(void **state)
{
    (void)state;
    double x[2048], y[2048];
    for (size_t i = 0; i < 2048; i++) x[i] = (double)share_below(1u << 20);
    for (int i = 0; i < 500; i++) {
        sherd__binding *b = new_binding(1);
        size_t p = share_below(2048), q = share_below(2048);
        assert_int_equal(hold(b, 0, x, 2048), 0);
        memcpy(y, x, sizeof y);
        if (i % 3 == 0) y[p] = x[q], y[q] = x[p];
        else if (i % 3 == 1) y[p] += 7, y[q] -= 7;
        else memcpy(y, x + 512, 512 * 8), memcpy(y + 512, x, 512 * 8);
        assert_int_equal(hold(b, 0, y, 2048), memcmp(x, y, sizeof x) ? SHERD_EIO : 0);
        sherd__binding_free(b);
    }
}

/* The hashes of one block under different keys agree only by chance. */
static void hashes_under_different_keys_are_unrelated(void **state)
{
    (void)state;
    uint64_t tags[64];
    for (size_t i = 0; i < 64; i++) {
        sherd__binding *b = new_binding(1);
        sherd__binding_hash h = { 0 };
        assert_int_equal(sherd__binding_add(b, &h, (double[]){ 1, 2, 3 }, 3), 0);
        tags[i] = h.sum[0] ^ h.sum[1] << 1;
        for (size_t j = 0; j < i; j++) assert_true(tags[i] != tags[j]);
        sherd__binding_free(b);
    }
}

static void values_beyond_the_bound_are_refused_before_the_run_is_complete(void **state)
{
    (void)state;
    static const double bad[] = { 101, -101, 100.5, 1e25, -1e300, INFINITY, -INFINITY, NAN };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t at = 0; at < 1500; at += 1 + share_below(200)) {
            double x[1500];
            sherd__binding_hash h = { 0 };
            sherd__binding *b = new_binding(1);
            assert_int_equal(sherd__binding_reset(b, 1, 100), 0);
            for (size_t j = 0; j < 1500; j++) x[j] = j % 2 ? 100 : -100;
            assert_int_equal(sherd__binding_add(b, &h, x, 1500), 0);
            assert_false(sherd__binding_broken(b));
            x[at] = bad[i];
            assert_int_equal(sherd__binding_add(b, &h, x, 1500), SHERD_EIO);
            assert_true(sherd__binding_broken(b));
            sherd__binding_free(b);
        }
}

/* --- share ----------------------------------------------------------------------------------- */

/* Another party writes to the operand immediately after it was read. */
static void *rewritten; /* NULL: no change */
static size_t rewritten_at;

void __real_sherd__fixed_turns(const sherd__fixed *f, sherd_view v, const size_t *row, size_t count,
                               size_t c0, size_t n, double *const *out);
void __wrap_sherd__fixed_turns(const sherd__fixed *f, sherd_view v, const size_t *row, size_t count,
                               size_t c0, size_t n, double *const *out);
void __wrap_sherd__fixed_turns(const sherd__fixed *f, sherd_view v, const size_t *row, size_t count,
                               size_t c0, size_t n, double *const *out)
{
    __real_sherd__fixed_turns(f, v, row, count, c0, n, out);
    for (size_t i = 0; i < count && rewritten; i++)
        if (row[i] * v.cols <= rewritten_at && rewritten_at < (row[i] + 1) * v.cols) {
            ((uint8_t *)rewritten)[rewritten_at] ^= 1;
            rewritten = NULL;
        }
}

/* Adds 1, or subtracts 1 where the sum would exceed the operand's bound. */
static void change(void *data, sherd_dtype t, size_t at)
{
    uint8_t *bytes = data;
    if (t == SHERD_F64) {
        double v;
        memcpy(&v, bytes + 8 * at, 8);
        v += v > 0 ? -1 : 1;
        memcpy(bytes + 8 * at, &v, 8);
    } else {
        bytes[(t == SHERD_I32 ? 4 : 1) * at] ^= 1;
    }
}

static bool any(const uint8_t *bytes, uint64_t len)
{
    for (uint64_t i = 0; i < len; i++)
        if (bytes[i]) return true;
    return false;
}

static int hide(product *x, sherd__cell c, sherd__fragment **out)
{
    sherd__cell_work w;
    int err = x->h.ops->hide(x->h.ctx, c, &w);
    *out = w.left ? w.left : w.right;
    if (!err && !*out) err = x->h.ops->left(x->h.ctx, c.slot, c.panel, out);
    if (err) assert_null(*out);
    return err;
}

/* Hides the cells of so many tiles and slots. Returns whether one was refused; all later ones must
 * then be refused, too. */
static bool refuses(product *x, uint32_t tiles, uint32_t slots)
{
    bool refused = false;
    for (uint32_t t = 0; t < tiles; t++)
        for (uint32_t p = 0; p < x->s.panels; p++)
            for (uint32_t s = 0; s < slots; s++) {
                sherd__fragment *f;
                int err = hide(x, (sherd__cell){ s, t, p }, &f);
                refused = refused || err == SHERD_EIO;
                assert_int_equal(err, refused ? SHERD_EIO : 0);
                sherd__fragment_free(f);
            }
    return refused;
}

/* Hides everything once, so that no data are left in caches. */
static void hide_all(product *x)
{
    assert_false(refuses(x, x->s.tiles, x->s.slots));
}

static sherd__changed changed(const product *x)
{
    return x->h.ops->changed(x->h.ctx);
}

static fixture drawn(int i)
{
    fixture f = i % 2 ? share_windows_fixture() : share_random_fixture();
    if (f.type == SHERD_F64) f.bits = 17; /* rounding does not remove a change of 1 */
    f.seeds = 0;                          /* a seed is the same whatever the operand contains */
    return f;
}

static void rows_of_a_that_changed_are_not_hidden_again(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++) {
        product x;
        share_open(&x, drawn(i));
        bool transposed = x.f.left_stays && share_both_ways(x.f) && share_below(2);
        if (x.w.count || transposed) share_next(&x, x.f.m, transposed);
        if (transposed) { /* D, whose shares are sent with the cells, does not change here */
            share_close(&x);
            continue;
        }
        hide_all(&x);
        assert_int_equal(changed(&x), SHERD__UNCHANGED);
        change(x.da, x.f.type, share_below(x.a.rows * x.a.cols));
        assert_true(refuses(&x, x.s.tiles, x.s.slots));
        assert_int_equal(changed(&x), SHERD__LEFT_CHANGED);
        share_close(&x);
    }
}

static void the_copy_that_was_hidden_is_what_is_bound(void **state)
{
    (void)state;
    fixture d = { .n = 40,
                  .k = 60,
                  .m = 30,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .panel_rows = 7,
                  .tile_cols = 30,
                  .type = SHERD_U8,
                  .bits = 8,
                  .primes = 2 };
    for (int i = 0; i < 20; i++) {
        product x;
        share_open(&x, d);
        rewritten = x.da;
        rewritten_at = share_below(d.n * d.k);
        hide_all(&x);
        assert_null(rewritten);
        assert_int_equal(changed(&x), SHERD__UNCHANGED); /* the operand has already changed */
        assert_true(refuses(&x, 1, 1));
        share_close(&x);
    }
}

static void rows_of_d_that_changed_are_not_hidden_again(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        product x;
        fixture d = drawn(i);
        d.left_stays = true;
        d.public_b = d.inner = false;
        d.shares = sherd__lcc_threshold(d.blocks, d.masks, true);
        share_open(&x, d);
        share_next(&x, d.m, true);
        hide_all(&x);
        change(x.db, d.type, share_below(x.b.rows * x.b.cols));
        assert_true(refuses(&x, x.s.tiles, 1));
        assert_int_equal(changed(&x), SHERD__RIGHT_CHANGED);
        share_next(&x, d.m, true); /* fresh masks: another operand is not bound to the first one */
        hide_all(&x);
        assert_int_equal(changed(&x), SHERD__UNCHANGED);
        share_close(&x);
    }
}

/* B is read while it is sent, and again for each prime, each slot and the check. */
static void tiles_of_b_that_changed_are_sent_as_zeros(void **state)
{
    (void)state;
    /* 14 MB of terms for each prime: more than the cache keeps. */
    fixture d = { .n = 2,
                  .k = 3000,
                  .m = 300,
                  .blocks = 1,
                  .masks = 1,
                  .shares = 8,
                  .panel_rows = 2,
                  .tile_cols = 150,
                  .type = SHERD_U8,
                  .bits = 8,
                  .primes = 2 };
    product x;
    sherd__fragment *f, *g;
    share_open(&x, d);
    assert_int_equal(x.h.ops->resident(x.h.ctx, 3, 1, &f), 0);
    uint8_t *first = share_read(f);
    uint64_t len = sherd__fragment_info_of(f)->len;
    assert_true(any(first + len - 1000, 1000));
    size_t row = 2500;
    change(x.db, d.type, row * d.m + 151); /* tile 1 */
    assert_int_equal(x.h.ops->resident(x.h.ctx, 4, 0, &g), 0);
    uint8_t *other = share_read(g); /* tile 0 has not changed */
    assert_true(any(other + len - 1000, 1000));
    assert_int_equal(changed(&x), SHERD__UNCHANGED);
    uint8_t *again = share_read(f);
    assert_memory_equal(again, first, 2000);
    assert_int_equal(changed(&x), SHERD__RIGHT_CHANGED);
    assert_false(any(again + 3 * row * 150, 3 * 150));
    assert_false(any(again + len - 1000, 1000));
    free(other);
    other = share_read(g);
    assert_false(any(other, len)); /* all further blocks of B are zeros */
    sherd__fragment_free(f);
    sherd__fragment_free(g);
    free(first);
    free(again);
    free(other);
    share_close(&x);
}

/* The terms of B's columns are made in chunks, and made again after the cache has dropped them. */
static void columns_of_b_that_changed_are_sent_as_zeros_in_bytes(void **state)
{
    (void)state;
    enum { TILE = 128, TILES = 8, CHUNK = 64 };
    fixture d = { .n = 2,
                  .k = 3000,
                  .m = TILE * TILES,
                  .blocks = 1,
                  .masks = 1,
                  .shares = 3,
                  .bytes = true,
                  .panel_rows = 2,
                  .tile_cols = TILE,
                  .type = SHERD_U8,
                  .bits = 8,
                  .primes = 4 };
    product x;
    sherd__fragment *f[TILES];
    uint8_t *first = NULL;
    share_open(&x, d);
    for (uint32_t t = 0; t < TILES; t++) { /* more chunks than the cache has room for */
        assert_int_equal(x.h.ops->resident(x.h.ctx, 1, t, &f[t]), 0);
        uint8_t *sent = share_read(f[t]);
        if (t == 0) first = sent;
        else free(sent);
    }
    const uint64_t len = sherd__fragment_info_of(f[0])->len, half = len * CHUNK / TILE;
    change(x.db, d.type, 2500 * d.m + CHUNK + 7); /* the second chunk of tile 0 */
    uint8_t *piece = malloc(half);
    assert_int_equal(sherd__fragment_read(f[0], 0, piece, half), 0);
    assert_memory_equal(piece, first, half);
    assert_int_equal(changed(&x), SHERD__UNCHANGED);
    assert_int_equal(sherd__fragment_read(f[0], half, piece, half), 0);
    assert_false(any(piece, half));
    assert_int_equal(changed(&x), SHERD__RIGHT_CHANGED);
    assert_int_equal(sherd__fragment_read(f[TILES - 1], 0, piece, half), 0);
    assert_false(any(piece, half)); /* all of B is zeros from now on */
    for (uint32_t t = 0; t < TILES; t++) sherd__fragment_free(f[t]);
    free(first);
    free(piece);
    share_close(&x);
}

/* The sum of a mask and a number far beyond 2^53 is that number: it would be sent without being
 * hidden. */
static const double far[] = { 1e25, -1e25, 1e17, NAN, INFINITY };
enum { FAR = sizeof far / sizeof *far };

static void rows_beyond_the_range_of_masks_are_not_sent(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20 * FAR; i++) {
        product x;
        fixture d = drawn((int)(i / FAR));
        while (d.type != SHERD_F64) d = drawn((int)(i / FAR));
        share_open(&x, d);
        if (x.w.count) share_next(&x, x.f.m, false);
        size_t at = share_below(x.a.rows * x.a.cols);
        memcpy((uint8_t *)x.da + 8 * at, &far[i % FAR], 8); /* nothing was hidden yet */
        assert_true(refuses(&x, 1, 1));
        assert_int_equal(changed(&x), SHERD__LEFT_CHANGED);
        share_close(&x);
    }
}

static void a_b_beyond_the_range_of_masks_is_sent_as_zeros(void **state)
{
    (void)state;
    fixture d = { .n = 2,
                  .k = 3000,
                  .m = 300,
                  .blocks = 1,
                  .masks = 1,
                  .shares = 8,
                  .panel_rows = 2,
                  .tile_cols = 150,
                  .type = SHERD_F64,
                  .bits = 17,
                  .primes = 2 };
    for (unsigned i = 0; i < (under_valgrind() ? 1 : FAR); i++) {
        product x;
        sherd__fragment *f;
        share_open(&x, d);
        const size_t row = 1500, each = 3 * 150;
        memcpy((uint8_t *)x.db + 8 * (row * d.m + 7), &far[i], 8);
        assert_int_equal(x.h.ops->resident(x.h.ctx, 3, 0, &f), 0);
        uint8_t *sent = share_read(f);
        uint64_t len = sherd__fragment_info_of(f)->len;
        assert_true(any(sent, each));
        assert_false(any(sent + row * each, len - row * each));
        assert_int_equal(changed(&x), SHERD__RIGHT_CHANGED);
        sherd__fragment_free(f);
        free(sent);
        share_close(&x);
    }
}

static void a_b_beyond_the_range_of_masks_is_sent_as_zeros_in_bytes(void **state)
{
    (void)state;
    fixture d = { .n = 2,
                  .k = 70,
                  .m = 90,
                  .blocks = 1,
                  .masks = 1,
                  .shares = 3,
                  .bytes = true,
                  .panel_rows = 2,
                  .tile_cols = 90,
                  .type = SHERD_F64,
                  .bits = 17 };
    for (unsigned i = 0; i < FAR; i++) {
        product x;
        sherd__fragment *f;
        share_open(&x, d);
        memcpy((uint8_t *)x.db + 8 * (50 * d.m + 7), &far[i], 8); /* in the first chunk */
        assert_int_equal(x.h.ops->resident(x.h.ctx, 1, 0, &f), 0);
        uint8_t *sent = share_read(f);
        assert_false(any(sent, sherd__fragment_info_of(f)->len));
        assert_int_equal(changed(&x), SHERD__RIGHT_CHANGED);
        sherd__fragment_free(f);
        free(sent);
        share_close(&x);
    }
}

/* A correct answer to what was sent would fail a check computed from the changed operand. */
static void an_operand_that_changed_is_not_used_to_check_answers(void **state)
{
    (void)state;
    fixture d = { .n = 40,
                  .k = 60,
                  .m = 30,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .panel_rows = 7,
                  .tile_cols = 30,
                  .type = SHERD_U8,
                  .bits = 8,
                  .primes = 2 };
    for (int j = 0; j < 8; j++) {
        const int i = j % 4;
        product x;
        d.bytes = j >= 4;
        share_open(&x, d);
        sherd__cell c = { 1, 0, 1 };
        uint8_t *body = share_answer(&x, c, NULL);
        if (i % 2) { /* vectors are drawn again, and everything is projected again */
            body[0] ^= 1;
            assert_int_equal(share_judge(&x, c, body), SHERD_EWRONG);
            body[0] ^= 1;
        }
        if (i < 2) change(x.db, d.type, 31 * d.m + 5);
        else change(x.da, d.type, 8 * d.k + 5);
        int want = i == 2 ? SHERD_OK : SHERD_EIO; /* A was projected while it was hidden */
        assert_int_equal(share_judge(&x, c, body), want);
        assert_int_equal(changed(&x), want == 0 ? SHERD__UNCHANGED
                                      : i < 2   ? SHERD__RIGHT_CHANGED
                                                : SHERD__LEFT_CHANGED);
        free(body);
        share_close(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_numbers_match_in_portions_of_any_size),
        cmocka_unit_test(every_bit_of_every_number_changes_the_hash),
        cmocka_unit_test(the_hash_depends_on_the_place_of_each_number),
        cmocka_unit_test(hashes_under_different_keys_are_unrelated),
        cmocka_unit_test(values_beyond_the_bound_are_refused_before_the_run_is_complete),
        cmocka_unit_test(rows_of_a_that_changed_are_not_hidden_again),
        cmocka_unit_test(the_copy_that_was_hidden_is_what_is_bound),
        cmocka_unit_test(rows_of_d_that_changed_are_not_hidden_again),
        cmocka_unit_test(tiles_of_b_that_changed_are_sent_as_zeros),
        cmocka_unit_test(columns_of_b_that_changed_are_sent_as_zeros_in_bytes),
        cmocka_unit_test(rows_beyond_the_range_of_masks_are_not_sent),
        cmocka_unit_test(a_b_beyond_the_range_of_masks_is_sent_as_zeros),
        cmocka_unit_test(a_b_beyond_the_range_of_masks_is_sent_as_zeros_in_bytes),
        cmocka_unit_test(an_operand_that_changed_is_not_used_to_check_answers),
    };
    return cmocka_run_group_tests_name("crypto/binding", tests, share_seed, NULL);
}
