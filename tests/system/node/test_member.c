/*
 * A node process and the members of an all-reduce group: they may connect only while the group
 * exists, only with a key of the group, and only to deliver its blocks.
 */
#include "tests/system/node/meeting.h"

enum { COUNT = 8 };

/* Meets in a group of the node and this member. */
static void meet_over(hub *h, tie *t, const sherd__peer *node, const hub *member,
                      const char *network, uint32_t count)
{
    const sherd_identity *other = member->me;
    const meeting m = { .kind = SHERD__REDUCE_RING,
                        .others = &other,
                        .others_len = 1,
                        .network = network,
                        .count = count };
    meeting_begin(h, t, node, &m);
}

static void meet(hub *h, tie *t, const sherd__peer *node, const hub *member)
{
    meet_over(h, t, node, member, "input = 3\nlayer = dense 2\nloss = squared\n", COUNT);
}

static void expect_refusal(hub *h, const sherd__peer *p)
{
    tie t;
    tie_begin(h, &t, p);
    hub_wait(h, t.gone, 1, 10000);
    assert_false(t.ready);
}

static void a_members_key_gives_access_to_its_blocks_only(void **unused)
{
    (void)unused;
    const int64_t nothing[8] = { 0 };
    hub lead, member, stranger;
    tie t, m;
    hub_open(&lead);
    hub_open(&member);
    hub_open(&stranger);
    sherd__launch *l = hub_launch(&lead, 1, (uint64_t)64 << 20);
    const sherd__peer *node = &sherd__launch_node(l, 0)->peer;
    tie_up(&lead, &t, node);
    assert_true(t.hello.features & SHERD__FEATURE_ALLREDUCE);
    expect_refusal(&member, node); /* there was no meeting yet */
    meet(&lead, &t, node, &member);
    expect_refusal(&stranger, node);

    /* Its own block is accepted; blocks of the coordinator's job and of no job are not. */
    tie_up(&member, &m, node);
    uint32_t own = sherd__allreduce_block(1, 0);
    put(&m, GROUP, own, SHERD_I64, nothing, COUNT / 2);
    put(&m, JOB, 9, SHERD_I64, nothing, COUNT / 2);
    put(&m, GROUP, own + 1, SHERD_I64, nothing, 1);
    sherd__link_flush(m.link);
    hub_wait(&member, m.refused, 2, 10000);
    assert_int_equal(m.refused, 2);
    assert_int_equal(m.refusal.block, own + 1);

    /* The same block again, or a task, ends the connection. */
    put(&m, GROUP, own, SHERD_I64, nothing, COUNT / 2);
    sherd__link_flush(m.link);
    hub_wait(&member, m.gone, 1, 10000);
    assert_true(m.closed);
    tie_up(&member, &m, node);
    sherd__task task = tie_task(JOB, 5, 2, 2); /* over blocks of the coordinator */
    assert_int_equal(sherd__session_task(sherd__link_session(m.link), &task), 0);
    sherd__link_flush(m.link);
    hub_wait(&member, m.gone, 1, 10000);
    assert_int_equal(m.results, 0);
    assert_non_null(strstr(m.text, "blocks of its all-reduce group only"));

    /* The coordinator disconnects, which ends the group. */
    tie_down(&lead, &t);
    expect_refusal(&member, node);
    sherd__launch_stop(l, 0);
    hub_close(&stranger);
    hub_close(&member);
    hub_close(&lead);
}

/* A block of a later round replaces an earlier one: at most two exist at a time. */
static void blocks_of_many_rounds_use_the_memory_of_one(void **unused)
{
    enum { PARAMS = 200 * 1000 + 1000, ROUNDS = 300 }; /* 0.8 MB each, of 64 MB */
    (void)unused;
    static int64_t values[PARAMS / 2];
    hub lead, member;
    tie t, m;
    hub_open(&lead);
    hub_open(&member);
    sherd__launch *l = hub_launch(&lead, 1, (uint64_t)64 << 20);
    const sherd__peer *node = &sherd__launch_node(l, 0)->peer;
    tie_up(&lead, &t, node);
    meet_over(&lead, &t, node, &member, "input = 200\nlayer = dense 1000\nloss = squared\n",
              PARAMS);
    tie_up(&member, &m, node);
    for (uint32_t round = 1; round <= ROUNDS; round++)
        put(&m, GROUP, sherd__allreduce_block(round, 0), SHERD_I64, values, PARAMS / 2);
    put(&m, GROUP, sherd__allreduce_block(1, 0), SHERD_I64, values, 1); /* refused: the last one */
    sherd__link_flush(m.link);
    hub_wait_beside(&member, &lead, m.refused, 1, 60000);
    assert_int_equal(m.refusal.block, sherd__allreduce_block(1, 0));
    tie_put(&t, JOB, 9, 1, 5 << 20, 1); /* there is room for 40 MB of the coordinator's */
    tie_ask(&t, JOB, 9, 1, 1);
    hub_wait(&lead, t.refused, 1, 60000);
    assert_int_equal(t.refusal.task, 9);
    tie_down(&member, &m);
    tie_down(&lead, &t);
    sherd__launch_stop(l, 0);
    hub_close(&member);
    hub_close(&lead);
}

/* Connections are few and shared by all: those of one member must not keep out a coordinator. */
static void a_member_gets_only_as_many_connections_as_a_group_can_use(void **unused)
{
    (void)unused;
    enum { TRIED = 80 }; /* more than a node accepts in total */
    hub lead, member;
    tie t, again, m[TRIED];
    unsigned ready = 0;
    hub_open(&lead);
    hub_open(&member);
    sherd__launch *l = hub_launch(&lead, 1, (uint64_t)64 << 20);
    const sherd__peer *node = &sherd__launch_node(l, 0)->peer;
    tie_up(&lead, &t, node);
    meet(&lead, &t, node, &member);
    for (unsigned i = 0; i < TRIED; i++) {
        tie_begin(&member, &m[i], node);
        while (!m[i].ready && !m[i].gone) uv_run(&member.loop, UV_RUN_ONCE);
        ready += m[i].ready;
    }
    assert_in_range(ready, 1, 8);
    tie_up(&lead, &again, node);
    tie_down(&lead, &again);
    for (unsigned i = 0; i < TRIED; i++)
        if (m[i].ready) tie_down(&member, &m[i]);
    tie_down(&lead, &t);
    sherd__launch_stop(l, 0);
    hub_close(&member);
    hub_close(&lead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_members_key_gives_access_to_its_blocks_only),
        cmocka_unit_test(blocks_of_many_rounds_use_the_memory_of_one),
        cmocka_unit_test(a_member_gets_only_as_many_connections_as_a_group_can_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
