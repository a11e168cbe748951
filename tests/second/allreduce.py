"""
A member of an all-reduce group: docs/PROTOCOL.md, "All-reduce groups". The coordinator's session
computes one task at a time; members that connect to this one store their blocks in the node's
`Group`.
"""
import hashlib
import re
import socket
import struct
import threading
import time

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from . import gradient, link, records
from .blocks import Refused
from .network import Network, Recipe

MEET, CONNECT, STEP, REDUCE, STATE, WHERE = 4, 5, 6, 7, 13, 14
FORMAT, PACKS, MIX = 3, 1 << 31, 0x9E3779B97F4A7C15
WAIT = 5.0  # seconds until a block of another member must arrive


def real(number):
    return struct.unpack("<d", struct.pack("<q", int(number)))[0]


def check(good, code, text):
    if not good:
        raise Refused(code, text)


class Words:
    """Draws from the ChaCha20 stream under a key."""

    def __init__(self, key):
        self.stream = Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor()

    def below(self, n):
        while True:
            word = int.from_bytes(self.stream.update(bytes(4)), "little") * n
            if (word & 0xFFFFFFFF) >= (1 << 32) % n:
                return word >> 32


def listed(kind, length, key, examples):
    if kind == 0:
        return list(range(length))
    words = Words(key)
    if kind == 2:
        return [words.below(examples) for _ in range(length)]
    out = list(range(length))
    for i in range(length, 1, -1):
        at = words.below(i)
        out[i - 1], out[at] = out[at], out[i - 1]
    return out


def schedule(kind, n, r):
    """
    For each step: receiver and blocks to send; sender and blocks to receive; whether to add them.
    """
    steps = []
    if kind == 1:
        half = n - 1
        for s in range(half):
            steps.append((r + 1, [r - 1 - s], r - 1, [r - 2 - s]))
        for s in range(half, 2 * half):
            t = 2 * half - 1 - s
            steps.append((r - 1, [r - 2 - t], r + 1, [r - 1 - t]))
    else:
        sizes = [n]
        while sizes[-1] > 1:
            sizes.append((sizes[-1] + 1) // 2)
        half = len(sizes) - 1
        for s in range(half):
            k, many = sizes[s + 1], sizes[s] - sizes[s + 1]
            steps.append((r + k, [r + k + i for i in range(many)], r - k, [r + i for i in range(many)]))
        for s in range(half, 2 * half):
            t = 2 * half - 1 - s
            k, many = sizes[t + 1], sizes[t] - sizes[t + 1]
            steps.append((r - k, [r + i for i in range(many)], r + k, [r + k + i for i in range(many)]))
    return [(to % n, [b % n for b in out], source % n, [b % n for b in come], s < len(steps) // 2)
            for s, (to, out, source, come) in enumerate(steps)]


class Group:
    """The blocks that members of a roster have sent, by (key, number of the block)."""

    def __init__(self, name, keys):
        self.name, self.keys = name, keys
        self.came = {}
        self.bodies = 0
        self.event = threading.Condition()

    def put(self, key, number, values):
        with self.event:
            self.came[key, number] = values
            self.bodies += values.nbytes
            self.event.notify_all()

    def take(self, key, number):
        with self.event:
            if not self.event.wait_for(lambda: (key, number) in self.came, WAIT):
                raise Refused(records.EINTERRUPTED, "a member did not send a block")
            return self.came.pop((key, number))


class Session(gradient.Session):
    hello = {**gradient.Session.hello, "features": 0b110001}

    def __init__(self, *given):
        super().__init__(*given)
        self.state = None
        self.links = {}

    def serve(self):
        self.peer = link.pin(self.link.tls.get_peer_certificate().to_cryptography().public_key())
        super().serve()

    def stored(self, job, number, block):
        group = getattr(self.node, "group", None)
        if self.peer in self.node.coordinators:
            super().stored(job, number, block)
        elif group and self.peer in group.keys and job == group.name:
            group.put(self.peer, number, block.values)
        else:
            raise Refused(records.EREFUSED, "a block of a different group")

    def task(self, job, number, attempt, task):
        steps = {MEET: self.meet, CONNECT: self.connect, STEP: self.grades, REDUCE: self.reduce,
                 STATE: self.tell, WHERE: self.where}
        step = steps.get(task["op"])
        if step is None:
            return super().task(job, number, attempt, task)
        try:
            left = self.block(job, task["left"])
            right = self.block(job, task["right"]) if task.get("right") else None
            body = step(job, left, right, task["result"])
            check(len(body) == task["result"]["len"], records.ESHAPE, "result")
            self.answer(job, number, attempt, task, body)
        except Refused as error:
            self.send(records.refuse(job, number, attempt, 2, error.code, error.text))
        self.done(job, task)
        return None

    def meet(self, job, plan, roster, _result):
        check(plan[0] == FORMAT, records.EFORMAT, "format")
        before = self.state
        self.state = s = type("State", (), {})()
        (_, s.kind, s.n, s.me, s.name, recipe, state, s.bits, _, s.examples, s.made,
         s.optimiser) = map(int, plan[:12])
        s.name &= (1 << 64) - 1
        s.betas = [real(x) or usual for x, usual in zip(plan[12:15], (0.9, 0.999, 1e-8))]
        s.roster = re.findall(r"^(\S+):(\d+) .*?key=(\S+)", bytes(roster).decode(), re.M)
        check(len(s.roster) == s.n and s.roster[s.me][2] == self.node.identity.pin, records.EAUTH,
              "roster")
        s.recipe = Recipe(bytes(self.block(job, recipe)).decode())
        s.network = Network(s.recipe, s.bits)
        counts = [layer.count() for layer in s.recipe.tiers]
        s.cuts = np.cumsum(counts)[:-1]
        s.count = sum(counts)
        s.weights = np.concatenate([np.arange(layer.count()) < np.prod(layer.weights)
                                    for layer in s.recipe.tiers])
        s.l2 = s.recipe.l2
        vectors = s.optimiser - 1
        numbers = s.count * (2 + vectors) + 1
        if state:
            given = self.block(job, state).astype(np.float64)
            whole = np.zeros(numbers)
            whole[:len(given)] = given
            s.parameters, s.gradient, *s.vectors = np.split(
                whole[:-1].copy(), 2 + vectors)
            s.steps, s.print = int(whole[-1]), 0
        else:
            for name in ("parameters", "gradient", "vectors", "steps", "made"):
                setattr(s, name, getattr(before, name))
            s.print = 0
        s.summed = s.pending = None
        s.round, s.sent, s.received = 0, 0, 0
        self.node.group = Group(s.name, {key for _, _, key in s.roster})
        self.node.pins.update(self.node.group.keys)
        for other in self.links.values():
            other.close()
        self.links = {}
        return struct.pack("<q", numbers)

    def connect(self, _job, _left, _right, _result):
        s = self.state
        check(s is not None, records.EINVAL, "no MEET")
        for to in sorted({step[0] for step in schedule(s.kind, s.n, s.me)} - {s.me}):
            host, port, key = s.roster[to]
            other = link.Link(socket.create_connection((host, int(port)), 5),
                              link.context(self.node.identity, {key}), False)
            other.handshake()
            other.send(records.record(records.HELLO, records.encode(records.HELLO_BODY, {
                **self.hello, "minor_min": 0, "features": 0})))
            check(other.next_record(5)[0] == records.WELCOME, records.EVERSION, "no WELCOME")
            self.links[to] = other
        return bytes(8 * s.n)

    def update(self, number, rate):
        """Makes the update that a request specifies, unless it is already made."""
        s = self.state
        if number == s.made:
            return
        check(s.summed is not None and number == s.summed, records.EINVAL, "a different update")
        g, w = s.gradient, s.parameters
        s.steps += 1
        if s.optimiser == 1:
            w -= rate * g
        elif s.optimiser == 2:
            s.vectors[0] = s.betas[0] * s.vectors[0] + g
            w -= rate * s.vectors[0]
        else:
            b1, b2, epsilon = s.betas
            m = b1 * s.vectors[0] + (1 - b1) * g
            v = b2 * s.vectors[1] + (1 - b2) * (g * g)
            s.vectors = [m, v]
            p1 = p2 = 1.0
            for _ in range(s.steps):
                p1, p2 = p1 * b1, p2 * b2
            w -= (rate * (m / (1 - p1))) / (np.sqrt(v / (1 - p2)) + epsilon)
        s.made, s.print, s.summed = number, s.pending, None

    def rows(self, job, wanted):
        """Inputs and targets of rows, each from the last pack that contains it."""
        where = {}
        packs = sorted(n for j, n in self.blocks if j == job and n >= PACKS and (n - PACKS) % 3 == 0)
        for pack in packs:
            for at, row in enumerate(self.blocks[job, pack].values.tolist()):
                where[row] = pack, at
        check(all(row in where for row in wanted), records.EINVAL, "a row was never sent")
        out = []
        for part in (1, 2):
            one = {pack: self.blocks[job, pack + part] for pack in packs}
            out.append(np.stack([one[p].values.reshape(one[p].shapes[0])[at]
                                 for p, at in (where[row] for row in wanted)]))
        return out

    def grades(self, job, numbers, _right, _result):
        s = self.state
        check(s is not None and numbers[0] == FORMAT, records.EINVAL, "no MEET")
        (_, number, update, rate, s.by, local, _, kind, length) = map(int, numbers[:9])
        key = numbers[9:13].astype("<i8").tobytes()
        rate, s.by, s.local = real(rate), real(s.by), local
        check(number > s.round, records.EINVAL, "the number of the round does not ascend")
        self.update(update, rate)
        plan = gradient.Plan(numbers[13:])
        rows = listed(kind, length, key, s.examples)
        tiers = np.split(s.parameters, s.cuts)
        total = [np.zeros(len(t), np.int64) for t in tiers]
        out = []
        for (_, _, first, many, _, steps, each), (step_rate, l2, weight) in plan.shards:
            x, t = self.rows(job, rows[first:first + many])
            gradients, cost, hits = s.network.shard(x, t, tiers, steps, each, step_rate, l2, weight)
            check(np.isfinite(cost), records.ERANGE, "a cost that is not finite")
            out.append(struct.pack("<dq", cost, hits))
            for sum_, g, scale in zip(total, gradients, plan.scales):
                entries = np.rint(g * ((1 if steps else many) * 2.0**scale))
                check((np.abs(entries) <= 2.0**plan.room).all(), records.EBUSY, "room")
                sum_ += entries.astype(np.int64)
        s.round, s.scales, s.vector = number, plan.scales, np.concatenate(total)
        return b"".join(out) + struct.pack("<q", number)

    def exchange(self):
        """The all-reduce: replaces the vector by the sum of all members' vectors."""
        s, n = self.state, self.state.n
        edges = [b * (s.count // n) + min(b, s.count % n) for b in range(n + 1)]
        vector = s.vector.view(np.uint64)
        group = self.node.group
        for step, (to, out, source, come, adds) in enumerate(schedule(s.kind, n, s.me)):
            number = 256 * (s.round % (1 << 24)) + step + 1
            sent = np.concatenate([vector[edges[b]:edges[b + 1]] for b in out])
            if sent.size:
                self.give(to, number, sent)
            size = sum(edges[b + 1] - edges[b] for b in come)
            if not size:
                continue
            values = group.take(s.roster[source][2], number).view(np.uint64)
            check(values.size == size, records.ESHAPE, "length")
            at = 0
            for b in come:
                part = values[at:at + edges[b + 1] - edges[b]]
                at += part.size
                if adds:
                    vector[edges[b]:edges[b + 1]] += part
                else:
                    vector[edges[b]:edges[b + 1]] = part

    def give(self, to, number, values):
        other, s = self.links[to], self.state
        try:
            while other.unread():
                kind, _, _, ping, _, _ = other.next_record(1)
                if kind == records.PING:
                    other.send(records.record(records.PONG, number=ping))
                check(kind not in (records.BYE, records.REFUSE), records.ECLOSED, "a member left")
            description = {"origin": 1, "dtype": records.I64, "encoding": 0, "primes": 0,
                           "groups": 0, "rows": 1, "cols": values.size, "len": values.nbytes}
            for item in records.body_records(records.PUT, description, values.tobytes(), s.name,
                                             number):
                other.send(item)
        except (link.Closed, TimeoutError):
            raise Refused(records.ECLOSED, "the connection to a member is closed") from None

    def reduce(self, _job, numbers, _right, _result):
        s = self.state
        check(s is not None and int(numbers[1]) == s.round, records.EINVAL, "a different round")
        self.exchange()
        h = s.print ^ (s.round * MIX & (1 << 64) - 1)
        for number in s.vector.view(np.uint64).tolist():
            h = (h ^ number) * MIX & (1 << 64) - 1
            h ^= h >> 32
        s.pending = h
        scales = np.repeat(np.array([2.0**-x for x in s.scales]),
                           [len(part) for part in np.split(s.parameters, s.cuts)])
        g = (s.vector.astype(np.float64) * scales) / s.by
        cost = 0.0
        if s.l2:
            if not s.local:
                g = np.where(s.weights, g + s.l2 * s.parameters, g)
            squares = s.parameters[s.weights]
            cost = s.l2 / 2 * float(np.add.accumulate(squares * squares)[-1])
        s.gradient, s.summed = g, s.round
        sent = sum(other.sent for other in self.links.values())
        received = sum(other.received for other in self.links.values())
        return (b"".join(struct.pack("<d", np.abs(part).max()) for part in np.split(g, s.cuts)) +
                struct.pack("<dQQQQ", cost, h, sent, received, self.node.group.bodies))

    def tell(self, _job, question, _right, result):
        s = self.state
        check(s is not None, records.EINVAL, "no MEET")
        _, update, rate, many, bare = map(int, question)
        self.update(update, real(rate))
        kept = np.zeros(s.count) if bare else s.gradient
        whole = np.concatenate([s.parameters, kept, *s.vectors, [float(s.steps)]])
        if result["dtype"] == records.F64:
            return whole[:many].tobytes()
        hashed = whole[:many]
        if bare:
            hashed = np.concatenate([hashed[:s.count], hashed[2 * s.count:]])
        return hashlib.blake2b(struct.pack("<Q", s.made) + hashed.tobytes(), digest_size=32).digest()

    def where(self, _job, _left, _right, _result):
        s = self.state
        phase = 0 if s is None or s.summed is None else 3
        return struct.pack("<5q", s.round if s else 0, phase, 0, 0, int(time.process_time() * 1e6))
