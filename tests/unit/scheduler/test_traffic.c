/* The work of nodes on right blocks besides multiplying: BLAS repacks doubles for each product with
 * them; if single columns are products of their own, it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "scheduler/plan/prepare.h"
#include "scheduler/plan/forecast.h"
#include "tests/support/draw.h"

enum { N = 400, K = 90, M = 70, NODES = 5 };

static double a_data[N * K], b_data[K * M], c_data[N * M];
static const uint8_t seed[32] = { 4 };
static const uint32_t domain[] = { 0, 1, 2, 3, 4 }, *weights;

static int begin(void **state)
{
    (void)state;
    for (int i = 0; i < N * K; i++) a_data[i] = 1.0 / (1 + i); /* not representable as a float */
    for (int i = 0; i < K * M; i++) b_data[i] = 1.0 / (1 + i);
    return 0;
}

static bool close_to(double x, double y)
{
    return x >= y * (1 - 1e-12) && x <= y * (1 + 1e-12);
}

static double tiles, primes; /* of the last product that was counted */
static bool stays;           /* panels of A stay at nodes */

/* memory: of the coordinator; room: of a node. */
static sherd__traffic count_of(const sherd__matrices *m, sherd_product_options *o, uint64_t memory,
                               uint64_t room)
{
    const sherd__nodes nodes = { .count = NODES,
                                 .domain = domain,
                                 .domains = NODES,
                                 .usable = NODES,
                                 .memory = room,
                                 .weights = weights };
    sherd__prepared p;
    sherd__traffic t;
    o->seed = seed;
    o->memory = memory;
    assert_int_equal(sherd__prepare_multiply(&p, m, &nodes, o, NULL), SHERD_OK);
    assert_int_equal(sherd__traffic_count(&t, &p, false, &(sherd_hooks){ .ctx = NULL }), SHERD_OK);
    /* A is dense, so that panels are alike; counted together, they give the same numbers. */
    sherd__traffic same;
    assert_int_equal(sherd__traffic_count(&same, &p, true, &(sherd_hooks){ .ctx = NULL }),
                     SHERD_OK);
    assert_true(same.tasks == t.tasks && same.tasks_csr == t.tasks_csr && same.out == t.out &&
                same.in == t.in && same.first == t.first && same.left == t.left &&
                same.answer == t.answer && same.at_most == t.at_most &&
                same.residues == t.residues);
    assert_true(close_to(same.flops, t.flops) && close_to(same.multiplied, t.multiplied) &&
                close_to(same.unpacked, t.unpacked) && close_to(same.packed, t.packed) &&
                close_to(same.widened, t.widened) && close_to(same.streamed, t.streamed) &&
                close_to(same.laid, t.laid) && close_to(same.busiest, t.busiest));
    tiles = (double)((m->b.cols + p.plan.tile_cols - 1) / p.plan.tile_cols);
    stays = p.plan.left_stays;
    primes = p.primes_len;
    sherd__prepared_fini(&p);
    return t;
}

static sherd__traffic count(sherd_product_options *o, uint64_t memory)
{
    const sherd__matrices m = { sherd_view_c(a_data, SHERD_F64, N, K),
                                sherd_view_c(b_data, SHERD_F64, K, M), c_data, M };
    return count_of(&m, o, memory, 1 << 24);
}

static void a_right_block_of_doubles_is_repacked_for_each_task(void **state)
{
    (void)state;
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.scheme = SHERD_PLAIN;
    sherd__traffic t = count(&o, 1 << 20); /* several panels */
    double tasks = (double)t.tasks, tables = 8 * tasks, all = K * M * sizeof(double);
    assert_true(tasks > NODES * tiles);
    assert_true(t.laid == tasks / tiles * all + tables);
    o.scheme = SHERD_PERMUTE;
    t = count(&o, 1 << 20);
    tasks = (double)t.tasks, tables = 8 * tasks;
    assert_true(tasks > NODES * tiles);
    assert_true(t.laid == tasks / NODES / tiles * all + tables); /* B's rows are dealt to nodes */
}

static void nodes_of_less_weight_have_fewer_panels(void **state)
{
    (void)state;
    static const uint32_t uneven[] = { 9, 1, 3, 9, 9 };
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.scheme = SHERD_PLAIN;
    weights = uneven;
    assert_true(count(&o, 1 << 20).tasks > NODES * tiles);
    weights = NULL;
}

static void a_panel_that_stays_is_counted_once(void **state)
{
    (void)state;
    enum { DEEP = 200, WIDE = 300 };
    double *a = malloc(N * DEEP * 8), *b = malloc(DEEP * WIDE * 8), *c = malloc(N * WIDE * 8);
    for (int i = 0; i < N * DEEP; i++) a[i] = 1.0 / (1 + i);
    for (int i = 0; i < DEEP * WIDE; i++) b[i] = 1.0 / (1 + i);
    const sherd__matrices m = { sherd_view_c(a, SHERD_F64, N, DEEP),
                                sherd_view_c(b, SHERD_F64, DEEP, WIDE), c, WIDE };
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.scheme = SHERD_PLAIN;
    sherd__traffic t = count_of(&m, &o, 1 << 16, 1 << 20);
    assert_true(stays && tiles > 2);
    double tasks = (double)t.tasks, panels = tasks / tiles;
    assert_true(panels > 2 * NODES);
    assert_true((double)t.left == N * DEEP * 8.0 + 8 * panels); /* with a table for each */
    assert_true((double)t.first > NODES * DEEP * WIDE * 8.0);
    free(a);
    free(b);
    free(c);
}

static void single_columns_are_multiplied_in_place(void **state)
{
    (void)state;
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.group = 1;
    sherd__traffic t = count(&o, 1 << 20);
    assert_true(t.tasks > NODES && t.laid == 0);
    assert_true(t.streamed == (double)t.answer && t.answer > 0);
    assert_true(t.multiplied == 0 && t.flops > 0);
}

static void residues_are_counted_by_their_unpacking(void **state)
{
    (void)state;
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.scheme = SHERD_SHARE;
    o.exact = true;
    sherd__traffic t = count(&o, 64 << 20);
    assert_true(t.laid == 0 && t.streamed == 0 && t.widened == 0);
    assert_true(t.multiplied == t.flops && t.flops > 0);
    assert_true(t.unpacked >= (double)t.left && t.packed == (double)t.answer);
    assert_true(t.residues && t.right.widened == 0 && t.right.packed == 0);
}

/* Every node makes residues of B for the first two panels: 4 bytes a value as floats, 3 packed. */
static void integers_with_residues_are_counted_by_their_packing(void **state)
{
    (void)state;
    sherd_product_options o;
    sherd__product_options_init(&o);
    o.scheme = SHERD_SHARE1;
    o.exact = true;
    sherd__traffic t = count(&o, 64 << 20);
    double values = t.right.packed / 3;
    assert_true(t.residues && values >= NODES * K * M && t.right.widened == 4 * values);
    assert_true(t.widened == t.right.widened && t.packed == t.right.packed + (double)t.answer);
    t = count(&o, 1 << 18); /* several panels: the others use what the second one has made */
    double panels = (double)t.tasks / NODES / tiles, all = 3 * primes * K * M * NODES;
    assert_true(panels > 2 && t.right.packed == 2 * all);
    double rest = t.unpacked - (double)t.left - (panels - 2) * all;
    assert_true(rest >= -8.0 * (double)t.tasks && rest <= 0); /* group tables of left blocks */
    o.scheme = SHERD_PLAIN;
    assert_false(count(&o, 64 << 20).residues);
}

/* Numbers of messages reach two and three digits to the base 128. */
static void many_cells_are_counted_as_one_by_one(void **state)
{
    (void)state;
    static const sherd_scheme schemes[] = { SHERD_PLAIN, SHERD_PERMUTE, SHERD_SHARE, SHERD_SHARE1 };
    uint64_t most = 0;
    for (unsigned i = 0; i < 4; i++)
        for (uint32_t group = 0; group < 3; group++) {
            sherd_product_options o;
            sherd__product_options_init(&o);
            o.scheme = schemes[i];
            o.group = o.scheme == SHERD_PERMUTE ? group : 0;
            o.exact = o.scheme != SHERD_PLAIN || group == 1;
            uint64_t tasks = count(&o, 1 << 18).tasks; /* compares both ways */
            if (tasks > most) most = tasks;
        }
    assert_true(most > 128);
}

/* An A of any type and stride, with few entries, many, or rows that are wholly zero. */
static sherd_view draw_operand(uint64_t *memory, size_t rows, size_t cols)
{
    static const sherd_dtype types[] = { SHERD_F64, SHERD_F32, SHERD_U8,  SHERD_U16, SHERD_I16,
                                         SHERD_I32, SHERD_I64, SHERD_F64, SHERD_F32 };
    sherd_dtype type = types[draw() % (sizeof types / sizeof *types)];
    unsigned gaps = (unsigned)(draw() % 30), zero_rows = (unsigned)(draw() % 3);
    sherd_view v = sherd_view_c(memory, type, rows, cols);
    uint8_t *at = (uint8_t *)memory;
    size_t size = sherd_dtype_size(type);
    memset(memory, 0, rows * cols * sizeof *memory);
    for (size_t i = 0; i < rows * cols; i++) {
        bool zero = draw() % (1 + gaps) > 0 || (zero_rows && i / cols % 3 < zero_rows);
        float f = (float)(draw() % 100 ? (double)(draw() % 200) - 100 : 1e-6);
        double x = (double)f;
        if (zero) continue;
        if (type == SHERD_F64) memcpy(at + i * size, &x, size);
        else if (type == SHERD_F32) memcpy(at + i * size, &f, size);
        else at[i * size] = 1 + (uint8_t)(draw() % 100);
    }
    return draw() % 4 ? v : sherd_view_t(v);
}

/* What is predicted for a cell is what hiding it makes. */
static void sizes_of_cells_are_those_of_their_blocks(void **state)
{
    (void)state;
    enum { ROWS = 60, COLS = 44 };
    static uint64_t memory[ROWS * COLS];
    const sherd__nodes nodes = {
        .count = NODES, .domain = domain, .domains = NODES, .usable = NODES, .memory = 1 << 22
    };
    unsigned sparse = 0, empty = 0, cells = 0;
    for (int round = 0; round < 400; round++) {
        static const uint32_t groups[] = { 0, 1, 3, 16 };
        sherd__prepared p;
        sherd__scheme_shape shape;
        sherd_product_options o;
        sherd__product_options_init(&o);
        sherd_view a = draw_operand(memory, ROWS, COLS);
        o.scheme = draw() % 4 ? SHERD_PERMUTE : SHERD_PLAIN;
        o.group = groups[draw() % 4];
        o.exact = draw() % 2;
        o.shuffle_rows = draw() % 5 == 0;
        o.encoding = draw() % 3 ? SHERD_ENCODING_CSR : SHERD_ENCODING_DENSE;
        o.memory = 1 << 17;
        o.seed = seed;
        assert_int_equal(sherd__prepare_multiply(&p,
                                                 &(sherd__matrices){
                                                     a, sherd_view_c(b_data, SHERD_F64, a.cols, 20),
                                                     c_data, 20 },
                                                 &nodes, &o, NULL),
                         SHERD_OK);
        p.hiding.ops->shape(p.hiding.ctx, &shape);
        for (uint32_t i = 0; i < shape.slots * shape.panels; i++) {
            const sherd__cell cell = { i / shape.panels, 0, i % shape.panels };
            sherd__cell_sizes told;
            sherd__cell_work made;
            assert_int_equal(p.hiding.ops->sizes(p.hiding.ctx, cell, &told), SHERD_OK);
            assert_int_equal(p.hiding.ops->hide(p.hiding.ctx, cell, &made), SHERD_OK);
            assert_int_equal(told.empty, made.empty);
            cells++;
            empty += made.empty;
            if (!made.empty) {
                const sherd__fragment_info *left = sherd__fragment_info_of(made.left);
                assert_int_equal(told.left.len, left->len);
                assert_int_equal(told.left.rows, left->rows);
                assert_int_equal(told.left.encoding, left->encoding);
                assert_int_equal(told.result.len, made.result.len);
                sparse += left->encoding == SHERD__CSR;
            }
            sherd__fragment_free(made.left);
            sherd__fragment_free(made.right);
        }
        sherd__prepared_fini(&p);
    }
    assert_true(sparse > 100 && empty > 10 && cells > 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_cells_are_counted_as_one_by_one),
        cmocka_unit_test(sizes_of_cells_are_those_of_their_blocks),
        cmocka_unit_test(a_right_block_of_doubles_is_repacked_for_each_task),
        cmocka_unit_test(nodes_of_less_weight_have_fewer_panels),
        cmocka_unit_test(a_panel_that_stays_is_counted_once),
        cmocka_unit_test(single_columns_are_multiplied_in_place),
        cmocka_unit_test(residues_are_counted_by_their_unpacking),
        cmocka_unit_test(integers_with_residues_are_counted_by_their_packing),
    };
    return cmocka_run_group_tests_name("scheduler/traffic", tests, begin, NULL);
}
