/*
 * Devices with drivers, over a stand-in for OpenCL (tests/system/node/preload_opencl.c): the
 * budget, the self-test, and what happens when memory is short, a kernel fails, hangs or spoils its
 * result, and a device is lost. tests/contract/node compares results.
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
#include "core/executor.h"
#include "crypto/fragment_make.h"
#include "node/backend.h"
#include "sherd/mat.h"

enum { N = 40 };
#define LEN ((uint64_t)N * N * 8)

static const sherd__backend *const opencl = &sherd__backend_opencl;
static char library[4096];
static sherd__executor *executor;
static unsigned (*dirty)(void), (*launches)(void);
static void (*reset)(void);

static void find(void *loaded, const char *name, void *out)
{
    void *symbol = dlsym(loaded, name);
    assert_non_null(symbol);
    memcpy(out, &symbol, sizeof symbol);
}

static int set_up(void **s)
{
    (void)s;
    snprintf(library, sizeof library, "%s/tests/system/node/preload_opencl.so", getenv("BUILD"));
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(loaded);
    find(loaded, "standin_dirty", &dirty);
    find(loaded, "standin_launches", &launches);
    find(loaded, "standin_reset", &reset);
    return sherd__executor_new_inline(&executor);
}

static int tear_down(void **s)
{
    (void)s;
    sherd__executor_free(executor);
    return 0;
}

/* In place: setenv would keep every value. */
static void set_faults(const char *faults)
{
    static char variable[128];
    snprintf(variable, sizeof variable, "SHERD_TEST_OPENCL=%s", faults);
    assert_int_equal(putenv(variable), 0);
}

/* Opens the backend with these faults. */
static int open_with(void **ctx, const char *faults, sherd__backend_options o, sherd_diag *d)
{
    *d = (sherd_diag){ .code = 0 };
    reset();
    set_faults(faults);
    if (!o.library) o.library = library;
    o.quick = true;
    return opencl->open(ctx, &o, d);
}

static void *opened(const char *faults)
{
    void *ctx;
    sherd_diag d;
    int err = open_with(&ctx, faults, (sherd__backend_options){ .timeout_s = 60 }, &d);
    if (err) fail_msg("%s: %s", faults, d.message);
    return ctx;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void keep(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx, (void)bytes, (void)len;
}

static double numbers[N * N];

static sherd__fragment *block_new(void)
{
    const sherd__fragment_info i = {
        .origin = SHERD__HIDDEN, .dtype = SHERD_F64, .rows = N, .cols = N, .len = LEN
    };
    sherd__fragment *f;
    for (size_t k = 0; k < N * N; k++) numbers[k] = (double)(k % 101) - 50;
    assert_int_equal(sherd__fragment_take(&f, &i, (uint8_t *)numbers, keep, NULL), SHERD_OK);
    return f;
}

typedef struct calling {
    sherd__call call; /* must be first */
    sherd__task task;
    unsigned dones;
    double out[N * N];
} calling;

static void on_done(sherd__call *c)
{
    ((calling *)(void *)c)->dones++;
}

static int begin(void *ctx, calling *c, sherd__handle h, sherd_diag *d)
{
    *c = (calling){ .task = { .op = SHERD__OP_MULTIPLY,
                              .left = 1,
                              .right = 1,
                              .result = { .origin = SHERD__RESULT,
                                          .dtype = SHERD_F64,
                                          .rows = N,
                                          .cols = N,
                                          .len = LEN } } };
    c->call = (sherd__call){ .task = &c->task,
                             .left = h,
                             .right = h,
                             .owner = 1,
                             .out = (uint8_t *)c->out,
                             .executor = executor,
                             .done = on_done };
    return opencl->submit(ctx, &c->call, d);
}

static void settle(void *ctx)
{
    while (sherd__executor_pending(executor)) {
        opencl->wait(ctx, NULL);
        (void)sherd__executor_drain(executor);
    }
}

static void assert_product(const calling *c)
{
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            double sum = 0;
            for (size_t k = 0; k < N; k++) sum += numbers[i * N + k] * numbers[k * N + j];
            if (c->out[i * N + j] != sum) fail_msg("(%zu, %zu)", i, j);
        }
}

/* Makes one call; returns its error. */
static int call_once(void *ctx, calling *c, sherd__handle h)
{
    sherd_diag d = { .code = 0 };
    assert_int_equal(begin(ctx, c, h, &d), SHERD_OK);
    settle(ctx);
    assert_int_equal(c->dones, 1);
    if (!c->call.err) assert_product(c);
    return c->call.err;
}

static sherd__handle held(void *ctx, const sherd__fragment *f)
{
    sherd__handle h;
    sherd_diag d = { .code = 0 };
    assert_int_equal(opencl->hold(ctx, 0, f, 1, &h, &d), SHERD_OK);
    return h;
}

/* Launches of a self-test, and of one with all its measurements. */
static unsigned launches_of_open(void)
{
    opencl->close(opened(""));
    return launches();
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void memory_is_overwritten_before_it_is_freed(void **s)
{
    (void)s;
    calling c;
    char plain[4096];
    for (int optional = 0; optional < 2; optional++) {
        snprintf(plain, sizeof plain, "%s/tests/system/node/preload_opencl%s.so", getenv("BUILD"),
                 optional ? "_plain" : "");
        sherd_diag d;
        void *ctx, *loaded = dlopen(plain, RTLD_NOW | RTLD_LOCAL);
        unsigned (*dirt)(void);
        find(loaded, "standin_dirty", &dirt);
        assert_int_equal(open_with(&ctx, "", (sherd__backend_options){ .library = plain }, &d), 0);
        sherd__fragment *f = block_new();
        sherd__handle h = held(ctx, f);
        assert_int_equal(call_once(ctx, &c, h), SHERD_OK);
        opencl->drop(ctx, &h);
        opencl->close(ctx);
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
    const uint64_t budget = 1 << 20; /* the self-test takes less */
    assert_int_equal(open_with(&ctx, "", (sherd__backend_options){ .device_memory = budget }, &d),
                     SHERD_ENOMEM); /* ... but its measurements do not */
    const uint64_t most = 4 << 20;
    assert_int_equal(open_with(&ctx, "", (sherd__backend_options){ .device_memory = most }, &d), 0);
    assert_int_equal(opencl->devices(ctx, &count)->memory, most);
    sherd__fragment *f = block_new();
    const uint64_t fit = most / LEN;
    sherd__handle *all = calloc(fit, sizeof *all);
    for (uint64_t i = 0; i < fit; i++) all[i] = held(ctx, f);
    assert_int_equal(opencl->hold(ctx, 0, f, 1, &h[0], &d), SHERD_ENOMEM);
    assert_non_null(strstr(d.message, "are in use"));
    calling c; /* there is no room for its result */
    assert_int_equal(call_once(ctx, &c, all[0]), SHERD_ENOMEM);
    opencl->drop(ctx, &all[1]);
    assert_int_equal(call_once(ctx, &c, all[0]), SHERD_OK);
    all[1] = held(ctx, f);
    for (uint64_t i = 0; i < fit; i++) opencl->drop(ctx, &all[i]);
    opencl->close(ctx);
    sherd__fragment_free(f);
    free(all);
}

static void every_spoiled_launch_of_the_selftest_is_noticed(void **s)
{
    (void)s;
    const unsigned measured = 3, maps = 7, all = launches_of_open();
    for (unsigned i = 1; i <= all - measured; i++) {
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
        assert_int_equal(opencl->devices(ctx, &count)->does,
                         SHERD__DOES_F64 | SHERD__DOES_RESIDUES | SHERD__DOES_BYTES);
        opencl->close(ctx);
    }
}

static void a_device_without_float64_declares_residues_and_bytes(void **s)
{
    (void)s;
    uint32_t count;
    void *ctx = opened("nof64");
    const sherd__device *v = opencl->devices(ctx, &count);
    assert_int_equal(count, 1);
    assert_int_equal(v->does, SHERD__DOES_RESIDUES | SHERD__DOES_BYTES);
    assert_true(v->residue_gflops > 0 && v->byte_gops > 0);
    sherd__fragment *f = block_new();
    sherd__handle h = held(ctx, f);
    calling c;
    assert_int_equal(call_once(ctx, &c, h), SHERD_EUNSUPPORTED);
    opencl->drop(ctx, &h);
    opencl->close(ctx);
    sherd__fragment_free(f);
}

static void a_failed_launch_fails_its_call_only(void **s)
{
    (void)s;
    char faults[32];
    const unsigned all = launches_of_open();
    snprintf(faults, sizeof faults, "fail=%u", all + 1);
    void *ctx = opened(faults);
    sherd__fragment *f = block_new();
    sherd__handle h = held(ctx, f);
    calling c;
    assert_int_equal(call_once(ctx, &c, h), SHERD_EDEVICE);
    assert_false(c.call.lost);
    assert_int_equal(call_once(ctx, &c, h), SHERD_OK);
    opencl->drop(ctx, &h);
    opencl->close(ctx);
    assert_int_equal(dirty(), 0);
    sherd__fragment_free(f);
}

static void resources_that_lack_when_a_kernel_ends_are_a_failure_of_the_device(void **s)
{
    (void)s;
    char faults[32];
    snprintf(faults, sizeof faults, "short=%u", launches_of_open() + 1);
    void *ctx = opened(faults);
    sherd__fragment *f = block_new();
    sherd__handle h = held(ctx, f);
    calling c;
    assert_int_equal(call_once(ctx, &c, h), SHERD_EDEVICE);
    assert_false(c.call.lost);
    assert_int_equal(call_once(ctx, &c, h), SHERD_OK);
    opencl->drop(ctx, &h);
    opencl->close(ctx);
    sherd__fragment_free(f);
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
        reset();
        set_faults(faults);
        assert_int_equal(call_once(ctx, &c, h), SHERD_ENOMEM);
        assert_non_null(strstr(c.call.text, "CL_MEM_OBJECT_ALLOCATION_FAILURE"));
        assert_int_equal(call_once(ctx, &c, h), SHERD_OK);
        opencl->drop(ctx, &h);
        opencl->close(ctx);
        assert_int_equal(dirty(), 0);
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
    assert_int_equal(opencl->hold(ctx, 0, f, 1, &other, &d), SHERD_EDEVICE);
    opencl->drop(ctx, &h);
    opencl->close(ctx);
}

static void the_calls_of_a_device_that_is_lost_end(void **s)
{
    (void)s;
    char faults[32];
    sherd__fragment *f = block_new();
    snprintf(faults, sizeof faults, "lost=%u", launches_of_open() + 2);
    check_lost(opened(faults), f, "CL_DEVICE_NOT_AVAILABLE");
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
    sherd__backend_options o = { .all_devices = true };
    assert_int_equal(open_with(&ctx, "devices=3", o, &d), SHERD_OK);
    assert_string_equal(opencl->devices(ctx, &count)[2].core, "Stand-in GPU 2");
    assert_int_equal(count, 3);
    opencl->close(ctx);
    o = (sherd__backend_options){ .devices = { 2, 0 }, .devices_len = 2 };
    assert_int_equal(open_with(&ctx, "devices=3", o, &d), SHERD_OK);
    const sherd__device *v = opencl->devices(ctx, &count);
    assert_int_equal(count, 2);
    assert_string_equal(v[0].core, "Stand-in GPU 2");
    assert_string_equal(v[1].core, "Stand-in GPU 0");
    assert_string_equal(v[1].name, "opencl");
    opencl->close(ctx);
    assert_int_equal(open_with(&ctx, "devices=2", o, &d), SHERD_EINVAL);
    assert_string_equal(d.message, "there is no device 2: OpenCL has 2 devices");
    assert_null(ctx);
}

static void what_cannot_be_used_is_named(void **s)
{
    (void)s;
    static const struct {
        const char *faults;
        uint64_t memory;
        int err;
        const char *words;
    } cases[] = {
        { "none", 0, SHERD_EUNSUPPORTED, "OpenCL is installed, but has no device" },
        { "old", 0, SHERD_EUNSUPPORTED, "Stand-in GPU 0 cannot be used: it has no OpenCL 1.2" },
        { "busy", 0, SHERD_EUNSUPPORTED, "it is not available: others may use it alone" },
        { "nobuild", 0, SHERD_EDEVICE, "CL_BUILD_PROGRAM_FAILURE: cannot write to the cache" },
        { "memory=1000000", 2000000, SHERD_EINVAL,
          "2000000 bytes of Stand-in GPU 0, which has 1000000" },
        { "full=1", 0, SHERD_ENOMEM, "cannot allocate memory of the device" },
        { "largest=4096", 0, SHERD_ENOMEM, "the device has at most 4096 in one piece" },
        { "lost=1", 0, SHERD_EDEVICE, "CL_DEVICE_NOT_AVAILABLE" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *ctx;
        sherd_diag d;
        const sherd__backend_options o = { .device_memory = cases[i].memory };
        assert_int_equal(open_with(&ctx, cases[i].faults, o, &d), cases[i].err);
        if (!strstr(d.message, cases[i].words)) fail_msg("%s", d.message);
        assert_null(ctx);
    }
}

static void devices_are_listed_with_what_they_are(void **s)
{
    (void)s;
    sherd__device_info list[4];
    uint32_t count;
    sherd_diag d = { .code = 0 };
    const sherd__backend_options o = { .library = library };
    set_faults("devices=2,cpu,memory=4096");
    assert_int_equal(opencl->list(&o, list, 4, &count, &d), SHERD_OK);
    assert_int_equal(count, 2);
    assert_string_equal(list[1].model, "Stand-in GPU 1");
    assert_string_equal(list[1].driver, "Stand-in 1.0");
    assert_int_equal(list[1].memory, 4096);
    assert_true(list[1].processor);
    assert_string_equal(list[1].unusable, "");
    set_faults("none");
    assert_int_equal(opencl->list(&o, list, 4, &count, &d), SHERD_OK);
    assert_int_equal(count, 0);
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
            opencl->close(ctx);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_overwritten_before_it_is_freed),
        cmocka_unit_test(blocks_beyond_the_budget_find_no_memory_until_others_are_dropped),
        cmocka_unit_test(every_spoiled_launch_of_the_selftest_is_noticed),
        cmocka_unit_test(a_device_without_float64_declares_residues_and_bytes),
        cmocka_unit_test(a_failed_launch_fails_its_call_only),
        cmocka_unit_test(resources_that_lack_when_a_kernel_ends_are_a_failure_of_the_device),
        cmocka_unit_test(a_call_without_memory_of_the_device_fails_and_succeeds_later),
        cmocka_unit_test(the_calls_of_a_device_that_is_lost_end),
        cmocka_unit_test(devices_are_chosen_by_their_numbers),
        cmocka_unit_test(what_cannot_be_used_is_named),
        cmocka_unit_test(devices_are_listed_with_what_they_are),
        cmocka_unit_test(every_failed_allocation_of_the_host_is_survived),
        /* last: its threads never end */
        cmocka_unit_test(a_kernel_that_hangs_loses_its_device_after_the_timeout),
    };
    return cmocka_run_group_tests_name("node/accelerator", tests, set_up, tear_down);
}
