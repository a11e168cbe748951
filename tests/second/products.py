"""The command `sherd` over nodes that are `node.py`: every scheme, arithmetic and encoding."""
import itertools

import numpy as np

from . import harness, node

NODES = 5


class Bytes(node.Session):
    """Multiplies residues of one byte much faster than others."""

    hello = {**node.Session.hello, "byte_gops": 4000.0, "devices": [
        {**device, "does": device["does"] | 16, "byte_gops": 2000.0}
        for device in node.Session.hello["devices"]]}


def main():
    me = harness.identity("me.key")
    nodes = [node.Node({me.pin}) for _ in range(NODES)]
    harness.node_file("nodes.txt", nodes)
    over = ("--nodes", "nodes.txt", "--key", "me.key", "--timeout", "40",
            "--same-host-domains")
    random = np.random.default_rng(5)
    a, _ = harness.operands()
    integers = {"i1": (-128, 127), "u1": (0, 255), "i2": (-9000, 9000), "u2": (0, 65535),
                "i4": (-1 << 20, 1 << 20), "u4": (0, 1 << 21), "i8": (-1 << 16, 1 << 16)}
    for kind, (low, high) in integers.items():
        np.save(f"{kind}.npy", random.integers(low, high + 1, (40, 30)).astype("<" + kind))
    np.save("f4.npy", a.astype("<f4"))
    np.save("zeros.npy", np.where(random.random((40, 30)) < 0.9, 0, a))
    np.save("wide.npy", np.where(random.random((8, 1000)) < 0.99, 0, 1.5))
    np.save("tall.npy", random.standard_normal((1000, 3)))
    np.save("large.npy", random.standard_normal((400, 300)))
    np.save("square.npy", random.standard_normal((300, 200)))
    np.save("row.npy", a[0])
    np.save("E.npy", np.concatenate([random.standard_normal(1066) * 30, [
        0.0, -0.0, np.inf, -np.inf, np.nan, 710.0, -710.0, 745.2, -745.2, 5e-324, -5e-324, 1e308,
        -1e308, 1e-8]]).reshape(-1, 6))

    cases = []

    def product(*options, a="A.npy", b="B.npy"):
        cases.append(("multiply", (a, b), options))

    for scheme, mode in itertools.product(("plain", "permute"), ("float", "exact")):
        product("--scheme", scheme, "--mode", mode)
        for kind in ("f4", *integers):
            product("--scheme", scheme, "--mode", mode, a=f"{kind}.npy")
    product("--group", "1")
    product("--group", "3", "--mode", "exact")
    product("--shuffle-rows")
    product("--exposure", "balanced", "--shuffle-rows", "--group", "2", "--mode", "exact")
    for encoding, group in itertools.product(("dense", "csr"), ("1", "4", "all")):
        product("--encoding", encoding, "--group", group, a="zeros.npy")
    product("--encoding", "csr", a="wide.npy", b="tall.npy")
    product("--encoding", "csr", "--scheme", "plain", a="wide.npy", b="tall.npy")
    product(a="large.npy", b="square.npy")
    product("--scheme", "plain", a="large.npy", b="square.npy")
    product(a="row.npy")
    for scheme in ("share", "share1"):
        product("--scheme", scheme)
        product("--scheme", scheme, "--bits", "9")
        product("--scheme", scheme, "--bits", "24")
        product("--scheme", scheme, "--spare", "1")
        product("--scheme", scheme, "--code", "lagrange")
        product("--scheme", scheme, "--colluding", "2")
        product("--scheme", scheme, a="i2.npy")
        product("--scheme", scheme, a="large.npy", b="square.npy")
    product("--scheme", "share", "--bits", "14", "--bits-b", "9")

    def masks(name, *options):
        made = harness.Run("prepare", "B.npy", "--rows", "40", *options, "-o", name)
        assert made.code == 0, made
        product("--scheme", "blind", "--masks", name)

    masks("first.masks")
    masks("second.masks", "--bits", "12")
    for op, files in (("sigmoid", 1), ("square", 1), ("relu", 1), ("tanh", 1), ("exp", 1),
                      ("minus", 2), ("multiply", 2)):
        cases.append(("apply", ("E.npy",) * files, (op,)))

    def one(case):
        verb, files, options = case
        out = f"out{cases.index(case)}.npy"
        command = [verb, *options, *files] if verb == "apply" else [verb, *files, *options]
        done = harness.Run(*command, "-o", out, "--check", *over)
        good = done.code == 0 and "equal: yes" in done.err
        return good, f"{' '.join(command)} over nodes in Python", done

    harness.everything(one, cases, 2)
    harness.report(all(n.sessions and any(s.answered for s in n.sessions) for n in nodes),
                   "every node answered tasks")

    nodes = [node.Node({me.pin}, Bytes) for _ in range(NODES)]
    harness.node_file("nodes.txt", nodes)
    del cases[:]
    product("--scheme", "share")
    product("--scheme", "share", "--bits", "9", "--colluding", "2")
    product("--scheme", "share", "--spare", "1", a="i2.npy")
    product("--scheme", "share", a="large.npy", b="square.npy")
    harness.everything(one, cases, 2)
    harness.finish()


if __name__ == "__main__":
    main()
