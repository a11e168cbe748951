"""Training in fixed point, implemented from its description alone, without code of sherd.

`python3 train_v1.py FOLDER [bits [seed.bin]]` trains the dense ReLU network of FOLDER/initial.npz
(w1, b1, w2, ...) on FOLDER/data.npz (x, y) as FOLDER/net.conf says, with 64-bit integers in place
of every dot product, and compares each parameter with FOLDER/model.npz, bit for bit. With a seed,
operands are rounded stochastically.

Every operand has one exponent s: the largest for which |rint(a 2^s)| < 2^(bits-1) for all entries;
the data have one exponent for all batches. Products are sums of integers, rounded once. All other
operations are float64, in the order of the code, with sums over ascending rows.
"""
import hashlib
import os
import runpy
import sys

import numpy as np

perm_v1 = runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "perm_v1.py"))


def recipe(path):
    lines = [line.split("#")[0].split("=") for line in open(path)]
    return [(a.strip(), b.split()) for a, b in (x for x in lines if len(x) == 2)]


def exponent(x, bits):
    if x.dtype.kind in "iu":
        return None  # integers are not scaled
    bound, most = 2 ** (bits - 1) - 1, np.max(np.abs(x), initial=0.0)
    s = bits - 1 - int(np.frexp(most)[1])
    while most > 0 and np.rint(np.ldexp(most, s)) > bound:
        s -= 1
    return s if most > 0 else 0


def mixed(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


class Chance:
    """Random numbers for the rounding of a tensor, from seed, step and its number in the step."""

    def __init__(self, seed):
        key = hashlib.blake2b(b"rounding\0" + bytes(8), key=seed, digest_size=32).digest()
        self.words = perm_v1["chacha20"](key, 0, 0, 1)[:4]
        self.step = self.tensor = 0

    def tosses(self, shape):
        key = 0
        for w in self.words + [self.step, self.tensor]:
            key = mixed(((key ^ w) + 0x9E3779B97F4A7C15) % 2**64)
        at = np.arange(shape[0] * shape[1], dtype=np.uint64).reshape(shape)
        z = np.uint64(key) + (at + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Arithmetic:
    def __init__(self, bits, seed):
        self.bits = bits
        self.chance = Chance(seed) if seed else None

    def step(self, number):
        if self.chance:
            self.chance.step, self.chance.tensor = number, 0

    def rounded(self, x):
        """Returns (integers, s); with stochastic rounding, x is the next tensor of the step."""
        s, bound = exponent(x, self.bits), 2 ** (self.bits - 1) - 1
        if s is None:
            y, s = x, 0
        elif not self.chance:
            y = np.rint(np.ldexp(x, s))
        else:
            y = np.ldexp(x, s)
            low = np.floor(y)
            y = np.clip(low + (self.chance.tosses(x.shape) < y - low), -bound, bound)
        if self.chance:
            self.chance.tensor += 1
        return y.astype(np.int64), s

    def product(self, a, b):
        """The product of a and b, which are matrices or results of `rounded`."""
        (a, s), (b, t) = (x if isinstance(x, tuple) else self.rounded(x) for x in (a, b))
        sums = a @ b
        assert np.max(np.abs(sums), initial=0) < 2**53  # the sum is exact
        return np.ldexp(sums.astype(np.float64), -(s + t)) + 0.0


def column_sums(dy):
    out = np.zeros(dy.shape[1])
    for row in dy:
        out = out + row
    return out


def learn(arithmetic, x, kept, params, targets, l2):
    """Gradients of one batch, in the order of params. kept: x, rounded together with all data."""
    inputs, outputs = [kept], []
    for i in range(0, len(params), 2):
        y = arithmetic.product(inputs[-1], params[i]) + params[i + 1]
        if i + 2 < len(params):
            y = np.where(y > 0, y, 0.0)
            inputs.append(y)
        outputs.append(y)
    dy, gradient = (outputs[-1] - targets) / float(len(targets)), []
    for i in reversed(range(len(params) // 2)):
        a = inputs[i]
        left = (a[0].T, a[1]) if isinstance(a, tuple) else a.T
        dw = arithmetic.product(left, dy)
        gradient = [dw + l2 * params[2 * i] if l2 else dw, column_sums(dy)] + gradient
        if i:
            dy = arithmetic.product(dy, params[2 * i].T)
            dy = np.where(outputs[i - 1] > 0, dy, 0.0)
    return gradient


def train(folder, bits, seed):
    conf = recipe(folder + "/net.conf")
    said = {k: v for k, v in conf if k != "layer"}
    data, first = np.load(folder + "/data.npz"), np.load(folder + "/initial.npz")
    layers = [v for k, v in conf if k == "layer" and v != ["relu"]]
    params = [first[n + str(i + 1)] for i in range(len(layers)) for n in "wb"]
    assert said["loss"] == ["squared"] and said["order"] == ["given"] and layers[0][0] == "dense"
    l2, rate = float(said.get("l2", ["0"])[0]), float(said["rate"][0])
    beta, batch = float(said["method"][1]), int(said["batch"][0])
    x, labels = data["x"], data["y"].ravel()
    targets = (labels[:, None] == np.arange(params[-1].size)).astype(np.float64)
    arithmetic, velocity, number = Arithmetic(bits, seed), [np.zeros_like(p) for p in params], 0
    if arithmetic.chance:  # the data are tensor 0 of a separate step
        arithmetic.chance.step = 2**64 - 1
    kept, s = arithmetic.rounded(x)
    for _ in range(int(said["epochs"][0])):
        for at in range(0, len(x), batch):
            rows = slice(at, at + batch)
            arithmetic.step(number)
            g = learn(arithmetic, x[rows], (kept[rows], s), params, targets[rows], l2)
            velocity = [beta * v + d for v, d in zip(velocity, g)]
            params = [p - rate * v for p, v in zip(params, velocity)]
            number += 1
    return params


def main(folder, bits="17", seed=None):
    params = train(folder, int(bits), open(seed, "rb").read() if seed else None)
    got = np.load(folder + "/model.npz")
    for i, p in enumerate(params):
        name = "wb"[i % 2] + str(i // 2 + 1)
        same = got[name].ravel().view("<u8") == p.ravel().view("<u8")
        if not same.all():
            at = int(np.flatnonzero(~same)[0])
            sys.exit(f"{name}: {np.sum(~same)} of {same.size} differ, the first is entry {at}: "
                     f"{got[name].ravel()[at]!r}, not {p.ravel()[at]!r}")
    print(sum(p.size for p in params), "parameters are equal")


if __name__ == "__main__":
    main(*sys.argv[1:])
