/*
 * Products by a library of the driver's, over the stand-in for cuBLAS: whether it is used, with how
 * much memory, and what happens when it fails. tests/contract/node compares results.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rand.h"
#include "matrix/residue_bytes.h"
#include "node/check.h"
#include "sherd/mat.h"
#include "tests/support/cublas_folder.h"
#include "tests/support/under_valgrind.h"
#include "tests/unit/node/standins.h"

static int choose_cublas(void **s)
{
    cublas_use(cublas_folder("cublas", "preload_cuda", 12));
    *s = (void *)(uintptr_t)STANDIN_CUDA;
    return standin_choose(s);
}

static const sherd__device *device(void *ctx)
{
    uint32_t count;
    return backend->devices(ctx, &count);
}

static void says(void *ctx, const char *words, bool fails)
{
    const sherd__device *v = device(ctx);
    if (!strstr(v->library, words) || v->library_fails != fails)
        fail_msg("%s: %s (%d)", words, v->library, v->library_fails);
}

/* Makes calls of the block's square; each must be right. Returns how many the library computed. */
static unsigned calls_by_library(void *ctx, unsigned calls)
{
    const unsigned before = on->products();
    sherd__fragment *f = block_new();
    sherd__handle h = held(ctx, f);
    calling c;
    for (unsigned i = 0; i < calls; i++) assert_int_equal(call_once(ctx, &c, h), SHERD_OK);
    backend->drop(ctx, &h);
    settle(ctx);
    sherd__fragment_free(f);
    return on->products() - before;
}

#define ALL "cuBLAS 12.4 multiplies: in float64 all, modulo primes all, bytes all"
#define NONE "cuBLAS 12.4 multiplies: in float64 none, modulo primes none, bytes none"

static void a_library_that_is_faster_multiplies(void **s)
{
    (void)s;
    void *ctx = opened("slowkernels");
    says(ctx, ALL, false);
    assert_int_equal(calls_by_library(ctx, 3), 3);
    backend->close(ctx);
    assert_int_equal(on->dirty(), 0); /* its workspace and what was converted, too */
}

static void a_library_that_is_slower_does_not_multiply(void **s)
{
    (void)s;
    void *ctx = opened("slowblas=40");
    says(ctx, NONE, false);
    assert_int_equal(calls_by_library(ctx, 1), 0);
    backend->close(ctx);
}

/* Measured, so it may be wrong while the machine does something else. */
static void a_library_multiplies_from_the_size_on_from_which_it_is_faster(void **s)
{
    (void)s;
    if (under_valgrind()) skip(); /* its rates are not those of the processor */
    bool good = false;
    for (int i = 0; i < 20 && !good; i++) {
        void *ctx = opened("slowkernels=100,slowblas=10");
        good = strstr(device(ctx)->library, "in float64 from n = 128 on") != NULL;
        if (good) assert_int_equal(calls_by_library(ctx, 1), 0);
        backend->close(ctx);
    }
    assert_true(good);
}

static unsigned products_of_open(bool tested)
{
    void *ctx;
    sherd_diag d;
    assert_int_equal(open_with(&ctx, "slowkernels", (sherd__backend_options){ .tested = tested },
                               &d),
                     0);
    says(ctx, ALL, false);
    backend->close(ctx);
    return on->products();
}

static void spoiled_products_of_the_selftest_are_noticed(void **s)
{
    (void)s;
    const unsigned tests = products_of_open(false) - products_of_open(true);
    assert_in_range(tests, 12, 40);
    const unsigned step = under_valgrind() ? 13 : 3;
    for (unsigned i = tests; i > 0; i -= i > step ? step : i) { /* of all kinds */
        char faults[64];
        snprintf(faults, sizeof faults, "slowkernels,blaswrong=%u", i);
        void *ctx = opened(faults);
        says(ctx, "cuBLAS 12.4 is not used: Stand-in GPU 0 computes wrongly: a product", true);
        assert_int_equal(calls_by_library(ctx, 1), 0);
        backend->close(ctx);
        assert_int_equal(on->dirty(), 0);
    }
}

static void a_library_that_cannot_be_used_leaves_the_kernels(void **s)
{
    (void)s;
    static const struct {
        const char *faults, *folder, *library, *words;
        bool fails;
    } cases[] = {
        { "nocreate", "cublas", "preload_cuda",
          "cuBLAS 12.4 is not used: cuBLAS cannot be used: CUBLAS_STATUS_NOT_INITIALIZED (1)",
          true },
        { "blasfail=1", "cublas", "preload_cuda",
          "is not used: a product of cuBLAS failed: CUBLAS_STATUS_EXECUTION_FAILED (13)", true },
        { "blasarch", "cublas", "preload_cuda", "in float64 none, modulo primes none, bytes none",
          false },
        { "memory=60000000", "cublas", "preload_cuda", "are too few for a library", false },
        { "driver=11080", "cublas", "preload_cuda", "SHERD_CUDA_PATH has no libcublas.so.11, nor",
          true },
        { "", "cublas-lacking", "preload_cuda_lacking", "cuBLAS 12.4 has no function cublasGemmEx",
          false },
        { "", "", NULL, "cuBLAS is not used: SHERD_CUDA_PATH is empty", false },
        { "", "cublas-none", NULL,
          "SHERD_CUDA_PATH has no libcublas.so.12 or an older one, nor has its lib64 or lib: "
          "cublas-none",
          true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cublas_use(cases[i].library ? cublas_folder(cases[i].folder, cases[i].library, 12)
                                    : cases[i].folder);
        void *ctx = opened(cases[i].faults);
        says(ctx, cases[i].words, cases[i].fails);
        assert_int_equal(calls_by_library(ctx, 1), 0);
        backend->close(ctx);
        assert_int_equal(on->dirty(), 0);
    }
}

/* There is one for each lane. */
static void a_workspace_for_which_there_is_no_memory_leaves_the_kernels(void **s)
{
    (void)s;
    unsigned found = 0;
    int err = SHERD_ENOMEM;
    for (unsigned n = 1; n < 100 && (err || found < 2); n++) {
        char faults[64];
        void *ctx;
        sherd_diag d;
        snprintf(faults, sizeof faults, "slowkernels,full=%u", n);
        err = open_with(&ctx, faults, (sherd__backend_options){ .tested = true }, &d);
        if (err) continue;
        if (!device(ctx)->library_fails) fail_msg("%u: %s", n, device(ctx)->library);
        says(ctx, "cannot allocate memory of the device: CUDA_ERROR_OUT_OF_MEMORY (2)", true);
        assert_int_equal(calls_by_library(ctx, 1), 0);
        backend->close(ctx);
        assert_int_equal(on->dirty(), 0);
        found++;
    }
    assert_int_equal(found, 2);
}

static void kinds_that_a_library_does_not_compute_are_left_to_kernels(void **s)
{
    (void)s;
    void *ctx = opened("slowkernels,noint8");
    says(ctx, "in float64 all, modulo primes all, bytes none", false);
    says(ctx, ": a product of cuBLAS failed", false);
    assert_int_equal(calls_by_library(ctx, 1), 1);
    backend->close(ctx);
}

/* Opens with a fault of the first product after that. */
static void *opened_before(const char *fault, double timeout_s)
{
    char faults[64];
    void *ctx;
    sherd_diag d;
    snprintf(faults, sizeof faults, "slowkernels,%s=%u", fault, products_of_open(false) + 1);
    assert_int_equal(open_with(&ctx, faults, (sherd__backend_options){ .timeout_s = timeout_s },
                               &d),
                     0);
    says(ctx, ALL, false);
    return ctx;
}

static void a_product_that_fails_fails_its_call_only(void **s)
{
    (void)s;
    void *ctx = opened_before("blasfail", 60);
    sherd__fragment *f = block_new();
    sherd__handle h = held(ctx, f);
    calling c;
    assert_int_equal(call_once(ctx, &c, h), SHERD_EDEVICE);
    assert_false(c.call.lost);
    assert_non_null(strstr(c.call.text, "CUBLAS_STATUS_EXECUTION_FAILED (13)"));
    assert_int_equal(call_once(ctx, &c, h), SHERD_OK);
    backend->drop(ctx, &h);
    backend->close(ctx);
    sherd__fragment_free(f);
}

static void a_product_for_which_there_is_no_memory_is_computed_by_kernels(void **s)
{
    (void)s;
    void *ctx = opened_before("blasfull", 60);
    assert_int_equal(calls_by_library(ctx, 2), 2); /* one of which found none */
    backend->close(ctx);
}

/* The driver says whether a product that failed has lost the device, or the watchdog. */
static void a_product_loses_its_device(const char *fault, double timeout_s, const char *why)
{
    void *ctx = opened_before(fault, timeout_s);
    sherd__fragment *f = block_new();
    sherd__handle h = held(ctx, f);
    calling c;
    assert_int_equal(call_once(ctx, &c, h), SHERD_EDEVICE);
    assert_true(c.call.lost);
    if (!strstr(c.call.text, why)) fail_msg("%s", c.call.text);
    backend->drop(ctx, &h);
    backend->close(ctx);
    sherd__fragment_free(f);
}

static void a_product_that_loses_the_device_ends_its_calls(void **s)
{
    (void)s;
    a_product_loses_its_device("blaslost", 60, "CUDA_ERROR_LAUNCH_FAILED (719)");
}

static void a_product_that_hangs_loses_the_device_after_the_timeout(void **s)
{
    (void)s;
    a_product_loses_its_device("blashang", 0.3, "does not respond");
}

static void a_device_that_is_lost_by_the_selftest_is_not_opened(void **s)
{
    (void)s;
    void *ctx;
    sherd_diag d;
    assert_int_equal(open_with(&ctx, "blaslost=1", (sherd__backend_options){ .threads = 0 }, &d),
                     SHERD_EDEVICE);
    assert_non_null(strstr(d.message, "CUDA_ERROR_LAUNCH_FAILED (719)"));
    assert_null(ctx);
}

/* The stand-in then has wrong bits unless emulation is excluded. */
static void the_environment_cannot_make_it_emulate_float64(void **s)
{
    (void)s;
    setenv("CUBLAS_EMULATE_DOUBLE_PRECISION", "1", 1);
    setenv("CUBLAS_EMULATION_STRATEGY", "eager", 1);
    void *ctx = opened("slowkernels");
    says(ctx, ALL, false);
    assert_int_equal(calls_by_library(ctx, 1), 1);
    backend->close(ctx);
    unsetenv("CUBLAS_EMULATE_DOUBLE_PRECISION");
    unsetenv("CUBLAS_EMULATION_STRATEGY");
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { SIDE = 520, SIDES = SIDE * SIDE, PRIME = 8388593, BYTE_PRIME = 251 };

/* A product of SIDE x SIDE by SIDE x SIDE. */
typedef struct product {
    uint8_t left, right, result; /* dtypes */
    uint32_t prime;
    uint64_t room; /* bytes in which 256 rows at a time are computed, but not all */
    unsigned ranges;
} product;

static const product kinds[] = {
    { SHERD_I32, SHERD_I32, SHERD_F32, 0, 5000000, 1 },
    { SHERD__RESIDUES, SHERD__RESIDUES, SHERD__RESIDUES, PRIME, 5000000, 2 },
    { SHERD__BYTES_LEFT, SHERD__BYTES_RIGHT, SHERD__BYTES, BYTE_PRIME, 1200000, 1 },
};

static void free_bytes(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx, (void)len;
    free(bytes);
}

static sherd__fragment *fragment_of(uint8_t dtype, uint32_t cols, uint64_t len, uint8_t *bytes)
{
    sherd__fragment *f;
    const sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                                     .dtype = dtype,
                                     .primes = dtype > SHERD_I64,
                                     .rows = dtype == SHERD_U8 ? 1 : SIDE,
                                     .cols = cols,
                                     .len = len };
    assert_int_equal(sherd__fragment_take(&f, &i, bytes, free_bytes, NULL), SHERD_OK);
    return f;
}

static sherd__fragment *operand_new(uint8_t dtype, sherd__entropy *rng)
{
    const uint64_t laid = sherd__bytes_laid(SIDE, SIDE), len = (uint64_t)SIDES * 4;
    uint8_t *plain = malloc(SIDES), *at = aligned_alloc(64, len);
    for (size_t i = 0; i < SIDES; i++) {
        const uint32_t r = (uint32_t)sherd__entropy_below(rng, PRIME);
        const int32_t v = (int32_t)(r % 2001) - 1000;
        plain[i] = (uint8_t)r;
        if (dtype == SHERD_I32) memcpy(at + 4 * i, &v, 4);
        if (dtype != SHERD__RESIDUES) continue;
        at[3 * i] = (uint8_t)r, at[3 * i + 1] = (uint8_t)(r >> 8),
               at[3 * i + 2] = (uint8_t)(r >> 16);
    }
    if (dtype == SHERD__BYTES_LEFT) sherd__bytes_lay_rows(plain, SIDE, SIDE, SIDE, at);
    if (dtype == SHERD__BYTES_RIGHT)
        sherd__bytes_lay_columns((const int8_t *)plain, SIDE, SIDE, SIDE, at);
    free(plain);
    return fragment_of(dtype, SIDE,
                       dtype == SHERD_I32         ? len
                       : dtype == SHERD__RESIDUES ? 3ull * SIDES
                                                  : laid,
                       at);
}

static void on_done(sherd__call *c)
{
    (void)c;
}

/* Multiplies while all but `room` bytes of the device's memory are used. Returns how many products
 * the library computed. */
static unsigned multiply_with(uint64_t room, const product *p, uint8_t op,
                              sherd__fragment *const operands[2], uint8_t *out)
{
    const uint64_t memory = 600000000, workspaces = 2u << 25;
    const uint64_t result = (uint64_t)SIDES * sherd__wire_size(p->result);
    uint64_t rest = memory - workspaces - result - room;
    void *ctx;
    sherd_diag d;
    const sherd__backend_options o = { .device_memory = memory, .timeout_s = 60, .tested = true };
    assert_int_equal(open_with(&ctx, "slowkernels", o, &d), SHERD_OK);
    assert_int_equal(device(ctx)->memory, memory - workspaces);
    for (int i = 0; i < 2; i++) rest -= sherd__fragment_info_of(operands[i])->len;
    sherd__fragment *others = fragment_of(SHERD_U8, (uint32_t)rest, rest, calloc(1, rest));
    sherd__handle a = held(ctx, operands[0]), b = held(ctx, operands[1]), c = held(ctx, others);
    const unsigned before = on->products();
    const sherd__task t = { .op = op,
                            .left = 1,
                            .right = 2,
                            .primes_len = p->prime != 0,
                            .primes = { p->prime },
                            .result = { .origin = SHERD__RESULT,
                                        .dtype = p->result,
                                        .primes = p->prime != 0,
                                        .rows = SIDE,
                                        .cols = SIDE,
                                        .len = result } };
    sherd__call call = { .task = &t,
                         .left = a,
                         .right = b,
                         .owner = 1,
                         .out = out,
                         .executor = executor,
                         .done = on_done };
    assert_int_equal(backend->submit(ctx, &call, &d), SHERD_OK);
    settle(ctx);
    if (call.err) fail_msg("%s", call.text);
    backend->drop(ctx, &a);
    backend->drop(ctx, &b);
    backend->drop(ctx, &c);
    backend->close(ctx);
    assert_int_equal(on->dirty(), 0);
    sherd__fragment_free(others);
    return on->products() - before;
}

/* The results are those of kernels, which need no other memory. */
static void with_little_memory_fewer_rows_are_computed_at_a_time(void **s)
{
    (void)s;
    static uint8_t want[4 * SIDES], got[4 * SIDES];
    sherd__seeded state;
    sherd__entropy rng = sherd__entropy_seeded(&state, 20261128);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const product *p = &kinds[i];
        sherd__fragment *operands[2] = { operand_new(p->left, &rng), operand_new(p->right, &rng) };
        for (uint8_t op = SHERD__OP_MULTIPLY; op <= SHERD__OP_MULTIPLY_T; op++) {
            if (under_valgrind() && (i + op) % 2) continue;
            const uint64_t rooms[] = { 20000000, p->room };
            assert_int_equal(multiply_with(1000, p, op, operands, want), 0);
            for (unsigned few = under_valgrind(); few < 2; few++) {
                memset(got, 0xFF, sizeof got);
                assert_int_equal(multiply_with(rooms[few], p, op, operands, got),
                                 p->ranges * (few ? 3 : 1));
                assert_memory_equal(got, want, (size_t)SIDES * sherd__wire_size(p->result));
            }
        }
        sherd__fragment_free(operands[0]);
        sherd__fragment_free(operands[1]);
    }
}

#define LIBRARY(test)                                                                              \
    {                                                                                              \
#test, test, choose_cublas, NULL, NULL                                                     \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIBRARY(a_library_that_is_faster_multiplies),
        LIBRARY(a_library_that_is_slower_does_not_multiply),
        LIBRARY(a_library_multiplies_from_the_size_on_from_which_it_is_faster),
        LIBRARY(spoiled_products_of_the_selftest_are_noticed),
        LIBRARY(a_library_that_cannot_be_used_leaves_the_kernels),
        LIBRARY(a_workspace_for_which_there_is_no_memory_leaves_the_kernels),
        LIBRARY(kinds_that_a_library_does_not_compute_are_left_to_kernels),
        LIBRARY(a_product_that_fails_fails_its_call_only),
        LIBRARY(a_product_for_which_there_is_no_memory_is_computed_by_kernels),
        LIBRARY(a_product_that_loses_the_device_ends_its_calls),
        LIBRARY(a_device_that_is_lost_by_the_selftest_is_not_opened),
        LIBRARY(the_environment_cannot_make_it_emulate_float64),
        LIBRARY(with_little_memory_fewer_rows_are_computed_at_a_time),
        /* last: its threads never end */
        LIBRARY(a_product_that_hangs_loses_the_device_after_the_timeout),
    };
    return cmocka_run_group_tests_name("node/library", tests, standins_open, standins_close);
}
