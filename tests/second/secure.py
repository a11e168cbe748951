"""A node that takes part in secure sums: docs/PROTOCOL.md, "Secure aggregation"."""
import hashlib
import math
import os
import struct
from fractions import Fraction
from random import SystemRandom

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from . import box, gradient, records
from .blocks import Refused
from .network import Network, Recipe

Q = (1 << 61) - 1
JOIN, ROSTER, SEAL, HIDE, OPEN, CONFIRM, CHECK = 8, 9, 10, 11, 12, 15, 23
FORMAT = 3
RANDOM = SystemRandom()


def digest(*parts):
    text = b"sherd about 1".ljust(16, b"\0")
    for part in parts:
        text += len(part).to_bytes(8, "little") + part
    return hashlib.blake2b(text, digest_size=32).digest()


def raw(public):
    return public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def check(good, code, text):
    if not good:
        raise Refused(code, text)


def bernoulli(p):
    """True with probability p, a fraction."""
    return RANDOM.randrange(p.denominator) < p.numerator


def bernoulli_exp(x):
    """True with probability exp(-x), exactly (Canonne, Kamath, Steinke 2020)."""
    while x > 1:
        if not bernoulli_exp(Fraction(1)):
            return False
        x -= 1
    k = 1
    while bernoulli(x / k):
        k += 1
    return k % 2 == 1


def gaussian(variance):
    """A sample of the discrete Gaussian."""
    t = math.isqrt(variance) + 1
    while True:
        u = RANDOM.randrange(t)
        if not bernoulli_exp(Fraction(u, t)):
            continue
        v = 0
        while bernoulli_exp(Fraction(1)):
            v += 1
        y = u + t * v
        sign = RANDOM.randrange(2)
        if sign and y == 0:
            continue
        if bernoulli_exp(Fraction((y * t - variance) ** 2, 2 * variance * t * t)):
            return -y if sign else y


class Session(gradient.Session):
    """data: its own (inputs, targets), or None for dealt ones."""

    data = None
    hello = {**gradient.Session.hello, "features": 0b11100101}

    def __init__(self, *given):
        super().__init__(*given)
        self.sum = None

    def task(self, job, number, attempt, task):
        steps = {JOIN: self.join, ROSTER: self.roster, SEAL: self.seal, HIDE: self.hide,
                 OPEN: self.open, CONFIRM: self.confirm, CHECK: self.checks}
        step = steps.get(task["op"])
        if step is None:
            return super().task(job, number, attempt, task)
        try:
            question = self.block(job, task["left"])
            check(question[0] == FORMAT, records.EFORMAT, "format")
            check(task["op"] == JOIN or self.sum is not None, records.EINVAL, "no JOIN")
            right = self.block(job, task["right"]) if task.get("right") else None
            body = step(job, [int(x) for x in question], right)
            check(len(body) == task["result"]["len"], records.ESHAPE, "result")
            self.answer(job, number, attempt, task, body)
        except Refused as error:
            self.send(records.refuse(job, number, attempt, 2, error.code, error.text))
        self.done(job, task)
        return None

    def join(self, job, plan, _right):
        self.sum = s = type("Sum", (), {})()
        _, recipe, s.n, s.u, s.t, s.me, s.places, s.epoch, clip, noise, s.inputs, s.targets = plan
        s.text = bytes(self.block(job, recipe))
        s.recipe = Recipe(s.text.decode())
        s.clip, s.noise = struct.unpack("<2d", struct.pack("<2q", clip, noise))
        s.count = sum(layer.count() for layer in s.recipe.tiers)
        s.length = -(-(s.count + 3) // (s.u - s.t))
        s.about = digest(s.text, struct.pack("<4q", s.places, s.epoch, clip, noise))
        s.secret = box.fresh()
        s.round, s.cards = 0, None
        if s.inputs:
            inputs, targets = self.blocks[job, s.inputs], self.blocks[job, s.targets]
            s.x = inputs.values.reshape(inputs.shapes[0])
            s.y = targets.values.reshape(targets.shapes[0])
        else:
            check(self.data is not None, records.EINVAL, "no data")
            s.x, s.y = self.data
            check(s.x.shape[1] == s.recipe.inputs, records.ESHAPE, "columns")
            s.x = s.x / float(s.recipe.values.get("divide_inputs", ["1"])[0])
        private = self.node.identity.private
        s.card = raw(private.public_key()) + raw(s.secret.public_key())
        return s.card + private.sign(self.statement(job, s.me, s.card[32:]))

    def statement(self, job, member, second, dealt=None):
        s = self.sum
        dealt = bool(s.inputs) if dealt is None else dealt
        return b"sherd seal key 2" + struct.pack("<Q5I", job, s.n, s.u, s.t, member, dealt) + second

    def roster(self, job, _plan, cards):
        s = self.sum
        check(s.cards is None, records.EINVAL, "a second roster")
        text = bytes(cards)
        cards = [text[at:at + 128] for at in range(0, len(text), 128)]
        check(len(cards) == s.n and cards[s.me][:64] == s.card, records.EAUTH, "a different card")
        check(len({card[:32] for card in cards}) == s.n, records.EAUTH, "a key twice")
        for member, card in enumerate(cards):
            self.all_alike(job, member, card)
        s.cards, s.roster = cards, digest(s.about, text)
        s.keys = [None if m == s.me else box.shared(s.secret, card[32:64])
                  for m, card in enumerate(cards)]
        return struct.pack("<q", s.n)

    def all_alike(self, job, member, card):
        """
        Checks that a card's member has own examples if this one has, or dealt ones if this one has.
        """
        try:
            self.believe(card[:32], card[64:], self.statement(job, member, card[32:64]))
        except Refused:
            self.believe(card[:32], card[64:],
                         self.statement(job, member, card[32:64], not self.sum.inputs))
            raise Refused(records.EREFUSED, "policy: own and dealt examples") from None

    @staticmethod
    def believe(key, signature, text):
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, text)
        except InvalidSignature:
            raise Refused(records.EAUTH, "an invalid signature") from None

    def seal(self, job, question, _right):
        s = self.sum
        check(s.cards is not None and question[1] > s.round, records.EINVAL, "out of order")
        s.round, s.claimed = question[1], struct.pack("<4q", *question[2:6])
        s.bound = digest(s.roster, s.claimed)
        s.survivors, s.hidden = None, False
        vectors = [np.array([RANDOM.randrange(Q) for _ in range(s.length)], object)
                   for _ in range(s.u)]
        s.mask = np.concatenate(vectors[:s.u - s.t])[:s.count + 3]
        s.pieces, out = [], []
        for member in range(s.n):
            piece = np.zeros(s.length, object)
            for vector in reversed(vectors):
                piece = (piece * (member + 1) + vector) % Q
            s.pieces.append(piece)
            if member == s.me:
                out.append(bytes(8 * s.length + 96))
                continue
            text = struct.pack("<QQII", job, s.round, s.me, member) + s.bound + \
                piece.astype("<u8").tobytes()
            nonce = os.urandom(24)
            out.append(nonce + box.seal(s.keys[member], nonce, text))
        return b"".join(out)

    def hide(self, job, question, parameters):
        s = self.sum
        check(question[1] == s.round and not s.hidden, records.EINVAL, "out of order")
        about = digest(s.roster, struct.pack(f"<{len(question)}q", *question),
                       parameters.astype("<f8").tobytes())
        check(about == s.claimed, records.EINVAL, "a different subject than sealed")
        s.hidden = True
        x = self.upload(question[2], question[3:-1], question[-1], parameters.astype(np.float64))
        return ((x + s.mask) % Q).astype("<u8").tobytes()

    def upload(self, step, scales, cost_scale, parameters):
        """Returns the numbers to sum, as Python integers."""
        s = self.sum
        limit = 1 << 59 - (s.n - 1).bit_length()
        first = step % -(-s.epoch // s.places) * s.places
        last = min(first + s.places, s.epoch)
        x, y = s.x[first:last].astype(np.float64), s.y[first:last]
        labels = y.dtype.kind in "iu"
        good = np.isfinite(x).all(1) & np.isfinite(y.astype(float)).all(1)
        if labels:
            good &= (y[:, 0] < s.recipe.outputs)
            y = y.astype("<u4")
        x, y = x[good], y[good]
        network = Network(s.recipe, 0)
        tiers = np.split(parameters, np.cumsum([layer.count() for layer in s.recipe.tiers])[:-1])
        out = np.zeros(s.count + 3, object)
        if s.clip == 0 and len(x):
            gradients, cost, hits = network.gradient(x, y, tiers)
            numbers = [np.rint(g * (len(x) * 2.0**scale)) for g, scale in zip(gradients, scales)]
            whole = np.concatenate([*numbers, [len(x), np.rint(cost * 2.0**cost_scale), hits]])
            out += [int(v) if v == v else 0 for v in np.clip(whole, -limit, limit)]
        elif s.clip:
            for i in range(len(x)):
                gradients, cost, hits = network.gradient(x[i:i + 1], y[i:i + 1], tiers)
                g = np.concatenate(gradients)
                norm = np.nextafter(math.sqrt(float(g @ g)) * (1 + 1e-12), np.inf)
                g = np.rint(g * (2.0**18 / max(norm, s.clip)))
                cost = np.rint(65536 * min(max(cost * 2.0**cost_scale, -1), 1))
                out += [int(v) for v in np.concatenate([g, [65536, cost, 65536 * hits]])]
        if s.noise:
            size = (2**18 + math.sqrt(s.count) / 2)**2 + 3 * 65536**2
            variance = math.ceil(Fraction(s.noise)**2 * Fraction(size) / (s.u - s.t))
            out += [gaussian(variance) for _ in out]
        return out

    def signed(self, job):
        s = self.sum
        return b"sherd survivors 1".ljust(32, b"\0") + struct.pack("<QQ", job, s.round) + digest(
            s.bound, struct.pack(f"<{len(s.survivors)}I", *s.survivors))

    def confirm(self, job, question, _right):
        s = self.sum
        check(question[1] == s.round and s.hidden and s.survivors is None, records.EINVAL,
              "out of order")
        check(len(question) - 2 >= s.u, records.EFEWNODES, "survivors")
        s.survivors, s.received, s.opened = question[2:], None, False
        return self.node.identity.private.sign(self.signed(job))

    def received(self, job, pieces):
        """Returns the pieces of survivors for this member; None for a piece that does not open."""
        s = self.sum
        width, text = 8 * s.length + 96, bytes(pieces)
        check(len(text) == width * len(s.survivors), records.ESHAPE, "pieces")
        return [s.pieces[s.me] if member == s.me else
                self.unsealed(job, member, text[place * width:(place + 1) * width])
                for place, member in enumerate(s.survivors)]

    def unsealed(self, job, member, row):
        s = self.sum
        plain = box.unseal(s.keys[member], row[:24], row[24:])
        if plain is None or plain[:56] != struct.pack("<QQII", job, s.round, member, s.me) + s.bound:
            return None
        numbers = np.frombuffer(plain[56:], "<u8")
        return numbers.astype(object) if (numbers < Q).all() else None

    def checks(self, job, question, pieces):
        s = self.sum
        check(question[1] == s.round and s.survivors and s.received is None and not s.opened,
              records.EINVAL, "out of order")
        s.received = self.received(job, pieces)
        return bytes(piece is None for piece in s.received)

    def open(self, job, question, pieces):
        s = self.sum
        check(question[1] == s.round and s.survivors and not s.opened, records.EINVAL,
              "out of order")
        confirmed = question[2:]
        members = confirmed[::9]
        check(len(set(members)) >= s.u, records.EFEWNODES, "signatures")
        for at, member in enumerate(members):
            self.believe(s.cards[member][:32],
                         struct.pack("<8q", *confirmed[9 * at + 1:9 * at + 9]), self.signed(job))
        s.opened = True
        check(s.received is None or pieces is None, records.EINVAL, "pieces after CHECK")
        received = s.received or self.received(job, pieces)
        check(all(piece is not None for piece in received), records.EFRAME, "piece")
        return (sum(received, np.zeros(s.length, object)) % Q).astype("<u8").tobytes()


class Older(Session):
    """A node that does not support `check`."""

    hello = {**Session.hello, "features": 0b1100101}
