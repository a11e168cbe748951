"""Wrong requests for secure sums: numbers, order, cards, signatures, pieces, sessions."""
import numpy as np

from . import grounds, link, records, secure
from .attacks import RECIPES, UNREAD, bytes_of, case, changed, wrong
from .coordinate_secure import PLAN, Sum
from .grounds import Secure
from .records import EAUTH, EFEWNODES, EFORMAT, EFRAME, EINVAL, ENOMEM, EREFUSED, ESHAPE
from .secure import CHECK, CONFIRM, HIDE, JOIN, OPEN, ROSTER, SEAL

NAN, INFINITE = 0x7FF8 << 48, 0x7FF0 << 48
U64 = (1 << 64) - 1


def own(state):
    return lambda world: Secure(world, state, own=True)


def sums(state):
    return lambda world: Secure(world, state)


def join(g, at=None, value=0, text=None, shape=(1, 128), numbers=None):
    g.put(bytes_of(grounds.SUMS if text is None else text), 1)
    given = g.sum.plan(0)[0] if numbers is None else numbers
    return g.ask(JOIN, given if at is None else changed(given, at, value), None, shape, records.U8)


LIMITS = ((0, 3, 3, "format"), (1, 1, (1 << 32) - 1, "block of the recipe"), (2, 3, 1024, "N"),
          (3, 3, 3, "U"), (4, 1, 1, "T"), (5, 0, 2, "number"), (6, 1, 40, "places of a round"),
          (7, 40, (1 << 32) - 1, "places of an epoch"))
for at, least, most, what in LIMITS:
    for number in wrong(least, most):
        case(f"JOIN: {what} {number}", UNREAD, sums("new"),
             lambda g, a=at, n=number: join(g, a, n))
for what, at, number in (("clipping norm NaN", 8, NAN), ("clipping norm infinite", 8, INFINITE),
                         ("clipping norm -1", 8, 0xBFF0 << 48), ("clipping norm 5e-324", 8, 1),
                         ("noise without clipping", 9, 0x3FF0 << 48), ("noise NaN", 9, NAN),
                         ("noise -1", 9, 0xBFF0 << 48), ("inputs alone", 11, 0),
                         ("targets alone", 10, 0), ("block 2^32", 10, 1 << 32)):
    case(f"JOIN: {what}", UNREAD, sums("new"), lambda g, a=at, n=number: join(g, a, n))
case("JOIN: missing inputs", EINVAL, sums("new"), lambda g: join(g, 10, 99))
case("JOIN: a missing recipe", UNREAD, sums("new"), lambda g: join(g, 1, 99))
case("JOIN: dealt examples, to a node with its own examples", EINVAL, own("new"), lambda g: join(
    g, numbers=changed(changed(g.sum.plan(0), 10, 7), 11, 8)))
case("JOIN: no examples, to a node without its own examples", EINVAL, sums("new"), lambda g: join(
    g, numbers=changed(changed(g.sum.plan(0), 10, 0), 11, 0)))
case("JOIN: a network with a different number of inputs", ESHAPE, own("new"), lambda g: join(
    g, text=grounds.SUMS.replace("input = 4", "input = 5")))
for cut in (0, 1, 11, 13, 4000):
    case(f"JOIN: a plan of {cut} numbers", UNREAD + (ESHAPE,), sums("new"), lambda g, n=cut: join(
        g, numbers=np.resize(g.sum.plan(0)[0], n) if n else np.zeros((1, 0), "<i8")))
for name, text in RECIPES.items():
    for make, whose in ((sums("new"), "dealt"), (own("new"), "own")):
        case(f"JOIN: a recipe of {name}, {whose} examples", UNREAD + (ESHAPE, ENOMEM), make,
             lambda g, t=text: join(g, text=t + "data = file\nweights = he\nepochs = 1\nrate = 1\n"
                                    if "=" in t else t))
for shape in ((1, 127), (128, 1), (1, 1 << 20)):
    case(f"JOIN: a result of {shape[0]} x {shape[1]}", ESHAPE, sums("new"),
         lambda g, s=shape: join(g, shape=s))
case("JOIN: twice", 0, sums("joined"), lambda g: join(g))
case("JOIN: in a round", 0, sums("given"), lambda g: join(g))
case("JOIN: 1,024 nodes and a network of 10^6", (0, ENOMEM), sums("new"), lambda g: join(
    g, numbers=changed(changed(g.sum.plan(0), 2, 1024), 3, 1000), text=grounds.SUMS.replace(
        "dense 3", "dense 200000\nlayer = dense 3")))


def roster(g, cards=None, rows=3, shape=(1, 1)):
    block = bytes_of((g.sum.cards if cards is None else cards).decode("latin-1"))
    return g.code(g.c.task(ROSTER, PLAN, g.put(np.resize(block, (rows, 128)), 903), shape, records.I64))


def card(g, member, at, data):
    out = bytearray(g.sum.cards)
    out[128 * member + at:128 * member + at + len(data)] = data
    return bytes(out)


case("ROSTER: before JOIN", EINVAL, sums("new"), lambda g: (
    g.put(np.array(g.sum.plan(0)), PLAN), g.ask(ROSTER, g.sum.plan(0), np.zeros((3, 128), np.uint8)))[1])
case("ROSTER: twice", EINVAL, sums("met"), roster)
for rows in (1, 2, 4, 1025):
    case(f"ROSTER: {rows} cards", (ESHAPE, EINVAL), sums("joined"), lambda g, n=rows: roster(g, rows=n))
case("ROSTER: a wrong shape of the result", ESHAPE, sums("joined"), lambda g: roster(
    g, shape=(1, 2)))
for name, forge in {
        "zeros": lambda g: bytes(384),
        "zeros as the key of its own card": lambda g: card(g, 0, 0, bytes(32)),
        "zeros as the second key of its own card": lambda g: card(g, 0, 32, bytes(32)),
        "its own card at a wrong place": lambda g: g.sum.cards[128:] + g.sum.cards[:128],
        "its own card twice": lambda g: g.sum.cards[:128] * 2 + g.sum.cards[256:],
        "a member twice": lambda g: g.sum.cards[:256] + g.sum.cards[128:256],
        "a signature of zeros": lambda g: card(g, 1, 64, bytes(64)),
        "the signature of another member": lambda g: card(g, 1, 64, g.sum.cards[256 + 64:384])}.items():
    case(f"ROSTER: {name}", EAUTH, sums("joined"), lambda g, f=forge: roster(g, f(g)))
for name, point in {"0": bytes(32), "1": b"\x01" + bytes(31), "p - 1": b"\xec" + b"\xff" * 30 + b"\x7f",
                    "p": b"\xed" + b"\xff" * 30 + b"\x7f"}.items():
    def small(g, point=point):
        puppet = g.sum.members[2]
        text = puppet.session.statement(g.c.job, 2, point)
        own_ = puppet.session.node.identity.private
        return roster(g, g.sum.cards[:256] + puppet.shown() + point + own_.sign(text))
    case(f"ROSTER: a second key of small order, {name}", EAUTH, sums("joined"), small)



def another_kind(g):
    """ROSTER: one member has dealt examples and the others have their own, or the reverse."""
    puppet = g.sum.members[2]
    text = puppet.session.statement(g.c.job, 2, g.sum.cards[256 + 32:256 + 64], g.more["own"])
    return roster(g, card(g, 2, 64, puppet.session.node.identity.private.sign(text)))


case("ROSTER: a member with dealt examples, among owners", EREFUSED, own("joined"), another_kind)
case("ROSTER: an owner, among members with dealt examples", EREFUSED, sums("joined"), another_kind)

WIDTH = 8 * 9 + 96  # bytes of a sealed piece, with L = (15 + 3) / 2


def seal(g, numbers=None, shape=(3, WIDTH), number=1):
    given = g.sum.questions(number, g.parameters, scales=[30], cost_scale=20)[1][0] \
        if numbers is None else numbers
    return g.ask(SEAL, given, None, shape, records.U8)


case("SEAL: before JOIN", EINVAL, sums("new"), lambda g: seal(g, np.array([3, 1, 0, 0, 0, 0])))
case("SEAL: before ROSTER", EINVAL, sums("joined"), lambda g: seal(g, np.array([3, 1, 0, 0, 0, 0])))
case("SEAL: of a round that is already sealed", EINVAL, sums("given"), seal)
case("SEAL: of round 0", UNREAD, sums("met"), lambda g: seal(g, number=0))
for cut in (0, 1, 5, 7, 1000):
    case(f"SEAL: {cut} numbers", UNREAD + (ESHAPE,), sums("met"), lambda g, n=cut: seal(
        g, np.resize([3, 1, 0, 0, 0, 0], n) if n else np.zeros((1, 0), "<i8")))
case("SEAL: a wrong format", EFORMAT, sums("met"), lambda g: seal(g, np.array([2, 1, 0, 0, 0, 0])))
for shape in ((2, WIDTH), (3, WIDTH - 1), (4, WIDTH), (1024, 1 << 18)):
    case(f"SEAL: a result of {shape[0]} x {shape[1]}", (ESHAPE, ENOMEM), sums("met"), lambda g, s=shape: seal(g, shape=s))


def hide(g, at=None, value=0, parameters=None, numbers=None, shape=(1, 18), sealed=True, number=1):
    question, about = g.sum.questions(number, g.parameters, scales=[30], cost_scale=20)
    if at is not None or numbers is not None:
        question = changed(question, at, value) if numbers is None else numbers
    if sealed:
        about_ = np.array(question, object).reshape(1, -1)
        g.sum.questions(number, g.parameters, scales=[30], cost_scale=20)
        given = g.parameters if parameters is None else parameters
        digest = secure.digest(g.sum.roster, grounds.pack(np.array(
            [[int(v) - (1 << 64) if int(v) >> 63 == 1 else int(v) for v in about_[0]]], "<i8"), 0)[1],
            np.asarray(given, "<f8").tobytes())
        assert seal(g, np.array([3, number, *np.frombuffer(digest, "<i8")])) == 0
    return g.ask(HIDE, question, np.array([g.parameters if parameters is None else parameters]), shape,
                 records.I64)


case("HIDE: before SEAL", EINVAL, sums("met"), lambda g: hide(g, sealed=False))
case("HIDE: before JOIN", EINVAL, sums("new"), lambda g: g.ask(
    HIDE, np.array([3, 1, 0, 30, 20]), np.ones((1, 15)), (1, 18)))
case("HIDE: twice", EINVAL, sums("given"), lambda g: hide(g, sealed=False))
case("HIDE: of a different round", EINVAL, sums("met"), lambda g: (seal(g), hide(
    g, number=2, sealed=False))[1])
case("HIDE: of other parameters than sealed", EINVAL, sums("met"), lambda g: (seal(g), hide(
    g, parameters=g.parameters + 1, sealed=False))[1])
for at, number, what, wanted in ((0, 4, "a wrong format", EFORMAT), (2, U64, "step -1", UNREAD + (0,)),
                                 (2, 1 << 63, "step 2^63", UNREAD + (0,)), (3, 1001, "scale 1001", EFORMAT),
                                 (3, 1 << 63, "scale -2^63", EFORMAT), (4, 1 << 32, "scale 2^32", EFORMAT)):
    case(f"HIDE: {what}", wanted, sums("met"), lambda g, a=at, n=number: hide(g, a, n))
for name, value in (("NaN", np.nan), ("infinity", np.inf)):
    case(f"HIDE: parameters of {name}", EINVAL, sums("met"), lambda g, v=value: hide(
        g, parameters=np.full(15, v)))
case("HIDE: parameters of 1e308", 0, sums("met"), lambda g: hide(g, parameters=np.full(15, 1e308)))
case("HIDE: parameters of 1e308, own examples", 0, own("met"), lambda g: hide(
    g, parameters=np.full(15, 1e308)))
for count in (0, 1, 14, 16, 1 << 17):
    case(f"HIDE: {count} parameters", ESHAPE, sums("met"), lambda g, n=count: hide(
        g, parameters=np.zeros(n)))
for cut in (2, 3, 4, 6, 70):
    case(f"HIDE: {cut} numbers", UNREAD + (ESHAPE,), sums("met"), lambda g, n=cut: hide(
        g, numbers=np.resize([3, 1, 0, 30, 20], n)))
case("HIDE: a wrong shape of the result", ESHAPE, sums("met"), lambda g: hide(g, shape=(1, 17)))


def confirm(g, *survivors, number=1, shape=(1, 64)):
    return g.ask(CONFIRM, np.array([3, number, *survivors]), None, shape, records.U8)


case("CONFIRM: before HIDE", EINVAL, sums("met"), lambda g: (seal(g), confirm(g, 0, 1, 2))[1])
case("CONFIRM: before JOIN", EINVAL, sums("new"), lambda g: confirm(g, 0, 1, 2))
case("CONFIRM: twice", EINVAL, sums("confirmed"), lambda g: confirm(g, 0, 1, 2))
case("CONFIRM: of a different round", EINVAL, sums("given"), lambda g: confirm(
    g, 0, 1, 2, number=2))
case("CONFIRM: a wrong shape of the result", ESHAPE, sums("given"), lambda g: confirm(
    g, 0, 1, 2, shape=(1, 65)))
for survivors, wanted in (((), EFEWNODES), ((0,), EFEWNODES), ((0, 1), EFEWNODES), ((0, 1, 1), EINVAL),
                          ((0, 0, 0), EINVAL), ((2, 1, 0), EINVAL), ((0, 1, 3), EINVAL),
                          ((0, 1, U64), EINVAL), ((0, 1, 1 << 32), EINVAL), ((1, 2), EFEWNODES),
                          (tuple(range(2000)), EINVAL)):
    name = str(survivors) if len(survivors) < 9 else f"{len(survivors)} members"
    case(f"CONFIRM: {name}", (wanted, EINVAL, EFORMAT, ESHAPE), sums("given"),
         lambda g, s=survivors: confirm(g, *s))


def pieces_of(g, changed=None, rows=None):
    block = b"".join(g.uploads[s][0][:WIDTH] for s in range(3)) if changed is None else changed
    return np.resize(bytes_of(block.decode("latin-1")), (rows or 3, WIDTH))


def changed_end(piece):
    return piece[:-1] + bytes([piece[-1] ^ 1])


def check(g, number=1, rows=None, pieces=None, shape=(1, 3), more=()):
    return g.ask(CHECK, np.array([3, number, *more]), pieces_of(g, pieces, rows), shape, records.U8)


def found(g, pieces):
    """CHECK of three pieces, then OPEN: returns which pieces do not open, and the code of OPEN."""
    left, right = g.put(np.array([3, 1]), 901), g.put(pieces_of(g, pieces), 902)
    bad = g.c.wait(g.c.task(CHECK, left, right, (1, 3), records.U8))
    return (*(int(b) for b in bad[0]), opening(g, checked=True))


def opening(g, signers=(0, 1, 2), forge=None, number=1, rows=None, pieces=None, shape=(1, 9),
            checked=False):
    said = {m: forge(m, g.signatures[m]) if forge else g.signatures[m] for m in signers if m in (0, 1, 2)}
    question = [3, number]
    for m in signers:
        question += [m, *np.frombuffer(said.get(m, bytes(64)), "<i8")]
    right = None if checked else pieces_of(g, pieces, rows)
    return g.ask(OPEN, np.array(question, object), right, shape, records.I64)


case("OPEN: before CONFIRM", EINVAL, sums("given"), lambda g: g.ask(
    OPEN, np.array([3, 1] + [0] * 27), np.zeros((3, WIDTH), np.uint8), (1, 9)))
case("OPEN: a valid request", 0, sums("confirmed"), opening)
case("OPEN: twice", EINVAL, sums("confirmed"), lambda g: (opening(g), opening(g))[1])
case("OPEN: of a different round", EINVAL, sums("confirmed"), lambda g: opening(g, number=2))
case("OPEN: two signatures", EFEWNODES, sums("confirmed"), lambda g: opening(g, (0, 1)))
case("OPEN: no signature", (EFEWNODES, EFORMAT, ESHAPE), sums("confirmed"), lambda g: opening(g, ()))
case("OPEN: one signature three times", (EFEWNODES, EINVAL), sums("confirmed"), lambda g: opening(g, (1, 1, 1)))
case("OPEN: a signature of member 3", (EFEWNODES, EINVAL, EAUTH), sums("confirmed"), lambda g: opening(g, (0, 1, 3)))
case("OPEN: a signature of member 2^63", (EFEWNODES, EINVAL, EAUTH), sums("confirmed"),
     lambda g: opening(g, (0, 1, 1 << 63)))
case("OPEN: signatures of zeros", EAUTH, sums("confirmed"), lambda g: opening(
    g, forge=lambda m, s: bytes(64)))
case("OPEN: one signature with a changed bit", EAUTH, sums("confirmed"), lambda g: opening(
    g, forge=lambda m, s: s if m < 2 else bytes([s[0] ^ 1]) + s[1:]))
case("OPEN: its own signature for all members", EAUTH, sums("confirmed"), lambda g: opening(
    g, forge=lambda m, s: g.signatures[0]))
case("OPEN: 2,000 signatures", (EFORMAT, EINVAL, ESHAPE, EAUTH, EFEWNODES), sums("confirmed"),
     lambda g: opening(g, (0, 1, 2) * 700))
for rows in (1, 2, 4, 1025):
    case(f"OPEN: {rows} pieces", ESHAPE, sums("confirmed"), lambda g, n=rows: opening(g, rows=n))
for name, (forge, bad) in {
        "zeros": (lambda g: bytes(3 * WIDTH), (0, 1, 1)),
        "noise": (lambda g: bytes(range(168)) * 3, (0, 1, 1)),
        "which one has a changed bit": (lambda g: bytes(WIDTH) + changed_end(g.uploads[1][0][:WIDTH]) +
                                 g.uploads[2][0][:WIDTH], (0, 1, 0)),
        "the two others, exchanged": (lambda g: bytes(WIDTH) + g.uploads[2][0][:WIDTH] +
                                          g.uploads[1][0][:WIDTH], (0, 1, 1)),
        "another receiver": (lambda g: b"".join(
            g.uploads[s][0][WIDTH:2 * WIDTH] for s in range(3)), (0, 1, 1))}.items():
    case(f"OPEN: pieces of {name}", EFRAME, sums("confirmed"), lambda g, f=forge: opening(g, pieces=f(g)))
    case(f"CHECK: pieces of {name}", ((*bad, EFRAME),), sums("confirmed"), lambda g, f=forge: found(g, f(g)))
case("CHECK: a valid request, then OPEN", ((0, 0, 0, 0),), sums("confirmed"),
     lambda g: found(g, None))
case("CHECK: before JOIN", EINVAL, sums("new"), lambda g: check(g, pieces=bytes(WIDTH)))
case("CHECK: before CONFIRM", EINVAL, sums("given"), check)
case("CHECK: twice", EINVAL, sums("confirmed"), lambda g: (check(g), check(g))[1])
case("CHECK: after OPEN", EINVAL, sums("confirmed"), lambda g: (opening(g), check(g))[1])
case("CHECK: of a different round", EINVAL, sums("confirmed"), lambda g: check(g, number=2))
case("CHECK: three numbers", UNREAD, sums("confirmed"), lambda g: check(g, more=(1,)))
case("CHECK: a wrong shape of the result", ESHAPE, sums("confirmed"),
     lambda g: check(g, shape=(1, 4)))
for rows in (1, 2, 4, 1025):
    case(f"CHECK: {rows} pieces", ESHAPE, sums("confirmed"), lambda g, n=rows: check(g, rows=n))
case("OPEN: with pieces, after CHECK", EINVAL, sums("confirmed"), lambda g: (check(g), opening(g))[1])
case("OPEN: without pieces, without CHECK", EINVAL, sums("confirmed"),
     lambda g: opening(g, checked=True))
case("OPEN: a wrong shape of the result", ESHAPE, sums("confirmed"),
     lambda g: opening(g, shape=(1, 8)))


def other_session(g):
    """What another session sealed and confirmed does not exist in this session."""
    other = g.again()
    other.sum, other.uploads, other.signatures = g.sum, g.uploads, g.signatures
    other.c.job = g.c.job
    out = {confirm(other, 0, 1, 2), opening(other), seal(other, np.array([3, 2, 0, 0, 0, 0]))}
    other.close()
    return out.pop() if len(out) == 1 else tuple(out)


def two_openings(g):
    """Requests the same sum in two sessions with different survivors: at most one set is opened."""
    one, two = g, g.again()
    # four members, of which three can open a sum: two sets of survivors
    got = []
    for ground in (one, two):
        ground.sum = Sum([ground.c, *one_puppets(ground)], grounds.SUMS, 3, job=ground.c.job)
        ground.parameters = one.parameters
        assert ground.sum.join(), ground.sum.lost
        ground.uploads = ground.sum.uploads(1, ground.parameters, scales=[30], cost_scale=20)
    for ground, without in ((one, 3), (two, 2)):
        left = {m: u for m, u in ground.uploads.items() if m != without}
        if len(left) < 3:
            got.append("no upload")
            continue
        signatures = ground.sum.confirmed(sorted(left))
        got.append("opened" if len(signatures) == 3 and ground.sum.opened(left, signatures) is not None
                   else "refused")
    two.close()
    return tuple(got)


def one_puppets(ground):
    """Returns the same three puppets in every session of a case, so that rosters are equal."""
    shared = ground.world.__dict__.setdefault("puppets", [link.Identity() for _ in range(3)])
    out = []
    for identity in shared:
        puppet = grounds.Puppet()
        puppet.session.node.identity = identity
        out.append(puppet)
    return out


case("secure: requests for another session's round", EINVAL, sums("confirmed"), other_session)
case("secure: two sessions and two sets of survivors", (("opened", "refused"),), own("new"), two_openings)


def cut_off(g):
    g.put(np.ones((1, 15)), 902)
    g.c.task(HIDE, g.put(np.array([3, 1, 0, 30, 20]), 901), 902, (1, 18), records.I64)
    g.c.drop()
    g.c.cancel()
    g.c.link.close(reset=True)
    g.c = g.world.new()
    g.c.job = g.sum.job
    return 0


for state in Secure.STATES:
    case(f"secure: drops the job, {state}", 0, sums(state), lambda g: g.c.drop() or 0)
    case(f"secure: cancels the job, {state}", 0, sums(state), lambda g: g.c.cancel() or 0)
    case(f"secure: closes, {state}", 0, own(state), cut_off)
