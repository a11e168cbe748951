"""
`sherd node` under coordinators that misbehave, several at a time, beside a valid client: each
session ends as docs/PROTOCOL.md says, the client gets right answers all the time, and the node's
memory stays within its budget.
"""
import socket
import struct
import sys
import threading
import time

import numpy as np
from OpenSSL import SSL

from . import harness, link, records
from .coordinator import Coordinator, Ended, Refusal, Server, pack
from .records import (BYE, CANCEL, DROP, EFRAME, EINVAL, ERANGE, EREFUSED, ESHAPE, ESILENT, EUNASKED,
                      EUNSUPPORTED, HELLO, PING, PONG, PUT, REFUSE, RESULT, TASK, WELCOME, record)

MEMORY = 64 << 20
SPARE = 96 << 20  # memory of the node's process beyond its budget
CASES = {}        # name: (function of a World, expected return values)


class World:
    """The environment of a case: the node, keys, and coordinators with or without HELLO."""

    def __init__(self, node, me):
        self.node, self.me = node, me

    def raw(self):
        return socket.create_connection(("127.0.0.1", self.node.port), 5)

    def new(self, greet=True, who=None, offer=None, **tls):
        c = Coordinator.__new__(Coordinator)
        if offer is not None:
            c.offer = offer
        c.__init__(self.node.port, who or self.me, self.node.pins, greet=greet, **tls)
        return c


def case(name, *wanted):
    def enter(function):
        assert name not in CASES, name
        CASES[name] = function, wanted
        return function
    return enter


def sends(name, wanted, *items, greet=True):
    """Adds a case: a session sends these records and ends with one of the expected codes."""
    def function(world):
        c = world.new(greet)
        try:
            for item in items:
                c.send(item)
            return c.ended(45)
        except Ended as error:
            return error.code
        except KeyError:  # an answer to a task that was sent without task()
            return "refused"
    case(name, *(wanted if isinstance(wanted, tuple) else (wanted,)))(function)


def refused(name, wanted, function):
    """
    Adds a case: a task or block is refused with one of the expected codes; the session continues.
    """
    def whole(world):
        c = world.new()
        try:
            function(c)
            return 0
        except Refusal as error:
            x = np.ones((2, 2))
            c.job = 5
            left = c.put(x)
            assert (c.wait(c.task(1, left, left, (2, 2))) == 2).all()
            c.close()
            return error.code
        except Ended as error:
            return ("ended", error.code, error.text)
    case(name, *(wanted if isinstance(wanted, tuple) else (wanted,)))(whole)


# Before and during TLS: no session is established.

def connects(world, **options):
    try:
        c = world.new(**options)
        c.close()
        return "accepted"
    except (Ended, TimeoutError, OSError):
        return "rejected"


def bytes_first(data, wait=0.0):
    def function(world):
        sock = world.raw()
        sock.sendall(data)
        time.sleep(wait)
        sock.settimeout(8)
        try:
            while sock.recv(65536):
                pass
        except ConnectionError:
            pass
        sock.close()
        return "closed"
    return function


case("plain text", "closed")(bytes_first(b"GET / HTTP/1.1\r\n\r\n"))
case("a record without TLS", "closed")(bytes_first(record(HELLO)))
case("zeros", "closed")(bytes_first(bytes(100000)))
case("noise", "closed")(bytes_first(bytes(range(256)) * 100))
case("half a ClientHello", "closed")(bytes_first(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"))
case("nothing at all", "closed")(bytes_first(b""))
case("TLS 1.2", "rejected")(lambda w: connects(
    w, versions=(SSL.TLS1_2_VERSION, SSL.TLS1_2_VERSION)))
case("a wrong ALPN name", "rejected")(lambda w: connects(w, alpn=b"sherd/0"))
case("no ALPN name", "rejected")(lambda w: connects(w, alpn=None))
case("an unknown key", "rejected")(lambda w: connects(w, who=link.Identity()))


def half_open(world):
    held = []
    for _ in range(200):
        try:
            held.append(world.raw())
        except OSError:
            break
    end = time.monotonic() + 15
    while True:
        try:
            world.new().close()
            break
        except Ended:
            if time.monotonic() > end:
                return "locked out"
            time.sleep(0.5)
    for sock in held:
        sock.close()
    return "served"


# These occupy all resources of the node, or need all of them: they run after all other cases.
LAST = ["200 connections that send nothing", "more blocks than fit the node's memory"]
case(LAST[0], "served")(half_open)


@case("a broken TLS record", records.ECLOSED, EFRAME)
def broken(world):
    c = world.new()
    c.link.unsent += b"\x17\x03\x03\x00\x20" + bytes(32)
    return c.ended(8)


# Before HELLO.

for kind in (WELCOME, PUT, TASK, RESULT, REFUSE, DROP, CANCEL):
    sends(f"type {kind} before HELLO", (EFRAME, EUNASKED), record(kind, b"", 1, 1, 0), greet=False)
for kind in (PING, PONG):
    sends(f"type {kind} before HELLO", (EFRAME, EUNASKED), record(kind, b"", 0, 1), greet=False)
sends("silence instead of HELLO", ESILENT, greet=False)
sends("half a header instead of HELLO", ESILENT, record(HELLO)[:16], greet=False)
sends("BYE instead of HELLO", records.ECLOSED, records.bye(0), greet=False)
GREETING = Coordinator.offer
DEVICE = {"does": 15, "gflops": 4.0, "residue_gflops": 2.0, "memory": 0, "cell": 0, "depth": 2}
for field in GREETING:
    sends(f"HELLO without {field}", EFRAME, record(HELLO, records.encode(
        records.HELLO_BODY, {k: v for k, v in GREETING.items() if k != field})), greet=False)
for name, wanted, changes in (
        ("minors 3 to 9", records.EVERSION, {"minor_min": 3, "minor_max": 9}),
        ("minors 1 to 0", (EFRAME, records.EVERSION), {"minor_min": 1, "minor_max": 0}),
        ("software of 48 bytes", EFRAME, {"software": "s" * 48}),
        ("speed NaN", EFRAME, {"gflops": float("nan")}),
        ("a negative speed", EFRAME, {"gflops": -1.0}),
        ("13 devices", EFRAME, {"devices": [DEVICE] * 13}),
        ("a device of speed NaN", EFRAME, {"devices": [{**DEVICE, "gflops": float("nan")}]})):
    sends(f"HELLO with {name}", wanted, record(HELLO, records.encode(
        records.HELLO_BODY, {**GREETING, **changes})), greet=False)
GOOD = records.encode(records.HELLO_BODY, GREETING)
sends("a truncated HELLO", EFRAME, record(HELLO, GOOD[:-2]), greet=False)
sends("HELLO of noise", EFRAME, record(HELLO, bytes(range(256))), greet=False)
sends("HELLO of 1025 bytes", EFRAME, record(HELLO, GOOD + bytes(1025)), greet=False)
sends("HELLO of 2^63 bytes", EFRAME, record(HELLO, GOOD, length=1 << 63), greet=False)
sends("HELLO with a job", EFRAME, record(HELLO, GOOD, job=1), greet=False)
sends("HELLO with a flag", EFRAME, record(HELLO, GOOD, flags=1), greet=False)
sends("HELLO with a wrong magic", EFRAME, record(HELLO, GOOD, magic=1), greet=False)
sends("HELLO twice", (EFRAME, EUNASKED), record(HELLO, GOOD))

# Headers.

for kind in (WELCOME, RESULT, REFUSE):
    sends(f"a node's type {kind}", (EFRAME, EUNASKED),
          record(kind, b"", 0 if kind == WELCOME else 1, 0 if kind == WELCOME else 1))
sends("an unknown type without the flag", EFRAME, record(77))
sends("an unknown type of 65537 bytes", EFRAME, record(77, bytes(65537), flags=1))
sends("type 0", EFRAME, record(0))
sends("noise for a header", EFRAME, bytes(range(32)))
sends("zeros for a header", EFRAME, bytes(64))
for kind, name in ((PUT, "PUT"), (TASK, "TASK"), (DROP, "DROP"), (CANCEL, "CANCEL")):
    sends(f"{name} of job 0", EFRAME, record(kind, b"", 0, 1))
    sends(f"{name} with a flag", EFRAME, record(kind, b"", 1, 1, flags=1))
    sends(f"{name} of 2^40 bytes", EFRAME, record(kind, b"", 1, 1, length=1 << 40))
for kind, name in ((PUT, "PUT"), (TASK, "TASK")):
    sends(f"{name} of number 0", EFRAME, record(kind, b"", 1, 0))
    sends(f"{name} without a body", EFRAME, record(kind, b"", 1, 1))
    sends(f"{name} of noise", EFRAME, record(kind, bytes(range(200)), 1, 1))
sends("DROP with a part", EFRAME, record(DROP, b"", 1, 1, 1))
sends("DROP with a body", EFRAME, record(DROP, b"x", 1, 1))
sends("CANCEL 0 with a part", EFRAME, record(CANCEL, b"", 1, 0, 1))
sends("CANCEL with a body", EFRAME, record(CANCEL, b"x", 1, 1, 1))
sends("PING 0", EFRAME, record(PING))
sends("PING with a job", EFRAME, record(PING, b"", 1, 1))
sends("an unrequested PONG", EUNASKED, record(PONG, b"", 0, 1))
sends("BYE with a code above 0", (EFRAME, records.ECLOSED), records.bye(5))
sends("BYE with a text of 200 bytes", (EFRAME, records.ECLOSED), records.bye(0, "x" * 200))

# Blocks.

FLOATS, BODY = pack(np.ones((4, 5)))
TABLE = np.array([4, 5], "<u4").tobytes()


def put(changes=None, body=BODY, parts=None, drop=()):
    description = {**FLOATS, **(changes or {})}
    for name in drop:
        del description[name]
    head = record(PUT, records.encode(records.DESCRIPTION, description), 1, 1)
    return [head, *(parts if parts is not None else [record(PUT, body, 1, 1, 1)])]


for name, changes in {
        "a length that is one too large": {"len": len(BODY) + 1},
        "a wrong number of rows": {"rows": 5}, "a wrong number of columns": {"cols": 4}, "an unknown type": {"dtype": 20},
        "type 0": {"dtype": 0}, "a result's origin": {"origin": 2}, "origin 0": {"origin": 0},
        "encoding 2": {"encoding": 2}, "primes for floats": {"primes": 1},
        "five primes": {"dtype": 32, "primes": 5},
        "residues without primes": {"dtype": 32, "primes": 0},
        "nine primes of bytes": {"dtype": 33, "primes": 9, "groups": 0, "len": 9216},
        "groups of bytes": {"dtype": 34, "primes": 1, "groups": 1, "len": 1032},
        "the bytes of a result": {"dtype": 35, "primes": 1, "groups": 0, "len": 16},
        "incomplete tiles": {"dtype": 33, "primes": 8, "groups": 0, "len": 128},
        "2^25 groups": {"groups": 1 << 25}, "2^63 rows": {"rows": 1 << 63},
        "2^32 columns": {"cols": 1 << 32}, "a length of 2^64 - 1": {"len": (1 << 64) - 1},
        "an attempt": {"attempt": 1}}.items():
    sends(f"a block with {name}", EFRAME, *put(changes))
for field in ("origin", "dtype", "encoding", "primes", "groups", "rows", "cols", "len"):
    sends(f"a block without {field}", EFRAME, *put(drop=(field,)))
BIG, BIGBODY = pack(np.ones((600, 100)))
HEAD = record(PUT, records.encode(records.DESCRIPTION, BIG), 1, 1)
FIRST = record(PUT, BIGBODY[:262144], 1, 1, 1)
sends("part 1 without a description", EFRAME, record(PUT, BODY, 1, 1, 1))
sends("part 2 before part 1", EFRAME, HEAD, record(PUT, BIGBODY[:262144], 1, 1, 2))
sends("part 1 twice", EFRAME, HEAD, FIRST, FIRST)
sends("a short part", EFRAME, HEAD, record(PUT, BIGBODY[:1000], 1, 1, 1))
sends("a long last part", EFRAME, HEAD, FIRST, record(PUT, BIGBODY[262144:] + b"x", 1, 1, 2))
sends("a part of 262145 bytes", EFRAME, HEAD, record(PUT, BIGBODY[:262145], 1, 1, 1))
sends("a part of another block", EFRAME, HEAD, record(PUT, BIGBODY[:262144], 1, 2, 1))
sends("a part of another job", EFRAME, HEAD, record(PUT, BIGBODY[:262144], 2, 1, 1))
sends("a block within a block", EFRAME, HEAD, FIRST, *put())
sends("a task within a block", EFRAME, HEAD, FIRST, record(TASK, b"", 1, 1, 1))
sends("DROP within a block", EFRAME, HEAD, FIRST, record(DROP, b"", 1, 1))
sends("a body that stops", ESILENT, HEAD, FIRST)
for name, table in {"too many rows": [5, 5], "too few rows": [3, 5], "too many columns": [4, 6],
                    "2^32 - 1 rows": [2**32 - 1, 5], "no columns": [4, 0]}.items():
    sends(f"a group table of {name}", EFRAME, *put(
        body=np.array(table, "<u4").tobytes() + BODY[8:]))
SPARSE, SPARSEBODY = pack(np.eye(4, 5), csr=True)
for name, at, value in (("too many entries in a row", 8, 9), ("a column too large", 12, 5),
                        ("counts that are too small", 8, 0)):
    changed = bytearray(SPARSEBODY)
    changed[at] = value
    sends(f"CSR with {name}", EFRAME, record(PUT, records.encode(records.DESCRIPTION, SPARSE), 1, 1),
          record(PUT, bytes(changed), 1, 1, 1))
sends("CSR of residues", EFRAME, *put({"dtype": 32, "primes": 1, "encoding": 1}))


def twice(c):
    c.put(np.ones((2, 2)), number=3)
    c.put(np.ones((2, 2)), number=3)
    while not c.refused_blocks:
        c.take()
    raise c.refused_blocks.popitem()[1]


refused("a block with a number in use", EINVAL, twice)


def too_large(c):
    description = dict(FLOATS, rows=1 << 20, cols=1 << 10, len=(8 << 30) + 8)
    c.send(record(PUT, records.encode(records.DESCRIPTION, description), c.job, 9))
    while not c.refused_blocks:
        c.take()
    # the node would skip the 8 GiB of the body; this session ends instead of sending them
    error = c.refused_blocks.popitem()[1]
    c.link.close()
    c.__init__(WORLD[0].node.port, WORLD[0].me, WORLD[0].node.pins)
    raise error


WORLD = []
refused("a block of 8 GiB", EREFUSED, too_large)


def full(c):
    block = np.zeros((1 << 20, 1))
    for _ in range(10):
        c.put(block)
    c.ping(1)
    while not c.pongs:
        c.take()
    assert 1 <= len(c.refused_blocks) < 10, len(c.refused_blocks)
    c.drop()
    raise c.refused_blocks.popitem()[1]


refused(LAST[1], (EREFUSED, records.ENOMEM), full)

# Tasks.


def two(c, **names):
    left = c.put(np.ones((5, 5)))
    return c.wait(c.task(names.pop("op", 1), left, names.pop("right", left),
                         names.pop("shape", (5, 5)), **names))


refused("an unknown operation", EUNSUPPORTED, lambda c: two(c, op=24))
refused("operation 0", (EUNSUPPORTED, EINVAL), lambda c: two(c, op=0))
refused("operation 2^32 - 1", EUNSUPPORTED, lambda c: two(c, op=2**32 - 1))
refused("a missing block", EINVAL, lambda c: two(c, right=99))
refused("no right operand", EINVAL, lambda c: two(c, right=0))
refused("an extra right operand", EINVAL, lambda c: two(c, op=16))
refused("floats modulo a prime", EINVAL,
        lambda c: two(c, dtype=records.RESIDUES, primes=(8388593,)))
refused("an even modulus", EUNSUPPORTED, lambda c: two(c, dtype=records.RESIDUES, primes=(10,)))
refused("a wrong shape of the result", ESHAPE, lambda c: two(c, shape=(5, 6)))
refused("a result of 2^40 numbers", (ESHAPE, records.ENOMEM), lambda c: two(c, shape=(1 << 20, 1 << 20)))
refused("a result of integers", EUNSUPPORTED, lambda c: two(c, dtype=records.I32))
refused("windows of floats", EUNSUPPORTED, lambda c: two(c, windows={
    "height": 5, "width": 1, "channels": 1, "window": 1, "stride": 1, "padding": 0}))


def wide_integers(c):
    left = c.put(np.array([[(1 << 53) + 1]]))
    right = c.put([np.array([[1]])], dtype=records.RESIDUES)
    return c.wait(c.task(1, left, right, (1, 1), dtype=records.RESIDUES, primes=(8388593,)))


refused("integers beyond 2^53", ERANGE, wide_integers)


def residues_out(c):
    left = c.put([np.array([[8388593]])], dtype=records.RESIDUES)
    return c.wait(c.task(1, left, left, (1, 1), dtype=records.RESIDUES, primes=(8388593,)))


refused("a residue equal to its prime", ERANGE, residues_out)

TASK_GOOD = {"op": 1, "flags": 0, "left": 1, "right": 1, "primes": [], "result": {
    "origin": 2, "dtype": 1, "encoding": 0, "primes": 0, "groups": 0, "rows": 4, "cols": 4,
    "len": 128}}


def task(changes=None, result=None, drop=(), windows=None):
    body = {**TASK_GOOD, **(changes or {})}
    body["result"] = {**TASK_GOOD["result"], **(result or {})}
    for name in drop:
        del body[name]
    if windows is not None:
        body["windows"] = windows
    return record(TASK, records.encode(records.TASK_BODY, body), 1, 1, 1)


for name, item in {
        "left 0": task({"left": 0}), "flags 4": task({"flags": 4}),
        "nine primes": task({"primes": [5] * 9}), "modulus 1": task({"primes": [1]}),
        "modulus 2^24": task({"primes": [1 << 24]}), "no result": task(drop=("result",)),
        "no operation": task(drop=("op",)), "a block's origin": task(result={"origin": 1}),
        "a wrong length": task(result={"len": 127}),
        "2^63 rows": task(result={"rows": 1 << 63}), "type 40": task(result={"dtype": 40}),
        "a result with a group": task(result={"groups": 1}),
        "a result in CSR": task(result={"encoding": 1, "groups": 1})}.items():
    sends(f"a task with {name}", EFRAME, item)
sends("a task with five primes", "refused", *put(), task({"primes": [5] * 5}))
W = {"height": 4, "width": 4, "channels": 1, "window": 2, "stride": 1, "padding": 0}
for name, changes in {"no height": {"height": 0}, "stride 0": {"stride": 0}, "window 0": {"window": 0},
                      "a window larger than the image": {"window": 9},
                      "more padding than window": {"padding": 2}}.items():
    sends(f"a task with windows of {name}", (EFRAME, "refused"), *put(), task(windows={**W, **changes}))


@case("the same task twice at a time", EFRAME)
def same_task(world):
    c = world.new()
    left = c.put(np.ones((1500, 1500)))  # the first takes longer than a busy machine lets the loop wait
    both, send = [], c.send
    c.send = both.append
    for _ in range(2):
        c.task(1, left, left, (1500, 1500), number=4)
    c.send = send
    c.send(b"".join(both))  # together, so that the second arrives before the first is answered
    return c.ended(8)


# The session.

sends("a record after BYE", records.ECLOSED, records.bye(0) + record(DROP, b"", 1, 1))


@case("no PONG", ESILENT)
def no_pong(world):
    return silent(world.new())


def silent(c):
    """Reads all records and sends nothing."""
    while True:
        try:
            kind, *_, body = c.link.next_record(20)
        except link.Closed:
            return records.ECLOSED
        if kind == BYE:
            return records.decode(records.BYE_BODY, body)["code"]


for name, change in (("closes", False), ("resets", True)):
    for at, items in (("after HELLO", []), ("in a body", [HEAD, FIRST[:1000]]),
                      ("in a header", [HEAD[:9]]), ("after a task", [*put(), task()])):
        def function(world, items=items, change=change):
            c = world.new()
            for item in items:
                c.send(item)
            c.link.close(reset=change)
            return "closed"
        case(f"{name} {at}", "closed")(function)


@case("requests large results and reads nothing", "ended")
def reads_nothing(world):
    c = world.new()
    left = c.put(np.ones((512, 2)))
    right = c.put(np.ones((2, 512)))
    c.link.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    end = time.monotonic() + 25
    c.link.sock.setblocking(True)
    c.link.sock.settimeout(1)
    number = 0
    try:
        while time.monotonic() < end:
            number += 1
            body = dict(TASK_GOOD, left=left, right=right)
            body["result"] = dict(TASK_GOOD["result"], rows=512, cols=512, len=8 * 512 * 512)
            c.link.tls.send(record(TASK, records.encode(records.TASK_BODY, body), 1, number, 1))
            try:
                while True:
                    c.link.unsent += c.link.tls.bio_read(1 << 16)
            except SSL.WantReadError:
                pass
            if number % 100 == 0 and number <= 20000:
                c.link.sock.sendall(c.link.unsent)
                c.link.unsent.clear()
            if number > 20000:
                time.sleep(0.5)
                number -= 1
                c.link.sock.sendall(b"")
                c.link.sock.send(c.link.unsent[:1])
    except OSError:
        return "ended"
    return "continues"


def canary(world, stop, waits, faults):
    """A valid client: requests a product every few ms, checks it, and records the time it took."""
    random = np.random.default_rng(8)
    try:
        c = world.new()
        c.job = 77
        while not stop.is_set():
            a, b = random.integers(-9, 9, (8, 8)) * 1.0, random.integers(-9, 9, (8, 8)) * 1.0
            began = time.monotonic()
            got = c.wait(c.task(1, c.put(a), c.put(b), (8, 8), flags=3))
            waits.append(time.monotonic() - began)
            if not (got == a @ b).all():
                faults.append("a wrong product")
            time.sleep(0.01)
        c.close()
    except Exception as error:
        faults.append(repr(error))


def main():
    me, other = harness.identity("me.key"), harness.identity("other.key")
    node = Server("node", [me, other], "--threads", "1", "--memory", str(MEMORY),
                  "--connections", "60")
    world = World(node, me)
    WORLD.append(world)
    stop, waits, faults = threading.Event(), [], []
    watch = threading.Thread(target=canary, args=(World(node, other), stop, waits, faults))
    watch.start()
    slowest = []

    def one(name):
        function, wanted = CASES[name]
        began = time.monotonic()
        got = function(world)
        took = time.monotonic() - began
        slowest.append((round(took, 1), name))
        return (got in wanted and took < 60 and node.lives(),
                f"a coordinator: {name}", f"{got}, expected {wanted}, {took:.1f} s")

    chosen = [name for name in CASES if len(sys.argv) < 2 or sys.argv[1] in name]
    chosen.sort(key=lambda n: not any(w in n for w in ("nothing", "silence", "half", "stops", "no P")))
    harness.everything(one, [name for name in chosen if name not in LAST], 8)
    harness.everything(one, LAST, 1)
    stop.set()
    watch.join(30)
    harness.report(not faults and len(waits) > 20 and max(waits) < 2,
                   "a valid client gets right answers within 2 s at the same time",
                   f"{faults} {len(waits)} {sorted(waits)[-5:]}")
    print(f"# of {len(waits)} answers the slowest took {max(waits) * 1000:.0f} ms, the median "
          f"{sorted(waits)[len(waits) // 2] * 1000:.1f} ms", file=sys.stderr)
    print(f"# slowest: {sorted(slowest)[-12:]}", file=sys.stderr)
    peak = node.status("VmHWM")
    print(f"# the node's peak: {peak >> 20} MiB of a budget of {MEMORY >> 20}", file=sys.stderr)
    harness.report(peak < MEMORY + SPARE, "the node's memory stays within its budget", peak)
    c = world.new()
    left = c.put(np.eye(3))
    harness.report((c.wait(c.task(1, left, left, (3, 3))) == np.eye(3)).all(),
                   "the node serves the next coordinator")
    c.close()
    harness.report(node.stop() == 0, "the node exits with code 0",
                   open(node.log, encoding="utf-8").read())
    harness.finish()


if __name__ == "__main__":
    main()
