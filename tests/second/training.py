"""
Training across the two implementations: `sherd train` over nodes in Python, by products and by
gradients, compared with the training of the command alone; and gradients of `sherd node` compared
with network.py, bit for bit in fixed point.
"""
import math

import numpy as np

from . import gradient, harness, node, records
from .coordinator import Coordinator, Refusal, Server
from .harness import report
from .network import Network, Recipe

IMAGES = """input = 8 x 8 x 2
layer = conv2d 3 window 3 stride 1 padding 1
layer = sigmoid
layer = max-pool 2
layer = conv2d 4 window 2 stride 2
layer = tanh
layer = average-pool 2
layer = flatten
layer = dense 5
layer = relu
layer = dense 3
loss = cross-entropy
l2 = 0.01
"""
TRAINED = """data = random
examples = 60
classes = 3
weights = he
batch = 20
order = batches
epochs = 2
rate = 0.1
"""
VALUES = """input = 6
layer = dense 7
layer = tanh
layer = dense 4
layer = sigmoid
layer = dense 2
loss = squared
"""
LABELS = """input = 6
layer = dense 5
layer = relu
layer = dense 4
layer = softmax
loss = squared
bias_gradient = total
"""


def over_nodes(me):
    nodes = [node.Node({me.pin}, gradient.Session) for _ in range(3)]
    harness.node_file("nodes.txt", nodes)
    over = ("--nodes", "nodes.txt", "--key", "me.key", "--timeout", "60")
    with open("images.conf", "w", encoding="ascii") as file:
        file.write(IMAGES + TRAINED)
    cases = [(recipe, "--by", "gradients", *options, "--check")
             for recipe, *options in (
                 ("spiral", "--epochs", "4"), ("parabola", "--epochs", "4"),
                 ("images.conf",), ("images.conf", "--bits", "9"),
                 ("images.conf", "--shards", "3"), ("images.conf", "--local-steps", "3"),
                 ("images.conf", "--local-steps", "4", "--local-batch", "2", "--average", "weighted"))]
    cases += [("images.conf", "--by", "gradients", "--float-gradients"),
              ("images.conf", "--by", "gradients", "--async"),
              ("images.conf", "--scheme", "share", "--same-host-domains", "--check"),
              ("images.conf", "--scheme", "permute", "--mode", "exact", "--check"),
              ("spiral", "--epochs", "3", "--scheme", "plain", "--mode", "exact", "--check",
               "--elementwise", "nodes")]

    def one(case):
        run = harness.Run("train", *case, *over)
        good = run.code == 0 and ("--check" not in case or "bit for bit" in run.out)
        return good, f"train {' '.join(case)} over nodes in Python", run

    harness.everything(one, cases, 3)
    for other in nodes:
        other.close()


def plan(recipe, bits, shards, scale=30, room=60, first_block=10):
    """
    The numbers of a plan; shards: (blocks of inputs and targets, first, rows, local: 5 numbers).
    """
    tiers = len(recipe.tiers)
    out = [1, 1, bits, room, tiers, first_block, len(shards), 1000] + [scale] * tiers
    for inputs, targets, first, rows, steps, each, rate, l2, weight in shards:
        out += [inputs, targets, first, rows, 0, steps, each,
                *np.array([rate, l2, weight]).view("<i8").tolist()]
    return np.array([out], "<i8")


def of_a_node(world, name, text, x, t, bits, local=(0, 0, 0.0, 0.0, 1.0)):
    """One round of two shards: compares the node's sums with those of network.py."""
    c = Coordinator(world.port, world.me, world.pins)
    recipe, random = Recipe(text), np.random.default_rng(4)
    parameters = [random.standard_normal(layer.count()) * 0.5 for layer in recipe.tiers]
    c.put(np.frombuffer(text.encode(), np.uint8)[None], 0, number=1)
    c.put(x, 0, number=2)
    c.put(t, 0, number=3)
    shards = [(2, 3, 0, 7, *local), (2, 3, 7, 5, *local)]
    c.put(plan(recipe, bits, shards), 0, number=4)
    keys = []
    for tier, one in enumerate(parameters):
        c.put(one[None], 0, number=10 + tier)
        keys.append(c.task(3, 4, 10 + tier, (1, len(one) + (9 if tier == 0 else 0)),
                           dtype=records.I64 if bits else records.F64))
    got = [c.wait(key) for key in keys]
    network = Network(recipe, bits)
    want = [np.zeros(len(p), np.int64 if bits else np.float64) for p in parameters]
    figures = []
    for _, _, first, rows, *_ in shards:
        gradients, cost, hits = network.shard(x[first:first + rows], t[first:first + rows],
                                              parameters, *local)
        figures.append((cost, hits))
        count = 1 if local[0] else rows
        for total, g in zip(want, gradients):
            total += np.rint(g * (count * 2.0**30)).astype(np.int64) if bits else g * count
    last = got[0][0, len(want[0]):].copy()
    good = all(math.isclose(last[2 * s:2 * s + 1].view("<f8")[0], cost, rel_tol=1e-9) and
               last[2 * s + 1:2 * s + 2].view("<i8")[0] == hits
               for s, (cost, hits) in enumerate(figures))
    report(good, f"{name}: cost and hits of each shard", (last[:4].view("<f8"), figures))
    times = last[4:].view("<i8")
    report((times >= 0).all() and times.max() < 60e6, f"{name}: times", times)
    for tier, (a, b) in enumerate(zip(got, want)):
        a = a[0, :len(b)]
        report((a == b).all() if bits else np.allclose(a, b, 1e-11, 1e-12),
               f"{name}: sums of tier {tier}", f"{np.abs(a - b).max()} of {np.abs(b).max()}")
    c.close()


def refusals(world):
    c = Coordinator(world.port, world.me, world.pins)
    recipe = Recipe(VALUES)
    c.put(np.frombuffer(VALUES.encode(), np.uint8)[None], 0, number=1)
    c.put(np.ones((4, 6)), 0, number=2)
    c.put(np.ones((4, 2)), 0, number=3)
    for tier, layer in enumerate(recipe.tiers):
        c.put(np.full((1, layer.count()), 0.1), 0, number=10 + tier)
    good = (2, 3, 0, 4, 0, 0, 0.0, 0.0, 1.0)

    def code(numbers, block):
        c.put(numbers, 0, number=block)
        keys = [c.task(3, block, 10 + tier,
                       (1, layer.count() + (7 if tier == 0 else 0)), dtype=records.I64)
                for tier, layer in enumerate(recipe.tiers)]
        codes = []
        for key in keys:
            try:
                c.wait(key)
                codes.append(0)
            except Refusal as error:
                codes.append(error.code)
        return codes

    def changed(at, value):
        numbers = plan(recipe, 17, [good])
        numbers[0, at] = value
        return numbers

    report(code(plan(recipe, 17, [good]), 20) == [0, 0, 0], "a round of one shard is answered")
    for block, (name, at, value, wanted) in enumerate((
            ("another format", 0, 2, records.EFORMAT), ("no recipe", 1, 99, records.EINVAL),
            ("bits 1", 2, 1, records.EFORMAT), ("bits 54", 2, 54, records.EFORMAT),
            ("an entry beyond the room", 3, 0, records.EBUSY),
            ("missing inputs", 11, 99, records.EINVAL),
            ("rows beyond the last", 14, 5, records.ESHAPE),
            ("a first row beyond the last", 13, 9, records.ESHAPE)), 21):
        codes = code(changed(at, value), block)
        report(set(codes) <= {wanted} if wanted != records.EFORMAT else
               set(codes) <= {records.EFORMAT, records.EINVAL}, f"a plan with {name}", codes)
    c.close()


def main():
    me = harness.identity("me.key")
    over_nodes(me)
    world = Server("node", [me], "--threads", "1", "--memory", "256M")
    world.me = me
    random = np.random.default_rng(9)
    pictures = random.integers(0, 256, (12, 128)).astype(np.uint8)
    labels = random.integers(0, 3, (12, 1)).astype("<u4")
    six = random.standard_normal((12, 6))
    for bits in (17, 26, 0):
        kind = f"{bits} bits" if bits else "float64"
        of_a_node(world, f"images, {kind}", IMAGES, pictures, labels, bits)
        of_a_node(world, f"values, {kind}", VALUES, six, random.standard_normal((12, 2)), bits)
        of_a_node(world, f"squared cost of labels, {kind}", LABELS, six, labels, bits)
        of_a_node(world, f"local steps, {kind}", VALUES, six.astype("<f4"),
                  random.standard_normal((12, 2)), bits, (3, 2, 0.1, 0.01, 0.5))
    refusals(world)
    report(world.stop() == 0, "the node exits with code 0")
    harness.finish()


if __name__ == "__main__":
    main()
