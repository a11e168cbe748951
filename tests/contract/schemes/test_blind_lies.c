/*
 * Answers and rows that `blind` refuses: no wrong answer is accepted, and rows that changed, or
 * that masks cannot hide, are not sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrix/residue.h"
#include "tests/contract/schemes/blind_world.h"

static uint32_t get3(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
}

static void put3(uint8_t *at, uint32_t v)
{
    for (int b = 0; b < 3; b++) at[b] = (uint8_t)(v >> 8 * b);
}

/* Makes one wrong answer, of many kinds; returns false if it happens to be right. */
static bool spoil(const blinded *x, const sherd__fragment_info *r, uint8_t *body,
                  const uint8_t *other)
{
    size_t each = r->rows * r->cols, q = blind_below(x->primes_len);
    size_t i = blind_below(each), j = blind_below(each);
    uint32_t p = sherd__primes_default.p[q];
    uint8_t *at = body + 3 * (q * each + i), *to = body + 3 * (q * each + j);
    uint32_t v = get3(at), w = get3(to);
    switch (blind_below(7)) {
    case 0: put3(at, (v + 1) % p); return true;
    case 1: put3(at, (v + p - 1) % p); return true;
    case 2: put3(at, (uint32_t)blind_below(p)); return get3(at) != v;
    case 3: put3(at, p + (uint32_t)blind_below((1u << 24) - p)); return true; /* not a residue */
    case 4: put3(at, w), put3(to, v); return v != w;                          /* permuted */
    case 5: put3(at, (v + 1) % p), put3(to, (get3(to) + p - 1) % p); return i != j;
    default: memcpy(body, other, r->len); return true; /* an answer of another cell */
    }
}

static void no_wrong_answer_is_accepted(void **state)
{
    (void)state;
    unsigned lies = 0;
    while (lies < 10000) {
        blinded x = blind_case();
        sherd__cell_work w, v;
        x.n = 2 + blind_below(8);
        x.k = 1 + blind_below(8);
        x.m = 1 + blind_below(8);
        x.slots = 1;
        x.panel_rows = x.n / 2;
        x.tile_cols = x.m;
        blinded_new(&x);
        assert_int_equal(sherd__blind_arm(&x.h, x.key, x.first), 0);
        sherd__cell c = { 0, 0, 0 };
        uint8_t *other = blind_answer(&x, (sherd__cell){ 0, 0, 1 }, &v);
        uint8_t *right = blind_answer(&x, c, &w);
        uint8_t *body = malloc(w.result.len);
        for (int i = 0; i < 64; i++) {
            memcpy(body, right, w.result.len);
            if (!spoil(&x, &w.result, body, other)) continue;
            if (memcmp(body, right, w.result.len) == 0) continue;
            lies++;
            assert_int_equal(x.h.ops->check(x.h.ctx, c, body), SHERD_EWRONG);
            if (i % 8 == 0) { /* also with new check vectors */
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
    else blind_rng.fill(blind_rng.ctx, out, len);
}

/* With vectors of zeros everything passes: if a wrong answer is refused, it was checked with other
 * vectors. r is that of the cell, s that of its tile. */
static void cells_hidden_before_a_wrong_answer_are_checked_with_new_vectors(void **state)
{
    (void)state;
    for (int of_tile = 0; of_tile < 2; of_tile++) {
        blinded x = { .n = 6,
                      .k = 4,
                      .m = 5,
                      .slots = 1,
                      .panel_rows = 3,
                      .tile_cols = 3,
                      .ta = SHERD_F64,
                      .tb = SHERD_F64,
                      .bits_a = 17,
                      .bits_b = 17,
                      .primes_len = 2 };
        sherd__cell_work v, w;
        sherd__cell liar = { 0, 0, 0 }, other = { 0, of_tile ? 1u : 0u, 1 };
        blinded_new(&x);
        x.h.ops->free(x.h.ctx);
        x.p.entropy = (sherd__entropy){ fill_or_zero, NULL };
        assert_int_equal(sherd__blind_open(&x.h, &x.p), 0);
        assert_int_equal(sherd__blind_arm(&x.h, x.key, x.first), 0);
        uint8_t *wrong = blind_answer(&x, liar, &v);
        zeros_drawn = true;
        uint8_t *body = blind_answer(&x, other, &w);
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

/* Tiles, attempts and checks read A again: rows that its masks have hidden must not have
 * changed. */
static void rows_that_changed_are_not_hidden_again(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        blinded x = { .n = 8 + blind_below(30),
                      .k = 1 + blind_below(20),
                      .m = 2 + blind_below(12),
                      .slots = 1 + (uint32_t)blind_below(3),
                      .panel_rows = 1 + blind_below(5),
                      .primes_len = 3,
                      .ta = SHERD_I32,
                      .tb = SHERD_I32,
                      .bits_a = 17,
                      .bits_b = 17,
                      .first = blind_below(1000) };
        x.tile_cols = 1 + blind_below(x.m); /* the cells of one tile hide all rows */
        blinded_new(&x);
        assert_int_equal(sherd__blind_arm(&x.h, x.key, x.first), 0);
        sherd__scheme_shape s;
        sherd__cell_work w;
        x.h.ops->shape(x.h.ctx, &s);
        size_t at = blind_below(x.n * x.k), cells = (size_t)s.panels * s.slots, hidden = 0;
        for (int round = 0; round < 2; round++) { /* round 1: hidden again, in the last tile */
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

/* The sum of a mask and a number far beyond 2^53 is that number: it would be sent without being
 * hidden. */
static void rows_beyond_the_range_of_masks_are_not_sent(void **state)
{
    (void)state;
    static const double far[] = { 1e25, -1e25, 1e17, NAN, INFINITY };
    for (size_t i = 0; i < 50; i++) {
        blinded x = { .n = 8 + blind_below(30),
                      .k = 1 + blind_below(20),
                      .m = 2 + blind_below(12),
                      .slots = 1,
                      .panel_rows = 1 + blind_below(5),
                      .primes_len = 3,
                      .ta = SHERD_F64,
                      .tb = SHERD_F64,
                      .bits_a = 17,
                      .bits_b = 17,
                      .first = blind_below(1000) };
        x.tile_cols = x.m;
        blinded_new(&x);
        assert_int_equal(sherd__blind_arm(&x.h, x.key, x.first), 0);
        sherd__scheme_shape s;
        sherd__cell_work w;
        x.h.ops->shape(x.h.ctx, &s);
        size_t at = blind_below(x.n * x.k);
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

/* After a wrong answer rows are projected again, but not if the file has changed. */
static void rows_that_changed_are_not_used_to_check_answers(void **state)
{
    (void)state;
    blinded x = { .n = 6,
                  .k = 9,
                  .m = 7,
                  .slots = 1,
                  .panel_rows = 3,
                  .tile_cols = 7,
                  .primes_len = 3,
                  .ta = SHERD_I32,
                  .tb = SHERD_I32,
                  .bits_a = 17,
                  .bits_b = 17 };
    blinded_new(&x);
    assert_int_equal(sherd__blind_arm(&x.h, x.key, 0), 0);
    sherd__cell_work w[2];
    uint8_t *body[2];
    for (uint32_t p = 0; p < 2; p++) body[p] = blind_answer(&x, (sherd__cell){ 0, 0, p }, &w[p]);
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
        cmocka_unit_test(no_wrong_answer_is_accepted),
        cmocka_unit_test(cells_hidden_before_a_wrong_answer_are_checked_with_new_vectors),
        cmocka_unit_test(rows_that_changed_are_not_hidden_again),
        cmocka_unit_test(rows_beyond_the_range_of_masks_are_not_sent),
        cmocka_unit_test(rows_that_changed_are_not_used_to_check_answers),
    };
    return cmocka_run_group_tests_name("crypto/blind_lies", tests, blind_begin, blind_end);
}
