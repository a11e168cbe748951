"""Residues of bytes from their descriptions alone (matrix/residue_bytes.h, crypto/mask.h), without
code of sherd.

`python3 bytes_v1.py` prints the lines of tests/vectors/bytes_v1.txt. Each ends with a SHA-256:

    product P N K M    of the n x m residues of a product modulo p, row-major; operands are the
                       numbers of a generator (modulo p, of B less (p-1)/2) that starts at p
    unit ROLE T INDEX P WIDTH UNIT N    of the first N residues of a unit of a mask under key 00 01 ...
"""
import hashlib
import itertools
import struct

from perm_v1 import chacha20

PRODUCTS = [(p, 33, 300, 50) for p in (251, 241, 239, 233, 229, 227, 223, 211)]
PRODUCTS += [(251, 2, 65537, 3), (211, 17, 4097, 16), (3, 5, 64, 7)]
UNITS = [(1, 0, 0, 251, 4096, 0, 1000), (2, 1, 7, 211, 17, 2**64 - 1, 20000), (1, 3, 5, 227, 0, 2**40, 65)]


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


for name, make, cases in ("product", product, PRODUCTS), ("unit", unit, UNITS):
    for case in cases:
        print(name, *case, hashlib.sha256(make(*case)).hexdigest())
