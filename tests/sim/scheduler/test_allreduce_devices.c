/*
 * All-reduce training over nodes whose devices have memory of their own: calls end late, devices
 * run out of memory, fail and are lost during a step. Parameters have the bits of one process; a
 * node without a device is left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/sim/scheduler/allreduce_world.h"
#include "tests/support/node_devices.h"

static void run_on(const remote_options *o, uint32_t dying, uint64_t seed, const training *t,
                   uint32_t members)
{
    trial x;
    remote_options devices = *o;
    devices.seed = seed;
    node_devices.options = &devices;
    node_devices.dying = dying;
    allreduce_trial_open(&x, seed, t);
    allreduce_trial_start(&x);
    allreduce_trial_train(&x);
    if (x.s.members != members)
        fail_msg("seed %llu: %u members\n%s", (unsigned long long)seed, x.s.members, x.w.log);
    allreduce_trial_close(&x);
    node_devices.options = NULL;
}

static training drawn(uint64_t seed)
{
    training t = usual;
    t.kind = (sherd__reduce)(1 + seed % 2);
    t.nodes = 2 + (uint32_t)seed % 4;
    t.shards = 1 + (uint32_t)seed % 7;
    t.local = seed % 3 == 0 ? 2 : 0;
    return t;
}

static void devices_that_are_late_full_or_fail_do_not_change_bits(void **unused)
{
    (void)unused;
    node_devices.stats = (remote_stats){ 0 };
    for (uint64_t seed = 1; seed <= 40; seed++) {
        training t = drawn(seed);
        remote_options o = { .devices = 1 + (uint32_t)(seed % 2),
                             .memory = 1 << 16,
                             .late = 1 + (uint32_t)(seed % 6),
                             .full_in = seed % 2 ? 8 : 0,
                             .fail_in = seed % 3 ? 0 : 6 };
        run_on(&o, 0, seed, &t, t.nodes);
    }
    const remote_stats *all = &node_devices.stats;
    assert_in_range(all->dones, 1000, UINT64_MAX);
    assert_in_range(all->full, 100, UINT64_MAX);
    assert_in_range(all->failed, 100, UINT64_MAX);
}

static void a_node_whose_devices_are_lost_is_left_out(void **unused)
{
    (void)unused;
    node_devices.stats = (remote_stats){ 0 };
    for (uint64_t seed = 1; seed <= 30; seed++) {
        training t = drawn(seed);
        remote_options o = { .devices = 1 + (uint32_t)(seed % 2), .memory = 1 << 16 };
        o.dies_at = 1 + (uint32_t)(seed % 12);
        o.all_die = true;
        t.nodes = 3 + (uint32_t)seed % 3;
        t.shards = 5;
        run_on(&o, 1, seed, &t, t.nodes - 1);
    }
    assert_int_equal(node_devices.stats.lost, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_that_are_late_full_or_fail_do_not_change_bits),
        cmocka_unit_test(a_node_whose_devices_are_lost_is_left_out),
    };
    int failed = cmocka_run_group_tests_name("scheduler/allreduce_devices", tests, NULL,
                                             allreduce_keys_free);
    (void)node_devices_end(NULL);
    return failed;
}
