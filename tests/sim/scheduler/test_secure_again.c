/*
 * Secure aggregation that is repeated: by a coordinator that was killed and continues from a
 * checkpoint, with other nodes; with nodes that disconnect again and again before a sum is opened;
 * with a node that takes long to return. No two sums of one step may be opened over different sets,
 * and every training ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/scheduler/secure_world.h"
#include "tests/support/draw.h"

static char folder[] = "/tmp/sherd-sums-XXXXXX";

static int make_folder(void **s)
{
    (void)s;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **s)
{
    char path[64];
    (void)s;
    snprintf(path, sizeof path, "%s/sums", folder);
    unlink(path);
    return rmdir(folder);
}

static bool is_over(world *w, int *err, sherd_diag *d)
{
    return sherd__secure_job_work(w->job).ops->done(w->job, err, d);
}

/* ---- a coordinator that continues from a checkpoint ------------------------------------------ */

/* Sets the parameters of a step, as the updates before it have made them. */
static void go_to(world *w, uint64_t step)
{
    w->step = step;
    for (size_t k = 0; k < COUNT; k++)
        w->params->values[k] = (double)((k * 37 + step * 11) % 101) / 200 - 0.25;
}

/* Runs steps until the coordinator is killed, or ends for lack of nodes; returns the step
 * reached. */
static uint64_t run(world *w, uint64_t at)
{
    int err = 0;
    secure_settle(w);
    for (; at < STEPS && !w->killed && !is_over(w, &err, NULL); at++) {
        go_to(w, at);
        secure_begin_ask(w);
        for (unsigned go = 0;
             go < 9 && !w->killed && !is_over(w, &err, NULL) && !sherd__secure_job_answered(w->job);
             go++) {
            secure_settle(w);
            if (!w->killed) secure_pass(w);
        }
        if (w->killed || is_over(w, &err, NULL)) break;
        assert_int_equal(secure_take(w), 0);
        secure_is_sum_of_uploads(w);
    }
    return at;
}

/* Coordinators are killed at any moment, and end if too few nodes remain; the next one continues
 * from a checkpoint some steps earlier, with other nodes. The world checks that no step was to be
 * opened over two sets. */
static void no_step_is_opened_over_two_sets_by_any_series_of_coordinators(void **s)
{
    (void)s;
    unsigned again = 0, refused = 0, killed = 0;
    for (unsigned seed = 0; seed < 12; seed++) {
        world w;
        sherd__sumlist *sums;
        uint64_t at = 0;
        draw_state = 9000 + seed;
        assert_int_equal(sherd__sumlist_open(&sums, folder, true, NULL), 0);
        secure_begin(&w, 4 + seed % 4, 0, 1);
        w.stepped = true;
        for (unsigned life = 0; life < 8; life++) {
            uint64_t back = draw() % 3, checkpoint = at > back ? at - back : 0;
            uint32_t up = (1u << w.count) - 1;
            for (uint32_t i = 0; i < w.count; i++) up &= ~((uint32_t)(draw() % 4 == 0) << i);
            int err = 0;
            secure_end_job(&w);
            secure_begin_again(&w, sums, up);
            w.life = 13 + (uint32_t)(draw() % 80);
            w.often = 20 + (uint32_t)(draw() % 40);
            bool opened = w.opened_of[checkpoint];
            at = run(&w, checkpoint);
            again += opened && at > checkpoint;
            killed += w.killed;
            refused += opened && !w.killed && is_over(&w, &err, NULL) && at == checkpoint;
            sherd__sumlist_close(sums);
            assert_int_equal(sherd__sumlist_open(&sums, folder, false, NULL), 0);
        }
        secure_end(&w);
        sherd__sumlist_close(sums);
    }
    assert_true(again > 10 && refused > 5 && killed > 20);
}

/* Node 3 has uploaded to the repeated step, and is absent; or no line of the node file has its
 * key. */
static void a_repeated_step_names_the_missing_node(void **s)
{
    (void)s;
    for (unsigned stranger = 0; stranger < 2; stranger++) {
        world w;
        sherd__sumlist *sums;
        sherd_identity *other;
        sherd_diag d = { 0 };
        int err = 0;
        draw_state = 61;
        assert_int_equal(sherd__sumlist_open(&sums, folder, true, NULL), 0);
        secure_begin(&w, 5, 0, 1);
        w.stepped = true;
        secure_end_job(&w);
        secure_begin_again(&w, sums, 31);
        secure_meet(&w);
        assert_int_equal(secure_ask(&w), 0);
        secure_end_job(&w);
        assert_int_equal(sherd_identity_new(&other, NULL), 0);
        sherd_identity *own = w.node[3].identity;
        if (stranger) w.node[3].identity = other;
        secure_begin_again(&w, sums, stranger ? 31 : 31 - 8);
        secure_settle(&w);
        secure_begin_ask(&w);
        secure_settle(&w);
        assert_true(is_over(&w, &err, &d));
        assert_int_equal(err, SHERD_EFEWNODES);
        char key[SHERD__FINGERPRINT_TEXT];
        sherd__fingerprint_text(sherd__identity_fingerprint(own), key);
        assert_non_null(strstr(d.message, stranger ? key : "missing: n3"));
        w.node[3].identity = own;
        sherd_identity_free(other);
        secure_end(&w);
        sherd__sumlist_close(sums);
    }
}

/* A sum over three nodes, in a training that five have joined since: the same three open it. */
static void a_repeated_step_leaves_out_nodes_that_joined_later(void **s)
{
    (void)s;
    world w;
    sherd__sumlist *sums;
    draw_state = 62;
    assert_int_equal(sherd__sumlist_open(&sums, folder, true, NULL), 0);
    secure_begin(&w, 5, 0, 1);
    w.stepped = true;
    secure_end_job(&w);
    secure_begin_again(&w, sums, 7);
    secure_meet(&w);
    assert_int_equal(secure_ask(&w), 0);
    assert_int_equal(w.sum.a.threshold, 3);
    secure_end_job(&w);
    secure_begin_again(&w, sums, 31);
    secure_meet(&w);
    assert_int_equal(w.a.threshold, 4);
    assert_int_equal(secure_ask(&w), 0);
    secure_is_sum_without(&w, (uint32_t[]){ 3, 4 }, 2);
    assert_int_equal(w.sum.a.threshold, 3);
    w.step++;
    assert_int_equal(secure_ask(&w), 0);
    secure_is_sum_without(&w, NULL, 0);
    assert_int_equal(w.sum.a.threshold, 4);
    secure_end(&w);
    sherd__sumlist_close(sums);
}

/* No node was asked to open it and nothing was recorded, so it is repeated over other nodes. The
 * remaining nodes that have signed are too few; late signatures of others belong to no round any
 * more. */
static void a_sum_lost_during_confirmation_is_repeated_over_the_present_nodes(void **s)
{
    (void)s;
    world w;
    sherd__sumlist *sums;
    int err = 0;
    draw_state = 63;
    assert_int_equal(sherd__sumlist_open(&sums, folder, true, NULL), 0);
    secure_begin(&w, 7, 5, 2);
    w.stepped = true;
    secure_end_job(&w);
    secure_begin_again(&w, sums, 127);
    secure_meet(&w);
    w.op = SHERD__OP_CONFIRM;
    w.at = 3; /* of nodes 0 to 2; with 3 and 4 there would be five, and four remain */
    for (uint32_t i = 0; i < 3; i++) w.lost[i] = i;
    w.lost_len = 3;
    w.back = true;
    secure_begin_ask(&w);
    secure_settle(&w);
    assert_false(is_over(&w, &err, NULL) || sherd__secure_job_answered(w.job));
    assert_false(sherd__sumlist_find(sums, w.step).opened);
    secure_connect(&w.node[0]);
    secure_connect(&w.node[2]);
    secure_settle(&w);
    assert_int_equal(secure_take(&w), 0);
    secure_is_sum_without(&w, (uint32_t[]){ 1 }, 1);
    assert_true(sherd__sumlist_find(sums, w.step).opened);
    assert_int_equal(sherd__sumlist_find(sums, w.step).len, 6);
    for (uint32_t i = 0; i < 7; i++) assert_false(w.node[i].expelled);
    secure_end(&w);
    sherd__sumlist_close(sums);
}

/* ---- repetitions that must end --------------------------------------------------------------- */

static void a_node_that_disconnects_with_every_answer_is_left_out(void **s)
{
    (void)s;
    for (const uint32_t *op = secure_phases; op < secure_phases + PHASES; op++) {
        world w;
        draw_state = 70 + *op;
        secure_begin(&w, 7, 5, 2);
        w.stepped = true;
        secure_meet(&w);
        w.back = true;
        w.flaps = 1 << 2 | 1 << 4;
        w.flap_op = *op;
        secure_cut(&w, 2); /* so that a new roster is made */
        secure_connect(&w.node[2]);
        for (unsigned round = 0; round < 9; round++) {
            assert_int_equal(secure_ask(&w), 0);
            secure_is_sum_of_uploads(&w);
        }
        secure_end(&w);
    }
}

/* They upload, and disconnect before the sum is opened: too few remain each time, and the same sum
 * is requested. */
static void a_sum_that_is_never_opened_ends_the_training(void **s)
{
    (void)s;
    for (const uint32_t *op = secure_phases + ROUND; *op != SHERD__OP_OPEN; op++) {
        world w;
        sherd_diag d = { 0 };
        int err = 0;
        draw_state = 80 + *op;
        secure_begin(&w, 7, 5, 2);
        w.stepped = true;
        secure_meet(&w);
        w.back = true;
        w.flaps = 7;
        w.flap_op = *op;
        secure_begin_ask(&w);
        secure_settle(&w);
        assert_true(is_over(&w, &err, &d));
        assert_int_equal(err, SHERD_EFEWNODES);
        assert_non_null(strstr(w.log, "n1 no longer takes part in the training: it was lost 5 "
                                      "times before a sum was opened"));
        assert_true(w.seen < 1000);
        secure_end(&w);
    }
}

/* The immediate attempts to reach it have failed, and attempts continue: the coordinator waits for
 * a restarted node as long as the training has lasted, and names it meanwhile. */
static void a_slowly_restarted_node_is_waited_for_as_long_as_the_training_has_lasted(void **s)
{
    (void)s;
    for (unsigned late = 0; late < 2; late++) {
        world w;
        char waiting[100];
        int err = 0;
        draw_state = 90;
        secure_begin(&w, 3, 0, 1);
        w.stepped = true;
        const sherd__work_ops *job = sherd__secure_job_work(w.job).ops;
        secure_meet(&w);
        assert_int_equal(secure_ask(&w), 0);
        w.now = 50000;
        job->tick(w.job, w.now);
        w.back = true;
        secure_cut(&w, 1);
        w.now += 1500;
        job->node_down(w.job, 1, false, "refused", w.now);
        secure_begin_ask(&w);
        secure_settle(&w);
        w.now = 50000 + 49000;
        job->tick(w.job, w.now);
        secure_settle(&w);
        assert_false(is_over(&w, &err, NULL));
        job->waiting(w.job, w.now, waiting, sizeof waiting);
        assert_string_equal(waiting, "waiting 49 s for n1 to return");
        if (late) secure_pass(&w);
        assert_int_equal(is_over(&w, &err, NULL), late);
        if (!late) secure_connect(&w.node[1]);
        secure_settle(&w);
        assert_int_equal(secure_take(&w), late ? SHERD_EFEWNODES : 0);
        if (!late) secure_is_sum_without(&w, NULL, 0);
        secure_end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_step_is_opened_over_two_sets_by_any_series_of_coordinators),
        cmocka_unit_test(a_repeated_step_names_the_missing_node),
        cmocka_unit_test(a_repeated_step_leaves_out_nodes_that_joined_later),
        cmocka_unit_test(a_sum_lost_during_confirmation_is_repeated_over_the_present_nodes),
        cmocka_unit_test(a_node_that_disconnects_with_every_answer_is_left_out),
        cmocka_unit_test(a_sum_that_is_never_opened_ends_the_training),
        cmocka_unit_test(a_slowly_restarted_node_is_waited_for_as_long_as_the_training_has_lasted),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
