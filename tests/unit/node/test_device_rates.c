/*
 * What is measured of a device for people, over the stand-ins: the rows are there, the lanes' times
 * add up, and a device that fails meanwhile is not opened.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/backends/accelerator_internal.h"
#include "tests/support/cublas_folder.h"
#include "tests/unit/node/standins.h"

#define SIZE 256u /* of products, with the quick test */

static sherd__device_rates rates;

static int open_measured(void **ctx, const char *faults, sherd_diag *d)
{
    rates.len = 0;
    return open_with(ctx, faults, (sherd__backend_options){ .tested = true, .rates = &rates }, d);
}

static const sherd__device_rate *found(const char *what, const char *of)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", what, *of ? "-" : "", of);
    for (uint32_t i = 0; i < rates.len; i++)
        if (strcmp(rates.list[i].name, name) == 0) return &rates.list[i];
    return NULL;
}

static double value(const char *what, const char *of)
{
    const sherd__device_rate *r = found(what, of);
    if (!r) fail_msg("%s-%s is not measured", what, of);
    return r ? r->value : 0;
}

static void times_of_lanes_add_up(const char *kind)
{
    const double computing = value("computing", kind), copying = value("copying", kind);
    const double busy = value("busy", kind), idle = value("idle", kind);
    assert_true(computing > 0 && copying > 0 && idle > -1e-9);
    assert_true(computing + copying + idle < 1 + 1e-9);
    assert_true(busy <= 1 + 1e-9);
    assert_true(busy >= computing - 1e-9); /* no lane computes while the device is idle */
}

static void a_device_is_measured(void **s)
{
    (void)s;
    static const char *const kinds[] = { "float64", "residues", "six-bytes" };
    static const char *const copies[] = { "copy-in", "copy-out", "upload", "download" };
    void *ctx;
    sherd_diag d;
    assert_int_equal(open_measured(&ctx, "slowkernels", &d), SHERD_OK);
    for (size_t i = 0; i < 4; i++) assert_true(value(copies[i], "") > 0);
    for (size_t i = 0; i < 3; i++) {
        assert_true(value(kinds[i], "") > 0);
        assert_int_equal(found(kinds[i], "")->n, SIZE);
        assert_true(value("answers", kinds[i]) > 0);
        times_of_lanes_add_up(kinds[i]);
    }
    uint32_t count;
    const sherd__device *v = backend->devices(ctx, &count);
    assert_true(fabs(1e9 * v->resident_gflops - value("float64", "")) < 1);
    assert_true(fabs(1e9 * v->resident_byte_gops - 6 * value("six-bytes", "")) < 1); /* primes */
    backend->close(ctx);
    assert_int_equal(on->dirty(), 0);
}

/* A library of products is measured as it is, where there is one. */
static void a_library_is_measured(void **s)
{
    a_device_is_measured(s);
    assert_true(value("library-dgemm", "") > 0 && value("library-int8", "") > 0);
}

static void a_device_without_a_library_is_measured(void **s)
{
    a_device_is_measured(s);
    assert_null(found("library-dgemm", ""));
}

static void a_device_that_fails_while_it_is_measured_is_not_opened(void **s)
{
    (void)s;
    static const unsigned after[] = { 1, 10 }; /* while it is alone, and while lanes work */
    const unsigned before = launches_of_open();
    for (size_t i = 0; i < 2; i++) {
        char faults[32];
        void *ctx;
        sherd_diag d;
        snprintf(faults, sizeof faults, "fail=%u", before + after[i]);
        assert_int_equal(open_measured(&ctx, faults, &d), SHERD_EDEVICE);
        assert_null(ctx);
        assert_true(d.message[0] != '\0');
    }
}

static uint32_t lanes_that_compute(accelerator *a)
{
    pthread_mutex_lock(&a->lock);
    const uint32_t n = a->devices[0].computing;
    pthread_mutex_unlock(&a->lock);
    return n;
}

/* The copies of a call are those of its block, of the word for bad values, and of the answer. */
static void a_lane_that_copies_an_answer_does_not_compute(void **s)
{
    (void)s;
    char faults[32];
    calling c;
    sherd_diag d = { .code = 0 };
    backend->close(opened(""));
    const unsigned answer = on->copies() + 3;
    snprintf(faults, sizeof faults, "holdcopy=%u", answer);
    void *ctx = opened(faults);
    sherd__fragment *f = block_new();
    sherd__handle h = held(ctx, f);
    assert_int_equal(begin(ctx, &c, h, &d), SHERD_OK);
    while (on->copies() < answer) usleep(1000);
    const uint32_t computing = lanes_that_compute(ctx);
    on->pass();
    settle(ctx);
    assert_int_equal(c.call.err, SHERD_OK);
    assert_int_equal(computing, 0);
    assert_true(((accelerator *)ctx)->devices[0].busy_s > 0);
    backend->drop(ctx, &h);
    backend->close(ctx);
    sherd__fragment_free(f);
}

static int choose_cublas(void **s)
{
    cublas_use(cublas_folder("cublas", "preload_cuda", 12));
    *s = (void *)(uintptr_t)STANDIN_CUDA;
    return standin_choose(s);
}

static int choose_opencl(void **s)
{
    *s = (void *)(uintptr_t)STANDIN_OPENCL;
    return standin_choose(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_device_without_a_library_is_measured, choose_opencl),
        cmocka_unit_test_setup(a_device_that_fails_while_it_is_measured_is_not_opened,
                               choose_opencl),
        cmocka_unit_test_setup(a_lane_that_copies_an_answer_does_not_compute, choose_opencl),
        cmocka_unit_test_setup(a_library_is_measured, choose_cublas),
    };
    return cmocka_run_group_tests_name("node/device_rates", tests, standins_open, standins_close);
}
