/* Plans of products in shares: how many blocks, primes and rows, within which memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "scheduler/plan/prepare.h"
#include "scheduler/plan/prepare_internal.h"
#include "schemes/share/internal.h"

static const uint32_t own[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
static const sherd__nodes five = {
    .count = 5, .domain = own, .domains = 5, .usable = 5, .memory = UINT64_C(1) << 30
};

static sherd_product_options coded(void)
{
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.scheme = SHERD_SHARE;
    return o;
}

/* A node refuses more, which then is sent again. */
static void shares_in_progress_fit_the_smallest_node(void **state)
{
    (void)state;
    enum { N = 4000, K = 700, M = 500 };
    uint8_t *big = calloc(N, K), *right = calloc(K, M);
    assert_true(big && right);
    for (uint64_t memory = UINT64_C(2) << 20; memory <= UINT64_C(64) << 20; memory += memory / 4) {
        sherd__nodes nodes = five;
        nodes.memory = memory;
        for (unsigned here = 24; here <= 30; here += 2) {
            sherd__prepared p;
            sherd_product_options o = coded();
            o.memory = UINT64_C(1) << here;
            o.code = here % 4 ? SHERD_CODE_LAGRANGE : SHERD_CODE_INNER;
            nodes.depth = here == 30 ? UINT32_MAX : 0; /* as most nodes may declare */
            nodes.cell = nodes.depth ? UINT64_MAX : 0;
            assert_int_equal(sherd__prepare_multiply(&p,
                                                     &(sherd__matrices){
                                                         sherd_view_c(big, SHERD_U8, N, K),
                                                         sherd_view_c(right, SHERD_U8, K, M), NULL,
                                                         M },
                                                     &nodes, &o, NULL),
                             SHERD_OK);
            assert_true(p.plan.depth >= 2);
            if (p.plan.node_bytes > memory)
                fail_msg("%.1f MB at a node of %.1f MB, with %.1f MB here",
                         (double)p.plan.node_bytes * 1e-6, (double)memory * 1e-6,
                         (double)o.memory * 1e-6);
            sherd__prepared_fini(&p);
        }
    }
    free(big);
    free(right);
}

static void a_domain_that_is_not_up_counts_as_a_spare(void **state)
{
    (void)state;
    static const struct {
        uint32_t domains, up, spare, blocks; /* 0: refused */
    } cases[] = { { 4, 4, 1, 1 }, { 4, 3, 1, 1 }, { 4, 2, 1, 0 }, { 3, 3, 1, 0 }, { 3, 3, 0, 1 },
                  { 8, 8, 1, 3 }, { 8, 7, 1, 3 }, { 8, 6, 1, 2 }, { 8, 6, 2, 2 }, { 8, 4, 4, 1 } };
    const double x[4 * 4] = { 1 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd__nodes n = { .count = cases[i].domains,
                           .domain = own,
                           .domains = cases[i].domains,
                           .memory = 1 << 24,
                           .usable = cases[i].up };
        sherd__prepared p;
        sherd_product_options o = coded();
        o.spare = cases[i].spare;
        sherd_view v = sherd_view_c(x, SHERD_F64, 4, 4);
        int err = sherd__prepare_multiply(&p, &(sherd__matrices){ v, v, NULL, 4 }, &n, &o, NULL);
        assert_int_equal(err, cases[i].blocks ? SHERD_OK : SHERD_EFEWNODES);
        if (err) continue;
        assert_int_equal(p.code.blocks, cases[i].blocks);
        assert_true(p.threshold <= cases[i].up);
        sherd__prepared_fini(&p);
    }
}

/* Returns the code of a product of zeros, n x k x m, or SHERD_CODE_AUTO if it is refused. */
static sherd_code code_of(const size_t shape[3], const sherd__nodes *nodes,
                          const sherd_product_options *o, sherd_diag *d)
{
    size_t n = shape[0], k = shape[1], m = shape[2];
    uint8_t *zeros = calloc(n > m ? n : m, k);
    sherd__prepared p;
    sherd_report r = { .size = sizeof r };
    int err = sherd__prepare_multiply(&p,
                                      &(sherd__matrices){ sherd_view_c(zeros, SHERD_U8, n, k),
                                                          sherd_view_c(zeros, SHERD_U8, k, m), NULL,
                                                          m },
                                      nodes, o, d);
    if (!err) sherd__prepared_report(&p, &r);
    if (!err) sherd__prepared_fini(&p);
    free(zeros);
    return r.code;
}

static void the_code_with_the_least_predicted_time_is_used(void **state)
{
    (void)state;
    static const size_t square[] = { 600, 600, 600 }, thin[] = { 900, 1, 900 };
    sherd_product_options o = coded();
    o.link_rate = 1e9;
    assert_int_equal(code_of(square, &five, &o, NULL), SHERD_CODE_INNER);
    /* Answers are most of the work: by the inner-product code each is as large as C. */
    assert_int_equal(code_of(thin, &five, &o, NULL), SHERD_CODE_LAGRANGE);
    o.code = SHERD_CODE_INNER;
    assert_int_equal(code_of(thin, &five, &o, NULL), SHERD_CODE_INNER);
    o.code = SHERD_CODE_LAGRANGE;
    assert_int_equal(code_of(square, &five, &o, NULL), SHERD_CODE_LAGRANGE);
}

/* Returns the code of a kept operand of n x k zeros and right operands of m columns, or
 * SHERD_CODE_AUTO if it is refused; *primes is their number. */
static sherd_code code_of_kept(const size_t shape[3], bool one_way, const sherd__nodes *nodes,
                               const sherd_product_options *o, uint32_t *primes)
{
    uint8_t *zeros = calloc(shape[0], shape[1]);
    sherd__prepared p;
    sherd_report r = { .size = sizeof r };
    const sherd_keep_options how = {
        .size = sizeof how, .part = SIZE_MAX, .cols = shape[2], .one_way = one_way
    };
    int err = sherd__prepare_kept(&p, sherd_view_c(zeros, SHERD_U8, shape[0], shape[1]), &how,
                                  nodes, o, NULL);
    if (!err) sherd__prepared_report(&p, &r);
    *primes = err ? 0 : p.primes_len;
    sherd__prepared_fini(&p);
    free(zeros);
    return r.code;
}

/* Both directions need Lagrange's code, and sums over the rows. */
static void a_kept_operand_of_one_direction_has_the_faster_code(void **state)
{
    (void)state;
    static const size_t wide[] = { 600, 2000, 600 }, high[] = { 20000, 600, 64 };
    uint32_t both, one;
    sherd__nodes fast = five;
    sherd_product_options o = coded();
    fast.gflops = 1; /* so that residues are bytes */
    fast.byte_gops = 16000;
    o.link_rate = 1e9;
    o.bits = 18;
    assert_int_equal(code_of_kept(wide, false, &five, &o, &both), SHERD_CODE_LAGRANGE);
    assert_int_equal(code_of_kept(wide, true, &five, &o, &one), SHERD_CODE_INNER);
    assert_int_equal(code_of_kept(high, false, &fast, &o, &both), SHERD_CODE_LAGRANGE);
    assert_int_equal(code_of_kept(high, true, &fast, &o, &one), SHERD_CODE_LAGRANGE);
    assert_true(one < both);
    assert_int_equal(code_of(high, &fast, &o, NULL), SHERD_CODE_INNER); /* A is sent each time */
    o.spare = 1;
    assert_int_equal(code_of_kept(wide, true, &five, &o, &one), SHERD_CODE_LAGRANGE);
    o.code = SHERD_CODE_INNER;
    assert_int_equal(code_of_kept(wide, true, &five, &o, &one), SHERD_CODE_AUTO);
    o.spare = 0;
    assert_int_equal(code_of_kept(high, false, &fast, &o, &one), SHERD_CODE_INNER);
}

/* It need not be true: the other code leaves that node out. */
static void a_node_that_declares_little_memory_does_not_make_the_tasks_of_all_small(void **state)
{
    (void)state;
    static const size_t large[] = { 3000, 1000, 3000 };
    static const uint64_t budgets[] = { 300000, 1 << 30, 1 << 30, 1 << 30, 1 << 30 };
    sherd__nodes slow = five, poor;
    sherd_product_options o = coded();
    slow.remote = true; /* and so slow, with their links, that encoding counts for nothing */
    slow.gflops = 0.01;
    poor = slow;
    o.link_rate = 2.5e5;
    assert_int_equal(code_of(large, &slow, &o, NULL), SHERD_CODE_INNER);
    poor.budgets = budgets;
    assert_int_equal(code_of(large, &poor, &o, NULL), SHERD_CODE_LAGRANGE);
}

static void a_code_that_needs_every_node_is_refused_if_one_may_be_missing(void **state)
{
    (void)state;
    static const size_t square[] = { 600, 600, 600 };
    sherd__nodes four_up = five, large = five;
    uint32_t domain[80];
    four_up.usable = 4;
    for (uint32_t i = 0; i < 80; i++) domain[i] = i;
    large.count = large.domains = large.usable = 80;
    large.domain = domain;
    const struct {
        const sherd__nodes *nodes;
        sherd_scheme scheme;
        uint32_t spare;
        const char *why;
    } cases[] = { { &five, SHERD_SHARE, 1, "lets some be missing" },
                  { &four_up, SHERD_SHARE, 0, "4 of 5 domains are up" },
                  { &five, SHERD_SHARE1, 0, "hides both operands" },
                  { &large, SHERD_SHARE, 0, "are more than --code inner can make" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd_product_options o = coded();
        sherd_diag d = { 0 };
        o.scheme = cases[i].scheme;
        o.spare = cases[i].spare;
        assert_int_equal(code_of(square, cases[i].nodes, &o, NULL), SHERD_CODE_LAGRANGE);
        o.code = SHERD_CODE_INNER;
        assert_int_equal(code_of(square, cases[i].nodes, &o, &d), SHERD_CODE_AUTO);
        if (!strstr(d.message, cases[i].why)) fail_msg("%s", d.message);
        assert_true(d.hint[0] != 0);
    }
    sherd_product_options o = coded();
    sherd_diag d = { 0 };
    o.code = (sherd_code)(SHERD_CODE_INNER + 1);
    assert_int_equal(code_of(square, &five, &o, &d), SHERD_CODE_AUTO);
    assert_int_equal(d.code, SHERD_EINVAL);
}

/* For a row of a long operand, the check needs more bytes than the row's shares. */
static void memory_for_checks_counts_in_the_budget(void **state)
{
    (void)state;
    enum { K = 200000 };
    uint8_t *zeros = calloc(4, K);
    for (unsigned here = 24; here <= 30; here += 2) {
        sherd__prepared p;
        sherd_product_options o = coded();
        sherd_diag d = { 0 };
        o.memory = UINT64_C(1) << here;
        o.code = SHERD_CODE_LAGRANGE;
        int err = sherd__prepare_multiply(&p,
                                          &(sherd__matrices){ sherd_view_c(zeros, SHERD_U8, 4, K),
                                                              sherd_view_c(zeros, SHERD_U8, K, 1),
                                                              NULL, 1 },
                                          &five, &o, &d);
        assert_int_equal(err, here < 28 ? SHERD_EFEWNODES : SHERD_OK);
        if (err) assert_non_null(strstr(d.message, "and what checks them, are more than what"));
        else {
            double terms = 2 + 1 + 1 + 1, check = 16.0 * p.primes_len * terms * K;
            double shares = 5.0 * (double)p.plan.cell_bytes;
            assert_true(p.plan.depth * (check + shares) <= (double)o.memory);
            sherd__prepared_fini(&p);
        }
    }
    free(zeros);
}

/* Projections that checks keep of an operand between products have a part of the memory of their
 * own. */
static void a_kept_operand_leaves_checks_their_part_of_the_memory(void **state)
{
    (void)state;
    static const double zeros[30 * 20];
    const sherd_view a = sherd_view_c(zeros, SHERD_F64, 30, 20);
    sherd__prepared p;
    sherd_product_options o = coded();
    o.memory = UINT64_C(10) << 20;
    assert_int_equal(sherd__prepare_kept(&p, a, &(sherd_keep_options){ .part = 30 }, &five, &o,
                                         NULL),
                     SHERD_OK);
    const share *s = p.hiding.ctx;
    assert_int_equal(s->p.check_bytes, (UINT64_C(3) << 20));
    sherd__prepared_fini(&p);
}

/* With 17 bits, two primes hold 4096 products, so that a panel is two blocks of 2048 rows. With 20
 * bits it would be 32 rows, and a third prime is used. */
static void sums_over_kept_rows_use_small_panels_before_more_primes(void **state)
{
    (void)state;
    enum { ROWS = 30000, COLS = 4 };
    static const struct {
        unsigned bits;
        size_t part;
        uint32_t primes;
        size_t rows;
    } of[] = {
        { 17, 4096, 2, 2048 },
        { 17, ROWS, 2, 2048 },
        { 20, ROWS, 3, 15000 },
        { 16, ROWS, 2, 8192 },
    };
    double *x = malloc(ROWS * COLS * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < ROWS * COLS; i++) x[i] = 1.0 - 1.0 / (1 << 20);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        sherd__prepared p;
        sherd_product_options o = coded();
        o.bits = of[i].bits;
        assert_int_equal(sherd__prepare_kept(&p, sherd_view_c(x, SHERD_F64, ROWS, COLS),
                                             &(sherd_keep_options){ .part = of[i].part }, &five, &o,
                                             NULL),
                         SHERD_OK);
        const share *s = p.hiding.ctx;
        assert_int_equal(p.code.blocks, 2);
        assert_int_equal(p.primes_len, of[i].primes);
        if (s->p.panel_rows > of[i].rows) fail_msg("case %zu: %zu", i, s->p.panel_rows);
        if (i == 1) assert_int_equal(s->p.panel_rows, 2048); /* 3750 were planned */
        sherd__prepared_fini(&p);
    }
    free(x);
}

/* Each image has 16 windows of 4 numbers: windows determine primes and panels, images determine
 * memory. */
static void windows_count_in_sums_and_images_in_memory(void **state)
{
    (void)state;
    enum { ROWS = 2000, COLS = 25 };
    static const sherd_windows w = { 5, 5, 1, 2, 1, 0 };
    static const struct {
        unsigned bits;
        size_t part;
        uint32_t primes;
        size_t rows;
    } of[] = {
        { 17, 500, 2, 128 },
        { 17, ROWS, 2, 128 },
        { 20, ROWS, 3, ROWS },
    };
    double *x = malloc(ROWS * COLS * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < ROWS * COLS; i++) x[i] = 1.0 - 1.0 / (1 << 20);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        sherd__prepared p;
        sherd_product_options o = coded();
        const sherd_keep_options how = { sizeof how, of[i].part, &w, 3, false };
        o.bits = of[i].bits;
        assert_int_equal(sherd__prepare_kept(&p, sherd_view_c(x, SHERD_F64, ROWS, COLS), &how,
                                             &five, &o, NULL),
                         SHERD_OK);
        const share *s = p.hiding.ctx;
        assert_int_equal(p.code.blocks, 2);
        assert_int_equal(p.primes_len, of[i].primes);
        if (s->p.panel_rows > of[i].rows) fail_msg("case %zu: %zu", i, s->p.panel_rows);
        assert_int_equal(p.kept_bytes, 3 * of[i].primes * ROWS / 2 * COLS);
        assert_true(p.check_error > 2e-13 && p.check_error < 3e-13); /* (3 / 5931617)^2 */
        sherd__prepared_fini(&p);
    }
    free(x);
}

/* For A^T*D, rows of A and D are projected, for all terms. With windows there are 256 of them for
 * each image here, and with one column they take more than all shares of a cell. */
static void projections_of_windows_count_in_the_budget(void **state)
{
    (void)state;
    enum { ROWS = 4000, SIDE = 20, PLACES = 256, WINDOW = 25, TERMS = 3, SHARES = 5 };
    static const sherd_windows w = { SIDE, SIDE, 1, 5, 1, 0 };
    static const uint8_t none[ROWS * SIDE * SIDE];
    sherd__nodes nodes = five;
    const sherd_keep_options how = { sizeof how, 100, &w, 1, false };
    nodes.memory = UINT64_C(1) << 32;
    for (unsigned here = 20; here < 28; here++) {
        sherd__prepared p;
        sherd_product_options o = coded();
        o.memory = UINT64_C(1) << here;
        assert_int_equal(sherd__prepare_kept(&p, sherd_view_c(none, SHERD_U8, ROWS, SIDE * SIDE),
                                             &how, &nodes, &o, NULL),
                         SHERD_OK);
        const share *s = p.hiding.ctx;
        size_t rows = s->p.panel_rows, number = 2 * sizeof(double) * p.primes_len;
        size_t checks = number * 2 * TERMS * rows * PLACES;
        size_t cell = 3 * p.primes_len * rows * (SIDE * SIDE + PLACES);
        size_t images = number * TERMS * SIDE * SIDE; /* before they are laid out as windows */
        assert_int_equal(p.code.blocks + p.code.masks, TERMS);
        if ((double)(p.plan.depth * (SHARES * cell + checks) + images) > 0.6 * (double)o.memory)
            fail_msg("2^%u: %u times %zu and %zu", here, p.plan.depth, SHARES * cell, checks);
        sherd__prepared_fini(&p);
    }
}

/* Nodes refuse longer ones: nothing is sent, and the side that keeps the operand lays them out. */
static void windows_that_no_node_supports_are_not_kept(void **state)
{
    (void)state;
    static const uint8_t none[1025 * 1025];
    const sherd__nodes three = {
        .count = 3, .domain = own, .domains = 3, .usable = 3, .memory = UINT64_C(1) << 30
    };
    for (uint32_t side = 1024; side <= 1025; side++) {
        sherd__prepared p;
        sherd_diag d = { 0 };
        sherd_product_options o = coded();
        const sherd_windows w = { side, side, 1, side, 1, 0 };
        const sherd_keep_options how = { sizeof how, 1, &w, 1, false };
        o.memory = UINT64_C(1) << 30;
        int err = sherd__prepare_kept(&p, sherd_view_c(none, SHERD_U8, 1, (size_t)side * side),
                                      &how, &three, &o, &d);
        if (err != (side > 1024 ? SHERD_EFEWNODES : SHERD_OK)) fail_msg("%s", d.message);
        if (err)
            assert_string_equal(d.message, "a window has 1050625 numbers, and nodes accept "
                                           "windows of up to 1048576");
        sherd__prepared_fini(&p);
    }
}

/* If the operand consists of windows, no share is planned for them. */
static void older_nodes_are_used_for_everything_except_windows(void **state)
{
    (void)state;
    enum { COLS = 9 };
    static const sherd_windows w = { 3, 3, 1, 2, 1, 0 };
    static const double x[4 * COLS];
    sherd__nodes nodes = five;
    nodes.older = 2;
    for (int windows = 0; windows < 2; windows++) {
        sherd__prepared p;
        sherd_product_options o = coded();
        const sherd_keep_options how = { sizeof how, 4, windows ? &w : NULL, 1, false };
        assert_int_equal(sherd__prepare_kept(&p, sherd_view_c(x, SHERD_F64, 4, COLS), &how, &nodes,
                                             &o, NULL),
                         SHERD_OK);
        assert_int_equal(p.code.blocks, windows ? 1 : 2);
        assert_int_equal(p.code.shares, 5);
        sherd__prepared_fini(&p);
    }
}

/* The memory that a node reports limits the work only if the node is needed. */
static void as_many_nodes_as_are_spare_may_lack_memory(void **state)
{
    (void)state;
    enum { ROWS = 400, COLS = 300 };
    const uint64_t much = UINT64_C(1) << 30, half = much / 2;
    const struct {
        uint32_t spare;
        uint64_t least[3], counted; /* of the five nodes: the three smallest; the others have
                                     * `much`; 0: refused */
    } cases[] = {
        { 1, { 64, much, much }, much },
        { 2, { 64, 64, 64 }, 0 }, /* three are needed to
                                                                       * decode */
        { 2, { 64, 64, much }, much },
        { 0, { 64, much, much }, much },
        { 1, { half, much, much }, half },
        { 1, { half, half, much }, half },
        { 2, { 64, half, much }, half },
        { 0, { 64, 64, 64 }, 0 },
        { 1, { 40000, much, much }, much }, /* 6 columns */
    };
    double *x = calloc((size_t)ROWS * COLS, sizeof *x);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int keeps = 0; keeps < 2; keeps++) {
            const uint64_t *least = cases[i].least;
            const uint64_t budgets[5] = { least[0], least[1], least[2], much, much };
            sherd__nodes n = five;
            sherd__prepared p;
            sherd_product_options o = coded();
            sherd_diag d = { 0 };
            n.budgets = budgets;
            n.memory = budgets[0];
            n.smallest = "node-2 (127.0.0.1:7002)";
            o.spare = cases[i].spare;
            sherd_view a = sherd_view_c(x, SHERD_F64, ROWS, COLS),
                       b = sherd_view_c(x, SHERD_F64, COLS, ROWS);
            int err = keeps ? sherd__prepare_kept(&p, a, &(sherd_keep_options){ .part = ROWS }, &n,
                                                  &o, &d)
                            : sherd__prepare_multiply(&p, &(sherd__matrices){ a, b, NULL, ROWS },
                                                      &n, &o, &d);
            if (err != (cases[i].counted ? SHERD_OK : SHERD_EFEWNODES))
                fail_msg("case %zu, %d: %s", i, keeps, d.message);
            if (!err && p.node_memory != cases[i].counted)
                fail_msg("case %zu, %d: %llu", i, keeps, (unsigned long long)p.node_memory);
            sherd__prepared_fini(&p);
        }
    free(x);
}

/* With the minimum of three nodes that decode, each would keep a whole operand; with five, half of
 * it. */
static void more_nodes_keep_an_operand_that_does_not_fit_the_fewest(void **state)
{
    (void)state;
    enum { ROWS = 400, COLS = 300 };
    double *x = calloc((size_t)ROWS * COLS, sizeof *x);
    sherd__prepared p;
    sherd_product_options o = coded();
    sherd_view a = sherd_view_c(x, SHERD_F64, ROWS, COLS);
    assert_int_equal(sherd__prepare_kept(&p, a, &(sherd_keep_options){ .part = ROWS }, &five, &o,
                                         NULL),
                     SHERD_OK);
    const uint64_t kept = p.kept_bytes;
    sherd__prepared_fini(&p);
    for (int fits = 0; fits < 2; fits++) {
        const uint64_t room = fits ? 5 * kept / 2 : 3 * kept / 2;
        const uint64_t budgets[5] = { room, room, room, room, room };
        sherd__nodes n = five;
        n.budgets = budgets;
        n.memory = room;
        int err = sherd__prepare_kept(&p, a, &(sherd_keep_options){ .part = ROWS }, &n, &o, NULL);
        assert_int_equal(err, fits ? SHERD_OK : SHERD_EFEWNODES);
        if (!err) assert_int_equal(p.code.blocks, 2);
        sherd__prepared_fini(&p);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_in_progress_fit_the_smallest_node),
        cmocka_unit_test(a_domain_that_is_not_up_counts_as_a_spare),
        cmocka_unit_test(the_code_with_the_least_predicted_time_is_used),
        cmocka_unit_test(a_kept_operand_of_one_direction_has_the_faster_code),
        cmocka_unit_test(a_node_that_declares_little_memory_does_not_make_the_tasks_of_all_small),
        cmocka_unit_test(a_code_that_needs_every_node_is_refused_if_one_may_be_missing),
        cmocka_unit_test(as_many_nodes_as_are_spare_may_lack_memory),
        cmocka_unit_test(more_nodes_keep_an_operand_that_does_not_fit_the_fewest),
        cmocka_unit_test(memory_for_checks_counts_in_the_budget),
        cmocka_unit_test(a_kept_operand_leaves_checks_their_part_of_the_memory),
        cmocka_unit_test(sums_over_kept_rows_use_small_panels_before_more_primes),
        cmocka_unit_test(windows_count_in_sums_and_images_in_memory),
        cmocka_unit_test(projections_of_windows_count_in_the_budget),
        cmocka_unit_test(windows_that_no_node_supports_are_not_kept),
        cmocka_unit_test(older_nodes_are_used_for_everything_except_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
