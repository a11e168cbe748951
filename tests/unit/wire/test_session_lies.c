/*
 * Lying peers: a session accepts nothing that it did not ask for, allocates memory only after it
 * has checked the description, and gives the reason of every refusal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/wire/session_steps.h"

/* ---- records that a coordinator refuses ------------------------------------------------------ */

static const uint32_t attempt_one = 1;

static void an_unrequested_result_ends_the_session(void **state)
{
    (void)state;
    pair p;
    sherd__task t = task_of(JOB, 1, 2, 2);
    open_ready(&p);
    assert_int_equal(inject_description(&p, &p.co, SHERD__REC_RESULT, 1, &t.result, &attempt_one),
                     SHERD_EUNASKED);
    assert_int_equal(p.co.events[SHERD__EV_CLOSED], 1);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.no.err, SHERD_ECLOSED); /* reported by a BYE */
    pair_close(&p);
}

static void a_result_of_another_attempt_is_unrequested(void **state)
{
    (void)state;
    pair p;
    sherd__task t = task_of(JOB, 1, 2, 2);
    const uint32_t two = 2;
    open_ready(&p);
    ask(&p, &t);
    assert_int_equal(inject_description(&p, &p.co, SHERD__REC_RESULT, 1, &t.result, &two),
                     SHERD_EUNASKED);
    pair_close(&p);
}

static void a_second_result_is_unrequested(void **state)
{
    (void)state;
    pair p;
    sherd__task t = task_of(JOB, 1, 2, 2);
    open_ready(&p);
    ask(&p, &t);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.co.events[SHERD__EV_RESULT], 1);
    assert_int_equal(inject_description(&p, &p.co, SHERD__REC_RESULT, 1, &t.result, &attempt_one),
                     SHERD_EUNASKED);
    pair_close(&p);
}

static void a_refusal_of_a_task_that_is_not_open_is_unrequested(void **state)
{
    (void)state;
    pair p;
    uint8_t body[SHERD__CONTROL_MAX];
    sherd__refusal r = { .task = 1, .code = SHERD_EREFUSED };
    open_ready(&p);
    sherd__record rec = { .type = SHERD__REC_REFUSE,
                          .job = JOB,
                          .number = 1,
                          .body_len = sherd__message_refuse(body, &r) };
    assert_int_equal(inject(&p, &p.co, &rec, body), SHERD_EUNASKED);
    pair_close(&p);
}

static void a_result_with_another_description_is_malformed(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        pair p;
        sherd__task t = task_of(JOB, 1, 4, 2);
        sherd__fragment_info lie = t.result;
        if (i == 0) lie.rows = 2, lie.cols = 4;
        if (i == 1) lie.rows = 5, lie.len = 80;
        if (i == 2) lie.dtype = 9; /* i64: of the same size as f64 */
        if (i == 3) lie.origin = SHERD__HIDDEN;
        if (i == 4) lie.len = 72;
        open_ready(&p);
        p.no.silent_tasks = 1;
        ask(&p, &t);
        p.co.room = 0; /* no memory may be requested */
        assert_int_equal(inject_description(&p, &p.co, SHERD__REC_RESULT, 1, &lie, &attempt_one),
                         SHERD_EFRAME);
        pair_close(&p);
    }
}

static void without_room_for_a_result_the_coordinators_session_ends(void **state)
{
    (void)state;
    pair p;
    sherd__task t = task_of(JOB, 1, 4, 4);
    open_ready(&p);
    ask(&p, &t);
    p.co.room = 10;
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.co.err, SHERD_ENOMEM);
    pair_close(&p);
}

/* ---- records that a node refuses ------------------------------------------------------------- */

static void a_block_that_does_not_fit_is_refused_and_the_session_continues(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    p.no.room = 100;
    assert_int_equal(put_block(&p, JOB, 7, 600, 600), SHERD_OK);
    assert_int_equal(put_block(&p, JOB, 8, 6, 6), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_non_null(strstr(p.co.log, "refused abc 7 0: the block does not fit into this node"));
    assert_non_null(strstr(p.no.log, "block abc 8 6x6"));
    assert_null(strstr(p.no.log, "block abc 7"));
    assert_int_equal(p.no.held, 0);
    pair_close(&p);
}

static void a_block_above_block_max_is_refused_without_asking_for_room(void **state)
{
    (void)state;
    pair p;
    sherd__session_options o = { .role = SHERD__NODE,
                                 .block_max = 100,
                                 .place = pair_place,
                                 .unplace = pair_unplace,
                                 .place_ctx = &p.no };
    assert_int_equal(pair_open(&p), SHERD_OK);
    sherd__session_free(p.no.s);
    assert_int_equal(sherd__session_new(&p.no.s, &o), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(put_block(&p, JOB, 1, 92, 1), SHERD_OK);
    assert_int_equal(put_block(&p, JOB, 2, 93, 1), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.no.events[SHERD__EV_BLOCK], 1);
    assert_non_null(strstr(p.co.log, "refused abc 2 0: the block is larger than this node takes"));
    pair_close(&p);
}

static void an_invalid_group_table_ends_the_session_before_the_event(void **state)
{
    (void)state;
    pair p;
    uint8_t bytes[SHERD__RECORD_BYTES + 14] = { 0 };
    sherd__fragment_info info = block_info(2, 3);
    open_ready(&p);
    assert_int_equal(inject_description(&p, &p.no, SHERD__REC_PUT, 1, &info, NULL), SHERD_OK);
    sherd__record r = {
        .type = SHERD__REC_PUT, .job = JOB, .number = 1, .part = 1, .body_len = 14
    };
    sherd__record_pack(&r, bytes);
    sherd__put_u32(bytes + SHERD__RECORD_BYTES, 3);
    sherd__put_u32(bytes + SHERD__RECORD_BYTES + 4, 2);
    assert_int_equal(side_feed(&p.no, bytes, sizeof bytes, SIZE_MAX, p.now), SHERD_EFRAME);
    assert_int_equal(p.no.events[SHERD__EV_BLOCK], 0);
    assert_int_equal(p.no.held, 0);
    pair_close(&p);
}

static void parts_must_arrive_in_order_and_complete(void **state)
{
    (void)state;
    static const struct {
        uint64_t job;
        uint32_t number, part;
        uint64_t len;
    } wrong[] = {
        { JOB, 1, 2, 14 }, { JOB, 1, 1, 13 }, { JOB, 1, 1, 15 },
        { JOB, 1, 1, 0 },  { JOB, 2, 1, 14 }, { JOB + 1, 1, 1, 14 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pair p;
        static const uint8_t zeros[16];
        sherd__fragment_info info = block_info(2, 3);
        open_ready(&p);
        assert_int_equal(inject_description(&p, &p.no, SHERD__REC_PUT, 1, &info, NULL), SHERD_OK);
        sherd__record r = { .type = SHERD__REC_PUT,
                            .job = wrong[i].job,
                            .number = wrong[i].number,
                            .part = wrong[i].part,
                            .body_len = wrong[i].len };
        assert_int_equal(inject(&p, &p.no, &r, zeros), SHERD_EFRAME);
        assert_int_equal(p.no.held, 0);
        pair_close(&p);
    }
}

static void a_part_without_its_first_record_is_malformed(void **state)
{
    (void)state;
    pair p;
    uint8_t body[8] = { 0 };
    open_ready(&p);
    sherd__record r = { .type = SHERD__REC_PUT, .job = JOB, .number = 1, .part = 1, .body_len = 8 };
    assert_int_equal(inject(&p, &p.no, &r, body), SHERD_EFRAME);
    pair_close(&p);
}

static void a_second_block_inside_a_body_is_malformed(void **state)
{
    (void)state;
    pair p;
    sherd__fragment_info info = block_info(2, 3);
    open_ready(&p);
    assert_int_equal(inject_description(&p, &p.no, SHERD__REC_PUT, 1, &info, NULL), SHERD_OK);
    assert_int_equal(inject_description(&p, &p.no, SHERD__REC_PUT, 2, &info, NULL), SHERD_EFRAME);
    pair_close(&p);
    open_ready(&p);
    assert_int_equal(inject_description(&p, &p.no, SHERD__REC_PUT, 1, &info, NULL), SHERD_OK);
    sherd__record drop = { .type = SHERD__REC_DROP, .job = JOB };
    assert_int_equal(inject(&p, &p.no, &drop, NULL), SHERD_EFRAME);
    pair_close(&p);
}

static void a_task_number_that_is_already_open_is_malformed(void **state)
{
    (void)state;
    pair p;
    uint8_t body[SHERD__CONTROL_MAX];
    sherd__task t = task_of(JOB, 1, 1, 1);
    open_ready(&p);
    p.no.silent_tasks = 1;
    sherd__record r = { .type = SHERD__REC_TASK,
                        .job = JOB,
                        .number = 1,
                        .part = 1,
                        .body_len = sherd__message_task(body, &t) };
    assert_int_equal(inject(&p, &p.no, &r, body), SHERD_OK);
    assert_int_equal(inject(&p, &p.no, &r, body), SHERD_EFRAME);
    pair_close(&p);
}

static void an_unknown_operation_is_refused_and_the_session_continues(void **state)
{
    (void)state;
    pair p;
    sherd__task t = task_of(JOB, 1, 1, 1);
    t.op = 24;
    open_ready(&p);
    ask(&p, &t);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.no.events[SHERD__EV_TASK], 0);
    assert_int_equal(p.co.events[SHERD__EV_REFUSED], 1);
    assert_int_equal(p.co.err, 0);
    pair_close(&p);
}

static void a_peer_that_does_not_read_refusals_is_disconnected(void **state)
{
    (void)state;
    static const uint8_t zeros[14];
    for (int tasks = 0; tasks < 2; tasks++) {
        pair p;
        sherd__fragment_info info = block_info(2, 3);
        sherd__task t = task_of(JOB, 1, 1, 1);
        uint8_t body[SHERD__CONTROL_MAX];
        int err = SHERD_OK;
        t.op = 24;
        open_ready(&p);
        p.no.room = 0;
        sherd__record part = { .type = SHERD__REC_PUT, .job = JOB, .part = 1, .body_len = 14 };
        sherd__record task = { .type = SHERD__REC_TASK,
                               .job = JOB,
                               .part = 1,
                               .body_len = sherd__message_task(body, &t) };
        for (uint32_t i = 1; i <= SHERD__ANSWERS_MAX / 32 && !err; i++) {
            part.number = task.number = i;
            if (tasks) err = inject(&p, &p.no, &task, body);
            else err = inject_description(&p, &p.no, SHERD__REC_PUT, i, &info, NULL);
            if (!tasks && !err) err = inject(&p, &p.no, &part, zeros);
        }
        assert_int_equal(err, SHERD_EBUSY);
        pair_close(&p);
    }
}

/* ---- directions, origins, types ---- */

static void a_fragment_of_the_wrong_origin_is_refused_on_sending(void **state)
{
    (void)state;
    pair p;
    sherd__fragment *hidden, *result;
    sherd__task t = task_of(JOB, 1, 1, 1);
    open_ready(&p);
    p.no.silent_tasks = 1;
    ask(&p, &t);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(block_of(&hidden, 1, 1), SHERD_OK);
    assert_int_equal(result_of(&result, &t), SHERD_OK);
    assert_int_equal(sherd__session_put(p.co.s, JOB, 1, result), SHERD_EINVAL);
    assert_int_equal(sherd__session_result(p.no.s, &t, hidden), SHERD_EINVAL);
    assert_int_equal(sherd__session_put(p.no.s, JOB, 1, hidden), SHERD_EINVAL);
    assert_int_equal(sherd__session_result(p.co.s, &t, result), SHERD_EINVAL);
    assert_int_equal(sherd__session_put(p.co.s, 0, 1, hidden), SHERD_EINVAL);
    assert_int_equal(sherd__session_put(p.co.s, JOB, 0, hidden), SHERD_EINVAL);
    sherd__fragment_free(hidden);
    sherd__fragment_free(result);
    pair_close(&p);
}

static void a_put_of_a_result_is_malformed(void **state)
{
    (void)state;
    pair p;
    sherd__task t = task_of(JOB, 1, 1, 1);
    open_ready(&p);
    assert_int_equal(inject_description(&p, &p.no, SHERD__REC_PUT, 1, &t.result, NULL),
                     SHERD_EFRAME);
    pair_close(&p);
}

static void a_record_in_the_wrong_direction_is_malformed(void **state)
{
    (void)state;
    for (uint16_t type = SHERD__REC_HELLO; type <= SHERD__REC_BYE; type++)
        for (int to_node = 0; to_node < 2; to_node++) {
            unsigned from = to_node ? SHERD__COORDINATOR : SHERD__NODE;
            if (sherd__record_senders(type) & 1u << (from - 1)) continue;
            pair p;
            open_ready(&p);
            bool named = type != SHERD__REC_HELLO && type != SHERD__REC_WELCOME;
            sherd__record r = { .type = type, .job = named, .number = named };
            assert_int_equal(inject(&p, to_node ? &p.no : &p.co, &r, NULL), SHERD_EFRAME);
            pair_close(&p);
        }
}

static void an_unknown_optional_record_is_ignored(void **state)
{
    (void)state;
    pair p;
    uint8_t bytes[SHERD__RECORD_BYTES + 3000] = { 0 };
    sherd__record r = { .type = 900, .flags = SHERD__RECORD_OPTIONAL, .body_len = 3000 };
    open_ready(&p);
    sherd__record_pack(&r, bytes);
    assert_int_equal(side_feed(&p.no, bytes, sizeof bytes, 77, p.now), SHERD_OK);
    assert_int_equal(put_block(&p, JOB, 1, 1, 1), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.no.events[SHERD__EV_BLOCK], 1);
    r.flags = 0;
    r.body_len = 0;
    assert_int_equal(inject(&p, &p.no, &r, NULL), SHERD_EFRAME);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unrequested_result_ends_the_session),
        cmocka_unit_test(a_result_of_another_attempt_is_unrequested),
        cmocka_unit_test(a_second_result_is_unrequested),
        cmocka_unit_test(a_refusal_of_a_task_that_is_not_open_is_unrequested),
        cmocka_unit_test(a_result_with_another_description_is_malformed),
        cmocka_unit_test(without_room_for_a_result_the_coordinators_session_ends),
        cmocka_unit_test(a_block_that_does_not_fit_is_refused_and_the_session_continues),
        cmocka_unit_test(a_block_above_block_max_is_refused_without_asking_for_room),
        cmocka_unit_test(an_invalid_group_table_ends_the_session_before_the_event),
        cmocka_unit_test(parts_must_arrive_in_order_and_complete),
        cmocka_unit_test(a_part_without_its_first_record_is_malformed),
        cmocka_unit_test(a_second_block_inside_a_body_is_malformed),
        cmocka_unit_test(a_task_number_that_is_already_open_is_malformed),
        cmocka_unit_test(an_unknown_operation_is_refused_and_the_session_continues),
        cmocka_unit_test(a_peer_that_does_not_read_refusals_is_disconnected),
        cmocka_unit_test(a_fragment_of_the_wrong_origin_is_refused_on_sending),
        cmocka_unit_test(a_put_of_a_result_is_malformed),
        cmocka_unit_test(a_record_in_the_wrong_direction_is_malformed),
        cmocka_unit_test(an_unknown_optional_record_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
