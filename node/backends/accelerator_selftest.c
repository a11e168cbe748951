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
#include "core/diag.h"
#include "matrix/funcs.h"
#include "matrix/residue.h"
#include "matrix/residue_bytes.h"
#include "node/backends/accelerator_trial.h"
#include "node/check.h"
#include "sherd/mat.h"
#include "sherd/op.h"

static int wrong(const accelerator_trial *t, const char *what, sherd_diag *d)
{
    return sherd__fail(d, SHERD_EDEVICE, "update the driver, or compute with --backend cpu",
                       "%s computes wrongly: %s differs from the result of integers",
                       t->lane->on->what->core, what);
}

/* ---- products -------------------------------------------------------------------------------- */

static const accelerator_shape shapes[SHERD__TRIAL_SHAPES] = {
    { 67, 41, 70, false }, { 5, 130, 3, false }, { 66, 37, 65, true }, { 21, 1030, 19, false }
};

static uint64_t left_at(const accelerator_shape *s, uint32_t i, uint32_t l)
{
    return s->transposed ? (uint64_t)l * s->n + i : (uint64_t)i * s->k + l;
}

/* Which numbers an operand has: of residues, the largest ones, or those farthest from 0, which are
 * odd, so that a sum that is not exact is not right by chance. */
enum { RANDOM, LARGEST, MIDDLE };

/* Integers whose sums are exact in float64. The left operand is converted, or with many terms used
 * in place. */
static int test_f64(accelerator_trial *t, const accelerator_shape *s, sherd_diag *d)
{
    const uint64_t na = (uint64_t)s->n * s->k, nb = (uint64_t)s->k * s->m;
    sherd__trial_product(t, s);
    const bool long_sums = s->k > 256;
    t->left = sherd__trial_operand(long_sums ? SHERD_F64 : SHERD_I32, 0,
                                   s->transposed ? s->k : s->n, s->transposed ? s->n : s->k,
                                   (long_sums ? 8 : 4) * na);
    t->right = sherd__trial_operand(SHERD_F64, 0, s->k, s->m, 8 * nb);
    int err = sherd__trial_result(t, SHERD_F64, s->n, s->m, d);
    if (err) return err;
    int32_t *a = (int32_t *)(void *)sherd__trial_bytes(t->left);
    double *wide = (double *)(void *)a, *b = (double *)(void *)sherd__trial_bytes(t->right);
    const uint64_t range = long_sums ? 1u << 21 : 1u << 23;
    for (uint64_t i = 0; i < na; i++) {
        const int32_t v = (int32_t)sherd__entropy_below(&t->rng, range) - (int32_t)(range / 2);
        if (long_sums) wide[i] = v;
        else a[i] = v;
    }
    for (uint64_t i = 0; i < nb; i++)
        b[i] = (double)sherd__entropy_below(&t->rng, range) - (double)(range / 2);
    err = sherd__trial_run(t, 1, d);
    const double *got = (const double *)(const void *)t->out;
    for (uint32_t i = 0; i < s->n && !err; i++)
        for (uint32_t j = 0; j < s->m && !err; j++) {
            int64_t sum = 0;
            for (uint32_t l = 0; l < s->k; l++)
                sum += (long_sums ? (int64_t)wide[left_at(s, i, l)] : a[left_at(s, i, l)]) *
                       (int64_t)b[(uint64_t)l * s->m + j];
            if (got[(uint64_t)i * s->m + j] != (double)sum)
                err = wrong(t, "a product in float64", d);
        }
    return err;
}

static uint32_t residue_at(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}

static void draw_residues(accelerator_trial *t, const sherd__fragment *f, uint32_t p, int which)
{
    uint8_t *at = sherd__trial_bytes(f);
    for (uint64_t i = 0; i < sherd__fragment_info_of(f)->len; i += 3) {
        const uint32_t r = which == LARGEST  ? p - 1
                           : which == MIDDLE ? (p / 2 - 1) | 1
                                             : (uint32_t)sherd__entropy_below(&t->rng, p);
        at[i] = (uint8_t)r;
        at[i + 1] = (uint8_t)(r >> 8);
        at[i + 2] = (uint8_t)(r >> 16);
    }
}

static int test_residues(accelerator_trial *t, const accelerator_shape *s, uint32_t p, int which,
                         sherd_diag *d)
{
    const uint64_t na = (uint64_t)s->n * s->k, nb = (uint64_t)s->k * s->m;
    sherd__trial_product(t, s);
    t->task.primes_len = 1;
    t->task.primes[0] = p;
    t->left = sherd__trial_operand(SHERD__RESIDUES, 1, s->transposed ? s->k : s->n,
                                   s->transposed ? s->n : s->k, 3 * na);
    t->right = sherd__trial_operand(SHERD__RESIDUES, 1, s->k, s->m, 3 * nb);
    int err = sherd__trial_result(t, SHERD__RESIDUES, s->n, s->m, d);
    if (err) return err;
    draw_residues(t, t->left, p, which);
    draw_residues(t, t->right, p, which);
    const uint8_t *a = sherd__trial_bytes(t->left), *b = sherd__trial_bytes(t->right);
    err = sherd__trial_run(t, 1, d);
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
static int test_bytes(accelerator_trial *t, const accelerator_shape *s, uint32_t p, int which,
                      sherd_diag *d)
{
    const uint32_t rows = s->transposed ? s->k : s->n, cols = s->transposed ? s->n : s->k;
    uint8_t *plain = sherd__alloc((size_t)rows * cols + (size_t)s->k * s->m);
    sherd__trial_product(t, s);
    t->task.primes_len = 1;
    t->task.primes[0] = p;
    t->left = sherd__trial_operand(SHERD__BYTES_LEFT, 1, rows, cols, sherd__bytes_laid(rows, cols));
    t->right = sherd__trial_operand(SHERD__BYTES_RIGHT, 1, s->k, s->m,
                                    sherd__bytes_laid(s->m, s->k));
    int err = sherd__trial_result(t, SHERD__BYTES, s->n, s->m, d);
    if (!plain || err) {
        sherd__free(plain);
        return err ? err : sherd__fail_memory(d, "a self-test");
    }
    uint8_t *a = plain;
    int8_t *b = (int8_t *)plain + (size_t)rows * cols;
    for (size_t i = 0; i < (size_t)rows * cols; i++)
        a[i] = (uint8_t)(which == LARGEST  ? 255
                         : which == MIDDLE ? p / 2
                                           : sherd__entropy_below(&t->rng, 256));
    for (size_t i = 0; i < (size_t)s->k * s->m; i++)
        b[i] = (int8_t)(which == LARGEST  ? -128
                        : which == MIDDLE ? (int)(p / 2)
                                          : (int)sherd__entropy_below(&t->rng, 256) - 128);
    sherd__bytes_lay_rows(a, rows, cols, cols, sherd__trial_bytes(t->left));
    sherd__bytes_lay_columns(b, s->k, s->m, s->m, sherd__trial_bytes(t->right));
    err = sherd__trial_run(t, 1, d);
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

static void draw_numbers(accelerator_trial *t, const sherd__fragment *f)
{
    double *x = (double *)(void *)sherd__trial_bytes(f);
    const size_t n = sherd__fragment_info_of(f)->cols, m = sizeof specials / sizeof *specials;
    for (size_t i = 0; i < n; i++) {
        double v = (double)sherd__entropy_below(&t->rng, UINT64_C(1) << 53);
        x[i] = i < m ? specials[i] : ldexp(v, -(int)sherd__entropy_below(&t->rng, 60)) - 2.0;
    }
}

/* Sets *same: all bits are those of the host. */
static int test_map(accelerator_trial *t, uint32_t op, bool *same, sherd_diag *d)
{
    enum { N = 1000 };
    const bool two = op == SHERD_OP_MINUS || op == SHERD_OP_TIMES;
    t->task = (sherd__task){ .job = 1, .task = 1, .attempt = 1, .op = (uint8_t)op, .left = 1 };
    t->task.right = two ? 2 : 0;
    t->left = sherd__trial_operand(SHERD_F64, 0, 1, N, 8 * N);
    if (two) t->right = sherd__trial_operand(SHERD_F64, 0, 1, N, 8 * N);
    double *want = sherd__alloc(N * sizeof *want);
    int err = sherd__trial_result(t, SHERD_F64, 1, N, d);
    if (!err && !want) err = sherd__fail_memory(d, "a self-test");
    if (!err) draw_numbers(t, t->left);
    if (!err && two) draw_numbers(t, t->right);
    if (!err) err = sherd__trial_run(t, 1, d);
    if (!err)
        err = sherd__map_f64(op, (const double *)(const void *)sherd__trial_bytes(t->left),
                             two ? (const double *)(const void *)sherd__trial_bytes(t->right)
                                 : NULL,
                             N, want);
    *same = !err && memcmp(want, t->out, N * sizeof *want) == 0;
    sherd__free(want);
    return err;
}

static int test_maps(accelerator_trial *t, sherd_diag *d)
{
    int err = SHERD_OK;
    bool all = true, same;
    for (uint32_t op = SHERD_OP_SIGMOID; op <= SHERD_OP_EXP && !err; op++) {
        err = test_map(t, op, &same, d);
        sherd__trial_end(t);
        all &= same;
    }
    if (!all) t->lane->on->what->does &= ~(SHERD__DOES_MAPS | SHERD__DOES_PROGRAMS);
    return err;
}

int sherd__trial_products(accelerator_trial *t, accelerator_kind kind, size_t count, sherd_diag *d)
{
    int err = SHERD_OK;
    for (size_t i = 0; i < count && !err; i++) {
        const accelerator_shape *s = &shapes[i];
        const int which = i == 1 ? LARGEST : i == 3 ? MIDDLE : RANDOM;
        const int other = i == 3 ? MIDDLE : i == 1 ? RANDOM : LARGEST;
        if (kind == KIND_F64) err = test_f64(t, s, d);
        else if (kind == KIND_BYTES) err = test_bytes(t, s, sherd__byte_primes[i], which, d);
        else err = test_residues(t, s, sherd__primes_default.p[0], which, d);
        sherd__trial_end(t);
        if (!err && kind == KIND_RESIDUES)
            err = test_residues(t, s, sherd__primes_wide.p[0], other, d);
        sherd__trial_end(t);
    }
    return err;
}

int sherd__accelerator_selftest(accelerator_device *v, const sherd__backend_options *opt,
                                sherd_diag *d)
{
    sherd__seeded state;
    accelerator_trial t = { .lane = &v->lanes[0], .rng = sherd__entropy_seeded(&state, 20261127) };
    int err = SHERD_OK;
    for (unsigned kind = v->driver.f64 ? KIND_F64 : KIND_RESIDUES; kind < KINDS && !err; kind++)
        if (!opt->tested)
            err = sherd__trial_products(&t, (accelerator_kind)kind, SHERD__TRIAL_KERNELS, d);
    if (!err && v->driver.f64 && v->what->does & SHERD__DOES_MAPS) err = test_maps(&t, d);
    if (!err) err = sherd__accelerator_library_open(&t, opt, d);
    if (!err) err = sherd__accelerator_measure(&t, opt, d);
    return err;
}
