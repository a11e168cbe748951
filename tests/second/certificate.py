"""
Verifies certificates as docs/CERTIFICATES.md describes: signature, digests, and the recomputed
result.

    python3 -m second.certificate CERT.json A.npy [B.npy] C.npy [--signer KEY]

Exit codes are those of the document's table, for what this program checks.
"""
import base64
import hashlib
import json
import math
import sys
from fractions import Fraction

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from . import functions

SPKI = bytes.fromhex("302a300506032b6570032100")
OPERATIONS = {"product": 2, "minus": 2, "multiply": 2, "sigmoid": 1, "square": 1, "relu": 1,
              "tanh": 1, "exp": 1}


class Wrong(Exception):
    """An exit code and a message."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def need(good, code, text):
    if not good:
        raise Wrong(code, text)


def digest(a):
    a = np.ascontiguousarray(a.astype(a.dtype.newbyteorder("<")))
    head = "sherd-matrix-v1 %s %d %d\n" % (a.dtype.str, *a.shape)
    return hashlib.sha256(head.encode() + a.tobytes()).hexdigest()


def signer(certificate):
    """Checks the signature; returns the fingerprint of the signing key."""
    certificate = dict(certificate)
    signature = certificate.pop("signature")
    text = json.dumps(certificate, sort_keys=True, separators=(",", ":")).encode()
    key = bytes.fromhex(signature["key"])
    need(signature["algorithm"] == "Ed25519", 3, "algorithm")
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(
            bytes.fromhex(signature["value"]), b"sherd-certificate-v1\n" + text)
    except InvalidSignature:
        raise Wrong(6, "the signature is invalid") from None
    return "sha256:" + base64.b64encode(hashlib.sha256(SPKI + key).digest()).decode().rstrip("=")


def matrix(path, said):
    try:
        a = np.load(path)
    except FileNotFoundError:
        raise Wrong(4, f"{path} does not exist") from None
    if a.ndim == 1:
        a = a.reshape(-1, 1) if said["shape"][0] == len(a) else a.reshape(1, -1)
    need(list(a.shape) == said["shape"] and a.dtype.str == said["dtype"], 3, f"{path}: shape")
    return a


def whole(a, bits):
    """Returns Python integers and the scale s; raises Wrong(11) if a value is not finite."""
    if bits == 0:
        return [[int(x) for x in row] for row in a.tolist()], 0
    need(np.isfinite(a).all(), 11, "not finite")
    top, scale = Fraction(float(np.abs(a).max())), 0
    if top:
        limit = (1 << bits - 1) - 1
        scale = bits - 1
        while round(top * Fraction(2) ** scale) > limit:
            scale -= 1
    factor = Fraction(2) ** scale  # round() of a Fraction rounds ties to even
    return [[round(Fraction(x) * factor) for x in row] for row in a.tolist()], scale


def as_double(n, scale):
    """n as a double, times 2^-scale."""
    value = float(n)
    try:
        return math.ldexp(value, -scale)
    except OverflowError:
        return math.copysign(math.inf, value)


def exact(a, b, bits):
    left, s = whole(a, bits[0])
    right, t = whole(b, bits[1])
    columns = list(zip(*right))
    return np.array([[as_double(sum(x * y for x, y in zip(row, column)), s + t)
                      for column in columns] for row in left])


def within(a, b, c):
    """Whether each entry of a float product is within gamma_k |A||B|, computed in fractions."""
    k = a.shape[1]
    u = Fraction(1, 1 << 53)
    gamma = k * u / (1 - k * u)
    left = [[Fraction(x) for x in row] for row in a.astype(float).tolist()]
    columns = list(zip(*[[Fraction(x) for x in row] for row in b.astype(float).tolist()]))
    for i, row in enumerate(left):
        for j, column in enumerate(columns):
            terms = [x * y for x, y in zip(row, column)]
            bound = gamma * sum(map(abs, terms)) + k * Fraction(1, 1 << 1074)
            if not math.isfinite(c[i, j]) or abs(Fraction(float(c[i, j])) - sum(terms)) > bound:
                return False
    return True


def same_bits(a, b):
    return a.shape == b.shape and bool((a.view(np.uint64) == b.view(np.uint64)).all())


def verify(path, files, wanted=None):
    """Returns the signer's fingerprint, or raises Wrong."""
    try:
        with open(path, encoding="utf-8") as file:
            certificate = json.load(file)
    except FileNotFoundError:
        raise Wrong(4, "cannot open") from None
    except ValueError:
        raise Wrong(3, "not a JSON object") from None
    schema = certificate.get("schema", "")
    need(schema.startswith("sherd/certificate/"), 3, "schema")
    need(schema == "sherd/certificate/1", 14, "version")
    by = signer(certificate)
    need(wanted in (None, by), 6, f"signed by {by}")
    operation = certificate["operation"]
    need(operation in OPERATIONS, 2, "operation")
    said = certificate["inputs"] + [certificate["result"]]
    need(len(said) == OPERATIONS[operation] + 1, 3, "inputs")
    need(len(files) == len(said), 2, "files")
    given = [matrix(file, one) for file, one in zip(files, said)]
    for a, one in zip(given[:-1], said):
        need(one["sha256"] in (None, digest(a)), 3, "a different input")
    need(digest(given[-1]) == said[-1]["sha256"], 9, "a different result")
    if operation != "product":
        inputs = [a.astype(np.float64) for a in given[:-1]]
        good = same_bits(functions.apply(functions.NAMES[operation], *inputs), given[-1])
    elif certificate["arithmetic"]["mode"] == "exact":
        good = same_bits(exact(*given[:2], certificate["arithmetic"]["bits"]), given[2])
    else:
        good = within(*given)
    need(good, 9, "the recomputed result differs")
    return by


def main(arguments):
    wanted = None
    if "--signer" in arguments:
        at = arguments.index("--signer")
        wanted = arguments[at + 1].removeprefix("key=")
        del arguments[at:at + 2]
    try:
        print("equal: yes, signed by", verify(arguments[0], arguments[1:], wanted))
    except Wrong as error:
        print(error, file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
