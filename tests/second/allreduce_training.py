"""
All-reduce by ring and by halving-doubling among nodes in C and in Python: `sherd train --aggregate`
trains the same network, bit for bit, as the command alone. Also members that misbehave.
"""
import numpy as np

from . import allreduce, harness, link, node, records
from .coordinator import Server
from .harness import report
from .sums import Listed

CONF = """input = 5
layer = dense 7
layer = tanh
layer = dense 3
loss = cross-entropy
l2 = 0.01
data = random
examples = 48
classes = 3
weights = he
batch = 24
order = {order}
method = {method}
epochs = 2
rate = 0.05
"""
LIES = {"sends a wrong sum", "reports a wrong checksum"}


def members(me, count, session=allreduce.Session):
    return [node.Node({me.pin}, session) for _ in range(count)]


def misbehaving():
    def of(**steps):
        return type("Member", (allreduce.Session,), steps)

    def instead(step, change):
        def whole(self, *given):
            return change(getattr(allreduce.Session, step)(self, *given))
        return whole

    def leave(*_given):
        raise link.Closed("on purpose")

    def refuse(code):
        def whole(*_given):
            raise allreduce.Refused(code, "no")
        return whole

    def other(self, to, number, values):
        return allreduce.Session.give(self, to, number, values + np.uint64(1))

    def short(self, to, number, values):
        return allreduce.Session.give(self, to, number, values[:-1])

    kinds = {
        "sends a wrong sum": of(give=other),
        "sends a block that is too short": of(give=short),
        "sends a block of a different step": of(give=lambda s, to, number, values: allreduce.Session.give(
            s, to, number + 7, values)),
        "sends a block twice": of(give=lambda s, to, number, values: [
            allreduce.Session.give(s, to, number, values) for _ in range(2)]),
        "sends nothing": of(give=lambda s, to, number, values: None),
        "reports a wrong checksum": of(reduce=instead("reduce", lambda b: b[:-32] + bytes(8) + b[-24:])),
        "reports a state of 2^60 numbers": of(meet=instead("meet", lambda b: (1 << 60).to_bytes(8, "little"))),
        "reports a cost of NaN": of(grades=instead("grades", lambda b: b"\xff" * 8 + b[8:])),
        "reports a different round": of(grades=instead("grades", lambda b: b[:-8] + b"\x63" + bytes(7)))}
    for step, name in (("meet", "MEET"), ("connect", "CONNECT"), ("grades", "STEP"),
                       ("reduce", "REDUCE"), ("tell", "STATE")):
        kinds[f"closes at {name}"] = of(**{step: leave})
        kinds[f"refuses {name}"] = of(**{step: refuse(records.EREFUSED)})
    return kinds


def main():
    me = harness.identity("me.key")
    servers = [Server(f"c{i}", [me], "--threads", "1") for i in range(3)]
    in_c = [Listed(server) for server in servers]

    def train(name, nodes, method, order, schedule, *options):
        with open(f"{name}.conf", "w", encoding="ascii") as file:
            file.write(CONF.format(method=method, order=order))
        harness.node_file(f"{name}.nodes", nodes)
        return harness.Run("train", f"{name}.conf", "--by", "gradients", "--aggregate", schedule,
                           "--nodes", f"{name}.nodes", "--key", "me.key", "--timeout", "90",
                           *options)

    cases = [(schedule, count, method, order, ()) for schedule in ("ring", "halving-doubling")
             for count, method, order in ((1, "sgd", "batches"), (2, "momentum 0.8", "shuffled"),
                                          (3, "adam", "given"), (2, "adam 0.8 0.99 1e-7", "drawn"))]
    cases += [(schedule, 2, "sgd", "batches", ("--local-steps", "3"))
              for schedule in ("ring", "halving-doubling")]

    def one(case):
        schedule, count, method, order, options = case
        python = members(me, count)
        nodes = [n for pair in zip(python, in_c) for n in pair] + in_c[count:]
        run = train(f"case{cases.index(case)}", nodes, method, order, schedule, "--check", *options)
        for other in python:
            other.close()
        return (run.code == 0 and "bit for bit" in run.out and "warning" not in run.err,
                f"{schedule} with {count} members in Python, {method}, {order}", run)

    harness.everything(one, cases, 1)

    def bad(case):
        at, (name, session) = case
        python = members(me, 3) + members(me, 1, session)
        run = train(f"bad{at}", python, "sgd", "given", ("ring", "halving-doubling")[at % 2],
                    "--epochs", "1", "--check")
        for other in python:
            other.close()
        if name in LIES:  # all members must report the same sum, or the training ends
            fine = run.code == 8 and "sherd: train: " in run.err
        else:             # the three other members are sufficient
            fine = run.code == 0 and "bit for bit" in run.out
        return fine and run.seconds < 120, f"a member that {name}", run

    harness.everything(bad, list(enumerate(misbehaving().items())), 10)
    for server in servers:
        report(server.stop() == 0, "a node exits with code 0")
    harness.finish()


if __name__ == "__main__":
    main()
