/*
 * Secure aggregation with nodes that leave and return: a lost node is in the sums again after its
 * return, and no two sums with the same parameters are over different sets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/sim/scheduler/secure_world.h"
#include "tests/support/draw.h"

static void a_node_lost_at_any_moment_is_in_the_sums_again_after_its_return(void **s)
{
    (void)s;
    for (const uint32_t *op = secure_phases + ROUND; op < secure_phases + PHASES; op++)
        for (uint32_t at = 1; at <= 5; at++)
            for (unsigned during = 0; during < 2; during++) {
                world w;
                draw_state = 1000 * *op + 10 * at + during;
                secure_begin(&w, 7, 5, 2);
                secure_meet(&w);
                assert_int_equal(secure_ask(&w), 0);
                w.op = *op;
                w.at = at;
                w.seen = 0;
                w.lost[0] = at % 7;
                w.lost[1] = (at + 3) % 7;
                w.lost_len = 2;
                w.returns = during;
                assert_int_equal(secure_ask(&w), 0);
                secure_is_sum_of_uploads(&w);
                w.op = 0;
                for (unsigned i = 0; i < 2 && !during; i++) secure_connect(&w.node[w.lost[i]]);
                secure_settle(&w);
                assert_non_null(strstr(w.log, "is back, and takes part from the next sum on"));
                assert_int_equal(secure_ask(&w), 0);
                secure_is_sum_without(&w, NULL, 0);
                assert_int_equal(w.sum.a.nodes, 7);
                assert_int_equal(w.sum.a.threshold, 5);
                secure_end(&w);
            }
}

static void a_node_lost_between_two_sums_and_back_in_time_is_in_every_sum(void **s)
{
    (void)s;
    world w;
    draw_state = 21;
    secure_begin(&w, 5, 0, 1);
    secure_meet(&w);
    for (unsigned round = 0; round < 5; round++) {
        assert_int_equal(secure_ask(&w), 0);
        secure_is_sum_without(&w, NULL, 0);
        secure_cut(&w, round);
        if (round % 2) secure_settle(&w);
        secure_connect(&w.node[round]);
        secure_settle(&w);
    }
    assert_int_equal(w.keys_len, 5 * 5); /* the last one is back, and nothing was requested since */
    secure_end(&w);
}

static void a_node_that_was_absent_at_first_joins_later(void **s)
{
    (void)s;
    world w;
    draw_state = 22;
    secure_begin_some(&w, 5, 0, 1, 3, NULL);
    secure_meet(&w);
    assert_int_equal(w.a.nodes, 4);
    assert_int_equal(secure_ask(&w), 0);
    secure_is_sum_without(&w, (uint32_t[]){ 3 }, 1);
    assert_int_equal(w.sum.a.threshold, 3);
    secure_connect(&w.node[3]);
    secure_settle(&w);
    assert_non_null(strstr(w.log, "n3 has connected, and takes part from the next sum on"));
    assert_int_equal(secure_ask(&w), 0);
    secure_is_sum_without(&w, NULL, 0);
    assert_int_equal(w.sum.a.nodes, 5);
    assert_int_equal(w.sum.a.threshold, 4); /* more than (5 + 1) / 2 */
    secure_end(&w);
}

/* A roster of five needs four survivors; the first one needed three. Within a round it does not
 * shrink below four: any four of five and three of them might have no honest node in common. */
static void a_roster_that_has_grown_may_shrink_to_the_size_that_the_first_needed(void **s)
{
    (void)s;
    for (unsigned during = 0; during < 2; during++) {
        world w;
        int err = 0;
        draw_state = 26 + during;
        secure_begin_some(&w, 5, 0, 1, 3, NULL);
        secure_meet(&w);
        assert_int_equal(secure_ask(&w), 0);
        secure_connect(&w.node[3]);
        secure_settle(&w);
        assert_int_equal(secure_ask(&w), 0);
        assert_int_equal(w.sum.a.threshold, 4);
        w.op = during ? SHERD__OP_HIDE : 0;
        w.at = 1;
        w.seen = 0;
        w.lost[0] = 2;
        w.lost[1] = 4;
        w.lost_len = 2;
        w.banned = true; /* the coordinator does not wait for them */
        for (unsigned i = 0; i < 2 && !during; i++) secure_cut(&w, w.lost[i]);
        assert_int_equal(secure_ask(&w), during ? SHERD_EFEWNODES : 0);
        if (during) {
            secure_end(&w);
            continue;
        }
        secure_is_sum_without(&w, (uint32_t[]){ 2, 4 }, 2);
        assert_int_equal(w.sum.a.nodes, 3);
        assert_int_equal(w.sum.a.threshold, 3);
        secure_cut(&w, 0);
        secure_begin_ask(&w);
        secure_settle(&w);
        secure_pass(&w);
        assert_true(sherd__secure_job_work(w.job).ops->done(w.job, &err, NULL));
        assert_int_equal(err, SHERD_EFEWNODES);
        secure_end(&w);
    }
}

/* Its data do not fit, or others do not accept it: the training of the existing members
 * continues. */
static void a_node_that_cannot_join_does_not_stop_the_others(void **s)
{
    (void)s;
    for (unsigned unbelieved = 0; unbelieved < 2; unbelieved++) {
        world w;
        sherd__peers peers = { 0 };
        char lines[2000] = "";
        draw_state = 23 + unbelieved;
        secure_begin_some(&w, 5, 0, 1, 4, &peers);
        for (uint32_t i = 0; i < 5 - unbelieved; i++) {
            char key[SHERD__FINGERPRINT_TEXT];
            sherd__fingerprint_text(sherd__identity_fingerprint(w.node[i].identity), key);
            sprintf(lines + strlen(lines), "127.0.0.1:700%u key=%s\n", i, key);
        }
        assert_int_equal(sherd__peers_parse(&peers, lines, strlen(lines), "peers", NULL), 0);
        if (!unbelieved) w.node[4].own.x.cols--;
        secure_meet(&w);
        assert_int_equal(secure_ask(&w), 0);
        secure_connect(&w.node[4]);
        secure_settle(&w);
        assert_int_equal(secure_ask(&w), 0);
        secure_is_sum_without(&w, (uint32_t[]){ 4 }, 1);
        assert_non_null(strstr(w.log, unbelieved ? "n4 does not take part in the training: "
                                                   "not all members accept it"
                                                 : "n4: the examples have other columns than"));
        assert_int_equal(secure_ask(&w), 0);
        assert_int_equal(w.sum.a.nodes, 4);
        secure_end(&w);
        sherd__peers_fini(&peers);
    }
}

/* Three of seven are lost, five must remain: a sum that no node was asked to open is started again
 * with those that return, and the coordinator does not wait if none will. */
static void a_sum_waits_for_nodes_that_may_return_at_once(void **s)
{
    (void)s;
    for (uint32_t op = SHERD__OP_SEAL; op <= SHERD__OP_HIDE; op++)
        for (unsigned back = 0; back < 2; back++) {
            const uint64_t *answers[NODES] = { NULL };
            world w;
            int err;
            draw_state = 30 + op;
            secure_begin(&w, 7, 5, 2);
            secure_meet(&w);
            w.op = op;
            w.at = 2;
            for (uint32_t i = 0; i < 3; i++) w.lost[i] = i + 2;
            w.lost_len = 3;
            w.back = true;
            secure_begin_ask(&w);
            secure_settle(&w);
            const sherd__work_ops *job = sherd__secure_job_work(w.job).ops;
            assert_false(job->done(w.job, &err, NULL));
            assert_false(sherd__secure_job_answered(w.job));
            w.op = 0;
            secure_give_up(&w, 2);
            secure_give_up(&w, 3);
            assert_false(job->done(w.job, &err, NULL));
            if (!back) {
                secure_give_up(&w, 4);
                assert_true(job->done(w.job, &err, NULL));
                assert_int_equal(err, SHERD_EFEWNODES);
                secure_end(&w);
                continue;
            }
            secure_connect(&w.node[4]);
            secure_settle(&w);
            assert_true(sherd__secure_job_answered(w.job));
            assert_int_equal(w.sum.in, 5);
            assert_int_equal(w.sum.a.nodes, 5);
            assert_int_equal(w.sum.a.threshold, 5); /* no fewer than at first */
            for (uint32_t i = 0; i < 5; i++)
                answers[i] = w.sum.answers + i * sherd__aggregate_piece_len(&w.sum.a);
            assert_int_equal(sherd__aggregate_reveal(&w.sum.a, w.sum.uploads, w.sum.who, answers,
                                                     w.out, NULL),
                             0);
            secure_is_sum_without(&w, (uint32_t[]){ 2, 3 }, 2);
            secure_end(&w);
        }
}

/* Node 6 is lost before its pieces; then `lost` of the others after two have answered, so that
 * fewer than five remain. */
static void begin_unopened(world *w, uint32_t lost)
{
    secure_begin(w, 7, 5, 2);
    secure_meet(w);
    assert_int_equal(secure_ask(w), 0);
    w->op = SHERD__OP_SEAL;
    w->at = 1;
    w->seen = 0;
    w->lost[0] = 6;
    w->lost_len = 1;
    w->then[0] = (struct befallen){ SHERD__OP_OPEN, 2, { 5, 4, 3 }, lost };
    w->back = true;
    secure_begin_ask(w);
    secure_settle(w);
}

static bool is_over(world *w, int *err)
{
    return sherd__secure_job_work(w->job).ops->done(w->job, err, NULL);
}

/* Two sums with the same parameters over different sets would differ by single gradients. */
static void a_sum_that_was_not_opened_is_requested_again_from_the_same_nodes(void **s)
{
    (void)s;
    for (uint32_t lost = 2; lost <= 3; lost++) {
        world w;
        int err = 0;
        draw_state = 40 + lost;
        begin_unopened(&w, lost);
        assert_false(is_over(&w, &err) || sherd__secure_job_answered(w.job));
        assert_non_null(strstr(w.log, "requested again when all its 6 nodes are up"));
        size_t keys = w.keys_len;
        secure_connect(&w.node[6]); /* enough are up, but they are others */
        secure_settle(&w);
        assert_false(is_over(&w, &err) || sherd__secure_job_answered(w.job));
        assert_int_equal(w.keys_len, keys);
        for (uint32_t i = 0; i < lost; i++) secure_connect(&w.node[5 - i]);
        secure_settle(&w);
        assert_int_equal(secure_take(&w), 0);
        secure_is_sum_without(&w, (uint32_t[]){ 6 }, 1);
        assert_int_equal(w.keys_len, keys + 6); /* in a roster of their own */
        assert_int_equal(secure_ask(&w), 0);
        secure_is_sum_without(&w, NULL, 0);
        assert_int_equal(w.sum.a.nodes, 7);
        secure_end(&w);
    }
}

static void without_one_of_its_nodes_a_sum_that_was_not_opened_ends_the_training(void **s)
{
    (void)s;
    for (unsigned others = 0; others < 2; others++) {
        world w;
        sherd_diag d = { 0 };
        int err = 0;
        draw_state = 44 + others;
        begin_unopened(&w, 2);
        if (others) secure_connect(&w.node[6]); /* then five are up */
        secure_settle(&w);
        secure_connect(&w.node[4]);
        secure_settle(&w);
        assert_false(is_over(&w, &err) || sherd__secure_job_answered(w.job));
        secure_give_up(&w, 5);
        secure_settle(&w);
        assert_true(sherd__secure_job_work(w.job).ops->done(w.job, &err, &d));
        assert_int_equal(err, SHERD_EFEWNODES);
        assert_non_null(strstr(d.message, "a sum over 6 nodes was not opened"));
        assert_non_null(strstr(d.hint, "--resume"));
        secure_end(&w);
    }
}

/* It is bound to six nodes, and all six have uploaded: five open it. */
static void a_node_that_has_uploaded_to_the_repeated_sum_may_be_gone_for_good(void **s)
{
    (void)s;
    world w;
    draw_state = 46;
    begin_unopened(&w, 2);
    w.op = SHERD__OP_HIDE;
    w.at = 1;
    w.seen = 0;
    w.lost[0] = 0; /* the first that uploads */
    w.lost_len = 1;
    w.banned = true;
    for (uint32_t i = 4; i <= 5; i++) secure_connect(&w.node[i]);
    secure_settle(&w);
    assert_false(w.node[0].up);
    assert_true(w.node[0].hidden);
    assert_int_equal(secure_take(&w), 0);
    secure_is_sum_without(&w, (uint32_t[]){ 6 }, 1);
    secure_end(&w);
}

/* A node may be lost again, in any phase of the repetition. */
static void a_repeated_sum_may_be_repeated_again(void **s)
{
    (void)s;
    for (const uint32_t *op = secure_phases; op < secure_phases + PHASES; op++)
        for (uint32_t at = 1; at <= 6; at += 2) {
            world w;
            draw_state = 50 + 10 * *op + at;
            begin_unopened(&w, 2);
            w.op = *op;
            w.at = at;
            w.seen = 0;
            w.lost[0] = (at + 1) % 6;
            w.lost[1] = (at + 3) % 6;
            w.lost_len = 2;
            for (uint32_t i = 4; i <= 6; i++) secure_connect(&w.node[i]);
            for (unsigned go = 0; go < 6 && !sherd__secure_job_answered(w.job); go++) {
                secure_settle(&w);
                for (uint32_t i = 0; i < 6; i++)
                    if (!w.node[i].up) secure_connect(&w.node[i]);
            }
            assert_int_equal(secure_take(&w), 0);
            secure_is_sum_without(&w, (uint32_t[]){ 6 }, 1);
            secure_end(&w);
        }
}

/* One of two members is faulty, and it is undecidable which: repeating would not help. */
static void a_sum_from_which_no_node_was_lost_is_not_repeated(void **s)
{
    (void)s;
    for (unsigned checks = 0; checks < 2; checks++) {
        world w;
        draw_state = 45;
        secure_begin(&w, 3, 0, 1);
        for (uint32_t i = 0; i < 3 && !checks; i++) secure_unchecking(&w.node[i]);
        secure_meet(&w);
        w.spoil = 1 << 1;
        assert_int_equal(secure_ask(&w), SHERD_EFEWNODES);
        assert_non_null(strstr(w.log, checks ? "n1 cannot open what n0 sealed for it"
                                             : "n1: malformed record: its answer is missing"));
        secure_end(&w);
    }
}

/* Every lost node returns sooner or later, so no training ends. */
static void sums_equal_those_of_the_uploads_whichever_nodes_come_and_go(void **s)
{
    (void)s;
    unsigned sums = 0, again = 0, rosters = 0;
    for (unsigned seed = 0; seed < 60; seed++) {
        world w;
        int err = 0;
        draw_state = 5000 + seed;
        secure_begin(&w, 3 + seed % 5, 0, 1);
        secure_meet(&w);
        w.back = true;
        w.often = 18 + seed % 40 + seed / 40 * 14; /* so that no node is lost five times in one
                                                    * sum */
        for (unsigned round = 0; round < 9 && !err; round++) {
            for (size_t k = 0; k < COUNT; k++) w.params->values[k] *= 0.97;
            const sherd__work_ops *job = sherd__secure_job_work(w.job).ops;
            secure_begin_ask(&w);
            for (unsigned go = 0;
                 go < 200 && !sherd__secure_job_answered(w.job) && !job->done(w.job, &err, NULL);
                 go++) {
                secure_settle(&w); /* it waits for a node to return */
                for (uint32_t i = 0; i < w.count; i++)
                    if (!w.node[i].up && !w.node[i].expelled) secure_connect(&w.node[i]);
            }
            assert_false(job->done(w.job, &err, NULL));
            assert_true(sherd__secure_job_answered(w.job));
            assert_true(w.sum.in >= w.a.threshold);
            const uint64_t *answers[NODES];
            for (uint32_t i = 0; i < w.sum.a.threshold; i++)
                answers[i] = w.sum.answers + i * sherd__aggregate_piece_len(&w.sum.a);
            assert_int_equal(sherd__aggregate_reveal(&w.sum.a, w.sum.uploads, w.sum.who, answers,
                                                     w.out, NULL),
                             0);
            secure_is_sum_of_uploads(&w);
            sums++;
        }
        rosters += w.keys_len > w.count;
        again += strstr(w.log, "requested again") != NULL;
        secure_end(&w);
    }
    assert_true(sums == 9 * 60 && again > 10 && rosters > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_lost_at_any_moment_is_in_the_sums_again_after_its_return),
        cmocka_unit_test(a_node_lost_between_two_sums_and_back_in_time_is_in_every_sum),
        cmocka_unit_test(a_node_that_was_absent_at_first_joins_later),
        cmocka_unit_test(a_roster_that_has_grown_may_shrink_to_the_size_that_the_first_needed),
        cmocka_unit_test(a_node_that_cannot_join_does_not_stop_the_others),
        cmocka_unit_test(a_sum_waits_for_nodes_that_may_return_at_once),
        cmocka_unit_test(a_sum_that_was_not_opened_is_requested_again_from_the_same_nodes),
        cmocka_unit_test(without_one_of_its_nodes_a_sum_that_was_not_opened_ends_the_training),
        cmocka_unit_test(a_node_that_has_uploaded_to_the_repeated_sum_may_be_gone_for_good),
        cmocka_unit_test(a_repeated_sum_may_be_repeated_again),
        cmocka_unit_test(a_sum_from_which_no_node_was_lost_is_not_repeated),
        cmocka_unit_test(sums_equal_those_of_the_uploads_whichever_nodes_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
