"""`sherd node` under coordinator.py: every kind of task, compared with numpy."""
import itertools

import numpy as np

from . import blocks, functions, harness, records
from .coordinator import Coordinator, Ended, Refusal, Server
from .harness import report

PRIMES = (8388593, 8388587, 8388581, 5)
INTEGERS = {records.U8: (0, 255), records.U16: (0, 65535), records.U32: (0, (1 << 32) - 1),
            records.I8: (-128, 127), records.I16: (-32768, 32767),
            records.I32: (-(1 << 31), (1 << 31) - 1), records.I64: (-(1 << 53), 1 << 53)}


def code_of(function, *arguments, **names):
    """Returns the code of the refusal of a request, or 0 if it was answered."""
    try:
        function(*arguments, **names)
    except Refusal as error:
        return error.code
    return 0


class Cases:
    def __init__(self, node, me):
        self.random = np.random.default_rng(3)
        self.c = Coordinator(node.port, me, node.pins)

    def drawn(self, dtype, shape, small=False):
        if dtype in INTEGERS:
            low, high = (-90, 90) if small else INTEGERS[dtype]
            low = max(low, INTEGERS[dtype][0])
            return self.random.integers(low, high, shape, np.int64, True).astype(
                records.DTYPES[dtype])
        return self.random.standard_normal(shape).astype(records.DTYPES[dtype])

    def residues(self, shape, primes):
        return [self.random.integers(0, p, shape) for p in primes]

    def ask(self, op, left, right, shape, **names):
        return self.c.wait(self.c.task(op, left, right, shape, **names))

    def floats(self):
        """Every pair of types without primes, compared with float64."""
        for one, two in itertools.product(records.DTYPES, repeat=2):
            a, b = self.drawn(one, (7, 9), True), self.drawn(two, (9, 5), True)
            for op, left in ((1, a), (2, a.T)):
                got = self.ask(op, self.c.put(np.ascontiguousarray(left)), self.c.put(b), (7, 5))
                x, y = a.astype(float), b.astype(float)
                bound = 9 * 2.0**-53 / (1 - 9 * 2.0**-53) * (abs(x) @ abs(y)) * 2
                whole = one in INTEGERS and two in INTEGERS
                report((got == x @ y).all() if whole else (abs(got - x @ y) <= bound).all(),
                       f"operation {op} of types {one} and {two}", got - x @ y)

    def modulo(self):
        """Residues and integers modulo primes, bit for bit."""
        for n in range(1, 5):
            primes = PRIMES[:n]
            shape, k = (6, 8), 11
            a, b = self.residues((6, k), primes), self.residues((k, 8), primes)
            left = self.c.put(a, dtype=records.RESIDUES)
            right = self.c.put(b, dtype=records.RESIDUES)
            want = [x.astype(object) @ y.astype(object) % p for x, y, p in zip(a, b, primes)]
            got = self.ask(1, left, right, shape, dtype=records.RESIDUES, primes=primes)
            report(all((g == w).all() for g, w in zip(got, want)), f"residues of {n} primes")
            turned = self.c.put([x.T for x in a], dtype=records.RESIDUES)
            got = self.ask(2, turned, right, shape, dtype=records.RESIDUES, primes=primes)
            report(all((g == w).all() for g, w in zip(got, want)),
                   f"transposed residues of {n} primes")
            for dtype in INTEGERS:
                i = self.drawn(dtype, (6, k))
                got = self.ask(1, self.c.put(i), right, shape, dtype=records.RESIDUES,
                               primes=primes)
                want_i = [i.astype(object) @ y.astype(object) % p for y, p in zip(b, primes)]
                report(all((g == w).all() for g, w in zip(got, want_i)),
                       f"integers of type {dtype} by residues of {n} primes")
        i, j = self.drawn(records.I32, (6, 11)), self.drawn(records.U16, (11, 8))
        got = self.ask(1, self.c.put(i), self.c.put(j), (6, 8), dtype=records.RESIDUES,
                       primes=PRIMES)
        want = i.astype(object) @ j.astype(object)
        report(all((g == want % p).all() for g, p in zip(got, PRIMES)),
               "integers by integers modulo four primes")
        wide = [np.full((2, 70000), p - 1) for p in PRIMES[:2]]
        tall = [np.full((70000, 2), p - 1) for p in PRIMES[:2]]
        got = self.ask(1, self.c.put(wide, dtype=records.RESIDUES),
                       self.c.put(tall, dtype=records.RESIDUES), (2, 2), dtype=records.RESIDUES,
                       primes=PRIMES[:2], flags=3)
        report(all((g == 70000 % p).all() for g, p in zip(got, PRIMES)),
               "70,000 products of the largest residues")

    def bytes(self):
        """Residues of one byte modulo any odd numbers below 256, bit for bit."""
        primes = (251, 3, 255, 241, 239, 5, 127, 211)
        for (n, k, m), r in (((6, 11, 8), 1), ((33, 130, 17), 8), ((16, 64, 16), 6), ((1, 65, 1), 3)):
            of = primes[:r]
            a = self.residues((n, k), of)
            b = [x - p // 2 for x, p in zip(self.residues((k, m), of), of)]
            d = [x - p // 2 for x, p in zip(self.residues((n, m), of), of)]
            left = self.c.put(a, dtype=records.BYTES_LEFT)
            right = self.c.put(b, dtype=records.BYTES_RIGHT)
            got = self.ask(1, left, right, (n, m), dtype=records.BYTES, primes=of)
            report(all((g == x @ y % p).all() for g, x, y, p in zip(got, a, b, of)),
                   f"residues of one byte, {n} x {k} x {m}, {r} primes")
            right = self.c.put(d, dtype=records.BYTES_RIGHT)
            for time in ("first", "second", "third"):
                got = self.ask(2, left, right, (k, m), dtype=records.BYTES, primes=of)
                report(all((g == x.T @ y % p).all() for g, x, y, p in zip(got, a, d, of)),
                       f"transposed residues of one byte, {n} x {k} x {m}, the {time} time")
        largest = [np.full((2, 65536), 255)], [np.full((65536, 2), -128)]
        left = self.c.put(largest[0], dtype=records.BYTES_LEFT)
        got = self.ask(1, left, self.c.put(largest[1], dtype=records.BYTES_RIGHT), (2, 2),
                       dtype=records.BYTES, primes=(251,))
        report((got[0] == 65536 * 255 * -128 % 251).all(), "65,536 terms of bytes beyond residues")
        more = self.c.put([np.zeros((1, 65537))], dtype=records.BYTES_LEFT)
        tall = self.c.put([np.zeros((65537, 1))], dtype=records.BYTES_RIGHT)
        for what, (one, two, p) in {
                "65,537 terms": (more, tall, 251), "two left operands": (left, left, 251),
                "modulus 256": (left, self.c.put(largest[1], dtype=records.BYTES_RIGHT), 256),
        }.items():
            report(code_of(self.ask, 1, one, two, (1, 1), dtype=records.BYTES,
                           primes=(p,)) == records.EUNSUPPORTED, f"refused: {what}")

    def groups(self):
        shapes = [((3, 4), (4, 6)), ((2, 1), (1, 6)), ((5, 7), (7, 6))]
        a = [self.drawn(records.F64, s) for s, _ in shapes]
        b = [self.drawn(records.F64, t) for _, t in shapes]
        got = self.ask(1, self.c.put(a, 3), self.c.put(b, 3), (10, 6))
        report(np.allclose(got, np.concatenate([x @ y for x, y in zip(a, b)]), 1e-14, 1e-14),
               "three stacked groups of floats")
        x = self.drawn(records.F64, (4, 5))
        got = self.ask(1, self.c.put(x, 0), self.c.put(x.T.copy(), 0), (4, 4))
        report(np.allclose(got, x @ x.T, 1e-14, 1e-14), "blocks without a group table")

    def sparse(self):
        for cols in (9, 300, 70000):
            a = np.where(self.random.random((4, cols)) < 0.9, 0, self.drawn(records.F64, (4, cols)))
            b = self.drawn(records.F64, (cols, 3))
            got = self.ask(1, self.c.put(a, csr=True), self.c.put(b), (4, 3), flags=3)
            report(np.allclose(got, a @ b, 1e-12, 1e-10), f"CSR of {cols} columns")
        a = [np.where(self.random.random((3, k)) < 0.5, 0, 1.5) for k in (4, 9)]
        b = [self.drawn(records.F64, (k, 2)) for k in (4, 9)]
        got = self.ask(1, self.c.put(a, 2, csr=True), self.c.put(b, 2), (6, 2))
        report(np.allclose(got, np.concatenate([x @ y for x, y in zip(a, b)]), 1e-14, 1e-14),
               "CSR of two groups")
        left = self.c.put(a[0], csr=True)
        report(code_of(self.ask, 16, left, 0, (3, 4)) == records.EUNSUPPORTED and
               code_of(self.ask, 2, left, self.c.put(a[0]), (4, 4)) == records.EUNSUPPORTED,
               "other operations reject CSR")

    def images(self):
        primes = PRIMES[:2]
        for stride, padding in ((1, 0), (2, 1), (3, 0)):
            w = {"height": 6, "width": 7, "channels": 2, "window": 3, "stride": stride,
                 "padding": padding}
            images = self.residues((3, 84), primes)
            cut = [blocks.windows(x, w) for x in images]
            b = self.residues((18, 4), primes)
            left = self.c.put(images, dtype=records.RESIDUES)
            got = self.ask(1, left, self.c.put(b, dtype=records.RESIDUES), (len(cut[0]), 4),
                           dtype=records.RESIDUES, primes=primes, windows=w)
            report(all((g == x @ y % p).all() for g, x, y, p in zip(got, cut, b, primes)),
                   f"windows, stride {stride}, padding {padding}")
            e = self.residues((len(cut[0]), 4), primes)
            got = self.ask(2, left, self.c.put(e, dtype=records.RESIDUES), (18, 4),
                           dtype=records.RESIDUES, primes=primes, windows=w)
            report(all((g == x.T @ y % p).all() for g, x, y, p in zip(got, cut, e, primes)),
                   f"transposed windows, stride {stride}, padding {padding}")

    def entries(self):
        """Element-wise operations, bit for bit."""
        x = self.drawn(records.F64, (20, 15)) * 10.0 ** self.random.integers(-9, 3, (20, 15))
        x[0, :12] = [0.0, -0.0, np.inf, -np.inf, np.nan, 710, -710, 746, -746, 5e-324, 20, -20]
        y = self.drawn(records.F64, (20, 15))
        one, two = self.c.put(x), self.c.put(y)
        for name, op in functions.NAMES.items():
            right = two if op in functions.TWO else 0
            got = self.ask(op, one, right, (20, 15))
            want = functions.apply(op, x, y)
            report((got.view(np.uint64) == want.view(np.uint64)).all(), f"{name}, bit for bit",
                   np.argwhere(got.view(np.uint64) != want.view(np.uint64)))
            for dtype in (records.F32, records.I16, records.U8):
                z = self.drawn(dtype, (3, 4), True)
                block = self.c.put(z)
                got = self.ask(op, block, block if right else 0, (3, 4))
                want = functions.apply(op, z.astype(float), z.astype(float))
                report((got.view(np.uint64) == want.view(np.uint64)).all(),
                       f"{name} of type {dtype}")

    def life(self):
        """Blocks and tasks are sent, dropped, cancelled and refused by number."""
        c = self.c
        x = self.drawn(records.F64, (5, 5))
        left, right = c.put(x), c.put(x)
        self.ask(1, left, right, (5, 5), flags=3)
        report(code_of(self.ask, 1, left, right, (5, 5)) != 0,
               "a task with both drop flags drops its blocks")
        left = c.put(x)
        c.drop(left)
        report(code_of(self.ask, 1, left, left, (5, 5)) != 0, "a dropped block does not exist")
        left = c.put(x)
        report(code_of(self.ask, 99, left, left, (5, 5)) == records.EUNSUPPORTED,
               "an unknown operation is EUNSUPPORTED")
        report(code_of(self.ask, 1, left, c.put(self.drawn(records.F64, (4, 5))), (5, 5)) != 0 and
               code_of(self.ask, 1, left, left, (5, 4)) != 0, "shapes that do not match are refused")
        for p in (4, 8388608, 8388609, 16777213):
            got = code_of(self.ask, 1, left, left, (5, 5), dtype=records.RESIDUES, primes=(p,))
            report(got == records.EUNSUPPORTED, f"{p} is refused as a prime", got)
        big = c.put([np.array([[7]])], dtype=records.RESIDUES)
        report(code_of(self.ask, 1, big, big, (1, 1), dtype=records.RESIDUES, primes=(7,))
               == records.ERANGE, "a residue that is not below its prime is ERANGE")
        got = [self.ask(1, left, left, (5, 5), attempt=a, number=777) for a in (1, 2, 9)]
        report(all((g == got[0]).all() for g in got),
               "attempts with the same number are answered separately")
        key = c.task(1, left, left, (5, 5))
        c.cancel(*key[1:])
        c.cancel()
        report(code_of(c.wait, key) in (0, records.EINTERRUPTED), "a cancelled task is answered once")
        c.ping(c.tasks + 5)
        while not c.pongs:
            c.take()
        report(c.pongs == [c.tasks + 5], "a PING is answered with its number")
        c.send(records.record(4000, b"x" * 65536, 5, 6, 7, flags=1))
        report((self.ask(1, left, left, (5, 5)) == got[0]).all(), "an unknown record is skipped")
        big = self.drawn(records.F64, (600, 300))
        got = self.ask(1, c.put(big), c.put(big.T.copy()), (600, 600), flags=3)
        report(np.allclose(got, big @ big.T, 1e-12, 1e-10), "bodies of many parts")
        c.job = 9
        report(code_of(self.ask, 1, left, left, (5, 5)) != 0,
               "a task cannot use a block of a different job")
        c.job = 1
        c.drop()
        report(code_of(self.ask, 1, left, left, (5, 5)) != 0, "DROP 0 drops all blocks of the job")


def main():
    me, stranger = harness.identity("me.key"), harness.identity("stranger.key")
    node = Server("node", [me], "--threads", "1", "--memory", "256M")
    cases = Cases(node, me)
    w = cases.c.welcome
    report(w["minor_min"] == w["minor_max"] == 2 and w["memory"] > 0 and w["gflops"] > 0,
           "WELCOME contains minor version 2 twice, memory and speed", w)
    devices = w.get("devices", [])
    fields = set(records.DEVICE)
    report(0 < len(devices) <= 12 and all(set(d) == fields and d["depth"] > 0 for d in devices),
           "a node of minor 2 declares its devices", devices)
    report(w["gflops"] == sum(d["gflops"] for d in devices if d["does"] & 1),
           "its rate is that of all devices together", devices)
    for offered in (0, 1):
        older = type("Older", (Coordinator,), {"offer": {**Coordinator.offer, "minor_max": offered}})
        c = older(node.port, me, node.pins)
        said = c.welcome
        report(said["minor_min"] == said["minor_max"] == offered and "devices" not in said and
               said["gflops"] == w["gflops"], f"to a coordinator of minor {offered} it declares none",
               said)
        c.close()
    for run in (cases.floats, cases.modulo, cases.bytes, cases.groups, cases.sparse, cases.images,
                cases.entries, cases.life):
        try:
            run()
        except Exception as error:  # an exception is a failed case; the next cases get a new session
            report(False, run.__name__, repr(error))
            cases.c = Coordinator(node.port, me, node.pins)
    cases.c.close()
    try:
        Coordinator(node.port, stranger, node.pins)
        report(False, "a key that is not in the allow-list is rejected")
    except (Ended, TimeoutError):
        report(True, "a key that is not in the allow-list is rejected")
    report(node.lives() and node.stop() == 0, "the node exits with code 0")
    harness.finish()


if __name__ == "__main__":
    main()
