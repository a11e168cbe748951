"""
Secure sums among nodes in C and in Python: `sherd train --aggregate secure` gives the same network
as over nodes in C alone. Also members in Python that misbehave.
"""
import threading
import time

import numpy as np

from . import harness, link, node, records, secure
from .coordinator import Server
from .harness import report

RECIPE = """input = 4
layer = dense 6
layer = tanh
layer = dense 3
loss = cross-entropy
l2 = 0.01
data = file
batch = 40
order = given
weights = he
epochs = 3
rate = 0.3
"""
SPOIL = {"seals zeros": "4 others cannot open what it sealed",
         "seals noise": "4 others cannot open what it sealed",
         "reports that no piece opens": "it reports that it cannot open what 4 others sealed for it"}


class Listed:
    """A node in C, for node files."""

    def __init__(self, server):
        self.server = server

    def line(self, name, domain):
        return (f"127.0.0.1:{self.server.port} key={self.server.key.pin} name={name} "
                f"domain={domain}\n")


def train(out, file, *options):
    return harness.Run("train", "sums.conf", *options, "--nodes", file, "--key", "me.key",
                       "--by", "gradients", "--aggregate", "secure", "--seed", "seed.bin",
                       "--same-host-domains", "--timeout", "60", "-o", out)


def own_examples(random, most):
    """
    Examples of four members in own0.npz to own3.npz: `most` for the first, one fewer for each next;
    one number of the third member is NaN. Returns pairs (x, y).
    """
    sets = []
    for i in range(4):
        x = random.standard_normal((most - i, 4))
        y = random.integers(0, 3, (most - i, 1)).astype(np.int64)
        x[3, 1] = np.nan if i == 2 else x[3, 1]
        sets.append((x, y))
        np.savez(f"own{i}.npz", x=x, y=y[:, 0])
    return sets


def same(one, two):
    a, b = np.load(one), np.load(two)
    names = [name for name in a.files if name[0] in "wb" and name[1:].isdigit()]
    return names and all(np.allclose(a[n], b[n], 1e-7, 1e-9) for n in names)


def finite(path):
    a = np.load(path)
    return all(np.isfinite(a[n]).all() for n in a.files if a[n].dtype.kind == "f")


def python(me, count, session=secure.Session, data=None):
    """Nodes in Python; every second one does not support `check`."""
    out = []
    for i in range(count):
        kind = secure.Older if i % 2 else session
        if data:
            kind = type("Member", (kind,), {"data": data[i], "hello": {
                **kind.hello, "features": kind.hello["features"] | 0b1000}})
        out.append(node.Node({me.pin}, kind))
    return out


class Accuser(secure.Session):
    """Reports that no piece opens. `said` is set after this answer."""

    said = threading.Event()

    def checks(self, job, question, pieces):
        return b"\1" * len(super().checks(job, question, pieces))

    def done(self, job, task):
        super().done(job, task)
        if task["op"] == secure.CHECK:
            self.said.set()


class Patient(secure.Session):
    """Answers `check` after an Accuser, so that the coordinator gets both answers."""

    def checks(self, job, question, pieces):
        Accuser.said.wait(30)
        time.sleep(0.3)
        return super().checks(job, question, pieces)


def misbehaving():
    """Kinds of members that misbehave: a Session for each name."""
    def of(**steps):
        return type("Member", (secure.Session,), steps)

    def instead(step, change):
        def whole(self, *given):
            return change(self, getattr(secure.Session, step)(self, *given))
        return whole

    def leave(*_given):
        raise link.Closed("on purpose")

    def refuse(code):
        def whole(*_given):
            raise secure.Refused(code, "no")
        return whole

    kinds = {
        "signs its card incorrectly": of(join=instead("join", lambda s, b: b[:64] + bytes(64))),
        "sends a card with a wrong key": of(join=instead("join", lambda s, b: bytes(32) + b[32:])),
        "sends a second key of zeros": of(join=instead("join", lambda s, b: b[:32] + bytes(32) + b[64:])),
        "signs other survivors": of(confirm=instead("confirm", lambda s, b: bytes(64))),
        "uploads numbers that are not below q": of(hide=instead("hide", lambda s, b: b"\xff" * len(b))),
        "uploads numbers of 2^61 - 1": of(hide=instead("hide", lambda s, b: (
            secure.Q.to_bytes(8, "little") * (len(b) // 8)))),
        "opens numbers that are not below q": of(open=instead("open", lambda s, b: b"\xff" * len(b))),
        "seals zeros": of(seal=instead("seal", lambda s, b: bytes(len(b)))),
        "seals noise": of(seal=instead("seal", lambda s, b: bytes(range(256)) * (len(b) // 256) +
                                       bytes(len(b) % 256)))}
    kinds["reports that no piece opens"] = Accuser
    kinds["answers check with noise"] = of(checks=instead("checks", lambda s, b: b"\xfe" * len(b)))
    for step in ("join", "roster", "seal", "hide", "confirm", "checks", "open"):
        kinds[f"closes at {step}"] = of(**{step: leave})
        kinds[f"refuses {step}"] = of(**{step: refuse(records.EREFUSED)})
    for code in (records.EBUSY, records.EEXPOSURE, records.EAUTH, records.EINVAL):
        kinds[f"refuses hide with {code}"] = of(hide=refuse(code))
    return kinds


def main():
    me = harness.identity("me.key")
    with open("seed.bin", "wb") as file:
        file.write(bytes(range(32)))
    random = np.random.default_rng(6)
    with open("sums.conf", "w", encoding="ascii") as file:
        file.write(RECIPE)
    sets = own_examples(random, 30)
    np.savez("dealt.npz", x=np.concatenate([s[0][:3] for s in sets] * 4),
             y=np.concatenate([s[1][:3, 0] for s in sets] * 4))

    plain = [Listed(Server(f"c{i}", [me], "--threads", "1")) for i in range(4)]
    dealt = ("--simulate", "--data", "dealt.npz")
    harness.node_file("c.nodes", plain)
    first = train("c.npz", "c.nodes", *dealt)
    report(first.code == 0, "nodes in C compute secure sums", first)
    for count in (1, 2, 4):
        members = python(me, count)
        harness.node_file("mixed.nodes", plain[count:] + members)
        run = train("mixed.npz", "mixed.nodes", *dealt)
        report(run.code == 0 and same("c.npz", "mixed.npz"),
               f"with {count} of 4 members in Python the sums are the same", run)
    clip = ("--clip", "0.7")
    first = train("clip.npz", "c.nodes", *dealt, *clip)
    run = train("mixed.npz", "mixed.nodes", *dealt, *clip)
    report(first.code == run.code == 0 and same("clip.npz", "mixed.npz"),
           "with clipping the sums are the same", f"{first}{run}")
    run = train("mixed.npz", "mixed.nodes", *dealt, *clip, "--noise", "0.01")
    moved = np.abs(np.load("mixed.npz")["w1"] - np.load("clip.npz")["w1"]).max()
    report(run.code == 0 and 1e-6 < moved < 0.5, "with noise the parameters differ by less than 0.5",
           f"{moved}\n{run}")

    owners = [Listed(Server(f"o{i}", [me], "--threads", "1", "--data", f"own{i}.npz",
                            "--any-peers", "--any-roster", "--epsilon", "none", "--min-rows", "1"))
              for i in range(4)]
    own = ("--examples", "30")
    harness.node_file("owners.nodes", owners)
    first = train("own.npz", "owners.nodes", *own)
    members = python(me, 2, data=sets[2:])
    harness.node_file("mixed.nodes", owners[:2] + members)
    run = train("mixed.npz", "mixed.nodes", *own)
    report(first.code == run.code == 0 and same("own.npz", "mixed.npz"),
           "with members' own examples the sums are the same", f"{first}{run}")
    for other in owners:
        report(other.server.stop() == 0, "a node with data exits with code 0")

    def one(kind):
        name, session = kind
        where = name.replace(" ", "_")
        bad = python(me, 1, session)
        beside = plain[2:3] + python(me, 1, Patient) if session is Accuser else plain[2:]
        harness.node_file(f"{where}.nodes", plain[:2] + bad + beside)
        run = train(f"{where}.npz", f"{where}.nodes", *dealt, "--survivors", "4", "--epochs", "1")
        for other in bad + beside:
            if isinstance(other, node.Node):
                other.close()
        fine = run.code == 0 and finite(f"{where}.npz")  # the four other members are sufficient
        if name in SPOIL:
            port = bad[0].line("n", "d").split()[0]
            fine = fine and (f"({port}) no longer takes part in the training: "
                             f"{SPOIL[name]}") in run.err
        return fine and run.seconds < 90, f"a member that {name}", run

    harness.everything(one, list(misbehaving().items()), 10)
    for other in plain:
        report(other.server.stop() == 0, "a node exits with code 0")
    harness.finish()


if __name__ == "__main__":
    main()
