"""Bodies of blocks and results, and the arithmetic of operations 1 and 2, in numpy."""
import numpy as np

from . import records


BYTES = records.BYTES_LEFT, records.BYTES_RIGHT


class Refused(Exception):
    """The reason for a REFUSE by a node: code and text."""

    def __init__(self, code, text):
        super().__init__(code, text)
        self.code, self.text = code, text


class Block:
    """
    A matrix of vertically stacked groups: one array, or one for each prime; shapes of the groups.
    """

    def __init__(self, description, shapes, values):
        self.description, self.shapes, self.values = description, shapes, values

    @property
    def residues(self):
        return self.description["dtype"] in (records.RESIDUES, *BYTES)

    def parts(self, prime=None):
        """The groups as matrices: the residues of one prime, or integers reduced modulo it."""
        flat = self.values[prime[0]] if self.residues else self.values
        at = 0
        for rows, cols in self.shapes:
            part = flat[at:at + rows * cols].reshape(rows, cols)
            at += rows * cols
            if prime and not self.residues:
                part = np.mod(part.astype(np.int64), prime[1])
            yield part


def unpack_residues(body):
    three = np.frombuffer(body, np.uint8).reshape(-1, 3).astype(np.int64)
    return three[:, 0] | three[:, 1] << 8 | three[:, 2] << 16


def pack_residues(values):
    flat = np.ascontiguousarray(values.reshape(-1), "<u4")
    return flat.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()


def up(n, unit):
    return -(-n // unit)


def lay_out(matrices, dtype):
    """The body of an operand of residues of one byte: one matrix of integers for each prime."""
    strips = []
    for m in matrices:
        if dtype == records.BYTES_LEFT:
            s, t = up(m.shape[0], 16), up(m.shape[1], 64)
            whole = np.zeros((16 * s, 64 * t), np.uint8)
            whole[:m.shape[0], :m.shape[1]] = m
            strips.append(whole.reshape(s, 16, t, 64).transpose(0, 2, 1, 3).reshape(s, -1))
        else:
            s, t = up(m.shape[1], 16), up(m.shape[0], 64)
            whole = np.zeros((64 * t, 16 * s), np.int8)
            whole[:m.shape[0], :m.shape[1]] = m
            strips.append(whole.reshape(t, 16, 4, s, 16).transpose(3, 0, 1, 4, 2).reshape(s, -1))
    return np.concatenate(strips, 1).tobytes()


def taken_apart(description, body):
    """The matrices of such an operand."""
    rows, cols, primes = (description[k] for k in ("rows", "cols", "primes"))
    left = description["dtype"] == records.BYTES_LEFT
    s, t = (up(rows, 16), up(cols, 64)) if left else (up(cols, 16), up(rows, 64))
    if len(body) != 1024 * s * t * primes:
        raise Refused(records.EFORMAT, "length of tiles")
    for q in range(primes):
        if left:
            tiles = np.frombuffer(body, np.uint8).reshape(s, primes, t, 16, 64)[:, q]
            whole = tiles.transpose(0, 2, 1, 3).reshape(16 * s, 64 * t)
        else:
            tiles = np.frombuffer(body, np.int8).reshape(s, primes, t, 16, 16, 4)[:, q]
            whole = tiles.transpose(1, 2, 4, 0, 3).reshape(64 * t, 16 * s)
        yield whole[:rows, :cols].astype(np.int64).reshape(-1)


def parse(description, body):
    """Returns a Block from the body of a PUT, or raises Refused."""
    d = description
    if d["len"] != len(body):
        raise Refused(records.EFORMAT, "length")
    table, at = [(d["rows"], d["cols"])], 0
    if d["groups"]:
        at = 8 * d["groups"]
        table = [tuple(map(int, pair))
                 for pair in np.frombuffer(body[:at], "<u4").reshape(-1, 2)]
        if sum(r for r, _ in table) != d["rows"] or max(c for _, c in table) != d["cols"]:
            raise Refused(records.EFORMAT, "group table")
    count = sum(r * c for r, c in table)
    if d.get("encoding", 0) == 1:
        return Block(d, table, sparse(d, table, body[at:]))
    if d["dtype"] in BYTES:
        return Block(d, table, list(taken_apart(d, body)))
    if d["dtype"] == records.RESIDUES:
        each = 3 * count
        if len(body) - at != each * d["primes"]:
            raise Refused(records.EFORMAT, "length of residues")
        values = [unpack_residues(body[at + q * each:at + (q + 1) * each])
                  for q in range(d["primes"])]
    else:
        kind = np.dtype(records.DTYPES[d["dtype"]])
        if len(body) - at != count * kind.itemsize:
            raise Refused(records.EFORMAT, "length of values")
        values = np.frombuffer(body, kind, count, at)
    return Block(d, table, values)


def sparse(description, table, body):
    """The values of a block in CSR as dense matrices."""
    rows = [cols for r, cols in table for _ in range(r)]
    index = np.dtype("u1" if description["cols"] <= 255 else
                     "<u2" if description["cols"] <= 65535 else "<u4")
    kind = np.dtype(records.DTYPES[description["dtype"]])
    counts = np.frombuffer(body, index, len(rows)).astype(np.int64)
    rest = len(body) - len(rows) * index.itemsize
    entries = rest // (index.itemsize + kind.itemsize)
    if entries * (index.itemsize + kind.itemsize) != rest or counts.sum() != entries:
        raise Refused(records.EFORMAT, "entries")
    columns = np.frombuffer(body, index, entries, len(rows) * index.itemsize).astype(np.int64)
    given = np.frombuffer(body, kind, entries, (len(rows) + entries) * index.itemsize)
    starts = np.concatenate(([0], np.cumsum(np.array(rows, np.int64))))
    values = np.zeros(starts[-1], kind)
    values[np.repeat(starts[:-1], counts) + columns] = given
    return values


def multiply_modulo(a, b, p):
    """
    a b modulo p < 2^24, exact in float64: a is split in two, and at most 2^17 terms are added.
    """
    total = np.zeros((a.shape[0], b.shape[1]), np.int64)
    for at in range(0, a.shape[1], 1 << 16):
        left, right = a[:, at:at + (1 << 16)], b[at:at + (1 << 16)].astype(np.float64)
        high = ((left >> 12).astype(np.float64) @ right).astype(np.int64) % p
        low = ((left & 4095).astype(np.float64) @ right).astype(np.int64)
        total = (total + (high << 12) + low) % p
    return total


def windows(values, w):
    """The matrix of the windows of images; each row is one image."""
    images = values.reshape(len(values), w["height"], w["width"], w["channels"])
    pad = w.get("padding", 0)
    images = np.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    side, stride = w["window"], w["stride"]
    down = (w["height"] + 2 * pad - side) // stride + 1
    across = (w["width"] + 2 * pad - side) // stride + 1
    out = [images[:, y * stride:y * stride + side, x * stride:x * stride + side].reshape(
        len(values), 1, -1) for y in range(down) for x in range(across)]
    return np.concatenate(out, 1).reshape(len(values) * down * across, -1)


def product(task, left, right):
    """The body of the result of operation 1 or 2: the values, or packed residues."""
    primes = task.get("primes", [])
    want = task["result"]
    kinds = left.description["dtype"], right.description["dtype"]
    if any(kind in BYTES for kind in kinds) and (kinds != BYTES or task.get("windows")):
        raise Refused(records.EUNSUPPORTED, "operands of residues of one byte")
    for block in (left, right):
        if block.residues and (not primes or len(block.values) != len(primes)):
            raise Refused(records.EINVAL, "residues of other primes")
    out = []
    for prime in enumerate(primes) if primes else [None]:
        lefts, rights = list(left.parts(prime)), list(right.parts(prime))
        if want["dtype"] == records.BYTES:
            rights = [np.mod(x, prime[1]) for x in rights]
        elif prime and any((x >= prime[1]).any() for x in lefts + rights):
            raise Refused(records.ERANGE, "a residue that is not below its prime")
        if task.get("windows"):
            lefts = [windows(x, task["windows"]) for x in lefts]
        if task["op"] == 2:
            lefts = [x.T for x in lefts]
        if len(lefts) != len(rights) or any(x.shape[1] != y.shape[0]
                                            for x, y in zip(lefts, rights)):
            raise Refused(records.ESHAPE, "shapes do not agree")
        if prime:
            made = [multiply_modulo(x, y, prime[1]) for x, y in zip(lefts, rights)]
        else:
            made = [x.astype(np.float64) @ y.astype(np.float64) for x, y in zip(lefts, rights)]
        out.append(np.concatenate([x.reshape(-1) for x in made]))
        if out[-1].size != want["rows"] * want["cols"]:
            raise Refused(records.ESHAPE, "the result has a different shape")
    return dress(want, out)


def dress(want, out):
    """Encodes values, a list of one array for each prime, as the description specifies."""
    if want["dtype"] == records.RESIDUES:
        return b"".join(map(pack_residues, out))
    if want["dtype"] == records.BYTES:
        return b"".join(x.astype(np.uint8).tobytes() for x in out)
    return out[0].astype(records.DTYPES[want["dtype"]]).tobytes()
