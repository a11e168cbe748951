"""
A coordinator in Python drives nodes in C: secure sums over the nodes' own examples.
"""
import math
import re
import shutil

import numpy as np

from . import harness, records, secure
from .coordinate_secure import Sum
from .coordinator import Coordinator, Refusal, Server
from .harness import report
from .sums import Listed, own_examples

RECIPE = """input = 4
layer = dense 6
layer = tanh
layer = dense 3
loss = cross-entropy
data = file
batch = all
order = given
weights = he
epochs = 1
rate = 0.5
"""
# A different recipe with the same sums.
SAME = RECIPE.replace("input = 4\n", "input = 1 x 4 x 1\nlayer = flatten\n") + "l2 = 0.5\n"
CLIP, NOISE, PLACES = 0.7, 3.0, 40
OPEN_POLICY = ("--any-peers", "--epsilon", "none", "--min-rows", "1")


class Owners:
    """
    Nodes in C with their own examples, in files named after `name`, and sessions with the nodes.
    """

    def __init__(self, name, me, sets, *options):
        self.me, self.servers = me, []
        for i, _ in enumerate(sets):
            data = f"{name}{i}.npz"
            shutil.copy(f"own{i}.npz", data)
            self.servers.append(Server(f"{name}{i}", [me], "--threads", "1", "--data", data, *options))
        self.ledgers = [f"{name}{i}.npz.ledger" for i, _ in enumerate(sets)]

    def sessions(self):
        return [Coordinator(server.port, self.me, server.pins) for server in self.servers]

    def charges(self, member):
        """The privacy charge of each upload in this member's ledger."""
        with open(self.ledgers[member], encoding="ascii") as file:
            return [float(line.split()[5]) for line in file if line.startswith("upload ")]

    def stop(self):
        """Stops the nodes; returns their exit codes and logs."""
        codes = [server.stop() for server in self.servers]
        return codes, [open(server.log, encoding="utf-8").read() for server in self.servers]


def uploads(job, sets, parameters, **round_):
    """The integers that secure.py computes from each member's examples, without masks."""
    out = []
    for x, y in sets:
        member = secure.Session.__new__(secure.Session)
        member.sum = s = type("Sum", (), {})()
        s.recipe, s.count, s.n, s.u, s.t = job.recipe, job.count, job.n, job.u, job.t
        s.places, s.epoch, s.clip, s.noise = job.places, job.epoch, job.clip, 0.0
        s.x, s.y = x, y
        out.append(member.upload(round_.get("step", 0), round_.get("scales", [0, 0]),
                                 round_.get("cost_scale", 0), parameters))
    return out


def near(got, want, most=1):
    """Whether sums of integers differ by at most `most`, the bound of rounding errors."""
    return got is not None and max(abs(int(a) - int(b)) for a, b in zip(got, want)) <= most


def closed(sessions):
    for session in sessions:
        session.close()


def same_as_the_command(me, sets, first):
    """
    One step of `sherd train` and one sum of a Python coordinator: the same network, bit for bit.
    """
    owners = Owners("same", me, sets, *OPEN_POLICY)
    harness.node_file("same.nodes", [Listed(server) for server in owners.servers])
    with open("same.conf", "w", encoding="ascii") as file:
        file.write(RECIPE)
    run = harness.Run("train", "same.conf", "--initial", "first.npz", "--nodes", "same.nodes",
                      "--key", "me.key", "--by", "gradients", "--aggregate", "secure", "--clip",
                      CLIP, "--examples", PLACES, "--same-host-domains", "--timeout", "60", "-o",
                      "same.npz")
    owners.stop()
    owners = Owners("here", me, sets, *OPEN_POLICY)
    sessions = owners.sessions()
    job = Sum(sessions, RECIPE, 3, places=PLACES, clip=CLIP)
    total = job.round(1, first) if job.join() else None
    closed(sessions)
    report(total is not None and not job.lost, "nodes in C open a sum for a coordinator in Python",
           job.lost)
    if total is None:
        return
    report(near(total, sum(uploads(job, sets, first))),
           "the sum is that of their clipped gradients, examples, cost and hits")
    gradient = total[:job.count].astype(float) * (CLIP / 2**18) / (total[job.count] / 2**16)
    want = first - 0.5 * gradient
    got = np.load("same.npz") if run.code == 0 else {}
    got = np.concatenate([got[name].reshape(-1) for name in ("w1", "b1", "w2", "b2")]) if got else []
    report(np.array_equal(got, want),
           "a step with this sum equals the step of `sherd train`, bit for bit",
           f"{run}\n{np.abs(got - want).max() if len(got) else ''}")
    codes, said = owners.stop()
    report(codes == [0] * len(codes) and all("rounds without noise" in text for text in said),
           "the nodes log rounds without noise", said)


def rounds(me, sets, first):
    """Rounds over the places of an epoch, without clipping; members leave during rounds."""
    owners = Owners("rounds", me, sets, *OPEN_POLICY)
    sessions = owners.sessions()
    job = Sum(sessions, RECIPE, 3, places=12, epoch=30, job=2)
    scales = {"scales": [40, 41], "cost_scale": 30}
    good, random = job.join(), np.random.default_rng(3)
    for number, step in enumerate((0, 1, 2, 4), 1):
        parameters = first + 0.1 * random.standard_normal(len(first))
        total = job.round(number, parameters, step=step, **scales) if good else None
        want = sum(uploads(job, sets, parameters, step=step, **scales))
        # float64 sums in a different order: errors of about 1e-15 relative to 2^41
        report(near(total, want, 1 << 14) and list(total[[-3, -1]]) == list(want[[-3, -1]]),
               f"round {number} sums the places of step {step}", job.lost)

    sealed = job.uploads(5, first + 5, **scales)
    if 2 in sealed:  # corrupts the piece of member 2 for member 0, the first in its row
        sealed[2] = bytes(8 * job.length + 96) + sealed[2][0][8 * job.length + 96:], sealed[2][1]
    total = job.opened(sealed, job.confirmed(sorted(sealed)))
    report(near(total, sum(uploads(job, sets, first + 5, **scales)), 1 << 14) and
           job.accused == {(0, 2)},
           "a member reports a piece that it cannot open, and others open the sum",
           f"{job.accused} {job.lost}")

    def lose(when):
        def between(what):
            if what == when:
                sessions[1].link.close(reset=True)
        return between

    total = job.round(7, first + 1, lose("uploads"), **scales)
    report(near(total, sum(uploads(job, sets, first + 1, **scales)), 1 << 14) and list(job.lost) == [1],
           "the upload of a member that leaves after it is part of the sum", job.lost)
    total = job.round(8, first + 2, **scales)
    left = [s for i, s in enumerate(sets) if i != 1]
    report(near(total, sum(uploads(job, left, first + 2, **scales)), 1 << 14),
           "the smallest sufficient number of members opens a sum", job.lost)
    sessions[2].link.close(reset=True)
    report(job.round(9, first + 3, **scales) is None, "fewer members open no sum")
    closed([sessions[0], sessions[3]])
    report(all(len(owners.charges(m)) >= 6 for m in (0, 3)),
           "every upload is recorded in the ledgers",
           [owners.charges(m) for m in range(4)])
    report(owners.stop()[0] == [0] * 4, "the nodes exit with code 0")


def codes(job):
    return sorted({error.code for error in job.lost.values()})


def epsilon(rho, delta=1e-6):
    """epsilon at delta for zero-concentrated privacy rho (Canonne, Kamath, Steinke 2020)."""
    return min(a * rho + (math.log(1 / delta) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1)
               for a in np.arange(1.01, 100, 0.01))


def noisy(me, sets, first):
    """The default policy: the size of the noise, its charge, and the requests that it refuses."""
    owners = Owners("noisy", me, sets, "--any-peers")
    sessions = owners.sessions()

    def new(job, sessions=None, **changes):
        sessions = sessions or owners.sessions()
        return Sum(sessions, job=job, **{"text": RECIPE, "survivors": 3, "places": PLACES,
                                         "clip": CLIP, "noise": NOISE, **changes})

    job = new(3, sessions)
    total = job.round(1, first) if job.join() else None
    d = job.count
    size = (2**18 + math.sqrt(d) / 2)**2 + 3 * 65536**2
    sigma = math.sqrt(4 * math.ceil(NOISE**2 * size / 2))  # of the sum of four nodes' noise
    away = [] if total is None else (total - sum(uploads(job, sets, first))).astype(float) / sigma
    report(len(away) and 0.5 < np.std(away) < 2 and max(abs(away)) < 6,
           "the difference of a noisy and the exact sum has the size of the noise",
           f"{away} {job.lost}")
    job.uploads(2, first + 1)  # this round is never opened
    charges = [owners.charges(m) for m in range(4)]
    report(all(len(c) == 2 and all(0.999 < rho * 2 * NOISE**2 < 1.001 for rho in c) for c in charges),
           "each upload is charged 1 / (2 S^2), opened or not", charges)
    for name, wanted, changes in (
            ("rounds without noise", records.EREFUSED, {"noise": 0.0}),
            ("rounds of 31 places", records.EREFUSED, {"places": 31}),
            ("a last round of 8 places", records.EREFUSED, {"epoch": 88}),
            ("a sum that one node could open", records.EINVAL, {"colluding": 2}),
            ("a clipping norm of 2^101", records.EFORMAT, {"clip": 2.0**101})):
        other = new(4, **changes)
        report(not other.join() and codes(other) == [wanted], f"a plan with {name} is refused",
               other.lost)
        closed(other.members)
    part = new(5, owners.sessions()[:3], text=SAME)
    report(part.join() and len(part.uploads(1, first)) == 3,
           "part of the members may be asked again, with a different recipe",
           part.lost)
    report(not part.confirmed([0, 1, 2]) and codes(part) == [records.EEXPOSURE],
           "members do not open part of a sum that is already open", part.lost)
    part = new(6, part.members)
    whole = new(7)
    report(part.join() and len(part.uploads(1, first + 2)) == 3 and whole.join() and
           list(whole.uploads(1, first + 2)) == [3] and codes(whole) == [records.EEXPOSURE],
           "an upload of a sum is refused to a different set of members", whole.lost)
    closed(part.members + whole.members)
    for number in range(3, 100):
        if len(job.uploads(number, first + number)) < 4:
            break
    report(codes(job) == [records.EEXPOSURE] and sorted(job.lost) == [0, 1, 2],
           "members refuse uploads when their budget is spent",
           job.lost)
    closed(sessions)
    ended, said = owners.stop()
    words = r"privacy spent so far: epsilon (\S+) of 8 at delta 1e-06, in (\d+)"
    told = [(float(e), int(n)) for text in said for e, n in re.findall(words, text)[-1:]]
    report(ended == [0] * 4 and [n for _, n in told] == [18] * 4 and all(
        abs(e / epsilon(n / (2 * NOISE**2)) - 1) < 1e-3 for e, n in told),
        "the nodes log the privacy spent", said)


def run(me):
    random = np.random.default_rng(6)
    sets = own_examples(random, 38)
    first = random.standard_normal(51) * 0.5
    np.savez("first.npz", w1=first[:24].reshape(4, 6), b1=first[24:30],
             w2=first[30:48].reshape(6, 3), b2=first[48:])
    same_as_the_command(me, sets, first)
    rounds(me, sets, first)
    noisy(me, sets, first)
