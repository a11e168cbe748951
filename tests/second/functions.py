"""
Operations 16 to 22 as docs/FUNCTIONS.md writes them, every bit, on arrays of float64. numpy has no
fma: it is made of error-free sums and products, whose last sum is rounded to odd (Boldo and
Melquiond), and of fractions where numbers are so small that these would not be error-free.
"""
import math
import struct
from fractions import Fraction

import numpy as np

NAN = np.array([0x7FF8000000000000], np.uint64).view(np.float64)[0]
SHIFT = float.fromhex("0x1.8p52")
LOG2E = float.fromhex("0x1.71547652b82fep0")
LN2_HIGH = float.fromhex("0x1.62e42fefa39efp-1")
LN2_LOW = float.fromhex("0x1.abc9e3b39803fp-56")
# 1/13! to 1/2!
TERMS = [float.fromhex(x) for x in (
    "0x1.6124613a86d09p-33", "0x1.1eed8eff8d898p-29", "0x1.ae64567f544e4p-26",
    "0x1.27e4fb7789f5cp-22", "0x1.71de3a556c734p-19", "0x1.a01a01a01a01ap-16",
    "0x1.a01a01a01a01ap-13", "0x1.6c16c16c16c17p-10", "0x1.1111111111111p-7",
    "0x1.5555555555555p-5", "0x1.5555555555555p-3", "0x1p-1")]


def fma_one(a, b, c):
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return float(exact)
    return a * b + c if c == 0 else 0.0


def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a, b):
    def halves(x):
        t = x * 134217729.0
        high = t - (t - x)
        return high, x - high
    p = a * b
    (ah, al), (bh, bl) = halves(a), halves(b)
    return p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)


def fma(a, b, c):
    a, b, c = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, c)))
    p, low = two_product(a, b)
    t, rest = two_sum(c, low)
    high, more = two_sum(p, t)
    s, error = two_sum(rest, more)
    even = (s.view(np.uint64) & np.uint64(1)) == 0
    odd = np.where((error != 0) & even, np.nextafter(s, np.copysign(np.inf, error)), s)
    out = high + odd
    size = np.abs(p)
    small = ~((size > 1e-240) & (size < 1e240) & (np.abs(c) < 1e240)) & (a != 0) & (b != 0)
    small |= (c != 0) & (np.abs(c) < 1e-240)
    for at in zip(*np.nonzero(small)):
        out[at] = fma_one(float(a[at]), float(b[at]), float(c[at]))
    return out


def rounded(x):
    return (x + SHIFT) - SHIFT


def pow2(n):
    return np.ldexp(1.0, n.astype(int))


def quiet(y):
    return np.where(y == y, y, NAN)


def pick(condition, a, b):
    return np.where(condition, a, b)


def reduce(x):
    n = rounded(x * LOG2E)
    a = fma(-n, LN2_HIGH, x)
    b = (-n) * LN2_LOW
    r = a + b
    tail = (a - r) + b
    q = TERMS[0]
    for term in TERMS[1:]:
        q = fma(q, r, term)
    s = (r * r) * q
    hi = r + s
    return n, hi, ((r - hi) + s) + tail * (1 + r)


def reduce32(x):
    n = rounded(x * LOG2E)
    r = fma(-n, LN2_HIGH, x)
    q = TERMS[3]
    for term in TERMS[4:]:
        q = fma(q, r, term)
    return n, fma(r * r, q, r)


def divide(nh, nl, dh, dl):
    q = nh / dh
    rest = fma(-q, dh, nh)
    return q + (rest + (nl - q * dl)) / dh


def sigmoid(x):
    a = pick(np.abs(x) > 746, 746.0, np.abs(x))
    n, hi, lo = reduce(-a)
    mh = 1 + hi
    ml = ((1 - mh) + hi) + lo
    scale = pow2(pick(n < -1000, -1000, n))
    th, tl = scale * mh, scale * ml
    dh = 1 + th
    dl = ((1 - dh) + th) + tl
    y = divide(pick(x < 0, mh, 1.0), pick(x < 0, ml, 0.0), dh, dl)
    m = pick(x < 0, n, 0.0)
    half = rounded(m * 0.5)
    return (y * pow2(half)) * pow2(m - half)


def tanh(x):
    a = pick(np.abs(x) > 20, 20.0, np.abs(x))
    n, hi, lo = reduce(2 * a)
    scale = pow2(n)
    base = scale - 1
    h, l = scale * hi, scale * lo
    eh = base + h
    el = pick(base == 0, 0.0, (base - eh) + h) + l
    dh = 2 + eh
    big, small = pick(eh > 2, eh, 2.0), pick(eh > 2, 2.0, eh)
    dl = ((big - dh) + small) + el
    return np.copysign(divide(eh, el, dh, dl), x)


def exp(x):
    y = pick(x > 710, 710.0, x)
    y = pick(y < -746, -746.0, y)
    n, hi, lo = reduce(y)
    half = rounded(n * 0.5)
    mh = 1 + hi
    m = mh + (((1 - mh) + hi) + lo)
    return (m * pow2(half)) * pow2(n - half)


def exp32(x):
    y = pick(x > 200, 200.0, x)
    n, hi = reduce32(pick(y < -200, -200.0, y))
    return (1 + hi) * pow2(n)


def tanh32(x):
    n, hi = reduce32(2 * pick(np.abs(x) > 20, 20.0, np.abs(x)))
    scale = pow2(n)
    over = fma(scale, hi, scale - 1)
    return np.copysign(over / (over + 2), x)


def sigmoid32(x):
    n, hi = reduce32(-pick(np.abs(x) > 200, 200.0, np.abs(x)))
    t = (1 + hi) * pow2(n)
    return pick(x < 0, t, 1.0) / (1 + t)


ONE = {16: sigmoid, 18: lambda x: x * x, 20: lambda x: pick(x <= 0, 0.0, x), 21: tanh, 22: exp}
TWO = {17: lambda a, b: a - b, 19: lambda a, b: a * b}
NAMES = {"sigmoid": 16, "minus": 17, "square": 18, "multiply": 19, "relu": 20, "tanh": 21,
         "exp": 22}


def finite(function, x):
    """A function of one operand. Its results for NaN are not used."""
    known = x == x
    return np.where(known, quiet(function(np.where(known, x, 0.0))), NAN)


def apply(op, left, right=None):
    """The operation on arrays of float64."""
    with np.errstate(all="ignore"):
        if op in ONE:
            return finite(ONE[op], np.asarray(left, np.float64))
        return quiet(TWO[op](left, right))


def vectors(text):
    """
    Returns the number of rows in the document's table of vectors, and the number of wrong results.
    """
    rows = wrong = 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        name = cells[0]
        if len(cells) != 3 or name not in globals() or len(cells[1]) not in (8, 16):
            continue
        rows += 1
        real, whole = ("<f", "<I") if name.endswith("32") else ("<d", "<Q")
        x = struct.unpack(real, struct.pack(whole, int(cells[1], 16)))[0]
        with np.errstate(all="ignore"):
            y = finite(globals()[name], np.array([x]))[0]
        wrong += struct.unpack(whole, struct.pack(real, y))[0] != int(cells[2], 16)
    return rows, wrong
