"""
Operations 16 to 22 as docs/FUNCTIONS.md writes them, an entry at a time, every bit. Python's floats
are binary64; fma is made of fractions, whose conversion to a float is rounded once.
"""
import math
import struct
from fractions import Fraction

import numpy as np

NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000000))[0]
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


def fma(a, b, c):
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return float(exact)
    return a * b + c if c == 0 else 0.0


def rounded(x):
    return (x + SHIFT) - SHIFT


def pow2(n):
    return math.ldexp(1.0, int(n))


def quiet(y):
    return y if y == y else NAN


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
    if x != x:  # what is computed of a NaN is not looked at
        return NAN
    a = 746.0 if abs(x) > 746 else abs(x)
    n, hi, lo = reduce(-a)
    mh = 1 + hi
    ml = ((1 - mh) + hi) + lo
    scale = pow2(-1000 if n < -1000 else n)
    th, tl = scale * mh, scale * ml
    dh = 1 + th
    dl = ((1 - dh) + th) + tl
    y = divide(mh if x < 0 else 1.0, ml if x < 0 else 0.0, dh, dl)
    m = n if x < 0 else 0.0
    half = rounded(m * 0.5)
    return quiet((y * pow2(half)) * pow2(m - half))


def tanh(x):
    if x != x:
        return NAN
    a = 20.0 if abs(x) > 20 else abs(x)
    n, hi, lo = reduce(2 * a)
    scale = pow2(n)
    base = scale - 1
    h, l = scale * hi, scale * lo
    eh = base + h
    el = (0.0 if base == 0 else (base - eh) + h) + l
    dh = 2 + eh
    big, small = (eh, 2.0) if eh > 2 else (2.0, eh)
    dl = ((big - dh) + small) + el
    return quiet(math.copysign(divide(eh, el, dh, dl), x))


def exp(x):
    if x != x:
        return NAN
    y = 710.0 if x > 710 else x
    y = -746.0 if y < -746 else y
    n, hi, lo = reduce(y)
    half = rounded(n * 0.5)
    mh = 1 + hi
    m = mh + (((1 - mh) + hi) + lo)
    return quiet((m * pow2(half)) * pow2(n - half))


def exp32(x):
    y = 200.0 if x > 200 else x
    n, hi = reduce32(-200.0 if y < -200 else y)
    return quiet((1 + hi) * pow2(n))


def tanh32(x):
    n, hi = reduce32(2 * (20.0 if abs(x) > 20 else abs(x)))
    scale = pow2(n)
    over = fma(scale, hi, scale - 1)
    return quiet(math.copysign(over / (over + 2), x))


def sigmoid32(x):
    n, hi = reduce32(-(200.0 if abs(x) > 200 else abs(x)))
    t = (1 + hi) * pow2(n)
    return quiet((t if x < 0 else 1.0) / (1 + t))


ONE = {16: sigmoid, 18: lambda x: quiet(x * x), 20: lambda x: quiet(0.0 if x <= 0 else x),
       21: tanh, 22: exp}
TWO = {17: lambda a, b: quiet(a - b), 19: lambda a, b: quiet(a * b)}
NAMES = {"sigmoid": 16, "minus": 17, "square": 18, "multiply": 19, "relu": 20, "tanh": 21,
         "exp": 22}


def apply(op, left, right=None):
    """The operation on arrays of float64."""
    if op in ONE:
        out = [ONE[op](x) for x in left.reshape(-1).tolist()]
    else:
        out = [TWO[op](a, b) for a, b in zip(left.reshape(-1).tolist(),
                                             right.reshape(-1).tolist())]
    return np.array(out, np.float64).reshape(left.shape)


def vectors(text):
    """The rows of the document's table of vectors that do not come out: lines of text."""
    rows = wrong = 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        name = cells[0]
        if len(cells) != 3 or name not in globals() or len(cells[1]) not in (8, 16):
            continue
        rows += 1
        if name.endswith("32"):
            x = struct.unpack("<f", struct.pack("<I", int(cells[1], 16)))[0]
            bits = struct.unpack("<I", struct.pack("<f", globals()[name](x)))[0]
        else:
            x = struct.unpack("<d", struct.pack("<Q", int(cells[1], 16)))[0]
            bits = struct.unpack("<Q", struct.pack("<d", globals()[name](x)))[0]
        wrong += bits != int(cells[2], 16)
    return rows, wrong
