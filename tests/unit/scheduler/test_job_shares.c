/* The job's state machine, of schemes of which some answers are enough (job_world.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "scheduler/job_internal.h"
#include "tests/unit/scheduler/job_world.h"

static world of(uint32_t threshold)
{
    world w = { .scheme.shape.threshold = threshold };
    return w;
}

/* Open tasks that the node has been asked. */
static size_t asked(const world *w)
{
    size_t n = 0;
    for (uint32_t i = 0; i < w->nodes; i++) n += w->ends[i].asked;
    return n;
}

static void any_answers_that_are_enough_finish_the_job(void **state)
{
    (void)state;
    for (uint32_t silent = 0; silent < 5; silent++) {
        world w = of(4);
        world_start(&w, 5, 2, 3, 2, 0, false);
        world_work(&w, silent);
        world_must_be_done(&w, SHERD_OK);
        sherd__job_stats stats;
        sherd__job_count(w.job, &stats);
        assert_int_equal(stats.accepted, 4 * 2 * 3);
        assert_int_equal(stats.folded, stats.cells);
        assert_int_equal(sherd__job_node_tasks(w.job, silent), 0);
        world_stop(&w);
    }
}

static void what_is_no_longer_needed_is_cancelled_at_once(void **state)
{
    (void)state;
    world w = of(3);
    world_start(&w, 5, 1, 4, 2, 0, false);
    world_settle(&w);
    assert_int_equal(asked(&w), 5 * 2);
    for (uint32_t i = 0; i < 3; i++) world_answer(&w, i, 0);
    world_settle(&w);
    assert_int_equal(w.scheme.decoded[0], 1);
    for (uint32_t i = 3; i < 5; i++) /* told so, and given the next instead */
        for (size_t t = 0; t < w.ends[i].asked; t++)
            assert_true((w.ends[i].tasks[t].task - 1) / 5 != 0);
    sherd__job_stats stats;
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.cancelled, 2);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void nodes_run_ahead_by_the_window_and_no_further(void **state)
{
    (void)state;
    world w = of(3);
    world_start(&w, 4, 1, 8, 3, 0, false);
    world_settle(&w);
    for (unsigned i = 0; i < 3; i++) world_answer(&w, 0, 0); /* a quick one among slow ones */
    world_settle(&w);
    assert_int_equal(w.ends[0].asked, 0);
    assert_int_equal(asked(&w), 3 * 3);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void a_late_answer_that_was_on_its_way_changes_nothing(void **state)
{
    (void)state;
    world w = of(2);
    w.behind = true; /* several answers come before one is judged */
    world_start(&w, 4, 1, 2, 2, 0, false);
    world_settle(&w);
    for (uint32_t i = 0; i < 4; i++) world_answer(&w, i, i == 3 ? -1 : 0); /* a wrong one, too */
    world_settle(&w);
    assert_int_equal(w.ends[3].expelled, SHERD_EWRONG);
    world_work(&w, 3);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void a_share_stays_with_its_domain(void **state)
{
    (void)state;
    for (unsigned early = 0; early < 2; early++) { /* before anybody holds a share, too */
        world w = of(3);
        world_start(&w, 4, 1, 3, 2, 0, false);
        if (!early) world_settle(&w);
        world_part(&w, 0, true, false); /* gone for good: nobody takes over */
        world_settle(&w);
        for (uint32_t i = 1; i < 4; i++)
            for (size_t t = 0; t < w.ends[i].asked; t++)
                assert_int_equal((w.ends[i].tasks[t].task - 1) % 4, i);
        world_work(&w, NOBODY);
        world_must_be_done(&w, SHERD_OK);
        assert_null(strstr(w.said, "takes over"));
        for (uint32_t s = 0; s < 4; s++)
            assert_int_equal(sherd__job_node_tasks(w.job, s), s == 0 ? 0 : 3);
        world_stop(&w);
    }
}

static void another_node_of_the_domain_may_answer_for_it(void **state)
{
    (void)state;
    world w = of(3);
    static const uint32_t domain[] = { 0, 1, 2, 1 };
    memcpy(w.domain, domain, sizeof domain);
    for (uint32_t i = 4; i < NODES_MAX; i++) w.domain[i] = 2;
    w.domains_set = true;
    w.scheme.shape.slots = 3;
    world_start(&w, 4, 1, 3, 2, 0, false);
    world_settle(&w);
    assert_int_equal(w.ends[3].asked, 0); /* one node of a domain is enough */
    world_part(&w, 1, true, false);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_non_null(strstr(w.said, "node-4 takes over from node-2"));
    world_stop(&w);
}

/* Who reads along with a liar is no place for a share, in this job or in one that comes later. */
static void a_domain_with_a_liar_is_given_nothing_more(void **state)
{
    (void)state;
    static const uint32_t domain[] = { 0, 1, 2, 3, 1 };
    for (unsigned before = 0; before < 3; before++) {
        world w = of(3);
        memcpy(w.domain, domain, sizeof domain);
        w.domains_set = true;
        w.scheme.shape.slots = 4;
        world_start(&w, 5, 1, 3, 2, 0, false);
        if (before) { /* known from an earlier job; it, or the other one of its domain */
            sherd__job_node_barred(w.job, before == 1 ? 1 : 4);
            world_part(&w, before == 1 ? 1 : 4, true, false);
        } else {
            world_settle(&w);
            world_answer(&w, 1, -1);
        }
        world_settle(&w);
        assert_int_equal(w.ends[before == 2 ? 1 : 4].asked, 0);
        world_work(&w, before ? NOBODY : 1);
        world_must_be_done(&w, SHERD_OK);
        assert_null(strstr(w.said, "takes over"));
        assert_int_equal(sherd__job_node_tasks(w.job, 1) + sherd__job_node_tasks(w.job, 4), 0);
        assert_int_equal(w.scheme.spared & 0xf, 1 << 1);
        world_stop(&w);
    }
}

static void no_share_is_made_for_a_domain_that_is_gone(void **state)
{
    (void)state;
    world w = of(2);
    world_start(&w, 4, 1, 3, 1, 0, false);
    world_settle(&w);
    assert_int_equal(w.scheme.spared & 0xf, 0);
    world_part(&w, 0, true, true); /* it may come back */
    world_part(&w, 2, true, false);
    world_answer(&w, 1, 0);
    world_answer(&w, 3, 0);
    world_settle(&w);
    assert_int_equal(w.scheme.spared & 0xf, 1 << 2);
    world_join(&w, 2); /* after all */
    world_settle(&w);
    world_answer(&w, 1, 0);
    world_answer(&w, 3, 0);
    world_settle(&w);
    assert_int_equal(w.scheme.spared & 0xf, 0);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void too_few_that_are_left_end_it_as_starved(void **state)
{
    (void)state;
    for (unsigned liar = 0; liar < 2; liar++) {
        world w = of(3);
        uint32_t alive;
        world_start(&w, 4, 1, 3, 2, 0, false);
        world_settle(&w);
        world_part(&w, 0, true, false);
        world_settle(&w);
        assert_false(world_is_done(&w));
        assert_false(sherd__job_starved(w.job, &alive));
        if (liar) {
            world_answer(&w, 1, -1);
            world_settle(&w);
        } else {
            world_part(&w, 1, true, false);
        }
        world_must_be_done(&w, SHERD_EFEWNODES);
        assert_true(sherd__job_starved(w.job, &alive));
        assert_int_equal(alive, 2);
        sherd__job_rest(w.job); /* who is there afterwards is another question */
        assert_true(sherd__job_starved(w.job, &alive));
        assert_int_equal(alive, 2);
        world_stop(&w);
    }
}

static void an_answer_that_is_in_counts_though_its_node_is_gone(void **state)
{
    (void)state;
    world w = of(3);
    world_start(&w, 3, 1, 1, 2, 0, false); /* all of three, one position */
    world_settle(&w);
    world_answer(&w, 0, 0);
    world_settle(&w);
    world_part(&w, 0, true, false);
    assert_false(world_is_done(&w));
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

/* The node's answer comes, and the executor has not looked at it yet. */
static void answer_comes(world *w, uint32_t i, double value)
{
    world_answer(w, i, value);
    while (world_move(w, i, false) > 0) {
    }
}

static void an_answer_that_is_being_judged_counts_though_its_node_is_gone(void **state)
{
    (void)state;
    world w = of(3);
    w.behind = true;
    world_start(&w, 3, 1, 1, 2, 0, false);
    world_settle(&w);
    answer_comes(&w, 0, 0);
    world_part(&w, 0, true, false);
    assert_false(world_is_done(&w));
    w.behind = false;
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void one_that_is_found_wrong_no_longer_counts(void **state)
{
    (void)state;
    world w = of(2);
    uint32_t alive;
    w.behind = true;
    world_start(&w, 3, 1, 2, 2, 0, false);
    world_settle(&w);
    answer_comes(&w, 1, 0);
    answer_comes(&w, 2, 0);  /* the first position is done without node 0 */
    answer_comes(&w, 0, -1); /* which lies about it, */
    answer_comes(&w, 0, -1); /* and about the second, for which it is needed: */
    world_part(&w, 1, true, false);
    assert_false(world_is_done(&w));
    world_settle(&w);
    world_must_be_done(&w, SHERD_EFEWNODES);
    assert_true(sherd__job_starved(w.job, &alive));
    assert_int_equal(alive, 1);
    world_stop(&w);
}

static void one_that_comes_back_is_given_its_own_share_again(void **state)
{
    (void)state;
    world w = of(4);
    world_start(&w, 4, 1, 2, 2, 0, false);
    world_settle(&w);
    world_part(&w, 3, true, true);
    world_work(&w, 3);
    assert_false(world_is_done(&w));
    world_join(&w, 3);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(sherd__job_node_tasks(w.job, 3), 2);
    world_stop(&w);
}

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

static void left_blocks_stay_over_runs_and_right_ones_go(void **state)
{
    (void)state;
    world w = of(3);
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
    world_part(&w, 1, false, true); /* a new session holds nothing */
    world_join(&w, 1);
    run_again(&w);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.lefts, 3 * 2 + 2);
    world_stop(&w);
}

/* More cells than task numbers: the job is of no more use, and lets go of what it has once. */
static void a_run_of_too_many_cells_is_refused(void **state)
{
    (void)state;
    world w = of(3);
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

/* Runs that take two of five panels: a block is made and put when a run first takes its panel. */
static void runs_of_some_panels_find_their_blocks(void **state)
{
    (void)state;
    static const struct {
        uint32_t from, panels, lefts, blocks; /* made, and put to one node, in all so far */
        bool anew;                            /* node 1 has a new session before it */
    } runs[] = {
        { 0, 2, 6, 2, false }, { 0, 2, 6, 2, false }, { 3, 2, 12, 4, false },
        { 1, 2, 15, 5, false }, { 0, 5, 15, 5, false }, { 3, 2, 17, 5, true },
        { 2, 3, 18, 5, false },
    };
    world w = of(3);
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
    w.scheme.shape.lefts = 6; /* no run may change what stays */
    sherd__job_rest(w.job);
    assert_int_equal(sherd__job_again(w.job), SHERD_EINVAL);
    world_stop(&w);
}

static void a_left_block_that_is_on_its_way_is_not_made_again(void **state)
{
    (void)state;
    world w = of(3);
    w.scheme.shape.left_stays = true;
    world_start(&w, 3, 3, 1, 3, 0, false); /* cells of three tiles begin at once, with one panel */
    world_settle(&w);
    assert_int_equal(asked(&w), 9);
    assert_int_equal(w.scheme.lefts, 3);
    assert_int_equal(w.ends[0].blocks, 1 + 3);
    world_part(&w, 2, true, true); /* what was on its way to it is lost */
    world_join(&w, 2);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(w.scheme.lefts, 4);
    world_stop(&w);
}

static void nothing_is_hidden_of_what_was_decoded_meanwhile(void **state)
{
    (void)state;
    world w = of(2);
    world_start(&w, 3, 1, 2, 1, 0, false);
    world_part(&w, 2, true, true);
    world_settle(&w);
    world_join(&w, 2);
    while (!w.ends[2].here || !sherd__session_ready(w.ends[2].here)) {
        (void)world_move(&w, 2, true);
        w.behind = true;
        (void)world_move(&w, 2, false);
    }
    for (uint32_t i = 0; i < 2; i++) {
        world_answer(&w, i, 0);
        while (world_move(&w, i, false)) {} /* to be judged, behind what else there is to do */
    }
    sherd__job_dispatch(w.job, w.now); /* the third one's comes after them */
    world_settle(&w);
    assert_int_equal(w.scheme.decoded[0], 1);
    assert_int_equal(w.scheme.hidden[2], 0);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

/* All nodes but the last one answer, 200 ms after they were asked; the time that it took until the
 * last one was told off, or 0. slow: how long that one takes over each, 0: for ever. */
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

static void a_spare_that_answers_nothing_is_told_off_and_the_job_goes_on(void **state)
{
    (void)state;
    world w = of(3);
    world_start(&w, 4, 1, 200, 2, 0, false);
    uint64_t took = work_with_a_spare(&w, 0);
    assert_int_equal(w.ends[3].expelled, SHERD_ESILENT);
    assert_in_range(took, 10000, 20000); /* 10 s and 30 times 200 ms, a second for the beginning */
    assert_non_null(strstr(w.said, "node-4 lost: it answers no task"));
    world_work(&w, 3);
    world_must_be_done(&w, SHERD_OK);
    sherd__job_stats stats;
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.lost, 1);
    world_stop(&w);
}

static void a_spare_that_is_merely_slow_stays(void **state)
{
    (void)state;
    world w = of(3);
    world_start(&w, 4, 1, 250, 2, 0, false);
    assert_int_equal(work_with_a_spare(&w, 3000), 0); /* never in time */
    world_must_be_done(&w, SHERD_OK);
    assert_int_equal(w.ends[3].expelled, 0);
    assert_int_equal(sherd__job_node_tasks(w.job, 3), 0);
    world_stop(&w);
}

static void silence_adds_up_over_short_runs(void **state)
{
    (void)state;
    world w = of(3);
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

/* Work goes on with all nodes but one, whose link carries nothing beyond `moves` offers. */
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

/* The next one frees and makes anew what sources read. */
static void no_source_of_a_product_outlives_it(void **state)
{
    (void)state;
    for (unsigned moves = 2; moves < 8; moves++) {
        world w = of(3);
        w.scheme.shape.left_stays = true;
        w.scheme.resident_rows = 100000;
        world_start(&w, 4, 2, 1, 2, 0, false);
        work_but_stalled(&w, 3, moves);
        world_must_be_done(&w, SHERD_OK);
        sherd__job_rest(w.job);
        assert_int_equal(w.scheme.live, 0);
        run_again(&w);
        world_work(&w, 0); /* without node 3, which still has a half of the first, nothing ends */
        world_must_be_done(&w, SHERD_OK);
        assert_int_equal(sherd__job_node_tasks(w.job, 3), 2);
        world_stop(&w);
    }
}

static void a_product_of_the_transposed_left_operand_says_so(void **state)
{
    (void)state;
    world w = of(2);
    w.scheme.shape.transposed = true;
    world_start(&w, 2, 1, 1, 2, 0, false);
    world_settle(&w);
    assert_int_equal(w.ends[0].tasks[0].op, SHERD__OP_MULTIPLY_T);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

/* Older nodes would skip what they do not know of a task: they are given none, and the others are
 * enough, or too few. */
static void nodes_that_take_no_windows_are_not_asked_for_any(void **state)
{
    (void)state;
    for (uint32_t older = 0; older < 3; older++) {
        world w = of(3);
        w.scheme.shape.windows = (sherd_windows){ 5, 4, 2, 3, 1, 1 };
        w.older = older;
        world_start(&w, 4, 1, 2, 2, 0, false);
        world_settle(&w);
        for (uint32_t i = 0; i < 4; i++) {
            if (i < older) assert_int_equal(w.ends[i].asked + w.ends[i].blocks, 0);
            for (size_t t = 0; t < w.ends[i].asked; t++)
                assert_memory_equal(&w.ends[i].tasks[t].windows, &w.scheme.shape.windows,
                                    sizeof w.scheme.shape.windows);
        }
        assert_int_equal(strstr(w.said, "takes no windows") != NULL, older > 0);
        world_work(&w, NOBODY);
        world_must_be_done(&w, older < 2 ? SHERD_OK : SHERD_EFEWNODES);
        world_stop(&w);
    }
}

static void a_slot_without_a_domain_is_no_job(void **state)
{
    (void)state;
    fake f = { .shape = { .slots = 3, .tiles = 1, .panels = 1, .threshold = 2 } };
    sherd__hiding h = { &fake_ops, &f };
    uint32_t domain[3] = { 0, 1, 1 };
    sherd__job_options o = { .hiding = &h, .nodes = 3, .domain = domain, .depth = 1 };
    sherd_job *j;
    assert_int_equal(sherd__job_new(&j, &o), SHERD_EINVAL);
    assert_null(j);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(any_answers_that_are_enough_finish_the_job),
        T(what_is_no_longer_needed_is_cancelled_at_once),
        T(nodes_run_ahead_by_the_window_and_no_further),
        T(a_late_answer_that_was_on_its_way_changes_nothing),
        T(a_share_stays_with_its_domain),
        T(another_node_of_the_domain_may_answer_for_it),
        T(a_domain_with_a_liar_is_given_nothing_more),
        T(no_share_is_made_for_a_domain_that_is_gone),
        T(too_few_that_are_left_end_it_as_starved),
        T(an_answer_that_is_in_counts_though_its_node_is_gone),
        T(an_answer_that_is_being_judged_counts_though_its_node_is_gone),
        T(one_that_is_found_wrong_no_longer_counts),
        T(one_that_comes_back_is_given_its_own_share_again),
        T(left_blocks_stay_over_runs_and_right_ones_go),
        T(a_run_of_too_many_cells_is_refused),
        T(runs_of_some_panels_find_their_blocks),
        T(a_left_block_that_is_on_its_way_is_not_made_again),
        T(nothing_is_hidden_of_what_was_decoded_meanwhile),
        T(a_spare_that_answers_nothing_is_told_off_and_the_job_goes_on),
        T(a_spare_that_is_merely_slow_stays),
        T(silence_adds_up_over_short_runs),
        T(no_source_of_a_product_outlives_it),
        T(a_product_of_the_transposed_left_operand_says_so),
        T(nodes_that_take_no_windows_are_not_asked_for_any),
        T(a_slot_without_a_domain_is_no_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
