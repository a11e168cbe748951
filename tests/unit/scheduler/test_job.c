/* The job's state machine, with schemes in which every cell is folded (job_world.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "scheduler/job/internal.h"
#include "tests/unit/scheduler/job_world.h"

/* --- tests ----------------------------------------------------------------------------------- */

static void every_cell_is_folded_once_and_a_resident_block_is_sent_once(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        world w = { .scheme.shape.ordered = ordered };
        world_start(&w, 3, 2, 4, 2, 0, false);
        world_work(&w, NOBODY);
        world_must_be_done(&w, SHERD_OK);
        assert_int_equal(w.scheme.residents, 3 * 2);
        assert_int_equal(sherd__job_node_tasks(w.job, 0), 2 * 4);
        world_stop(&w);
    }
}

static void a_job_without_work_is_done_immediately(void **state)
{
    (void)state;
    static const uint32_t panels[] = { 0, 3 };
    for (int empty = 0; empty < 2; empty++) { /* of no panels, or of empty cells */
        world w = { .scheme.empty = empty };
        world_start(&w, 2, 2, panels[empty], 2, 0, false);
        world_settle(&w);
        world_must_be_done(&w, SHERD_OK);
        assert_int_equal(w.scheme.residents, 0); /* nothing is sent */
        world_stop(&w);
    }
}

static void again(world *w)
{
    sherd__job_rest(w->job);
    memset(w->scheme.folded, 0, sizeof w->scheme.folded);
    w->scheme.finished = 0;
    assert_int_equal(sherd__job_again(w->job), SHERD_OK);
}

static void resident_blocks_serve_the_next_run_in_the_same_session_only(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 3, 1, 3, 2, 0, false);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.residents, 3);

    again(&w); /* all sessions continue */
    for (uint32_t i = 0; i < 3; i++)
        sherd__job_node_up(w.job, i, w.ends[i].here, w.ends[i].sessions, w.now);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.residents, 3);

    sherd__job_rest(w.job);
    world_part(&w, 1, false, true); /* a session ends between two runs, and the job is not
                                     * notified */
    world_join(&w, 1);
    again(&w);
    sherd__job_node_up(w.job, 0, w.ends[0].here, w.ends[0].sessions, w.now);
    sherd__job_node_up(w.job, 2, w.ends[2].here, w.ends[2].sessions, w.now);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.residents, 4);
    assert_int_equal(sherd__job_node_tasks(w.job, 1), 3); /* its own work, alone */
    world_stop(&w);
}

static void a_failed_run_cannot_be_run_again(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 2, 1, 2, 2, 0, false);
    world_settle(&w);
    assert_int_equal(sherd__job_again(w.job), SHERD_EINVAL); /* in progress */
    sherd__job_fail(w.job, SHERD_EINTERRUPTED, NULL, "interrupted");
    world_must_be_done(&w, SHERD_EINTERRUPTED);
    assert_int_equal(sherd__job_again(w.job), SHERD_EINVAL);
    world_stop(&w);
}

static void a_job_that_ends_within_a_block_frees_its_source(void **state)
{
    (void)state;
    for (unsigned moves = 0; moves < 4; moves++) {
        world w = { .scheme.resident_rows = 200000 };
        world_start(&w, 2, 1, 2, 2, 0, false);
        for (unsigned i = 0; i < 2; i++) {
            world_move(&w, i, true);
            world_move(&w, i, false);
        }
        for (unsigned i = 0; i < moves; i++) world_move(&w, 0, true);
        assert_true(w.scheme.live > 0);
        sherd__job_fail(w.job, SHERD_ETIMEOUT, NULL, "the time limit expired");
        world_stop(&w);
    }
}

static void answers_and_refusals_of_another_job_have_no_effect(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 2, 1, 2, 2, 0, false);
    world_settle(&w);
    sherd__event e = { .kind = SHERD__EV_REFUSED,
                       .job = JOB + 1,
                       .refusal = {
                           .job = JOB + 1, .task = 1, .attempt = w.ends[0].tasks[0].attempt } };
    for (unsigned i = 0; i < 20; i++) sherd__job_event(w.job, 0, &e, w.now);
    e = (sherd__event){ .kind = SHERD__EV_RESULT, .job = JOB + 1, .task = w.ends[0].tasks[0] };
    sherd__fragment_info info = e.task.result;
    uint8_t *body = sherd__calloc(1, 8);
    assert_int_equal(sherd__fragment_take(&e.fragment, &info, body, NULL, NULL), SHERD_OK);
    sherd__job_event(w.job, 0, &e, w.now);
    assert_null(e.fragment);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_string_equal(w.said, "");
    sherd__job_stats stats;
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.repeated, 0);
    world_stop(&w);
}

static void a_burst_of_refusals_reduces_a_nodes_depth_and_does_not_expel_it(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 1, 1, 32, 16, 1, false);
    world_settle(&w);
    assert_int_equal(w.ends[0].asked, 16);
    for (size_t most = 8; most >= 1; most /= 2) {
        world_refuse_all(&w, 0);
        world_settle(&w);
        assert_int_equal(w.ends[0].asked, most);
    }
    world_work(&w, NOBODY); /* it has room for one task at a time */
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void a_node_that_refuses_everything_is_left_and_its_blocks_retracted(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 2, 1, 3, 4, 1, false);
    world_settle(&w);
    for (unsigned i = 0; i < 12 && !strstr(w.said, "refuses its work"); i++) {
        world_refuse_all(&w, 0);
        world_settle(&w);
    }
    assert_non_null(strstr(w.said, "node-1 refuses its work (refused)"));
    assert_true(w.ends[0].drops > 0);
    world_work(&w, 0);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(sherd__job_node_tasks(w.job, 1), 6);
    world_stop(&w);
}

/* A training has thousands of jobs; the log names a node that cannot work once. */
static void what_an_earlier_job_has_said_is_not_said_again(void **state)
{
    (void)state;
    for (int said = 0; said < 2; said++) {
        world w = { .already_reported = said ? SHERD__JOB_CANNOT_WORK : 0 };
        world_start(&w, 2, 1, 3, 4, 1, false);
        world_settle(&w);
        for (unsigned i = 0; i < 12; i++) {
            world_refuse_all(&w, 0);
            world_settle(&w);
        }
        world_work(&w, 0);
        world_must_be_done(&w, SHERD_OK);
        assert_int_equal(sherd__job_node_tasks(w.job, 1), 6);
        assert_int_equal(!strstr(w.said, "refuses its work"), said);
        assert_string_equal(w.reason, "refuses its work (refused)");
        assert_int_equal(!strstr(w.said, "takes over from node-1"), said);
        world_stop(&w);
    }
}

static void a_refused_resident_block_is_sent_again(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 1, 1, 2, 1, 1, false);
    world_settle(&w);
    sherd__event e = { .kind = SHERD__EV_REFUSED,
                       .job = JOB,
                       .refusal = { .job = JOB, .block = 1, .code = SHERD_EREFUSED } };
    sherd__job_event(w.job, 0, &e, w.now);
    world_refuse_all(&w, 0); /* the tasks that needed it */
    world_settle(&w);
    assert_int_equal(w.scheme.residents, 2);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void a_node_that_returns_in_time_keeps_its_work(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 3, 1, 3, 1, 0, false);
    world_settle(&w);
    world_part(&w, 2, true, true);
    world_work(&w, NOBODY);
    assert_false(world_is_done(&w));
    w.now += 1400;
    sherd__job_tick(w.job, w.now);
    world_join(&w, 2);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(sherd__job_node_tasks(w.job, 2), 3);
    assert_null(strstr(w.said, "takes over"));
    world_stop(&w);
}

static void a_node_that_does_not_return_is_replaced_as_far_as_the_ledger_allows(void **state)
{
    (void)state;
    for (int allowed = 0; allowed < 2; allowed++) {
        world w = { 0 };
        world_start(&w, 3, 1, 3, 1, allowed ? 0.67 : 0.34, false);
        world_settle(&w);
        world_part(&w, 2, true, true);
        world_work(&w, NOBODY);
        w.now += 1600;
        sherd__job_tick(w.job, w.now);
        world_work(&w, NOBODY);
        world_must_be_done(&w, allowed ? SHERD_OK : SHERD_EEXPOSURE);
        assert_true(!!strstr(w.said, "takes over from node-3") == allowed);
        world_stop(&w);
    }
}

static void cells_that_would_exceed_the_bound_are_not_sent_whatever_the_plan(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 3, 1, 1, 1, 0.2, false); /* a third for each is planned */
    world_settle(&w);
    world_must_be_done(&w, SHERD_EEXPOSURE);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(w.ends[i].blocks + w.ends[i].asked, 0);
    world_stop(&w);
}

static void without_nodes_the_job_ends(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 2, 1, 2, 1, 1, false);
    world_settle(&w);
    world_part(&w, 0, true, false);
    world_part(&w, 1, true, false);
    world_must_be_done(&w, SHERD_EFEWNODES);
    world_stop(&w);
}

/* In steps like the cluster's loop: a step of seconds would count as a sleep of this process. */
static void pass_time(world *w, uint64_t ms)
{
    for (uint64_t until = w->now + ms; w->now < until;) {
        w->now += until - w->now < 100 ? until - w->now : 100;
        sherd__job_tick(w->job, w->now);
    }
}

static void a_node_that_answers_no_task_is_expelled(void **state)
{
    (void)state;
    world w = { 0 };
    char text[200];
    world_start(&w, 2, 1, 2, 1, 1, false);
    world_work(&w, 1);
    pass_time(&w, 9000);
    sherd__job_waiting(w.job, w.now, text, sizeof text);
    assert_non_null(strstr(text, "waiting 9 s for node-2"));
    assert_int_equal(w.ends[1].expelled, 0);
    pass_time(&w, 1100);
    assert_int_equal(w.ends[1].expelled, SHERD_ESILENT);
    world_work(&w, 1);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void slow_answers_allow_a_silent_node_a_minute_at_most(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 2, 1, 2, 1, 1, false);
    world_settle(&w);
    pass_time(&w, 9000); /* 30 times the time of node-1 would be four and a half minutes */
    world_work(&w, 1);
    pass_time(&w, 50900);
    assert_int_equal(w.ends[1].expelled, 0);
    pass_time(&w, 200);
    assert_int_equal(w.ends[1].expelled, SHERD_ESILENT);
    world_work(&w, 1);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

/* Neither for another work nor for the remaining nodes. */
static void times_of_a_node_do_not_count_once_it_or_its_job_has_ended(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 3, 1, 3, 1, 1, false);
    world_settle(&w);
    pass_time(&w, 9000);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(w.deliveries[i].up && w.deliveries[i].usual_ms > 1000);
    world_part(&w, 0, true, false);
    assert_true(!w.deliveries[0].up && w.deliveries[0].usual_ms == 0);
    assert_true(w.deliveries[1].up);
    sherd__job_end(w.job);
    sherd__job_rest(w.job);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(!w.deliveries[i].up && w.deliveries[i].usual_ms == 0);
    world_stop(&w);
}

static void an_expelled_node_gets_another_chance_in_the_next_job(void **state)
{
    (void)state;
    world w = { 0 };
    w.deliveries[1].excess_ms = SHERD__DELIVERY_EXCESS_MS + 1000; /* of earlier works */
    world_start(&w, 2, 1, 2, 1, 1, false);
    world_settle(&w);
    pass_time(&w, 100);
    assert_int_equal(w.ends[1].expelled, SHERD_ESILENT);
    assert_true(w.deliveries[1].excess_ms > 0);
    assert_true(w.deliveries[1].excess_ms <= SHERD__DELIVERY_EXCESS_MS / 2);
    world_work(&w, 1);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void a_wrong_answer_bans_its_node_or_ends_a_strict_job(void **state)
{
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        world w = { 0 };
        sherd__job_stats stats;
        world_start(&w, 2, 1, 2, 1, 1, strict);
        world_settle(&w);
        world_answer(&w, 1, -1);
        world_settle(&w);
        sherd__job_count(w.job, &stats);
        assert_int_equal(stats.banned, 1);
        if (!strict) {
            assert_int_equal(w.ends[1].expelled, SHERD_EWRONG);
            world_work(&w, 1);
        }
        world_must_be_done(&w, strict ? SHERD_EWRONG : SHERD_OK);
        world_stop(&w);
    }
}

static void a_node_whose_answers_are_all_wrong_counts_as_one_liar(void **state)
{
    (void)state;
    world w = { 0 };
    sherd__job_stats stats;
    world_start(&w, 2, 1, 3, 3, 1, false);
    world_settle(&w);
    w.behind = true;
    assert_int_equal(w.ends[1].asked, 3);
    while (w.ends[1].asked) world_answer(&w, 1, -1);
    while (world_move(&w, 1, false)) continue;
    w.behind = false;
    world_work(&w, 1);
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.banned, 1);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void a_cell_that_cannot_be_hidden_fails_the_job(void **state)
{
    (void)state;
    world w = { .scheme.hide_err = SHERD_ENOMEM };
    world_start(&w, 2, 1, 2, 1, 1, false);
    world_settle(&w);
    world_must_be_done(&w, SHERD_ENOMEM);
    world_stop(&w);
}

static void numbers_that_wrap_avoid_those_in_use(void **state)
{
    (void)state;
    world w = { 0 };
    world_start(&w, 2, 2, 4, 2, 0, false);
    w.job->blocks = UINT32_MAX - 3;
    w.job->attempts = UINT32_MAX - 3;
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    for (uint32_t i = 0; i < w.job->cells_len; i++) assert_true(w.job->cells[i].attempt != 0);
    world_stop(&w);
}

static void more_slots_than_nodes_and_too_many_cells_are_refused(void **state)
{
    (void)state;
    fake f = { .shape = { .slots = 3, .tiles = 1, .panels = 1 } };
    sherd__hiding h = { &fake_ops, &f };
    uint32_t domain[2] = { 0, 1 };
    sherd__job *j;
    sherd__job_options o = { .hiding = &h, .nodes = 2, .domain = domain, .depth = 1 };
    assert_int_equal(sherd__job_new(&j, &o), SHERD_EINVAL);
    assert_null(j);
    f.shape = (sherd__scheme_shape){ .slots = 2, .tiles = 65536, .panels = 65536 };
    assert_int_equal(sherd__job_new(&j, &o), SHERD_ENOMEM);
}

static void every_failed_allocation_of_a_new_job_is_reported(void **state)
{
    (void)state;
    fake f = { .shape = { .slots = 2, .tiles = 2, .panels = 2 } };
    sherd__hiding h = { &fake_ops, &f };
    uint32_t domain[2] = { 0, 1 };
    sherd__job_options o = { .hiding = &h, .nodes = 2, .domain = domain, .depth = 1 };
    int err = SHERD_ENOMEM;
    for (size_t n = 1; err; n++) {
        sherd__job *j;
        (void)sherd__alloc_fail_nth(n);
        err = sherd__job_new(&j, &o);
        (void)sherd__alloc_fail_nth(0);
        if (err) assert_int_equal(err, SHERD_ENOMEM);
        sherd__job_free(j);
        assert_true(n < 50);
    }
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_cell_is_folded_once_and_a_resident_block_is_sent_once),
        T(a_job_without_work_is_done_immediately),
        T(resident_blocks_serve_the_next_run_in_the_same_session_only),
        T(a_failed_run_cannot_be_run_again),
        T(a_job_that_ends_within_a_block_frees_its_source),
        T(answers_and_refusals_of_another_job_have_no_effect),
        T(a_burst_of_refusals_reduces_a_nodes_depth_and_does_not_expel_it),
        T(a_node_that_refuses_everything_is_left_and_its_blocks_retracted),
        T(what_an_earlier_job_has_said_is_not_said_again),
        T(a_refused_resident_block_is_sent_again),
        T(a_node_that_returns_in_time_keeps_its_work),
        T(a_node_that_does_not_return_is_replaced_as_far_as_the_ledger_allows),
        T(cells_that_would_exceed_the_bound_are_not_sent_whatever_the_plan),
        T(without_nodes_the_job_ends),
        T(a_node_that_answers_no_task_is_expelled),
        T(slow_answers_allow_a_silent_node_a_minute_at_most),
        T(times_of_a_node_do_not_count_once_it_or_its_job_has_ended),
        T(an_expelled_node_gets_another_chance_in_the_next_job),
        T(a_wrong_answer_bans_its_node_or_ends_a_strict_job),
        T(a_node_whose_answers_are_all_wrong_counts_as_one_liar),
        cmocka_unit_test(a_node_whose_answers_are_all_wrong_counts_as_one_liar),
        T(a_cell_that_cannot_be_hidden_fails_the_job),
        T(numbers_that_wrap_avoid_those_in_use),
        T(more_slots_than_nodes_and_too_many_cells_are_refused),
        T(every_failed_allocation_of_a_new_job_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
