/*
 * share and share1: every product is exact, for every set of answers from which it is decoded, with
 * other threads running and with allocations failing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/inner.h"
#include "matrix/reference.h"
#include "tests/unit/schemes/share_world.h"

/* 9000 rows of the largest numbers: their sum exceeds two primes, which hold the sum of two panels
 * of 1000 rows of two blocks. Cases with one panel less in the last group, and with rows of some
 * parts only. */
static void sums_over_many_rows_need_no_third_prime(void **state)
{
    (void)state;
    static const double signs[] = { 1, -1, 0 };
    for (size_t i = 0; i < 9; i++) {
        fixture f = { .n = 9000,
                      .k = 3,
                      .m = 2,
                      .blocks = 2,
                      .masks = 1,
                      .shares = 5,
                      .left_stays = true,
                      .panel_rows = i < 6 ? 1000 : 300,
                      .tile_cols = 1,
                      .type = SHERD_F64,
                      .bits = 17,
                      .grouped = true,
                      .all = signs[i % 3] * 65535 / 65536,
                      .part = i < 3 ? 0 : 4500 };
        product x;
        share_open(&x, f);
        assert_int_equal(x.p.primes_len, 2);
        for (unsigned round = 0; round < 2; round++) {
            share_next(&x, 2, true);
            share_run(&x, NULL, 0);
            share_next(&x, 2, false);
            share_run(&x, NULL, 0);
        }
        share_close(&x);
    }
}

/* The same with five primes below 256, which hold sums over 1448 rows of 15 bits. */
static void sums_over_many_rows_need_no_sixth_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        fixture f = { .n = 9000,
                      .k = 3,
                      .m = 2,
                      .blocks = 2,
                      .masks = 1,
                      .shares = 5,
                      .left_stays = true,
                      .bytes = true,
                      .panel_rows = i == 2 ? 725 : 700 - 300 * i,
                      .tile_cols = 1,
                      .type = SHERD_F64,
                      .bits = 15,
                      .primes = 5,
                      .grouped = true,
                      .all = i ? 16383.0 / 16384 : -16383.0 / 16384 };
        product x;
        share_open(&x, f);
        assert_int_equal(x.p.primes_len, 5);
        share_set_view(f, f.n, 2, false, &x.db, &x.b, &x.fb);
        if (i == 2) {
            const sherd__kept_product m = { share_rows(&x), true, x.b, x.c, 2 };
            assert_int_equal(sherd__share_next(&x.h, &m, &x.fb), SHERD_ERANGE);
        } else {
            share_next(&x, 2, true);
            share_run(&x, NULL, 0);
        }
        share_close(&x);
    }
}

/* The sum of a panel must fit the primes; sums over more than two primes are not computed in
 * groups. */
static void sums_that_do_not_fit_a_group_are_refused(void **state)
{
    (void)state;
    fixture f = { .n = 9000,
                  .k = 3,
                  .m = 2,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .left_stays = true,
                  .panel_rows = 2048,
                  .tile_cols = 1,
                  .type = SHERD_F64,
                  .bits = 17,
                  .grouped = true,
                  .all = 65535.0 / 65536 };
    for (unsigned i = 0; i < 4; i++) {
        product x;
        f.panel_rows = i == 0 ? 2049 : 2048;
        f.primes = i == 3 ? 3 : 2;
        share_open(&x, f);
        share_set_view(f, f.n, 2, false, &x.db, &x.b, &x.fb);
        if (i >= 2) x.fb.bound = UINT64_C(1) << (i == 2 ? 17 : 40);
        int err = sherd__share_next(&x.h,
                                    &(sherd__kept_product){ share_rows(&x), true, x.b, x.c, 2 },
                                    &x.fb);
        assert_int_equal(err, i == 1 ? SHERD_OK : SHERD_ERANGE);
        share_close(&x);
    }
}

/* A panel of 2050 images with 2 windows each is a sum over 4100 rows, twice the number of
 * images. */
static void sums_over_windows_count_every_window(void **state)
{
    (void)state;
    fixture f = { .n = 4500,
                  .m = 2,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .left_stays = true,
                  .tile_cols = 1,
                  .type = SHERD_F64,
                  .bits = 17,
                  .grouped = true,
                  .primes = 2,
                  .all = 65535.0 / 65536,
                  .windows = { 1, 2, 1, 1, 1, 0 } };
    for (unsigned i = 0; i < 2; i++) {
        product x;
        f.panel_rows = i ? 1024 : 1025;
        share_open(&x, f);
        share_set_view(f, 2 * f.n, 2, false, &x.db, &x.b, &x.fb);
        int err = sherd__share_next(&x.h,
                                    &(sherd__kept_product){ share_rows(&x), true, x.b, x.c, 2 },
                                    &x.fb);
        assert_int_equal(err, i ? SHERD_OK : SHERD_ERANGE);
        share_close(&x);
    }
}

static void every_product_is_exact(void **state)
{
    (void)state;
    for (int i = 0; i < 250; i++) {
        product x;
        share_open(&x, share_random_fixture());
        share_run(&x, NULL, 0);
        share_close(&x);
    }
}

static void shapes_at_their_limits_work(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 64; i++) {
        fixture f = share_random_fixture();
        f.n = i & 1 ? 1 : i & 32 ? 7 : f.n;
        f.k = i & 2 ? 1 : f.k;
        f.m = i & 4 ? 1 : f.m;
        f.blocks = i & 8 || f.blocks > f.n ? (uint32_t)(f.n < 6 ? f.n : 6) : f.blocks; /* K = n */
        if (f.inner && i & 8) f.blocks = (uint32_t)f.k + 2; /* blocks of zeros */
        f.zero_a = i & 16;
        f.shares = share_threshold(f) + !f.inner;
        product x;
        share_open(&x, f);
        share_run(&x, NULL, 0);
        share_close(&x);
    }
}

static void empty_products_have_no_cells(void **state)
{
    (void)state;
    for (unsigned i = 1; i < 8; i++) {
        fixture f = { .n = i & 1 ? 0 : 3,
                      .k = i & 2 ? 0 : 2,
                      .m = i & 4 ? 0 : 4,
                      .blocks = 2,
                      .masks = 1,
                      .shares = 5,
                      .panel_rows = 2,
                      .tile_cols = 3,
                      .type = SHERD_F64,
                      .bits = 17 };
        product x;
        share_open(&x, f);
        assert_int_equal(x.s.tiles * x.s.panels, 0);
        share_run(&x, NULL, 0);
        share_close(&x);
    }
}

/* --- any R of N ------------------------------------------------------------------------------ */

static void from_all_sets(bool public_b, uint32_t blocks, unsigned primes)
{
    uint32_t sets[256], r = sherd__lcc_threshold(blocks, 1, !public_b);
    size_t nsets = 0;
    for (uint32_t s = 0; s < 256; s++)
        if ((uint32_t)__builtin_popcount(s) == r) sets[nsets++] = s;
    /* There are as many panels as sets: each panel is decoded from another set. */
    fixture f = { .n = nsets * blocks - (blocks > 1 && nsets > 1),
                  .k = 3,
                  .m = 2,
                  .blocks = blocks,
                  .masks = 1,
                  .shares = 8,
                  .public_b = public_b,
                  .panel_rows = 1,
                  .tile_cols = 2,
                  .bits = 17,
                  .type = SHERD_F64,
                  .primes = primes };
    product x;
    share_open(&x, f);
    assert_int_equal(x.s.panels, nsets);
    share_run(&x, sets, nsets);
    share_close(&x);
}

static void every_sufficient_subset_of_eight_answers_decodes(void **state)
{
    (void)state;
    for (unsigned primes = 2; primes <= 4; primes++) {
        for (uint32_t k = 1; k <= 3; k++) from_all_sets(false, k, primes);
        for (uint32_t k = 1; k <= 7; k++) from_all_sets(true, k, primes);
    }
}

/* --- the same shares, other products --------------------------------------------------------- */

static void kept_shares_serve_products_from_both_sides(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        fixture f = share_random_fixture();
        f.public_b = f.inner = false;
        f.left_stays = true;
        f.shares = sherd__lcc_threshold(f.blocks, f.masks, true) + (uint32_t)share_below(2);
        product x;
        share_open(&x, f);
        if (share_below(3)) share_run(&x, NULL, 0);
        for (int j = 0; j < 3; j++) {
            share_next(&x, 1 + share_below(12), share_below(2));
            if (share_below(4)) share_run(&x, NULL, 0);
            else free(share_answer(&x, (sherd__cell){ 0, 0, 0 }, NULL)); /* dropped */
        }
        share_close(&x);
    }
}

/* Under the inner-product code A is cut by columns: its shares serve A*B for any rows, and no sums
 * over rows. */
static void kept_shares_cut_by_columns_serve_products_from_one_side(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        fixture f = share_random_fixture();
        f.public_b = false;
        f.left_stays = f.inner = true;
        f.shares = share_threshold(f);
        product x;
        share_open(&x, f);
        for (int j = 0; j < 3; j++) {
            share_next(&x, 1 + share_below(12), false);
            if (share_below(4)) share_run(&x, NULL, 0);
            else free(share_answer(&x, (sherd__cell){ 0, 0, 0 }, NULL)); /* dropped */
        }
        share_set_view(f, f.n, 2, false, &x.db, &x.b, &x.fb);
        assert_int_equal(sherd__share_next(&x.h,
                                           &(sherd__kept_product){ share_rows(&x), true, x.b, x.c,
                                                                   2 },
                                           &x.fb),
                         SHERD_EINVAL);
        share_close(&x);
    }
}

/* Nodes form the windows of their shares of images, for both products, of all parts or of one. */
static void windows_of_shares_are_shares_of_windows(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        product x;
        share_open(&x, share_windows_fixture());
        for (int j = 0; j < 3; j++) {
            share_next(&x, 1 + share_below(6), j & 1);
            share_run(&x, NULL, 0);
        }
        size_t part = x.f.part ? x.f.part : x.f.n, first = share_below(x.f.n / part) * part;
        sherd_rows rows = { first * x.w.count, part * x.w.count };
        sherd_view some = sherd_view_sub(share_left(&x), rows.first, rows.count, 0, x.f.k);
        share_set_view(x.f, rows.count, 2, false, &x.db, &x.b, &x.fb);
        x.transposed = true;
        free(x.ref);
        x.ref = calloc(x.f.k * 2, sizeof *x.ref);
        x.c = realloc(x.c, (x.f.k * 2 + 1) * sizeof *x.c);
        x.c_rows = x.f.k;
        assert_int_equal(sherd__reference_exact(&(sherd__matrices){ sherd_view_t(some), x.b, x.ref,
                                                                    2 },
                                                &x.fa, &x.fb, NULL),
                         0);
        assert_int_equal(sherd__share_next(&x.h, &(sherd__kept_product){ rows, true, x.b, x.c, 2 },
                                           &x.fb),
                         0);
        x.h.ops->shape(x.h.ctx, &x.s);
        share_run(&x, NULL, 0);
        share_close(&x);
    }
}

/* For a product of windows, no message is larger than images and rows of D. */
static void windows_are_not_sent(void **state)
{
    (void)state;
    fixture f = { .n = 6,
                  .m = 2,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .panel_rows = 3,
                  .tile_cols = 2,
                  .left_stays = true,
                  .type = SHERD_F64,
                  .bits = 9,
                  .primes = 2,
                  .windows = { 5, 4, 2, 3, 1, 1 } };
    product x;
    sherd__cell_sizes sizes;
    share_open(&x, f);
    for (int transposed = 0; transposed < 2; transposed++) {
        share_next(&x, 2, transposed);
        assert_int_equal(x.h.ops->sizes(x.h.ctx, (sherd__cell){ 0, 0, 0 }, &sizes), 0);
        assert_int_equal(sizes.left.len, 3 * 2 * 3 * 5 * 4 * 2);
        assert_int_equal(sizes.right.len, transposed ? 3 * 2 * 3 * 20 * 2 : 0);
        assert_int_equal(sizes.result.len, 3 * 2 * 2 * (transposed ? 18 : 3 * 20));
    }
    share_close(&x);
}

/* ---- nodes that have left -------------------------------------------------------------------- */

static size_t allocations_of_a_hide(product *x, sherd__cell c)
{
    sherd__cell_work w;
    sherd__alloc_fail_nth(SIZE_MAX); /* counts allocations */
    assert_int_equal(x->h.ops->hide(x->h.ctx, c, &w), 0);
    size_t n = sherd__alloc_fail_nth(0);
    sherd__fragment_free(w.left);
    sherd__fragment_free(w.right);
    return n;
}

static void shares_of_nodes_that_have_left_are_made_only_on_request(void **state)
{
    (void)state;
    fixture f = { .n = 12,
                  .k = 4,
                  .m = 3,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 9,
                  .panel_rows = 2,
                  .tile_cols = 3,
                  .type = SHERD_F64,
                  .bits = 17 };
    product x;
    share_open(&x, f);
    uint8_t dead[2] = { 0x28, 0x01 }; /* slots 3, 5 and 8 */
    (void)allocations_of_a_hide(&x, (sherd__cell){ 0, 0, 0 });
    size_t all = allocations_of_a_hide(&x, (sherd__cell){ 0, 0, 1 });
    x.h.ops->spare(x.h.ctx, dead);
    assert_int_equal(allocations_of_a_hide(&x, (sherd__cell){ 0, 0, 2 }), all - 3);
    share_run(&x, NULL, 0);
    share_close(&x);
}

/* --- two threads ----------------------------------------------------------------------------- */

/* As in the loop: B's shares are read while another thread hides, checks and decodes cells. */
static void *read_all_of_b(void *arg)
{
    product *x = arg;
    for (uint32_t t = 0; t < x->s.tiles; t++) {
        for (uint32_t i = 0; i < x->s.slots; i++) {
            sherd__fragment *f;
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
    fixture f = { .n = 40,
                  .k = 60,
                  .m = 50,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .panel_rows = 5,
                  .tile_cols = 20,
                  .type = SHERD_F64,
                  .bits = 17,
                  .primes = 2 };
    product x;
    pthread_t loop;
    void *failed;
    share_open(&x, f);
    assert_int_equal(pthread_create(&loop, NULL, read_all_of_b, &x), 0);
    for (uint32_t t = 0; t < x.s.tiles; t++) {
        for (uint32_t p = 0; p < x.s.panels; p++) {
            uint8_t *zeros = calloc(1, x.s.result_max);
            sherd__cell c = { 1, t, p };
            free(share_hidden(&x, c, NULL));
            assert_int_equal(share_judge(&x, c, zeros), SHERD_EWRONG);
            free(zeros);
        }
    }
    assert_int_equal(pthread_join(loop, &failed), 0);
    assert_null(failed);
    share_close(&x);
}

/* --- bookkeeping ----------------------------------------------------------------------------- */

static void invalid_codes_are_refused(void **state)
{
    (void)state;
    fixture f = { .n = 6,
                  .k = 3,
                  .m = 2,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .panel_rows = 2,
                  .tile_cols = 2,
                  .type = SHERD_F64,
                  .bits = 17,
                  .left_stays = true };
    product x;
    share_open(&x, f);
    sherd__share_params good = x.p, p = good;
    sherd__hiding h;
    p.code.masks = 0;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = good, p.code.shares = 4; /* one fewer than decoding needs */
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = good, p.code = (sherd__lcc){ 7, 1, 20 }; /* more blocks than rows */
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = good, p.b.rows = 2;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = good, p.primes_len = 0;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = good, p.primes[0] = 5; /* points 1 to 8 */
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = good, p.by = &sherd__code_inner,
    p.code = (sherd__lcc){ 2, 1, 5 }; /* one more than it has */
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p.code.shares = 4, p.public_b = true;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    assert_null(h.ops);
    sherd__fixed wide = x.fb;
    assert_int_equal(sherd__share_next(&x.h,
                                       &(sherd__kept_product){ share_rows(&x), false, x.a, x.c, 3 },
                                       &x.fb),
                     SHERD_ESHAPE);
    static const sherd_rows none[] = { { 1, 5 }, { 0, 3 }, { 0, 7 }, { 6, 1 }, { 2, SIZE_MAX } };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        product y;
        share_open(&y, f);
        assert_int_equal(sherd__share_next(&y.h,
                                           &(sherd__kept_product){ none[i], false, y.b, y.c, 2 },
                                           &y.fb),
                         SHERD_EINVAL);
        share_close(&y);
    }
    wide.bound = UINT64_C(1) << 52;
    assert_int_equal(sherd__share_next(&x.h,
                                       &(sherd__kept_product){ share_rows(&x), false, x.b, x.c, 2 },
                                       &wide),
                     SHERD_ERANGE);
    share_run(&x, NULL, 0); /* the first hiding is not affected */
    uint64_t a, b;
    x.h.ops->entries(x.h.ctx, (sherd__cell){ 0 }, &a, &b);
    assert_int_equal(a + b, 0);
    share_close(&x);
    f.left_stays = false;
    share_open(&x, f);
    assert_int_equal(sherd__share_next(&x.h,
                                       &(sherd__kept_product){ share_rows(&x), false, x.b, x.c, 2 },
                                       &x.fb),
                     SHERD_EINVAL);
    share_close(&x);
    f.public_b = f.left_stays = true;
    share_open(&x, f);
    assert_int_equal(sherd__share_next(&x.h,
                                       &(sherd__kept_product){ share_rows(&x), true, x.a, x.c, 3 },
                                       &x.fa),
                     SHERD_EINVAL);
    share_close(&x);
}

static void invalid_windows_are_refused(void **state)
{
    (void)state;
    fixture f = { .n = 6,
                  .m = 2,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .panel_rows = 2,
                  .tile_cols = 2,
                  .type = SHERD_F64,
                  .bits = 9,
                  .left_stays = true,
                  .windows = { 3, 3, 1, 2, 1, 0 } };
    product x;
    sherd__hiding h;
    share_open(&x, f);
    sherd__share_params p = x.p;
    p.windows.window = 4;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = x.p, p.windows.channels = 2; /* images of 18 numbers */
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = x.p, p.left_stays = false;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = x.p, p.c = x.c;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    p = x.p, p.by = &sherd__code_inner, p.code.shares = 4;
    assert_int_equal(sherd__share_open(&h, &p), SHERD_EINVAL);
    static const sherd_rows none[] = { { 1, 4 }, { 0, 23 }, { 2, 4 }, { 0, 28 }, { 24, 4 } };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        share_set_view(f, 4, 2, false, &x.db, &x.b, &x.fb);
        assert_int_equal(sherd__share_next(&x.h,
                                           &(sherd__kept_product){ none[i], false, x.b, x.c, 2 },
                                           &x.fb),
                         SHERD_EINVAL);
    }
    share_next(&x, 2, false);
    share_run(&x, NULL, 0);
    share_close(&x);
}

static void the_right_operand_may_be_given_later_than_the_left(void **state)
{
    (void)state;
    fixture f = { .n = 9,
                  .k = 4,
                  .m = 5,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 6,
                  .panel_rows = 2,
                  .tile_cols = 3,
                  .type = SHERD_F64,
                  .bits = 17,
                  .left_stays = true };
    for (int transposed = 0; transposed < 2; transposed++) {
        product x;
        share_open(&x, f);
        x.h.ops->free(x.h.ctx);
        x.p.c = NULL;
        assert_int_equal(sherd__share_open(&x.h, &x.p), 0);
        x.h.ops->shape(x.h.ctx, &x.s);
        assert_int_equal(x.s.tiles, 0);
        share_next(&x, 5, transposed);
        share_run(&x, NULL, 0);
        share_close(&x);
    }
}

/* Every step that fails for lack of memory can be repeated, and the product is still correct. */
static void poor_product(product *x, size_t nth)
{
    const sherd__hiding_ops *ops = x->h.ops;
    uint8_t *body[32];
    sherd__alloc_fail_nth(nth);
    for (uint32_t t = 0; t < x->s.tiles; t++) {
        for (uint32_t p = 0; p < x->s.panels; p++) {
            uint32_t slots[32];
            const uint8_t *bodies[32];
            for (uint32_t i = 0; i < x->s.threshold; i++) {
                sherd__cell c = { i, t, p };
                sherd__cell_work w;
                sherd__fragment *u, *v;
                TRY(ops->hide(x->h.ctx, c, &w));
                u = w.left;
                v = w.right;
                if (!u) TRY(ops->left(x->h.ctx, c.slot, c.panel, &u));
                if (!v) TRY(ops->resident(x->h.ctx, c.slot, c.tile, &v));
                uint8_t *ub = share_read(u), *vb = share_read(v);
                bodies[i] = body[i] = share_compute(x, u, ub, v, vb, &w.result);
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
    share_is_exact(x);
}

static void after_any_failed_allocation_the_product_can_be_completed(void **state)
{
    (void)state;
    fixture f = { .n = 5,
                  .k = 2,
                  .m = 3,
                  .blocks = 2,
                  .masks = 1,
                  .shares = 5,
                  .panel_rows = 2,
                  .tile_cols = 2,
                  .type = SHERD_F64,
                  .bits = 17,
                  .primes = 2 };
    static const struct {
        int stays; /* 3, 4: with windows */
        bool inner, bytes;
    } cases[] = { { 0, false, false }, { 1, false, false }, { 2, false, false },
                  { 3, false, false }, { 4, false, false }, { 0, true, false },
                  { 1, true, false },  { 0, false, true },  { 1, false, true },
                  { 2, false, true },  { 0, true, true },   { 1, true, true } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int stays = cases[i].stays;
        f.inner = cases[i].inner;
        f.bytes = cases[i].bytes;
        f.primes = f.bytes ? 5 : 2;
        f.n = 5;
        f.shares = f.inner ? 4 : 5;
        f.windows = (sherd_windows){ 0 };
        f.left_stays = stays;
        f.public_b = false;
        if (stays > 2) f.windows = (sherd_windows){ 2, 2, 1, 2, 1, 1 };
        if (stays > 2) f.n = 3;
        bool failed = true;
        for (size_t n = 1; failed; n++) {
            product x;
            sherd__hiding h = { 0 };
            share_open(&x, f);
            sherd__alloc_fail_nth(n);
            int err = sherd__share_open(&h, &x.p);
            bool met = sherd__alloc_fail_nth(0) >= n;
            assert_int_equal(err, met ? SHERD_ENOMEM : SHERD_OK);
            if (!err) h.ops->free(h.ctx);
            if (stays >= 2) share_next(&x, 3, stays != 3);
            share_shortages = 0;
            poor_product(&x, n);
            failed = share_shortages || met;
            share_close(&x);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_over_many_rows_need_no_third_prime),
        cmocka_unit_test(sums_over_many_rows_need_no_sixth_byte),
        cmocka_unit_test(sums_that_do_not_fit_a_group_are_refused),
        cmocka_unit_test(sums_over_windows_count_every_window),
        cmocka_unit_test(every_product_is_exact),
        cmocka_unit_test(shapes_at_their_limits_work),
        cmocka_unit_test(empty_products_have_no_cells),
        cmocka_unit_test(every_sufficient_subset_of_eight_answers_decodes),
        cmocka_unit_test(kept_shares_serve_products_from_both_sides),
        cmocka_unit_test(kept_shares_cut_by_columns_serve_products_from_one_side),
        cmocka_unit_test(windows_of_shares_are_shares_of_windows),
        cmocka_unit_test(windows_are_not_sent),
        cmocka_unit_test(invalid_windows_are_refused),
        cmocka_unit_test(shares_of_nodes_that_have_left_are_made_only_on_request),
        cmocka_unit_test(b_is_sent_by_one_thread_while_another_hides),
        cmocka_unit_test(invalid_codes_are_refused),
        cmocka_unit_test(the_right_operand_may_be_given_later_than_the_left),
        cmocka_unit_test(after_any_failed_allocation_the_product_can_be_completed),
    };
    return cmocka_run_group_tests_name("crypto/share", tests, share_seed, NULL);
}
