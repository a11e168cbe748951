/* Partitions for random shapes: work that fits is divided so that it exceeds the memory of neither
 * side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/rand.h"
#include "scheduler/plan/plan.h"

static sherd__seeded rng_state;
static sherd__entropy rng;

static uint64_t below(uint64_t n)
{
    return sherd__entropy_below(&rng, n);
}

/* Returns a size between 1 and 2^bits; small and large sizes are equally likely. */
static size_t some(unsigned bits)
{
    return (size_t)(1 + below(UINT64_C(1) << (1 + below(bits))));
}

static sherd__plan_input draw(void)
{
    static const size_t sizes[] = { 1, 2, 4, 8 };
    sherd__plan_input in = {
        .n = some(20),
        .k = some(16),
        .m = some(16),
        .slots = (uint32_t)some(6),
        .size_a = sizes[below(4)],
        .size_b = sizes[below(4)],
        .primes_len = (uint32_t)below(5),
        .memory = UINT64_C(1) << (16 + below(18)),
        .node_memory = UINT64_C(1) << (18 + below(18)),
    };
    in.widest = 1 + in.k / in.slots;
    in.rows_kept = below(2) ? 1 : below(2) ? (double)in.widest : 0.2 * (double)in.widest;
    in.rows_longest = in.n;
    return in;
}

static void a_partition_fits_both_memories_and_covers_everything(void **state)
{
    (void)state;
    unsigned planned = 0, refused = 0;
    for (unsigned round = 0; round < 20000; round++) {
        sherd__plan_input in = draw();
        sherd__plan p = { 0 }, q = { 0 };
        sherd_diag d = { 0 };
        int err = sherd__plan_make(&p, &in, &d);
        assert_int_equal(sherd__plan_make(&q, &in, NULL), err);
        assert_memory_equal(&p, &q, sizeof p); /* equal inputs give equal plans */
        if (err) {
            assert_int_equal(err, SHERD_EFEWNODES);
            assert_non_null(strstr(d.message, "does not fit"));
            assert_null(strstr(d.message, "e+")); /* sizes without exponents */
            refused++;
            continue;
        }
        planned++;
        assert_true(p.tile_cols >= 1 && p.tile_cols <= in.m);
        assert_true(p.panel_rows >= 1 && p.panel_rows <= in.rows_longest);
        assert_true(p.depth >= 2 && p.depth <= 64);
        assert_true(p.perm_cache <= in.memory / 4);
        double answer = in.primes_len ? 3.0 * in.primes_len : 8;
        double cell = (double)p.panel_rows * ((double)in.widest * (double)(in.size_a + 8) +
                                              in.rows_kept * answer * (double)p.tile_cols);
        assert_true((double)p.cell_bytes <= cell + 1 && (double)p.cell_bytes >= cell * 0.999 - 1);
        double column = (double)in.widest * (double)in.size_b;
        assert_true(p.tile_cols == 1 ||
                    column * (double)p.tile_cols <= 0.3 * (double)in.node_memory);
        if (p.panel_rows == 1) continue; /* a single row may exceed it */
        assert_true(cell * in.slots * p.depth <= (double)in.memory * 0.75);
        assert_true(cell * p.depth <= (double)in.node_memory * 0.75);
    }
    assert_true(planned > 2000 && refused > 200);
}

static void what_fits_less_memory_fits_more_memory(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        sherd__plan_input in = draw(), more = in;
        sherd__plan p, q;
        more.memory *= 2;
        more.node_memory *= 2;
        if (sherd__plan_make(&p, &in, NULL) == SHERD_OK)
            assert_int_equal(sherd__plan_make(&q, &more, NULL), SHERD_OK);
    }
}

static void small_work_is_one_cell_and_large_work_overlaps(void **state)
{
    (void)state;
    sherd__plan p;
    sherd__plan_input in = { .n = 100,
                             .k = 10,
                             .m = 20,
                             .slots = 3,
                             .widest = 4,
                             .rows_kept = 1,
                             .rows_longest = 100,
                             .size_a = 8,
                             .size_b = 8,
                             .memory = 1 << 28,
                             .node_memory = 1 << 28 };
    assert_int_equal(sherd__plan_make(&p, &in, NULL), SHERD_OK);
    assert_int_equal(p.panel_rows, 100);
    assert_int_equal(p.tile_cols, 20);
    in.n = in.rows_longest = 60000;
    in.widest = 784;
    in.m = 128;
    assert_int_equal(sherd__plan_make(&p, &in, NULL), SHERD_OK);
    assert_true(p.panel_rows * 6 <= 60000 + 5 * p.panel_rows); /* several panels, so that both sides
                                                                * work at the same time */
    assert_true(p.panel_rows < 20000);
}

/* As for nodes with fast devices. */
static void cells_are_as_large_and_as_many_as_devices_need(void **state)
{
    (void)state;
    static const struct {
        uint64_t cell;
        uint32_t tasks;
        uint64_t least, most; /* bytes of a cell */
        uint32_t depth;
    } cases[] = {
        { 0, 0, 1 << 19, 1 << 20, 4 },
        { 1, 2, 1 << 19, 1 << 20, 4 },
        { 1 << 20, 2, 1 << 19, 1 << 20, 4 },
        { 4 << 20, 2, 3 << 20, 4 << 20, 4 },
        { 4 << 20, 9, 3 << 20, 4 << 20, 11 },
        { UINT64_MAX, 2, 5 << 20, 6 << 20, 4 },
        { 4 << 20, UINT32_MAX, 3 << 20, 4 << 20, 64 },
    };
    sherd__plan_input in = { .n = 200,
                             .k = 1000,
                             .m = 3000,
                             .slots = 3,
                             .widest = 334,
                             .rows_kept = 1,
                             .rows_longest = 200,
                             .size_a = 8,
                             .size_b = 8,
                             .memory = UINT64_C(1) << 34,
                             .node_memory = UINT64_C(1) << 34 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd__plan p;
        in.cell = cases[i].cell;
        in.tasks = cases[i].tasks;
        assert_int_equal(sherd__plan_make(&p, &in, NULL), SHERD_OK);
        if (p.cell_bytes < cases[i].least || p.cell_bytes > cases[i].most)
            fail_msg("case %zu: cells of %llu bytes", i, (unsigned long long)p.cell_bytes);
        if (p.cell_bytes > 1 << 20) assert_int_equal(p.depth, cases[i].depth);
    }
}

/* 4096 cubed in float64 over seven nodes. */
static sherd__plan_input large(void)
{
    return (sherd__plan_input){ .n = 4096,
                                .k = 4096,
                                .m = 4096,
                                .slots = 7,
                                .widest = 4096,
                                .rows_kept = 1,
                                .rows_longest = 586,
                                .size_a = 8,
                                .size_b = 8,
                                .may_stay = true,
                                .memory = SHERD__MEMORY_DEFAULT,
                                .node_memory = UINT64_C(1) << 30,
                                .cell = 1 << 20,
                                .tasks = 2 };
}

static void panels_of_a_stay_where_all_of_b_would_be_much_memory(void **state)
{
    (void)state;
    sherd__plan_input in = large();
    sherd__plan p;
    assert_int_equal(sherd__plan_make(&p, &in, NULL), SHERD_OK);
    assert_true(p.left_stays);
    assert_true(p.tile_cols * 4096 * 8 <= SHERD__TILE_STAYING);
    assert_true(p.panel_rows >= 256 && p.panel_rows <= 320); /* tall: B is packed twice for 586 */
    assert_true(p.node_bytes < UINT64_C(128) << 20);         /* and not all 128 MB of B */
    in.may_stay = false;
    assert_int_equal(sherd__plan_make(&p, &in, NULL), SHERD_OK);
    assert_false(p.left_stays);
    assert_int_equal(p.tile_cols, 4096);
}

static void panels_of_a_do_not_stay_where_b_is_small_or_a_node_has_no_room(void **state)
{
    (void)state;
    sherd__plan_input in = large();
    sherd__plan p;
    in.m = 512;
    assert_int_equal(sherd__plan_make(&p, &in, NULL), SHERD_OK);
    assert_false(p.left_stays);
    in = large();
    in.node_memory = 48 << 20; /* its rows of A take 19 MB */
    assert_int_equal(sherd__plan_make(&p, &in, NULL), SHERD_OK);
    assert_false(p.left_stays);
}

static void panels_that_stay_fit_both_memories(void **state)
{
    (void)state;
    unsigned stay = 0;
    for (unsigned round = 0; round < 20000; round++) {
        sherd__plan_input in = draw();
        sherd__plan p;
        in.may_stay = true;
        if (sherd__plan_make(&p, &in, NULL) || !p.left_stays) continue;
        stay++;
        const double wide_a = (double)in.size_a + (in.size_a == 8 ? 0 : 8);
        const double wide_b = (double)in.size_b + (in.size_b == 8 ? 0 : 8);
        const double answer = 8.0 * (double)p.panel_rows * (double)p.tile_cols;
        const double tile = (double)in.widest * wide_b * (double)p.tile_cols;
        const double a = (double)in.widest * wide_a * (double)in.rows_longest;
        assert_true(p.tile_cols >= 1 && p.tile_cols <= in.m);
        assert_true(p.panel_rows >= 1 && p.panel_rows <= in.rows_longest);
        if (p.panel_rows == 1) continue; /* two of them may exceed it */
        assert_true(answer * in.slots * p.depth <= (double)in.memory * 0.75);
        assert_true(a + 3 * tile + answer * p.depth <= (double)in.node_memory * 1.05);
    }
    assert_true(stay > 100);
}

static void fewer_than_half_of_the_nodes_may_be_left_out(void **state)
{
    (void)state;
    const uint64_t much = UINT64_C(1) << 30, vast = UINT64_C(1) << 60, small = 40000;
    const struct {
        size_t len;
        uint64_t rooms[5], counted;
    } cases[] = {
        { 4, { much, much, much, much }, much },
        { 4, { 1, much, much, much }, much },
        { 5, { 0, 64, much, much, much }, much },
        { 4, { small, much, much, much }, much },
        { 4, { much / 8, much, much, much }, much / 8 }, /* cells that fit it are large enough */
        { 4, { small, small, small, vast }, small }, /* a node that claims so much is not given all
                                                      * of it */
        { 4, { small, small, vast, vast }, small },
        { 3, { small, small, vast }, small },
        { 2, { small, vast }, small },
        { 1, { small }, small },
        { 4, { 1, 1, much, much }, 0 },
        { 4, { 1, 1, 1, vast }, 0 },
        { 2, { 1, vast }, 0 },
        { 4, { 1, 1, 1, 1 }, 0 },
    };
    sherd__plan_input in = { .n = 6000,
                             .k = 700,
                             .m = 128,
                             .slots = 4,
                             .widest = 200,
                             .rows_kept = 1,
                             .rows_longest = 6000,
                             .size_a = 8,
                             .size_b = 8,
                             .memory = 1 << 28,
                             .smallest = "node-1" };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd__plan p;
        sherd_diag d = { 0 };
        uint64_t counted = 0;
        int err = sherd__plan_fit(&p, &counted, &in, cases[i].rooms, cases[i].len, &d);
        assert_int_equal(err, cases[i].counted ? SHERD_OK : SHERD_EFEWNODES);
        assert_int_equal(counted, cases[i].counted);
        if (err) assert_non_null(strstr(d.message, "the work does not fit: node-1 has 1 bytes"));
    }
}

static void empty_work_has_a_plan(void **state)
{
    (void)state;
    sherd__plan p;
    sherd__plan_input in = {
        .slots = 3, .size_a = 8, .size_b = 8, .memory = 1 << 20, .node_memory = UINT64_MAX
    };
    assert_int_equal(sherd__plan_make(&p, &in, NULL), SHERD_OK);
    assert_true(p.panel_rows >= 1 && p.tile_cols >= 1 && p.depth >= 2);
}

static int begin(void **state)
{
    (void)state;
    rng = sherd__entropy_seeded(&rng_state, 17);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partition_fits_both_memories_and_covers_everything),
        cmocka_unit_test(what_fits_less_memory_fits_more_memory),
        cmocka_unit_test(small_work_is_one_cell_and_large_work_overlaps),
        cmocka_unit_test(cells_are_as_large_and_as_many_as_devices_need),
        cmocka_unit_test(panels_of_a_stay_where_all_of_b_would_be_much_memory),
        cmocka_unit_test(panels_of_a_do_not_stay_where_b_is_small_or_a_node_has_no_room),
        cmocka_unit_test(panels_that_stay_fit_both_memories),
        cmocka_unit_test(fewer_than_half_of_the_nodes_may_be_left_out),
        cmocka_unit_test(empty_work_has_a_plan),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
