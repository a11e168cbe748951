/*
 * Sessions in which tasks are cancelled and jobs forgotten at every moment: each task is answered
 * once, and its data are not read, sent or kept afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/wire/session_steps.h"

/* ---- cancel ---- */

static void a_cancelled_task_is_answered_once_and_the_answer_dropped(void **state)
{
    (void)state;
    pair p;
    sherd__fragment *f;
    open_ready(&p);
    p.no.silent_tasks = 1;
    sherd__task t = task_of(JOB, 1, 4, 4);
    ask(&p, &t);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(sherd__session_cancel(p.co.s, JOB, 1, 1), SHERD_OK);
    assert_int_equal(sherd__session_cancel(p.co.s, JOB, 1, 1), SHERD_EINVAL);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.no.events[SHERD__EV_CANCEL], 1);
    assert_int_equal(p.co.events[SHERD__EV_REFUSED], 0);
    assert_int_equal(result_of(&f, &t), SHERD_OK);
    assert_int_equal(sherd__session_result(p.no.s, &t, f), SHERD_EUNASKED);
    sherd__fragment_free(f);
    ask(&p, &t); /* the number can be used again */
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.co.err, 0);
    pair_close(&p);
}

static void a_result_that_crosses_its_cancel_is_skipped_without_memory(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    sherd__task t = task_of(JOB, 1, 300, 300);
    ask(&p, &t);
    pair_move(&p, &p.co, &p.no, SIZE_MAX);
    assert_int_equal(sherd__session_cancel(p.co.s, JOB, 1, 1), SHERD_OK);
    p.co.room = 0;
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.co.events[SHERD__EV_RESULT], 0);
    assert_int_equal(p.co.err, 0);
    assert_int_equal(p.no.events[SHERD__EV_CANCEL], 0);
    pair_close(&p);
}

static void a_result_cancelled_while_it_arrives_frees_its_memory(void **state)
{
    (void)state;
    for (uint32_t task = 0; task < 2; task++) {
        pair p;
        open_ready(&p);
        sherd__task t = task_of(JOB, 1, 300, 300);
        ask(&p, &t);
        pair_move(&p, &p.co, &p.no, SIZE_MAX);
        pair_move(&p, &p.no, &p.co, SIZE_MAX);
        assert_true(p.co.held > 0);
        assert_int_equal(sherd__session_cancel(p.co.s, JOB, task, task), SHERD_OK);
        assert_int_equal(p.co.held, 0);
        pair_run(&p, SIZE_MAX);
        assert_int_equal(p.co.events[SHERD__EV_RESULT], 0);
        assert_int_equal(p.co.err, 0);
        pair_close(&p);
    }
}

static void a_task_cancelled_before_it_was_sent_only_drops_its_blocks(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    sherd__task t = task_of(JOB, 1, 1, 1), other = task_of(JOB, 2, 1, 1);
    t.flags = SHERD__DROP_LEFT | SHERD__DROP_RIGHT;
    ask(&p, &t);
    ask(&p, &other);
    assert_int_equal(sherd__session_cancel(p.co.s, JOB, 1, 1), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_string_equal(p.no.log, "ready 0\ndrop abc 1\ndrop abc 2\ntask abc 2.1 op 1\n");
    assert_int_equal(p.co.events[SHERD__EV_RESULT], 1);
    pair_close(&p);
}

static void a_whole_job_can_be_cancelled(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    p.no.silent_tasks = 1;
    for (uint32_t i = 1; i <= 500; i++) {
        sherd__task t = task_of(JOB + (i & 1), i, 1, 1);
        ask(&p, &t);
        if (i == 300) pair_run(&p, SIZE_MAX);
    }
    assert_int_equal(sherd__session_cancel(p.co.s, JOB, 0, 0), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.no.events[SHERD__EV_TASK], 300 + 100);
    assert_int_equal(p.no.events[SHERD__EV_CANCEL], 1);
    assert_int_equal(p.co.events[SHERD__EV_REFUSED], 0);
    assert_int_equal(sherd__session_stats_of(p.no.s)->refusals, 150);
    p.no.silent_tasks = 0;
    sherd__task t = task_of(JOB, 2, 1, 1);
    ask(&p, &t);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.co.events[SHERD__EV_RESULT], 1);
    pair_close(&p);
}

typedef struct watched {
    bool freed;
    unsigned reads;
} watched;

static int fill_watched(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    watched *w = ctx;
    assert_false(w->freed);
    w->reads++;
    memset(out, 7, len);
    if (offset < 8) {
        assert_true(len >= 8);
        sherd__put_u32(out, 1000);
        sherd__put_u32(out + 4, 1000);
    }
    return SHERD_OK;
}

static void free_watched(void *ctx)
{
    ((watched *)ctx)->freed = true;
}

static void put_watched(pair *p, watched *w, uint64_t job, uint32_t block)
{
    sherd__fragment *f;
    sherd__fragment_info info = block_info(1000, 1000);
    sherd__fragment_source source = { fill_watched, free_watched, w };
    *w = (watched){ 0 };
    assert_int_equal(sherd__fragment_new_source(&f, &info, source), SHERD_OK);
    assert_int_equal(sherd__session_put(p->co.s, job, block, f), SHERD_OK);
}

static void data_of_a_forgotten_job_are_not_read_and_the_session_continues(void **state)
{
    (void)state;
    for (unsigned moves = 0; moves < 6; moves++) {
        pair p;
        watched begun, waiting, other;
        open_ready(&p);
        p.no.silent_tasks = 1;
        uint64_t idle = sherd__session_queued(p.co.s);
        put_watched(&p, &begun, JOB, 1);
        put_watched(&p, &waiting, JOB, 2);
        sherd__task t = task_of(JOB, 1, 1000, 1000);
        ask(&p, &t);
        put_watched(&p, &other, JOB + 1, 1);
        for (unsigned i = 0; i < moves; i++) pair_move(&p, &p.co, &p.no, SIZE_MAX);
        assert_int_equal(sherd__session_forget(p.co.s, JOB), SHERD_OK);
        assert_true(begun.freed && waiting.freed);
        pair_run(&p, SIZE_MAX);
        assert_int_equal(p.co.err, 0);
        assert_int_equal(p.no.err, 0);
        assert_true(other.freed && other.reads > 0); /* it was sent completely */
        assert_int_equal(p.no.events[SHERD__EV_DROP], 1);
        assert_int_equal(sherd__session_queued(p.co.s), idle);
        assert_int_equal(p.co.events[SHERD__EV_RESULT] + p.co.events[SHERD__EV_REFUSED], 0);
        pair_close(&p);
    }
}

static void data_of_a_retracted_block_are_not_read_and_others_arrive(void **state)
{
    (void)state;
    for (unsigned moves = 0; moves < 6; moves++) {
        pair p;
        watched gone, other;
        open_ready(&p);
        uint64_t idle = sherd__session_queued(p.co.s);
        put_watched(&p, &gone, JOB, 1);
        put_watched(&p, &other, JOB, 2);
        for (unsigned i = 0; i < moves; i++) pair_move(&p, &p.co, &p.no, SIZE_MAX);
        assert_int_equal(sherd__session_retract(p.co.s, JOB, 1), SHERD_OK);
        assert_true(gone.freed);
        pair_run(&p, SIZE_MAX);
        assert_int_equal(p.co.err, 0);
        assert_int_equal(p.no.err, 0);
        assert_true(other.freed && other.reads > 0);
        assert_int_equal(p.no.events[SHERD__EV_BLOCK], moves > 0 ? 2 : 1);
        assert_int_equal(p.no.events[SHERD__EV_DROP], 1);
        assert_int_equal(sherd__session_queued(p.co.s), idle);
        assert_int_equal(sherd__session_retract(p.co.s, JOB, 0), SHERD_EINVAL);
        pair_close(&p);
    }
}

/* If a node reads nothing, its coordinator must not keep data that it will never need. */
static void a_task_cancelled_before_it_was_sent_retracts_its_blocks(void **state)
{
    (void)state;
    for (unsigned moves = 0; moves < 2; moves++) {
        pair p;
        watched left, right;
        open_ready(&p);
        uint64_t idle = sherd__session_queued(p.co.s);
        put_watched(&p, &left, JOB, 1);
        put_watched(&p, &right, JOB, 2);
        sherd__task t = task_of(JOB, 1, 1000, 1000);
        t.flags = SHERD__DROP_LEFT | SHERD__DROP_RIGHT;
        ask(&p, &t);
        if (moves)
            pair_move(&p, &p.co, &p.no, SIZE_MAX); /* sending the left block has started, and
                                                           * continues */
        assert_int_equal(sherd__session_cancel(p.co.s, JOB, 1, 1), SHERD_OK);
        assert_true(right.freed && right.reads == 0);
        assert_int_equal(left.freed, !moves);
        if (!moves) assert_true(sherd__session_queued(p.co.s) < idle + 4096);
        pair_run(&p, SIZE_MAX);
        assert_int_equal(p.no.events[SHERD__EV_BLOCK], moves);
        assert_int_equal(p.no.events[SHERD__EV_DROP], moves);
        assert_int_equal(p.no.events[SHERD__EV_TASK], 0);
        assert_int_equal(p.co.err, 0);
        assert_int_equal(sherd__session_queued(p.co.s), idle);
        pair_close(&p);
    }
}

static void forgetting_without_memory_ends_the_session_and_reads_nothing(void **state)
{
    (void)state;
    pair p;
    watched begun;
    open_ready(&p);
    put_watched(&p, &begun, JOB, 1);
    pair_move(&p, &p.co, &p.no, SIZE_MAX);
    assert_false(begun.freed);
    (void)sherd__alloc_fail_nth(1);
    int err = sherd__session_forget(p.co.s, JOB);
    (void)sherd__alloc_fail_nth(0);
    assert_int_equal(err, SHERD_ENOMEM);
    assert_true(begun.freed);
    pair_run(&p, SIZE_MAX);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_task_is_answered_once_and_the_answer_dropped),
        cmocka_unit_test(a_result_that_crosses_its_cancel_is_skipped_without_memory),
        cmocka_unit_test(a_result_cancelled_while_it_arrives_frees_its_memory),
        cmocka_unit_test(a_task_cancelled_before_it_was_sent_only_drops_its_blocks),
        cmocka_unit_test(a_whole_job_can_be_cancelled),
        cmocka_unit_test(data_of_a_forgotten_job_are_not_read_and_the_session_continues),
        cmocka_unit_test(data_of_a_retracted_block_are_not_read_and_others_arrive),
        cmocka_unit_test(a_task_cancelled_before_it_was_sent_retracts_its_blocks),
        cmocka_unit_test(forgetting_without_memory_ends_the_session_and_reads_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
