/*
 * Complete jobs under every scheme over nodes whose devices have memory of their own: calls end
 * late and out of order, devices run out of memory, fail and are lost during a job. The product has
 * the bits of one machine's, as long as the scheme has enough nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "scheduler/plan/prepare.h"
#include "core/rand.h"
#include "sim.h"

static char dir[64], masks[80], state[80];

static int begin(void **s)
{
    (void)s;
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                                      : "/tmp"; /* masks are synced to disk */
    snprintf(dir, sizeof dir, "%s/devices-XXXXXX", where);
    if (!mkdtemp(dir)) return -1;
    snprintf(masks, sizeof masks, "%s/B.masks", dir);
    snprintf(state, sizeof state, "%s/state", dir);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static int end(void **s)
{
    (void)s;
    return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Under share and share1, two domains may be missing. */
static sim_options drawn(uint64_t seed, sherd_scheme scheme)
{
    sherd__seeded st;
    sherd__entropy e = sherd__entropy_seeded(&st, seed ^ UINT64_C(0xdec1));
    sim_options o = { .seed = seed,
                      .nodes = 7 + (uint32_t)sherd__entropy_below(&e, 3),
                      .n = 1 + sherd__entropy_below(&e, 60),
                      .k = 1 + sherd__entropy_below(&e, 40),
                      .m = 1 + sherd__entropy_below(&e, 40),
                      .node_memory = 1 << 22 };
    sherd__product_options_init(&o.product);
    o.product.scheme = scheme;
    o.product.exact = true;
    o.product.memory = UINT64_C(1) << (17 + sherd__entropy_below(&e, 3));
    if (scheme == SHERD_SHARE || scheme == SHERD_SHARE1) o.product.spare = 2;
    if (scheme == SHERD_PERMUTE) o.product.balanced = true;
    if (scheme == SHERD_BLIND) {
        o.product.masks = masks;
        o.product.masks_state = state;
    }
    o.delay_ms = 4;
    o.remote = true;
    o.devices = (remote_options){ .devices = 1 + (uint32_t)(seed % 2),
                                  .memory = 1 << 17,
                                  .depth = 3,
                                  .late = 1 + (uint32_t)sherd__entropy_below(&e, 8) };
    return o;
}

static void right(const sim_options *o, sim_outcome *r)
{
    sim_run(o, r);
    const char *what = r->hung    ? "it hangs"
                       : r->err   ? "it failed"
                       : r->equal ? NULL
                                  : "the product is wrong";
    if (what)
        fail_msg("seed %llu, scheme %d: %s (error %d \"%s\", after %llu ms)",
                 (unsigned long long)o->seed, (int)o->product.scheme, what, r->err, r->message,
                 (unsigned long long)r->virtual_ms);
}

static const sherd_scheme schemes[] = { SHERD_PERMUTE, SHERD_PLAIN, SHERD_SHARE, SHERD_SHARE1,
                                        SHERD_BLIND };
#define SCHEMES (sizeof schemes / sizeof *schemes)

static void calls_that_end_late_and_out_of_order_do_not_change_bits(void **s)
{
    (void)s;
    remote_stats all = { 0 };
    for (uint64_t seed = 1; seed <= 150; seed++) {
        sim_options o = drawn(seed, schemes[seed % SCHEMES]);
        sim_outcome r;
        right(&o, &r);
        assert_int_equal(r.lost + r.banned, 0);
        all.calls += r.devices.calls;
        all.overtaken += r.devices.overtaken;
    }
    assert_true(all.calls > 1000);
    assert_true(all.overtaken > 100);
}

static void devices_that_run_out_of_memory_and_fail_do_not_change_bits(void **s)
{
    (void)s;
    remote_stats all = { 0 };
    for (uint64_t seed = 1000; seed < 1150; seed++) {
        sim_options o = drawn(seed, schemes[seed % SCHEMES]);
        sim_outcome r;
        o.devices.full_in = 10;
        o.devices.fail_in = 10;
        right(&o, &r);
        all.full += r.devices.full;
        all.failed += r.devices.failed;
    }
    assert_true(all.full > 100);
    assert_true(all.failed > 100);
}

/* One of two devices is lost, or the only one: then the node cannot compute any more. */
static void devices_lost_during_a_job_do_not_change_bits(void **s)
{
    (void)s;
    remote_stats all = { 0 };
    uint64_t repeated = 0;
    for (uint64_t seed = 2000; seed < 2200; seed++) {
        sim_options o = drawn(seed, schemes[seed % SCHEMES]);
        sim_outcome r;
        o.devices.dies_at = 1 + (uint32_t)(seed / 10 % 6);
        o.dying = o.product.scheme == SHERD_PERMUTE ? 1 : 2; /* its bound leaves room for one */
        right(&o, &r);
        all.lost += r.devices.lost;
        repeated += r.repeated;
    }
    assert_true(all.lost > 100);
    assert_true(repeated > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_end_late_and_out_of_order_do_not_change_bits),
        cmocka_unit_test(devices_that_run_out_of_memory_and_fail_do_not_change_bits),
        cmocka_unit_test(devices_lost_during_a_job_do_not_change_bits),
    };
    return cmocka_run_group_tests_name("scheduler/devices", tests, begin, end);
}
