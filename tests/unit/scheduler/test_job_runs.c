/*
 * The job's state machine, run after run: blocks that stay at the nodes, blocks that do not, and a
 * spare node for which the job does not wait (job_world.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "scheduler/job/internal.h"
#include "tests/unit/scheduler/job_world.h"

static void run_again(world *w)
{
    sherd__job_rest(w->job);
    memset(w->scheme.decoded, 0, sizeof w->scheme.decoded);
    w->scheme.finished = 0;
    assert_int_equal(sherd__job_again(w->job), SHERD_OK);
    for (uint32_t i = 0; i < w->nodes; i++)
        if (w->ends[i].here && sherd__session_ready(w->ends[i].here))
            sherd__job_node_up(w->job, i, w->ends[i].here, w->ends[i].sessions, w->now);
}

/* ---- left operands that stay ----------------------------------------------------------------- */

static void left_blocks_stay_between_runs_and_right_ones_do_not(void **state)
{
    (void)state;
    world w = world_of(3);
    w.scheme.shape.left_stays = true;
    world_start(&w, 3, 2, 2, 2, 0, false);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.lefts, 3 * 2);
    assert_int_equal(w.scheme.residents, 3 * 2);
    assert_int_equal(w.ends[0].blocks, 2 + 2);

    w.scheme.shape.tiles = 3; /* a wider operand than before */
    run_again(&w);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.lefts, 3 * 2);
    assert_int_equal(w.scheme.residents, 3 * 2 + 3 * 3);
    assert_int_equal(w.ends[0].blocks, 2 + 2 + 3);
    assert_true(w.ends[0].drops >= 2 + 2);

    sherd__job_rest(w.job);
    world_part(&w, 1, false, true); /* a new session has no blocks */
    world_join(&w, 1);
    run_again(&w);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.lefts, 3 * 2 + 2);
    world_stop(&w);
}

/* More cells than task numbers: the job cannot be used any more, and frees its data once. */
static void a_run_of_too_many_cells_is_refused(void **state)
{
    (void)state;
    world w = world_of(3);
    w.scheme.shape.left_stays = true;
    world_start(&w, 3, 2, 2, 2, 0, false);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    sherd__job_rest(w.job);
    w.scheme.shape.tiles = UINT32_MAX / 2;
    assert_int_equal(sherd__job_again(w.job), SHERD_ENOMEM);
    w.scheme.shape.tiles = 2;
    world_stop(&w);
}

/* Runs that take two of five panels: a block is made and sent when a run first uses its panel. */
static void runs_of_some_panels_find_their_blocks(void **state)
{
    (void)state;
    static const struct {
        uint32_t from, panels, lefts, blocks; /* totals so far: made, and sent to one node */
        bool anew;                            /* node 1 gets a new session before it */
    } runs[] = {
        { 0, 2, 6, 2, false },  { 0, 2, 6, 2, false },  { 3, 2, 12, 4, false },
        { 1, 2, 15, 5, false }, { 0, 5, 15, 5, false }, { 3, 2, 17, 5, true },
        { 2, 3, 18, 5, false },
    };
    world w = world_of(3);
    unsigned rights = 0;
    w.scheme.shape.left_stays = true;
    w.scheme.shape.lefts = 5;
    for (unsigned i = 0; i < sizeof runs / sizeof *runs; i++) {
        w.scheme.shape.left_from = runs[i].from;
        if (i == 0) {
            world_start(&w, 3, 1, runs[i].panels, 2, 0, false);
        } else {
            w.scheme.shape.panels = runs[i].panels;
            sherd__job_rest(w.job);
            if (runs[i].anew) {
                world_part(&w, 1, false, true);
                world_join(&w, 1);
            }
            run_again(&w);
        }
        world_work(&w, NOBODY);
        world_must_be_done(&w, SHERD_OK);
        rights += 1;
        assert_int_equal(w.scheme.lefts, runs[i].lefts);
        assert_int_equal(w.ends[0].blocks, runs[i].blocks + rights);
    }
    w.scheme.shape.lefts = 6; /* a run may not change what stays */
    sherd__job_rest(w.job);
    assert_int_equal(sherd__job_again(w.job), SHERD_EINVAL);
    world_stop(&w);
}

static void a_left_block_that_is_being_sent_is_not_made_again(void **state)
{
    (void)state;
    world w = world_of(3);
    w.scheme.shape.left_stays = true;
    world_start(&w, 3, 3, 1, 3, 0, false); /* cells of three tiles start together, with one panel */
    world_settle(&w);
    assert_int_equal(world_asked(&w), 9);
    assert_int_equal(w.scheme.lefts, 3);
    assert_int_equal(w.ends[0].blocks, 1 + 3);
    world_part(&w, 2, true, true); /* the data that were being sent to it are lost */
    world_join(&w, 2);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.lefts, 4);
    world_stop(&w);
}

/* Continues with all nodes but one, whose link carries only `moves` offers. */
static void work_but_stalled(world *w, uint32_t stalled, unsigned moves)
{
    bool done = false;
    for (unsigned i = 0; i < 3 || !done; i++) {
        done = world_is_done(w);
        sherd__job_pump(w->job, w->now);
        for (uint32_t n = 0; n < w->nodes; n++) {
            if (n == stalled && moves == 0) continue;
            moves -= n == stalled;
            while (world_move(w, n, true) + world_move(w, n, false) && n != stalled) {}
            while (n != stalled && w->ends[n].asked) world_answer(w, n, 0);
        }
        assert_true(i < 1000);
    }
}

/* The next product frees and makes again the data that sources read. */
static void no_source_outlives_its_product(void **state)
{
    (void)state;
    for (unsigned moves = 2; moves < 8; moves++) {
        world w = world_of(3);
        w.scheme.shape.left_stays = true;
        w.scheme.resident_rows = 100000;
        world_start(&w, 4, 2, 1, 2, 0, false);
        work_but_stalled(&w, 3, moves);
        world_must_be_done(&w, SHERD_OK);
        sherd__job_rest(w.job);
        assert_int_equal(w.scheme.live, 0);
        run_again(&w);
        world_work(&w, 0); /* without node 3, which has received half of the first block, nothing
                            * ends */
        world_must_be_done(&w, SHERD_OK);
        assert_int_equal(sherd__job_node_tasks(w.job, 3), 2);
        world_stop(&w);
    }
}

/* ---- spare nodes ----------------------------------------------------------------------------- */

/* All nodes but the last answer, 200 ms after they were asked. Returns the time until the last one
 * was expelled, or 0. slow: the time that the last one takes for each task; 0: it never answers. */
static uint64_t work_with_a_spare(world *w, uint64_t slow)
{
    uint32_t spare = w->nodes - 1;
    uint64_t began = w->now, due = 0;
    world_settle(w);
    while (!world_is_done(w)) {
        end *e = &w->ends[spare];
        for (uint32_t i = 0; i < spare; i++)
            while (w->ends[i].asked) world_answer(w, i, 0);
        if (!e->asked || !slow) due = w->now + slow;
        if (slow && w->now >= due && e->asked) world_answer(w, spare, 0);
        world_settle(w);
        w->now += 200;
        sherd__job_tick(w->job, w->now);
        if (e->expelled) return w->now - began;
        assert_true(w->now - began < 600000);
    }
    return 0;
}

static void a_spare_node_that_never_answers_is_expelled_and_the_job_continues(void **state)
{
    (void)state;
    world w = world_of(3);
    world_start(&w, 4, 1, 200, 2, 0, false);
    uint64_t took = work_with_a_spare(&w, 0);
    assert_int_equal(w.ends[3].expelled, SHERD_ESILENT);
    assert_in_range(took, 10000, 20000); /* 10 s and 30 times 200 ms, and a second at the start */
    assert_non_null(strstr(w.said, "node-4 lost: it does not answer tasks"));
    world_work(&w, 3);
    world_must_be_done(&w, SHERD_OK);
    sherd__job_stats stats;
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.lost, 1);
    world_stop(&w);
}

static void a_spare_node_that_is_merely_slow_stays(void **state)
{
    (void)state;
    world w = world_of(3);
    world_start(&w, 4, 1, 250, 2, 0, false);
    assert_int_equal(work_with_a_spare(&w, 3000), 0); /* never in time */
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(w.ends[3].expelled, 0);
    assert_int_equal(sherd__job_node_tasks(w.job, 3), 0);
    world_stop(&w);
}

static void silence_accumulates_over_short_runs(void **state)
{
    (void)state;
    world w = world_of(3);
    uint64_t took = 0;
    w.scheme.shape.left_stays = true;
    world_start(&w, 4, 1, 12, 2, 0, false);
    for (unsigned runs = 0; !took; runs++) {
        took = work_with_a_spare(&w, 0);
        if (took) break;
        assert_true(runs < 40); /* of one to two seconds each */
        run_again(&w);
    }
    assert_int_equal(w.ends[3].expelled, SHERD_ESILENT);
    world_work(&w, 3);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_blocks_stay_between_runs_and_right_ones_do_not),
        cmocka_unit_test(a_run_of_too_many_cells_is_refused),
        cmocka_unit_test(runs_of_some_panels_find_their_blocks),
        cmocka_unit_test(a_left_block_that_is_being_sent_is_not_made_again),
        cmocka_unit_test(no_source_outlives_its_product),
        cmocka_unit_test(a_spare_node_that_never_answers_is_expelled_and_the_job_continues),
        cmocka_unit_test(a_spare_node_that_is_merely_slow_stays),
        cmocka_unit_test(silence_accumulates_over_short_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
