/*
 * Passes of training over two devices (a stand-in for CUDA): both compute at the same time, the
 * sums are those of the processor, also where a device is lost or memory is short, and nothing is
 * left on the devices.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "learn/passes.h"
#include "matrix/gemm.h"
#include "node/products.h"
#include "tests/support/draw.h"
#include "tests/unit/node/standins.h"

static const char text[] = "input = 400\nlayer = dense 300\nlayer = relu\nlayer = dense 3\n"
                           "loss = cross-entropy\n";
enum { SHARDS = 8, EACH = 2, ROWS = SHARDS * EACH, INPUTS = 400, TIERS = 2, PASSES = 4 };
static const size_t counts[TIERS] = { 400 * 300 + 300, 300 * 3 + 3 };
static const int32_t scales[TIERS] = { 30, 31 };
static double x[ROWS * INPUTS], params[TIERS][400 * 300 + 300];
typedef int64_t numbers[400 * 300 + 300];
static numbers sums[TIERS], want[TIERS];
static uint32_t labels[ROWS];
static sherd__recipe recipe;
static void *ctx;
static sherd__devices devices;
static sherd__products of = { .devices = &devices, .owner = 7 };
static sherd__team *team;

static sherd__shard shard(void *unused, uint32_t i, uint32_t pass, sherd__local_steps *local)
{
    (void)unused, (void)pass;
    *local = (sherd__local_steps){ 0 };
    return (sherd__shard){ sherd_view_c(x + EACH * i * INPUTS, SHERD_F64, EACH, INPUTS),
                           { .labels = labels + EACH * i } };
}

static int need(void *unused, size_t t, const double **out, sherd_diag *d)
{
    (void)unused, (void)d;
    *out = params[t];
    return SHERD_OK;
}

static void done(void *unused, size_t t)
{
    (void)unused, (void)t;
}

static int compute(const sherd__arithmetic *by, uint32_t count, unsigned bits, numbers *out,
                   sherd_diag *d)
{
    sherd__passes *p;
    sherd__graded graded[SHARDS];
    void *to[TIERS] = { out[0], out[1] };
    const sherd__passes_options o = { &recipe, EACH, bits, by, count };
    const sherd__passes_sum s = { .shards = SHARDS,
                                  .scales = scales,
                                  .room = 61,
                                  .sums = to,
                                  .shard = shard,
                                  .need = need,
                                  .done = done,
                                  .graded = graded };
    assert_int_equal(sherd__passes_new(&p, &o, d), SHERD_OK);
    int err = sherd__passes_run(p, team, &s, d);
    sherd__passes_free(p);
    return err;
}

static int fill(void **s)
{
    for (size_t i = 0; i < ROWS * INPUTS; i++) x[i] = (double)draw() / 0x1p30 - 1;
    for (size_t i = 0; i < ROWS; i++) labels[i] = (uint32_t)(draw() % 3);
    for (size_t t = 0; t < TIERS; t++)
        for (size_t i = 0; i < counts[t]; i++) params[t][i] = ((double)draw() / 0x1p31 - 0.5) / 8;
    if (standins_open(s) || sherd__team_new(&team, PASSES)) return 1;
    if (sherd__recipe_parse(&recipe, text, sizeof text - 1, "t", SHERD__RECIPE_NETWORK, NULL))
        return 1;
    return compute(NULL, 1, 17, want, NULL);
}

static int end(void **s)
{
    sherd__team_free(team);
    return standins_close(s);
}

static void start(uint64_t memory)
{
    sherd_diag d;
    uint32_t count;
    const sherd__backend_options o = { .all_devices = true,
                                       .device_memory = memory,
                                       .timeout_s = 60 };
    if (open_with(&ctx, "devices=2", o, &d)) fail_msg("%s", d.message);
    const sherd__device *list = backend->devices(ctx, &count);
    assert_int_equal(count, 2);
    sherd__devices_init(&devices, backend, ctx, list, count);
}

/* Computes the sum with several passes and this fault, for which the launches are counted from the
 * first of the sum. */
static int sum_with(const char *fault, unsigned at, sherd_diag *d)
{
    char faults[64];
    const sherd__arithmetic by = sherd__products_arithmetic(&of);
    snprintf(faults, sizeof faults, "devices=2,%s=%u", fault, on->launches() + at);
    set_faults(faults);
    memset(sums, 0xEE, sizeof sums);
    return compute(&by, PASSES, 17, sums, d);
}

static void is_right(void)
{
    for (size_t t = 0; t < TIERS; t++) assert_memory_equal(sums[t], want[t], 8 * counts[t]);
}

static void stop(void)
{
    assert_false(sherd__devices_busy(&devices));
    assert_int_equal(devices.list[0].held + devices.list[1].held, 0);
    backend->close(ctx);
}

/* The stand-in ends the process where launches of two devices are never in progress together. */
static void both_devices_compute_at_the_same_time(void **s)
{
    (void)s;
    sherd_diag d = { 0 };
    start(0);
    if (sum_with("meet", 1, &d)) fail_msg("%s", d.message);
    is_right();
    stop();
}

static void another_device_takes_over_from_a_lost_one(void **s)
{
    (void)s;
    for (unsigned at = 1; at < 30; at += 7) {
        sherd_diag d = { 0 };
        start(0);
        const uint64_t here = sherd__blas_calls();
        if (sum_with("dies", at, &d)) fail_msg("%s", d.message);
        is_right();
        assert_int_equal(sherd__blas_calls(), here);
        assert_true(devices.list[0].lost != devices.list[1].lost);
        stop();
    }
}

static void if_all_devices_are_lost_the_sum_fails(void **s)
{
    (void)s;
    sherd_diag d = { 0 };
    start(0);
    assert_int_equal(sum_with("lost", 5, &d), SHERD_EDEVICE);
    assert_true(d.message[0]);
    assert_true(sherd__devices_lost(&devices));
    stop();
}

/* Passes take turns on devices with little memory, and none of their work is left to the processor.
 * Returns how many launches they take. */
static unsigned one_at_a_time(uint64_t memory, bool programs)
{
    unsigned launches[2];
    for (int small = 0; small < 2; small++) {
        sherd_diag d = { 0 };
        start(small ? memory : 0);
        for (uint32_t i = 0; i < devices.count && !programs; i++)
            sherd__devices_without_programs(&devices, &devices.list[i]);
        const unsigned before = on->launches();
        if (sum_with("fail", 1000000, &d)) fail_msg("%s", d.message);
        is_right();
        launches[small] = on->launches() - before;
        stop();
    }
    assert_int_equal(launches[1], launches[0]);
    return launches[0];
}

/* There is room for one product of the first layer. */
static void a_device_without_room_for_two_products_computes_one_at_a_time(void **s)
{
    (void)s;
    assert_true(one_at_a_time((uint64_t)3 << 19, false) >= 4 * SHARDS);
}

/* Parameters, the gradient and exponents take 2.1 MB. */
static void a_device_without_room_for_two_programs_runs_one_at_a_time(void **s)
{
    (void)s;
    assert_true(one_at_a_time((uint64_t)5 << 19, true) > 20 * SHARDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_CUDA(both_devices_compute_at_the_same_time),
        OVER_CUDA(another_device_takes_over_from_a_lost_one),
        OVER_CUDA(if_all_devices_are_lost_the_sum_fails),
        OVER_CUDA(a_device_without_room_for_two_products_computes_one_at_a_time),
        OVER_CUDA(a_device_without_room_for_two_programs_runs_one_at_a_time),
    };
    return cmocka_run_group_tests_name("node/passes", tests, fill, end);
}
