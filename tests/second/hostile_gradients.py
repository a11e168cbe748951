"""Wrong requests for gradients, and operations on operands that they do not accept."""
import numpy as np

from . import records
from .attacks import RECIPES, UNREAD, bytes_of, case, changed, wrong
from .grounds import Gradients
from .records import (EBUSY, EFORMAT, EINTERRUPTED, EINVAL, ENOMEM, ERANGE, ESHAPE, EUNSUPPORTED)

NAN, INFINITE = 0x7FF8 << 48, 0x7FF0 << 48
U64 = (1 << 64) - 1

case("gradients: a valid round", 0, Gradients, lambda g: g.round(g.numbers()))
LIMITS = ((0, 1, 1, "format"), (1, 1, (1 << 32) - 1, "block of the recipe"), (2, 0, 53, "bits"),
          (3, 0, 62, "room"), (4, 1, 64, "tiers"), (5, 1, 4294967231, "block of tier 0"),
          (6, 1, 4096, "shards"), (7, 1, (1 << 32) - 1, "most examples"))
for at, least, most, what in LIMITS:
    for number in wrong(least, most) + ([1] if at == 2 else [3] if at in (4, 6) else []):
        case(f"gradients: {what} {number}", UNREAD, Gradients,
             lambda g, a=at, n=number: g.round(g.numbers(a, n)))
for at, number, what, wanted in (
        (8, 1001, "scale 1001", EFORMAT), (8, -1001 & U64, "scale -1001", EFORMAT),
        (10, 0, "inputs 0", EFORMAT), (11, 0, "targets 0", EFORMAT), (10, 99, "inputs 99", EINVAL),
        (10, 1, "the recipe as inputs", ESHAPE), (11, 2, "the inputs as targets", ESHAPE),
        (12, 4, "a first row beyond the last", ESHAPE),
        (12, U64, "first row -1", UNREAD + (ESHAPE,)),
        (13, 0, "no rows", EFORMAT), (13, 5, "rows beyond the last", ESHAPE),
        (13, U64, "-1 rows", UNREAD + (ESHAPE,)), (15, 1 << 32, "2^32 local steps", EFORMAT)):
    case(f"gradients: {what}", wanted, Gradients,
         lambda g, a=at, n=number: g.round(g.numbers(a, n)))
for name, rate, l2, weight in (("rate NaN", NAN, 0, 1.0), ("l2 infinite", 0, INFINITE, 1.0),
                               ("l2 -1", 0, -1.0, 1.0), ("weight 0", 0, 0, 0.0),
                               ("weight 2", 0, 0, 2.0), ("weight NaN", 0, 0, NAN)):
    def local(g, numbers=(rate, l2, weight)):
        out = g.numbers(15, 1)
        out[17:20] = [n if isinstance(n, int) else int(np.float64(n).view("<u8")) for n in numbers]
        return g.round(out)
    case(f"gradients: local steps with {name}", EFORMAT, Gradients, local)
for cut in (0, 1, 7, 8, 9, 19, 21, 40):
    case(f"gradients: a plan of {cut} numbers", UNREAD + (ESHAPE,), Gradients,
         lambda g, n=cut: g.round(np.resize(g.numbers(), n) if n else np.zeros((1, 0), "<i8")))
case("gradients: a plan of float64", UNREAD + (ESHAPE,), Gradients,
     lambda g: g.round(np.ones(20)))
case("gradients: a plan of two rows", UNREAD + (ESHAPE,), Gradients,
     lambda g: g.round(g.numbers().reshape(2, 10)))
case("gradients: 4,096 shards of one block", UNREAD + (ESHAPE, ENOMEM), Gradients, lambda g: g.round(
    np.concatenate([changed(g.numbers()[:10], 6, 4096), *[g.numbers()[10:]] * 4096])))
for name, text in RECIPES.items():
    case(f"gradients: a recipe of {name}", UNREAD + (ESHAPE, ENOMEM), Gradients,
         lambda g, t=text: (g.put(bytes_of(t), 1), g.round(g.numbers()))[1])
for name, number, values, wanted in (
        ("inputs that are not finite", 2, np.full((4, 6), np.inf), ERANGE),
        ("targets that are not finite", 3, np.full((4, 2), np.nan), ERANGE),
        ("parameters that are not finite", 10, np.full((1, 28), np.nan), ERANGE),
        ("inputs of 1e300", 2, np.full((4, 6), 1e300), (ERANGE, EBUSY, 0)),
        ("too few inputs", 2, np.ones((4, 5)), ESHAPE), ("too few rows", 2, np.ones((3, 6)), ESHAPE),
        ("too many targets", 3, np.ones((4, 3)), ESHAPE),
        ("labels that are not outputs", 3, np.full((4, 1), 9, "<u4"), EINVAL),
        ("labels of 2^32 - 1", 3, np.full((4, 1), 2**32 - 1, "<u4"), EINVAL),
        ("targets of bytes", 3, np.ones((4, 2), np.uint8), ESHAPE),
        ("too few parameters", 10, np.ones((1, 27)), ESHAPE),
        ("no parameters", 11, None, EINVAL)):
    def mixed(g, number=number, values=values):
        if values is None:
            g.c.drop(number)
        else:
                g.put(values, number)
        return g.round(g.numbers())
    case(f"gradients: {name}", wanted, Gradients, mixed)


def open_rounds(g):
    """Opens more rounds than a session may have: the upper tier of each is never requested."""
    keys = [g.keys(g.numbers(), 100 + n, (0,))[0] for n in range(300)]
    g.c.ping(1)
    while not g.c.pongs:
        g.c.take()
    g.c.cancel()
    codes = [g.code(key) for key in keys]
    return tuple((code, codes.count(code)) for code in sorted(set(codes)))


def tier_twice(g):
    first, second = g.keys(g.numbers(), 20, (0,)) + g.keys(g.numbers(), 20, (0,))
    out = g.code(second)
    g.c.cancel()
    g.code(first)
    return out


def dropped(g):
    keys = g.keys(g.numbers(), 20, (0,))
    for number in (1, 2, 3, 10, 20):
        g.c.drop(number)
    keys += [g.c.task(3, 20, 11, (1, 10), dtype=records.I64)]
    g.c.drop()
    codes = {g.code(key, 5) for key in keys[1:]}
    g.c.cancel()
    g.code(keys[0])
    return codes.pop()


def closes(g):
    g.keys(g.numbers(), 20, (0,))
    g.c.link.close(reset=True)
    g.c = g.world.new()
    return 0


case("gradients: 300 rounds open", (((EINTERRUPTED, 256), (ENOMEM, 44)),), Gradients, open_rounds)
case("gradients: a tier twice", EINVAL, Gradients, tier_twice)
case("gradients: blocks dropped within a round", (0, EINVAL), Gradients, dropped)
case("gradients: closes within a round", 0, Gradients, closes)
for dtype in (records.F64, records.U8):
    case(f"gradients: a result of type {dtype}", (ESHAPE, EUNSUPPORTED, EINVAL), Gradients, lambda g, d=dtype: (
        g.put(g.numbers(), 20), g.code(g.c.task(3, 20, 10, (1, 35), dtype=d)))[1])
for shape in ((1, 34), (35, 1), (1, 1), (1 << 20, 1 << 10)):
    def other_shape(g, shape=shape):
        g.put(g.numbers(), 20)
        return g.code(g.c.task(3, 20, 10, shape, dtype=records.I64))
    case(f"gradients: a result of {shape[0]} x {shape[1]}", (ESHAPE, ENOMEM, EINVAL), Gradients, other_shape)

# Operations on operands that they do not accept.

for op in (4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 23):
    for name, left, right in (("bytes", [1.0], [1.0]), ("nothing", None, None),
                              ("32,768 numbers", np.ones((1, 1 << 15)), np.ones((1, 1 << 15)))):
        def operands(g, op=op, left=left, right=right):
            if left is None:
                return g.code(g.c.task(op, 999, 998, (1, 1), records.I64))
            return g.ask(op, np.array(left), None if right is None else np.array(right), (1, 1))
        case(f"operation {op} on {name}", (EFORMAT, ESHAPE, EINVAL, EUNSUPPORTED), Gradients,
             operands)

