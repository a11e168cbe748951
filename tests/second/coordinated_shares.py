"""
A coordinator in Python codes operands as docs/SCHEMES.md specifies, and nodes in C multiply the
coded operands: any sufficient set of answers gives the product of integers, bit for bit.
"""
import math
import secrets

import numpy as np

from . import records
from .coordinator import Coordinator, Server
from .harness import report

PRIMES = (5931641, 5931637, 5931559, 5931533)
NODES = 6


def basis(points, x, p):
    """The Lagrange polynomials of the points, at x."""
    out = []
    for j in points:
        over = math.prod(x - i for i in points if i != j)
        out.append(over * pow(math.prod(j - i for i in points if i != j), -1, p) % p)
    return out


def mixed(factors, blocks, p):
    return sum(f * b for f, b in zip(factors, blocks)) % p


def masks(shape, p, many):
    return [np.array([secrets.randbelow(p) for _ in range(math.prod(shape))], np.int64).reshape(shape)
            for _ in range(many)]


class Code:
    """Codes A, whose rows are split into K blocks, and B, modulo p."""

    def __init__(self, k, t, p):
        self.k, self.t, self.p = k, t, p
        self.points = range(1, k + t + 1)

    def at(self, i):
        return basis(self.points, self.k + self.t + i, self.p)

    def left(self, a, nodes):
        rows = -(-len(a) // self.k)
        whole = np.zeros((self.k * rows, a.shape[1]), np.int64)
        whole[:len(a)] = a % self.p
        blocks = [*np.split(whole, self.k), *masks((rows, a.shape[1]), self.p, self.t)]
        return [mixed(self.at(i), blocks, self.p) for i in nodes]

    def right(self, b, nodes):
        hidden = masks(b.shape, self.p, self.t)
        out = []
        for i in nodes:
            at = self.at(i)
            out.append((sum(at[:self.k]) % self.p * (b % self.p) +
                        mixed(at[self.k:], hidden, self.p)) % self.p)
        return out

    def decoded(self, answers):
        """Returns the values of the polynomial at 1, ..., K from answers by number of the node."""
        x = [self.k + self.t + i for i in answers]
        return [mixed(basis(x, j, self.p), list(answers.values()), self.p)
                for j in range(1, self.k + 1)]


def whole(residues, primes):
    """The integer of least magnitude with these residues."""
    m = math.prod(primes)
    total = sum(r.astype(object) * (m // p * pow(m // p, -1, p)) for r, p in zip(residues, primes)) % m
    return np.where(total > m // 2, total - m, total)


def product(nodes, a, b, k, t, primes, share, transposed=False, late=()):
    """A B, or A^T B, computed by nodes; the answers of the nodes in `late` are not used."""
    codes = [Code(k, t, p) for p in primes]
    numbers = range(1, len(nodes) + 1)
    lefts = [code.left(a, numbers) for code in codes]
    # for A^T D both operands are split, and the products of the blocks are summed
    rights = [code.left(b, numbers) if transposed else
              code.right(b, numbers) if share else None for code in codes]
    rows = a.shape[1] if transposed else lefts[0][0].shape[0]
    keys = {}
    for i, node in zip(numbers, nodes):
        left = node.put([of[i - 1] for of in lefts], dtype=records.RESIDUES)
        right = (node.put([of[i - 1] for of in rights], dtype=records.RESIDUES)
                 if share else node.put(b.astype("<i4")))
        keys[i] = node.task(2 if transposed else 1, left, right, (rows, b.shape[1]),
                            dtype=records.RESIDUES, primes=primes, flags=3)
    answers = {i: nodes[i - 1].wait(key) for i, key in keys.items() if i not in late}
    parts = [code.decoded({i: answer[q] for i, answer in answers.items()})
             for q, code in enumerate(codes)]
    if transposed:
        return whole([sum(of) % p for of, p in zip(parts, primes)], primes)
    return whole([np.concatenate(of)[:len(a)] for of in parts], primes)


def run(me):
    servers = [Server(f"share{i}", [me], "--threads", "1") for i in range(NODES)]
    nodes = [Coordinator(server.port, me, server.pins) for server in servers]
    random = np.random.default_rng(17)
    a = random.integers(-(1 << 16), 1 << 16, (37, 50))
    b = random.integers(-(1 << 16), 1 << 16, (50, 23))
    d = random.integers(-(1 << 16), 1 << 16, (37, 11))
    want, with_d = a.astype(object) @ b.astype(object), a.T.astype(object) @ d.astype(object)
    for name, k, t, share, late in (
            ("share, T = 1", 2, 1, True, [3]), ("share, T = 2", 1, 2, True, [6]),
            ("share, T = 1, K = 1", 1, 1, True, [1, 4, 5]), ("share1, T = 1", 4, 1, False, [2]),
            ("share1, T = 2", 3, 2, False, [5]), ("share1, T = 3", 1, 3, False, [1, 2])):
        got = product(nodes, a, b, k, t, PRIMES[:2], share, late=late)
        report((got == want).all(),
               f"{name}: the product is equal, bit for bit, without nodes {late}")
        if share:
            got = product(nodes, a, d, k, t, PRIMES[:2], share, True, late)
            report((got == with_d).all(), f"{name}: the transposed product is equal, bit for bit")
    got = product(nodes, a << 9, b << 9, 2, 1, PRIMES[:3], True)
    report((got == want << 18).all(),
           "26-bit integers modulo three primes, all answers: the product is equal")
    for node in nodes:
        node.close()
    report([server.stop() for server in servers] == [0] * NODES, "nodes exit with code 0")
