/* The job's state machine, with schemes in which some answers are enough (job_world.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "scheduler/job/internal.h"
#include "tests/unit/scheduler/job_world.h"

static void any_sufficient_set_of_answers_completes_the_job(void **state)
{
    (void)state;
    for (uint32_t silent = 0; silent < 5; silent++) {
        world w = world_of(4);
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

static void tasks_that_are_no_longer_needed_are_cancelled_at_once(void **state)
{
    (void)state;
    world w = world_of(3);
    world_start(&w, 5, 1, 4, 2, 0, false);
    world_settle(&w);
    assert_int_equal(world_asked(&w), 5 * 2);
    for (uint32_t i = 0; i < 3; i++) world_answer(&w, i, 0);
    world_settle(&w);
    assert_int_equal(w.scheme.decoded[0], 1);
    for (uint32_t i = 3; i < 5; i++) /* cancelled, and given the next task instead */
        for (size_t t = 0; t < w.ends[i].asked; t++)
            assert_true((w.ends[i].tasks[t].task - 1) / 5 != 0);
    sherd__job_stats stats;
    sherd__job_count(w.job, &stats);
    assert_int_equal(stats.cancelled, 2);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void nodes_are_ahead_by_at_most_the_window(void **state)
{
    (void)state;
    world w = world_of(3);
    world_start(&w, 4, 1, 8, 3, 0, false);
    world_settle(&w);
    for (unsigned i = 0; i < 3; i++) world_answer(&w, 0, 0); /* a fast node among slow ones */
    world_settle(&w);
    assert_int_equal(w.ends[0].asked, 0);
    assert_int_equal(world_asked(&w), 3 * 3);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void a_late_answer_that_was_already_sent_has_no_effect(void **state)
{
    (void)state;
    world w = world_of(2);
    w.behind = true; /* several answers arrive before one is judged */
    world_start(&w, 4, 1, 2, 2, 0, false);
    world_settle(&w);
    for (uint32_t i = 0; i < 4; i++)
        world_answer(&w, i, i == 3 ? -1 : 0); /* a wrong one among them */
    world_settle(&w);
    assert_int_equal(w.ends[3].expelled, SHERD_EWRONG);
    world_work(&w, 3);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void a_share_stays_with_its_domain(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) { /* also before any node has a share, and with seeds */
        world w = world_of(3);
        w.scheme.seeds = i / 2;
        world_start(&w, 4, 1, 3, 2, 0, false);
        if (i % 2) world_settle(&w);
        world_part(&w, 0, true, false); /* gone for good: no other node takes over */
        world_settle(&w);
        for (uint32_t s = 1; s < 4; s++)
            for (size_t t = 0; t < w.ends[s].asked; t++)
                assert_int_equal((w.ends[s].tasks[t].task - 1) % 4, s);
        world_work(&w, NOBODY);
        world_must_be_done(&w, SHERD_OK);
        assert_null(strstr(w.said, "takes over"));
        for (uint32_t s = 0; s < 4; s++)
            assert_int_equal(sherd__job_node_tasks(w.job, s), s == 0 ? 0 : 3);
        world_stop(&w);
    }
}

static void another_node_of_the_domain_may_answer_instead(void **state)
{
    (void)state;
    world w = world_of(3);
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

/* A domain that cooperates with a liar gets no share, in this job or a later one. */
static void a_domain_with_a_liar_gets_nothing_more(void **state)
{
    (void)state;
    static const uint32_t domain[] = { 0, 1, 2, 3, 1 };
    for (unsigned before = 0; before < 3; before++) {
        world w = world_of(3);
        memcpy(w.domain, domain, sizeof domain);
        w.domains_set = true;
        w.scheme.shape.slots = 4;
        world_start(&w, 5, 1, 3, 2, 0, false);
        if (before) { /* known from an earlier job: the same node, or the other one of its domain */
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

static void no_share_is_made_for_a_domain_that_has_left(void **state)
{
    (void)state;
    world w = world_of(2);
    world_start(&w, 4, 1, 3, 1, 0, false);
    world_settle(&w);
    assert_int_equal(w.scheme.spared & 0xf, 0);
    world_part(&w, 0, true, true); /* it may come back */
    world_part(&w, 2, true, false);
    world_answer(&w, 1, 0);
    world_answer(&w, 3, 0);
    world_settle(&w);
    assert_int_equal(w.scheme.spared & 0xf, 1 << 2);
    world_join(&w, 2); /* it does come back */
    world_settle(&w);
    world_answer(&w, 1, 0);
    world_answer(&w, 3, 0);
    world_settle(&w);
    assert_int_equal(w.scheme.spared & 0xf, 0);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void too_few_remaining_domains_end_the_job_as_starved(void **state)
{
    (void)state;
    for (unsigned liar = 0; liar < 2; liar++) {
        world w = world_of(3);
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
        sherd__job_rest(w.job); /* nodes that come later are a separate question */
        assert_true(sherd__job_starved(w.job, &alive));
        assert_int_equal(alive, 2);
        world_stop(&w);
    }
}

static void a_received_answer_counts_even_if_its_node_has_left(void **state)
{
    (void)state;
    world w = world_of(3);
    world_start(&w, 3, 1, 1, 2, 0, false); /* all three are needed, one position */
    world_settle(&w);
    world_answer(&w, 0, 0);
    world_settle(&w);
    world_part(&w, 0, true, false);
    assert_false(world_is_done(&w));
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

/* The node's answer arrives, and the executor has not judged it yet. */
static void answer_comes(world *w, uint32_t i, double value)
{
    world_answer(w, i, value);
    while (world_move(w, i, false) > 0) {}
}

static void an_answer_that_is_being_judged_counts_even_if_its_node_has_left(void **state)
{
    (void)state;
    world w = world_of(3);
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

static void an_answer_that_is_found_wrong_no_longer_counts(void **state)
{
    (void)state;
    world w = world_of(2);
    uint32_t alive;
    w.behind = true;
    world_start(&w, 3, 1, 2, 2, 0, false);
    world_settle(&w);
    answer_comes(&w, 1, 0);
    answer_comes(&w, 2, 0);  /* the first position is done without node 0 */
    answer_comes(&w, 0, -1); /* whose answer to it is wrong, */
    answer_comes(&w, 0, -1); /* and the answer to the second one, too, for which it is needed: */
    world_part(&w, 1, true, false);
    assert_false(world_is_done(&w));
    world_settle(&w);
    world_must_be_done(&w, SHERD_EFEWNODES);
    assert_true(sherd__job_starved(w.job, &alive));
    assert_int_equal(alive, 1);
    world_stop(&w);
}

static void a_returning_node_gets_its_own_share_again(void **state)
{
    (void)state;
    world w = world_of(4);
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

static void cells_of_a_position_decoded_meanwhile_are_not_hidden(void **state)
{
    (void)state;
    world w = world_of(2);
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
        while (world_move(&w, i, false)) {} /* to be judged after the other work of the executor */
    }
    sherd__job_dispatch(w.job, w.now); /* the hiding for the third node is queued after them */
    world_settle(&w);
    assert_int_equal(w.scheme.decoded[0], 1);
    assert_int_equal(w.scheme.hidden[2], 0);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

static void a_product_of_the_transposed_left_operand_has_its_own_operation(void **state)
{
    (void)state;
    world w = world_of(2);
    w.scheme.shape.transposed = true;
    world_start(&w, 2, 1, 1, 2, 0, false);
    world_settle(&w);
    assert_int_equal(w.ends[0].tasks[0].op, SHERD__OP_MULTIPLY_T);
    world_work(&w, NOBODY);
    world_must_be_done(&w, SHERD_OK);
    world_stop(&w);
}

/* Older nodes would ignore the unknown part of such a task. They get none, and the other nodes are
 * enough, or too few. */
static void nodes_that_do_not_support_windows_get_no_such_tasks(void **state)
{
    (void)state;
    for (uint32_t older = 0; older < 3; older++) {
        world w = world_of(3);
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
        assert_int_equal(strstr(w.said, "does not support windows") != NULL, older > 0);
        world_work(&w, NOBODY);
        world_must_be_done(&w, older < 2 ? SHERD_OK : SHERD_EFEWNODES);
        world_stop(&w);
    }
}

/* The shares that they are sent instead are those of the seeds (unit/crypto/test_seeded). */
static void nodes_that_do_not_expand_seeds_get_shares(void **state)
{
    (void)state;
    for (int stays = 0; stays < 2; stays++) {
        world w = world_of(3);
        w.scheme.seeds = true;
        w.scheme.shape.left_stays = stays;
        w.older = 2;
        world_start(&w, 4, 1, 2, 2, 0, false);
        world_settle(&w);
        for (uint32_t i = 0; i < 4; i++) {
            assert_true(w.ends[i].blocks >= 2);
            assert_int_equal(w.ends[i].seeds, i < 2 ? 0 : w.ends[i].blocks);
        }
        world_work(&w, NOBODY);
        world_must_be_done(&w, SHERD_OK);
        world_stop(&w);
    }
}

static void nodes_without_a_device_for_the_work_are_not_asked_for_any(void **state)
{
    (void)state;
    static const struct {
        uint32_t needs, does[2];
        const char *said;
    } cases[] = {
        { SHERD__DOES_RESIDUES, { SHERD__DOES_F64, SHERD__DOES_MAPS }, "modulo primes" },
        { SHERD__DOES_RESIDUES, { SHERD__DOES_F64, SHERD__DOES_RESIDUES }, NULL },
        { SHERD__DOES_MAPS, { SHERD__DOES_F64, 0 }, "does not compute element-wise operations" },
        { SHERD__DOES_F64, { SHERD__DOES_RESIDUES, 1u << 31 }, "compute products in float64" },
        { 0, { 0, 0 }, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t other = 0; other < 3; other++) {
            world w = world_of(3);
            w.needs = cases[i].needs;
            w.other = other;
            memcpy(w.does, cases[i].does, sizeof w.does);
            world_start(&w, 4, 1, 2, 2, 0, false);
            world_settle(&w);
            bool lost = other > 0 && cases[i].said;
            for (uint32_t k = 0; k < other && lost; k++)
                assert_int_equal(w.ends[k].asked + w.ends[k].blocks, 0);
            if (lost) assert_non_null(strstr(w.said, cases[i].said));
            world_work(&w, NOBODY);
            world_must_be_done(&w, lost && other == 2 ? SHERD_EFEWNODES : SHERD_OK);
            if (!lost) assert_null(strstr(w.said, "does not compute"));
            world_stop(&w);
        }
}

static void a_slot_without_a_domain_is_refused(void **state)
{
    (void)state;
    fake f = { .shape = { .slots = 3, .tiles = 1, .panels = 1, .threshold = 2 } };
    sherd__hiding h = { &fake_ops, &f };
    uint32_t domain[3] = { 0, 1, 1 };
    sherd__job_options o = { .hiding = &h, .nodes = 3, .domain = domain, .depth = 1 };
    sherd__job *j;
    assert_int_equal(sherd__job_new(&j, &o), SHERD_EINVAL);
    assert_null(j);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(any_sufficient_set_of_answers_completes_the_job),
        T(tasks_that_are_no_longer_needed_are_cancelled_at_once),
        T(nodes_are_ahead_by_at_most_the_window),
        T(a_late_answer_that_was_already_sent_has_no_effect),
        T(a_share_stays_with_its_domain),
        T(another_node_of_the_domain_may_answer_instead),
        T(a_domain_with_a_liar_gets_nothing_more),
        T(no_share_is_made_for_a_domain_that_has_left),
        T(too_few_remaining_domains_end_the_job_as_starved),
        T(a_received_answer_counts_even_if_its_node_has_left),
        T(an_answer_that_is_being_judged_counts_even_if_its_node_has_left),
        T(an_answer_that_is_found_wrong_no_longer_counts),
        T(a_returning_node_gets_its_own_share_again),
        T(cells_of_a_position_decoded_meanwhile_are_not_hidden),
        T(a_product_of_the_transposed_left_operand_has_its_own_operation),
        T(nodes_that_do_not_support_windows_get_no_such_tasks),
        T(nodes_that_do_not_expand_seeds_get_shares),
        T(nodes_without_a_device_for_the_work_are_not_asked_for_any),
        T(a_slot_without_a_domain_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
