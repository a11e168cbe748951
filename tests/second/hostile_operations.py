"""
`sherd node`, with and without its own examples, under coordinators that send wrong requests for
gradients, all-reduce groups and secure sums: the node refuses each with a code of docs/PROTOCOL.md
or ends the session. Then the same work gives the right result, and so do valid clients at the same
time.
"""
import sys
import threading
import time

import numpy as np

from . import attacks, grounds, harness
from . import hostile_allreduce, hostile_gradients, hostile_sums  # add the rows of the table
from .coordinator import Ended, Server
from .hostile_coordinators import World, canary

MEMORY = 64 << 20
SPARE = 96 << 20  # memory of a node's process beyond its budget
OWN = ("--data", "own.npz", "--any-peers", "--epsilon", "none", "--min-rows", "1")


def good_sums(world, stop, faults, count):
    """A valid client: sums and rounds of gradients, in turn, each in its own session."""
    try:
        sums, rounds = grounds.Secure(world, "new", own=True), grounds.Gradients(world)
        while not stop.is_set():
            for ground in (sums, rounds):
                count.append(ground.good())
                if not count[-1]:
                    faults.append(type(ground).__name__)
            time.sleep(0.3)
        sums.close()
        rounds.close()
    except Exception as error:
        faults.append(repr(error))


def main():
    me, other = harness.identity("me.key"), harness.identity("other.key")
    np.savez("own.npz", x=grounds.OWN[0], y=grounds.OWN[1][:, 0])
    nodes = [Server(name, [me, other], "--threads", "1", "--memory", str(MEMORY), *options)
             for name, options in (("node", ()), ("owner", OWN))]
    worlds = [World(node, me) for node in nodes]
    stop, waits, faults, count = threading.Event(), [], [], []
    beside = [threading.Thread(target=canary, args=(World(nodes[0], other), stop, waits, faults)),
              threading.Thread(target=good_sums, args=(World(nodes[1], other), stop, faults, count))]
    for one in beside:
        one.start()
    slowest = []

    def one(name):
        make, function, wanted = attacks.CASES[name]
        began = time.monotonic()
        ground = make(worlds)
        got = grounds.code_of(ground, function)
        if isinstance(got, tuple) and got[0] == "ended":
            ground = ground.again()
        try:
            good = ground.good()
            ground.close()
        except Ended as error:
            good = repr(error)
        took = time.monotonic() - began
        slowest.append((round(took, 1), name))
        return (got in wanted and good is True and took < 60 and all(n.lives() for n in nodes), name,
                f"{got}, expected {wanted}; then {good}; {took:.1f} s")

    harness.everything(one, [name for name in attacks.CASES
                             if len(sys.argv) < 2 or sys.argv[1] in name], 3)
    stop.set()
    for thread in beside:
        thread.join(60)
    harness.report(not faults and len(sys.argv) > 1 or len(waits) > 20 and len(count) > 10,
                   "valid clients get right answers at the same time",
                   f"{faults} {len(waits)} {len(count)}")
    print(f"# of {len(waits)} answers the slowest took {max(waits) * 1000:.0f} ms; {len(count)} "
          f"valid sums and rounds; slowest: {sorted(slowest)[-8:]}", file=sys.stderr)
    for node in nodes:
        peak = node.status("VmHWM")
        print(f"# a node's peak: {peak >> 20} MiB of a budget of {MEMORY >> 20}", file=sys.stderr)
        harness.report(peak < MEMORY + SPARE, "a node's memory stays within its budget", peak)
        harness.report(node.stop() == 0, "a node exits with code 0",
                       open(node.log, encoding="utf-8").read())
    harness.finish()


if __name__ == "__main__":
    main()
