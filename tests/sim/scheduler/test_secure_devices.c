/*
 * Secure aggregation over nodes whose devices have memory of their own. Only the node has its
 * examples: whatever the devices do, no node is missing in a sum, no task is refused, and the sum
 * has the bits of nodes without devices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/sim/scheduler/secure_world.h"
#include "tests/support/draw.h"
#include "tests/support/node_devices.h"

enum { ROUNDS = 3 };

static void sums(uint64_t seed, int64_t out[ROUNDS][LEN])
{
    world w;
    draw_state = seed;
    secure_begin(&w, 4, 0, 1);
    secure_meet(&w);
    assert_int_equal(w.a.nodes, 4);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t k = 0; k < COUNT; k++) w.params->values[k] *= 0.75;
        assert_int_equal(secure_ask(&w), 0);
        secure_is_sum_without(&w, NULL, 0);
        memcpy(out[round], w.out, sizeof w.out);
    }
    assert_string_equal(w.log, "");
    secure_end(&w);
}

static void whatever_devices_do_every_node_is_in_the_sum(void **unused)
{
    (void)unused;
    int64_t want[ROUNDS][LEN], got[ROUNDS][LEN];
    node_devices.stats = (remote_stats){ 0 };
    for (uint64_t seed = 1; seed <= 40; seed++) {
        remote_options o = { .seed = seed,
                             .devices = 1 + (uint32_t)(seed % 2),
                             .memory = 1 << 16,
                             .late = 1 + (uint32_t)(seed % 5),
                             .full_in = seed % 3 ? 0 : 8,
                             .fail_in = seed % 4 ? 0 : 3,
                             .dies_at = seed % 5 ? 0 : 1 + (uint32_t)(seed / 5),
                             .all_die = true };
        sums(seed, want);
        node_devices.options = &o;
        node_devices.dying = 4;
        sums(seed, got);
        node_devices.options = NULL;
        assert_memory_equal(got, want, sizeof want);
    }
    const remote_stats *all = &node_devices.stats;
    assert_true(all->dones > 1500 && all->full > 50 && all->failed > 50 && all->lost > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_devices_do_every_node_is_in_the_sum),
    };
    return cmocka_run_group_tests_name("scheduler/secure_devices", tests, NULL, node_devices_end);
}
