/*
 * Links that work: blocks and results, names and addresses, goodbyes. An owner may close a link at
 * any moment.
 *
 * link: -Wl,--wrap=getaddrinfo
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/support/far_resolver.h"
#include "tests/unit/wire/link_world.h"

/* ---- links that must work -------------------------------------------------------------------- */

static void blocks_and_results_arrive_complete(void **s)
{
    (void)s;
    static const uint64_t sizes[] = { 1, 2, 1000, 16384, 262136, 262144, 262145, 5000001 };
    world w;
    link_world_open(&w);
    link_both_up(&w);
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *body = link_body(sizes[i]), *copy = malloc(sizes[i] + 8);
        sherd__task t = { .job = JOB,
                          .task = i + 1,
                          .attempt = 1,
                          .op = SHERD__OP_SQUARE,
                          .left = i + 1,
                          .result = link_info_of(SHERD__RESULT, sizes[i]) };
        memcpy(copy, body, sizes[i] + 8);
        link_put(&w, i + 1, body, sizes[i]);
        assert_int_equal(sherd__session_task(sherd__link_session(w.c.link), &t), 0);
        sherd__link_flush(w.c.link);
        assert_true(link_run_until(&w, &w.c.results, (int)i + 1, WAIT_MS));
        assert_int_equal(w.n.body_len, sizes[i] + 8);
        assert_memory_equal(w.n.body, copy, sizes[i] + 8);
        assert_int_equal(w.c.body_len, sizes[i]);
        assert_memory_equal(w.c.body, copy + 8, sizes[i]);
        free(copy);
    }
    link_world_close(&w);
    assert_int_equal(w.rejected, 0);
}

static void a_goodbye_carries_its_reason_to_the_other_side(void **s)
{
    (void)s;
    for (int from_node = 0; from_node < 2; from_node++) {
        world w;
        link_world_open(&w);
        (from_node ? &w.n : &w.c)->close_on_ready = true;
        side *closer = from_node ? &w.n : &w.c, *other = from_node ? &w.c : &w.n;
        link_connect_as(&w, link_id_c, link_id_n);
        assert_true(link_run_until(&w, &closer->closed_calls, 1, WAIT_MS));
        assert_true(link_run_until(&w, &other->closed_calls, 1, WAIT_MS));
        assert_int_equal(closer->err, SHERD_EINTERRUPTED);
        link_expect(closer->text, "127.0.0.1:", "that was all");
        link_expect(other->text, "127.0.0.1:", "EINTERRUPTED: cancelled"); /* wire/says.h */
        link_world_close(&w);
    }
}

static void a_goodbye_does_not_wait_for_a_deadline(void **s)
{
    (void)s;
    uint64_t best_ms = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        world w;
        link_world_open(&w);
        link_both_up(&w);
        uint64_t begin = uv_now(&w.loop);
        sherd__link_close(w.c.link, 0, "bye");
        assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
        assert_true(link_run_until(&w, &w.n.closed_calls, 1, WAIT_MS));
        if (uv_now(&w.loop) - begin < best_ms) best_ms = uv_now(&w.loop) - begin;
        link_world_close(&w);
    }
    assert_true(best_ms < SHERD__LINK_LINGER_MS / 2);
}

static void a_name_is_resolved_and_each_of_its_addresses_is_tried(void **s)
{
    (void)s;
    world w;
    link_world_open(&w);
    assert_int_equal(link_dial(&w, "localhost", sherd__listener_port(w.listener), link_id_c,
                               link_id_n, 0),
                     0);
    assert_true(link_run_until(&w, &w.c.ready, 1, WAIT_MS));
    assert_memory_equal(sherd__link_peer_address(w.c.link), "localhost:", 10);
    link_world_close(&w);
    link_world_open(&w);
    assert_int_equal(link_dial(&w, "no such host", 7000, link_id_c, link_id_n, 2000), 0);
    assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    assert_int_equal(w.c.err, SHERD_ECONNECT);
    link_world_close(&w);
}

static void closing_a_listener_does_not_affect_its_links(void **s)
{
    (void)s;
    world w;
    link_world_open(&w);
    link_both_up(&w);
    sherd__listener_close(w.listener);
    w.listener = NULL;
    link_put(&w, 1, link_body(100000), 100000);
    sherd__link_flush(w.c.link);
    assert_true(link_run_until(&w, &w.n.blocks, 1, WAIT_MS));
    link_world_close(&w);
}

static void an_owner_may_close_at_any_moment(void **s)
{
    (void)s;
    for (int steps = 0; steps < 25; steps++) {
        world w;
        link_world_open(&w);
        link_connect_as(&w, link_id_c, link_id_n);
        for (int i = 0; i < steps; i++) uv_run(&w.loop, UV_RUN_NOWAIT);
        sherd__link_close(w.c.link, SHERD_EINTERRUPTED, "enough");
        assert_int_equal(w.c.closed_events, 0); /* never called from inside link_close */
        sherd__link_close(w.c.link, 0, "twice");
        sherd__listener_close(w.listener);
        sherd__listener_close(w.listener);
        w.listener = NULL;
        uv_run(&w.loop, UV_RUN_DEFAULT);
        assert_int_equal(w.c.closed_events, 1);
        assert_int_equal(w.c.closed_calls, 1);
        assert_int_equal(w.c.err, SHERD_EINTERRUPTED);
        link_expect(w.c.text, "127.0.0.1:", "enough");
        link_world_close(&w);
    }
}

static void closing_does_not_wait_for_an_unresolved_name(void **s)
{
    (void)s;
    for (unsigned way = 0; way < 3; way++) {
        world w;
        link_world_open(&w);
        assert_int_equal(link_dial(&w, "slow.example", 7000, link_id_c, link_id_n,
                                   way == 1 ? 50 : 0),
                         0);
        if (way) far_wait(1);
        if (way != 1) sherd__link_close(w.c.link, SHERD_EINTERRUPTED, "no need");
        assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS)); /* the name server has not
                                                                         * answered */
        assert_int_equal(w.c.err, way == 1 ? SHERD_ECONNECT : SHERD_EINTERRUPTED);
        if (way == 1)
            link_expect(w.c.text, "slow.example:7000: no connection", "its name is not resolved");
        link_world_close(&w);
        far_wait(1);
        far_release();
    }
}

static void look_ups_are_counted_for_the_turn_of_the_link(void **s)
{
    (void)s;
    world w;
    sherd__turn turn = { .records = 0 };
    link_world_open(&w);
    w.turn = &turn;
    for (int i = 0; i <= SHERD__LOOKUPS_OF; i++) {
        assert_int_equal(link_dial(&w, "slow.example", 7000, link_id_c, link_id_n, 0), 0);
        if (i < SHERD__LOOKUPS_OF) sherd__link_close(w.c.link, SHERD_EINTERRUPTED, "no need");
        assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
        assert_int_equal(w.c.err, i < SHERD__LOOKUPS_OF ? SHERD_EINTERRUPTED : SHERD_EBUSY);
    }
    link_expect(w.c.text, "slow.example:7000: name not looked up", sherd_strerror(SHERD_EBUSY));
    link_world_close(&w);
    far_wait(SHERD__LOOKUPS_OF);
    far_release();
}

static void ipv6_works_if_the_machine_supports_it(void **s)
{
    (void)s;
    world w;
    link_world_open(&w);
    sherd__listen_options o = { .loop = &w.loop,
                                .identity = link_id_n,
                                .allow = link_allow,
                                .accept = link_on_accept,
                                .rejected = link_on_rejected,
                                .ctx = &w };
    sherd__listener *six;
    if (sherd__listener_new(&six, &o, "::1", 0, NULL)) {
        link_world_close(&w);
        skip();
    }
    w.allowed = link_id_x; /* rejected, so that the report contains the address */
    assert_int_equal(link_dial(&w, "::1", sherd__listener_port(six), link_id_c, link_id_n, 0), 0);
    assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    link_expect(w.c.text, "[::1]:", "does not accept our key");
    assert_memory_equal(w.from, "[::1]:", 6);
    sherd__listener_close(six);
    link_world_close(&w);
}

static void a_listener_may_be_closed_from_inside_accept(void **s)
{
    (void)s;
    world w;
    link_world_open(&w);
    w.close_in_accept = true;
    link_connect_as(&w, link_id_c, link_id_n);
    assert_true(link_run_until(&w, &w.n.closed_calls, 1, WAIT_MS));
    w.listener = NULL;
    assert_true(link_run_until(&w, &w.c.closed_calls, 1, WAIT_MS));
    link_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_and_results_arrive_complete),
        cmocka_unit_test(a_goodbye_carries_its_reason_to_the_other_side),
        cmocka_unit_test(a_goodbye_does_not_wait_for_a_deadline),
        cmocka_unit_test(a_name_is_resolved_and_each_of_its_addresses_is_tried),
        cmocka_unit_test(closing_a_listener_does_not_affect_its_links),
        cmocka_unit_test(an_owner_may_close_at_any_moment),
        cmocka_unit_test(closing_does_not_wait_for_an_unresolved_name),
        cmocka_unit_test(look_ups_are_counted_for_the_turn_of_the_link),
        cmocka_unit_test(ipv6_works_if_the_machine_supports_it),
        cmocka_unit_test(a_listener_may_be_closed_from_inside_accept),
    };
    return cmocka_run_group_tests_name("wire/link", tests, link_keys_make, link_keys_free);
}
