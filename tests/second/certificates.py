"""
Verifies output of `sherd` by certificate.py and functions.py: certificates of every kind of result,
modified certificates, and the vectors of docs/FUNCTIONS.md.
"""
import json
import os
import shutil

import numpy as np

from . import certificate, functions, harness


def main():
    with open(os.path.join(os.environ["R"], "docs/FUNCTIONS.md"), encoding="utf-8") as file:
        rows, wrong = functions.vectors(file.read())
    harness.report(rows > 50 and wrong == 0, "functions.py computes the vectors of FUNCTIONS.md",
                   f"{wrong} of {rows}")
    me = harness.identity("me.key")
    random = np.random.default_rng(11)
    harness.operands(2, 13, 17, 11)
    np.save("i.npy", random.integers(-9000, 9000, (13, 17)).astype("<i2"))
    np.save("f4.npy", random.standard_normal((13, 17)).astype("<f4"))
    np.save("F.npy", np.asfortranarray(random.standard_normal((13, 17))))
    np.save("tiny.npy", random.standard_normal((13, 17)) * 1e-300)
    np.save("v.npy", random.standard_normal(17))
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 709.9, 710.1, -745.2, -746.1, 5e-324, -5e-324,
             1e308, -1e308, 1e-8, 19.99, 20.01, -0.3465, 0.3466]
    np.save("E.npy", np.concatenate([
        random.standard_normal(500) * 10.0 ** random.integers(-12, 3, 500),
        random.uniform(-750, 750, 482), edges]).reshape(40, 25))
    np.save("G.npy", random.standard_normal((40, 25)))

    up = harness.Run("cluster", "up", "-n", "4", "--bind-to", "none")
    harness.report(up.code == 0, "a cluster starts", up)
    made = []

    def make(name, *arguments):
        made.append((name, arguments))

    make("exact", "multiply", "A.npy", "B.npy", "--mode", "exact")
    make("wide", "multiply", "A.npy", "B.npy", "--bits", "26")
    make("narrow", "multiply", "A.npy", "B.npy", "--bits", "2", "--scheme", "plain")
    make("integers", "multiply", "i.npy", "B.npy", "--mode", "exact")
    make("fortran", "multiply", "F.npy", "B.npy", "--mode", "exact")
    make("tiny", "multiply", "tiny.npy", "B.npy", "--mode", "exact")
    make("single", "multiply", "f4.npy", "B.npy", "--mode", "exact")
    make("vector", "multiply", "A.npy", "v.npy", "--mode", "exact")
    make("float", "multiply", "A.npy", "B.npy")
    make("public", "multiply", "A.npy", "B.npy", "--mode", "exact", "--certificate-public")
    make("share", "multiply", "A.npy", "B.npy", "--scheme", "share", "--bits", "14", "--bits-b", "9")
    make("share1", "multiply", "A.npy", "B.npy", "--scheme", "share1")
    for op in ("sigmoid", "square", "relu", "tanh", "exp"):
        make(op, "apply", op, "E.npy")
    make("minus", "apply", "minus", "E.npy", "G.npy")
    make("times", "apply", "multiply", "E.npy", "G.npy")

    def files(name, arguments):
        return [a for a in arguments if a.endswith(".npy")] + [f"{name}.out.npy"]

    def one(case):
        name, arguments = case
        run = harness.Run(*arguments, "-o", f"{name}.out.npy", "--certificate", f"{name}.json",
                          "--key", "me.key", "--timeout", "60")
        try:
            good = run.code == 0 and certificate.verify(
                f"{name}.json", files(name, arguments), me.pin) == me.pin
            why = run
        except certificate.Wrong as error:
            good, why = False, f"{run}{error}"
        return good, f"a certificate verifies in Python: {' '.join(arguments)}", why

    harness.everything(one, made, 2)

    def refused(code, what, name, given, signer=None):
        """Checks that both verifiers reject the certificate with this code."""
        try:
            certificate.verify(f"{name}.json", given, signer)
            ours = 0
        except certificate.Wrong as error:
            ours = error.code
        run = harness.Run("verify", f"{name}.json", *given,
                          *(["--signer", "key=" + signer] if signer else []))
        harness.report(ours == code == run.code, f"both verifiers reject {what}",
                       f"{code} expected, Python {ours}\n{run}")

    given = files("exact", made[0][1])
    with open("exact.json", encoding="utf-8") as file:
        whole = json.load(file)

    def edited(name, change):
        copy = json.loads(json.dumps(whole))
        change(copy)
        with open(f"{name}.json", "w", encoding="utf-8") as out:
            json.dump(copy, out)

    edited("count", lambda c: c["nodes"].update(count=9))
    refused(6, "a modified certificate", "count", given)
    edited("schema", lambda c: c.update(schema="sherd/certificate/9"))
    refused(14, "another version", "schema", given)
    edited("alien", lambda c: c.update(schema="something"))
    refused(3, "another schema", "alien", given)
    edited("value", lambda c: c["signature"].update(value="00" * 64))
    refused(6, "a signature of zeros", "value", given)
    refused(6, "another signer", "exact", given, "sha256:" + "A" * 43)
    refused(3, "another input", "exact", ["f4.npy", *given[1:]])
    refused(2, "a missing file", "exact", given[:1] + given[2:])
    refused(4, "a missing certificate", "none", given)
    changed = np.load(given[2])
    changed[3, 4] = np.nextafter(changed[3, 4], 9)
    np.save("changed.npy", changed)
    refused(9, "one changed bit of the result", "exact", [*given[:2], "changed.npy"])
    np.save("other.npy", np.load("A.npy") + 1e-9)
    refused(3, "an input that differs by 1e-9", "exact", ["other.npy", *given[1:]])
    shutil.copyfile("exact.json", "cut.json")
    with open("cut.json", "r+", encoding="utf-8") as file:
        file.truncate(300)
    refused(3, "a truncated certificate", "cut", given)
    harness.Run("cluster", "down")
    harness.finish()


if __name__ == "__main__":
    main()
