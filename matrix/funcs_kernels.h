/*
 * The arithmetic of matrix/funcs.c, one element at a time, branch-free and always inlined:
 * funcs.c compiles it once per instruction set. Every operation is one IEEE operation in the
 * order written (-ffp-contract=off; fma only by name), so all copies give the same bits.
 * Selections are by comparisons that are false for NaN. Devices compile the same source
 * (core/kernel.h). Each function ends by replacing NaN with one quiet NaN, since the payload
 * that an addition keeps depends on the instruction.
 *
 * exp: x = n*ln2 + r, |r| <= ln2/2 (Cody and Waite, two parts), Taylor to r^13 (truncation under
 * 2^-57 relative), scaled by 2^n in two steps so that results below 2^-1022 are rounded once.
 * tanh and sigmoid carry the exponential as an unevaluated sum of two doubles through one
 * corrected division. log: the series of Tang and fdlibm in s = f/(2+f) (e_log.c, Sun
 * Microsystems 1993).
 */
#ifndef MATRIX_FUNCS_KERNELS_H
#define MATRIX_FUNCS_KERNELS_H

#ifndef SHERD__DEVICE
#include "core/kernel.h"
#include "core/pick.h"
#endif

#if SHERD__F64

#define SHERD__KERNEL SHERD__FUNCTION

SHERD__KERNEL double k_from_bits(uint64_t bits)
{
    return sherd__kernel_double(bits);
}

SHERD__KERNEL uint64_t k_bits(double x)
{
    return sherd__kernel_bits(x);
}

/* Returns c ? a : b by masks: the compiler may turn a conditional expression into a branch, which
 * prevents vectorisation. Devices have an instruction for it. */
SHERD__KERNEL double k_pick(int c, double a, double b)
{
#ifdef SHERD__DEVICE
    return c ? a : b;
#else
    return sherd__pick_f64(c != 0, a, b);
#endif
}

#define K_NAN k_from_bits(UINT64_C(0x7ff8000000000000))

SHERD__KERNEL double k_quiet(double y)
{
    return k_pick(y == y, y, K_NAN);
}

/* Returns 2^n for whole n in [-1022, 1023]: the low bits of n + 1.5*2^52 + bias, moved to the
 * exponent. */
SHERD__KERNEL double k_power(double n)
{
    return k_from_bits(k_bits(n + (0x1.8p52 + 1023.0)) << 52);
}

SHERD__KERNEL double k_round(double x)
{
    return (x + 0x1.8p52) - 0x1.8p52;
}

/* exp(x) = 2^n * (1 + hi + lo), |hi| < 0.42, for |x| < 2^10. */
typedef struct k_expo {
    double n, hi, lo;
} k_expo;

SHERD__KERNEL k_expo k_reduce_exp(double x)
{
    const double log2e = 0x1.71547652b82fep0;
    const double ln2_hi = 0x1.62e42fefa39efp-1, ln2_lo = 0x1.abc9e3b39803fp-56;
    k_expo e;
    e.n = k_round(x * log2e);
    /* hi part: n has 11 bits and the product is fused, so its rounding is below 2^-54. */
    double a = fma(-e.n, ln2_hi, x);
    double b = -e.n * ln2_lo;
    double r = a + b, tail = (a - r) + b;
    double q = 1.0 / 6227020800.0;
    q = fma(q, r, 1.0 / 479001600.0);
    q = fma(q, r, 1.0 / 39916800.0);
    q = fma(q, r, 1.0 / 3628800.0);
    q = fma(q, r, 1.0 / 362880.0);
    q = fma(q, r, 1.0 / 40320.0);
    q = fma(q, r, 1.0 / 5040.0);
    q = fma(q, r, 1.0 / 720.0);
    q = fma(q, r, 1.0 / 120.0);
    q = fma(q, r, 1.0 / 24.0);
    q = fma(q, r, 1.0 / 6.0);
    q = fma(q, r, 0.5);
    double s = r * r * q;
    e.hi = r + s;
    e.lo = (r - e.hi) + s + tail * (1.0 + r);
    return e;
}

SHERD__KERNEL double k_exp(double x)
{
    /* Beyond these limits the result is 0 or infinity. Both comparisons are false for NaN. */
    double y = k_pick(x > 710.0, 710.0, x);
    y = k_pick(y < -746.0, -746.0, y);
    k_expo e = k_reduce_exp(y);
    double part = k_round(e.n * 0.5);
    double mh = 1.0 + e.hi;
    double m = mh + (((1.0 - mh) + e.hi) + e.lo);
    return k_quiet(m * k_power(part) * k_power(e.n - part));
}

/* Returns (nh + nl) / (dh + dl), corrected once; nl and dl are the rounding errors of nh and dh. */
SHERD__KERNEL double k_divide(double nh, double nl, double dh, double dl)
{
    double q = nh / dh;
    double rest = fma(-q, dh, nh);
    return q + (rest + (nl - q * dl)) / dh;
}

/* tanh|x| = E/(E+2), E = exp(2|x|) - 1 as two doubles; odd, and 1 from 20 on. */
SHERD__KERNEL double k_tanh(double x)
{
    double a = fabs(x);
    a = k_pick(a > 20.0, 20.0, a);
    k_expo e = k_reduce_exp(2.0 * a);
    double scale = k_power(e.n), base = scale - 1.0;
    double hi = scale * e.hi, lo = scale * e.lo;
    /* |base| >= |hi| unless base = 0: a sum of two with its exact error. */
    double eh = base + hi;
    double el = k_pick(base == 0.0, 0.0, (base - eh) + hi) + lo;
    double dh = 2.0 + eh;
    int above = eh > 2.0;
    double big = k_pick(above, eh, 2.0), small = k_pick(above, 2.0, eh);
    double dl = ((big - dh) + small) + el;
    double y = k_divide(eh, el, dh, dl);
    return k_quiet(copysign(y, x));
}

/* t = exp(-|x|): 1/(1+t) for x >= 0, t/(1+t) for x < 0, where the scaling by 2^n comes last. */
SHERD__KERNEL double k_sigmoid(double x)
{
    double a = fabs(x);
    a = k_pick(a > 746.0, 746.0, a);
    k_expo e = k_reduce_exp(-a);
    double mh = 1.0 + e.hi, ml = (1.0 - mh) + e.hi + e.lo;
    double scale = k_power(k_pick(e.n < -1000.0, -1000.0, e.n));
    double th = scale * mh, tl = scale * ml;
    double dh = 1.0 + th, dl = ((1.0 - dh) + th) + tl;
    int left = x < 0.0;
    double y = k_divide(k_pick(left, mh, 1.0), k_pick(left, ml, 0.0), dh, dl);
    double n = k_pick(left, e.n, 0.0), part = k_round(n * 0.5);
    y = y * k_power(part) * k_power(n - part);
    return k_quiet(k_pick(x == x, y, x));
}

SHERD__KERNEL double k_log(double x)
{
    const double ln2_hi = 0x1.62e42feep-1, ln2_lo = 0x1.a39ef35793c76p-33;
    /* Denormals are scaled up by 2^54. */
    int tiny = x < 0x1p-1022;
    double up = k_pick(tiny, x * 0x1p54, x), k0 = k_pick(tiny, -54.0, 0.0);
    uint64_t bits = k_bits(up);
    /* Mantissas are in [sqrt(1/2), sqrt 2): the exponent is counted from that of sqrt(1/2). */
    uint64_t t = bits - UINT64_C(0x3fe6a09e667f3bcd);
    /* Converts the exponent to a double without an instruction that only AVX-512 has: 2^52 + n, n
     * biased. */
    double k = (k_from_bits((((t >> 52) + 1024) & 0xfff) | UINT64_C(0x4330000000000000)) - 0x1p52);
    k = k_pick(k >= 3072.0, k - 4096.0, k);
    k = (k - 1024.0);
    double m = k_from_bits(bits - (t & UINT64_C(0xfff0000000000000)));
    double f = m - 1.0, s = f / (2.0 + f), z = s * s, w = z * z;
    double t1 = w * fma(w, fma(w, 1.531383769920937332e-01, 2.222219843214978396e-01),
                        3.999999999940941908e-01);
    double t2 = z * fma(w,
                        fma(w, fma(w, 1.479819860511658591e-01, 1.818357216161805012e-01),
                            2.857142874366239149e-01),
                        6.666666666666735130e-01);
    double r = t1 + t2, square = 0.5 * f * f;
    k += k0;
    double y = k * ln2_hi - ((square - (s * (square + r) + k * ln2_lo)) - f);
    y = k_pick(x > 0.0, y, k_pick(x == 0.0, -HUGE_VAL, K_NAN));
    y = k_pick(x == HUGE_VAL, x, y);
    return k_quiet(y);
}

SHERD__KERNEL double k_relu(double x)
{
    return k_quiet(k_pick(x <= 0.0, 0.0, x));
}

/* ---- for float: in double, with enough terms that only ties can be rounded wrongly ----------- */

/* exp(x) = 2^n (1 + hi) for |x| < 2^9: Taylor to r^10, truncation under 2^-41. */
SHERD__KERNEL k_expo k_reduce_exp_short(double x)
{
    const double log2e = 0x1.71547652b82fep0, ln2 = 0x1.62e42fefa39efp-1;
    k_expo e = { 0 };
    e.n = k_round(x * log2e);
    double r = fma(-e.n, ln2, x), q = 1.0 / 3628800.0;
    q = fma(q, r, 1.0 / 362880.0);
    q = fma(q, r, 1.0 / 40320.0);
    q = fma(q, r, 1.0 / 5040.0);
    q = fma(q, r, 1.0 / 720.0);
    q = fma(q, r, 1.0 / 120.0);
    q = fma(q, r, 1.0 / 24.0);
    q = fma(q, r, 1.0 / 6.0);
    q = fma(q, r, 0.5);
    e.hi = fma(r * r, q, r);
    return e;
}

/* Beyond 200 the float result is 0, 1 or infinite anyway. All comparisons are false for NaN. */
SHERD__KERNEL float k_exp32(float v)
{
    double x = (double)v, y = k_pick(x > 200.0, 200.0, x);
    k_expo e = k_reduce_exp_short(k_pick(y < -200.0, -200.0, y));
    return (float)k_quiet((1.0 + e.hi) * k_power(e.n));
}

SHERD__KERNEL float k_tanh32(float v)
{
    double x = (double)v, a = fabs(x);
    k_expo e = k_reduce_exp_short(2.0 * k_pick(a > 20.0, 20.0, a));
    double scale = k_power(e.n), over = fma(scale, e.hi, scale - 1.0);
    return (float)k_quiet(copysign(over / (over + 2.0), x));
}

SHERD__KERNEL float k_sigmoid32(float v)
{
    double x = (double)v, a = fabs(x);
    k_expo e = k_reduce_exp_short(-k_pick(a > 200.0, 200.0, a));
    double t = (1.0 + e.hi) * k_power(e.n);
    double y = k_pick(x < 0.0, t, 1.0) / (1.0 + t);
    return (float)k_quiet(k_pick(x == x, y, x));
}

SHERD__KERNEL float k_relu32(float v)
{
    double x = (double)v;
    return (float)k_quiet(k_pick(x <= 0.0, 0.0, x));
}

SHERD__KERNEL double k_square(double x)
{
    return k_quiet(x * x);
}

SHERD__KERNEL double k_minus(double a, double b)
{
    return k_quiet(a - b);
}

SHERD__KERNEL double k_times(double a, double b)
{
    return k_quiet(a * b);
}

#endif /* SHERD__F64 */

#endif
