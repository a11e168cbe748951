/*
 * An exact product is one product in float64 where its sums stay below 2^53, as in almost all
 * training; otherwise one modulo each of several primes, and the residues are recombined here. This
 * is what matrix/reference.c does on the host.
 */
#include "node/products.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bytes.h"
#include "core/diag.h"
#include "core/wipe.h"
#include "crypto/fragment_make.h"
#include "matrix/exact.h"
#include "matrix/fixed.h"
#include "matrix/view.h"
#include "node/programs.h"

typedef struct products {
    sherd__products of;
    sherd_multiplier_ops ops; /* of this multiplier */
    sherd_multiplier here;
    sherd__executor *executor;
    unsigned bits;
    bool own;
} products;

/* ---- operands -------------------------------------------------------------------------------- */

/* Memory for n numbers; NULL on overflow too. */
static void *numbers(size_t rows, size_t cols, size_t each)
{
    size_t len;
    return sherd__mul(rows, cols, &len) && sherd__mul(len, each, &len) ? sherd__alloc(len) : NULL;
}

static void forget(const products *p, void *x, size_t bytes)
{
    if (x && p->own) sherd__wipe(x, bytes);
    sherd__free(x);
}

/* A matrix as a device gets it. */
typedef struct operand {
    sherd__fragment *fragment;
    double *copy; /* NULL: the caller's memory */
    size_t rows, cols;
    const sherd__fixed *fixed; /* NULL: floats */
} operand;

static void keep(void *ctx, uint8_t *bytes, uint64_t len)
{
    (void)ctx, (void)bytes, (void)len;
}

static void operand_free(const products *p, operand *o)
{
    sherd__fragment_free(o->fragment);
    forget(p, o->copy, o->rows * o->cols * sizeof *o->copy);
}

/* Turns whole numbers into int64, in place. */
static void to_integers(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t whole = (int64_t)x[i];
        memcpy(&x[i], &whole, sizeof whole);
    }
}

/* Prepares v: as it is (f NULL), as whole numbers in float64, or as integers. */
static int operand_new(operand *o, sherd_view v, const sherd__fixed *f, bool integers)
{
    size_t ld;
    const double *bytes = f ? NULL : sherd__view_borrow_f64(v, &ld);
    *o = (operand){ .rows = v.rows, .cols = v.cols, .fixed = f };
    if (!bytes || ld != v.cols) {
        if (!(o->copy = numbers(v.rows, v.cols, sizeof *o->copy))) return SHERD_ENOMEM;
        if (f) sherd__fixed_dense(f, v, o->copy, v.cols);
        else sherd__view_dense_f64(v, o->copy, v.cols);
        if (integers) to_integers(o->copy, v.rows * v.cols);
        bytes = o->copy;
    }
    const sherd__fragment_info info = { .origin = SHERD__HIDDEN,
                                        .dtype = integers ? SHERD_I64 : SHERD_F64,
                                        .rows = v.rows,
                                        .cols = v.cols,
                                        .len = v.rows * v.cols * sizeof(double) };
    return sherd__fragment_take(&o->fragment, &info, (uint8_t *)(uintptr_t)bytes, keep, NULL);
}

/* ---- products -------------------------------------------------------------------------------- */

static int run(const products *p, sherd__task *t, const operand *a, const operand *b, void *out,
               sherd_diag *d)
{
    const sherd__device_run r = { .task = t,
                                  .left = a->fragment,
                                  .right = b->fragment,
                                  .owner = p->of.owner,
                                  .steady = p->own,
                                  .out = out,
                                  .executor = p->executor };
    t->op = SHERD__OP_MULTIPLY;
    t->result.origin = SHERD__RESULT;
    t->result.rows = a->rows;
    t->result.cols = b->cols;
    return sherd__devices_run(p->of.devices, &r, d);
}

/* Computes c = a * b in float64 on a device; in fixed point exactly, and scaled back. */
static int plain(const products *p, const operand *a, const operand *b, double *c, size_t ldc,
                 sherd_diag *d)
{
    size_t n = a->rows, m = b->cols;
    sherd__task t = { .result = { .dtype = SHERD_F64, .len = n * m * sizeof *c } };
    double *out = ldc == m ? c : numbers(n, m, sizeof *out);
    int err = out ? run(p, &t, a, b, out, d) : SHERD_ENOMEM;
    if (!err && a->fixed) sherd__fixed_unscale(a->fixed, b->fixed, out, n * m);
    for (size_t i = 0; i < n && !err && out != c; i++)
        memcpy(c + i * ldc, out + i * m, m * sizeof *c);
    if (out != c) forget(p, out, n * m * sizeof *out);
    return err;
}

/* Recombines residues of a * b, one matrix for each prime after the other, and scales back. */
static int recombine(const sherd__crt *crt, const uint8_t *residues, const operand *a,
                     const operand *b, double *c, size_t ldc)
{
    const size_t n = a->rows, m = b->cols;
    const int shift = a->fixed->scale + b->fixed->scale;
    const double *part[SHERD__TABLE_PRIMES];
    double *row = numbers(crt->count, m, sizeof *row);
    int err = row ? SHERD_OK : SHERD_ENOMEM;
    for (size_t i = 0; i < n && !err; i++) {
        for (size_t q = 0; q < crt->count && !err; q++) {
            part[q] = row + q * m;
            err = sherd__residue_unpack(residues + SHERD__RESIDUE_BYTES * ((q * n + i) * m), m,
                                        crt->p[q], row + q * m, NULL);
        }
        if (!err) sherd__crt_f64(crt, part, m, shift, c + i * ldc);
    }
    if (row) sherd__wipe(row, crt->count * m * sizeof *row);
    sherd__free(row);
    return err == SHERD_EFRAME ? SHERD_EDEVICE : err; /* no residue: the device is wrong */
}

/* Computes c = a * b by residues; a and b are integers. */
static int modular(const products *p, const operand *a, const operand *b, double *c, size_t ldc,
                   sherd_diag *d)
{
    size_t n = a->rows, m = b->cols, primes;
    sherd__crt crt;
    int err = sherd__exact_primes_needed(a->cols, a->fixed->largest, b->fixed->largest,
                                         &sherd__primes_default, &primes);
    if (!err) err = sherd__crt_init(&crt, sherd__primes_default.p, primes);
    if (err) return err;
    uint8_t *out = numbers(n, m, primes * SHERD__RESIDUE_BYTES);
    if (!out) return SHERD_ENOMEM;
    sherd__task t = { .primes_len = (uint32_t)primes,
                      .result = { .dtype = SHERD__RESIDUES,
                                  .primes = (uint8_t)primes,
                                  .len = n * m * primes * SHERD__RESIDUE_BYTES } };
    memcpy(t.primes, crt.p, primes * sizeof *crt.p);
    err = run(p, &t, a, b, out, d);
    if (!err) err = recombine(&crt, out, a, b, c, ldc);
    forget(p, out, t.result.len);
    return err;
}

static int on_device(const products *p, sherd_view a, sherd_view b, double *c, size_t ldc,
                     sherd_diag *d)
{
    sherd__fixed fa, fb, *of_a = p->bits ? &fa : NULL, *of_b = p->bits ? &fb : NULL;
    operand left = { 0 }, right = { 0 };
    int err = of_a ? sherd__fixed_choose(a, p->bits, "A", of_a, d) : SHERD_OK;
    if (!err && of_b) err = sherd__fixed_choose(b, p->bits, "B", of_b, d);
    if (err) return err;
    bool integers = of_a && !sherd__exact_in_f64(a.cols, fa.largest, fb.largest);
    err = operand_new(&left, a, of_a, integers);
    if (!err) err = operand_new(&right, b, of_b, integers);
    if (!err) err = (integers ? modular : plain)(p, &left, &right, c, ldc, d);
    operand_free(p, &left);
    operand_free(p, &right);
    return err;
}

static int multiply(void *ctx, sherd_view a, sherd_view b, double *c, size_t ldc, sherd_diag *d)
{
    const products *p = ctx;
    sherd_diag mine = { 0 };
    bool empty = a.rows == 0 || a.cols == 0 || b.cols == 0;
    int err = empty ? SHERD_EUNSUPPORTED : on_device(p, a, b, c, ldc, &mine);
    if (!err) return SHERD_OK;
    bool lost = err == SHERD_EDEVICE && sherd__devices_lost(p->of.devices);
    if ((lost || p->own) && !empty)
        return sherd__fail(d, SHERD_EDEVICE, NULL, "%s",
                           mine.message[0] ? mine.message : sherd_strerror(err));
    return p->here.ops->multiply(p->here.ctx, a, b, c, ldc, d);
}

/* ---- the multiplier -------------------------------------------------------------------------- */

/* Passes keep no operands and compute element-wise functions themselves: the host does both. */

static int here_keep(void *ctx, sherd_view a, const sherd_keep_options *how, sherd_kept **kept,
                     sherd_diag *d)
{
    const products *p = ctx;
    return p->here.ops->keep(p->here.ctx, a, how, kept, d);
}

static int here_multiply_kept(void *ctx, sherd_kept *a, sherd_rows rows, bool transposed,
                              sherd_view b, double *c, size_t ldc, sherd_diag *d)
{
    const products *p = ctx;
    return p->here.ops->multiply_kept(p->here.ctx, a, rows, transposed, b, c, ldc, d);
}

static void here_release(void *ctx, sherd_kept *kept)
{
    const products *p = ctx;
    p->here.ops->release(p->here.ctx, kept);
}

static int here_map(void *ctx, sherd_op op, sherd_view a, sherd_view b, double *out, size_t ld,
                    sherd_diag *d)
{
    const products *p = ctx;
    return p->here.ops->map(p->here.ctx, op, a, b, out, ld, d);
}

static void products_free(void *ctx)
{
    products *p = ctx;
    if (!p) return;
    sherd_multiplier_free(p->here);
    sherd__executor_free(p->executor);
    sherd__free(p);
}

/* Makes a multiplier over devices, or where the backend computes in the host's memory, its own. */
static int make(const sherd__products *of, bool own, unsigned bits, sherd_multiplier *out,
                sherd_diag *d)
{
    const sherd__backend *b = of->devices->backend;
    *out = (sherd_multiplier){ 0 };
    assert(b->multiplier || b->wait);
    if (b->multiplier) return b->multiplier(of->devices->ctx, bits, out, d);
    products *p = sherd__calloc(1, sizeof *p);
    int err = p ? sherd_multiplier_local(&p->here, bits, d) : SHERD_ENOMEM;
    if (!err) err = sherd__executor_new_inline(&p->executor);
    if (err) {
        products_free(p);
        return err == SHERD_ENOMEM ? sherd__fail_memory(d, "a multiplier") : err;
    }
    p->of = *of;
    p->bits = bits;
    p->own = own;
    p->ops = *p->here.ops; /* kept_shape, which has no ctx */
    p->ops.name = "devices";
    p->ops.multiply = multiply;
    p->ops.keep = here_keep;
    p->ops.multiply_kept = here_multiply_kept;
    p->ops.release = here_release;
    p->ops.map = here_map;
    p->ops.free = products_free;
    *out = (sherd_multiplier){ &p->ops, p };
    return SHERD_OK;
}

static int make_any(void *ctx, unsigned bits, sherd_multiplier *out, sherd_diag *d)
{
    return make(ctx, false, bits, out, d);
}

static int make_own(void *ctx, unsigned bits, sherd_multiplier *out, sherd_diag *d)
{
    return make(ctx, true, bits, out, d);
}

static int make_programs(void *ctx, unsigned bits, sherd__elsewhere *out, sherd_diag *d)
{
    const sherd__products *p = ctx;
    return sherd__programs_new(out, p->devices, bits, d);
}

sherd__arithmetic sherd__products_arithmetic(sherd__products *p)
{
    return (sherd__arithmetic){ .multiplier = make_any, .elsewhere = make_programs, .ctx = p };
}

sherd__arithmetic sherd__products_own(sherd__products *p)
{
    return (sherd__arithmetic){ .multiplier = make_own, .ctx = p };
}
