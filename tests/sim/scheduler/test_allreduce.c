/*
 * All-reduce groups of any size: parameters have the bits of one process, members send what the
 * schedule says, and a sum that is too large, or differs between members, is detected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/sim/scheduler/allreduce_world.h"
#include "tests/support/draw.h"

static void any_number_of_nodes_gives_the_bits_of_one_process(void **unused)
{
    (void)unused;
    static const sherd__method methods[] = { SHERD__SGD, SHERD__MOMENTUM, SHERD__ADAM };
    for (uint32_t n = 1; n <= NODES; n++)
        for (int kind = 1; kind <= 2; kind++) {
            trial x;
            training t = usual;
            t.kind = (sherd__reduce)kind;
            t.nodes = n;
            t.method = methods[n % 3];
            t.order = SHERD__ORDER_GIVEN + n % 4;
            t.shards = 1 + n % 7;
            if (t.method == SHERD__SGD) t.local = n / 2;
            allreduce_trial_open(&x, n, &t);
            allreduce_trial_start(&x);
            allreduce_trial_train(&x);
            assert_int_equal(x.s.rounds, STEPS);
            assert_int_equal(x.s.repeated, 0);
            assert_int_equal(x.s.members, n);
            allreduce_trial_close(&x);
        }
}

/* Bodies: each member's vector crosses a link 2 (n - 1) / n times. */
static void every_member_sends_what_the_schedule_says(void **unused)
{
    (void)unused;
    for (uint32_t n = 2; n <= NODES; n++)
        for (int kind = 1; kind <= 2; kind++) {
            trial x;
            training t = usual;
            t.kind = (sherd__reduce)kind;
            t.nodes = n;
            allreduce_trial_open(&x, n, &t);
            allreduce_trial_start(&x);
            allreduce_trial_train(&x);
            assert_int_equal(x.w.body_bytes, (uint64_t)STEPS * 2 * (n - 1) * COUNT * 8);
            allreduce_trial_close(&x);
        }
}

/* A row is sent to a member once, and only to members that compute with it. If a member lacks
 * memory for all rows, those that it cannot keep are sent again, and the bits are the same. */
static void a_row_is_sent_to_a_member_once(void **unused)
{
    (void)unused;
    for (int order = SHERD__ORDER_GIVEN; order <= SHERD__ORDER_DRAWN; order++)
        for (unsigned small = 0; small < 2; small++) {
            trial x;
            training t = usual;
            t.order = (sherd__order)order;
            t.batch = 25; /* all rows in three steps */
            allreduce_trial_open(&x, (uint64_t)order, &t);
            if (small) x.w.memory = 4 * 8 * ROW;
            allreduce_trial_start(&x);
            allreduce_trial_train(&x);
            uint64_t sent = x.s.examples_out / ROW;
            assert_int_equal(x.s.examples_out % ROW, 0);
            if (small) assert_in_range(sent, ROWS + 1, STEPS * t.batch);
            else if (order == SHERD__ORDER_GIVEN) assert_int_equal(sent, ROWS);
            else assert_in_range(sent, ROWS / 3, order == SHERD__ORDER_BATCHES ? ROWS : 2 * ROWS);
            allreduce_trial_close(&x);
        }
}

/* Scales around the values of the shards: some members refuse a step whose sum others have
 * started. */
static void a_gradient_beyond_its_scale_is_requested_again(void **unused)
{
    (void)unused;
    uint64_t rescaled = 0;
    double bound = 0.1;
    for (uint64_t seed = 1; seed <= 60; seed++, bound *= 1.08) {
        trial x;
        training t = usual;
        t.nodes = 3 + (uint32_t)seed % 3;
        t.kind = (sherd__reduce)(1 + seed % 2);
        t.before = seed == 1 ? 0x1p-60 : bound * 0x1p-24 / ROWS;
        allreduce_trial_open(&x, seed, &t);
        allreduce_trial_start(&x);
        allreduce_trial_train(&x);
        rescaled += sherd__gradients_stats_of(&x.there.stepper)->rescaled;
        allreduce_trial_close(&x);
    }
    assert_true(rescaled > 5);
}

static void sums_that_differ_end_the_training(void **unused)
{
    (void)unused;
    for (int kind = 1; kind <= 2; kind++) {
        trial x;
        sherd_diag d = { 0 };
        training t = usual;
        t.kind = (sherd__reduce)kind;
        allreduce_trial_open(&x, (uint64_t)kind, &t);
        allreduce_trial_start(&x);
        x.w.tamper = true;
        assert_int_equal(allreduce_run_steps(&x.there, &t, STEPS, &d), SHERD_EWRONG);
        assert_non_null(strstr(d.message, "different sums"));
        allreduce_trial_close(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_nodes_gives_the_bits_of_one_process),
        cmocka_unit_test(every_member_sends_what_the_schedule_says),
        cmocka_unit_test(a_row_is_sent_to_a_member_once),
        cmocka_unit_test(a_gradient_beyond_its_scale_is_requested_again),
        cmocka_unit_test(sums_that_differ_end_the_training),
    };
    return cmocka_run_group_tests(tests, NULL, allreduce_keys_free);
}
