"""The products of tests/vectors/exact.h in Python integers, without code of sherd.

`python3 exact_v1.py` prints the lines of tests/vectors/exact.txt: a case and the SHA-256 of its
result, a row-major <f8 matrix after the line that store/digest.h describes. Integers are divided
by a power of two at the end, which Python rounds once, ties to even.
"""
import hashlib
import operator
import struct
from fractions import Fraction

MASK = 2**64 - 1


def draws(name, operand):
    state = 14695981039346656037
    for byte in (name + operand).encode():
        state = (state ^ byte) * 1099511628211 & MASK
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        yield state >> 33


def value(draw, bound):
    x = next(draw) << 31 | next(draw)
    if x % 4 == 0:
        return bound if x // 4 % 2 else -bound
    return x // 4 % (2 * bound + 1) - bound


def cut(x, cols):
    return [x[i : i + cols] for i in range(0, len(x), cols)]


def rint(v, shift):
    """v * 2^shift, rounded to the nearest integer, ties to even."""
    if shift >= 0:
        return v << shift
    q, r = divmod(v, 1 << -shift)
    return q + (2 * r + (q & 1) > 1 << -shift)


def fixed(x, bits):
    """Numbers x / 2^20 to (integers, s): the largest s up to bits-1 for which all fit."""
    most, bound, s = max(map(abs, x)), 2 ** (bits - 1) - 1, bits - 1
    if most == 0:
        return [0] * len(x), 0
    while rint(most, s - 20) > bound:
        s -= 1
    return [rint(v, s - 20) for v in x], s


def product(a, b, shift):
    """Yields rows of doubles: (a b) / 2^shift."""
    columns = list(zip(*b))
    for row in a:
        yield [float(sum(map(operator.mul, row, c)) / Fraction(2) ** shift) for c in columns]


def tell(name, n, m, rows):
    h = hashlib.sha256(b"sherd-matrix-v1 <f8 %d %d\n" % (n, m))
    for row in rows:
        h.update(struct.pack("<%dd" % m, *row))
    print(name, h.hexdigest())


def modular(name, n, k, m, ha, hb, shift):
    if name.endswith("-worst"):
        a, b = [ha] * (n * k), [-hb] * (k * m)
    else:
        da, db = draws(name, "A"), draws(name, "B")
        a, b = [value(da, ha) for _ in range(n * k)], [value(db, hb) for _ in range(k * m)]
    tell(name, n, m, product(cut(a, k), cut(b, m), shift))


def operand(name, which, count, kind, bound, bits):
    draw, out = draws(name, which), []
    for _ in range(count):
        v, zero = value(draw, bound), next(draw) % 3 == 0
        if kind == "float":
            out.append(0 if zero else v)
        else:
            out.append(abs(v) if kind == "unsigned" else v)
    return fixed(out, bits) if kind == "float" else (out, 0)


def cluster(name, n, k, m, a_kind, b_kind, ha, hb, bits):
    a, sa = operand(name, "A", n * k, a_kind, ha, bits)
    b, sb = operand(name, "B", k * m, b_kind, hb, bits)
    tell(name, n, m, product(cut(a, k), cut(b, m), sa + sb))


def h(bits):
    return 2**bits - 1


modular("default-1", 9, 1100, 11, 51, 51, 3)
modular("default-2", 9, 2100, 11, h(16), h(16), 32)
modular("default-3", 9, 2100, 11, h(27), h(27), 41)
modular("default-4", 9, 2100, 11, h(38), h(38), 70)
modular("wide-1", 9, 1100, 11, 61, 61, 3)
modular("wide-2", 9, 2100, 11, h(17), h(16), 32)
modular("wide-3", 9, 2100, 11, h(28), h(28), 41)
modular("wide-4", 9, 2100, 11, h(39), h(39), 70)
modular("default-1-worst", 3, 1140, 5, 51, 51, 0)
modular("default-2-worst", 3, 4096, 5, h(16), h(16), 0)
modular("default-3-worst", 3, 2100, 5, h(27), h(28), 0)
modular("default-4-worst", 3, 2100, 5, h(38), h(39), 0)
modular("wide-1-worst", 3, 1127, 5, 61, 61, 0)
modular("wide-2-worst", 3, 2047, 5, h(17), h(17), 0)
modular("wide-3-worst", 3, 2047, 5, h(28), h(29), 0)
modular("wide-4-worst", 3, 2047, 5, h(40), h(40), 0)
cluster("floats-17", 67, 130, 33, "float", "float", 2**30, 2**27, 17)
cluster("floats-26", 40, 257, 35, "float", "float", 2**30, 2**22, 26)
cluster("floats-deep", 3, 92700, 2, "float", "float", 2**30, 2**22, 26)
cluster("bytes", 70, 40, 21, "unsigned", "signed", 255, 127, 17)
cluster("long", 37, 257, 18, "signed", "signed", 2**36, 2**31 - 1, 17)
