/*
 * What nodes see under share: a share that is made again has the same bytes, two encodings are
 * unrelated, sizes follow from shapes, and T shares look uniform.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/schemes/share_world.h"

/* ---- repeated shares, and unrelated encodings ------------------------------------------------ */

static uint8_t *at_node(product *x, uint32_t slot, uint32_t tile, uint64_t *len)
{
    sherd__fragment *f;
    assert_int_equal(x->h.ops->resident(x->h.ctx, slot, tile, &f), 0);
    uint8_t *bytes = share_read(f);
    *len = sherd__fragment_info_of(f)->len;
    sherd__fragment_free(f);
    return bytes;
}

static void a_share_that_is_requested_again_is_identical(void **state)
{
    (void)state;
    for (int i = 0; i < 80; i++) {
        fixture f = share_random_fixture();
        product x;
        share_open(&x, f);
        bool transposed = f.left_stays && share_both_ways(f) && share_below(2);
        if (transposed) share_next(&x, f.m, true);
        uint32_t slots = x.s.slots;
        sherd__cell c = { 0, (uint32_t)share_below(x.s.tiles), (uint32_t)share_below(x.s.panels) };
        uint8_t *first[32];
        uint64_t len;
        for (c.slot = 0; c.slot < slots; c.slot++) first[c.slot] = share_hidden(&x, c, &len);
        bool decoded = share_below(2);
        if (decoded) share_run(&x, NULL, 0);
        for (c.slot = 0; c.slot < slots; c.slot++) {
            uint8_t *again = share_hidden(&x, c, &len);
            assert_memory_equal(again, first[c.slot], len);
            free(again);
            free(first[c.slot]);
        }
        share_close(&x);
    }
}

static void blocks_of_b_do_not_depend_on_the_order_of_reads(void **state)
{
    (void)state;
    /* 14 MB of terms for each prime: more than the cache keeps. */
    fixture f = { .n = 2,
                  .k = 3000,
                  .m = 300,
                  .blocks = 1,
                  .masks = 1,
                  .shares = 8,
                  .panel_rows = 2,
                  .tile_cols = 300,
                  .type = SHERD_U8,
                  .bits = 8,
                  .primes = 2 };
    product x;
    share_open(&x, f);
    uint64_t len;
    uint8_t *whole = at_node(&x, 3, 0, &len), *other = at_node(&x, 4, 0, &len);
    sherd__fragment *u, *v;
    assert_int_equal(x.h.ops->resident(x.h.ctx, 3, 0, &u), 0);
    assert_int_equal(x.h.ops->resident(x.h.ctx, 4, 0, &v), 0);
    for (int i = 0; i < 60; i++) {
        uint8_t piece[5000];
        size_t n = 1 + share_below(sizeof piece), at = share_below(len - n);
        assert_int_equal(sherd__fragment_read(i % 2 ? u : v, at, piece, n), 0);
        assert_memory_equal(piece, (i % 2 ? whole : other) + at, n);
    }
    sherd__fragment_free(u);
    sherd__fragment_free(v);
    free(whole);
    free(other);
    share_close(&x);
}

static size_t equal_residues(const uint8_t *a, const uint8_t *b, size_t n)
{
    size_t equal = 0;
    for (size_t i = 0; i < n; i++) equal += memcmp(a + 3 * i, b + 3 * i, 3) == 0;
    return equal;
}

/* Checks that equal residues at equal places occur only by chance: one in six million. */
static void nothing_alike(const uint8_t *a, const uint8_t *b, uint64_t len)
{
    assert_true(equal_residues(a, b, len / 3) <= 1);
}

static void two_encodings_of(bool inner)
{
    fixture f = { .n = 60,
                  .k = 40,
                  .m = 50,
                  .blocks = 2,
                  .masks = 1,
                  .shares = inner ? 4 : 5,
                  .inner = inner,
                  .left_stays = true,
                  .panel_rows = 30,
                  .tile_cols = 25,
                  .type = SHERD_F64,
                  .bits = 9,
                  .primes = 2 };
    product x, y;
    share_open(&x, f);
    share_open(&y, f);
    uint64_t len, blen;
    const sherd__cell cell = { 1, 0, 0 };
    uint8_t *a = share_hidden(&x, cell, &len), *b = share_hidden(&y, cell, &len);
    nothing_alike(a, b, len);
    nothing_alike(a, a + len / 2, len / 2); /* equal if one mask were reduced modulo two primes */
    free(b);
    b = share_hidden(&x, (sherd__cell){ 2, 0, 0 }, &len);
    if (!inner) nothing_alike(a, b, len); /* else the mask has the weight 1 in both */
    uint8_t *c = at_node(&x, 1, 0, &blen), *d = at_node(&x, 1, 1, &blen);
    nothing_alike(c, d, blen); /* tiles */
    nothing_alike(a, c, len < blen ? len : blen);
    free(d);
    /* The same B again, for the same shares of A. */
    assert_int_equal(sherd__share_next(&x.h,
                                       &(sherd__kept_product){ share_rows(&x), false, x.b, x.c,
                                                               f.m },
                                       &x.fb),
                     0);
    d = at_node(&x, 1, 0, &blen);
    nothing_alike(c, d, blen);
    free(a);
    free(b);
    free(c);
    free(d);
    share_close(&x);
    share_close(&y);
}

static void two_encodings_are_unrelated(void **state)
{
    (void)state;
    two_encodings_of(false);
    two_encodings_of(true);
}

/* Equal parts of an operand: shares of one part reveal nothing of those of another, and all runs
 * use the same shares of a part. */
static void parts_of_an_operand_have_masks_of_their_own(void **state)
{
    (void)state;
    enum { PARTS = 4, PART = 24 };
    fixture f = { .n = PARTS * PART,
                  .k = 40,
                  .m = 2,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .left_stays = true,
                  .panel_rows = 30,
                  .tile_cols = 2,
                  .type = SHERD_F64,
                  .bits = 9,
                  .primes = 2,
                  .part = PART };
    product x;
    uint8_t *made[PARTS];
    uint64_t len;
    share_open(&x, f);
    double *a = x.da;
    for (size_t i = PART; i < PARTS * PART; i++)
        memcpy(a + i * f.k, a + i % PART * f.k, f.k * sizeof *a);
    assert_int_equal(x.s.lefts, PARTS);
    for (uint32_t i = 0; i < PARTS; i++) {
        made[i] = share_hidden(&x, (sherd__cell){ 1, 0, i }, &len);
        for (uint32_t j = 0; j < i; j++) nothing_alike(made[i], made[j], len);
    }
    for (uint32_t first = 0; first < PARTS; first++) {
        sherd_rows rows = { first * PART, (PARTS - first) * PART };
        assert_int_equal(sherd__share_next(&x.h,
                                           &(sherd__kept_product){ rows, false, x.b, x.c, f.m },
                                           &x.fb),
                         0);
        x.h.ops->shape(x.h.ctx, &x.s);
        assert_int_equal(x.s.left_from, first);
        assert_int_equal(x.s.lefts, PARTS);
        assert_int_equal(x.s.panels, PARTS - first);
        uint8_t *again = share_hidden(&x, (sherd__cell){ 1, 0, 0 }, &len);
        assert_memory_equal(again, made[first], len);
        free(again);
    }
    for (uint32_t i = 0; i < PARTS; i++) free(made[i]);
    share_close(&x);
}

static void sizes_depend_on_shapes_only(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        fixture f = share_random_fixture();
        uint64_t len[2], blen[2];
        f.type = SHERD_F64;
        for (int zero = 0; zero < 2; zero++) {
            product x;
            f.zero_a = zero;
            share_open(&x, f);
            free(share_hidden(&x, (sherd__cell){ 0, 0, 0 }, &len[zero]));
            free(at_node(&x, 0, 0, &blen[zero]));
            share_close(&x);
        }
        assert_int_equal(len[0], len[1]);
        assert_int_equal(blen[0], blen[1]);
    }
}

/* Chi-squared statistic of residues in 64 classes: 63 on average, above 150 with probability
 * 1e-8. */
static double chi_squared(const uint32_t *v, size_t n, uint32_t p)
{
    double count[64] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i++) count[(uint64_t)v[i] * 64 / p]++;
    for (int i = 0; i < 64; i++) sum += (count[i] - (double)n / 64) * (count[i] - (double)n / 64);
    return sum * 64 / (double)n;
}

/* Chi-squared statistic of a*x + b*y modulo p, for the residues of two shares. */
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

static void two_shares_of_zeros_look_uniform_and_three_do_not(void **state)
{
    (void)state;
    fixture f = { .n = 128,
                  .k = 64,
                  .m = 3,
                  .blocks = 2,
                  .masks = 2,
                  .shares = 7,
                  .zero_a = true,
                  .panel_rows = 64,
                  .tile_cols = 8,
                  .type = SHERD_F64,
                  .bits = 17,
                  .primes = 2 };
    product x;
    share_open(&x, f);
    uint32_t p = x.s.primes[0];
    size_t n = 64 * 64;
    uint8_t *s[3];
    double w[3][4];
    for (uint32_t i = 0; i < 3; i++) {
        s[i] = share_hidden(&x, (sherd__cell){ i, 0, 0 }, NULL);
        assert_int_equal(sherd__lcc_encode_weights(&x.p.code, p, i, w[i]), 0);
    }
    for (int i = 0; i < 50; i++) {
        uint64_t a = i ? share_below(p) : 1, b = i ? share_below(p) : 0;
        assert_true(chi_of(s[0], s[1], n, a, b, p) < 150);
        assert_true(chi_of(s[1], s[2], n, a, b, p) < 150);
    }
    /* Three shares: in the combination in which both masks cancel, only the blocks remain, here
     * 0. */
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
    share_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_that_is_requested_again_is_identical),
        cmocka_unit_test(blocks_of_b_do_not_depend_on_the_order_of_reads),
        cmocka_unit_test(two_encodings_are_unrelated),
        cmocka_unit_test(parts_of_an_operand_have_masks_of_their_own),
        cmocka_unit_test(sizes_depend_on_shapes_only),
        cmocka_unit_test(two_shares_of_zeros_look_uniform_and_three_do_not),
    };
    return cmocka_run_group_tests_name("crypto/share_secrecy", tests, share_seed, NULL);
}
