"""
The command over nodes of misbehaviours.py, each kind alone and beside good nodes: it gives the
right result, or an error with its exit code and a message, within bounds of time and memory.
"""
import os
import sys

from . import harness, misbehaviours, node

ALONE, BESIDE = 15, 60  # seconds
MEMORY = 200 << 20
# Errors that nodes may cause: failed peers, too few nodes, wrong answers, exposure, version, time.
ERRORS = {5, 6, 7, 8, 10, 14, 124}
SCHEMES = (("--scheme", "permute", "--exposure-max", "1"),
           ("--scheme", "plain", "--mode", "exact"),
           ("--scheme", "share", "--spare", "1", "--same-host-domains"),
           ("--scheme", "share1", "--spare", "1", "--same-host-domains"),
           ("--scheme", "share", "--spare", "1", "--same-host-domains", "--colluding", "2"),
           ("--scheme", "blind"))
# These kinds run under every scheme; each of the others under one of the first four beside good
# nodes, and under one of the first two alone, since schemes differ in what they do without a node.
EVERYWHERE = ("computes one wrong number", "computes zeros", "answers with one row more",
              "answers with a short part", "drips its answer", "is mute", "sends 130 PINGs",
              "closes at TASK", "resets at PUT", "answers before any task",
              "refuses every task with -11", "refuses every block", "answers after a second",
              "sends WELCOME with the largest numbers", "sends WELCOME with devices of no size",
              "sends WELCOME with the largest numbers and no devices", "sends WELCOME with speed NaN")

SLOW = ("mute", "dead", "silent", "drip", "never", "without a", "again", "no more")


def main():
    me = harness.identity("me.key")
    harness.operands()
    good = [node.Node({me.pin}) for _ in range(5)]
    kinds = [(i, name) for i, name in enumerate(misbehaviours.KINDS)
             if len(sys.argv) < 2 or sys.argv[1] in name]

    slowest = []

    def one(case):
        (i, name), beside, scheme = case
        session, tls, harmless = misbehaviours.KINDS[name]
        # Good nodes: the code of shares needs five, or six, one of which is spare.
        many = 4 + ("--colluding" in scheme) if "--spare" in scheme else 2
        alone = many + 1 if "--spare" in scheme else 2
        bad = [node.Node({me.pin}, session, **tls) for _ in range(1 if beside else alone)]
        nodes = good[:many] if beside else bad
        if beside:
            nodes.insert(i // 4 % (many + 1), bad[0])
        timeout = BESIDE if beside else ALONE
        where = f"{i}{'b' if beside else 'a'}{SCHEMES.index(scheme)}"
        if "blind" in scheme:
            made = harness.Run("prepare", "B.npy", "--rows", 40, "-o", f"{where}.masks")
            assert made.code == 0, made
            scheme += ("--masks", f"{where}.masks")
        harness.node_file(f"{where}.nodes", nodes)
        if "control characters" in name:  # -v shows more of what nodes send, and measures first
            scheme += ("-v",)
        run = harness.Run("multiply", "A.npy", "B.npy", "-o", f"{where}.npy", "--check",
                          "--nodes", f"{where}.nodes", "--key", "me.key", "--timeout", timeout,
                          *scheme, limit=timeout + 20)
        for other in bad:
            other.close()
        there = os.path.exists(f"{where}.npy")
        right = run.code == 0 and "equal: yes" in run.err and there
        error = run.code in ERRORS and "sherd: multiply: " in run.err and not there
        fine = (right if beside or harmless is misbehaviours.HARMLESS else
                error if harmless is misbehaviours.BAD else right or error)
        bound = (run.seconds < timeout + 5 and run.peak < MEMORY and
                 (run.out + run.err).replace("\n", "").isprintable())
        slowest.append((run.seconds, i, name, beside))
        beside = "beside good ones" if beside else "alone"
        return fine and bound, f"a node that {name}, {beside}, {' '.join(scheme[1:6])}", run

    cases = []
    for i, name in kinds:
        slow = any(word in name for word in SLOW)
        cases += [((i, name), beside, scheme) for beside in (False, True)
                  for scheme in (SCHEMES if name in EVERYWHERE else
                                 (SCHEMES[i % (4 if beside and not slow else 2)],))]
    cases.sort(key=lambda case: not any(word in case[0][1] for word in SLOW))
    harness.everything(one, cases, 16)
    print(f"# slowest: {sorted(slowest)[-40:]}", file=sys.stderr)
    harness.finish()


if __name__ == "__main__":
    main()
