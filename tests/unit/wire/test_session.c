/*
 * Two sessions joined in memory: what each side says, how urgent things overtake, what a lying or
 * silent peer meets, and that no cut of the bytes changes what is understood.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/wire/pair.h"
#include "wire/message.h"

enum { JOB = PAIR_JOB };

static void open_ready(pair *p)
{
    assert_int_equal(pair_open(p), SHERD_OK);
    pair_run(p, SIZE_MAX);
    assert_true(sherd__session_ready(p->co.s));
    assert_true(sherd__session_ready(p->no.s));
}

static void ask(pair *p, const sherd__task *t)
{
    assert_int_equal(sherd__session_task(p->co.s, t), SHERD_OK);
}

/* A raw record from outside, as a lying peer would send it. */
static int inject(pair *p, side *to, const sherd__record *r, const uint8_t *body)
{
    uint8_t bytes[SHERD__RECORD_BYTES + SHERD__CONTROL_MAX];
    sherd__record_pack(r, bytes);
    if (body) memcpy(bytes + SHERD__RECORD_BYTES, body, r->body_len);
    return side_feed(to, bytes, SHERD__RECORD_BYTES + r->body_len, SIZE_MAX, p->now);
}

static int inject_description(pair *p, side *to, uint16_t type, uint32_t number,
                              const sherd__fragment_info *info, const uint32_t *attempt)
{
    uint8_t body[SHERD__CONTROL_MAX];
    sherd__record r = { .type = type, .job = JOB, .number = number,
                        .body_len = sherd__message_description(body, info, attempt) };
    return inject(p, to, &r, body);
}

/* ---- handshake ---- */

static void both_sides_learn_of_each_other(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    assert_string_equal(p.co.log, "ready 0\n");
    assert_string_equal(p.no.log, "ready 0\n");
    assert_int_equal(sherd__session_queued(p.co.s), 0);
    pair_close(&p);
}

static int handshake(uint32_t co_min, uint32_t co_max, uint32_t no_min, uint32_t no_max, pair *p)
{
    sherd__session_options o = { .role = SHERD__COORDINATOR,
                                 .hello = { .minor_min = co_min, .minor_max = co_max } };
    memset(p, 0, sizeof *p);
    assert_int_equal(sherd__session_new(&p->co.s, &o), SHERD_OK);
    o.role = SHERD__NODE;
    o.hello.minor_min = no_min;
    o.hello.minor_max = no_max;
    assert_int_equal(sherd__session_new(&p->no.s, &o), SHERD_OK);
    pair_run(p, SIZE_MAX);
    assert_int_equal(p->co.err, p->no.err);
    return p->co.err;
}

static void the_greatest_common_minor_is_chosen(void **state)
{
    (void)state;
    pair p;
    assert_int_equal(handshake(1, 5, 3, 9, &p), SHERD_OK);
    assert_string_equal(p.co.log, "ready 5\n");
    pair_close(&p);
    assert_int_equal(handshake(2, 2, 1, 2, &p), SHERD_OK);
    assert_string_equal(p.co.log, "ready 2\n");
    pair_close(&p);
}

static void minors_without_overlap_end_both_sides_with_the_version(void **state)
{
    (void)state;
    pair p;
    assert_int_equal(handshake(1, 2, 3, 4, &p), SHERD_EVERSION);
    pair_close(&p);
    assert_int_equal(handshake(7, 9, 3, 4, &p), SHERD_EVERSION);
    pair_close(&p);
}

static void a_welcome_outside_what_was_offered_is_another_version(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        pair p;
        uint8_t body[SHERD__CONTROL_MAX];
        sherd__hello h = { .minor_min = i ? 2 : 1, .minor_max = 2 };
        assert_int_equal(pair_open(&p), SHERD_OK);
        sherd__record r = { .type = SHERD__REC_WELCOME,
                            .body_len = sherd__message_hello(body, &h) };
        assert_int_equal(inject(&p, &p.co, &r, body), SHERD_EVERSION);
        pair_close(&p);
    }
}

static void nothing_but_hello_is_taken_before_the_handshake_and_no_second_one_after(void **state)
{
    (void)state;
    pair p;
    sherd__record ping = { .type = SHERD__REC_PING, .number = 1 };
    assert_int_equal(pair_open(&p), SHERD_OK);
    assert_int_equal(inject(&p, &p.no, &ping, NULL), SHERD_EFRAME);
    pair_close(&p);
    open_ready(&p);
    uint8_t again[512];
    size_t len = p.co.wire_len;
    assert_true(len <= sizeof again);
    memcpy(again, p.co.wire, len);
    assert_int_equal(side_feed(&p.no, again, len, SIZE_MAX, p.now), SHERD_EFRAME);
    pair_close(&p);
}

static void calls_before_the_handshake_are_refused_and_keep_the_fragment(void **state)
{
    (void)state;
    pair p;
    sherd_fragment *f;
    sherd__task t = task_of(JOB, 1, 1, 1);
    assert_int_equal(pair_open(&p), SHERD_OK);
    assert_int_equal(block_of(&f, 1, 1), SHERD_OK);
    assert_int_equal(sherd__session_put(p.co.s, JOB, 1, f), SHERD_EINVAL);
    assert_int_equal(sherd__session_task(p.co.s, &t), SHERD_EINVAL);
    assert_int_equal(sherd__session_drop(p.co.s, JOB, 1), SHERD_EINVAL);
    sherd__fragment_free(f);
    pair_close(&p);
}

static void a_slow_handshake_ends_and_a_quick_one_does_not(void **state)
{
    (void)state;
    pair p;
    assert_int_equal(pair_open(&p), SHERD_OK);
    assert_int_equal(sherd__session_deadline(p.no.s), p.now + SHERD__HANDSHAKE_MS);
    side_tick(&p.no, p.now + SHERD__HANDSHAKE_MS - 1);
    assert_int_equal(p.no.err, 0);
    side_tick(&p.no, p.now + SHERD__HANDSHAKE_MS);
    assert_int_equal(p.no.err, SHERD_ESILENT);
    assert_true(sherd__session_deadline(p.no.s) == UINT64_MAX);
    pair_close(&p);
}

/* ---- every message ---- */

static void every_message_arrives(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    assert_int_equal(put_block(&p, JOB, 1, 3, 5), SHERD_OK);
    assert_int_equal(put_block(&p, JOB, 2, 0, 0), SHERD_OK);
    sherd__task t = task_of(JOB, 1, 2, 3);
    ask(&p, &t);
    t = task_of(JOB, 5, 2, 3);
    ask(&p, &t);
    assert_int_equal(sherd__session_drop(p.co.s, JOB, 1), SHERD_OK);
    assert_int_equal(sherd__session_drop(p.co.s, JOB, 0), SHERD_OK);
    assert_true(sherd__session_queued(p.co.s) > 23);
    pair_run(&p, SIZE_MAX);
    assert_non_null(strstr(p.no.log, "block abc 1 3x5"));
    assert_non_null(strstr(p.no.log, "block abc 2 0x0"));
    assert_non_null(strstr(p.no.log, "task abc 1.1 op 1\n"));
    assert_non_null(strstr(p.no.log, "drop abc 1\ndrop abc 0\n"));
    assert_non_null(strstr(p.co.log, "result abc 1 2x3"));
    assert_non_null(strstr(p.co.log, "refused abc 0 5: no such block\n"));
    assert_int_equal(sherd__session_queued(p.co.s), 0);
    const sherd__session_stats *co = sherd__session_stats_of(p.co.s);
    const sherd__session_stats *no = sherd__session_stats_of(p.no.s);
    assert_true(co->bytes_out == no->bytes_in && no->bytes_out == co->bytes_in);
    assert_true(co->records_out == no->records_in && no->records_out == co->records_in);
    assert_true(co->bytes_out == p.co.wire_len && no->bytes_out == p.no.wire_len);
    assert_true(co->tasks == 2 && co->results == 1 && co->refusals == 1);
    assert_true(no->tasks == 2 && no->results == 1 && no->refusals == 1);
    assert_int_equal(p.no.held, 0);
    pair_close(&p);
}

static void a_body_of_many_chunks_arrives_whole(void **state)
{
    (void)state;
    static const uint64_t rows[] = { SHERD__CHUNK - 9, SHERD__CHUNK - 8, SHERD__CHUNK - 7,
                                     3 * SHERD__CHUNK + 5 };
    for (size_t i = 0; i < 4; i++) {
        pair p;
        open_ready(&p);
        assert_int_equal(put_block(&p, JOB, 1, rows[i], 1), SHERD_OK);
        sherd__fragment_info info = block_info(rows[i], 1);
        uint8_t *want = malloc(info.len);
        assert_non_null(want);
        assert_int_equal(fill_pattern((void *)1, 0, want, info.len), 0);
        sherd__put_u32(want, (uint32_t)rows[i]);
        sherd__put_u32(want + 4, 1);
        pair_run(&p, SIZE_MAX);
        char line[100];
        snprintf(line, sizeof line, "block abc 1 %" PRIu64 "x1 %08x\n", rows[i],
                 hash_bytes(want, info.len));
        assert_non_null(strstr(p.no.log, line));
        free(want);
        pair_close(&p);
    }
}

static void small_things_are_offered_together(void **state)
{
    (void)state;
    pair p;
    const uint8_t *out;
    open_ready(&p);
    for (uint32_t i = 1; i <= 100; i++) assert_int_equal(put_block(&p, JOB, i, 4, 4), SHERD_OK);
    size_t n = sherd__session_pending(p.co.s, p.now, &out);
    assert_true(n > 100 * (2 * SHERD__RECORD_BYTES + 24));
    assert_int_equal(side_feed(&p.no, out, n, SIZE_MAX, p.now), SHERD_OK);
    assert_int_equal(p.no.events[SHERD__EV_BLOCK], 100);
    sherd__session_sent(p.co.s, n);
    assert_int_equal(sherd__session_pending(p.co.s, p.now, &out), 0);
    pair_close(&p);
}

static void an_offer_may_be_taken_in_pieces(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    assert_int_equal(put_block(&p, JOB, 1, 700, 700), SHERD_OK);
    const uint8_t *out;
    for (size_t n, k = 1; (n = sherd__session_pending(p.co.s, p.now, &out)) > 0; k = k * 7 % 9973) {
        size_t take = n < k ? n : k;
        assert_int_equal(side_feed(&p.no, out, take, SIZE_MAX, p.now), SHERD_OK);
        sherd__session_sent(p.co.s, take);
    }
    assert_int_equal(p.no.events[SHERD__EV_BLOCK], 1);
    pair_close(&p);
}

/* ---- order ---- */

static uint16_t first_type(sherd_session *s, uint64_t now)
{
    const uint8_t *out;
    size_t n = sherd__session_pending(s, now, &out);
    assert_true(n >= SHERD__RECORD_BYTES);
    return sherd__get_u16(out + 4);
}

static void a_ping_overtakes_bulk_and_is_answered_in_the_middle_of_a_body(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    assert_int_equal(put_block(&p, JOB, 1, 5 * SHERD__CHUNK, 1), SHERD_OK);
    pair_move(&p, &p.co, &p.no, SIZE_MAX);
    pair_move(&p, &p.co, &p.no, SIZE_MAX);
    p.now += SHERD__PING_MS;
    side_tick(&p.co, p.now);
    assert_int_equal(first_type(p.co.s, p.now), SHERD__REC_PING);
    pair_move(&p, &p.co, &p.no, SIZE_MAX);
    assert_int_equal(p.no.events[SHERD__EV_BLOCK], 0);
    assert_int_equal(first_type(p.no.s, p.now), SHERD__REC_PONG);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.no.events[SHERD__EV_BLOCK], 1);
    assert_int_equal(p.co.err, 0);
    pair_close(&p);
}

static void a_task_stays_behind_its_blocks_and_a_cancel_does_not(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    p.no.silent_tasks = 1;
    sherd__task first = task_of(JOB, 1, 1, 1), second = task_of(JOB, 2, 1, 1);
    ask(&p, &first);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(put_block(&p, JOB, 1, 2 * SHERD__CHUNK, 1), SHERD_OK);
    ask(&p, &second);
    pair_move(&p, &p.co, &p.no, SIZE_MAX);
    assert_int_equal(sherd__session_cancel(p.co.s, JOB, 1, 1), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    const char *cancel = strstr(p.no.log, "cancel abc 1"), *block = strstr(p.no.log, "block abc");
    const char *task = strstr(p.no.log, "task abc 2");
    assert_true(cancel && block && task && cancel < block && block < task);
    pair_close(&p);
}

/* ---- cancel ---- */

static void a_cancelled_task_is_answered_once_and_swallowed(void **state)
{
    (void)state;
    pair p;
    sherd_fragment *f;
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
    ask(&p, &t); /* the name is free again */
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

static void a_result_cancelled_while_it_arrives_gives_its_memory_back(void **state)
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

static void a_task_cancelled_before_it_left_only_drops_its_blocks(void **state)
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
    sherd_fragment *f;
    sherd__fragment_info info = block_info(1000, 1000);
    sherd__fragment_source source = { fill_watched, free_watched, w };
    *w = (watched){ 0 };
    assert_int_equal(sherd__fragment_new_source(&f, &info, source), SHERD_OK);
    assert_int_equal(sherd__session_put(p->co.s, job, block, f), SHERD_OK);
}

static void nothing_of_a_forgotten_job_is_read_again_and_the_session_goes_on(void **state)
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
        assert_true(other.freed && other.reads > 0); /* all of it was sent */
        assert_int_equal(p.no.events[SHERD__EV_DROP], 1);
        assert_int_equal(sherd__session_queued(p.co.s), idle);
        assert_int_equal(p.co.events[SHERD__EV_RESULT] + p.co.events[SHERD__EV_REFUSED], 0);
        pair_close(&p);
    }
}

static void nothing_of_a_retracted_block_is_read_again_and_others_arrive(void **state)
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

/* A node that reads nothing must not have its coordinator keep all that it will never need. */
static void a_task_cancelled_before_it_left_takes_its_blocks_back(void **state)
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
        if (moves) pair_move(&p, &p.co, &p.no, SIZE_MAX); /* left has begun: it goes on */
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

static void forgetting_without_memory_ends_the_session_and_reads_nothing_either(void **state)
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

/* ---- what a coordinator does not believe ---- */

static const uint32_t attempt_one = 1;

static void a_result_that_was_not_asked_for_ends_the_session(void **state)
{
    (void)state;
    pair p;
    sherd__task t = task_of(JOB, 1, 2, 2);
    open_ready(&p);
    assert_int_equal(inject_description(&p, &p.co, SHERD__REC_RESULT, 1, &t.result, &attempt_one),
                     SHERD_EUNASKED);
    assert_int_equal(p.co.events[SHERD__EV_CLOSED], 1);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.no.err, SHERD_ECLOSED); /* told by a BYE */
    pair_close(&p);
}

static void another_attempt_than_the_one_asked_for_is_unasked(void **state)
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

static void a_second_result_is_unasked(void **state)
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

static void a_refusal_of_what_is_not_open_is_unasked(void **state)
{
    (void)state;
    pair p;
    uint8_t body[SHERD__CONTROL_MAX];
    sherd__refusal r = { .task = 1, .code = SHERD_EREFUSED };
    open_ready(&p);
    sherd__record rec = { .type = SHERD__REC_REFUSE, .job = JOB, .number = 1,
                          .body_len = sherd__message_refuse(body, &r) };
    assert_int_equal(inject(&p, &p.co, &rec, body), SHERD_EUNASKED);
    pair_close(&p);
}

static void a_result_of_another_description_is_malformed(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        pair p;
        sherd__task t = task_of(JOB, 1, 4, 2);
        sherd__fragment_info lie = t.result;
        if (i == 0) lie.rows = 2, lie.cols = 4;
        if (i == 1) lie.rows = 5, lie.len = 80;
        if (i == 2) lie.dtype = 9; /* i64: as long as f64 */
        if (i == 3) lie.origin = SHERD__HIDDEN;
        if (i == 4) lie.len = 72;
        open_ready(&p);
        p.no.silent_tasks = 1;
        ask(&p, &t);
        p.co.room = 0; /* no memory may be asked for */
        assert_int_equal(inject_description(&p, &p.co, SHERD__REC_RESULT, 1, &lie, &attempt_one),
                         SHERD_EFRAME);
        pair_close(&p);
    }
}

static void no_room_for_a_result_ends_the_coordinators_session(void **state)
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

/* ---- what a node does not believe ---- */

static void a_block_above_the_nodes_room_is_refused_and_the_session_lives(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    p.no.room = 100;
    assert_int_equal(put_block(&p, JOB, 7, 600, 600), SHERD_OK);
    assert_int_equal(put_block(&p, JOB, 8, 6, 6), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_non_null(strstr(p.co.log, "refused abc 7 0: block of 360008 bytes does not fit"));
    assert_non_null(strstr(p.no.log, "block abc 8 6x6"));
    assert_null(strstr(p.no.log, "block abc 7"));
    assert_int_equal(p.no.held, 0);
    pair_close(&p);
}

static void a_block_above_block_max_is_refused_without_asking_for_room(void **state)
{
    (void)state;
    pair p;
    sherd__session_options o = { .role = SHERD__NODE, .block_max = 100, .place = pair_place,
                                 .unplace = pair_unplace, .place_ctx = &p.no };
    assert_int_equal(pair_open(&p), SHERD_OK);
    sherd__session_free(p.no.s);
    assert_int_equal(sherd__session_new(&p.no.s, &o), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(put_block(&p, JOB, 1, 92, 1), SHERD_OK);
    assert_int_equal(put_block(&p, JOB, 2, 93, 1), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.no.events[SHERD__EV_BLOCK], 1);
    assert_non_null(strstr(p.co.log, "refused abc 2 0: block of 101 bytes"));
    pair_close(&p);
}

static void a_lying_group_table_ends_the_session_before_the_event(void **state)
{
    (void)state;
    pair p;
    uint8_t bytes[SHERD__RECORD_BYTES + 14] = { 0 };
    sherd__fragment_info info = block_info(2, 3);
    open_ready(&p);
    assert_int_equal(inject_description(&p, &p.no, SHERD__REC_PUT, 1, &info, NULL), SHERD_OK);
    sherd__record r = { .type = SHERD__REC_PUT, .job = JOB, .number = 1, .part = 1,
                        .body_len = 14 };
    sherd__record_pack(&r, bytes);
    sherd__put_u32(bytes + SHERD__RECORD_BYTES, 3);
    sherd__put_u32(bytes + SHERD__RECORD_BYTES + 4, 2);
    assert_int_equal(side_feed(&p.no, bytes, sizeof bytes, SIZE_MAX, p.now), SHERD_EFRAME);
    assert_int_equal(p.no.events[SHERD__EV_BLOCK], 0);
    assert_int_equal(p.no.held, 0);
    pair_close(&p);
}

static void parts_must_come_in_order_and_full(void **state)
{
    (void)state;
    static const struct { uint64_t job; uint32_t number, part; uint64_t len; } wrong[] = {
        { JOB, 1, 2, 14 }, { JOB, 1, 1, 13 }, { JOB, 1, 1, 15 }, { JOB, 1, 1, 0 },
        { JOB, 2, 1, 14 }, { JOB + 1, 1, 1, 14 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pair p;
        static const uint8_t zeros[16];
        sherd__fragment_info info = block_info(2, 3);
        open_ready(&p);
        assert_int_equal(inject_description(&p, &p.no, SHERD__REC_PUT, 1, &info, NULL), SHERD_OK);
        sherd__record r = { .type = SHERD__REC_PUT, .job = wrong[i].job, .number = wrong[i].number,
                            .part = wrong[i].part, .body_len = wrong[i].len };
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

static void bulk_inside_a_body_is_malformed(void **state)
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

static void a_task_that_is_open_already_is_malformed(void **state)
{
    (void)state;
    pair p;
    uint8_t body[SHERD__CONTROL_MAX];
    sherd__task t = task_of(JOB, 1, 1, 1);
    open_ready(&p);
    p.no.silent_tasks = 1;
    sherd__record r = { .type = SHERD__REC_TASK, .job = JOB, .number = 1, .part = 1,
                        .body_len = sherd__message_task(body, &t) };
    assert_int_equal(inject(&p, &p.no, &r, body), SHERD_OK);
    assert_int_equal(inject(&p, &p.no, &r, body), SHERD_EFRAME);
    pair_close(&p);
}

static void an_operation_that_is_not_known_is_refused_and_the_session_lives(void **state)
{
    (void)state;
    pair p;
    sherd__task t = task_of(JOB, 1, 1, 1);
    t.op = 23;
    open_ready(&p);
    ask(&p, &t);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.no.events[SHERD__EV_TASK], 0);
    assert_int_equal(p.co.events[SHERD__EV_REFUSED], 1);
    assert_int_equal(p.co.err, 0);
    pair_close(&p);
}

/* ---- directions, origins, types ---- */

static void a_fragment_of_the_wrong_origin_is_refused_on_sending(void **state)
{
    (void)state;
    pair p;
    sherd_fragment *hidden, *result;
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

static void an_unknown_record_that_may_be_ignored_is(void **state)
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

/* ---- silence, stalls ---- */

static void a_silent_peer_is_pinged_and_then_left(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    uint64_t heard = p.now;
    for (int i = 0; i < 10 && !p.co.err; i++) {
        const uint8_t *out;
        p.now = sherd__session_deadline(p.co.s);
        assert_true(p.now <= heard + SHERD__DEAD_MS);
        side_tick(&p.co, p.now);
        size_t n = sherd__session_pending(p.co.s, p.now, &out);
        sherd__session_sent(p.co.s, n);
    }
    assert_int_equal(p.co.err, SHERD_ESILENT);
    assert_int_equal(p.now, heard + SHERD__DEAD_MS);
    assert_int_equal(sherd__session_stats_of(p.co.s)->records_out, 1 + 2 + 1);
    pair_close(&p);
}

static void idle_peers_live_for_ever(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    for (int i = 0; i < 1000; i++) {
        uint64_t a = sherd__session_deadline(p.co.s), b = sherd__session_deadline(p.no.s);
        p.now = a < b ? a : b;
        side_tick(&p.co, p.now);
        side_tick(&p.no, p.now);
        pair_run(&p, SIZE_MAX);
    }
    assert_int_equal(p.co.err, 0);
    assert_int_equal(p.no.err, 0);
    assert_true(p.now > 1000000);
    pair_close(&p);
}

static void any_byte_counts_as_life(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    uint8_t head[SHERD__RECORD_BYTES];
    sherd__record r = { .type = SHERD__REC_DROP, .job = JOB };
    sherd__record_pack(&r, head);
    for (int i = 0; i < 5; i++) {
        p.now += SHERD__DEAD_MS / 4;
        assert_int_equal(side_feed(&p.no, head + i, 1, 1, p.now), SHERD_OK);
        side_tick(&p.no, p.now);
        assert_int_equal(p.no.err, 0);
    }
    pair_close(&p);
}

static void a_record_that_never_ends_is_a_stall(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    uint8_t head[SHERD__RECORD_BYTES];
    sherd__record r = { .type = SHERD__REC_DROP, .job = JOB };
    sherd__record_pack(&r, head);
    uint64_t began = p.now;
    for (size_t i = 0; i < sizeof head - 1 && !p.no.err; i++) {
        assert_int_equal(side_feed(&p.no, head + i, 1, 1, p.now), SHERD_OK);
        p.now += 1000;
        side_tick(&p.no, p.now);
    }
    assert_int_equal(p.no.err, SHERD_ESILENT);
    assert_int_equal(p.now, began + SHERD__STALL_MS);
    pair_close(&p);
}

/* Feeds `rate` bytes of a long body every second for `seconds`; what ended the node's session. */
static int trickle(size_t rate, int seconds)
{
    pair p;
    open_ready(&p);
    assert_int_equal(put_block(&p, JOB, 1, 40 * SHERD__CHUNK, 1), SHERD_OK);
    const uint8_t *out;
    for (int i = 0; i < seconds && !p.no.err; i++) {
        for (size_t left = rate; left;) {
            size_t n = sherd__session_pending(p.co.s, p.now, &out);
            if (n > left) n = left;
            assert_int_equal(side_feed(&p.no, out, n, SIZE_MAX, p.now), SHERD_OK);
            sherd__session_sent(p.co.s, n);
            left -= n;
        }
        p.now += 1000;
        side_tick(&p.no, p.now);
    }
    int err = p.no.err;
    pair_close(&p);
    return err;
}

static void a_body_that_hardly_moves_is_a_stall_and_a_slow_one_is_not(void **state)
{
    (void)state;
    assert_int_equal(trickle(SHERD__STALL_BYTES / 10 - 600, 60), SHERD_ESILENT);
    assert_int_equal(trickle(SHERD__STALL_BYTES / 10 + 600, 60), SHERD_OK);
}

static void held_reading_excuses_the_peer(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    sherd__session_hold(p.co.s, true, p.now);
    int pings = 0;
    for (int i = 0; i < 30; i++) {
        const uint8_t *out;
        p.now += 1000;
        side_tick(&p.co, p.now);
        size_t n = sherd__session_pending(p.co.s, p.now, &out);
        pings += n > 0;
        sherd__session_sent(p.co.s, n);
    }
    assert_int_equal(p.co.err, 0);
    assert_in_range(pings, 13, 16);
    sherd__session_hold(p.co.s, false, p.now);
    p.now += SHERD__DEAD_MS - 1;
    side_tick(&p.co, p.now);
    side_tick(&p.co, p.now);
    assert_int_equal(p.co.err, 0);
    pair_close(&p);
}

static void a_process_that_slept_gives_its_peer_one_second_more(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    p.now += 3600 * 1000;
    side_tick(&p.co, p.now);
    assert_int_equal(p.co.err, 0);
    assert_int_equal(sherd__session_deadline(p.co.s), p.now + 1000);
    for (int i = 0; i < 10 && !p.co.err; i++)
        side_tick(&p.co, p.now = sherd__session_deadline(p.co.s));
    assert_int_equal(p.co.err, SHERD_ESILENT);
    pair_close(&p);
}

static void a_pong_without_its_ping_is_unasked(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    sherd__record pong = { .type = SHERD__REC_PONG, .number = 1 };
    assert_int_equal(inject(&p, &p.co, &pong, NULL), SHERD_EUNASKED);
    pair_close(&p);
}

/* ---- ends ---- */

static void a_goodbye_ends_both_sides_with_its_reason(void **state)
{
    (void)state;
    pair p;
    sherd__event ev;
    open_ready(&p);
    assert_int_equal(put_block(&p, JOB, 1, 5, 5), SHERD_OK);
    sherd__session_bye(p.co.s, SHERD_EBUSY, "shutting down");
    assert_false(sherd__session_ready(p.co.s));
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.no.events[SHERD__EV_BLOCK], 0); /* bulk is dropped */
    assert_int_equal(p.no.err, SHERD_EBUSY);
    assert_int_equal(sherd__session_deadline(p.co.s), 0);
    sherd__session_tick(p.co.s, p.now, &ev);
    assert_int_equal(ev.kind, SHERD__EV_CLOSED);
    assert_int_equal(ev.err, SHERD_EBUSY);
    assert_string_equal(ev.text, "shutting down");
    sherd__session_tick(p.co.s, p.now + 100000, &ev);
    assert_int_equal(ev.kind, SHERD__EV_NONE); /* once */
    pair_close(&p);
}

static void a_goodbye_that_cannot_be_sent_ends_all_the_same(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    sherd__session_bye(p.co.s, 0, "done");
    p.now = sherd__session_deadline(p.co.s);
    assert_int_equal(p.now, 1000 + SHERD__DEAD_MS);
    side_tick(&p.co, p.now);
    assert_int_equal(p.co.err, SHERD_ECLOSED);
    pair_close(&p);
}

static void the_end_of_the_connection_frees_everything_and_says_why(void **state)
{
    (void)state;
    pair p;
    sherd__event ev;
    open_ready(&p);
    assert_int_equal(put_block(&p, JOB, 1, 3 * SHERD__CHUNK, 1), SHERD_OK);
    pair_move(&p, &p.co, &p.no, SIZE_MAX);
    assert_true(p.no.held > 0);
    sherd__session_eof(p.no.s, SHERD_ENET, "connection reset", &ev);
    assert_int_equal(ev.kind, SHERD__EV_CLOSED);
    assert_int_equal(ev.err, SHERD_ENET);
    assert_string_equal(ev.text, "connection reset");
    assert_int_equal(p.no.held, 0);
    sherd__session_eof(p.co.s, 0, NULL, &ev);
    assert_int_equal(ev.err, SHERD_ECLOSED);
    assert_int_equal(sherd__session_queued(p.co.s), 0);
    pair_close(&p);
}

static int fill_fails(void *ctx, uint64_t offset, uint8_t *out, size_t len)
{
    (void)ctx;
    if (offset >= SHERD__CHUNK) return SHERD_EIO;
    memset(out, 0, len);
    return SHERD_OK;
}

static void a_fragment_that_cannot_be_read_ends_its_session_with_the_reason(void **state)
{
    (void)state;
    pair p;
    sherd_fragment *f;
    sherd__fragment_info info = block_info(3 * SHERD__CHUNK, 1);
    open_ready(&p);
    assert_int_equal(sherd__fragment_new_source(
                         &f, &info, (sherd__fragment_source){ .fill = fill_fails }), SHERD_OK);
    assert_int_equal(sherd__session_put(p.co.s, JOB, 1, f), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(sherd__session_deadline(p.co.s), 0);
    side_tick(&p.co, p.now);
    assert_int_equal(p.co.err, SHERD_EIO);
    assert_int_equal(p.no.err, SHERD_ECLOSED);
    assert_int_equal(p.no.held, 0);
    pair_close(&p);
}

static void a_peer_that_sends_and_never_reads_is_left(void **state)
{
    (void)state;
    pair p;
    sherd__fragment_info info = block_info(0, 0);
    open_ready(&p);
    p.no.room = 0;
    info.rows = 1, info.cols = 1, info.len = 9;
    uint8_t part[SHERD__RECORD_BYTES + 9] = { 0 };
    sherd__record r = { .type = SHERD__REC_PUT, .job = JOB, .number = 1, .part = 1, .body_len = 9 };
    sherd__record_pack(&r, part);
    int err = 0;
    for (int i = 0; i < 1000000 && !err; i++) {
        err = inject_description(&p, &p.no, SHERD__REC_PUT, 1, &info, NULL);
        if (!err) err = side_feed(&p.no, part, sizeof part, SIZE_MAX, p.now);
    }
    assert_true(err < 0);
    assert_true(sherd__session_queued(p.no.s) < 1u << 24);
    pair_close(&p);
}

/* ---- the same conversation, cut, bent and starved ---- */

static void record(pair *p, uint64_t rows)
{
    open_ready(p);
    assert_int_equal(pair_converse(p, rows), SHERD_OK);
    p->now += SHERD__PING_MS;
    side_tick(&p->co, p->now);
    pair_run(p, SIZE_MAX);
    assert_int_equal(p->co.events[SHERD__EV_RESULT], 5);
    assert_int_equal(p->co.events[SHERD__EV_REFUSED], 1);
    sherd__session_bye(p->co.s, 0, "done");
    pair_run(p, SIZE_MAX);
}

/* Feeds recorded bytes to a fresh node; the bytes it answers with go nowhere. */
static void replay_node(side *e, const uint8_t *in, size_t len, size_t step)
{
    const uint8_t *out;
    assert_int_equal(side_open(e, SHERD__NODE, 1000), SHERD_OK);
    (void)!side_feed(e, in, len, step, 1000);
    for (size_t n; (n = sherd__session_pending(e->s, 1000, &out)) > 0;)
        sherd__session_sent(e->s, n);
}

/* Feeds recorded bytes to a coordinator that asks as soon as it is ready. */
static void replay_coordinator(pair *p, uint64_t rows, const uint8_t *in, size_t len, size_t step)
{
    const uint8_t *out;
    bool asked = false;
    memset(p, 0, sizeof *p);
    assert_int_equal(side_open(&p->co, SHERD__COORDINATOR, 1000), SHERD_OK);
    for (size_t off = 0; off < len;) {
        size_t used, n = len - off < step ? len - off : step;
        sherd__event ev;
        int err = sherd__session_feed(p->co.s, in + off, n, 1000, &used, &ev);
        side_event(&p->co, &ev);
        if (err) break;
        off += used;
        if (asked || !sherd__session_ready(p->co.s)) continue;
        asked = true;
        assert_int_equal(pair_converse(p, rows), SHERD_OK);
        side_tick(&p->co, 1000 + SHERD__PING_MS);
        while ((n = sherd__session_pending(p->co.s, 1000, &out)) > 0)
            sherd__session_sent(p->co.s, n);
    }
}

static void bytes_one_at_a_time_say_what_they_say_together(void **state)
{
    (void)state;
    static const uint64_t rows[] = { 1, 7, 100000 };
    for (size_t i = 0; i < 3; i++) {
        pair p, again;
        record(&p, rows[i]);
        side no;
        replay_node(&no, p.co.wire, p.co.wire_len, 1);
        assert_string_equal(no.log, p.no.log);
        side_close(&no);
        replay_node(&no, p.co.wire, p.co.wire_len, 4099);
        assert_string_equal(no.log, p.no.log);
        side_close(&no);
        replay_coordinator(&again, rows[i], p.no.wire, p.no.wire_len, 1);
        assert_string_equal(again.co.log, p.co.log);
        side_close(&again.co);
        pair_close(&p);
    }
}

/* Alone with a peer that has stopped: the session must end by itself. */
static void assert_ends_alone(side *e)
{
    for (int i = 0; i < 20 && !e->events[SHERD__EV_CLOSED]; i++) {
        uint64_t at = sherd__session_deadline(e->s);
        assert_true(at < 100000);
        side_tick(e, at);
        const uint8_t *out;
        for (size_t n; (n = sherd__session_pending(e->s, at, &out)) > 0;)
            sherd__session_sent(e->s, n);
    }
    assert_int_equal(e->events[SHERD__EV_CLOSED], 1);
    assert_int_equal(e->held, 0);
}

static void every_prefix_gives_a_prefix_of_the_events_and_then_ends(void **state)
{
    (void)state;
    pair p, again;
    record(&p, 7);
    for (size_t n = 0; n < p.co.wire_len; n++) {
        side no;
        replay_node(&no, p.co.wire, n, SIZE_MAX);
        assert_int_equal(no.err, 0);
        assert_memory_equal(no.log, p.no.log, no.log_len);
        assert_ends_alone(&no);
        side_close(&no);
    }
    for (size_t n = 0; n < p.no.wire_len; n++) {
        replay_coordinator(&again, 7, p.no.wire, n, SIZE_MAX);
        assert_int_equal(again.co.err, 0);
        assert_memory_equal(again.co.log, p.co.log, again.co.log_len);
        assert_ends_alone(&again.co);
        side_close(&again.co);
    }
    pair_close(&p);
}

enum { STRICT, NAME, CONTROL, TABLE, VALUES };

/* What each byte of a recorded stream is. */
static uint8_t *classify(const uint8_t *in, size_t len)
{
    uint8_t *kind = calloc(len, 1);
    assert_non_null(kind);
    for (size_t at = 0; at < len;) {
        sherd__record r;
        assert_int_equal(sherd__record_parse(&r, in + at, NULL), SHERD_OK);
        memset(kind + at + 8, NAME, 16);
        if (r.type == SHERD__REC_PONG) kind[at + 4] = NAME; /* one bit from a PING: legal too */
        at += SHERD__RECORD_BYTES;
        bool chunk = (r.type == SHERD__REC_PUT || r.type == SHERD__REC_RESULT) && r.part;
        memset(kind + at, chunk ? VALUES : CONTROL, r.body_len);
        if (chunk && r.type == SHERD__REC_PUT && r.part == 1) memset(kind + at, TABLE, 8);
        at += r.body_len;
    }
    return kind;
}

/* A bit of a header's magic, type, flags or length, or of a group table, ends the session (at once
 * or, where a length swallows what follows, by silence); a bit of a value changes that one only. */
static void judge(side *e, const side *good, uint8_t kind)
{
    if (kind == VALUES) {
        assert_int_equal(e->err, good->err);
        assert_int_equal(e->log_len, good->log_len);
        assert_memory_equal(e->events, good->events, sizeof e->events);
        assert_string_not_equal(e->log, good->log);
    } else if (kind != NAME && kind != CONTROL) {
        assert_int_not_equal(e->err, SHERD_ECLOSED); /* it did not get as far as the goodbye */
        if (e->err == 0) assert_memory_not_equal(e->events, good->events, sizeof e->events);
    }
    assert_ends_alone(e);
}

static void every_flipped_bit_ends_the_session_or_changes_one_value(void **state)
{
    (void)state;
    pair p, again;
    record(&p, 2);
    uint8_t *kind = classify(p.co.wire, p.co.wire_len);
    for (size_t bit = 0; bit < 8 * p.co.wire_len; bit++) {
        side no;
        p.co.wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
        replay_node(&no, p.co.wire, p.co.wire_len, SIZE_MAX);
        judge(&no, &p.no, kind[bit / 8]);
        side_close(&no);
        p.co.wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(kind);
    kind = classify(p.no.wire, p.no.wire_len);
    for (size_t bit = 0; bit < 8 * p.no.wire_len; bit++) {
        p.no.wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
        replay_coordinator(&again, 2, p.no.wire, p.no.wire_len, SIZE_MAX);
        judge(&again.co, &p.co, kind[bit / 8]);
        side_close(&again.co);
        p.no.wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(kind);
    pair_close(&p);
}

/* One whole conversation; true if it went as without failures. */
static bool whole_conversation(void)
{
    pair p;
    memset(&p, 0, sizeof p);
    int err = pair_open(&p);
    if (err == 0) {
        pair_run(&p, SIZE_MAX);
        if (sherd__session_ready(p.co.s)) err = pair_converse(&p, 30000);
        if (!err && sherd__session_ready(p.co.s))
            err = sherd__session_cancel(p.co.s, JOB, 2, 1);
        pair_run(&p, SIZE_MAX);
    }
    bool good = err == 0 && p.co.events[SHERD__EV_RESULT] == 4 && p.co.err == 0;
    assert_true(err == 0 || err == SHERD_ENOMEM);
    assert_true(p.no.err == 0 || p.no.err == SHERD_ENOMEM || p.no.err == SHERD_ECLOSED);
    pair_close(&p);
    assert_int_equal(p.co.held + p.no.held, 0);
    return good;
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    size_t n = 1;
    for (;; n++) {
        sherd__alloc_fail_nth(n);
        bool good = whole_conversation();
        if (sherd__alloc_fail_nth(0) < n) {
            assert_true(good);
            break;
        }
    }
    assert_true(n > 20);
}

static void many_open_tasks_are_answered_in_any_order(void **state)
{
    (void)state;
    pair p;
    enum { N = 3000 };
    static sherd__task tasks[N];
    open_ready(&p);
    p.no.silent_tasks = 1;
    for (uint32_t i = 0; i < N; i++) {
        tasks[i] = task_of(JOB + i % 7, i + 1, 1, 1);
        ask(&p, &tasks[i]);
    }
    assert_int_equal(sherd__session_task(p.co.s, &tasks[5]), SHERD_EINVAL);
    pair_run(&p, SIZE_MAX);
    for (uint32_t i = 0, k = 0; i < N; i++, k = (k + 1237) % N) {
        sherd_fragment *f;
        assert_int_equal(result_of(&f, &tasks[k]), SHERD_OK);
        assert_int_equal(sherd__session_result(p.no.s, &tasks[k], f), SHERD_OK);
    }
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.co.events[SHERD__EV_RESULT], N);
    assert_int_equal(p.co.err, 0);
    pair_close(&p);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(both_sides_learn_of_each_other),
        T(the_greatest_common_minor_is_chosen),
        T(minors_without_overlap_end_both_sides_with_the_version),
        T(a_welcome_outside_what_was_offered_is_another_version),
        T(nothing_but_hello_is_taken_before_the_handshake_and_no_second_one_after),
        T(calls_before_the_handshake_are_refused_and_keep_the_fragment),
        T(a_slow_handshake_ends_and_a_quick_one_does_not),
        T(every_message_arrives),
        T(a_body_of_many_chunks_arrives_whole),
        T(small_things_are_offered_together),
        T(an_offer_may_be_taken_in_pieces),
        T(a_ping_overtakes_bulk_and_is_answered_in_the_middle_of_a_body),
        T(a_task_stays_behind_its_blocks_and_a_cancel_does_not),
        T(a_cancelled_task_is_answered_once_and_swallowed),
        T(a_result_that_crosses_its_cancel_is_skipped_without_memory),
        T(a_result_cancelled_while_it_arrives_gives_its_memory_back),
        T(a_task_cancelled_before_it_left_only_drops_its_blocks),
        T(a_whole_job_can_be_cancelled),
        T(nothing_of_a_forgotten_job_is_read_again_and_the_session_goes_on),
        T(nothing_of_a_retracted_block_is_read_again_and_others_arrive),
        T(a_task_cancelled_before_it_left_takes_its_blocks_back),
        T(forgetting_without_memory_ends_the_session_and_reads_nothing_either),
        T(a_result_that_was_not_asked_for_ends_the_session),
        T(another_attempt_than_the_one_asked_for_is_unasked),
        T(a_second_result_is_unasked),
        T(a_refusal_of_what_is_not_open_is_unasked),
        T(a_result_of_another_description_is_malformed),
        T(no_room_for_a_result_ends_the_coordinators_session),
        T(a_block_above_the_nodes_room_is_refused_and_the_session_lives),
        T(a_block_above_block_max_is_refused_without_asking_for_room),
        T(a_lying_group_table_ends_the_session_before_the_event),
        T(parts_must_come_in_order_and_full),
        T(a_part_without_its_first_record_is_malformed),
        T(bulk_inside_a_body_is_malformed),
        T(a_task_that_is_open_already_is_malformed),
        T(an_operation_that_is_not_known_is_refused_and_the_session_lives),
        T(a_fragment_of_the_wrong_origin_is_refused_on_sending),
        T(a_put_of_a_result_is_malformed),
        T(a_record_in_the_wrong_direction_is_malformed),
        T(an_unknown_record_that_may_be_ignored_is),
        T(a_silent_peer_is_pinged_and_then_left),
        T(idle_peers_live_for_ever),
        T(any_byte_counts_as_life),
        T(a_record_that_never_ends_is_a_stall),
        T(a_body_that_hardly_moves_is_a_stall_and_a_slow_one_is_not),
        T(held_reading_excuses_the_peer),
        T(a_process_that_slept_gives_its_peer_one_second_more),
        T(a_pong_without_its_ping_is_unasked),
        T(a_goodbye_ends_both_sides_with_its_reason),
        T(a_goodbye_that_cannot_be_sent_ends_all_the_same),
        T(the_end_of_the_connection_frees_everything_and_says_why),
        T(a_fragment_that_cannot_be_read_ends_its_session_with_the_reason),
        T(a_peer_that_sends_and_never_reads_is_left),
        T(bytes_one_at_a_time_say_what_they_say_together),
        T(every_prefix_gives_a_prefix_of_the_events_and_then_ends),
        T(every_flipped_bit_ends_the_session_or_changes_one_value),
        T(every_failed_allocation_is_survived),
        T(many_open_tasks_are_answered_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
