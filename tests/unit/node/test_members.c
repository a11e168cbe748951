/*
 * Connections between members of an all-reduce group, on real sockets: their data count for the
 * account of the coordinator that named the members.
 *
 * link: -Wl,--wrap=uv_now
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/fragment_make.h"
#include "node/allreduce/members.h"
#include "node/lines.h"
#include "sherd/mat.h"
#include "tests/unit/node/allreduce_member.h"

enum {
    BEFORE = 0,
    AFTER = 2, /* the member that sends to this one, and the member that it sends to */
    RECORDS = 20000,
    MOST = 4 * SHERD__TURN_RECORDS /* records counted in one turn: those of a turn, and one that
                                    * takes long */
};

static uv_loop_t loop;
static uv_timer_t limit;
static bool late;
static sherd__members *members;
static uint32_t room, emptied, crowd; /* crowd: maximum number of connections that counted at
                                       * once */
static uint64_t later_ms;             /* added to the clock */
static struct {
    uint32_t notes, problems;
    char last[800]; /* text of a problem */
} said;
static struct {
    sherd__link *link;
    uint32_t ready, refused, gone;
    const sherd__link *ended; /* the last one */
} far;                        /* the other end */

uint64_t __real_uv_now(const uv_loop_t *l);
uint64_t __wrap_uv_now(const uv_loop_t *l);

uint64_t __wrap_uv_now(const uv_loop_t *l)
{
    return __real_uv_now(l) + later_ms;
}

static void on_limit(uv_timer_t *t)
{
    (void)t;
    late = true;
}

/* Runs the loop until *value is `want`; returns the maximum number of records in a turn. */
static uint64_t run_until(const uint32_t *value, uint32_t want)
{
    const sherd__account *a = sherd__worker_accounts(one.worker);
    uint64_t most = 0;
    late = false;
    uv_timer_start(&limit, on_limit, 60000, 0);
    while (*value != want && !late) {
        uv_run(&loop, UV_RUN_ONCE);
        allreduce_settle();
        if (a->turn.records > most) most = a->turn.records;
        if (a->connections > crowd) crowd = a->connections;
    }
    uv_timer_stop(&limit);
    assert_int_equal(*value, want);
    return most;
}

static void far_event(void *ctx, sherd__link *l, sherd__event *e)
{
    (void)ctx;
    far.link = l;
    far.ready += e->kind == SHERD__EV_READY;
    far.refused += e->kind == SHERD__EV_REFUSED;
}

static void far_gone(void *ctx, sherd__link *l)
{
    (void)ctx;
    far.ended = l;
    far.gone++;
}

static const sherd__link_owner far_owner = { far_event, far_gone, NULL, NULL };

static bool any_key(void *ctx, const sherd__fingerprint *key)
{
    (void)ctx, (void)key;
    return true;
}

static int accept_here(void *ctx, sherd__link *l, const sherd__fingerprint *key,
                       const char *address, sherd__session_options *session,
                       sherd__link_owner *owner)
{
    (void)ctx, (void)address;
    return sherd__members_accept(members, l, key, session, owner);
}

static int accept_far(void *ctx, sherd__link *l, const sherd__fingerprint *key, const char *address,
                      sherd__session_options *session, sherd__link_owner *owner)
{
    (void)ctx, (void)l, (void)key, (void)address;
    session->role = SHERD__NODE;
    *owner = far_owner;
    return SHERD_OK;
}

static void say(void *ctx, bool problem, const char *line)
{
    (void)ctx;
    *(problem ? &said.problems : &said.notes) += 1;
    if (problem) snprintf(said.last, sizeof said.last, "%s", line);
}

static uint32_t most(void *ctx, const sherd__account *a)
{
    (void)ctx, (void)a;
    return room;
}

static void drained(void *ctx)
{
    (void)ctx;
    emptied++;
}

static sherd__listener *begin(uint32_t listens, bool here)
{
    sherd__listener *l;
    memset(&far, 0, sizeof far);
    memset(&said, 0, sizeof said);
    room = 4;
    emptied = crowd = 0;
    later_ms = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    uv_timer_init(&loop, &limit);
    allreduce_make_identities();
    sherd__members_options m = { &loop, one.identity[SELF], say, most, drained, NULL };
    assert_int_equal(sherd__members_new(&members, &m), 0);
    sherd__allreduce_links links = sherd__members_links(members);
    one.links = &links;
    allreduce_start(NULL);
    sherd__members_serve(members, one.worker);
    sherd__listen_options o = { .loop = &loop,
                                .identity = one.identity[listens],
                                .allow = any_key,
                                .accept = here ? accept_here : accept_far };
    assert_int_equal(sherd__listener_new(&l, &o, "127.0.0.1", 0, NULL), 0);
    one.port = sherd__listener_port(l);
    assert_int_equal(allreduce_meet(), 0);
    return l;
}

static void end(sherd__listener *l)
{
    allreduce_stop_coordinator();
    sherd__listener_close(l);
    sherd__members_close(members);
    uv_close((uv_handle_t *)&limit, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(sherd__worker_accounts(one.worker)->connections, 0);
    assert_int_equal(sherd__worker_accounts(one.worker)->opened, 0);
    allreduce_stop_worker();
    sherd__members_free(members);
    one.links = NULL;
    one.port = 0;
}

static void come_in_as(uint32_t who)
{
    sherd__link_options o = { .loop = &loop,
                              .identity = one.identity[who],
                              .owner = far_owner,
                              .session = { .role = SHERD__COORDINATOR } };
    assert_int_equal(sherd__link_connect(&far.link, &o, "127.0.0.1", one.port, allreduce_key(SELF),
                                         NULL),
                     0);
}

static void come_in(void)
{
    come_in_as(BEFORE);
}

static void send_blocks(uint32_t count)
{
    const sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_I64, .rows = 1, .cols = 1, .len = 8
    };
    for (uint32_t k = 1; k <= count; k++) {
        sherd__fragment *f;
        uint8_t *bytes = calloc(1, 8);
        assert_int_equal(sherd__fragment_take(&f, &i, bytes, NULL, NULL), 0);
        assert_int_equal(sherd__session_put(sherd__link_session(far.link), JOB, k, f), 0);
    }
    sherd__link_flush(far.link);
}

static void data_from_a_member_count_in_its_coordinators_turn(void **unused)
{
    (void)unused;
    sherd__listener *l = begin(SELF, true);
    const sherd__account *a = sherd__worker_accounts(one.worker);
    come_in();
    run_until(&far.ready, 1);
    assert_int_equal(a->connections, 1);
    send_blocks(RECORDS);
    uint64_t records = run_until(&far.refused, RECORDS);
    assert_in_range(records, 1, MOST);
    sherd__link_close(far.link, 0, "done");
    run_until(&far.gone, 1);
    end(l);
}

static void a_quarter_of_the_connections_is_reserved_for_the_coordinator(void **unused)
{
    (void)unused;
    sherd__listener *l = begin(SELF, true);
    for (uint32_t i = 1; i <= room - 1; i++) {
        come_in();
        run_until(&far.ready, i);
    }
    come_in();
    run_until(&far.gone, 1);
    assert_int_equal(far.ready, room - 1);
    end(l);
}

/* BEFORE has as many connections as members may have. */
static sherd__link *fill(void)
{
    sherd__link *oldest = NULL;
    for (uint32_t i = 1; i <= room - 1; i++) {
        come_in();
        run_until(&far.ready, i);
        if (i == 1) oldest = far.link;
    }
    return oldest;
}

static void a_members_surplus_connection_is_displaced_by_another_member(void **unused)
{
    static const uint32_t both[] = { BEFORE, AFTER };
    (void)unused;
    sherd__listener *l = begin(SELF, true);
    const sherd__account *a = sherd__worker_accounts(one.worker);
    const sherd__link *oldest = fill();
    come_in_as(AFTER);
    run_until(&far.ready, room);
    run_until(&far.gone, 1);
    assert_ptr_equal(far.ended, oldest);
    for (uint32_t i = 0; i < 2; i++) { /* each has one connection for its group */
        come_in_as(both[i]);
        run_until(&far.gone, 2 + i);
    }
    assert_int_equal(far.ready, room);
    assert_int_equal(a->connections, room - 1);
    assert_int_equal(crowd, room - 1);
    end(l);
}

static void a_members_only_connection_is_not_displaced(void **unused)
{
    (void)unused;
    sherd__listener *l = begin(SELF, true);
    room = 1;
    come_in();
    run_until(&far.ready, 1);
    const sherd__link *kept = far.link;
    come_in_as(AFTER);
    run_until(&far.gone, 1);
    assert_int_equal(far.ready, 1);
    assert_ptr_not_equal(far.ended, kept);
    end(l);
}

/* The coordinator's own connections exceed their quarter: dropping one connection would not admit
 * another one. */
static void no_connection_is_displaced_without_effect(void **unused)
{
    enum { MEMBERS = 4, OWN = 4 };
    (void)unused;
    sherd__listener *l = begin(SELF, true);
    sherd__account *a = sherd__worker_accounts(one.worker);
    room = MEMBERS + OWN;
    for (uint32_t i = 1; i <= MEMBERS; i++) {
        come_in();
        run_until(&far.ready, i);
    }
    a->connections += OWN;
    come_in_as(AFTER);
    run_until(&far.gone, 1);
    assert_int_equal(far.ready, MEMBERS);
    assert_int_equal(a->connections, MEMBERS + OWN);
    a->connections -= OWN;
    end(l);
}

static void if_no_member_connections_are_permitted_all_are_refused(void **unused)
{
    (void)unused;
    sherd__listener *l = begin(SELF, true);
    room = 0;
    come_in();
    run_until(&far.gone, 1);
    assert_int_equal(far.ready, 0);
    end(l);
}

/* Sends the first block of a round. */
static void send_step(sherd__link *l)
{
    sherd__fragment *f;
    const uint64_t len = allreduce_len_of(0);
    const sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_I64, .rows = 1, .cols = len / 8, .len = len
    };
    assert_int_equal(sherd__fragment_take(&f, &i, calloc(1, len), NULL, NULL), 0);
    assert_int_equal(sherd__session_put(sherd__link_session(l), GROUP, sherd__allreduce_block(1, 0),
                                        f),
                     0);
    sherd__link_flush(l);
}

static void a_connection_that_delivered_a_block_is_displaced_last(void **unused)
{
    (void)unused;
    sherd__listener *l = begin(SELF, true);
    come_in();
    run_until(&far.ready, 1);
    const sherd__link *used = far.link;
    assert_int_equal(allreduce_step(1, 0), 0);
    send_step(far.link);
    uint64_t before = allreduce_used();
    for (int i = 0; i < 1000 && allreduce_used() == before; i++) uv_run(&loop, UV_RUN_ONCE);
    for (uint32_t i = 2; i < room; i++) {
        come_in();
        run_until(&far.ready, i);
    }
    come_in_as(AFTER);
    run_until(&far.ready, room);
    run_until(&far.gone, 1);
    assert_ptr_not_equal(far.ended, used);
    end(l);
}

/* Another coordinator's group had the same member: until its first block, the connection counted
 * for that coordinator, although it is for another group. */
static void a_coordinator_cannot_displace_connections_of_another_one(void **unused)
{
    static const uint32_t all[N] = { BEFORE, SELF, AFTER }, mine[N] = { N, SELF, AFTER };
    (void)unused;
    sherd__listener *l = begin(SELF, true);
    sherd__allreduce_plan p = allreduce_plan();
    allreduce_swap();
    p.id = GROUP + 1;
    assert_int_equal(allreduce_meet_with(&p, all), 0);
    const sherd__account *a = sherd__worker_accounts(one.worker);
    come_in();
    run_until(&far.ready, 1);
    const sherd__link *honest = far.link;
    assert_int_equal(a->connections, 1);
    p.id++;
    assert_int_equal(allreduce_meet_with(&p, mine), 0);
    room = 1; /* left by its other members */
    come_in_as(N);
    run_until(&far.gone, 1);
    assert_ptr_not_equal(far.ended, honest);
    joined_cut(&one.j);
    allreduce_swap();
    end(l);
}

static void connections_of_a_member_without_a_group_are_displaced(void **unused)
{
    static const uint32_t others[N] = { N, SELF, AFTER };
    (void)unused;
    sherd__listener *l = begin(SELF, true);
    const sherd__allreduce_plan p = allreduce_plan();
    (void)fill();
    assert_int_equal(allreduce_meet_with(&p, others), 0);
    const uint32_t newcomers[] = { N, AFTER };
    for (uint32_t i = 0; i < 2; i++) {
        come_in_as(newcomers[i]);
        run_until(&far.ready, room + i);
        run_until(&far.gone, 1 + i);
    }
    assert_int_equal(sherd__worker_accounts(one.worker)->connections, room - 1);
    end(l);
}

static void answers_of_a_member_count_in_its_coordinators_turn(void **unused)
{
    (void)unused;
    sherd__refusal r = { .job = JOB, .code = SHERD_EREFUSED };
    sherd__listener *l = begin(AFTER, false);
    const sherd__account *a = sherd__worker_accounts(one.worker);
    assert_int_equal(allreduce_ask(SHERD__OP_CONNECT, TEXT, 0, SHERD_I64, N), 1);
    run_until(&one.answered, 2);
    assert_int_equal(one.refused, 0);
    assert_int_equal(a->opened, 1);
    for (r.block = 1; r.block <= RECORDS; r.block++)
        assert_int_equal(sherd__session_refuse(sherd__link_session(far.link), &r), 0);
    sherd__link_flush(far.link);
    sherd__link_close(far.link, 0, "done");
    uint64_t records = run_until(&far.gone, 1);
    assert_in_range(records, 1, MOST);
    end(l);
}

static void no_more_connections_are_opened_than_may_be_accepted(void **unused)
{
    (void)unused;
    sherd__listener *l = begin(AFTER, false);
    room = 0;
    assert_int_equal(allreduce_ask(SHERD__OP_CONNECT, TEXT, 0, SHERD_I64, N), 0);
    int64_t why[N];
    memcpy(why, one.last_result, sizeof why);
    assert_int_equal(why[AFTER], SHERD_EBUSY);
    end(l);
}

/* Connects, as the n-th connection, and waits until it is gone at both ends. */
static void come_and_go(uint32_t n, bool lies)
{
    come_in();
    run_until(&far.ready, n);
    if (lies) {
        assert_int_equal(sherd__session_drop(sherd__link_session(far.link), JOB, 0), 0);
        sherd__link_flush(far.link);
    } else {
        sherd__link_close(far.link, 0, "done");
    }
    run_until(&far.gone, n);
    run_until(&emptied, n);
}

static void the_members_of_a_coordinator_share_a_limit_of_log_lines(void **unused)
{
    enum { MANY = SHERD__LINES_MAX + 5 };
    (void)unused;
    sherd__listener *l = begin(SELF, true);
    for (uint32_t i = 1; i <= MANY; i++) come_and_go(i, false);
    assert_int_equal(said.notes, SHERD__LINES_MAX);
    assert_int_equal(said.problems, 0);
    for (uint32_t i = 1; i <= MANY; i++)
        come_and_go(MANY + i, true); /* problems are not suppressed
                                                                       * by notes */
    assert_int_equal(said.notes, SHERD__LINES_MAX);
    assert_int_equal(said.problems, SHERD__LINES_MAX);
    assert_non_null(strstr(said.last, "refused member"));
    later_ms = SHERD__LINES_MS + 1000;
    come_and_go(2 * MANY + 1, true);
    assert_int_equal(said.problems, SHERD__LINES_MAX + 2);
    assert_non_null(strstr(said.last, "refused member"));
    end(l);
}

static void failing_links_share_a_limit_of_log_lines(void **unused)
{
    (void)unused;
    sherd__listener *l = begin(AFTER, false); /* without the key in BEFORE */
    for (uint32_t i = 1; i <= SHERD__LINES_MAX + 5; i++) {
        if (i > 1) assert_int_equal(allreduce_meet(), 0);
        assert_int_equal(allreduce_ask(SHERD__OP_CONNECT, TEXT, 0, SHERD_I64, N), 1);
        run_until(&one.answered, 2 * i);
        assert_int_equal(said.problems, i < SHERD__LINES_MAX ? i : SHERD__LINES_MAX);
        assert_non_null(strstr(said.last, "no link to"));
    }
    end(l);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* see wire/link.h */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_from_a_member_count_in_its_coordinators_turn),
        cmocka_unit_test(a_quarter_of_the_connections_is_reserved_for_the_coordinator),
        cmocka_unit_test(a_members_surplus_connection_is_displaced_by_another_member),
        cmocka_unit_test(a_members_only_connection_is_not_displaced),
        cmocka_unit_test(no_connection_is_displaced_without_effect),
        cmocka_unit_test(if_no_member_connections_are_permitted_all_are_refused),
        cmocka_unit_test(a_connection_that_delivered_a_block_is_displaced_last),
        cmocka_unit_test(a_coordinator_cannot_displace_connections_of_another_one),
        cmocka_unit_test(connections_of_a_member_without_a_group_are_displaced),
        cmocka_unit_test(answers_of_a_member_count_in_its_coordinators_turn),
        cmocka_unit_test(the_members_of_a_coordinator_share_a_limit_of_log_lines),
        cmocka_unit_test(failing_links_share_a_limit_of_log_lines),
        cmocka_unit_test(no_more_connections_are_opened_than_may_be_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, allreduce_free_identities);
}
