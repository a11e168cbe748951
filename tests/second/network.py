"""
Networks of docs/PROTOCOL.md, "The recipe": the gradient of the mean cost over some examples, with
products in fixed point (bits 2 to 53) or in float64 (0).
"""
import math

import numpy as np

from . import blocks, functions, records
from .blocks import Refused


def words(line, *names):
    """The values of `name value` pairs after a layer's first words; None for a missing pair."""
    return [int(line[line.index(name) + 1]) if name in line else None for name in names]


class Layer:
    def __init__(self, line, shape):
        self.kind, self.shape = line[0], shape
        height, width, channels = shape
        self.window = None
        self.weights = self.out = None
        if self.kind == "dense":
            units = int(line[1])
            self.weights, self.out = (height * width * channels, units), (1, 1, units)
        elif self.kind in ("conv2d", "max-pool", "average-pool"):
            if self.kind == "conv2d":
                units, (side,) = int(line[1]), words(line, "window")
            else:
                units, side = channels, int(line[1])
            stride, padding = words(line, "stride", "padding")
            stride = stride or (1 if self.kind == "conv2d" else side)
            self.window = {"height": height, "width": width, "channels": channels, "window": side,
                           "stride": stride, "padding": padding or 0}
            high, wide = ((length + 2 * (padding or 0) - side) // stride + 1
                          for length in (height, width))
            self.out = (high, wide, units)
            if self.kind == "conv2d":
                self.weights = (side * side * channels, units)
        elif self.kind == "flatten":
            self.out = (1, 1, height * width * channels)
        else:
            self.out = shape

    def count(self):
        return (self.weights[0] + 1) * self.weights[1] if self.weights else 0


class Recipe:
    def __init__(self, text):
        self.text = text
        self.layers, self.values = [], {}
        for line in text.splitlines():
            line = line.split("#")[0]
            if not line.strip():
                continue
            key, _, value = line.partition("=")
            key, value = key.strip(), value.split()
            if key == "layer":
                self.layers.append(value)
            else:
                self.values[key] = value
        shape = [int(x) for x in self.values["input"] if x != "x"]
        shape = tuple(shape) if len(shape) == 3 else (1, 1, shape[0])
        self.inputs = math.prod(shape)
        for i, line in enumerate(self.layers):
            self.layers[i] = Layer(line, shape)
            shape = self.layers[i].out
        self.outputs = math.prod(shape)
        self.tiers = [layer for layer in self.layers if layer.weights]
        self.squared = self.values["loss"] == ["squared"]
        self.total = self.values.get("bias_gradient") == ["total"]
        self.l2 = float(self.values.get("l2", ["0"])[0])


def whole(a, bits):
    """Integers (as float64 below 2^53) and their scale."""
    if a.dtype.kind in "iu":
        return a.astype(np.float64), 0
    top = float(np.abs(a).max()) if a.size else 0.0
    if not math.isfinite(top):
        raise Refused(records.ERANGE, "an operand that is not finite")
    if top == 0:
        return np.zeros(a.shape), 0
    limit, scale = 2.0 ** (bits - 1) - 1, min(bits - 1, bits - math.frexp(top)[1])
    while np.rint(math.ldexp(top, scale)) > limit:
        scale -= 1
    return np.rint(np.ldexp(a.astype(np.float64), scale)), scale


def product(a, b, bits):
    if bits == 0:
        return a.astype(np.float64) @ b.astype(np.float64)
    left, s = whole(a, bits)
    right, t = whole(b, bits)
    top = (np.abs(left).max() if left.size else 0) * (np.abs(right).max() if right.size else 0)
    if top * a.shape[1] <= 2.0**53:
        sums = left @ right
    else:
        sums = np.array([[float(x) for x in row] for row in
                         np.vectorize(int, otypes=[object])(left) @
                         np.vectorize(int, otypes=[object])(right)]).reshape(len(a), b.shape[1])
    return np.ldexp(sums, -(s + t)) + 0.0


def sums(a, axis):
    """Sums in ascending order, one addition after the other."""
    return np.add.accumulate(a, axis).take(-1, axis) + 0.0


def spread(rows, w, images):
    """The gradient for the images: the sum of the gradients of overlapping windows."""
    pad, side, stride, channels = w["padding"], w["window"], w["stride"], w["channels"]
    out = np.zeros((images, w["height"] + 2 * pad, w["width"] + 2 * pad, channels))
    down = (out.shape[1] - side) // stride + 1
    across = (out.shape[2] - side) // stride + 1
    rows = rows.reshape(images, down, across, side, side, channels)
    for y in range(down):
        for x in range(across):
            out[:, y * stride:y * stride + side, x * stride:x * stride + side] += rows[:, y, x]
    return out[:, pad:pad + w["height"], pad:pad + w["width"]].reshape(images, -1)


class Network:
    known = {}  # gradients

    def __init__(self, recipe, bits):
        self.recipe, self.bits = recipe, bits

    def forward(self, x, parameters):
        """Returns the outputs; keeps what the backward pass needs."""
        self.kept = []
        tier = 0
        for layer in self.recipe.layers:
            before = x
            if layer.weights:
                inputs, units = layer.weights
                w = parameters[tier][:inputs * units].reshape(inputs, units)
                bias = parameters[tier][inputs * units:]
                tier += 1
                rows = blocks.windows(x, layer.window) if layer.window else x
                x = (product(rows, w, self.bits) + bias).reshape(len(x), -1)
                self.kept.append((layer, rows, w))
            elif layer.window:
                side, channels = layer.window["window"], layer.window["channels"]
                rows = blocks.windows(x.astype(np.float64), layer.window).reshape(
                    -1, side * side, channels)
                x = (rows.max(1) if layer.kind == "max-pool"
                     else sums(rows, 1) / (side * side)).reshape(len(x), -1)
                self.kept.append((layer, rows, None))
            else:
                x = self.plain(layer.kind, x)
                self.kept.append((layer, before, x))
        return x.astype(np.float64)

    @staticmethod
    def plain(kind, x):
        if kind == "flatten":
            return x
        x = x.astype(np.float64)
        if kind == "softmax":
            e = functions.apply(22, x - x.max(1, keepdims=True))
            return e / sums(e, 1)[:, None]
        if kind == "relu":
            return np.where(x <= 0, 0, x)
        return functions.apply(functions.NAMES[kind], x)

    def gradient(self, x, targets, parameters):
        """Returns the gradient for each tier, the summed cost, and the hits. Many tests ask for the same."""
        key = (self.recipe.text, self.bits, x.dtype, targets.dtype, len(x), x.tobytes(), targets.tobytes(),
               *(tier.tobytes() for tier in parameters))
        found = Network.known.get(key)
        if not found:
            if len(Network.known) > 1000:
                Network.known.clear()
            found = Network.known[key] = self.computed(x, targets, parameters)
        gradients, cost, hits = found
        return [tier.copy() for tier in gradients], cost, hits

    def computed(self, x, targets, parameters):
        m = len(x)
        y = self.forward(x, parameters)
        labels = targets.dtype == np.dtype("<u4")
        if labels:
            one_hot = np.zeros(y.shape)
            if targets.max() >= y.shape[1]:
                raise Refused(records.EINVAL, "a label is not the number of an output")
            one_hot[np.arange(m), targets[:, 0]] = 1
            hits = int((y.argmax(1) == targets[:, 0]).sum())
        else:
            one_hot, hits = targets, 0
        if self.recipe.squared:
            cost = float(((y - one_hot)**2).sum() / 2)
            dy = (y - one_hot) / m
        else:
            e = functions.apply(22, y - y.max(1, keepdims=True))
            p = e / sums(e, 1)[:, None]
            with np.errstate(divide="ignore"):
                cost = float(-np.log(p[one_hot == 1]).sum())
            dy = (p - one_hot) / m
        gradients = []
        for place, (layer, kept, more) in reversed(list(enumerate(self.kept))):
            lowest = place == 0
            if layer.weights:
                dy = dy.reshape(-1, layer.weights[1])
                gw = product(kept.T, dy, self.bits)
                gb = sums(dy, 0)
                if self.recipe.total:
                    gb = np.full(gb.shape, sums(gb, 0))
                gradients.append(np.concatenate([gw.reshape(-1), gb]))
                if not lowest:
                    dy = product(dy, more.T, self.bits)
                    dy = (spread(dy, layer.window, m) if layer.window else dy).reshape(m, -1)
            elif layer.window:
                rows = np.zeros(kept.shape)
                dy = dy.reshape(len(kept), -1)
                if layer.kind == "max-pool":
                    np.put_along_axis(rows, kept.argmax(1)[:, None], dy[:, None], 1)
                else:
                    rows += dy[:, None] / kept.shape[1]
                dy = spread(rows.reshape(len(rows), -1), layer.window, m)
            elif layer.kind == "relu":
                dy = dy * (more > 0)
            elif layer.kind == "sigmoid":
                dy = dy * (more - more * more)
            elif layer.kind == "tanh":
                dy = dy * (1 - more * more)
            elif layer.kind == "softmax":
                dy = more * (dy - (dy * more).sum(1, keepdims=True))
        return gradients[::-1], cost, hits

    def shard(self, x, targets, parameters, steps, each, rate, l2, weight):
        """Returns the result of a shard: numbers to sum for each tier, cost, hits."""
        rows = len(x)
        if not steps:
            return self.gradient(x, targets, parameters)
        now, first, at = [p.copy() for p in parameters], None, 0
        each = min(each or rows, rows)
        for _ in range(steps):
            end = min(at + each, rows)
            gradients, cost, hits = self.gradient(x[at:end], targets[at:end], now)
            if first is None:
                first = cost * (rows / (end - at)), int(hits * rows // (end - at))
            at = 0 if end == rows else end
            for p, g, layer in zip(now, gradients, self.recipe.tiers):
                weights = math.prod(layer.weights)
                p[:weights] -= rate * (g[:weights] + l2 * p[:weights])
                p[weights:] -= rate * g[weights:]
        return [weight * (a - b) for a, b in zip(parameters, now)], *first
