/* The work of nodes on right blocks besides multiplying: BLAS repacks doubles for each product with
 * them; if single columns are products of their own, it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "scheduler/plan/prepare.h"
#include "scheduler/plan/forecast.h"

enum { N = 400, K = 90, M = 70, NODES = 5 };

static double a_data[N * K], b_data[K * M], c_data[N * M];
static const uint8_t seed[32] = { 4 };
static const uint32_t domain[] = { 0, 1, 2, 3, 4 };

static int begin(void **state)
{
    (void)state;
    for (int i = 0; i < N * K; i++) a_data[i] = 1.0 / (1 + i); /* not representable as a float */
    for (int i = 0; i < K * M; i++) b_data[i] = 1.0 / (1 + i);
    return 0;
}

static double tiles, primes; /* of the last product that was counted */

static sherd__traffic count(sherd_product_options *o, uint64_t memory)
{
    const sherd__nodes nodes = {
        .count = NODES, .domain = domain, .domains = NODES, .usable = NODES, .memory = 1 << 24
    };
    sherd__prepared p;
    sherd__traffic t;
    o->seed = seed;
    o->memory = memory;
    assert_int_equal(sherd__prepare_multiply(&p, sherd_view_c(a_data, SHERD_F64, N, K),
                                             sherd_view_c(b_data, SHERD_F64, K, M), c_data, M,
                                             &nodes, o, NULL),
                     SHERD_OK);
    assert_int_equal(sherd__traffic_count(&t, &p, false), SHERD_OK);
    tiles = (double)((M + p.plan.tile_cols - 1) / p.plan.tile_cols);
    primes = p.primes_len;
    sherd__prepared_fini(&p);
    return t;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_block_of_doubles_is_repacked_for_each_task),
        cmocka_unit_test(single_columns_are_multiplied_in_place),
        cmocka_unit_test(residues_are_counted_by_their_unpacking),
        cmocka_unit_test(integers_with_residues_are_counted_by_their_packing),
    };
    return cmocka_run_group_tests_name("scheduler/traffic", tests, begin, NULL);
}
