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

/* What a job computes: a product under each scheme, products with the windows of images that stay
 * at the nodes, and an element-wise operation. */
static const struct {
    sherd_scheme scheme;
    bool windows, transposed, map;
} jobs[] = {
    { SHERD_PERMUTE, false, false, false }, { SHERD_PLAIN, false, false, false },
    { SHERD_SHARE, false, false, false },   { SHERD_SHARE1, false, false, false },
    { SHERD_BLIND, false, false, false },   { SHERD_SHARE, true, false, false },
    { SHERD_SHARE, true, true, false },     { SHERD_PERMUTE, false, false, true },
};
#define JOBS (sizeof jobs / sizeof *jobs)

static void draw_windows(sim_options *o)
{
    uint32_t side = 1 + (uint32_t)(o->seed / JOBS % 3);
    o->windows = (sherd_windows){ 3, 2 + side, 1, side, 1, side - 1 };
    o->k = (size_t)o->windows.height * o->windows.width;
    o->product.memory += UINT64_C(1) << 20;
}

/* Under share and share1, two domains may be missing. */
static sim_options drawn(uint64_t seed)
{
    const size_t job = seed % JOBS;
    const sherd_scheme scheme = jobs[job].scheme;
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
    if (jobs[job].windows) draw_windows(&o);
    o.transposed = jobs[job].transposed;
    if (jobs[job].map) {
        o.op = (sherd_op)(SHERD_OP_SIGMOID + seed / JOBS % (SHERD_OP_EXP - SHERD_OP_SIGMOID + 1));
        o.product.exact = false;
    }
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
        fail_msg("seed %llu, job %d: %s (error %d \"%s\", after %llu ms)",
                 (unsigned long long)o->seed, (int)(o->seed % JOBS), what, r->err, r->message,
                 (unsigned long long)r->virtual_ms);
}

static void calls_that_end_late_and_out_of_order_do_not_change_bits(void **s)
{
    (void)s;
    remote_stats all = { 0 };
    for (uint64_t seed = 1; seed <= 240; seed++) {
        sim_options o = drawn(seed);
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
    for (uint64_t seed = 1000; seed < 1240; seed++) {
        sim_options o = drawn(seed);
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
    for (uint64_t seed = 2000; seed < 2320; seed++) {
        sim_options o = drawn(seed);
        sim_outcome r;
        o.devices.dies_at = 1 + (uint32_t)(seed / JOBS % 6);
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
