"""
A member of a secure sum seals pieces that do not open: the coordinator names it and trains with the
others.
"""
import numpy as np

from . import harness, sums
from .coordinator import Server
from .harness import report


def main():
    me = harness.identity("me.key")
    with open("seed.bin", "wb") as file:
        file.write(bytes(range(32)))
    with open("sums.conf", "w", encoding="ascii") as file:
        file.write(sums.RECIPE)
    random = np.random.default_rng(7)
    np.savez("dealt.npz", x=random.standard_normal((80, 4)), y=random.integers(0, 3, 80))
    plain = [sums.Listed(Server(f"c{i}", [me], "--threads", "1")) for i in range(4)]
    for kind in ("seals zeros", "seals noise"):
        bad = sums.python(me, 1, sums.misbehaving()[kind])
        harness.node_file("mixed.nodes", plain[:2] + bad + plain[2:])
        run = sums.train("mixed.npz", "mixed.nodes", "--simulate", "--data", "dealt.npz")
        bad[0].close()
        port = bad[0].line("n3", "d").split()[0]
        named = f"({port}) no longer takes part in the training: 4 others cannot open what it sealed"
        report(run.code == 0 and named in run.err, f"a member that {kind} is named and left out", run)
    for other in plain:
        report(other.server.stop() == 0, "a node exits with code 0")
    harness.finish()


if __name__ == "__main__":
    main()
