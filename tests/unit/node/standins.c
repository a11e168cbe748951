/* See standins.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/executor.h"
#include "node/check.h"
#include "sherd/mat.h"
#include "tests/support/cublas_folder.h"
#include "tests/unit/node/standins.h"

standin standins[STANDINS] = {
    [STANDIN_OPENCL] = { .backend = &sherd__backend_opencl,
                         .file = "preload_opencl.so",
                         .plain = "preload_opencl_plain.so",
                         .variable = "SHERD_TEST_OPENCL",
                         .interface = "OpenCL",
                         .full = "CL_MEM_OBJECT_ALLOCATION_FAILURE",
                         .gone = "CL_DEVICE_NOT_AVAILABLE" },
    [STANDIN_CUDA] = { .backend = &sherd__backend_cuda,
                       .file = "preload_cuda.so",
                       .plain = "preload_cuda_plain.so",
                       .variable = "SHERD_TEST_CUDA",
                       .interface = "CUDA",
                       .full = "CUDA_ERROR_OUT_OF_MEMORY (2)",
                       .gone = "CUDA_ERROR_LAUNCH_FAILED (719)" },
};
standin *on;
const sherd__backend *backend;
sherd__executor *executor;

const char *standin_path(const char *file)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/tests/system/node/%s", getenv("BUILD"), file);
    return path;
}

void standin_function(void *loaded, const char *name, void *out)
{
    void *symbol = dlsym(loaded, name);
    assert_non_null(symbol);
    memcpy(out, &symbol, sizeof symbol);
}

int standins_open(void **s)
{
    (void)s;
    cublas_use("");
    for (size_t i = 0; i < STANDINS; i++) {
        void *loaded = dlopen(standin_path(standins[i].file), RTLD_NOW | RTLD_LOCAL);
        assert_non_null(loaded);
        standin_function(loaded, "standin_dirty", &standins[i].dirty);
        standin_function(loaded, "standin_launches", &standins[i].launches);
        standin_function(loaded, "standin_products", &standins[i].products);
        standin_function(loaded, "standin_allocations", &standins[i].allocations);
        standin_function(loaded, "standin_copies", &standins[i].copies);
        standin_function(loaded, "standin_held", &standins[i].held);
        standin_function(loaded, "standin_pass", &standins[i].pass);
        standin_function(loaded, "standin_reset", &standins[i].reset);
    }
    return sherd__executor_new_inline(&executor);
}

int standins_close(void **s)
{
    (void)s;
    sherd__executor_free(executor);
    return 0;
}

int standin_choose(void **s)
{
    on = &standins[(uintptr_t)*s];
    backend = on->backend;
    return 0;
}

/* In place: setenv would keep every value. */
void set_faults(const char *faults)
{
    static char variables[STANDINS][128];
    char *variable = variables[on - standins];
    snprintf(variable, sizeof variables[0], "%s=%s", on->variable, faults);
    assert_int_equal(putenv(variable), 0);
}

int open_with(void **ctx, const char *faults, sherd__backend_options o, sherd_diag *d)
{
    *d = (sherd_diag){ .code = 0 };
    on->reset();
    set_faults(faults);
    if (!o.library) o.library = standin_path(on->file);
    o.quick = true;
    return backend->open(ctx, &o, d);
}

void *opened(const char *faults)
{
    void *ctx;
    sherd_diag d;
    int err = open_with(&ctx, faults, (sherd__backend_options){ .timeout_s = 60 }, &d);
    if (err) fail_msg("%s: %s", faults, d.message);
    return ctx;
}

unsigned launches_of_open(void)
{
    backend->close(opened(""));
    return on->launches();
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void keep(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx, (void)bytes, (void)len;
}

static double numbers[N * N];

sherd__fragment *block_over(uint8_t dtype, uint8_t primes, uint64_t rows, uint64_t cols,
                            uint8_t *bytes)
{
    const sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                                     .dtype = dtype,
                                     .primes = primes,
                                     .rows = rows,
                                     .cols = cols,
                                     .len = rows * cols * sherd__wire_size(dtype) };
    sherd__fragment *f;
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, keep, NULL), SHERD_OK);
    return f;
}

sherd__fragment *block_new(void)
{
    for (size_t k = 0; k < N * N; k++) numbers[k] = (double)(k % 101) - 50;
    return block_over(SHERD_F64, 0, N, N, (uint8_t *)numbers);
}

static void on_done(sherd__call *c)
{
    ((calling *)(void *)c)->dones++;
}

int begin(void *ctx, calling *c, sherd__handle h, sherd_diag *d)
{
    *c = (calling){ .task = { .op = SHERD__OP_MULTIPLY,
                              .left = 1,
                              .right = 1,
                              .result = { .origin = SHERD__RESULT,
                                          .dtype = SHERD_F64,
                                          .rows = N,
                                          .cols = N,
                                          .len = LEN } } };
    return begin_task(ctx, c, h, h, (uint8_t *)c->out, d);
}

int begin_task(void *ctx, calling *c, sherd__handle left, sherd__handle right, uint8_t *out,
               sherd_diag *d)
{
    c->call = (sherd__call){ .task = &c->task,
                             .left = left,
                             .right = right,
                             .owner = 1,
                             .in_parts = c->call.in_parts,
                             .out = out,
                             .executor = executor,
                             .done = on_done };
    return backend->submit(ctx, &c->call, d);
}

void settle(void *ctx)
{
    while (sherd__executor_pending(executor)) {
        backend->wait(ctx, NULL);
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

int call_once(void *ctx, calling *c, sherd__handle h)
{
    sherd_diag d = { .code = 0 };
    assert_int_equal(begin(ctx, c, h, &d), SHERD_OK);
    settle(ctx);
    assert_int_equal(c->dones, 1);
    if (!c->call.err) assert_product(c);
    return c->call.err;
}

sherd__handle held(void *ctx, const sherd__fragment *f)
{
    sherd__handle h;
    sherd_diag d = { .code = 0 };
    assert_int_equal(backend->hold(ctx, 0, f, 1, &h, &d), SHERD_OK);
    return h;
}

void fails_once(const char *fault)
{
    char faults[32];
    snprintf(faults, sizeof faults, "%s=%u", fault, launches_of_open() + 1);
    void *ctx = opened(faults);
    sherd__fragment *f = block_new();
    sherd__handle h = held(ctx, f);
    calling c;
    assert_int_equal(call_once(ctx, &c, h), SHERD_EDEVICE);
    assert_false(c.call.lost);
    assert_int_equal(call_once(ctx, &c, h), SHERD_OK);
    backend->drop(ctx, &h);
    backend->close(ctx);
    sherd__fragment_free(f);
}
