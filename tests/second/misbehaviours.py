"""
Nodes that misbehave: a table of kinds, each a Session of node.py with some steps replaced.

KINDS[name] = (Session class, TLS options, HARMLESS, BAD or EITHER). With only nodes of a HARMLESS
kind the command must give the right result, with BAD ones an error, and with EITHER ones, which
misbehave after their answer, one of both. Beside good nodes it must give the right result.
"""
import socket
import struct
import time

import numpy as np
from OpenSSL import SSL
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from . import link, records
from .node import Session

HARMLESS, BAD, EITHER = True, False, None
KINDS = {}


def kind(name, harmless=BAD, tls=None, hello=None, **steps):
    """Adds a kind whose steps are functions of (session, arguments of the step...)."""
    assert name not in KINDS, name
    members = {step: (lambda self, *given, _f=function: _f(self, *given))
               for step, function in steps.items()}
    if hello is not None:
        members["hello"] = hello
    KINDS[name] = type("Misbehaving", (Session,), members), tls or {}, harmless


# Parts of steps.

def leave(session):
    raise link.Closed("on purpose")


def reset(session):
    session.link.close(reset=True)
    raise link.Closed("on purpose")


def mute(session, seconds=25.0):
    """Reads all records, and answers only PINGs."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got, _flags, _job, number, _part, _body = session.link.next_record(
            end - time.monotonic())
        if got == records.PING:
            session.ping(number)
        if got == records.BYE:
            break
    leave(session)


def deaf(session, seconds=25.0):
    """Does nothing until the other side ends the connection."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        session.link.receive(1, end)


def drip(session, data, wait=0.5):
    """Sends one byte at a time, each in its own TLS record."""
    for byte in bytes(data):
        session.send(bytes([byte]))
        time.sleep(wait)


def spaced(data, every, session, seconds=25.0):
    """Sends data again and again and reads meanwhile, but does not answer tasks."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for item in data():
            session.send(item)
        again = time.monotonic() + every
        while time.monotonic() < again:
            try:
                got = session.link.next_record(again - time.monotonic())
            except TimeoutError:
                break
            if got[0] == records.PING:
                session.ping(got[3])
    leave(session)


def hello_record(values, schema=None, **header):
    return records.record(records.WELCOME, records.encode(schema or records.HELLO_BODY, values),
                          **header)


def greeting(**changes):
    """A WELCOME with changed values; None omits a field."""
    values = {**Session.hello, **changes}
    return {name: value for name, value in values.items() if value is not None}


LARGEST = {"threads": 2**32 - 1, "memory": 2**64 - 1, "gflops": 1e308, "residue_gflops": 1e308}
DEVICE = {"does": 15, "gflops": 4.0, "residue_gflops": 2.0, "memory": 0, "cell": 1 << 20, "depth": 2}


def device(**changes):
    return {**DEVICE, **changes}


def says(*items):
    """A step that sends these records instead."""
    def step(session, *_given):
        for item in items:
            session.send(item)
    return step


def then(*functions):
    def step(session, *given):
        for function in functions:
            function(session, *given)
    return step


def own(name):
    """The step of a good node."""
    return lambda session, *given: getattr(Session, name)(session, *given)


def once(function, name):
    """A step that calls function the first time in a session, and later does as a good node."""
    def step(session, *given):
        if getattr(session, "done_once", False):
            return getattr(Session, name)(session, *given)
        session.done_once = True
        return function(session, *given)
    return step


# Before and during the TLS handshake.

def raw(data, wait=0.0):
    def connected(session):
        session.sock.sendall(data)
        time.sleep(wait)
        leave(session)
    return connected


def abort(session):
    session.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    leave(session)


def hold(session):
    session.sock.settimeout(12)
    while session.sock.recv(65536):
        pass


def dripping_handshake(session):
    session.sock.settimeout(5)
    session.sock.recv(65536)
    for byte in b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03" + bytes(100):
        session.sock.send(bytes([byte]))
        time.sleep(0.3)


kind("closes at once", connected=leave)
kind("resets at once", connected=abort)
kind("accepts and is silent", connected=hold)
kind("greets in plain text", connected=raw(b"220 mail.example.org ESMTP\r\n"))
kind("answers by HTTP", connected=raw(b"HTTP/1.1 400 Bad Request\r\n\r\n", 0.2))
kind("sends noise instead of TLS", connected=raw(bytes(range(256)) * 40))
kind("sends zeros instead of TLS", connected=raw(bytes(70000)))
kind("sends only a TLS alert", connected=raw(b"\x15\x03\x03\x00\x02\x02\x28"))
kind("sends a TLS record header and no more", connected=raw(b"\x16\x03\x03\x40\x00", 6))
kind("drips its handshake", connected=dripping_handshake)
kind("uses TLS 1.2", tls={"versions": (SSL.TLS1_2_VERSION, SSL.TLS1_2_VERSION)})
kind("offers a wrong ALPN name", tls={"alpn": b"sherd/2"})
kind("offers no ALPN name", tls={"alpn": None})
kind("has a wrong key", tls={"another": link.Identity})
kind("has an RSA key",
     tls={"another": lambda: link.Identity(private=rsa.generate_private_key(65537, 2048))})
kind("has a P-256 key",
     tls={"another": lambda: link.Identity(private=ec.generate_private_key(ec.SECP256R1()))})
kind("closes after the handshake", serve=leave)
kind("resets after the handshake", serve=reset)
kind("ends TLS after the handshake", serve=lambda s: (s.link.tls.shutdown(), s.link.flush(1)))


def broken_tls(session, *_given):
    session.link.unsent += b"\x17\x03\x03\x00\x20" + bytes(32)
    session.link.flush(1)
    time.sleep(0.2)
    leave(session)


kind("sends a forged TLS record", serve=broken_tls)
kind("sends a forged TLS record instead of an answer", task=broken_tls)

# HELLO and WELCOME.

kind("never sends WELCOME", welcome=lambda s, o: deaf(s, 12))
kind("sends WELCOME twice", welcome=then(own("welcome"), own("welcome")))
kind("sends HELLO", welcome=says(records.record(records.HELLO, records.encode(
    records.HELLO_BODY, Session.hello))))
for made in (records.PUT, records.TASK, records.DROP, records.CANCEL):
    kind(f"sends a coordinator's record of type {made} instead of WELCOME",
         welcome=says(records.record(made, b"", 1, 1, 0)))
    kind(f"sends a coordinator's record of type {made} after WELCOME",
         welcome=then(own("welcome"), says(records.record(made, b"", 1, 1, 0))))
kind("sends PONG instead of WELCOME", welcome=says(records.record(records.PONG, number=1)))
kind("sends RESULT instead of WELCOME", welcome=says(records.record(records.RESULT, b"", 1, 1, 0)))
for number in (0, -1, -101, -103, -200, -405, -999, -1000, 2**31 - 1):
    kind(f"sends BYE {number} instead of WELCOME", welcome=says(records.bye(number, "go away")))
    kind(f"sends BYE {number} instead of an answer",
         task=lambda s, *_, _n=number: (s.send(records.bye(_n, "enough")), leave(s)))
kind("sends BYE with a text of 199 bytes", welcome=says(records.bye(-103, "x" * 199)))
kind("sends BYE with a text of 200 bytes", welcome=says(records.bye(-103, "x" * 200)))
kind("sends BYE with control characters", welcome=says(records.bye(-103, "\x1b[31m\r\n\0\x7f")))
for field in ("minor_min", "minor_max", "features", "software", "blas_core", "backend", "threads",
              "memory", "gflops"):
    kind(f"sends WELCOME without {field}", hello=greeting(**{field: None}))
for name, changes in {
        "minor 3": {"minor_min": 3, "minor_max": 3},
        "minors 1 to 2": {"minor_min": 1}, "minors 2 to 1": {"minor_max": 1},
        "minor 4294967295": {"minor_min": 2**32 - 1, "minor_max": 2**32 - 1},
        "software of 48 bytes": {"software": "s" * 48}, "a core of 200 bytes": {"blas_core": "c" * 200},
        "a backend of 16 bytes": {"backend": "b" * 16},
        "2^63 threads": {"threads": 2**63},
        "speed NaN": {"gflops": float("nan")}, "speed infinity": {"gflops": float("inf")},
        "a negative speed": {"gflops": -1.0},
        "residue speed NaN": {"residue_gflops": float("nan")},
        "a negative residue speed": {"residue_gflops": -4.0},
        "13 devices": {"devices": [DEVICE] * 13},
        "a device of speed NaN": {"devices": [device(gflops=float("nan"))]},
        "a device of infinite speed": {"devices": [DEVICE, device(residue_gflops=float("inf"))]},
        "a device of a negative speed": {"devices": [device(gflops=-1.0)]},
        "a device that does nothing": {"devices": [device(does=0)]},
        "a device with an unknown capability": {"devices": [device(does=2**32 - 16)]}}.items():
    kind(f"sends WELCOME with {name}", hello=greeting(**changes))
for field in DEVICE:
    kind(f"sends WELCOME with a device without {field}", hello=greeting(
        devices=[DEVICE, {k: v for k, v in DEVICE.items() if k != field}]))
for name, changes in {
        "minor 0": {"minor_min": 0, "minor_max": 0}, "every feature": {"features": 2**64 - 1}, "no feature": {"features": 0},
        "control characters": {"software": "\x1b[2J\a\n"}, "no software": {"software": ""},
        "0 threads": {"threads": 0}, "4294967295 threads": {"threads": 2**32 - 1},
        "memory 2^64 - 1": {"memory": 2**64 - 1},
        "speed 0": {"gflops": 0.0}, "speed 1e308": {"gflops": 1e308},
        "speed 5e-324": {"gflops": 5e-324}, "residue speed 1e308": {"residue_gflops": 1e308},
        "no residue speed": {"residue_gflops": None},
        "minor 1": {"minor_min": 1, "minor_max": 1, "devices": None},
        "minor 1 and devices that do nothing": {"minor_min": 1, "minor_max": 1,
                                                "devices": [device(does=0)]},
        "no devices": {"devices": None}, "12 devices": {"devices": [DEVICE] * 12},
        "devices of all sizes": {"devices": [
            device(does=2**32 - 1, gflops=1e308, residue_gflops=1e308, memory=2**64 - 1,
                   cell=2**64 - 1, depth=2**32 - 1)] * 12},
        "the largest numbers": {**LARGEST, "devices": [
            device(does=15, gflops=1e308, residue_gflops=1e308, memory=2**64 - 1, cell=2**64 - 1,
                   depth=2**32 - 1)] * 12},
        "the largest numbers and no devices": {**LARGEST, "devices": None},
        "devices of no size": {"devices": [
            device(gflops=0.0, residue_gflops=0.0, memory=0, cell=0, depth=0)] * 2}}.items():
    kind(f"sends WELCOME with {name}", HARMLESS, hello=greeting(**changes))
WELCOME = records.encode(records.HELLO_BODY, Session.hello)
for name, data in {
        "a truncated body": records.record(records.WELCOME, WELCOME[:-3]),
        "an empty body": records.record(records.WELCOME),
        "a body of noise": records.record(records.WELCOME, bytes(range(256)) * 4),
        "a body of 1025 bytes": records.record(records.WELCOME, WELCOME + b"\x7a" + bytes(1025)),
        "a body of 2^64 - 1 bytes": records.record(records.WELCOME, WELCOME, length=2**64 - 1),
        "a wrong magic": records.record(records.WELCOME, WELCOME, magic=0x44524854),
        "the magic in reverse byte order": records.record(records.WELCOME, WELCOME, magic=0x53485244),
        "a flag": records.record(records.WELCOME, WELCOME, flags=1),
        "flag 2": records.record(records.WELCOME, WELCOME, flags=2),
        "a job": records.record(records.WELCOME, WELCOME, job=1),
        "a number": records.record(records.WELCOME, WELCOME, number=1),
        "a part": records.record(records.WELCOME, WELCOME, part=1),
        "an endless varint": records.record(records.WELCOME, b"\x08" + b"\xff" * 30),
        "a field with a wrong wire type": records.record(records.WELCOME, b"\x0a\x01x" + WELCOME),
        "a text that extends beyond the body": records.record(records.WELCOME, WELCOME + b"\x22\x7f"),
        }.items():
    kind(f"sends WELCOME with {name}", welcome=says(data))
kind("sends WELCOME with unknown fields", HARMLESS, welcome=says(records.record(
    records.WELCOME, WELCOME + b"\xa2\x06\x03abc\xf8\x07\x01")))
kind("drips WELCOME", welcome=lambda s, o: drip(s, hello_record(s.hello), 0.3))
kind("drips WELCOME quickly", HARMLESS, welcome=lambda s, o: drip(s, hello_record(s.hello), 0.002))

# After WELCOME.

kind("is mute", task=lambda s, *_: mute(s))
kind("is dead", task=lambda s, *_: deaf(s))
kind("answers no PING", HARMLESS, ping=lambda s, number: None)
kind("answers PING with a wrong number", welcome=then(own("welcome"), says(
    records.record(records.PONG, number=77))))
kind("sends PONG 0", welcome=then(own("welcome"), says(records.record(records.PONG))))
kind("sends PING 0", welcome=then(own("welcome"), says(records.record(records.PING))))
kind("sends 130 PINGs", HARMLESS, welcome=then(own("welcome"), lambda s, o: [
    s.send(records.record(records.PING, number=n)) for n in range(1, 131)]))
kind("sends PINGs without answers", task=lambda s, *_: spaced(
    lambda n=[0]: [records.record(records.PING, number=n.__setitem__(0, n[0] + 1) or n[0])
                   for _ in range(130)], 3, s))
kind("sends unknown records without answers", task=lambda s, *_: spaced(
    lambda: [records.record(999, bytes(4100), flags=1)], 3, s))
kind("sends unknown records of 65536 bytes again and again", task=lambda s, *_: spaced(
    lambda: [records.record(999, bytes(65536), flags=1)], 0.5, s))
kind("sends unknown records before answers", HARMLESS, task=then(
    says(records.record(999, bytes(65536), 1, 2, 3, flags=1)), own("task")))
kind("sends an unknown record without the flag", task=says(records.record(999, b"x")))
kind("sends an unknown record of 65537 bytes", task=says(records.record(999, bytes(65537), flags=1)))
kind("sends an unknown record with flag 2", task=says(records.record(999, b"x", flags=3)))
kind("sends a header of noise", task=says(bytes(range(32))))
kind("sends zeros", task=says(bytes(4096)))
for step in ("put", "task"):
    kind(f"closes at {step.upper()}", **{step: lambda s, *_: leave(s)})
    kind(f"resets at {step.upper()}", **{step: lambda s, *_: reset(s)})
kind("closes when a block is complete", stored=lambda s, *_: leave(s))
kind("is mute from the first block on", put=lambda s, *_: mute(s))
kind("is dead from the first block on", put=lambda s, *_: deaf(s))
kind("closes at TASK in every session, after a while",
     task=lambda s, *_: (time.sleep(0.3), leave(s)))

# Answers.

CODES = (-1, -2, -8, -11, -12, -100, -103, -200, -300, -405, -999)  # of each class, and unknown


def refusal(code, text="no", what=2, number=0, part=0, times=1):
    def step(session, job, task, attempt, _body):
        for _ in range(times):
            session.send(records.refuse(job, task + number, attempt + part, what, code, text))
    return step


for number in CODES:
    kind(f"refuses every task with {number}", task=refusal(number))
for number in (0, 1, -1000, 2**31 - 1):
    kind(f"refuses with {number}, which is not a code for REFUSE", task=refusal(number))
kind("refuses one task with -11 and computes it later", HARMLESS, task=once(refusal(-11), "task"))
kind("refuses one task with -1 and computes it later", HARMLESS, task=once(refusal(-1), "task"))
kind("refuses with a text of 199 bytes", task=refusal(-103, "y" * 199))
kind("refuses with a text of 200 bytes", task=refusal(-103, "y" * 200))
kind("refuses with control characters", task=refusal(-103, "\x1b]0;x\a\r\nsherd: done\n"))
kind("refuses a block instead of a task", task=refusal(-103, what=1))
kind("refuses what = 0", task=refusal(-103, what=0))
kind("refuses what = 3", task=refusal(-103, what=3))
kind("refuses a different task", task=refusal(-11, number=99999))
kind("refuses a different attempt", task=refusal(-11, part=7))
kind("refuses twice", task=refusal(-11, times=2))
kind("refuses and answers", task=then(refusal(-11), own("task")))
kind("answers and refuses", EITHER, task=then(own("task"), refusal(-11)))
kind("refuses every block", stored=lambda s, job, number, block: s.send(
    records.refuse(job, number, 0, 1, -103, "no room")))


def parts(session, job, number, attempt, task, body, changes=None, drop=(), missing=False,
          first=1, header=None):
    """The records of an answer, with optional changes of the description and of part numbers."""
    description = {**task["result"], "attempt": attempt, **(changes or {})}
    for name in drop:
        del description[name]
    out = [records.record(records.RESULT, records.encode(records.DESCRIPTION, description), job,
                          number, 0)]
    for part, at in enumerate(range(0, len(body), records.CHUNK), first):
        out.append(records.record(records.RESULT, body[at:at + records.CHUNK], job, number, part))
    return out


def answer(name, make, harmless=BAD, again=False):
    def step(session, *given):
        for item in make(session, *given):
            session.send(item)
        if again:
            leave(session)
    kind(name, harmless, answer=step)


def changed(name, **changes):
    answer(f"answers with {name}",
           lambda s, *given: parts(s, *given, changes=changes))


def relative(name, field, difference):
    answer(f"answers with {name}", lambda s, job, number, attempt, task, body: parts(
        s, job, number, attempt, task, body,
        changes={field: task["result"][field] + difference}))


relative("one row more", "rows", 1)
relative("one row less", "rows", -1)
relative("one column more", "cols", 1)
relative("one byte more", "len", 1)
relative("one byte less", "len", -1)
relative("2^40 bytes more", "len", 2**40)
changed("length 0", len=0)
changed("length 2^64 - 1", len=2**64 - 1)
changed("rows 2^64 - 1", rows=2**64 - 1)
changed("f32", dtype=records.F32)
changed("an unknown type", dtype=77)
changed("CSR", encoding=1)
changed("encoding 9", encoding=9)
changed("five primes", primes=5)
changed("groups", groups=1)
changed("groups 4294967295", groups=2**32 - 1)
changed("the origin of a block", origin=1)
changed("attempt 4294967295", attempt=2**32 - 1)
changed("attempt 0", attempt=0)
for field in ("attempt", "origin", "dtype", "rows", "len"):
    answer(f"answers without {field}", lambda s, *given, _f=field: parts(s, *given, drop=(_f,)))
answer("answers twice", lambda s, *given: parts(s, *given) * 2, EITHER)
answer("sends the description of its answer twice", lambda s, *given: parts(s, *given)[:1] * 2)
answer("answers a different task", lambda s, job, number, *rest: parts(s, job, number + 9999, *rest))
answer("answers a different job", lambda s, job, *rest: parts(s, job ^ 1, *rest))
answer("answers with parts that start at 2", lambda s, *given: parts(s, *given, first=2))
answer("answers with part 1 twice", lambda s, *given: (
    lambda items: items[:2] + items[1:])(parts(s, *given)), EITHER)
answer("answers without a description", lambda s, *given: parts(s, *given)[1:])
answer("answers without a body", lambda s, *given: parts(s, *given)[:1])
answer("answers with a short part", lambda s, job, number, attempt, task, body: [
    *parts(s, job, number, attempt, task, body)[:1],
    records.record(records.RESULT, body[:-8], job, number, 1)])
answer("answers with a long part", lambda s, job, number, attempt, task, body: [
    *parts(s, job, number, attempt, task, body)[:1],
    records.record(records.RESULT, body + bytes(8), job, number, 1)])
answer("answers with a part of 262145 bytes", lambda s, job, number, attempt, task, body: [
    *parts(s, job, number, attempt, task, body)[:1],
    records.record(records.RESULT, bytes(262145), job, number, 1)])
answer("answers with an empty part", lambda s, job, number, attempt, task, body: [
    *parts(s, job, number, attempt, task, body)[:1],
    records.record(records.RESULT, b"", job, number, 1)])
answer("answers with an extra part", lambda s, job, number, *rest: [
    *parts(s, job, number, *rest), records.record(records.RESULT, b"more", job, number, 2)], EITHER)
answer("answers with a flag", lambda s, *given: [
    records.record(records.RESULT, b"", given[0], given[1], 0, flags=1)])
answer("answers job 0", lambda s, job, *rest: parts(s, 0, *rest))
answer("answers task 0", lambda s, job, number, *rest: parts(s, job, 0, *rest))
answer("answers and closes in the description", lambda s, *given: [
    parts(s, *given)[0][:40]], again=True)
answer("answers and closes after the description", lambda s, *given: parts(s, *given)[:1],
       again=True)
answer("answers and closes in the body", lambda s, *given: [
    b"".join(parts(s, *given))[:-100]], again=True)
answer("answers and closes in a header", lambda s, *given: [
    b"".join(parts(s, *given)) + b"SHRD\x05\x00"], EITHER, again=True)
answer("answers and sends BYE", lambda s, *given: [*parts(s, *given), records.bye(0, "")], EITHER, again=True)
answer("answers with PINGs between parts", lambda s, *given: [
    item for n, part in enumerate(parts(s, *given))
    for item in (part, records.record(records.PING, number=s.answered * 9 + n + 1))], HARMLESS)
answer("answers with unknown records between parts", lambda s, *given: [
    item for part in parts(s, *given)
    for item in (part, records.record(500, b"z" * 99, flags=1))], HARMLESS)
answer("answers with a refusal of an unknown task between parts", lambda s, job, number, *rest: [
    item for part in parts(s, job, number, *rest)
    for item in (part, records.refuse(job, number + 5000, 1, 2, -11, ""))])
kind("answers byte by byte", HARMLESS, answer=lambda s, *given: drip(
    s, b"".join(parts(s, *given))[:300], 0) or s.send(b"".join(parts(s, *given))[300:]))
kind("drips its answer", answer=lambda s, *given: drip(s, b"".join(parts(s, *given)), 0.4))
kind("drips the header of its answer", answer=lambda s, *given: drip(
    s, b"".join(parts(s, *given))[:32], 0.7))
kind("answers after a second", HARMLESS, answer=lambda s, *given: (
    time.sleep(1), own("answer")(s, *given)))
kind("answers before any task", welcome=then(own("welcome"), says(
    *records.body_records(records.RESULT, {
        "origin": 2, "dtype": 1, "encoding": 0, "primes": 0, "groups": 0, "rows": 1, "cols": 1,
        "len": 8, "attempt": 1}, bytes(8), 1, 1))))


def values(name, change, harmless=BAD):
    """Adds a kind with wrong results; change modifies an array of the type of the result."""
    def compute(session, job, task):
        body = bytearray(Session.compute(session, job, task))
        if task["result"]["dtype"] == records.RESIDUES:
            numbers = np.frombuffer(body, np.uint8).reshape(-1, 3)
        else:
            numbers = np.frombuffer(body, records.DTYPES[task["result"]["dtype"]])
        change(numbers)
        return bytes(body)
    kind(f"computes {name}", harmless, compute=compute)


def set_all(value):
    return lambda numbers: numbers.__setitem__(slice(None), value)


values("zeros", set_all(0))
values("255 everywhere", set_all(255))
values("numbers in reverse order", lambda numbers: numbers.__setitem__(
    slice(None), numbers[::-1].copy()))
values("one wrong number", lambda numbers: numbers.__setitem__(
    0, 99 if numbers.ndim == 2 else numbers[0] + 1))
values("a wrong last number", lambda numbers: numbers.__setitem__(
    -1, 99 if numbers.ndim == 2 else numbers[-1] - 1))
values("NaN", lambda numbers: set_all(255 if numbers.ndim == 2 else np.nan)(numbers))
values("one NaN", lambda numbers: numbers.__setitem__(5, 255 if numbers.ndim == 2 else np.nan))
values("infinity", lambda numbers: set_all(255 if numbers.ndim == 2 else np.inf)(numbers))
values("1e308", lambda numbers: set_all(254 if numbers.ndim == 2 else 1e308)(numbers))
kind("does not store every second block", EITHER, stored=lambda s, job, number, block:
     Session.stored(s, job, number, block) if number % 2 else None)


def replay(session, job, task):
    body = Session.compute(session, job, task)
    old, session.old = getattr(session, "old", bytes(len(body))), body
    return old if len(old) == len(body) else bytes(len(body))


kind("answers with its previous result", compute=replay)
