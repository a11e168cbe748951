"""Residues of bytes from their descriptions alone (matrix/residue_bytes.h, crypto/mask.h), without
code of sherd.

`python3 bytes_v1.py` prints the lines of tests/vectors/bytes_v1.txt. Each ends with a SHA-256:

    product P N K M    of the n x m residues of a product modulo p, row-major; operands are the
                       numbers of a generator (modulo p, of B less (p-1)/2) that starts at p
    unit ROLE T INDEX P WIDTH UNIT N    of the first N residues of a unit of a mask under key 00 01 ...
    seed DTYPE ROWS COLS WIDE P,P,...   of the body of the block that seed 00 01 ... encodes, with
                                        units of WIDE columns (docs/PROTOCOL.md, encoding 2)
"""
import hashlib
import itertools
import struct

from perm_v1 import chacha20

PRODUCTS = [(p, 33, 300, 50) for p in (251, 241, 239, 233, 229, 227, 223, 211)]
PRODUCTS += [(251, 2, 65537, 3), (211, 17, 4097, 16), (3, 5, 64, 7)]
UNITS = [(1, 0, 0, 251, 4096, 0, 1000), (2, 1, 7, 211, 17, 2**64 - 1, 20000), (1, 3, 5, 227, 0, 2**40, 65)]
SEEDS = [(33, 70, 300, 256, (251, 241)), (33, 32, 256, 256, (239,)), (34, 130, 75, 64, (251, 241, 239)),
         (34, 130, 75, 16, (251, 241)), (34, 64, 64, 64, (211,))]


def numbers(p):
    state = p
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (state >> 33) % p


def product(p, n, k, m):
    draw = numbers(p)
    a = [list(itertools.islice(draw, k)) for _ in range(n)]
    b = [[x - p // 2 for x in itertools.islice(draw, m)] for _ in range(k)]
    columns = list(zip(*b))
    return bytes(sum(x * y for x, y in zip(row, c)) % p for row in a for c in columns)


def unit(role, t, index, p, width, number, n):
    name = b"sherd byte-v1\0" + struct.pack("<IIIIQ", role, t, index, p, width)
    key = hashlib.blake2b(name, key=bytes(range(32)), digest_size=32).digest()
    words = chacha20(key, number, 0, n * 2 // 64 + 2)
    return bytes(x for x in struct.pack(f"<{len(words)}Q", *words) if x < p)[:n]


def draw(seed, dtype, q, p, row, col, n):
    name = b"sherd byte-v1\0" + struct.pack("<6I", dtype - 32, 0, q, p, 0, 0)
    key = hashlib.blake2b(name, key=seed, digest_size=32).digest()
    words = chacha20(key, row << 32 | col, 0, n * 256 // p // 64 + n // 256 + 4)
    out = bytes(x for x in struct.pack(f"<{len(words)}Q", *words) if x < p)[:n]
    assert len(out) == n
    return out


def expand(seed, dtype, rows, cols, wide, primes):
    """The body of the block in encoding 0."""
    left, high = dtype == 33, 32 if dtype == 33 else 64
    lines, terms = (rows, cols) if left else (cols, rows)
    tiles = -(-terms // 64)
    body = bytearray(-(-lines // 16) * len(primes) * tiles * 1024)
    for q, p in enumerate(primes):
        for row in range(0, rows, high):
            for col in range(0, cols, wide):
                h, w = min(high, rows - row), min(wide, cols - col)
                places = [(i, j) for i in range(h) for j in range(w)]
                if left and h % 16 == 0 and w % 64 == 0:
                    places.sort(key=lambda x: (x[0] // 16, x[1] // 64))
                for (i, j), x in zip(places, draw(seed, dtype, q, p, row, col, h * w)):
                    line, term = (row + i, col + j) if left else (col + j, row + i)
                    at = ((line // 16 * len(primes) + q) * tiles + term // 64) * 1024
                    at += line % 16 * 64 + term % 64 if left else term % 64 // 4 * 64 + line % 16 * 4 + term % 4
                    body[at] = x if left or x <= p // 2 else x - p + 256
    return bytes(body)


def seed(dtype, rows, cols, wide, primes):
    return expand(bytes(range(32)), dtype, rows, cols, wide, primes)


def text(x):
    return ",".join(map(str, x)) if isinstance(x, tuple) else x


if __name__ == "__main__":
    for name, make, cases in ("product", product, PRODUCTS), ("unit", unit, UNITS), ("seed", seed, SEEDS):
        for case in cases:
            print(name, *map(text, case), hashlib.sha256(make(*case)).hexdigest())
