/*
 * One conversation is recorded and replayed: cut anywhere, with one bit flipped, without memory.
 * The division of the bytes into pieces does not change the events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/wire/session_steps.h"

/* ---- the same conversation, truncated, corrupted and without memory -------------------------- */

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

/* Feeds recorded bytes to a new node; its answers are dropped. */
static void replay_node(side *e, const uint8_t *in, size_t len, size_t step)
{
    const uint8_t *out;
    assert_int_equal(side_open(e, SHERD__NODE, 1000), SHERD_OK);
    (void)!side_feed(e, in, len, step, 1000);
    for (size_t n; (n = sherd__session_pending(e->s, 1000, &out)) > 0;)
        sherd__session_sent(e->s, n);
}

/* Feeds recorded bytes to a coordinator that sends its requests as soon as it is ready. */
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

static void single_bytes_give_the_same_events_as_the_whole(void **state)
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

/* Checks that the session ends by itself if its peer has stopped. */
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

static void every_prefix_gives_a_prefix_of_the_events_and_then_the_end(void **state)
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

/* Returns the meaning of each byte of a recorded stream. */
static uint8_t *classify(const uint8_t *in, size_t len)
{
    uint8_t *kind = calloc(len, 1);
    assert_non_null(kind);
    for (size_t at = 0; at < len;) {
        sherd__record r;
        assert_int_equal(sherd__record_parse(&r, in + at, NULL), SHERD_OK);
        memset(kind + at + 8, NAME, 16);
        if (r.type == SHERD__REC_PONG)
            kind[at + 4] = NAME; /* differs from PING by one bit: legal,
                                                             * too */
        at += SHERD__RECORD_BYTES;
        bool chunk = (r.type == SHERD__REC_PUT || r.type == SHERD__REC_RESULT) && r.part;
        memset(kind + at, chunk ? VALUES : CONTROL, r.body_len);
        if (chunk && r.type == SHERD__REC_PUT && r.part == 1) memset(kind + at, TABLE, 8);
        at += r.body_len;
    }
    return kind;
}

/* A flipped bit of a header's magic, type, flags or length, or of a group table, ends the session
 * (at once, or by silence if a length covers the following records). A flipped bit of a value
 * changes this value only. */
static void judge(side *e, const side *good, uint8_t kind)
{
    if (kind == VALUES) {
        assert_int_equal(e->err, good->err);
        assert_int_equal(e->log_len, good->log_len);
        assert_memory_equal(e->events, good->events, sizeof e->events);
        assert_string_not_equal(e->log, good->log);
    } else if (kind != NAME && kind != CONTROL) {
        assert_int_not_equal(e->err, SHERD_ECLOSED); /* the session ended before the goodbye */
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

/* Runs a complete conversation. Returns whether it succeeded without a failure. */
static bool whole_conversation(void)
{
    pair p;
    memset(&p, 0, sizeof p);
    int err = pair_open(&p);
    if (err == 0) {
        pair_run(&p, SIZE_MAX);
        if (sherd__session_ready(p.co.s)) err = pair_converse(&p, 30000);
        if (!err && sherd__session_ready(p.co.s)) err = sherd__session_cancel(p.co.s, JOB, 2, 1);
        pair_run(&p, SIZE_MAX);
    }
    bool good = err == 0 && p.co.events[SHERD__EV_RESULT] == 4 && p.co.err == 0;
    assert_true(err == 0 || err == SHERD_ENOMEM);
    assert_true(p.no.err == 0 || p.no.err == SHERD_ENOMEM || p.no.err == SHERD_ECLOSED);
    pair_close(&p);
    assert_int_equal(p.co.held + p.no.held, 0);
    return good;
}

static void every_failed_allocation_is_reported(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_bytes_give_the_same_events_as_the_whole),
        cmocka_unit_test(every_prefix_gives_a_prefix_of_the_events_and_then_the_end),
        cmocka_unit_test(every_flipped_bit_ends_the_session_or_changes_one_value),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
