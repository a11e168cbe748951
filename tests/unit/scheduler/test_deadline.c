/* Deadlines from measured response times: which nodes are late, which are merely slow, and what
 * does not extend a deadline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/cluster/deadline.h"

#define NODES 5u

typedef struct world {
    sherd__delivery d[NODES];
    sherd__delivery_peers peers;
    uint64_t now, moved[NODES];
} world;

static void look(world *w)
{
    double room[NODES];
    for (uint32_t i = 0; i < NODES; i++) w->d[i].up = true;
    sherd__delivery_peers_of(&w->peers, w->d, sizeof *w->d, NODES, room);
}

/* Node i answers every took[i] ms (0: never) and moves rate[i] bytes a ms, for `ms` in ticks of 100
 * ms. Returns the first node that was late, or NODES if none was; *at: the time. */
static uint32_t run(world *w, const double *took, const double *rate, uint64_t ms, uint64_t *at)
{
    double next[NODES];
    for (uint32_t i = 0; i < NODES; i++) {
        next[i] = (double)w->now + took[i];
        sherd__delivery_owes(&w->d[i], true, w->moved[i], w->now);
    }
    for (uint64_t end = w->now + ms; w->now < end;) {
        w->now += 100;
        look(w);
        for (uint32_t i = 0; i < NODES; i++) {
            w->moved[i] += (uint64_t)(100 * rate[i]);
            for (; took[i] > 0 && next[i] <= (double)w->now; next[i] += took[i])
                sherd__delivery_made(&w->d[i], &w->peers, w->moved[i], (uint64_t)next[i]);
            sherd__delivery_charge(&w->d[i], &w->peers, w->moved[i], w->now);
        }
        for (uint32_t i = 0; i < NODES; i++) {
            double allowed = sherd__delivery_allowed(&w->d[i], &w->peers);
            if (!sherd__delivery_late(&w->d[i], &w->peers, allowed)) continue;
            *at = w->now;
            return i;
        }
    }
    return NODES;
}

static void a_node_that_delivers_nothing_is_late_by_the_others_pace(void **s)
{
    (void)s;
    static const double rate[NODES] = { 1, 1, 1, 1, 0 };
    for (double pace = 100; pace < 3000; pace *= 5) {
        const double took[NODES] = { pace, pace, pace, pace, 0 };
        world w = { .now = 1000 };
        uint64_t at;
        assert_int_equal(run(&w, took, rate, 200000, &at), 4);
        uint64_t allowed = 1000 + 10000 + 30 * (uint64_t)pace;
        assert_in_range(at, allowed, allowed + 300 + (uint64_t)pace / 4);
        assert_false(sherd__delivery_slow(&w.d[4], sherd__delivery_allowed(&w.d[4], &w.peers)));
    }
}

static void a_node_thirty_times_slower_than_the_others_is_not_late(void **s)
{
    (void)s;
    static const double took[NODES] = { 100, 120, 90, 110, 3000 },
                        rate[NODES] = { 1000, 1000, 1000, 1000, 20 };
    world w = { .now = 1000 };
    uint64_t at;
    assert_int_equal(run(&w, took, rate, 600000, &at), NODES);
}

static void transferred_bytes_extend_the_deadline_above_a_minimum_rate(void **s)
{
    (void)s;
    static const double took[NODES] = { 100, 100, 100, 100, 0 };
    /* Peers move 6400 bytes a ms. A 64th of it is 100, and half of that does not extend the
     * deadline. */
    const double slow[NODES] = { 6400, 6400, 6400, 6400, 150 };
    const double drip[NODES] = { 6400, 6400, 6400, 6400, 50 };
    world w = { .now = 1000 }, v = w;
    uint64_t at;
    assert_int_equal(run(&w, took, slow, 300000, &at), NODES);
    assert_int_equal(run(&v, took, drip, 300000, &at), 4);
    assert_true(at < 40000);
    assert_true(sherd__delivery_slow(&v.d[4], sherd__delivery_allowed(&v.d[4], &v.peers)));
    /* A link of 8 Mbit/s counts as slow, however fast the others are. */
    const double fast[NODES] = { 2e6, 2e6, 2e6, 2e6, 1100 };
    world x = { .now = 1000 };
    assert_int_equal(run(&x, took, fast, 300000, &at), NODES);
}

/* Each answer is just in time: 12 s, while the others take 0.1 s. */
static void delays_of_answers_that_are_just_in_time_accumulate(void **s)
{
    (void)s;
    static const double took[NODES] = { 100, 100, 100, 100, 12000 }, rate[NODES] = { 0 };
    world w = { .now = 1000 };
    uint64_t at;
    assert_int_equal(run(&w, took, rate, 1000000, &at), 4);
    assert_in_range(at, 60000, 400000);
    assert_true(sherd__delivery_slow(&w.d[4], sherd__delivery_allowed(&w.d[4], &w.peers)));
    /* Rare delays are forgiven: 9 s once in ten minutes, for hours. */
    sherd__delivery d = { .owes = true, .at_ms = 0 };
    sherd__delivery_peers p = { .usual_ms = 100 };
    uint64_t now = 0;
    for (unsigned i = 0; i < 30; i++) {
        for (unsigned k = 0; k < 90; k++) sherd__delivery_charge(&d, &p, 0, now += 100);
        assert_false(sherd__delivery_late(&d, &p, sherd__delivery_allowed(&d, &p)));
        for (unsigned k = 0; k < 6000; k++) sherd__delivery_made(&d, &p, 0, now += 100);
    }
}

/* Two slow nodes of five do not make the usual time longer. */
static void a_slow_minority_does_not_extend_deadlines(void **s)
{
    (void)s;
    static const double took[NODES] = { 100, 100, 100, 9000, 9000 }, rate[NODES] = { 0 };
    world w = { .now = 1000 };
    uint64_t at;
    (void)run(&w, took, rate, 30000, &at);
    look(&w);
    assert_true(w.peers.usual_ms <= 110);
}

static void time_in_which_the_process_slept_is_not_charged(void **s)
{
    (void)s;
    sherd__delivery d = { .owes = true };
    sherd__delivery_peers p = { .usual_ms = 10 };
    sherd__delivery_charge(&d, &p, 0, 3600000);
    assert_true(d.charge_ms <= 1000);
    assert_false(sherd__delivery_late(&d, &p, sherd__delivery_allowed(&d, &p)));
    sherd__delivery_owes(&d, false, 0, 3600000); /* time in which nothing is owed is not charged */
    sherd__delivery_charge(&d, &p, 0, 3600500);
    sherd__delivery_owes(&d, true, 0, 7200000);
    assert_true(d.charge_ms == 0);
}

/* Three of five nodes are down: their times, in this work or an earlier one, do not count. */
static void nodes_that_are_down_do_not_affect_the_medians(void **s)
{
    (void)s;
    double room[NODES];
    sherd__delivery d[NODES] = { 0 };
    sherd__delivery_peers p;
    for (uint32_t i = 0; i < NODES; i++) {
        sherd__delivery_begin(&d[i], 0, 0);
        d[i].usual_ms = i < 2 ? 100 : 90000;
        d[i].rate = i < 2 ? 50 : 1e-3;
        if (i >= 2) sherd__delivery_end(&d[i]);
    }
    sherd__delivery_peers_of(&p, d, sizeof *d, NODES, room);
    assert_true(p.usual_ms == 100 && p.rate == 50);
    sherd__delivery_begin(&d[2], 0, 5000); /* back: its pace is measured again */
    assert_true(d[2].up && d[2].usual_ms == 0);
    sherd__delivery_peers_of(&p, d, sizeof *d, NODES, room);
    assert_true(p.usual_ms == 100);
}

/* An expelled node is not expelled again at the first tick of the next work. One that is as slow as
 * before is, after less time than at first. */
static void a_node_expelled_for_its_excess_keeps_half_of_it(void **s)
{
    (void)s;
    const sherd__delivery_peers p = { .usual_ms = 100 };
    uint64_t now = 0, took[2];
    sherd__delivery d = { 0 };
    for (int work = 0; work < 2; work++) {
        const uint64_t begun = now;
        sherd__delivery_begin(&d, 0, now);
        sherd__delivery_owes(&d, true, 0, now);
        sherd__delivery_charge(&d, &p, 0, now += 100);
        assert_false(sherd__delivery_late(&d, &p, sherd__delivery_allowed(&d, &p)));
        while (!sherd__delivery_late(&d, &p, sherd__delivery_allowed(&d, &p))) {
            for (unsigned i = 0; i < 90; i++) sherd__delivery_charge(&d, &p, 0, now += 100);
            sherd__delivery_made(&d, &p, 0, now);
        }
        took[work] = now - begun;
        /* Ending a session does not reduce the excess. */
        sherd__delivery_end(&d);
        sherd__delivery_begin(&d, 0, now);
        assert_true(d.excess_ms > SHERD__DELIVERY_EXCESS_MS - 10000);
        sherd__delivery_expelled(&d);
        sherd__delivery_end(&d);
    }
    assert_true(took[1] > 20000 && took[1] < took[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_delivers_nothing_is_late_by_the_others_pace),
        cmocka_unit_test(a_node_thirty_times_slower_than_the_others_is_not_late),
        cmocka_unit_test(transferred_bytes_extend_the_deadline_above_a_minimum_rate),
        cmocka_unit_test(delays_of_answers_that_are_just_in_time_accumulate),
        cmocka_unit_test(a_slow_minority_does_not_extend_deadlines),
        cmocka_unit_test(time_in_which_the_process_slept_is_not_charged),
        cmocka_unit_test(nodes_that_are_down_do_not_affect_the_medians),
        cmocka_unit_test(a_node_expelled_for_its_excess_keeps_half_of_it),
    };
    return cmocka_run_group_tests_name("scheduler/deadline", tests, NULL, NULL);
}
