"""Reads a coordinator's record of a training with sums among nodes; written from docs/PROTOCOL.md.

    sums_record.py secure DIR EXAMPLES
checks signatures of cards, digests, confirmations and the sum that the answers open;
        EXAMPLES: number of places that hold an example
    sums_record.py allreduce DIR
checks the list of rows of the first round, which must be shuffled, and the hash of the
        state that members report
"""
import hashlib
import json
import os
import struct
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

PUT, TASK, RESULT = 3, 4, 5
MEET, STEP, STATE = 4, 6, 13
JOIN, ROSTER, SEAL, HIDE, OPEN, CONFIRM, CHECK = 8, 9, 10, 11, 12, 15, 23
Q = 2**61 - 1


def varint(b, at):
    value, shift = 0, 0
    while True:
        value |= (b[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if b[at - 1] < 128:
            return value, at


def fields(b):
    """A protobuf message as a dict; the fields that are used here are not repeated."""
    out, at = {}, 0
    while at < len(b):
        tag, at = varint(b, at)
        if tag & 7 == 0:
            out[tag >> 3], at = varint(b, at)
        elif tag & 7 == 1:
            out[tag >> 3], at = b[at:at + 8], at + 8
        else:
            n, at = varint(b, at)
            out[tag >> 3], at = b[at:at + n], at + n
    return out


def records(b):
    at = 0
    while at < len(b):
        magic, kind, _, job, number, part, n = struct.unpack_from("<IHHQIIQ", b, at)
        assert magic == 0x44524853
        yield kind, job, number, part, b[at + 32:at + 32 + n]
        at += 32 + n


def numbers(b):
    return struct.unpack("<%dQ" % (len(b) // 8), b)


def digest(*parts):
    h = hashlib.blake2b(b"sherd about 1".ljust(16, b"\0"), digest_size=32)
    for p in parts:
        h.update(struct.pack("<Q", len(p)) + p)
    return h.digest()


def verify(key, signature, message):
    Ed25519PublicKey.from_public_bytes(key).verify(signature, message)


class Member:
    """The requests to one node and its answers: (operation, left, right, answer), in order."""

    def __init__(self, sent, received):
        blocks, tasks, results = {}, [], {}
        for kind, job, number, part, body in records(sent):
            if kind == PUT:
                blocks[number] = b"" if part == 0 else blocks[number] + body
            elif kind == TASK:
                t = fields(body)
                self.job = job
                self.recipe = self.recipe if t[1] != JOIN else blocks[numbers(blocks[t[3]])[1]]
                tasks.append((number, t[1], blocks[t[3]], blocks.get(t[4])))
        for kind, job, number, part, body in records(received):
            if kind == RESULT:
                results[number] = b"" if part == 0 else results[number] + body
        self.asked = [(op, left, right, results.get(n)) for n, op, left, right in tasks]

    recipe = None

    def of(self, op):
        return [a[1:] for a in self.asked if a[0] == op]

    def of_round(self, op, number):
        """The request and the answer of this round, or None: there is at most one of each operation."""
        found = [a for a in self.of(op) if numbers(a[0])[1] == number]
        assert len(found) < 2
        return found[0] if found else None


def inverse(values, points):
    """Coefficients mod Q of the polynomial with these values (lists, for each number separately)."""
    u = len(points)
    whole = [1]
    for x in points:
        whole = [(a - x * b) % Q for a, b in zip([0] + whole, whole + [0])]
    out = [[0] * len(values[0]) for _ in range(u)]
    for j, x in enumerate(points):
        row, carry = [0] * u, 0
        for k in range(u - 1, -1, -1):
            carry = (whole[k + 1] + carry * x) % Q
            row[k] = carry
        by = pow(sum(c * pow(x, k, Q) for k, c in enumerate(row)) % Q, Q - 2, Q)
        for k in range(u):
            f = row[k] * by % Q
            out[k] = [(o + f * v) % Q for o, v in zip(out[k], values[j])]
    return out


def members(folder):
    """For each peer, the bytes that were sent to it, and a Member."""
    index = json.load(open(os.path.join(folder, "index.json")))
    for p in index["peers"]:
        both = [open(os.path.join(folder, p[s]["file"]), "rb").read() for s in ("sent", "received")]
        yield both[0], Member(*both)


def secure(folder, examples):
    examples = int(examples)
    nodes = [m for _, m in members(folder)]
    plan = numbers(nodes[0].of(JOIN)[0][0])
    n, u, t = plan[2:5]
    nodes.sort(key=lambda m: numbers(m.of(JOIN)[0][0])[5])
    for i, m in enumerate(nodes):
        card = m.of(JOIN)[0][2]
        assert m.of(ROSTER)[0][1][128 * i:128 * (i + 1)] == card
        statement = b"sherd seal key 2" + struct.pack("<Q5I", m.job, n, u, t, i, plan[10] != 0) + card[32:64]
        verify(card[:32], card[64:], statement)
    cards = nodes[0].of(ROSTER)[0][1]
    training = digest(nodes[0].recipe, struct.pack("<4Q", *plan[6:10]))
    roster = digest(training, cards)

    rounds = len(nodes[0].of(SEAL))
    assert rounds > 1
    for r in range(rounds):
        uploads, answers, seals, given = {}, {}, {}, {}
        for i, m in enumerate(nodes):
            seal, _, sealed = m.of(SEAL)[r]
            hide, parameters, upload = m.of(HIDE)[r]
            about = digest(roster, hide, parameters)
            assert seal[16:] == about and seal[:16] == hide[:16]
            count = len(parameters) // 8 + 3
            pieces = -(-count // (u - t))
            width = 8 * pieces + 96
            assert len(sealed) == n * width
            assert not any(sealed[i * width:(i + 1) * width])
            seals[i] = sealed
            uploads[i] = numbers(upload)
            question, _, signature = m.of(CONFIRM)[r]
            survivors = numbers(question)[2:]
            statement = b"sherd survivors 1".ljust(32, b"\0")
            statement += struct.pack("<QQ", m.job, numbers(question)[1])
            who = struct.pack("<%dI" % len(survivors), *survivors)
            statement += digest(digest(roster, about), who)
            if signature:  # the coordinator uses the first U
                verify(cards[128 * i:128 * i + 32], signature, statement)
            number = numbers(question)[1]
            checked, opened = m.of_round(CHECK, number), m.of_round(OPEN, number)
            given[i] = checked[1] if checked else opened[1]
            if checked:
                assert numbers(checked[0]) == numbers(question)[:2]
                assert checked[2] in (None, bytes(len(survivors)))
            if not opened:  # its answer to CHECK arrived after U others had answered
                continue
            asked, right, answer = opened
            assert not (checked and right)
            for k in range(u):
                who, = struct.unpack_from("<Q", asked, 16 + 72 * k)
                verify(cards[128 * who:128 * who + 32], asked[24 + 72 * k:88 + 72 * k], statement)
            if answer:
                answers[i] = numbers(answer)
        for i, rows in given.items():
            assert rows == b"".join(seals[k][i * width:(i + 1) * width] for k in survivors)
        who = sorted(answers)[:u]
        mask = inverse([answers[i] for i in who], [i + 1 for i in who])
        z = [v for part in mask[:u - t] for v in part][:count]
        total = [sum(uploads[i][k] for i in survivors) for k in range(count)]
        x = [(v - w) % Q for v, w in zip(total, z)]
        x = [v - Q if v > Q // 2 else v for v in x]
        # With clipping and without noise, each example counts 2^16, and each hit at most as much.
        assert x[-3] == examples << 16 and x[-1] % 65536 == 0 and 0 <= x[-1] <= x[-3], x[-3:]
        assert any(x[:-3]) and all(abs(v) <= examples << 18 for v in x[:-3])


def words(key):
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    while True:
        yield from struct.unpack("<512I", stream.update(bytes(2048)))


def below(stream, n):
    m = next(stream) * n
    while m & 0xffffffff < 2**32 % n:
        m = next(stream) * n
    return m >> 32


def shuffled(key, n):
    stream, rows = words(key), list(range(n))
    for i in range(n, 1, -1):
        k = below(stream, i)
        rows[i - 1], rows[k] = rows[k], rows[i - 1]
    return rows


def allreduce(folder):
    told, peers = [], 0
    for sent, m in members(folder):
        peers += 1
        told += [(numbers(q), answer) for q, _, answer in m.of(STATE)]
        assert len(numbers(m.of(MEET)[0][0])) == 15

        # Pack 0 has the rows of the first round's shards.
        step = m.of(STEP)[0][0]
        head, plan = numbers(step[:72]), numbers(step[104:])
        assert head[7] == 1 and head[:2] == (3, 1)
        rows = shuffled(step[72:104], head[8])
        shards = plan[8 + plan[4]:]
        wanted = [r for i in range(0, len(shards), 10)
                  for r in rows[shards[i + 2]:shards[i + 2] + shards[i + 3]]]
        pack = b"".join(body for kind, _, number, part, body in records(sent)
                        if kind == PUT and part and number == 2**31)
        first = struct.unpack("<%dI" % (len(pack) // 4), pack)
        assert wanted[:len(first)] == list(first)

    question = told[0][0]
    assert not question[4] and all(q == question for q, _ in told)
    state, = [a for _, a in told if len(a) == 8 * question[3]]
    want = hashlib.blake2b(struct.pack("<Q", question[1]) + state, digest_size=32).digest()
    assert [a for _, a in told if len(a) == 32] == [want] * peers


def names(*folders):
    """Checks that each meeting has a different name."""
    met = [{numbers(q)[4] for _, m in members(f) for q, _, _ in m.of(MEET)} for f in folders]
    assert all(met) and sum(map(len, met)) == len(set.union(*met)), met


if __name__ == "__main__":
    {"secure": secure, "allreduce": allreduce, "names": names}[sys.argv[1]](*sys.argv[2:])
