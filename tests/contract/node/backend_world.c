/* Blocks, tasks and the backends of the suite for backends; see backend_world.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/bytes.h"
#include "crypto/fragment_make.h"
#include "node/backends/accelerator_internal.h"
#include "node/backends/cpu.h"
#include "node/check.h"
#include "tests/contract/node/backend_world.h"
#include "tests/support/cublas_folder.h"
#include "tests/support/remote.h"

/* Backends, by the places that ALL gives them, and their libraries in tests/system/node: those of
 * the system come last. */
static const struct {
    const sherd__backend *of;
    const char *library;
    bool multiplies; /* the device has a library of products, which is faster for all of them */
} backends[] = {
    { &sherd__backend_cpu, NULL, false },
    { &remote_backend, NULL, false },
    { &sherd__backend_opencl, "preload_opencl", false },
    { &sherd__backend_cuda, "preload_cuda", false },
    { &sherd__backend_cuda, "preload_cuda", true },
    { &sherd__backend_opencl, NULL, false },
};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BACKENDS 5
#else
#define BACKENDS (sizeof backends / sizeof *backends)
#endif

#define DEVICE 5u /* the place of the device that SHERD_CONTRACT names */

static void *contexts[DEVICE + 1];
static const sherd__backend *device; /* NULL: none is named */
const sherd__backend *backend_now;
void *backend_ctx, *backend_cpu;
sherd__executor *backend_executor;
char backend_why[SHERD__TEXT_MAX];
static sherd__seeded seed_state;
sherd__entropy backend_rnd;

static size_t plan_values(const plan *p)
{
    size_t n = 0;
    for (uint32_t q = 0; q < (p->groups ? p->groups : 1); q++) n += (size_t)p->rows[q] * p->cols[q];
    return n;
}

static void store(uint8_t *at, uint8_t dtype, double v)
{
    switch (dtype) {
    case SHERD_F64: memcpy(at, &v, 8); break;
    case SHERD_F32: {
        float x = (float)v;
        memcpy(at, &x, 4);
        break;
    }
    case SHERD_U8: *at = (uint8_t)v; break;
    case SHERD_I8: *at = (uint8_t)(int8_t)v; break;
    case SHERD_U16: sherd__put_u16(at, (uint16_t)v); break;
    case SHERD_I16: sherd__put_u16(at, (uint16_t)(int16_t)v); break;
    case SHERD_U32: sherd__put_u32(at, (uint32_t)v); break;
    case SHERD_I32: sherd__put_u32(at, (uint32_t)(int32_t)v); break;
    case SHERD_I64: sherd__put_u64(at, (uint64_t)(int64_t)v); break;
    default: abort();
    }
}

static sherd__fragment *take(const sherd__fragment_info *info, uint8_t *body)
{
    sherd__fragment *f;
    assert_int_equal(sherd__fragment_take(&f, info, body, NULL, NULL), SHERD_OK);
    return f;
}

sherd__fragment *block_encode(const plan *p, const double *values)
{
    sherd__fragment_info i = { .origin = SHERD__HIDDEN, .dtype = p->dtype, .groups = p->groups };
    size_t each = sherd_dtype_size((sherd_dtype)p->dtype), n = plan_values(p);
    for (uint32_t q = 0; q < (p->groups ? p->groups : 1); q++) {
        i.rows += p->rows[q];
        if (p->cols[q] > i.cols) i.cols = p->cols[q];
    }
    i.len = 8 * (uint64_t)p->groups + n * each;
    uint8_t *body = malloc(i.len + 1);
    for (uint32_t q = 0; q < p->groups; q++) {
        sherd__put_u32(body + 8 * q, p->rows[q]);
        sherd__put_u32(body + 8 * q + 4, p->cols[q]);
    }
    for (size_t k = 0; k < n; k++) store(body + 8 * p->groups + k * each, p->dtype, values[k]);
    sherd_diag d = { .code = 0 };
    assert_int_equal(sherd__fragment_table_check(&i, body, &d), SHERD_OK);
    return take(&i, body);
}

static double small_value(uint8_t dtype)
{
    double v = (double)sherd__entropy_below(&backend_rnd, 120);
    bool is_signed = dtype != SHERD_U8 && dtype != SHERD_U16 && dtype != SHERD_U32;
    return is_signed && sherd__entropy_below(&backend_rnd, 2) ? -v : v;
}

block block_new(const plan *p)
{
    block b = { .p = *p, .len = plan_values(p) };
    b.values = malloc((b.len + 1) * sizeof(double));
    for (size_t k = 0; k < b.len; k++) b.values[k] = small_value(p->dtype);
    b.f = block_encode(p, b.values);
    return b;
}

void block_free(block *b)
{
    sherd__fragment_free(b->f);
    free(b->values);
}

sherd__task task_product(const sherd__fragment *a, const sherd__fragment *b, uint8_t dtype)
{
    uint64_t n = sherd__fragment_info_of(a)->rows, m = sherd__fragment_info_of(b)->cols;
    sherd__task t = {
        .job = 1, .task = 1, .attempt = 1, .op = SHERD__OP_MULTIPLY, .left = 1, .right = 2
    };
    t.result = (sherd__fragment_info){ .origin = SHERD__RESULT,
                                       .dtype = dtype,
                                       .rows = n,
                                       .cols = m,
                                       .len = n * m * sherd__wire_size(dtype) };
    return t;
}

/* The grouped product, by definition. */
double *block_product(const block *a, const block *b, size_t n, size_t m)
{
    double *c = calloc(n * m + 1, sizeof *c);
    const double *u = a->values, *v = b->values;
    size_t row = 0;
    for (uint32_t q = 0; q < (a->p.groups ? a->p.groups : 1); q++) {
        size_t rows = a->p.rows[q], g = a->p.cols[q];
        for (size_t i = 0; i < rows; i++)
            for (size_t k = 0; k < g; k++)
                for (size_t j = 0; j < m; j++) c[(row + i) * m + j] += u[i * g + k] * v[k * m + j];
        u += rows * g;
        v += g * m;
        row += rows;
    }
    return c;
}

uint8_t *out_new(size_t len)
{
    uint8_t *out = aligned_alloc(64, (len + GUARD + 63) / 64 * 64);
    memset(out, 0xFF, len + GUARD); /* NaN both as f64 and as f32 */
    return out;
}

void out_guarded(const uint8_t *out, size_t len)
{
    for (size_t i = 0; i < GUARD; i++) assert_int_equal(out[len + i], 0xFF);
}

/* ---- memory that is lent -------------------------------------------------------------------- */

lending backend_lent;

static uint8_t *lend(void *ctx, uint64_t len)
{
    lending *l = ctx;
    if (l->none) return NULL;
    l->gets++;
    l->bytes += len;
    uint8_t *bytes = aligned_alloc(64, (len + GUARD + 63) / 64 * 64);
    memset(bytes, 0xFF, len + GUARD);
    return bytes;
}

static void give_back(void *ctx, uint8_t *bytes, uint64_t len)
{
    lending *l = ctx;
    out_guarded(bytes, len);
    l->gives++;
    l->bytes -= len;
    free(bytes);
}

static const sherd__lender lender = { lend, give_back, &backend_lent };

sherd__handle backend_hold(const sherd__fragment *f, uint64_t owner)
{
    sherd_diag d = { .code = 0 };
    sherd__handle h = { .id = 0 };
    assert_int_equal(backend_now->hold(backend_ctx, 0, f, owner, &h, &d), SHERD_OK);
    return h;
}

static void on_done(sherd__call *call)
{
    calling *c = (calling *)call;
    c->dones++;
}

int backend_begin(calling *c, const sherd__task *t, sherd__handle left, sherd__handle right,
                  uint64_t owner, uint8_t *out)
{
    sherd_diag d = { .code = 0 };
    *c = (calling){ .call = { .task = t,
                              .left = left,
                              .right = right,
                              .owner = owner,
                              .out = out,
                              .executor = backend_executor,
                              .done = on_done,
                              .memory = &lender } };
    return backend_now->submit(backend_ctx, &c->call, &d);
}

void backend_settle(void)
{
    while (sherd__executor_pending(backend_executor)) {
        if (backend_now == &remote_backend) (void)remote_turn(backend_ctx);
        else if (backend_now->wait) backend_now->wait(backend_ctx, NULL);
        (void)sherd__executor_drain(backend_executor);
    }
}

/* Computes the same on this thread, if the backend supports that. */
static void compute_too(const calling *c, const sherd__fragment *a, const sherd__fragment *b)
{
    const sherd__task *t = c->call.task;
    sherd_diag d = { .code = 0 };
    if (!backend_now->compute) return;
    sherd__call again = { .task = t, .out = out_new(t->result.len) };
    int err = backend_now->compute(backend_ctx, &again, a, b, &d);
    assert_int_equal(err, c->call.err);
    if (!err) assert_memory_equal(again.out, c->call.out, t->result.len);
    out_guarded(again.out, t->result.len);
    free(again.out);
}

/* Several times, so that forms of the blocks are made and used. The answer is always the same. */
int backend_run(const sherd__task *t, const sherd__fragment *a, const sherd__fragment *b,
                uint8_t *out)
{
    calling c;
    sherd__handle left = backend_hold(a, 1), right = { .id = 0 };
    uint8_t *first = malloc(t->result.len + 1);
    int err = 0;
    if (b) right = backend_hold(b, 1);
    for (int time = 0; time < 3; time++) {
        assert_int_equal(backend_begin(&c, t, left, right, 1, out), SHERD_OK);
        backend_settle();
        assert_int_equal(c.dones, 1);
        assert_int_equal(c.call.err != 0, c.call.text[0] != '\0');
        if (time == 0) {
            err = c.call.err;
            memcpy(backend_why, c.call.text, sizeof backend_why);
            if (!err) memcpy(first, out, t->result.len);
        }
        assert_int_equal(c.call.err, err);
        assert_memory_equal(c.call.text, backend_why, sizeof backend_why);
        if (!err) assert_memory_equal(out, first, t->result.len);
        if (time < 2 && !err) memset(out, 0xFF, t->result.len);
    }
    backend_now->drop(backend_ctx, &left);
    if (b) backend_now->drop(backend_ctx, &right);
    assert_int_equal(backend_lent.gets, backend_lent.gives);
    compute_too(&c, a, b);
    free(first);
    return err;
}

plan plan_dense(uint32_t groups, uint32_t rows, uint32_t cols, uint8_t dtype)
{
    return (plan){ .groups = groups, .rows = { rows }, .cols = { cols }, .dtype = dtype };
}

void plan_groups(plan *a, plan *b, uint32_t groups, uint32_t inner_max, uint32_t m)
{
    *a = (plan){ .groups = groups };
    *b = (plan){ .groups = groups };
    for (uint32_t q = 0; q < groups; q++) {
        bool empty = sherd__entropy_below(&backend_rnd, 4) == 0;
        a->rows[q] = empty ? 0 : (uint32_t)sherd__entropy_below(&backend_rnd, 70);
        a->cols[q] = b->rows[q] = (uint32_t)sherd__entropy_below(&backend_rnd, inner_max + 1);
        b->cols[q] = m;
    }
}

/* --- modulo primes -------------------------------------------------------------------------- */

const uint32_t backend_primes[SHERD__RESIDUES_PRIMES_MAX] = { 5931641, 8388593, 5, 65537 };

sherd__fragment *residues_new(uint32_t groups, uint32_t rows, uint32_t cols, uint32_t r,
                              const uint32_t *values)
{
    size_t n = (size_t)rows * cols * r;
    sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                               .dtype = SHERD__RESIDUES,
                               .primes = (uint8_t)r,
                               .groups = groups,
                               .rows = rows,
                               .cols = cols,
                               .len = 8 * (uint64_t)groups + 3 * n };
    uint8_t *body = malloc(i.len + 1);
    if (groups) {
        sherd__put_u32(body, rows);
        sherd__put_u32(body + 4, cols);
    }
    for (size_t k = 0; k < n; k++) {
        uint8_t *at = body + 8 * groups + 3 * k;
        sherd__put_u16(at, (uint16_t)values[k]);
        at[2] = (uint8_t)(values[k] >> 16);
    }
    return take(&i, body);
}

uint32_t *residues_draw(uint32_t rows, uint32_t cols, uint32_t r, bool worst)
{
    size_t each = (size_t)rows * cols;
    uint32_t *v = malloc((each * r + 1) * sizeof *v);
    for (size_t k = 0; k < each * r; k++) {
        uint32_t p = backend_primes[k / each];
        v[k] = worst ? (p - 1) / 2 + (uint32_t)(k & 1)
                     : (uint32_t)sherd__entropy_below(&backend_rnd, p);
    }
    return v;
}

sherd__task task_modular(uint32_t n, uint32_t m, uint32_t r)
{
    sherd__task t = { .job = 1,
                      .task = 1,
                      .attempt = 1,
                      .op = SHERD__OP_MULTIPLY,
                      .left = 1,
                      .right = 2,
                      .primes_len = r };
    memcpy(t.primes, backend_primes, sizeof backend_primes);
    t.result = (sherd__fragment_info){ .origin = SHERD__RESULT,
                                       .dtype = SHERD__RESIDUES,
                                       .primes = (uint8_t)r,
                                       .rows = n,
                                       .cols = m,
                                       .len = (uint64_t)n * m * 3 * r };
    return t;
}

uint32_t residue_at(const uint8_t *p)
{
    return sherd__get_u16(p) | (uint32_t)p[2] << 16;
}

/* ---- the suite, once for each backend -------------------------------------------------------- */

/* Kernels that PoCL compiles are kept between runs, beside the tests. */
static void make_caches(void)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/tests/pocl", getenv("BUILD"));
    (void)mkdir(folder, 0755);
    setenv("POCL_CACHE_DIR", folder, 0);
}

/* cmocka chooses cases before it opens the group. */
__attribute__((constructor)) static void choose_cases(void)
{
    if (getenv("SHERD_CONTRACT")) cmocka_set_test_filter("*_device");
}

static void use_library_always(accelerator *a)
{
    accelerator_library *l = &a->devices[0].library;
    if (!l->used) fail_msg("cuBLAS is not used: %s", a->list[0].library);
    for (size_t i = 0; i < KINDS; i++) l->from[i] = 0;
}

/* Opens the device that is named, and the processor, which is the reference. */
static int open_device(const char *name)
{
    const bool opencl = strncmp(name, "opencl", 6) == 0, cublas = strncmp(name, "cublas", 6) == 0;
    const char *number = strchr(name, ':');
    const sherd__backend_options plain = { .threads = 1, .quick = true };
    sherd__backend_options o = { .devices_len = 1,
                                 .devices = { number ? (uint32_t)atoi(number + 1) : 0 } };
    sherd_diag d = { .code = 0 };
    device = opencl ? &sherd__backend_opencl : &sherd__backend_cuda;
    o.library = getenv(opencl ? "SHERD_OPENCL_LIBRARY" : "SHERD_CUDA_LIBRARY");
    o.quick = true;
    if (!cublas) cublas_use("");
    if (sherd__backend_cpu.open(&contexts[0], &plain, &d) ||
        device->open(&contexts[DEVICE], &o, &d)) {
        print_error("%s: %s\n", name, d.message);
        return -1;
    }
    if (cublas) use_library_always(contexts[DEVICE]);
    return 0;
}

int backend_open_all(void **s)
{
    (void)s;
    const char *named = getenv("SHERD_CONTRACT");
    backend_rnd = sherd__entropy_seeded(&seed_state, 20261121);
    assert_int_equal(sherd__executor_new_inline(&backend_executor), SHERD_OK);
    sherd__cpu_forms_always(true);
    if (named) {
        int err = open_device(named);
        backend_cpu = contexts[0];
        return err;
    }
    assert_non_null(getenv("BUILD"));
    make_caches();
    for (size_t i = 0; i < BACKENDS; i++) {
        const sherd__backend *b = backends[i].of;
        sherd__backend_options o = { .threads = 1, .quick = true };
        char standin[4096];
        snprintf(standin, sizeof standin, "%s/tests/system/node/%s.so", getenv("BUILD"),
                 backends[i].library);
        if (backends[i].library) o.library = standin;
        sherd_diag d = { .code = 0 };
        cublas_use(backends[i].multiplies ? cublas_folder("cublas", "preload_cuda", 12) : "");
        setenv("SHERD_TEST_CUDA", backends[i].multiplies ? "slowkernels" : "", 1);
        if (b->open(&contexts[i], &o, &d)) {
            print_error("%s: %s\n", b->name, d.message);
            return -1;
        }
        uint32_t n;
        if (backends[i].multiplies && !strstr(b->devices(contexts[i], &n)->library,
                                              "float64 all, modulo primes all, bytes all"))
            fail_msg("%s", b->devices(contexts[i], &n)->library);
        assert_int_equal(b->abi, SHERD__BACKEND_ABI);
    }
    backend_cpu = contexts[0];
    return 0;
}

int backend_close_all(void **s)
{
    (void)s;
    if (device) device->close(contexts[DEVICE]);
    for (size_t i = 0; i < (device ? 1 : BACKENDS); i++) backends[i].of->close(contexts[i]);
    sherd__executor_free(backend_executor);
    return 0;
}

int backend_choose(void **state)
{
    backend_now = device ? device : backends[(uintptr_t)*state].of;
    backend_ctx = contexts[(uintptr_t)*state];
    return 0;
}
