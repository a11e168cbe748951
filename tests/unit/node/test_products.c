/*
 * Products of passes on devices with memory of their own: in fixed point they have the bits of this
 * machine for all behaviours of devices, and nothing is left on the devices. Products that devices
 * do not support are computed here, unless all devices are lost or the examples are the node's own.
 *
 * link: -Wl,--wrap=sherd__wipe
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/alloc.h"
#include "core/rand.h"
#include "core/wipe.h"
#include "node/products.h"
#include "sherd/mat.h"
#include "tests/support/remote.h"
#include "tests/support/keep.h"

enum { MOST = 40, OWNER = 7 };

static void *cpu, *remote;
static sherd__devices devices;
static sherd__products of = { .devices = &devices, .owner = OWNER };
static sherd__seeded seeded;
static sherd__entropy rnd;
static double one[MOST * MOST * 4], two[MOST * MOST * 4], want[MOST * MOST], got[MOST * MOST];

static int open_cpu(void **s)
{
    sherd__backend_options o = { .threads = 1, .quick = true };
    (void)s;
    rnd = sherd__entropy_seeded(&seeded, 5);
    return sherd__backend_cpu.open(&cpu, &o, NULL);
}

static int close_cpu(void **s)
{
    (void)s;
    sherd__backend_cpu.close(cpu);
    return 0;
}

static size_t below(size_t n)
{
    return (size_t)sherd__entropy_below(&rnd, n);
}

static sherd_multiplier start(remote_options o, bool own, unsigned bits)
{
    sherd_multiplier m;
    uint32_t count;
    o.cpu = cpu;
    if (!o.memory) o.memory = 1 << 17;
    assert_int_equal(remote_open(&remote, &o), 0);
    const sherd__device *list = remote_backend.devices(remote, &count);
    sherd__devices_init(&devices, &remote_backend, remote, list, count);
    sherd__arithmetic by = own ? sherd__products_own(&of) : sherd__products_arithmetic(&of);
    assert_int_equal(sherd__arithmetic_multiplier(&by, bits, &m, NULL), 0);
    return m;
}

static remote_stats stop(sherd_multiplier m)
{
    sherd_multiplier_free(m);
    remote_stats r = *remote_stats_of(remote);
    assert_int_equal(r.holds, r.drops);
    assert_true(remote_is_clean(remote));
    assert_false(sherd__devices_busy(&devices));
    remote_backend.close(remote);
    return r;
}

/* Returns a random matrix in either orientation, with or without gaps. */
static sherd_view drawn(double *at, size_t rows, size_t cols)
{
    size_t gap = below(3) ? 0 : below(4);
    bool turned = below(2);
    size_t high = turned ? cols : rows, wide = (turned ? rows : cols) + gap;
    for (size_t i = 0; i < high * wide; i++)
        at[i] = ((double)below(1u << 20) - (1 << 19)) * 0x1p-17;
    sherd_view v = sherd_view_c(at, SHERD_F64, high, wide);
    v = sherd_view_sub(v, 0, high, 0, wide - gap);
    return turned ? sherd_view_t(v) : v;
}

/* Computes a product with m and with this machine, and compares. Returns the error of m. */
static int compare(sherd_multiplier m, unsigned bits)
{
    size_t n = 1 + below(MOST), k = 1 + below(MOST), cols = 1 + below(MOST / 2), ld = cols;
    sherd_view a = drawn(one, n, k), b = drawn(two, k, cols);
    sherd_multiplier here;
    sherd_diag d = { 0 };
    if (below(2)) ld += below(4);
    memset(want, 0xEE, sizeof want);
    memset(got, 0xEE, sizeof got);
    int err = sherd_multiplier_multiply(m, a, b, got, ld, &d);
    assert_true(!err || d.message[0]);
    assert_int_equal(sherd_multiplier_local(&here, bits, NULL), 0);
    assert_int_equal(sherd_multiplier_multiply(here, a, b, want, ld, NULL), 0);
    sherd_multiplier_free(here);
    if (err) return err;
    for (size_t i = 0; i < n * ld; i++)
        if (bits) assert_memory_equal(&got[i], &want[i], sizeof *got);
        else assert_true(got[i] == want[i] || (got[i] - want[i]) * (got[i] - want[i]) < 1e-18);
    return 0;
}

static void exact_products_have_the_bits_of_this_machine(void **s)
{
    (void)s;
    static const unsigned bits[] = { 0, 2, 17, 24, 26, 40, 42 };
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        sherd_multiplier m = start((remote_options){ .seed = i, .devices = 2, .late = 4 }, false,
                                   bits[i]);
        for (unsigned k = 0; k < 60; k++) assert_int_equal(compare(m, bits[i]), 0);
        remote_stats r = stop(m);
        assert_int_equal(r.dones, 60);
        assert_int_equal(r.holds, 120);
    }
}

static void devices_that_fail_or_have_no_room_do_not_change_bits(void **s)
{
    (void)s;
    remote_stats all = { 0 };
    for (uint64_t seed = 1; seed <= 60; seed++) {
        unsigned bits = seed % 2 ? 17 : 40;
        sherd_multiplier m = start((remote_options){ .seed = seed,
                                                     .devices = 1 + (uint32_t)(seed % 2),
                                                     .memory = 1 << 14,
                                                     .late = 3,
                                                     .full_in = 5,
                                                     .fail_in = seed % 3 ? 3 : 1 },
                                   false, bits);
        for (unsigned k = 0; k < 10; k++) assert_int_equal(compare(m, bits), 0);
        remote_stats r = stop(m);
        all.full += r.full;
        all.failed += r.failed;
        all.dones += r.dones;
    }
    assert_in_range(all.full, 100, 1000);
    assert_in_range(all.failed, 300, 2000);
    assert_in_range(all.dones, 150, 600);
}

static void a_failed_call_is_repeated_twice(void **s)
{
    (void)s;
    sherd_multiplier m = start((remote_options){ .fail_in = 1 }, false, 17);
    assert_int_equal(compare(m, 17), 0);
    assert_int_equal(stop(m).failed, 3);
}

static void another_device_takes_over_from_a_lost_one(void **s)
{
    (void)s;
    sherd_multiplier m = start((remote_options){ .devices = 2, .late = 3, .dies_at = 4 }, false,
                               17);
    for (unsigned k = 0; k < 20; k++) assert_int_equal(compare(m, 17), 0);
    remote_stats r = stop(m);
    assert_true(r.lost > 0);
    assert_int_equal(r.dones, 20);
}

static void if_all_devices_are_lost_products_fail(void **s)
{
    (void)s;
    sherd_multiplier m = start((remote_options){ .late = 2, .dies_at = 4 }, false, 17);
    unsigned failed = 0;
    for (unsigned k = 0; k < 20; k++) {
        int err = compare(m, 17);
        assert_true(!err || err == SHERD_EDEVICE);
        assert_true(err || !failed);
        failed += err != 0;
    }
    assert_in_range(failed, 15, 19);
    assert_true(stop(m).lost > 0);
}

static void with_own_examples_every_failure_is_a_device_error(void **s)
{
    (void)s;
    remote_options faults[] = { { .fail_in = 1 },
                                { .full_in = 1 },
                                { .memory = 128 },
                                { .dies_at = 1, .devices = 2, .all_die = 1 } };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sherd_multiplier m = start(faults[i], true, 0);
        assert_int_equal(compare(m, 0), SHERD_EDEVICE);
        (void)stop(m);
    }
    sherd_multiplier m = start((remote_options){ .seed = 3 }, true, 0);
    assert_int_equal(compare(m, 0), 0);
    devices.list[0].what.does &= ~SHERD__DOES_STEADY;
    assert_int_equal(compare(m, 0), SHERD_EDEVICE);
    assert_int_equal(stop(m).dones, 1);
}

static size_t wanted[2], wiped[2]; /* sizes of memory, and how often such was wiped */

void __wrap_sherd__wipe(void *p, size_t len);
void __real_sherd__wipe(void *p, size_t len);

void __wrap_sherd__wipe(void *p, size_t len)
{
    for (size_t i = 0; i < 2; i++) wiped[i] += len == wanted[i];
    __real_sherd__wipe(p, len);
}

/* The residues of the result, and one row of them as numbers. */
static void results_of_own_examples_are_wiped_as_residues_too(void **s)
{
    enum { N = 5, K = 40, COLS = 7, PRIMES = 3 };
    (void)s;
    sherd_multiplier m = start((remote_options){ .seed = 4 }, true, 26);
    for (size_t i = 0; i < N * K; i++) one[i] = 1 - 0x1p-25 * (double)below(1 << 20);
    for (size_t i = 0; i < K * COLS; i++) two[i] = 1 - 0x1p-25 * (double)below(1 << 20);
    sherd_view a = sherd_view_c(one, SHERD_F64, N, K), b = sherd_view_c(two, SHERD_F64, K, COLS);
    wanted[0] = PRIMES * N * COLS * 3;
    wanted[1] = PRIMES * COLS * 8;
    wiped[0] = wiped[1] = 0;
    assert_int_equal(sherd_multiplier_multiply(m, a, b, got, COLS, NULL), 0);
    assert_true(wiped[0] == 1 && wiped[1] == 1);
    (void)stop(m);
}

/* The rows of a steady device's products do not depend on their place or on other rows. */
static void a_row_of_a_steady_product_equals_the_product_of_that_row(void **s)
{
    (void)s;
    sherd_multiplier m = start((remote_options){ .seed = 2 }, true, 0);
    for (unsigned k = 0; k < 50; k++) {
        size_t n = 1 + below(MOST), inner = 1 + below(MOST), cols = 1 + below(MOST), r = below(n);
        sherd_view a = drawn(one, n, inner), b = drawn(two, inner, cols);
        assert_int_equal(sherd_multiplier_multiply(m, a, b, want, cols, NULL), 0);
        a = sherd_view_sub(a, r, 1, 0, inner);
        assert_int_equal(sherd_multiplier_multiply(m, a, b, got, cols, NULL), 0);
        assert_memory_equal(got, want + r * cols, cols * sizeof *got);
    }
    (void)stop(m);
}

/* Kinds of arithmetic that a device does not support, empty products, kept operands, functions. */
static void products_that_devices_do_not_support_are_computed_here(void **s)
{
    (void)s;
    sherd_multiplier m = start((remote_options){ .seed = 4 }, false, 40);
    sherd_kept *kept;
    double x[6] = { 1, -2, 3, -4, 5, -6 }, y[9];
    sherd_view v = sherd_view_c(x, SHERD_F64, 2, 3), none = sherd_view_c(x, SHERD_F64, 0, 3);
    devices.list[0].what.does &= ~SHERD__DOES_RESIDUES;
    for (unsigned k = 0; k < 10; k++) assert_int_equal(compare(m, 40), 0);
    assert_int_equal(sherd_multiplier_multiply(m, sherd_view_t(none), none, y, 3, NULL), 0);
    assert_true(y[0] == 0 && y[8] == 0);
    assert_int_equal(sherd_multiplier_keep(&kept, m, v, keep_parts(1), NULL), 0);
    sherd_rows second = { 1, 1 };
    assert_int_equal(sherd_multiplier_multiply_rows(m, kept, second, false, sherd_view_t(v), y, 2,
                                                    NULL),
                     0);
    assert_true(y[0] == -32 && y[1] == 77);
    sherd_multiplier_release(m, kept);
    assert_int_equal(sherd_multiplier_map(m, SHERD_OP_RELU, v, v, y, 3, NULL), 0);
    assert_true(y[0] == 1 && y[1] == 0);
    remote_stats r = stop(m);
    assert_int_equal(r.calls, 0);
}

/* A number that is not finite is the caller's error, as on this machine. */
static void nonfinite_numbers_are_a_range_error(void **s)
{
    (void)s;
    sherd_multiplier m = start((remote_options){ .seed = 4 }, false, 17);
    double x[2] = { 1, 1.0 / 0.0 }, y[4];
    sherd_view v = sherd_view_c(x, SHERD_F64, 1, 2);
    sherd_diag d = { 0 };
    assert_int_equal(sherd_multiplier_multiply(m, sherd_view_t(v), v, y, 2, &d), SHERD_ERANGE);
    assert_int_equal(stop(m).calls, 0);
}

static void a_backend_in_host_memory_provides_its_own_multiplier(void **s)
{
    (void)s;
    sherd_multiplier m, local;
    uint32_t count;
    const sherd__device *list = sherd__backend_cpu.devices(cpu, &count);
    sherd__devices_init(&devices, &sherd__backend_cpu, cpu, list, count);
    sherd__arithmetic by = sherd__products_arithmetic(&of);
    assert_int_equal(sherd__arithmetic_multiplier(&by, 0, &m, NULL), 0);
    assert_int_equal(sherd_multiplier_local(&local, 0, NULL), 0);
    assert_ptr_equal(m.ops, local.ops);
    sherd_multiplier_free(m);
    sherd_multiplier_free(local);
}

static void a_failed_allocation_leaves_nothing_behind(void **s)
{
    (void)s;
    for (unsigned bits = 17; bits <= 40; bits += 23)
        for (size_t nth = 1; nth < 60; nth++) {
            sherd_multiplier m;
            sherd__arithmetic by = sherd__products_arithmetic(&of);
            sherd_multiplier first = start((remote_options){ .seed = nth }, false, bits);
            sherd__alloc_fail_nth(nth);
            int err = sherd__arithmetic_multiplier(&by, bits, &m, NULL);
            if (!err) {
                double y[4], x[4] = { 1, 2, 3, 1e9 };
                sherd_view v = sherd_view_c(x, SHERD_F64, 2, 2);
                err = sherd_multiplier_multiply(m, v, v, y, 2, NULL);
                sherd_multiplier_free(m);
            } else {
                assert_null(m.ops);
            }
            (void)sherd__alloc_fail_nth(0);
            assert_true(!err || err == SHERD_ENOMEM);
            (void)stop(first);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_products_have_the_bits_of_this_machine),
        cmocka_unit_test(devices_that_fail_or_have_no_room_do_not_change_bits),
        cmocka_unit_test(a_failed_call_is_repeated_twice),
        cmocka_unit_test(another_device_takes_over_from_a_lost_one),
        cmocka_unit_test(if_all_devices_are_lost_products_fail),
        cmocka_unit_test(with_own_examples_every_failure_is_a_device_error),
        cmocka_unit_test(results_of_own_examples_are_wiped_as_residues_too),
        cmocka_unit_test(a_row_of_a_steady_product_equals_the_product_of_that_row),
        cmocka_unit_test(products_that_devices_do_not_support_are_computed_here),
        cmocka_unit_test(nonfinite_numbers_are_a_range_error),
        cmocka_unit_test(a_backend_in_host_memory_provides_its_own_multiplier),
        cmocka_unit_test(a_failed_allocation_leaves_nothing_behind),
    };
    return cmocka_run_group_tests_name("node/products", tests, open_cpu, close_cpu);
}
