/*
 * Silence and stalls under a clock that the tests advance: a silent peer is pinged and then
 * disconnected, a slow one is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/wire/session_steps.h"

/* ---- silence, stalls ---- */

static void a_silent_peer_is_pinged_and_then_disconnected(void **state)
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

static void idle_peers_stay_connected(void **state)
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

static void any_byte_counts_as_activity(void **state)
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

/* Feeds `rate` bytes of a long body every second for `seconds`. Returns the error that ended the
 * node's session. */
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

static void a_body_that_hardly_progresses_is_a_stall_and_a_slow_one_is_not(void **state)
{
    (void)state;
    assert_int_equal(trickle(SHERD__STALL_BYTES / 10 - 600, 60), SHERD_ESILENT);
    assert_int_equal(trickle(SHERD__STALL_BYTES / 10 + 600, 60), SHERD_OK);
}

static void only_bytes_of_blocks_tasks_and_results_count_as_moved(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    uint8_t body[1000] = { 0 };
    sherd__record unknown = { .type = 0x77, .flags = 1, .body_len = sizeof body };
    assert_int_equal(inject(&p, &p.co, &unknown, body), SHERD_OK);
    for (uint32_t i = 1; i <= 130; i++) {
        sherd__record ping = { .type = SHERD__REC_PING, .number = i };
        assert_int_equal(inject(&p, &p.co, &ping, NULL), SHERD_OK);
    }
    assert_int_equal(sherd__session_moved(p.co.s), 0);
    pair_close(&p);
    open_ready(&p);
    assert_int_equal(put_block(&p, JOB, 1, 2 * SHERD__CHUNK, 1), SHERD_OK);
    const uint64_t all = 2 * SHERD__CHUNK;
    pair_run(&p, SIZE_MAX);
    uint64_t moved = sherd__session_moved(p.co.s);
    assert_in_range(moved, all, all + 2000);
    assert_in_range(sherd__session_moved(p.no.s), all, all + 2000);
    sherd__session_unsent(p.co.s, 1000); /* the transport still has them */
    assert_int_equal(sherd__session_moved(p.co.s), moved - 1000);
    pair_close(&p);
}

static void while_reading_is_paused_the_peers_silence_does_not_count(void **state)
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

static void after_a_process_slept_its_peer_gets_one_more_second(void **state)
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

static void a_pong_without_its_ping_is_unrequested(void **state)
{
    (void)state;
    pair p;
    open_ready(&p);
    sherd__record pong = { .type = SHERD__REC_PONG, .number = 1 };
    assert_int_equal(inject(&p, &p.co, &pong, NULL), SHERD_EUNASKED);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_peer_is_pinged_and_then_disconnected),
        cmocka_unit_test(idle_peers_stay_connected),
        cmocka_unit_test(any_byte_counts_as_activity),
        cmocka_unit_test(a_record_that_never_ends_is_a_stall),
        cmocka_unit_test(a_body_that_hardly_progresses_is_a_stall_and_a_slow_one_is_not),
        cmocka_unit_test(only_bytes_of_blocks_tasks_and_results_count_as_moved),
        cmocka_unit_test(while_reading_is_paused_the_peers_silence_does_not_count),
        cmocka_unit_test(after_a_process_slept_its_peer_gets_one_more_second),
        cmocka_unit_test(a_pong_without_its_ping_is_unrequested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
