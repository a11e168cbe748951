/* A job with a node that is slow but not silent: who takes over its work, and who is named
 * (job_world.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/scheduler/job_world.h"

/* Passes time in steps like the cluster's loop. */
static void pass(world *w, uint64_t ms)
{
    for (uint64_t until = w->now + ms; w->now < until;) {
        w->now += until - w->now < 100 ? until - w->now : 100;
        sherd__job_tick(w->job, w->now);
        sherd__job_pump(w->job, w->now);
    }
    world_settle(w);
}

/* The first nodes answer a task each that they have. */
static void answer_each(world *w, uint32_t nodes)
{
    for (uint32_t i = 0; i < nodes; i++)
        if (w->ends[i].asked) world_answer(w, i, 0);
}

/* Nodes answer all that they have, each after 10 ms; node `but` answers nothing. */
static void work(world *w, uint32_t but)
{
    world_settle(w);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < w->nodes; i++) {
            if (i == but || !w->ends[i].asked) continue;
            pass(w, 10);
            world_answer(w, i, 0);
            world_settle(w);
            more = true;
        }
    }
}

static void an_idle_node_takes_over_what_a_slow_one_has_in_progress(void **state)
{
    (void)state;
    world w = { .scheme.shape.shared = true };
    sherd__job_stats stats;
    world_start(&w, 2, 1, 4, 2, 1, false);
    world_settle(&w);
    pass(&w, 1);
    for (int i = 0; i < 6; i++) { /* its own cells, and those of node 2 that were not started */
        world_answer(&w, 0, 0);
        world_settle(&w);
    }
    assert_true(w.ends[0].asked == 0 && w.ends[1].asked == 2);
    pass(&w, 400);
    assert_true(w.ends[0].asked == 1 && w.ends[1].asked == 1); /* one at a time: the last first */
    assert_true(w.ends[0].tasks[0].task > w.ends[1].tasks[0].task);
    work(&w, 1);
    pass(&w, 400);
    work(&w, 1);
    world_must_be_done(&w, SHERD_OK);
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.accepted, 8);
    assert_int_equal(stats.cancelled, 2);
    assert_int_equal(sherd__job_node_tasks(w.job, 0), 8);
    assert_int_equal(w.ends[1].expelled, 0);
    assert_true(sherd__job_node_pace(w.job, 1).missed > 0.4); /* it is whom the other waited for */
    world_stop(&w);
}

static void a_panel_that_stays_is_not_sent_again_for_work_that_is_soon_done(void **state)
{
    (void)state;
    world w = { .scheme.shape = { .shared = true, .left_stays = true } };
    world_start(&w, 2, 4, 1, 2, 1, false); /* four tiles, one panel each */
    world_settle(&w);
    pass(&w, 10);
    for (int i = 0; i < 4; i++) {
        world_answer(&w, 0, 0);
        world_settle(&w);
    }
    assert_int_equal(w.ends[0].asked, 0); /* node 2 has two cells, and two are not started */
    assert_int_equal(w.ends[1].asked, 2);
    assert_int_equal(w.scheme.lefts, 2);
    pass(&w, 200); /* it takes 210 ms for its first one: for four of them that is too long */
    assert_int_equal(w.ends[0].asked, 2);
    assert_int_equal(w.scheme.lefts, 3);
    for (uint32_t i = 4; i-- > 0;) {
        world_answer(&w, i / 2, 0);
        world_settle(&w);
    }
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(sherd__job_node_tasks(w.job, 0), 6);
    world_stop(&w);
}

static void work_is_not_moved_where_it_would_show_another_node_more_of_the_operands(void **state)
{
    (void)state;
    world w = { 0 }; /* not shared: each slot has columns of its own */
    world_start(&w, 2, 1, 4, 2, 1, false);
    work(&w, 1);
    pass(&w, 3000);
    assert_int_equal(w.ends[1].asked, 2);
    assert_int_equal(w.ends[0].asked, 0);
    world_stop(&w);
}

static void a_node_that_is_as_fast_as_the_others_keeps_its_work(void **state)
{
    (void)state;
    world w = { .scheme.shape.shared = true };
    sherd__job_stats stats;
    world_start(&w, 2, 1, 4, 2, 1, false);
    world_settle(&w);
    while (world_asked(&w)) {
        pass(&w, 1000); /* slow, but both are */
        answer_each(&w, 2);
        world_settle(&w);
    }
    world_must_be_done(&w, SHERD_OK);
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.cancelled, 0);
    assert_int_equal(stats.repeated, 0);
    world_stop(&w);
}

/* Otherwise they would pass a cell to each other without end, and neither would be late. */
static void two_silent_nodes_do_not_relieve_each_other(void **state)
{
    (void)state;
    world w = { .scheme.shape.shared = true };
    world_start(&w, 2, 1, 2, 2, 1, false);
    world_settle(&w);
    pass(&w, 10);
    world_answer(&w, 1, 0);
    for (int k = 0; k < 2; k++) world_answer(&w, 0, 0); /* then both are silent */
    world_settle(&w);
    pass(&w, 100000);
    assert_int_equal(w.ends[0].expelled, SHERD_ESILENT);
    assert_int_equal(w.ends[1].expelled, SHERD_ESILENT);
    world_stop(&w);
}

static void the_time_in_which_a_node_owes_answers_is_counted(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 2, 1, 2, 2, 1, false);
    world_settle(&w);
    pass(&w, 100);
    for (int k = 0; k < 2; k++) world_answer(&w, 0, 0);
    world_settle(&w);
    pass(&w, 2000); /* node 1 owes nothing meanwhile */
    for (int k = 0; k < 2; k++) world_answer(&w, 1, 0);
    world_settle(&w);
    world_must_be_done(&w, SHERD_OK);
    sherd__job_pace first = sherd__job_node_pace(w.job, 0), second = sherd__job_node_pace(w.job, 1);
    assert_float_equal(first.seconds, 0.1, 1e-9);
    assert_float_equal(second.seconds, 2.1, 1e-9);
    assert_true(first.bytes > 0 && first.bytes == second.bytes);
    assert_true(first.work == 2 && second.work == 2); /* one multiplication for each task */
    world_stop(&w);
}

/* Three nodes with two tasks each. The third one is lost after 3 s, and the others do its tasks in
 * `ms` each. */
static world lost_after_3_s(uint64_t ms)
{
    world w = { 0 };
    world_start(&w, 3, 1, 2, 2, 1, false);
    world_settle(&w);
    for (int k = 0; k < 2; k++) {
        pass(&w, 200);
        for (uint32_t i = 0; i < 2; i++) world_answer(&w, i, 0);
    }
    world_settle(&w);
    pass(&w, 2600);
    world_part(&w, 2, true, false);
    for (world_settle(&w); world_asked(&w) > 0; world_settle(&w)) {
        pass(&w, ms);
        answer_each(&w, 2);
    }
    world_must_be_done(&w, SHERD_OK);
    return w;
}

static void the_time_until_a_node_is_lost_is_its_own(void **state)
{
    (void)state;
    double room[3];
    sherd__job_pace paces[3];
    world w = lost_after_3_s(200);
    for (uint32_t i = 0; i < 3; i++) paces[i] = sherd__job_node_pace(w.job, i);
    assert_float_equal(paces[0].seconds, 0.4, 1e-9);
    assert_float_equal(paces[1].seconds, 0.4, 1e-9);
    assert_float_equal(paces[2].missed, 3, 1e-9);
    assert_true(paces[0].work == 2 && paces[1].work == 2 && paces[2].work == 0);
    sherd__job_slowest s = sherd__job_slowest_of(paces, 3, room);
    assert_int_equal(s.node, 2);
    assert_float_equal(s.seconds, 3, 1e-9);
    world_stop(&w);
}

static void a_node_that_delays_the_work_of_a_lost_one_is_charged_for_it(void **state)
{
    (void)state;
    world w = lost_after_3_s(2000);
    double first = sherd__job_node_pace(w.job, 0).seconds,
           second = sherd__job_node_pace(w.job, 1).seconds;
    assert_true(first > 2 || second > 2); /* 1.8 s beyond what is usual for each task */
    world_stop(&w);
}

static void a_node_that_refuses_its_tasks_first_is_charged_for_them(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 2, 1, 2, 2, 1, false);
    world_settle(&w);
    world_refuse_all(&w, 1);
    world_settle(&w);
    pass(&w, 1000);
    world_work(&w, w.nodes);
    world_must_be_done(&w, SHERD_OK);
    sherd__job_pace pace = sherd__job_node_pace(w.job, 1);
    assert_float_equal(pace.seconds, 1, 1e-9);
    assert_true(pace.bytes > 0);
    world_stop(&w);
}

static void a_lost_node_whose_answers_were_not_needed_is_not_waited_for(void **state)
{
    (void)state;
    world w = world_of(3);
    world_start(&w, 4, 1, 8, 2, 0, false);
    world_settle(&w);
    pass(&w, 100);
    world_part(&w, 3, true, true);
    for (int k = 0; k < 16 && world_asked(&w) > 0; k++) {
        pass(&w, 200);
        answer_each(&w, 3);
        world_settle(&w);
    }
    world_must_be_done(&w, SHERD_OK);
    assert_true(sherd__job_node_pace(w.job, 3).missed < 0.5); /* it was away for 1.6 s */
    world_stop(&w);
}

static void the_time_until_a_node_returns_is_its_own(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 2, 1, 1, 2, 1, false);
    world_settle(&w);
    pass(&w, 500);
    world_part(&w, 1, true, true);
    pass(&w, 400);
    world_join(&w, 1);
    world_settle(&w);
    world_work(&w, 2);
    world_must_be_done(&w, SHERD_OK);
    assert_float_equal(sherd__job_node_pace(w.job, 1).missed, 0.9, 1e-9);
    world_stop(&w);
}

static void the_time_of_answers_that_were_not_needed_does_not_count(void **state)
{
    (void)state;
    world w = world_of(3);
    world_start(&w, 4, 1, 2, 2, 0, false);
    world_settle(&w);
    pass(&w, 1000);
    world_work(&w, 3);
    world_must_be_done(&w, SHERD_OK);
    assert_float_equal(sherd__job_node_pace(w.job, 0).seconds, 1, 1e-9);
    assert_float_equal(sherd__job_node_pace(w.job, 3).seconds, 0, 1e-9);
    assert_true(sherd__job_node_pace(w.job, 0).work == 2 &&
                sherd__job_node_pace(w.job, 3).work == 0);
    world_stop(&w);
}

static void the_slowest_node_is_named_only_if_it_is_significantly_slower(void **state)
{
    (void)state;
    double room[4];
    static const sherd__job_pace cases[][4] = {
        { { 1, 0, 9, 0 }, { 1.1, 0, 9, 0 }, { 3, 0, 9, 0 }, { 0.9, 0, 9, 0 } },
        { { 1, 0, 9, 0 }, { 1.1, 0, 9, 0 }, { 0, 3, 0, 0 }, { 0.9, 0, 9, 0 } }, /* it was lost */
        { { 1, 0, 9, 0 },
          { 1.1, 0, 9, 0 },
          { 1, 2, 9, 0 },
          { 0.9, 0, 9, 0 } }, /* so was this one, later */
        { { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 3, 0, 0 }, { 0, 0, 0, 0 } }, /* all did its work */
        { { 1, 0, 9, 0 },
          { 1.1, 0, 9, 0 },
          { 1.4, 0, 9, 0 },
          { 0.9, 0, 9, 0 } }, /* 1.4 times the median */
        { { 0.1, 0, 9, 0 }, { 0.1, 0, 9, 0 }, { 0.3, 0, 9, 0 }, { 0.1, 0, 9, 0 } }, /* 0.2 s more */
        { { 0.1, 0, 9, 0 }, { 0.1, 0, 9, 0 }, { 0, 0.3, 0, 0 }, { 0.1, 0, 9, 0 } }, /* likewise */
        { { 1, 0, 9, 0 },
          { 1.1, 0, 9, 0 },
          { 3, 0, 0, 0 },
          { 0.9, 0, 9, 0 } }, /* it took no part */
        { { 0, 0, 0, 0 },
          { 0, 0, 0, 0 },
          { 3, 0, 9, 0 },
          { 0, 0, 0, 0 } }, /* there are no others */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sherd__job_slowest s = sherd__job_slowest_of(cases[i], 4, room);
        assert_int_equal(s.node, i < 4 ? 2 : UINT32_MAX);
        if (i > 3) continue;
        assert_float_equal(s.seconds, 3, 0);
        assert_float_equal(s.others, i == 3 ? 0 : 1, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_node_takes_over_what_a_slow_one_has_in_progress),
        cmocka_unit_test(a_panel_that_stays_is_not_sent_again_for_work_that_is_soon_done),
        cmocka_unit_test(work_is_not_moved_where_it_would_show_another_node_more_of_the_operands),
        cmocka_unit_test(a_node_that_is_as_fast_as_the_others_keeps_its_work),
        cmocka_unit_test(two_silent_nodes_do_not_relieve_each_other),
        cmocka_unit_test(the_time_in_which_a_node_owes_answers_is_counted),
        cmocka_unit_test(the_time_until_a_node_is_lost_is_its_own),
        cmocka_unit_test(a_node_that_delays_the_work_of_a_lost_one_is_charged_for_it),
        cmocka_unit_test(a_node_that_refuses_its_tasks_first_is_charged_for_them),
        cmocka_unit_test(a_lost_node_whose_answers_were_not_needed_is_not_waited_for),
        cmocka_unit_test(the_time_until_a_node_returns_is_its_own),
        cmocka_unit_test(the_time_of_answers_that_were_not_needed_does_not_count),
        cmocka_unit_test(the_slowest_node_is_named_only_if_it_is_significantly_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
