/*
 * Asynchronous training by gradients: parts of any size are applied as they arrive, in any order,
 * and no gradient is staler than the bound.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "tests/unit/learn/gradients_world.h"

static void no_gradient_is_staler_than_the_bound(void **s)
{
    (void)s;
    for (uint64_t most = 0; most <= 3; most++)
        for (unsigned k = 0; k < 3; k++) {
            grad_run r;
            mock m = { .workers = 5, .oldest_last = k == 0, .reverse = k == 1 };
            grad_begin(&r, mock_engine(&m, 17),
                       (sherd__gradients_options){
                           .bits = 17, .shards = 5, .async = true, .staleness_max = most });
            grad_steps(&r, 20, ROWS);
            const sherd__gradients_stats *st = sherd__gradients_stats_of(&r.stepper);
            assert_true(r.stalest <= most);
            assert_true(st->staleness_most <= most);
            assert_int_equal(st->parts, 100);
            assert_int_equal(st->examples, 20 * ROWS);
            assert_true(m.most <= 5);
            if (most > 0) assert_true(st->staleness_sum > 0);
            grad_end(&r);
        }
}

static void without_a_bound_parts_are_applied_as_they_arrive(void **s)
{
    (void)s;
    grad_run r;
    mock m = { .workers = 4, .oldest_last = true };
    grad_begin(&r, mock_engine(&m, 17),
               (sherd__gradients_options){
                   .bits = 17, .shards = 4, .async = true, .staleness_max = UINT64_MAX });
    grad_steps(&r, 10, ROWS);
    assert_int_equal(r.updates, 40);
    assert_true(r.stalest >= 30); /* the very first part arrives last */
    grad_end(&r);
}

static void asynchronous_training_reduces_the_cost(void **s)
{
    (void)s;
    for (unsigned local = 0; local < 2; local++) {
        grad_run r;
        sherd_diag d = { 0 };
        double first;
        grad_begin(&r, grad_threads(3, 17),
                   (sherd__gradients_options){ .bits = 17,
                                               .shards = 3,
                                               .async = true,
                                               .staleness_max = 4,
                                               .local_steps = local * 2 });
        assert_int_equal(grad_step(&r, 0, ROWS, 0.1, &d), 0);
        first = r.cost;
        for (unsigned i = 1; i < 200; i++)
            if (grad_step(&r, i, ROWS, 0.1, &d)) fail_msg("%s", d.message);
        assert_true(r.cost < first - 0.1);
        assert_int_equal(r.stepper.ops->settle(r.stepper.ctx, &d), 0);
        grad_end(&r);
    }
}

static void with_one_worker_and_no_delay_it_is_a_series_of_steps(void **s)
{
    (void)s;
    grad_run r;
    grad_begin(&r, grad_threads(1, 17),
               (sherd__gradients_options){
                   .bits = 17, .shards = 4, .async = true, .staleness_max = UINT64_MAX });
    grad_steps(&r, 3, ROWS);
    assert_int_equal(r.updates, 12);
    assert_int_equal(r.stalest, 0);
    grad_end(&r);
}

/* If one part has all shards and no other part is in progress, it is a synchronous step. */
static void a_part_of_all_shards_equals_a_synchronous_step(void **s)
{
    (void)s;
    for (unsigned k = 0; k < 3; k++) { /* gradients; local steps; weighted local steps */
        grad_run here, there;
        mock one = { .workers = 1 }, all = { .workers = 1, .shards_per_task = 5 };
        sherd__gradients_options o = { .bits = 17,
                                       .shards = 5,
                                       .staleness_max = UINT64_MAX,
                                       .local_steps = k ? 4 : 0,
                                       .weighted = k == 2 };
        grad_begin(&here, mock_engine(&one, 17), o);
        o.async = true;
        grad_begin(&there, mock_engine(&all, 17), o);
        for (unsigned i = 0; i < 6; i++) {
            grad_steps(&here, 1, ROWS);
            grad_steps(&there, 1, ROWS);
            assert_memory_equal(sherd__network_params(here.network),
                                sherd__network_params(there.network), COUNT * sizeof(double));
            assert_int_equal(here.hits, there.hits);
            assert_true(fabs(here.cost - there.cost) < 0.01); /* L2 before or after the update */
        }
        assert_int_equal(all.posts, one.posts);
        assert_int_equal(all.roomy, 5);
        grad_end(&here);
        grad_end(&there);
    }
}

/* Shards of 12, 11, 11 and 11 examples, each a part of its own: their weights are relative to the
 * largest shard of the step, not of the part. */
static void weights_of_shards_do_not_depend_on_the_size_of_parts(void **s)
{
    (void)s;
    grad_run r;
    sherd_diag d = { 0 };
    mock m = { .workers = 1, .shards_per_task = 1 };
    grad_begin(&r, mock_engine(&m, 17),
               (sherd__gradients_options){ .bits = 17,
                                           .shards = 4,
                                           .async = true,
                                           .local_steps = 24,
                                           .weighted = true,
                                           .staleness_max = UINT64_MAX });
    assert_int_equal(grad_step(&r, 0, ROWS, 0.1, &d), 0);
    assert_int_equal(r.stepper.ops->settle(r.stepper.ctx, &d), 0);
    assert_int_equal(m.posts, 4);
    assert_int_equal(m.local[0].steps, 22); /* of the last part */
    assert_true(m.local[0].weight < 1);
    grad_end(&r);
}

/* 8 shards, in parts of 3, 3 and 2. */
static void shards_of_a_part_count_together(void **s)
{
    (void)s;
    grad_run r;
    sherd_diag d = { 0 };
    mock m = { .workers = 2, .shards_per_task = 3 };
    grad_begin(&r, mock_engine(&m, 17),
               (sherd__gradients_options){
                   .bits = 17, .shards = 8, .async = true, .staleness_max = UINT64_MAX });
    grad_steps(&r, 10, ROWS);
    assert_int_equal(r.stepper.ops->settle(r.stepper.ctx, &d), 0);
    const sherd__gradients_stats *st = sherd__gradients_stats_of(&r.stepper);
    assert_int_equal(m.posts, 30);
    assert_int_equal(st->parts, 30);
    assert_int_equal(st->updates, 30);
    assert_int_equal(st->examples, 10 * ROWS);
    grad_end(&r);
}

static void every_worker_gets_a_part_of_each_step_however_large_parts_are(void **s)
{
    (void)s;
    for (uint32_t workers = 1; workers <= 9; workers++) {
        grad_run r;
        mock m = { .workers = workers, .shards_per_task = 99 };
        grad_begin(&r, mock_engine(&m, 17),
                   (sherd__gradients_options){
                       .bits = 17, .shards = 8, .async = true, .staleness_max = UINT64_MAX });
        grad_steps(&r, 4, ROWS);
        assert_int_equal(m.roomy, workers <= 4 ? 8 / workers : 0);
        assert_true(m.posts >= 4 * (workers < 8 ? workers : 8));
        grad_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_gradient_is_staler_than_the_bound),
        cmocka_unit_test(without_a_bound_parts_are_applied_as_they_arrive),
        cmocka_unit_test(asynchronous_training_reduces_the_cost),
        cmocka_unit_test(with_one_worker_and_no_delay_it_is_a_series_of_steps),
        cmocka_unit_test(a_part_of_all_shards_equals_a_synchronous_step),
        cmocka_unit_test(weights_of_shards_do_not_depend_on_the_size_of_parts),
        cmocka_unit_test(shards_of_a_part_count_together),
        cmocka_unit_test(every_worker_gets_a_part_of_each_step_however_large_parts_are),
    };
    return cmocka_run_group_tests(tests, grad_set_up, NULL);
}
