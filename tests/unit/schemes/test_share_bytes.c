/*
 * Shares modulo primes below 256 of operands that are larger than one block
 * (schemes/share/bytes.h): masks of blocks are unrelated, padding is zero, and every product is
 * exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "crypto/mask.h"
#include "tests/unit/schemes/share_world.h"

/* --- shares as residues ---------------------------------------------------------------------- */

typedef struct laid {
    sherd__fragment_info info;
    uint8_t *bytes;
} laid;

static laid take(sherd__fragment *f)
{
    laid out = { .info = *sherd__fragment_info_of(f), .bytes = share_read(f) };
    sherd__fragment_free(f);
    return out;
}

static laid left_of(product *x, uint32_t slot, uint32_t panel)
{
    sherd__cell_work w;
    assert_int_equal(x->h.ops->hide(x->h.ctx, (sherd__cell){ slot, 0, panel }, &w), 0);
    return take(w.left);
}

static laid right_of(product *x, uint32_t slot, uint32_t tile)
{
    sherd__fragment *f;
    assert_int_equal(x->h.ops->resident(x->h.ctx, slot, tile, &f), 0);
    return take(f);
}

/* A fixture whose operands have several blocks in each direction, none of them whole at the end. */
static fixture large(void)
{
    return (fixture){ .n = 75,
                      .k = 300,
                      .m = 150,
                      .blocks = 1,
                      .masks = 1,
                      .shares = 3,
                      .bytes = true,
                      .panel_rows = 75,
                      .tile_cols = 150,
                      .type = SHERD_F64,
                      .bits = 9,
                      .primes = 2 };
}

/* --- masks ----------------------------------------------------------------------------------- */

/* The residues of zeros are those of the only mask, times a weight. */
static void zeros(product *x, fixture f)
{
    f.zero_a = true;
    share_open(x, f);
    memset(x->db, 0, f.k * f.m * sizeof(double));
}

/* Checks that at most twice as many residues are equal as by chance, one of 240. */
static void by_chance(size_t equal, size_t all)
{
    if (equal * 240 > 2 * all + 240 * 12) fail_msg("%zu of %zu residues are equal", equal, all);
}

/* Compares residues of a share that are `down` rows and `across` columns apart. */
static void nothing_alike(const laid *x, uint32_t q, size_t down, size_t across)
{
    size_t equal = 0, all = 0;
    for (size_t i = 0; i + down < x->info.rows; i++)
        for (size_t j = 0; j + across < x->info.cols; j++, all++) {
            size_t at = i * x->info.cols + j, there = (i + down) * x->info.cols + j + across;
            equal += share_value(&x->info, x->bytes, q, at) ==
                     share_value(&x->info, x->bytes, q, there);
        }
    by_chance(equal, all);
}

/* Compares residues at the same places of two shares of equal width; b has no more rows than a. */
static void nothing_shared(const laid *a, const laid *b, uint32_t q)
{
    size_t equal = 0, all = b->info.rows * b->info.cols;
    assert_int_equal(a->info.cols, b->info.cols);
    for (size_t i = 0; i < all; i++)
        equal += share_value(&a->info, a->bytes, q, i) == share_value(&b->info, b->bytes, q, i);
    by_chance(equal, all);
}

static void blocks_of_an_encoding_have_masks_of_their_own(void **state)
{
    (void)state;
    product x;
    zeros(&x, large());
    laid a = left_of(&x, 1, 0), b = right_of(&x, 1, 0);
    assert_int_equal(a.info.dtype, SHERD__BYTES_LEFT);
    assert_int_equal(b.info.dtype, SHERD__BYTES_RIGHT);
    for (uint32_t q = 0; q < x.s.primes_len; q++) {
        nothing_alike(&a, q, 32, 0);
        nothing_alike(&a, q, 0, 256);
        nothing_alike(&a, q, 32, 256);
        nothing_alike(&a, q, 1, 0);
        nothing_alike(&a, q, 0, 64);
        nothing_alike(&b, q, 64, 0);
        nothing_alike(&b, q, 0, 64);
        nothing_alike(&b, q, 64, 64);
        nothing_alike(&b, q, 0, 16);
    }
    free(a.bytes);
    free(b.bytes);
    share_close(&x);
}

/* Panels of A and tiles of B are rows and columns of one encoding each. */
static void panels_and_tiles_have_masks_of_their_own(void **state)
{
    (void)state;
    fixture f = large();
    product x;
    f.panel_rows = 40;
    f.tile_cols = 75;
    zeros(&x, f);
    laid a[] = { left_of(&x, 1, 0), left_of(&x, 1, 1) };
    laid b[] = { right_of(&x, 1, 0), right_of(&x, 1, 1) };
    for (uint32_t q = 0; q < x.s.primes_len; q++) {
        nothing_shared(&a[0], &a[1], q);
        nothing_shared(&b[0], &b[1], q);
    }
    for (int i = 0; i < 2; i++) {
        free(a[i].bytes);
        free(b[i].bytes);
    }
    share_close(&x);
}

static uint32_t inverse(uint32_t w, uint32_t p)
{
    uint32_t v = 1;
    while (w * v % p != 1) v++;
    return v;
}

/* Masks of two primes from one key would begin with the same bytes in every block. */
static void primes_have_masks_of_their_own(void **state)
{
    (void)state;
    product x;
    zeros(&x, large());
    laid a = left_of(&x, 1, 0);
    uint32_t mask[2][16 * 4], equal = 0;
    for (uint32_t q = 0; q < 2; q++) {
        double w[2];
        uint32_t p = x.s.primes[q];
        assert_int_equal(sherd__lcc_encode_weights(&x.p.code, p, 1, w), 0);
        uint32_t over = inverse((uint32_t)(w[1] < 0 ? w[1] + p : w[1]), p);
        for (uint32_t i = 0; i < 64; i++) {
            size_t at = (i / 32 * 32) * a.info.cols + i / 16 % 2 * 256 + i % 16;
            mask[q][i] = (uint32_t)share_value(&a.info, a.bytes, q, at) * over % p;
        }
    }
    for (uint32_t i = 0; i < 64; i++) equal += mask[0][i] == mask[1][i];
    assert_true(equal < 8);
    free(a.bytes);
    share_close(&x);
}

/* --- layout ---------------------------------------------------------------------------------- */

/* Returns whether a byte of a tile is a residue of the operand (crypto/fragment.h). */
static bool inside(const sherd__fragment_info *i, size_t tile, size_t byte)
{
    bool left = i->dtype == SHERD__BYTES_LEFT;
    size_t terms = left ? i->cols : i->rows, lines = left ? i->rows : i->cols;
    size_t tiles = (terms + 63) / 64, strip = tile / tiles / i->primes;
    size_t line = left ? byte / 64 : byte % 64 / 4,
           term = left ? byte % 64 : byte / 64 * 4 + byte % 4;
    return strip * 16 + line < lines && tile % tiles * 64 + term < terms;
}

static void padding_is_zero(const laid *x)
{
    size_t beyond = 0, zero = 0, within = 0;
    for (size_t at = 0; at < x->info.len; at++) {
        bool in = inside(&x->info, at / 1024, at % 1024);
        within += in;
        if (in) zero += x->bytes[at] == 0;
        else if (x->bytes[at]) beyond++;
    }
    assert_int_equal(within, x->info.rows * x->info.cols * x->info.primes);
    assert_int_equal(beyond, 0);
    assert_true(zero * 50 < within);
    free(x->bytes);
}

static void residues_beyond_an_operand_are_zero(void **state)
{
    (void)state;
    static const size_t shapes[][3] = { { 75, 300, 150 }, { 33, 257, 65 }, { 16, 64, 16 },
                                        { 5, 10, 3 },     { 48, 320, 80 }, { 64, 70, 129 } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        fixture f = large();
        product x;
        f.n = f.panel_rows = shapes[i][0];
        f.k = shapes[i][1];
        f.m = f.tile_cols = shapes[i][2];
        share_open(&x, f);
        laid a = left_of(&x, 2, 0), b = right_of(&x, 2, 0);
        padding_is_zero(&a);
        padding_is_zero(&b);
        share_close(&x);
    }
}

/* More terms of B are read than its cache holds. */
static void pieces_of_b_do_not_depend_on_the_order_of_reads(void **state)
{
    (void)state;
    fixture f = large();
    product x;
    laid whole[2];
    f.n = f.panel_rows = 2;
    f.k = 3000;
    f.m = 1500;
    f.tile_cols = 250;
    share_open(&x, f);
    sherd__fragment *u[2];
    for (uint32_t i = 0; i < 2; i++) {
        whole[i] = right_of(&x, 1 + i, 3 * i);
        assert_int_equal(x.h.ops->resident(x.h.ctx, 1 + i, 3 * i, &u[i]), 0);
    }
    for (uint32_t tile = 4; tile < 6; tile++) free(right_of(&x, 0, tile).bytes);
    for (int i = 0; i < 60; i++) {
        uint8_t piece[5000];
        size_t n = 1 + share_below(sizeof piece);
        size_t at = share_below(whole[i % 2].info.len - n);
        assert_int_equal(sherd__fragment_read(u[i % 2], at, piece, n), 0);
        assert_memory_equal(piece, whole[i % 2].bytes + at, n);
    }
    for (int i = 0; i < 2; i++) {
        sherd__fragment_free(u[i]);
        free(whole[i].bytes);
    }
    share_close(&x);
}

/* --- products -------------------------------------------------------------------------------- */

static void products_of_many_blocks_are_exact(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        fixture f = large();
        product x;
        f.n = 70 + share_below(20);
        f.k = 257 + share_below(20);
        f.m = 65 + share_below(20);
        f.blocks = 1 + i % 2;
        f.masks = 1 + i / 4;
        f.seeds = i / 4 * 3;
        f.inner = i % 4 == 1;
        f.left_stays = i % 2;
        f.bits = i % 4 < 2 ? 9 : 14;
        f.panel_rows = f.inner ? 64 : 33;
        f.tile_cols = i & 1 ? 64 : 80;
        f.shares = share_threshold(f);
        share_open(&x, f);
        share_run(&x, NULL, 0);
        if (f.left_stays && share_both_ways(f)) {
            share_next(&x, 66, true);
            share_run(&x, NULL, 0);
        }
        share_close(&x);
    }
}

/* --- seeds ----------------------------------------------------------------------------------- */

/* B is encoded in strips of 16 columns, and so are its seeds. */
static void seeds_of_many_rows_are_drawn_in_strips(void **state)
{
    (void)state;
    fixture f = large();
    product x;
    f.n = f.panel_rows = 2;
    f.k = 9000;
    f.m = f.tile_cols = 40;
    f.seeds = 3;
    share_open(&x, f);
    sherd__fragment *b;
    assert_int_equal(x.h.ops->resident(x.h.ctx, 1, 0, &b), 0);
    assert_int_equal(sherd__fragment_info_of(b)->encoding, SHERD__SEED);
    assert_int_equal(sherd__fragment_bytes(b)[32], 16);
    sherd__fragment_free(b);
    share_run(&x, NULL, 0);
    share_close(&x);
}

typedef struct seed_list {
    uint8_t list[64][SHERD__SEED_BYTES];
    size_t len;
} seed_list;

/* Adds a seed, which is of a slot and no earlier one; takes f. */
static void take_seed(seed_list *l, sherd__fragment *f)
{
    const sherd__fragment_info *i = sherd__fragment_info_of(f);
    assert_int_equal(i->encoding, SHERD__SEED);
    assert_int_equal(i->len, 34 + i->primes);
    memcpy(l->list[l->len], sherd__fragment_bytes(f), SHERD__SEED_BYTES);
    for (size_t k = 0; k < l->len; k++)
        assert_memory_not_equal(l->list[k], l->list[l->len], SHERD__SEED_BYTES);
    l->len++;
    sherd__fragment_free(f);
}

static sherd__fragment *part_of(product *x, bool left, uint32_t slot, uint32_t at)
{
    sherd__fragment *f;
    if (left) assert_int_equal(x->h.ops->left(x->h.ctx, slot, at, &f), 0);
    else assert_int_equal(x->h.ops->resident(x->h.ctx, slot, at, &f), 0);
    return f;
}

/* Panels, tiles, both operands, slots, a second encoding, and the next B, which is the same B: all
 * have seeds of their own. A seed that is requested again is the same. */
static void no_seed_is_used_twice(void **state)
{
    (void)state;
    product x[2];
    seed_list l = { .len = 0 };
    for (int i = 0; i < 2; i++) {
        fixture f = large();
        f.masks = 2;
        f.shares = 5;
        f.seeds = 4;
        f.left_stays = true;
        f.panel_rows = 40;
        f.tile_cols = 80;
        share_open(&x[i], f);
        for (uint32_t at = 0; at < 2; at++) {
            for (uint32_t slot = 0; slot < 2; slot++) take_seed(&l, part_of(&x[i], true, slot, at));
            for (uint32_t slot = 2; slot < 4; slot++)
                take_seed(&l, part_of(&x[i], false, slot, at));
            sherd__fragment *again = part_of(&x[i], true, 0, at),
                            *dense = part_of(&x[i], true, 2, at);
            assert_memory_equal(sherd__fragment_bytes(again), l.list[l.len - 4], SHERD__SEED_BYTES);
            assert_int_equal(sherd__fragment_info_of(dense)->encoding, SHERD__DENSE);
            sherd__fragment_free(again);
            sherd__fragment_free(dense);
        }
        const sherd__kept_product same = { share_rows(&x[i]), false, x[i].b, x[i].c, f.m };
        for (int next = 0; next < 2; next++) {
            assert_int_equal(sherd__share_next(&x[i].h, &same, &x[i].fb), 0);
            for (uint32_t t = 0; t < 2; t++)
                take_seed(&l, part_of(&x[i], false, (2 * (uint32_t)next + t) % 4, 0));
        }
    }
    share_close(&x[0]);
    share_close(&x[1]);
}

static void slots_of_seeds_that_are_no_shares_are_refused(void **state)
{
    (void)state;
    static const uint32_t beyond[] = { 0, 3 }, one[] = { 1 };
    product x;
    sherd__hiding h;
    share_open(&x, large());
    sherd__share_params p = x.p;
    p.seed_slots = beyond;
    p.seed_slots_len = 2;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p.seed_slots = one;
    p.seed_slots_len = 1;
    p.code.masks = 2;
    p.code.shares = 5;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL); /* fewer than masks */
    p = x.p;
    p.seed_slots = one;
    p.seed_slots_len = 1;
    p.bytes = false;
    p.primes_len = 2;
    memcpy(p.primes, sherd__primes_default.p, sizeof p.primes[0] * 2);
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    share_close(&x);
}

/* --- answers --------------------------------------------------------------------------------- */

/* The sum of a residue and its prime is the same number modulo the prime, but no residue. */
static void bytes_that_are_no_residues_are_refused(void **state)
{
    (void)state;
    fixture f = large();
    product x;
    size_t tried = 0;
    f.n = f.panel_rows = 20;
    f.k = 5;
    f.m = f.tile_cols = 30;
    f.primes = 8;
    share_open(&x, f);
    const sherd__cell c = { 1, 0, 0 };
    uint8_t *body = share_answer(&x, c, NULL);
    for (size_t at = 0, part = f.n * f.m; at < x.s.primes_len * part; at++) {
        uint32_t p = x.s.primes[at / part];
        if (body[at] + p > UINT8_MAX) continue;
        body[at] = (uint8_t)(body[at] + p);
        assert_int_equal(share_judge(&x, c, body), SHERD_EWRONG);
        body[at] = (uint8_t)(body[at] - p);
        tried++;
    }
    assert_true(tried > 100);
    assert_int_equal(share_judge(&x, c, body), 0);
    free(body);
    share_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_an_encoding_have_masks_of_their_own),
        cmocka_unit_test(panels_and_tiles_have_masks_of_their_own),
        cmocka_unit_test(primes_have_masks_of_their_own),
        cmocka_unit_test(residues_beyond_an_operand_are_zero),
        cmocka_unit_test(pieces_of_b_do_not_depend_on_the_order_of_reads),
        cmocka_unit_test(products_of_many_blocks_are_exact),
        cmocka_unit_test(seeds_of_many_rows_are_drawn_in_strips),
        cmocka_unit_test(no_seed_is_used_twice),
        cmocka_unit_test(slots_of_seeds_that_are_no_shares_are_refused),
        cmocka_unit_test(bytes_that_are_no_residues_are_refused),
    };
    return cmocka_run_group_tests_name("schemes/share_bytes", tests, share_seed, NULL);
}
