/*
 * Devices with drivers, over stand-ins for these: the budget, the self-test, and what happens when
 * memory is short, a kernel fails, hangs or spoils its result, and a device is lost. test_drivers
 * has what differs between drivers, and tests/contract/node compares results.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "node/backends/kernels_text.h"
#include "tests/support/under_valgrind.h"
#include "tests/unit/node/standins.h"

/* ---- tests ----------------------------------------------------------------------------------- */

static void memory_is_overwritten_before_it_is_freed(void **s)
{
    (void)s;
    calling c;
    for (int optional = 0; optional < 2; optional++) {
        const char *plain = standin_path(optional ? on->plain : on->file);
        sherd_diag d;
        void *ctx, *loaded = dlopen(plain, RTLD_NOW | RTLD_LOCAL);
        unsigned (*dirt)(void);
        standin_function(loaded, "standin_dirty", &dirt);
        assert_int_equal(open_with(&ctx, "", (sherd__backend_options){ .library = plain }, &d), 0);
        sherd__fragment *f = block_new();
        sherd__handle h = held(ctx, f);
        assert_int_equal(call_once(ctx, &c, h), SHERD_OK);
        backend->drop(ctx, &h);
        backend->close(ctx);
        assert_int_equal(dirt(), 0);
        sherd__fragment_free(f);
    }
}

static void blocks_beyond_the_budget_find_no_memory_until_others_are_dropped(void **s)
{
    (void)s;
    void *ctx;
    uint32_t count;
    sherd__handle h[8];
    sherd_diag d;
    const uint64_t most = 4 << 20;
    assert_int_equal(open_with(&ctx, "", (sherd__backend_options){ .device_memory = most }, &d), 0);
    assert_int_equal(backend->devices(ctx, &count)->memory, most);
    sherd__fragment *f = block_new();
    const uint64_t fit = most / LEN;
    sherd__handle *all = calloc(fit, sizeof *all);
    for (uint64_t i = 0; i < fit; i++) all[i] = held(ctx, f);
    assert_int_equal(backend->hold(ctx, 0, f, 1, &h[0], &d), SHERD_ENOMEM);
    assert_non_null(strstr(d.message, "are in use"));
    calling c; /* there is no room for its result */
    assert_int_equal(call_once(ctx, &c, all[0]), SHERD_ENOMEM);
    backend->drop(ctx, &all[1]);
    assert_int_equal(call_once(ctx, &c, all[0]), SHERD_OK);
    all[1] = held(ctx, f);
    for (uint64_t i = 0; i < fit; i++) backend->drop(ctx, &all[i]);
    backend->close(ctx);
    sherd__fragment_free(f);
    free(all);
}

static void every_spoiled_launch_of_the_selftest_is_noticed(void **s)
{
    (void)s;
    const unsigned measured = 3, maps = 7, all = launches_of_open();
    const unsigned step = under_valgrind() ? 4 : 1;
    for (unsigned i = 1 + SHERD__KERNELS_OWN; i <= all - measured; i += step) {
        char faults[32];
        void *ctx;
        uint32_t count;
        sherd_diag d;
        snprintf(faults, sizeof faults, "wrong=%u", i);
        int err = open_with(&ctx, faults, (sherd__backend_options){ .threads = 0 }, &d);
        if (i <= all - measured - maps) {
            assert_int_equal(err, SHERD_EDEVICE);
            assert_non_null(strstr(d.message, "computes wrongly"));
            assert_null(ctx);
            continue;
        }
        assert_int_equal(err, SHERD_OK); /* without element-wise functions */
        assert_int_equal(backend->devices(ctx, &count)->does,
                         SHERD__DOES_F64 | SHERD__DOES_RESIDUES | SHERD__DOES_BYTES);
        backend->close(ctx);
    }
}

static void a_failed_launch_fails_its_call_only(void **s)
{
    (void)s;
    fails_once("fail");
    assert_int_equal(on->dirty(), 0);
}

/* Each allocation of a call: of the block, and of the result. */
static void a_call_without_memory_of_the_device_fails_and_succeeds_later(void **s)
{
    (void)s;
    sherd__fragment *f = block_new();
    for (unsigned nth = 1; nth <= 2; nth++) {
        calling c;
        void *ctx = opened("");
        sherd__handle h = held(ctx, f);
        char faults[32];
        snprintf(faults, sizeof faults, "full=%u", nth);
        on->reset();
        set_faults(faults);
        assert_int_equal(call_once(ctx, &c, h), SHERD_ENOMEM);
        assert_non_null(strstr(c.call.text, on->full));
        assert_int_equal(call_once(ctx, &c, h), SHERD_OK);
        backend->drop(ctx, &h);
        backend->close(ctx);
        assert_int_equal(on->dirty(), 0);
    }
    sherd__fragment_free(f);
}

/* All calls end, and no other one begins. */
static void check_lost(void *ctx, const sherd__fragment *f, const char *why)
{
    enum { CALLS = 5 };
    static calling c[CALLS];
    sherd__handle h = held(ctx, f), other;
    sherd_diag d = { .code = 0 };
    unsigned lost = 0, begun = 0;
    for (; begun < CALLS && !begin(ctx, &c[begun], h, &d); begun++) continue;
    assert_true(begun > 0);
    settle(ctx);
    for (unsigned i = 0; i < begun; i++) {
        assert_int_equal(c[i].dones, 1);
        assert_true(c[i].call.err == SHERD_OK || c[i].call.err == SHERD_EDEVICE);
        if (!c[i].call.err) continue;
        assert_true(c[i].call.lost);
        assert_non_null(strstr(c[i].call.text, why));
        lost++;
    }
    assert_true(lost > 0);
    assert_int_equal(begin(ctx, &c[0], h, &d), SHERD_EDEVICE);
    assert_non_null(strstr(d.message, why));
    assert_int_equal(backend->hold(ctx, 0, f, 1, &other, &d), SHERD_EDEVICE);
    backend->drop(ctx, &h);
    backend->close(ctx);
}

static void the_calls_of_a_device_that_is_lost_end(void **s)
{
    (void)s;
    char faults[32];
    sherd__fragment *f = block_new();
    snprintf(faults, sizeof faults, "lost=%u", launches_of_open() + 2);
    check_lost(opened(faults), f, on->gone);
    sherd__fragment_free(f);
}

static void a_kernel_that_hangs_loses_its_device_after_the_timeout(void **s)
{
    (void)s;
    char faults[32];
    void *ctx;
    sherd_diag d;
    sherd__fragment *f = block_new();
    snprintf(faults, sizeof faults, "hang=%u", launches_of_open() + 1);
    assert_int_equal(open_with(&ctx, faults, (sherd__backend_options){ .timeout_s = 0.3 }, &d), 0);
    check_lost(ctx, f, "does not respond");
    sherd__fragment_free(f);
}

static void devices_are_chosen_by_their_numbers(void **s)
{
    (void)s;
    void *ctx;
    uint32_t count;
    sherd_diag d;
    sherd__backend_options o = { .all_devices = true, .tested = true };
    assert_int_equal(open_with(&ctx, "devices=3", o, &d), SHERD_OK);
    assert_string_equal(backend->devices(ctx, &count)[2].core, "Stand-in GPU 2");
    assert_int_equal(count, 3);
    backend->close(ctx);
    o = (sherd__backend_options){ .tested = true, .devices = { 2, 0 }, .devices_len = 2 };
    assert_int_equal(open_with(&ctx, "devices=3", o, &d), SHERD_OK);
    const sherd__device *v = backend->devices(ctx, &count);
    assert_int_equal(count, 2);
    assert_string_equal(v[0].core, "Stand-in GPU 2");
    assert_string_equal(v[1].core, "Stand-in GPU 0");
    assert_string_equal(v[1].name, backend->name);
    backend->close(ctx);
    assert_int_equal(open_with(&ctx, "devices=2", o, &d), SHERD_EINVAL);
    char want[64];
    snprintf(want, sizeof want, "there is no device 2: %s has 2 devices", on->interface);
    assert_string_equal(d.message, want);
    assert_null(ctx);
}

static void every_failed_allocation_of_the_host_is_survived(void **s)
{
    (void)s;
    int err = SHERD_ENOMEM;
    for (unsigned long n = 1; err; n++) {
        void *ctx;
        sherd_diag d;
        (void)sherd__alloc_fail_nth(n);
        err = open_with(&ctx, "", (sherd__backend_options){ .tested = true }, &d);
        (void)sherd__alloc_fail_nth(0);
        if (err) {
            assert_int_equal(err, SHERD_ENOMEM);
            assert_null(ctx);
        } else {
            backend->close(ctx);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH(memory_is_overwritten_before_it_is_freed),
        OVER_BOTH(blocks_beyond_the_budget_find_no_memory_until_others_are_dropped),
        OVER_BOTH(every_spoiled_launch_of_the_selftest_is_noticed),
        OVER_BOTH(a_failed_launch_fails_its_call_only),
        OVER_BOTH(a_call_without_memory_of_the_device_fails_and_succeeds_later),
        OVER_BOTH(the_calls_of_a_device_that_is_lost_end),
        OVER_BOTH(devices_are_chosen_by_their_numbers),
        OVER_BOTH(every_failed_allocation_of_the_host_is_survived),
        /* last: its threads never end */
        OVER_BOTH(a_kernel_that_hangs_loses_its_device_after_the_timeout),
    };
    return cmocka_run_group_tests_name("node/accelerator", tests, standins_open, standins_close);
}
