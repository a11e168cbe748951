/*
 * A coordinator has a node meet in all-reduce groups with members that it invented: their
 * connections, and those that the node opens to them, use only the coordinator's share of the node.
 */
#include "tests/system/node/canary.h"
#include "tests/system/node/meeting.h"

enum {
    MEMBERS = 16,
    LINKS = 4, /* attempted by each member */
    ALL = 64,  /* maximum connections of a node, by default */
    QUARTER = ALL / 4,
    MOST = (ALL - QUARTER) * 3 / 4, /* maximum for the members of one coordinator */
    FEW = 2,                        /* links of each flooding member */
    CROWD = FEW * MEMBERS,
    BLOCKS = 4,
    SIDE = 512,
    SMALL = 5000, /* blocks of 8 bytes that are not expected */
    WARM = 20000, /* refusals that let the kernel's windows grow */
    REFUSALS = 60000,
    SESSIONS = 12, /* each with a group of its own */
    COUNT = 8      /* number of parameters */
};

static const char network[] = "input = 3\nlayer = dense 2\nloss = squared\n";
static sherd_identity *own[MEMBERS];
static uint16_t ports[MEMBERS];

static void meet_of(hub *h, tie *t, uint64_t id, sherd__reduce kind)
{
    const meeting m = {
        id, kind, (const sherd_identity *const *)own, MEMBERS, ports, network, COUNT
    };
    tie_up(h, t, &node.peer);
    meeting_begin(h, t, &node.peer, &m);
}

static void meet(tie *t, sherd__reduce kind)
{
    meet_of(&bad, t, GROUP, kind);
}

static uint32_t come_in(tie *m, uint32_t each)
{
    uint32_t ready = 0;
    for (uint32_t i = 0; i < MEMBERS * each; i++) {
        tie_begin_as(&bad, own[i / each], &m[i], &node.peer);
        hub_wait(&bad, m[i].ready + m[i].gone, 1, 20000);
        ready += m[i].ready;
    }
    return ready;
}

static uint32_t gone_of(const tie *m, uint32_t count)
{
    uint32_t gone = 0;
    for (uint32_t i = 0; i < count; i++) gone += m[i].gone;
    return gone;
}

static void leave(tie *m, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!m[i].gone) tie_down(&bad, &m[i]);
}

static void connections_of_invented_members_count_for_their_coordinator(void **s)
{
    (void)s;
    tie a, again, m[MEMBERS * LINKS], other[QUARTER];
    meet(&a, SHERD__REDUCE_RING);
    uint32_t ready = come_in(m, LINKS);
    print_message("# %u of %u connections were accepted\n", ready, MEMBERS * LINKS);
    hub_wait(&bad, gone_of(m, MEMBERS * LINKS), MEMBERS * LINKS - MOST, 20000);
    for (uint32_t i = 0; i < MEMBERS; i++) /* each has one */
        assert_in_range(gone_of(m + LINKS * i, LINKS), 0, LINKS - 1);
    for (uint32_t i = 0; i < QUARTER; i++) tie_up(&good, &other[i], &node.peer);
    tie_up(&bad, &again, &node.peer); /* nor do they keep out their own coordinator */
    for (uint32_t i = 0; i < QUARTER; i++) tie_down(&good, &other[i]);
    leave(m, MEMBERS * LINKS);
    tie_down(&bad, &again);
    tie_down(&bad, &a);
}

static void invented_members_share_the_turn_of_their_coordinator(void **s)
{
    (void)s;
    tie a, canary, m[CROWD];
    meet(&a, SHERD__REDUCE_RING);
    assert_int_equal(come_in(m, FEW), CROWD);
    tie_up(&good, &canary, &node.peer);
    for (uint32_t i = 0; i < CROWD; i++)
        for (uint32_t k = 1; k <= BLOCKS; k++) tie_put(&m[i], 10, k, SIDE, SIDE, 1);
    for (uint32_t i = 0; i < CROWD; i++) sherd__link_flush(m[i].link);
    crowd_is_served(m, CROWD, BLOCKS);
    const char *what = "blocks of made-up members";
    uint32_t served = BLOCKS;
    double ms;
    int attempts = 0;
    do {
        send_signal(node.pid, SIGSTOP);
        for (uint32_t i = 0; i < CROWD; i++) {
            for (uint32_t k = 1; k <= SMALL; k++) tie_put(&m[i], 10, served + k, 1, 1, 1);
            sherd__link_flush(m[i].link);
        }
        ms = crowd_waits(&canary, what, CROWD);
        crowd_is_served(m, CROWD, served += SMALL);
    } while (crowd_again(what, ms, &attempts));
    leave(m, CROWD);
    tie_down(&good, &canary);
    tie_down(&bad, &a);
}

/* Both coordinators name the same member. A connection counts for the coordinator whose group its
 * block belongs to: it has only as many as its group can use, and the rest are for the other
 * one. */
static void a_members_connection_counts_for_the_group_of_its_blocks(void **s)
{
    enum { EACH = 4, REFUSED = 1000 };
    (void)s;
    const int64_t nothing[COUNT] = { 0 };
    tie a, b, m[2 * EACH + 1];
    const uint32_t step = MEMBERS - COUNT + 2; /* a step that delivers a number */
    uint32_t last = MEMBERS - 1, refused = 0;  /* the node's neighbour in the ring */
    meet_of(&bad, &a, GROUP, SHERD__REDUCE_RING);
    meet_of(&good, &b, GROUP + 1, SHERD__REDUCE_RING);
    for (uint32_t i = 0; i <= 2 * EACH; i++) {
        tie_begin_as(&bad, own[last], &m[i], &node.peer);
        hub_wait(&bad, m[i].ready + m[i].gone, 1, 20000);
        assert_int_equal(m[i].ready, i < 2 * EACH);
    }
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        put(&m[i], GROUP, sherd__allreduce_block(1 + i, step), SHERD_I64, nothing, 1);
        put(&m[i], REFUSED, 1, SHERD_I64, nothing, 1);
        sherd__link_flush(m[i].link);
        hub_wait(&bad, m[i].refusal.job, REFUSED, 20000);
        refused += m[i].refused - 1;
    }
    assert_int_equal(refused, EACH);
    leave(m, 2 * EACH);
    tie_down(&good, &b);
    tie_down(&bad, &a);
}

/* ---- members that the node connects to ------------------------------------------------------- */

static struct {
    sherd__link *link[ALL];
    uint32_t ready, gone;
} heard;

static void heard_event(void *ctx, sherd__link *l, sherd__event *e)
{
    (void)ctx;
    if (e->kind == SHERD__EV_READY) heard.link[heard.ready++ % ALL] = l;
}

static void heard_gone(void *ctx, sherd__link *l)
{
    (void)ctx, (void)l;
    heard.gone++;
}

static bool anybody(void *ctx, const sherd__fingerprint *key)
{
    (void)ctx, (void)key;
    return true;
}

static int hear(void *ctx, sherd__link *l, const sherd__fingerprint *key, const char *address,
                sherd__session_options *session, sherd__link_owner *owner)
{
    (void)ctx, (void)l, (void)key, (void)address;
    session->role = SHERD__NODE;
    *owner = (sherd__link_owner){ heard_event, heard_gone, NULL, NULL };
    return SHERD_OK;
}

static void refuse(uint32_t times)
{
    sherd__refusal r = { .job = 1, .code = SHERD_EREFUSED };
    for (uint32_t i = 0; i < heard.ready; i++) {
        sherd__session *session = sherd__link_session(heard.link[i]);
        for (r.block = 1; r.block <= times; r.block++)
            assert_int_equal(sherd__session_refuse(session, &r), SHERD_OK);
        sherd__link_flush(heard.link[i]);
    }
}

static sherd__listener *listener[MEMBERS];

static void listen_as_members(void)
{
    memset(&heard, 0, sizeof heard);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        sherd__listen_options l = {
            .loop = &bad.loop, .identity = own[i], .allow = anybody, .accept = hear
        };
        assert_int_equal(sherd__listener_new(&listener[i], &l, "127.0.0.1", 0, NULL), SHERD_OK);
        ports[i] = sherd__listener_port(listener[i]);
    }
}

static void listen_no_more(void)
{
    hub_wait(&bad, heard.gone, heard.ready, 60000);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        sherd__listener_close(listener[i]);
        listener[i] = NULL;
    }
}

static void no_more_connections_are_opened_than_may_be_accepted(void **s)
{
    (void)s;
    tie a[SESSIONS];
    listen_as_members();
    for (uint32_t i = 0; i < SESSIONS; i++) {
        meet(&a[i], SHERD__REDUCE_HALVING);
        meeting_ask(&bad, &a[i], 2, SHERD__OP_CONNECT, 0, 1 + MEMBERS);
    }
    print_message("# %u connections were opened\n", heard.ready);
    assert_in_range(heard.ready, 4, ALL - QUARTER);
    for (uint32_t i = 0; i < SESSIONS; i++) tie_down(&bad, &a[i]);
    listen_no_more();
}

static void answers_of_invented_members_count_in_their_coordinators_turn(void **s)
{
    (void)s;
    tie a, canary;
    listen_as_members();
    meet(&a, SHERD__REDUCE_HALVING);
    meeting_ask(&bad, &a, 2, SHERD__OP_CONNECT, 0, 1 + MEMBERS);
    assert_true(heard.ready >= 4);
    tie_up(&good, &canary, &node.peer);
    refuse(WARM);
    for (int i = 0; i < 50; i++) probe(&canary, "refusals");
    const char *what = "refusals of made-up members";
    double ms;
    int attempts = 0;
    do {
        send_signal(node.pid, SIGSTOP);
        refuse(REFUSALS);
        ms = crowd_waits(&canary, what, (int)heard.ready);
    } while (crowd_again(what, ms, &attempts));
    tie_down(&bad, &a);
    listen_no_more();
    tie_down(&good, &canary);
}

static int after(void **s)
{
    canary_after(s);
    listen_no_more();
    return 0;
}

static int begin(void **s)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        ports[i] = 1;
        if (sherd_identity_new(&own[i], NULL)) return -1;
    }
    return canary_begin(s);
}

static int end(void **s)
{
    int err = canary_end(s);
    for (uint32_t i = 0; i < MEMBERS; i++) sherd_identity_free(own[i]);
    return err;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(connections_of_invented_members_count_for_their_coordinator,
                                  after),
        cmocka_unit_test_teardown(invented_members_share_the_turn_of_their_coordinator, after),
        cmocka_unit_test_teardown(a_members_connection_counts_for_the_group_of_its_blocks, after),
        cmocka_unit_test_teardown(no_more_connections_are_opened_than_may_be_accepted, after),
        cmocka_unit_test_teardown(answers_of_invented_members_count_in_their_coordinators_turn,
                                  after),
    };
    return cmocka_run_group_tests_name("node/made_up", tests, begin, end);
}
