/*
 * Circles of any size: parameters are those of one process to the bit, members send what the
 * schedule says, and a sum that is too large, or not the same everywhere, is noticed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/sim/scheduler/circle_world.h"
#include "tests/support/draw.h"

static void any_number_of_nodes_comes_to_the_bits_of_one_process(void **unused)
{
    (void)unused;
    static const sherd__method methods[] = { SHERD__SGD, SHERD__MOMENTUM, SHERD__ADAM };
    for (uint32_t n = 1; n <= NODES; n++)
        for (int kind = 1; kind <= 2; kind++) {
            world w;
            run here, there;
            sherd_diag d = { 0 };
            training t = usual;
            t.kind = (sherd__reduce)kind;
            t.nodes = n;
            t.method = methods[n % 3];
            t.order = SHERD__ORDER_GIVEN + n % 4;
            t.shards = 1 + n % 7;
            if (t.method == SHERD__SGD) t.local = n / 2;
            draw_state = n;
            circle_world_open(&w, &t);
            circle_run_here(&here, &w, &t);
            circle_run_begin(&there, &w, &t);
            circle_job_open(&w, &t, &there);
            if (circle_run_steps(&there, &t, STEPS, &d)) fail_msg("%s\n%s", d.message, w.log);
            circle_assert_same(&here, &there);
            sherd__circle_stats s;
            sherd__circle_job_count(w.job, &s);
            assert_int_equal(s.rounds, STEPS);
            assert_int_equal(s.repeated, 0);
            assert_int_equal(s.members, n);
            circle_world_close(&w);
            circle_run_end(&here);
            circle_run_end(&there);
        }
}

/* Bodies: each member's vector crosses 2 (n - 1) / n of a link. */
static void every_member_sends_what_the_schedule_says(void **unused)
{
    (void)unused;
    for (uint32_t n = 2; n <= NODES; n++)
        for (int kind = 1; kind <= 2; kind++) {
            world w;
            run there;
            sherd_diag d = { 0 };
            training t = usual;
            t.kind = (sherd__reduce)kind;
            t.nodes = n;
            circle_world_open(&w, &t);
            circle_run_begin(&there, &w, &t);
            circle_job_open(&w, &t, &there);
            assert_int_equal(circle_run_steps(&there, &t, STEPS, &d), 0);
            assert_int_equal(w.body_bytes, (uint64_t)STEPS * 2 * (n - 1) * COUNT * 8);
            circle_world_close(&w);
            circle_run_end(&there);
        }
}

/* A row travels to a member once, and to those only that grade it; where a member has no room for
 * all of them, what it cannot keep comes again, and the bits are the same. */
static void a_row_travels_to_a_member_once(void **unused)
{
    (void)unused;
    for (int order = SHERD__ORDER_GIVEN; order <= SHERD__ORDER_DRAWN; order++)
        for (unsigned small = 0; small < 2; small++) {
            world w;
            run here, there;
            sherd_diag d = { 0 };
            sherd__circle_stats s;
            training t = usual;
            t.order = (sherd__order)order;
            t.batch = 25; /* in three steps all rows */
            circle_world_open(&w, &t);
            circle_run_here(&here, &w, &t);
            circle_run_begin(&there, &w, &t);
            if (small) w.memory = 4 * 8 * ROW;
            circle_job_open(&w, &t, &there);
            if (circle_run_steps(&there, &t, STEPS, &d)) fail_msg("%s\n%s", d.message, w.log);
            circle_assert_same(&here, &there);
            sherd__circle_job_count(w.job, &s);
            uint64_t sent = s.examples_out / ROW;
            assert_int_equal(s.examples_out % ROW, 0);
            if (small) assert_in_range(sent, ROWS + 1, STEPS * t.batch);
            else if (order == SHERD__ORDER_GIVEN) assert_int_equal(sent, ROWS);
            else assert_in_range(sent, ROWS / 3, order == SHERD__ORDER_BATCHES ? ROWS : 2 * ROWS);
            circle_world_close(&w);
            circle_run_end(&here);
            circle_run_end(&there);
        }
}

/* Bounds around what shards come to: some members refuse a step whose sum others have begun. */
static void a_gradient_beyond_its_scale_is_asked_for_again(void **unused)
{
    (void)unused;
    uint64_t rescaled = 0;
    double bound = 0.1;
    for (uint64_t seed = 1; seed <= 60; seed++, bound *= 1.08) {
        world w;
        run here, there;
        sherd_diag d = { 0 };
        training t = usual;
        t.nodes = 3 + (uint32_t)seed % 3;
        t.kind = (sherd__reduce)(1 + seed % 2);
        t.before = seed == 1 ? 0x1p-60 : bound * 0x1p-24 / ROWS;
        draw_state = seed;
        circle_world_open(&w, &t);
        circle_run_here(&here, &w, &t);
        circle_run_begin(&there, &w, &t);
        circle_job_open(&w, &t, &there);
        if (circle_run_steps(&there, &t, STEPS, &d)) fail_msg("%s\n%s", d.message, w.log);
        rescaled += sherd__gradients_stats_of(&there.stepper)->rescaled;
        circle_assert_same(&here, &there);
        circle_world_close(&w);
        circle_run_end(&here);
        circle_run_end(&there);
    }
    assert_true(rescaled > 5);
}

static void sums_that_differ_end_the_training(void **unused)
{
    (void)unused;
    for (int kind = 1; kind <= 2; kind++) {
        world w;
        run there;
        sherd_diag d = { 0 };
        training t = usual;
        t.kind = (sherd__reduce)kind;
        circle_world_open(&w, &t);
        circle_run_begin(&there, &w, &t);
        circle_job_open(&w, &t, &there);
        w.tamper = true;
        assert_int_equal(circle_run_steps(&there, &t, STEPS, &d), SHERD_EWRONG);
        assert_non_null(strstr(d.message, "different sums"));
        circle_world_close(&w);
        circle_run_end(&there);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_nodes_comes_to_the_bits_of_one_process),
        cmocka_unit_test(every_member_sends_what_the_schedule_says),
        cmocka_unit_test(a_row_travels_to_a_member_once),
        cmocka_unit_test(a_gradient_beyond_its_scale_is_asked_for_again),
        cmocka_unit_test(sums_that_differ_end_the_training),
    };
    return cmocka_run_group_tests(tests, NULL, circle_keys_free);
}
