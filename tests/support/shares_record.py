"""Reads a coordinator's record of a product under `share`; written from docs/SCHEMES.md and docs/PROTOCOL.md.
Recovers A from the shares of K + T nodes, and the product from the answers of 2 (K + T) - 1; by the
inner-product code from those of K + 2 T.

    shares_record.py DIR A.npy B.npy C.npy K T lagrange|inner     float operands, 20 bits
"""
import json
import os
import struct
import sys
from fractions import Fraction

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
from bytes_v1 import expand  # noqa: E402  (written from docs/PROTOCOL.md)

PUT, TASK, RESULT = 3, 4, 5
RESIDUES, LEFT, BYTES = 32, 33, 35
PRIMES = [5931641, 5931637, 5931559, 5931533], [251, 241, 239, 233, 229, 227, 223, 211]


def records(b):
    at = 0
    while at < len(b):
        _, kind, _, job, number, part, n = struct.unpack_from("<IHHQIIQ", b, at)
        yield kind, number, part, b[at + 32:at + 32 + n]
        at += 32 + n


def fields(body):
    """Fields of a TASK (3 and 4 are blocks, 5 the primes) or of a description (2 dtype, 3 encoding, 6 rows)."""
    out, at = {}, 0

    def varint(at):
        value, shift = 0, 0
        while True:
            value |= (body[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if body[at - 1] < 128:
                return value, at
    while at < len(body):
        tag, at = varint(at)
        value, at = varint(at)
        if tag & 7 == 2:
            end, out[tag >> 3] = at + value, []
            while at < end and tag >> 3 == 5:
                v, at = varint(at)
                out[5].append(v)
            at = end
        else:
            out[tag >> 3] = value
    return out


def residues(block, primes, cols):
    dtype, rows, body, encoding = block
    if encoding == 2:
        body = expand(body[:32], dtype, rows, cols, *struct.unpack("<H", body[32:34]), body[34:])
    b = np.frombuffer(body, "u1").astype(object)
    if dtype == RESIDUES:
        b = b.reshape(-1, 3)
        return (b[:, 0] + 256 * b[:, 1] + 65536 * b[:, 2]).reshape(primes, -1, cols)
    if dtype == BYTES:
        return b.reshape(primes, -1, cols)
    assert dtype == LEFT
    tiles = b.reshape(-(-rows // 16), primes, -(-cols // 64), 16, 64)
    laid = tiles.transpose(1, 0, 3, 2, 4).reshape(primes, 16 * len(tiles), -1)
    assert not laid[:, rows:].any() and not laid[:, :, cols:].any()
    return laid[:, :rows, :cols]


def at(points, values, x, p):
    """The value at x of the polynomial with these values."""
    out = 0
    for i, a in enumerate(points):
        w = 1
        for j, b in enumerate(points):
            if i != j:
                w = w * (x - b) * pow(a - b, p - 2, p) % p
        out = (out + w * values[i]) % p
    return out


def solved(rows, values, p):
    """x with rows x = values modulo p, for a square matrix of numbers and an array of values each."""
    n = len(rows)
    rows, values = [[x % p for x in r] for r in rows], [v % p for v in values]
    for c in range(n):
        i = next(i for i in range(c, n) if rows[i][c])
        rows[c], rows[i], values[c], values[i] = rows[i], rows[c], values[i], values[c]
        w = pow(rows[c][c], p - 2, p)
        rows[c], values[c] = [x * w % p for x in rows[c]], values[c] * w % p
        for i in range(n):
            f = rows[i][c]
            if i != c and f:
                rows[i] = [(x - f * y) % p for x, y in zip(rows[i], rows[c])]
                values[i] = (values[i] - f * values[c]) % p
    return values


def fixed(x, bits):
    s = bits - 1
    while round(Fraction(float(abs(x).max())) * Fraction(2) ** s) > 2 ** (bits - 1) - 1:
        s -= 1
    whole = [[round(Fraction(float(v)) * Fraction(2) ** s) for v in row] for row in x]
    return np.array(whole, object), s


def decode_lagrange(lefts, answers, primes, ia, ib, k, t):
    h = -(-ia.shape[0] // k)
    want = np.zeros((k * h, ia.shape[1]), object)
    want[:ia.shape[0]] = ia
    alpha = [k + t + i for i in range(1, len(lefts) + 1)]
    for q, p in enumerate(primes):
        for j in range(k):
            block = at(alpha[:k + t], [u[q] for u in lefts[:k + t]], j + 1, p)
            assert (block == want[j * h:(j + 1) * h] % p).all()
    whole = [i for i, y in enumerate(answers) if y.shape[1] == h][:2 * (k + t) - 1]
    assert len(whole) == 2 * (k + t) - 1
    for q, p in enumerate(primes):
        product = np.concatenate([at([alpha[i] for i in whole], [answers[i][q] for i in whole],
                                     j + 1, p) for j in range(k)])[:ia.shape[0]]
        assert (product == ia.dot(ib) % p).all()


def decode_inner(lefts, answers, primes, ia, ib, k, t):
    assert len(lefts) == k + 2 * t
    d = -(-ia.shape[1] // k)
    want = np.zeros((ia.shape[0], k * d), object)
    want[:, :ia.shape[1]] = ia
    for q, p in enumerate(primes):
        f = solved([[i ** s for s in range(k + t)] for i in range(k + t)],
                   [u[q] for u in lefts[:k + t]], p)
        for j in range(k):
            assert (f[t + j] == want[:, j * d:(j + 1) * d] % p).all()
        assert (sum(y[q] for y in answers) % p == ia.dot(ib) % p).all()


def main(folder, a, b, c, k, t, code):
    index = json.load(open(os.path.join(folder, "index.json")))
    a, b, c = (np.load(f) for f in (a, b, c))
    k, t = int(k), int(t)
    (ia, sa), (ib, sb) = fixed(a, 20), fixed(b, 20)
    width = a.shape[1] if code == "lagrange" else -(-a.shape[1] // k)
    lefts, answers, primes, seeds = [], [], [], 0
    for peer in index["peers"]:
        blocks, results, tasks = {}, {}, []
        for side, wanted in (("sent", blocks), ("received", results)):
            data = open(os.path.join(folder, peer[side]["file"]), "rb").read()
            for kind, number, part, body in records(data):
                if kind in (PUT, RESULT) and part == 0:
                    wanted[number] = fields(body).get(2), fields(body).get(6), b"", fields(body).get(3)
                elif kind in (PUT, RESULT):
                    dtype, rows, so_far, encoding = wanted[number]
                    wanted[number] = dtype, rows, so_far + body, encoding
                elif kind == TASK:
                    of = fields(body)
                    tasks.append((number, of[3], of[4], of[5]))
        primes = tasks[0][3]
        seeds += sum(block[3] == 2 for block in blocks.values())
        tasks.sort()  # in the order of panels
        lefts.append(np.concatenate([residues(blocks[left], len(primes), width)
                                     for _, left, _, _ in tasks], 1))
        answers.append(np.concatenate([residues(results[n], len(primes), b.shape[1])
                                       if n in results and results[n][2] else np.zeros((len(primes), 0, b.shape[1]),
                                                                       object)
                                       for n, _, _, _ in tasks], 1))
    assert primes in [of[:len(primes)] for of in PRIMES]
    decode = decode_lagrange if code == "lagrange" else decode_inner
    decode(lefts, answers, primes, ia, ib, k, t)
    exact = np.vectorize(lambda v: float(v) * 2.0 ** -(sa + sb))(ia.dot(ib))
    assert (exact == c).all()
    print(seeds, "seeds")


if __name__ == "__main__":
    main(*sys.argv[1:])
