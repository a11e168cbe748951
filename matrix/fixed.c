/*
 * Fixed point with one exponent per tensor. Multiplying by 2^s is exact where the result is at
 * least 2^-1022, and smaller results are rounded to 0 anyway, so rint(x * 2^s) is the only
 * rounding. The exponent is computed from the exponent of max|x| and one trial, without a search or
 * a logarithm.
 */
#include "matrix/fixed.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/diag.h"
#include "matrix/clones.h"
#include "matrix/exact.h"
#include "matrix/view.h"

#define WHOLE_MAX ((int64_t)1 << 53)

/* LINE: doubles of a line of 64 bytes. PIECE: doubles of a row that are read before the next row's
 * turn. AHEAD: bytes by which lines are prefetched before they are read. */
enum { LINE = 8, PIECE = 128, AHEAD = 2048 };

static bool whole_dtype(sherd_dtype t)
{
    return t != SHERD_F64 && t != SHERD_F32;
}

static unsigned length(uint64_t x)
{
    return x == 0 ? 0 : 64 - (unsigned)__builtin_clzll(x);
}

/* whole: the value, if it is an integer that x may have rounded. */
static int beyond(const char *name, size_t r, size_t c, const int64_t *whole, double x,
                  sherd_diag *d)
{
    char text[32];
    if (whole) snprintf(text, sizeof text, "%" PRId64, *whole);
    else snprintf(text, sizeof text, "%.17g", x);
    return sherd__fail(d, SHERD_ERANGE, "scale the data",
                       "%s: row %zu, column %zu: %s is beyond 2^53, the largest integer of exact "
                       "mode",
                       name, r, c, text);
}

/* Reports the first value in row order that is not a whole number below the limit. */
static int not_whole(sherd_view v, const char *name, sherd_diag *d)
{
    for (size_t r = 0; r < v.rows; r++)
        for (size_t c = 0; c < v.cols; c++) {
            double x = sherd__view_at(v, r, c);
            bool whole = v.dtype == SHERD_I64;
            int64_t i = whole ? sherd__view_i64(v, r, c) : 0;
            if (whole ? i > WHOLE_MAX || i < -WHOLE_MAX : fabs(x) > 0x1p53)
                return beyond(name, r, c, whole ? &i : NULL, x, d);
            if (x != rint(x))
                return sherd__fail(d, SHERD_ERANGE, "give the number of bits to round to",
                                   "%s: row %zu, column %zu: %.17g is not a whole number", name, r,
                                   c, x);
        }
    return sherd__fail(d, SHERD_ERANGE, "scale the data", "%s: holds integers beyond 2^53", name);
}

static int choose_whole(sherd_view v, const sherd__scan *scan, const char *name, sherd__fixed *out,
                        sherd_diag *d)
{
    if (!scan->integers || scan->inexact || scan->max_abs > 0x1p53) return not_whole(v, name, d);
    uint64_t largest = (uint64_t)scan->max_abs, bound = (UINT64_C(1) << length(largest)) - 1;
    *out = (sherd__fixed){ .scale = 0,
                           .bits = 1 + length(bound),
                           .integers = true,
                           .bound = bound,
                           .largest = largest,
                           .max_abs = scan->max_abs };
    return SHERD_OK;
}

static int check_bits(unsigned bits, sherd_diag *d)
{
    if (bits >= SHERD__FIXED_BITS_MIN && bits <= SHERD__FIXED_BITS_MAX) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "17 is the default", "%u bits: expected %u to %u", bits,
                       SHERD__FIXED_BITS_MIN, SHERD__FIXED_BITS_MAX);
}

int sherd__fixed_of_scan(sherd_view v, const sherd__scan *scan, unsigned bits, const char *name,
                         sherd__fixed *out, sherd_diag *d)
{
    bool whole = bits == 0 || whole_dtype(v.dtype);
    int err = whole ? SHERD_OK : check_bits(bits, d);
    if (err) return err;
    if (scan->nonfinite != 0)
        return sherd__fail(d, SHERD_ERANGE, "clean the data",
                           "%s: row %zu, column %zu is %s: fixed point has no such value", name,
                           scan->bad_row, scan->bad_col,
                           isnan(scan->bad_value)  ? "NaN"
                           : scan->bad_value < 0.0 ? "-infinity"
                                                   : "infinity");
    if (whole) return choose_whole(v, scan, name, out, d);
    sherd__fixed_of_peak(scan->max_abs, bits, out);
    return SHERD_OK;
}

int sherd__fixed_choose(sherd_view v, unsigned bits, const char *name, sherd__fixed *out,
                        sherd_diag *d)
{
    sherd__scan scan;
    double max_abs = 0.0;
    bool whole = bits == 0 || whole_dtype(v.dtype);
    int err = sherd__view_check(v, name, d);
    if (!err && !whole) err = check_bits(bits, d);
    if (err) return err;
    if (!whole && sherd__view_peak(v, &max_abs)) {
        sherd__fixed_of_peak(max_abs, bits, out);
        return SHERD_OK;
    }
    sherd__view_scan(v, &scan);
    return sherd__fixed_of_scan(v, &scan, bits, name, out, d);
}

void sherd__fixed_of_peak(double max_abs, unsigned bits, sherd__fixed *out)
{
    int top = (int)bits - 1, exponent;
    uint64_t bound = (UINT64_C(1) << top) - 1;
    sherd__fixed f = { .bits = bits, .bound = bound, .max_abs = max_abs };
    if (max_abs > 0.0) {
        (void)frexp(max_abs, &exponent); /* max|x| in [2^(e-1), 2^e) */
        f.scale = top - exponent < top ? top - exponent : top;
        if (rint(ldexp(max_abs, f.scale)) > (double)bound) f.scale--;
        f.largest = (uint64_t)rint(ldexp(max_abs, f.scale));
    }
    *out = f;
}

int sherd__fixed_hold(const sherd__fixed *f, sherd_view v, unsigned bits, const char *name,
                      sherd_diag *d)
{
    uint64_t limit = (UINT64_C(1) << (bits - 1)) - 1;
    if (!f->integers || f->largest <= limit) return SHERD_OK;
    for (size_t r = 0; r < v.rows; r++)
        for (size_t c = 0; c < v.cols; c++) {
            double x = sherd__view_at(v, r, c);
            if (fabs(x) > (double)limit)
                return sherd__fail(d, SHERD_ERANGE,
                                   "give more bits, or none: integers are then used unchanged",
                                   "%s: row %zu, column %zu: %.17g is beyond %llu, the largest "
                                   "that %u bits hold, and integers are not rounded",
                                   name, r, c, x, (unsigned long long)limit, bits);
        }
    return SHERD_ERANGE; /* not reached if f was chosen for v */
}

SHERD__CLONES_FMA
static void quantise(const double *x, size_t n, double factor, double *out)
{
    for (size_t i = 0; i < n; i++) out[i] = rint(x[i] * factor) + 0.0;
}

void sherd__fixed_apply(const sherd__fixed *f, double *x, size_t n)
{
    quantise(x, n, ldexp(1.0, f->scale), x);
}

void sherd__fixed_row(const sherd__fixed *f, sherd_view v, size_t r, size_t c0, size_t n,
                      double *out)
{
    size_t ld;
    const double *own = sherd__view_borrow_f64(v, &ld);
    if (own) {
        quantise(own + r * ld + c0, n, ldexp(1.0, f->scale), out);
        return;
    }
    sherd__view_row_f64(v, r, c0, n, out);
    sherd__fixed_apply(f, out, n);
}

/* Like quantise, where results stay below 2^51: adding 1.5*2^52 removes fractions and leaves no
 * negative zero. A product with a power of two is exact, or so small that it becomes zero.
 * Addresses AHEAD may be beyond the operand: a prefetch does not access them. */
SHERD__CLONES_WHOLE
static void quantise_near(const double *restrict x, size_t n, double factor, double *restrict out)
{
    const double whole = 0x1.8p52;
    size_t i = 0;
    for (; i + LINE <= n; i += LINE) {
        __builtin_prefetch((const void *)((uintptr_t)(x + i) + AHEAD));
        for (size_t j = i; j < i + LINE; j++) out[j] = x[j] * factor + whole - whole;
    }
    for (; i < n; i++) out[i] = x[i] * factor + whole - whole;
}

void sherd__fixed_turns(const sherd__fixed *f, sherd_view v, const size_t *row, size_t count,
                        size_t c0, size_t n, double *const *out)
{
    assert(c0 <= v.cols && n <= v.cols - c0);
    const double factor = ldexp(1.0, f->scale);
    size_t ld, piece = count > 1 ? PIECE : n;
    const double *own = sherd__view_borrow_f64(v, &ld);
    if (!own || f->bound > UINT64_C(1) << 50) {
        for (size_t j = 0; j < count; j++) sherd__fixed_row(f, v, row[j], c0, n, out[j]);
        return;
    }
    for (size_t c = 0; c < n; c += piece)
        for (size_t j = 0; j < count; j++)
            quantise_near(own + row[j] * ld + c0 + c, n - c < piece ? n - c : piece, factor,
                          out[j] + c);
}

void sherd__fixed_gather(const sherd__fixed *f, sherd_view v, size_t r, const uint32_t *cols,
                         size_t n, double *out)
{
    sherd__view_gather_f64(v, r, cols, n, out);
    sherd__fixed_apply(f, out, n);
}

void sherd__fixed_dense(const sherd__fixed *f, sherd_view v, double *out, size_t ld)
{
    double factor = ldexp(1.0, f->scale);
    size_t own_ld;
    const double *own = sherd__view_borrow_f64(v, &own_ld);
    if (own && own_ld == v.cols && ld == v.cols) {
        quantise(own, v.rows * v.cols, factor, out);
        return;
    }
    if (own) {
        for (size_t r = 0; r < v.rows; r++)
            quantise(own + r * own_ld, v.cols, factor, out + r * ld);
        return;
    }
    sherd__view_dense_f64(v, out, ld);
    if (ld == v.cols) sherd__fixed_apply(f, out, v.rows * v.cols);
    else
        for (size_t r = 0; r < v.rows; r++) sherd__fixed_apply(f, out + r * ld, v.cols);
}

/* SplitMix64 of a counter (Steele, Lea, Flood 2014): it has no state, so order does not matter. */
static uint64_t mix(uint64_t key, uint64_t index)
{
    uint64_t z = key + index * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void sherd__fixed_apply_stochastic(const sherd__fixed *f, uint64_t key, uint64_t index, double *x,
                                   size_t n)
{
    double factor = ldexp(1.0, f->scale), bound = (double)f->bound;
    for (size_t i = 0; i < n; i++) {
        double y = x[i] * factor, low = floor(y);
        double toss = (double)(mix(key, index + i) >> 11) * 0x1p-53;
        double z = low + (toss < y - low ? 1.0 : 0.0);
        x[i] = (z > bound ? bound : z < -bound ? -bound : z) + 0.0;
    }
}

/* factor: 2^scale. NaN counts as zero here and has no error. */
SHERD__CLONES_FMA
static void measure_chunk(const double *x, size_t n, double factor, double back,
                          sherd__fixed_loss *out)
{
    uint64_t nonzeros = 0, vanished = 0;
    double max_error = out->max_error, max_abs = out->max_abs;
    for (size_t i = 0; i < n; i++) {
        double a = rint(x[i] * factor) * back, error = fabs(x[i] - a), size = fabs(x[i]);
        nonzeros += size > 0;
        vanished += (size > 0) & (a == 0);
        max_error = error > max_error ? error : max_error;
        max_abs = size > max_abs ? size : max_abs;
    }
    out->nonzeros += nonzeros;
    out->vanished += vanished;
    out->max_error = max_error;
    out->max_abs = max_abs;
}

void sherd__fixed_measure(sherd_view v, int scale, sherd__fixed_loss *out)
{
    double x[512], factor = ldexp(1.0, scale), back = ldexp(1.0, -scale);
    *out = (sherd__fixed_loss){ .nonzeros = 0 };
    if (whole_dtype(v.dtype)) return;
    for (size_t r = 0; r < v.rows; r++)
        for (size_t c = 0; c < v.cols; c += sizeof x / sizeof *x) {
            size_t n = v.cols - c < sizeof x / sizeof *x ? v.cols - c : sizeof x / sizeof *x;
            sherd__view_row_f64(v, r, c, n, x);
            measure_chunk(x, n, factor, back, out);
        }
}

void sherd__fixed_unscale(const sherd__fixed *a, const sherd__fixed *b, double *c, size_t n)
{
    sherd__exact_unscale(c, n, a->scale + b->scale);
}

double sherd__fixed_product_bound(const sherd__fixed *a, const sherd__fixed *b, size_t k)
{
    double ea = a->integers ? 0.0 : ldexp(0.5, -a->scale);
    double eb = b->integers ? 0.0 : ldexp(0.5, -b->scale);
    double x = a->max_abs, y = b->max_abs, kd = (double)k, u = 0x1p-53;
    double gamma = kd * u / (1.0 - kd * u);
    double sum = kd * (ea * y + eb * x + ea * eb) + u * kd * (x + ea) * (y + eb) +
                 gamma * kd * x * y;
    return sum * (1.0 + 0x1p-40); /* the rounding errors of this sum */
}
