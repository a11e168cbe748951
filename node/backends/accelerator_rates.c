/*
 * What a device copies and computes in a second, with copies and without, and whether kernels or
 * the library are faster: products of both are compared at growing sizes, and the library computes
 * those from the smallest size on from which it was always faster.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"
#include "matrix/residue.h"
#include "matrix/residue_bytes.h"
#include "node/backends/accelerator_trial.h"
#include "node/check.h"
#include "sherd/mat.h"

#define FIRST 256u   /* size at which rates are measured; products of the self-test are smaller */
#define SMALLEST 64u /* sizes at which kernels and library are compared */
#define LARGEST 4096u

static uint64_t square_len(uint8_t dtype, uint32_t primes, uint32_t n)
{
    const uint64_t one = dtype == SHERD__BYTES ? sherd__bytes_laid(n, n)
                                               : n * (uint64_t)n * sherd__wire_size(dtype);
    return primes ? primes * one : one;
}

uint64_t sherd__accelerator_needs(bool f64)
{
    return 3 * square_len(f64 ? SHERD_F64 : SHERD__RESIDUES, 1, FIRST);
}

bool sherd__trial_fits(const accelerator_trial *t, uint8_t dtype, uint32_t primes, uint32_t n)
{
    const sherd__driver_device *v = &t->lane->on->driver;
    const uint64_t len = square_len(dtype, primes, n);
    return len <= v->largest && 3 * len <= v->memory;
}

static bool fits(const accelerator_trial *t, uint8_t dtype, uint32_t n)
{
    return sherd__trial_fits(t, dtype, 1, n);
}

/* Sets numbers that are residues modulo any prime that is used here. */
static void fill(const sherd__fragment *f, uint8_t dtype)
{
    const uint64_t len = sherd__fragment_info_of(f)->len;
    uint8_t *at = sherd__trial_bytes(f);
    uint32_t x = 1;
    for (uint64_t i = 0; i + 8 <= len; i += dtype == SHERD__RESIDUES ? 3 : 8) {
        x = x * 1664525 + 1013904223;
        const double v = (double)x;
        const uint64_t bytes = (x ^ (uint64_t)x << 29) & 0x7F7F7F7F7F7F7F7F;
        const uint8_t residue[] = { (uint8_t)(x >> 8), (uint8_t)(x >> 16), (uint8_t)(x >> 26) };
        if (dtype == SHERD__RESIDUES) memcpy(at + i, residue, 3);
        else if (dtype == SHERD__BYTES) memcpy(at + i, &bytes, 8);
        else memcpy(at + i, &v, 8);
    }
}

int sherd__trial_square(accelerator_trial *t, uint8_t dtype, uint8_t primes, uint32_t n,
                        sherd_diag *d)
{
    const accelerator_shape s = { n, n, n, false };
    const bool bytes = dtype == SHERD__BYTES;
    const uint64_t len = square_len(dtype, primes, n);
    sherd__trial_product(t, &s);
    t->task.primes_len = primes;
    for (uint8_t q = 0; q < primes; q++)
        t->task.primes[q] = bytes ? sherd__byte_primes[q] : sherd__primes_default.p[q];
    t->left = sherd__trial_operand(bytes ? SHERD__BYTES_LEFT : dtype, primes, n, n, len);
    t->right = sherd__trial_operand(bytes ? SHERD__BYTES_RIGHT : dtype, primes, n, n, len);
    int err = sherd__trial_result(t, dtype, n, n, d);
    if (!err && t->resident) {
        fill(t->left, dtype);
        fill(t->right, dtype);
    }
    return err;
}

static int make(accelerator_trial *t, uint8_t dtype, uint32_t n, sherd_diag *d)
{
    return sherd__trial_square(t, dtype, dtype == SHERD_F64 ? 0 : 1, n, d);
}

static double flops_of(uint32_t n)
{
    return 2.0 * n * n * n;
}

/* ---- copies ---------------------------------------------------------------------------------- */

#define COPIED                                                                                     \
    (UINT64_C(8) << 20) /* bytes: a copy of four parts does not yet overlap with others */
#define COPIES 3

/* Copies this much to the device and back, and sets *seconds to what the fastest round took. */
static int copy(accelerator_lane *l, uint8_t *here, void *there, uint64_t len, double *seconds,
                sherd_diag *d)
{
    int err = SHERD_OK;
    *seconds = INFINITY;
    for (unsigned i = 0; i < COPIES && !err; i++) {
        const double from = sherd__clock_s();
        err = sherd__lane_write(l, there, 0, here, len, d);
        if (!err) err = sherd__lane_read(l, there, 0, here, len, d);
        *seconds = fmin(*seconds, sherd__clock_s() - from);
    }
    sherd__lane_wipe(l);
    return err;
}

/* Measures copies to the device and back together. */
static int measure_copies(accelerator_lane *l, double *rate, sherd_diag *d)
{
    const sherd__driver_device *v = &l->on->driver;
    uint64_t len = COPIED;
    while (len > v->largest || len > v->memory / 2) len /= 2;
    uint8_t *here = sherd__calloc(1, len + 1);
    void *there = NULL;
    double seconds;
    if (!here) return sherd__fail_memory(d, "a self-test");
    int err = sherd__accelerator_reserve(l->on, len, d);
    if (!err) {
        err = sherd__lane_memory(l, len, &there, d);
        if (!err) err = copy(l, here, there, len, &seconds, d);
        if (!err && seconds > 0) *rate = 2 * (double)len / seconds;
        if (there) sherd__accelerator_forget(l, there, len);
        sherd__accelerator_unreserve(l->on, len);
    }
    sherd__free(here);
    return err;
}

/* ---- products -------------------------------------------------------------------------------- */

/* Rates of a kind of products. */
typedef struct rates {
    double copied, alone;
} rates;

/* Sets the rate without copies, after a product of n x n with copies. Where these took less than
 * half of its time, what they take is known well enough; otherwise the product is measured. */
static int measure_alone(accelerator_trial *t, uint8_t dtype, uint32_t n, double *alone,
                         sherd_diag *d)
{
    const double bytes = 2.0 * (double)square_len(dtype, t->task.primes_len, n) +
                         (double)t->task.result.len;
    double seconds = t->seconds - bytes / t->lane->on->what->copy_rate;
    int err = SHERD_OK;
    if (!(seconds > t->seconds / 2)) {
        t->resident = true;
        err = sherd__trial_run(t, 2, d);
        t->resident = false;
        seconds = t->seconds;
    }
    if (!err && seconds > 0) *alone = 1e-9 * flops_of(n) / seconds;
    return err;
}

/* Measures with larger and larger operands until a product takes a moment or does not fit. */
static int measure_rate(accelerator_trial *t, uint8_t dtype, bool quick, rates *r, sherd_diag *d)
{
    int err;
    bool last;
    for (uint32_t n = FIRST;; n *= 2) {
        err = make(t, dtype, n, d);
        if (!err) err = sherd__trial_run(t, 1, d);
        last = t->seconds >= (quick ? 0.005 : 0.05) || 2 * n > LARGEST || !fits(t, dtype, 2 * n);
        if (!err && t->seconds > 0) r->copied = 1e-9 * flops_of(n) / t->seconds;
        if (!err && last) err = measure_alone(t, dtype, n, &r->alone, d);
        sherd__trial_end(t);
        if (err || last) return err;
    }
}

static int measure_rates(accelerator_trial *t, bool quick, rates r[KINDS], sherd_diag *d)
{
    const bool f64 = t->lane->on->driver.f64;
    int err = f64 ? measure_rate(t, SHERD_F64, quick, &r[KIND_F64], d) : SHERD_OK;
    if (!err) err = measure_rate(t, SHERD__RESIDUES, quick, &r[KIND_RESIDUES], d);
    return err ? err : measure_rate(t, SHERD__BYTES, quick, &r[KIND_BYTES], d);
}

int sherd__accelerator_measure(accelerator_trial *t, const sherd__backend_options *opt,
                               sherd_diag *d)
{
    sherd__device *w = t->lane->on->what;
    rates r[KINDS] = { 0 };
    double *library = t->lane->on->library.rate; /* so far at the sizes of the choice */
    int err = measure_copies(t->lane, &w->copy_rate, d);
    if (!err) err = measure_rates(t, opt->quick, r, d);
    for (size_t i = 0; i < KINDS; i++) library[i] = fmax(library[i], 1e9 * r[i].copied);
    w->gflops = r[KIND_F64].copied;
    w->residue_gflops = r[KIND_RESIDUES].copied;
    w->byte_gops = r[KIND_BYTES].copied;
    w->resident_gflops = r[KIND_F64].alone;
    w->resident_residue_gflops = r[KIND_RESIDUES].alone;
    w->resident_byte_gops = r[KIND_BYTES].alone;
    return err || !opt->rates ? err : sherd__accelerator_measure_peaks(t, opt, d);
}

/* ---- kernels or the library ------------------------------------------------------------------ */

/* Measures a product of n x n by n x n by the library, or by kernels. Sets *seconds to INFINITY
 * where the library does not compute it. */
static int measure_by(accelerator_trial *t, accelerator_kind kind, bool library, double *seconds,
                      sherd_diag *d)
{
    const uint64_t before = t->lane->products;
    t->lane->on->library.from[kind] = library ? 0 : INFINITY;
    int err = sherd__trial_run(t, library ? 3 : 2, d); /* the first one loads functions */
    *seconds = library && t->lane->products == before ? INFINITY : t->seconds;
    return err;
}

int sherd__accelerator_choose(accelerator_trial *t, accelerator_kind kind, bool quick,
                              sherd_diag *d)
{
    static const uint8_t dtypes[KINDS] = { SHERD_F64, SHERD__RESIDUES, SHERD__BYTES };
    accelerator_library *l = &t->lane->on->library;
    double from = INFINITY, kernels = 0, library = 0;
    int err = SHERD_OK;
    unsigned faster = 0;
    t->resident = true; /* copies take the same time for both */
    for (uint32_t n = SMALLEST; !err && faster < 2 && n <= LARGEST && fits(t, dtypes[kind], n) &&
                                kernels < (quick ? 0.005 : 0.05);
         n *= 2) {
        err = make(t, dtypes[kind], n, d);
        if (!err) err = measure_by(t, kind, true, &library, d);
        if (!err) err = measure_by(t, kind, false, &kernels, d);
        sherd__trial_end(t);
        if (library < kernels && !faster++) from = n == SMALLEST ? 0 : flops_of(n);
        else if (library >= kernels) faster = 0, from = INFINITY;
        l->rate[kind] = flops_of(n) / library;
    }
    t->resident = false;
    l->from[kind] = err ? INFINITY : from;
    return err;
}
