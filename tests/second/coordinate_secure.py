"""
A coordinator of docs/PROTOCOL.md, "Secure aggregation": requests a sum from members, and opens it.
"""
import struct

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from . import records, secure
from .coordinator import Ended, Refusal
from .network import Recipe
from .secure import CHECK, CONFIRM, FORMAT, HIDE, JOIN, OPEN, Q, ROSTER, SEAL

RECIPE, PLAN, CARDS, QUESTION, PARAMETERS, PIECES = range(1, 7)  # numbers of blocks
CHECKS = 1 << 7  # feature bit of a node that supports CHECK


def bits(number):
    """The bits of an f64 as an integer."""
    return struct.unpack("<q", struct.pack("<d", number))[0]


def numbers(*values):
    return np.array([values], "<i8")


def interpolated(at, values):
    """
    Coefficients, modulo Q, of the polynomials of degree below len(at) with values[i] at at[i].
    """
    out = [np.zeros(len(values[0]), object) for _ in at]
    for i, x in enumerate(at):
        basis, below = [1], 1
        for j, other in enumerate(at):
            if i == j:
                continue
            basis = [(a - other * b) % Q for a, b in zip([0] + basis, basis + [0])]
            below = below * (x - other) % Q
        inverse = pow(below, -1, Q)
        for power, factor in enumerate(basis):
            out[power] = (out[power] + values[i].astype(object) * (factor * inverse)) % Q
    return out


class Sum:
    """
    One job over sessions, which are members 0, 1, ... A member that refuses or leaves is not asked
    again; `lost` has the reason by its number.
    """

    def __init__(self, sessions, text, survivors, colluding=1, places=40, epoch=None, clip=0.0,
                 noise=0.0, job=1):
        self.members, self.text, self.job = sessions, text.encode(), job
        self.n, self.u, self.t = len(sessions), survivors, colluding
        self.places, self.epoch = places, epoch or places
        self.clip, self.noise = clip, noise
        self.recipe = Recipe(text)
        self.count = sum(layer.count() for layer in self.recipe.tiers)
        self.length = -(-(self.count + 3) // (self.u - self.t))
        self.lost = {}
        for member in sessions:
            member.job = job
            member.beside = [other for other in sessions if hasattr(other, "link")]

    def ask(self, members, op, make, shape, dtype):
        """
        make(member) sends the blocks of a request and returns their numbers. Returns answers by
        member.
        """
        keys, out = {}, {}
        for m in members:
            try:
                left, right = make(m)
                keys[m] = self.members[m].task(op, left, right, shape, dtype)
            except Ended as error:
                self.lost[m] = error
        for m, key in keys.items():
            out[m] = self.answer(m, key)
        return {m: answer for m, answer in out.items() if answer is not None}

    def answer(self, m, key):
        try:
            return self.members[m].wait(key)
        except (Ended, Refusal) as error:
            self.lost[m] = error
            return None

    def put(self, m, number, values):
        """Sends a block with this number in place of an earlier one."""
        self.members[m].drop(number)
        self.members[m].put(values, 0, number=number)
        return number

    def plan(self, m):
        return numbers(FORMAT, RECIPE, self.n, self.u, self.t, m, self.places, self.epoch,
                       bits(self.clip), bits(self.noise), 0, 0)

    def join(self):
        """JOIN and ROSTER: all members must answer."""
        return self.introduce() and self.meet()

    def introduce(self):
        """JOIN: collects the cards of all members."""
        def plan(m):
            self.put(m, RECIPE, np.frombuffer(self.text, np.uint8)[None])
            return self.put(m, PLAN, self.plan(m)), 0

        cards = self.ask(range(self.n), JOIN, plan, (1, 128), records.U8)
        if len(cards) < self.n:
            return False
        for m, card in cards.items():
            self.card(m, card.tobytes())
        self.cards = b"".join(cards[m].tobytes() for m in range(self.n))
        return True

    def meet(self):
        """ROSTER."""
        self.roster = secure.digest(
            secure.digest(self.text, struct.pack("<4q", self.places, self.epoch, bits(self.clip),
                                                 bits(self.noise))), self.cards)
        block = np.frombuffer(self.cards, np.uint8).reshape(self.n, 128)
        said = self.ask(range(self.n), ROSTER, lambda m: (PLAN, self.put(m, CARDS, block)), (1, 1),
                        records.I64)
        return [int(said[m][0, 0]) for m in sorted(said)] == [self.n] * self.n

    def card(self, m, card):
        """Checks that a card is signed by the key that the node used in TLS."""
        assert card[:32] == self.members[m].shown(), f"member {m}: the key of the card differs"
        Ed25519PublicKey.from_public_bytes(card[:32]).verify(
            card[64:], b"sherd seal key 2" + struct.pack(
                "<Q5I", self.job, self.n, self.u, self.t, m, self.plan(m)[0, 10] != 0) + card[32:64])

    def questions(self, number, parameters, step=0, scales=None, cost_scale=0):
        """The requests of a round: that of HIDE, and that of SEAL, which contains its digest."""
        scales = [0] * len(self.recipe.tiers) if scales is None else scales
        question = numbers(FORMAT, number, step, *scales, cost_scale)
        about = secure.digest(self.roster, question.tobytes(), parameters.astype("<f8").tobytes())
        self.bound = secure.digest(self.roster, about)
        return question, numbers(FORMAT, number, *struct.unpack("<4q", about))

    def uploads(self, number, parameters, **round_):
        """SEAL and HIDE: returns pieces and upload of each member that answered both."""
        self.number = number
        question, seal = self.questions(number, parameters, **round_)
        keys = {}
        width = 8 * self.length + 96
        for m in range(self.n):
            if m in self.lost:
                continue
            try:
                first = self.members[m].task(SEAL, self.put(m, QUESTION, seal), 0, (self.n, width),
                                             records.U8)
                left = self.put(m, QUESTION + 10, question)
                second = self.members[m].task(
                    HIDE, left, self.put(m, PARAMETERS, parameters[None]), (1, self.count + 3),
                    records.I64)
                keys[m] = first, second
            except Ended as error:
                self.lost[m] = error
        out = {}
        for m, (first, second) in keys.items():
            pieces, upload = self.answer(m, first), self.answer(m, second)
            if pieces is not None and upload is not None:
                upload = upload.view("<u8")[0]
                assert (upload < Q).all(), "an upload contains a number not below q"
                out[m] = pieces.tobytes(), upload.astype(object)
        return out

    def confirmed(self, survivors):
        """CONFIRM: returns the signatures by member."""
        question = numbers(FORMAT, self.number, *survivors)
        said = self.ask([m for m in survivors if m not in self.lost], CONFIRM,
                        lambda m: (self.put(m, QUESTION, question), 0), (1, 64), records.U8)
        text = (b"sherd survivors 1".ljust(32, b"\0") + struct.pack("<QQ", self.job, self.number) +
                secure.digest(self.bound, struct.pack(f"<{len(survivors)}I", *survivors)))
        for m, signature in list(said.items()):
            key = Ed25519PublicKey.from_public_bytes(self.cards[128 * m:128 * m + 32])
            try:
                key.verify(signature.tobytes(), text)
            except InvalidSignature:
                self.lost[m] = Ended(records.EWRONG, "the signature is not that of these survivors")
                del said[m]
        return {m: signature.tobytes() for m, signature in said.items()}

    def opened(self, uploads, signatures):
        """
        CHECK, for members that support it, and OPEN: returns the sum of the survivors' numbers, or
        None. `accused`: pairs (member, sender of a piece that it could not open).
        """
        survivors, width = sorted(uploads), 8 * self.length + 96
        chosen = sorted(signatures)[:self.u]
        question = numbers(FORMAT, self.number, *(
            x for m in chosen for x in (m, *struct.unpack("<8q", signatures[m]))))

        def pieces(m):
            rows = b"".join(uploads[s][0][m * width:(m + 1) * width] for s in survivors)
            return self.put(m, PIECES, np.frombuffer(rows, np.uint8).reshape(len(survivors), width))

        def ask(m):
            return self.put(m, QUESTION, question), 0 if m in good else pieces(m)

        here = [m for m in signatures if m not in self.lost]
        checking = [m for m in here if self.members[m].welcome["features"] & CHECKS]
        short = numbers(FORMAT, self.number)
        good = self.ask(checking, CHECK, lambda m: (self.put(m, QUESTION, short), pieces(m)),
                        (1, len(survivors)), records.U8)
        self.accused = {(m, survivors[at]) for m, bad in good.items()
                        for at in np.flatnonzero(bad[0] == 1)}
        accusers = {m for m, _ in self.accused}
        said = self.ask([m for m in here if m not in accusers and m not in self.lost], OPEN, ask,
                        (1, self.length), records.I64)
        if len(said) < self.u:
            return None
        at = sorted(said)[:self.u]
        vectors = interpolated([m + 1 for m in at], [said[m].view("<u8")[0] for m in at])
        mask = np.concatenate(vectors[:self.u - self.t])[:self.count + 3]
        total = (sum(upload for _, upload in uploads.values()) - mask) % Q
        return np.array([int(x) - Q if x > Q // 2 else int(x) for x in total], object)

    def round(self, number, parameters, between=lambda what: None, **round_):
        """
        A whole round: returns the sum, or None if too few members are left. Calls
        between("uploads") and between("signatures") after these stages.
        """
        uploads = self.uploads(number, parameters, **round_)
        between("uploads")
        if len(uploads) < self.u:
            return None
        signatures = self.confirmed(sorted(uploads))
        between("signatures")
        return self.opened(uploads, signatures) if len(signatures) >= self.u else None
