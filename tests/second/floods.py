"""
One allowed coordinator, or many unknown clients, flood `sherd node`: the time until a valid client
gets a PONG, and the processor time of the node's loop, stay bounded.
"""
import multiprocessing
import os
import socket
import sys
import threading
import time

import numpy as np

from . import harness, records
from .allreduce import MEET, PACKS, STEP
from .coordinator import Coordinator, Ended, Server
from .harness import report
from .records import CANCEL, DROP, PING, PUT, TASK, record

# Bounds in seconds, several times the measured values: time until a PONG; processor time of the node's
# loop for the whole flood; and between a PING and its PONG, which does not depend on other processes.
WAIT, COST, WORK = 3.0, 1.0, 0.1
C = 0x9E3779B97F4A7C15


def loop_folder(node):
    """The folder in /proc of the thread of the node's loop, the oldest of those with its name."""
    tasks = f"/proc/{node.process.pid}/task"
    for task in sorted(map(int, os.listdir(tasks))):
        with open(f"{tasks}/{task}/comm", encoding="ascii") as file:
            if file.read() == "sherd-node\n":
                return f"{tasks}/{task}"
    raise AssertionError("the node has no loop")


def loop_cpu(node):
    """Processor time of the node's loop."""
    with open(f"{loop_folder(node)}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def loop_runs(node):
    """Processor time of the node's loop in seconds, with a resolution of microseconds."""
    with open(f"{loop_folder(node)}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


class Canary:
    """
    A client that sends a PING every 10 ms. waits: the time until each PONG; work: the processor
    time of the loop meanwhile. A separate process, since a thread would also wait for the
    interpreter.
    """

    def __init__(self, node, me):
        self.c, self.node = Coordinator(node.port, me, node.pins), node
        self.over = multiprocessing.Event()
        self.told, tells = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(target=self._run, args=(tells,), daemon=True)
        self.process.start()
        tells.close()

    def _run(self, tells):
        waits, work, fault = [], [], None
        try:
            for n in range(1, 1 << 30):
                if self.over.is_set():
                    break
                began, ran = time.monotonic(), loop_runs(self.node)
                self.c.ping(n)
                while not self.c.pongs or self.c.pongs[-1] < n:
                    self.c.take(30)
                work.append(loop_runs(self.node) - ran)
                waits.append(time.monotonic() - began)
                time.sleep(0.01)
            self.c.close()
        except Exception as error:
            fault = repr(error)
        tells.send((waits, work, fault))

    def end(self):
        """Returns waits, work, and an error or None."""
        self.over.set()
        if not self.told.poll(60):
            self.process.kill()
            return [], [], "the client did not end"
        found = self.told.recv()
        self.process.join()
        return found


def busy(c):
    """Occupies the compute thread for some seconds, with 60,000 tiny tasks in its queue."""
    x = np.ones((1200, 1200))
    left = c.put(x)
    for _ in range(4):
        c.task(1, left, left, (1200, 1200))
    one = c.put(np.ones((1, 1)))
    body = records.encode(records.TASK_BODY, {
        "op": 1, "flags": 0, "left": one, "right": one, "primes": [], "result": {
            "origin": 2, "dtype": 1, "encoding": 0, "primes": 0, "groups": 0, "rows": 1, "cols": 1,
            "len": 8}})
    c.send(b"".join(record(TASK, body, c.job, n, 1) for n in range(100, 60100)))


DESCRIPTION = records.encode(records.DESCRIPTION, {
    "origin": 1, "dtype": records.U8, "encoding": 0, "primes": 0, "groups": 0, "rows": 1, "cols": 1,
    "len": 1})


def block(job, number):
    return record(PUT, DESCRIPTION, job, number, 0) + record(PUT, b"x", job, number, 1)


def heard(c, number):
    """Waits until the node has handled all earlier records."""
    c.ping(number)
    while not c.pongs or c.pongs[-1] < number:
        try:
            c.take(60)
        except KeyError:
            pass  # an answer to a task that was sent without task()


def cancels(c):
    busy(c)
    c.send(b"".join(record(CANCEL, b"", 999, 0, 0) for _ in range(3000)))


def cancels_of_tasks(c):
    busy(c)
    c.send(b"".join(record(CANCEL, b"", 999, n, 1) for n in range(1, 20000)))


def drops(c):
    busy(c)
    c.send(b"".join(block(c.job, 1000 + n) for n in range(20000)))
    c.send(b"".join(record(DROP, b"", 999, 0) for _ in range(3000)))


def many_blocks(c):
    for _ in range(3):
        c.send(b"".join(block(c.job, 1 + n) for n in range(40000)))
        c.drop()


def colliding_blocks(c):
    c.send(b"".join(block(0x1234 ^ (n * C & (1 << 64) - 1), n) for n in range(1, 30000)))


def colliding_jobs(c):
    c.send(b"".join(block(1 + (n << 20), 1) for n in range(1, 30000)))
    c.send(b"".join(record(DROP, b"", 1 + (n << 20), 0) for n in range(1, 30000)))


def pings(c):
    c.send(b"".join(record(PING, number=n) for n in range(1, 50000)))


def unknown(c):
    c.send(b"".join(record(999, bytes(65536), flags=1) for _ in range(300)))


def tiny_records(c):
    c.send(b"".join(record(999, b"", flags=1) for _ in range(100000)))


def send_block(c, number, values, **description):
    """Sends a block whose whole body is `values`."""
    rows, cols = values.shape
    kind = {"i8": records.I64, "f8": records.F64, "u1": records.U8, "u4": records.U32}[values.dtype.str[1:]]
    for item in records.body_records(PUT, {
            "origin": 1, "encoding": 0, "primes": 0, "groups": 0, "dtype": kind, "rows": rows,
            "cols": cols, "len": values.nbytes, **description}, values.tobytes(), c.job, number):
        c.send(item)


def ask(c, count, op, left, right, shape, dtype, primes=(), first=10):
    size = 3 * len(primes) if primes else {records.U8: 1}.get(dtype, 8)
    body = records.encode(records.TASK_BODY, {
        "op": op, "flags": 0, "left": left, "right": right, "primes": list(primes), "result": {
            "origin": 2, "dtype": dtype, "encoding": 0, "primes": len(primes), "groups": 0,
            "rows": shape[0], "cols": shape[1], "len": shape[0] * shape[1] * size}})
    c.send(b"".join(record(TASK, body, c.job, n, 1) for n in range(first, first + count)))


def sparse_residues(c):
    """
    Few entries, in as many ranges of columns as possible: the node allocates much memory for them.
    """
    rows, cols = 1024, 65024
    entries = np.arange(0, cols, 1024, dtype="<u2")
    counts = np.zeros(rows, "<u2")
    counts[0] = len(entries)
    body = (np.array([rows, cols], "<u4").tobytes() + counts.tobytes() + entries.tobytes() +
            bytes([1]) * len(entries))
    send_block(c, 1, np.frombuffer(body, "u1")[None], encoding=1, groups=1, rows=rows, cols=cols)
    body = np.array([cols, 1], "<u4").tobytes() + bytes([1]) * cols
    send_block(c, 2, np.frombuffer(body, "u1")[None], groups=1, rows=cols, cols=1)
    ask(c, 20, 1, 1, 2, (rows, 1), 32, (8388593, 8388587, 8388571, 8388547))
    time.sleep(1)  # the tasks must start before the PING


def sparse_block(c):
    """One entry in each of 50 million rows: the node checks counts and columns."""
    rows, cols = 50_000_000, 200
    body = np.array([rows, cols], "<u4").tobytes() + bytes([1]) * (3 * rows)
    send_block(c, 1, np.frombuffer(body, "u1")[None], encoding=1, groups=1, rows=rows, cols=cols)


PLAN = np.array([[3, 1, 3, 3, 1, 0, 32, 64, 0, 0, 0, 0]], "<i8")
SMALL = b"input = 2\nlayer = dense 2\nloss = squared\n"


def joins(c, recipe, count):
    send_block(c, 1, np.frombuffer(recipe, "u1")[None])
    send_block(c, 2, PLAN)
    ask(c, count, 8, 2, 0, (1, 128), records.U8)


def long_recipes(c):
    joins(c, b"\n" * 60000 + SMALL + b"bad = 1\n", 400)


def huge_recipes(c):
    joins(c, b"#" * (128 << 20), 10)


def gradients(c, recipe, shards, count):
    """Each is refused, since its tier does not exist."""
    send_block(c, 1, np.frombuffer(recipe, "u1")[None])
    send_block(c, 2, np.zeros((4, 2)))
    send_block(c, 3, np.zeros((4, 2)))
    send_block(c, 4, np.array([[1, 1, 24, 60, 1, 10, shards, 1000, 30] +
                               [2, 3, 0, 4, 0, 0, 0, 0, 0, 0] * shards], "<i8"))
    ask(c, count, 3, 4, 99, (1, 6 + 7 * shards), records.I64)


def other_batches(c):
    """
    Each needs a different network of 3,000,000 parameters than the one before, and is refused.
    """
    send_block(c, 1, np.frombuffer(b"input = 1000\nlayer = dense 3000\nloss = squared\n", "u1")[None])
    send_block(c, 2, np.zeros((1, 1000)))
    send_block(c, 3, np.zeros((1, 3000)))
    for batch in (1, 2):
        send_block(c, 3 + batch, np.array([[1, 1, 24, 60, 1, 10, 1, batch, 30, 2, 3, 0, 1, 0, 0, 0, 0, 0, 0]],
                                          "<i8"))
    for n in range(200):
        for batch in (1, 2):
            ask(c, 1, 3, 3 + batch, 99, (1, 13), records.I64, first=2 * n + batch)


def group_tables(c):
    """Small tasks over two tables of 24 MB that the node must compare."""
    table = np.zeros((3000000, 2), "<u4")
    table[:, 1] = 1
    send_block(c, 1, np.frombuffer(table.tobytes(), "u1")[None], groups=len(table), rows=0, cols=1)
    table[:] = 1
    body = table.tobytes() + bytes(len(table))
    send_block(c, 2, np.frombuffer(body, "u1")[None], groups=len(table), rows=len(table), cols=1)
    ask(c, 200, 1, 1, 2, (0, 1), records.F64)


def meet(c, count, examples, most=64, roster=None):
    """MEETs of a group of the node alone."""
    own = f"127.0.0.1:{c.server.port} key={c.server.key.pin}\n".encode()
    send_block(c, 1, np.frombuffer(SMALL, "u1")[None])
    send_block(c, 2, np.array([[3, 1, 1, 0, 77, 1, 4, 17, most, examples, 0, 1, 0, 0, 0]], "<i8"))
    send_block(c, 3, np.frombuffer(roster or own, "u1")[None])
    send_block(c, 4, np.zeros((1, 6)))
    ask(c, count, MEET, 2, 3, (1, 1), records.I64)


def step(c, number, most, listed, packs=0, shards=1, rows=1):
    """STEP; listed: kind and length of the list, whose key is the number."""
    send_block(c, 10 + number, np.array([[3, number, 0, 0, 1 << 62, 0, packs, *listed, number, 0, 0, 0,
                                          1, 1, 17, 60, 1, 10, shards, most, 30] +
                                         [0, 0, 0, rows, 0, 0, 0, 0, 0, 0] * shards], "<i8"))
    ask(c, 1, STEP, 10 + number, 0, (1, 2 * shards + 1), records.I64, first=100 + number)


def answered(c, number):
    """Waits until this STEP, and so all earlier ones, are answered."""
    kind = task = None
    while kind not in (records.RESULT, records.REFUSE) or task != 100 + number:
        kind, _, _, task, *_ = c.link.next_record(60)
        if kind == PING:
            c.send(record(records.PONG, number=task))


def long_rosters(c):
    meet(c, 3, 1, roster=b"*\n" * (8 << 20))


def many_examples(c):
    meet(c, 40, 15000000)
    for n in range(1, 11):
        step(c, n, 64, (0, 15000000))
    answered(c, 10)


def long_lists(c):
    """Each list is drawn again; the node has none of its rows."""
    meet(c, 1, 10)
    for n in range(1, 21):
        step(c, n, 64, (2, 10000000))
    answered(c, 20)


def many_packs(c):
    meet(c, 1, 10)
    for n in range(1, 21):
        step(c, n, 64, (0, 10), packs=n << 18)
    answered(c, 20)


def equal_shards(c):
    """The node has all rows, and each shard consists of all of them."""
    count = 200000
    meet(c, 1, count, count)
    send_block(c, PACKS, np.arange(count, dtype="<u4")[None])
    send_block(c, PACKS + 1, np.zeros((count, 2)))
    send_block(c, PACKS + 2, np.zeros((count, 2)))
    for n in range(1, 4):
        step(c, n, count, (1, count), packs=1, shards=4096, rows=count)
    answered(c, 3)


def subnormal(c):
    send_block(c, 1, np.full((48, 48), 3e-310))
    send_block(c, 2, np.full((48, 48), 0.7))
    ask(c, 2000, 1, 1, 2, (48, 48), records.F64)
    time.sleep(1)  # the tasks must start before the PING


FLOODS = {"3,000 CANCELs of an unknown job": cancels,
          "20,000 CANCELs of unknown tasks": cancels_of_tasks,
          "3,000 DROPs of an unknown job": drops,
          "120,000 blocks that are dropped at once": many_blocks,
          "30,000 blocks whose numbers collide in a weak hash": colliding_blocks,
          "30,000 jobs that differ in high bits": colliding_jobs,
          "50,000 PINGs": pings, "300 unknown records of 64 KB": unknown,
          "100,000 unknown records": tiny_records,
          "20 tasks of CSR times residues": sparse_residues,
          "a block in CSR of 150 MB": sparse_block,
          "400 JOINs with a recipe of 60,000 lines": long_recipes,
          "10 JOINs with a recipe of 128 MB": huge_recipes,
          "1,000 gradients over 4,096 shards":
              lambda c: gradients(c, SMALL, 4096, 1000),
          "400 gradients with a recipe of 30,000 lines":
              lambda c: gradients(c, b"\n" * 30000 + SMALL + b"bad = 3\n", 1, 400),
          "400 refused gradients of two networks in turn": other_batches,
          "200 tasks over tables of 3,000,000 groups": group_tables,
          "3 MEETs with a roster of 16 MB": long_rosters,
          "40 MEETs and 10 STEPs over 15,000,000 examples": many_examples,
          "20 STEPs with lists of 10,000,000 rows": long_lists,
          "20 STEPs with 262,144 packs each that were never sent": many_packs,
          "3 STEPs of 4,096 shards with the same 200,000 rows": equal_shards,
          "2,000 small products of subnormal numbers": subnormal}
# The total processor time of these is not bounded, only that between a PING and its PONG.
DEAR = {name for name in FLOODS if "recipe of" in name or "over 4,096" in name or
        "subnormal" in name or "150 MB" in name}


def measure(name, me, other):
    """
    Returns whether the run succeeded, whether the client was served in time, and the measured
    values.
    """
    node = Server(f"flood{list(FLOODS).index(name)}", [me, other], "--threads", "1", "--memory",
                  "256M")
    canary = Canary(node, other)
    time.sleep(0.1)
    c = Coordinator(node.port, me, node.pins)
    c.server = node
    before, why = loop_cpu(node), ""
    try:
        FLOODS[name](c)
        heard(c, 60000)
    except Ended as error:
        why = f"ended: {error}"
    cost = loop_cpu(node) - before
    waits, works, fault = canary.end()
    slowest, work = max(waits, default=99), max(works, default=99)
    peak = node.status("VmHWM")
    print(f"# {name}: {cost:.2f} s of the loop, slowest PONG {slowest * 1000:.0f} ms, "
          f"{work * 1000:.1f} ms of the loop, of {len(waits)}, peak {peak >> 20} MiB {why}",
          file=sys.stderr)
    c.link.close(reset=True)
    ended = node.stop()
    return (fault is None and (cost < COST or name in DEAR) and peak < 400 << 20 and ended == 0,
            slowest < WAIT and work < WORK,
            f"{fault} {cost:.2f} s {slowest:.3f} s {work:.4f} s {peak >> 20} MiB exit {ended} {why}")


def flood(name, me, other):
    """A delay counts if it occurs in three runs: other processes can delay a single run."""
    seen = []
    for _ in range(3):
        well, in_time, why = measure(name, me, other)
        seen.append(why)
        if in_time or not well:
            break
    return well and in_time, f"a client is served during {name}", "\n".join(seen)


def fill(me, other):
    """
    One key fills its part of the memory over several connections; another key is still served.
    """
    budget = 64 << 20
    node = Server("fill", [me, other], "--threads", "1", "--memory", str(budget))
    many = [Coordinator(node.port, me, node.pins, job=n + 1) for n in range(3)]
    part = budget - budget // 4
    told = [c.welcome["memory"] for c in many]
    for n in range(40):
        many[n % 3].put(np.ones((512, 512)))  # 2 MiB
    for c in many:
        heard(c, 1)
    refused = sum(len(c.refused_blocks) for c in many)
    good = Coordinator(node.port, other, node.pins, job=9)
    x = np.ones((300, 300))
    left = good.put(x)
    answer = good.wait(good.task(1, left, left, (300, 300)))
    fine = np.array_equal(answer, x @ x)
    for c in many + [good]:
        c.close()
    print(f"# fill: told {told}, refused {refused} of 40", file=sys.stderr)
    return (told == [part] * 3 and 16 <= refused <= 20 and fine and node.stop() == 0,
            "a key that fills its part of the memory does not use that of another key",
            (told, refused, fine))


# The node closes a connection of the host that has most of them, and accepts the other at once.
MOST_ATTEMPTS = 3


def strangers(me):
    """
    One host keeps many connections without a handshake open; a coordinator of another connects.
    """
    node = Server("strangers", [me], "--threads", "1")
    stop, held = threading.Event(), []

    def connect():
        while not stop.is_set():
            try:
                sock = socket.create_connection(("127.0.0.1", node.port), 1,
                                                source_address=("127.0.0.2", 0))
                held.append(sock)
            except OSError:
                time.sleep(0.01)
            if len(held) > 300:
                held.pop(0).close()

    crowd = [threading.Thread(target=connect, daemon=True) for _ in range(2)]
    for one in crowd:
        one.start()
    time.sleep(1)
    attempts = []  # until each of five is accepted: the time of one is that of a busy machine, too
    for _ in range(5):
        attempts.append(1)
        while attempts[-1] <= MOST_ATTEMPTS:
            try:
                Coordinator(node.port, me, node.pins).close()
                break
            except (Ended, OSError):
                attempts[-1] += 1
                time.sleep(0.02)
    stop.set()
    for one in crowd:
        one.join(5)
    for sock in held:
        sock.close()
    print(f"# strangers: accepted after {attempts} attempts", file=sys.stderr)
    ended = node.stop()
    return (max(attempts) <= MOST_ATTEMPTS and ended == 0,
            "a coordinator is accepted while another host keeps 300 connections open",
            (attempts, ended))


def main():
    me, other = harness.identity("me.key"), harness.identity("other.key")
    harness.everything(lambda name: flood(name, me, other), list(FLOODS), 1)
    report(*fill(me, other))
    report(*strangers(me))
    harness.finish()


if __name__ == "__main__":
    main()
