/* Plans of products in shares modulo primes below 256: when, with which primes, in which cells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/byte_code.h"
#include "matrix/exact.h"
#include "scheduler/plan/prepare.h"
#include "scheduler/plan/prepare_internal.h"
#include "scheduler/plan/share_code.h"
#include "schemes/share/internal.h"

static uint32_t domains[256];

/* Nodes whose products take nearly all of the time. */
static sherd__nodes nodes_of(uint32_t n)
{
    for (uint32_t i = 0; i < 256; i++) domains[i] = i;
    return (sherd__nodes){ .count = n,
                           .domain = domains,
                           .domains = n,
                           .usable = n,
                           .memory = UINT64_C(1) << 30,
                           .gflops = 1e-6,
                           .byte_gops = 1000 };
}

static sherd_product_options coded(void)
{
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.scheme = SHERD_SHARE;
    o.code = SHERD_CODE_LAGRANGE;
    return o;
}

/* Plans a product of zeros, n x k x m, of bytes (9 bits with the sign). The caller frees *p. */
static void plan(sherd__prepared *p, const size_t shape[3], const sherd__nodes *nodes,
                 const sherd_product_options *o)
{
    size_t n = shape[0], k = shape[1], m = shape[2];
    uint8_t *zeros = calloc(n > m ? n : m, k);
    sherd_diag d = { 0 };
    const sherd__matrices x = { sherd_view_c(zeros, SHERD_U8, n, k),
                                sherd_view_c(zeros, SHERD_U8, k, m), NULL, m };
    assert_non_null(zeros);
    if (sherd__prepare_multiply(p, &x, nodes, o, &d)) fail_msg("%s", d.message);
    free(zeros);
}

static bool in_bytes(const size_t shape[3], const sherd__nodes *nodes,
                     const sherd_product_options *o)
{
    sherd__prepared p;
    plan(&p, shape, nodes, o);
    bool bytes = p.bytes;
    const share *s = p.hiding.ctx;
    assert_int_equal(s->p.bytes, bytes);
    for (uint32_t i = 0; i < p.primes_len; i++) {
        assert_true((p.primes[i] < 256) == bytes);
        assert_int_equal(s->p.primes[i], p.primes[i]);
    }
    sherd__prepared_fini(&p);
    return bytes;
}

/* --- seeds ----------------------------------------------------------------------------------- */

static const bool able[] = { true, true, true, true, true, true, true, true };

/* Returns the slots whose shares of A, then of B, are sent as seeds, one digit each; 0: none. */
static unsigned slots_of(const sherd__nodes *nodes, const sherd_product_options *o)
{
    sherd__prepared p;
    unsigned slots = 0;
    plan(&p, (const size_t[]){ 1024, 1024, 1024 }, nodes, o);
    const share *s = p.hiding.ctx;
    assert_true(p.bytes);
    for (int right = 0; right < 2; right++) {
        const share_operand *x = right ? &s->b : &s->a;
        for (uint32_t t = 0; t < x->seeds; t++) slots = 10 * slots + 1 + x->seeded[t];
    }
    sherd__prepared_fini(&p);
    return slots;
}

static void seeds_take_turns_among_nodes_that_expand_them(void **state)
{
    (void)state;
    sherd__nodes five = nodes_of(5);
    sherd_product_options o = coded();
    assert_int_equal(slots_of(&five, &o), 0); /* older nodes */
    five.seeds = able;
    assert_int_equal(slots_of(&five, &o), 12);
    o.colluding = 2;
    assert_int_equal(slots_of(&five, &o), 1234);
    o.colluding = 1;
    five.seeds = (const bool[]){ false, true, false, false, true };
    assert_int_equal(slots_of(&five, &o), 25);
    five.seeds = (const bool[]){ false, false, true, false, false };
    assert_int_equal(slots_of(&five, &o), 33);
    o.colluding = 2; /* all masks are seeds, or none is */
    assert_int_equal(slots_of(&five, &o), 0);
    o.code = SHERD_CODE_INNER;
    five.seeds = able;
    assert_int_equal(slots_of(&five, &o), 1234);
}

static void the_slowest_links_carry_seeds(void **state)
{
    (void)state;
    sherd__nodes five = nodes_of(5);
    sherd_product_options o = coded();
    five.seeds = able;
    five.paces = (const double[]){ 1, 0.9, 0, 0.8, 1.1 }; /* much alike; 0: not known */
    assert_int_equal(slots_of(&five, &o), 12);
    five.paces = (const double[]){ 1, 0.9, 0, 0.3, 0.5 };
    assert_int_equal(slots_of(&five, &o), 44);
    o.colluding = 2;
    assert_int_equal(slots_of(&five, &o), 4545);
    five.paces = (const double[]){ 1, 0.9, 0, 0.3, 1 };
    assert_int_equal(slots_of(&five, &o), 2424);
    five.seeds = (const bool[]){ true, true, true, false, true };
    assert_int_equal(slots_of(&five, &o), 1235);
    five.seeds = able; /* domain 1 has a slow node and a fast one */
    o.colluding = 1;
    five.domains = five.usable = 4;
    five.domain = (const uint32_t[]){ 0, 1, 1, 2, 3 };
    five.paces = (const double[]){ 1, 1, 0.2, 1, 1 };
    assert_int_equal(slots_of(&five, &o), 22);
}

static void every_right_operand_of_kept_shares_has_the_next_seeds(void **state)
{
    (void)state;
    sherd__nodes five = nodes_of(5);
    sherd_product_options o = coded();
    sherd__prepared p;
    const sherd_keep_options how = { sizeof how, SIZE_MAX, NULL, 0, false };
    uint8_t *zeros = calloc(1024, 1024);
    double *c = calloc(1024 * 16, sizeof *c);
    sherd_diag d = { 0 };
    five.seeds = able;
    five.byte_gops = 1e6;
    if (sherd__prepare_kept(&p, sherd_view_c(zeros, SHERD_U8, 1024, 1024), &how, &five, &o, &d))
        fail_msg("%s", d.message);
    const share *s = p.hiding.ctx;
    assert_true(p.bytes);
    assert_int_equal(s->a.seeded[0], 0);
    for (uint32_t i = 0; i < 12; i++) {
        const sherd__kept_product m = {
            { 0, 1024 }, i % 2, sherd_view_c(zeros, SHERD_U8, 1024, 16), c, 16
        };
        assert_int_equal(sherd__prepared_right(&p, &m, &o, &d), 0);
        assert_int_equal(s->b.seeds, 1);
        assert_int_equal(s->b.seeded[0], (1 + i) % 5);
        assert_int_equal(s->a.seeded[0], 0);
    }
    sherd__prepared_fini(&p);
    free(zeros);
    free(c);
}

/* The predicted time counts what is not sent, and what nodes make instead. */
static void seeds_are_in_the_predicted_time(void **state)
{
    (void)state;
    sherd__nodes five = nodes_of(5);
    sherd_product_options o = coded();
    const size_t n = 2048;
    double seconds[2];
    uint8_t *zeros = calloc(n, n);
    const sherd_view v = sherd_view_c(zeros, SHERD_U8, n, n);
    const sherd__matrices x = { v, v, NULL, n };
    five.remote = true;
    o.link_rate = 1e8;
    for (int seeds = 0; seeds < 2; seeds++) {
        sherd__prepared p;
        five.seeds = seeds ? able : NULL;
        assert_int_equal(sherd__prepare_multiply(&p, &x, &five, &o, NULL), 0);
        seconds[seeds] = sherd__share_code_seconds(&p, &x, false, &five, &o);
        sherd__prepared_fini(&p);
    }
    /* One share in five of either operand: K = 2, so 5/2 n^2 and 5 n^2 residues, 3 primes or so. */
    assert_true(seconds[1] < 0.9 * seconds[0] && seconds[1] > 0.7 * seconds[0]);
    free(zeros);
}

/* --- when ------------------------------------------------------------------------------------ */

static void bytes_are_used_where_nodes_multiply_them_faster(void **state)
{
    (void)state;
    static const size_t shape[] = { 320, 320, 320 }; /* shares are whole tiles */
    sherd_product_options o = coded();
    sherd__nodes five = nodes_of(5);
    size_t wide;
    assert_int_equal(sherd__exact_primes_needed(320, 255, 255, &sherd__primes_default, &wide), 0);
    double equal = five.gflops * sherd__bytes_primes_needed(320, 255, 255) / (double)wide;
    five.byte_gops = 1.01 * equal;
    assert_true(in_bytes(shape, &five, &o));
    five.byte_gops = 0.99 * equal;
    assert_false(in_bytes(shape, &five, &o));
    five.residue_gflops = 0.95 * five.gflops; /* nodes multiply packed residues at this rate */
    assert_true(in_bytes(shape, &five, &o));
    five.residue_gflops = 1.05 * five.gflops;
    five.byte_gops = 1.01 * equal;
    assert_false(in_bytes(shape, &five, &o));
}

/* One row more needs another strip of 16 rows. */
static void edges_of_tiles_count_in_the_choice(void **state)
{
    (void)state;
    static const size_t whole[] = { 32, 64, 16 }, edges[] = { 34, 65, 17 };
    sherd_product_options o = coded();
    sherd__nodes five = nodes_of(5);
    double bytes = sherd__bytes_primes_needed(65, 255, 255), wide = 2;
    five.byte_gops = 2 * five.gflops * bytes / wide;
    assert_true(in_bytes(whole, &five, &o));
    assert_false(in_bytes(edges, &five, &o));
}

/* Each residue of an operand is multiplied by sixteen vectors on each side, which takes longer than
 * a product with one column. */
static void the_check_counts_in_the_choice(void **state)
{
    (void)state;
    enum { N = 3000, K = 1024 };
    sherd__nodes many = nodes_of(15);
    sherd_product_options o = coded();
    sherd__prepared p;
    uint16_t *zeros = calloc((size_t)N * K, sizeof *zeros);
    many.remote = true;
    many.gflops = many.byte_gops = 1e6; /* products and links take nothing */
    o.link_rate = 1e15;
    assert_non_null(zeros);
    assert_true(sherd__bytes_force(SHERD__BYTES_ANY));
    assert_int_equal(sherd__prepare_multiply(&p,
                                             &(sherd__matrices){
                                                 sherd_view_c(zeros, SHERD_U16, N, K),
                                                 sherd_view_c(zeros, SHERD_U16, K, 1), NULL, 1 },
                                             &many, &o, NULL),
                     SHERD_OK);
    assert_true(sherd__bytes_force(SHERD__BYTES_BEST));
    assert_false(p.bytes); /* six primes, and as many bytes as of the two that are used */
    assert_int_equal(p.primes_len, 2);
    sherd__prepared_fini(&p);
    free(zeros);
}

static void bytes_are_used_only_where_all_nodes_multiply_them(void **state)
{
    (void)state;
    static const size_t shape[] = { 300, 300, 300 };
    sherd_product_options o = coded();
    sherd__nodes five = nodes_of(5);
    five.gflops = 0; /* unknown */
    assert_true(in_bytes(shape, &five, &o));
    five.byte_gops = 0; /* at least one node does not multiply them */
    assert_false(in_bytes(shape, &five, &o));
    five.gflops = 1e-6;
    assert_false(in_bytes(shape, &five, &o));
}

static void products_that_bytes_do_not_support_have_wide_primes(void **state)
{
    (void)state;
    static const size_t shape[] = { 30, 30, 30 }, most[] = { 2, SHERD__SHARE_TERMS, 1 },
                        more[] = { 2, SHERD__SHARE_TERMS + 1, 1 };
    static const sherd_windows w = { 3, 3, 1, 2, 1, 0 };
    static const double x[8 * 9];
    sherd_product_options o = coded();
    const sherd__nodes five = nodes_of(5);
    assert_true(in_bytes(shape, &five, &o));
    assert_true(in_bytes(most, &five, &o));
    assert_false(in_bytes(more, &five, &o));
    for (int windows = 0; windows < 2; windows++) {
        sherd__prepared p;
        const sherd_keep_options how = { sizeof how, 8, windows ? &w : NULL, 1, false };
        assert_int_equal(sherd__prepare_kept(&p, sherd_view_c(x, SHERD_F64, 8, 9), &how, &five, &o,
                                             NULL),
                         SHERD_OK);
        assert_int_equal(p.bytes, !windows);
        sherd__prepared_fini(&p);
    }
    o.scheme = SHERD_SHARE1; /* B travels in clear */
    o.code = SHERD_CODE_AUTO;
    assert_false(in_bytes(shape, &five, &o));
}

/* Each share needs a number of its own modulo every prime. */
static void wide_primes_serve_more_nodes_than_the_smallest_prime_has_numbers_for(void **state)
{
    (void)state;
    static const size_t shape[] = { 300, 300, 20 };
    sherd_product_options o = coded();
    const sherd__nodes some = nodes_of(60), many = nodes_of(200);
    assert_true(in_bytes(shape, &some, &o));
    assert_false(in_bytes(shape, &many, &o));
}

/* --- primes ---------------------------------------------------------------------------------- */

static void primes_of_bytes_hold_the_sums_of_a_product(void **state)
{
    (void)state;
    sherd_product_options o = coded();
    const sherd__nodes five = nodes_of(5);
    for (size_t k = 1; k <= 60000; k = k * 5 + 1) {
        const size_t shape[] = { 64, k, 48 };
        sherd__prepared p;
        plan(&p, shape, &five, &o);
        double range = 1;
        assert_true(p.bytes);
        assert_int_equal(p.primes_len, sherd__bytes_primes_needed(k, 255, 255));
        for (uint32_t i = 0; i < p.primes_len; i++) range *= p.primes[i];
        assert_true(range > 2.0 * (double)k * 255 * 255);
        sherd__prepared_fini(&p);
    }
}

/* A^T*B sums over all rows that are kept together. */
static void primes_of_bytes_hold_sums_over_kept_rows(void **state)
{
    (void)state;
    enum { ROWS = 30000, COLS = 4, BOUND = (1 << 16) - 1 };
    double *x = malloc(ROWS * COLS * sizeof *x);
    const sherd__nodes five = nodes_of(5);
    sherd_product_options o = coded();
    sherd__prepared p;
    assert_non_null(x);
    for (size_t i = 0; i < ROWS * COLS; i++) x[i] = 1.0 - 1.0 / (1 << 20);
    o.bits = 17;
    assert_int_equal(sherd__prepare_kept(&p, sherd_view_c(x, SHERD_F64, ROWS, COLS),
                                         &(sherd_keep_options){ .part = ROWS }, &five, &o, NULL),
                     SHERD_OK);
    assert_true(p.bytes);
    assert_int_equal(p.primes_len, sherd__bytes_primes_needed(ROWS, p.fixed_a.bound, BOUND));
    assert_true(p.primes_len > sherd__bytes_primes_needed(COLS, p.fixed_a.bound, BOUND));
    sherd__prepared_fini(&p);
    free(x);
}

/* A wrong answer may be wrong modulo one prime only, the smallest. */
static void the_strength_of_the_check_is_that_of_the_smallest_prime(void **state)
{
    (void)state;
    static const size_t shape[] = { 30, 30, 30 };
    sherd_product_options o = coded();
    const sherd__nodes five = nodes_of(5);
    sherd__prepared p;
    plan(&p, shape, &five, &o);
    double smallest = 256, error;
    for (uint32_t i = 0; i < p.primes_len; i++) smallest = fmin(smallest, p.primes[i]);
    error = 2 * pow(smallest, -(double)SHERD__BYTE_CHECKS);
    assert_true(p.primes_len > 1 && error < 1e-18);
    assert_true(fabs(p.check_error - error) < 1e-6 * error);
    sherd__prepared_fini(&p);
}

/* --- predicted time -------------------------------------------------------------------------- */

static const sherd__node_speed *each;

/* Predicts the seconds of a product in bytes, over links or at nodes that take nearly all of it. */
static double seconds(double link_rate, double byte_gops, uint64_t *numbers)
{
    enum { N = 400 };
    static const size_t shape[] = { N, N, N };
    static uint8_t zeros[N * N];
    const sherd_view v = sherd_view_c(zeros, SHERD_U8, N, N);
    sherd_product_options o = coded();
    sherd__nodes five = nodes_of(5);
    sherd__prepared p;
    five.remote = true;
    five.gflops = 1e-9;
    five.byte_gops = byte_gops;
    five.each = each;
    o.link_rate = link_rate;
    plan(&p, shape, &five, &o);
    assert_true(p.bytes);
    const sherd__matrices m = { v, v, NULL, N };
    double s = sherd__share_code_seconds(&p, &m, false, &five, &o);
    *numbers = (uint64_t)5 * p.primes_len * (N / p.code.blocks + N) *
               N; /* A and B, to five nodes */
    sherd__prepared_fini(&p);
    return s;
}

static void the_predicted_time_is_that_of_bytes(void **state)
{
    (void)state;
    uint64_t numbers;
    double links = seconds(1e4, 1e6, &numbers), nodes = seconds(1e12, 1e-3, &numbers);
    assert_true(links > (double)numbers / 1e4 && links < 2 * (double)numbers / 1e4);
    double slower = seconds(1e12, 0.5e-3, &numbers);
    assert_true(nodes > 1 && fabs(slower - 2 * nodes) < 0.05 * slower);
}

static void the_predicted_time_is_that_of_copies_to_devices(void **state)
{
    (void)state;
    sherd__node_speed devices[5];
    uint64_t numbers;
    for (size_t i = 0; i < 5; i++)
        devices[i] = (sherd__node_speed){
            .name = "n",
            .device = true,
            .declared = { .devices = 1,
                          .byte_gops = 1e-3,
                          .resident_byte_gops = 1e6,
                          .copy_rate = i == 4 ? 1e4 : 1e9 },
        };
    each = devices;
    double copies = seconds(1e12, 1e-3, &numbers), all = (double)numbers / 5 / 1e4;
    each = NULL;
    assert_true(copies > all && copies < 2 * all);
}

/* --- cells ----------------------------------------------------------------------------------- */

/* A panel or a tile that ends within a strip would send zeros to its end. */
static void cells_of_bytes_are_cut_into_whole_strips(void **state)
{
    (void)state;
    static const size_t shape[] = { 4000, 500, 3000 };
    size_t panels = 0, tiles = 0;
    for (uint64_t memory = UINT64_C(1) << 19; memory <= UINT64_C(1) << 24; memory += memory / 3) {
        sherd__nodes five = nodes_of(5);
        sherd_product_options o = coded();
        sherd__prepared p;
        five.memory = memory;
        plan(&p, shape, &five, &o);
        assert_true(p.bytes);
        size_t rows = p.plan.panel_rows, cols = p.plan.tile_cols;
        if (rows > 64 && rows < 2000) panels++;
        if (cols > 64 && cols < 3000) tiles++;
        if ((rows > 64 && rows < 2000 && rows % 64) || (cols > 64 && cols < 3000 && cols % 64))
            fail_msg("%zu rows and %zu columns with %llu bytes", rows, cols,
                     (unsigned long long)memory);
        assert_true(p.plan.node_bytes <= memory);
        sherd__prepared_fini(&p);
    }
    assert_true(panels >= 3 && tiles >= 3);
}

/* Rows of 65,536 numbers, of which fewer than 16 make a cell of the usual size. */
static void a_strip_is_not_sent_for_fewer_rows_than_it_has(void **state)
{
    (void)state;
    static const size_t shape[] = { 200, 65536, 8 };
    sherd_product_options o = coded();
    const sherd__nodes eight = nodes_of(8);
    sherd__prepared p;
    o.memory = UINT64_C(1) << 34;
    plan(&p, shape, &eight, &o);
    assert_true(p.bytes);
    assert_int_equal(p.plan.panel_rows % SHERD__BYTES_TILE, 0);
    sherd__prepared_fini(&p);
}

/* A node sums at most so many products modulo a prime below 256 (for A^T*B, over rows). */
static void cells_of_bytes_have_no_more_rows_than_nodes_sum(void **state)
{
    (void)state;
    static const size_t shape[] = { 300000, 1, 1 };
    sherd_product_options o = coded();
    const sherd__nodes three = nodes_of(3);
    sherd__prepared p;
    o.memory = UINT64_C(1) << 34;
    plan(&p, shape, &three, &o);
    assert_true(p.bytes);
    assert_true(p.plan.panel_rows <= SHERD__SHARE_TERMS);
    sherd__prepared_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_take_turns_among_nodes_that_expand_them),
        cmocka_unit_test(the_slowest_links_carry_seeds),
        cmocka_unit_test(every_right_operand_of_kept_shares_has_the_next_seeds),
        cmocka_unit_test(seeds_are_in_the_predicted_time),
        cmocka_unit_test(bytes_are_used_where_nodes_multiply_them_faster),
        cmocka_unit_test(edges_of_tiles_count_in_the_choice),
        cmocka_unit_test(the_check_counts_in_the_choice),
        cmocka_unit_test(bytes_are_used_only_where_all_nodes_multiply_them),
        cmocka_unit_test(products_that_bytes_do_not_support_have_wide_primes),
        cmocka_unit_test(wide_primes_serve_more_nodes_than_the_smallest_prime_has_numbers_for),
        cmocka_unit_test(primes_of_bytes_hold_the_sums_of_a_product),
        cmocka_unit_test(primes_of_bytes_hold_sums_over_kept_rows),
        cmocka_unit_test(the_strength_of_the_check_is_that_of_the_smallest_prime),
        cmocka_unit_test(the_predicted_time_is_that_of_bytes),
        cmocka_unit_test(the_predicted_time_is_that_of_copies_to_devices),
        cmocka_unit_test(cells_of_bytes_are_cut_into_whole_strips),
        cmocka_unit_test(a_strip_is_not_sent_for_fewer_rows_than_it_has),
        cmocka_unit_test(cells_of_bytes_have_no_more_rows_than_nodes_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
