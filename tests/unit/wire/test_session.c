/*
 * Two sessions joined in memory: the handshake, the messages of each side, urgent records that
 * overtake others, and the ends of sessions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "tests/unit/wire/session_steps.h"

/* ---- handshake ---- */

static void both_sides_learn_the_properties_of_the_other(void **state)
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

static const sherd__hello_device two_devices[] = {
    { SHERD__DOES_ALL, 90, 400, 0, 1 << 20, 2, 2000 },
    { SHERD__DOES_F64, 8000, 0, 1u << 31, 1 << 24, 8, 0 }
};

/* Returns how many devices the coordinator learns of if the node declares two. */
static uint32_t devices_heard(uint32_t co_max, uint32_t no_max)
{
    pair p;
    sherd__session_options o = { .role = SHERD__COORDINATOR, .hello = { .minor_max = co_max } };
    memset(&p, 0, sizeof p);
    assert_int_equal(sherd__session_new(&p.co.s, &o), SHERD_OK);
    o.role = SHERD__NODE;
    o.hello.minor_max = no_max;
    o.hello.gflops = 8090;
    o.hello.devices_len = 2;
    memcpy(o.hello.devices, two_devices, sizeof two_devices);
    assert_int_equal(sherd__session_new(&p.no.s, &o), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.co.err, SHERD_OK);
    const sherd__hello *h = sherd__session_peer(p.co.s);
    uint32_t len = h->devices_len;
    assert_true(h->gflops == 8090);
    if (len) assert_memory_equal(h->devices, two_devices, sizeof two_devices);
    pair_close(&p);
    return len;
}

static void devices_are_declared_from_minor_2_on(void **state)
{
    (void)state;
    assert_int_equal(devices_heard(SHERD__MINOR, SHERD__MINOR), 2);
    assert_int_equal(devices_heard(9, 2), 2);
    assert_int_equal(devices_heard(1, 2), 0);
    assert_int_equal(devices_heard(0, 2), 0);
    pair p; /* a node of minor 1 that has such a field: it means nothing there */
    uint8_t body[SHERD__CONTROL_MAX];
    sherd__hello h = { .minor_min = 0, .minor_max = 0, .gflops = 3, .devices_len = 2 };
    memcpy(h.devices, two_devices, sizeof two_devices);
    assert_int_equal(pair_open(&p), SHERD_OK); /* offers minor 0 */
    sherd__record r = { .type = SHERD__REC_WELCOME, .body_len = sherd__message_hello(body, &h) };
    assert_int_equal(inject(&p, &p.co, &r, body), SHERD_OK);
    assert_int_equal(sherd__session_peer(p.co.s)->devices_len, 0);
    assert_true(sherd__session_peer(p.co.s)->gflops == 3);
    pair_close(&p);
}

static void a_session_with_impossible_rates_is_not_made(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        sherd__session *s;
        sherd__session_options o = { .role = SHERD__NODE };
        o.hello.devices_len = i == 3 ? SHERD__DEVICES_MAX + 1 : 2;
        if (i == 0) o.hello.gflops = -1;
        if (i == 1) o.hello.devices[1].gflops = NAN;
        if (i == 2) o.hello.devices[0].residue_gflops = INFINITY;
        assert_int_equal(sherd__session_new(&s, &o), SHERD_EINVAL);
        assert_null(s);
    }
}

static void minors_without_overlap_end_both_sides_with_a_version_error(void **state)
{
    (void)state;
    pair p;
    assert_int_equal(handshake(1, 2, 3, 4, &p), SHERD_EVERSION);
    pair_close(&p);
    assert_int_equal(handshake(7, 9, 3, 4, &p), SHERD_EVERSION);
    pair_close(&p);
}

static void a_welcome_outside_the_offered_range_is_a_version_error(void **state)
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

static void before_the_handshake_only_hello_is_accepted_and_only_once(void **state)
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
    sherd__fragment *f;
    sherd__task t = task_of(JOB, 1, 1, 1);
    assert_int_equal(pair_open(&p), SHERD_OK);
    assert_int_equal(block_of(&f, 1, 1), SHERD_OK);
    assert_int_equal(sherd__session_put(p.co.s, JOB, 1, f), SHERD_EINVAL);
    assert_int_equal(sherd__session_task(p.co.s, &t), SHERD_EINVAL);
    assert_int_equal(sherd__session_drop(p.co.s, JOB, 1), SHERD_EINVAL);
    sherd__fragment_free(f);
    pair_close(&p);
}

static void a_slow_handshake_ends_the_session_and_a_quick_one_does_not(void **state)
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
    assert_non_null(strstr(p.co.log, "refused abc 0 5: refused\n"));
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

static void small_records_are_offered_together(void **state)
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

static void an_offer_can_be_sent_in_pieces(void **state)
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

static uint16_t first_type(sherd__session *s, uint64_t now)
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

static void a_task_is_sent_after_its_blocks_and_a_cancel_before_them(void **state)
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
        sherd__fragment *f;
        assert_int_equal(result_of(&f, &tasks[k]), SHERD_OK);
        assert_int_equal(sherd__session_result(p.no.s, &tasks[k], f), SHERD_OK);
    }
    pair_run(&p, SIZE_MAX);
    assert_int_equal(p.co.events[SHERD__EV_RESULT], N);
    assert_int_equal(p.co.err, 0);
    pair_close(&p);
}

/* ---- ends of sessions ------------------------------------------------------------------------ */

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
    assert_int_equal(ev.kind, SHERD__EV_NONE); /* only once */
    pair_close(&p);
}

static void a_goodbye_that_cannot_be_sent_still_ends_the_session(void **state)
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

static void the_end_of_the_connection_frees_everything_and_reports_the_reason(void **state)
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
    sherd__put_u32(out, 3 * SHERD__CHUNK);
    sherd__put_u32(out + 4, 1);
    return SHERD_OK;
}

static void a_fragment_that_cannot_be_read_ends_its_session_with_the_reason(void **state)
{
    (void)state;
    pair p;
    sherd__fragment *f;
    sherd__fragment_info info = block_info(3 * SHERD__CHUNK, 1);
    open_ready(&p);
    assert_int_equal(sherd__fragment_new_source(&f, &info,
                                                (sherd__fragment_source){ .fill = fill_fails }),
                     SHERD_OK);
    assert_int_equal(sherd__session_put(p.co.s, JOB, 1, f), SHERD_OK);
    pair_run(&p, SIZE_MAX);
    assert_int_equal(sherd__session_deadline(p.co.s), 0);
    side_tick(&p.co, p.now);
    assert_int_equal(p.co.err, SHERD_EIO);
    assert_int_equal(p.no.err, SHERD_ECLOSED);
    assert_int_equal(p.no.held, 0);
    pair_close(&p);
}

static void a_peer_that_sends_and_never_reads_is_disconnected(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_learn_the_properties_of_the_other),
        cmocka_unit_test(the_greatest_common_minor_is_chosen),
        cmocka_unit_test(devices_are_declared_from_minor_2_on),
        cmocka_unit_test(a_session_with_impossible_rates_is_not_made),
        cmocka_unit_test(minors_without_overlap_end_both_sides_with_a_version_error),
        cmocka_unit_test(a_welcome_outside_the_offered_range_is_a_version_error),
        cmocka_unit_test(before_the_handshake_only_hello_is_accepted_and_only_once),
        cmocka_unit_test(calls_before_the_handshake_are_refused_and_keep_the_fragment),
        cmocka_unit_test(a_slow_handshake_ends_the_session_and_a_quick_one_does_not),
        cmocka_unit_test(every_message_arrives),
        cmocka_unit_test(a_body_of_many_chunks_arrives_whole),
        cmocka_unit_test(small_records_are_offered_together),
        cmocka_unit_test(an_offer_can_be_sent_in_pieces),
        cmocka_unit_test(a_ping_overtakes_bulk_and_is_answered_in_the_middle_of_a_body),
        cmocka_unit_test(a_task_is_sent_after_its_blocks_and_a_cancel_before_them),
        cmocka_unit_test(a_goodbye_ends_both_sides_with_its_reason),
        cmocka_unit_test(a_goodbye_that_cannot_be_sent_still_ends_the_session),
        cmocka_unit_test(the_end_of_the_connection_frees_everything_and_reports_the_reason),
        cmocka_unit_test(a_fragment_that_cannot_be_read_ends_its_session_with_the_reason),
        cmocka_unit_test(a_peer_that_sends_and_never_reads_is_disconnected),
        cmocka_unit_test(many_open_tasks_are_answered_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
