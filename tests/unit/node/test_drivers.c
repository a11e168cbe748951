/*
 * What differs between drivers of devices, over stand-ins for these: what cannot be used, how
 * devices are described, and which errors mean that a device is lost.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cublas_folder.h"
#include "tests/unit/node/standins.h"

/* Returns the result of a task with a block that is held for it. */
static int compute(void *ctx)
{
    sherd__fragment *f = block_new();
    const sherd__handle h = held(ctx, f);
    calling c;
    const int err = call_once(ctx, &c, h);
    backend->drop(ctx, &h);
    sherd__fragment_free(f);
    return err;
}

static void a_device_without_float64_declares_residues_and_bytes(void **s)
{
    (void)s;
    uint32_t count;
    void *ctx = opened("nof64");
    const sherd__device *v = backend->devices(ctx, &count);
    assert_int_equal(count, 1);
    assert_int_equal(v->does, SHERD__DOES_RESIDUES | SHERD__DOES_BYTES);
    assert_true(v->residue_gflops > 0 && v->byte_gops > 0);
    assert_int_equal(compute(ctx), SHERD_EUNSUPPORTED);
    backend->close(ctx);
}

/* Copies of 1 MiB take 10 ms and more. */
static void a_device_behind_a_slow_link_declares_rates_with_copies_and_without(void **s)
{
    (void)s;
    uint32_t count;
    void *ctx = opened("slowcopy=10000");
    const sherd__device *v = backend->devices(ctx, &count);
    const double link = 1024 * 1024 / 10e-3, bytes = 3 * 8.0 * 256 * 256;
    assert_true(v->copy_rate > 0 && v->copy_rate <= link);
    /* 256 x 256 by 256 x 256 */
    const double work = 2e-9 * 256 * 256 * 256;
    assert_true(v->gflops > 0 && work / v->gflops >= bytes / link);
    assert_true(v->resident_gflops > v->gflops && v->resident_gflops < 1e6);
    assert_true(work / v->gflops - work / v->resident_gflops > bytes / link / 2);
    assert_true(v->resident_residue_gflops > v->residue_gflops);
    assert_true(v->resident_byte_gops > v->byte_gops);
    backend->close(ctx);
}

static void resources_that_lack_when_a_kernel_ends_are_a_failure_of_the_device(void **s)
{
    (void)s;
    fails_once("short");
}

static void what_cannot_be_used_is_named(void **s)
{
    (void)s;
    static const struct {
        int over;
        const char *faults;
        uint64_t memory;
        int err;
        const char *words;
    } cases[] = {
        { STANDIN_OPENCL, "none", 0, SHERD_EUNSUPPORTED, "OpenCL is installed, but has no device" },
        { STANDIN_OPENCL, "list=1", 0, SHERD_EUNSUPPORTED,
          "OpenCL is installed, but has no device" },
        { STANDIN_OPENCL, "list=6", 0, SHERD_EDEVICE,
          "the OpenCL platform \"Stand-in\" cannot list its devices: CL_OUT_OF_HOST_MEMORY (-6)" },
        { STANDIN_OPENCL, "old", 0, SHERD_EUNSUPPORTED,
          "Stand-in GPU 0 cannot be used: it has no OpenCL 1.2" },
        { STANDIN_OPENCL, "busy", 0, SHERD_EUNSUPPORTED,
          "it is not available: others may use it alone" },
        { STANDIN_OPENCL, "nobuild", 0, SHERD_EDEVICE,
          "CL_BUILD_PROGRAM_FAILURE: cannot write to the cache" },
        { STANDIN_OPENCL, "memory=1000000", 2000000, SHERD_EINVAL,
          "2000000 bytes of Stand-in GPU 0, which has 1000000" },
        { STANDIN_OPENCL, "", 1572863, SHERD_EINVAL,
          "1572863 bytes of Stand-in GPU 0, and a node needs 1572864" },
        { STANDIN_OPENCL, "nof64", 589823, SHERD_EINVAL, "and a node needs 589824" },
        { STANDIN_OPENCL, "full=1", 0, SHERD_ENOMEM, "cannot allocate memory of the device" },
        { STANDIN_OPENCL, "largest=4096", 0, SHERD_ENOMEM,
          "the device has at most 4096 in one piece" },
        { STANDIN_OPENCL, "lost=1", 0, SHERD_EDEVICE, "CL_DEVICE_NOT_AVAILABLE" },
        { STANDIN_CUDA, "none", 0, SHERD_EUNSUPPORTED, "CUDA is installed, but has no device" },
        { STANDIN_CUDA, "driver=10020", 0, SHERD_EUNSUPPORTED,
          "the driver supports CUDA 10.2: CUDA 11.0 is required" },
        { STANDIN_CUDA, "old", 0, SHERD_EUNSUPPORTED,
          "Stand-in GPU 0 cannot be used: its compute capability is 7.0, and 7.5 is required" },
        { STANDIN_CUDA, "prohibited", 0, SHERD_EUNSUPPORTED, "its compute mode is prohibited" },
        { STANDIN_CUDA, "exclusive", 0, SHERD_EUNSUPPORTED,
          "another process has it, and its compute mode is exclusive" },
        { STANDIN_CUDA, "init=803", 0, SHERD_EDEVICE,
          "CUDA cannot be used: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)" },
        { STANDIN_CUDA, "init=999", 0, SHERD_EDEVICE, "CUDA_ERROR_UNKNOWN (999)" },
        { STANDIN_CUDA, "nobuild", 0, SHERD_EDEVICE,
          "the driver cannot compile the kernels: CUDA_ERROR_INVALID_PTX: ptxas fatal: no memory" },
        { STANDIN_CUDA, "memory=1000000", 2000000, SHERD_EINVAL,
          "2000000 bytes of Stand-in GPU 0, which has 1000000" },
        { STANDIN_CUDA, "memory=3000000,taken=2000000", 2000000, SHERD_ENOMEM,
          "2000000 bytes of Stand-in GPU 0, which has 1000000 that others do not use" },
        { STANDIN_CUDA, "memory=90000000,taken=89000000", 0, SHERD_ENOMEM,
          "Stand-in GPU 0 has 1000000 of its 90000000 bytes free: a node may use 800000 of them, "
          "and needs 1572864" },
        { STANDIN_CUDA, "full=1", 0, SHERD_ENOMEM, "cannot allocate memory of the device" },
        { STANDIN_CUDA, "lost=1", 0, SHERD_EDEVICE, "CUDA_ERROR_LAUNCH_FAILED (719)" },
        { STANDIN_CUDA, "lost=1,code=214", 0, SHERD_EDEVICE, "CUDA_ERROR_ECC_UNCORRECTABLE (214)" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *ctx;
        sherd_diag d;
        const sherd__backend_options o = { .device_memory = cases[i].memory };
        if (&standins[cases[i].over] != on) continue;
        assert_int_equal(open_with(&ctx, cases[i].faults, o, &d), cases[i].err);
        if (!strstr(d.message, cases[i].words)) fail_msg("%s", d.message);
        /* A hint of its own: the command's is about the host's memory. */
        if (d.code == SHERD_ENOMEM && !cases[i].memory && !strstr(d.hint, "--device-memory"))
            fail_msg("%s: %s", d.message, d.hint);
        assert_null(ctx);
    }
}

static void a_device_opens_with_the_memory_that_a_node_needs(void **s)
{
    (void)s;
    void *ctx;
    sherd_diag d;
    uint32_t count;
    static sherd__device_rates rates[SHERD__DEVICES_MAX];
    const uint64_t needed = 1572864;
    const sherd__backend_options o = { .device_memory = needed, .rates = rates };
    assert_int_equal(open_with(&ctx, "", o, &d), SHERD_OK);
    assert_int_equal(backend->devices(ctx, &count)->memory, needed);
    backend->close(ctx);
    if (on != &standins[STANDIN_OPENCL]) return;
    const sherd__backend_options less = { .device_memory = 589824, .rates = rates };
    assert_int_equal(open_with(&ctx, "nof64", less, &d), SHERD_OK);
    backend->close(ctx);
}

static void a_slice_of_a_gpu_is_a_device_with_memory_of_its_own(void **s)
{
    (void)s;
    uint32_t count;
    sherd__device_info info;
    sherd_diag d = { .code = 0 };
    const sherd__backend_options o = { .library = standin_path(on->file) };
    set_faults("mig,memory=50000000");
    assert_int_equal(backend->list(&o, &info, 1, &count, &d), SHERD_OK);
    assert_string_equal(info.model, "Stand-in GPU MIG 1g.10gb 0");
    assert_int_equal(info.memory, 50000000);
    assert_string_equal(info.unusable, "");
    void *ctx = opened("mig,memory=50000000");
    assert_int_equal(backend->devices(ctx, &count)->memory, 40000000);
    assert_int_equal(compute(ctx), SHERD_OK);
    backend->close(ctx);
}

/* Another file than the driver's, which nothing else here loads. */
static void a_library_of_products_is_loaded_after_a_device_was_found(void **s)
{
    (void)s;
    sherd__device_info info;
    uint32_t count;
    char blas[4200];
    const sherd__backend_options o = { .library = standin_path(on->file) };
    const char *const faults[] = { "none", "init=999", "" };
    const char *folder = cublas_folder("cublas-lacking", "preload_cuda_lacking", 12);
    cublas_use(folder);
    snprintf(blas, sizeof blas, "%s/libcublas.so.12", folder);
    for (size_t i = 0; i < 3; i++) {
        set_faults(faults[i]);
        int err = backend->list(&o, &info, 1, &count, NULL);
        assert_int_equal(err, i == 1 ? SHERD_EDEVICE : SHERD_OK);
        void *loaded = dlopen(blas, RTLD_NOLOAD | RTLD_NOW);
        assert_int_equal(loaded != NULL, i == 2);
        if (loaded) dlclose(loaded);
    }
    cublas_use("");
}

/* What others use does not count. */
static void a_cuda_device_has_the_memory_that_is_free(void **s)
{
    (void)s;
    uint32_t count;
    void *ctx = opened("memory=30000000,taken=10000000");
    assert_int_equal(backend->devices(ctx, &count)->memory, 16000000);
    backend->close(ctx);
}

/* Errors of CUDA after which its context answers nothing else, and those that end one call. */
static void errors_of_cuda_lose_the_device_or_end_a_call(void **s)
{
    (void)s;
    static const struct {
        unsigned code;
        int err;
        bool lost;
    } cases[] = {
        { 700, SHERD_EDEVICE, true },  { 719, SHERD_EDEVICE, true }, { 214, SHERD_EDEVICE, true },
        { 46, SHERD_EDEVICE, true },   { 702, SHERD_EDEVICE, true }, { 716, SHERD_EDEVICE, true },
        { 4, SHERD_EDEVICE, true },    { 999, SHERD_EDEVICE, true }, { 2, SHERD_ENOMEM, false },
        { 701, SHERD_EDEVICE, false }, { 1, SHERD_EDEVICE, false },
    };
    sherd__fragment *f = block_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char faults[32];
        calling c;
        snprintf(faults, sizeof faults, "lost=%u,code=%u", launches_of_open() + 1, cases[i].code);
        void *ctx = opened(faults);
        sherd__handle h = held(ctx, f);
        assert_int_equal(call_once(ctx, &c, h), cases[i].err);
        assert_int_equal(c.call.lost, cases[i].lost);
        backend->drop(ctx, &h);
        backend->close(ctx);
    }
    sherd__fragment_free(f);
}

static void devices_are_listed_with_what_they_are(void **s)
{
    (void)s;
    sherd__device_info list[4];
    uint32_t count;
    sherd_diag d = { .code = 0 };
    const sherd__backend_options o = { .library = standin_path(on->file) };
    const bool cuda = on == &standins[STANDIN_CUDA];
    set_faults("devices=2,cpu,memory=4096");
    assert_int_equal(backend->list(&o, list, 4, &count, &d), SHERD_OK);
    assert_int_equal(count, 2);
    assert_string_equal(list[1].model, "Stand-in GPU 1");
    assert_string_equal(list[1].driver,
                        cuda ? "CUDA 12.4, compute capability 9.0, no cuBLAS" : "Stand-in 1.0");
    assert_int_equal(list[1].memory, 4096);
    assert_int_equal(list[1].processor, !cuda);
    assert_string_equal(list[1].unusable, "");
    set_faults("none");
    assert_int_equal(backend->list(&o, list, 4, &count, &d), SHERD_OK);
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH(a_device_behind_a_slow_link_declares_rates_with_copies_and_without),
        OVER_OPENCL(a_device_without_float64_declares_residues_and_bytes),
        OVER_OPENCL(resources_that_lack_when_a_kernel_ends_are_a_failure_of_the_device),
        OVER_BOTH(what_cannot_be_used_is_named),
        OVER_BOTH(a_device_opens_with_the_memory_that_a_node_needs),
        OVER_CUDA(a_slice_of_a_gpu_is_a_device_with_memory_of_its_own),
        OVER_CUDA(a_library_of_products_is_loaded_after_a_device_was_found),
        OVER_BOTH(devices_are_listed_with_what_they_are),
        OVER_CUDA(a_cuda_device_has_the_memory_that_is_free),
        OVER_CUDA(errors_of_cuda_lose_the_device_or_end_a_call),
    };
    return cmocka_run_group_tests_name("node/drivers", tests, standins_open, standins_close);
}
