"""Wrong requests for all-reduce groups, and members that send unexpected records."""
import numpy as np

from . import grounds, link, records
from .allreduce import CONNECT, MEET, PACKS, REDUCE, STATE, STEP, WHERE
from .attacks import RECIPES, UNREAD, bytes_of, case, changed, wrong
from .coordinator import Coordinator, Ended
from .grounds import Ring
from .records import EAUTH, EFORMAT, EINTERRUPTED, EINVAL, ENOMEM, ERANGE, EREFUSED, ESHAPE, EUNASKED

NAN, INFINITE = 0x7FF8 << 48, 0x7FF0 << 48
U64 = (1 << 64) - 1


def rings(state="met"):
    return lambda worlds: Ring(worlds, state)


new = rings("new")
LIMITS = ((0, 3, 3, "format"), (1, 1, 2, "schedule"), (2, 1, 1, "N"), (3, 0, 0, "member"),
          (5, 1, (1 << 32) - 1, "block of the recipe"), (6, 0, (1 << 32) - 1, "block of the state"),
          (7, 2, 53, "bits"), (8, 1, (1 << 32) - 1, "most examples"),
          (9, 1, (1 << 32) - 1, "examples of the training"), (11, 1, 3, "optimiser"))
for at, least, most, what in LIMITS:
    for number in wrong(least, most):
        case(f"MEET: {what} {number}", UNREAD + (EAUTH, ENOMEM), new,
             lambda g, a=at, n=number: g.meeting(a, n))
case("MEET: a name of 0", UNREAD, new, lambda g: g.meeting(4, 0))
for what, at, number in (("beta NaN", 12, NAN), ("beta 2", 12, 1 << 62), ("beta2 infinite", 13, INFINITE),
                         ("beta -1", 12, 0xBFF0 << 48), ("epsilon NaN", 14, NAN),
                         ("epsilon -1", 14, 0xBFF0 << 48)):
    case(f"MEET: {what}", UNREAD, new, lambda g, a=at, n=number: g.meeting(a, n))
case("MEET: a missing recipe", UNREAD, new, lambda g: g.meeting(5, 99))
case("MEET: a missing state", EINVAL, new, lambda g: g.meeting(6, 99))
case("MEET: no state to continue from", EINVAL, new, lambda g: g.meeting(6, 0))
case("MEET: continues with different bits", EINVAL, rings("stepped"), lambda g: (
    g.ask(MEET, changed(changed(g.group.plan(1, 0, 0), 7, 20), 4, 999), bytes_of(
        f"127.0.0.1:1 key={g.world.node.key.pin}\n"))))
for name, roster in {"nothing": "", "noise": "\x01\x02\xff" * 99, "a different key":
                     f"127.0.0.1:9 key={link.Identity().pin}\n", "its key twice": "OWN\nOWN\n",
                     "its line and a truncated line": "OWN\n127.0.0.1:9 key=",
                     "a thousand lines": "OWN\n" * 1000, "65 members": "OWN\n" + "".join(
                         f"127.0.0.1:9 key={link.Identity().pin}\n" for _ in range(64)),
                     "an address *": "* key=OWN\n",
                     "a line of 100,000 bytes": "x" * 100000 + "\n"}.items():
    case(f"MEET: a roster of {name}", UNREAD + (EAUTH, ESHAPE), new,
         lambda g, r=roster: g.meeting(roster=r))


def two(g, identity, schedule=1):
    """
    MEET of the node and an unreachable member with this key; returns the code of a refusal, or 0.
    """
    g.put(g.first, 2)
    numbers = changed(changed(g.group.plan(2, 0, 2), 1, schedule), 4, 4711)
    server = g.world.node
    text = f"127.0.0.1:{server.port} key={server.key.pin}\n127.0.0.1:9 key={identity.pin}\n"
    return g.ask(MEET, numbers, bytes_of(text))


case("MEET: a member that may give tasks to the node", EAUTH, new, lambda g: two(g, g.world.me))
case("MEET: an unreachable member", 0, new, lambda g: two(g, link.Identity()))
for name, text in RECIPES.items():
    def recipe(g, text=text):
        g.put(bytes_of(text.replace("input = 4\n", "input = 5\n")), 1)
        return g.meeting()
    case(f"MEET: a recipe of {name}", UNREAD + (ESHAPE, ENOMEM), new, recipe)
for name, state in {"NaN": np.full(18, np.nan), "infinity": np.full(18, np.inf), "17 numbers": np.zeros(17),
                    "19 numbers": np.zeros(19), "nothing": np.zeros((1, 0)),
                    "2^33 steps": np.concatenate([np.zeros(54), [2.0**33]]),
                    "-1 steps": np.concatenate([np.zeros(54), [-1.0]])}.items():
    case(f"MEET: a state of {name}", UNREAD + (ESHAPE, ERANGE), new, lambda g, s=state: g.meeting(state=s))
for cut in (0, 1, 14, 16, 5000):
    case(f"MEET: a plan of {cut} numbers", UNREAD + (ESHAPE,), new, lambda g, n=cut: g.ask(
        MEET, np.resize(g.group.plan(1, 0, 2)[0], n) if n else np.zeros((1, 0), "<i8"), bytes_of("x")))
case("CONNECT: before MEET", EINVAL, new, lambda g: g.connect())
case("CONNECT: twice", (0, EINVAL), rings(), lambda g: g.connect())
case("CONNECT: a wrong shape of the result", ESHAPE, rings(), lambda g: g.ask(
    CONNECT, [1.0], None, (1, 7)))


def unreachable(g):
    """CONNECT to a port without a listener returns the code of the reason."""
    assert two(g, link.Identity()) == 0
    said = g.c.wait(g.c.task(CONNECT, g.put([1.0], 901), 0, (1, 2), records.I64))[0]
    return tuple(int(x) for x in said)


case("CONNECT: to a port without a listener", ((0, records.ECONNECT), (0, records.ECLOSED)), new,
     unreachable)
case("STEP: before MEET", EINVAL, new, lambda g: g.graded(g.question(1)))
case("STEP: a valid request", 0, rings(), lambda g: g.graded(g.question()))
LIMITS = ((0, 3, 3, "format"), (5, 0, 1, "local"), (6, 0, 536870912, "packs"), (7, 0, 2, "kind of list"),
          (8, 20, 20, "length of the list"), (13, 1, 1, "format of the plan"), (15, 17, 17, "bits"),
          (16, 0, 62, "room"), (17, 1, 1, "tiers"), (19, 1, 1, "shards"))
for at, least, most, what in LIMITS:
    for number in wrong(least, most):
        case(f"STEP: {what} {number}", UNREAD + (ESHAPE, ENOMEM), rings(),
             lambda g, a=at, n=number: g.graded(changed(g.question(), a, n)))
for at, number, what, wanted in (
        (1, 0, "round 0", UNREAD), (2, 1, "an update without a sum", UNREAD),
        (2, 9, "an update of a later round", UNREAD), (3, NAN, "rate NaN", UNREAD),
        (3, INFINITE, "rate infinite", UNREAD), (4, 0, "divided by 0", UNREAD),
        (4, NAN, "divided by NaN", UNREAD), (4, 0xBFF0 << 48, "divided by -1", UNREAD),
        (6, 5, "packs that were never sent", (EINVAL, EFORMAT, 0)),
        (22, 1, "a block of inputs", UNREAD), (24, 19, "rows beyond the list", UNREAD + (ESHAPE,)),
        (24, U64, "row -1", UNREAD + (ESHAPE,)), (25, 0, "no rows", UNREAD), (25, 21, "21 rows of 20", UNREAD + (ESHAPE,))):
    case(f"STEP: {what}", wanted, rings(), lambda g, a=at, n=number: g.graded(changed(g.question(), a, n)))
for cut in (0, 1, 13, 14, 20, 31, 33, 50000):
    case(f"STEP: {cut} numbers", UNREAD + (ESHAPE,), rings(), lambda g, n=cut: g.graded(
        np.resize(g.question(), n) if n else np.zeros((1, 0), "<i8")))
case("STEP: a number twice", UNREAD, rings("stepped"), lambda g: g.graded(g.question(1)))
case("STEP: a wrong shape of the result", ESHAPE, rings(), lambda g: g.ask(
    STEP, g.question(), None, (1, 5)))
case("STEP: rows that were never sent", EINVAL, rings(), lambda g: (
    setattr(g.c, "packs", 1), g.graded(g.question()))[1])
for name, rows, count in (("a row twice", [0, 0, 1], 3), ("row 20 of 20", [20], 1), ("row 2^32 - 1", [2**32 - 1], 1),
                          ("fewer inputs than rows", [0, 1, 2, 3, 4, 5], 2), ("no rows", [], 0)):
    def pack(g, rows=rows, count=count):
        block = PACKS + 3 * g.c.packs
        g.c.packs += 1
        g.c.put(np.array([rows], "<u4"), 0, number=block)
        g.c.put(np.ones((count, 5)), 0, number=block + 1)
        g.c.put(np.ones((count, 1), "<u4"), 0, number=block + 2)
        return g.graded(g.question())
    case(f"STEP: a pack of {name}", UNREAD + (ESHAPE, 0), rings(), pack)
case("REDUCE: before MEET", EINVAL, new, lambda g: g.reduced(g.question(1)))
case("REDUCE: before STEP", EINVAL, rings(), lambda g: g.reduced(g.question()))
case("REDUCE: of a different round", EINVAL, rings("stepped"), lambda g: (
    g.graded(g.question()), g.reduced(g.question(99)))[1])
case("REDUCE: twice", UNREAD, rings("stepped"), lambda g: g.reduced(g.question(1)))
case("REDUCE: a wrong shape of the result", ESHAPE, rings(), lambda g: (
    g.graded(g.question()), g.ask(REDUCE, g.question(), None, (1, 5), records.F64))[1])
case("STATE: before MEET", EINVAL, new, lambda g: g.ask(
    STATE, np.array([3, 0, 0, 18, 0]), None, (1, 18), records.F64))
for name, question in {"nothing": [3], "a wrong format": [2, 0, 0, 18, 0],
                       "round 9": [3, 9, 0, 18, 0], "rate NaN": [3, 1, NAN, 18, 0], "2^40 numbers": [3, 0, 0, 1 << 40, 0],
                       "six numbers": [3, 0, 0, 18, 0, 0]}.items():
    case(f"STATE: {name}", UNREAD + (ESHAPE,), rings(), lambda g, q=question: g.ask(
        STATE, np.array(q, object), None, (1, 18), records.F64))
case("STATE: a result that is too small", (ESHAPE, EINVAL), rings(), lambda g: g.ask(
    STATE, np.array([3, 0, 0, 18, 0]), None, (1, 17), records.F64))
case("WHERE: before MEET", (0, EINVAL), new, lambda g: g.ask(WHERE, [1.0], None, (1, 5)))
case("WHERE: a wrong shape of the result", ESHAPE, rings(), lambda g: g.ask(
    WHERE, [1.0], None, (1, 4)))


def link_of(g, identity, *sent):
    """Returns the code with which the node answers a member that sends these records, or 0."""
    try:
        c = Coordinator(g.world.node.port, identity, g.world.node.pins)
        c.job = 4711
        for item in sent:
            item(c)
        for n in (1, 2):
            c.ping(n)
            while not c.pongs or c.pongs[-1] < n:
                c.take(10)
        out = [error.code for error in c.refused_blocks.values()]
        c.close()
        return out[0] if out else 0
    except Ended as error:
        return "ended", error.code


def put(values, number=257, job=4711, dtype=None):
    def send(c):
        c.job = job
        c.put(np.array([values], dtype or "<i8"), 0, number=number)
    return send


def member(wanted, name, *sent):
    """Adds a case: a member of the roster sends these records after MEET."""
    def whole(g):
        identity = link.Identity()
        assert two(g, identity) == 0
        return link_of(g, identity, *sent)
    case(f"a member sends {name}", wanted, new, whole)


OUT = (EREFUSED, ("ended", EUNASKED))
member(OUT, "a block of a different group", put(range(9), job=4712))
member(OUT, "a block of step 200", put(range(9), 256 + 200))
member(OUT, "a block of step 0", put(range(9), 256))
member(OUT, "a block that is too long", put(range(10)))
member(OUT, "a block that is too short", put(range(8)))
member(OUT, "a block of float64", put(range(9), dtype="<f8"))
member(OUT, "a block of 2 MiB", put(range(1 << 18)))
member(OUT, "a recipe", put(range(9), 1, 3, "u1"))
member(("ended", EUNASKED), "a task", lambda c: c.task(1, 1, 1))
member(("ended", EUNASKED), "STATE", lambda c: c.task(STATE, 1, 0))
member(("ended", EUNASKED), "DROP", lambda c: c.drop())
member(("ended", EUNASKED), "CANCEL", lambda c: c.cancel())
member(OUT, "a block twice", put(range(9)), put(range(9)))


def same_name(g):
    """A group of another session with the same name does not receive the blocks of this group."""
    other, identity = g.again(), link.Identity()
    assert two(other, link.Identity()) == 0 and two(g, identity) == 0
    out = link_of(g, identity, put(range(9)))
    other.close()
    return out


case("a member sends a block while two groups have the same name", 0, new, same_name)


def crowd(g):
    """A member opens more than four connections."""
    identity = link.Identity()
    assert two(g, identity) == 0
    many, ended = [], 0
    for _ in range(8):
        try:
            many.append(Coordinator(g.world.node.port, identity, g.world.node.pins))
        except (Ended, TimeoutError, OSError):
            ended += 1
    for c in many:
        c.close()
    return len(many), ended


case("a member connects eight times", ((4, 4),), new, crowd)


def stranger(g):
    identity = link.Identity()
    try:
        Coordinator(g.world.node.port, identity, g.world.node.pins).close()
        return "accepted"
    except (Ended, TimeoutError):
        return "rejected"


case("a key outside every group", "rejected", rings(), stranger)
for state in ("new", "met", "stepped"):
    case(f"group: drops the job, {state}", 0, rings(state), lambda g: g.c.drop() or 0)
    case(f"group: cancels the job, {state}", 0, rings(state), lambda g: g.c.cancel() or 0)


def in_two_sessions(g):
    """Another session has its own group, and no access to this one."""
    other = g.again()
    assert other.group.meet(other.first)
    out = other.step(3)
    code = other.reduced(g.question())
    other.close()
    return code if out else "wrong"


case("group: another session's round", EINVAL, rings("stepped"), in_two_sessions)
