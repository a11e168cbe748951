"""Records and control bodies of docs/PROTOCOL.md, written from that document alone."""
import struct

MAGIC = 0x44524853
HELLO, WELCOME, PUT, TASK, RESULT, REFUSE, DROP, PING, PONG, CANCEL, BYE = range(1, 12)
CHUNK = 262144
CONTROL_MAX = 1024
HEADER = struct.Struct("<IHHQIIQ")

F64, F32, U8, U16, U32, I8, I16, I32, I64 = range(1, 10)
RESIDUES = 32
BYTES_LEFT, BYTES_RIGHT, BYTES = 33, 34, 35
DTYPES = {F64: "<f8", F32: "<f4", U8: "u1", U16: "<u2", U32: "<u4", I8: "i1", I16: "<i2",
          I32: "<i4", I64: "<i8"}
ALPN = b"sherd/1"

# The negative codes of section "Codes".
ENOMEM, EINVAL, ERANGE, EINTERNAL, EINTERRUPTED, ETIMEOUT = -1, -2, -3, -4, -5, -6
EFEWNODES, EEXPOSURE, EDIFFERS, EUNSUPPORTED, EBUSY, ESTOPPED = -7, -8, -9, -10, -11, -12
EFRAME, EAUTH, EWRONG, EREFUSED, EVERSION, EUNASKED, ESILENT = range(-100, -107, -1)
ECLOSED, ECONNECT, EADDRINUSE, ENET = -200, -201, -202, -203
EDEVICE, EOPEN, EIO, EFORMAT, ESHAPE, EKEY, ECHAIN = -300, -400, -401, -402, -403, -404, -405

# name: (field number, kind); u varint, s zigzag, x fixed64, d double, t text, * repeated u, a schema
# for an embedded message, a list of one schema for a repeated one.
WINDOWS = {"height": (1, "u"), "width": (2, "u"), "channels": (3, "u"), "window": (4, "u"),
           "stride": (5, "u"), "padding": (6, "u")}
DESCRIPTION = {"origin": (1, "u"), "dtype": (2, "u"), "encoding": (3, "u"), "primes": (4, "u"),
               "groups": (5, "u"), "rows": (6, "u"), "cols": (7, "u"), "len": (8, "u"),
               "attempt": (9, "u")}
DEVICE = {"does": (1, "u"), "gflops": (2, "d"), "residue_gflops": (3, "d"), "memory": (4, "u"),
          "cell": (5, "u"), "depth": (6, "u"), "byte_gops": (7, "d")}
HELLO_BODY = {"minor_min": (1, "u"), "minor_max": (2, "u"), "features": (3, "x"),
              "software": (4, "t"), "blas_core": (5, "t"), "backend": (6, "t"),
              "threads": (7, "u"), "memory": (8, "u"), "gflops": (9, "d"),
              "residue_gflops": (10, "d"), "devices": (11, [DEVICE]), "byte_gops": (16, "d")}
TASK_BODY = {"op": (1, "u"), "flags": (2, "u"), "left": (3, "u"), "right": (4, "u"),
             "primes": (5, "*"), "result": (6, DESCRIPTION), "windows": (7, WINDOWS)}
REFUSE_BODY = {"what": (1, "u"), "code": (2, "s"), "text": (3, "t")}
BYE_BODY = {"code": (1, "s"), "text": (2, "t")}


class Malformed(Exception):
    """A record or a body that violates the document."""


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(schema, values):
    """
    Encodes a protobuf body: the fields of values (a dict by name), in the order of their numbers.
    """
    out = bytearray()
    for name, (number, kind) in schema.items():
        if name not in values:
            continue
        value = values[name]
        if kind == "u":
            out += varint(number << 3) + varint(value)
        elif kind == "s":
            out += varint(number << 3) + varint((value << 1 ^ value >> 31) & 0xFFFFFFFF)
        elif kind == "x":
            out += varint(number << 3 | 1) + struct.pack("<Q", value)
        elif kind == "d":
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        elif kind == "*":
            packed = b"".join(map(varint, value))
            out += varint(number << 3 | 2) + varint(len(packed)) + packed if value else b""
        elif isinstance(kind, list):
            for item in value:
                body = encode(kind[0], item)
                out += varint(number << 3 | 2) + varint(len(body)) + body
        else:
            body = value.encode() if kind == "t" else encode(kind, value)
            out += varint(number << 3 | 2) + varint(len(body)) + body
    return bytes(out)


def take_varint(body, at):
    value = shift = 0
    while True:
        if at >= len(body) or shift > 63:
            raise Malformed("varint")
        value |= (body[at] & 127) << shift
        shift += 7
        at += 1
        if not body[at - 1] & 128:
            return value, at


def decode(schema, body):
    """Decodes the fields of a protobuf body by name; skips fields with unknown numbers."""
    names = {number: (name, kind) for name, (number, kind) in schema.items()}
    values, at = {}, 0
    while at < len(body):
        key, at = take_varint(body, at)
        wire = key & 7
        if wire == 0:
            value, at = take_varint(body, at)
        elif wire in (1, 5):
            width = 8 if wire == 1 else 4
            value, at = body[at:at + width], at + width
        elif wire == 2:
            size, at = take_varint(body, at)
            value, at = body[at:at + size], at + size
        else:
            raise Malformed("wire type")
        if at > len(body):
            raise Malformed("a field extends beyond its body")
        name, kind = names.get(key >> 3, (None, None))
        if name is None:
            continue
        if kind == "*":
            item, numbers = 0, [value] if wire == 0 else []
            while wire == 2 and item < len(value):
                number, item = take_varint(value, item)
                numbers.append(number)
            values[name] = values.get(name, []) + numbers
        elif kind == "s":
            values[name] = value >> 1 ^ -(value & 1)
        elif kind == "x":
            values[name] = struct.unpack("<Q", value)[0]
        elif kind == "d":
            values[name] = struct.unpack("<d", value)[0]
        elif kind == "t":
            values[name] = value.decode("utf-8", "replace")
        elif isinstance(kind, list):
            values.setdefault(name, []).append(decode(kind[0], value))
        else:
            values[name] = value if kind == "u" else decode(kind, value)
    return values


def record(kind, body=b"", job=0, number=0, part=0, flags=0, magic=MAGIC, length=None):
    """Header and body; magic and length are parameters so that callers can send wrong ones."""
    return HEADER.pack(magic, kind, flags, job, number, part,
                       len(body) if length is None else length) + body


def body_records(kind, description, body, job, number):
    """Part 0, the description, and the parts of a body of a PUT or RESULT."""
    yield record(kind, encode(DESCRIPTION, description), job, number, 0)
    for part, at in enumerate(range(0, len(body), CHUNK), 1):
        yield record(kind, body[at:at + CHUNK], job, number, part)


def bye(code, text=""):
    return record(BYE, encode(BYE_BODY, {"code": code, "text": text}))


def refuse(job, number, part, what, code, text):
    body = encode(REFUSE_BODY, {"what": what, "code": code, "text": text})
    return record(REFUSE, body, job, number, part)
