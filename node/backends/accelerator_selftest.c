/*
 * The self-test of a device, by the same path as calls: products of irregular shapes in every kind
 * of arithmetic, worst-case values included, are compared with plain loops of integers, and
 * element-wise functions with those of the host, bit for bit. Then its rates are measured.
 *
 * A device that computes an element-wise function with other bits does not declare them. Any other
 * difference is an error: the node must not start.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "core/rand.h"
#include "matrix/funcs.h"
#include "matrix/residue.h"
#include "matrix/residue_bytes.h"
#include "node/backends/accelerator_internal.h"
#include "node/check.h"
#include "sherd/mat.h"
#include "sherd/op.h"

/* A task whose operands and result are in memory of the test. */
typedef struct trial {
    accelerator_lane *lane;
    sherd__entropy rng;
    sherd__task task;
    sherd__fragment *left, *right;
    uint8_t *out;
    double seconds;
} trial;

static void free_body(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx, (void)len;
    sherd__free(bytes);
}

static sherd__fragment *fragment_new(uint8_t dtype, uint8_t primes, uint64_t rows, uint64_t cols,
                                     uint64_t len)
{
    const sherd__fragment_info i = { .origin = SHERD__HIDDEN,
                                     .dtype = dtype,
                                     .primes = primes,
                                     .rows = rows,
                                     .cols = cols,
                                     .len = len };
    uint8_t *body = sherd__calloc(1, len + 1);
    sherd__fragment *f = NULL;
    if (!body || sherd__fragment_take(&f, &i, body, free_body, NULL)) {
        sherd__free(body);
        return NULL;
    }
    return f;
}

static uint8_t *bytes_of(const sherd__fragment *f)
{
    return (uint8_t *)(uintptr_t)sherd__fragment_bytes(f); /* the test's own */
}

static void trial_end(trial *t)
{
    sherd__fragment_free(t->left);
    sherd__fragment_free(t->right);
    sherd__free(t->out);
    t->left = t->right = NULL;
    t->out = NULL;
}

/* Sets the task's result, and memory for it. */
static int trial_result(trial *t, uint8_t dtype, uint64_t rows, uint64_t cols)
{
    const uint64_t primes = t->task.primes_len;
    t->task.result = (sherd__fragment_info){ .origin = SHERD__RESULT,
                                             .dtype = dtype,
                                             .primes = (uint8_t)primes,
                                             .rows = rows,
                                             .cols = cols,
                                             .len = rows * cols * (primes ? primes : 1) *
                                                    sherd__wire_size(dtype) };
    t->out = sherd__alloc(t->task.result.len + 1);
    return t->out && t->left && (t->right || !t->task.right) ? SHERD_OK : SHERD_ENOMEM;
}

static int hold(const trial *t, accelerator_block *b, const sherd__fragment *f, sherd_diag *d)
{
    *b = (accelerator_block){ .from = f, .on = t->lane->on };
    if (!f) return SHERD_OK;
    b->len = sherd__fragment_info_of(f)->len;
    return sherd__accelerator_reserve(b->on, b->len, d);
}

static void drop(const trial *t, accelerator_block *b)
{
    if (b->memory) sherd__accelerator_forget(t->lane, b->memory, b->len);
    sherd__accelerator_unreserve(b->on, b->len);
}

/* Computes the task as a call of it is computed. */
static int trial_run(trial *t, sherd_diag *d)
{
    accelerator_block left, right = { .on = t->lane->on };
    sherd__call c = { .task = &t->task, .out = t->out };
    int err = hold(t, &left, t->left, d);
    if (err) return err;
    err = hold(t, &right, t->right, d);
    if (err) right.len = 0;
    const double from = sherd__clock_s();
    if (!err) err = sherd__accelerator_compute(t->lane, &c, &left, t->right ? &right : NULL, d);
    t->seconds = sherd__clock_s() - from;
    drop(t, &left);
    drop(t, &right);
    return err;
}

static int wrong(const trial *t, const char *what, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EDEVICE, "update the driver, or compute with --backend cpu",
                       "%s computes wrongly: %s differs from the result of integers",
                       t->lane->on->what->core, what);
}

/* ---- products -------------------------------------------------------------------------------- */

typedef struct shape {
    uint32_t n, k, m;
    bool transposed;
} shape;

static const shape shapes[] = { { 67, 41, 70, false }, { 5, 130, 3, false }, { 66, 37, 65, true } };
#define SHAPES (sizeof shapes / sizeof *shapes)

static uint64_t left_at(const shape *s, uint32_t i, uint32_t l)
{
    return s->transposed ? (uint64_t)l * s->n + i : (uint64_t)i * s->k + l;
}

static void set_product(trial *t, const shape *s)
{
    t->task = (sherd__task){ .job = 1,
                             .task = 1,
                             .attempt = 1,
                             .op = s->transposed ? SHERD__OP_MULTIPLY_T : SHERD__OP_MULTIPLY,
                             .left = 1,
                             .right = 2 };
}

/* Integers of up to 26 bits, whose sums are exact in float64. */
static int test_f64(trial *t, const shape *s, sherd_diag *d)
{
    const uint64_t na = (uint64_t)s->n * s->k, nb = (uint64_t)s->k * s->m;
    set_product(t, s);
    t->left = fragment_new(SHERD_I32, 0, s->transposed ? s->k : s->n, s->transposed ? s->n : s->k,
                           4 * na);
    t->right = fragment_new(SHERD_F64, 0, s->k, s->m, 8 * nb);
    if (trial_result(t, SHERD_F64, s->n, s->m)) return sherd__fail_memory(d, "a self-test");
    int32_t *a = (int32_t *)(void *)bytes_of(t->left);
    double *b = (double *)(void *)bytes_of(t->right);
    const uint64_t range = 1u << 23;
    for (uint64_t i = 0; i < na; i++)
        a[i] = (int32_t)sherd__entropy_below(&t->rng, range) - (int32_t)(range / 2);
    for (uint64_t i = 0; i < nb; i++)
        b[i] = (double)sherd__entropy_below(&t->rng, range) - (double)(range / 2);
    int err = trial_run(t, d);
    const double *got = (const double *)(const void *)t->out;
    for (uint32_t i = 0; i < s->n && !err; i++)
        for (uint32_t j = 0; j < s->m && !err; j++) {
            int64_t sum = 0;
            for (uint32_t l = 0; l < s->k; l++)
                sum += a[left_at(s, i, l)] * (int64_t)b[(uint64_t)l * s->m + j];
            if (got[(uint64_t)i * s->m + j] != (double)sum)
                err = wrong(t, "a product in float64", d);
        }
    return err;
}

static uint32_t residue_at(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}

/* Draws residues, or takes the largest one. */
static void draw_residues(trial *t, const sherd__fragment *f, uint32_t p, bool largest)
{
    uint8_t *at = bytes_of(f);
    for (uint64_t i = 0; i < sherd__fragment_info_of(f)->len; i += 3) {
        const uint32_t r = largest ? p - 1 : (uint32_t)sherd__entropy_below(&t->rng, p);
        at[i] = (uint8_t)r;
        at[i + 1] = (uint8_t)(r >> 8);
        at[i + 2] = (uint8_t)(r >> 16);
    }
}

static int test_residues(trial *t, const shape *s, uint32_t p, bool largest, sherd_diag *d)
{
    const uint64_t na = (uint64_t)s->n * s->k, nb = (uint64_t)s->k * s->m;
    set_product(t, s);
    t->task.primes_len = 1;
    t->task.primes[0] = p;
    t->left = fragment_new(SHERD__RESIDUES, 1, s->transposed ? s->k : s->n,
                           s->transposed ? s->n : s->k, 3 * na);
    t->right = fragment_new(SHERD__RESIDUES, 1, s->k, s->m, 3 * nb);
    if (trial_result(t, SHERD__RESIDUES, s->n, s->m)) return sherd__fail_memory(d, "a self-test");
    draw_residues(t, t->left, p, largest);
    draw_residues(t, t->right, p, largest);
    const uint8_t *a = bytes_of(t->left), *b = bytes_of(t->right);
    int err = trial_run(t, d);
    for (uint32_t i = 0; i < s->n && !err; i++)
        for (uint32_t j = 0; j < s->m && !err; j++) {
            uint64_t sum = 0;
            for (uint32_t l = 0; l < s->k; l++)
                sum = (sum + (uint64_t)residue_at(a + 3 * left_at(s, i, l)) *
                                 residue_at(b + 3 * ((uint64_t)l * s->m + j))) %
                      p;
            if (residue_at(t->out + 3 * ((uint64_t)i * s->m + j)) != sum)
                err = wrong(t, "a product modulo a prime", d);
        }
    return err;
}

/* Any bytes have a defined product, also those that are no residues. */
static int test_bytes(trial *t, const shape *s, uint32_t p, bool largest, sherd_diag *d)
{
    const uint32_t rows = s->transposed ? s->k : s->n, cols = s->transposed ? s->n : s->k;
    uint8_t *plain = sherd__alloc((size_t)rows * cols + (size_t)s->k * s->m);
    set_product(t, s);
    t->task.primes_len = 1;
    t->task.primes[0] = p;
    t->left = fragment_new(SHERD__BYTES_LEFT, 1, rows, cols, sherd__bytes_laid(rows, cols));
    t->right = fragment_new(SHERD__BYTES_RIGHT, 1, s->k, s->m, sherd__bytes_laid(s->m, s->k));
    if (trial_result(t, SHERD__BYTES, s->n, s->m) || !plain) {
        sherd__free(plain);
        return sherd__fail_memory(d, "a self-test");
    }
    uint8_t *a = plain;
    int8_t *b = (int8_t *)plain + (size_t)rows * cols;
    for (size_t i = 0; i < (size_t)rows * cols; i++)
        a[i] = largest ? 255 : (uint8_t)sherd__entropy_below(&t->rng, 256);
    for (size_t i = 0; i < (size_t)s->k * s->m; i++)
        b[i] = largest ? -128 : (int8_t)((int)sherd__entropy_below(&t->rng, 256) - 128);
    sherd__bytes_lay_rows(a, rows, cols, cols, bytes_of(t->left));
    sherd__bytes_lay_columns(b, s->k, s->m, s->m, bytes_of(t->right));
    int err = trial_run(t, d);
    for (uint32_t i = 0; i < s->n && !err; i++)
        for (uint32_t j = 0; j < s->m && !err; j++) {
            int64_t sum = 0;
            for (uint32_t l = 0; l < s->k; l++)
                sum += (int64_t)a[left_at(s, i, l)] * b[(uint64_t)l * s->m + j];
            if (t->out[(uint64_t)i * s->m + j] != (sum % p + p) % p)
                err = wrong(t, "a product of bytes", d);
        }
    sherd__free(plain);
    return err;
}

/* ---- element-wise functions ------------------------------------------------------------------ */

static const double specials[] = { 0.0,       -0.0,  1.0,    -1.0,   0x1p-1074, -0x1p-1022, 0x1p-30,
                                   INFINITY,  NAN,   709.78, 709.79, -745.2,    -708.4,     20.0,
                                   -INFINITY, 1e300, 746.5,  -36.7,  1e-310,    0.5 };

static void draw_numbers(trial *t, const sherd__fragment *f)
{
    double *x = (double *)(void *)bytes_of(f);
    const size_t n = sherd__fragment_info_of(f)->cols, m = sizeof specials / sizeof *specials;
    for (size_t i = 0; i < n; i++) {
        double v = (double)sherd__entropy_below(&t->rng, UINT64_C(1) << 53);
        x[i] = i < m ? specials[i] : ldexp(v, -(int)sherd__entropy_below(&t->rng, 60)) - 2.0;
    }
}

/* Sets *same: all bits are those of the host. */
static int test_map(trial *t, uint32_t op, bool *same, sherd_diag *d)
{
    enum { N = 1000 };
    const bool two = op == SHERD_OP_MINUS || op == SHERD_OP_TIMES;
    t->task = (sherd__task){ .job = 1, .task = 1, .attempt = 1, .op = (uint8_t)op, .left = 1 };
    t->task.right = two ? 2 : 0;
    t->left = fragment_new(SHERD_F64, 0, 1, N, 8 * N);
    if (two) t->right = fragment_new(SHERD_F64, 0, 1, N, 8 * N);
    double *want = sherd__alloc(N * sizeof *want);
    int err = trial_result(t, SHERD_F64, 1, N) || !want ? sherd__fail_memory(d, "a self-test")
                                                        : SHERD_OK;
    if (!err) draw_numbers(t, t->left);
    if (!err && two) draw_numbers(t, t->right);
    if (!err) err = trial_run(t, d);
    if (!err)
        err = sherd__map_f64(op, (const double *)(const void *)bytes_of(t->left),
                             two ? (const double *)(const void *)bytes_of(t->right) : NULL, N,
                             want);
    *same = !err && memcmp(want, t->out, N * sizeof *want) == 0;
    sherd__free(want);
    return err;
}

static int test_maps(trial *t, sherd_diag *d)
{
    int err = SHERD_OK;
    bool all = true, same;
    for (uint32_t op = SHERD_OP_SIGMOID; op <= SHERD_OP_EXP && !err; op++) {
        err = test_map(t, op, &same, d);
        trial_end(t);
        all &= same;
    }
    if (!all) t->lane->on->what->does &= ~SHERD__DOES_MAPS;
    return err;
}

static int test_products(trial *t, sherd_diag *d)
{
    const bool f64 = t->lane->on->driver.f64;
    int err = SHERD_OK;
    for (size_t i = 0; i < SHAPES && !err; i++) {
        const shape *s = &shapes[i];
        if (f64) err = test_f64(t, s, d);
        trial_end(t);
        if (!err) err = test_residues(t, s, sherd__primes_default.p[0], i == 1, d);
        trial_end(t);
        if (!err) err = test_residues(t, s, sherd__primes_wide.p[0], i != 1, d);
        trial_end(t);
        if (!err) err = test_bytes(t, s, sherd__byte_primes[i], i == 1, d);
        trial_end(t);
    }
    return err;
}

/* ---- rates ----------------------------------------------------------------------------------- */

static uint64_t square_len(uint8_t dtype, uint32_t n)
{
    return dtype == SHERD__BYTES ? sherd__bytes_laid(n, n)
                                 : n * (uint64_t)n * sherd__wire_size(dtype);
}

/* Returns whether a product of n x n by n x n fits into the memory of the device. */
static bool fits(const trial *t, uint8_t dtype, uint32_t n)
{
    const sherd__driver_device *v = &t->lane->on->driver;
    const uint64_t len = square_len(dtype, n);
    return len <= v->largest && 3 * len <= v->memory;
}

/* Measures a product of n x n by n x n, with copies. Its numbers are zero. */
static int measure(trial *t, uint8_t dtype, uint32_t n, double *gflops, sherd_diag *d)
{
    const shape s = { n, n, n, false };
    const bool bytes = dtype == SHERD__BYTES;
    const uint64_t len = square_len(dtype, n);
    const uint8_t primes = dtype == SHERD_F64 ? 0 : 1;
    set_product(t, &s);
    t->task.primes_len = primes;
    t->task.primes[0] = bytes ? sherd__byte_primes[0] : sherd__primes_default.p[0];
    t->left = fragment_new(bytes ? SHERD__BYTES_LEFT : dtype, primes, n, n, len);
    t->right = fragment_new(bytes ? SHERD__BYTES_RIGHT : dtype, primes, n, n, len);
    int err = trial_result(t, dtype, n, n) ? sherd__fail_memory(d, "a self-test") : SHERD_OK;
    if (!err) err = trial_run(t, d);
    *gflops = t->seconds > 0 ? 2e-9 * n * n * n / t->seconds : 0;
    trial_end(t);
    return err;
}

/* Measures again with larger operands until a product takes a moment or does not fit. */
static int measure_rate(trial *t, uint8_t dtype, bool quick, double *gflops, sherd_diag *d)
{
    int err;
    uint32_t n = 256;
    do err = measure(t, dtype, n, gflops, d);
    while (!err && !quick && t->seconds < 0.05 && (n *= 2) <= 4096 && fits(t, dtype, n));
    return err;
}

int sherd__accelerator_selftest(accelerator_device *v, const sherd__backend_options *opt,
                                sherd_diag *d)
{
    sherd__seeded state;
    trial t = { .lane = &v->lanes[0], .rng = sherd__entropy_seeded(&state, 20261127) };
    sherd__device *w = v->what;
    int err = opt->tested ? SHERD_OK : test_products(&t, d);
    if (!err && v->driver.f64 && w->does & SHERD__DOES_MAPS) err = test_maps(&t, d);
    if (!err && v->driver.f64) err = measure_rate(&t, SHERD_F64, opt->quick, &w->gflops, d);
    if (!err) err = measure_rate(&t, SHERD__RESIDUES, opt->quick, &w->residue_gflops, d);
    if (!err) err = measure_rate(&t, SHERD__BYTES, opt->quick, &w->byte_gops, d);
    return err;
}
