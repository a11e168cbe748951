/*
 * One suite for every scheme that is folded: hidden, computed by a real backend, checked and
 * folded, a product or an operation equals the result of one machine, and only the data that are
 * needed are sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "crypto/fragment_make.h"
#include "schemes/partition/partition.h"
#include "tests/contract/schemes/scheme_world.h"
#include "wire/session.h"

/* ---- correct results ------------------------------------------------------------------------- */

static void every_product_equals_the_local_one(void **state)
{
    (void)state;
    for (int i = 0; i < 400; i++) {
        scheme_fixture f = scheme_random();
        scheme_multiply(&f, NULL);
    }
}

/* Counts what one hiding sends of A, in each of its forms. */
static void totals(sherd__hiding *h, bool csr, scheme_total *out)
{
    sherd__partition_sparse(h, csr);
    scheme_run(h, SHERD__OP_MULTIPLY, NULL);
    *out = scheme_sent;
}

static void sparse_operands_are_sent_without_their_zeros(void **state)
{
    (void)state;
    enum { N = 90, K = 300, M = 20 };
    static const sherd_dtype types[] = { SHERD_U8, SHERD_F64 };
    static const uint32_t groups[] = { 16, SHERD__GROUP_ALL };
    for (unsigned round = 0; round < 16; round++) {
        sherd_dtype t = types[round & 1];
        unsigned zeros = round & 4 ? 10 : 8; /* in ten entries */
        void *a = scheme_matrix(N, K, t, zeros), *b = scheme_matrix(K, M, SHERD_F64, 0);
        double *c = calloc(N * M, 8), *once = calloc(N * M, 8);
        uint32_t expo[K];
        uint8_t key[32] = { 9 };
        assert_int_equal(sherd__exposures(key, K, 2, true, expo), 0);
        sherd__partition_params p = { .a = sherd_view_c(a, t, N, K),
                                      .b = sherd_view_c(b, SHERD_F64, K, M),
                                      .c = c,
                                      .ldc = M,
                                      .slots = 2,
                                      .exposures = round & 8 ? NULL : expo,
                                      .group = groups[round >> 1 & 1],
                                      .panel_rows = 30,
                                      .tile_cols = M,
                                      .skip_zeros = !(round & 8),
                                      .finite = true,
                                      .exact = true,
                                      .entropy = scheme_rng };
        if (!(round & 8)) p.perm = sherd__perm_from_key(key);
        assert_int_equal(sherd__fixed_choose(p.a, 17, "A", &p.fixed_a, NULL), 0);
        assert_int_equal(sherd__fixed_choose(p.b, 17, "B", &p.fixed_b, NULL), 0);
        sherd__hiding h;
        scheme_total dense, csr;
        assert_int_equal(sherd__partition_open(&h, &p), 0);
        totals(&h, false, &dense);
        memcpy(once, c, N * M * sizeof *c);
        assert_int_equal(sherd__partition_next(&h, p.a, c, M, true, &p.fixed_a), 0);
        totals(&h, true, &csr);
        assert_memory_equal(c, once, N * M * sizeof *c);
        assert_int_equal(dense.csr_cells, 0);
        /* No zeros are sent of a matrix of zeros, except where whole rows stay. */
        if (zeros < 10) assert_int_equal(csr.csr_cells, csr.cells);
        if (zeros < 10)
            assert_true((double)csr.bytes < (t == SHERD_U8 ? 0.75 : 0.6) * (double)dense.bytes);
        if (zeros == 10) assert_int_equal(csr.cells, round & 8 ? 4 : 0);
        h.ops->free(h.ctx);
        free(a), free(b), free(c), free(once);
    }
    assert_true(scheme_csr_cells > 300); /* in the random products */
}

static void a_panel_fuller_than_the_others_is_sent_dense(void **state)
{
    (void)state;
    uint8_t a[4 * 8] = { 0 }, key[32] = { 1 };
    double b[8 * 2] = { 1, 2, 3 }, c[4 * 2];
    uint32_t expo[8] = { 0 };
    memset(a, 7, 16); /* two full rows, and one entry in the others */
    a[16 + 3] = 1;
    sherd__partition_params p = { .a = sherd_view_c(a, SHERD_U8, 4, 8),
                                  .b = sherd_view_c(b, SHERD_F64, 8, 2),
                                  .c = c,
                                  .ldc = 2,
                                  .slots = 1,
                                  .exposures = expo,
                                  .group = SHERD__GROUP_ALL,
                                  .panel_rows = 2,
                                  .tile_cols = 2,
                                  .skip_zeros = true,
                                  .finite = true,
                                  .entropy = scheme_rng };
    p.perm = sherd__perm_from_key(key);
    sherd__hiding h;
    scheme_total all;
    assert_int_equal(sherd__partition_open(&h, &p), 0);
    totals(&h, true, &all);
    assert_int_equal(all.cells, 2);
    assert_int_equal(all.csr_cells, 1);
    assert_int_equal(all.bytes, (8 + 16) + (8 + 1 + 2)); /* dense; one row with one entry */
    h.ops->free(h.ctx);
}

static void sizes_zero_and_one_work(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++) {
        scheme_fixture f = scheme_random();
        f.n = i & 1;
        f.k = i >> 1 & 1;
        f.m = i >> 2 & 1;
        scheme_multiply(&f, NULL);
    }
}

static void a_product_beyond_2_53_is_exact(void **state)
{
    (void)state;
    scheme_fixture f = { .n = 9,
                         .k = 40,
                         .m = 11,
                         .ta = SHERD_F64,
                         .tb = SHERD_F64,
                         .slots = 3,
                         .group = 4,
                         .exact = true,
                         .bits = 26,
                         .panel_rows = 4,
                         .tile_cols = 7 };
    scheme_multiply(&f, NULL);
    f.plain = true;
    scheme_multiply(&f, NULL);
}

static void nan_and_infinities_equal_those_of_a_local_product(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        scheme_fixture f = scheme_odd();
        scheme_multiply(&f, NULL);
    }
}

static void every_operation_equals_the_local_one(void **state)
{
    (void)state;
    for (uint32_t op = SHERD__OP_SIGMOID; op <= SHERD__OP_EXP; op++)
        for (int i = 0; i < 12; i++)
            scheme_apply(op, scheme_below(12), scheme_below(12), 1 + (uint32_t)scheme_below(5),
                         i % 2, NULL);
}

/* --- bookkeeping ----------------------------------------------------------------------------- */

static void zero_entries_are_not_sent(void **state)
{
    (void)state;
    double a[6] = { 0, 2, 0, 0, 0, 5 }, b[4] = { 1, 2, 3, 4 }, c[6];
    uint32_t expo[2] = { 0, 0 };
    uint8_t key[32] = { 1 };
    sherd__partition_params p = { .a = sherd_view_c(a, SHERD_F64, 3, 2),
                                  .b = sherd_view_c(b, SHERD_F64, 2, 2),
                                  .c = c,
                                  .ldc = 2,
                                  .slots = 1,
                                  .exposures = expo,
                                  .group = 1,
                                  .panel_rows = 8,
                                  .tile_cols = 8,
                                  .skip_zeros = true,
                                  .finite = true,
                                  .entropy = scheme_rng };
    p.perm = sherd__perm_from_key(key);
    sherd__hiding h;
    sherd__cell_work w;
    uint64_t skipped, sent;
    assert_int_equal(sherd__partition_open(&h, &p), 0);
    assert_int_equal(h.ops->hide(h.ctx, (sherd__cell){ 0, 0, 0 }, &w), 0);
    const sherd__fragment_info *info = sherd__fragment_info_of(w.left);
    assert_int_equal(info->rows, 2);            /* two entries are nonzero */
    assert_int_equal(info->len, 2 * 8 + 2 * 8); /* the table of two groups, and the entries */
    sherd__partition_counts(&h, &skipped, &sent);
    assert_int_equal(skipped, 4);
    assert_int_equal(sent, 2);
    sherd__fragment_free(w.left);
    h.ops->free(h.ctx);
}

/* 40 columns whose sum depends on the order of addition; in the order in which they are sent, and
 * their sum. */
static void deal_forty(uint32_t group, double *sent, double *sum)
{
    double a[40], b[40];
    uint32_t expo[40] = { 0 };
    uint8_t key[32] = { 3 };
    for (unsigned i = 0; i < 40; i++) {
        a[i] = (i % 3 == 0 ? 1e16 : i % 3 == 1 ? 1 : -1e16) + i;
        b[i] = 1;
    }
    sherd__partition_params p = { .a = sherd_view_c(a, SHERD_F64, 1, 40),
                                  .b = sherd_view_c(b, SHERD_F64, 40, 1),
                                  .c = sum,
                                  .ldc = 1,
                                  .slots = 1,
                                  .exposures = expo,
                                  .group = group,
                                  .panel_rows = 8,
                                  .tile_cols = 8,
                                  .finite = true,
                                  .entropy = scheme_rng };
    p.perm = sherd__perm_from_key(key);
    sherd__hiding h;
    sherd__cell_work w;
    assert_int_equal(sherd__partition_open(&h, &p), 0);
    assert_int_equal(h.ops->hide(h.ctx, (sherd__cell){ 0, 0, 0 }, &w), 0);
    const sherd__fragment_info *info = sherd__fragment_info_of(w.left);
    const uint8_t *body = sherd__fragment_bytes(w.left);
    assert_int_equal(info->len, 8 * info->groups + sizeof a);
    memcpy(sent, body + 8 * info->groups, sizeof a);
    sherd__fragment_free(w.left);
    scheme_run(&h, SHERD__OP_MULTIPLY, NULL);
    h.ops->free(h.ctx);
}

static void groups_are_sent_in_random_order_and_added_in_their_own(void **state)
{
    (void)state;
    double first[40], again[40], sum, now, ascending = 0;
    unsigned same = 0, steps = 0;
    deal_forty(1, first, &sum);
    for (unsigned i = 0; i < 40; i++) ascending += (i % 3 == 0 ? 1e16 : i % 3 == 1 ? 1 : -1e16) + i;
    assert_true(sum == ascending);
    for (unsigned k = 0; k < 10; k++) {
        deal_forty(1, again, &now);
        assert_true(now == sum); /* the bits do not depend on the random order */
        for (unsigned i = 0; i < 40; i++) same += again[i] == first[i];
    }
    assert_true(same < 100);                   /* of 400; about 10 by chance */
    deal_forty(SHERD__GROUP_ALL, again, &now); /* one group: in A's order */
    for (unsigned i = 0; i < 40; i++) steps += again[i] == first[i];
    assert_true(steps < 12);
    deal_forty(7, first, &now);
    for (unsigned i = 0; i < 40; i++) { /* in a group columns ascend: each is followed by the
                                         * next */
        unsigned at = 0;
        while (at < 40 && first[at] != again[i]) at++;
        assert_true(at < 40);
        if (i % 7 != 6 && i < 39) assert_true(first[at + 1] == again[i + 1]);
    }
}

/* Opens a product, makes blocks of a cell and closes it again. plain: panels of A stay. */
static int open_and_hide(bool plain)
{
    static double a[12], b[12], c[9];
    static const uint32_t expo[4] = { 0, 1, 1, 0 };
    static const uint8_t key[32] = { 2 };
    for (int i = 0; i < 12; i++) a[i] = b[i] = i;
    sherd__partition_params p = { .a = sherd_view_c(a, SHERD_F64, 3, 4),
                                  .b = sherd_view_c(b, SHERD_F64, 4, 3),
                                  .c = c,
                                  .ldc = 3,
                                  .slots = 2,
                                  .exposures = plain ? NULL : expo,
                                  .group = 1,
                                  .panel_rows = 2,
                                  .tile_cols = 2,
                                  .left_stays = plain,
                                  .perm_cache = 1000,
                                  .finite = true,
                                  .entropy = scheme_rng };
    sherd__cell_work w = { 0 };
    sherd__fragment *left = NULL, *right = NULL;
    sherd__hiding h;
    p.perm = sherd__perm_from_key(key);
    int err = sherd__partition_open(&h, &p);
    if (err) return err;
    err = h.ops->hide(h.ctx, (sherd__cell){ 0, 0, 0 }, &w);
    if (!err && plain) err = h.ops->left(h.ctx, 0, 0, &left);
    if (!err) err = h.ops->resident(h.ctx, 0, 0, &right);
    sherd__fragment_free(w.left);
    sherd__fragment_free(left);
    sherd__fragment_free(right);
    h.ops->free(h.ctx);
    return err;
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    for (int plain = 0; plain < 2; plain++)
        for (size_t n = 1, seen = n; seen >= n; n++) {
            sherd__alloc_fail_nth(n);
            int err = open_and_hide(plain);
            seen = sherd__alloc_fail_nth(0);
            if (seen >= n) assert_int_equal(err, SHERD_ENOMEM);
            else assert_int_equal(err, SHERD_OK);
        }
}

static void panels_stay_under_plain_only(void **state)
{
    (void)state;
    double x[4] = { 0 };
    const uint32_t expo[2] = { 0, 0 };
    sherd__partition_params p = { .a = sherd_view_c(x, SHERD_F64, 2, 2),
                                  .b = sherd_view_c(x, SHERD_F64, 2, 2),
                                  .ldc = 2,
                                  .slots = 1,
                                  .exposures = expo,
                                  .group = 1,
                                  .panel_rows = 1,
                                  .tile_cols = 1,
                                  .left_stays = true,
                                  .entropy = scheme_rng };
    sherd__hiding h;
    assert_int_equal(sherd__partition_open(&h, &p), SHERD_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_product_equals_the_local_one),
        cmocka_unit_test(sparse_operands_are_sent_without_their_zeros),
        cmocka_unit_test(a_panel_fuller_than_the_others_is_sent_dense),
        cmocka_unit_test(sizes_zero_and_one_work),
        cmocka_unit_test(a_product_beyond_2_53_is_exact),
        cmocka_unit_test(nan_and_infinities_equal_those_of_a_local_product),
        cmocka_unit_test(every_operation_equals_the_local_one),
        cmocka_unit_test(zero_entries_are_not_sent),
        cmocka_unit_test(groups_are_sent_in_random_order_and_added_in_their_own),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(panels_stay_under_plain_only),
    };
    return cmocka_run_group_tests_name("crypto/scheme", tests, scheme_begin, scheme_end);
}
