/*
 * How a coordinator's session handles misbehaving nodes, with real processes; and a check that the
 * program that other tests use for it does misbehave in each of its modes.
 */
#include "tests/system/node/proc.h"

static hub mine;
static char program[256];

static int begin(void **s)
{
    (void)s;
    const char *build = getenv("B");
    snprintf(program, sizeof program, "%s/tests/system/node/prog_misbehave",
             build ? build : "build/plain");
    hub_open(&mine);
    return 0;
}

static int cut(void **s)
{
    (void)s;
    hub_cut(&mine);
    return 0;
}

static int end(void **s)
{
    (void)s;
    hub_close(&mine);
    return 0;
}

/* Gives two tasks to a node in this mode; the first is answered correctly. */
static void provoke(const char *mode, tie *t, uint32_t events, unsigned ms)
{
    char how[64];
    snprintf(how, sizeof how, "%s:1@node-1", mode);
    setenv("SHERD_TEST_MISBEHAVE", how, 1);
    setenv("SHERD", program, 1);
    sherd__launch *l = hub_launch(&mine, 1, 64 << 20);
    tie_up(&mine, t, &sherd__launch_node(l, 0)->peer);
    tie_put(t, 9, 1, 200, 300, 2);
    tie_put(t, 9, 2, 300, 100, 3);
    tie_ask(t, 9, 1, 200, 100);
    hub_wait(&mine, t->results, 1, 10000);
    assert_true(t->first == 1800 && t->last == 1800);
    tie_ask(t, 9, 2, 200, 100);
    if (events) hub_wait(&mine, t->results + t->refused + t->closed, 1 + events, ms);
    else uv_run(&mine.loop, UV_RUN_NOWAIT);
    if (!t->closed) sherd__link_close(t->link, 0, "test is done");
    hub_wait(&mine, t->gone, 1, 10000);
    sherd__launch_stop(l, 0);
}

static void garbage_wrong_lengths_and_repeated_or_unrequested_results_end_the_session(void **s)
{
    (void)s;
    static const struct {
        const char *mode;
        int err;
        uint32_t events;
    } cases[] = {
        { "garbage", SHERD_EFRAME, 1 },   { "wronglen", SHERD_EFRAME, 1 },
        { "unasked", SHERD_EUNASKED, 1 }, { "twice", SHERD_EUNASKED, 2 },
        { "crash", SHERD_ECLOSED, 1 },    { "cut", SHERD_ECLOSED, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tie t;
        provoke(cases[i].mode, &t, cases[i].events, 15000);
        if (!t.closed || t.err != cases[i].err)
            fail_msg("%s: closed %d with %s (%s)", cases[i].mode, t.closed, sherd_err_name(t.err),
                     t.text);
    }
}

static void wrong_values_arrive_well_formed(void **s)
{
    (void)s;
    tie t;
    provoke("wrong", &t, 1, 15000);
    assert_int_equal(t.results, 2);
}

static void a_refusing_node_sends_its_reason(void **s)
{
    (void)s;
    tie t;
    provoke("refuse", &t, 1, 15000);
    assert_int_equal(t.refused, 1);
    assert_string_equal(t.refusal.text, "not enough memory");
}

static void a_node_that_is_not_listed_behaves(void **s)
{
    (void)s;
    tie t;
    setenv("SHERD_TEST_MISBEHAVE", "refuse@node-2,node-11", 1);
    setenv("SHERD", program, 1);
    sherd__launch *l = hub_launch(&mine, 1, 64 << 20);
    tie_up(&mine, &t, &sherd__launch_node(l, 0)->peer);
    tie_put(&t, 9, 1, 20, 30, 2);
    tie_put(&t, 9, 2, 30, 10, 3);
    tie_ask(&t, 9, 1, 20, 10);
    hub_wait(&mine, t.results, 1, 10000);
    tie_down(&mine, &t);
    sherd__launch_stop(l, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            garbage_wrong_lengths_and_repeated_or_unrequested_results_end_the_session, cut),
        cmocka_unit_test_teardown(wrong_values_arrive_well_formed, cut),
        cmocka_unit_test_teardown(a_refusing_node_sends_its_reason, cut),
        cmocka_unit_test_teardown(a_node_that_is_not_listed_behaves, cut),
    };
    return cmocka_run_group_tests_name("node/misbehave", tests, begin, end);
}
