/*
 * The task loop over devices with memory of their own: blocks without room are dropped and held
 * again, failed calls are repeated, a lost device loses no task, and tasks that are cancelled, or
 * whose client disconnects, leave nothing behind, whether they were in progress or waited for room.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/alloc.h"
#include "node/devices.h"
#include "sherd/mat.h"
#include "tests/unit/node/worker_peer.h"

enum { SIDE = 40, BLOCK = SIDE * SIDE * 8 };

static void *cpu;

static int open_cpu(void **s)
{
    sherd__backend_options o = { .threads = 1, .quick = true };
    (void)s;
    return sherd__backend_cpu.open(&cpu, &o, NULL);
}

static int close_cpu(void **s)
{
    (void)s;
    sherd__backend_cpu.close(cpu);
    return 0;
}

static void keep(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx, (void)bytes, (void)len;
}

static void forget(sherd__call *c)
{
    (void)c;
}

static void start(remote_options o)
{
    o.cpu = cpu;
    worker_start_remote(&o, 16 * MB);
}

/* Checks that nothing is left on the devices, either. */
static remote_stats stop(void)
{
    void *remote = loop.remote;
    worker_stop();
    remote_stats r = *remote_stats_of(remote);
    assert_true(remote_is_clean(remote));
    assert_int_equal(r.holds, r.drops);
    assert_int_equal(r.lent, 0); /* passes on other threads drop blocks, too */
    remote_backend.close(remote);
    return r;
}

/* Sends `blocks` squares with all entries 1, 2, ... */
static void put_squares(peer *p, uint32_t blocks)
{
    for (uint32_t i = 1; i <= blocks; i++) peer_put(p, 9, i, SIDE, SIDE, i);
}

/* Asks for the product of block 1 + number % blocks and the next one. */
static sherd__task ask(peer *p, uint32_t number, uint32_t blocks)
{
    sherd__task t = peer_task(9, number, SIDE, SIDE);
    t.left = 1 + number % blocks;
    t.right = 1 + (number + 1) % blocks;
    assert_int_equal(sherd__session_task(p->j.co, &t), SHERD_OK);
    return t;
}

static void assert_last(const peer *p, const sherd__task *t)
{
    assert_int_equal(p->results[(p->results_len - 1) % HEARD_MAX], t->task);
    assert_true(p->last[0] == (double)SIDE * t->left * t->right);
}

static void several_calls_are_in_progress_on_each_device(void **s)
{
    (void)s;
    peer p;
    start((remote_options){ .devices = 2, .depth = 3, .late = 6 });
    peer_join(&p);
    put_squares(&p, 3);
    for (uint32_t k = 1; k <= 40; k++) ask(&p, k, 3);
    peer_settle(&p);
    assert_int_equal(p.results_len, 40);
    sherd__task t = ask(&p, 41, 3);
    peer_settle(&p);
    assert_last(&p, &t);
    peer_cut(&p);
    remote_stats r = stop();
    assert_int_equal(r.most, 6);
    assert_true(r.overtaken > 0);
    assert_int_equal(r.holds, 6); /* each block once on each device */
}

static void blocks_are_dropped_and_held_again_if_a_device_is_small(void **s)
{
    (void)s;
    peer p;
    start((remote_options){ .memory = 4 * (BLOCK + 64), .stated = 1 << 30, .late = 3 });
    peer_join(&p);
    put_squares(&p, 6);
    for (uint32_t k = 1; k <= 30; k++) {
        sherd__task t = ask(&p, k, 6);
        peer_settle(&p);
        assert_last(&p, &t);
    }
    for (uint32_t k = 31; k <= 60; k++) ask(&p, k, 6); /* more than fit at the same time */
    peer_settle(&p);
    assert_int_equal(p.results_len, 60);
    assert_int_equal(p.refusals_len, 0);
    peer_cut(&p);
    remote_stats r = stop();
    assert_true(r.full > 10);
}

/* One task after another: the device never runs out of memory. */
static void room_is_made_before_a_block_is_held(void **s)
{
    (void)s;
    peer p;
    start((remote_options){ .memory = 4 * (BLOCK + 64) });
    peer_join(&p);
    put_squares(&p, 6);
    for (uint32_t k = 1; k <= 30; k++) {
        sherd__task t = ask(&p, 2 * k, 6);
        peer_settle(&p);
        assert_last(&p, &t);
    }
    peer_cut(&p);
    remote_stats r = stop();
    assert_int_equal(r.full, 0);
    assert_int_equal(r.holds, 60);
}

static void the_most_recently_used_block_stays(void **s)
{
    (void)s;
    peer p;
    start((remote_options){ .memory = 3 * (BLOCK + 64) + 2 * (SIDE * 8 + 64) });
    peer_join(&p);
    put_squares(&p, 4);
    peer_put(&p, 9, 5, SIDE, 1, 5);
    for (uint32_t k = 0; k < 18; k++) { /* block 1, another one, block 1, the next one ... */
        sherd__task t = peer_task(9, k + 1, SIDE, 1);
        t.left = k % 2 ? 2 + k / 2 % 3 : 1;
        t.right = 5;
        assert_int_equal(sherd__session_task(p.j.co, &t), SHERD_OK);
        peer_settle(&p);
        assert_last(&p, &t);
    }
    peer_cut(&p);
    assert_int_equal(stop().holds, 2 + 9); /* there is room for three squares, and block 1 stays */
}

static void a_task_that_fits_no_device_is_refused_and_others_continue(void **s)
{
    (void)s;
    peer p;
    start((remote_options){ .memory = 4 * (BLOCK + 64) });
    peer_join(&p);
    put_squares(&p, 2);
    peer_put(&p, 9, 3, 8 * SIDE, SIDE, 1);
    sherd__task large = peer_task(9, 1, 8 * SIDE, SIDE);
    large.left = 3;
    large.right = 1;
    assert_int_equal(sherd__session_task(p.j.co, &large), SHERD_OK);
    ask(&p, 2, 2);
    peer_settle(&p);
    assert_int_equal(p.refusals_len, 1);
    assert_int_equal(p.refusals[0].code, SHERD_ENOMEM);
    assert_int_equal(p.results_len, 1);
    peer_cut(&p);
    (void)stop();
}

static void a_call_that_fails_is_repeated(void **s)
{
    (void)s;
    peer p;
    start((remote_options){ .late = 3, .fail_in = 8 });
    peer_join(&p);
    put_squares(&p, 3);
    for (uint32_t k = 1; k <= 100; k++) ask(&p, k, 3);
    peer_settle(&p);
    assert_true(sherd__worker_stats_of(loop.worker)->repeated > 5);
    assert_true(p.results_len > 95);
    assert_int_equal(p.results_len + p.refusals_len, 100);
    peer_cut(&p);
    (void)stop();
}

static void a_task_whose_calls_always_fail_is_refused(void **s)
{
    (void)s;
    peer p;
    start((remote_options){ .fail_in = 1 });
    peer_join(&p);
    put_squares(&p, 2);
    ask(&p, 1, 2);
    peer_settle(&p);
    assert_int_equal(p.refusals_len, 1);
    assert_int_equal(p.refusals[0].code, SHERD_EDEVICE);
    peer_cut(&p);
    assert_int_equal(stop().failed, 3);
}

static void another_device_takes_the_tasks_of_a_lost_one(void **s)
{
    (void)s;
    peer p;
    start((remote_options){ .devices = 2, .late = 6, .dies_at = 4 });
    peer_join(&p);
    put_squares(&p, 3);
    for (uint32_t k = 1; k <= 60; k++) ask(&p, k, 3);
    peer_settle(&p);
    assert_int_equal(p.results_len, 60);
    assert_int_equal(p.refusals_len, 0);
    peer_cut(&p);
    assert_true(stop().lost > 0);
}

static void if_all_devices_are_lost_tasks_are_refused_and_blocks_stay(void **s)
{
    (void)s;
    peer p;
    start((remote_options){ .devices = 2, .late = 6, .dies_at = 2, .all_die = 1 });
    peer_join(&p);
    put_squares(&p, 3);
    for (uint32_t k = 1; k <= 30; k++) ask(&p, k, 3);
    peer_settle(&p);
    assert_int_equal(p.results_len + p.refusals_len, 30);
    assert_true(p.refusals_len > 20);
    for (uint32_t i = 0; i < p.refusals_len; i++)
        assert_int_equal(p.refusals[i].code, SHERD_EDEVICE);
    assert_true(sherd__worker_memory(loop.worker)->used >= 3 * BLOCK);
    peer_cut(&p);
    assert_true(stop().lost > 0);
}

/* Tasks in progress and waiting for room are cancelled one by one or as a job, dropped, or left by
 * their client. */
static void abandoned_tasks_leave_nothing_behind(void **s)
{
    (void)s;
    unsigned dropped_in_use = 0;
    for (uint64_t seed = 1; seed <= 80; seed++) {
        peer p, q;
        start((remote_options){ .seed = seed,
                                .depth = 4,
                                .late = 5,
                                .memory = 5 * (BLOCK + 64),
                                .fail_in = 9,
                                .full_in = 9 });
        peer_join(&p);
        peer_join(&q);
        put_squares(&p, 6);
        put_squares(&q, 2);
        for (uint32_t k = 1; k <= 12; k++) ask(&p, k, 6);
        for (uint32_t k = 1; k <= 4; k++) ask(&q, k, 2);
        joined_exchange(&p.j);
        joined_exchange(&q.j);
        for (uint64_t i = 0; i < seed % 4; i++) {
            (void)remote_turn(loop.remote);
            (void)sherd__executor_drain(loop.executor);
        }
        for (uint32_t k = 1; k <= 12 && seed % 3 == 0; k++)
            (void)!sherd__session_cancel(p.j.co, 9, k, 1); /* or it was answered already */
        if (seed % 3 == 1) assert_int_equal(sherd__session_forget(p.j.co, 9), SHERD_OK);
        joined_exchange(&p.j);
        if (seed % 2) peer_cut(&p);
        peer_settle(&q);
        assert_int_equal(q.results_len + q.refusals_len, 4);
        if (seed % 2 == 0) peer_settle(&p), peer_cut(&p);
        peer_cut(&q);
        dropped_in_use += stop().dropped_in_use > 0;
    }
    assert_true(dropped_in_use > 10);
}

/* Returns the device on which a task runs: in float64, or modulo a prime. */
static uint32_t device_for(sherd__devices *ds, sherd__block *b, bool residues)
{
    sherd__task t = peer_task(9, 1, 1, 1);
    uint8_t out[8];
    sherd_diag d = { 0 };
    sherd__device_state *on;
    sherd__call c = { .task = &t, .owner = 1, .out = out, .done = forget };
    t.primes_len = residues;
    t.primes[0] = 5;
    assert_int_equal(sherd__executor_new_inline(&c.executor), SHERD_OK);
    assert_int_equal(sherd__devices_submit(ds, &c, b, b, &on, &d), SHERD_OK);
    (void)sherd__executor_drain(c.executor);
    (void)sherd__devices_done(&c, b, b, on);
    sherd__devices_drop(b);
    sherd__executor_free(c.executor);
    return on->number;
}

static void a_task_goes_to_the_device_that_is_fastest_for_its_kind(void **s)
{
    (void)s;
    static const sherd__device list[] = {
        { .does = SHERD__DOES_ALL, .gflops = 10, .depth = 1 },
        { .does = SHERD__DOES_FIRST, .gflops = 5, .residue_gflops = 100, .depth = 1 },
        { .does = SHERD__DOES_ALL, .gflops = 3, .byte_gops = 900, .depth = 1 },
        { .does = SHERD__DOES_MAPS,
          .gflops = 1000,
          .residue_gflops = 1000,
          .byte_gops = 1000,
          .depth = 1 },
    };
    static uint8_t number[1024];
    const sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_F64, .rows = 1, .cols = 1, .len = 8
    };
    const sherd__fragment_info laid = { .origin = SHERD__HIDDEN,
                                        .dtype = SHERD__BYTES_LEFT,
                                        .primes = 1,
                                        .rows = 1,
                                        .cols = 1,
                                        .len = 1024 };
    sherd__devices ds;
    sherd__block b = { .refs = 1 }, bytes = { .refs = 1 };
    assert_int_equal(sherd__fragment_take(&b.fragment, &i, number, keep, NULL), SHERD_OK);
    assert_int_equal(sherd__fragment_take(&bytes.fragment, &laid, number, keep, NULL), SHERD_OK);
    sherd__devices_init(&ds, &worker_fake, NULL, list, 4);
    assert_int_equal(device_for(&ds, &b, false), 0);
    assert_int_equal(device_for(&ds, &b, true), 1);
    assert_int_equal(device_for(&ds, &bytes, true), 2);
    assert_true(sherd__devices_gflops(&ds, SHERD__DOES_F64) == 10);
    assert_true(sherd__devices_gflops(&ds, SHERD__DOES_RESIDUES) == 100);
    assert_true(sherd__devices_gflops(&ds, SHERD__DOES_BYTES) == 900);
    ds.list[1].lost = true;
    assert_true(sherd__devices_gflops(&ds, SHERD__DOES_RESIDUES) == 10);
    ds.list[2].lost = true; /* the first one computes with bytes, at an unknown rate */
    assert_int_equal(device_for(&ds, &bytes, true), 0);
    assert_true(sherd__devices_gflops(&ds, SHERD__DOES_BYTES) == 1);
    ds.list[0].lost = true;
    assert_true(sherd__devices_gflops(&ds, SHERD__DOES_F64) == 1);
    sherd__fragment_free(b.fragment);
    sherd__fragment_free(bytes.fragment);
}

static void every_failed_allocation_is_handled(void **s)
{
    (void)s;
    for (size_t nth = 1, seen = nth; seen >= nth; nth++) {
        peer p;
        start((remote_options){ .late = 2, .memory = 5 * (BLOCK + 64) });
        peer_join(&p);
        put_squares(&p, 4);
        for (uint32_t k = 1; k <= 4; k++) ask(&p, k, 4);
        sherd__alloc_fail_nth(nth);
        peer_settle(&p);
        seen = sherd__alloc_fail_nth(0);
        if (seen < nth) assert_int_equal(p.results_len, 4);
        peer_cut(&p);
        (void)stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_calls_are_in_progress_on_each_device),
        cmocka_unit_test(blocks_are_dropped_and_held_again_if_a_device_is_small),
        cmocka_unit_test(room_is_made_before_a_block_is_held),
        cmocka_unit_test(the_most_recently_used_block_stays),
        cmocka_unit_test(a_task_that_fits_no_device_is_refused_and_others_continue),
        cmocka_unit_test(a_call_that_fails_is_repeated),
        cmocka_unit_test(a_task_whose_calls_always_fail_is_refused),
        cmocka_unit_test(another_device_takes_the_tasks_of_a_lost_one),
        cmocka_unit_test(if_all_devices_are_lost_tasks_are_refused_and_blocks_stay),
        cmocka_unit_test(abandoned_tasks_leave_nothing_behind),
        cmocka_unit_test(a_task_goes_to_the_device_that_is_fastest_for_its_kind),
        cmocka_unit_test(every_failed_allocation_is_handled),
    };
    return cmocka_run_group_tests_name("node/devices", tests, open_cpu, close_cpu);
}
