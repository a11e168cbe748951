"""
A coordinator of docs/PROTOCOL.md, "All-reduce groups": members sum their gradients among themselves
in each step. Also the expected result, which one member alone computes.
"""
import struct
import types

import numpy as np

from . import allreduce, records
from .allreduce import CONNECT, FORMAT, MEET, PACKS, REDUCE, STATE, STEP, WHERE
from .coordinate_secure import bits
from .network import Recipe

RECIPE, START, PLAN, ROSTER, ROUND, QUESTION = range(1, 7)  # numbers of blocks
RING, HALVING = 1, 2


def i64(*values):
    return np.array([[v - (1 << 64) if v >> 63 and v > 0 else v for v in values]], "<i8")


class Alone(allreduce.Session):
    """One member that has all rows and all shards: computes the expected result of a group."""

    def __init__(self, rows):
        self.all, self.blocks_, self.links = rows, {}, {}
        self.state = None
        self.node = types.SimpleNamespace(identity=types.SimpleNamespace(pin="none"), pins=set())

    def block(self, _job, number):
        return self.blocks_[number][0]

    def rows(self, _job, wanted):
        return [part[wanted] for part in self.all]

    def exchange(self):
        pass


class Group:
    """
    A group of nodes, each with a session; x and t: inputs and targets of the rows; width: bits of
    fixed point; listed: the list of rows (kind, length, key). l2 is that of the recipe.
    """

    def __init__(self, sessions, servers, text, x, t, schedule=RING, optimiser=1, width=17,
                 betas=(0, 0, 0), listed=(0, None, bytes(32)), job=1):
        self.members, self.servers, self.text = list(sessions), list(servers), text.encode()
        self.x, self.t, self.schedule, self.optimiser = x, t, schedule, optimiser
        self.width, self.betas, self.job = width, betas, job
        self.listed = (listed[0], listed[1] or len(x), listed[2])
        self.recipe = Recipe(text)
        self.counts = [layer.count() for layer in self.recipe.tiers]
        self.number = self.made = self.summed = 0
        self.name, self.packs, self.rate = 77, 0, 0.0
        self.alone = Alone((x, t))
        self.alone.blocks_[RECIPE] = np.frombuffer(self.text, np.uint8)[None]
        for member in self.members:
            member.job, member.packs, member.rows = job, 0, set()
            self.put(member, RECIPE, self.alone.blocks_[RECIPE])

    def put(self, member, number, values):
        member.drop(number)
        member.put(values, 0, number=number)

    def ask(self, op, block, right, shape, dtype):
        keys = [member.task(op, block, right, shape, dtype) for member in self.members]
        return [member.wait(key) for member, key in zip(self.members, keys)]

    def plan(self, n, me, state):
        return i64(FORMAT, self.schedule, n, me, self.name, RECIPE, state, self.width, 64,
                   len(self.x), self.made, self.optimiser, *map(bits, self.betas))

    def meet(self, parameters=None):
        """MEET and CONNECT; without parameters, members continue from their own state."""
        self.name += 1
        roster = "".join(f"127.0.0.1:{server.port} key={server.key.pin} name=m{i}\n"
                         for i, server in enumerate(self.servers))
        keys = []
        for i, member in enumerate(self.members):
            if parameters is not None:
                self.put(member, START, parameters[None])
            self.put(member, PLAN, self.plan(len(self.members), i,
                                             START if parameters is not None else 0))
            self.put(member, ROSTER, np.frombuffer(roster.encode(), np.uint8)[None])
            keys.append(member.task(MEET, PLAN, ROSTER, (1, 1), records.I64))
        said = [int(member.wait(key)[0, 0]) for member, key in zip(self.members, keys)]
        alone = "127.0.0.1:1 key=none\n".encode()
        if parameters is not None:
            self.alone.blocks_[START] = parameters[None]
        own = self.alone.meet(self.job, self.plan(1, 0, START if parameters is not None else 0)[0],
                              np.frombuffer(alone, np.uint8), None)
        links = self.ask(CONNECT, RECIPE, 0, (1, len(self.members)), records.I64)
        return said == [struct.unpack("<q", own)[0]] * len(said) and not np.any(links)

    def send(self, member, rows):
        """Sends a pack of rows to one member; packs are counted for each member."""
        block = PACKS + 3 * member.packs
        member.packs += 1
        member.put(np.array([rows], "<u4"), 0, number=block)
        member.put(self.x[rows], 0, number=block + 1)
        member.put(self.t[rows], 0, number=block + 2)

    def question(self, shards, packs, rate, by, local):
        plan = [1, RECIPE, self.width, 60, len(self.counts), 10, len(shards), 64,
                *[30] * len(self.counts)]
        for first, rows, steps, each, shard_rate, l2, weight in shards:
            plan += [0, 0, first, rows, 0, steps, each, *map(bits, (shard_rate, l2, weight))]
        key = struct.unpack("<4q", self.listed[2])
        return i64(FORMAT, self.number, self.summed, bits(rate), bits(by), local, packs,
                   self.listed[0], self.listed[1], *key, *plan)

    def step(self, shards, rate, by, local=0, between=lambda: None):
        """
        shards: a list of shards for each member; rate: of the update that uses the sum of this
        step. Returns whether each member's figures equal, bit for bit, those of one member with all
        shards. Raises Refusal if the round is broken.
        """
        self.number += 1
        keys = []
        for member, own in zip(self.members, shards):
            self.put(member, ROUND, self.question(own, member.packs, self.rate, by, local))
            keys.append((member.task(STEP, ROUND, 0, (1, 2 * len(own) + 1), records.I64),
                         member.task(REDUCE, ROUND, 0, (1, len(self.counts) + 5), records.F64)))
        between()
        graded = [member.wait(key) for member, (key, _) in zip(self.members, keys)]
        figures = [member.wait(key) for member, (_, key) in zip(self.members, keys)]
        together = [shard for own in shards for shard in own]
        question = self.question(together, 0, self.rate, by, local)
        want = self.alone.grades(self.job, question[0], None, None)
        figured = self.alone.reduce(self.job, question[0], None, None)
        self.summed, self.rate = self.number, rate
        costs, hits = zip(*((np.frombuffer(b, "<f8")[::2], np.frombuffer(b, "<i8")[1::2]) for b in (
            b"".join(said[0, :-1].tobytes() for said in graded), want[:-8])))
        same = len(figured) - 24  # up to the checksum
        return (np.allclose(*costs, 1e-12) and np.array_equal(*hits) and
                all(said[0, -1] == self.number for said in graded) and
                all(said.tobytes()[:same] == figured[:same] for said in figures))

    def state(self, bare=0, hashed=False):
        """Returns each member's state, as numbers or as their hash, and the expected state."""
        many = sum(self.counts) * (1 + self.optimiser) + 1
        for member in self.members:
            self.put(member, QUESTION, i64(FORMAT, self.summed, bits(self.rate), many, bare))
        shape, dtype = ((1, 4), records.I64) if hashed else ((1, many), records.F64)
        got = self.ask(STATE, QUESTION, 0, shape, dtype)
        result = {"dtype": dtype}
        want = self.alone.tell(self.job, i64(FORMAT, self.summed, bits(self.rate), many, bare)[0],
                               None, result)
        return [said.tobytes() for said in got], want

    def where(self):
        return [said[0].tolist() for said in self.ask(WHERE, RECIPE, 0, (1, 5), records.I64)]
