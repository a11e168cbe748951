/*
 * Connections of one key share a turn of the loop, even if each has records in its buffer that it
 * could not handle in the previous turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "crypto/fragment_make.h"
#include "tests/unit/wire/link_world.h"
#include "wire/turn.h"

enum {
    LINKS = 40,
    CHEAP = 200,
    DEAR = 20
}; /* blocks of a link; the last ones take long to
                                              * handle */
#define DEAR_NS 1000000u
#define TURN_NS 4096000u /* as counted by sherd__turn_record */

static struct {
    world w;
    sherd__turn turn;
    sherd__link *link[LINKS];
    int ready, dear, gone;
    uint64_t now;
    int at_once, most; /* long blocks in the current turn; maximum over all turns */
} many;

static void node_event(void *ctx, sherd__link *l, sherd__event *e)
{
    (void)ctx, (void)l;
    sherd__fragment_free(e->fragment);
    if (e->kind != SHERD__EV_BLOCK || e->block <= CHEAP) return;
    if (many.now != uv_now(&many.w.loop)) many.at_once = 0;
    many.now = uv_now(&many.w.loop);
    many.dear++;
    if (++many.at_once > many.most) many.most = many.at_once;
    for (uint64_t end = uv_hrtime() + DEAR_NS; uv_hrtime() < end;) {}
}

static void gone(void *ctx, sherd__link *l)
{
    (void)ctx;
    many.gone++;
    for (int i = 0; i < LINKS; i++)
        if (many.link[i] == l)
            many.link[i] = NULL; /* on a starved machine a peer can seem silent */
}

static int on_accept(void *ctx, sherd__link *l, const sherd__fingerprint *key, const char *address,
                     sherd__session_options *session, sherd__link_owner *owner)
{
    (void)ctx, (void)l, (void)key, (void)address;
    session->role = SHERD__NODE;
    *owner = (sherd__link_owner){ node_event, gone, NULL, &many.turn };
    return 0;
}

static void coordinator_event(void *ctx, sherd__link *l, sherd__event *e)
{
    (void)ctx, (void)l;
    many.ready += e->kind == SHERD__EV_READY;
}

static void connect_all(void)
{
    sherd__listen_options listen = { .loop = &many.w.loop,
                                     .identity = link_id_n,
                                     .allow = link_allow,
                                     .accept = on_accept,
                                     .ctx = &many.w };
    sherd__link_options o = { .loop = &many.w.loop,
                              .identity = link_id_c,
                              .session = { .role = SHERD__COORDINATOR },
                              .owner = { coordinator_event, gone, NULL, NULL } };
    many.w.allowed = link_id_c;
    assert_int_equal(uv_loop_init(&many.w.loop), 0);
    assert_int_equal(sherd__listener_new(&many.w.listener, &listen, "127.0.0.1", 0, NULL), 0);
    for (int i = 0; i < LINKS; i++) {
        assert_int_equal(sherd__link_connect(&many.link[i], &o, "127.0.0.1",
                                             sherd__listener_port(many.w.listener),
                                             sherd__identity_fingerprint(link_id_n), NULL),
                         0);
        assert_true(link_run_until(&many.w, &many.ready, i + 1, WAIT_MS));
    }
}

static void slow_records_of_many_connections_share_a_turn(void **s)
{
    (void)s;
    sherd__fragment_info info = link_info_of(SHERD__HIDDEN, 1);
    connect_all();
    for (int i = 0; i < LINKS; i++) {
        for (uint32_t k = 1; k <= CHEAP + DEAR; k++) {
            sherd__fragment *f;
            assert_int_equal(sherd__fragment_take(&f, &info, link_body(1), NULL, NULL), 0);
            assert_int_equal(sherd__session_put(sherd__link_session(many.link[i]), JOB, k, f), 0);
        }
        sherd__link_flush(many.link[i]);
    }
    assert_true(link_run_until(&many.w, &many.dear, LINKS * DEAR, 3 * WAIT_MS));
    assert_in_range(many.most, 1, TURN_NS / DEAR_NS + 2);
    for (int i = 0; i < LINKS; i++)
        if (many.link[i]) sherd__link_close(many.link[i], 0, "done");
    assert_true(link_run_until(&many.w, &many.gone, 2 * LINKS, WAIT_MS));
    sherd__listener_close(many.w.listener);
    uv_run(&many.w.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&many.w.loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_records_of_many_connections_share_a_turn),
    };
    return cmocka_run_group_tests_name("wire/link_turns", tests, link_keys_make, link_keys_free);
}
