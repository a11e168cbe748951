"""All-reduce groups of nodes in C under a coordinator in Python, compared with one member alone."""
import numpy as np

from . import allreduce, records
from .coordinate_allreduce import HALVING, RING, Group
from .coordinator import Coordinator, Refusal, Server
from .harness import report

RECIPE = """input = 5
layer = dense 7
layer = tanh
layer = dense 3
loss = cross-entropy
l2 = 0.01
"""
ROWS = 48
# name: schedule, optimiser, betas, list of rows, local steps
CASES = {
    "a ring, sgd, rows in order": (RING, 1, (0, 0, 0), (0, None, bytes(32)), 0),
    "a ring, momentum, rows shuffled": (RING, 2, (0.8, 0, 0), (1, None, bytes(range(32))), 0),
    "a ring, adam, rows drawn": (RING, 3, (0, 0, 0), (2, 60, bytes(range(32, 64))), 0),
    "a ring, local steps": (RING, 1, (0, 0, 0), (0, None, bytes(32)), 3),
    "halving-doubling, adam, rows shuffled": (
        HALVING, 3, (0.8, 0.99, 1e-7), (1, None, bytes(32)), 0)}


def shards(of, members, step, local):
    """Two shards of 4 rows for each member, which start at different rows in each step."""
    own = []
    for m in range(members):
        first = (8 * m + 24 * step) % (of.listed[1] - 8)
        own.append([(first + 4 * s, 4, local, 2 if local else 0, 0.1 if local else 0.0, 0.01, 1.0)
                    for s in range(2)])
    return own


def deal(of, members, own):
    """Sends each member the rows of its shards that it does not have."""
    rows = allreduce.listed(*of.listed, len(of.x))
    for member, shards_ in zip(members, own):
        wanted = {rows[i] for first, many, *_ in shards_ for i in range(first, first + many)}
        if wanted - member.rows:
            of.send(member, sorted(wanted - member.rows))
        member.rows |= wanted


def steps(of, name, local, count=4):
    for step in range(count):
        own = shards(of, len(of.members), step, local)
        deal(of, of.members, own)
        good = of.step(own, 0.3 / (step + 1), 8.0 * len(own), int(local > 0))
        report(good, f"{name}: the figures of step {step} are correct")
    for bare, hashed in ((0, False), (0, True), (1, False), (1, True)):
        got, want = of.state(bare, hashed)
        report(all(one == want for one in got), f"{name}: {'hash of ' if hashed else ''}the "
               f"{'bare ' if bare else ''}state is equal, bit for bit")


def lost_member(me, servers, sessions, x, t, first):
    """A member leaves during a round: the others report it, meet, and repeat the step."""
    of = Group(sessions, servers, RECIPE, x, t, job=50)
    name = "a member leaves"
    report(of.meet(first), f"{name}: all members meet")
    steps(of, name, 0, 2)
    # closing the session ends this member's part in the group
    third = of.members.pop()
    of.servers.pop()
    own = shards(of, 3, 2, 0)
    deal(of, of.members, own[:2])
    of.number += 1
    keys = []
    for member, mine in zip(of.members, own):
        of.put(member, 5, of.question(mine, member.packs, of.rate, 24.0, 0))
        keys.append((member, member.task(allreduce.STEP, 5, 0, (1, 5), records.I64),
                     member.task(allreduce.REDUCE, 5, 0, (1, len(of.counts) + 5), records.F64)))
    third.close()
    codes = []
    for member, graded, summed in keys:
        member.wait(graded)
        try:
            member.wait(summed, 10)
        except Refusal as error:
            codes.append(error.code)
    report(len(codes) == 2 and all(code <= -100 or code == records.EINTERRUPTED for code in codes),
           f"{name}: the others refuse REDUCE", codes)
    report(all(where[1] == 4 for where in of.where()), f"{name}: WHERE reports a broken round",
           of.where())
    of.alone.update(of.summed, of.rate)
    of.made = of.summed
    for member in of.members:
        member.cancel()
    report(of.meet(), f"{name}: the others meet")
    steps(of, f"{name}, after it left", 0, 2)


def run(me):
    servers = [Server(f"allreduce{i}", [me], "--threads", "1") for i in range(3)]
    random = np.random.default_rng(12)
    x = random.standard_normal((ROWS, 5))
    t = random.integers(0, 3, (ROWS, 1)).astype("<u4")
    first = random.standard_normal(66) * 0.5
    for name, (schedule, optimiser, betas, listed, local) in CASES.items():
        sessions = [Coordinator(server.port, me, server.pins) for server in servers]
        of = Group(sessions, servers, RECIPE, x, t, schedule, optimiser, betas=betas, listed=listed)
        report(of.meet(first), f"{name}: all members meet")
        steps(of, name, local)
        for member in sessions:
            member.close()
    sessions = [Coordinator(server.port, me, server.pins) for server in servers]
    lost_member(me, servers, sessions, x, t, first)
    for member in sessions[:2]:
        member.close()
    report([server.stop() for server in servers] == [0] * 3, "members exit with code 0")
