/* Deadlines from measured paces: who is late, who is merely slow, and what buys no time. */
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

/* Node i answers every took[i] ms (0: never) and moves rate[i] bytes a ms, for `ms` by ticks of
 * 100 ms. Who was late first, NODES where nobody was; *at: when. */
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

static void who_delivers_nothing_is_late_by_the_pace_of_the_others(void **s)
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

static void who_is_thirty_times_slower_than_the_others_is_not_late(void **s)
{
    (void)s;
    static const double took[NODES] = { 100, 120, 90, 110, 3000 },
                        rate[NODES] = { 1000, 1000, 1000, 1000, 20 };
    world w = { .now = 1000 };
    uint64_t at;
    assert_int_equal(run(&w, took, rate, 600000, &at), NODES);
}

static void bytes_pay_for_time_at_no_less_than_a_rate(void **s)
{
    (void)s;
    static const double took[NODES] = { 100, 100, 100, 100, 0 };
    /* Peers move 6400 bytes a ms; a 64th of it is 100, and half of it does not pay. */
    const double slow[NODES] = { 6400, 6400, 6400, 6400, 150 };
    const double drip[NODES] = { 6400, 6400, 6400, 6400, 50 };
    world w = { .now = 1000 }, v = w;
    uint64_t at;
    assert_int_equal(run(&w, took, slow, 300000, &at), NODES);
    assert_int_equal(run(&v, took, drip, 300000, &at), 4);
    assert_true(at < 40000);
    assert_true(sherd__delivery_slow(&v.d[4], sherd__delivery_allowed(&v.d[4], &v.peers)));
    /* A link of 8 Mbit/s is slow, however fast the others are. */
    const double fast[NODES] = { 2e6, 2e6, 2e6, 2e6, 1100 };
    world x = { .now = 1000 };
    assert_int_equal(run(&x, took, fast, 300000, &at), NODES);
}

/* Each answer is in time: 12 s where the others take 0.1 s. */
static void answers_that_are_just_in_time_add_up(void **s)
{
    (void)s;
    static const double took[NODES] = { 100, 100, 100, 100, 12000 }, rate[NODES] = { 0 };
    world w = { .now = 1000 };
    uint64_t at;
    assert_int_equal(run(&w, took, rate, 1000000, &at), 4);
    assert_in_range(at, 60000, 400000);
    assert_true(sherd__delivery_slow(&w.d[4], sherd__delivery_allowed(&w.d[4], &w.peers)));
    /* What is rare is forgiven: 9 s once in ten minutes, for hours. */
    sherd__delivery d = { .owes = true, .at_ms = 0 };
    sherd__delivery_peers p = { .usual_ms = 100 };
    uint64_t now = 0;
    for (unsigned i = 0; i < 30; i++) {
        for (unsigned k = 0; k < 90; k++) sherd__delivery_charge(&d, &p, 0, now += 100);
        assert_false(sherd__delivery_late(&d, &p, sherd__delivery_allowed(&d, &p)));
        for (unsigned k = 0; k < 6000; k++) sherd__delivery_made(&d, &p, 0, now += 100);
    }
}

/* Two of five say by their own slowness that everything is slow. */
static void a_minority_that_is_slow_moves_no_deadline(void **s)
{
    (void)s;
    static const double took[NODES] = { 100, 100, 100, 9000, 9000 }, rate[NODES] = { 0 };
    world w = { .now = 1000 };
    uint64_t at;
    (void)run(&w, took, rate, 30000, &at);
    look(&w);
    assert_true(w.peers.usual_ms <= 110);
}

static void a_process_that_slept_charges_nobody(void **s)
{
    (void)s;
    sherd__delivery d = { .owes = true };
    sherd__delivery_peers p = { .usual_ms = 10 };
    sherd__delivery_charge(&d, &p, 0, 3600000);
    assert_true(d.charge_ms <= 1000);
    assert_false(sherd__delivery_late(&d, &p, sherd__delivery_allowed(&d, &p)));
    sherd__delivery_owes(&d, false, 0, 3600000); /* and what is not owed is not charged */
    sherd__delivery_charge(&d, &p, 0, 3600500);
    sherd__delivery_owes(&d, true, 0, 7200000);
    assert_true(d.charge_ms == 0);
}

/* Three of five are down: what they took, in this work or an earlier one, is no measure. */
static void who_is_not_up_has_no_part_in_the_medians(void **s)
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
    sherd__delivery_begin(&d[2], 0, 5000); /* back: its pace is to be measured again */
    assert_true(d[2].up && d[2].usual_ms == 0);
    sherd__delivery_peers_of(&p, d, sizeof *d, NODES, room);
    assert_true(p.usual_ms == 100);
}

/* An expelled node is not expelled again at the first tick of the next work; one that goes on as
 * before is, after less than at first. */
static void who_was_expelled_for_its_excess_has_half_of_it_left(void **s)
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
        /* Ending a session buys nothing: what is in excess is kept. */
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
        cmocka_unit_test(who_delivers_nothing_is_late_by_the_pace_of_the_others),
        cmocka_unit_test(who_is_thirty_times_slower_than_the_others_is_not_late),
        cmocka_unit_test(bytes_pay_for_time_at_no_less_than_a_rate),
        cmocka_unit_test(answers_that_are_just_in_time_add_up),
        cmocka_unit_test(a_minority_that_is_slow_moves_no_deadline),
        cmocka_unit_test(a_process_that_slept_charges_nobody),
        cmocka_unit_test(who_is_not_up_has_no_part_in_the_medians),
        cmocka_unit_test(who_was_expelled_for_its_excess_has_half_of_it_left),
    };
    return cmocka_run_group_tests_name("scheduler/deadline", tests, NULL, NULL);
}
