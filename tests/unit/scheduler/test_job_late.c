/* Events of nodes after the job is done and before it is returned (job_world.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/unit/scheduler/job_world.h"

static sherd__job_stats done_without_node_4(world *w, bool strict)
{
    sherd__job_stats stats;
    *w = (world){ .scheme.shape.threshold = 3 };
    world_start(w, 4, 1, 2, 2, 0, strict);
    world_work(w, 3);
    world_must_be_done(w, SHERD_OK);
    sherd__job_count(w->job, &stats);
    assert_int_equal(stats.banned + stats.lost, 0);
    return stats;
}

static void a_node_that_is_banned_then_is_named_and_fails_a_strict_job(void **state)
{
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        world w;
        sherd__job_stats stats = done_without_node_4(&w, strict);
        sherd__job_node_banned(w.job, 3, "a result of another length");
        world_part(&w, 3, true, false);
        sherd__job_count(w.job, &stats);
        assert_int_equal(stats.banned, 1);
        if (!strict) assert_non_null(strstr(w.said, "node-4 broke the protocol"));
        world_must_be_done(&w, strict ? SHERD_EWRONG : SHERD_OK);
        world_stop(&w);
    }
}

static void a_node_that_is_lost_then_is_reported_and_ends_nothing(void **state)
{
    (void)state;
    world w;
    sherd__job_stats stats = done_without_node_4(&w, false);
    world_part(&w, 3, true, false);
    world_part(&w, 2, true, false); /* two remain of the three that were needed: that no longer
                                     * matters */
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.lost, 2);
    assert_non_null(strstr(w.said, "node-4 lost"));
    assert_non_null(strstr(w.said, "node-3 lost"));
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void a_failed_job_keeps_its_first_error(void **state)
{
    (void)state;
    world w;
    sherd__job_stats stats;
    w = (world){ .scheme.shape.threshold = 3 };
    world_start(&w, 4, 1, 2, 2, 0, true);
    world_settle(&w);
    sherd__job_fail(w.job, SHERD_ETIMEOUT, NULL, "the time limit expired");
    sherd__job_node_banned(w.job, 3, "a result of another length");
    world_part(&w, 3, true, false);
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.banned, 1);
    assert_non_null(strstr(w.said, "node-4 broke the protocol"));
    world_must_be_done(&w, SHERD_ETIMEOUT);
    world_stop(&w);
}

static void an_answer_that_was_not_read_does_not_count_as_accepted(void **state)
{
    (void)state;
    world w = { .scheme.shape.threshold = 3, .behind = true };
    sherd__job_stats stats;
    world_start(&w, 4, 1, 2, 2, 0, false);
    world_settle(&w);
    for (uint32_t i = 0; i < 3; i++) world_answer(&w, i, 0);
    world_answer(&w, 3, UNREAD);
    world_settle(&w);
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.accepted, 3);
    assert_int_equal(stats.cancelled, 1);
    w.behind = false;
    world_work(&w, 3);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(sherd__job_node_tasks(w.job, 3), 0);
    world_stop(&w);
}

static void a_job_that_is_stopped_while_it_finishes_ends_with_that_error(void **state)
{
    (void)state;
    world w = { .scheme.shape.threshold = 3 };
    world_start(&w, 4, 1, 2, 2, 0, false);
    w.scheme.stops = w.job;
    world_work(&w, 3);
    assert_int_equal(w.scheme.finished, 1);
    world_must_be_done(&w, SHERD_EINTERRUPTED);
    world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_is_banned_then_is_named_and_fails_a_strict_job),
        cmocka_unit_test(a_node_that_is_lost_then_is_reported_and_ends_nothing),
        cmocka_unit_test(an_answer_that_was_not_read_does_not_count_as_accepted),
        cmocka_unit_test(a_failed_job_keeps_its_first_error),
        cmocka_unit_test(a_job_that_is_stopped_while_it_finishes_ends_with_that_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
